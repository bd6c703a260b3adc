#!/usr/bin/env python3
"""planc on iterations that others have measured (../shared/bench), beside what they published: G10's swapping, Checkmate's
graphs with proven optima, DTR's recomputing at run time. elsewhere.py reads the data; what its readers take from it, and
where a source's memory model differs, is told there and below each table.

    bench_elsewhere.py [--seconds N] [--only g10|checkmate|dtr] [-o FILE]

A planning run that takes longer than N seconds (60) is cut.
"""

import argparse
import collections
import csv
import json
import os
import subprocess
import sys
import tempfile

import elsewhere
from benchlib import GIB, PLANC, ROOT, bench, planc, table

DATA = os.path.join(ROOT, "..", "shared", "bench")
SWAPPING = ["vdnn-dyn", "modnn", "superneurons", "lms", "capuchin", "tensile", "window", "window --placement vmm", "best"]
RECOMPUTING = ["none", "chen", "cheap", "superneurons", "capuchin", "tensile", "best"]

# Slowdown against ideal as in ../shared/bench/README.md, from G10's repository: LRU, FlashNeuron, DeepUM, G10. None: not
# given; inf: does not run.
G10 = {"BERT_Base_256": (2.697, 1.402, 1.257, 1.004), "BERT_Base_512": (8.225, 4.483, 1.609, 1.492),
       "BERT_Base_768": (10.566, float("inf"), 1.727, 1.571), "BERT_Base_1024": (13.294, float("inf"), 3.342, 2.249),
       "Inceptionv3_1536": (4.707, float("inf"), 1.485, 1.023), "Inceptionv3_1792": (5.897, float("inf"), 1.620, 1.179),
       "ResNet152_1280": (4.165, 1.557, 1.173, 1.016), "ResNet152_1536": (None, None, None, 1.263)}
# G10's own slowdown by host memory (GiB), same source.
G10_BY_HOST = {"BERT_Base_512": {0: 4.347, 16: 3.226, 32: 2.439, 64: 1.492},
               "Inceptionv3_1536": {0: 1.924, 16: 1.645, 32: 1.178, 64: 1.023},
               "ResNet152_1280": {0: 2.126, 16: 1.978, 32: 1.825, 64: 1.278, 128: 1.016}}
# Least duration over that without recompute, by budget as a share of the peak without; None: proven that there is none. From
# ../shared/bench/README.md: a CP-SAT solver, the file's order of nodes, at most two runs of each.
CHECKMATE = {"fcn_8_vgg_32": {0.9: 1.00029, 0.8: 1.00136}, "segnet_32": {0.8: 4943330 / 4933130}, "VGG16_256": {0.8: None}}
CHECKMATE_SHARES = (1.0, 0.9, 0.8, 0.6)


class Bench:
    def __init__(self, folder, seconds):
        self.folder, self.seconds, self.cut = folder, seconds, 0
        self.output = os.path.join(folder, "x.plan")

    def convert(self, *path):
        iteration = elsewhere.read(os.path.join(DATA, *path))
        graph, profile = iteration.write(self.folder)
        return [graph, "--profile", profile]

    def plan(self, model, policy, budget, *options):
        """The summary and the plan's file; text where there is no plan."""
        command = [PLANC, "plan", *model, "--policy", *policy.split(), "--budget", str(budget), *options, "--json", "-o", self.output]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.seconds)
        except subprocess.TimeoutExpired:
            self.cut += 1
            return "cut"
        if done.returncode == 1:
            return "-"
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        planc("check", self.output, "--graph", model[0])
        return json.loads(done.stdout)

    def ratio(self, model, policy, budget, *options, digits=3):
        row = self.plan(model, policy, budget, *options)
        return row if isinstance(row, str) else f"{row['iteration_ns'] / row['ideal_ns']:.{digits}f}"

    def most_runs(self):
        """How often the plan that was written last runs the op that it runs most often."""
        runs = collections.Counter()
        with open(self.output, encoding="utf-8") as file:
            for line in file:
                if line.startswith('{"i":"exec"'):
                    runs[json.loads(line)["n"]] += 1
        return max(runs.values())

    def notes(self, *notes):
        """Below a table: these, and how many runs of it were cut."""
        cut, self.cut = self.cut, 0
        return [*notes, *([f"cut: {cut} planning runs took more than {self.seconds} s"] if cut else [])]


def slowdown(value):
    return "?" if value is None else f"{value:.3f}"


def done(rows):
    """Says how far it is, as it may take long."""
    for row in rows:
        print(" ", *row, file=sys.stderr, flush=True)


