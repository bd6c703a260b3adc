"""What the benchmarks share: running planc, CPU time of a command, tables, and the files of their results."""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PLANC = os.path.join(BUILD, "planc")
COUNTED = os.path.join(BUILD, "counted", "planc")
GIB = 2**30
# What the columns of mps rest on.
MPS_NOTE = ["mps pages at one rate, fitted to two points on a V100 and taken for every GPU; how much it pages follows from the batches,",
            "which the papers do not state, so that multiples of it beyond theirs say little"]
RESULTS = os.path.join(ROOT, "tests", "bench", "results")


class Copied(io.StringIO):
    """Text that appears on another stream as it is written here."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream

    def write(self, text):
        self.stream.write(text)
        self.stream.flush()
        return super().write(text)


def bench(about, parts, parser=None):
    """The main function of a benchmark: prints how its results were made and then its parts, by name functions of the parsed
    options. A file of results is what was printed, its head tells of which parts, and there is none where one failed."""
    main = sys.modules["__main__"]
    parser = parser or argparse.ArgumentParser(description=main.__doc__,
                                               formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PART", action="append", choices=list(parts), help=", ".join(parts))
    parser.add_argument("-o", dest="output", metavar="FILE", help="what is printed goes there, too")
    options = parser.parse_args()
    printed = Copied(sys.stdout)
    with contextlib.redirect_stdout(printed):
        print(head(os.path.relpath(main.__file__, ROOT), sys.argv[1:], ["-o"] if options.output else ["-o", "--only"], about))
        for name, part in parts.items():
            if name in (options.only or parts):
                part(options)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(printed.getvalue())


def bench_rows(about, parts, parser=None):
    """The same of parts of which some are (what makes rows of the options, what prints these): with --json the rows of such."""
    shown = {name: (lambda options, part=part: part[1](part[0](options))) if isinstance(part, tuple) else part
             for name, part in parts.items()}
    main = sys.modules["__main__"]
    parser = parser or argparse.ArgumentParser(description=main.__doc__,
                                               formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="rows by part as one line of JSON, and nothing else")
    if "--json" not in sys.argv:
        bench(about, shown, parser)
        return
    of_rows = {name: part[0] for name, part in parts.items() if isinstance(part, tuple)}
    parser.add_argument("--only", metavar="PART", action="append", choices=list(of_rows), help=", ".join(of_rows))
    options = parser.parse_args()
    print(json.dumps({name: rows(options) for name, rows in of_rows.items() if name in (options.only or of_rows)}))


def head(program, arguments, untold, about):
    """How the results were made, without options that make no difference to them."""
    told = iter(arguments)
    kept = [a for a in told if not (a in untold and next(told, None))]
    return textwrap.fill(" ".join([shlex.join([program, *kept]) + ":", about]), 120, initial_indent="# ",
                         subsequent_indent="# ", break_long_words=False, break_on_hyphens=False)


def simulated(description):
    return f"simulated, device description {description} as committed. Times are predictions."


def framework_host():
    """What launching an op and recording an event cost the host in a deep learning framework, see host.json."""
    with open(os.path.join(ROOT, "tests", "bench", "host.json"), encoding="utf-8") as file:
        return json.load(file)


def memory_of(device):
    """Of a device description: the bytes of memory, and those reserved of it."""
    with open(os.path.join(ROOT, "profiles", device + ".json"), encoding="utf-8") as file:
        described = json.load(file)["device"]
    return described["memory_bytes"], described["reserved_bytes"]


def machine():
    """Where times are measured, for the head of results."""
    info = subprocess.run([os.path.join(BUILD, "planrun"), "info"], capture_output=True, text=True, check=True).stdout
    host = next(line.split(": ", 1)[1] for line in info.splitlines() if line.startswith("backend host: "))
    return f"measured on {os.cpu_count()} processors, {host}"


def graph(name):
    return os.path.join(ROOT, "graphs", name + ".yaml")


def graph_in(folder, name):
    """The file of a graph; those that the library does not keep are written to the folder."""
    if os.path.exists(graph(name)):
        return graph(name)
    path = os.path.join(folder, name + ".yaml")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), name, "-d", folder], check=True)
    return path


def largest(step, start, fits):
    """The largest multiple of `step` that fits, near `start` at first."""
    good, bad, reach = 0, None, max(step, start // 8 // step * step)
    at = max(step, start // step * step)
    while bad is None or bad - good > step:
        if fits(at):
            good = at
            at = at + reach if bad is None else (good + bad) // 2 // step * step
        else:
            bad = at
            at = max(step, at - reach) if good == 0 and at > step else (good + bad) // 2 // step * step
        if at in (good, bad):
            break
    return good


def fitting(command):
    """What a command prints that plans; None where the plan does not fit."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout if done.returncode == 0 else None


