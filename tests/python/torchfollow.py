"""What tests and benchmarks of planc_torch share: steps (torchsteps.py, steps_*.py) recorded, planned, run and compared."""

import atexit
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

from torchexport import torch  # first: it finds a Python with PyTorch

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "runtime", "torch"))

import planc_torch
import planc_torch.library
from planc_torch.__main__ import arguments_of
from torchmeter import Meter
from torch.utils._pytree import tree_flatten

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ITERATIONS = 4
planc_torch.library.PLACES.insert(0, BUILD)
# Below what follows plans, so that it sees what that does, and operands that it takes away after their calls.
METER = Meter(is_on=False)
METER.__enter__()
# What PyTorch is made of stays until the end: looking through it for what is garbage takes longer than most steps.
gc.collect()
gc.freeze()


def planc(*arguments):
    return subprocess.run([os.path.join(BUILD, "planc"), *map(str, arguments)], capture_output=True, text=True, check=False)


class Recorded:
    """A recorded step, its graph and plans, in a folder. The device has no memory but for the plan's, so that a budget is
    the arena's; launching is free, so that small ops are worth something. How good a plan is matters to nobody who follows
    it: with the least effort it is found soonest."""

    def __init__(self, make, folder, effort=0, micro_batches=1):
        self.make, self.folder, self.effort = make, folder, effort
        self.plans, self.leasts = {}, {}
        step = make()
        self.graph = planc_torch.StepGraph(planc_torch.record(step.step, arguments_of(step.example), "cpu",
                                                               micro_batches=micro_batches), make.__name__)
        self.path, self.device = (os.path.join(folder, name) for name in ("step.yaml", "device.json"))
        self.graph.write(self.path)
        with open(os.path.join(ROOT, "profiles", "v100-32g.json"), encoding="utf-8") as file:
            described = json.load(file)
        described["device"].update(reserved_bytes=0, launch_ns=0)
        with open(self.device, "w", encoding="utf-8") as file:
            json.dump(described, file)
        self.plain_bytes = self.planned("none", "1T")[1]["peak_bytes"]

    def planned(self, policy, budget):
        """The plan's path and summary; None where the policy has no plan."""
        if (policy, budget) not in self.plans:
            self.plans[policy, budget] = self.plan(policy, budget)
        return self.plans[policy, budget]

    def plan(self, policy, budget):
        path = os.path.join(self.folder, f"{policy}-{budget}.plan")
        done = planc("plan", self.path, "--device", self.device, "--policy", policy, *self.effort_of(policy), "--budget", budget,
                     "--json", "-o", path)
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stderr)
        return (path, json.loads(done.stdout)) if done.returncode == 0 else None

    def least(self, policy):
        if policy not in self.leasts:
            self.leasts[policy] = self.find_least(policy)
        return self.leasts[policy]

    def find_least(self, policy):
        rows = json.loads(planc("compare", self.path, "--device", self.device, "--policies", policy, *self.effort_of(policy), "--budget",
                                "1T", "--json").stdout)["rows"]
        return rows[0]["least_budget"]

    def effort_of(self, policy):
        return ("--effort", self.effort) if policy in ("auto", "priced") else ()


def tensors_of(value):
    return [t.detach().clone() for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def numbers_of(value):
    return [v for v in tree_flatten(value)[0] if isinstance(v, float)]


class Run:
    """A few iterations of a step, and all that comes of them. `between(made, i)` is called before iteration i and may give
    another step and other arguments; what the steps and it return is kept. Where it is `metered`, `peaks` are the most bytes
    in each iteration, which takes several times as long."""

    def __init__(self, make, plan=None, between=None, iterations=ITERATIONS, metered=False):
        self.made = make()
        torch.manual_seed(7)
        self.followed = planc_torch.follow(plan, self.made.step) if plan else self.made.step
        self.kept, self.peaks, self.told = [], [], []
        self.meter = METER if metered else None
        if metered:
            METER.seen = {}
            gc.collect()  # what other runs have left goes now, and not while it is counted
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                for i in range(iterations):
                    self.iterate(i, between)
            finally:
                if plan:
                    self.counts = self.followed.counts
                    follower = self.followed.iteration.memory.follower
                    self.repeated = [i for i in range(len(self.followed.iteration.calls)) if follower.repeats(i)]
                    self.followed.close()
        self.told = [str(w.message) for w in caught if issubclass(w.category, planc_torch.PlanNotFollowed)]
        self.kept += [tensors_of(list(self.made.model.parameters())), tensors_of(list(self.made.model.buffers())),
                      tensors_of([p.grad for p in self.made.model.parameters()]), tensors_of(getattr(self.made, "more", [])),
                      tensors_of([dict(state) for state in self.made.optimizer.state.values()])]

    def iterate(self, i, between):
        args = arguments_of(self.made.example)()
        if between:
            args = between(self, i, args)
        with self.meter.counting() if self.meter else contextlib.nullcontext():
            result = self.followed(*args)
        if self.meter:
            self.peaks.append(self.meter.peak)
        self.kept.append((tensors_of(result), numbers_of(result)))

    @property
    def metered(self):
        """The most that a step took, but for the first one, which makes what persists."""
        return max(self.peaks[1:])


def over(recorded, run, peak_bytes):
    """By how many bytes a run under a plan took more than the plan's peak; 0 if it did not. Without the extension what is run
    again is there twice for a moment, with what the call gives beside it: nothing in Python moves memory from one storage to
    another."""
    storages, calls = recorded.graph.recorder.storages, recorded.graph.calls
    repeated = [] if run.followed.iteration.plain else run.repeated
    twice = [sum(storages[s].bytes for s in {*calls[i].creates, *calls[i].writes}) for i in repeated]
    return max(0, run.metered - recorded.graph.outside_bytes - peak_bytes - max(twice, default=0))


def first_difference(ours, plain):
    """Which part of what came of two runs differs, bit for bit; None if none does."""
    if len(ours.kept) != len(plain.kept):
        return f"{len(ours.kept)} parts instead of {len(plain.kept)}"
    for i, parts in enumerate(zip(ours.kept, plain.kept)):
        a, b = (tree_flatten(value)[0] for value in parts)
        same = len(a) == len(b) and all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(a, b))
        if not same:
            return f"part {i} differs"
    return None


def parameters(run):
    return list(run.made.model.parameters())


class FollowTest(unittest.TestCase):
    """Tests of a process share their recordings, and the plans of these."""
    folder = tempfile.TemporaryDirectory()
    recorded = {}
    atexit.register(folder.cleanup)

    def record(self, make):
        """Once with the extension and once without, which sees no scratch of calls."""
        key = make, planc_torch.extension.is_wanted
        if key not in self.recorded:
            self.recorded[key] = Recorded(make, tempfile.mkdtemp(prefix=make.__name__, dir=self.folder.name))
        return self.recorded[key]

    def assert_same(self, ours, plain, what):
        self.assertIsNone(first_difference(ours, plain), what)
