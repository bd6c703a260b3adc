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

    def test_transformer(self):
        self.check("tiny-transformer")


if __name__ == "__main__":
    unittest.main()
