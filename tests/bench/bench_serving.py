#!/usr/bin/env python3
"""A training job beside an inference job on one GPU, as they are met today and not in the papers.

A trainer and a sampler of one model (reinforcement learning): what memory they take by turns and side by side, beside what a
part of the GPU for each would be, and how fast both are.

Requests with a deadline beside training: how much of its speed alone the training keeps by every policy that has all requests
in time, and how long they take.

Exit 1 where a plan by turns takes as much memory as a part of the GPU for each job would be, or where a policy is in time and
preemptive is not."""

import json
import sys

from benchlib import GIB, PLANC, bench, fitting, graph, hold, memory_of, plan, simulated, table

DEVICE = "v100-32g"
ABOUT = "a trainer and a sampler of one model, and requests with a deadline beside training; " + simulated(DEVICE)

# The model, the trainer's batch, the sampler's, and its iterations for one of the trainer.
SAMPLED = [("bert-base", 16, 16, 4), ("gnmt-small", 64, 64, 4), ("resnet50", 32, 64, 4)]
POLICIES = ["temporal", "zico", "waterwave", "tensile"]
# Training and requests, and deadlines as multiples of two iterations alone, the least that a request takes.
SERVED = [("resnet50:32", "resnet50:4"), ("bert-base:16", "bert-base:1"), ("bert-base:16", "resnet50:4")]
TIMES = [1.5, 2, 4, 8, 16]
IN_TIME = ["temporal", "preemptive", *POLICIES[1:]]


def job(name):
    net, *rest = name.split(":")
    return ":".join([graph(net), *rest])


def compare_mix(jobs, policies, *options):
    done = fitting([PLANC, "compare", "--colocate", *map(job, jobs), "--device", DEVICE, "--policies", ",".join(policies), "--json",
                    *options])
    if done is None:
        sys.exit(f"{' + '.join(jobs)}: no policy has a plan")
    table_of = json.loads(done)
    return table_of["jobs"], {row["policy"]: row for row in table_of["rows"]}


def peak_alone(net, batch, *options):
    """What a plan without scheduling has on the device, with what is reserved there."""
    return plan(net, batch, memory_of(DEVICE)[0], "none", *options, device=DEVICE)["peak_bytes"]


def gib(size):
    return f"{size / GIB:.2f}"


def sampler(_):
    rows, judged = [], []
    _, reserved = memory_of(DEVICE)
    for net, batch, samples, n in SAMPLED:
        jobs = [f"{net}:{batch}:1", f"{net}:{samples}:{n}:inference"]
        parts = peak_alone(net, batch) + peak_alone(net, samples, "--inference") - reserved
        _, made = compare_mix(jobs, POLICIES, "--no-least")
        turns = made["temporal"]
        _, least = compare_mix(jobs, ["temporal"])
        rows.append([f"{net} {batch}, {n} of {samples}", gib(parts), gib(turns["peak_bytes"]),
                     gib(least["temporal"]["least_budget"]), *(f"{made[policy]['throughput']:.3f}" for policy in POLICIES)])
        judged.append((f"{net}, turns over parts", turns["peak_bytes"] / parts, 1))
    table("A trainer and a sampler of one model",
          ["trainer, sampler", "parts GiB", "turns GiB", "least", *POLICIES], rows,
          ["parts: what both take alone, together, with what is reserved once; turns: the peak of policy temporal in the whole GPU's",
           "memory; least: the least budget of turns; temporal to tensile: throughput in the whole GPU's memory, 1 for one job alone"])
    hold(judged)


def requests(_):
    rows, late = [], []
    for training, served in SERVED:
        jobs = [f"{training}:1", f"{served}:inference"]
        known, _ = compare_mix(jobs, ["temporal"], "--no-least")
        for times in TIMES:
            deadline = round(2 * known[1]["alone_ns"] * times)
            _, made = compare_mix(jobs, IN_TIME, "--deadline", f"1:{deadline}ns", "--no-least")
            rows.append([f"{training}, {served}", f"{deadline / 1e6:.1f}", f"{times:g}", *(cell(made[policy]) for policy in IN_TIME)])
            if not made["preemptive"]["feasible"] and any(row["feasible"] for row in made.values()):
                late.append(rows[-1][:2])
    table("Requests with a deadline beside training: the training's speed, and what requests take in ms",
          ["training, requests", "deadline ms", "times least", *IN_TIME], rows,
          ["times least: of two iterations of the requests' job alone, which is what one takes that comes just behind an iteration's begin;",
           "speed: of alone on the whole GPU; -: a request would take longer than the deadline"])
    if late:
        sys.exit(f"preemptive is late where another policy is not: {late}")


def cell(row):
    return f"{row['speeds'][0]:.3f} {row['responses_ns'][1] / 1e6:.1f}" if row["feasible"] else "-"


if __name__ == "__main__":
    bench(ABOUT, {"sampler": sampler, "requests": requests})
