#!/usr/bin/env python3
"""Tests of planc_torch: steps are recorded, planned and followed. What they compute is the same bit for bit as without a
plan, and their memory stays within the plan's. What differs from the recording has a file of its own."""

import _thread
import copy
import ctypes
import io
import itertools
import json
import os
import pickle
import sysconfig
import tempfile
import threading
import unittest
import warnings
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from unittest import mock

from torchfollow import (ITERATIONS, FollowTest, Run, arguments_of, over, parameters, planc_torch, tensors_of,
                         torch)  # first: it finds a Python with PyTorch

import planc_torch.memory
from planc_torch import extension
from planc_torch.following import BudgetNotHeld
from torch import nn
from sampling import TAKES_ALL, sampled
from torchmeter import Meter
from torchsteps import STEPS, cnn, gpt
from torch_recorder import storage_of
from torch_refusals import CannotExport


class PlanTest(FollowTest):
    PLANS = [("auto", 45), ("auto", 60), ("auto", 70),
             *((policy, 70) for policy in ("capuchin", "superneurons", "naive", "cheap"))]  # at a part of the plain peak
    FEWEST = 24  # of them, of all steps, that there are
    PART = 3  # of them that each step takes
    STEPS_PART, FIRST = 1, 0  # of the steps, from which on

    def test_every_step_computes_the_same_within_its_plan(self):
        followed = 0
        for number, make in sampled(list(enumerate(STEPS.values())), self.STEPS_PART, self.FIRST):
            recorded = self.record(make)
            plain = Run(make, metered=True)
            # Without a plan tensors live as long as Python has them, which is no shorter than they are needed.
            self.assertGreaterEqual(plain.metered, recorded.plain_bytes * 95 // 100, make.__name__)
            for policy, share in sampled(self.PLANS, self.PART, number // self.STEPS_PART):
                least, budget = recorded.least(policy), recorded.plain_bytes * share // 100
                if least is None or least > budget:
                    continue
                made = recorded.planned(policy, budget)
                what = f"{make.__name__} by {policy} at {share} %"
                self.assertIsNotNone(made, what)
                try:
                    ours = Run(make, made[0], metered=True)
                except planc_torch.FollowError as error:
                    self.assertIn("two versions", str(error), what)
                    continue
                self.assert_same(ours, plain, what)
                self.assertEqual(over(recorded, ours, made[1]["peak_bytes"]), 0, what)
                self.assertEqual(ours.told, [], what)
                self.assertEqual(ours.counts["left"], 0, what)
                moved = ours.counts["out_bytes"] + ours.counts["repeats"]
                self.assertGreater(moved, 0, f"{what}: the plan does nothing")
                followed += 1
        self.assertGreater(followed, self.FEWEST // (1 if TAKES_ALL else self.PART * self.STEPS_PART))

    def test_gradients_that_wait_for_the_optimizer_are_computed_again(self):
        recorded = self.record(fully_connected)
        made = recorded.planned("priced", recorded.plain_bytes * 70 // 100)
        self.assertIn("backward", phases_again(made[0]))
        ours = Run(fully_connected, made[0], metered=True)
        self.assert_same(ours, Run(fully_connected), "gradients computed again")
        self.assertEqual(over(recorded, ours, made[1]["peak_bytes"]), 0)
        self.assertEqual((ours.told, ours.counts["left"]), ([], 0))


def fully_connected():
    """Layers whose gradients are much larger than what they are made of. One is read when it is there, by a hook."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(300, 300) for _ in range(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    model[2].weight.register_hook(lambda gradient: seen.append(gradient.tolist()[0][0]))

    def step(x):
        seen.clear()
        loss = model(x).square().mean()
        loss.backward()
        seen.append(float(model[3].weight.grad[0, 0]))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach(), list(seen)

    return SimpleNamespace(model=model, optimizer=optimizer, step=step, example=lambda: (torch.randn(2, 300),))


def phases_again(path):
    """Of the ops that a plan runs again."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    ops = [row for row in rows if isinstance(row.get("op"), str)]
    return {ops[row["n"]]["phase"] for row in rows if row.get("i") == "exec" and row.get("re")}


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


def inferring(look):
    """Does so in inference mode, of which nothing is that others get."""
    def within(run):
        with torch.inference_mode():
            found = look(run)
        return [tensor.clone() for tensor in found]
    return within


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
    "an evaluation in inference mode": inferring(evaluate),
    "a checkpoint in inference mode": inferring(lambda run: saved([run.made.model.state_dict(), run.made.optimizer.state_dict()])),
    "weights changed in inference mode": inferring(decay),
    "gradients": lambda run: tensors_of([p.grad for p in parameters(run)]),
    "numbers": lambda run: [torch.tensor(parameters(run)[1].tolist()), torch.tensor(float(parameters(run)[1][0]))],
    "arrays": arrays,
    "a pickled weight": lambda run: tensors_of(pickle.loads(pickle.dumps(parameters(run)[0].detach()))),
    "text": lambda run: [torch.tensor(len(str(parameters(run)[0])))],
    "weights changed": decay,
    "data given anew": lambda run: [p.data.copy_(p.data * 0.5).clone() for p in parameters(run)[:2]],
}


class BetweenTest(FollowTest):
    PART, FIRST = 2, 0  # of what the user does

    def test_user_reads_and_writes_what_is_at_home_on_the_host(self):
        recorded = self.record(cnn)
        path = recorded.planned("auto", recorded.least("auto"))[0]
        for name, look in sampled(list(BETWEEN.items()), self.PART, self.FIRST):
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

    def test_what_persists_may_be_replaced_between_steps(self):
        """As by an optimizer that loads its state, whose steps go on with what is new. Nothing of the plan's is lost by it, but
        where the user keeps what was there before: of that he is told."""
        def loading(keeps):
            def between(run, i, args):
                optimizer = run.made.optimizer
                if i == 2:
                    run.file = io.BytesIO()
                    torch.save([run.made.model.state_dict(), optimizer.state_dict()], run.file)
                if i == 4:
                    run.old = [t for state in optimizer.state.values() for t in state.values()] if keeps else []
                    run.file.seek(0)
                    model, state = torch.load(run.file)
                    run.made.model.load_state_dict(model)
                    optimizer.load_state_dict(state)
                if i == 5 and not keeps:
                    for p in parameters(run):
                        p.data = p.data * 0.5
                return args
            return between

        # Of three one is with each step, and what is kept and is not.
        for number, (make, keeps) in sampled(list(enumerate(itertools.product((cnn, gpt), (False, True)))), 3):
            recorded, plain = self.record(make), Run(make, None, loading(keeps), 7)
            for policy in sampled(("auto", "naive"), 2, number + number // 2):
                with self.subTest(make.__name__, policy=policy, keeps=keeps):
                    ours = Run(make, recorded.planned(policy, recorded.least(policy))[0], loading(keeps), 7)
                    self.assert_same(ours, plain, make.__name__)
                    self.assertEqual(ours.counts["left"], int(keeps), ours.told)
                    self.assertEqual(len(ours.told), int(keeps))
                    self.assertTrue(all("which its user has as well: who replaces" in told for told in ours.told), ours.told)

    def test_of_many_shapes_at_one_call_two_are_warned_of(self):
        recorded = self.record(cnn)

        def between(run, i, args):
            return tuple(a[:i] for a in args) if i > 0 else args

        ours = Run(cnn, recorded.planned("auto", recorded.plain_bytes // 2)[0], between)
        self.assert_same(ours, Run(cnn, None, between), "shapes")
        shapes = [reason for reason in ours.followed.left if "f32[" in reason]
        self.assertGreater(len(shapes), 2)
        self.assertEqual(len(ours.told), 2)
        self.assertTrue(all(any(reason in told for reason in shapes) for told in ours.told))

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


def copies_weights(model, x):
    kept = copy.deepcopy(model)
    return (model(x) * kept(x).detach()).square().mean(), kept[0].weight.detach()


def gives_data_anew(model, x):
    y = model(x) + 1
    shares = torch.softmax(y, -1)
    y.data = torch.zeros(2, 2)
    return ((shares @ shares.t()).square().mean(),)


def reads_gradients(model, x):
    y = model(x)
    y.register_hook(lambda gradient: gradient * (1.0 + gradient.tolist()[0][0]))
    return (y.square().mean(),)


def lazily_scaled():
    """What lasts is made in the first step that needs it, as a GradScaler makes its scale; and something that goes again."""
    made = small(lambda model, x: (model(x).square().mean(),))()
    state = {}

    def step(x):
        if not state:
            state["scale"] = torch.full((64,), 2.0)
            torch.full((64,), 1.0)
        made.optimizer.zero_grad(set_to_none=True)
        loss = (made.model(x) * state["scale"]).square().mean()
        loss.backward()
        made.optimizer.step()
        state["scale"].mul_(0.5)
        return loss.detach()

    return SimpleNamespace(**{**vars(made), "step": step})


def taught_in_inference_mode():
    """By a model with statistics that the mode updates, and what is made there goes into what is differentiated."""
    made = small(lambda model, x: (model(x).square().mean(),))()
    teacher = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 64))
    made.more = list(teacher.state_dict().values())

    def step(x):
        with torch.inference_mode():
            wanted = teacher(x).softmax(-1)
        made.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(made.model(x), wanted.clone())
        loss.backward()
        made.optimizer.step()
        return loss.detach()

    return SimpleNamespace(**{**vars(made), "step": step})


HARD = {"values read after their last use": small(reads_later), "values read in a backward pass": small(reads_gradients),
        "what lasts made late": lazily_scaled, "a teacher in inference mode": taught_in_inference_mode,
        "a copy of the model": small(copies_weights),
        "a tensor turned in place": small(turns_a_tensor), "another tensor's data": small(gives_data_anew)}


def at_address(address, count):
    return torch.tensor((ctypes.c_float * count).from_address(address))


# Ways to get hold of a tensor's memory, and to read there.
TAKEN = {
    "an array": (lambda t: t.numpy(), lambda array, _: torch.tensor(array).flatten()),
    "another library's": (lambda t: torch.utils.dlpack.from_dlpack(torch.to_dlpack(t)), lambda t, _: t.clone().flatten()),
    "an address": (lambda t: t.data_ptr(), at_address),
    "a storage's": (lambda t: storage_of(t).data_ptr(), at_address),
    "a typed storage's": (lambda t: t.storage().data_ptr(), at_address),
}


def resizing(plan, times, read=lambda tensor: None):
    """A followed step that ends with another size for what the plan has dropped, so many times its own, and what it is of."""
    made, kept = cnn(), []
    made.model[4].register_forward_hook(lambda module, x, y: kept.append(y.detach()))

    def step(*args):
        loss = made.step(*args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(kept[0].resize_(times * kept[0].numel()))
        kept.clear()
        return loss

    return planc_torch.follow(plan, step), made


class HardTest(FollowTest):
    def test_it_computes_the_same(self):
        for number, (name, make) in enumerate(HARD.items()):
            make.__name__ = name.replace(" ", "-")
            recorded, plain = self.record(make), Run(make)
            for policy in sampled(["auto", "cheap", "naive"], 3, number):
                with self.subTest(name, policy=policy):
                    ours = Run(make, recorded.planned(policy, recorded.least(policy))[0])
                    self.assert_same(ours, plain, name)
                    self.assertEqual((ours.told, ours.counts["left"]), ([], 0))

    def test_a_step_called_in_inference_mode_ends_as_without_a_plan(self):
        """After the same forward pass, which draws and updates statistics, with PyTorch's own error."""
        def between(run, i, args):
            if i == 2:
                with self.assertRaisesRegex(RuntimeError, "does not require grad"), torch.inference_mode():
                    run.followed(*args)
                run.kept += [tensors_of(list(run.made.model.buffers())), [torch.get_rng_state()]]
            return args

        recorded, plain = self.record(cnn), Run(cnn, None, between)
        for policy in ("auto", "cheap", "naive"):
            for helped in (True, False):
                with self.subTest(policy, helped=helped), mock.patch.object(extension, "is_wanted", helped):
                    ours = Run(cnn, recorded.planned(policy, recorded.least(policy))[0], between)
                    self.assert_same(ours, plain, "called in inference mode")
                    self.assertEqual((ours.told, ours.counts["left"]), ([], 1))

    def test_what_hands_memory_out_is_not_recorded(self):
        def hooked(model, x):
            y = model(x)
            y.register_hook(lambda gradient: gradient.numpy().sum() and None)
            return (y.square().mean(),)

        def asks(model, x):
            y = model(x)
            return y.square().mean(), float(storage_of(y).data_ptr() > 0)

        for forward, name in ((lambda model, x: (model(x).square().mean(), float(x.sum().numpy())), "numpy"), (hooked, "numpy"),
                              (asks, "data_ptr")):
            step = small(forward)()
            with self.assertRaisesRegex(CannotExport, f"test_torch_follow.py:.*{name} hands out a tensor's memory"):
                planc_torch.record(step.step, arguments_of(step.example), "cpu")

    def plan(self):
        recorded = self.record(cnn)
        return recorded.planned("auto", recorded.least("auto"))[0]

    def test_what_is_resized_where_the_plan_has_dropped_it(self):
        """It has memory for as long as that takes, and is not read as anything."""
        for helped in (True, False):
            for times in (0, 1, 2):
                with self.subTest(helped=helped, times=times), mock.patch.object(extension, "is_wanted", helped):
                    followed, made = resizing(self.plan(), times)
                    for _ in range(3):
                        followed(*made.example())
                    self.assertEqual((followed.left, followed.counts["left"]), ({}, 0))
                    followed.close()
            with mock.patch.object(extension, "is_wanted", helped):
                followed, made = resizing(self.plan(), 2, lambda tensor: tensor.sum())
                with self.assertRaisesRegex(planc_torch.DroppedTensor, "4:native_batch_norm is read once more"):
                    followed(*made.example())
                followed.close()

    def test_what_is_resized_between_two_steps_has_its_values(self):
        for helped in (True, False):
            with mock.patch.object(extension, "is_wanted", helped), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made, plain = cnn(), cnn()
                followed = planc_torch.follow(self.plan(), made.step)
                for step, example in ((followed, made.example), (plain.step, plain.example)):
                    torch.manual_seed(3)
                    for _ in range(2):
                        step(*example())
                memory, away = followed.iteration.memory, 0
                for parameter, other in zip(made.model.parameters(), plain.model.parameters()):
                    tensor, values = made.optimizer.state[parameter]["exp_avg"], plain.optimizer.state[other]["exp_avg"]
                    away += not memory.follower.has(memory.buffer_in(tensor))
                    resized = tensor.detach().resize_(2 * tensor.numel())
                    self.assertTrue(torch.equal(resized[:values.numel()], values.flatten()))
                self.assertGreater(away, 0, "the plan leaves it on the device")
                followed.close()

    def test_difference_from_the_first_step_on_is_told(self):
        ours = Run(cnn, self.plan(), lambda run, i, args: tuple(a[:3] for a in args))
        self.assertEqual((ours.counts["left"], list(ours.followed.left.values())), (ITERATIONS, [ITERATIONS]))
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

    def test_weights_that_another_process_gets_between_two_steps_stay(self):
        """As multiprocessing gets them that sends tensors."""
        def between(run, i, args):
            if i == 2:
                run.sent = ForkingPickler.dumps([p.detach() for p in run.made.model.parameters()])
            return args

        recorded, plain = self.record(cnn), Run(cnn, None, between)
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        for helped in (True, False):
            with mock.patch.object(extension, "is_wanted", helped):
                ours = Run(cnn, plan, between)
            self.assert_same(ours, plain, "weights that were sent")
            self.assertIn(BudgetNotHeld, ours.followed.told)
            self.assertEqual((ours.told, ours.counts["left"]), ([], 0))

    def test_memory_that_another_library_has_stays(self):
        """Also where a step was left meanwhile, behind which all is found anew."""
        recorded = self.record(cnn)
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        for give in (lambda t: t.__dlpack__(), lambda t: torch.to_dlpack(t), lambda t: torch.utils.dlpack.to_dlpack(t)):
            for addresses in (None, False):
                made = cnn()
                followed = planc_torch.follow(plan, made.step, addresses)
                for _ in range(2):
                    followed(*made.example())
                weight = made.model[3].weight
                taken = torch.utils.dlpack.from_dlpack(give(weight.detach()))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", planc_torch.PlanNotFollowed)
                    followed(*(a[:3] for a in made.example()))
                followed(*made.example())
                self.assertTrue(torch.equal(taken, weight.detach()))
                followed.close()
                made.step(*made.example())
                self.assertTrue(torch.equal(taken, weight.detach()))

    def test_memory_that_its_user_has_stays(self):
        """Whether it was asked for before the step is followed or later, and told. Nothing else is pinned by it."""
        recorded = self.record(cnn)
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        for number, (name, (take, look)) in enumerate(TAKEN.items()):
            for helped, addresses in sampled([(True, None), (True, False), (False, False)], 3, number):
                for early in (True, False):
                    with self.subTest(name, helped=helped, addresses=addresses, early=early), \
                            mock.patch.object(extension, "is_wanted", helped):
                        made = cnn()
                        weight = made.model[3].weight
                        taken = take(weight.detach()) if early else None
                        followed = planc_torch.follow(plan, made.step, addresses)
                        with warnings.catch_warnings(record=True) as caught:
                            warnings.simplefilter("always")
                            for i in range(4):
                                taken = take(weight.detach()) if i == 2 and not early else taken
                                followed(*made.example())
                        self.assertTrue(torch.equal(look(taken, weight.numel()), weight.detach().flatten()))
                        self.assertEqual(followed.iteration.memory.staying, {"3.weight"})
                        self.assertEqual([w.category for w in caught], [BudgetNotHeld])
                        followed.close()
                        made.step(*made.example())
                        self.assertTrue(torch.equal(look(taken, weight.numel()), weight.detach().flatten()))

    def test_who_asks_for_addresses_and_keeps_none_gets_them(self):
        """Libraries that save weights, and PyTorch; and those that told tensors apart before the step was followed."""
        recorded = self.record(cnn)
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        library = {}
        with tempfile.TemporaryDirectory() as folder:
            for name in ("safetensors", "numbering"):
                path = os.path.join(sysconfig.get_path("purelib"), name, "torch.py")
                text = ("import ctypes\ndef of(t):\n    return t.data_ptr(), t.storage().data_ptr()\n"
                        "def read(t):\n    return list((ctypes.c_float * t.numel()).from_address(of(t)[0]))\n")
                exec(compile(text, path, "exec"), library.setdefault(name, {}))
            made = cnn()
            for p in made.model.parameters():
                library["numbering"]["of"](p.detach())
            followed = planc_torch.follow(plan, made.step)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                warnings.simplefilter("error", BudgetNotHeld)
                for _ in range(3):
                    followed(*made.example())
                    torch.save(made.model.state_dict(), os.path.join(folder, "x"))
                    weight = made.model[3].weight.detach()
                    self.assertEqual(library["safetensors"]["read"](weight), weight.flatten().tolist())
            self.assertEqual(followed.iteration.memory.pinned, set())
            followed.close()

    def test_a_step_that_nobody_has_any_more_is_closed(self):
        recorded, plain = self.record(cnn), cnn()
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        before = list(planc_torch.following.SEEN.iterations)
        made, losses = cnn(), []
        for step, example in ((None, made.example), (plain.step, plain.example)):
            torch.manual_seed(7)
            for _ in range(3):
                followed = step or planc_torch.follow(plan, made.step)
                losses += [followed(*example()) for _ in range(2)]
        followed = None
        self.assertEqual(planc_torch.following.SEEN.iterations, before)
        ours, others = losses[:6] + parameters(SimpleNamespace(made=made)), losses[6:] + parameters(SimpleNamespace(made=plain))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(ours, others)))

    def test_one_that_goes_while_another_runs_is_closed_behind_it(self):
        recorded = self.record(cnn)
        plan = recorded.planned("naive", recorded.plain_bytes)[0]
        first, second = cnn(), cnn()
        dropped = [planc_torch.follow(plan, first.step)]
        iteration = dropped[0].iteration
        dropped[0](*first.example())
        open_within = []

        def step(*args):
            dropped.clear()
            open_within.append(iteration in planc_torch.following.SEEN.iterations)
            return second.step(*args)
        followed = planc_torch.follow(plan, step)
        for _ in range(2):
            followed(*second.example())
        self.assertEqual(open_within, [True, False])
        self.assertEqual(followed.left, {})
        followed.close()

    def test_weights_that_other_processes_may_have_stay(self):
        made = cnn()
        made.model.share_memory()
        where = [p.data_ptr() for p in made.model.parameters()]
        followed = planc_torch.follow(self.plan(), made.step)
        with self.assertWarns(planc_torch.BudgetNotHeld):
            for _ in range(3):
                followed(*made.example())
        self.assertEqual([p.data_ptr() for p in made.model.parameters()], where)
        followed.close()

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

    def test_a_backward_pass_may_run_in_a_thread_of_pytorchs(self):
        """As on a GPU, where PyTorch has such threads, with the modes of the thread that asked."""
        plan, backward, threads = self.plan(), torch.Tensor.backward, []
        start = _thread.start_new_thread  # Python's own: PyTorch's threads are not started by what stands in its place in a step

        def elsewhere(tensor):
            calls, done = planc_torch.following.SEEN.here.calls, threading.Lock()

            def run():
                try:
                    with calls:
                        backward(tensor)
                    threads.append(threading.get_ident())
                finally:
                    done.release()
            done.acquire()
            start(run, ())
            with done:
                pass
        with mock.patch.object(torch.Tensor, "backward", elsewhere):
            ours = Run(cnn, plan)
        self.assert_same(ours, Run(cnn), "another thread")
        self.assertEqual((ours.told, ours.counts["left"]), ([], 0))
        self.assertEqual(len(threads), ITERATIONS)
        self.assertNotIn(threading.get_ident(), threads)

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
        resize = planc_torch.memory.STORAGE.resize_

        def counted(self, size):
            count[0] += size == 0
            if size == 0 and count[0] == stop[0]:
                raise KeyboardInterrupt
            return resize(self, size)

        with mock.patch.object(planc_torch.memory.STORAGE, "resize_", counted), warnings.catch_warnings():
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

    def test_a_step_that_goes_on_after_a_failure_is_refused(self):
        """As one that tries again when there was too little memory."""
        made, resize, is_short = cnn(), planc_torch.memory.STORAGE.resize_, [False]
        step, optimizer = made.step, made.optimizer

        def tries_twice(*args):
            try:
                return step(*args)
            except MemoryError:
                is_short[0] = False
                optimizer.zero_grad(set_to_none=True)
                return step(*args)

        def short(self, size):
            if size > 0 and is_short[0]:
                raise MemoryError
            return resize(self, size)

        with mock.patch.object(planc_torch.memory.STORAGE, "resize_", short), warnings.catch_warnings():
            warnings.simplefilter("ignore", planc_torch.PlanNotFollowed)
            followed = planc_torch.follow(self.plan(), tries_twice, addresses=False)  # there it asks for memory
            followed(*made.example())
            is_short[0] = True
            with self.assertRaisesRegex(planc_torch.FollowError, "begin another step"):
                followed(*made.example())
            followed(*made.example())
            followed.close()
        self.assertTrue(all(bool(p.isfinite().all()) for p in made.model.parameters()))

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
        lines = text.splitlines(keepends=True)
        tensor, op, job = (next(i for i, line in enumerate(lines) if line.startswith(start)) for start in ('{"tensor":', '{"op":', '{"job":'))
        for n in (3, tensor + 1, op, op + 2, job):
            for cut in ("".join(lines[:n]), "".join(lines[:n])[:-9]):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(cut)
                with self.assertRaisesRegex(ValueError, "none.plan is cut short; make the plan again"):
                    planc_torch.follow(path, None)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(lines[:-5]))
        with self.assertRaisesRegex(planc_torch.FollowError, f"{len(lines)} rows, the file has {len(lines) - 5} lines"):
            planc_torch.follow(path, None)

    def test_calls_are_counted_as_the_table_counts_them(self):
        path = self.plan()
        made = cnn()
        for step, words in ((lambda *args: made.step(*args) * 2, "behind the last of {} calls, recorded at "),
                            (lambda *_: None, "at call 1 of {}, recorded at .*: the step ended")):
            followed = planc_torch.follow(path, step)
            with self.assertWarnsRegex(planc_torch.PlanNotFollowed, words.format(len(followed.iteration.calls) - 1)):
                for _ in range(2):
                    followed(*made.example())
            followed.close()

    def test_help_tells_all_that_there_is(self):
        text = planc_torch.follow.__doc__
        for name in ("addresses", "left", "counts", "placed", "home()", "close()", "PlanNotFollowed", "BudgetNotHeld",
                     "DroppedTensor", "FollowError", "ValueError"):
            self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
