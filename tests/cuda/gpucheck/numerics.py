"""Whether the GPU computes what the host does, op by op and in whole plans."""

import glob
import os
import re
import shutil
import time

from .commands import Failure, Unfit, last_words
from .plans import read

HOST_MEMORY = 40 << 30  # that comparing the largest ops takes
SANITIZERS = ("/usr/local/cuda/bin/compute-sanitizer",)


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def train(context, source, precision):
    """A training graph in a precision; its path. Profiles and plans have theirs."""
    os.makedirs(context.state.path("graphs", "numerics"), exist_ok=True)
    path = context.state.path("graphs", "numerics", f"{name_of(source)}-{precision}.yaml")
    context.commands.must(context.tools.planc, "train", source, "--precision", precision, "-o", path)
    return path


def compare(context, path, *sizes, options=(), seconds=30):
    """Every op with every algorithm against the host, bits repeatable. `sizes`: batch and rounds."""
    done = context.commands.run(context.tools.compare, "--json", *options, "cuda", path, *sizes, seconds=seconds)
    told = read(done.stdout) if done.returncode in (0, 1) and done.stdout.strip() else {"calls": 0}
    if told["calls"] == 0:
        raise Failure(f"compare_backends: exit {done.returncode}: {last_words(done.stderr)}")
    named = {"wrong": [kind for kind in told["kinds"] if kind["failures"] > kind["not_run"]],
             "cannot_run": [kind for kind in told["kinds"] if kind["not_run"]]}
    off = told["of_allowed"]
    context.row(name_of(path), done.returncode == 0,
                **{key: told[key] for key in ("calls", "algorithms", "left_out", "failures")},
                of_allowed="infinite" if off is None else round(off, 3),  # JSON has no infinity
                **{word: ", ".join(f"{kind['type']} {kind['dtypes']}" for kind in kinds) for word, kinds in named.items() if kinds})


def model(context, source, precision, *sizes, seconds=30):
    compare(context, train(context, source, precision), *sizes, seconds=seconds)


def zoo(context, precision):
    """Small models with what other graphs have not."""
    for source in found(context, "*.yaml"):
        model(context, source, precision, 4, 2)


def ops(context):
    """Every op, dtype and layout that the backend has, in one round and in a later one, by the algorithms that the
    libraries put first: they have thousands for these."""
    for path in found(context, "ops/*.yaml"):
        compare(context, path, 3, 2, options=("--most", 4))


def large(context):
    """More bytes and blocks than 31 bits count."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < HOST_MEMORY:
        raise Unfit(f"this machine has {memory >> 30} GiB of host memory, and the comparison takes {HOST_MEMORY >> 30}")
    for path in found(context, "large/*.yaml"):
        compare(context, path, options=("--once",), seconds=60)


def found(context, pattern):
    paths = sorted(glob.glob(os.path.join(context.tools.zoo, pattern)))
    if not paths:
        raise Failure(f"there are no graphs {os.path.join(context.tools.zoo, pattern)}")
    return paths


def sanitize(context, tool, sources):
    """The same under compute-sanitizer, each op once, as far as the check's minutes go: it is slow where libraries have much
    code. Races are looked for in our own kernels."""
    program = shutil.which("compute-sanitizer") or next(filter(os.path.exists, SANITIZERS), None)
    if not program:
        raise Unfit("there is no compute-sanitizer")
    end = time.monotonic() + 60 * context.minutes * context.commands.patience
    graphs = [(train(context, source, "f32"), sizes) for source, sizes in sources]
    # Convolutions are cuDNN's.
    graphs += [(path, (2,)) for path in sorted(found(context, "ops/*.yaml"), key=lambda path: "convolutions" in path)]
    ours = ["--kernel-regex", "kns=planrt"] if tool == "racecheck" else []
    while graphs and time.monotonic() < end:
        path, sizes = graphs.pop(0)
        # Newer libraries ask older drivers for what they lack, and go on without: that is no error of ours.
        done = context.commands.run(program, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", 9, *ours,
                                    context.tools.compare, "--once", "cuda", path, *sizes, seconds=15)
        said = done.stdout + done.stderr
        if "Device not supported" in said:
            raise Unfit("compute-sanitizer does not support this device here")
        if "Internal Sanitizer Error" in said:  # its own, and what follows of it
            context.row(f"{tool} {name_of(path)}", None, why=f"the sanitizer gave up on {name_of(path)}")
            continue
        told = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", said)
        context.row(f"{tool} {name_of(path)}", done.returncode == 0, told=told[-1] if told else last_words(said, 200))
    if graphs:
        context.row("left out", None, why="no time for " + ", ".join(name_of(path) for path, _ in graphs))


def stand_ins(context, job, options):
    """A whole plan of stand-ins that hash all they read: data integrity from end to end."""
    path, _ = context.planner.get(job)
    told = context.execute(path, "--synthetic", "-n", 3, *options, seconds=20)
    context.row(" ".join(["bits of stand-ins", *options]), told["verified"])
