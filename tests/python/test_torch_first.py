#!/usr/bin/env python3
"""Tests of followed steps whose first one differs from the recorded one since gradients, momentum or averages are not there yet:
it computes the same bit for bit as without a plan, leaves nothing of the plan, and takes no more memory than the plan's."""

import unittest
from types import SimpleNamespace
from unittest import mock

from torchfollow import FollowTest, Run, over, planc_torch, tensors_of, torch  # first: it finds a Python with PyTorch

from planc_torch import extension
from sampling import sampled
from planc_torch.memory import NUMBER
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel


class Scaled(nn.Module):
    """Layers whose gradients become those of their parameters as they are, as copies, or as copies of another layout."""

    def __init__(self):
        super().__init__()
        self.scale, self.weight = nn.Parameter(torch.ones(64)), nn.Parameter(torch.randn(64, 64).t() / 8)
        self.tied = nn.Linear(64, 64)
        self.parts = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        x = torch.tanh(self.tied(x) @ self.weight) * self.scale
        return self.tied(self.parts(x)) + (x + self.scale).sum() / x.numel()


def stepping(optimizer, micro=1, set_to_none=False, at_end=False, model=Scaled, more=None, clip=False):
    """A maker of a step. `more` gives what comes behind the optimizer, and a list of tensors that it keeps."""
    def make():
        torch.manual_seed(0)
        trained = model()
        update = optimizer(trained.parameters())
        behind, kept = more(trained) if more else (None, [])

        def step(batch):
            if not at_end:
                update.zero_grad(set_to_none=set_to_none)
            total = 0
            for x in batch:
                loss = functional.mse_loss(trained(x), torch.ones_like(x))
                loss.backward()
                total = total + loss.detach()
            if clip:
                nn.utils.clip_grad_norm_(trained.parameters(), 0.5)
            update.step()
            if behind:
                behind()
            if at_end:
                update.zero_grad(set_to_none=set_to_none)
            return total

        return SimpleNamespace(model=trained, optimizer=update, step=step, more=kept,
                               example=lambda: [torch.randn(256, 64) for _ in range(micro)])
    return make


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def momentum(**options):
    return lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, **options)


def averaged(**options):
    def more(model):
        average = AveragedModel(model, **options)
        return lambda: average.update_parameters(model), [*average.parameters(), *average.buffers()]
    return more


def copied():
    """Copies of the weights, in tensors that the first step makes."""
    def more(model):
        kept = []

        def copy():
            if not kept:
                kept.extend(torch.empty_like(p) for p in model.parameters())
            for mine, p in zip(kept, model.parameters()):
                mine.copy_(p.detach())

        return copy, kept
    return more


def hooked():
    """A hook has its gradients copied, as who uses them may keep them."""
    model, seen = Scaled(), []
    model.parts[0].weight.register_hook(lambda gradient: seen.append(gradient) or gradient)
    model.parts[2].weight.register_hook(lambda gradient: seen.clear())
    return model


def two_in_turn():
    """A generator and who tells its pictures from others, each with an optimizer: gradients come behind an update, too."""
    torch.manual_seed(0)
    maker, critic = (nn.Sequential(nn.Linear(a, 64), nn.Tanh(), nn.Linear(64, b)) for a, b in ((16, 32), (32, 1)))
    for_maker, for_critic = torch.optim.Adam(maker.parameters()), momentum()(critic.parameters())

    def step(real):
        for_critic.zero_grad(set_to_none=False)
        made = maker(torch.randn(len(real), 16))
        loss = critic(made.detach()).mean() - critic(real).mean()
        loss.backward()
        for_critic.step()
        for_maker.zero_grad(set_to_none=False)
        (-critic(made).mean()).backward()
        for_maker.step()
        return loss.detach()

    return SimpleNamespace(model=nn.ModuleList([maker, critic]), optimizer=for_maker, step=step, more=[],
                           example=lambda: (torch.randn(128, 32),))


FIRST = {
    "two in turn": two_in_turn,
    "gradients zeroed": stepping(adam),
    "gradients zeroed at the end": stepping(adam, at_end=True),
    "gradients of micro-batches": stepping(adam, micro=3, clip=True),
    "gradients that a hook has": stepping(adam, micro=2, model=hooked),
    "gradients and momentum": stepping(momentum(), micro=2),
    "momentum": stepping(momentum(), set_to_none=True),
    "nesterov and decay": stepping(momentum(nesterov=True, weight_decay=1e-2), set_to_none=True),
    "momentum at once": stepping(momentum(foreach=True), set_to_none=True),
    "an average": stepping(adam, set_to_none=True, more=averaged()),
    "copies": stepping(adam, set_to_none=True, more=copied()),
    "all of these": stepping(momentum(), micro=2, clip=True, more=averaged()),
}
if hasattr(torch.optim.swa_utils, "get_ema_multi_avg_fn"):
    FIRST["a moving average"] = stepping(adam, more=averaged(multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)))


