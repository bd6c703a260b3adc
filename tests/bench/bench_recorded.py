#!/usr/bin/env python3
"""Every policy on every recorded PyTorch iteration (../shared/graphs), or on those named on the command line: its plan
under 70 % of what `none` needs, or under all of that where it cannot do with less, passes the checker; the executor's
stand-ins compute the reference's bits with random delays; and what one change makes of the plan is rejected, or computes
them in any order too. Which policies need more than `none` does, and how much, stands in the row.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

from benchlib import BUILD, PLANC, ROOT, bench, planc, table

RECORDINGS = os.path.join(ROOT, "..", "shared", "graphs")
MUTANTS = os.path.join(BUILD, "bench", "mutants")
PLANRUN = os.path.join(BUILD, "planrun")
BATCH = 2
N_MUTANTS, INTERLEAVINGS = 30, 4


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def policies():
    """The names that `planc compare` knows, those without plans left out."""
    rows = json.loads(planc("compare", os.path.join(ROOT, "graphs", "lenet-digits.yaml"), "--json"))["rows"]
    return [row["policy"] for row in rows if row["policy"] != "ideal"]


def plan(graph, policy, budget, output, *options):
    done = subprocess.run([PLANC, "plan", graph, "--batch", str(BATCH), "--device", "k40m", "--budget", str(budget), "--policy",
                           policy, "--split-batch-norm", "--json", "-o", output, *options], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"planc plan {graph} --policy {policy}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def judge(recording, names):
    """The recording's row, how many plans it took, and how many of their mutants were accepted."""
    below, beyond, plans, accepted = [], [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        graph, output = os.path.join(folder, "graph.yaml"), os.path.join(folder, "x.plan")
        run(sys.executable, os.path.join(ROOT, "graphs", "from_recording.py"), recording, "-o", graph)
        most = plan(graph, "none", "1T", output)["peak_bytes"]
        for policy, *options in [*([name] for name in names), ["window", "--placement", "vmm", "--chunk", "2M"],
                                 ["window", "--placement", "paged"]]:
            done = plan(graph, policy, most * 7 // 10, output, *options)
            if done:
                below.append(policy)
            elif not plan(graph, policy, most, output, *options):
                done = plan(graph, policy, "1T", output, *options)
                if not done:
                    sys.exit(f"{recording}: {policy} has no plan")
                beyond.append(f"{' '.join([policy, *options[1:2]])} {done['peak_bytes'] / most:.2f}")
            planc("check", output)
            plans += 1
            run(PLANRUN, "exec", output, "--synthetic", "--jitter", plans, "-n", 2)
            accepted += json.loads(run(MUTANTS, output, N_MUTANTS, INTERLEAVINGS))["accepted"]
    name = os.path.basename(recording)[:-len(".json")]
    print(f"  {name} done", file=sys.stderr, flush=True)
    return [name, f"{most / 2**20:.1f}", plans, len(below), ", ".join(beyond) or "none"], plans, accepted


def main(options):
    if not os.path.isdir(RECORDINGS):
        print("bench_recorded: skipped, ../shared/graphs is absent")
        sys.exit()
    recordings = [path for path in sorted(glob.glob(os.path.join(RECORDINGS, "*.json")))
                  if not options.recordings or os.path.basename(path)[:-len(".json")] in options.recordings]
    if not recordings:
        sys.exit("there is no such recording")
    names = policies()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(lambda recording: judge(recording, names), recordings))
    plans, accepted = (sum(column) for column in list(zip(*judged))[1:])
    mutants = plans * N_MUTANTS
    table(f"Recorded iterations at batch {BATCH}", ["recording", "peak of none MiB", "plans", "under 70 %", "beyond that peak, times"],
          [row for row, _, _ in judged],
          [f"{plans} plans checked and run with random delays: every bit is the reference's",
           f"{mutants} mutants: {mutants - accepted} rejected, {accepted} compute the reference's bits"])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("recordings", nargs="*", metavar="RECORDING")
    bench("simulated, device description k40m as committed; executed on the host.", {"all": main}, arguments)
