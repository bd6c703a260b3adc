#!/usr/bin/env python3
"""What policies decide does not change by itself: plans of every graph here, by every policy, are those of
tests/data/decisions.txt.

usage: tests/python/test_decisions.py [--update|--all]

--update makes the rows anew that there are, --all those of every graph, policy and share, more than are kept. The test compares an
eighth of each policy's rows, none of them of the longest searches, LONGEST; with SAMPLES=all in the environment (`make fuzz`) it
compares all.

A row is a graph, a policy, the share of the data of `none` that the budget holds, behind a plus that of the host which a
plan needs in that budget, where storage has the rest, and of the plan: a digest of what runs
and is copied in which order, a digest of where everything lies, the peaks of device and host and the iteration's
predicted time. Where there is no plan there is no row. Neither digest depends on a plan's form: events, streams and the
numbers of residencies are not in them."""

import concurrent.futures
import functools
import glob
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest

from sampling import TAKES_ALL, sampled

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANC = os.path.join(ROOT, os.environ.get("BUILD", "build"), "planc")
FILE = os.path.join(ROOT, "tests", "data", "decisions.txt")
POLICIES = ("none", "vdnn-all", "vdnn-conv", "vdnn-dyn", "vdnn+", "modnn", "naive", "prefetch-1", "lms", "capuchin",
            "tensile", "superneurons", "chen", "cheap", "window", "priced")
DEVICE, BATCH, SHARES = "v100-32g", "64", ("80", "55")
STORED, STORED_SHARES = ("vdnn-all", "naive", "lms", "window", "capuchin"), ("55+60", "55+25")
STORAGE = {"write": {"bytes_per_second": 10**9, "latency_ns": 20000}, "read": {"bytes_per_second": 2 * 10**9, "latency_ns": 10000}}
DOES_NOT_FIT = 1
DEVICES_MEMORY = 0
HOST_PEAK = 3  # of what a row says of a plan
LONGEST = {*(f"{graph} priced 55" for graph in ("bert-base", "deeplabv3plus", "densenet121", "inception-v3", "inception-v3-aux",
                                                "inception-v4", "nasnet-a-large", "nasnet-a-mobile", "recorded/lstm4", "resnet110",
                                                "resnet152", "tacotron2-small", "vgg101")),
           *(f"{graph} priced 80" for graph in ("inception-v3", "nasnet-a-large"))}


