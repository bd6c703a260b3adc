#!/usr/bin/env python3
"""Pairs of training jobs on one GPU, measured by others, against planc's simulator: how fast each job goes relative to alone.

A job is on the GPU for a share of its time alone, with kernels of a length: kernels of two jobs take turns, so that the job
with the longer ones gets more (planner/simulate/sim_machine.h). Of gavel's jobs both are fitted to every other of the pairs
of a device, in the order of a drawing, since nothing else is known of them; of lucid's they follow from the utilisation that was
measured of each job alone, by the four constants in pairs.json; and with these so do those of Tally's trainers, beside a
service. A model whose graph is here goes by the graph. Errors are those of each job's speed in the other pairs, by
the simulator; beside them those of equal halves, and of the GPU's time shared out in proportion where the shares sum to more
than all of it.
"""

import argparse
import csv
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys

from benchlib import BUILD, ROOT, bench, table

SHARED = os.path.join(ROOT, "..", "shared", "bench")
CONSTANTS = os.path.join(ROOT, "tests", "bench", "pairs.json")
SPEEDS = os.path.join(BUILD, "bench", "pair_speeds")
LEAST_SHARE, LENGTH_NS, SEED = 0.02, 100000, 1


# --- Data: pairs (job, job, speed, speed) ------------------------------------------------------------------------------

def gavel(path):
    """By device. What equals the job alone to the digit, or is 0, was not measured."""
    with open(path, encoding="utf-8") as file:
        devices = json.load(file)
    for device, jobs in devices.items():
        unknown = [job for job, pairs in jobs.items() if "null" not in pairs]
        if unknown:
            sys.exit(f"bench_pairs: {device}: nothing is told of {unknown[0]} alone")
        alone = {job: pairs["null"] for job, pairs in jobs.items()}
        names = sorted(jobs)
        found = []
        for i, a in enumerate(names):
            for b in names[i:]:
                x, y = jobs[a].get(b, (0, 0))
                if x > 0 and y > 0 and x != alone[a] and y != alone[b]:
                    found.append((a, b, x / alone[a], y / alone[b]))
        yield device, found


def lucid(folder):
    """The pairs, and by job the parts of the time that the GPU and its memory were in use."""
    def job(row, which):
        return tuple(row[key + which] for key in ("model", "batchsize", "amp"))
    with open(os.path.join(folder, "solo.csv"), encoding="utf-8") as file:
        used = {job(row, ""): (float(row["gpu_util"]) / 100, float(row["gmem_util"]) / 100) for row in csv.DictReader(file)}
    with open(os.path.join(folder, "pairs.csv"), encoding="utf-8") as file:
        pairs = [(job(row, "1"), job(row, "2"), float(row["speed1"]), float(row["speed2"])) for row in csv.DictReader(file)]
    unknown = {name for pair in pairs for name in pair[:2] if name not in used}
    if unknown:
        sys.exit(f"bench_pairs: solo.csv has nothing of {sorted(unknown)[0]}")
    return pairs, used


TALLY = {"bert_infer": "BERT", "llama": "Llama 2 7B"}


def tally(folder):
    """The trainers beside a service that half of its largest load reaches, and by job the parts of the time as above. A pair:
    (service, trainer, speeds of the trainer by column), of Tally with transformed kernels that do not share the GPU's space."""
    with open(os.path.join(folder, "solo.csv"), encoding="utf-8") as file:
        used = {row["exp_key"]: (float(row["gpu_util"]) / 100, float(row["mem_util"]) / 100) for row in csv.DictReader(file)}
    with open(os.path.join(folder, "pairs.csv"), encoding="utf-8") as file:
        found = {(row["high_priority_job"], row["best_effort_job"]): row for row in csv.DictReader(file)
                 if row["use_space_share"] == "FALSE" and row["disable_transformation"] == "False"}
    return [(*names, {key: float(row[f"best_effort_{key}_throughput"]) for key in ("mps", "time_slicing", "tgs", "tally")})
            for names, row in sorted(found.items())], used


def halves(pairs):
    """Those to fit to, and those to judge by."""
    drawn = sorted(pairs, key=str)
    random.Random(SEED).shuffle(drawn)
    return drawn[::2], drawn[1::2]


# --- Models: from two jobs (share, logarithm of the length) to two speeds ------------------------------------------------

def simulated(pairs, jobs):
    lines = [" ".join(f"{jobs[name][0]:.9f} {LENGTH_NS * math.exp(jobs[name][1]):.3f}" for name in pair[:2]) for pair in pairs]
    done = subprocess.run([SPEEDS], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]


def mean_field(a, b, turns=25):
    """What the simulator comes to in the mean, where the jobs are on the GPU independently of each other: then each goes, as long
    as the other is there, at its part of it."""
    part = 1 / (1 + math.exp(b[1] - a[1]))
    on = [a[0], b[0]]  # the part of the time that each is on the GPU
    for _ in range(turns):
        takes = [1 - a[0] + a[0] / (1 - on[1] * (1 - part)), 1 - b[0] + b[0] / (1 - on[0] * part)]
        now = [1 - (1 - a[0]) / takes[0], 1 - (1 - b[0]) / takes[1]]
        on = [(x + y) / 2 for x, y in zip(on, now)]
    return 1 / takes[0], 1 / takes[1]


