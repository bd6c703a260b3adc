"""The check of a GPU (tests/cuda/check_gpu.py): the whole of it on the emulated device, left alone and disturbed. Its parts
are in test_gpucheck.py and test_gpucheck_checks.py."""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from foldertest import FolderCase
from sampling import TAKES_ALL

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CUDA_TESTS = os.path.join(ROOT, "tests", "cuda")
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
EMULATED = os.path.join(BUILD, "emulated")
HAS_EMULATED = os.path.exists(os.path.join(EMULATED, "libplanrt-cuda.so"))
# Of no more memory than that links are measured over less.
ENVIRONMENT = {"BUILD": BUILD, "PLANRT_PLUGINS": EMULATED, "EMULATED_CUDA_MEMORY": str(2 << 30)}
sys.path.insert(0, CUDA_TESTS)

import check_gpu  # noqa: E402
from gpucheck import archive, state  # noqa: E402


class Call(FolderCase):
    def test_only_the_first_interrupt_counts(self):
        text = (f"import os, signal, sys\nsys.path.insert(0, {CUDA_TESTS!r})\nimport check_gpu\n"
                "check_gpu.heed_interrupts()\ntry:\n    os.kill(os.getpid(), signal.SIGTERM)\nexcept KeyboardInterrupt:\n"
                "    for number in check_gpu.ENDS: os.kill(os.getpid(), number)\n    print('put away')")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "put away\n"), done.stderr)

    def test_what_is_not_put_away_is_not_through(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(check_gpu.finish(state.State(self.folder), [], 0, "--from x"), 3)
            self.assertEqual(check_gpu.finish(state.State(self.folder), [], 0, None), 0)
        self.assertEqual(said.getvalue(), "all 0 checks are through: call it again with --from x\n0 passed, 0 failed\n"
                                          "all 0 checks are through\n0 passed, 0 failed\n")

    def test_the_time_of_a_sitting_begins_with_the_call(self):
        """Looking for what is missing may take most of a minute."""
        times = []
        with mock.patch.object(check_gpu.environment, "missing", lambda: times.append(time.monotonic())), \
             mock.patch.object(check_gpu, "sit", lambda *sat: times.append(sat[-1])), \
             mock.patch.object(check_gpu.signal, "signal"), mock.patch.object(sys, "argv", ["check_gpu.py"]):
            check_gpu.main()
        looked, begun = times
        self.assertLessEqual(begun, looked)


@unittest.skipUnless(HAS_EMULATED, "no emulated plug-in")
class Whole(FolderCase):
    """On the emulated device, whose times mean nothing: what is disturbed comes to the same end."""
    undisturbed, profiles, archive = None, None, None

    def call(self, *options, folder="out", temporary=None, code=None):
        environment = {**os.environ, **ENVIRONMENT, "EMULATED_CUDA_STRICT": "1"}
        if temporary:
            environment["TMPDIR"] = temporary
        done = subprocess.run([sys.executable, "-B", os.path.join(CUDA_TESTS, "check_gpu.py"), "--small", "--no-times",
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
        cls.archive = case.path("out", "check-gpu.tar.gz")
        with tempfile.TemporaryDirectory() as to:
            archive.unpack(cls.archive, to)
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
        faults = {"stand-ins lenet-digits-f32": "hang:2@5", "lenet-digits-f32 modnn for 60 %": "die:40",
                  "numerics lenet-digits f32": "corrupt:106", "lenet-digits-f32 profile": "sticky:50"}
        self.begin_without(*faults, "lenet-digits-f32 resident", "lenet-digits-f32 chen", "stand-ins lenet-digits-f32 --graph")
        self.call("--minutes", "1000", *(f"--fault={name}={fault}" for name, fault in faults.items()), code=0)
        self.assertEqual(self.end(), self.undisturbed)
        records = self.records()
        for name in faults:
            self.assertEqual([one["outcome"] for one in records[name]["attempts"]], ["failed", "passed"], name)
        self.assertIn("took more than 5 s", json.dumps(records["stand-ins lenet-digits-f32"]))

    def begin_without(self, *names):
        """With what is known when everything is done but these checks. Of all of them nothing is known at first."""
        if TAKES_ALL:
            return
        os.mkdir(self.path("out"))
        with tempfile.TemporaryDirectory() as work:
            archive.unpack(self.archive, work)
            records = state.State(work).records
            for name in names:
                for file in (*records[name]["files"], os.path.join("results", state.slug(name) + ".json")):
                    os.remove(os.path.join(work, file))
            archive.Packer(work, self.path("out", "check-gpu.tar.gz"), str).write()

    def test_a_full_disk_and_an_archive_that_was_cut_off(self):
        os.mkdir(self.path("disk"))
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", self.path("disk")], capture_output=True)
        if mounted.returncode:
            self.skipTest("no file system of a few bytes can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.path("disk")], check=True)
        said = self.call("--minutes", "1000", temporary=self.path("disk"), code=3)
        self.assertIn("No space left on device", said)
        passed = {name: came for name, came in self.end().items() if came[0] == "passed"}
        self.assertTrue(passed)
        self.assertLessEqual(passed.items(), self.undisturbed.items())
        if not TAKES_ALL:
            shutil.copy(self.archive, self.path("out"))
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
        child = subprocess.Popen([sys.executable, "-B", os.path.join(CUDA_TESTS, "check_gpu.py"), "--small", "--no-times",
                                  "--patience", "40", "--minutes", "1000", "--out", self.path("out")],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                 env={**os.environ, **ENVIRONMENT, "TMPDIR": self.folder},
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup may run this test
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
                              env={**os.environ, **ENVIRONMENT})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^check-gpu: .*/nonexistent.*\n$")


if __name__ == "__main__":
    unittest.main()
