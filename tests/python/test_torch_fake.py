#!/usr/bin/env python3
"""Tests of `planc torch --fake`: on the processor it records what a real run does, for a GPU what one would call, and has a
sentence for each step that depends on elements."""

import contextlib
import copy
import io
import json
import os
import re
import sys
import tempfile
import textwrap
import unittest
from types import SimpleNamespace

from torchexport import torch  # first: it finds a Python with PyTorch

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
DATA = os.path.join(ROOT, "tests/data/torch")
H100 = os.path.join(ROOT, "profiles/h100.json")
sys.path.insert(0, os.path.join(ROOT, "runtime/torch"))

from torch.utils.checkpoint import checkpoint

import planc_torch.__main__
import planc_torch.library
from planc_torch.fake import is_possible
from planc_torch.plan_file import PlanFile
from torchsteps import STEPS

if is_possible():
    from planc_torch.fake import without_memory
    from planc_torch.no_driver import Gpu
    from planc_torch.step_graph import StepGraph
    from planc_torch.step_recorder import record

planc_torch.library.PLACES.insert(0, BUILD)
HEAD = """\
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
options = {}
"""
TAIL = """
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)

def example():
    return torch.randn(8, 16).to(device), torch.randint(0, 4, (8,)).to(device)

def loss_of(x, y):
    return nn.functional.cross_entropy(model(x), y)
"""
LINEAR = "model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 4))\nmodel.to(device)\n"


def averaging():
    """A second model, a deep copy of the first that shares weights as this one does, follows it; blocks are computed again."""
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()) for _ in range(3)))
    model[2][0].weight = model[0][0].weight
    average = copy.deepcopy(model)
    optimizer = torch.optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        for block in model:
            x = checkpoint(block, x, use_reentrant=False)
        x.pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for kept, weight in zip(average.parameters(), model.parameters()):
                kept.lerp_(weight, 0.1)

    return SimpleNamespace(step=step, example=lambda: torch.randn(8, 16))


def graph_text(made, folder):
    """The graph of a step of torchsteps on the processor."""
    def make_args():
        given = made.example()
        return given if type(given) is tuple else (given,)

    path = os.path.join(folder, "step.yaml")
    StepGraph(record(made.step, make_args, "cpu", has_elements=False), "step").write(path)
    with open(path, encoding="utf-8") as file:
        return file.read()


class FakeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_torch(self, place, *arguments):
        """`planc torch` of a step: its exit code and what it tells."""
        line = [place, "--planc", os.path.join(BUILD, "planc"), "--device", H100, *arguments]
        with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.redirect_stdout(told):
            code = planc_torch.__main__.run(line)
        return code, told.getvalue()

    def step_file(self, model, body):
        """A file with a model and a step of these lines."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(HEAD + model + TAIL + "\ndef step(x, y):\n" + textwrap.indent(body, "    "))
        return f"{path}:step"

    def calls(self, model, body, *arguments):
        """The calls that a step is recorded with, in order."""
        plan = os.path.join(self.folder, "train.plan")
        code, told = self.run_torch(self.step_file(model, body), "--fake", "--output", plan, *arguments)
        self.assertEqual(code, 0, told)
        file = PlanFile(plan)
        self.assertEqual(file.device, "cpu" if "cpu" in arguments else "cuda")
        return [call.described for call in file.calls]


@unittest.skipIf(is_possible(), "skipped: this PyTorch has fake tensors")
class WithoutFakeTensorsTest(FakeTest):
    def test_an_old_pytorch_is_told(self):
        plan = os.path.join(self.folder, "x.plan")
        code, told = self.run_torch(os.path.join(DATA, "small.py:step"), "--fake", "--output", plan)
        self.assertEqual(code, 2)
        self.assertRegex(told, "^planc torch: --fake needs PyTorch 2, and .* has 1.*\n$")
        self.assertEqual(os.listdir(self.folder), [])


@unittest.skipUnless(is_possible(), "skipped: this PyTorch has no fake tensors that do")
class WithFakeTensorsTest(FakeTest):
    def gpu(self):
        with open(H100, encoding="utf-8") as file:
            return Gpu(H100, json.load(file))

    def test_on_the_processor_the_graph_is_that_of_a_real_run(self):
        for name, make in {**STEPS, "averaging": averaging}.items():
            with self.subTest(name):
                if name == "lstm":  # has a workspace
                    continue
                real = graph_text(make(), self.folder)
                with without_memory(self.gpu()):
                    fake = graph_text(make(), self.folder)
                self.assertEqual(real, fake)

    def test_what_is_replaced_in_pytorch_is_put_back(self):
        before = torch.cuda.is_available(), torch.nn.Parameter.__new__, torch.nn.functional.scaled_dot_product_attention
        with without_memory(self.gpu()):
            self.assertTrue(torch.cuda.is_available())
        after = torch.cuda.is_available(), torch.nn.Parameter.__new__, torch.nn.functional.scaled_dot_product_attention
        self.assertEqual(before, after)
        x = torch.randn(3, requires_grad=True)
        (x * x).sum().backward()
        self.assertTrue(torch.equal(x.grad, 2 * x))

    def test_a_llama_takes_what_a_gpu_takes(self):
        code, told = self.run_torch(os.path.join(DATA, "llama_small.py:step"), "--fake", "--output",
                                    os.path.join(self.folder, "x.plan"))
        self.assertEqual(code, 0, told)
        file = PlanFile(os.path.join(self.folder, "x.plan"))
        names = [call.described.partition("(")[0] for call in file.calls]
        self.assertEqual(file.device, "cuda")
        attention = [name for name in names if re.fullmatch(r"aten\._scaled_dot_product_(flash|cudnn)_attention", name)]
        self.assertEqual(len(attention), 2)
        self.assertIn("aten._foreach_addcdiv_.ScalarList", names)
        self.assertEqual(names[-2:], ["aten._local_scalar_dense", "planc.end"])
        with open(file.path, encoding="utf-8") as plan:
            tensors = [json.loads(line) for line in plan if line.startswith('{"tensor":')]
        weights = sum(size for tensor, size in zip(tensors, file.sizes) if tensor["kind"] == "param")
        width, hidden, words, layers = 128, 256, 512, 2
        block = 4 * width * width + 3 * width * hidden + 2 * width
        self.assertEqual(weights, 2 * (layers * block + 2 * words * width + width))

    def test_autocast_dropout_and_lists_are_those_of_a_gpu(self):
        calls = self.calls(LINEAR, "optimizer.zero_grad()\nwith torch.autocast('cuda', dtype=torch.bfloat16):\n"
                                   "    loss = loss_of(x, y)\nloss.backward()\noptimizer.step()\nreturn loss\n")
        self.assertIn("aten.addmm(bf16[32], bf16[8,16], bf16[16,32])", calls)
        self.assertIn("aten.native_dropout(bf16[8,32])", calls)
        self.assertEqual(len([call for call in calls if call.startswith("aten._foreach_addcdiv_")]), 1)
        fused = self.calls(LINEAR + "options['fused'] = True\n", "loss_of(x, y).backward()\noptimizer.step()\n")
        self.assertEqual(len([call for call in fused if call.startswith("aten._fused_adamw_")]), 1)

    def test_numbers_of_the_program_are_on_the_device_by_no_call(self):
        calls = self.calls(LINEAR, "(loss_of(x, y) * torch.tensor(0.5, device=device)).backward()\noptimizer.step()\n")
        self.assertIn("aten.mul.Tensor(f32[], f32[])", calls)
        self.assertFalse([call for call in calls if call.startswith(("aten.lift", "aten._to_copy"))])

    def test_attention_is_in_autocast_s_type_and_takes_groups(self):
        body = ("with torch.autocast('cuda', dtype=torch.bfloat16):\n"
                "    h = model[0](x).view(1, 8, 4, 8).transpose(1, 2)\n"
                "    y = nn.functional.scaled_dot_product_attention(h.float(), h[:, :2], h[:, :2], enable_gqa=True)\n"
                "y.float().sum().backward()\n")
        calls = [call for call in self.calls(LINEAR, body) if "_scaled_dot_product" in call]
        shapes = r"\(bf16\[1,4,8,8\], bf16\[1,2,8,8\], bf16\[1,2,8,8\]\)"
        self.assertRegex(calls[0], r"^aten\._scaled_dot_product_(flash|cudnn)_attention" + shapes)

    def test_a_mask_goes_to_a_kernel_that_takes_one(self):
        body = ("h = model[0](x).view(1, 8, 2, 16).transpose(1, 2).half()\n"
                "mask = torch.ones(1, 1, 8, 16, device=device) > 0\n"
                "nn.functional.scaled_dot_product_attention(h, h, h, attn_mask=mask[..., :8]).float().sum().backward()\n")
        calls = [call for call in self.calls(LINEAR, body) if "_scaled_dot_product" in call or "where" in call]
        self.assertRegex(calls[0], r"^aten\.where\.self\(bool\[1,1,8,8\]")
        self.assertRegex(calls[1], r"^aten\._scaled_dot_product_(efficient|cudnn)_attention\(.* f16\[1,[12],8,8\]\)$")

    @unittest.skipUnless(torch.cuda.is_available(), "skipped: no GPU")
    def test_on_a_gpu_the_step_makes_the_calls_that_were_recorded_without(self):
        wide = ("model = nn.Sequential(nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), "
                "nn.Flatten(), nn.Linear(32, 4)).to(device)\n")
        body = "optimizer.zero_grad()\nloss_of(x, y).backward()\noptimizer.step()\n"
        plan = os.path.join(self.folder, "gpu.plan")
        for model in (None, LINEAR, wide):
            with self.subTest(model):
                place = self.step_file(model, body) if model else os.path.join(DATA, "llama_small.py:step")
                self.assertEqual(self.run_torch(place, "--fake", "--output", plan)[0], 0)
                code, told = self.run_torch(place, "--check", plan)
                self.assertEqual(code, 0, told)

    def test_a_loss_scale_and_batch_norm(self):
        model = ("scaler = torch.amp.GradScaler()\n"
                 "model = nn.Sequential(nn.Unflatten(1, (4, 2, 2)), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 4)).cuda()\n")
        calls = self.calls(model, "optimizer.zero_grad()\nwith torch.autocast('cuda', dtype=torch.float16):\n"
                                  "    loss = loss_of(x, y)\n"
                                  "scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()\n")
        self.assertTrue([call for call in calls if call.startswith("aten._amp_update_scale_")])
        self.assertTrue([call for call in calls if call.startswith("aten.cudnn_batch_norm(")])

    def test_weights_stay_tied_and_in_their_optimizer(self):
        model = ("model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))\nmodel[1].weight = model[0].weight\n"
                 "early = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel = model.to(device)\n")
        calls = self.calls(model, "early.zero_grad()\nloss_of(x, y).backward()\nearly.step()\n")
        updates = [call for call in calls if call.startswith("aten._foreach_add_")]
        self.assertEqual(updates, ["aten._foreach_add_.List(f32[16,16], f32[16], f32[16], f32[16,16], f32[16], f32[16])"])

    def test_small_tensors_of_the_host_have_elements(self):
        model = LINEAR + "rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]\nassert rates[2] == 0.5\n"
        self.assertTrue(self.calls(model, "if rates[1] > 0:\n    loss_of(x, y).backward()\nprint(torch.arange(3).tolist())\n"))

    def test_what_is_read_may_be_kept_and_printed(self):
        calls = self.calls(LINEAR, "loss = loss_of(x, y)\nloss.backward()\nprint(f'{loss:.3f} {2 * loss.item() + 1:.2f}')\n"
                                   "return loss.item()\n")
        self.assertIn("planc.__format__(f32[])", calls)
        self.assertIn("aten._local_scalar_dense(f32[])", calls)

    def test_each_step_that_depends_on_elements_has_one_sentence(self):
        branch = "which way the program goes depends on a tensor's value; with --fake tensors have none"
        wrong = {
            "if loss_of(x, y) > 0:\n    pass\n": branch, "if loss_of(x, y).item() > 0:\n    pass\n": branch,
            "int(loss_of(x, y).item())\n": branch, "float(loss_of(x, y))\n": "__float__ hands a tensor's values to the program",
            "loss_of(x, y).tolist()\n": "tolist hands a tensor's values to the program",
            "x.cpu().numpy()\n": "numpy hands a tensor's values to the program",
            "model(x)[y > 1].sum().backward()\n": "depends on data; a graph has one size for it",
            "torch.cuda.Stream()\n": "what is called there asks the GPU's driver",
            "q = x.view(1, 1, 8, 16).half()\nnn.functional.scaled_dot_product_attention(q, q, q, attn_mask=q @ q.mT)\n":
                "which kernel scaled_dot_product_attention runs with these operands is the GPU's choice",
        }
        for body, sentence in wrong.items():
            with self.subTest(body):
                plan = os.path.join(self.folder, "x.plan")
                code, told = self.run_torch(self.step_file(LINEAR, body), "--fake", "--output", plan)
                self.assertEqual((code, told.count("\n")), (3, 1), told)
                self.assertRegex(told, r"^planc torch: \S*train.py:\d+: ")
                self.assertIn(sentence, told)
                self.assertEqual(os.listdir(self.folder), ["train.py"])

    def test_a_workspace_that_only_the_device_knows_is_refused(self):
        with self.assertRaisesRegex(planc_torch.__main__.CannotExport, "mkldnn_rnn_layer works in only its device knows"):
            with without_memory(self.gpu()):
                graph_text(STEPS["lstm"](), self.folder)

    def test_a_plan_is_checked_as_it_was_recorded(self):
        plan = os.path.join(self.folder, "train.plan")
        body = "optimizer.zero_grad()\nloss_of(x, y).backward()\noptimizer.step()\n"
        self.calls(LINEAR, body)
        self.assertEqual(self.run_torch(self.step_file(LINEAR, body), "--fake", "--check", plan)[0], 0)
        code, told = self.run_torch(self.step_file(LINEAR, body), "--fake", "--on", "cpu", "--check", plan)
        self.assertEqual(code, 4)
        self.assertIn("the step ran on cpu, and the plan's on cuda", told)


if __name__ == "__main__":
    unittest.main()
