#!/usr/bin/env python3
"""Policy auto of mixes against the systems of Zico (000) and Waterwave (003), at these papers' own cases, and by least shares.

usage: bench_auto_mixes.py [--only PART] [--models NAME,...] [--devices NAME,...] [--cases NAME,...] [--json] [FILE|FOLDER ...]

table1: two equal jobs of the largest batch that fits alone ("sole", without swaps, recomputes and rounds), beside waterwave at
its own largest batch, found as bench_waterwave.py finds it. auto may swap, recompute and cut into rounds, which waterwave does
not, so that any batch fits: what counts is the throughput. To be held: all of sole, at 95 % of waterwave's throughput.

throughput: auto beside zico and waterwave as their papers have them, without swaps and recomputes and in one round, at the
batches of Figs. 5 and 8 of Zico and of Fig. 7 and Table 2 of Waterwave, as the benchmarks of these papers find them. To be held:
auto has no less than the better one. Where a system finds nothing side by side, its jobs take turns.

shares: the same cases, with --min-share of each job what temporal gives it, in millionths. To be held: a plan is
found, and no job is slower than that.

Files and folders are graphs in place of the papers' models: of these table1 is made, and of throughput and shares two equal jobs
at parts of the largest batch. A throughput is the sum over jobs of their speeds relative to alone. Other options than these are
those of the papers' benchmarks: launches of Zico's cost the host what host.json says.
"""

import argparse
import dataclasses
import functools
import json
import tempfile

import bench_waterwave
import bench_zico
from bench_bound import graphs_of
from bench_waterwave import DEVICES
from benchlib import bench_rows, claimed, colocated, planc, simulated, table, uses

AUTO = ("--policy", "auto")
BY = "by: the policy of auto's plan, and what that does;"
ENOUGH = 0.95  # of waterwave's throughput
GIVEN_PARTS = (0.25, 0.5, 0.75, 0.95)
GIVEN_STEPS = 200  # of the largest batch alone, in which waterwave's largest is searched


@dataclasses.dataclass(frozen=True)
class Case:
    """A mix: whose figure has it, its models, and what planc is asked."""

    of: str
    models: tuple
    jobs: tuple
    device: str
    options: tuple

    def label(self):
        return " + ".join(f"{model}:{job.rsplit(':', 1)[1]}" for model, job in zip(self.models, self.jobs))


def zico_5(folder, wanted):
    alone = bench_zico.Models(folder)
    for model, (_, device, _, _) in bench_zico.MODELS.items():
        if wanted(model):
            for part in bench_zico.PARTS:
                yield twins("zico-fig5", model, alone.job(model, part, device), device, *bench_zico.LAUNCH)


def zico_8(folder, wanted):
    alone = bench_zico.Models(folder)
    for mix in bench_zico.MIXES:
        if all(map(wanted, mix)):
            for parts in bench_zico.MEMORY:
                jobs = tuple(alone.job(model, part, bench_zico.RTX) for model, part in zip(mix, parts))
                yield Case("zico-fig8", mix, jobs, bench_zico.RTX, tuple(bench_zico.LAUNCH))


def waterwave_7(folder, wanted):
    for model in filter(wanted, bench_waterwave.MODELS):
        for batch in bench_waterwave.batches(folder, model):
            yield twins("waterwave-fig7", model, f"{bench_waterwave.path_of(folder, model)}:{batch}", DEVICES["V100"])


def waterwave_2(folder, wanted):
    for mix, papers in bench_waterwave.MIXES.items():
        for (model, beside), paper in ((mix, papers[1]), (mix[::-1], papers[0])):
            if wanted(model) and wanted(beside):
                _, fixed, found = bench_waterwave.unequal(folder, model, beside, paper)
                paths = [bench_waterwave.path_of(folder, name) for name in (model, beside)]
                yield Case("waterwave-table2", (model, beside), (f"{paths[0]}:{found.batch}", f"{paths[1]}:{fixed}"),
                           DEVICES["V100"], ("--max-ratio", "1"))


def twins(of, model, job, device, *options):
    return Case(of, (model, model), (job, job), device, ("--max-ratio", "1", *options))


CASES = {"zico-fig5": zico_5, "zico-fig8": zico_8, "waterwave-fig7": waterwave_7, "waterwave-table2": waterwave_2}


