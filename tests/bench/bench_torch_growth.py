#!/usr/bin/env python3
"""A LLaMA of 7 billion parameters (tests/data/torch/llama_7b.py): recorded with fake tensors, then planned at shares of what
it takes as it is. CPU seconds and memory, of `planc torch` and of `planc plan` with policy auto.

PLANC_PYTHON names a Python with PyTorch 2; where it has none there is nothing to do.

Exit 1 where recording takes more than MOST_RECORDING seconds of CPU time or MOST_BYTES, or a plan more than MOST_PLANNING."""

import json
import os
import subprocess
import tempfile

from benchlib import GIB, ROOT, bench, cpu_seconds, hold, machine, planc, table

STEP = os.path.join(ROOT, "tests", "data", "torch", "llama_7b.py") + ":step"
DEVICE = "h100"
SHARES = (100, 90, 80, 70)
MOST_RECORDING, MOST_BYTES, MOST_PLANNING = 60, 4 * GIB, 10


def has_fake_tensors():
    python = os.environ.get("PLANC_PYTHON") or "python3"
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and int(done.stdout.partition(".")[0]) >= 2


def recorded(folder):
    """The file of the graph; CPU seconds and peak memory of recording it alone."""
    plan, graph = os.path.join(folder, "llama.plan"), os.path.join(folder, "llama.yaml")
    planc("torch", STEP, "--fake", "--device", DEVICE, "--graph", graph, "-o", plan)
    seconds, peak = cpu_seconds("torch", STEP, "--fake", "--device", DEVICE, "--check", plan, runs=1)
    return graph, seconds, peak


def growth(_):
    if not has_fake_tensors():
        print("\nnot run: PLANC_PYTHON names no Python with PyTorch 2")
        return
    with tempfile.TemporaryDirectory() as folder:
        graph, seconds, peak = recorded(folder)
        plain = json.loads(planc("plan", graph, "--device", DEVICE, "--policy", "none", "--budget", "4T", "--json", "-o", os.devnull))
        reserved = json.loads(planc("show", graph, "--json"))["memory"]["liveness_bytes"]
        rows, judged = [], [("recording", f"{seconds:.1f}", MOST_RECORDING)]
        for share in SHARES:
            budget = plain["peak_bytes"] * share // 100
            arguments = ("plan", graph, "--device", DEVICE, "--budget", budget, "-o", os.devnull)
            made = json.loads(planc(*arguments, "--json"))
            took, _ = cpu_seconds(*arguments, runs=1)
            judged.append((f"planning at {share} %", f"{took:.2f}", MOST_PLANNING))
            rows.append([f"{share} %", f"{budget / GIB:.2f}", made["policy"], f"{made['iteration_ns'] / 1e6:.1f}", f"{took:.2f}"])
    table("A LLaMA of 7 billion parameters", ["share", "GiB", "policy", "step ms", "planned in s"], rows,
          [f"recorded in {seconds:.1f} s of CPU time and {peak / GIB:.2f} GiB, {reserved / GIB:.2f} GiB of data at once; "
           f"{MOST_RECORDING} s and {MOST_BYTES // GIB} GiB at most",
           f"share: of what the step takes as it is, {plain['iteration_ns'] / 1e6:.1f} ms; planned in {MOST_PLANNING} s at most"])
    hold(judged)
    hold([("recording", peak, MOST_BYTES)], "bytes")


if __name__ == "__main__":
    bench(f"a LLaMA of 7 billion parameters, recorded without memory. {machine()}.", {"growth": growth})
