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
INTERLEAVINGS = 4


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


def name_of(recording):
    return os.path.basename(recording)[:-len(".json")]


def plans_of(recording, names):
    """For each policy its options, the summary of its plan, which is in the file that is given last, the budget that it
    fits, None where it needs more than `none` does, and that peak."""
    with tempfile.TemporaryDirectory() as folder:
        graph, output = os.path.join(folder, "graph.yaml"), os.path.join(folder, "x.plan")
        run(sys.executable, os.path.join(ROOT, "graphs", "from_recording.py"), recording, "-o", graph)
        most = plan(graph, "none", "1T", output)["peak_bytes"]
        for policy, *options in [*([name] for name in names), ["window", "--placement", "vmm", "--chunk", "2M"],
                                 ["window", "--placement", "paged"]]:
            for budget in (most * 7 // 10, most, None):
                done = plan(graph, policy, budget or "1T", output, *options)
                if done:
                    break
            else:
                sys.exit(f"{recording}: {policy} has no plan")
            yield " ".join([policy, *options[1:2]]), done, budget, most, output


def plans(recordings, names):
    rows = []
    for recording in recordings:
        found = list(plans_of(recording, names))
        most = found[0][3]
        below = sum(budget is not None and budget < most for _, _, budget, _, _ in found)
        beyond = [f"{policy} {done['peak_bytes'] / most:.4f}" for policy, done, budget, _, _ in found if budget is None]
        rows.append([name_of(recording), f"{most / 2**20:.1f}", len(found), below, ", ".join(beyond) or "none"])
    table(f"Recorded iterations at batch {BATCH}", ["recording", "peak of none MiB", "plans", "under 70 %",
                                                    "with more than that peak, times"], rows)


def judge(recording, names, n_mutants):
    """How many plans a recording took, and how many of their mutants, as many of each, were accepted."""
    n_plans, accepted = 0, 0
    for _, _, _, _, output in plans_of(recording, names):
        planc("check", output)
        n_plans += 1
        run(PLANRUN, "exec", output, "--synthetic", "--jitter", n_plans, "-n", 2)
        accepted += json.loads(run(MUTANTS, output, n_mutants, INTERLEAVINGS))["accepted"]
    print(f"  {name_of(recording)} done", file=sys.stderr, flush=True)
    return n_plans, accepted


def runs(recordings, names, n_mutants):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        judged = list(pool.map(lambda recording: judge(recording, names, n_mutants), recordings))
    n_plans, accepted = (sum(column) for column in zip(*judged))
    mutants = n_plans * n_mutants
    table("Their plans executed", ["plans", "mutants", "rejected", "computing the same"],
          [[n_plans, mutants, mutants - accepted, accepted]],
          ["plans are checked and run with random delays: every bit is the reference's, and so is every bit of the mutants that are "
           "not rejected"])


def chosen(options):
    if not os.path.isdir(RECORDINGS):
        print("bench_recorded: left out: ../shared/graphs is absent")
        sys.exit()
    recordings = [path for path in sorted(glob.glob(os.path.join(RECORDINGS, "*.json")))
                  if not options.recordings or name_of(path) in options.recordings]
    if not recordings:
        sys.exit("there is no such recording")
    return recordings, policies()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("recordings", nargs="*", metavar="RECORDING")
    arguments.add_argument("--mutants", type=int, default=30, metavar="N", help="of each plan: those of large recordings run for hours")
    bench("simulated, device description k40m as committed, and executed on the host.",
          {"plans": lambda options: plans(*chosen(options)), "runs": lambda options: runs(*chosen(options), options.mutants)}, arguments)