def in_proportion(a, b):
    return (min(1, 1 / (a[0] + b[0])),) * 2


def off(pairs, speeds):
    return [abs(math.log(got / want)) for pair, two in zip(pairs, speeds) for got, want in zip(two, pair[2:])]


def loss(pairs, jobs):
    return sum(off(pairs, [mean_field(jobs[a], jobs[b]) for a, b, _, _ in pairs]))


# --- Fitting ------------------------------------------------------------------------------------------------------------

def descend(values, steps, cost, rounds):
    """Coordinate descent: each value is moved by each step, up and down, while that helps."""
    least = cost(values)
    for _ in range(rounds):
        for step in steps:
            for k in range(len(values)):
                for move in (step, -step):
                    tried = [*values[:k], values[k] + move, *values[k + 1:]]
                    took = cost(tried)
                    if took < least:
                        values, least = tried, took
    return values


def within(share):
    return min(1, max(LEAST_SHARE, share))


def fit_jobs(pairs):
    jobs = {name: (0.9, 0.0) for pair in pairs for name in pair[:2]}
    of = {name: [pair for pair in pairs if name in pair[:2]] for name in jobs}
    for _ in range(5):
        for name in sorted(jobs):
            def cost(values, name=name):
                return loss(of[name], {**jobs, name: (within(values[0]), values[1])})
            share, length = descend(list(jobs[name]), (0.4, 0.2, 0.1, 0.05, 0.02), cost, 1)
            jobs[name] = (within(share), length)
    return jobs


def by_use(constants, used):
    """Kernels are the longer the more of the time the GPU is in use, and the shorter the more of that its memory is."""
    (scale, power), (gpu, memory) = constants["share"], constants["length"]
    return {name: (within(scale * max(LEAST_SHARE, u) ** power), gpu * u + memory * m) for name, (u, m) in used.items()}


def fit_constants(pairs, used):
    def constants(values):
        return {"share": values[:2], "length": values[2:]}
    return constants(descend([0.9, 1.5, 0.0, 0.0], (0.4, 0.1, 0.05, 0.01), lambda v: loss(pairs, by_use(constants(v), used)), 12))


# --- Tables -------------------------------------------------------------------------------------------------------------

def rows(name, fitted, judged, jobs):
    if not judged:
        print(f"bench_pairs: {name} left out: no pair is there to judge by whose jobs are known")
        return
    models = {"simulator": simulated(judged, jobs),
              "shares in proportion": [in_proportion(jobs[a], jobs[b]) for a, b, _, _ in judged],
              "equal halves": [(0.5, 0.5)] * len(judged)}
    for model, speeds in models.items():
        errors = sorted(abs(got - want) / want for pair, two in zip(judged, speeds) for got, want in zip(two, pair[2:]))
        yield [name, len(fitted), len(judged), model, f"{100 * statistics.median(errors):.1f}",
               f"{100 * errors[int(0.9 * len(errors))]:.1f}", f"{statistics.median(x + y for x, y in speeds):.2f}",
               f"{statistics.median(x + y for _, _, x, y in judged):.2f}"]


COLUMNS = ["pairs of", "fitted to", "judged", "model", "median error %", "90 % below", "median sum", "measured"]
NOTE = ["errors are those of each job's speed, relative to it; a sum is that of a pair's two speeds"]


def sums(name, pairs, jobs):
    """Why a pair's speeds sum to what they do: quartiles of the sums, measured and simulated, and of the jobs' shares."""
    def quartiles(found):
        return ", ".join(f"{value:.2f}" for value in statistics.quantiles(found, n=4))
    if len(pairs) < 2:
        return []
    shares = [jobs[a][0] + jobs[b][0] for a, b, _, _ in pairs]
    return [f"{name}: quartiles of the sums: {quartiles([x + y for _, _, x, y in pairs])} measured, "
            f"{quartiles([x + y for x, y in simulated(pairs, jobs)])} simulated;",
            f"the median share of a job is {statistics.median(share for share, _ in jobs.values()):.2f}, of a pair "
            f"{statistics.median(shares):.2f}: {sum(share <= 1 for share in shares) / len(pairs):.0%} of the pairs fit beside each other"]


def gavels(options):
    if not os.path.exists(options.gavel):
        print(f"bench_pairs: gavel left out: {os.path.relpath(options.gavel, ROOT)} is absent")
        return
    found, notes = [], []
    for device, pairs in gavel(options.gavel):
        fitted, judged = halves(pairs)
        jobs = fit_jobs(fitted)
        judged = [pair for pair in judged if pair[0] in jobs and pair[1] in jobs]
        found += rows(device, fitted, judged, jobs)
        notes += sums(device, judged, jobs)
    if found:
        table("Gavel: each job's share and length fitted", COLUMNS, found,
              [*NOTE, *notes, "jobs that each want all of the GPU get together what one alone has, and sums below 1 are what sharing it costs;",
               "the data's description gives the sums a median of about 1.1, which entries that were measured do not have"])


