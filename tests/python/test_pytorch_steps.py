"""PyTorch's steps that the check on a GPU sets beside ours (tests/cuda/gpucheck/pytorch_steps.py), on the processor."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PACKAGE = os.path.join(ROOT, "runtime", "torch")
sys.path.insert(0, os.path.join(ROOT, "tests", "cuda"))

from gpucheck import followed
from pythons import DEBIAN, has_torch, warm

HAS_TORCH = has_torch(DEBIAN)


def steps(*options, code=0):
    done = subprocess.run([warm(DEBIAN), "-B", os.path.join(ROOT, "tests/cuda/gpucheck/pytorch_steps.py"), *options],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE}, check=False)
    if done.returncode != code:
        raise AssertionError(f"{options}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout) if code == 0 else done.stderr


@functools.lru_cache(maxsize=None)
def small(model, mode="plain", precision="f32"):
    return steps("--device", "cpu", "--batch", "2", "--image", "32", "--warm-up", "1", "--steps", "1", "--model", model,
                 "--mode", mode, "--precision", precision)


def parameters(graph):
    with open(os.path.join(ROOT, "graphs", graph + ".yaml"), encoding="utf-8") as file:
        return int(re.search(r"([\d,]+) parameters", file.read(2000))[1].replace(",", ""))


# Steps on a GPU that only says what it is asked for.
ON_A_GPU = """
import sys
sys.path.insert(0, sys.argv[1])
import pytorch_steps, torch
from types import SimpleNamespace
said, at = [], iter(range(1, 99))
class Event:
    def __init__(self, enable_timing):
        self.at = None
    def record(self):
        said.append("event")
        self.at = next(at) ** 2
    def elapsed_time(self, end):
        said.append("elapsed")
        return float(end.at - self.at)
torch.cuda = SimpleNamespace(Event=Event, synchronize=lambda: said.append("synchronize"), max_memory_allocated=lambda: 5,
                             reset_peak_memory_stats=lambda: said.append("reset"), max_memory_reserved=lambda: 6)
model = SimpleNamespace(parameters=lambda: [])
pytorch_steps.make_step = lambda options: (model, lambda: said.append("step") or 0.0)
told = pytorch_steps.measure(SimpleNamespace(device="cuda", precision="f32", warm_up=2, steps=3, mode="plain",
                                             deterministic=False))
print(told["step_ms"], told["peak_bytes"], *said)
"""


@unittest.skipUnless(HAS_TORCH, "no PyTorch")
class Steps(unittest.TestCase):
    def test_modes_compute_the_same(self):
        plain, *others = (small("resnet50", mode) for mode in ("plain", "checkpoint", "save_on_cpu"))
        self.assertEqual([told["mode"] for told in others], ["checkpoint", "save_on_cpu"])
        for told in others:
            self.assertAlmostEqual(told["loss"], plain["loss"], places=3)
        self.assertGreater(plain["step_ms"], 0)
        self.assertEqual(plain["parameters"], parameters("resnet50"))
        self.assertEqual((plain["model"], plain["batch"], plain["precision"], plain["peak_bytes"]), ("resnet50", 2, "f32", None))

    def test_a_gpu_is_waited_for_at_the_end_alone(self):
        done = subprocess.run([warm(DEBIAN), "-B", "-c", ON_A_GPU, os.path.join(ROOT, "tests/cuda/gpucheck")], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.stdout.split(), ["5.0", "5", "step", "step", "reset", "event", *["step", "event"] * 3,
                                               "synchronize", *["elapsed"] * 3], done.stderr)

    def test_bf16(self):
        exact, half = small("resnet50"), small("resnet50", precision="bf16")
        self.assertNotEqual(half["loss"], exact["loss"])

    def test_steps_that_follow_a_plan_leave_the_same_bits(self):
        made = {"batch": 2, "image": 32, "model": "resnet50", "precision": "f32", "device": "cpu"}
        options = [word for name, value in made.items() for word in (f"--{name}", str(value))]
        options += ["--deterministic", "--warm-up", "1", "--steps", "2"]
        with tempfile.TemporaryDirectory() as folder:
            step, plan = (os.path.join(folder, name) for name in ("step.py", "step.plan"))
            followed.step_file(step, deterministic=True, **made)
            done = subprocess.run([warm(DEBIAN), "-B", "-m", "planc_torch", f"{step}:step", "--planc", os.path.join(BUILD, "planc"),
                                   "--device", os.path.join(ROOT, "profiles/h100.json"), "--budget", "90%", "--json", "--output", plan],
                                  capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PACKAGE}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(json.loads(done.stdout)["budget_bytes"], json.loads(done.stdout)["plain_bytes"])
            plain, told = steps(*options), steps("--mode", "followed", "--plan", plan, *options)
        self.assertEqual((told["bits"], told["loss"]), (plain["bits"], plain["loss"]))
        self.assertNotEqual(small("resnet50")["loss"], plain["loss"])  # after fewer steps

    def test_vgg(self):
        self.assertEqual(small("vgg16", "checkpoint")["parameters"], parameters("vgg16"))

    def test_what_does_not_fit(self):
        told = steps("--device", "cpu", "--batch", "1000000000", "--model", "resnet50")
        self.assertTrue(told["oom"])
        self.assertNotIn("step_ms", told)


if __name__ == "__main__":
    unittest.main()