def sole_batch(path, device, step, start):
    """The largest batch that fits alone, without swaps, recomputes and rounds."""
    def fits(batch):
        command = [PLANC, "plan", path, "--batch", str(batch), "--device", device, "--policy", "none", "-o", os.devnull]
        return fitting(command) is not None
    return largest(step, start, fits)


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


def colocated(jobs, device, *options):
    """The summary of `planc colocate`, None where there is no plan."""
    text = fitting([PLANC, "colocate", *jobs, "--device", device, *options, "--json", "-o", os.devnull])
    return json.loads(text) if text else None


def busy_times(path):
    """Of the ops of a plan: their time, and it by the busy share of each, in ns."""
    with open(path, encoding="utf-8") as file:
        ops = [json.loads(line) for line in file if line.startswith('{"i":"exec"')]
    return sum(op["t"] for op in ops), sum(op["t"] * op["busy"] for op in ops) / 1e6


def busy_share(path):
    """The mean busy share of a plan's ops."""
    time_ns, busy_ns = busy_times(path)
    return busy_ns / time_ns


def cpu_seconds(*arguments, runs=5, ends=(0,)):
    """Median of user + system CPU time of a planc command, and its peak memory in bytes. It may end with these codes."""
    times, peak = [], 0
    for _ in range(runs):
        child = subprocess.Popen([PLANC, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in ends:
            sys.exit(f"planc {' '.join(map(str, arguments))}: exit {child.returncode}")
        times.append(used.ru_utime + used.ru_stime)
        peak = max(peak, used.ru_maxrss * 1024)
    return sorted(times)[runs // 2], peak


def instructions(*arguments):
    """How many a planc command takes, by callgrind: the same on every machine, however busy."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + os.path.join(folder, "out"), PLANC,
                               *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"planc {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def counted_work(*arguments):
    """What a planc command does, as tests/bench/counter.c counts it: the same on every machine, however busy."""
    with tempfile.NamedTemporaryFile() as counted:
        environment = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles"), "COUNTED_WORK": counted.name}
        done = subprocess.run([COUNTED, *map(str, arguments)], env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"planc {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
        return int(counted.read())


def table(title, head, rows, notes=()):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        print(("  " + "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths))).rstrip())
    for note in notes:
        print("  " + note)


def hold(figures, unit="s"):
    """Ends the benchmark where one of several took more than it may: (what, took, at most)."""
    missed = [f"{what} took {took} {unit}, {most} {unit} at most" for what, took, most in figures if float(took) > float(most)]
    if missed:
        sys.exit("; ".join(missed))


def period_ns(told):
    """What a period takes by what planc tells of a plan, be it of one job, where that is an iteration, or of a mix."""
    return told["period_ns" if "period_ns" in told else "iteration_ns"]


def uses(told):
    """What a plan does beside shifting, by what planc tells of it or of a job of it."""
    jobs = told.get("jobs") or [told]
    found = {"swap": any(job["d2h_bytes"] > 2**20 for job in jobs), "recompute": any(job["recompute_ns"] for job in jobs),
             "rounds": any(job["rounds"] > 1 for job in jobs)}
    return [name for name, used in found.items() if used]


def claimed(what, rows, holds, name):
    """A note of how many rows a claim holds for, and which it does not."""
    missed = [name(row) for row in rows if not holds(row)]
    return f"{what}: {len(rows) - len(missed)} of {len(rows)}" + (f"; not {', '.join(missed)}" if missed else "")


def overhead(row, ideal_ns):
    return row["iteration_ns"] / ideal_ns - 1


def moved(row):
    return row["d2h_bytes"] + row["h2d_bytes"]
