"""The parts of the check of a GPU (tests/cuda/gpucheck) that run programs and keep what came of them, without a device."""

import contextlib
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
from unittest import mock

from foldertest import FolderCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CUDA_TESTS = os.path.join(ROOT, "tests", "cuda")
sys.path.insert(0, CUDA_TESTS)

from gpucheck import archive, clocks, commands, desk, state  # noqa: E402

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

    def test_interrupts_that_we_ignore_others_heed(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        text = "import signal; print(signal.getsignal(signal.SIGINT) == signal.default_int_handler)"
        for without in ({}, {"ctypes": None}):
            with mock.patch.dict(sys.modules, without):
                self.assertEqual(self.commands.run(*PYTHON, text).stdout, "True\n")

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
        text = (f"import os, signal, sys\nsys.path.insert(0, {CUDA_TESTS!r})\n"
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
            text = (f"import os, sys\nsys.path.insert(0, {CUDA_TESTS!r})\nfrom gpucheck.sitting import say\n"
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


class Desk(FolderCase):
    HEAD = {"device": "card"}

    def sit_down(self, folder, source=None):
        work = self.path("work of " + folder)
        os.mkdir(work)
        one = desk.Desk(self.path(folder), source, work)
        self.addCleanup(os.close, one.lock)
        one.begin(self.HEAD)
        return one

    def leave(self, one, left, temporary):
        """How to go on, and what is said. `temporary`: the folder for what has no room."""
        with mock.patch.object(tempfile, "tempdir", temporary), contextlib.redirect_stdout(io.StringIO()) as said:
            return one.leave(self.HEAD, [], left), said.getvalue()

    def fill(self, folder):
        os.symlink("/dev/full", self.path(folder, desk.NAME + ".part"))

    def test_how_to_go_on(self):
        one = self.sit_down("out")
        self.assertEqual(self.leave(one, 1, "/nowhere"), (desk.AGAIN, ""))
        self.assertEqual(self.leave(one, 0, "/nowhere"), (None, ""))
        self.assertEqual(sorted(os.listdir(self.path("out"))), [desk.NAME, "summary.md"])

    def test_what_cannot_be_put_away_at_the_end_is_put_elsewhere(self):
        one = self.sit_down("first")
        self.put("work of first/device.txt", b"all of it")
        self.fill("first")
        again, said = self.leave(one, 0, self.folder)
        self.assertIn("the archive could not be written", said)
        second = self.sit_down("second", re.fullmatch("--from (.*) and another folder", again)[1])
        with open(second.state.path("device.txt"), "rb") as file:
            self.assertEqual(file.read(), b"all of it")

    def test_what_can_be_put_nowhere(self):
        one = self.sit_down("out")
        self.fill("out")
        again, said = self.leave(one, 0, "/nowhere")
        self.assertEqual(again, desk.AGAIN)
        self.assertIn("what is new is lost", said)

    def test_an_archive_of_something_else(self):
        self.put("from/bundle/planc", b"x")
        archive.Packer(self.path("from"), self.path("a.tar.gz"), str).write()
        with self.assertRaisesRegex(desk.Refused, "a.tar.gz is not an archive of this check"):
            self.sit_down("out", self.path("a.tar.gz"))


if __name__ == "__main__":
    unittest.main()
