#!/usr/bin/env python3
"""Tests of `planc torch --batches`: a graph whose sizes are laws in the batch has the tensors that the step has when it is recorded
at any batch, plans at any, and where there is no such law a sentence says so."""

import json
import os
import subprocess
import tempfile
import unittest
from types import SimpleNamespace

from torchfollow import BUILD, ROOT, planc, planc_torch, torch  # first: it finds a Python with PyTorch

from planc_torch.__main__ import arguments_of
from pythons import warm
from planc_torch.batches import BatchGraph
from torch import nn
from torch.nn import functional
from sampling import sampled
from torch_refusals import CannotExport
from torchsteps import Gpt, UNet

BATCHES, OTHERS = (3, 5, 10), (4, 12)
HEAD = "import torch\nmodel = torch.nn.Linear(8, 8)\n"
STEP = "def step(x):\n    model.zero_grad()\n    model(x).square().mean().backward()\n"


def trained(model, loss_of, example, optimizer=lambda p: torch.optim.AdamW(p, lr=1e-3), passes=1):
    """A maker of a step; `example(n)` gives the arguments of n samples."""
    def make():
        torch.manual_seed(0)
        made = model()
        update, average = optimizer(made.parameters()), torch.optim.swa_utils.AveragedModel(made)

        def step(*batch):
            update.zero_grad(set_to_none=passes == 1)
            for _ in range(passes):
                loss_of(made, *batch).backward()
            nn.utils.clip_grad_norm_(made.parameters(), 1.0)
            update.step()
            average.update_parameters(made)

        return SimpleNamespace(step=step, example=example)
    return make


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Dropout(0.1), nn.Linear(8 * 64, 10))


def classes(model, x, y):
    return functional.cross_entropy(model(x).flatten(0, -2), y.flatten())


def squares(model, x, y):
    return functional.mse_loss(model(x), y)


MADE = {
    "cnn": trained(convolutional, classes, lambda n: (torch.randn(n, 3, 16, 16), torch.randint(0, 10, (n,)))),
    "gpt": trained(Gpt, classes, lambda n: (torch.randint(0, 96, (n, 24)), torch.randint(0, 96, (n, 24)))),
    "unet": trained(UNet, squares, lambda n: (torch.randn(n, 3, 16, 16), torch.randn(n, 1, 16, 16))),
    "micro": trained(lambda: nn.Linear(16, 4), squares, lambda n: (torch.randn(n, 16), torch.randn(n, 4)), passes=3),
    "sgd": trained(lambda: nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)), squares,
                   lambda n: (torch.randn(n, 16), torch.randn(n, 4)), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
}


def graph_at(made, batch, name="step"):
    return planc_torch.StepGraph(planc_torch.record(made.step, arguments_of(lambda: made.example(batch)), "cpu"), name)


def bytes_at(graph, batch):
    """Of the tensors of a graph of all batches but the arguments."""
    tensors = graph.recording.storages
    return sorted(fixed + per_sample * batch for kind, (fixed, per_sample) in ((t.kind, t.bytes) for t in tensors) if kind != "input")


class BatchesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_it_has_the_steps_tensors_at_each_batch_and_plans_there(self):
        for number, (name, make) in enumerate(MADE.items()):
            with self.subTest(name):
                made = make()
                graph = BatchGraph([graph_at(made, batch) for batch in BATCHES], BATCHES)
                path = os.path.join(self.folder, "step.yaml")
                graph.write(path)
                for batch in sampled(BATCHES + OTHERS, 3, number):
                    at = graph_at(made, batch)
                    self.assertEqual(len(at.calls), len(graph.calls))
                    self.assertEqual(bytes_at(graph, batch), sorted(at.sizes()))
                    at.write(os.path.join(self.folder, "one.yaml"))
                    taken, one = (self.peak(file, batch) for file in ("step.yaml", "one.yaml"))
                    given = at.outside_bytes + 4096  # and where tensors begin
                    self.assertTrue(one <= taken <= one + given, (batch, one, taken, given))

    def peak(self, file, batch):
        ours = ("--batch", batch) if file == "step.yaml" else ()
        done = planc("plan", os.path.join(self.folder, file), *ours, "--device", os.path.join(ROOT, "profiles", "h100.json"),
                     "--policy", "none", "--json", "-o", os.path.join(self.folder, "x.plan"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout.split('"peak_bytes":')[1].split(",")[0])

    def test_it_is_planned_in_rounds(self):
        """Whatever a step returns, makes of its results behind the update, and does with gradients."""
        def stepping(returns, set_to_none, at_end=False):
            torch.manual_seed(0)
            model, extra = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 10)), nn.Linear(16, 10)
            update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

            def step(x, y):
                if not at_end:
                    update.zero_grad(set_to_none=set_to_none)
                    extra.zero_grad(set_to_none=set_to_none)
                made = model(x) + extra(x)
                loss = functional.cross_entropy(made, y)
                loss.backward()
                update.step()
                if at_end:
                    update.zero_grad(set_to_none=set_to_none)
                    extra.zero_grad(set_to_none=set_to_none)
                return returns(made, loss, y)

            return SimpleNamespace(step=step, example=lambda n: (torch.randn(n, 16), torch.randint(0, 10, (n,))))

        returned = {"nothing": lambda made, loss, y: None, "the loss": lambda made, loss, y: loss,
                    "a number": lambda made, loss, y: loss.item(), "a copy": lambda made, loss, y: loss.detach().clone(),
                    "all": lambda made, loss, y: (made, loss),
                    "a share": lambda made, loss, y: (made.argmax(1) == y).float().mean()}
        zeroing = ((False,), (True,), (True, True))
        for number, (name, returns) in enumerate(returned.items()):
            for zeroed in sampled(zeroing, len(zeroing), number):
                with self.subTest(name, zeroed=zeroed):
                    made = stepping(returns, *zeroed)
                    BatchGraph([graph_at(made, batch) for batch in BATCHES], BATCHES).write(os.path.join(self.folder, "step.yaml"))
                    done = planc("plan", os.path.join(self.folder, "step.yaml"), "--batch", 12, "--sub-batch", 4, "--policy", "none",
                                 "--device", os.path.join(ROOT, "profiles", "h100.json"), "-o", os.path.join(self.folder, "x.plan"))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn("3 rounds of 4", done.stdout)

    def test_its_plans_are_not_followed_and_say_what_to_record(self):
        made, path = MADE["sgd"](), os.path.join(self.folder, "x.plan")
        BatchGraph([graph_at(made, batch) for batch in BATCHES], BATCHES).write(os.path.join(self.folder, "step.yaml"))
        done = planc("plan", os.path.join(self.folder, "step.yaml"), "--batch", 12, "--policy", "none",
                     "--device", os.path.join(ROOT, "profiles", "h100.json"), "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with self.assertRaisesRegex(ValueError, "x.plan is of a step recorded at several batch sizes.* records the step at batch 12 "
                                    "without --batches, and makes"):
            planc_torch.follow(path, made.step)

    def test_gradients_are_clipped_once_behind_all_rounds(self):
        def make():
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 10))
            update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

            def step(x):
                update.zero_grad(set_to_none=True)
                model(x).square().mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                update.step()

            return SimpleNamespace(step=step, example=lambda n: (torch.randn(n, 16),))

        made, path = make(), os.path.join(self.folder, "x.plan")
        BatchGraph([graph_at(made, batch) for batch in BATCHES], BATCHES).write(os.path.join(self.folder, "step.yaml"))
        done = planc("plan", os.path.join(self.folder, "step.yaml"), "--batch", 12, "--sub-batch", 4, "--policy", "none",
                     "--device", os.path.join(ROOT, "profiles", "h100.json"), "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.assertIn("3 rounds of 4", done.stdout)
        with self.assertRaisesRegex(ValueError, "planc torch records the step at batch 12 with --micro-batches 3, and makes"):
            planc_torch.follow(path, made.step)
        phases = {row["type"]: row["phase"] for row in rows if isinstance(row.get("op"), str)}
        of_norms = {phase for name, phase in phases.items() if "norm" in name or name == "aten.clamp"}
        self.assertEqual(of_norms, {"optimizer"}, "runs once for all rounds")
        self.assertEqual(phases["aten.gelu_backward"], "backward")

    def test_a_graph_of_one_batch_is_planned_at_no_other(self):
        """What is recorded does not tell how many samples there are."""
        made = MADE["sgd"]()
        graph_at(made, 8).write(os.path.join(self.folder, "one.yaml"))
        of_all = BatchGraph([graph_at(made, batch) for batch in BATCHES], BATCHES)
        of_all.write(os.path.join(self.folder, "all.yaml"))
        common = "--device", os.path.join(ROOT, "profiles", "h100.json"), "--policies", "none", "--no-least", "--json"
        for given, one, other in ((("--batch", 8), 2, 0), (("--max-batch",), 2, 0), ((), 0, 0)):
            for name, expected in (("one", one), ("all", other)):
                done = planc("compare", os.path.join(self.folder, f"{name}.yaml"), *given, *common)
                self.assertEqual(done.returncode, expected, done.stderr)
                if expected:
                    self.assertIn(f"{given[0]}: graph step is of one batch size, as no size in it depends on N; planc torch "
                                  "--batches records", done.stderr)
                else:
                    self.assertEqual(json.loads(done.stdout)["batch"], 8 if given[:1] == ("--batch",) else
                                     BATCHES[0] if name == "all" else None)

    def test_what_has_no_law_is_refused(self):
        def pairs(model, x):
            y = model(x)
            return (y @ y.t()).square().mean()

        def halves(model, x):
            return sum(model(part).square().mean() for part in x.chunk(2))

        def larger(model, x):
            return model(x).square().mean() * (2 if len(x) > 4 else 1) + (model(x).sum() if len(x) > 4 else 0)

        def always(model, x):
            return model(x).square().mean()

        for loss, batches, told in ((pairs, BATCHES, "what aten.mm makes is .* not a fixed part plus one per sample"),
                                    (halves, (4, 8, 14), "a part of each sample's; let the batch size be that of a micro-batch"),
                                    (larger, BATCHES, "the calls depend on the batch size"),
                                    (always, BATCHES, "no tensor of the step is larger at batch 10 than at 3")):
            made = trained(lambda: nn.Linear(8, 8), loss, lambda n: torch.randn(n if loss is not always else 4, 8))()
            with self.assertRaisesRegex(CannotExport, told):
                BatchGraph([graph_at(made, batch) for batch in batches], batches)

    def planc_torch(self, text, *options):
        with open(os.path.join(self.folder, "train.py"), "w", encoding="utf-8") as file:
            file.write(text)
        environment = {**os.environ, "PLANC_PYTHON": warm(), "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
        return subprocess.run([os.path.join(BUILD, "planc"), "torch", "train.py:step", *options], capture_output=True, text=True,
                              check=False, cwd=self.folder, env=environment)

    def test_the_command(self):
        text = HEAD + STEP + "def example(n):\n    return torch.randn(n, 8)\n"
        done = self.planc_torch(text, "--batches", "8,16,32", "--graph", "train.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"calls, recorded at batches 8,16,32; sizes are laws in the batch: train.yaml")
        self.assertEqual(sorted(os.listdir(self.folder)), ["train.py", "train.yaml"])
        rows = planc("compare", os.path.join(self.folder, "train.yaml"), "--device", os.path.join(ROOT, "profiles", "h100.json"),
                     "--policies", "none", "--budget", "1G", "--max-batch", "--json")
        self.assertEqual(rows.returncode, 0, rows.stderr)
        self.assertGreater(int(rows.stdout.split('"max_batch":{"batch":')[1].split(",")[0]), 100000)

    def test_bad_words(self):
        text = HEAD + STEP + "def example():\n    return torch.randn(4, 8)\n"
        for options, code, told in ((("--batches", "8,16,32"), 2, "name its file with --graph"),
                                    (("--batches", "8,16", "--graph", "x.yaml"), 2, "three ascending batch sizes"),
                                    (("--batches", "8,8,9", "--graph", "x.yaml"), 2, "three ascending batch sizes"),
                                    (("--batches", "1,2,3", "--graph", "x.yaml", "-o", "x.plan"), 2, "no use for --output"),
                                    (("--batches", "1,2,3", "--graph", "x.yaml", "--budget", "1G"), 2, "no use for --budget"),
                                    (("--batches", "1,2,3", "--check", "x.plan"), 2, "no use for --batches"),
                                    (("--batches", "1,2,3", "--graph", "x.yaml"), 3, "is given a batch size")):
            done = self.planc_torch(text, *options)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(told, done.stderr)
            self.assertEqual(os.listdir(self.folder), ["train.py"])


if __name__ == "__main__":
    unittest.main()
