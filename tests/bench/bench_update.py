#!/usr/bin/env python3
"""Updating on a machine that others load: what `planc update` makes of a run against a plan made for the load.

usage: bench_update.py [--model NAME] [--batch N] [--share PERCENT] [--policies NAME,...] [--link RATE] [--loads N]
                       [--iterations N] [--rounds N] [--repetitions N]

The model is profiled on the idle machine and planned for a share of its resident peak. Then other processes load the
machine: each trains the same model, all resident, as fast as it can. Under that load the plan runs once with a trace,
and from it come two updates: of the plan alone, and with the profile's other algorithms and batches. Against them stands
a plan made from a profile that was measured under the load. All plans then run in turn, several times; times are medians
of the runs' medians, and the spread is that of the runs."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from statistics import median

from benchlib import BUILD, bench, graph, machine, planc, table

PLANRUN = os.path.join(BUILD, "planrun")
WITHIN = 0.05


def planrun(*arguments):
    done = subprocess.run([PLANRUN, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"planrun {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


class Load:
    """Processes that train all the while."""

    def __init__(self, plan, n):
        self.command = [PLANRUN, "exec", plan, "--same-samples", "--iterations", str(10**9)]
        self.n, self.children = n, []

    def __enter__(self):
        self.children = [subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                         for _ in range(self.n)]

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
            child.wait()


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.link = ["--link", options.link] if options.link else []

    def path(self, name):
        return os.path.join(self.folder, name)

    def profile(self, name):
        print(f"profiling: {name}", file=sys.stderr)
        planrun("profile", graph(self.options.model), "--batches", self.options.batch, "--repetitions",
                self.options.repetitions, "-o", self.path(name), *self.link)
        return self.path(name)

    def plan(self, name, profile, policy, budget):
        summary = planc("plan", graph(self.options.model), "--batch", self.options.batch, "--profile", profile,
                        "--policy", policy, "--budget", budget, "-o", self.path(name), "--json")
        return self.path(name), json.loads(summary)

    def run(self, path):
        """What `planc simulate --against` says of a run."""
        trace = path + ".json"
        planrun("exec", path, "--same-samples", "--iterations", self.options.iterations, "--trace", trace, *self.link)
        return json.loads(planc("simulate", path, "--against", trace, "--json"))["against"]

    def update(self, path, name, *options):
        said = json.loads(planc("update", path, "--trace", path + ".json", "--threshold", 0, "-o", self.path(name),
                                "--json", *options))
        return self.path(name), said

    def run_in_turn(self, plans):
        """Runs by name of the plan: predicted times, and the measured ones of all rounds."""
        seen = {name: [] for name in plans}
        for _ in range(self.options.rounds):
            for name, path in plans.items():
                seen[name].append(self.run(path))
        return {name: (runs[0]["predicted_ns"], [run["measured_ns"] for run in runs]) for name, runs in seen.items()}

    def compare(self, policy, idle, resident, budget):
        """One table: the policy's plans under load. Whether both updates are as good as a plan made for it."""
        old, _ = self.plan(policy + "-old", idle, policy, budget)
        alone = self.run(old)["measured_ns"]
        with Load(resident, self.options.loads):
            self.run(old)
            updated, said = self.update(old, policy + "-updated")
            informed, _ = self.update(old, policy + "-informed", "--profile", idle)
            loaded = self.profile(policy + "-loaded.json")
            meant, _ = self.plan(policy + "-meant", loaded, policy, budget)
            plans = {"made when idle": old, "updated": updated, "updated, with the profile": informed,
                     "made for the load": meant}
            runs = self.run_in_turn(plans)
        target = median(runs["made for the load"][1])
        rows = [[name, f"{predicted / 1e6:.1f}", f"{median(times) / 1e6:.1f}",
                 f"{(max(times) - min(times)) / median(times):.1%}", f"{median(times) / target - 1:+.1%}"]
                for name, (predicted, times) in runs.items()]
        met = [median(runs[name][1]) <= target * (1 + WITHIN) for name in ("updated", "updated, with the profile")]
        table(f"{self.options.model}, batch {self.options.batch}, {policy} in {budget / 2**20:.1f} MiB beside "
              f"{self.options.loads} processes; idle {alone / 1e6:.1f} ms",
              ["plan", "predicted ms", "measured ms", "spread", "against that for the load"], rows,
              [f"change seen {said['change_ppm'] / 1e6:.2f}; updated plans within {WITHIN:.0%}: "
               f"{', '.join('yes' if one else 'NO' for one in met)}"])
        return all(met)


def main(options):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options)
        idle = bench.profile("idle.json")
        resident, summary = bench.plan("resident.plan", idle, "none", "1T")
        budget = summary["peak_bytes"] * options.share // 100
        missed = [policy for policy in options.policies.split(",") if not bench.compare(policy, idle, resident, budget)]
    if missed:
        sys.exit(f"an updated plan is not within {WITHIN:.0%}: {', '.join(missed)}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--model", default="resnet50")
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--share", type=int, default=40, help="per cent of the resident peak to plan for")
    arguments.add_argument("--policies", default="modnn,vdnn+")
    arguments.add_argument("--link", default="0.5GB/s", metavar="RATE")
    arguments.add_argument("--loads", type=int, default=os.cpu_count())
    arguments.add_argument("--iterations", type=int, default=8)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--repetitions", type=int, default=3, help="of the profile")
    bench(machine(), {"all": main}, arguments)
