#!/usr/bin/env python3
"""TENSILE for several jobs against its paper (papers: TENSILE, V-D and V-E): the mix of Table IV, Fig. 6's equal jobs, and what
Capuchin waits for (Fig. 2), simulated on its RTX A6000.

Networks are calibrated as bench_tensile.py has it, one by one; nothing is fitted to several jobs. Each job runs once in a
period. Without scheduling all run side by side with memory of their own, which is the estimate mps where all fit: EOR is a
period over its. vdnn-conv and capuchin plan each job as if it were alone, which is how the paper runs them; capuchin has
tensile's memory, each job the same part of what it needs.

MSR has the bases of bench_tensile.py. One context serves all jobs of a plan; the paper's jobs are processes, each with its
own: "as the paper" adds these on either side, and gives vdnn-conv only what it offloads.

Capuchin's first iteration swaps on demand. Of several jobs it is not simulated: it takes as long as the longest of them
alone at least, and all one after the other at most.
"""

import json
import os
import tempfile

from bench_tensile import BATCH, METHODS, PAPER, WHOLE, Network, read
from benchlib import bench, busy_share, period_ns, planc, table

MIX_BATCH = 2  # of Table IV (papers: TENSILE, its public code)
MIX = {"vdnn-conv": (.0580, 1.6297), "capuchin": (.1150, 7.6545), "tensile": (.1565, 1.1589)}
JOBS = (1, 2, 3, 4)
EVICTION = .321  # of all time, as Fig. 2 has it


class Mix:
    """Jobs side by side, each a calibrated network."""

    def __init__(self, networks):
        self.networks = networks
        self.reserved = read(networks[0].device)["device"]["reserved_bytes"]
        without = self.without()
        self.none_bytes, self.none_ns = without["peak_bytes"], period_ns(without)
        self.contexts = (len(networks) - 1) * self.reserved
        self.all_data = sum(n.all_data for n in networks) - self.contexts
        self.results = {"tensile": self.plan("tensile")}
        self.budget = self.results["tensile"]["peak_bytes"]
        self.results["capuchin"] = self.plan("capuchin", self.budget)
        self.results["vdnn-conv"] = self.plan("vdnn-conv")

    def command(self, budget):
        operands = [f"{n.graph}:{n.batch}" for n in self.networks]
        profiles = [a for n in self.networks for a in ("--profile", n.costs)]
        return [*operands, *profiles, "--max-ratio", "1", "--budget", budget, "--json"]

    def without(self):
        """Of one job by policy none."""
        if len(self.networks) == 1:
            return self.networks[0].vanilla
        row, = json.loads(planc("compare", "--colocate", *self.command("48G"), "--policies", "mps"))["rows"]
        return row

    def plan(self, policy, budget="48G"):
        if len(self.networks) == 1:
            return self.networks[0].plan(policy, os.devnull, budget=budget)
        return json.loads(planc("colocate", *self.command(budget), "--policy", policy, "-o", os.devnull))

    def eor(self, method):
        return period_ns(self.results[method]) / self.none_ns

    def first(self):
        """EOR of capuchin's first iteration, at least and at most."""
        jobs = [n.passive(self.part(n))["iteration_ns"] for n in self.networks]
        return max(1, max(jobs) / self.none_ns), sum(jobs) / self.none_ns

    def part(self, network):
        """Of tensile's memory, as capuchin has it."""
        needs = [n.vanilla["peak_bytes"] - self.reserved for n in self.networks]
        own = network.vanilla["peak_bytes"] - self.reserved
        return (self.budget - self.reserved) * own // sum(needs) + self.reserved

    def saved(self, method):
        """MSR over none, of all data, and as the paper."""
        peak = self.results[method]["peak_bytes"]
        offloads = method == "vdnn-conv"
        base = self.none_bytes if offloads else self.all_data
        return (1 - peak / self.none_bytes, 1 - peak / self.all_data, (base - peak) / (self.all_data + self.contexts))

    def waits(self):
        """The part of a period in which capuchin's jobs do not compute, on average."""
        result = self.results["capuchin"]
        stalls = [job["stall_ns"] for job in result["jobs"]] if "jobs" in result else [result["stall_ns"]]
        return sum(stalls) / len(stalls) / period_ns(result)


def table_4(mix):
    rows = []
    low, high = mix.first()
    for method in METHODS:
        none, all_data, paper = mix.saved(method)
        told = MIX[method]
        rows.append([method, f"{none:.3f}", f"{all_data:.3f}", f"{paper:.3f}", f"{mix.eor(method):.3f}",
                     f"{paper / mix.eor(method):.3f}", *(f"{x:.3f}" for x in told), f"{told[0] / told[1]:.3f}"])
    steady = mix.eor("capuchin")
    between = [(first + (WHOLE - 1) * steady) / WHOLE for first in (low, high)]
    table(f"Table IV: {', '.join(n.name for n in mix.networks)} at once, batch {MIX_BATCH}",
          ["method", "MSR over none", "of all data", "as the paper", "EOR", "CBR as the paper", "paper MSR", "EOR", "CBR"], rows,
          ["tensile's figures are after the update, the paper's are of the whole; the paper's order of jobs is random: here all begin at once",
           f"capuchin's EOR with its first iteration, of {WHOLE}: {between[0]:.3f} to {between[1]:.3f}; the paper's swaps at moments measured before other jobs",
           "came and misses; in a plan copies follow ops, however long these take beside others",
           f"without scheduling a period takes {mix.none_ns / 1e6:.1f} ms and {mix.none_bytes / 2**30:.2f} GiB, of all data {mix.all_data / 2**30:.2f} GiB",
           busy(mix.networks), *orders([mix])])


