"""planc in torch.compile's place for a solver (torch._functorch.config.activation_memory_budget_solver): of the values that
the partition may save or compute again, it chooses those that planc's plan of the joint graph computes again."""

import gc
import json
import os
import tempfile
import threading
from types import SimpleNamespace

import torch
from benchlib import PLANC, fitting
from torch._inductor.custom_graph_pass import CustomKnapsackSolver

import planc_torch
from planc_torch.__main__ import Problem
from planc_torch.step_recorder import StepRecorder, note_end

TRIES = 6


class Running(torch.fx.Interpreter):
    """Runs a joint graph on the meta device under a recorder; `call_of` has the number of the call that a node made."""

    def __init__(self, graph, recorder):
        super().__init__(torch.fx.GraphModule(torch.nn.Module(), graph))
        self.recorder, self.call_of = recorder, {}
        self.after_loss = {node for node in graph.find_nodes(op="placeholder") if "tangent" in node.name}

    def run_node(self, node):
        if self.after_loss.intersection(node.all_input_nodes):
            self.after_loss.add(node)
            self.recorder.reach("backward")
        before = len(self.recorder.calls)
        result = super().run_node(node)
        if len(self.recorder.calls) > before:
            self.call_of[node] = before
        return result

    def call_function(self, target, args, kwargs):
        moved = {**kwargs, "device": torch.device("meta")} if "device" in kwargs else kwargs
        return super().call_function(target, args, moved)


def recorded(joint):
    """The graph of a joint graph, and which of its calls each node made."""
    recorder = StepRecorder("meta", "the joint graph")
    given = [node.meta["val"] for node in joint.find_nodes(op="placeholder")]
    running = Running(joint, recorder)
    with recorder:
        recorder.begin()
        result = running.run(*(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in given))
        recorder.phase = None
    gc.collect()
    note_end(recorder, [i for i, ref in enumerate(recorder.references) if not ref.expired()], "meta", result)
    return planc_torch.StepGraph(recorder, "joint"), running.call_of


def computed_again(path):
    """The calls that a plan runs more than once."""
    seen, again = set(), set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith('{"i":"exec"'):
                call = json.loads(line)["n"]
                (again if call in seen else seen).add(call)
    return again


class PlancSolver(CustomKnapsackSolver):
    """The budget is of bytes saved, a plan's of all memory: the largest of the latter is looked for whose plan keeps it."""

    def __init__(self, device):
        self.device = device

    def uuid(self):
        return None

    def __call__(self, memory, joint_graph, max_memory, node_info, all_recomputable_banned_nodes):
        saved = []
        # PyTorch shows no mode what this thread calls here.
        thread = threading.Thread(target=lambda: saved.append(
            self.saved(memory, joint_graph, max_memory, all_recomputable_banned_nodes)))
        thread.start()
        thread.join()
        return saved[0], [k for k in range(len(memory)) if k not in saved[0]]

    def saved(self, memory, joint, most, nodes):
        graph, call_of = recorded(joint)
        best = []
        with tempfile.TemporaryDirectory() as folder:
            problem = Problem(graph, SimpleNamespace(planc=PLANC, graph=None, profile=None, host_budget=None, budget=None,
                                                     device=self.device), folder)
            path, low, high = os.path.join(folder, "x.plan"), problem.reserved, problem.plain_bytes
            for _ in range(TRIES):
                budget = (low + high) // 2
                is_feasible = fitting([PLANC, "plan", *problem.common, "--budget", str(budget), "--policy", "auto", "--no-swap",
                                       "-o", path]) is not None
                again = computed_again(path) if is_feasible else set()
                saved = [k for k, node in enumerate(nodes) if call_of.get(node) not in again]
                if is_feasible and sum(memory[k] for k in saved) > most:
                    high = budget
                    continue
                low, best = budget, saved if is_feasible else best
        return best
