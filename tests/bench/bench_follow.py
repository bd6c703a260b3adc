#!/usr/bin/env python3
"""What following costs the processor for each call of a step, beyond a dispatch mode that does nothing: in Python alone and
with planc_torch's extension. The plan moves nothing, so that neither copies nor calls that run again are in it. CPU time of one
thread; the ways take turns, and each figure is the median of what one round has of it."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "python"), os.path.join(ROOT, "runtime", "torch")]

from torchexport import torch  # first: it finds a Python with PyTorch

import planc_torch
from benchlib import BUILD, PLANC, bench, machine, table
from planc_torch import extension, following, library
from planc_torch.__main__ import arguments_of
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torchsteps import Gpt, made

LAYERS, ROUNDS, WARM_UPS = 10, 40, 3
WAYS = ("Python", "extension")


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def deep():
    """A GPT of many small calls."""
    made()
    model = Gpt(layers=LAYERS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

    def step(ids, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(step=step, example=lambda: (torch.randint(0, 96, (1, 24)), torch.randint(0, 96, (1, 24))))


def planned(folder):
    """A plan of the step, and how many calls it has."""
    step, graph, plan = deep(), os.path.join(folder, "deep.yaml"), os.path.join(folder, "deep.plan")
    recorded = planc_torch.StepGraph(planc_torch.record(step.step, arguments_of(step.example), "cpu"), "deep")
    recorded.write(graph)
    subprocess.run([PLANC, "plan", graph, "--device", "v100-32g", "--policy", "none", "--budget", "1T", "-o", plan], check=True,
                   capture_output=True)
    return plan, len(recorded.calls)


class Way:
    """A step that is followed in one of the ways, with the modes that belong to it entered only while it runs."""

    def __init__(self, name, plan):
        self.seen = following.SEEN = following.Seen()
        extension.is_wanted = name == "extension"
        self.made = deep()
        self.step = planc_torch.follow(plan, self.made.step)
        if (self.step.iteration.plain is not None) != extension.is_wanted:
            sys.exit("planc_torch's extension is not built; make torch-extension builds it")
        self.leave()

    def leave(self):
        self.seen.leave()

    def run(self, args):
        following.SEEN = self.seen
        self.seen.enter()
        taken = timed(self.step, args)
        self.leave()
        return taken


def timed(step, args):
    begun = time.process_time_ns()
    step(*args)
    return (time.process_time_ns() - begun) / 1000


def empty(step, args):
    with Empty():
        return timed(step, args)


def costs(_):
    torch.set_num_threads(1)
    library.PLACES.insert(0, BUILD)
    with tempfile.TemporaryDirectory() as folder:
        plan, calls = planned(folder)
        ways, plain = {name: Way(name, plan) for name in WAYS}, deep()
    args, rounds = plain.example(), []
    for i in range(WARM_UPS + ROUNDS):
        taken = {"empty": empty(plain.step, args), "none": timed(plain.step, args)}
        taken.update((name, way.run(args)) for name, way in ways.items())
        if i >= WARM_UPS:
            rounds.append(taken)
    if any(way.step.counts["left"] > 1 for way in ways.values()):
        sys.exit("steps ran without their plan")
    beyond = {name: statistics.median(taken[name] - taken["empty"] for taken in rounds) / calls for name in WAYS}
    mode = statistics.median(taken["empty"] - taken["none"] for taken in rounds) / calls
    share = statistics.median((taken["extension"] - taken["empty"]) / (taken["Python"] - taken["empty"]) for taken in rounds)
    table(f"PyTorch {torch.__version__}, a step of {calls} calls, us a call",
          ["an empty mode", "beyond it: Python", "extension", "of Python's"],
          [[f"{mode:.1f}", *(f"{beyond[name]:.1f}" for name in WAYS), f"{share:.2f}"]])


if __name__ == "__main__":
    bench(f"{machine()}. CPU time.", {"costs": costs})
