#!/usr/bin/env python3
"""planrun's losses of resnet50 beside PyTorch's (tests/data/losses), which make_losses.py made once in f32 and f64."""

import json
import os
import subprocess
import sys
import tempfile

from benchlib import BUILD, ROOT, bench, graph, machine, planc, table

# Relative to f64. PyTorch in f32 is 1.1e-6 off at first and 6.9e-5 at last, as errors grow with each step; the plain
# kernels of the host, which sum in one sequence, are a few times as far. The loss itself changes by a fifth.
TOLERANCES = (1e-5, 1e-4, 1e-3, 1e-3)


def main(_):
    with open(os.path.join(ROOT, "tests/data/losses/resnet50.json"), encoding="ascii") as file:
        expected = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        training, plan = (os.path.join(folder, name) for name in ("x.yaml", "x.plan"))
        text = planc("train", graph("resnet50"), "--optimizer", "sgd")
        with open(training, "w", encoding="ascii") as file:
            file.write(text.replace("{lr: 0.01}", f"{{lr: {expected['learning_rate']}}}"))
        planc("plan", training, "--batch", expected["batch"], "--policy", "none", "--device", "h100", "-o", plan)
        done = subprocess.run([os.path.join(BUILD, "planrun"), "exec", plan, "--json", "--seed", str(expected["seed"]),
                               "--iterations", str(len(expected["losses"]))], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    rows, bad = [], 0
    losses = json.loads(done.stdout)["losses"]
    for i, (loss, f32, f64) in enumerate(zip(losses, expected["losses"], expected["losses_f64"])):
        off = abs(loss - f64) / f64
        bad += not off <= TOLERANCES[i]
        rows.append([i + 1, f"{f64:.7f}", f"{loss:.7f}", f"{off:.1e}", f"{TOLERANCES[i]:.0e}",
                     f"{abs(f32 - f64) / f64:.1e}"])
    table(f"resnet50, batch {expected['batch']}, sgd: loss and its relative distance from PyTorch's in f64",
          ["iteration", "PyTorch f64", "planrun", "off", "at most", "PyTorch f32 off"], rows)
    if bad or len(losses) != len(expected["losses"]):
        sys.exit("losses differ from PyTorch's")


if __name__ == "__main__":
    bench(machine(), {"all": main})
