#!/usr/bin/env python3
"""Results of benchmarks (tests/bench/results) against what the benchmarks print: of those that take longer than seconds, a
part. The whole of one is tests/bench/bench_NAME.py -o tests/bench/results/NAME.txt, which leaves no difference. What was
measured (tables whose titles say so) and what needs data or devices that may be absent is not compared."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from sampling import sampled

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "tests", "bench")
sys.path.insert(0, BENCH)
import bench_cpu  # noqa: E402
import bench_growth  # noqa: E402
import bench_mixes  # noqa: E402
import benchlib  # noqa: E402

# Benchmark, its results, and the parts that are computed again; then those that take longest.
COMPARED = [("gpus", "gpus-k40m", ["figure-9", "exchange", "budgets", "policies"]),
            ("window", "window-v100", ["links"]),
            ("pairs", "pairs", ["lucid", "tally"]),
            ("shares", "shares", ["shares"]),
            ("waterwave", "waterwave", ["figure2"])]
LONG = [("modnn", "modnn-k40m", ["figure-6", "figure-7"]),
        ("descriptions", "descriptions", ["all"]),
        ("tensile_mixes", "tensile-mixes-a6000", ["table-4"]),
        ("zico", "zico", ["figure10"]),
        ("tensile", "tensile-a6000", ["calibration", "tables-1-and-2", "table-3"])]


def setUpModule():
    for program in ("planc", "bench/eq3_rounds", "bench/pair_speeds", "counted/planc"):
        if not os.path.exists(os.path.join(benchlib.BUILD, program)):
            print(f"skipped: results of benchmarks: there is no {program}: make build unit comes first")
            raise unittest.SkipTest(program)


def blocks(text):
    """A head, and tables, each with its notes."""
    return text.rstrip("\n").split("\n\n")


def results(name):
    with open(os.path.join(benchlib.RESULTS, name + ".txt"), encoding="utf-8") as file:
        return blocks(file.read())


def printed_by(bench, *arguments):
    """None where data is absent."""
    done = subprocess.run([sys.executable, "-B", os.path.join(BENCH, f"bench_{bench}.py"), *arguments], capture_output=True,
                          text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    if "left out" in done.stdout:
        print("skipped: results of " + done.stdout.splitlines()[-1])
        return None
    return blocks(done.stdout)


class Results(unittest.TestCase):
    def test_files_have_what_the_benchmarks_print(self):
        for bench, name, parts in COMPARED + sampled(LONG):
            parts = sampled(parts)
            with self.subTest(bench=bench):
                printed = printed_by(bench, *(a for part in parts for a in ("--only", part)))
                if not printed:
                    continue
                written = results(name)
                self.assertEqual(printed[0], written[0])
                computed = [block for block in printed[1:] if "measured" not in block.splitlines()[0]]
                self.assertGreaterEqual(len(computed), len(parts))
                for block in computed:
                    self.assertIn(block, written)

    def test_a_recording_has_the_plans_of_the_file(self):
        printed = printed_by("recorded", "--only", "plans", "resnet34")
        if printed:
            self.are_rows(printed[1], results("recorded-plans")[1], 1)

    def test_a_graph_has_the_bounds_of_the_file(self):
        """The one of least work; `make bench` has the others."""
        parts = sampled(["60", "40", "25"], 3)
        printed = printed_by("bound", "--parts", ",".join(parts), benchlib.graph("recorded/vgg16"))
        self.are_rows(printed[1], results("bound")[1], len(parts))

    def are_rows(self, printed, written, count):
        """Whether the first rows of a table are some of another, whose columns may be wider."""
        (title, head, *rows), (title_written, *written) = printed.splitlines(), written.splitlines()
        written = [row.split() for row in written]
        self.assertEqual([title, head.split()], [title_written, written[0]])
        self.assertEqual([row for row in rows[:count] if row.split() not in written], [])

    def test_auto_is_beside_zico_and_waterwave_as_the_file_says(self):
        parts = sampled(["shares", "throughput"])
        printed = printed_by("auto_mixes", *(a for part in parts for a in ("--only", part)), "--cases", "zico-fig5", "--models", "ResNet-50")
        self.assertEqual(len(printed), 1 + len(parts))
        written = {table.splitlines()[0]: table for table in results("auto-mixes")}
        for table in printed[1:]:
            rows, known = ([row.split() for row in block.splitlines()] for block in (table, written[table.splitlines()[0]]))
            self.assertEqual(rows[:2], known[:2])
            self.assertEqual([row for row in rows if row[0] == "zico-fig5"],
                             [row for row in known if row[0] == "zico-fig5" and row[1].startswith("ResNet-50:")])

    def test_planning_that_takes_too_long_fails(self):
        shown = '{"memory": {"liveness_bytes": 1}}'
        most = bench_cpu.LIMITS["check it"]
        for count, code in ((1000, None), (10**12, f"check it took 1000000.0 million instructions, {most:.1f} million")):
            with (mock.patch.multiple(bench_cpu, cpu_seconds=lambda *_, **__: (99.0, 0),
                                      instructions=lambda *_, count=count: count, planc=lambda *_: shown),
                  mock.patch.object(bench_cpu.subprocess, "run"), contextlib.redirect_stdout(io.StringIO())):
                try:
                    bench_cpu.main(None)
                    self.assertIsNone(code)
                except SystemExit as end:
                    self.assertIn(str(code), str(end.code))

    def test_the_large_graph_that_is_planned_is_one(self):
        with tempfile.TemporaryDirectory() as folder:
            large = os.path.join(folder, "large.yaml")
            subprocess.run([sys.executable, os.path.join(ROOT, "graphs", "generate.py"), "--large", "1000", "-o", large],
                           check=True)
            done = subprocess.run([benchlib.PLANC, "show", large], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_is_what_was_printed_and_none_where_a_benchmark_fails(self):
        def fails(_):
            sys.exit("missed")

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.txt")
            for parts in ({"one": lambda _: print("\na table")}, {"one": lambda _: print("\nother"), "two": fails}):
                printed = io.StringIO()
                with mock.patch.object(sys, "argv", [__file__, "-o", path]), contextlib.redirect_stdout(printed):
                    try:
                        benchlib.bench("on paper", parts)
                        with open(path, encoding="utf-8") as file:
                            self.assertEqual(file.read(), printed.getvalue())
                    except SystemExit:
                        self.assertIn("two", parts)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "# tests/python/test_results.py: on paper\n\na table\n")


class Mixes(unittest.TestCase):
    """Of the results of mixes a part: all of them take hours. Those of host-mixes are measured."""

    def test_work_grows_as_the_file_says(self):
        """What is counted differs between compilers, how it grows hardly does."""
        written = {tuple(row.split()[:3]): row.split()[-1] for block in results("mixes") if "counted" in block.splitlines()[0]
                   for row in block.splitlines()[2:]}
        with tempfile.TemporaryDirectory() as folder:
            for policy in ("temporal", "zico"):
                with self.subTest(policy=policy):
                    done = {n: benchlib.counted_work(*bench_mixes.command(folder, policy, "alike", 2, n))
                            for n in bench_mixes.SIZES}
                    self.assertAlmostEqual(bench_mixes.beyond(done), float(written[policy, "alike", "2"]), delta=0.1)


class Growth(unittest.TestCase):
    SMALL = [1000, 4000]
    ASKS_ANOTHER = "auto"  # most of its work is that of priced, and both together most of all policies': `make bench` counts it

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def work(self, policy, n_ops):
        return bench_growth.counted_work(policy, *bench_growth.large(self.folder.name, n_ops))

    def test_work_grows_as_n_log_n_as_the_file_says(self):
        """What is counted differs between compilers, how it grows hardly does."""
        rows = {row.split()[0]: row.split() for row in results("growth")[1].splitlines()[2:]}
        for policy in sampled([policy for policy in bench_growth.POLICIES if policy != self.ASKS_ANOTHER], 6):
            with self.subTest(policy=policy):
                works = {n: self.work(policy, n) for n in self.SMALL}
                bench_growth.growth_of({policy: works})
                written = rows[policy][2 + len(bench_growth.SIZES)]
                self.assertAlmostEqual(bench_growth.beyond(works)[self.SMALL[-1]], float(written), delta=0.1)

    def test_every_policy_is_there(self):
        shown = subprocess.run([benchlib.PLANC, "compare", os.path.join(ROOT, "graphs", "lenet-digits.yaml"), "--json"],
                               capture_output=True, text=True, check=True).stdout
        self.assertLessEqual({row["policy"] for row in json.loads(shown)["rows"]}, {*bench_growth.POLICIES, "ideal"})

    def test_work_is_the_same_each_time(self):
        self.assertEqual(self.work("none", 1000), self.work("none", 1000))

    def grown(self, work):
        """How a benchmark ends in which n ops take so much work."""
        with (mock.patch.multiple(bench_growth, large=lambda _, n: (str(n), n), POLICIES=["any"],
                                  counted_work=lambda _, path, live: work(live)),
              contextlib.redirect_stdout(io.StringIO())):
            try:
                bench_growth.work(None)
            except SystemExit as end:
                return str(end.code)
        return None

    def test_work_that_grows_faster_fails(self):
        self.assertIsNone(self.grown(lambda n: n))
        self.assertIsNone(self.grown(lambda n: int(n * math.log2(n))))
        self.assertIn("any does 3.33 times what n log n would be at 4,000 ops, 2 times at most", self.grown(lambda n: n * n))
        self.assertIn("at 100,000 ops", self.grown(lambda n: 40 * n + n * n // 500))

    def test_planning_that_takes_too_long_fails(self):
        for seconds, code in ((9.0, None), (11.0, "any at 16,000 ops took 11.00 s, 10 s at most")):
            with (mock.patch.multiple(bench_growth, cpu_seconds=lambda *_, seconds=seconds, **__: (seconds, 0),
                                      large=lambda *_: ("", 1), POLICIES=["any"]),
                  contextlib.redirect_stdout(io.StringIO())):
                try:
                    bench_growth.seconds(None)
                    self.assertIsNone(code)
                except SystemExit as end:
                    self.assertEqual(str(end.code), code)


if __name__ == "__main__":
    unittest.main()
