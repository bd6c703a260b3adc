#!/usr/bin/env python3
"""Tests of planc_torch on many models (steps_*.py): their graphs are what the steps do, and under plans they compute the same,
bit for bit, within the plan's memory. tests/bench/bench_torch.py does more of it."""

import tempfile
import unittest
from types import SimpleNamespace

from torchfollow import Recorded, Run, arguments_of, first_difference, over, torch  # first: it finds a Python with PyTorch

import planc_torch
import steps_generative
import steps_language
import steps_vision
import torch_costs
from sampling import sampled
from torch import nn
from torch.nn import functional
from torch_refusals import CannotExport
from torchtraining import HAS_SCALER, seeded

STEPS = {**steps_language.STEPS, **steps_vision.STEPS, **steps_generative.STEPS}
# Each step with policies and parts of the plain peak, in percent, at which they have plans.
FOLLOWED = {
    "llama": [("auto", 60)], "llama_checkpointed": [("auto", 60)], "lora": [("auto", 60)], "vit": [("auto", 40)],
    "efficientnet": [("auto", 40), ("cheap", 60)], "densenet": [("superneurons", 60)], "segmentation": [("auto", 60)],
    "diffusion": [("chen", 100)], "gan": [("auto", 60), ("superneurons", 100)], "gan_penalized": [("cheap", 100)],
    "autoencoder": [("capuchin", 100)], "dlrm": [("auto", 40)], "lstm_tagger": [("auto", 60)], "speech": [("naive", 100)],
    "graph_network": [("auto", 40), ("capuchin", 60)], "distillation": [("auto", 60)], "contrast": [("naive", 100)],
}


class StepsTest(unittest.TestCase):
    def recorded(self, make):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Recorded(make, folder.name)

    def assert_followed(self, recorded, plain, policy, share):
        """Whether there is a plan, under which then all is as it should be."""
        made = recorded.planned(policy, recorded.plain_bytes * share // 100)
        if made is None:
            return False
        ours = Run(recorded.make, made[0], metered=True)
        self.assertIsNone(first_difference(ours, plain))
        self.assertEqual(over(recorded, ours, made[1]["peak_bytes"]), 0)
        self.assertEqual(ours.told, [])
        return True

    def test_steps_compute_the_same_within_their_plans(self):
        for name, plans in sampled(list(FOLLOWED.items()), 2):
            with self.subTest(name):
                recorded, plain = self.recorded(STEPS[name]), Run(STEPS[name])
                for policy, share in plans:
                    with self.subTest(name, policy=policy, share=share):
                        self.assertTrue(self.assert_followed(recorded, plain, policy, share))

    def test_what_a_step_leaves_is_in_the_budget_until_the_next_one_clears_it(self):
        """Gradients are most of what this step has, and so is what the plan brings for the next one."""
        def make():
            seeded()
            model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(8)))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)

            def step(x):
                optimizer.zero_grad(set_to_none=True)
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss.detach()

            return SimpleNamespace(model=model, optimizer=optimizer, step=step, example=lambda: (torch.randn(2, 64),))

        recorded, plain = self.recorded(make), Run(make)
        for share in (50, 60, 70):
            self.assertTrue(self.assert_followed(recorded, plain, "auto", share), share)

    def scaled(self, scale):
        """f16 with a GradScaler that begins with this scale."""
        def make():
            seeded()
            model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
            optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=scale)

            def step(x, y):
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast("cpu", dtype=torch.float16):
                    loss = functional.cross_entropy(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                return loss.detach()

            return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                                   example=lambda: (torch.randn(16, 32), torch.randint(0, 10, (16,))))
        return make

    @unittest.skipUnless(HAS_SCALER, "this PyTorch scales gradients on GPUs alone")
    def test_a_scaler_finds_its_scale_before_the_step_is_recorded(self):
        recorded = self.recorded(self.scaled(2.0**30))
        self.assertTrue([call for call in recorded.graph.calls[:-1] if call.phase == "optimizer"])
        path, _ = recorded.planned("auto", recorded.plain_bytes * 80 // 100)
        ours, plain = Run(recorded.make, path, iterations=20), Run(recorded.make, iterations=20)
        self.assertIsNone(first_difference(ours, plain))
        self.assertIn("_amp_update_scale_", ours.told[0])  # the first updates are skipped
        step = self.scaled(2.0**100)()
        with self.assertRaisesRegex(CannotExport, "give it a smaller init_scale"):
            planc_torch.record(step.step, arguments_of(step.example), "cpu")


class FlopsTest(unittest.TestCase):
    def test_calls_by_their_definition(self):
        matrix, vector = torch.ones(6, 5), torch.ones(5)
        wide, square = torch.ones(3, 6, 5), torch.ones(3, 5, 4)
        layer = {"input": torch.ones(7, 2, 5), "weight0": torch.ones(16, 5), "weight1": torch.ones(16, 4),
                 "weight2": torch.ones(16), "weight3": torch.ones(16), "hx_": torch.ones(1, 2, 4)}
        words, weights = 14, 16 * 5 + 16 * 4
        heads = {"query": torch.ones(2, 3, 7, 4), "key": torch.ones(2, 3, 9, 4)}
        for name, operands, result, wanted in (
                ("aten.mv", {"self": matrix, "vec": vector}, torch.ones(6), 2 * 30),
                ("aten.dot", {"self": vector, "tensor": vector}, torch.ones(()), 2 * 5),
                ("aten.addmm_", {"mat1": matrix, "mat2": square[0]}, torch.ones(6, 4), 2 * 120 + 24),
                ("aten.mm.out", {"self": matrix, "mat2": square[0]}, torch.ones(6, 4), 2 * 120),
                ("aten.addbmm", {"batch1": wide, "batch2": square}, torch.ones(6, 4), 2 * 360),
                ("aten._scaled_dot_product_flash_attention_for_cpu", heads, heads["query"], 4 * 6 * 7 * 9 * 4),
                ("aten._scaled_dot_product_flash_attention_for_cpu_backward", heads, heads["query"], 10 * 6 * 7 * 9 * 4),
                ("aten.mkldnn_rnn_layer", layer, torch.ones(7, 2, 4), words * (2 * weights + 32)),
                ("aten.mkldnn_rnn_layer_backward", layer, torch.ones(7, 2, 5), words * (4 * weights + 32))):
            self.assertEqual(torch_costs.flops(name, operands, {}, {0: result}), wanted, name)

    def test_a_bag_of_embeddings_reads_its_rows(self):
        table, indices = torch.ones(1000, 8), torch.ones(12, dtype=torch.int64)
        moved = torch_costs.traffic("aten._embedding_bag", [("weight", table), ("indices", indices)], [], lambda t: 1 << 30)
        self.assertEqual(moved, 12 * 8 * 4 + 12 * 8)


if __name__ == "__main__":
    unittest.main()
