#!/usr/bin/env python3
"""planc on iterations that others have measured or solved (../shared/bench), beside what they published: G10's swapping,
Checkmate's graphs with proven optima, DTR's recomputing at run time, MONET's recomputing with its choice of algorithms.
elsewhere.py reads the data; what its readers take from it, and where a source's memory model differs, is told there and
below each table.

usage: bench_elsewhere.py [--json] [--seconds N] [--effort N] [--reorder] [--only g10|checkmate|dtr|monet] [-o FILE]
                          [FILE|FOLDER ...]

Each FILE or FOLDER is one of those that elsewhere.py reads, or a folder of such: G10's with kernels.tsv, Checkmate's .json,
DTR's .log.gz beside its measured.tsv, MONET's .json beside its solutions.tsv and gurobi_results.tsv. Without any:
../shared/bench. A planning run that takes longer than N seconds (60) is cut; of MONET's problems all runs together, which
go on with more effort than N while seconds are left. With --reorder MONET's problems are planned in a second order of the ops as well, none of MONET's."""

import argparse
import collections
import csv
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile

import elsewhere
import elsewhere_monet
import elsewhere_monet_sums
import elsewhere_monet_ways
from benchlib import GIB, PLANC, ROOT, bench, planc, table
from elsewhere_iteration import BadData

DATA = os.path.join(ROOT, "..", "shared", "bench")

# Slowdown against ideal as in ../shared/bench/README.md, from G10's repository: LRU, FlashNeuron, DeepUM, G10. None: not
# given; inf: does not run.
G10 = {"BERT_Base_256": (2.697, 1.402, 1.257, 1.004), "BERT_Base_512": (8.225, 4.483, 1.609, 1.492),
       "BERT_Base_768": (10.566, float("inf"), 1.727, 1.571), "BERT_Base_1024": (13.294, float("inf"), 3.342, 2.249),
       "Inceptionv3_1536": (4.707, float("inf"), 1.485, 1.023), "Inceptionv3_1792": (5.897, float("inf"), 1.620, 1.179),
       "ResNet152_1280": (4.165, 1.557, 1.173, 1.016), "ResNet152_1536": (None, None, None, 1.263)}
G10_SYSTEMS = ("LRU", "FlashNeuron", "DeepUM", "G10")
# G10's own slowdown by host memory (GiB), same source; its 0 is left out: planc's storage is behind the host.
G10_BY_HOST = {"BERT_Base_256": {16: 1.004}, "BERT_Base_512": {16: 3.226, 32: 2.439, 64: 1.492},
               "Inceptionv3_1536": {16: 1.645, 32: 1.178, 64: 1.023},
               "ResNet152_1280": {16: 1.978, 32: 1.825, 64: 1.278, 128: 1.016},
               "ResNet152_1536": {16: 2.660, 32: 2.428, 64: 2.212, 128: 1.263, 192: 1.069}}
HOST_GIB = 128
STORAGE = "16T"
# How many choices of what MONET's backward nodes read are planned with more effort.
MONET_CHOICES = 3
MOST_EFFORT = 3
MONET_SEARCHED = 0.7  # of the seconds
# Least duration over that without recompute, by budget as a share of the peak without; None: proven that there is none. From
# ../shared/bench/README.md: a CP-SAT solver, the file's order of nodes, at most two runs of each.
CHECKMATE = {"fcn_8_vgg_32": {0.9: 1.00029, 0.8: 1.00136}, "segnet_32": {0.8: 4943330 / 4933130}, "VGG16_256": {0.8: None}}
CHECKMATE_SHARES = (0.9, 0.8)
CHECKMATE_RUNS = 2


