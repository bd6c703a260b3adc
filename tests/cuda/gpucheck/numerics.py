"""Whether the GPU computes what the host does, op by op and in whole plans."""

import glob
import os
import re
import shutil

from .commands import Failure, Unfit, last_words

SANITIZERS = ("/usr/local/cuda/bin/compute-sanitizer",)


def train(context, source, name, precision):
    path = context.state.path("graphs", f"{name}-{precision}.yaml")
    context.commands.must(context.tools.planc, "train", source, "--precision", precision, "-o", path)
    return path


def compare(context, source, precision, *sizes, seconds=30):
    """Every op with every algorithm against the host, bits repeatable. `sizes`: batch and rounds."""
    name = os.path.splitext(os.path.basename(source))[0]
    path = train(context, source, name, precision)
    done = context.commands.run(context.tools.compare, "cuda", path, *sizes, seconds=seconds)
    lines = done.stdout.strip().splitlines()
    told = lines[-1].split(": ", 1)[-1] if lines else last_words(done.stderr)
    context.row(f"{name} {precision} as on the host", done.returncode == 0, told=told,
                **({"first": lines[0]} if done.returncode and lines else {}))


def zoo(context, precision):
    """Small graphs that have every op between them."""
    sources = sorted(glob.glob(os.path.join(context.tools.zoo, "*.yaml")))
    if not sources:
        raise Failure(f"there are no graphs in {context.tools.zoo}")
    for source in sources:
        compare(context, source, precision)


def sanitize(context, tool, sources):
    """The same under compute-sanitizer. Races are looked for in our own kernels."""
    program = shutil.which("compute-sanitizer") or next(filter(os.path.exists, SANITIZERS), None)
    if not program:
        raise Unfit("there is no compute-sanitizer")
    ours = ["--kernel-regex", "kns=planrt"] if tool == "racecheck" else []
    for source, sizes in sources:
        name = os.path.splitext(os.path.basename(source))[0]
        path = train(context, source, name, "f32")
        # Newer libraries ask older drivers for what they lack, and go on without: that is no error of ours.
        done = context.commands.run(program, "--tool", tool, "--report-api-errors", "no", "--error-exitcode", 9, *ours,
                                    context.tools.compare, "cuda", path, *sizes, seconds=60)
        said = done.stdout + done.stderr
        if "Device not supported" in said:
            raise Unfit("compute-sanitizer does not support this device here")
        found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", said)
        context.row(f"{tool} {name}", done.returncode == 0, told=found[-1] if found else last_words(said, 200))


def stand_ins(context, job, options):
    """A whole plan of stand-ins that hash all they read: data integrity from end to end."""
    path, _ = context.planner.get(job)
    told = context.execute(path, "--synthetic", "-n", 3, *options, seconds=20)
    context.row(" ".join(["bits of stand-ins", *options]), told["verified"])
