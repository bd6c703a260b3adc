#!/usr/bin/env python3
"""Addresses for published buffers (planc place): the least that is found, and how long it takes to meet a capacity.

usage: bench_place.py [--json] [--effort N] [-o FILE] [FILE|FOLDER ...]

Each FILE is CSV (id, lower, upper, size); a FOLDER is all of its files. Without any: minimalloc's and idealloc's, which lie
beside the project. A file named NAME.CAPACITY.csv is also placed within that capacity. What is found is held against the file:
no two buffers overlap. Exit 1 where minimalloc's files take longer together than its own solver took, or one is not solved."""

import argparse
import csv
import json
import os
import re
import sys
import tempfile

from benchlib import ROOT, bench, cpu_seconds, hold, planc, table

DATA = [os.path.join(ROOT, "..", "shared", "bench", name) for name in ("minimalloc", "idealloc")]
# Seconds of minimalloc's solver within 1 MiB, the lesser of what ../shared/bench/README.md gives: one core of a shared machine.
MINIMALLOC = {"A": 6.6, "C": 0.9, "D": 4.4, "F": 7.3, "I": 7.8, "K": 1.1}


def files_of(paths):
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".csv"))
        elif os.path.exists(path):
            yield path
        else:
            print(f"skipped: {os.path.relpath(path, ROOT)} is absent")


def assert_placed(path, bytes):
    """Every buffer lies within `bytes`, and none overlaps another: in order of time, each beside those that live then."""
    with open(path, encoding="utf-8") as file:
        buffers = sorted(([int(row[key]) for key in ("lower", "upper", "size", "offset")] for row in csv.DictReader(file)))
    living = []
    for lower, upper, size, offset in buffers:
        assert 0 <= offset <= bytes - size, path
        living = [other for other in living if other[0] > lower]
        for _, other, end in living:
            assert offset >= end or offset + size <= other, path
        if size:
            living.append((upper, offset, offset + size))


def measure(path, options, folder):
    output = os.path.join(folder, "placed.csv")
    effort = ["--effort", options.effort]
    found = json.loads(planc("place", path, *effort, "--json", "-o", output))
    assert_placed(output, found["bytes"])
    row = {"file": os.path.basename(path), "buffers": found["buffers"], "live_bytes": found["live_bytes"],
           "least_bytes": found["least_bytes"], "bytes": found["bytes"],
           "greedy_bytes": json.loads(planc("place", path, "--effort", 0, "--json", "-o", output))["bytes"],
           "seconds": cpu_seconds("place", path, *effort, "-o", output, runs=options.runs)[0],
           "capacity": None, "solved": None, "capacity_seconds": None}
    named = re.fullmatch(r".*\.(\d+)\.csv", row["file"])
    if named:
        within = ["place", path, *effort, "--capacity", named[1], "-o", output]
        row["capacity"] = int(named[1])
        row["solved"] = planc(*within, "--json", check=False) != ""
        if row["solved"]:
            assert_placed(output, row["capacity"])
        row["capacity_seconds"] = cpu_seconds(*within, runs=options.runs, ends=(0, 1))[0]
    return row


def main(options):
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(path, options, folder) for path in files_of(options.paths or DATA)]
    if options.json:
        print(json.dumps(rows))
        return
    table("Addresses: bytes, and CPU seconds of planc place",
          ["file", "buffers", "live at a time", "at least", "greedy", "found", "above", "seconds", "capacity", "seconds", "minimalloc's"],
          [[row["file"], row["buffers"], row["live_bytes"], row["least_bytes"], f"{row['greedy_bytes'] / row['least_bytes'] - 1:+.2%}",
            row["bytes"], f"{row['bytes'] / row['least_bytes'] - 1:+.2%}", f"{row['seconds']:.2f}", row["capacity"] or "-",
            "-" if row["capacity"] is None else f"{row['capacity_seconds']:.2f}" if row["solved"] else "none found",
            MINIMALLOC.get(row["file"].split(".")[0], "-") if row["capacity"] == 2**20 else "-"] for row in rows],
          ["live at a time: no addresses need less; at least: that, or what complete search has shown; greedy, above: over that",
           "minimalloc's: seconds of its solver as published beside the files, on another machine"])
    of_minimalloc = [row for row in rows if row["capacity"] == 2**20 and row["file"].split(".")[0] in MINIMALLOC]
    unsolved = [row["file"] for row in of_minimalloc if not row["solved"]]
    if unsolved:
        sys.exit("not solved: " + ", ".join(unsolved))
    hold([("minimalloc's files together", f"{sum(row['capacity_seconds'] for row in of_minimalloc):.2f}",
           sum(MINIMALLOC[row["file"].split(".")[0]] for row in of_minimalloc))])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="*", metavar="FILE|FOLDER")
    arguments.add_argument("--json", action="store_true", help="rows as one line of JSON, and nothing else")
    arguments.add_argument("--effort", type=int, default=2)
    arguments.add_argument("--runs", type=int, default=3)
    if "--json" in sys.argv:
        main(arguments.parse_args())
    else:
        bench("CPU seconds are of one machine; bytes are the same on every one.", {"all": main}, arguments)
