#!/usr/bin/env python3
"""Memory and disks that fail: every command of planc and planrun, with one call to the system refused, or that and all
behind it, call by call. It ends with an error and a message, each output file as it was before or right; or with exactly
the right output. Never otherwise with exit 0, never by a signal, never without an end. oneDNN throws exceptions, and
others below it abort, where they find no memory for themselves: that may end a program in any way that is not exit 0.

FAULTS=all in the environment refuses every call in turn (`make faults`); else it is a sample, the same every time. A
call fails in a run of its own, or, which is quicker, in a child that is forked where it is made: of programs without
threads that write no files.
"""

import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
LIBRARY = os.path.join(BUILD, "preload/faults.so")
# Without plug-ins: what CUDA's libraries do without memory is their own.
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles"), "PLANRT_PLUGINS": "/nonexistent",
               "OMP_NUM_THREADS": "1"}
EVERY = os.environ.get("FAULTS") == "all"
LENET = os.path.join(ROOT, "graphs/lenet-digits.yaml")
TINY = os.path.join(ROOT, "tests/golden/inputs/tiny.yaml")
DIGITS = os.path.join(ROOT, "tests/data/digits/digits.csv.gz")
OLD = b"what was here before\n"
TIME_LIMIT = 300
LAST = 3
CHILDREN = 40

SMALL = """planc-graph: 1
name: small
batch: 4
device: k40m
loss: loss
tensors:
  x: input f32[N,6]
  labels: input i64[N]
  w: param f32[5,6]
  h: f32[N,5]
  d: f32[N,5]
  loss: f32[]
  probs: f32[N,5]
ops:
  - {op: h, type: linear, in: [x, w], out: [h]}
  - {op: d, type: dropout, in: [h], out: [d], attrs: {p: 0.25, seed: 1}}
  - {op: l, type: softmax_xent, in: [d, labels], out: [loss, probs]}
"""

# How calls fail: the kind, the error, whether all behind the first fail as well.
MEMORY = [("alloc", "", False), ("alloc", "", True)]
FOREIGN = [("foreign", "", False), ("foreign", "", True)]
WRITES = [("write", "ENOSPC", False), ("write", "ENOSPC", True), ("write", "EIO", False), ("write", "EINTR", False),
          ("write", "short", False)]
# Exit codes that tell of it: an internal fault, which memory is, and an output that cannot be written.
CODES = {"alloc": {5, 6}, "write": {3, 5}}


def without_times(text):
    """What is measured differs from run to run."""
    return re.sub(rb"\d+(\.\d+)?", b"#", text)


class Command:
    """A command, the files it writes, and how outputs are made comparable."""

    def __init__(self, *arguments, outputs=(), sample=6, last=LAST, children=CHILDREN, timed=(), leaves=()):
        self.arguments = arguments
        self.outputs = outputs
        self.sample, self.last, self.children = sample, last, children
        self.timed = timed  # outputs with times in them, "-" the standard one
        self.leaves = leaves  # files that an error may leave beside the outputs

    def same(self, name, one, other):
        """Whether two outputs are equal, but for times."""
        return one == other or (name in self.timed and without_times(one) == without_times(other))

    def forks(self):
        """Whether each call may fail in a child of one run: a program without threads that writes no files."""
        return self.arguments[0] == "planc" and not self.outputs

    def run(self, folder, inputs, time_limit=TIME_LIMIT, **faults):
        """Runs it in a folder of its own; gives how it ended and what is in the folder."""
        environment = {**ENVIRONMENT, "LD_PRELOAD": LIBRARY, "FAULTS_REPORT": folder + ".report", **faults}
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(inputs, folder)
        for name in self.outputs:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(OLD)
        program, *arguments = self.arguments
        with open(folder + ".out", "w+b") as out, open(folder + ".err", "w+b") as err:
            done = subprocess.run([os.path.join(BUILD, program), *arguments], cwd=folder, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=time_limit, check=False)
            for file in out, err:
                file.seek(0)
            done = subprocess.CompletedProcess(done.args, done.returncode, out.read(), err.read())
        files = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read()
        return done, files


def fault_in(command, expected, done, files, kind):
    """What is wrong with a run, or None."""
    right, right_files = expected
    if done.returncode == -signal.SIGALRM:
        return "no end"
    if done.returncode == 0:
        if not command.same("-", done.stdout, right.stdout):
            return "exit 0 with another standard output"
        if sorted(files) != sorted(right_files):
            return f"exit 0 and the files {sorted(files)}"
        for name, content in files.items():
            if not command.same(name, content, right_files[name]):
                return f"exit 0 with another {name}"
        return None
    if kind != "foreign" and done.returncode not in CODES[kind]:
        return f"exit {done.returncode}"
    if kind != "foreign" and not re.search(rb"^planc: |^planrun: ", done.stderr, re.M):
        return "an error without a message"
    for name, content in files.items():
        if name in command.outputs:
            if content != OLD and not command.same(name, content, right_files[name]):
                return f"an error and a wrong {name}"
        elif name not in command.leaves and content != right_files.get(name):
            return f"an error and a file {name}"
    return None


