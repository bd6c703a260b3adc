#!/usr/bin/env python3
"""Predicted costs on the host: how far off they are, and what a plan made from nothing else loses.

usage: bench_predict.py [--profiles FOLDER] [--held-out NAME] [--batch N] [--share PER_CENT] [--iterations N] [--runs N]

Graphs are profiled, a model is fitted to all of them, and its errors on ops, and on whole graphs, that it had not seen
are printed, beside how far measurements of one op differ among themselves: nothing can be predicted better. Then one graph
is held out, its ops are predicted from the others', and it is planned under a share of its peak with these costs and
with its own profile; both are simulated at the measured times, and run by turns. The plan made from predictions is loaded with its own workspaces: where
one is too small for this machine, that is said, and the workspaces listed in the profile are taken instead.

--profiles keeps the profiles in FOLDER and takes those that are there."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchlib import BUILD, bench, graph, machine, planc, table

PLANRUN = os.path.join(BUILD, "planrun")
MODELS = {"lenet-digits": "8,32,64", "tiny-transformer": "8,32,64", "resnet34": "2,8", "densenet121": "2,8",
          "vgg16": "1,4", "resnet50": "2,8"}


def planrun(*arguments):
    return subprocess.run([PLANRUN, *map(str, arguments)], capture_output=True, text=True)


def profile(folder, name, options):
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        print(f"profiling {name}", file=sys.stderr)
        done = planrun("profile", graph(name), "--batches", MODELS[name], "--repetitions", options.repetitions, "-o", path)
        if done.returncode:
            sys.exit(f"planrun profile {name}: exit {done.returncode}\n{done.stderr}")
    return path


def fit(profiles, output):
    """What `planc predict --fit` says of itself."""
    return json.loads(planc("predict", "--fit", *profiles.values(), "--graphs", ",".join(map(graph, profiles)), "-o",
                            output, "--json"))


def times(path):
    """Of a profile: (op, algorithm, batch) to nanoseconds."""
    with open(path, encoding="utf-8") as file:
        ops = json.load(file)["ops"]
    return {(op["op"], variant["algorithm"], point["batch"]): point["time_ns"]
            for op in ops for variant in op["variants"] for point in variant["points"]}


def per_cent(ppm):
    return f"{ppm / 1e4:.1f} %"


def errors(profiles, folder):
    report = fit(profiles, os.path.join(folder, "all.model.json"))
    rows = [[what, row["n"], per_cent(row["median_ppm"]), per_cent(row["p90_ppm"]), per_cent(row["roofline_median_ppm"]),
             row["unknown"]]
            for what, row in (("ops", report["held_out_ops"]), ("graphs", report["held_out_graphs"]))]
    table(f"held out of {', '.join(profiles)}: error of predicted times", ["what", "times", "median", "90 % below",
          "roofline's median", "not predicted"], rows,
          [f"{report['groups']} types and algorithms; fitted and judged in {report['fit_ns'] / 1e6:.0f} ms",
           f"times of one shape differ by {per_cent(report['repeat_median_ppm'])} among themselves, median of "
           f"{report['repeated']}"])


def predict(name, model, output, *options):
    return json.loads(planc("predict", graph(name), "--device", model, "--batch", MODELS[name].split(",")[-1], "-o", output,
                            "--json", *options))


def predicted_against_measured(name, predicted, measured):
    ours, theirs = times(predicted), times(measured)
    both = [key for key in theirs if key in ours]
    off = sorted(abs(ours[key] - theirs[key]) / theirs[key] for key in both)
    large = [abs(ours[key] - theirs[key]) / theirs[key] for key in both if theirs[key] > 10000]
    total = sum(ours[key] for key in both) / sum(theirs[key] for key in both)
    table(f"{name}, predicted from the others' profiles", ["times", "median error", "over 10 us", "sum of times"],
          [[f"{len(both)} of {len(theirs)}", f"{statistics.median(off):.1%}", f"{statistics.median(large):.1%}",
            f"{total - 1:+.1%}"]])


def make_plan(name, costs, options, output):
    """A plan of the held-out graph under the share of its peak, and its summary."""
    problem = ["plan", graph(name), "--batch", options.batch, "--profile", costs, "--json", "-o", output]
    peak = json.loads(planc(*problem, "--policy", "none", "--budget", "1T"))["peak_bytes"]
    budget = options.budget or peak * options.share // 100
    return budget, json.loads(planc(*problem, "--policy", options.policy, "--budget", budget))


def at_times_of(measured, path):
    """The plan's iteration with its ops as long as they were measured."""
    return json.loads(planc("simulate", path, "--costs", measured, "--json"))["period_ns"]


