#!/usr/bin/env python3
"""How planning grows with the graph: every policy at 1,000, 4,000, 16,000 and 100,000 ops, in counted work and in CPU time.

Work is counted by a build of planc (tests/bench/counter.c): basic blocks that are entered and lines of memory that are
copied, filled or cleared. It is the same on every machine, however busy, but not for every compiler.
Packing addresses (planner/memory/placement.c and packed.c), which ends after so many visits for each item and is not tried for
graphs as large as the last two, is not counted: where it is tried it is most of the work, and would hide how the rest grows.

The graphs are those of generate.py --large. Budgets are 60 % of what the graph has live at once, so that the same share of
it has to move at every size; policies that cannot do with that have what all data needs. POLICY+storage has half of what it
needs on the host, and storage for the rest.

Exit 1 where the work for n ops, divided by n log n, is more than LIMIT of what it is for the smallest graph: all policies
are n log n for each whole plan that they try, and of these not every graph needs as many. Exit 1, too, where a plan for
16,000 ops takes more than 10 s of CPU time."""

import json
import math
import os
import subprocess
import sys
import tempfile

import benchlib
from benchlib import ROOT, bench, cpu_seconds, hold, planc, table

POLICIES = ["none", "vdnn-all", "vdnn-conv", "vdnn-dyn", "vdnn+", "modnn", "naive", "prefetch-1", "lms", "capuchin", "tensile",
            "superneurons", "chen", "cheap", "window", "priced", "auto", "best", "vdnn-all+storage", "naive+storage", "lms+storage"]
SIZES = [1000, 4000, 16000, 100000]
LIMIT = 2
JUDGED, MOST_SECONDS = 16000, 10
SHARE, WHOLE = 0.6, 1.2
NEED_WHOLE = ["none", "cheap"]
STORED, HOST_SHARE = "+storage", 0.5
STORAGE = {"write": {"bytes_per_second": 10**9, "latency_ns": 20000}, "read": {"bytes_per_second": 2 * 10**9, "latency_ns": 10000}}


def large(folder, n_ops):
    """A generated graph, and its live bytes."""
    path = os.path.join(folder, f"large{n_ops}.yaml")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), "--large", str(n_ops), "-o", path],
                       check=True)
    return path, json.loads(planc("show", path, "--json"))["memory"]["liveness_bytes"]


def share_of(policy):
    return WHOLE if policy in NEED_WHOLE else SHARE


def with_storage(folder):
    """The device's description, with a storage."""
    path = os.path.join(folder, "k40m-storage.json")
    with open(os.path.join(ROOT, "profiles", "k40m.json"), encoding="utf-8") as file:
        description = json.load(file)
    description["device"]["storage"] = STORAGE
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file)
    return path


def command(policy, path, live):
    plain = ["plan", path, "--policy", policy.removesuffix(STORED), "--budget", str(int(live * share_of(policy))), "-o", os.devnull]
    if not policy.endswith(STORED):
        return [*plain, "--device", "k40m"]
    needs = json.loads(planc(*plain, "--device", "k40m", "--json"))["host_peak_bytes"]
    return [*plain, "--device", with_storage(os.path.dirname(path)), "--host-budget", str(int(needs * HOST_SHARE)),
            "--storage", str(2**50)]


def counted_work(policy, path, live):
    return benchlib.counted_work(*command(policy, path, live))


def beyond(works):
    """How much each work is of n log n, by size, with the smallest's as 1."""
    of = {n: work / (n * math.log2(n)) for n, work in works.items()}
    return {n: it / of[min(of)] for n, it in of.items()}


def growth_of(works):
    """Ends the benchmark where a policy's work by size grows faster than it may."""
    fast = [f"{policy} does {grown:.2f} times what n log n would be at {n:,} ops, {LIMIT} times at most"
            for policy, by_size in works.items() for n, grown in beyond(by_size).items() if grown > LIMIT]
    if fast:
        sys.exit("; ".join(fast))


def work(_):
    works, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for policy in POLICIES:
            works[policy] = {n: counted_work(policy, *large(folder, n)) for n in SIZES}
            grown = beyond(works[policy])
            rows.append([policy, f"{share_of(policy):.0%}", *(f"{works[policy][n] / 1e6:.1f}" for n in SIZES),
                         *(f"{grown[n]:.2f}" for n in SIZES[1:])])
    table("Work of a plan, counted", ["policy", "budget", *(f"{n:,} ops" for n in SIZES),
                                      *(f"of n log n at {n:,}" for n in SIZES[1:])], rows,
          ["budget: of what is live at once; work: millions",
           f"{STORED}: the host has {HOST_SHARE:.0%} of what the policy needs there",
           f"of n log n: work over n log n, {SIZES[0]:,} ops as 1; {LIMIT} at most"])
    growth_of(works)


def seconds(_):
    rows, judged = [], []
    with tempfile.TemporaryDirectory() as folder:
        for policy in POLICIES:
            times = [cpu_seconds(*command(policy, *large(folder, n)), runs=3 if n <= JUDGED else 1)[0] for n in SIZES]
            rows.append([policy, *(f"{time:.2f}" for time in times)])
            judged.append((f"{policy} at {JUDGED:,} ops", rows[-1][1 + SIZES.index(JUDGED)], MOST_SECONDS))
    table("CPU seconds of the same, measured", ["policy", *(f"{n:,} ops" for n in SIZES)], rows,
          [f"median of 3, beyond {JUDGED:,} ops of 1; {MOST_SECONDS} at most at {JUDGED:,} ops"])
    hold(judged)


if __name__ == "__main__":
    bench("planning, at generated graphs. Work is counted, by gcc's basic blocks.", {"work": work, "seconds": seconds})