def plan(graph, policy, budget, path, device=DEVICE, more=()):
    """The plan's summary; None where it does not fit."""
    done = subprocess.run([PLANC, "plan", graph, "-d", device, "-b", BATCH, "--policy", policy, "-m", str(budget), "--json",
                           "-o", path, *more], capture_output=True, text=True,
                          env={**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")})
    assert done.returncode in (0, DOES_NOT_FIT), (graph, policy, budget, done.stderr)
    return None if done.returncode else json.loads(done.stdout)


def body(path):
    """The instructions of the body of a plan for one device as (word, what it is done to, where). What a place in another
    memory is taken for is told by the copies to it and from it; theirs is the address there, -1 of the user's."""
    with open(path, encoding="utf-8") as file:
        rows = json.loads("[" + ",".join(file.read().splitlines()) + "]")  # at once, in half the time
    algorithms = [row["algorithm"] for row in rows if "algorithm" in row]
    # By residency: what the digests call it, whether it is on the device, and where. They call it by its buffer, but the
    # boundary's, and the body's first on the device, by the buffer of the one before; the very first by how many these are.
    boundary = [row for row in rows[1:] if "boundary" in row]
    names = [len(boundary), *(row["boundary"] for row in boundary)]
    residencies = [(name, row["m"] == DEVICES_MEMORY, row["at"]) for name, row in zip(names, boundary)]
    names, users = names[-1:], (None, False, -1)
    first = len(rows) - rows[0]["epilogue"] - rows[0]["body"]
    for row in rows[first:first + rows[0]["body"]]:
        word = row["i"]
        if word == "acquire":
            on_device = row["m"] == DEVICES_MEMORY
            residencies.append((names.pop() if on_device and names else row["b"], on_device, row["at"]))
            if on_device:
                yield word, row["b"], row["at"]
        elif word == "release":
            name, on_device, _ = residencies[row["r"]]
            if on_device:
                yield word, name, None
        elif word == "exec":
            yield word + (" again" if "re" in row else ""), (row["n"], algorithms[row["a"]]), row["ws"]
        elif word == "copy":
            (source, leaves, start), (target, arrives, end) = (residencies[r] if r >= 0 else users
                                                               for r in (row["from"], row["r"]))
            if leaves and arrives:
                yield "move", target, None
            elif leaves:
                yield "offload" + (" user" if row["r"] < 0 else ""), source, end
            else:
                yield "prefetch" + (" user" if row["from"] < 0 else ""), target, start


def digest(lines):
    return hashlib.sha256("\n".join(map(str, lines)).encode()).hexdigest()[:16]


def described():
    with open(os.path.join(ROOT, "profiles", f"{DEVICE}.json"), encoding="utf-8") as file:
        return json.load(file)


def of_plan(file, policy, budget, device=DEVICE, more=()):
    """What a row says of a plan; None where it does not fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.plan")
        summary = plan(file, policy, budget, path, device, more)
        if not summary:
            return None
        done = list(body(path))
    order = digest((word, what) for word, what, _ in done if word not in ("acquire", "release"))
    return order, digest(done), summary["peak_bytes"], summary["host_peak_bytes"], summary["iteration_ns"]


def of_stored(file, policy, budget, host):
    """With storage, and so much of the host."""
    device = described()
    device["device"]["storage"] = STORAGE
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as profile:
        json.dump(device, profile)
        profile.flush()
        return of_plan(file, policy, budget, profile.name, ("--host-budget", str(host), "--storage", str(1 << 50)))


def of_graph(graph, asked):
    """The rows of a graph for (policy, share)."""
    reserved = described()["device"]["reserved_bytes"]
    file = os.path.join(ROOT, "graphs", graph + ".yaml")
    with tempfile.TemporaryDirectory() as folder:
        data = plan(file, "none", 1 << 50, os.path.join(folder, "a.plan"))["peak_bytes"] - reserved
    without_storage = functools.cache(functools.partial(of_plan, file))

    def row(policy, share):
        of_data, _, of_host = share.partition("+")
        budget = reserved + data * int(of_data) // 100
        told = without_storage(policy, budget)
        if told and of_host:
            told = of_stored(file, policy, budget, told[HOST_PEAK] * int(of_host) // 100)
        return " ".join(map(str, (graph, policy, share, *(told or ["does not fit"]))))

    return [row(policy, share) for policy, share in asked]


def of_graphs(asked):
    """The rows of {graph: [(policy, share), ...]}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [line for lines in pool.map(of_graph, asked, asked.values()) for line in lines]


def everything():
    paths = sorted(glob.glob(os.path.join(ROOT, "graphs", "**", "*.yaml"), recursive=True))
    graphs = [os.path.relpath(path, os.path.join(ROOT, "graphs"))[:-len(".yaml")] for path in paths]
    asked = [*itertools.product(POLICIES, SHARES), *itertools.product(STORED, STORED_SHARES)]
    return {graph: asked for graph in graphs}


def rows():
    with open(FILE, encoding="utf-8") as file:
        return file.read().splitlines()


def asked_by(lines):
    asked = {}
    for graph, policy, share, *_ in map(str.split, lines):
        asked.setdefault(graph, []).append((policy, share))
    return asked


def name_of(row):
    return " ".join(row.split()[:3])


def compared():
    """The rows that the test makes again, in their order: every policy's, every graph's, every share's."""
    short = [row for row in rows() if TAKES_ALL or name_of(row) not in LONGEST]
    taken = {row for number, policy in enumerate(POLICIES)
             for row in sampled([row for row in short if row.split()[1] == policy], 8, 2 * number)}
    return [row for row in short if row in taken]


class Decisions(unittest.TestCase):
    maxDiff = None

    def test_policies_decide_as_before(self):
        self.assertEqual(of_graphs(asked_by(compared())), compared())

    def test_what_is_compared_has_every_graph_policy_and_share(self):
        self.assertLessEqual(LONGEST, set(map(name_of, rows())))
        for column in range(3):
            self.assertEqual({row.split()[column] for row in compared()}, {row.split()[column] for row in rows()})

    def test_every_policy_has_rows(self):
        done = subprocess.run([PLANC, "compare", os.path.join(ROOT, "graphs", "lenet-digits.yaml"), "--json", "--no-least"],
                              capture_output=True, text=True, check=True)
        self.assertEqual(sorted(POLICIES), sorted(row["policy"] for row in json.loads(done.stdout)["rows"]
                                                  if row["policy"] != "ideal"))

    def test_every_graph_has_rows(self):
        self.assertEqual({row.split()[0] for row in rows()}, set(everything()))


if __name__ == "__main__":
    if sys.argv[1:] in (["--update"], ["--all"]):
        made = of_graphs(asked_by(rows()) if sys.argv[1] == "--update" else everything())
        made = [row for row in made if not row.endswith("does not fit")]
        with open(FILE, "w", encoding="utf-8") as output:
            output.write("\n".join(made) + "\n")
    else:
        unittest.main()
