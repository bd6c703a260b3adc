#!/usr/bin/env python3
"""The whole loop on the host: profile, plan, run, compare.

usage: bench_host.py [--only PART] [--iterations N] [--repetitions N] [--batch N] [--paced RATE] [--models NAME,NAME]
                     [--share PERCENT] [--turns N] [--json] [FILE|FOLDER ...]

The first model is profiled and planned with several policies and budgets; every plan is verified bit for bit, then its
iteration is measured and held against the prediction. With a paced link the order of policies measured is held against
the order predicted, on every model. Last comes what the interpreter itself costs. Everything that is compared
is from one run of this program; the machine's own noise is the spread of repeated measurements of one plan.

auto: policy auto in a part of what everything resident takes, verified bit for bit, beside every other policy that has a plan
there. All are measured in turn, several times, so that a machine that slows down does so for all of them. To be held: auto is
measured within 5 % of its prediction, and is faster than each. Files and folders are graphs in place of the first model."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from bench_bound import graphs_of
from benchlib import BUILD, bench_rows, claimed, graph, machine, planc, table, uses

PLANRUN = os.path.join(BUILD, "planrun")
OFF = 0.05  # of its prediction, what auto is measured at most


def planrun(*arguments):
    done = subprocess.run([PLANRUN, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"planrun {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


class Host:
    """A graph's profile on this machine, and plans made with it."""

    def __init__(self, folder, name, options, path=None):
        self.folder, self.name, self.options = folder, name, options
        path = path or graph(name)
        self.profile = os.path.join(folder, name + ".json")
        print(f"profiling {name}", file=sys.stderr)
        link = ["--link", options.link] if options.link else []
        planrun("profile", path, "--batches", options.batch, "--repetitions", options.repetitions, "-o",
                self.profile, *link)
        self.problem = [path, "--batch", options.batch, "--profile", self.profile]

    def fitting(self, budget):
        """The policies that have a plan."""
        rows = json.loads(planc("compare", *self.problem, "--budget", budget, "--json"))["rows"]
        return [row["policy"] for row in rows if row["feasible"] and row["policy"] != "ideal"]

    def least(self, policy):
        rows = json.loads(planc("compare", *self.problem, "--policies", policy, "--json"))["rows"]
        return rows[0]["least_budget"]

    def plan(self, policy, budget):
        """The path and summary of a plan."""
        path = os.path.join(self.folder, f"{self.name}-{policy}-{budget}.plan")
        return path, json.loads(planc("plan", *self.problem, "--policy", policy, "--budget", budget, "-o", path, "--json"))

    def run(self, path, verify=False):
        """What `planc simulate --against` says of a run; verified runs are not timed."""
        link = ["--link", self.options.link] if self.options.link else []
        if verify:
            report = json.loads(planrun("exec", path, "--iterations", 2, "--verify", "--json").splitlines()[-1])
            assert report["verified"], path
        trace = path + ".json"
        planrun("exec", path, "--iterations", self.options.iterations, "--trace", trace, *link)
        return json.loads(planc("simulate", path, "--against", trace, "--json"))["against"]


def figures(summary, against):
    predicted, measured = against["predicted_ns"], against["measured_ns"]
    return [f"{summary['peak_bytes'] / 2**20:.1f}", f"{predicted / 1e6:.1f}", f"{measured / 1e6:.1f}",
            f"{measured / predicted - 1:+.1%}"]


HEAD = ["policy", "budget MiB", "peak MiB", "predicted ms", "measured ms", "off by"]


