#!/usr/bin/env python3
"""Tests of followed steps that are not the recorded one: each difference is told, and the step computes the same bit for bit
as without a plan."""

import copy
import os
import unittest
import warnings

from torchfollow import FollowTest, Run, parameters, planc_torch, tensors_of, torch  # first: it finds a Python with PyTorch

from torch import nn
from torch.nn import functional
from torchsteps import cnn


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


if __name__ == "__main__":
    unittest.main()