def busy(networks):
    return "mean busy share of the ops: " + ", ".join(f"{n.name} {busy_share(n.vanilla_plan):.0%}" for n in networks)


def orders(mixes):
    """In how many mixes tensile is ahead, as the paper has it in all."""
    for other in ("vdnn-conv", "capuchin"):
        lower = sum(m.eor("tensile") < m.eor(other) for m in mixes)
        better = sum(m.saved("tensile")[2] / m.eor("tensile") > m.saved(other)[2] / m.eor(other) for m in mixes)
        saves = sum(m.saved("tensile")[2] > m.saved(other)[2] for m in mixes)
        yield (f"tensile against {other}: less EOR in {lower} of {len(mixes)}, more CBR as the paper in {better}"
               + (f", more MSR as the paper in {saves}" if other == "vdnn-conv" else ""))


def grows(values, sign):
    """Whether from one job on to the most they go that way, whatever lies between."""
    return sign * (values[-1] - values[0]) > 0


def figure_6(mixes):
    rows = []
    for name, of in mixes.items():
        for method in METHODS:
            rows.append([name, method, *(f"{m.saved(method)[2]:.3f}" for m in of), *(f"{m.eor(method):.3f}" for m in of)])
    told = [("capuchin", "EOR", 1), ("vdnn-conv", "EOR", -1), ("tensile", "MSR", -1)]
    notes = []
    for method, what, sign in told:
        same = [name for name, of in mixes.items()
                if grows([m.eor(method) if what == "EOR" else m.saved(method)[2] for m in of], sign)]
        notes.append(f"{method}'s {what} {'grows' if sign > 0 else 'falls'} with the jobs, as in the paper, in {len(same)} of "
                     f"{len(mixes)}" + (f" ({', '.join(same)})" if 0 < len(same) < len(mixes) else ""))
    table(f"Fig. 6: equal jobs, batch {BATCH}, by how many",
          ["network", "method", *(f"MSR {n}" for n in JOBS), *(f"EOR {n}" for n in JOBS)], rows,
          ["MSR as the paper; the paper has no numbers here", busy([of[0].networks[0] for of in mixes.values()]), *notes, *orders([m for of in mixes.values() for m in of])])


def figure_2(mixes):
    rows = []
    for name, of in mixes.items():
        one = of[0]
        network, budget = one.networks[0], one.budget
        done = json.loads(planc("simulate", network.graph, "--passive", "--profile", network.costs, "--batch", network.batch,
                                "--budget", budget, "--json"))
        first, steady = done["first"], done["steady"]
        whole = first["iteration_ns"] + (WHOLE - 1) * one.results["capuchin"]["iteration_ns"]
        rows.append([name, *(f"{m.waits():.1%}" for m in of), f"{first['evict_ns'] / first['iteration_ns']:.1%}",
                     f"{first['evict_ns'] / whole:.1%}", f"{steady['evict_ns'] / steady['iteration_ns']:.1%}"])
    table(f"Fig. 2: what capuchin waits for, batch {BATCH}",
          ["network", *(f"waits, {n} job{'s' if n > 1 else ''}" for n in JOBS), "evictions: of the first iteration",
           f"of {WHOLE}", "were all on demand"], rows,
          ["waits: part of a period that follows the plan; evictions: time in which computing waits for room on demand, one job",
           f"the paper's waits grow with the jobs, and {EVICTION:.1%} of all time are evictions: its Capuchin leaves to demand what passes from one",
           "iteration to the next; a plan has that too, so that only the first iteration evicts on demand"])


class Calibrated:
    """Networks and mixes, made when first asked for."""

    def __init__(self, folder):
        self.folder, self.equal = folder, {}

    def mixed(self):
        return Mix([Network(name, MIX_BATCH, self.folder) for name in PAPER])

    def of_equals(self):
        for name in PAPER if not self.equal else ():
            network = Network(name, BATCH, self.folder)
            self.equal[name] = [Mix([network] * n) for n in JOBS]
        return self.equal


def main():
    with tempfile.TemporaryDirectory() as folder:
        calibrated = Calibrated(folder)
        bench("simulated, device description a6000 as committed, calibrated as bench_tensile.py says. Times are predictions.", {
            "table-4": lambda _: table_4(calibrated.mixed()),
            "figure-6": lambda _: figure_6(calibrated.of_equals()),
            "figure-2": lambda _: figure_2(calibrated.of_equals())})


if __name__ == "__main__":
    main()
