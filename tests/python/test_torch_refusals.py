#!/usr/bin/env python3
"""Steps that export_torch.py refuses, because a graph of them would differ from what runs: in one sentence that names
the user's file and line."""

import inspect
import itertools
import os
import random
import tempfile
import unittest
import warnings

from torchexport import Step, exported, torch
from torch import nn
from torch.nn import functional

from graphtest import GraphTest, run
import export_torch

BATCH = torch.arange(8.0).view(2, 4) - 3


class RefusalTest(GraphTest):
    def refused(self, what, module, line, *batch, devices=("meta", "cpu"), **options):
        """Refuses the module in one sentence, at the line of this file that holds `line`."""
        with open(__file__, encoding="utf-8") as file:
            (number,) = [i for i, text in enumerate(file, 1) if text.rstrip().endswith("# " + line)]
        for device in devices:
            with self.subTest(device), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with self.assertRaises(export_torch.CannotExport) as caught:
                    exported(module, *(batch or (BATCH,)), device=device, **options)
                self.assertRegex(str(caught.exception), what)
                self.assertTrue(str(caught.exception).startswith(f"{__file__}:{number}: "), caught.exception)
                self.assertNotIn("\n", str(caught.exception))

    # --- What depends on data -----------------------------------------------------------------------------------------

    def test_branches(self):
        def bool_of(module, x):
            y = module.fc(x)
            return y * 2 if y.sum() > 0 else y  # branch

        def index_of(module, x):
            return module.fc(x)[:, range(4)[x.argmax() % 4]:]  # index

        def compared(module, x):
            y = module.fc(x)
            return y if torch.equal(y, x) else 2 * y  # equal

        self.refused("which way the program goes depends on", Step(bool_of), "branch")
        self.refused("which way the program goes depends on", Step(index_of), "index")
        self.refused("aten.equal tells the program depends on data", Step(compared), "equal")

    def test_sizes(self):
        def masked(module, x):
            return module.fc(x)[x > 0]  # mask

        def routed(module, x):
            """One expert for those samples that are for it."""
            mine = (x.sum(1) > 0).nonzero().squeeze(1)  # routing
            return torch.zeros_like(x).index_add(0, mine, module.fc(x[mine]))

        def repeated(module, x):
            return module.fc(x).repeat_interleave((x[0] > 0).long(), 1)  # repeats

        def distinct(module, x):
            return module.fc(x).sum() + x.unique().sum()  # unique

        def chosen(module, x):
            return torch.masked_select(module.fc(x), x > 0)  # select

        for function, line in ((masked, "mask"), (routed, "routing"), (repeated, "repeats"), (distinct, "unique"),
                               (chosen, "select")):
            self.refused("depends on data; a graph has one size", Step(function), line)

    def test_an_index_without_a_mask_is_exported(self):
        graph = exported(Step(lambda module, x: module.fc(x)[:, torch.tensor([2, 0], device=x.device)]), BATCH)
        self.assertIn("aten.index.Tensor", [op["type"] for op in graph.ops])

    def test_values_of_the_meta_device(self):
        def item(module, x):
            module.kept = x.sum().item()  # item
            return module.fc(x)

        def copied(module, x):
            y = module.fc(x)
            module.kept = y.detach().cpu()  # copied
            return y

        def filled(module, x):
            torch.empty(len(x), 4).copy_(x)  # filled
            return module.fc(x)

        self.refused("_local_scalar_dense reads a value, and the meta", Step(item), "item", devices=("meta",))
        self.refused("reads a value, and the meta", Step(copied), "copied", devices=("meta",))
        self.refused("reads a value, and the meta", Step(filled), "filled", devices=("meta",))

    def test_values_that_are_used(self):
        def branch(module, x):
            y = module.fc(x)
            if y.sum().item() > 0:  # value branch
                return y * 2
            return y

        def factor(module, x):
            y = module.fc(x)
            return y * y.abs().max().item()  # factor

        def constant(module, x):
            y = module.fc(x)
            return y + int(y.argmax())  # constant

        def given(module, x):
            return torch.full_like(x, x.max().item()) + module.fc(x)  # given

        def listed(module, x):
            y = module.fc(x)
            return y * 2 if y.sum(0).tolist()[0] > 0 else y  # listed

        def in_numpy(module, x):
            y = module.fc(x)
            return y * 2 if y.detach().numpy().sum() > 0 else y  # numpy

        def as_float(module, x):
            return module.fc(x) * float(x.sum())  # float

        for function, line in ((branch, "value branch"), (factor, "factor"), (given, "given")):
            self.refused("does with a value read of a tensor depends on data", Step(function), line, devices=("cpu",))
        for function, line in ((constant, "constant"), (listed, "listed"), (in_numpy, "numpy"), (as_float, "float")):
            self.refused("hands a tensor's values to the program", Step(function), line, devices=("cpu",))

    def test_values_that_are_kept_and_printed(self):
        kept = []

        def function(module, x):
            kept.append(x.sum().item())
            kept.append(f"{x.max().item():.3f} {x.min():.2f}")
            return module.fc(x)

        graph = exported(Step(function), BATCH, device="cpu")
        self.assertEqual([op["type"] for op in graph.ops].count("aten._local_scalar_dense"), 3)

    def test_a_module_that_catches_the_refusal(self):
        def catching(module, x):
            try:
                return module.fc(x)[x > 0]  # caught
            except Exception:
                return module.fc(x)

        self.refused("depends on data", Step(catching), "caught")

    def test_tensors_of_the_host(self):
        def masked(module, x):
            return module.fc(x).masked_fill(torch.ones(4, dtype=torch.bool), 0.0)  # host mask

        def product(module, x):
            return module.fc(x) @ torch.ones(4, 4)  # host matrix

        self.refused("a tensor of the host among", Step(masked), "host mask", devices=("meta",))
        self.refused("a tensor of the host among", Step(product), "host matrix", devices=("meta",))

    # --- Mixed precision ----------------------------------------------------------------------------------------------

    def test_autocast_without_effect(self):
        def cuda(model, x):
            with torch.autocast("cuda"):  # for cuda
                return model(x).sum()

        def cpu(model, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):  # for cpu
                return model(x).float().sum()

        def set_by_hand(model, x):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.set_autocast_cpu_enabled(True)
                try:
                    return model(x).sum()
                finally:
                    torch.set_autocast_cpu_enabled(False)

        self.refused("autocast of cuda does nothing on the", nn.Linear(4, 4), "for cuda", loss=cuda)
        self.refused("autocast of cpu does nothing on the", nn.Linear(4, 4), "for cpu", loss=cpu, devices=("meta",))
        with self.assertRaisesRegex(export_torch.CannotExport, "autocast of cpu does nothing on the meta"):
            exported(nn.Linear(4, 4), BATCH, loss=set_by_hand)

    def test_autocast_that_is_off(self):
        def off(model, x):
            with torch.autocast("cuda", enabled=False):
                return model(x).sum()

        for device in ("meta", "cpu"):
            self.assertTrue(exported(nn.Linear(4, 4), BATCH, loss=off, device=device).ops)

    def test_grad_scaler(self):
        def scaled(model, x):
            return scaler.scale(model(x).sum())  # scaled

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler = torch.cuda.amp.GradScaler()
            self.refused("GradScaler is not recorded", nn.Linear(4, 4), "scaled", loss=scaled)
            with export_torch.noting_precision():
                scaler = torch.cuda.amp.GradScaler(enabled=False)
            self.assertTrue(exported(nn.Linear(4, 4), BATCH, loss=scaled).ops)

    # --- From one iteration to the next -------------------------------------------------------------------------------

    def test_what_stays_in_no_buffer(self):
        def carried(module, x):
            y = module.fc(x)
            if module.kept is not None:
                y = y + module.kept  # carried
            module.kept = y.detach().mean(0)
            return y

        def replaced(module, x):
            module.seen = module.seen * 0.9 + x.mean(0) * 0.1  # replaced
            return module.fc(x) * module.seen

        self.refused("reads what the iteration before left behind .aten.mean", Step(carried), "carried")
        self.refused("reads what the iteration before left behind .aten.add", Step(replaced), "replaced")

    def test_parameters_in_new_storages(self):
        class New(torch.optim.SGD):
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.data = p.data - 0.1 * p.grad

        with self.assertRaisesRegex(export_torch.CannotExport, "left behind .aten.sub.Tensor at .*refusals.py"):
            exported(nn.Linear(4, 4), BATCH, optimizer=lambda parameters: New(parameters, lr=0.1))

    def test_iterations_that_differ(self):
        count = itertools.count()

        def alternating(module, x):
            y = module.fc(x)
            return y.relu() if next(count) % 2 else y  # alternating

        self.refused("iterations differ: aten.relu in the second, .* in the third", Step(alternating), "alternating",
                     devices=("meta",))

    def test_ways_by_chance(self):
        dice = random.Random(1)

        def dropping(module, x):
            for _ in range(40):
                x = module.fc(x) if dice.random() < 0.5 else x.relu()
            return module.fc(x)

        with self.assertRaisesRegex(export_torch.CannotExport, f"{__file__}:[0-9]+: (iterations|the list of ops)"):
            exported(Step(dropping), BATCH)

    # --- What the batch changes, and what else is no graph ------------------------------------------------------------

    def test_lists_that_depend_on_the_batch(self):
        def counting(module, x):
            for _ in range(len(x)):
                x = module.fc(x)  # counting
            return x

        def paired(module, x):
            return module.fc(x) @ module.fc(x).t()  # paired

        def writing(module, x):
            return module.fc(x.mul_(2))  # writing

        self.refused("the list of ops depends on the batch size", Step(counting), "counting")
        self.refused("not a fixed part plus one per sample", Step(paired), "paired")
        self.refused("aten.mul_.Tensor writes the input input0", Step(writing), "writing")

    def test_storages(self):
        def resized(module, x):
            y = torch.empty(3, device=x.device)
            y.resize_(5)  # resized
            return module.fc(x)

        def grown(module, x):
            y = torch.zeros(1, device=x.device)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.mul(x.detach(), 2, out=y)  # grown
            return module.fc(x) + y

        self.refused("resize_ changes a tensor's storage", Step(resized), "resized")
        self.refused("storage changes its size", Step(grown), "grown")

    def test_sparse_gradients(self):
        with self.assertRaisesRegex(export_torch.CannotExport, "without dense storage"):
            exported(nn.Embedding(5, 4, sparse=True), torch.zeros(2, 3, dtype=torch.long))

    @unittest.skipUnless(hasattr(torch, "compile"), "skipped: this PyTorch compiles nothing")
    def test_compiled_modules(self):
        for model in (torch.compile(nn.Linear(4, 4)), nn.Sequential(torch.compile(nn.Linear(4, 4)))):
            with self.assertRaisesRegex(export_torch.CannotExport, "torch.compile"):
                exported(model, BATCH)

    # --- Attention ----------------------------------------------------------------------------------------------------

    @unittest.skipUnless(hasattr(functional, "scaled_dot_product_attention"), "skipped: no fused attention")
    def test_attention(self):
        def attend(**options):
            def function(module, x):
                q = module.fc(x).view(-1, 3, 2, 8).transpose(1, 2)
                return functional.scaled_dot_product_attention(q, q, q, **options)  # attention
            return Step(function, 16)

        x = torch.zeros(2, 3, 16)
        for dtype, kernel in ((torch.float32, "efficient"), (torch.bfloat16, "flash")):
            graph = exported(attend(is_causal=True).to(dtype), x.to(dtype))
            forward, backward = (op for op in graph.ops if "attention" in op["type"])
            self.assertEqual(forward["type"], f"aten._scaled_dot_product_{kernel}_attention")
            self.assertEqual((forward["flags"], backward["flags"]), ([], []))
            self.assertEqual((forward["flops"], backward["flops"]), (f"{4 * 2 * 3 * 3 * 8}N", f"{10 * 2 * 3 * 3 * 8}N"))
            self.assertFalse([op for op in graph.ops if "softmax" in op["type"] or op["type"].startswith("matmul")])
        graph = exported(attend(dropout_p=0.5), x)
        self.assertEqual(next(op["flags"] for op in graph.ops if "attention" in op["type"]), ["stochastic"])
        self.refused("the GPU's choice", attend(attn_mask=torch.ones(3, 3, device="meta")), "attention", x,
                     devices=("meta",))
        graph = exported(nn.MultiheadAttention(16, 2, batch_first=True), x,
                         loss=lambda model, x: model(x, x, x, need_weights=False)[0].sum())
        self.assertIn("aten._scaled_dot_product_efficient_attention", [op["type"] for op in graph.ops])
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            graph = exported(attend(), x)
        self.assertFalse([op for op in graph.ops if "attention" in op["type"]])


