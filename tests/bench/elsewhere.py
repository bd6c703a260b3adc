#!/usr/bin/env python3
"""Makes a graph and a profile for planc of an iteration that others have measured:

    elsewhere.py INPUT -o FOLDER

INPUT is a folder with G10's kernels.tsv and tensors.tsv, a graph of Checkmate's as NetworkX node-link JSON (.json), an
operator log of DTR's (.log, .log.gz), or a problem of MONET's (.json). FOLDER gets NAME.yaml and NAME.profile.json, and the
command that plans them by the rules of the source is printed. What each reader takes from its source is told in elsewhere_g10.py,
elsewhere_checkmate.py, elsewhere_dtr.py and elsewhere_monet.py.

Exit codes: 0, 2 usage, 3 bad input, 5 an output that cannot be written.
"""

import argparse
import os
import shlex
import sys

import elsewhere_checkmate
import elsewhere_dtr
import elsewhere_g10
import elsewhere_monet
from elsewhere_iteration import BadData


def read(path):
    """The iteration in a file or folder, by what it looks like."""
    if os.path.isdir(path):
        return elsewhere_g10.read(path)
    if path.endswith(".json"):
        return elsewhere_monet.read(path) if elsewhere_monet.is_problem(path) else elsewhere_checkmate.read(path)
    if path.endswith((".log", ".log.gz")):
        return elsewhere_dtr.read(path)
    raise BadData("a folder of G10's, a .json of Checkmate's or MONET's or a .log of DTR's is expected")


def main():
    parser = argparse.ArgumentParser(description="Make a graph and a profile for planc of an iteration that others have measured.")
    parser.add_argument("input", metavar="INPUT")
    parser.add_argument("-o", metavar="FOLDER", required=True)
    options = parser.parse_args()
    try:
        iteration = read(options.input)
    except (BadData, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else f"{options.input}: {error}"
        print(f"elsewhere.py: {what}", file=sys.stderr)
        return 3
    try:
        graph, profile = iteration.write(options.o)
    except OSError as error:
        print(f"elsewhere.py: {options.o}: {error.strerror}", file=sys.stderr)
        return 5
    print(shlex.join(["planc", "plan", graph, "--profile", profile, *iteration.options]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
