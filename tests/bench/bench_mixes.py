#!/usr/bin/env python3
"""Plans of several jobs, by every policy for mixes.

What planning a pair of recorded iterations takes, in CPU time, with the GPU's whole memory and with less.

How planning grows: at 2, 4 and 8 jobs, which are alike or of four kinds, in counted work (bench_growth.py) and in CPU time.
Each job runs once in a period. The budget is a part of what all of them have live at once.

What keeps jobs apart: waits of one for another, what they wait for, and addresses are changed. The checker rejects such a
mutant, or it computes the reference's bits in any order that its events allow.

Exit 1 where a pair's plan takes more than a second of CPU time, one for 8 jobs of 10,000 ops more than a minute, or a
mutant is accepted and wrong."""

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

from bench_growth import large
from benchlib import BUILD, PLANC, bench, counted_work, cpu_seconds, graph, hold, memory_of, planc, table

ABOUT = "planning of several jobs, at recorded and generated graphs. Work is counted, by gcc's basic blocks."
POLICIES = ["temporal", "preemptive", "zico", "waterwave", "waterwave-s", "tensile"]
# What some policies need: the first job's requests, and longer than an iteration of all may take.
OPTIONS = {"preemptive": ["--deadline", "0:100s"]}
JOBS, SIZES = [2, 4, 8], [1000, 10000]
KINDS = {"alike": [1], "of four sizes": [1, 0.9, 0.8, 0.7]}
SHARE = 0.8
MOST_SECONDS = 60
RECORDED, RECORDED_BATCH, MOST_PAIR_SECONDS = ["lstm4", "resnet34", "resnet50", "vgg16"], 64, 1

MIXES = {"lenet-digits, tiny-transformer": ["lenet-digits:64:1", "tiny-transformer:16:2"],
         "two of lenet-digits": ["lenet-digits:32:1", "lenet-digits:32:1"],
         "three jobs": ["tiny-transformer:16:1", "lenet-digits:8:1", "tiny-transformer:8:3"]}
N_MUTANTS, INTERLEAVINGS = 300, 40


def command(folder, policy, kind, n_jobs, n_ops):
    jobs = [large(folder, int(n_ops * KINDS[kind][j % len(KINDS[kind])])) for j in range(n_jobs)]
    live = sum(live for _, live in jobs)
    return ["colocate", *(path for path, _ in jobs), "--max-ratio", "1", "--device", "k40m", "--budget", str(int(live * SHARE)),
            "--policy", policy, *OPTIONS.get(policy, []), "-o", os.devnull]


def cases():
    return [(policy, kind, n_jobs) for policy in POLICIES for kind in KINDS for n_jobs in JOBS]


def beyond(done):
    """Work over n log n of the ops at the larger size, that at the smaller one as 1."""
    small, great = (done[n] / (n * math.log2(n)) for n in SIZES)
    return great / small


def work(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for policy, kind, n_jobs in cases():
            done = {n: counted_work(*command(folder, policy, kind, n_jobs, n)) for n in SIZES}
            rows.append([policy, kind, n_jobs, *(f"{done[n] / 1e6:.1f}" for n in SIZES), f"{beyond(done):.2f}"])
    table("Work of a mix's plan, counted",
          ["policy", "jobs", "how many", *(f"{n:,} ops" for n in SIZES), f"of n log n at {SIZES[1]:,}"], rows,
          [f"ops: of the largest job; budget: {SHARE:.0%} of what is live at once, of all jobs; work: millions",
           f"of n log n: work over n log n of the ops, {SIZES[0]:,} ops as 1; zico's at 8 jobs and",
           "10,000 ops is the simulator's by nine tenths: of some plans that it tries the state never repeats, so that all 64 bodies run"])


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


def recorded(_):
    rows, judged = [], []
    _, reserved = memory_of("v100-32g")
    shown = {name: json.loads(planc("show", graph("recorded/" + name), "--batch", RECORDED_BATCH, "--json"))
             for name in RECORDED}
    for pair in itertools.combinations_with_replacement(RECORDED, 2):
        live = sum(shown[name]["memory"]["liveness_bytes"] for name in pair)
        for policy in POLICIES:
            jobs = [f"{graph('recorded/' + name)}:{RECORDED_BATCH}" for name in pair]
            times = [cpu_seconds("colocate", *jobs, "--device", "v100-32g", "--policy", policy, *OPTIONS.get(policy, []), *budget,
                                 "-o", os.devnull, runs=1, ends=(0, 1))[0] for budget in ([], ["--budget", reserved + int(live * SHARE)])]
            rows.append([" + ".join(pair), policy, *(f"{time:.2f}" for time in times)])
            judged.append((f"{policy}, {rows[-1][0]}", rows[-1][2], MOST_PAIR_SECONDS))
    table("CPU seconds of plans for two recorded iterations, measured", ["pair", "policy", "32 GB", f"{SHARE:.0%}"], rows,
          [f"batch {RECORDED_BATCH} each, V100; {SHARE:.0%} of what is live at once, of both, in which some find no plan",
           f"of one run; {MOST_PAIR_SECONDS} at most with the whole GPU"])
    hold(judged)


def colocate(mix, policy, budget, output):
    """The peak of a plan, None where there is none."""
    jobs = [f"{graph(name)}:{rest}" for name, rest in (job.split(":", 1) for job in mix)]
    done = subprocess.run([PLANC, "colocate", *jobs, "--device", "k40m", "--policy", policy, "--budget", str(budget),
                           *OPTIONS.get(policy, []), "--json", "-o", output], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"planc colocate: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["peak_bytes"] if done.returncode == 0 else None


def mutants_of(path):
    """How many mutants of a plan were accepted; each of those has computed the reference's bits."""
    done = subprocess.run([os.path.join(BUILD, "bench", "mutants"), path, str(N_MUTANTS), str(INTERLEAVINGS), "between"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)["accepted"]


def mutants(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mix.plan")
        for policy in POLICIES:
            plans = accepted = 0
            for mix in MIXES.values():
                most = colocate(mix, policy, "12G", path)
                for budget in (most, most * 9 // 10):
                    if colocate(mix, policy, budget, path) is None:
                        continue
                    plans += 1
                    accepted += mutants_of(path)
            n = plans * N_MUTANTS
            rows.append([policy, plans, n, n - accepted, accepted])
    rows.append(["all", *(sum(column) for column in list(zip(*rows))[1:])])
    table("Mutants of what keeps jobs apart", ["policy", "plans", "mutants", "rejected", "computing the same"], rows,
          [f"plans of {len(MIXES)} mixes, in as much memory as the policy takes and, where that works, in nine tenths of it",
           f"what is accepted runs in {INTERLEAVINGS} random orders that its events allow, of 0 to 3 bodies; every bit is the reference's"])


if __name__ == "__main__":
    bench(ABOUT,
          {"recorded": recorded, "work": work, "seconds": seconds, "mutants": mutants})
