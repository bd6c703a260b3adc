#!/usr/bin/env python3
"""Several jobs on the host: profile each, plan the mix, run, compare.

usage: bench_host_mixes.py [--iterations N] [--repetitions N] [--runs N]

Mixes of two and of three jobs (ResNet-50 at batch 4, LeNet, an LSTM) have four fifths of what the jobs need alone, together.
Every plan is verified bit for bit, with memory poisoned and random delays; then the median time of its period is held against the prediction. Each op runs on one of
the machine's processors, so that as many jobs as there are of these run side by side at full speed.

A machine that others share runs the same ops faster and slower from minute to minute. So the plans of a mix run in turn, several
times, and of each the run with the median period counts; beside the prediction stands that with its ops, of the same run, as fast
as they were.

Exit 1 where a period is off by more than a tenth: that is what a machine shows that does nothing else."""

import argparse
import json
import os
import tempfile

from bench_host import planrun
from benchlib import bench, graph, hold, machine, planc, table

JOBS = {"resnet50": 4, "lenet-digits": 4096, "gnmt-small": 2048}
MIXES = [["resnet50", "gnmt-small"], ["lenet-digits", "gnmt-small"], ["resnet50", "lenet-digits", "gnmt-small"]]
POLICIES = ["temporal", "zico", "waterwave", "tensile"]
SHARE = 0.8
MOST = 10  # per cent


class Profiled:
    """Profiles of the jobs on this machine."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        for name, batch in JOBS.items():
            planrun("profile", graph(name), "--batches", batch, "--repetitions", options.repetitions, "-o", self.path(name))

    def path(self, name):
        return os.path.join(self.folder, name + ".json")

    def need(self, name):
        """Bytes where everything stays."""
        return json.loads(planc("plan", graph(name), "--batch", JOBS[name], "--profile", self.path(name), "--policy", "none",
                                "--json", "-o", os.devnull))["peak_bytes"]

    def plan(self, mix, policy, budget):
        path = os.path.join(self.folder, policy + ".plan")
        jobs = [f"{graph(name)}:{JOBS[name]}" for name in mix]
        profiles = [a for name in mix for a in ("--profile", self.path(name))]
        return path, json.loads(planc("colocate", *jobs, *profiles, "--budget", budget, "--policy", policy, "--json", "-o", path))

    def verify(self, path):
        verified = json.loads(planrun("exec", path, "--iterations", 1, "--verify", "--poison", "--jitter", 1, "--json").splitlines()[-1])
        assert verified["verified"], path

    def run(self, path):
        """What `planc simulate --against` says of a run."""
        trace = path + ".json"
        planrun("exec", path, "--iterations", self.options.iterations, "--trace", trace)
        return json.loads(planc("simulate", path, "--against", trace, "--json"))["against"]

    def run_in_turn(self, paths):
        """Of each plan the run with the median period."""
        runs = [[self.run(path) for path in paths] for _ in range(self.options.runs)]
        return [sorted(of, key=lambda run: run["measured_ns"])[len(of) // 2] for of in zip(*runs)]


def off_by(predicted, measured):
    return f"{measured / predicted - 1:+.1%}"


def main(options):
    rows, off = [], []
    with tempfile.TemporaryDirectory() as folder:
        profiled = Profiled(folder, options)
        for mix in MIXES:
            budget = int(sum(profiled.need(name) for name in mix) * SHARE)
            plans = [profiled.plan(mix, policy, budget) for policy in POLICIES]
            for path, _ in plans:
                profiled.verify(path)
            for policy, (path, summary), against in zip(POLICIES, plans, profiled.run_in_turn([path for path, _ in plans])):
                predicted, measured = against["predicted_ns"], against["measured_ns"]
                ratio = ":".join(str(share["iterations"]) for share in summary["shares"])
                rows.append([" + ".join(mix), ratio, policy, f"{budget / 2**20:.1f}", f"{summary['peak_bytes'] / 2**20:.1f}",
                             f"{summary['throughput']:.2f}", f"{predicted / 1e6:.1f}", f"{measured / 1e6:.1f}",
                             off_by(predicted, measured), off_by(against["predicted_as_measured_ns"], measured)])
                off.append((f"a period of {' + '.join(mix)} by {policy} is off:", f"{abs(measured / predicted - 1):.1%}"[:-1],
                            MOST))
    table("Several jobs on the host, every plan verified bit for bit; periods predicted and measured",
          ["jobs", "iterations", "policy", "budget MiB", "peak MiB", "throughput", "predicted ms", "measured ms", "off by", "its ops as measured"], rows,
          [f"batches: {', '.join(f'{name} {batch}' for name, batch in JOBS.items())}; budget: {SHARE:.0%} of what the jobs need alone"])
    hold(off, "%")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--iterations", type=int, default=7)
    arguments.add_argument("--repetitions", type=int, default=5)
    arguments.add_argument("--runs", type=int, default=3)
    bench(machine(), {"all": main}, arguments)
