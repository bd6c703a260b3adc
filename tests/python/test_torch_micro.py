#!/usr/bin/env python3
"""Tests of planc_torch.micro_batches() and of `planc torch --micro-batches`: how a batch is divided, that a step is recorded and
followed in its micro-batches and computes what it does in these without a plan, and which number is taken."""

import contextlib
import copy
import io
import json
import os
import re
import tempfile
import threading
import unittest
from collections import UserDict, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

from torchfollow import BUILD, ROOT, FollowTest, Recorded, Run, over, planc, planc_torch, torch  # first: it finds a Python with PyTorch

import planc_torch.__main__
import planc_torch.fake
from planc_torch import micro_batches
from planc_torch.micro import divided
from planc_torch.plan_file import PlanFile
from torch import nn
from torch.nn import functional
from torchsteps import Gpt

Pair = namedtuple("Pair", "x, y")


@dataclass(frozen=True)
class Sample:
    x: torch.Tensor
    y: int


def sizes(number, *batch):
    with divided(number):
        return [len(parts[0]) for _, *parts in micro_batches(*batch)]


class MicroBatchesTest(unittest.TestCase):
    def test_there_is_one_by_default_which_is_what_was_given(self):
        x, tree = torch.randn(6, 2), {"y": torch.randn(6), "n": 3}
        (share, *parts), = micro_batches(x, tree)
        self.assertEqual(share, 1.0)
        self.assertIs(parts[0], x)
        self.assertIs(parts[1], tree)

    def test_they_differ_by_one_sample_at_most_and_are_views(self):
        x = torch.randn(11, 3)
        for number in (1, 2, 3, 5, 11):
            with divided(number):
                shares, parts = zip(*micro_batches(x))
            self.assertTrue(all(map(torch.equal, parts, torch.tensor_split(x, number))))
            self.assertEqual([share * 11 for share in shares], [len(part) for part in parts])
            self.assertTrue(all(x.data_ptr() <= part.data_ptr() < x.data_ptr() + 132 for part in parts))

    def test_fewer_samples_are_so_many_micro_batches(self):
        self.assertEqual(sizes(4, torch.randn(3)), [1, 1, 1])
        self.assertEqual(sizes(4, torch.randn(0, 5)), [0])

    def test_trees_are_divided_as_what_they_are(self):
        x, number = torch.arange(4), torch.tensor(7.0)
        batch = [Pair(x, (x, None)), UserDict({"x": x, "name": "a"}), Sample(x, 2), {"deep": [{"x": x}]}, number, 3.5]
        before = copy.deepcopy(batch)
        with divided(2):
            _, (second, *rest) = list(micro_batches(*batch))[0], list(micro_batches(*batch))[1]
        self.assertEqual(second, 0.5)
        pair, mapping, sample, deep, same, decimal = rest
        half = torch.tensor([2, 3])
        for part in (pair.x, pair.y[0], mapping["x"], sample.x, deep["deep"][0]["x"]):
            self.assertTrue(torch.equal(part, half))
        self.assertEqual((type(pair), type(mapping), type(sample)), (Pair, UserDict, Sample))
        self.assertEqual((pair.y[1], mapping["name"], sample.y, decimal), (None, "a", 2, 3.5))
        self.assertIs(same, number)
        self.assertEqual(repr(batch), repr(before))

    def test_gradients_add_up_to_those_of_the_mean_over_the_batch(self):
        torch.manual_seed(0)
        x, w = torch.randn(7, 3, dtype=torch.float64), torch.randn(3, dtype=torch.float64, requires_grad=True)
        (x @ w).square().mean().backward()
        whole, w.grad = w.grad, None
        with divided(3):
            for share, part in micro_batches(x):
                ((part @ w).square().mean() * share).backward()
        self.assertTrue(torch.allclose(w.grad, whole))

    def test_each_use_divides_anew_however_the_one_before_ended(self):
        x = torch.randn(8)
        with divided(2):
            for _ in micro_batches(x):
                break
            with self.assertRaises(ZeroDivisionError):
                for share, _ in micro_batches(x):
                    share / 0
            self.assertEqual([[len(inner) for _, inner in micro_batches(part)] for _, part in micro_batches(x)], [[2, 2], [2, 2]])
            with divided(4):
                self.assertEqual(len(list(micro_batches(x))), 4)
            self.assertEqual(len(list(micro_batches(x))), 2)
            kept = micro_batches(x)
        self.assertEqual(len(list(kept)), 2, "those of the time when it was called")
        with contextlib.suppress(KeyError), divided(2):
            raise KeyError
        self.assertEqual(len(list(micro_batches(x))), 1)

    def test_the_number_is_of_a_thread(self):
        seen = []
        with divided(2):
            thread = threading.Thread(target=lambda: seen.extend((sizes(3, torch.randn(6)), len(list(micro_batches(torch.randn(6)))))))
            thread.start()
            thread.join()
            self.assertEqual(len(list(micro_batches(torch.randn(6)))), 2)
        self.assertEqual(seen, [[2, 2, 2], 1])

    def test_what_cannot_be_divided_is_refused_in_one_micro_batch_as_well(self):
        wrong = ((ValueError, "no tensor that has samples", ()), (ValueError, "no tensor that has samples", (torch.tensor(1.0), 3)),
                 (ValueError, "tensors of 3 and of 4 samples", (torch.randn(4), {"y": torch.randn(3, 4)})),
                 (TypeError, "is given a set", (torch.randn(4), {1})), (TypeError, "is given a type", (torch.randn(4), Sample)))
        for number in (1, 2):
            for error, sentence, batch in wrong:
                with self.subTest(sentence, number=number), divided(number), self.assertRaisesRegex(error, sentence):
                    micro_batches(*batch)


