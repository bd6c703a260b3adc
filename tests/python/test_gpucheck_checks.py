"""The checks of a GPU (tests/cuda/gpucheck): which is next, and what some of them do where programs fail, without a
device."""

import contextlib
import errno
import io
import json
import os
import sys
import time
import unittest
from types import SimpleNamespace
from unittest import mock

from foldertest import FolderCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CUDA_TESTS = os.path.join(ROOT, "tests", "cuda")
sys.path.insert(0, CUDA_TESTS)

from gpucheck import archive, checklist, commands, numerics, plans, sitting, state, steps, summary  # noqa: E402


class FakePlanner:
    def ask(self, job):
        pass


class Sitting(FolderCase):
    """The order of checks, with checks that do nothing."""

    def setUp(self):
        super().setUp()
        self.state, self.ran, self.results = state.State(self.folder), [], {}
        self.commands = commands.Commands({}, float("inf"))

    def kept_attempts(self, name):
        """How those ended that are on the disk."""
        return [one["outcome"] for one in state.State(self.folder).attempts(name)]

    def check(self, name, *outcomes, minutes=1.0, needs=()):
        self.results[name] = list(outcomes) or ["passed"]
        return sitting.Check(name, minutes, self.run_check, (name,), needs)

    def run_check(self, context, name):
        self.ran.append(name)
        before = self.kept_attempts(name)
        self.assertEqual((before[-1], self.put_aside[name]), ("cut off", before))  # what it is if this is the end of us
        outcome = self.results[name].pop(0)
        if outcome == "row":
            context.row("does not hold", False)
        elif outcome == "in part":
            context.row("left out", None, why="no time")
        elif outcome == "odd":
            context.row(context.commands.run("echo", os.fsdecode(b"\xe9")).stdout.strip(), True)
            context.row(os.fsdecode(b"odd \xe9"), True)
        elif outcome != "passed":
            raise {"failed": commands.Failure("why"), "unfit": commands.Unfit("why"), "over": commands.Over("the time is up"),
                   "bug": KeyError("k"), "interrupted": KeyboardInterrupt(), "full": commands.Failure("planrun: x: No space left on device"),
                   "our disk": OSError(errno.ENOSPC, "No space left on device")}[outcome]

    def go(self, checks, gone=False):
        one = sitting.Sitting(None, self.state, FakePlanner(), self.commands)
        one.has_device = lambda: not gone
        with contextlib.redirect_stdout(io.StringIO()):
            one.go(checks, self.put_away)
        return one.left(checks)

    def put_away(self):
        self.put_aside = {name: self.kept_attempts(name) for name in self.results}

    def test_second_attempts_come_last_and_there_is_no_third(self):
        checks = [self.check("a", "failed", "failed"), self.check("b", "row", "passed"), self.check("c"), self.check("d", "bug", "passed")]
        self.assertEqual(self.go(checks), 0)
        self.assertEqual("".join(self.ran), "abcdabd")
        self.assertEqual([self.state.outcome(name) for name in "abcd"], ["failed", "passed", "passed", "passed"])
        self.assertEqual(summary.count(self.state, checks), (0, 1))
        self.go(checks)
        self.assertEqual(len(self.ran), 7)

    def test_who_needs_what_failed_waits_and_is_left_out_at_last(self):
        checks = [self.check("profile", "failed", "passed"), self.check("plan", needs=("profile",)),
                  self.check("other", "failed", "failed"), self.check("of other", needs=("other",))]
        self.assertEqual(self.go(checks), 0)
        self.assertEqual(self.ran, ["profile", "other", "profile", "plan", "other"])
        self.assertEqual(self.state.outcome("plan"), "passed")
        self.assertIsNone(self.state.outcome("of other"))
        self.assertEqual(summary.count(self.state, checks), (0, 2))

    def test_what_the_end_of_the_time_cut_off_counts_for_nothing(self):
        checks = [self.check("a", "over", "passed"), self.check("b")]
        self.assertEqual(self.go(checks), 1)
        self.assertEqual([one["outcome"] for one in self.state.attempts("a")], ["cut off"])
        self.assertIsNone(self.state.outcome("a"))
        self.assertEqual(self.go(checks), 0)
        self.assertEqual(self.ran, ["a", "b", "a"])

    def test_what_is_cut_off_every_time_comes_last_and_to_an_end(self):
        checks = [self.check("a", *["over"] * 9), self.check("b", "failed", "passed")]
        for _ in range(5):
            self.go(checks)
        self.assertEqual("".join(self.ran), "abbaa")
        self.assertEqual(self.state.outcome("a"), "failed")

    def test_names_that_are_no_text(self):
        checks = [self.check("a", "odd")]
        self.assertEqual((self.go(checks), self.state.outcome("a")), (0, "passed"))
        summary.write(self.path("summary.md"), {"device": "card"}, self.state, checks, 0)
        with open(self.path("summary.md"), encoding="utf-8") as file:
            self.assertIn("odd \\udce9", file.read())

    def test_an_attempt_that_ends_us_as_well_counts(self):
        checks = [self.check("a"), self.check("b")]
        for ended in range(1, 4):
            self.state.begin("a")
            self.state = state.State(self.folder)  # in another process
            self.assertEqual(self.kept_attempts("a"), ["cut off"] * ended)
            self.go(checks[1:])
        self.assertEqual((self.go(checks), self.ran, self.state.outcome("a")), (0, ["b"], "failed"))

    def test_an_interrupted_attempt_does_not_count(self):
        checks = [self.check("a", "failed", "interrupted", "passed")]
        with self.assertRaises(KeyboardInterrupt):
            self.go(checks)
        self.assertEqual(self.kept_attempts("a"), ["failed"])
        self.assertEqual((self.go(checks), self.kept_attempts("a")), (0, ["failed", "passed"]))

    def test_what_does_not_fit_lets_others_go_first(self):
        self.commands.deadline = time.monotonic() + 3600
        checks = [self.check("a"), self.check("long", minutes=100), self.check("b")]
        self.assertEqual(self.go(checks), 1)
        self.assertEqual(self.ran, ["a", "b"])
        self.commands.deadline = time.monotonic() + 3600  # a new sitting begins with it
        self.assertEqual(self.go(checks), 0)

    def test_a_full_disk_is_no_failure(self):
        for words in ("full", "our disk"):
            checks = [self.check(f"a {words}", words, "passed"), self.check(f"b {words}")]
            self.assertGreater(self.go(checks), 0)
            self.assertFalse(any(one["outcome"] == "failed" for check in checks for one in self.state.attempts(check.name)))
            self.assertEqual(self.go(checks), 0)

    def test_without_a_device_nothing_more_is_tried(self):
        checks = [self.check("a", "failed", "passed"), self.check("b")]
        self.assertEqual(self.go(checks, gone=True), 2)
        self.assertEqual(self.ran, ["a"])

    def test_the_page_tells_all(self):
        checks = [self.check("held"), self.check("wrong", "failed", "failed"), self.check("dependent", needs=("wrong",)),
                  self.check("impossible", "unfit"), self.check("partly", "in part"), self.check("later", "over")]
        left = self.go(checks)
        summary.write(self.path("summary.md"), {"device": "card", "versions": "1"}, self.state, checks, left)
        with open(self.path("summary.md"), encoding="utf-8") as file:
            page = file.read()
        for words in ("# card", "0 rows passed, 2 failed. 1 of 6 checks are not through", "FAILED: wrong: failed why=why",
                      "FAILED: dependent: left out, it needs wrong", "cannot be: impossible (why); partly in full (no time)",
                      "not through: later"):
            self.assertIn(words, page)
        self.assertNotIn("FAILED: later", page)


