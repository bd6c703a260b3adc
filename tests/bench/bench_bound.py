#!/usr/bin/env python3
"""How fast a plan could be at best (planc bound), beside the fastest other policy's and auto's, at parts of what policy none
needs. Reordered plans, which auto makes with --reorder, have an order of their own, of which the bound is not.

usage: bench_bound.py [--json] [--device NAME] [--batch N] [--parts N,...] [-o FILE] [FILE|FOLDER ...]

Each FILE is a graph, or a recorded iteration (JSON) of ../shared/graphs; a FOLDER is all of its files. Without any: the
recorded graphs of the library. The batch is run at once, as the bound is of given rounds. Exit 1 where a plan is faster than
its bound."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from benchlib import ROOT, bench, cpu_seconds, graph, planc, table

RECORDED = [graph(os.path.join("recorded", name)) for name in ("lstm4", "resnet34", "resnet50", "vgg16")]
EFFORTS = [1, 2]


def graphs_of(paths, folder):
    """Of each file a graph and its name; recordings are converted into `folder`."""
    for path in paths:
        files = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        for file in files:
            name, ending = os.path.splitext(os.path.basename(file))
            if ending == ".json":
                converted = os.path.join(folder, name + ".yaml")
                subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "from_recording.py"), file, "-o", converted], check=True)
                yield name, converted
            elif ending == ".yaml":
                yield name, file


def plan(problem, budget, policy, folder, *options):
    """The name and time of a policy's plan; (None, None): none fits."""
    out = planc("plan", *problem, "--budget", budget, "--policy", policy, *options, "--json", "-o", os.path.join(folder, "x.plan"),
                check=False)
    found = json.loads(out) if out else {"policy": None, "iteration_ns": None}
    return found["policy"], found["iteration_ns"]


def measure(name, path, part, options, folder):
    problem = [path, "--batch", options.batch, "--sub-batch", options.batch, "--device", options.device]
    none = json.loads(planc("plan", *problem, "--policy", "none", "--budget", "1T", "--json", "-o", os.path.join(folder, "x.plan")))
    budget = none["peak_bytes"] * part // 100
    row = {"graph": name, "part": part, "budget_bytes": budget, "ideal_ns": none["ideal_ns"], "bounds_ns": [], "seconds": []}
    for effort in EFFORTS:
        asked = ["bound", *problem, "--budget", budget, "--effort", effort, "--json"]
        out = planc(*asked, check=False)
        row["bounds_ns"].append(json.loads(out)["bound_ns"] if out else None)
        row["seconds"].append(cpu_seconds(*asked, runs=1, ends=(0, 1))[0])
    row["policy"], row["iteration_ns"] = plan(problem, budget, "best", folder)
    row["auto_ns"] = plan(problem, budget, "auto", folder)[1]
    row["reordered_ns"] = plan(problem, budget, "auto", folder, "--reorder")[1]
    return row


def over(ns, ideal_ns):
    return "-" if ns is None else f"{ns / ideal_ns:.4f}"


def main(options):
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, path, part, options, folder) for name, path in graphs_of(options.paths or RECORDED, folder)
                for part in options.parts]
    wrong = [row["graph"] for row in rows for ns in (row["iteration_ns"], row["auto_ns"]) if ns and
             (row["bounds_ns"][-1] is None or ns < max(filter(None, row["bounds_ns"])))]
    if options.json:
        print(json.dumps(rows))
    else:
        table(f"Times over the ops' own, {options.device}, batch {options.batch} at once",
              ["graph", "of none's peak", *(f"bound, effort {effort}" for effort in EFFORTS), "fastest other", "its time", "auto",
               "reordered"],
              [[row["graph"], f"{row['part']}%", *(over(ns, row["ideal_ns"]) for ns in row["bounds_ns"]), row["policy"] or "none fits",
                over(row["iteration_ns"], row["ideal_ns"]), over(row["auto_ns"], row["ideal_ns"]),
                over(row["reordered_ns"], row["ideal_ns"])] for row in rows],
              ["no plan is faster than a bound; -: no plan fits, which the bound's memory shows"])
        table("CPU seconds of planc bound, measured", ["graph", "of none's peak", *(f"effort {effort}" for effort in EFFORTS)],
              [[row["graph"], f"{row['part']}%", *(f"{seconds:.2f}" for seconds in row["seconds"])] for row in rows])
    if wrong:
        sys.exit("faster than their bound: " + ", ".join(wrong))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="*", metavar="FILE|FOLDER")
    arguments.add_argument("--json", action="store_true", help="rows as one line of JSON, and nothing else")
    arguments.add_argument("--device", default="v100-32g")
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--parts", type=lambda text: [int(part) for part in text.split(",")], default=[60, 40, 25], metavar="N,...")
    if "--json" in sys.argv:
        main(arguments.parse_args())
    else:
        bench("simulated, device descriptions as committed. Times are predictions.", {"all": main}, arguments)