def predictions(host):
    resident = host.plan("none", "1T")[1]["peak_bytes"]
    cases = [("modnn", share, resident * share // 100) for share in (100, 60, 40)]
    cases += [(policy, None, host.least(policy) * 11 // 10) for policy in ("vdnn-dyn", "chen", "cheap")]
    cases += [(policy, 40, resident * 40 // 100) for policy in ("window", "capuchin", "tensile")]
    rows, notes = [], []
    for policy, share, budget in cases:
        path, summary = host.plan(policy, budget)
        label = f"{policy} {share} %" if share else f"{policy} 1.1 x least"
        rows.append([label, f"{budget / 2**20:.1f}", *figures(summary, host.run(path, verify=True))])
        home, of = at_home(path)
        if home:
            notes.append(f"{label}: {home} of {of} persistent buffers are at home on the host between iterations")
    table(f"{host.name}, batch {host.options.batch}: every plan verified bit for bit; iterations predicted and measured",
          HEAD, rows, notes)


def at_home(path):
    """How many of a plan's persistent buffers leave the device, memory 0, between iterations, and how many there are."""
    with open(path, encoding="ascii") as file:
        rows = [line for line in file if line.startswith('{"boundary":')]
    return sum('"m":0,' not in row for row in rows), len(rows)


def order(host):
    budget = max(host.least("vdnn-all"), host.least("modnn") * 2)
    rows = []
    for policy in ("modnn", "vdnn+", "vdnn-all"):
        path, summary = host.plan(policy, budget)
        rows.append((host.run(path), [policy, f"{budget / 2**20:.1f}"], summary))
    times = [(against["predicted_ns"], against["measured_ns"]) for against, _, _ in rows]
    agree = all((p < q) == (m < n) for p, m in times for q, n in times if abs(p - q) > q / 100)
    table(f"{host.name}, batch {host.options.batch}, link paced to {host.options.link}", HEAD,
          [label + figures(summary, against) for against, label, summary in rows],
          [f"measured in the {'same' if agree else 'OTHER'} order; predictions within 1 % of each other count as equal"])


def interpreter(host):
    path, _ = host.plan("none", "1T")
    out = json.loads(subprocess.run([os.path.join(BUILD, "bench/interpreter_cost"), path, "1", "5"], capture_output=True,
                                    text=True, check=True).stdout)
    rows = [[kind, f"{out[kind + '_ns'] / 1e6:.2f}", f"{out[kind + '_ns'] / out['loop_ns'] - 1:+.2%}"]
            for kind in ("loop", "sequential", "concurrent")]
    table(f"{host.name}: CPU time of an iteration, everything resident", ["run by", "ms", "against the loop"], rows)


def auto(options):
    options.link = None
    with tempfile.TemporaryDirectory() as folder:
        first = options.models.split(",")[0]
        return [row for name, path in (list(graphs_of(options.paths, folder)) if options.paths else [(first, graph(first))])
                for row in beside_auto(Host(folder, name, options, path))]


def beside_auto(host):
    """A row for each policy that fits, auto first; who made auto's plan is not there again."""
    budget = host.plan("none", "1T")[1]["peak_bytes"] * host.options.share // 100
    made = {"auto": host.plan("auto", budget)}
    by = made["auto"][1]["policy"]
    made.update((policy, host.plan(policy, budget)) for policy in host.fitting(budget) if policy != by)
    runs = {policy: [] for policy in made}
    for repeat in range(host.options.turns):
        for policy, (path, _) in made.items():
            runs[policy].append(host.run(path, verify=policy == "auto" and repeat == 0))
            print(f"  {host.name} {policy}: {runs[policy][-1]['predicted_ns']} {runs[policy][-1]['measured_ns']}", file=sys.stderr)
    for policy, (_, summary) in made.items():
        measured = [run["measured_ns"] for run in runs[policy]]
        yield {"graph": host.name, "batch": host.options.batch, "share": host.options.share, "policy": policy,
               "by": summary["policy"], "uses": uses(summary), "verified": policy == "auto", "budget_bytes": budget,
               "peak_bytes": summary["peak_bytes"], "predicted_ns": runs[policy][0]["predicted_ns"],
               "measured_ns": statistics.median(measured), "least_ns": min(measured), "most_ns": max(measured)}


def print_auto(rows):
    for made in (row for row in rows if row["policy"] == "auto"):
        of = [row for row in rows if row["graph"] == made["graph"]]
        table(f"{made['graph']}, batch {made['batch']}, {made['share']} % of everything resident: auto, verified bit for bit, "
              "and all others that fit, measured",
              [*HEAD, "least", "most", "over auto", "does"],
              [[row["policy"] if row["policy"] == row["by"] else f"{row['policy']} ({row['by']})",
                f"{row['budget_bytes'] / 2**20:.1f}", *figures(row, row),
                *(f"{row[key] / 1e6:.1f}" for key in ("least_ns", "most_ns")),
                f"{row['measured_ns'] / made['measured_ns'] - 1:+.1%}", ", ".join(row["uses"]) or "-"] for row in of],
              ["measured: the median of turns, each the median of its iterations; least, most: of turns",
               claimed(f"auto within {OFF:.0%} of its prediction", [made],
                       lambda row: abs(row["measured_ns"] / row["predicted_ns"] - 1) <= OFF, lambda row: row["graph"]),
               claimed("auto faster than another policy", [row for row in of if row is not made],
                       lambda row, made=made: made["measured_ns"] < row["measured_ns"], lambda row: row["policy"])])


def policies(options):
    options.link = None
    with tempfile.TemporaryDirectory() as folder:
        models = options.models.split(",")
        host = Host(folder, models[0], options)
        predictions(host)
        interpreter(host)
        options.link = options.paced
        for name in models:
            order(Host(folder, name, options))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--iterations", type=int, default=5)
    arguments.add_argument("--repetitions", type=int, default=3)
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--models", default="resnet50,vgg16")
    arguments.add_argument("--paced", default="0.2GB/s", metavar="RATE", help="link of the order of policies")
    arguments.add_argument("paths", nargs="*", metavar="FILE|FOLDER")
    arguments.add_argument("--share", type=int, default=30, metavar="PERCENT", help="budget of auto, of what is resident at once")
    arguments.add_argument("--turns", type=int, default=3, help="how often each plan beside auto's is measured")
    bench_rows(machine(), {"policies": policies, "auto": (auto, print_auto)}, arguments)
