"""What the benchmarks share: running planc, CPU time of a command, tables."""

import json
import os
import resource
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PLANC = os.path.join(BUILD, "planc")
GIB = 2**30


def graph(name):
    return os.path.join(ROOT, "graphs", name + ".yaml")


def planc(*arguments, check=True):
    """Standard output of planc; its notes are dropped."""
    done = subprocess.run([PLANC, *map(str, arguments)], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"planc {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def compare(name, batch, budget, policies, *options, device="k40m"):
    """Rows of `planc compare` by policy; times, bytes and budgets as integers."""
    out = planc("compare", graph(name), "--batch", batch, "--device", device, "--budget", budget, "--policies",
                ",".join(policies), "--json", *options)
    return {row["policy"]: row for row in json.loads(out)["rows"]}


def plan(name, batch, budget, policy, *options, device="k40m"):
    """The summary of `planc plan`, None where the budget is too small."""
    done = subprocess.run([PLANC, "plan", graph(name), "--batch", str(batch), "--device", device, "--budget", str(budget),
                           "--policy", policy, "--json", "-o", os.devnull, *options], capture_output=True, text=True)
    if done.returncode == 1:
        return None
    if done.returncode:
        sys.exit(f"planc plan {name}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def cpu_seconds(*arguments, runs=5):
    """Median of user + system CPU time of a planc command, and its peak memory in bytes."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        planc(*arguments)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(times)[runs // 2], after.ru_maxrss * 1024


def table(title, head, rows, notes=()):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        print("  " + "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))
    for note in notes:
        print("  " + note)


def overhead(row, ideal_ns):
    return row["iteration_ns"] / ideal_ns - 1


def moved(row):
    return row["d2h_bytes"] + row["h2d_bytes"]
