"""PyTorch's steps that the check on a GPU sets beside ours (tests/cuda/gpucheck/pytorch_steps.py), on the processor."""

import functools
import json
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"  # Debian's, which python3-torch is for
HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def steps(*options, code=0):
    done = subprocess.run([PYTHON, "-B", os.path.join(ROOT, "tests/cuda/gpucheck/pytorch_steps.py"), *options],
                          capture_output=True, text=True, check=False)
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

    def test_bf16(self):
        exact, half = small("resnet50"), small("resnet50", precision="bf16")
        self.assertNotEqual(half["loss"], exact["loss"])

    def test_vgg(self):
        self.assertEqual(small("vgg16", "checkpoint")["parameters"], parameters("vgg16"))

    def test_what_does_not_fit(self):
        told = steps("--device", "cpu", "--batch", "1000000000", "--model", "resnet50")
        self.assertTrue(told["oom"])
        self.assertNotIn("step_ms", told)


if __name__ == "__main__":
    unittest.main()