class Bench:
    def __init__(self, folder, options):
        self.folder, self.seconds, self.effort = folder, options.seconds, ["--effort", str(options.effort)]
        self.most, self.reorder = options.effort, ["--reorder"] * options.reorder
        self.output = os.path.join(folder, "x.plan")

    def convert(self, path):
        iteration = elsewhere.read(path)
        graph, profile = iteration.write(self.folder)
        return iteration.name, [graph, "--profile", profile], iteration.options

    def plan(self, model, policy, budget, *options):
        """What the plan takes, with its slowdown, its distance from its bound and the CPU seconds of planning, or why there is
        none: "none fits", "cut"."""
        effort = self.effort if policy == "auto" else []
        row = self.run([*model, "--policy", policy, "--budget", budget, *options, *effort], self.seconds)
        if "none" in row:
            return row
        planc("check", self.output, "--graph", model[0])
        row.update(slowdown=row["iteration_ns"] / row["ideal_ns"])
        if row["bound_ns"]:
            row.update(bound=row["bound_ns"] / row["ideal_ns"], over_bound=row["iteration_ns"] / row["bound_ns"] - 1)
        return row

    def run(self, options, seconds):
        """The summary of a plan, with the CPU seconds of planning, or why there is none."""
        command = [PLANC, "plan", *options, "--json", "-o", self.output]
        with tempfile.TemporaryFile(mode="w+", encoding="utf-8") as out, tempfile.TemporaryFile(mode="w+", encoding="utf-8") as said:
            child = subprocess.Popen([str(part) for part in command], stdout=out, stderr=said)
            try:
                used = wait(child, seconds)
            except subprocess.TimeoutExpired:
                return {"none": "cut", "cpu_seconds": seconds}
            out.seek(0)
            said.seek(0)
            if child.returncode == 1:
                return {"none": "none fits", "cpu_seconds": used}
            if child.returncode:
                sys.exit(f"{' '.join(map(str, command))}: exit {child.returncode}\n{said.read()}")
            return {**json.loads(out.read()), "cpu_seconds": used}

    def most_runs(self):
        """How often the plan that was written last runs the op that it runs most often."""
        runs = collections.Counter()
        with open(self.output, encoding="utf-8") as file:
            for line in file:
                if line.startswith('{"i":"exec"'):
                    runs[json.loads(line)["n"]] += 1
        return max(runs.values())

    def moved_ns(self):
        """How long the plan that was written last moves data on the device in a period."""
        with open(self.output, encoding="utf-8") as file:
            return sum(json.loads(line).get("t", 0) for line in file if line.startswith('{"i":"copy"'))