class Bench:
    """Of parts that share their cases."""

    def __init__(self, folder):
        self.folder, self.found = folder, None

    def models(self, options, device):
        """Name, graph, largest batch alone, and the step in which batches are tried, of each model of table1."""
        if options.paths:
            for name, path in graphs_of(options.paths, self.folder):
                alone = largest_alone(path, device)
                yield name, path, alone, max(1, alone // GIVEN_STEPS)
            return
        for model, (_, step, _) in bench_waterwave.MODELS.items():
            if asked(options.models, model):
                gpu = next(name for name, described in DEVICES.items() if described == device)
                yield model, bench_waterwave.path_of(self.folder, model), bench_waterwave.sole(self.folder, model, gpu), step

    def cases(self, options):
        """Found once for all parts, which takes a search for each."""
        if self.found is None:
            self.found = self.of_given(options) if options.paths else [
                case for name, make in CASES.items() if asked(options.cases, name)
                for case in make(self.folder, functools.partial(asked, options.models))]
        return self.found

    def of_given(self, options):
        return [twins("given", name, f"{path}:{max(1, int(alone * part))}", device)
                for device in devices(options) for name, path, alone, _ in self.models(options, device) for part in GIVEN_PARTS]

    # --- Parts

    def table1(self, options):
        rows = []
        for device in devices(options):
            for model, path, alone, step in self.models(options, device):
                beside = bench_waterwave.Searched(lambda batch, path=path: [f"{path}:{batch}"] * 2, device, bench_waterwave.OURS,
                                                  alone * 9 // 10, step)
                auto = colocated((f"{path}:{alone}",) * 2, device, "--max-ratio", "1", *AUTO)
                rows.append({"model": model, "device": device, "sole": alone, "waterwave_batch": beside.batch,
                             "waterwave_throughput": beside.made and beside.made["throughput"],
                             "waterwave_per_s": per_second(beside.made), "batch": alone if auto else 0, "per_s": per_second(auto),
                             **found(auto)})
                bench_zico.tell(*rows[-1].values())
        return rows

    def throughput(self, options):
        rows = []
        for case in self.cases(options):
            zico, waterwave = (colocated(case.jobs, case.device, *case.options, *told) for told in (
                ("--policy", "zico", *bench_zico.ALONE), tuple(bench_waterwave.OURS)))
            auto = colocated(case.jobs, case.device, *case.options, *AUTO)
            rows.append({"case": case.of, "jobs": case.label(), "device": case.device,
                         **{name: made and made["throughput"] for name, made in (("zico", zico), ("waterwave", waterwave))},
                         **found(auto)})
            bench_zico.tell(*rows[-1].values())
        return rows

    def shares(self, options):
        rows = []
        for case in self.cases(options):
            turns = colocated(case.jobs, case.device, *case.options, "--policy", "temporal")
            speeds = turns and [share["speed"] for share in turns["shares"]]
            least = [option for k, speed in enumerate(speeds or []) for option in ("--min-share", f"{k}:{percent(speed)}")]
            auto = turns and colocated(case.jobs, case.device, *case.options, *AUTO, *least)
            rows.append({"case": case.of, "jobs": case.label(), "device": case.device, "temporal": speeds,
                         "speeds": auto and [share["speed"] for share in auto["shares"]], **found(auto)})
            bench_zico.tell(*rows[-1].values())
        return rows


@functools.cache
def largest_alone(path, device):
    told = json.loads(planc("compare", path, "--policies", "none", "--device", device, "--max-batch", "--json"))
    return told["rows"][0]["max_batch"]["batch"]


def asked(names, name):
    return names is None or name in names


def devices(options):
    return [device for name, device in DEVICES.items() if asked(options.devices, name)]


def percent(speed):
    """As a least share: planc tells speeds in millionths."""
    return f"{round(speed * 1e6) / 1e4:.4f}"


def per_second(made):
    return made and 1e9 * sum(job["batch"] * job["iterations"] for job in made["jobs"]) / made["period_ns"]


def found(auto):
    """Of auto's plan: its throughput, the policy that made it, and what it does beside shifting."""
    return {"throughput": auto and auto["throughput"], "policy": auto and auto["policy"], "uses": auto and uses(auto)}


# --- What is printed


def told(number, digits=3):
    return "-" if number is None else f"{number:.{digits}f}"


def ratio(part, whole):
    return part / whole if part and whole else None


def told_policy(row):
    return row["policy"] + (f" ({', '.join(row['uses'])})" if row["uses"] else "") if row["policy"] else "no plan"


def better(row):
    return max((row[name] for name in ("zico", "waterwave") if row[name]), default=0)


def of_row(row):
    return row["jobs"] + " of " + row["case"]


def print_table1(rows):
    def part(row):
        return ratio(row["throughput"], row["waterwave_throughput"])
    table("Table 1 of Waterwave: two equal jobs of the largest batch alone by auto, beside waterwave at its own largest",
          ["model", "GPU", "sole", "waterwave's batch", "of sole", "throughput", "auto's batch", "of sole", "throughput",
           "of waterwave's", "samples/s of waterwave's", "by"],
          [[row["model"], row["device"], row["sole"], row["waterwave_batch"] or "-",
            bench_waterwave.share(row["waterwave_batch"], row["sole"]), told(row["waterwave_throughput"]), row["batch"] or "-",
            bench_waterwave.share(row["batch"], row["sole"]), told(row["throughput"]), told(part(row)),
            told(ratio(row["per_s"], row["waterwave_per_s"])), told_policy(row)] for row in rows],
          ["sole, waterwave: nothing swapped, recomputed or in rounds;", BY,
           claimed(f"all of sole at {ENOUGH:.0%} of waterwave's throughput at least, where that is side by side at all", rows,
                   lambda row: row["throughput"] and (part(row) is None or part(row) >= ENOUGH),
                   lambda row: f"{row['model']} on {row['device']}")])


def print_throughput(rows):
    def over(row):
        return ratio(row["throughput"], better(row))
    table("Throughput of auto beside zico and waterwave, at the cases of their papers",
          ["case", "jobs", "GPU", "zico", "waterwave", "auto", "over the better", "by"],
          [[row["case"], row["jobs"], row["device"], told(row["zico"]), told(row["waterwave"]), told(row["throughput"]),
            f"{over(row) - 1:+.1%}" if over(row) else "-", told_policy(row)] for row in rows],
          ["zico, waterwave: without swaps and recomputes and in one round, -: no plan;", BY,
           claimed("no less than the better of both", rows, lambda row: row["throughput"] and row["throughput"] >= better(row),
                   of_row)])


def print_shares(rows):
    def each(speeds):
        return " + ".join(told(speed) for speed in speeds) if speeds else "-"

    def least(row):
        return min(map(ratio, row["speeds"], row["temporal"])) if row["speeds"] else None
    table("Speed of each job by auto, with --min-share of what temporal gives it",
          ["case", "jobs", "GPU", "each in turns", "each by auto", "least over turns", "throughput", "by"],
          [[row["case"], row["jobs"], row["device"], each(row["temporal"]), each(row["speeds"]),
            f"{least(row) - 1:+.1%}" if least(row) else "-", told(row["throughput"]), told_policy(row)] for row in rows],
          ["least over turns: of the job that gains least;", BY,
           claimed("no job is slower than in turns", [row for row in rows if row["temporal"]],
                   lambda row: row["speeds"] and all(speed >= turns for speed, turns in
                                                     zip(row["speeds"], row["temporal"])), of_row)])


def names(known):
    def read(text):
        unknown = [name for name in text.split(",") if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {unknown[0]}; there are {', '.join(known)}")
        return text.split(",")
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="FILE|FOLDER")
    parser.add_argument("--models", type=names([*bench_waterwave.MODELS, *bench_zico.MODELS]), metavar="NAME,...")
    parser.add_argument("--devices", type=names(DEVICES), metavar="NAME,...", help="of table1, and of graphs that are given")
    parser.add_argument("--cases", type=names([*CASES, "given"]), metavar="NAME,...", help=", ".join(CASES))
    with tempfile.TemporaryDirectory() as folder:
        made = Bench(folder)
        bench_rows(f"{simulated(', '.join([*DEVICES.values(), bench_zico.RTX]))} Of Zico's cases launching an op takes the host "
                   f"{bench_zico.HOST['launch_ns']} ns.",
                   {"table1": (made.table1, print_table1), "throughput": (made.throughput, print_throughput),
                    "shares": (made.shares, print_shares)}, parser)


if __name__ == "__main__":
    main()