def measure(path, options):
    """Median iteration of a run, or None where the plan cannot be loaded here."""
    trace = path + ".json"
    done = planrun("exec", path, "--iterations", options.iterations, "--trace", trace)
    if done.returncode == 6:
        print(done.stderr, file=sys.stderr, end="")
        return None
    if done.returncode:
        sys.exit(f"planrun exec: exit {done.returncode}\n{done.stderr}")
    return json.loads(planc("simulate", path, "--against", trace, "--json"))["against"]["measured_ns"]


def plans(name, model, measured, folder, options):
    own = os.path.join(folder, "predicted.json")
    listed = os.path.join(folder, "listed.json")
    took = predict(name, model, own)["predict_ns"]
    predict(name, model, listed, "--profile", measured)
    predicted_against_measured(name, own, measured)
    paths, summaries = {}, {}
    for what, costs in (("measured", measured), ("predicted", own), ("predicted times, listed workspaces", listed)):
        paths[what] = os.path.join(folder, what.split(",")[0].replace(" ", "-") + ".plan")
        options.budget, summaries[what] = make_plan(name, costs, options, paths[what])
    runs = {what: [] for what in paths}
    for _ in range(options.runs):
        for what in list(runs):
            time = measure(paths[what], options)
            if time is None:
                del runs[what]
            else:
                runs[what].append(time)
    base = min(runs["measured"])
    rows = [[what, f"{summaries[what]['peak_bytes'] / 2**20:.1f}", f"{summaries[what]['iteration_ns'] / 1e6:.0f}",
             f"{at_times_of(measured, paths[what]) / 1e6:.0f}",
             *([f"{min(runs[what]) / 1e6:.0f}", f"{statistics.median(runs[what]) / 1e6:.0f}",
                f"{max(runs[what]) / 1e6:.0f}", f"{min(runs[what]) / base - 1:+.1%}"]
               if what in runs else ["not loaded", "", "", ""])]
            for what in paths]
    table(f"{name}, batch {options.batch}, {options.policy} under {options.budget / 2**20:.1f} MiB, "
          f"{options.share} % of its peak", ["costs", "peak MiB", "predicted ms", "at measured times", "least ms", "median",
                                             "most", "loses"], rows,
          ["least of the runs: whatever else the machine does only adds", f"all ops predicted in {took / 1e6:.0f} ms"])


def main(options):
    options.budget = None
    with tempfile.TemporaryDirectory() as folder:
        profiles = {name: profile(options.profiles or folder, name, options) for name in MODELS}
        errors(profiles, folder)
        model = os.path.join(folder, "model.json")
        fit({name: path for name, path in profiles.items() if name != options.held_out}, model)
        plans(options.held_out, model, profiles[options.held_out], folder, options)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--profiles", metavar="FOLDER")
    arguments.add_argument("--held-out", default="resnet50", metavar="NAME")
    arguments.add_argument("--policy", default="modnn")
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--share", type=int, default=40, metavar="PER_CENT")
    arguments.add_argument("--iterations", type=int, default=4)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--repetitions", type=int, default=3)
    bench(machine(), {"all": main}, arguments)