def wait(child, seconds):
    """CPU seconds of a child that ends within so many; else it is ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        raise
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def told(row, key="slowdown", digits=3):
    return row["none"] if "none" in row else "-" if row.get(key) is None else f"{row[key]:.{digits}f}"


def slowdown(value):
    return "?" if value is None else f"{value:.3f}"


def done(*cells):
    """Says how far it is, as it may take long."""
    print(" ", *cells, file=sys.stderr, flush=True)


# --- G10


def g10(runs, paths):
    rows, by_host = [], []
    for path in paths:
        name, model, _ = runs.convert(path)
        storage = ["--storage", STORAGE]
        host = ["--host-budget", f"{HOST_GIB}G"]
        plans = {"best": runs.plan(model, "best", 40 * GIB, "--no-recompute", *host, *storage),
                 "auto": runs.plan(model, "auto", 40 * GIB, "--no-recompute", *host, *storage),
                 "host_alone": runs.plan(model, "auto", 40 * GIB, "--no-recompute", *host),
                 "recompute_too": runs.plan(model, "auto", 40 * GIB, *host)}
        published = dict(zip(G10_SYSTEMS, G10.get(name, (None,) * len(G10_SYSTEMS))))
        rows.append({"source": "g10", "name": name, "published": published, **plans})
        done(name, *(told(plan) for plan in plans.values()), published["G10"])
        for gib, theirs in G10_BY_HOST.get(name, {}).items():
            plan = runs.plan(model, "auto", 40 * GIB, "--no-recompute", "--host-budget", f"{gib}G", *storage)
            by_host.append({"source": "g10", "name": name, "host_gib": gib, "published": {"G10": theirs}, "auto": plan})
            done(name, gib, told(plan), theirs)
    return rows + by_host


def print_g10(rows):
    named = [row for row in rows if "host_gib" not in row]
    stored = lambda row: f"{row['auto'].get('storage_peak_bytes', 0) / GIB:.1f}"
    table(f"G10: slowdown against ideal, 40 GiB, 15.754 GB/s each way, {HOST_GIB} GiB on the host and an SSD at 3.2 GB/s",
          ["model", "best", "auto", "GiB stored", "over its bound", "without SSD", "recompute, no SSD", *G10_SYSTEMS],
          [[row["name"], told(row["best"]), told(row["auto"]), stored(row), told(row["auto"], "over_bound"), told(row["host_alone"]),
            told(row["recompute_too"]), *map(slowdown, row["published"].values())] for row in named],
          ["nothing is computed again but in that column. planc counts whole tensors at fixed addresses and sends to storage what",
           "passed through the host; G10's simulator counts pages and charges faults and allocation. inf: does not run"])
    both = [(row["auto"]["slowdown"], row["published"]["G10"]) for row in named
            if "none" not in row["auto"] and row["published"]["G10"] is not None]
    if both:
        ours, theirs = (sum(side) / len(both) - 1 for side in zip(*both))
        print(f"  mean excess over ideal of {len(both)}: auto {ours:.4f}, G10 {theirs:.4f}, {ours / theirs:.2f} of it; slower than G10: "
              f"{sum(mine > other for mine, other in both)}")
    table("G10: slowdown by host memory, with the SSD", ["model", "host GiB", "auto", "GiB stored", "G10"],
          [[row["name"], row["host_gib"], told(row["auto"]), stored(row), slowdown(row["published"]["G10"])] for row in rows
           if "host_gib" in row], ["0 GiB is left out: planc's storage is behind the host"])


# --- Checkmate


def checkmate(runs, paths):
    rows = []
    for path in paths:
        name, model, options = runs.convert(path)
        most = runs.plan(model, "none", "16T", *options)["peak_bytes"]
        budgets = {share: int(most * share) for share in CHECKMATE_SHARES}
        told_least = json.loads(planc("compare", *model, *options, "--policies", "auto", "--budget", most, "--json"))
        budgets["least"] = told_least["rows"][0]["least_budget"]
        for share, budget in budgets.items():
            row = {"source": "checkmate", "name": name, "share": share, "budget_bytes": budget, "of_peak": budget / most,
                   "best": runs.plan(model, "best", budget, *options), "auto": runs.plan(model, "auto", budget, *options)}
            row["most_runs"] = None if "none" in row["auto"] else runs.most_runs()
            proven = CHECKMATE.get(name, {}).get(share, "")
            row["proven"] = "none fits" if proven is None else proven or None
            rows.append(row)
            done(name, share, told(row["best"], digits=5), told(row["auto"], digits=5), proven)
    return rows


def print_checkmate(rows):
    table("Checkmate's graphs: duration over that without recompute",
          ["graph", "share", "of peak", "best", "auto", "runs", "bound", "over it", "CPU s", "least proven"],
          [[row["name"], row["share"], f"{row['of_peak']:.3f}", told(row["best"], digits=5), told(row["auto"], digits=5),
            f"{row['most_runs']}{'*' if row['most_runs'] > CHECKMATE_RUNS else ''}" if row["most_runs"] else "-",
            told(row["auto"], "bound", 5), told(row["auto"], "over_bound", 5), f"{row['auto'].get('cpu_seconds', 0):.2f}",
            row["proven"] if isinstance(row["proven"], str) else f"{row['proven']:.5f}" if row["proven"] else ""] for row in rows],
          ["runs: of the op that runs most often; *: more than the two that that problem allows. Sizes are rounded up to 256 bytes.",
           "share least: the least budget that auto found a plan for. CPU s: of planning with auto, or of finding that none fits"])


# --- DTR


def dtr(runs, paths):
    rows = []
    for path in paths:
        measured = measured_of(path)
        name, model, _ = runs.convert(path)
        baseline = next((float(row["time_ms_mean"]) for row in measured if row["kind"] == "baseline"), None)
        for row in measured:
            budget = int(row["total_mem_MB"]) * 10**6
            plans = {"best": runs.plan(model, "best", budget, "--no-swap"), "auto": runs.plan(model, "auto", budget, "--no-swap"),
                     "swap_too": runs.plan(model, "auto", budget)}
            theirs = float(row["time_ms_mean"]) / baseline if baseline else None
            rows.append({"source": "dtr", "name": name, "budget_GB": row["budget_GB"], "budget_bytes": budget, **plans,
                         "published": {"DTR": theirs}})
            done(name, row["budget_GB"], *(told(plan) for plan in plans.values()), slowdown(theirs))
    return rows


def measured_of(path):
    """What DTR measured of a log's model."""
    name = os.path.basename(path).split(".log")[0]
    beside = os.path.join(os.path.dirname(path), "measured.tsv")
    if not os.path.exists(beside):
        raise BadData(f"{path}: there is no measured.tsv beside it, which has its budgets")
    with open(beside, encoding="ascii", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if f"{row['model']}_{row['batch']}" == name]
    if not rows:
        raise BadData(f"{beside}: nothing is told of {name}")
    return rows