class Planner(FolderCase):
    def test_nothing_is_made_after_its_end(self):
        one = commands.Commands({}, float("inf"))
        planner = plans.Planner(state.State(self.folder), None, lambda log: one, 1, "card")
        planner.close()
        with mock.patch.object(planner, "make_anew", lambda job, commands: commands.must("sleep", "1000")), \
             self.assertRaises(commands.Over):
            planner.make(plans.Job(checklist.LENET, "none", device="h100"))


class Profile(FolderCase):
    """A profile, measured by something that fails as planrun does."""
    MODEL = plans.Model("net", 4, "4")

    class Planner:
        def graph(self, model, commands):
            return "graph"

        def profile(self, model):
            return "profiles/p.json"

    def measure(self, *processes):
        """Each of `processes` is Python that has `path`, of the profile."""
        program = ("import os, signal, sys\npath, count = sys.argv[-1], sys.argv[0] + '.count'\n"
                   "n = os.path.getsize(count) if os.path.exists(count) else 0\nopen(count, 'a').write('x')\n"
                   "part = lambda text: open(path + '.part', 'a').write(text)\n"
                   f"exec({list(processes)!r}[n])\n")
        planrun = self.put("planrun", f"#!{sys.executable}\n{program}".encode())
        self.put("planrun.count", b"")
        os.chmod(planrun, 0o755)
        kept = state.State(self.path("work"))
        tools, run = SimpleNamespace(planrun=planrun), commands.Commands({}, float("inf"))
        one = SimpleNamespace(tools=tools, state=kept, planner=self.Planner(), commands=run, device="d", described=None, times=True)
        context = sitting.Context(sitting.Check("p", 0.1, None), one)
        with contextlib.redirect_stdout(io.StringIO()):
            steps.profile(context, self.MODEL)
        return context.rows[0]["processes"]

    DONE = "open(path, 'w').write('{\"device\": {\"reserved_bytes\": 1, \"launch_ns\": 1}, \"ops\": []}')"
    LOST, KILLED = "part('a'); sys.exit(6)", "part('b'); os.kill(os.getpid(), signal.SIGKILL)"

    def test_what_takes_the_device_is_left_out_at_once(self):
        self.assertEqual(self.measure(self.DONE), 1)

    def test_several_of_them(self):
        self.assertEqual(self.measure(self.LOST, self.KILLED, self.LOST, self.DONE), 4)

    def test_there_is_an_end_of_it(self):
        with self.assertRaisesRegex(commands.Failure, "exit 6"):
            self.measure(*[self.LOST] * steps.PROCESSES, self.DONE)

    def test_what_the_next_process_would_do_again(self):
        for failure in ("sys.exit(6)", "sys.exit(2)", "part('a'); sys.exit(4)", "part('a'); sys.exit(5)"):
            with self.subTest(failure), self.assertRaises(commands.Failure):
                self.measure(failure, self.DONE)

    def test_a_part_of_another_profile(self):
        self.put("work/profiles/p.json.part", b"{}")
        self.assertEqual(self.measure("sys.exit(4)", self.DONE), 2)


