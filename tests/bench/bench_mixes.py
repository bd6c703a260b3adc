#!/usr/bin/env python3
"""How planning of several jobs grows: every policy for mixes at 2, 4 and 8 jobs, which are alike or of four kinds, in
counted work (bench_growth.py) and in CPU time. Each job runs once in a period. The budget is a part of what all of them have
live at once.

Exit 1 where a plan for 8 jobs of 10,000 ops takes more than a minute of CPU time."""

import math
import os
import tempfile

from bench_growth import large
from benchlib import bench, counted_work, cpu_seconds, hold, table

POLICIES = ["temporal", "zico", "waterwave", "waterwave-s", "tensile"]
JOBS, SIZES = [2, 4, 8], [1000, 10000]
KINDS = {"alike": [1], "of four sizes": [1, 0.9, 0.8, 0.7]}
SHARE = 0.8
MOST_SECONDS = 60


def command(folder, policy, kind, n_jobs, n_ops):
    jobs = [large(folder, int(n_ops * KINDS[kind][j % len(KINDS[kind])])) for j in range(n_jobs)]
    live = sum(live for _, live in jobs)
    return ["colocate", *(path for path, _ in jobs), "--max-ratio", "1", "--device", "k40m", "--budget", str(int(live * SHARE)), "--policy", policy,
            "-o", os.devnull]


def cases():
    return [(policy, kind, n_jobs) for policy in POLICIES for kind in KINDS for n_jobs in JOBS]


def work(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for policy, kind, n_jobs in cases():
            done = {n: counted_work(*command(folder, policy, kind, n_jobs, n)) for n in SIZES}
            small, great = (done[n] / (n * math.log2(n)) for n in SIZES)
            rows.append([policy, kind, n_jobs, *(f"{done[n] / 1e6:.1f}" for n in SIZES), f"{great / small:.2f}"])
    table("Work of a mix's plan, counted",
          ["policy", "jobs", "how many", *(f"{n:,} ops" for n in SIZES), f"of n log n at {SIZES[1]:,}"], rows,
          [f"ops: of the largest job; budget: {SHARE:.0%} of what is live at once, of all jobs; work: millions",
           f"of n log n: work over n log n of the ops, {SIZES[0]:,} ops as 1; zico tries as many shifts as it needs"])


def seconds(_):
    rows, judged = [], []
    with tempfile.TemporaryDirectory() as folder:
        for policy, kind, n_jobs in cases():
            times = [cpu_seconds(*command(folder, policy, kind, n_jobs, n), runs=1)[0] for n in SIZES]
            rows.append([policy, kind, n_jobs, *(f"{time:.2f}" for time in times)])
            if n_jobs == JOBS[-1]:
                judged.append((f"{policy}, {n_jobs} jobs {kind}", rows[-1][-1], MOST_SECONDS))
    table("CPU seconds of the same, measured", ["policy", "jobs", "how many", *(f"{n:,} ops" for n in SIZES)], rows,
          [f"of one run; {MOST_SECONDS} at most of the last column"])
    hold(judged)


if __name__ == "__main__":
    bench("planning of several jobs, at generated graphs. Work is counted, by gcc's basic blocks.",
          {"work": work, "seconds": seconds})