def print_dtr(rows):
    table("DTR: slowdown by memory that it took (MB)",
          ["model", "budget GB", "took MB", "best", "auto", "over its bound", "swap too, PCIe 3", "DTR", "of its overhead"],
          [[row["name"], row["budget_GB"], row["budget_bytes"] // 10**6, told(row["best"]), told(row["auto"]),
            told(row["auto"], "over_bound"), told(row["swap_too"]), slowdown(row["published"]["DTR"]), part_of(row)] for row in rows],
          ["DTR's times are measured and contain its own bookkeeping, planc's are predicted from the log's operator times;",
           "budgets are what DTR took, its allocator's loss included, not what it was told (UNet does not keep to it)."])


def part_of(row):
    theirs = row["published"]["DTR"]
    if "none" in row["auto"] or theirs is None or theirs <= 1:
        return ""
    return f"{(row['auto']['slowdown'] - 1) / (theirs - 1):.2f}"


# --- MONET


class MonetPlans:
    """Plans of one problem within one budget, and the CPU seconds that they have taken."""

    def __init__(self, runs, problem, budget, options):
        self.runs, self.problem, self.spent, self.longest = runs, problem, 0, 0
        self.options = ["--no-swap", "--policy", "auto", "--budget", int(budget * GIB), *options]

    def plan(self, choice, effort):
        """The summary of a plan, with what it comes to by MONET's rules, or why there is none."""
        graph, profile = elsewhere_monet.iteration_of(self.problem, choice).write(self.runs.folder)
        options = [graph, "--profile", profile, *self.options, "--effort", effort]
        row = self.runs.run(options, max(1, self.runs.seconds - self.spent))
        self.spent += row["cpu_seconds"]
        self.longest = max(self.longest, row["cpu_seconds"])
        if "none" not in row:
            planc("check", self.runs.output, "--graph", graph)
            layout = elsewhere_monet.Layout(self.problem, choice)
            row.update(elsewhere_monet_sums.judge(self.problem, layout, self.runs.output), choice=choice)
            row["moved_ns"] = self.runs.moved_ns()
            if row["units"] * elsewhere_monet.UNIT_NS != row["iteration_ns"] - row["moved_ns"]:
                sys.exit(f"{graph}: {row['iteration_ns']} ns, {row['moved_ns']} of which are moves, are {row['units']} of MONET's units")
        return row

    def best(self, effort):
        """The fastest found. Where there are choices, most of the time goes into finding good ones; what is left of it goes into
        the best of them, with more and more effort."""
        goes_on = lambda: self.spent + self.longest < MONET_SEARCHED * self.runs.seconds
        rows = {}

        def units_of(choice):
            row = self.plan(choice, effort)
            rows[tuple(sorted(choice.items()))] = row
            return row.get("units", float("inf"))

        choices = elsewhere_monet_ways.ranked(self.problem, units_of, goes_on)
        best = rows[tuple(sorted(choices[0].items()))]
        for more, choice in itertools.product(range(effort + 1, MOST_EFFORT + 1), choices[:MONET_CHOICES]):
            if "none" in best or self.spent >= self.runs.seconds:
                break
            row = self.plan(choice, more)
            if row.get("units", float("inf")) < best["units"]:
                best = row
        return {**best, "cpu_seconds": self.spent}

    def bound(self, best):
        """What no schedule of MONET's takes less than, in its units; None where that is not told."""
        if self.problem.choices():
            graph, profile = elsewhere_monet.iteration_of(self.problem, None).write(self.runs.folder)
            best = self.runs.run([graph, "--profile", profile, *self.options], self.runs.seconds)
        return best["bound_ns"] / elsewhere_monet.UNIT_NS if best.get("bound_ns") else None