PLANS = (("auto", 60), ("auto", 0), ("naive", 0))  # at a part of what the step takes as it is, in percent, or at the least budget


def persisting(run):
    """Bytes of what is there before the first step."""
    return sum(t.numel() * t.element_size() for t in [*run.made.model.parameters(), *run.made.more])


class FirstTest(FollowTest):
    def test_it_follows_the_plan(self):
        for number, (name, make) in enumerate(FIRST.items()):
            make.__name__ = name.replace(" ", "-")
            recorded, plain = self.record(make), Run(make)
            for policy, share in sampled(PLANS, len(PLANS), number):
                with self.subTest(name, policy=policy, share=share):
                    path, summary = self.planned(recorded, policy, share)
                    ours = Run(make, path, metered=True)
                    self.assert_same(ours, plain, name)
                    self.assertEqual((ours.told, ours.followed.left, ours.counts["left"]), ([], {}, 0))
                    numbers = sum(size for size in recorded.graph.sizes() if size <= NUMBER)
                    self.assertLessEqual(over(recorded, ours, summary["peak_bytes"]), numbers)
                    # Until the plan has seen what persists it stays where it is.
                    self.assertLessEqual(ours.peaks[0] - persisting(ours), ours.metered + numbers)

    def planned(self, recorded, policy, share):
        """At that part of what the step takes as it is, or at the least budget."""
        made = recorded.planned(policy, recorded.plain_bytes * share // 100) if share else None
        return made or recorded.planned(policy, recorded.least(policy))

    def test_it_does_so_without_the_extension(self):
        with mock.patch.object(extension, "is_wanted", False):
            for name in ("gradients that a hook has", "all of these"):
                make = FIRST[name]
                recorded = self.record(make)
                ours = Run(make, self.planned(recorded, "auto", 60)[0])
                self.assert_same(ours, Run(make), name)
                self.assertEqual((ours.told, ours.counts["left"]), ([], 0))

    def test_gradients_that_are_zeroed_next_are_not_read_as_what_they_are_not(self):
        """Where the plan has dropped them they have no values until then."""
        reads = {"a norm": lambda model: [p.grad.norm() for p in model.parameters()],
                 "a part written": lambda model: [p.grad[:1].zero_() for p in model.parameters()],
                 "a list": lambda model: [torch.tensor(p.grad.tolist()) for p in model.parameters()],
                 "an array": lambda model: [torch.from_numpy(p.grad.numpy()) for p in model.parameters()]}
        make, dropped = FIRST["gradients zeroed at the end"], 0
        recorded = self.record(make)
        for number, (policy, share) in enumerate(PLANS):
            for name, read in sampled(list(reads.items()), 2, number):
                with self.subTest(name, policy=policy, share=share):
                    plain = Run(make, None, reading(read))
                    try:
                        self.assert_same(Run(make, self.planned(recorded, policy, share)[0], reading(read)), plain, name)
                    except planc_torch.DroppedTensor as error:
                        self.assertRegex(str(error), r"weight\.grad|bias\.grad|scale\.grad")
                        dropped += 1
        self.assertGreater(dropped, 0)

    def test_gradients_that_are_not_zeroed_after_all_are_told(self):
        make = FIRST["gradients zeroed at the end"]
        recorded, made = self.record(make), make()
        followed = planc_torch.follow(self.planned(recorded, "naive", 0)[0], made.step)
        followed(made.example())
        with mock.patch.object(made.optimizer, "zero_grad", lambda **_: None), \
                self.assertRaisesRegex(planc_torch.DroppedTensor, r"\.grad.* kept beyond the step"), self.assertWarns(
                    planc_torch.PlanNotFollowed):
            followed(made.example())
        self.assertTrue(all(p.grad.isnan().all() for p in made.model.parameters()))
        made.optimizer.zero_grad(set_to_none=False)
        followed(made.example())
        self.assertEqual(followed.counts["left"], 1)
        followed.close()


def reading(read):
    """In iteration 2 what the optimizer has made use of is read before it is zeroed."""
    def between(run, i, args):
        if i == 2:
            zero = run.made.optimizer.zero_grad

            def read_and_zero(**options):
                run.kept.append(tensors_of(read(run.made.model)))
                zero(**options)

            run.made.optimizer.zero_grad = read_and_zero
        return args
    return between


if __name__ == "__main__":
    unittest.main()
