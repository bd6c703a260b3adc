#!/usr/bin/env python3
"""How the time of planning grows with the graph: every policy at 1,000, 4,000 and 16,000 ops, with --all at 100,000 too.

The graphs are those of generate.py --large. Budgets are parts of what the graph has live at once, so that the same share
of it has to move at every size; a policy that cannot do with 60 % gets what `none` needs."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

from benchlib import ROOT, bench, cpu_seconds, plan, planc, table

POLICIES = ["none", "vdnn-all", "vdnn-conv", "vdnn-dyn", "vdnn+", "modnn", "naive", "prefetch-1", "lms", "capuchin", "tensile",
            "superneurons", "chen", "cheap", "window"]
SIZES, LARGEST = [1000, 4000, 16000], 100000
SHARES = [0.6, 1.2]
JUDGED, MOST_SECONDS = 16000, 10


def large(folder, n_ops):
    """A generated graph, as `graph` of benchlib names it, and its live bytes."""
    path = os.path.join(folder, f"large{n_ops}.yaml")
    subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), "--large", str(n_ops), "-o", path], check=True)
    return path, json.loads(planc("show", path, "--json"))["memory"]["liveness_bytes"]


def seconds_of(policy, path, live):
    """CPU seconds of a plan and the share of the live bytes that it had."""
    for share in SHARES:
        budget = int(live * share)
        if plan(path.removesuffix(".yaml"), 64, budget, policy) is None:
            continue
        seconds, _ = cpu_seconds("plan", path, "--device", "k40m", "--policy", policy, "--budget", budget, "-o", os.devnull,
                                 runs=3)
        return seconds, share
    sys.exit(f"{policy} finds no plan for {path}")


def growth(options):
    sizes = SIZES + [LARGEST] * options.all
    rows, slow = [], []
    with tempfile.TemporaryDirectory() as folder:
        graphs = [large(folder, n) for n in sizes]
        for policy in POLICIES:
            runs = [seconds_of(policy, *made) for made in graphs]
            times = [seconds for seconds, _ in runs]
            exponent = math.log(times[-1] / times[-2]) / math.log(sizes[-1] / sizes[-2])
            rows.append([policy, f"{runs[-1][1]:.0%}", *(f"{seconds:.2f}" for seconds in times), f"{exponent:.2f}"])
            if times[sizes.index(JUDGED)] > MOST_SECONDS:
                slow.append(policy)
    table("measured: CPU seconds of a plan (median of 3, user + system)",
          ["policy", "budget", *(f"{n:,} ops" for n in sizes), "growth"], rows,
          ["budget: of what is live at once; growth: the exponent between the last two sizes, 1 is linear"])
    if slow:
        sys.exit(f"more than {MOST_SECONDS} s at {JUDGED:,} ops: {', '.join(slow)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="100,000 ops too")
    bench("CPU time of planning on this machine, at generated graphs.", {"growth": growth}, parser)


if __name__ == "__main__":
    main()