def strikes(total, sample, last):
    """Which calls are refused: of a sample the last ones too, in which what is printed is made."""
    if EVERY or total <= sample + last:
        return range(1, total + 1)
    return sorted({*(1 + i * (total - 1) // (sample - 1) for i in range(sample)), *range(total + 1 - last, total + 1)})


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = {}
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.inputs = os.path.join(cls.folder, "inputs")
        os.mkdir(cls.inputs)
        with open(os.path.join(cls.inputs, "small.yaml"), "w", encoding="ascii") as file:
            file.write(SMALL)
        for command in (["planc", "plan", LENET, "--budget", "400K", "-o", "lenet.plan"],
                        ["planc", "plan", "small.yaml", "--policy", "vdnn-all", "-o", "small.plan"],
                        ["planrun", "exec", "lenet.plan", "--synthetic", "--iterations", "2", "--save", "saved",
                         "--trace", "run.json"],
                        ["planrun", "exec", "small.plan", "--iterations", "2", "--trace", "small-run.json"],
                        ["planc", "predict", LENET, "--device", "k40m", "-o", "k40m.json"],
                        ["planc", "plan", "small.yaml", "--policy", "none", "-o", "another.plan"],
                        ["planrun", "profile", "small.yaml", "-r", "1", "-o", "measured.json"]):
            subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], cwd=cls.inputs, env=ENVIRONMENT, check=True,
                           capture_output=True)

    def expect(self, command, folder, inputs, settings):
        """What a run gives in which nothing fails, and how many calls it makes of the kind, however they are to fail."""
        key = command.arguments, tuple(command.outputs), inputs, settings["FAULTS"]
        if key not in self.expected:
            expected = command.run(folder, inputs, **settings)
            self.assertEqual(expected[0].returncode, 0, expected[0].stderr)
            with open(folder + ".report", encoding="ascii") as file:
                total = int(file.read().split()[0])
            self.assertGreater(total, 0)
            self.expected[key] = expected, total
        return self.expected[key]

    def fork(self, command, folder, inputs, settings):
        """Calls fail in children of one run, forked where the call is made."""
        expected, total = self.expect(command, folder, inputs, settings)
        step = 1 if EVERY else 1 + total // command.children
        whole, files = command.run(folder + "-forked", inputs, time_limit=None, FAULTS_EACH=folder + ".each",
                                   FAULTS_STEP=str(step), FAULTS_TAIL=str(total - LAST), **settings)
        self.assertEqual((whole.returncode, whole.stdout, files), (0, expected[0].stdout, expected[1]))
        with open(folder + ".each", "rb") as file:
            for at in (at for at in range(1, total + 1) if at % step == 0 or at > total - LAST):
                number, status, *lengths = map(int, file.readline().split())
                self.assertEqual(number, at)
                out, err = (file.read(length) for length in lengths)
                yield at, expected, subprocess.CompletedProcess([], os.waitstatus_to_exitcode(status), out, err), files
            self.assertEqual(file.read(), b"")

    def restart(self, command, folder, inputs, settings):
        """Each call, or a sample of them, fails in a run of its own."""
        expected, total = self.expect(command, folder, inputs, settings)

        def one(at):
            own = f"{folder}-{at}"
            try:
                return at, expected, *command.run(own, inputs, FAULTS_AT=str(at), **settings)
            except subprocess.TimeoutExpired:
                return at, expected, subprocess.CompletedProcess([], -signal.SIGALRM, b"", b"no end"), {}
            finally:
                shutil.rmtree(own, ignore_errors=True)
                for path in glob.glob(own + ".*"):
                    os.remove(path)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            yield from pool.map(one, strikes(total, command.sample, command.last))

    def refuse(self, command, faults=MEMORY + WRITES, inputs=None):
        inputs = inputs or self.inputs
        for number, (kind, error, stick) in enumerate(faults):
            settings = {"FAULTS": kind, "FAULTS_ERROR": error, **({"FAULTS_STICK": "1"} if stick else {})}
            folder = os.path.join(self.folder, f"{self.id()}-{number}")
            way = self.fork if kind == "alloc" and command.forks() else self.restart
            for at, expected, done, files in way(command, folder, inputs, settings):
                with self.subTest(kind=kind, error=error, stick=stick, at=at):
                    self.assertIsNone(fault_in(command, expected, done, files, kind), done.stderr[-300:])

    def test_children_fail_as_runs_do(self):
        command = Command("planc", "show", "lenet.plan", "--json", children=80)
        settings = {"FAULTS": "alloc", "FAULTS_ERROR": ""}
        children, runs = ({at: (done.returncode, done.stdout, done.stderr) for at, _, done, _ in
                           way(command, os.path.join(self.folder, f"{self.id()}-{way.__name__}"), self.inputs, settings)}
                          for way in (self.fork, self.restart))
        both = children.keys() & runs.keys()
        self.assertGreater(len(both), LAST)
        self.assertEqual({at: children[at] for at in both}, {at: runs[at] for at in both})

    def test_plan(self):
        """A search takes long, up to where it is refused something."""
        self.refuse(Command("planc", "plan", LENET, "--budget", "400K", "-o", "-", children=20), MEMORY)
        self.refuse(Command("planc", "plan", "small.yaml", "-o", "out", outputs=["out"]))

    def test_plan_json(self):
        self.refuse(Command("planc", "plan", TINY, "--policy", "vdnn-all", "-o", "out", "--json", outputs=["out"]))

    def test_plan_on_standard_output(self):
        self.refuse(Command("planc", "plan", TINY, "-o", "-"))

    def test_colocate(self):
        for policy in ("temporal", "zico", "waterwave", "waterwave-s", "tensile", "capuchin"):
            self.refuse(Command("planc", "colocate", TINY + ":4", LENET + ":8", "--device", "k40m", "--policy", policy, "-o",
                                "out", "--json", outputs=["out"], sample=5))

    def test_compare_of_mixes(self):
        self.refuse(Command("planc", "compare", "--colocate", TINY + ":4", TINY + ":8", "--device", "k40m", "--json", children=20))

    def test_train(self):
        self.refuse(Command("planc", "train", LENET, "-o", "out", outputs=["out"]))

    def test_train_on_standard_output(self):
        self.refuse(Command("planc", "train", LENET, "--precision", "bf16"))

    def test_check(self):
        for form in ("text", "json", "github", "junit"):
            self.refuse(Command("planc", "check", "lenet.plan", "--graph", LENET, "--format", form))

    def test_show(self):
        self.refuse(Command("planc", "show", "lenet.plan", "--json"))
        self.refuse(Command("planc", "show", "lenet.plan", "--lifespans", "--json"))
        self.refuse(Command("planc", "show", LENET))

    def test_simulate(self):
        self.refuse(Command("planc", "simulate", "lenet.plan", "--against", "run.json", "--json"))
        self.refuse(Command("planc", "simulate", LENET, "--passive", "--budget", "4M", "--json"))

    def test_compare(self):
        self.refuse(Command("planc", "compare", TINY, "--json"))
        self.refuse(Command("planc", "compare", LENET, "--budget", "400K"))

    def test_predict(self):
        self.refuse(Command("planc", "predict", LENET, "--device", "k40m", "-o", "out", "--json", outputs=["out"],
                            timed=["-"]))

    def test_fit(self):
        self.refuse(Command("planc", "predict", "--fit", "measured.json", "--graphs", "small.yaml", "-o", "out",
                            outputs=["out"], timed=["-"]))

    def test_update(self):
        self.refuse(Command("planc", "update", "lenet.plan", "--trace", "run.json", "--threshold", "0", "-o", "-"), MEMORY)
        self.refuse(Command("planc", "update", "small.plan", "--trace", "small-run.json", "--threshold", "0", "-o", "out",
                            "--profile-out", "costs", outputs=["out", "costs"]))

    def test_exec(self):
        command = Command("planrun", "exec", "small.plan", "--iterations", "2", "--save", "out", "--trace", "trace",
                          "--verify", outputs=["out", "trace"], timed=["-", "trace"], sample=8)
        self.refuse(command)
        self.refuse(command, FOREIGN)

    def test_exec_of_data(self):
        self.refuse(Command("planrun", "exec", "lenet.plan", "--data", DIGITS, "--iterations", "2", timed=["-"]))

    def test_exec_that_goes_on(self):
        self.refuse(Command("planrun", "exec", "lenet.plan", "--synthetic", "--iterations", "2", "--verify", "--resume",
                            "saved", timed=["-"]))

    def test_exec_of_a_plan_that_changes(self):
        self.refuse(Command("planrun", "exec", "small.plan", "--iterations", "3", "--watch", "another.plan", "--save",
                            "out", outputs=["out"], timed=["-"]))

    def test_profile(self):
        """Of the last calls another test has a sample, which does not measure anew."""
        command = Command("planrun", "profile", "small.yaml", "-b", "2", "-r", "1", "-o", "out", outputs=["out"],
                          timed=["-", "out"], sample=2, last=0, leaves=["out.part"])
        self.refuse(command, MEMORY + FOREIGN)

    def test_profile_that_goes_on(self):
        """From what a run has left that measured everything and could not write its profile."""
        command = Command("planrun", "profile", "small.yaml", "-b", "2", "-r", "1", "-o", "out", outputs=["out"],
                          leaves=["out.part"])
        first = os.path.join(self.folder, "first")
        done, _ = command.run(first, self.inputs, FAULTS="write", FAULTS_FROM="rename")
        self.assertEqual(done.returncode, 5, done.stderr)
        inputs = self.inputs + "-measured"
        shutil.copytree(self.inputs, inputs)
        shutil.copy(os.path.join(first, "out.part"), inputs)
        self.refuse(command, inputs=inputs)

    def test_info(self):
        self.refuse(Command("planrun", "info", "--json", timed=["-"]))


if __name__ == "__main__":
    unittest.main()
