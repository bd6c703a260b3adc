#!/usr/bin/env python3
"""Builds planc_torch's extension into FOLDER, for each PYTHON that has PyTorch, its headers and Python's, and pybind11's, as
PyTorch of PyPI does. One compiler's line: what PyTorch has for this would take longer."""

import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "planc_torch", "csrc")
SOURCE = os.path.join(FOLDER, "plain_calls.cpp")
COMPILERS = ("g++", "clang++", "c++")
ASK = """
import json, os, sys, sysconfig
import torch
sys.path.insert(0, sys.argv[1])
from planc_torch import extension
print(json.dumps({"version": torch.__version__, "at": os.path.dirname(torch.__file__), "python": sysconfig.get_path("include"),
                  "file": extension.FILE, "abi": int(torch._C._GLIBCXX_USE_CXX11_ABI)}))
"""


class NotBuilt(Exception):
    """Why not, in a sentence."""


def ask(python):
    """What the line has to know of a Python and its PyTorch: None if it has none. Within pip's build a Python sees its
    packages only with -E."""
    for options in ([], ["-E"]):
        done = subprocess.run([python, "-B", *options, "-c", ASK, HERE], capture_output=True, text=True, check=False,
                              cwd=FOLDER)
        if done.returncode == 0 and done.stdout:
            return json.loads(done.stdout.splitlines()[-1])
    return None


def line(compiler, python, output):
    own = os.path.join(python["at"], "include")  # Debian has the headers among all others
    include = [python["python"], *([own] if os.path.isdir(own) else [])]
    library = os.path.join(python["at"], "lib")
    standard = "c++17" if python["version"].startswith("1.") else "c++20"
    # Classes of PyTorch's have other members where assertions are wanted, and it is made without.
    return [compiler, f"-std={standard}", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra",
            "-Wno-missing-field-initializers", f"-D_GLIBCXX_USE_CXX11_ABI={python['abi']}", *(f"-isystem{i}" for i in include),
            SOURCE, "-o", output, *([f"-L{library}"] if os.path.isdir(library) else []), "-lc10", "-ltorch_cpu", "-ltorch_python"]


def build(folder, python):
    """Builds the extension for a Python, where it is not there and newer than its source; gives its path."""
    asked = ask(python)
    if asked is None:
        raise NotBuilt(f"{python} has no PyTorch")
    compiler = next((found for found in map(shutil.which, COMPILERS) if found), None)
    if compiler is None:
        raise NotBuilt("there is no C++ compiler (Debian: g++)")
    path = os.path.join(folder, asked["file"])
    if os.path.exists(path) and os.path.getmtime(path) > max(os.path.getmtime(part.path) for part in os.scandir(FOLDER)):
        return path
    done = subprocess.run(line(compiler, asked, f"{path}.part"), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        error = next((text for text in done.stderr.splitlines() if "error" in text), done.stderr.strip()[-200:])
        raise NotBuilt(f"{compiler} cannot build it for PyTorch {asked['version']}: {error} (Debian: libtorch-dev pybind11-dev)")
    sys.stderr.write(done.stderr)
    os.replace(f"{path}.part", path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optional", action="store_true", help="it is no failure if it cannot be built")
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("pythons", metavar="PYTHON", nargs="+")
    options = parser.parse_args()
    failures = []
    for python in dict.fromkeys(options.pythons):
        try:
            print(build(options.folder, python))
        except NotBuilt as why:
            failures.append(why)
            print(f"planc_torch's extension is not built: {why}", file=sys.stderr)
    return 1 if len(failures) == len(set(options.pythons)) and not options.optional else 0


if __name__ == "__main__":
    sys.exit(main())
