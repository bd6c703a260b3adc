#!/usr/bin/env python3
"""Tests of planc_torch: steps are recorded, planned and followed. What they compute is the same bit for bit as without a
plan, and their memory stays within the plan's; what differs from the recording is told and computes the same, too."""

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from types import SimpleNamespace
from unittest import mock

from torchexport import torch  # first: it finds a Python with PyTorch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "runtime", "torch"))

import planc_torch
import planc_torch.library
import planc_torch.memory
from planc_torch.__main__ import arguments_of
from torchmeter import Meter
from torchsteps import STEPS, cnn, gpt
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_flatten
from torch_refusals import CannotExport

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ITERATIONS = 4
planc_torch.library.PLACES.insert(0, BUILD)


def planc(*arguments):
    return subprocess.run([os.path.join(BUILD, "planc"), *map(str, arguments)], capture_output=True, text=True, check=False)


class Recorded:
    """A recorded step, its graph and plans, in a folder. The device has no memory but for the plan's, so that a budget is
    the arena's; launching is free, so that small ops are worth something."""

    def __init__(self, make, folder):
        self.make, self.folder = make, folder
        step = make()
        self.graph = planc_torch.StepGraph(planc_torch.record(step.step, arguments_of(step.example), "cpu"), make.__name__)
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
        path = os.path.join(self.folder, f"{policy}-{budget}.plan")
        done = planc("plan", self.path, "--device", self.device, "--policy", policy, "--budget", budget, "--json", "-o", path)
        return (path, json.loads(done.stdout)) if done.returncode == 0 else None

    def least(self, policy):
        rows = json.loads(planc("compare", self.path, "--device", self.device, "--policies", policy, "--budget", "1T",
                                "--json").stdout)["rows"]
        return rows[0]["least_budget"]