def monet(runs, paths):
    rows = []
    for path in paths:
        problem = elsewhere_monet.Problem(path)
        for budget, theirs in elsewhere_monet.published(path).items():
            plans = MonetPlans(runs, problem, budget, runs.reorder)
            best = plans.best(runs.most)
            row = {"source": "monet", "name": problem.name, "budget_GB": budget, "published": theirs, "auto": best,
                   "bound": plans.bound(best)}
            if theirs["objective"] and "none" not in best:
                row["of_published"] = best["units"] / theirs["objective"]
            rows.append(row)
            done(problem.name, budget, told(best, "units", 0), theirs["objective"], told(row, "of_published", 4))
    return rows


def print_monet(rows):
    whole = lambda value: "" if value is None else f"{value:.0f}"
    gib = lambda row, key: f"{row['auto'][key] / GIB:.3f}" if key in row["auto"] else "-"
    table("MONET's problems: an iteration in 10 us",
          ["problem", "GB", "MONET", "its bound", "auto", "of MONET's", "bound", "live GiB", "placed", "charged", "unlike", "CPU s"],
          [[row["name"].replace("_inplace", ""), row["budget_GB"],
            row["published"]["status"] or whole(row["published"]["objective"]), whole(row["published"]["bound"]),
            told(row["auto"], "units", 0), told(row, "of_published", 4), whole(row["bound"]), gib(row, "live_bytes"),
            gib(row, "peak_bytes"), gib(row, "charged_bytes"), len(row["auto"].get("unlike", [])),
            f"{row['auto']['cpu_seconds']:.1f}"] for row in rows],
          ["MONET: 24 hours of a solver, or until its gap is 0.01 %. Times are sums of its measured times, by its rules, without",
           "moves of data on the device, which only addresses ask for.",
           "placed: with addresses, of which MONET knows none. charged: by its inequalities, which charge more than is live;",
           "what they charge with more than the budget is none of its schedules. unlike: ops that run again in another order",
           "than MONET's of each stage. bound: of all schedules; where backward nodes have choices, as if each read what all",
           "of them have in common"])


# --- Which


SOURCES = {"g10": (g10, print_g10), "checkmate": (checkmate, print_checkmate), "dtr": (dtr, print_dtr),
           "monet": (monet, print_monet)}


def source_of(path):
    """Which source's a file or folder looks to be; None: no one's."""
    if os.path.isdir(path):
        return "g10" if os.path.exists(os.path.join(path, "kernels.tsv")) else None
    if path.endswith(".json"):
        return "monet" if elsewhere_monet.is_problem(path) else "checkmate"
    return "dtr" if path.endswith((".log", ".log.gz")) else None


def find(paths):
    """By source, the iterations that the paths are, or that are in them."""
    found = {source: [] for source in SOURCES}
    for path in paths:
        whole = source_of(path) or not os.path.isdir(path)
        for each in [path] if whole else [os.path.join(path, name) for name in sorted(os.listdir(path))]:
            if source_of(each):
                found[source_of(each)].append(each)
            elif whole:
                sys.exit(f"bench_elsewhere.py: {path}: a folder of G10's, a .json of Checkmate's or MONET's or a .log.gz of DTR's "
                         "is expected")
    return found


def rows_of(source, options):
    default = os.path.join(DATA, source)
    if not options.paths and not os.path.isdir(default):
        print(f"bench_elsewhere: {source} is skipped, ../shared/bench/{source} is absent", file=sys.stderr if options.json else sys.stdout)
        return []
    paths = find(options.paths or [default])[source]
    with tempfile.TemporaryDirectory() as folder:
        return SOURCES[source][0](Bench(folder, options), paths)


def part(source):
    def run(options):
        rows = rows_of(source, options)
        if rows:
            SOURCES[source][1](rows)

    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="FILE|FOLDER")
    parser.add_argument("--json", action="store_true", help="rows as one line of JSON, and nothing else")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--effort", type=int, default=1, choices=range(MOST_EFFORT + 1))
    parser.add_argument("--reorder", action="store_true")
    try:
        if "--json" in sys.argv:
            parser.add_argument("--only", action="append", choices=list(SOURCES))
            options = parser.parse_args()
            print(json.dumps([row for source in options.only or SOURCES for row in rows_of(source, options)]))
        else:
            bench("simulated, at operator times and on the device of each source. Times are predictions.",
                  {source: part(source) for source in SOURCES}, parser)
    except (BadData, OSError) as error:
        sys.exit(f"bench_elsewhere.py: {error}")


if __name__ == "__main__":
    main()
