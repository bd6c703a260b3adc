#!/usr/bin/env python3
"""Zico against its paper (000): throughput of two jobs beside taking turns and MPS, of the same model (Fig. 5) and of two
(Fig. 8), the shifts of two jobs (Fig. 7), a budget that changes (Fig. 10), what tracking memory costs (Table 1), sizes
of regions (Table 2), and what unified memory costs (section 2.3).

The paper's system shifts iterations and does nothing else: rows of zico are such plans, without swaps and recomputes and in
one round (ALONE). Where these take turns, or there is no such plan, Zico has none side by side. "with all" is what planc's zico finds with swaps,
recomputes and rounds as well.

What is missed has three limits, each a column. "shares": a pair's throughput if the GPU had no gap and every busy share were
full, which is time alone over the sum of the ops' time by busy share; no order of the ops is above it. "memory": the same
plan where memory is enough for both. What is left between that and zico is what the shift costs.

Nothing is calibrated on the paper: graphs are ours, and ops take time and shares of the GPU as the device descriptions say,
whose occupancy is read off kernels that Orion measured. Launching an op and recording an event cost the host what host.json
says. Batches
are parts of the largest one that fits alone, as the paper gives memory in parts of the GPU's. MPS is an estimate
(planc(1), mps). A plan has no list under a lock, so that of sizes of regions only room is lost: Table 2's contention
is not shown. A throughput is the sum over jobs of their speeds relative to alone.
"""

import json
import operator
import os
import re
import statistics
import sys
import tempfile

from benchlib import (MPS_NOTE, bench, busy_times, colocated, framework_host, graph_in, memory_of, planc, simulated, sole_batch,
                      table, uses)

V100, RTX = "v100-32g", "rtx2080ti"
# The paper's models: our graphs, their GPU of Fig. 5, a batch to begin the search of the largest with, its step.
MODELS = {"NASNet": ("nasnet-a-mobile", RTX, 128, 4), "ResNet-110": ("resnet110", RTX, 1024, 16),
          "ResNet-50": ("resnet50", V100, 390, 2), "GNMT": ("gnmt", RTX, 64, 4), "RHN": ("rhn", RTX, 64, 2),
          "BERT": ("bert-base", V100, 330, 2)}
PARTS = (0.25, 0.5, 0.75, 0.95)
PAPER = {"NASNet": "+35%", "GNMT": "+37%"}
# Of the first and the second, in the paper over turns on average and over MPS at most; only the parts of one mix are stated.
MIXES = {("RHN", "GNMT"): ("+42%", 5.1), ("NASNet", "GNMT"): ("+46%", 8.3), ("BERT", "GNMT"): ("+27%", 6.0),
         ("NASNet", "ResNet-110"): ("+15%", 6.5)}
# Table 1: throughput where memory is tracked at every kernel, every 8 MB and every 256 MB, in percent.
TRACKED = {"NASNet": (78, 100, 100), "ResNet-110": (91, 100, 100), "ResNet-50": (97, 100, 100), "GNMT": (44, 89, 97),
           "RHN": (94, 99, 99), "BERT": (97, 99, 100)}
# Table 2: throughput with regions of 512 KB and with tensors, in percent of that with 64 MB.
REGIONS = {"NASNet": (94, 94), "ResNet-110": (94, 99), "ResNet-50": (100, 98), "GNMT": (97, 90), "RHN": (99, 96),
           "BERT": (99, 94)}
TRACKED_PARTS = (0.03, 0.1, 0.5)
EVERY = ([], ["--track-every", "8M"], ["--track-every", "256M"])
HOST = framework_host()
LAUNCH = ["--launch", f"{HOST['launch_ns']}ns"]
MEMORY = [(0.3, 0.9), (0.6, 0.6), (0.9, 0.3), (0.9, 0.9)]
BUDGETED = 0.32  # Fig. 10: the paper's jobs, of a batch not stated, need no shift in 70 % of the memory
PAGED = (270, 8)  # section 2.3: each takes 70 % of the memory
# The paper's system alone: iterations are shifted, in one round, and data stays where it is.
ALONE = ["--no-swap", "--no-recompute", "--accumulate", "1"]
ENOUGH = "512G"
MOMENTS = 800  # of a period, at which memory is looked at
SLOW_HOSTS_NS = (HOST["launch_ns"], 30000, 45000, 60000)
LIMITS = ["busy: mean busy share of the ops; shares: throughput with no gap and every share full; memory: zico's with memory enough;",
          "turns: zico alone finds nothing faster side by side; no plan: nor do turns fit that keep what is not in turn on the GPU;",
          "shift: what both hold at the shift at which that is least, of the GPU's memory, at even speeds: beyond 100% one waits for the other;",
          "with all: with swaps, recomputes and rounds, and which of these it took"]


