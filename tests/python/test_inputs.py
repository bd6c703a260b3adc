#!/usr/bin/env python3
"""Inputs: whatever is given as a file is read, or refused at once and within memory that its size accounts for."""

import os
import re
import select
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
TINY = os.path.join(ROOT, "tests/golden/inputs/tiny.yaml")
LENET = os.path.join(ROOT, "graphs/lenet-digits.yaml")

# Every way in which a command reads a file that its user names; FILE is that.
READERS = (
    ("planc", "check", "FILE"),
    ("planc", "check", "ANY", "--graph", "FILE"),
    ("planc", "show", "FILE"),
    ("planc", "plan", "FILE", "-o", "out"),
    ("planc", "plan", LENET, "--profile", "FILE", "-o", "out"),
    ("planc", "plan", LENET, "--device", "FILE", "-o", "out"),
    ("planc", "train", "FILE"),
    ("planc", "compare", "FILE"),
    ("planc", "simulate", "FILE"),
    ("planc", "simulate", "ANY", "--against", "FILE"),
    ("planc", "simulate", "ANY", "--vanilla", "FILE"),
    ("planc", "simulate", "ANY", "--costs", "FILE"),
    ("planc", "predict", "FILE"),
    ("planc", "predict", "--fit", "FILE", "--graphs", LENET),
    ("planc", "update", "FILE", "--trace", "ANY", "-o", "out"),
    ("planc", "update", "ANY", "--trace", "FILE", "-o", "out"),
    ("planrun", "exec", "FILE"),
    ("planrun", "exec", "ANY", "--data", "FILE"),
    ("planrun", "exec", "ANY", "--resume", "FILE"),
    ("planrun", "profile", "FILE", "-o", "out"),
)


def run(command, **arguments):
    return subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=300, check=False, **arguments)


