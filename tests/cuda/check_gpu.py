#!/usr/bin/env python3
"""Checks the CUDA backend on this machine's GPU, in sittings, and writes down what it finds.

usage: check_gpu.py [--out FOLDER] [--from ARCHIVE] [--minutes N] [--small]

From a checkout (`make check-gpu`) or from the bundle (`make gpu-bundle`), which stays as it is. FOLDER ($OUT, or check-gpu
here) gets summary.md, one page, and check-gpu.tar.gz, in which everything is: results, profiles, plans, traces, and all
that programs printed. Each call goes on from the archive that is there or from ARCHIVE, so that sittings of --minutes
(9) make a whole; the archive is written before and after every check. What passed is not done again, what failed is
tried once more after all others, what the end of a sitting or of this program cut off twice more.

Ends with "N passed, N failed", of rows. Exit codes: 0 all is through and passed, 1 something failed, 2 it cannot be done
like this, 3 call it again (it says with which archive if FOLDER had no room for it), 6 something is missing here.
--small takes LeNet alone, for trying this out."""

import sys


def tell_missing(why):
    print("check-gpu: " + why, file=sys.stderr)
    return 6


if sys.version_info < (3, 10):  # which the rest of this does not read
    sys.exit(tell_missing("Python %d.%d is too old: 3.10 is needed" % sys.version_info[:2]))

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

try:
    from gpucheck import checklist, clocks, environment, summary  # noqa: E402
    from gpucheck.commands import Commands  # noqa: E402
    from gpucheck.desk import Desk, Refused  # noqa: E402
    from gpucheck.plans import Planner  # noqa: E402
    from gpucheck.sitting import Sitting, say  # noqa: E402
except ImportError as lacking:
    sys.exit(tell_missing(f"{lacking}: the folder is not whole"))

# Our descriptions by words of cards' names, and their memory in GiB at least.
DESCRIBED = (("H100", 70, "h100"), ("H200", 130, "h200"), ("A100", 70, "a100-80g"), ("A100", 30, "a100-40g"), ("L4", 20, "l4"))
FOREVER = 1e9
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class Tools:
    """Where things are: in the bundle, or in a checkout."""
    planc: str
    planrun: str
    compare: str
    graphs: str
    profiles: str
    zoo: str
    package: str  # where Python finds planc_torch
    build: str

    @property
    def generator(self):
        return os.path.join(self.graphs, "generate.py")

    def graph(self, name):
        return os.path.join(self.graphs, name + ".yaml")


def tools_here():
    root, build = environment.root_folder(), environment.build_folder()
    planc, planrun, compare = (environment.program(build, name) for name in environment.PROGRAMS)
    return Tools(planc, planrun, compare, os.path.join(root, "graphs"), os.path.join(root, "profiles"),
                 os.path.join(HERE, "zoo"), os.path.join(root, "runtime", "torch"), build)


def environment_of(tools):
    return {"PLANRT_PLUGINS": os.environ.get("PLANRT_PLUGINS", tools.build), "PLANC_PROFILES": tools.profiles,
            "LD_LIBRARY_PATH": ":".join(environment.library_folders(tools.build))}


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is to go wrong in a check's first attempt: CHECK=FAULT or CHECK=FAULT@SECONDS, its limit."""
    check: str
    environment: dict
    limit: float

    @staticmethod
    def read(text):
        check, _, rest = text.partition("=")
        fault, _, limit = rest.partition("@")
        return Fault(check, {"EMULATED_CUDA_FAULT": fault}, float(limit) if limit else None)


def minutes(text):
    value = float(text)
    if not 0 <= value <= 1e6:
        raise ValueError
    return value


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FOLDER", default=os.environ.get("OUT", "check-gpu"), help="where summary and archive go")
    parser.add_argument("--from", dest="source", metavar="ARCHIVE", help="go on from this, into a folder without an archive")
    parser.add_argument("--minutes", type=minutes, default=9, help="of this sitting (default 9)")
    parser.add_argument("--small", action="store_true", help="LeNet alone")
    # For this tool's own tests: times that mean nothing, limits for slow machines, faults.
    parser.add_argument("--no-times", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--patience", type=float, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--fault", type=Fault.read, action="append", default=[], help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def described_as(device, memory_bytes):
    words = re.split(r"[ -]", device)
    return next((name for word, gib, name in DESCRIBED if word in words and memory_bytes >= gib << 30), None)


def head_of(commands, tools):
    told = json.loads(commands.must(tools.planrun, "info", "--json", seconds=20))
    info = next(backend for backend in told["backends"] if backend["name"] == "cuda")
    if not info["available"]:
        sys.exit(tell_missing(info["missing"]))
    return {"device": info["device"], "versions": info["library"], "planrun": told["version"]}, info


def hold_device():
    """As long as somebody has the device open its driver stays as it is; else each program starts it anew."""
    try:
        return os.open("/dev/nvidia0", os.O_RDWR)
    except OSError:
        return None


def sit(arguments, tools, work, begun):
    ours = environment_of(tools)
    commands = Commands(ours, begun + 60 * arguments.minutes, arguments.patience)
    setting_up = Commands(ours, float("inf"), arguments.patience)
    head, info = head_of(setting_up, tools)
    desk = Desk(arguments.out, arguments.source, work)
    desk.begin({**head, "small": arguments.small})
    say(", ".join(f"{key} {value}" for key, value in head.items()))

    def background(log):
        other = Commands(ours, commands.deadline, FOREVER)
        other.log = log
        return other

    described = described_as(head["device"], info["memory_bytes"])
    policies = checklist.policies(setting_up, tools)
    listed = checklist.small if arguments.small else checklist.full
    checks = list(listed(tools, policies, described, info["memory_bytes"]))
    device = described or re.sub(r"[^a-z0-9]+", "-", head["device"].lower()).strip("-")
    planner = Planner(desk.state, tools, background, max(1, min(4, (os.cpu_count() or 1) - 2)), device)
    sitting = Sitting(tools, desk.state, planner, commands, device=device, described=described, times=not arguments.no_times,
                      faults={fault.check: fault for fault in arguments.fault})
    held, log = hold_device(), clocks.Clocks(clocks.new_path(desk.state.path("logs")))
    try:
        sitting.go(checks, lambda: desk.put_away(head, checks, sitting.left(checks)))
    except KeyboardInterrupt:
        say("check-gpu: interrupted")
    finally:
        planner.close()
        log.close()
        if held is not None:
            os.close(held)
        left = sitting.left(checks)
        again = desk.leave(head, checks, left)
    return finish(desk.state, checks, left, again)


def finish(state, checks, left, again):
    """`again`: how to go on, if that is needed."""
    passed, failed = summary.count(state, checks)
    say((f"{left} of {len(checks)} checks are not through" if left else f"all {len(checks)} checks are through") +
        (f": call it again with {again}" if again else ""))
    say(f"{passed} passed, {failed} failed")
    return 3 if again else 1 if failed else 0


def interrupt(number, frame):
    """The first time; whoever is impatient must not keep us from putting away what is known."""
    for again in ENDS:
        signal.signal(again, signal.SIG_IGN)
    raise KeyboardInterrupt


def heed_interrupts():
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def main():
    begun = time.monotonic()
    heed_interrupts()
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text
    arguments = arguments_of(sys.argv[1:])
    try:
        missing = environment.missing()
        if missing:
            return tell_missing(missing)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
            return sit(arguments, tools_here(), work, begun)
    except (Refused, OSError) as error:
        print(f"check-gpu: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("check-gpu: interrupted; call it again with the same folder", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