def g10(runs):
    rows, by_host = [], []
    for name, published in G10.items():
        model = runs.convert("g10", name)
        rows.append([name, *(runs.ratio(model, policy, 40 * GIB, "--no-recompute") for policy in SWAPPING),
                     runs.ratio(model, "best", 40 * GIB, "--host-budget", "128G"), *map(slowdown, published)])
        for host, theirs in G10_BY_HOST.get(name, {}).items():
            by_host.append([name, host, runs.ratio(model, "best", 40 * GIB, "--host-budget", f"{host}G"), slowdown(theirs)])
        done(rows[-1:] + [row for row in by_host if row[0] == name])
    table("G10: slowdown against ideal, 40 GiB, 15.754 GB/s each way",
          ["model", *SWAPPING[:-2], "vmm", "best", "recompute too", "LRU", "FlashNeuron", "DeepUM", "G10"], rows,
          runs.notes("planc's columns: nothing is computed again and the host has no limit, which is faster than G10's 128 GiB and",
                      "an SSD at 3.2 GB/s for the rest; 'recompute too' is best when it may compute again, with 128 GiB and no SSD.",
                      "vmm is window with --placement vmm. planc counts whole tensors at fixed addresses, G10's simulator counts pages",
                      "and charges faults and allocation. -: does not fit; ?: not published; inf: does not run"))
    table("G10: slowdown by host memory, best", ["model", "host GiB", "planc", "G10 with SSD"], by_host,
          runs.notes("G10 has its SSD beside the host's memory and computes nothing again; planc has that memory alone and may."))


def checkmate(runs):
    rows = []
    for name in sorted(os.listdir(os.path.join(DATA, "checkmate"))):
        model, name = runs.convert("checkmate", name), name.removesuffix(".json")
        options = ["--no-swap"] + (["--inference"] if name.startswith("random") else [])
        most = runs.plan(model, "none", "16T", *options)["peak_bytes"]
        for share in CHECKMATE_SHARES:
            cells = []
            for policy in RECOMPUTING:
                cell = runs.ratio(model, policy, int(most * share), *options, digits=5)
                more = cell not in ("-", "cut") and runs.most_runs() > 2
                cells.append(cell + ("*" if more else ""))
            proven = CHECKMATE.get(name, {}).get(share, 1 if share == 1 else "")
            proven = "none fits" if proven is None else proven if proven == "" else f"{proven:.5f}"
            rows.append([name, f"{share:.0%}", f"{most * share / 1e9:.3f}", *cells, proven])
        done(rows[-len(CHECKMATE_SHARES):])
    table("Checkmate's graphs: duration over that without recompute, by share of its peak",
          ["graph", "share", "GB", *RECOMPUTING, "least proven"], rows,
          runs.notes("*: an op runs more than twice, which that problem does not allow. Sizes are rounded up to 256 bytes."))


def dtr(runs):
    rows = []
    with open(os.path.join(DATA, "dtr", "measured.tsv"), encoding="ascii", newline="") as file:
        measured = list(csv.DictReader(file, delimiter="\t"))
    baseline = {row["model"]: float(row["time_ms_mean"]) for row in measured if row["kind"] == "baseline"}
    for row in measured:
        model = runs.convert("dtr", f"{row['model']}_{row['batch']}.log.gz")
        theirs = float(row["time_ms_mean"]) / baseline[row["model"]]
        budget = int(row["total_mem_MB"]) * 10**6
        rows.append([row["model"], row["batch"], row["budget_GB"], row["total_mem_MB"],
                     *(runs.ratio(model, policy, budget, "--no-swap") for policy in RECOMPUTING),
                     slowdown(theirs) if row["kind"] == "dtr" else "1"])
    table("DTR: slowdown by memory that it took (MB)", ["model", "batch", "budget GB", "took MB", *RECOMPUTING, "DTR"], rows,
          runs.notes("DTR's times are measured and contain its own bookkeeping, planc's are predicted from the log's operator times;",
                      "budgets are what DTR took, its allocator's loss included, not what it was told (UNet does not keep to it)."))


def skipping(name, run):
    """The part of the benchmark that is of this source."""

    def part(options):
        if not os.path.isdir(os.path.join(DATA, name)):
            print(f"bench_elsewhere: {name} is skipped, ../shared/bench/{name} is absent")
            return
        with tempfile.TemporaryDirectory() as folder:
            run(Bench(folder, options.seconds))

    return part


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    bench("simulated, at operator times and on the device of each source. Times are predictions.",
          {name: skipping(name, run) for name, run in {"g10": g10, "checkmate": checkmate, "dtr": dtr}.items()}, parser)


if __name__ == "__main__":
    main()
