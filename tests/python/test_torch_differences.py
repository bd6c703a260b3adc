#!/usr/bin/env python3
"""Tests of followed steps that are not the recorded one: each difference is told, and the step computes the same bit for bit
as without a plan."""

import copy
import math
import os
import threading
import unittest
import warnings

from torchfollow import FollowTest, Run, parameters, planc_torch, tensors_of, torch  # first: it finds a Python with PyTorch

from sampling import sampled
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
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


def load_optimizer_beside(run, args):
    run.kept_state = dict(run.made.optimizer.state)
    load_optimizer(run, args)


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


def read_gradient(run, args):
    run.handle = parameters(run)[0].register_hook(lambda gradient: gradient.numpy().sum() and None)


def unwatch(run):
    run.handle.remove()


def swap_to(body):
    """Another step for one iteration: body(made, recorded, *args), where `recorded` is the one that was."""
    def change(run, args):
        followed = isinstance(run.followed, planc_torch.Followed)
        run.before = run.followed.step if followed else run.followed

        def step(*args):
            return body(run.made, run.before, *args)

        if followed:
            run.followed.step = step
        else:
            run.followed = step
    return change


def swap_back(run):
    if isinstance(run.followed, planc_torch.Followed):
        run.followed.step = run.before
    else:
        run.followed = run.before


def swapped(body):
    return once(swap_to(body), swap_back)


def swap_step(clear=True, passes=1, updates=1, clip=True, loss_of=lambda made, x, y: functional.cross_entropy(made.model(x), y),
              largest=math.inf):
    """The step in other parts: without its update, or with two."""
    def body(made, _, images, labels):
        made.optimizer.zero_grad(set_to_none=clear)
        loss = loss_of(made, images, labels)
        for left in range(passes, 0, -1):
            loss.backward(retain_graph=left > 1)
        norm = nn.utils.clip_grad_norm_(made.model.parameters(), 1.0) if clip else 0
        if largest == math.inf or norm < largest:
            for _ in range(updates):
                made.optimizer.step()
        return loss.detach()
    return body


