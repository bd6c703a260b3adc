#!/usr/bin/env python3
"""Tests of `planc torch`: what it makes of a step, and the sentence that it has for each step that it cannot take."""

import contextlib
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from torchexport import torch  # first: it finds a Python with PyTorch
from pythons import warm

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
SMALL = os.path.join(ROOT, "tests/data/torch/small.py")
ENVIRONMENT = {**os.environ, "PLANC_PYTHON": warm(), "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
PACKAGE = os.path.join(ROOT, "runtime/torch")
sys.path.insert(0, PACKAGE)

import planc_torch.__main__
import planc_torch.fake
import planc_torch.library

planc_torch.library.PLACES.insert(0, BUILD)
EXAMPLES = os.path.join(ROOT, "runtime/torch/planc_torch/examples")


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def planc(self, *arguments, **environment):
        return subprocess.run([os.path.join(BUILD, "planc"), *map(str, arguments)], capture_output=True, text=True, check=False,
                              cwd=self.folder, env={**ENVIRONMENT, **environment})

    def left(self):
        return sorted(os.listdir(self.folder))

    def test_each_step_that_cannot_be_taken_has_one_sentence(self):
        wrong = {
            "no such function": ("has no function nowhere", 3, f"{SMALL}:nowhere"),
            "not a function": ("has no function not_a_function", 3, f"{SMALL}:not_a_function"),
            "no such file": ("nowhere.py: no such file", 3, "nowhere.py:step"),
            "raises": ("small.py:25: the step raised ValueError: no data left", 3, f"{SMALL}:raises"),
            "no calls": ("calls_nothing: the step makes no call on cpu", 3, f"{SMALL}:calls_nothing"),
            "other calls": ("small.py:36: runs of the step differ: aten.", 3, f"{SMALL}:changes"),
            "other shapes": ("runs of the step differ: aten.", 3, f"{SMALL}:changes_its_shapes"),
            "a closure": ("the optimizer is given a closure, which cannot be followed", 3, f"{SMALL}:has_a_closure"),
            "a word that is no size": ("--budget: expected one argument", 2, f"{SMALL}:step", "--budget", "-5%"),
            "its argument": ("small.py:41: aten.add_.Tensor writes a tensor that the step was given", 3,
                             f"{SMALL}:writes_its_argument"),
            "a thread": ("small.py:49: the step starts a thread", 3, f"{SMALL}:starts_a_thread"),
            "a generator": ("small.py:71: the step gives a generator, which runs only as values are taken", 3, f"{SMALL}:gives_losses"),
            "a coroutine": ("small.py:75: the step gives a coroutine, which runs only when it is awaited", 3, f"{SMALL}:is_awaited"),
            "no backward pass": ("only_reads: the step makes no backward pass", 3, f"{SMALL}:only_reads"),
            "arguments": ("small.py:68: the function that gives the arguments raised RuntimeError", 3, f"{SMALL}:step",
                          "--example", "example_that_raises"),
            "no arguments": ("has no function nowhere", 3, f"{SMALL}:step", "--example", "nowhere"),
            **{f"an empty {name}": (f"{name}: no value is given", 2, f"{SMALL}:step", name, "")
               for name in ("--budget", "--host-budget", "--effort", "--graph", "--example")},
            "an empty budget behind =": ("--budget: no value is given", 2, f"{SMALL}:step", "--budget="),
            "no share": ("a percentage above 0, not 0%", 2, f"{SMALL}:step", "--budget", "0%"),
            "no size": ("--budget: much is not a size", 2, f"{SMALL}:step", "--budget", "much"),
            "too little": ("planc torch: no plan fits", 1, f"{SMALL}:step", "--budget", "1%"),
            "too little, what would do": (" % of what the step takes as it is", 1, f"{SMALL}:step", "--budget", "1%"),
        }
        device = os.path.join(ROOT, "profiles/h100.json")
        for name, (sentence, code, *arguments) in wrong.items():
            with self.subTest(name), contextlib.redirect_stderr(io.StringIO()) as told:
                output = os.path.join(self.folder, "x.plan")
                line = [*arguments, "--planc", os.path.join(BUILD, "planc"), "--device", device, "--output", output]
                self.assertEqual(planc_torch.__main__.run(line), code)
                self.assertIn(sentence, told.getvalue())
                self.assertNotIn("Traceback", told.getvalue())
                self.assertEqual(self.left(), [])

    def test_arguments_of_the_steps_file(self):
        script = os.path.join(self.folder, "train.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("import argparse, torch\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch', type=int)\n"
                       "batch = parser.parse_args().batch\nmodel = torch.nn.Linear(8, 8)\n"
                       "def step(x):\n    model(x).sum().backward()\n    model.zero_grad()\n"
                       "def example():\n    return torch.randn(batch, 8)\n")
        done = self.planc("torch", "train.py:step", "--graph", "train.yaml", "--", "--batch", "48")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "train.yaml"), encoding="utf-8") as file:
            self.assertIn("f32[48,8]", file.read())
        done = self.planc("torch", "train.py:step", "--", "--batch", "many")
        self.assertEqual(done.returncode, 3)
        self.assertIn("invalid int value", done.stderr)

    def test_what_planc_itself_refuses(self):
        wrong = {
            "step": ("small.py: FILE.py:STEP is expected", 2, "small.py"),
            "an empty budget": ("--budget: no value is given", 2, f"{SMALL}:step", "--budget", ""),
            "no device": ("no description of device nowhere", 3, f"{SMALL}:step", "--device", "nowhere"),
            "two devices": ("give either --device or --profile", 2, f"{SMALL}:step", "--profile", "a.json", "--device", "h100"),
            "standard output": ("the plan goes to a file", 2, f"{SMALL}:step", "-o", "-"),
            "no profile": ("nowhere.json: No such file or directory", 5, f"{SMALL}:step", "--profile", "nowhere.json"),
            "no folder": ("nowhere/x.plan", 5, f"{SMALL}:step", "-o", "nowhere/x.plan"),
        }
        for name, (sentence, code, *arguments) in wrong.items():
            with self.subTest(name):
                done = self.planc("torch", *arguments)
                self.assertIn(sentence, done.stderr)
                self.assertEqual((done.returncode, done.stdout, self.left()), (code, "", []), done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_python_without_pytorch_is_told(self):
        with open(os.path.join(self.folder, "python"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')  # without what is installed
        os.chmod(file.name, 0o755)
        done = self.planc("torch", f"{SMALL}:step", PLANC_PYTHON=file.name)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("has no PyTorch; set PLANC_PYTHON to a Python that has it", done.stderr)
        done = self.planc("torch", f"{SMALL}:step", PLANC_PYTHON="/nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere cannot be run", done.stderr)

    def test_the_table_and_the_plan(self):
        done = self.planc("torch", f"{SMALL}:step", "--budget", "80%", "--json", "--graph", "small.yaml", "--device", "v100-32g",
                          PLANC_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual(self.left(), ["small.plan", "small.yaml"])
        self.assertEqual(told["output"], "small.plan")
        outside = torch.empty(16, 32), torch.empty(16, dtype=torch.int64), torch.empty(())  # arguments, the last step's loss
        self.assertEqual(told["reserved_bytes"], 0)  # on the processor
        self.assertEqual(told["outside_bytes"], sum(t.numel() * t.element_size() for t in outside))
        rows = {row["policy"]: row for row in told["policies"] if row["feasible"]}
        taken = rows[told["taken"]]
        self.assertEqual(taken["iteration_ns"], min(row["iteration_ns"] for row in rows.values()))
        share = told["reserved_bytes"] + (told["plain_bytes"] - told["reserved_bytes"]) * 80 // 100
        self.assertLessEqual(abs(told["budget_bytes"] - share), 1)
        for row in rows.values():
            self.assertLessEqual(row["peak_bytes"], told["budget_bytes"])
        self.assertEqual(self.planc("check", "small.plan", "--budget", told["budget_bytes"]).returncode, 0)
        checked = self.planc("check", "small.plan", "--graph", "small.yaml")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        # What the table says the plan takes is what planc says of it.
        simulated = json.loads(self.planc("simulate", "small.plan", "--json").stdout)
        self.assertEqual(simulated["iteration_ns"] if "iteration_ns" in simulated else simulated["period_ns"],
                         taken["iteration_ns"])

    def test_outputs_are_put_in_their_places_together(self):
        """As planc(1) has it, INPUTS AND OUTPUTS: links stay, permissions too, and a pipe is written to."""
        asked = "torch", f"{SMALL}:step", "--effort", "0", "-o", "link.plan", "--graph"
        for name in ("far.plan", "old.yaml"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write("precious")
            os.chmod(file.name, 0o640)
        os.symlink("far.plan", os.path.join(self.folder, "link.plan"))
        before = self.left()
        for more in (("old.yaml", "--budget", "1%"), ("nowhere/new.yaml",), (".",)):
            done = self.planc(*asked, *more)
            self.assertEqual((done.returncode, done.stdout), (1 if len(more) > 1 else 5, ""), done.stderr)
            self.assertEqual(self.left(), before, more)
            for name in ("far.plan", "old.yaml"):
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "precious")
        done = self.planc(*asked, "old.yaml")
        self.assertEqual((done.returncode, self.left()), (0, before), done.stderr)
        self.assertEqual(os.readlink(os.path.join(self.folder, "link.plan")), "far.plan")
        self.assertEqual({os.stat(os.path.join(self.folder, name)).st_mode & 0o777 for name in ("far.plan", "old.yaml")}, {0o640})
        self.assertEqual(self.planc("check", "far.plan", "--graph", "old.yaml").returncode, 0)
        pipe, read = os.path.join(self.folder, "pipe"), []
        os.mkfifo(pipe)
        for options in ((), ("--batches", "2,4,8", "--example", "example_of")):
            reader = threading.Thread(target=lambda: read.append(Path(pipe).read_bytes()), daemon=True)
            reader.start()
            done = self.planc(*(asked if not options else asked[:2] + asked[-1:]), "pipe", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            reader.join(10)
            self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
            self.assertTrue(read[-1].startswith(b"# Written by planc_torch"), read)

    def test_a_step_that_goes_to_another_folder_has_its_plan_here(self):
        script = os.path.join(self.folder, "goes.py")
        os.mkdir(os.path.join(self.folder, "other"))
        with open(SMALL, encoding="utf-8") as file, open(script, "w", encoding="utf-8") as written:
            written.write(f"import os\nos.chdir({os.path.join(self.folder, 'other')!r})\n{file.read()}")
        done = self.planc("torch", "goes.py:step", "--effort", "0", "--graph", "goes.yaml")
        self.assertEqual((done.returncode, self.left()), (0, ["goes.plan", "goes.py", "goes.yaml", "other"]), done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.folder, "other")), [])

    def test_the_table_can_be_had_again_of_the_graph(self):
        asked = "torch", f"{SMALL}:step", "--budget", "80%", "--graph", "small.yaml"
        told, done = json.loads(self.planc(*asked, "--json").stdout), self.planc(*asked)
        words = shlex.split(done.stdout.splitlines()[-1].removesuffix(" compares them again"))
        self.assertEqual(words[0], "planc")
        self.assertEqual(words[words.index("--reserved") + 1], str(told["reserved_bytes"] + told["outside_bytes"]))
        rows = {row["policy"]: row for row in json.loads(self.planc(*words[1:], "--json").stdout)["rows"]}
        for row in told["policies"]:
            self.assertEqual(row.pop("micro_batches"), 1)
            self.assertEqual({key: rows[row["policy"]][key] for key in row}, row)
        self.assertNotIn("compares them again", self.planc(*asked[:-2]).stdout)

    def test_the_share_that_is_said_to_do_does(self):
        for step in (f"{SMALL}:step", os.path.join(EXAMPLES, "unet.py:step")):
            refused = self.planc("torch", step, "--budget", "1%")
            self.assertEqual(refused.returncode, 1, refused.stderr)
            share = re.search(r"is [0-9.]+ \w+, (\d+) % of what the step takes as it is", refused.stderr)[1]
            done = self.planc("torch", step, "--budget", f"{share}%")
            self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipIf(torch.cuda.is_available(), "skipped: here is a GPU")
    def test_a_step_for_a_gpu_that_is_not_there_is_told_how_to_be_recorded(self):
        with open(os.path.join(self.folder, "gpu.py"), "w", encoding="utf-8") as file:
            file.write("import torch\n\nmodel = torch.nn.Linear(4, 4).cuda()\n")
        done = self.planc("torch", "gpu.py:step")
        self.assertEqual((done.returncode, done.stdout, self.left()), (3, "", ["gpu.py"]), done.stderr)
        self.assertIn("gpu.py:3: gpu.py raised", done.stderr)
        self.assertIn("; --fake records a step without a GPU\n", done.stderr)
        done = self.planc("torch", f"{SMALL}:step", "--on", "cuda")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("PyTorch sees no GPU; --fake records the step without one", done.stderr)

    def test_a_changed_step_is_told_with_the_line_that_calls_otherwise(self):
        self.assertEqual(self.planc("torch", f"{SMALL}:step", "--budget", "80%").returncode, 0)
        with open(SMALL, encoding="utf-8") as file:
            text = file.read()
        alike = {"lr=0.1": "lr=0.2", "runs = []": "runs = []\n# which nobody reads"}
        others = {"torch.nn.ReLU()": ("torch.nn.Tanh()", r"small.py:17: call \d+ is aten.tanh\(f32\[16,64\]\), and aten.relu"),
                  "64, 8)": ("64, 9)", r"small.py:17: call \d+ is aten.addmm\(f32\[9\], .* and aten.addmm\(f32\[8\]"),
                  ", momentum=0.9": ("", r"small.py:19: call \d+ is aten.add_.Tensor\("),
                  "    optimizer.step()\n": ("", r"small.py:\d+: the step ends where the plan has call \d+, aten\."),
                  "return loss.detach()": ("return (loss * 2).detach()", r"small.py:20: the step goes on with aten.mul.Tensor"),
                  "return loss.detach()\n": ("return\n", r"small.py:\d+: the step leaves other tensors")}
        changed = os.path.join(self.folder, "small.py")
        for old, new in [*alike.items(), *others.items()]:
            new, sentence = (new, None) if old in alike else new
            with self.subTest(old):
                self.assertIn(old, text)
                with open(changed, "w", encoding="utf-8") as file:
                    file.write(text.replace(old, new, 1))
                done = self.planc("torch", f"{changed}:step", "--check", "small.plan")
                self.assertEqual(done.returncode, 4 if sentence else 0, done.stdout + done.stderr)
                if sentence:
                    self.assertRegex(done.stderr, sentence)
                    self.assertTrue(done.stderr.endswith("small.plan is not of this step any more\n"))
                    self.assertEqual((done.stderr.count("\n"), done.stdout), (1, ""))
                else:
                    self.assertRegex(done.stdout, r"^small.plan: of this step, \d+ calls\n$")
                self.assertEqual(self.left(), ["small.plan", "small.py"])

    def test_ops_are_named_with_the_users_line(self):
        done = self.planc("torch", f"{SMALL}:step", "--budget", "80%", "--graph", "small.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        explained = self.planc("explain", "small.plan", "--top", "1000").stdout
        model, update = (f"small.py:{self.line_of(text)}" for text in ("model(x), y)", "optimizer.step()"))
        self.assertRegex(explained, rf"[1-9].* to aten\.add_\.Tensor\.\d+ \({update}\)")
        self.assertRegex(explained, r"peak: .* live at op \S+ \(small\.py:\d+(, backward)?\); largest:")
        self.assertRegex(explained, r"  [0-9.]+ K?i?B  \S+(:mm|\.grad)\S* \(small\.py:\d+(, backward)?\)\n")
        self.assertNotRegex(explained, r"  0\.weight \(small")  # which no op of an iteration makes
        if hasattr(torch.autograd, "_get_sequence_nr"):
            self.assertRegex(explained, rf"0\.aten\.mm\.\d+ \({model}, backward\)")
        self.assertNotIn("small.py", self.planc("explain", "small.plan", "--json").stdout)
        # The plan's own reserved bytes count, not those of the device's description, beside which no plan would fit.
        self.assertRegex(explained, "more: no plan in this order and such rounds is faster than")
        refused = self.planc("plan", "small.yaml", "--budget", "1M", "--policy", "window", "-o", "x.plan")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"op \S+ \(small\.py:\d+(, backward)?\) needs \d+ bytes")
        bound = self.planc("bound", "small.yaml").stdout
        self.assertRegex(bound, r"which op \S+ \(small\.py:\d+(, backward)?\) takes")

    @staticmethod
    def line_of(text):
        with open(SMALL, encoding="utf-8") as file:
            return next(number for number, line in enumerate(file, 1) if text in line)

    def test_gradients_that_are_zeroed_in_place_are_told(self):
        for step, line in (("zeroes_in_place", "optimizer.zero_grad(set_to_none=False)"),
                           ("zeroes_those_of_a_module", "model.zero_grad(set_to_none=False)"), ("step", None)):
            done = self.planc("torch", f"{SMALL}:{step}")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            told = re.search(r"small.py:(\d+): gradients are zeroed in place, .*; zero_grad\(set_to_none=True\) frees them\n", done.stdout)
            self.assertEqual(told and int(told[1]), line and self.line_of(line))

    def test_a_check_makes_no_plan(self):
        with open(os.path.join(self.folder, "x.plan"), "w", encoding="utf-8") as file:
            file.write("{}\n")
        for code, sentence, *more in ((3, "x.plan is not of a recorded step",), (2, "has no use for --budget", "--budget", "1G"),
                                      (2, "has no use for --output", "-o", "y.plan"), (2, "has no use for --json", "--json"),
                                      (2, "has no use for --device", "--device", "h100")):
            with self.subTest(more):
                done = self.planc("torch", f"{SMALL}:step", "--check", "x.plan", *more)
                self.assertEqual((done.returncode, done.stdout, self.left()), (code, "", ["x.plan"]), done.stderr)
                self.assertIn(sentence, done.stderr)

    def test_without_a_budget_the_step_runs_as_it_is(self):
        done = self.planc("torch", f"{SMALL}:step", "--effort", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the step fits as it is, and its plan changes nothing: small.plan", done.stdout)

    def test_the_table_says_what_its_figures_are_of(self):
        done = self.planc("torch", f"{SMALL}:step", "--budget", "80%")
        self.assertEqual(done.returncode, 0, done.stderr)
        simulated = json.loads(self.planc("simulate", "small.plan", "--json").stdout)
        self.assertRegex(done.stdout, r"budget [0-9.]+ KiB \(80 % of the [0-9.]+ KiB that the step takes itself\), of which")
        self.assertRegex(done.stdout, r"policy +peak +step +slower +to the host +and back +run again for\n")
        self.assertIn(f"count from ideal, the calls alone: {simulated['ideal_ns'] / 1e6:.3f} ms\n", done.stdout)
        for command in (("explain", "small.plan"), ("compare", "small.yaml", "--policies", "none", "--budget", "8G")):
            self.planc("torch", f"{SMALL}:step", "--budget", "80%", "--graph", "small.yaml")
            told = self.planc(*command)
            self.assertIn("note: percentages are over ideal, in which no op waits for its launch; those of planc torch over the step "
                          "as it is", told.stderr)
            self.assertNotIn("percentages", self.planc(*command, "--json").stderr)
        told = self.planc("compare", os.path.join(ROOT, "graphs/lenet-digits.yaml"), "--policies", "none", "--budget", "8G")
        self.assertNotIn("percentages", told.stderr)
        if planc_torch.fake.is_possible():
            with open(os.path.join(self.folder, "gpu.py"), "w", encoding="utf-8") as file:
                file.write("import torch\nmodel = torch.nn.Linear(64, 64).cuda()\n"
                           "def step(x):\n    model(x).sum().backward()\n    model.zero_grad()\n"
                           "def example():\n    return torch.randn(64, 64, device='cuda')\n")
            done = self.planc("torch", "gpu.py:step", "--fake", "--budget", "100%")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"\(100 % of the \S+ KiB that the step takes itself beside the libraries'\), of which \S+ MiB are")
            self.assertIn("no room is planned for what calls allocate and free themselves: nothing is allocated with --fake\n",
                          done.stdout)

    def test_the_winner_is_told_in_the_words_that_users_know(self):
        swaps, again = "the plan swaps 1.00 KiB out and 1.00 KiB in", "computes again for 0.001 ms"
        accumulates = "which is gradient accumulation with"
        for (number, moved, repeated), words in {
                (1, 0, 0): "the step fits as it is, and its plan changes nothing",
                (1, 0, 1000): f"in each step the plan {again}, which is checkpointing",
                (1, 1024, 0): f"in each step {swaps}",
                (1, 1024, 1000): f"in each step {swaps} and {again}",
                (4, 0, 0): "the step fits in 4 micro-batches: gradient accumulation, and nothing else",
                (4, 0, 1000): f"in each step, of 4 micro-batches, the plan {again}, {accumulates} checkpointing",
                (4, 1024, 0): f"in each step, of 4 micro-batches, {swaps}, {accumulates} swaps",
                (4, 1024, 1000): f"in each step, of 4 micro-batches, {swaps} and {again}, {accumulates} swaps and checkpointing"}.items():
            row = {"micro_batches": number, "d2h_bytes": moved, "h2d_bytes": moved, "recompute_ns": repeated}
            self.assertEqual(planc_torch.__main__.verdict(row), words)

    def test_an_example_trains_with_a_plan_as_without(self):
        path = os.path.join(EXAMPLES, "unet.py")  # the other one is README's
        done = self.planc("torch", f"{path}:step", "--budget", "60%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "in each step the plan (swaps|computes again)")
        told = [subprocess.run([warm(), "-B", path, *plan], cwd=self.folder, capture_output=True, text=True,
                               check=True, env={**ENVIRONMENT, "PYTHONPATH": PACKAGE}) for plan in ((), ("unet.plan",))]
        self.assertEqual(told[0].stdout, told[1].stdout)
        self.assertNotIn("PlanNotFollowed", told[1].stderr)


if __name__ == "__main__":
    unittest.main()
