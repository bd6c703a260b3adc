#!/usr/bin/env python3
"""What planning costs: recorded graphs with modnn, and a generated 100,000-op graph read, planned, written and checked.

Instructions are counted by callgrind, which is the same on every machine, however busy. Ends with exit 1 where there are
more than LIMITS: a hundredth more than what commit 5066fc3 takes as gcc 14 compiles it. Seconds of CPU time are told beside
them."""

import json
import os
import subprocess
import sys
import tempfile

from benchlib import ROOT, bench, cpu_seconds, graph, hold, instructions, machine, planc, table

LIMITS = {"plan recorded/resnet50": 562.4, "plan recorded/lstm4": 816.0, "plan 100,000 ops": 22757.8, "check it": 2265.9}


def main(_):
    rows = []

    def add(what, budget, *arguments, runs=5):
        seconds, memory = cpu_seconds(*arguments, runs=runs)
        rows.append([what, budget, f"{instructions(*arguments) / 1e6:.1f}", f"{LIMITS[what]:.1f}", f"{seconds:.3f}",
                     f"{memory / 1e6:.0f}"])

    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "x.plan")
        for name, batch, budget in [("recorded/resnet50", 256, "12G"), ("recorded/lstm4", 64, "1600M")]:
            add(f"plan {name}", budget, "plan", graph(name), "--batch", batch, "--device", "k40m", "--policy", "modnn",
                "--budget", budget, "-o", plan)
        large = os.path.join(folder, "large.yaml")
        subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), "--large", "100000", "-o", large],
                       check=True)
        budget = int(json.loads(planc("show", large, "--json"))["memory"]["liveness_bytes"] * 0.6)
        add("plan 100,000 ops", budget, "plan", large, "--device", "k40m", "--policy", "modnn", "--budget", budget, "-o", plan,
            runs=3)
        add("check it", "", "check", plan, runs=3)
    table("What planning costs, measured", ["command", "budget", "million instructions", "at most", "CPU seconds", "peak MB"],
          rows, ["CPU seconds: user and system, the median of runs"])
    hold(((what, count, most) for what, _, count, most, *_ in rows), "million instructions")


if __name__ == "__main__":
    bench(machine(), {"all": main})