class CommandLineTest(unittest.TestCase):
    def test_a_file_that_mixes_precisions(self):
        """The file is loaded by the exporter, which then knows what was asked for."""
        source = inspect.cleandoc("""
            import torch
            def given(enabled):
                scaler = torch.cuda.amp.GradScaler(enabled=enabled)
                cast = torch.autocast("cuda", enabled=enabled)
                def loss(model, x):
                    with cast:
                        return scaler.scale(model(x).sum())
                return (torch.nn.Linear(4, 4), (torch.zeros(2, 4),), loss,
                        lambda parameters: torch.optim.SGD(parameters, lr=0.1))
            def inside():
                model, batch, _, optimizer = given(False)
                def loss(model, x):
                    with torch.autocast("cuda", dtype=torch.bfloat16):
                        return model(x).sum()
                return model, batch, loss, optimizer
            on, off = lambda: given(True), lambda: given(False)
            """)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module, graph = (os.path.join(folder, name) for name in ("module.py", "graph.yaml"))
            with open(module, "w", encoding="utf-8") as file:
                file.write(source)
            self.assertEqual(run(export_torch, f"{module}:off", "-o", graph), (0, ""))
            os.remove(graph)
            for name, line in (("on", 6), ("inside", 13)):
                code, message = run(export_torch, f"{module}:{name}", "-o", graph)
                self.assertEqual((code, os.path.exists(graph)), (3, False))
                self.assertEqual(message.count("\n"), 1)
                self.assertIn(f"export_torch.py: {module}:{name}: {module}:{line}: autocast of cuda", message)


if __name__ == "__main__":
    unittest.main()
