#!/usr/bin/env python3
"""What users of PyTorch do about a step that does not fit, against `planc torch`: checkpointing each block, saving for the
backward pass on the host, and the activation memory budget of torch.compile. Each is recorded, so that its peak is that of
its own calls and its time that of these calls by the device description; ours is the plan of the plain step under that peak.

save_on_cpu copies on the stream that computes: its copies, from pinned memory at the link's rate, are added to its calls.
torch.compile's partitions are run call by call, and so is everything else: what fusing calls gains is not predicted. Models
are named on the command line, or all of them are taken. With PyTorch 2 alone, which PLANC_PYTHON may name.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import sys
import tempfile
from types import SimpleNamespace

from benchlib import GIB, PLANC, ROOT, bench_rows, claimed, fitting, simulated, table, uses

sys.path.insert(0, os.path.join(ROOT, "runtime", "torch"))
BUDGETS = (0.5, 0.25)


def told(problem, out, back, copies):
    """Bytes and time of a way: those of its calls, and its copies."""
    with open(problem.device, encoding="utf-8") as file:
        links = json.load(file)["device"]
    time_ns = problem.plain_ns + copies * links["d2h"]["latency_ns"]
    time_ns += 1e9 * (out / links["d2h"]["bytes_per_second"] + back / links["h2d"]["bytes_per_second"])
    return problem.plain_bytes, int(time_ns)


def ours(problem, budget, path, *options):
    """What planc tells of the plan, which can be followed; None where there is none."""
    from planc_torch import FollowError
    from planc_torch.__main__ import NoFramework
    from planc_torch.library import Follower
    text = fitting([PLANC, "plan", *problem.common, "--budget", str(budget), "--policy", "auto", *options, "--json", "-o", path])
    try:
        if text:
            Follower(path, NoFramework).close()
    except FollowError as error:
        print(f"  {error}", file=sys.stderr, flush=True)
        return None
    return json.loads(text) if text else None


def time_of(plan):
    return plan and plan["iteration_ns"]


def problem_of(model, compute, device, folder):
    """What planc is asked about a way to run a model's step."""
    import planc_torch
    from planc_torch.__main__ import Problem
    from torch_ways_steps import step_of
    graph = planc_torch.StepGraph(planc_torch.record(*step_of(model, compute), "meta"), model)
    return Problem(graph, SimpleNamespace(planc=PLANC, graph=None, profile=None, host_budget=None, budget=None,
                                          device=description(device)), folder)


def description(device):
    return os.path.join(ROOT, "profiles", device + ".json")


def rows_of(model, device):
    """Runs in a process of its own."""
    import torch_ways
    offloading = torch_ways.Offloading()
    ways = {"plain": None, "checkpointing": torch_ways.checkpointing, "save_on_cpu": offloading,
            **{f"torch.compile {budget}": torch_ways.compiled(budget) for budget in BUDGETS}}
    rows, plain = [], None
    with tempfile.TemporaryDirectory() as folder:
        for way, compute in ways.items():
            path = os.path.join(folder, way)
            os.mkdir(path)
            problem = problem_of(model, compute, device, path)
            copied = (offloading.out, offloading.back, offloading.copies) if compute is offloading else (0, 0, 0)
            peak_bytes, time_ns = told(problem, *copied)
            plain, output = plain or problem, os.path.join(path, "x.plan")
            plan, computed = ((ours(plain, peak_bytes, output, *extra) if compute else None) for extra in ((), ("--no-swap",)))
            rows.append({"model": model, "way": way, "peak_bytes": peak_bytes, "iteration_ns": time_ns, "ours_ns": time_of(plan),
                         "uses": uses(plan) if plan else [], "computing_ns": time_of(computed)})
            print(" ", *rows[-1].values(), file=sys.stderr, flush=True)
    return rows


def solved(model, device):
    """The same budgets by the solver of PyTorch and by planc. Runs in a process of its own."""
    import torch_ways
    from torch_ways_solver import PlancSolver
    rows = []
    for budget in BUDGETS:
        for name, solver in ("dp", "dp"), ("planc", PlancSolver(description(device))):
            with tempfile.TemporaryDirectory() as folder:
                problem = problem_of(model, torch_ways.compiled(budget, solver), device, folder)
            rows.append({"model": model, "budget": budget, "solver": name, "peak_bytes": problem.plain_bytes,
                         "iteration_ns": problem.plain_ns})
            print(" ", *rows[-1].values(), file=sys.stderr, flush=True)
    return rows


def of_models(function):
    """Makes rows of each model in a process for each."""
    def make(options):
        from torch_ways_steps import MODELS
        models = options.models or list(MODELS)
        unknown = set(models) - set(MODELS)
        if unknown:
            sys.exit(f"bench_torch_ways: no model {', '.join(sorted(unknown))}")
        with concurrent.futures.ProcessPoolExecutor(len(models)) as pool:
            parts = [pool.submit(function, model, options.device) for model in models]
            return [row for part in parts for row in part.result()]
    return make


def slower(time_ns, plain_ns):
    return f"{time_ns / plain_ns - 1:+.1%}" if time_ns else "no plan"


def show(rows):
    plain, lines = {row["model"]: row for row in rows if row["way"] == "plain"}, []
    for row in rows:
        of, ns = plain[row["model"]], row["ours_ns"]
        lines.append([row["model"], row["way"], f"{row['peak_bytes'] / GIB:.2f}", f"{row['iteration_ns'] / 1e6:.1f}",
                      *([""] * 5 if row is of else
                        [slower(row["iteration_ns"], of["iteration_ns"]), f"{ns / 1e6:.1f}" if ns else "-",
                         slower(ns, of["iteration_ns"]), ", ".join(row["uses"]) or "-",
                         slower(row["computing_ns"], of["iteration_ns"])])])
    compared = [row for row in rows if row["way"] != "plain"]
    table("Ways to make a step fit, and policy auto under the peak of each",
          ["model", "way", "peak GiB", "ms", "slower", "ours ms", "slower", "by", "without copies"], lines,
          [claimed("ours is no slower", compared, lambda row: row["ours_ns"] and row["ours_ns"] <= row["iteration_ns"],
                   lambda row: f"{row['model']} {row['way']}"),
           claimed("nor is it without copies", compared,
                   lambda row: row["computing_ns"] and row["computing_ns"] <= row["iteration_ns"],
                   lambda row: f"{row['model']} {row['way']}")])


def show_solved(rows):
    table("torch.compile's partition by two solvers of its activation memory budget",
          ["model", "budget", "solver", "peak GiB", "ms"],
          [[row["model"], row["budget"], row["solver"], f"{row['peak_bytes'] / GIB:.2f}", f"{row['iteration_ns'] / 1e6:.1f}"]
           for row in rows])


def has_torch_2():
    try:
        import torch
        return hasattr(torch, "compile")
    except ImportError:
        return False


if __name__ == "__main__":
    other = shutil.which(os.environ.get("PLANC_PYTHON") or "")
    if not has_torch_2():
        if other and other != sys.executable:
            os.execv(other, [other, "-B", *sys.argv])
        print("bench_torch_ways: left out: PLANC_PYTHON names no Python with PyTorch 2")
        sys.exit()
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("models", nargs="*", metavar="MODEL")
    arguments.add_argument("--device", default="a100-80g")
    bench_rows(simulated("a100-80g, or that of --device,"),
               {"ways": (of_models(rows_of), show), "solvers": (of_models(solved), show_solved)}, arguments)
