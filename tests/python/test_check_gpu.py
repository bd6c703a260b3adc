"""The check of a GPU (tests/cuda/check_gpu.py): its parts without a device, and the whole of it on the emulated one, left
alone and disturbed."""

import contextlib
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

from foldertest import FolderCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EMULATED = os.path.join(BUILD, "emulated")
HAS_EMULATED = os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so"))
sys.path.insert(0, os.path.join(ROOT, "tests", "cuda"))

import check_gpu  # noqa: E402
from gpucheck import archive, checklist, clocks, commands, numerics, plans, sitting, state, steps, summary  # noqa: E402

PYTHON = (sys.executable, "-c")


class Commands(FolderCase):
    def setUp(self):
        super().setUp()
        self.commands = commands.Commands({"OURS": "1"}, float("inf"))
        self.commands.log = io.StringIO()

    def give_grace(self, seconds):
        self.addCleanup(setattr, commands, "GRACE", commands.GRACE)
        commands.GRACE = seconds

    def test_what_is_printed_is_kept(self):
        done = self.commands.run(*PYTHON, "import os, sys; print(os.environ['OURS']); print('words', file=sys.stderr); sys.exit(3)")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "1\n", "words\n"))
        self.assertIn("# exit 3", self.commands.log.getvalue())
        self.assertIn("words", self.commands.log.getvalue())
        self.assertEqual(self.commands.run(*PYTHON, "import os; print('OURS' in os.environ)", ours=False).stdout, "False\n")
        with self.assertRaisesRegex(commands.Failure, "exit 3: no$"):
            self.commands.must(*PYTHON, "import sys; sys.exit('no') if False else (print('no', file=sys.stderr), sys.exit(3))")

    def test_what_is_printed_for_ever(self):
        self.commands.run(*PYTHON, "print('first'); print('x' * 40000000); print('last')")
        log = self.commands.log.getvalue()
        self.assertLess(len(log), 10 << 20)
        self.assertRegex(log, r"\nfirst\nx+\n# \d+ characters\nx+\nlast\n")

    def test_limits_follow_from_what_is_predicted(self):
        self.assertGreaterEqual(self.commands.limit(100), 200)
        self.assertLess(self.commands.limit(1), 60)

    def test_who_heeds_an_interrupt_ends_by_it(self):
        self.commands.other_limit = 1
        self.give_grace(1000)
        text = "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: (print('put away'), sys.exit(0)))\ntime.sleep(600)"
        with self.assertRaisesRegex(commands.Failure, "took more than 1 s"):
            self.commands.run(*PYTHON, text)
        # It may not have come to install its handler on a busy machine; it has ended at once all the same.
        self.assertNotIn("exit -9", self.commands.log.getvalue())

    def test_an_interrupt_of_ours_is_one_of_the_program_as_well(self):
        marker = self.path("ready")
        child = self.commands.start(*PYTHON, "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: sys.exit('put away'))\n"
                                    f"open({marker!r}, 'w').write('x')\ntime.sleep(1000)")
        await_file(marker)
        communicate = child.communicate
        with mock.patch.object(child, "communicate", side_effect=[KeyboardInterrupt, mock.DEFAULT], wraps=communicate), \
             self.assertRaises(KeyboardInterrupt):
            self.commands.wait(child, 1000)
        self.assertRegex(self.commands.log.getvalue(), "# exit 1, .*\nput away\n")

    def test_who_does_not_end_by_an_interrupt_is_interrupted_again(self):
        """A profile that is killed blames what it tries; one that is interrupted twice does not."""
        marker = self.path("ready")
        child = self.commands.start(*PYTHON, "import signal, sys, time\n"
                                    "def once(*_):\n    signal.signal(signal.SIGINT, lambda *_: sys.exit('at once'))\n    ready()\n"
                                    f"def ready():\n    open({marker!r}, 'w').write('x')\n"
                                    "signal.signal(signal.SIGINT, once)\nready()\nwhile True: time.sleep(1)")
        self.commands.deadline = time.monotonic()
        self.give_grace(1000)
        communicate, waits = child.communicate, iter((True, True, False))

        def wait(timeout):
            if not next(waits):
                return communicate(timeout=timeout)
            await_file(marker)
            os.remove(marker)
            raise subprocess.TimeoutExpired("it", timeout)

        with mock.patch.object(child, "communicate", wait), self.assertRaises(commands.Over):
            self.commands.wait(child, 1000)
        self.assertRegex(self.commands.log.getvalue(), "# exit 1, .*\nat once\n")

    def test_who_hangs_is_asked_where_and_killed_with_all_that_it_started(self):
        self.commands.other_limit = 1
        marker = self.path("child")
        text = ("import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                f"if os.fork() == 0:\n    open({marker!r}, 'w').write(str(os.getpid()))\nwhile True: time.sleep(1)")
        self.give_grace(1)
        child = self.commands.start(*PYTHON, text)
        await_file(marker)
        with self.assertRaises(commands.Failure):
            self.commands.wait(child, 0)
        self.assertRegex(self.commands.log.getvalue(), "# g?db|# cuda-gdb|# where it hangs is not known")
        with open(marker, encoding="ascii") as file:
            await_end(int(file.read()))

    def test_who_left_the_group_and_holds_what_is_printed(self):
        self.commands.other_limit = 1
        self.give_grace(1)
        marker = self.path("child")
        child = self.commands.start(*PYTHON, "import os, time\nprint('words', flush=True)\nif os.fork() == 0:\n    os.setsid()\n"
                                    f"    open({marker!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)")
        await_file(marker)
        with self.assertRaises(commands.Failure):
            self.commands.wait(child, 0)
        with open(marker, encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertRegex(self.commands.log.getvalue(), "\nwords\n(.*\n)*# it does not die\n")

    def test_nobody_outlives_us(self):
        marker = self.path("child")
        text = (f"import os, signal, sys\nsys.path.insert(0, {os.path.join(ROOT, 'tests', 'cuda')!r})\n"
                "from gpucheck import commands\nchild = commands.Commands({}, float('inf')).start('sleep', '1000')\n"
                f"open({marker!r}, 'w').write(str(child.pid))\nos.kill(os.getpid(), signal.SIGKILL)")
        subprocess.run([*PYTHON, text], check=False)
        with open(marker, encoding="ascii") as file:
            await_end(int(file.read()))

    def test_who_begins_while_all_are_killed(self):
        self.commands.kill_all()
        with self.assertRaises(commands.Over):
            self.commands.run("sleep", "1000")

    def test_nobody_reads_what_is_told(self):
        for sink in ("os.pipe()[1]", "os.open('/dev/full', os.O_WRONLY)"):
            text = (f"import os, sys\nsys.path.insert(0, {os.path.join(ROOT, 'tests', 'cuda')!r})\nfrom gpucheck.sitting import say\n"
                    f"os.dup2({sink}, 1)\nos.closerange(3, 100)\nsay('one')\nsay('two')")
            done = subprocess.run([*PYTHON, text], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_end_of_the_sitting_is_no_failure_of_the_check(self):
        self.commands.deadline = time.monotonic() + 1
        with self.assertRaises(commands.Over):
            self.commands.run(*PYTHON, "import time; time.sleep(600)", seconds=1000)

    def test_the_end_of_the_sitting_leaves_no_time_to_ask(self):
        self.commands.deadline = time.monotonic()
        self.give_grace(1)
        child = self.commands.start(*PYTHON, "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                                             "print('begun', flush=True)\ntime.sleep(600)")
        self.assertTrue(os.read(child.stdout.fileno(), 1))
        with mock.patch.object(commands, "trace_of") as asked, self.assertRaises(commands.Over):
            self.commands.wait(child, 1000)
        asked.assert_not_called()
        self.assertIn("exit -9", self.commands.log.getvalue())


def is_running(pid):
    """Not, when nobody has fetched its exit code yet either."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_file(path):
    while not os.path.exists(path) or not os.path.getsize(path):
        time.sleep(0.05)


def await_end(pid):
    """What is killed ends some time."""
    for _ in range(10000):
        if not is_running(pid):
            return
        time.sleep(0.05)
    raise AssertionError("it runs on")


class Clocks(FolderCase):
    ROW = "2026/11/22 13:00:00.000, P0, 1755, 2619, 650.10, 61, 99, 20000, 0x0000000000000004"

    def test_what_was_logged_is_there_when_the_logging_is_ended(self):
        # Like other programs this one keeps lines in a buffer, as long as they do not go to a terminal.
        smi = self.put("nvidia-smi", f"#!/bin/sh\ncase $* in *-l*) (echo '{self.ROW}'; exec sleep 1000) | grep .; esac\n".encode())
        os.chmod(smi, 0o755)
        path = self.path("clocks.csv")
        with mock.patch.dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"]):
            log = clocks.Clocks(path)
        self.addCleanup(log.close)
        for _ in range(2000):
            if os.path.getsize(path):
                break
            time.sleep(0.05)
        log.close()
        self.assertIsNotNone(log.child.returncode)
        told = clocks.tell([path])
        for words in ("SM clock 1755 MHz", "of 1 s of work", "650 W", "61 C", "throttle reasons 0x0000000000000004"):
            self.assertIn(words, told)

    def test_no_log_of_clocks_is_written_twice(self):
        for missing in ("clocks-1.csv", "clocks-3.csv"):
            self.put("clocks-2.csv", b"")
            self.assertEqual(clocks.new_path(self.folder), self.path(missing))
            self.put(missing, b"")

    def test_logs_of_clocks_that_are_damaged(self):
        self.put("c.csv", b'1, P0, 1500, 2600, 350.0, 60, 99, 1000, "0x4\n\0\n1, P0, x, \xb2, [N/A], 60, \xc2\xb2, 1, 2\n')
        self.assertIn("1500 MHz in the median of 1 s", clocks.tell([self.path("c.csv")]))


class Archive(FolderCase):
    FILES = {"results/a.json": b"{}", "plans/p.plan": bytes(range(256)) * 40, "traces/t.json": os.urandom(5000), "x": b""}

    def setUp(self):
        super().setUp()
        for name, content in self.FILES.items():
            self.put(os.path.join("from", name), content)
        self.packer = archive.Packer(self.path("from"), self.path("a.tar.gz"), lambda name: "traces/" in name)

    def unpacked(self, path):
        with tempfile.TemporaryDirectory() as to:
            whole = archive.unpack(path, to)
            found = {}
            for top, _, names in os.walk(to):
                for name in names:
                    with open(os.path.join(top, name), "rb") as file:
                        found[os.path.relpath(os.path.join(top, name), to)] = file.read()
        return whole, found

    def test_there_and_back(self):
        self.assertEqual(self.packer.write(), [])
        self.assertEqual(self.unpacked(self.path("a.tar.gz")), (True, self.FILES))
        self.put("from/x", b"more")
        self.put("from/results/b.json", b"[]")
        self.packer.write()
        self.assertEqual(self.unpacked(self.path("a.tar.gz")), (True, {**self.FILES, "x": b"more", "results/b.json": b"[]"}))
        listed = subprocess.run(["tar", "-tzf", self.path("a.tar.gz")], capture_output=True, text=True, check=True).stdout
        self.assertIn("plans/p.plan\n", listed)

    def test_what_is_whole_in_one_that_was_cut_off(self):
        self.packer.write()
        with open(self.path("a.tar.gz"), "rb") as file:
            content = file.read()
        most = 0
        for length in [0, 1, 50, *range(100, len(content), 97), len(content) - 1]:
            self.put("cut.tar.gz", content[:length])
            whole, found = self.unpacked(self.path("cut.tar.gz"))
            self.assertFalse(whole, length)
            self.assertEqual(found, {name: self.FILES[name] for name in found})
            self.assertGreaterEqual(len(found), most)
            most = len(found)
        self.assertGreater(most, 1)

    def test_what_is_whole_in_one_that_was_damaged(self):
        self.packer.write()
        with open(self.path("a.tar.gz"), "rb") as file:
            content = file.read()
        for offset in range(0, len(content), 61):  # a byte that changed on the way
            self.put("bad.tar.gz", content[:offset] + bytes([content[offset] ^ 0x55]) + content[offset + 1:])
            found = self.unpacked(self.path("bad.tar.gz"))[1]
            self.assertEqual(found, {name: self.FILES[name] for name in found})
            self.assertGreaterEqual(len(found), len(self.FILES) - 1, offset)

    def test_what_does_not_fit_is_left_out_from_the_end(self):
        self.packer.largest = 3000
        self.assertEqual(self.packer.write(), ["traces/t.json"])
        self.assertEqual(set(self.unpacked(self.path("a.tar.gz"))[1]), set(self.FILES) - {"traces/t.json"})

    def test_nothing_is_compressed_twice(self):
        self.packer.largest = 3000
        self.assertEqual(self.packer.write(), ["traces/t.json"])
        with mock.patch.object(archive.gzip, "compress", wraps=archive.gzip.compress) as compress:
            self.assertEqual(self.packer.write(), ["traces/t.json"])
            self.assertEqual(compress.call_count, 1)  # of the end

    def test_names_that_lead_elsewhere(self):
        import tarfile
        with tarfile.open(self.path("evil.tar.gz"), "w:gz") as file:
            for name in ("../out", "/tmp/out", "a/../../out", "ok"):
                head = tarfile.TarInfo(name)
                head.size = 1
                file.addfile(head, io.BytesIO(b"x"))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            file.addfile(link)
        self.assertEqual(self.unpacked(self.path("evil.tar.gz"))[1], {"ok": b"x"})
        self.assertNotIn("out", os.listdir(self.folder))

    def test_a_disk_that_is_full(self):
        self.packer.write()
        os.symlink("/dev/full", self.path("a.tar.gz.part"))
        self.put("from/more", b"x")
        with self.assertRaises(OSError):
            self.packer.write()
        self.assertEqual(self.unpacked(self.path("a.tar.gz")), (True, self.FILES))
        self.assertNotIn("a.tar.gz.part", os.listdir(self.folder))


def attempt(outcome, **gives):
    return {"outcome": outcome, "rows": [], "gives": gives, "seconds": 0}


class State(FolderCase):
    def test_when_a_check_is_over(self):
        kept = state.State(self.folder)
        self.put("profiles/p.json", b"{}")
        for name, outcomes, over in (("a", ["passed"], "passed"), ("b", ["unfit"], "unfit"), ("c", ["failed"], None),
                                     ("d", ["failed", "failed"], "failed"), ("e", ["failed", "passed"], "passed"), ("f", [], None)):
            for outcome in outcomes:
                kept.keep(name, attempt(outcome, of=outcome), ["profiles/p.json"] if outcome == "passed" else [])
            for one in (kept, state.State(self.folder)):  # and when it is read again
                self.assertEqual(one.outcome(name), over, name)
        self.assertEqual(kept.gives("e", "of"), "passed")
        os.remove(self.path("profiles/p.json"))
        self.assertEqual([kept.outcome(name) for name in "abe"], [None, "unfit", None])
        kept.keep("a", attempt("failed"), [])
        self.assertIsNone(kept.outcome("a"))

    def test_a_file_that_has_not_changed_is_read_once(self):
        kept = state.State(self.folder)
        self.put("profiles/p.json", b"{}")
        kept.keep("a", attempt("passed"), ["profiles/p.json"])
        with mock.patch.object(state.hashlib, "sha256", wraps=state.hashlib.sha256) as hashed:
            self.assertEqual([kept.outcome("a") for _ in range(9)], ["passed"] * 9)
            self.assertLessEqual(hashed.call_count, 1)
        self.put("profiles/p.json", b"[]")
        os.utime(self.path("profiles/p.json"), ns=(0, 0))
        self.assertIsNone(kept.outcome("a"))

    def test_files_that_are_none_of_ours(self):
        kept = state.State(self.folder)
        good = {"check": "z", "attempts": [attempt("passed")], "files": {}}
        wrong = [{}, [], 7, {"check": "z"}, {**good, "check": []}, {**good, "files": []}, {**good, "attempts": 7},
                 *({**good, "attempts": [one]} for one in ({}, 7, attempt("none"), {**attempt("passed"), "gives": 7},
                                                           {**attempt("passed"), "rows": [{"row": 1}]}))]
        self.put("results/x.json", b"{")
        for number, content in enumerate(wrong):
            self.put(f"results/{number}.json", json.dumps(content).encode())
        self.assertEqual(kept.records, state.State(self.folder).records)
        self.put("results/z.json", json.dumps(good).encode())
        self.assertEqual(state.State(self.folder).outcome("z"), "passed")


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

    def test_the_time_of_other_checks_is_not_taken(self):
        rows = self.sanitize(0.001, "sleep 0.1")
        self.assertEqual([(row["row"], row["ok"]) for row in rows], [("memcheck elements", True), ("left out", None)])
        self.assertEqual(rows[1]["why"], "no time for rows, convolutions")

    def test_where_it_cannot_be(self):
        with self.assertRaises(commands.Unfit):
            self.sanitize(100, "echo Device not supported")


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


class Desk(FolderCase):
    def sit_down(self, folder, source=None):
        work = self.path("work of " + folder)
        os.mkdir(work)
        desk = check_gpu.Desk(self.path(folder), source, work)
        self.addCleanup(os.close, desk.lock)
        return desk

    def put_away(self, desk):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            kept = desk.put_away({"device": "card"}, [], 0)
        return kept, said.getvalue()

    def test_what_cannot_be_put_away_at_the_end_is_put_elsewhere(self):
        desk = self.sit_down("first")
        desk.state.save("head.json", {"device": "card"})
        self.assertEqual(self.put_away(desk), (True, ""))
        self.put("work of first/device.txt", b"all of it")
        os.symlink("/dev/full", self.path("first", "check-gpu.tar.gz.part"))
        kept, said = self.put_away(desk)
        self.assertFalse(kept)
        self.assertIn("the archive could not be written", said)
        with mock.patch.object(tempfile, "tempdir", self.folder):
            again = desk.put_elsewhere()
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(check_gpu.finish(desk.state, [], 0, again), 3)
        second = self.sit_down("second", re.search("call it again with --from (.*) and another folder", said.getvalue())[1])
        with open(second.state.path("device.txt"), "rb") as file:
            self.assertEqual(file.read(), b"all of it")

    def test_what_can_be_put_nowhere(self):
        desk = self.sit_down("out")
        with mock.patch.object(tempfile, "tempdir", self.path("nowhere")), contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(desk.put_elsewhere(), check_gpu.AGAIN)
        self.assertIn("what is new is lost", said.getvalue())

    def test_an_archive_of_something_else(self):
        self.put("from/bundle/planc", b"x")
        archive.Packer(self.path("from"), self.path("a.tar.gz"), str).write()
        with self.assertRaisesRegex(check_gpu.Refused, "a.tar.gz is not an archive of this check"):
            self.sit_down("out", self.path("a.tar.gz"))


class Call(FolderCase):
    def test_only_the_first_interrupt_counts(self):
        text = (f"import os, signal, sys\nsys.path.insert(0, {os.path.join(ROOT, 'tests', 'cuda')!r})\nimport check_gpu\n"
                "check_gpu.heed_interrupts()\ntry:\n    os.kill(os.getpid(), signal.SIGTERM)\nexcept KeyboardInterrupt:\n"
                "    for number in check_gpu.ENDS: os.kill(os.getpid(), number)\n    print('put away')")
        done = subprocess.run([*PYTHON, text], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "put away\n"), done.stderr)

    def test_the_time_of_a_sitting_begins_with_the_call(self):
        """Looking for what is missing may take most of a minute."""
        times = []
        with mock.patch.object(check_gpu.environment, "missing", lambda: times.append(time.monotonic())), \
             mock.patch.object(check_gpu, "sit", lambda *sat: times.append(sat[-1])), \
             mock.patch.object(check_gpu.signal, "signal"), mock.patch.object(sys, "argv", ["check_gpu.py"]):
            check_gpu.main()
        looked, begun = times
        self.assertLessEqual(begun, looked)


class List(FolderCase):
    class Tools:
        zoo = "zoo"

        def graph(self, name):
            return name

    def test_three_sittings_hold_it(self):
        names = ["p%d" % i for i in range(14)]
        checks = list(checklist.full(self.Tools(), names, "h100"))
        sittings, left = 1, 9
        for check in checks:
            if check.minutes > left:
                sittings, left = sittings + 1, 9
            left -= check.minutes
        self.assertEqual(sittings, 3)
        seen = set()
        for check in checks:
            self.assertNotIn(check.name, seen)
            self.assertLessEqual(set(check.needs), seen, f"{check.name} stands before what it needs")
            seen.add(check.name)
        self.assertEqual(len({state.slug(name) for name in seen}), len(seen))

    def test_files_can_be_in_the_archive(self):
        for checks in (checklist.full, checklist.small):
            for check in checks(self.Tools(), ["vdnn+"], "h100"):
                for job in check.jobs:
                    self.assertRegex(f"plans/{job.name}.plan", f"^{archive.NAME.pattern}$")


@unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
class Whole(FolderCase):
    """On the emulated device, whose times mean nothing: what is disturbed comes to the same end."""
    undisturbed, profiles = None, None

    def call(self, *options, folder="out", temporary=None, code=None):
        environment = {**os.environ, "BUILD": BUILD, "PLANRT_PLUGINS": EMULATED, "EMULATED_CUDA_STRICT": "1"}
        if temporary:
            environment["TMPDIR"] = temporary
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/cuda/check_gpu.py"), "--small", "--no-times",
                               "--patience", "40", "--out", self.path(folder), *options], capture_output=True, text=True,
                              env=environment)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def records(self, folder="out"):
        with tempfile.TemporaryDirectory() as to:
            self.assertTrue(archive.unpack(self.path(folder, "check-gpu.tar.gz"), to))
            return state.State(to).records

    def end(self, folder="out"):
        """What came of every check, without the figures."""
        return {name: (record["attempts"][-1]["outcome"], [(row["row"], row["ok"]) for row in record["attempts"][-1]["rows"]])
                for name, record in self.records(folder).items()}

    @classmethod
    def setUpClass(cls):
        case = cls("call")
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        case.call("--minutes", "1000", code=0)
        cls.undisturbed = case.end()
        with tempfile.TemporaryDirectory() as to:
            archive.unpack(case.path("out", "check-gpu.tar.gz"), to)
            cls.profiles = set(os.listdir(os.path.join(to, "profiles")))
        case.call("--minutes", "0", code=0)  # nothing is done again, and no time is needed for that
        if case.end() != cls.undisturbed:
            raise AssertionError("a call that found everything done has changed it")

    def test_undisturbed(self):
        failed = [name for name, (outcome, _) in self.undisturbed.items() if outcome == "failed"]
        self.assertEqual(failed, [])
        for name in ("numerics zoo f32", "links", "lenet-digits-f32 profile", "lenet-digits-f32 resident", "lenet-digits-f32 modnn for 60 %",
                     "virtual memory vmm", "stand-ins lenet-digits-f32 --graph"):
            self.assertEqual(self.undisturbed[name][0], "passed", name)

    def test_profiles_are_named_after_the_device(self):
        """As they are committed beside those of other devices."""
        named = {name.removesuffix(".properties.json") for name in self.profiles if name.endswith(".properties.json")}
        device = min(named, key=len)
        measured = {name for name in self.profiles if name.endswith(".json") and not name.endswith(".properties.json")}
        self.assertIn(f"{device}-lenet-digits-f32-16.json", measured)
        self.assertEqual({name for name in self.profiles if not name.startswith(device)}, set())

    def test_checks_that_hang_die_and_are_wrong(self):
        faults = {"stand-ins lenet-digits-f32": "hang:2@20", "lenet-digits-f32 modnn for 60 %": "die:40",
                  "numerics lenet-digits f32": "corrupt:106", "lenet-digits-f32 profile": "sticky:50"}
        self.call("--minutes", "1000", *(f"--fault={name}={fault}" for name, fault in faults.items()), code=0)
        self.assertEqual(self.end(), self.undisturbed)
        records = self.records()
        for name in faults:
            self.assertEqual([one["outcome"] for one in records[name]["attempts"]], ["failed", "passed"], name)
        self.assertIn("took more than 20 s", json.dumps(records["stand-ins lenet-digits-f32"]))

    def test_a_full_disk_and_an_archive_that_was_cut_off(self):
        os.mkdir(self.path("disk"))
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", self.path("disk")], capture_output=True)
        if mounted.returncode:
            self.skipTest("no file system of a few bytes can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.path("disk")], check=True)
        said = self.call("--minutes", "1000", temporary=self.path("disk"), code=3)
        self.assertIn("No space left on device", said)
        with open(self.path("out", "check-gpu.tar.gz"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) * 3 // 4)
        said = self.call("--minutes", "1000", code=0)
        self.assertIn("cut off or damaged", said)
        self.assertEqual(self.end(), self.undisturbed)

    def test_an_archive_of_another_device(self):
        self.call("--minutes", "0")
        with tempfile.TemporaryDirectory() as work:
            archive.unpack(self.path("out", "check-gpu.tar.gz"), work)
            with open(os.path.join(work, "head.json"), "w", encoding="utf-8") as file:
                json.dump({"device": "another"}, file)
            archive.Packer(work, self.path("out", "check-gpu.tar.gz"), str).write()
        self.assertIn("take another folder", self.call("--minutes", "0", code=2))

    def test_who_is_told_to_stop_puts_away_what_is_known(self):
        """A terminal that is gone tells it as well; who is killed has told nothing, and what it knew is there all the same."""
        for number, words, known in ((signal.SIGHUP, "numerics lenet-digits f32", "device"),
                                     (signal.SIGTERM, "numerics tiny-transformer f32", "numerics lenet-digits f32"),
                                     (signal.SIGKILL, "lenet-digits-f32 profile", "links")):
            with self.subTest(signal=number):
                self.assertEqual(self.stop_at(words, number), -number if number == signal.SIGKILL else 3)
                records = self.records()
                self.assertEqual(records[known]["attempts"][-1]["outcome"], "passed")
                if number != signal.SIGKILL:
                    self.assertNotIn("cut off", [one["outcome"] for record in records.values() for one in record["attempts"]])

    def stop_at(self, words, number):
        """Its exit code when it got the signal as it printed the words."""
        child = subprocess.Popen([sys.executable, "-B", os.path.join(ROOT, "tests/cuda/check_gpu.py"), "--small", "--no-times",
                                  "--patience", "40", "--minutes", "1000", "--out", self.path("out")],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 env={**os.environ, "BUILD": BUILD, "PLANRT_PLUGINS": EMULATED, "TMPDIR": self.folder})
        with child:
            for line in child.stdout:
                if words in line:
                    break
            child.send_signal(number)
            child.stdout.read()
        return child.returncode

    def test_without_a_temporary_folder(self):
        code = ("import sys, tempfile; tempfile.tempdir = '/nonexistent'; sys.path.insert(0, 'tests/cuda'); import check_gpu; "
                "sys.exit(check_gpu.main())")
        done = subprocess.run([sys.executable, "-B", "-c", code, "--out", self.path("out")], capture_output=True, text=True, cwd=ROOT,
                              env={**os.environ, "BUILD": BUILD, "PLANRT_PLUGINS": EMULATED})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^check-gpu: .*/nonexistent.*\n$")


if __name__ == "__main__":
    unittest.main()