def tell(*row):
    """A row as soon as it is known: a part takes long."""
    print(" ", *row, file=sys.stderr, flush=True)


class Models:
    """Graphs, the largest batches that fit alone, and what an iteration alone is."""

    def __init__(self, folder):
        self.folder, self.alone, self.solos = folder, {}, {}

    def path(self, model):
        return graph_in(self.folder, MODELS[model][0])

    def job(self, model, part, device):
        name, _, start, step = MODELS[model]
        if (model, device) not in self.alone:
            self.alone[model, device] = sole_batch(self.path(model), device, step, start)
        return f"{self.path(model)}:{max(1, int(self.alone[model, device] * part))}"

    def solo(self, job, device):
        if (job, device) not in self.solos:
            self.solos[job, device] = Solo(job, device, os.path.join(self.folder, "solo.plan"))
        return self.solos[job, device]


class Solo:
    """An iteration alone: its time, that of its ops, their time by busy share, and the memory that it takes, at most and in each
    hundredth of the time."""

    def __init__(self, job, device, plan):
        path, batch = job.rsplit(":", 1)
        made = json.loads(planc("plan", path, "--batch", batch, "--device", device, *LAUNCH, "--policy", "none", "--json", "-o",
                                plan))
        self.ns, self.peak_bytes = made["iteration_ns"], made["peak_bytes"]
        self.ops_ns, self.work_ns = busy_times(plan)
        self.busy, self.idle = self.work_ns / self.ops_ns, 1 - self.ops_ns / self.ns
        one_at_a_time = ("--free-at", "completion", "--in-flight", "1")
        self.most_bytes = json.loads(planc("simulate", plan, *one_at_a_time, "--json"))["footprint"]["most_bytes"]


def compared(jobs, device, *options):
    """Turns and MPS, which may do all they can, and the paper's system alone, None where it has no plan."""
    rows = json.loads(planc("compare", "--colocate", "--no-least", *jobs, "--device", device, *LAUNCH, "--policies",
                            "temporal,mps", *options, "--json"))["rows"]
    return *({row["policy"]: row for row in rows}[name] for name in ("temporal", "mps")), planned(jobs, device, *ALONE, *options)


def planned(jobs, device, *options):
    return colocated(jobs, device, *LAUNCH, "--policy", "zico", *options)


def most(solos, ratio):
    """The throughput of a pair that leaves no part of the GPU unused while a job has work."""
    alone = [solo.ns * n for solo, n in zip(solos, ratio)]
    return sum(alone) / max(*alone, sum(solo.work_ns * n for solo, n in zip(solos, ratio)))


def limits(models, jobs, device, ratio):
    """What bounds a pair: what the shares leave, and the plan where memory is enough."""
    roomy = planned([f"{job}:{n}" for job, n in zip(jobs, ratio)], device, *ALONE, "--budget", ENOUGH)
    return most([models.solo(job, device) for job in jobs], ratio), roomy["throughput"]


