#!/usr/bin/env python3
"""CPU time of planning: recorded graphs with modnn, and a generated 100,000-op graph read, planned, written and checked. Ends
with exit 1 where one takes longer than it may."""

import json
import os
import subprocess
import sys
import tempfile

from benchlib import ROOT, bench, cpu_seconds, graph, hold, machine, planc, table


def main(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "x.plan")
        for name, batch, budget, limit in [("recorded/resnet50", 256, "12G", "0.050"), ("recorded/lstm4", 64, "1600M", "0.300")]:
            seconds, memory = cpu_seconds("plan", graph(name), "--batch", batch, "--device", "k40m", "--policy", "modnn",
                                          "--budget", budget, "-o", plan)
            rows.append([f"plan {name}", budget, f"{seconds:.3f}", limit, f"{memory / 1e6:.0f}"])
        large = os.path.join(folder, "large.yaml")
        subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), "--large", "100000", "-o", large],
                       check=True)
        shown = planc("show", large, "--json")
        budget = int(json.loads(shown)["memory"]["liveness_bytes"] * 0.6)
        planned, plan_memory = cpu_seconds("plan", large, "--device", "k40m", "--policy", "modnn", "--budget", budget,
                                           "-o", plan, runs=3)
        checked, check_memory = cpu_seconds("check", plan, runs=3)
        rows.append(["plan 100,000 ops", budget, f"{planned:.3f}", "", f"{plan_memory / 1e6:.0f}"])
        rows.append(["check it", "", f"{checked:.3f}", "", f"{check_memory / 1e6:.0f}"])
        rows.append(["both", "", f"{planned + checked:.3f}", "3.000", f"{max(plan_memory, check_memory) / 1e6:.0f}"])
    table("CPU time (median of runs, user + system), measured", ["command", "budget", "seconds", "at most", "peak MB"], rows)
    hold((what, seconds, most) for what, _, seconds, most, _ in rows if most)


if __name__ == "__main__":
    bench(machine(), {"all": main})
