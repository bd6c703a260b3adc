"""What the check needs of a machine: where CUDA's libraries are there, and what is missing, in one line."""

import functools
import glob
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PYTHON = (3, 10)
PROGRAMS = ("planc", "planrun", "compare_backends")
PLUGIN = "libplanrt-cuda.so"
LIST = "files"  # of what the bundle has
# Where a library comes from that is not there.
SOURCES = (("libcudnn", "cuDNN 9 for CUDA 13, Python's nvidia-cudnn-cu13"), ("libcublas", "CUDA 13, Python's nvidia-cublas"),
           ("libnvrtc", "CUDA 13, Python's nvidia-cuda-nvrtc"), ("libcuda.", "the NVIDIA driver"))
# What libcudnn.so.9 opens by itself, and goes on without.
CUDNN_PARTS = ("graph", "ops", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled")
SECONDS = 180  # the first time libraries of a gigabyte are read, perhaps from afar
TAKEN = 0.1  # of the device's memory, that a context and others may have; plans are made for all of it


# --- Where things are ------------------------------------------------------------------------------------------------


def is_bundle():
    """Of the two places where this file is, a checkout has no such folder."""
    return os.path.isdir(os.path.join(HERE, "profiles"))


def root_folder():
    """Of the bundle, or of the checkout."""
    return HERE if is_bundle() else os.path.dirname(os.path.dirname(HERE))


def build_folder():
    return os.path.join(HERE, "bin") if is_bundle() else os.path.join(root_folder(), os.environ.get("BUILD", "build"))


def python_folders():
    """Of CUDA's packages: first where there is a library of CUDA 13, since cuDNN's name tells nothing."""
    roots = [os.path.join(path, "nvidia") for path in sys.path]
    roots.sort(key=lambda root: not glob.glob(os.path.join(root, "*", "lib", "libcublasLt.so.13")))
    return [folder for root in roots for folder in sorted(glob.glob(os.path.join(root, "*", "lib")))]


@functools.lru_cache(maxsize=None)
def own_cxx(build):
    """The bundle's folder of C++'s libraries, where this machine has none, or older ones."""
    lib = os.path.join(build, "..", "lib")
    folder = os.path.join(lib, "c++")
    if not os.path.isdir(folder):
        return []
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join([lib, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")}
    try:
        starts = subprocess.run([os.path.join(build, "planrun"), "--help"], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env=environment).returncode == 0
    except OSError:
        starts = True  # nothing starts, whatever its libraries are
    return [] if starts else [folder]


def library_folders(build):
    """Where shared libraries of the programs in `build` may be: beside them, where the environment says, in Python's
    packages, in the toolkit."""
    folders = [os.path.join(build, "..", "lib"), *own_cxx(build)]
    for home in ("CUDNN_HOME", "CUDA_HOME"):
        if home in os.environ:
            folders += [os.path.join(os.environ[home], name) for name in ("lib64", "lib")]
    folders += [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    folders += python_folders() + ["/usr/local/cuda/lib64", "/usr/local/cuda/lib"]
    return [folder for folder in folders if os.path.isdir(folder)]


# --- What is missing -------------------------------------------------------------------------------------------------


class Missing(Exception):
    """In one line."""


def program(build, name):
    path = os.path.join(build, name)
    beside = os.path.join(build, "cuda", name)
    return path if os.path.exists(path) or not os.path.exists(beside) else beside


def run(build, name, *arguments):
    environment = {"PLANRT_PLUGINS": build, **os.environ, "LD_LIBRARY_PATH": ":".join(library_folders(build)),
                   "PLANC_PROFILES": os.path.join(root_folder(), "profiles")}
    try:
        return subprocess.run([program(build, name), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, errors="backslashreplace", env=environment, timeout=SECONDS)
    except OSError as error:
        raise Missing(f"{program(build, name)} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{name} {' '.join(arguments)} takes more than {SECONDS} s") from error


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def explain(told):
    """The words of a loader or a library with what they are about."""
    library = re.search(r"(lib[\w+-]+\.so[\w.]*|libcuda\.)", told)
    source = next((source for name, source in SOURCES if library and library[1].startswith(name)), None)
    if library and "cannot open shared object file" in told:
        return f"{library[1]} is not here" + (f": {source} is needed" if source else "")
    return told + (f" ({source})" if source else "")


def look_at_python():
    if sys.version_info < PYTHON:
        raise Missing("Python %d.%d is too old: %d.%d is needed" % (*sys.version_info[:2], *PYTHON))
    apart = next((mark for mark in ":;" if mark in HERE), None)
    if apart:
        raise Missing(f"{HERE} has a '{apart}', at which the loader parts the names of folders: move it elsewhere")
    if platform.machine() != "x86_64":
        raise Missing(f"the programs are for x86_64, and this is {platform.machine()}")


def look_at_folder():
    """A copy that came to its end halfway has no list, or not all that is on it."""
    if not is_bundle():
        return
    try:
        with open(os.path.join(HERE, LIST), encoding="utf-8") as file:
            names = file.read().splitlines()
    except OSError as error:
        raise Missing(f"{error.filename}: {error.strerror}: the folder is not whole") from error
    absent = next((name for name in names if not os.path.exists(os.path.join(HERE, name))), None)
    if absent:
        raise Missing(f"{os.path.join(HERE, absent)} is not there: the folder is not whole")


def look_at_programs(build):
    plugin = os.path.join(os.environ.get("PLANRT_PLUGINS") or build, PLUGIN)
    for path in (*(program(build, name) for name in PROGRAMS), plugin):
        if not os.path.exists(path):
            raise Missing(f"{path} is not there: the folder is not whole")
    for name in PROGRAMS:
        done = run(build, name, "--help")
        if done.returncode in (126, 127):
            raise Missing(f"{name} cannot start: {explain(last_line(done.stderr))}")


def backend(build):
    """What planrun tells of the device."""
    done = run(build, "planrun", "info", "--json")
    if done.returncode:
        raise Missing(f"planrun info ends with {done.returncode}: {explain(last_line(done.stderr))}{absent_parts(build)}")
    return next(backend for backend in json.loads(done.stdout)["backends"] if backend["name"] == "cuda")


def absent_parts(build):
    """The parts of cuDNN that are not beside it, as a remark."""
    for folder in library_folders(build):
        if os.path.exists(os.path.join(folder, "libcudnn.so.9")):
            absent = [f"libcudnn_{part}.so.9" for part in CUDNN_PARTS
                      if not os.path.exists(os.path.join(folder, f"libcudnn_{part}.so.9"))]
            return f"; {folder} has no {', '.join(absent)}" if absent else ""
    return ""


def look_at_cudnn(build):
    """Without some of its parts cuDNN tells nothing and has no algorithms. It can be asked without a device."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(build, "planrun", "profile", os.path.join(root_folder(), "graphs", "lenet-digits.yaml"), "--deviceless",
                   "h100", "--batches", "4", "-o", os.path.join(folder, "profile.json"))
    without = re.search(r"cuDNN [\d.]+ has no engine for .*", done.stderr)
    if done.returncode or without:
        told = without[0] if without else explain(last_line(done.stderr))
        raise Missing(f"cuDNN is not whole: {told}{absent_parts(build)}")


def taken_by_others(cuda):
    """Every check would fail, and be held for tried."""
    total, free = cuda["memory_bytes"], cuda.get("free_bytes", cuda["memory_bytes"])
    if total - free > TAKEN * total:
        raise Missing(f"{(total - free) / 2**30:.1f} of the device's {total / 2**30:.1f} GiB are taken: other processes must "
                      "end first")


def missing():
    """One line, or None."""
    build = build_folder()
    try:
        look_at_python()
        look_at_folder()
        look_at_programs(build)
        cuda = backend(build)
        reason = cuda.get("missing", "")
        if re.search(r"lib[\w.+-]+\.so|made for CUDA .* and this plug-in", reason):
            return explain(reason.replace("backend cuda: ", ""))
        look_at_cudnn(build)
        if not reason:
            taken_by_others(cuda)
        return reason or None
    except Missing as error:
        return str(error)