def trained(model, example, loss_of):
    """A step that clips, with AdamW."""
    torch.manual_seed(0)
    model = model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(batch):
        optimizer.zero_grad(set_to_none=True)
        total = 0
        for share, part in micro_batches(batch):
            loss = loss_of(model, part) * share
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return SimpleNamespace(model=model, optimizer=optimizer, step=step, example=lambda: (example(),))


def cnn():
    return trained(lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(),
                                         nn.Dropout(0.1), nn.Linear(8 * 64, 10)),
                   lambda: (torch.randn(8, 3, 8, 8), torch.randint(0, 10, (8,))),
                   lambda model, part: functional.cross_entropy(model(part[0]), part[1]))


def gpt():
    return trained(lambda: Gpt(layers=1), lambda: UserDict({"ids": torch.randint(0, 96, (5, 24)), "scale": 0.5}),
                   lambda model, part: functional.cross_entropy(
                       model(part["ids"])[:, :-1].flatten(0, 1), part["ids"][:, 1:].flatten()) * part["scale"])


class FollowedTest(FollowTest):
    def recorded_in(self, number, make):
        return Recorded(make, tempfile.mkdtemp(dir=self.folder.name), micro_batches=number)

    def test_a_followed_step_computes_what_it_does_in_its_micro_batches_within_its_plan(self):
        """With as many samples in each and not, and in steps that leave the plan."""
        def between(run, i, args):
            if i == 2:  # a last batch
                args = ([value[:3] for value in args[0]] if isinstance(args[0], tuple) else
                        UserDict({**args[0], "ids": args[0]["ids"][:3]}),)
            return args

        for make, number in ((cnn, 2), (cnn, 3), (gpt, 4)):
            with self.subTest(make.__name__, number=number):
                recorded = self.recorded_in(number, make)
                path, summary = recorded.planned("auto", recorded.plain_bytes * 7 // 10)
                self.assertEqual(PlanFile(path).micro_batches, number)
                ours = Run(make, path, iterations=3, metered=True)
                self.assertEqual((over(recorded, ours, summary["peak_bytes"]), ours.told), (0, []))
                self.assertGreater(ours.counts["out_bytes"] + ours.counts["repeats"], 0)
                with divided(number):
                    plain = Run(make, iterations=3)
                self.assert_same(ours, plain, "as planned")
                ours = Run(make, path, between, iterations=4)
                self.assertEqual(len(ours.told), 1, ours.told)
                with divided(number):
                    plain = Run(make, None, between, iterations=4)
                self.assert_same(ours, plain, "with a smaller batch")

    def test_it_runs_in_them_when_it_is_closed_and_within_another(self):
        seen = []

        def step(x):
            seen.append(len(list(micro_batches(x))))
            (model(x).sum()).backward()

        model, made = nn.Linear(4, 4), SimpleNamespace(step=step, example=lambda: torch.randn(6, 4))
        one, three = (planc_torch.follow(self.recorded_in(number, lambda: made).planned("none", "1T")[0], step) for number in (1, 3))
        seen.clear()
        with divided(2):
            one(torch.randn(6, 4))
            three(torch.randn(6, 4))
            three.close()
            three(torch.randn(6, 4))
            step(torch.randn(6, 4))
        one.close()
        self.assertEqual(seen, [1, 3, 3, 2])

    def test_a_plan_with_another_value_is_refused(self):
        path = self.recorded_in(2, cnn).planned("none", "1T")[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count('"micro_batches":2'), 1)
        for value in ("0", "-1", "65", "1000", "2.0", '"2"', "true", "null", "[2]"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace('"micro_batches":2', f'"micro_batches":{value}'))
            with self.assertRaisesRegex(ValueError, "is not of a recorded step"):
                planc_torch.follow(path, cnn().step)


TRAIN = """
import weakref
import torch
import planc_torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

def example():
    return {"x": torch.randn(256, 16), "y": torch.randint(0, 4, (256,))}

def step(batch):
    optimizer.zero_grad(set_to_none=True)
    total = 0
    for share, part in planc_torch.micro_batches(batch):
        loss = torch.nn.functional.cross_entropy(model(part["x"]), part["y"]) * share
        loss.backward()
        total += loss.detach()
    optimizer.step()
    return total

def whole(batch):
    optimizer.zero_grad(set_to_none=True)
    model(batch["x"]).square().mean().backward()
    optimizer.step()

def within(batch):
    for share, part in planc_torch.micro_batches(batch):
        for of_part, x, y in planc_torch.micro_batches(part["x"], part["y"]):
            (torch.nn.functional.cross_entropy(model(x), y) * share * of_part).backward()

def wrong(batch):
    for share, x, y in planc_torch.micro_batches(batch["x"], batch["y"][1:]):
        model(x).square().mean().backward()

def in_sixty_fours(batch):
    for share, part in planc_torch.micro_batches(batch):
        (model(part["x"].view(64, -1, 16)).square().mean() * share).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

runs, alive = [], []

def changes(batch):
    runs.append(batch)
    number = 0
    for share, part in planc_torch.micro_batches(batch):
        number += 1
        loss = model(part["x"]).square().mean() * share
        (loss * 2 if number > 1 and len(runs) % 2 else loss).backward()
    optimizer.zero_grad(set_to_none=True)

def small(batch):
    for share, part in planc_torch.micro_batches(batch):
        loss = model(part["x"]).square().mean() * share
        if any(kept() is not None for kept in alive):
            raise RuntimeError("what did not fit is still there")
        if len(part["x"]) > 128:
            alive.append(weakref.ref(loss))
            raise MemoryError("too much\\nof it")
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file, self.plan, self.device = (os.path.join(self.folder, name) for name in ("train.py", "x.plan", "device.json"))
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(TRAIN)
        with open(os.path.join(ROOT, "profiles", "v100-32g.json"), encoding="utf-8") as file:
            described = json.load(file)
        described["device"].update(reserved_bytes=0, launch_ns=0)
        described["compute"]["kernel_ns"] = 1  # so that small calls are no longer than their work
        with open(self.device, "w", encoding="utf-8") as file:
            json.dump(described, file)

    def write_with(self, samples):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(TRAIN.replace("256", str(samples)))

    def run_torch(self, *options, step="step", makes=True, effort="0"):
        """What `planc torch` gives, prints and says."""
        line = [f"{self.file}:{step}", "--planc", os.path.join(BUILD, "planc"), *options]
        line += ["--device", self.device, "--output", self.plan, "--effort", effort] if makes else []
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = planc_torch.__main__.run(line)
        return code, out.getvalue(), err.getvalue()

    def test_the_winner_is_accumulation_alone_where_that_fits(self):
        graph = os.path.join(self.folder, "x.yaml")
        code, out, err = self.run_torch("--micro-batches", "1,2,4", "--budget", "80%", "--graph", graph)
        self.assertEqual(code, 0, err)
        lines = out.splitlines()
        self.assertIn("the step fits in 2 micro-batches: gradient accumulation, and nothing else: " + self.plan, lines)
        header, taken = (next(line for line in lines if line.startswith("policy")), next(line for line in lines if "<- taken" in line))
        self.assertEqual(re.split("  +", header)[0].split(), ["policy"])
        self.assertIn("micro-batches", header)
        self.assertEqual(taken.split()[:2], ["none", "2"])
        self.assertRegex(out, r"\nin 4 micro-batches \d+ calls, [\d.]+ KiB and ")
        for number in (1, 4):
            self.assertRegex(out, rf"\nin {number} micro-batch(es)? no plan is faster than [\d.]+ ms: none was compared\n")
        self.assertIn("\nin 2 micro-batches no plan is faster than that of policy none: no other was compared\n", out)
        self.assertIn("compares them again in 2 micro-batches", lines[-1])
        self.assertEqual(PlanFile(self.plan).micro_batches, 2)
        self.assertEqual(planc("check", self.plan, "--graph", graph).returncode, 0, "the graph is the winner's")
        code, out, err = self.run_torch("--check", self.plan, makes=False)
        self.assertRegex(out, r"x.plan: of this step in 2 micro-batches, \d+ calls\n$", err)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(TRAIN.replace("planc_torch.micro_batches(batch)", "[(1.0, batch)]"))
        code, out, err = self.run_torch("--check", self.plan, makes=False)
        self.assertEqual((code, out), (4, ""))
        self.assertRegex(err, r"train.py:\d+: call \d+ is aten")

    def test_the_fastest_of_all_is_taken_within_one_budget(self):
        code, out, err = self.run_torch("--micro-batches", "2,4", "--budget", "60%", "--json")
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        self.assertEqual([one["micro_batches"] for one in told["recorded"]], [2, 4])
        first, second = told["recorded"]
        same = first.keys() - {"micro_batches", "bound_ns", "compared"}
        self.assertEqual({key: told[key] for key in same}, {key: first[key] for key in same})
        self.assertGreater(first["plain_bytes"], second["plain_bytes"])
        self.assertEqual(told["budget_bytes"], first["plain_bytes"] * 60 // 100)
        rows = [row for row in told["policies"] if row["feasible"]]
        self.assertEqual({row["micro_batches"] for row in rows}, {one["micro_batches"] for one in told["recorded"] if one["compared"]})
        fastest = min(rows, key=lambda row: (row["iteration_ns"], row["micro_batches"]))
        self.assertEqual((told["taken"], told["taken_micro_batches"]), (fastest["policy"], fastest["micro_batches"]))
        self.assertTrue(fastest["d2h_bytes"] or fastest["recompute_ns"], "this budget takes more than accumulation")
        words = planc_torch.__main__.verdict(fastest)
        self.assertRegex(words, "^in each step, of 4 micro-batches, the plan .*, which is gradient accumulation with (swaps|checkpointing)")
        checked = json.loads(planc("check", self.plan, "--budget", told["budget_bytes"], "--json").stdout)
        self.assertTrue(checked["valid"])

    def test_what_is_not_compared_has_no_faster_plan(self):
        """Each number alone within the same budget has no plan that is faster than the one taken, or than its own bound."""
        spared = 0
        for numbers, share in (("1,2,4", "70%"), ("1,2", "45%")):
            code, out, err = self.run_torch("--micro-batches", numbers, "--budget", share, "--json")
            self.assertEqual(code, 0, err)
            told, best = json.loads(out), []
            spared += sum(not one["compared"] for one in told["recorded"])
            for one in told["recorded"]:
                number = one["micro_batches"]
                code, out, err = self.run_torch("--micro-batches", str(number), "--budget", str(told["budget_bytes"]), "--json")
                self.assertEqual(code == 0, one["bound_ns"] is not None, err)
                if code == 0:
                    fastest = min(row["iteration_ns"] for row in json.loads(out)["policies"] if row["feasible"])
                    self.assertGreaterEqual(fastest, one["bound_ns"])
                    best.append((fastest, number))
            taken = [row["iteration_ns"] for row in told["policies"] if (row["policy"], row["micro_batches"]) ==
                     (told["taken"], told["taken_micro_batches"])]
            self.assertEqual((*taken, told["taken_micro_batches"]), min(best))
        self.assertGreater(spared, 1)

    def test_a_number_that_the_step_cannot_run_in_is_left_out(self):
        for step, numbers, why in (("in_sixty_fours", "1,2,8", r"py:\d+: the step in 8 micro-batches raised RuntimeError: shape "),
                                   ("changes", "1,4", r"train.py:\d+: runs of the step differ: "),
                                   ("within", "1,4", r"train.py:within: a batch of 2 samples has no 4 micro-batches; ")):
            with self.subTest(step):
                self.write_with(8 if step == "within" else 256)
                code, out, err = self.run_torch("--micro-batches", numbers, step=step)
                self.assertEqual((code, err), (0, ""))
                number = numbers.rpartition(",")[2]
                self.assertEqual(len(re.findall(rf"^in {number} micro-batches nothing is planned: \S*{why}.*$", out, re.M)), 1, out)
                self.assertEqual(PlanFile(self.plan).micro_batches, 1)
        told = json.loads(self.run_torch("--micro-batches", "1,4", "--json", step="within")[1])
        (left,), (kept,) = told["left_out"], told["recorded"]
        self.assertEqual((kept["micro_batches"], left["micro_batches"]), (1, 4))
        self.assertRegex(left["why"], "train.py:within: a batch of 2 samples has no 4 micro-batches; ")
        os.remove(self.plan)
        self.write_with(256)
        self.refused("the step in 8 micro-batches raised RuntimeError: shape", 3, "--micro-batches", "8,16", step="in_sixty_fours")
        code, out, err = self.run_torch("--micro-batches", "1,2,8", "--budget", "1K", step="in_sixty_fours")
        self.assertEqual((code, out, os.path.exists(self.plan)), (1, "", False))
        self.assertRegex(err, r"(?m)^planc torch: no plan fits 1.00 KiB: .*(\n.*)*^in 8 micro-batches nothing is planned: ")

    def test_nothing_is_left_of_a_number_in_which_the_step_does_not_fit(self):
        code, out, err = self.run_torch("--micro-batches", "1,2", step="small")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"\nin 1 micro-batch nothing is planned: \S*train.py:\d+: the step raised MemoryError: too much of it\n")
        self.assertIn("as it is in 2 micro-batches ", out)
        os.remove(self.plan)
        code, out, err = self.run_torch("--micro-batches", "1,2", "--budget", "60%", step="small")
        self.assertEqual((code, out, os.path.exists(self.plan)), (3, "", False))
        self.assertRegex(err, "^planc torch: --budget 60% is of what the step takes in 1 micro-batch, and in that nothing is planned: ")

    def test_of_equal_ones_that_in_fewer_is_taken(self):
        code, out, err = self.run_torch("--micro-batches", "1,2", "--budget", "1000%", step="step")
        self.assertEqual(code, 0, err)
        self.assertIn("the step fits as it is, and its plan changes nothing", out)
        self.assertEqual(PlanFile(self.plan).micro_batches, 1)

    def test_no_number_has_a_plan(self):
        code, out, err = self.run_torch("--micro-batches", "1,4", "--budget", "5%")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"no plan fits [\d.]+ KiB: the least found for one, by \S+ in 4 micro-batches, is [\d.]+ KiB, (\d+) % of what "
                              "the step takes as it is\n")
        self.assertNotIn("--micro-batches", err)
        code, out, err = self.run_torch("--budget", "5%")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("the step can accumulate gradients: --micro-batches 1,2,4 plans it in micro-batches, too", err)
        self.write_with(3)
        code, out, err = self.run_torch("--budget", "5%")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("--micro-batches 1,2 plans it", err)
        self.assertFalse(os.path.exists(self.plan))

    def test_wrong_words_and_steps_have_one_sentence(self):
        words = [("--micro-batches", numbers, "ascending numbers from 1 to 64", 2)
                 for numbers in ("", ",", "0", "0,1", "2,1", "2,2", "1,65", "1,1000", "two", "1, 2", "-1", "1;2", "1,,2")]
        words[0] = ("--micro-batches", "", "--micro-batches: no value is given", 2)
        words[10] = ("--micro-batches", "-1", "--micro-batches", 2)
        for option, value, sentence, code in words:
            with self.subTest(value):
                self.refused(sentence, code, option, value)
        self.refused("whole: the step takes no micro-batches", 3, "--micro-batches", "1,2", step="whole")
        self.refused("micro_batches() is given tensors of 255 and of 256 samples", 3, step="wrong")
        for effort in ("4", "-1", "much"):
            sentence = f"--effort {effort}: not an integer from 0 to 3" if effort[0] != "-" else "--effort"
            self.refused(sentence, 2, "--micro-batches", "1,2", effort=effort)
        self.write_with(3)
        self.refused("a batch of 3 samples has no 4 micro-batches", 3, "--micro-batches", "4,8")
        self.write_with(8)
        self.refused("a batch of 2 samples has no 4 micro-batches", 3, "--micro-batches", "4", step="within")
        for line in (("--batches", "1,2,4", "--graph", "x.yaml"), ("--check", "x.plan")):
            done = planc("torch", f"{self.file}:step", *line, "--micro-batches", "1,2")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
            self.assertIn("has no use for --micro-batches", done.stderr)

    def refused(self, sentence, expected, *options, step="step", effort="0"):
        code, out, err = self.run_torch(*options, step=step, effort=effort)
        self.assertEqual((code, out, err.count("\n")), (expected, "", 1), err)
        self.assertIn(sentence, err)
        self.assertEqual(sorted(os.listdir(self.folder)), ["device.json", "train.py"])

    @unittest.skipUnless(planc_torch.fake.is_possible(), "skipped: --fake needs PyTorch 2")
    def test_it_is_recorded_without_memory(self):
        code, out, err = self.run_torch("--micro-batches", "2,4", "--fake", "--on", "cpu", "--json")
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        self.assertGreater(told["recorded"][1]["calls"], told["recorded"][0]["calls"])
        self.assertEqual(PlanFile(self.plan).micro_batches, told["taken_micro_batches"])


if __name__ == "__main__":
    unittest.main()
