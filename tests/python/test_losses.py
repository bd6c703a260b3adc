#!/usr/bin/env python3
"""planrun's losses of the graphs for digits are PyTorch's (tests/data/losses, which make_losses.py made once)."""

import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EPOCHS = 3
# Relative. Both compute in f32 and differ in the order of summation: 1.2e-7 was seen in the third epoch.
TOLERANCE = 1e-5
# In mixed precision a sum that falls the other side of the middle between two bf16 numbers is off by the whole step
# between them. 1.0e-7 was seen, as none did in these iterations; the losses of f32 are off by 6.3e-4.
BF16_TOLERANCE = 1e-4


def run(program, *arguments):
    done = subprocess.run([os.path.join(BUILD, program), *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")})
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class Losses(unittest.TestCase):
    def check(self, model):
        with open(os.path.join(ROOT, f"tests/data/losses/{model}.json"), encoding="ascii") as file:
            expected = json.load(file)
        per_epoch = len(expected["losses"]) // EPOCHS
        with tempfile.TemporaryDirectory() as folder:
            plan = os.path.join(folder, "x.plan")
            run("planc", "plan", os.path.join(ROOT, f"graphs/{model}.yaml"), "--batch", str(expected["batch"]),
                "--optimizer", expected["optimizer"], "-o", plan)
            for epoch in range(EPOCHS):
                out = run("planrun", "exec", plan, "--data", os.path.join(ROOT, "tests/data/digits/digits.csv.gz"),
                          "--seed", str(expected["seed"]), "--epochs", str(epoch + 1), "--json")
                losses = json.loads(out.splitlines()[-1])["losses"]
                self.assertEqual(len(losses), per_epoch)
                for i, loss in enumerate(losses):
                    wanted = expected["losses"][epoch * per_epoch + i]
                    self.assertLess(abs(loss - wanted), TOLERANCE * wanted, f"epoch {epoch + 1}, iteration {i + 1}")

    def test_lenet(self):
        self.check("lenet-digits")

    def test_lenet_in_mixed_precision(self):
        with open(os.path.join(ROOT, "tests/data/losses/lenet-digits.json"), encoding="ascii") as file:
            expected = json.load(file)
        wanted = expected["losses_bf16"]
        with tempfile.TemporaryDirectory() as folder:
            graph, plan = os.path.join(folder, "x.yaml"), os.path.join(folder, "x.plan")
            run("planc", "train", os.path.join(ROOT, "graphs/lenet-digits.yaml"), "--precision", "bf16", "--optimizer",
                expected["optimizer"], "-o", graph)
            run("planc", "plan", graph, "--batch", str(expected["batch"]), "-o", plan)
            out = run("planrun", "exec", plan, "--data", os.path.join(ROOT, "tests/data/digits/digits.csv.gz"),
                      "--seed", str(expected["seed"]), "--iterations", str(len(wanted)), "--json")
        losses = json.loads(out.splitlines()[-1])["losses"]
        self.assertEqual(len(losses), len(wanted))
        for i, loss in enumerate(losses):
            self.assertLess(abs(loss - wanted[i]), BF16_TOLERANCE * wanted[i], f"iteration {i + 1}")
        self.assertGreater(max(abs(a - b) for a, b in zip(losses, expected["losses"])), 2 * BF16_TOLERANCE)

    def test_transformer(self):
        self.check("tiny-transformer")


if __name__ == "__main__":
    unittest.main()