def best_shift(solos, ratio, device):
    """What a pair holds at most, of the GPU's memory, at the shift at which that is least, both at even speeds."""
    memory, reserved = memory_of(device)
    first, second = ([solo.most_bytes[at * n * len(solo.most_bytes) // MOMENTS % len(solo.most_bytes)] for at in range(MOMENTS)]
                     for solo, n in zip(solos, ratio))
    return (reserved + min(max(map(operator.add, first, second[shift:] + second[:shift])) for shift in range(MOMENTS))) / memory


def in_turns(made):
    return "take turns" in made["explanation"]


def told(row):
    return f"{row['throughput']:.3f}" if row["feasible"] else "-"


def told_zico(made):
    return "no plan" if not made else "turns" if in_turns(made) else f"{made['throughput']:.3f}"


def gained(made, temporal):
    """Throughput by that of turns, which is what Zico falls back to."""
    return made["throughput"] / temporal["throughput"] if made else 1


def told_with_all(made):
    """The throughput of a plan, and what it does beside shifting."""
    if not made:
        return "-"
    how = ["turns"] if in_turns(made) else uses(made)
    return " ".join([f"{made['throughput']:.3f}", *(["(" + ", ".join(how) + ")"] if how else [])])


def shown(ratio, form):
    return f"{ratio - 1:+.1%}" if form == "%" else f"{ratio:.2f}"


def mean(ratios):
    return shown(statistics.mean(ratios), "%")


def figure5(_):
    rows, notes, idle, times = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        for model, (_, device, _, _) in MODELS.items():
            gains, bounds = [], []
            for part in PARTS:
                job = models.job(model, part, device)
                temporal, mps, zico = compared([job] * 2, device, "--max-ratio", "1")
                gains.append(gained(zico, temporal))
                times.append(gained(zico, temporal) * temporal["throughput"] / mps["throughput"])
                bounds.append(limits(models, [job] * 2, device, (1, 1)))
                idle.append(models.solo(job, device).idle)
                rows.append([model, device, job.rsplit(":", 1)[1], f"{models.solo(job, device).busy:.0%}",
                             told(temporal), told(mps), told_zico(zico), shown(gains[-1], "%"), shown(times[-1], "x"),
                             f"{best_shift([models.solo(job, device)] * 2, (1, 1), device):.0%}",
                             *(f"{bound:.3f}" for bound in bounds[-1]),
                             told_with_all(planned([job] * 2, device, "--max-ratio", "1"))])
                tell(*rows[-1])
            notes.append(f"{model}: {mean(gains)} over temporal in the mean of these batches"
                         + (f" (paper, of its own: {PAPER[model]})" if model in PAPER else "") + limited(bounds))
    table("Figure 5: throughput of two jobs of the same model",
          ["model", "GPU", "batch", "busy", "temporal", "mps", "zico", "over temporal", "times mps", "shift", "shares", "memory",
           "with all"], rows,
          [*notes, f"at most {max(times):.1f} times mps (paper: 4.7)", *MPS_NOTE, *LIMITS,
           f"alone, the GPU is without an op for at most {max(idle):.1%} of an iteration: launches take less than the ops at these",
           "batches, while a framework's leave it idle in the paper's GNMT, which tracking every kernel slows to 44 % (Table 1)"])


def limited(bounds):
    shares, memory = zip(*bounds)
    return f"; shares leave {mean(shares)}, with enough memory {mean(memory)}"


def hosts(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        for model in PAPER:
            device = MODELS[model][1]
            job = models.job(model, PARTS[0], device)
            for launch_ns in SLOW_HOSTS_NS:
                own = ("--max-ratio", "1", "--launch", f"{launch_ns}ns")
                made = {row["policy"]: row for row in json.loads(planc(
                    "compare", "--colocate", "--no-least", job, job, "--device", device, "--policies", "temporal,zico", *own,
                    "--json"))["rows"]}
                rows.append([model, device, job.rsplit(":", 1)[1], f"{launch_ns / 1e3:.1f}", told(made["temporal"]), told(made["zico"]),
                             shown(gained(made["zico"], made["temporal"]), "%"), PAPER[model]])
                tell(*rows[-1])
    table("Figure 5 by what a launch costs the host",
          ["model", "GPU", "batch", "launch, us", "temporal", "zico", "over temporal", "paper, mean"], rows,
          [f"batch: {PARTS[0]:.0%} of the largest; the first launch is what eager PyTorch takes (host.json), the others a slower framework",
           "where launches take longer than ops a job alone leaves the GPU idle, and gains are as large as the paper's; what a launch cost",
           "its TensorFlow the paper does not say, so that none of these is tuned to it"])


def figure8(_):
    rows, notes, slower = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        for mix, (gain, paper_times) in MIXES.items():
            gains, times, bounds = [], [], []
            for parts in MEMORY:
                name = f"{mix[0]} ({parts[0]:.0%}) + {mix[1]} ({parts[1]:.0%})"
                jobs = [models.job(model, part, RTX) for model, part in zip(mix, parts)]
                temporal, mps, zico = compared(jobs, RTX)
                ratio = [job["iterations"] for job in zico["jobs"]] if zico else temporal["ratio"]
                here = [job["speed"] for job in zico["shares"]] if zico else temporal["speeds"]
                gains.append(gained(zico, temporal))
                times.append(gained(zico, temporal) * temporal["throughput"] / mps["throughput"])
                bounds.append(limits(models, jobs, RTX, ratio))
                slower += [f"{model} in {name}" for model, speed, turns in zip(mix, here, temporal["speeds"])
                           if speed < 0.999 * turns]
                rows.append([name, ":".join(map(str, ratio)), told(temporal), told(mps), told_zico(zico), shown(gains[-1], "%"),
                             shown(times[-1], "x"), speeds(temporal["speeds"]), speeds(here),
                             f"{best_shift([models.solo(job, RTX) for job in jobs], ratio, RTX):.0%}",
                             *(f"{bound:.3f}" for bound in bounds[-1]),
                             told_with_all(planned(jobs, RTX))])
                tell(*rows[-1])
            notes.append(f"{' + '.join(mix)}: {mean(gains)} over temporal in the mean (paper, of its own: {gain}), at most "
                         f"{max(times):.1f} times mps (paper: {paper_times}){limited(bounds)}")
    table(f"Figure 8: throughput of two jobs of two models, {RTX}",
          ["jobs (part of the largest batch)", "iterations", "temporal", "mps", "zico", "over temporal", "times mps",
           "each in turns", "each by zico", "shift", "shares", "memory", "with all"], rows,
          [*notes, *MPS_NOTE, *LIMITS, "slower than in turns, by over a thousandth (paper: NASNet in NASNet (30%) + GNMT (90%), slightly):",
           "; ".join(slower) or "none"])


def speeds(found):
    return " + ".join(f"{speed:.3f}" for speed in found)


def shift_ms(made):
    """By how much one job begins after the other, the shorter way around the period."""
    found = made and re.search(r"begins ([\d.]+) ms after", made["explanation"])
    return min(float(found[1]), made["period_ns"] / 1e6 - float(found[1])) if found else None


def told_shift(made):
    shift = shift_ms(made)
    return ["turns" if made else "-", "-"] if shift is None else [f"{shift:.1f}", f"{shift * 1e6 / made['period_ns']:.1%}"]


def figure7(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        for model in ("ResNet-110", "BERT"):
            device = MODELS[model][1]
            memory, reserved = memory_of(device)
            for part in PARTS:
                job = models.job(model, part, device)
                coarse, fine = (planned([job] * 2, device, "--max-ratio", "1", *ALONE, "--region", region)
                                for region in ("64M", "256"))
                both = (2 * models.solo(job, device).peak_bytes - reserved) / memory
                rows.append([model, device, job.rsplit(":", 1)[1], f"{both:.0%}", *told_shift(coarse), *told_shift(fine)])
                tell(*rows[-1])
    table("Figure 7: how two jobs of the same model are shifted",
          ["model", "GPU", "batch", "both peaks of memory", "shift, ms", "of the period", "tensors: shift, ms", "of the period"],
          rows,
          ["paper: ResNet-110 nearly not, BERT a little; at batches that are not stated",
           "where both peaks fit, jobs are nearly not shifted; beyond, one must pass its peak while the other holds little; tensors:",
           "memory is handed on tensor by tensor, so that what regions of 64 MB lose beside tensors of other sizes shows as shift"])


def figure10(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        job = Models(folder).job("NASNet", BUDGETED, RTX)
        for percent, gap in ((70, 0), (50, 140), (70, 0), (100, 0)):
            made = planned([job] * 2, RTX, "--max-ratio", "1", *ALONE, "--budget", str(11 * 2**30 * percent // 100))
            waits = [f"{work['stall_ns'] / 1e6:.1f}" for work in made["jobs"]] if made else ["-"] * 2
            rows.append([f"{percent}%", *([f"{made['period_ns'] / 1e6:.1f}", f"{made['throughput']:.3f}"] if made
                                          else ["-"] * 2), told_shift(made)[0], *waits, gap])
            tell(*rows[-1])
    table(f"Figure 10: two NASNet jobs of batch {job.rsplit(':', 1)[1]}, by the budget as a part of 11 GiB",
          ["budget", "period, ms", "throughput", "shift, ms", "first waits, ms", "second waits, ms", "paper's gap, ms"], rows,
          ["the paper's gap is between iterations of a job, its batch is not stated: here it is one at which neither job waits",
           f"at 70 %, as there ({BUDGETED:.0%} of the largest); waits: what a job's stream is without an op in a period"])


def paging(_):
    with tempfile.TemporaryDirectory() as folder:
        job = f"{Models(folder).path('ResNet-50')}:{PAGED[0]}"
        times = [json.loads(planc("compare", "--colocate", "--no-least", job, job, "--device", V100, "--max-ratio", "1",
                                  "--policies", "mps", *budget, "--json"))["rows"][0]["period_ns"]
                 for budget in ([], ["--budget", ENOUGH])]
    table("Section 2.3: two ResNet-50 under MPS where memory is short, V100", ["batch", "times as slow", "paper"],
          [[PAGED[0], f"{times[0] / times[1]:.2f}", PAGED[1]]],
          ["one of the two points that paging_ppm of v100-32g is fitted to, the other is ResNet50's in Fig. 7 of Waterwave"])


def table1(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models, made = Models(folder), os.path.join(folder, "x.plan")
        for model, (_, device, _, _) in MODELS.items():
            for part in TRACKED_PARTS:
                path, batch = models.job(model, part, device).rsplit(":", 1)
                planc("plan", path, "--batch", batch, "--device", device, *LAUNCH, "--policy", "none", "-o", made)
                free, *tracked = (json.loads(planc("simulate", made, "--json", *options))["period_ns"] for options in
                                  ([], *(["--track", f"{HOST['event_ns']}ns", *every] for every in EVERY)))
                rows.append([model, device, batch, *(f"{free / ns:.0%}" for ns in tracked),
                             *(f"{percent}%" for percent in TRACKED[model])])
                tell(*rows[-1])
    table("Table 1: throughput where memory is tracked, of that where it is not",
          ["model", "GPU", "batch", "every kernel", "8 MB", "256 MB", "paper", "8 MB", "256 MB"], rows,
          [f"batches: {', '.join(f'{part:.0%}' for part in TRACKED_PARTS)} of the largest; the paper's are not stated",
           "what the host does is hidden where the GPU takes longer, as it does at large batches"])


def table2(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        for model, (_, device, _, _) in MODELS.items():
            jobs = [models.job(model, 0.75, device)] * 2
            made = [planned(jobs, device, "--max-ratio", "1", *ALONE, "--region", region) for region in ("64M", "512K", "256")]
            rows.append([model, device, *(told_part(one, made[0]) for one in made),
                         *(f"{percent}%" for percent in REGIONS[model])])
            tell(*rows[-1])
    table("Table 2: throughput by the size of regions, of that with 64 MB",
          ["model", "GPU", "64 MB", "512 KB", "tensors", "paper, 512 KB", "tensors"], rows,
          ["the paper's has a lock; turns: nothing faster side by side was found, and throughput is that of turns"])


def told_part(made, whole):
    if not made:
        return "-"
    return f"{made['throughput'] / whole['throughput']:.1%}" + (" (turns)" if in_turns(made) else "") if whole else "-"


if __name__ == "__main__":
    host = f"Launching an op takes the host {HOST['launch_ns']} ns, recording an event {HOST['event_ns']} ns."
    bench(f"{simulated(f'{V100} and {RTX}')} {host}",
          {"figure5": figure5, "hosts": hosts, "figure8": figure8, "figure7": figure7, "figure10": figure10, "paging": paging, "table1": table1,
           "table2": table2})