def memory_of(command, folder):
    """Runs a command; its exit code, its messages and the bytes of memory that it has had at most."""
    with tempfile.TemporaryFile() as messages:
        # From a shell: a fork of this process would begin with its memory.
        child = subprocess.Popen(["sh", "-c", 'exec "$@"', "sh", os.path.join(BUILD, command[0]), *command[1:]],
                                 cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        return child.returncode, messages.read().decode(), used.ru_maxrss * 1024


class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        done = run(("planc", "plan", LENET, "--policy", "none", "--batch", "2", "-o", "any.plan"), cwd=cls.folder)
        assert done.returncode == 0, done.stderr
        os.mkfifo(os.path.join(cls.folder, "pipe.json"))

    def command(self, reader, path):
        return [{"FILE": path, "ANY": "any.plan"}.get(word, word) for word in reader]

    def test_every_reader_is_known_here(self):
        for program in ("planc", "planrun"):
            commands = re.findall(r"^  (\w+) ", run((program, "--help")).stdout.split("commands:")[1], re.M)
            for name in commands:
                text = run((program, name, "--help")).stdout
                options = set(re.findall(r"(--[\w-]+) (?:[A-Z]+\|)?(?:FILE|GRAPH,)", text))
                # What is written, what is looked at now and then, and a list; `compare` reads as `plan` does.
                options -= {"--output", "--profile-out", "--save", "--watch", "--graphs"}
                options -= {"--trace"} if name == "exec" else set()
                for option in options:
                    readers = [r for r in READERS if r[0] == program and option in r]
                    self.assertTrue(readers, (name, option))

    def test_what_has_no_end_or_no_writer_is_refused_at_once(self):
        for reader in READERS:
            for path in ("pipe.json", "/dev/zero", "/dev/null", "."):
                path = os.path.join("./", path) if "--device" in reader else path  # not a device's name
                done = run(self.command(reader, path), cwd=self.folder)
                self.assertIn(done.returncode, (2, 3), (reader, path, done.stderr))
                self.assertRegex(done.stderr, r"is a pipe|is neither a file|is not a file|is a directory|not a device|no "
                                              r"description", (reader, path))

    def test_a_large_file_without_text_is_not_read_to_its_end(self):
        with open(os.path.join(self.folder, "sparse.json"), "wb") as file:
            file.truncate(4 << 30)
        for reader in READERS:
            path = "./sparse.json" if "--device" in reader else "sparse.json"
            code, messages, used = memory_of(self.command(reader, path), self.folder)
            self.assertEqual(code, 3, (reader, messages))
            self.assertLess(used, 256 << 20, reader)

    def test_a_pipe_that_is_written_to_is_read(self):
        path = os.path.join(self.folder, "any.plan")
        with open(path, "rb") as file:
            done = subprocess.run([os.path.join(BUILD, "planc"), "check", "/dev/stdin"], input=file.read(),
                                  env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        # A writer that has not written yet is waited for.
        done = subprocess.run(["bash", "-c", '"$0" check <(sleep 0.2; cat "$1")', os.path.join(BUILD, "planc"), path],
                              env=ENVIRONMENT, text=True, capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        # So is a named pipe's, which is there once it has found a reader.
        reader = os.open(os.path.join(self.folder, "pipe.json"), os.O_RDONLY | os.O_NONBLOCK)
        writer = subprocess.Popen(["bash", "-c", "cat any.plan > pipe.json"], cwd=self.folder)
        self.assertTrue(select.select([reader], [], [], 60)[0])
        done = run(("planc", "check", "pipe.json"), cwd=self.folder)
        os.close(reader)
        self.assertEqual((done.returncode, writer.wait(60)), (0, 0), done.stderr)

    def test_a_batch_has_the_same_bounds_in_a_header_as_in_an_option(self):
        with open(TINY, encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(self.folder, "batch.yaml")
        for batch, right in ((2**31 - 1, True), (2**31, False), (2**62 + 1, False), (2**63 - 1, False), (0, False)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("batch: 4", f"batch: {batch}"))
            for name in ("plan", "compare"):
                line = ["planc", name, path, *(["-o", "out"] if name == "plan" else []),
                        *(["--policy", "none"] if name == "plan" else ["--policies", "none"])]
                header = run(line, cwd=self.folder)
                option = run([*line[:2], TINY, *line[3:], "--batch", str(batch)], cwd=self.folder)
                if right:
                    self.assertEqual(header.returncode, option.returncode, header.stderr)
                else:
                    self.assertEqual((header.returncode, option.returncode), (3, 2), header.stderr)
                    self.assertIn("from 1 to 2147483647", header.stderr)

    def test_many_intervals_over_many_mappings_take_no_memory(self):
        mappings, acquires, most = 6600, 2400, 64 << 20
        run(("planc", "plan", TINY, "--policy", "window", "--placement", "vmm", "--chunk", "512", "-o", "v.plan"),
            cwd=self.folder)
        with open(os.path.join(self.folder, "v.plan"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        mapped = [i for i, line in enumerate(lines) if line.startswith('{"map"')]
        counts = {key: int(value) for key, value in re.findall(r'"(\w+)":(\d+)', lines[0])}
        rows = [f'{{"map":{i * 7 % mappings},"chunks":1}}' for i in range(mappings)]
        opened = [f'{{"i":"acquire","r":{i + 1},"b":2,"m":0,"at":{i % 2 * 256},"bytes":{512 * mappings - 512}}}'
                  for i in range(acquires)]
        lines = lines[:mapped[0]] + rows + lines[mapped[-1] + 1:]
        body = mapped[0] + mappings + counts["prologue"]
        lines[body:body] = opened
        device = next(i for i, line in enumerate(lines) if line.startswith('{"memory":"device"'))
        for at, key, value in ((0, "maps", mappings), (0, "residencies", counts["residencies"] + acquires),
                               (0, "body", counts["body"] + acquires), (device, "maps", mappings),
                               (device, "arena", 512 * mappings)):
            lines[at] = re.sub(f'"{key}":\\d+', f'"{key}":{value}', lines[at])
        with open(os.path.join(self.folder, "hostile.plan"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        for command in ("check", "show", "simulate"):
            code, messages, used = memory_of(("planc", command, "hostile.plan"), self.folder)
            self.assertIn(code, (0, 1, 3), messages)
            self.assertLess(used, most, command)
        code, messages, used = memory_of(("planrun", "exec", "hostile.plan"), self.folder)
        self.assertEqual(code, 1, messages)

    def test_a_vast_batch_takes_no_memory(self):
        most = 512 << 20
        for policy in ("none", "vdnn-all", "superneurons", "tensile", "window"):
            code, messages, used = memory_of(("planc", "compare", TINY, "--batch", str(2**31 - 1), "--policies", policy),
                                             self.folder)
            self.assertEqual(code, 0, messages)
            self.assertLess(used, most, policy)
        code, messages, used = memory_of(("planc", "plan", TINY, "--batch", str(2**31 - 1), "--policy", "modnn", "-o",
                                          "vast.plan"), self.folder)
        self.assertEqual(code, 0, messages)
        self.assertLess(used, most)


if __name__ == "__main__":
    unittest.main()