def tensors_of(value):
    return [t.detach().clone() for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def numbers_of(value):
    return [v for v in tree_flatten(value)[0] if isinstance(v, float)]


class Run:
    """A few iterations of a step, and all that comes of them. `between(made, i)` is called before iteration i and may give
    another step and other arguments; what the steps and it return is kept."""

    def __init__(self, make, plan=None, between=None, iterations=ITERATIONS):
        self.made = make()
        torch.manual_seed(7)
        self.followed = planc_torch.follow(plan, self.made.step) if plan else self.made.step
        self.kept, self.metered, self.told = [], 0, []
        meter = Meter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                for i in range(iterations):
                    self.iterate(meter, i, between)
            finally:
                if plan:
                    self.counts = self.followed.counts
                    self.followed.close()
        self.told = [str(w.message) for w in caught if issubclass(w.category, planc_torch.PlanNotFollowed)]
        self.kept += [tensors_of(list(self.made.model.parameters())), tensors_of(list(self.made.model.buffers())),
                      tensors_of([p.grad for p in self.made.model.parameters()]), tensors_of(getattr(self.made, "more", []))]

    def iterate(self, meter, i, between):
        args = arguments_of(self.made.example)()
        if between:
            args = between(self, i, args)
        if i > 0:  # the first one makes what persists
            meter.peak = 0
            with meter:
                result = self.followed(*args)
            self.metered = max(self.metered, meter.peak)
        else:
            result = self.followed(*args)
        self.kept.append((tensors_of(result), numbers_of(result)))


class FollowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.recorded = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def record(self, make):
        if make not in self.recorded:
            folder = os.path.join(self.folder.name, make.__name__)
            os.mkdir(folder)
            self.recorded[make] = Recorded(make, folder)
        return self.recorded[make]

    def assert_same(self, ours, plain, what):
        self.assertEqual(len(ours.kept), len(plain.kept))
        for i, (a, b) in enumerate(zip(ours.kept, plain.kept)):
            a, b = (tree_flatten(value)[0] for value in (a, b))
            self.assertEqual(len(a), len(b), f"{what}: part {i}")
            for x, y in zip(a, b):
                same = torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
                self.assertTrue(same, f"{what}: part {i} differs")


class PlanTest(FollowTest):
    POLICIES = ("auto", "capuchin", "superneurons", "naive", "cheap")

    def test_every_step_computes_the_same_within_its_plan(self):
        followed = 0
        for make in STEPS.values():
            recorded = self.record(make)
            plain = Run(make)
            # Without a plan tensors live as long as Python has them, which is no shorter than they are needed.
            self.assertGreaterEqual(plain.metered, recorded.plain_bytes * 95 // 100, make.__name__)
            for policy in self.POLICIES:
                least = recorded.least(policy)
                for share in (45, 70) if policy == "auto" else (70,):
                    budget = recorded.plain_bytes * share // 100
                    if least is None or least > budget:
                        continue
                    made = recorded.planned(policy, budget)
                    what = f"{make.__name__} by {policy} at {share} %"
                    self.assertIsNotNone(made, what)
                    try:
                        ours = Run(make, made[0])
                    except planc_torch.FollowError as error:
                        self.assertIn("two versions", str(error), what)
                        continue
                    self.assert_same(ours, plain, what)
                    self.assertLessEqual(ours.metered - recorded.graph.outside_bytes, made[1]["peak_bytes"], what)
                    self.assertEqual(ours.told, [], what)
                    # Its gradients, zeroed in place, are not there in the first step.
                    self.assertEqual(ours.counts["left"], int(make is STEPS["accumulating"]), what)
                    moved = ours.counts["out_bytes"] + ours.counts["repeats"]
                    self.assertGreater(moved, 0, f"{what}: the plan does nothing")
                    followed += 1
        self.assertGreater(followed, 24)


# --- Steps that are not the recorded one ------------------------------------------------------------------------------


class Stopped(Exception):
    """What a hook raises."""


def hooked(hook, when=2, part=7):
    """A forward hook on a module of the CNN for one iteration."""
    def between(run, i, args):
        if i == when:
            run.handle = run.made.model[part].register_forward_hook(hook)
        elif i == when + 1:
            run.handle.remove()
        return args
    return between


def once(change, undo=None):
    """A change before iteration 2, and what takes it back before the next."""
    def between(run, i, args):
        if i == 2:
            return change(run, args) or args
        if i == 3 and undo:
            undo(run)
        return args
    return between


def parameters(run):
    return list(run.made.model.parameters())


def smaller_batch(run, args):
    return tuple(a[:3] for a in args)


def clone_data(run, args):
    for p in parameters(run):
        p.data = p.data.clone()


def new_head(run, args):
    torch.manual_seed(1)
    run.made.model[11] = nn.Linear(32 * 64, 10)


def new_buffer(run, args):
    run.made.model[1].running_mean = run.made.model[1].running_mean.clone()


def load_optimizer(run, args):
    run.made.optimizer.load_state_dict(copy.deepcopy(run.made.optimizer.state_dict()))


def load_model(run, args):
    run.made.model.load_state_dict(copy.deepcopy(run.made.model.state_dict()))


def forget_state(run, args):
    run.made.optimizer.state.clear()


def freeze(run, args):
    parameters(run)[0].requires_grad_(False)


def unfreeze(run):
    parameters(run)[0].requires_grad_(True)


def watch_gradient(run, args):
    run.handle = parameters(run)[0].register_hook(lambda gradient: gradient * 2)


def unwatch(run):
    run.handle.remove()


def swap_step(**parts):
    """Another step for one iteration: without its update, or with two."""
    def change(run, args):
        made, before = run.made, run.followed

        def step(images, labels):
            made.optimizer.zero_grad(set_to_none=parts.get("clear", True))
            loss = functional.cross_entropy(made.model(images), labels)
            loss.backward(retain_graph=parts.get("passes", 1) > 1)
            for _ in range(parts.get("passes", 1) - 1):
                loss.backward()
            nn.utils.clip_grad_norm_(made.model.parameters(), 1.0)
            for _ in range(parts.get("updates", 1)):
                made.optimizer.step()
            return loss.detach()

        if isinstance(before, planc_torch.Followed):
            before.step, run.before = step, before.step
        else:
            run.followed, run.before = step, before
    return change


def swap_back(run):
    if isinstance(run.followed, planc_torch.Followed):
        run.followed.step = run.before
    else:
        run.followed = run.before


# What is done, how many steps leave the plan, and what is told of the first of them.
DIFFERENCES = {
    "a smaller batch": (once(smaller_batch), 1, "f32[3,3,16,16]"),
    "evaluation mode": (once(lambda run, args: run.made.model.eval() and None, lambda run: run.made.model.train()), 1, "native_batch"),
    "an extra call": (hooked(lambda module, x, y: y.mean() and None), 1, "aten.mean"),
    "a result of its own": (hooked(lambda module, x, y: y * 1), 1, "aten.mul.Tensor"),
    "a value read": (hooked(lambda module, x, y: y[0, 0, 0, 0].item() and None), 1, "_local_scalar_dense"),
    "values read": (hooked(lambda module, x, y: y.tolist() and None), 1, "tolist"),
    "an array": (hooked(lambda module, x, y: y.detach().numpy().sum() and None), 1, "numpy"),
    "printing": (hooked(lambda module, x, y: str(y) and None), 1, ""),
    "weights that moved": (once(clone_data), 1, "another tensor"),
    "a new module that nothing trains": (once(new_head), 2, "another tensor than 11.bias"),
    "a new buffer": (once(new_buffer), 1, "another tensor than 1.running_mean"),
    "another optimizer's state": (once(load_optimizer), 1, "another tensor"),
    "loaded weights": (once(load_model), 0, ""),
    "no optimizer's state": (once(forget_state), 1, "aten.zeros_like"),
    "a frozen weight": (once(freeze, unfreeze), 1, ""),
    "a gradient's hook": (once(watch_gradient, unwatch), 1, "aten.mul.Tensor"),
    "no update": (once(swap_step(updates=0), swap_back), 1, "the step ended"),
    "two updates": (once(swap_step(updates=2), swap_back), 1, ""),
    "gradients zeroed in place": (once(swap_step(clear=False), swap_back), 1, "aten.zero_"),
    "another rate": (once(lambda run, args: run.made.optimizer.param_groups[0].update(lr=0.01)), 0, ""),
    "other dropout": (once(lambda run, args: setattr(run.made.model[10], "p", 0.5)), 0, ""),
    "no dropout": (once(lambda run, args: run.made.model[10].eval() and None, lambda run: run.made.model[10].train()), 1, ""),
    "other clipping": (once(lambda run, args: setattr(run.made.model[8], "inplace", True)), 2, "aten.relu_"),
}


class DifferenceTest(FollowTest):
    def test_each_is_told_and_computes_the_same(self):
        recorded = self.record(cnn)
        plans = [recorded.planned("auto", recorded.plain_bytes // 2)[0], recorded.planned("cheap", recorded.least("cheap"))[0]]
        for name, (between, left, reason) in DIFFERENCES.items():
            for plan in plans:
                with self.subTest(name, plan=os.path.basename(plan)):
                    ours = Run(cnn, plan, between)
                    self.assert_same(ours, Run(cnn, None, between), name)
                    self.assertEqual(ours.counts["left"], left, f"{name}: {ours.told}")
                    self.assertEqual(len(ours.told) > 0, left > 0, name)
                    self.assertIn(reason, "".join(ours.told), name)

    def test_tensor_that_was_dropped_is_named(self):
        recorded = self.record(cnn)
        for plan in (recorded.planned("auto", recorded.plain_bytes // 2)[0], recorded.planned("cheap", recorded.least("cheap"))[0]):
            with self.assertRaisesRegex(planc_torch.DroppedTensor, "forward:.* is read once more"):
                Run(cnn, plan, once(swap_step(passes=2), swap_back))

    def test_step_that_raises_is_left_where_a_plain_one_would_be(self):
        recorded = self.record(cnn)
        plan = recorded.planned("auto", recorded.plain_bytes // 2)[0]

        def run(plan, error):
            made = cnn()
            torch.manual_seed(7)
            step = planc_torch.follow(plan, made.step) if plan else made.step
            step(*made.example())

            def stop(*_):
                raise error("here")

            for part in (4, 7):
                handle = made.model[part].register_forward_hook(stop)
                with self.assertRaises(error):
                    step(*made.example())
                handle.remove()
                step(*made.example())
            if plan:
                self.assertEqual(step.counts["left"], 2)
                step.close()
            return tensors_of(list(made.model.parameters()) + list(made.model.buffers()))

        for error in (Stopped, KeyboardInterrupt):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", planc_torch.PlanNotFollowed)
                for ours, plain in zip(run(plan, error), run(None, error)):
                    self.assertTrue(torch.equal(ours, plain))


# --- Between steps ----------------------------------------------------------------------------------------------------


def saved(value):
    """What torch.save writes, as it reads it again."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return tensors_of(torch.load(file))


def evaluate(run):
    run.made.model.eval()
    with torch.no_grad():
        result = run.made.model(run.made.example()[0])
    run.made.model.train()
    return [result.clone()]


def arrays(run):
    """Arrays of a weight and of what the optimizer keeps share their memory, which has to stay where it is."""
    if not hasattr(run, "arrays"):
        run.arrays = [parameters(run)[0].detach().numpy(), run.made.model[1].running_mean.numpy()]
    return [torch.from_numpy(array).clone() for array in run.arrays]


def decay(run):
    with torch.no_grad():
        for p in parameters(run):
            p.mul_(0.99)
    return []


BETWEEN = {
    "a checkpoint of the model": lambda run: saved(run.made.model.state_dict()),
    "one of the optimizer": lambda run: saved(run.made.optimizer.state_dict()),
    "a copy of the model": lambda run: tensors_of(list(copy.deepcopy(run.made.model).parameters())),
    "an evaluation": evaluate,
    "gradients": lambda run: tensors_of([p.grad for p in parameters(run)]),
    "numbers": lambda run: [torch.tensor(parameters(run)[1].tolist()), torch.tensor(float(parameters(run)[1][0]))],
    "arrays": arrays,
    "a pickled weight": lambda run: tensors_of(pickle.loads(pickle.dumps(parameters(run)[0].detach()))),
    "text": lambda run: [torch.tensor(len(str(parameters(run)[0])))],
    "weights changed": decay,
    "data given anew": lambda run: [p.data.copy_(p.data * 0.5).clone() for p in parameters(run)[:2]],
}


class BetweenTest(FollowTest):
    def test_user_reads_and_writes_what_is_at_home_on_the_host(self):
        recorded = self.record(cnn)
        path = recorded.planned("auto", recorded.least("auto"))[0]
        for name, look in BETWEEN.items():
            with self.subTest(name):
                away = []

                def between(run, i, args):
                    if i > 0 and isinstance(run.followed, planc_torch.Followed):
                        memory = run.followed.iteration.memory
                        away.append(sum(not memory.follower.has(buffer) for buffer in memory.lasting))
                    if i > 1:
                        run.kept.append(look(run))
                    return args

                ours = Run(cnn, path, between)
                self.assert_same(ours, Run(cnn, None, between), name)
                self.assertEqual(ours.told, [], name)
                self.assertGreater(min(away), 0, f"{name}: the plan leaves it on the device")

    def test_what_is_kept_beyond_the_step_is_refused_by_name(self):
        recorded = self.record(gpt)
        made = gpt()
        kept = []
        made.model.norm.register_forward_hook(lambda module, x, y: kept.append(y.detach()))
        followed = planc_torch.follow(recorded.planned("auto", recorded.plain_bytes // 2)[0], made.step)
        with self.assertRaisesRegex(planc_torch.DroppedTensor, "norm:native_layer_norm: kept beyond the step"):
            followed(*made.example())
        self.assertTrue(kept[0].isnan().all())
        kept.clear()
        made.model.norm._forward_hooks.clear()
        followed(*made.example())
        self.assertEqual(followed.counts["left"], 0)
        followed.close()


# --- Steps that do what is hard to follow -----------------------------------------------------------------------------


def small(forward, optimizer=lambda p: torch.optim.SGD(p, lr=0.1)):
    """A maker of a step whose loss, and what else it returns, are `forward` of the model and a batch."""
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
        update = optimizer(model.parameters())

        def step(x):
            update.zero_grad(set_to_none=True)
            loss, *rest = forward(model, x)
            loss.backward()
            update.step()
            return loss.detach(), [value() if callable(value) else value for value in rest]

        return SimpleNamespace(model=model, optimizer=update, step=step, example=lambda: (torch.randn(64, 32),))
    return make


def reads_later(model, x):
    y = model(x)
    return y.square().mean(), lambda: float(sum(y.detach().sum(1).tolist()) + x.tolist()[0][0]), lambda: float(len(f"{y}"))


def turns_a_tensor(model, x):
    y = model(x) + 1
    shares = torch.softmax(y, -1)
    with torch.no_grad():
        y.t_()
    return (shares @ shares.t()).square().mean(), lambda: float(y[0].sum())


def gives_data_anew(model, x):
    y = model(x) + 1
    shares = torch.softmax(y, -1)
    y.data = torch.zeros(2, 2)
    return ((shares @ shares.t()).square().mean(),)


HARD = {"values read after their last use": small(reads_later), "a tensor turned in place": small(turns_a_tensor),
        "another tensor's data": small(gives_data_anew)}


class HardTest(FollowTest):
    def test_it_computes_the_same(self):
        for name, make in HARD.items():
            make.__name__ = name.replace(" ", "-")
            recorded, plain = self.record(make), Run(make)
            for policy in ("auto", "cheap", "naive"):
                with self.subTest(name, policy=policy):
                    ours = Run(make, recorded.planned(policy, recorded.least(policy))[0])
                    self.assert_same(ours, plain, name)
                    self.assertEqual(ours.told, [])

    def test_what_hands_memory_out_is_not_recorded(self):
        make = small(lambda model, x: (model(x).square().mean(), float(x.sum().numpy())))
        step = make()
        with self.assertRaisesRegex(CannotExport, "test_torch_follow.py:.*numpy hands out a tensor's memory"):
            planc_torch.record(step.step, arguments_of(step.example), "cpu")

    def plan(self):
        recorded = self.record(cnn)
        return recorded.planned("auto", recorded.least("auto"))[0]

    def test_difference_from_the_first_step_on_is_told(self):
        ours = Run(cnn, self.plan(), lambda run, i, args: smaller_batch(run, args))
        self.assertEqual(ours.counts["left"], ITERATIONS)
        self.assertEqual(len(ours.told), 1)
        self.assertIn("aten.convolution(f32[3,3,16,16]", ours.told[0])

    def test_weights_that_cannot_be_emptied_stay(self):
        def make():
            made = cnn()
            for p in made.model.parameters():
                p.data = torch.from_numpy(p.detach().clone().numpy())
            return made

        ours = Run(make, self.plan())
        self.assert_same(ours, Run(make), "weights from arrays")
        self.assertEqual((ours.told, ours.counts["left"]), ([], 0))

    def test_other_threads_find_what_was_brought_home(self):
        made, plain = cnn(), cnn()
        followed = planc_torch.follow(self.plan(), made.step)
        torch.manual_seed(7)
        followed(*made.example())
        followed.home()
        sums = []
        thread = threading.Thread(target=lambda: sums.extend(p.sum() for p in made.model.parameters()))
        thread.start()
        thread.join()
        torch.manual_seed(7)
        plain.step(*plain.example())
        self.assertEqual([float(s) for s in sums], [float(p.sum()) for p in plain.model.parameters()])
        followed.close()

    def test_modes_of_others_and_steps_closed_in_any_order(self):
        made, other = cnn(), gpt()
        recorded = self.record(gpt)
        with Meter():
            first = planc_torch.follow(self.plan(), made.step)
            first(*made.example())
        second = planc_torch.follow(recorded.planned("auto", recorded.least("auto"))[0], other.step)
        for _ in range(2):
            second(*other.example())
            first(*made.example())
        first.close()
        second(*other.example())
        first(*made.example())  # without a plan now
        self.assertEqual((first.counts["iterations"], first.counts["left"]), (3, 0))
        self.assertEqual((second.counts["iterations"], second.counts["left"]), (3, 0))
        second.close()
        saved(made.model.state_dict())

    def test_interrupt_in_each_callback_leaves_a_step_that_goes_on(self):
        made, count, stop = cnn(), [0], [0]
        release = planc_torch.memory.Memory.release

        def counted(self, buffer, last):
            count[0] += 1
            if count[0] == stop[0]:
                raise KeyboardInterrupt
            return release(self, buffer, last)

        with mock.patch.object(planc_torch.memory.Memory, "release", counted), warnings.catch_warnings():
            warnings.simplefilter("ignore", planc_torch.PlanNotFollowed)
            followed = planc_torch.follow(self.plan(), made.step)
            followed(*made.example())
            of_a_step, count[0] = count[0], 0
            for stop[0] in range(1, of_a_step, of_a_step // 8):
                count[0] = 0
                with self.assertRaises(KeyboardInterrupt):
                    followed(*made.example())
                followed(*made.example())
                self.assertTrue(all(bool(p.isfinite().all()) for p in made.model.parameters()))
            followed.close()

    def test_what_is_kept_of_a_step_that_raised_has_memory(self):
        made, kept = cnn(), []
        followed = planc_torch.follow(self.plan(), made.step)
        followed(*made.example())
        made.model[4].register_forward_hook(lambda module, x, y: kept.append(y.detach()))
        made.optimizer.step = lambda: exec("raise OSError('disk full')")
        with self.assertRaisesRegex(OSError, "disk full"):
            followed(*made.example())
        self.assertEqual(kept[0].sum().shape, ())
        followed.close()

    def test_a_plan_that_is_none_of_a_step_is_refused(self):
        path = os.path.join(self.folder.name, "none.plan")
        with open(self.plan(), encoding="utf-8") as file:
            text = file.read()
        for before, after in (('"tensors":[', '"tensors":[99999,'), ('"tensors":[', '"tensors":["ab",'), ('"call":', '"cull":'),
                              ('"device":"cpu"', '"device":"xyz"'), ('"results":[', '"results":[-7,')):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(before, after))
            with self.assertRaisesRegex(ValueError, "is not of a recorded step"):
                planc_torch.follow(path, None)


if __name__ == "__main__":
    unittest.main()