class Comparisons(FolderCase):
    def compare(self, code, kinds, of_allowed=0.5):
        """The row of a comparison that tells of these kinds."""
        count = {key: sum(kind[key] for kind in kinds) for key in ("failures", "not_run")}
        told = {"calls": 3, "algorithms": 2, "left_out": 1, "of_allowed": of_allowed, **count, "kinds": kinds}
        program = self.put("compare", f"#!/bin/sh\necho '{json.dumps(told)}'; exit {code}\n".encode())
        os.chmod(program, 0o755)
        context = mock.Mock(tools=SimpleNamespace(compare=program), commands=commands.Commands({}, float("inf")))
        numerics.compare(context, "g.yaml")
        return context.row.call_args

    def kind(self, type, failures, not_run):
        return {"type": type, "dtypes": "f32>f32", "failures": failures, "not_run": not_run}

    def test_what_holds(self):
        (name, ok), figures = self.compare(0, [self.kind("relu", 0, 0)])
        self.assertEqual((name, ok), ("g", True))
        self.assertEqual(figures, {"calls": 3, "algorithms": 2, "left_out": 1, "failures": 0, "of_allowed": 0.5})

    def test_what_cannot_be_run_is_not_called_wrong(self):
        (_, ok), figures = self.compare(1, [self.kind("relu", 2, 0), self.kind("conv2d", 1, 1), self.kind("linear", 2, 1)])
        self.assertFalse(ok)
        self.assertEqual((figures["wrong"], figures["cannot_run"]),
                         ("relu f32>f32, linear f32>f32", "conv2d f32>f32, linear f32>f32"))

    def test_what_is_not_finite(self):
        self.assertEqual(self.compare(1, [self.kind("relu", 1, 0)], None)[1]["of_allowed"], "infinite")