def in_bf16(made, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return functional.cross_entropy(made.model(x), y)


def checkpointed(made, x, y):
    return functional.cross_entropy(made.model[3:](checkpoint(made.model[:3], x.requires_grad_(), use_reentrant=True)), y)


def smoothed(made, x, y):
    return functional.cross_entropy(made.model(x), y, label_smoothing=0.1)


def distilled(made, x, y):
    with torch.no_grad():
        taught = copy.deepcopy(made.model)(x)
    return functional.mse_loss(made.model(x), taught) + functional.cross_entropy(made.model(x), y)


def in_two(made, _, images, labels):
    made.optimizer.zero_grad(set_to_none=True)
    losses = [functional.cross_entropy(made.model(x), y) / 2 for x, y in zip(images.chunk(2), labels.chunk(2))]
    for loss in losses:
        loss.backward()
    made.optimizer.step()
    return sum(losses).detach()


def without_gradients(made, _, images, labels):
    with torch.no_grad():
        return functional.cross_entropy(made.model(images), labels)


def of_the_picture(_, recorded, images, labels):
    return recorded(images.requires_grad_(), labels), images.grad.clone()


def looking_for_anomalies(_, recorded, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.set_detect_anomaly(True):
            return recorded(*args)


def profiled(_, recorded, *args):
    with torch.profiler.profile():
        return recorded(*args)


def again(made, recorded, *args):
    """Out of memory, say, the first time."""
    def stop(*_):
        raise Stopped

    handle = made.model[4].register_forward_hook(stop)
    try:
        return recorded(*args)
    except Stopped:
        handle.remove()
        return recorded(*args)


def in_a_thread(step, *args):
    results = []
    thread = threading.Thread(target=lambda: results.append(step(*args)))
    thread.start()
    thread.join()
    return results[0]


def from_a_thread(run, args):
    step = run.before = run.followed
    run.followed = lambda *args: in_a_thread(step, *args)


def from_this_one(run):
    run.followed = run.before


def within_itself(run, args):
    """The step calls the one that is followed."""
    followed = run.followed
    if isinstance(followed, planc_torch.Followed):
        run.before = followed.step

        def step(*args):
            followed.step = run.before
            return followed(*args)

        followed.step = step


def channels_last(run, args):
    run.made.model.to(memory_format=torch.channels_last)


def channels_first(run):
    run.made.model.to(memory_format=torch.contiguous_format)


def picture_channels_last(run, args):
    return args[0].to(memory_format=torch.channels_last), args[1]


def new_weight(run, args):
    run.made.model[11].weight = nn.Parameter(run.made.model[11].weight.detach().clone())


def new_group(run, args):
    new_head(run, args)
    run.made.optimizer.add_param_group({"params": list(run.made.model[11].parameters()), "lr": 0.1})


def two_groups(run, args):
    groups = run.made.optimizer.param_groups
    some = groups[0]["params"][4:]
    del groups[0]["params"][4:]
    run.made.optimizer.add_param_group({"params": some, "lr": 0.01})


def tie(run, args):
    run.made.model[4].weight = run.made.model[4].bias


def normed(run, args):
    nn.utils.weight_norm(run.made.model[7])


# What is done, how many steps leave the plan, and what is told of the first of them.
DIFFERENCES = {
    "a smaller batch": (once(smaller_batch), 1, "f32[3,3,16,16]"),
    "evaluation mode": (once(lambda run, args: run.made.model.eval() and None, lambda run: run.made.model.train()), 1,
                        "native_batch"),
    "an extra call": (hooked(lambda module, x, y: y.mean() and None), 1, "aten.mean"),
    "a result of its own": (hooked(lambda module, x, y: y * 1), 1, "aten.mul.Tensor"),
    "a value read": (hooked(lambda module, x, y: y[0, 0, 0, 0].item() and None), 1, "_local_scalar_dense"),
    "values read": (hooked(lambda module, x, y: y.tolist() and None), 1, "tolist"),
    "an array": (hooked(lambda module, x, y: y.detach().numpy().sum() and None), 1, "numpy"),
    "printing": (hooked(lambda module, x, y: str(y) and None), 1, ""),
    "weights that moved": (once(clone_data), 0, ""),
    "a new module that nothing trains": (once(new_head), 2, "another tensor than 11.bias"),
    "a new buffer": (once(new_buffer), 0, ""),
    "another optimizer's state": (once(load_optimizer), 0, ""),
    "another optimizer's state beside the one before": (once(load_optimizer_beside), 1, "which its user has as well"),
    "loaded weights": (once(load_model), 0, ""),
    "no optimizer's state": (once(forget_state), 0, ""),
    "a frozen weight": (once(freeze, unfreeze), 1, ""),
    "a gradient's hook": (once(watch_gradient, unwatch), 1, "aten.mul.Tensor"),
    "an array in a backward pass": (once(read_gradient, unwatch), 1, "numpy"),
    "no update": (swapped(swap_step(updates=0)), 1, "the step ended"),
    "two updates": (swapped(swap_step(updates=2)), 1, ""),
    "gradients zeroed in place": (swapped(swap_step(clear=False)), 1, "aten.zero_"),
    "another rate": (once(lambda run, args: run.made.optimizer.param_groups[0].update(lr=0.01)), 0, ""),
    "other dropout": (once(lambda run, args: setattr(run.made.model[10], "p", 0.5)), 0, ""),
    "no dropout": (once(lambda run, args: run.made.model[10].eval() and None, lambda run: run.made.model[10].train()), 1, ""),
    "results in place": (once(lambda run, args: setattr(run.made.model[8], "inplace", True)), 2, "aten.relu_"),
    "a larger batch": (once(lambda run, args: tuple(torch.cat([a, a]) for a in args)), 1, "f32[8,3,16,16]"),
    "no clipping": (swapped(swap_step(clip=False)), 1, ""),
    "an update left out for its gradients": (swapped(swap_step(largest=0.0)), 1, "aten.lt.Scalar(f32[])"),
    "autocast": (swapped(swap_step(loss_of=in_bf16)), 1, "aten._to_copy"),
    "checkpointing": (swapped(swap_step(loss_of=checkpointed)), 1, ""),
    "another loss": (swapped(swap_step(loss_of=smoothed)), 1, "aten.sum.dim_IntList"),
    "a copy of the model as teacher": (swapped(swap_step(loss_of=distilled)), 1, ""),
    "micro-batches": (swapped(in_two), 1, "f32[2,3,16,16]"),
    "no gradients": (swapped(without_gradients), 1, ""),
    "the picture's gradient": (swapped(of_the_picture), 1, "gives 3 tensors and gave 2"),
    "a search for anomalies": (swapped(looking_for_anomalies), 1, "aten.isnan"),
    "a profile": (swapped(profiled), 0, ""),
    "a second try": (swapped(again), 1, ""),
    "a thread in the step": (swapped(lambda made, recorded, *args: in_a_thread(recorded, *args)), 1, "starts a thread"),
    "another thread": (once(from_a_thread, from_this_one), 0, ""),
    "itself": (once(within_itself), 1, "another followed step"),
    "weights with channels innermost": (once(channels_last, channels_first), 1, "aten.clone(f32[4,32,8,8])"),
    "a picture with channels innermost": (once(picture_channels_last), 1, "aten.clone(f32[4,32,8,8])"),
    "a new weight that nothing trains": (once(new_weight), 2, "another tensor than 11.weight"),
    "a new group of parameters": (once(new_group), 1, "another tensor than 11.bias"),
    "two groups of parameters": (once(two_groups), 0, ""),
    "tied weights": (once(tie), 2, "another tensor"),
    "a weight in two parts": (once(normed), 2, "_weight_norm_interface"),
}


class DifferenceTest(FollowTest):
    def test_each_is_told_and_computes_the_same(self):
        recorded = self.record(cnn)
        plans = [recorded.planned("auto", recorded.plain_bytes // 2)[0], recorded.planned("cheap", recorded.least("cheap"))[0]]
        for number, (name, (between, left, reason)) in enumerate(DIFFERENCES.items()):
            plain = Run(cnn, None, between)
            for plan in sampled(plans, 2, number):
                with self.subTest(name, plan=os.path.basename(plan)):
                    ours = Run(cnn, plan, between)
                    self.assert_same(ours, plain, name)
                    self.assertEqual(ours.counts["left"], left, f"{name}: {ours.told}")
                    self.assertEqual(len(ours.told) > 0, left > 0, name)
                    self.assertIn(reason, "".join(ours.told), name)

    def test_tensor_that_was_dropped_is_named(self):
        recorded = self.record(cnn)
        for policy, budget in ("auto", recorded.plain_bytes // 2), ("cheap", recorded.least("cheap")):
            plan = recorded.planned(policy, budget)[0]
            with self.assertRaisesRegex(planc_torch.DroppedTensor, "forward:.* is read once more"):
                Run(cnn, plan, swapped(swap_step(passes=2)))

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