def models(options):
    """Graphs that both have: ResNet-50 beside itself on a P100, by the costs and shares of the device's description."""
    if not os.path.exists(options.gavel):
        print(f"bench_pairs: models left out: {os.path.relpath(options.gavel, ROOT)} is absent")
        return
    found = []
    for a, b, x, y in dict(gavel(options.gavel)).get("p100", []):
        batch = re.fullmatch(r"\('ResNet-50 \(batch size (\d+)\)', 1\)", a)
        if a != b or not batch:
            continue
        job = f"{ROOT}/graphs/resnet50.yaml:{batch[1]}"
        done = subprocess.run([os.path.join(BUILD, "planc"), "compare", "--colocate", job, job, "--device", "p100", "--policies",
                               "temporal,mps", "--no-least", "--json"], capture_output=True, text=True, check=True)
        ours = {row["policy"]: row["throughput"] for row in json.loads(done.stdout)["rows"]}
        found.append([int(batch[1]), ours["mps"] / ours["temporal"], x + y])
    found.sort()
    if found:
        table("Gavel: ResNet-50 beside itself, P100", ["batch", "ours", "measured"], [[b, f"{x:.3f}", f"{y:.3f}"] for b, x, y in found],
              ["sums of the two jobs' speeds relative to alone (ours: compare's mps over temporal); nothing is fitted to these pairs;",
               f"median error {100 * statistics.median(abs(x / y - 1) for _, x, y in found):.1f} %"])


def lucids(options):
    if not os.path.isdir(options.lucid):
        print(f"bench_pairs: lucid left out: {os.path.relpath(options.lucid, ROOT)} is absent")
        return
    pairs, used = lucid(options.lucid)
    fitted, judged = ([], pairs) if options.held_out else halves(pairs)
    with open(CONSTANTS, encoding="utf-8") as file:
        constants = json.load(file)
    if options.fit:
        constants.update(fit_constants(fitted, used))
        with open(CONSTANTS, "w", encoding="utf-8") as file:
            file.write("{" + f'"origin": {json.dumps(constants["origin"])},\n "share": '
                       f'{json.dumps([round(v, 3) for v in constants["share"]])}, "length": '
                       f'{json.dumps([round(v, 3) for v in constants["length"]])}' + "}\n")
    jobs = by_use(constants, used)
    found = list(rows("lucid", fitted, judged, jobs))
    if found:
        table("Lucid: shares and lengths by utilisation", COLUMNS, found,
              [*NOTE, *sums("lucid", judged, jobs),
               f"alone a job has the GPU in use for {statistics.median(u for u, _ in used.values()):.0%} of the time in the median: two "
               "take turns where their kernels meet, and go nearly as fast as alone"])


def tallies(options):
    if not os.path.isdir(options.tally):
        print(f"bench_pairs: tally left out: {os.path.relpath(options.tally, ROOT)} is absent")
        return
    with open(CONSTANTS, encoding="utf-8") as file:
        constants = json.load(file)
    pairs, used = tally(options.tally)
    speeds = [two[1] for two in simulated([pair[:2] for pair in pairs], by_use(constants, used))]
    found, errors = [], []
    for (service, trainer, measured), speed in zip(pairs, speeds):
        turns = 1 - used[service][0]
        errors.append((abs(speed / measured["mps"] - 1), abs(turns / measured["time_slicing"] - 1)))
        name = next(name for key, name in TALLY.items() if key in service)
        found.append([name, trainer.removeprefix("pytorch_").replace("_train_", ":"), f"{speed:.2f}", f"{measured['mps']:.2f}",
                      f"{turns:.2f}", *(f"{measured[key]:.2f}" for key in ("time_slicing", "tgs", "tally"))])
    medians = [100 * statistics.median(column) for column in zip(*errors)]
    table("Tally: training beside a service at half its load, A100", ["service", "trainer", "side by side", "MPS", "in turns",
          "time slicing", "TGS", "Tally"], found,
          ["speeds of the trainer relative to alone; ours side by side and in turns (what the service leaves), all others measured;",
           f"median errors: {medians[0]:.1f} % of MPS, {medians[1]:.1f} % of time slicing; nothing is fitted to these pairs, the constants",
           "are those of lucid's jobs; Tally transforms kernels and does not share the GPU's space"])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gavel", metavar="FILE", default=os.path.join(SHARED, "gavel", "colocation_throughput_p100_k80.json"))
    arguments.add_argument("--lucid", metavar="FOLDER", default=os.path.join(SHARED, "lucid"))
    arguments.add_argument("--tally", metavar="FOLDER", default=os.path.join(SHARED, "tally"))
    arguments.add_argument("--held-out", action="store_true", help="nothing of lucid's pairs was fitted to: judge by all of them")
    arguments.add_argument("--fit", action="store_true", help="fit the constants to lucid's pairs anew, and write them")
    bench("simulated.", {"gavel": gavels, "models": models, "lucid": lucids, "tally": tallies}, arguments)