class Iterations(unittest.TestCase):
    def test_runs_last_longer_than_clocks_rise(self):
        timed, untimed = SimpleNamespace(times=True), SimpleNamespace(times=False)
        for ns, run, traced in ((10 ** 6, 2000, 1200), (3 * 10 ** 8, steps.LEAST, steps.FEW), (0, steps.MOST, steps.MOST)):
            self.assertEqual((steps.iterations(timed, ns), steps.iterations(timed, ns, steps.TRACED_S, steps.FEW)), (run, traced))
            self.assertEqual(steps.iterations(untimed, ns), 2)


class Sanitizers(FolderCase):
    def sanitize(self, minutes, script):
        """What came of a sanitizer that is `script`, on three graphs."""
        for name in ("convolutions", "elements", "rows"):
            self.put(f"zoo/ops/{name}.yaml", b"")
        tool = self.put("compute-sanitizer", f"#!/bin/sh\n{script}\n".encode())
        os.chmod(tool, 0o755)
        one = SimpleNamespace(tools=SimpleNamespace(compare="compare", zoo=self.path("zoo")), state=state.State(self.path("work")),
                              planner=None, commands=commands.Commands({}, float("inf")), device="d", described=None, times=True)
        context = sitting.Context(sitting.Check("memcheck", minutes, None), one)
        path = mock.patch.dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"])
        with path, contextlib.redirect_stdout(io.StringIO()):
            numerics.sanitize(context, "memcheck", [])
        return context.rows

    def test_each_graph(self):
        rows = self.sanitize(100, "echo ERROR SUMMARY: 0 errors; case $* in *rows*) exit 9;; esac")
        self.assertEqual([(row["row"], row["ok"]) for row in rows],
                         [("memcheck elements", True), ("memcheck rows", False), ("memcheck convolutions", True)])
        self.assertEqual(rows[0]["told"], "ERROR SUMMARY: 0 errors")

    def test_a_sanitizer_that_fails_itself(self):
        """What programs say behind that is no finding."""
        rows = self.sanitize(100, "case $* in *rows*) echo Internal Sanitizer Error: it gave up; exit 9;; esac; echo ERROR SUMMARY: 0")
        self.assertEqual([(row["row"], row["ok"]) for row in rows],
                         [("memcheck elements", True), ("memcheck rows", None), ("memcheck convolutions", True)])
        self.assertIn("gave up on rows", rows[1]["why"])

    def test_the_time_of_other_checks_is_not_taken(self):
        rows = self.sanitize(0.001, "sleep 0.1")
        self.assertEqual([(row["row"], row["ok"]) for row in rows], [("memcheck elements", True), ("left out", None)])
        self.assertEqual(rows[1]["why"], "no time for rows, convolutions")

    def test_where_it_cannot_be(self):
        with self.assertRaises(commands.Unfit):
            self.sanitize(100, "echo Device not supported")


class List(FolderCase):
    class Tools:
        zoo = "zoo"

        def graph(self, name):
            return name

    def test_five_sittings_hold_it(self):
        names = ["p%d" % i for i in range(14)]
        checks = list(checklist.full(self.Tools(), names, "h100", 80 << 30))
        sittings, left = 1, 9
        for check in checks:
            if check.minutes > left:
                sittings, left = sittings + 1, 9
            left -= check.minutes
        self.assertEqual(sittings, 5)
        seen = set()
        for check in checks:
            self.assertNotIn(check.name, seen)
            self.assertLessEqual(set(check.needs), seen, f"{check.name} stands before what it needs")
            seen.add(check.name)
        self.assertEqual(len({state.slug(name) for name in seen}), len(seen))

    def test_a_batch_is_beyond_the_memory(self):
        for memory in (8 << 30, 80 << 30, 150022914048):
            batches = [check.arguments[1] for check in checklist.full(self.Tools(), ["best"], "h100", memory)
                       if check.name == "resnet50-f32 beyond the memory"]
            self.assertEqual(len(batches), 1)
            self.assertGreater(batches[0] * checklist.IMAGE, memory)
            self.assertLessEqual((batches[0] - checklist.BATCH) * checklist.IMAGE, memory)

    def test_files_can_be_in_the_archive(self):
        for checks in (checklist.full, checklist.small):
            for check in checks(self.Tools(), ["vdnn+"], "h100", 80 << 30):
                for job in check.jobs:
                    self.assertRegex(f"plans/{job.name}.plan", f"^{archive.NAME.pattern}$")


if __name__ == "__main__":
    unittest.main()
