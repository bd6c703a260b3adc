#!/usr/bin/env python3
"""Outputs: no command overwrites what it reads, or one output by another; links are written through."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}

# Of every command with outputs: the program, what it reads (an option, or "" for the operand) and what it writes. The
# two of a pair in LEGITIMATE may be one file.
COMMANDS = {
    "plan": ("planc", ("", "--profile", "--device"), ("--output",)),
    "colocate": ("planc", ("", "--profile", "--device"), ("--output",)),
    "train": ("planc", ("",), ("--output",)),
    "predict": ("planc", ("", "--profile", "--device"), ("--output",)),
    "predict --fit": ("planc", ("", "--graphs", "--device"), ("--output",)),
    "update": ("planc", ("", "--trace", "--profile", "--device"), ("--output", "--profile-out")),
    "place": ("planc", ("",), ("--output",)),
    "torch": ("planc", ("", "--profile", "--device"), ("--output", "--graph")),
    "exec": ("planrun", ("", "--data", "--resume", "--watch"), ("--save", "--trace")),
    "profile": ("planrun", ("",), ("--output",)),
}
WITHOUT_OUTPUTS = {"planc": ("check", "simulate", "compare", "show", "explain", "bound"), "planrun": ("info",)}
LEGITIMATE = {("exec", "--resume", "--save")}
# What a command writes beside an output.
BESIDE = {"profile": (("x.json", "x.json.part"), ("x.json", "x.properties.json"))}


def run(*command, **arguments):
    return subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=60, check=False, stdin=subprocess.DEVNULL, **arguments)


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "file")
        os.mkdir(os.path.join(self.folder, "sub"))

    def write(self, name, text="precious"):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def same_file(self, exists):
        """Ways to name one file: by other words, through a link, or both."""
        os.symlink("file", os.path.join(self.folder, "link"))
        os.symlink(os.path.join(self.folder, "link"), os.path.join(self.folder, "sub", "far"))
        os.symlink(self.folder, os.path.join(self.folder, "sub", "up"))
        names = [("file", "file"), ("./file", "file"), ("file", self.path), ("sub/../file", "file"), ("link", "file"),
                 ("file", "link"), ("sub/far", "file"), ("sub/up/file", "link")]
        if exists:
            os.link(self.path, os.path.join(self.folder, "hard"))
            names.append(("hard", "file"))
        return names

    def command(self, name, uses):
        """The command with these files, and with what else it cannot be without."""
        program = COMMANDS[name][0]
        operand = uses.pop("", "other")
        if name == "update":
            uses.setdefault("--trace", "other")
        line = [program, *name.split(), operand, *(["other"] if name == "colocate" else [])]
        for option, value in uses.items():
            line += [option, value]
        return line

    def refused(self, line, sentence):
        done = run(*line, cwd=self.folder)
        self.assertEqual(done.returncode, 2, (line, done.stderr))
        self.assertRegex(done.stderr, sentence, line)

    def test_every_file_of_every_command_is_known_here(self):
        for program in ("planc", "planrun"):
            listed = re.findall(r"^  (\w+) ", run(program, "--help").stdout.split("commands:")[1], re.M)
            known = {name.split()[0] for name, of in COMMANDS.items() if of[0] == program}
            self.assertEqual(set(listed), known | set(WITHOUT_OUTPUTS[program]))
            for name in known:
                text = run(program, name, "--help").stdout
                options = set(re.findall(r"(--[\w-]+) (?:[A-Z]+\||\[[A-Z]+:\])?(?:FILE|GRAPH,)", text))
                forms = [of for form, of in COMMANDS.items() if form.split()[0] == name]
                used = {option for _, reads, writes in forms for option in (*reads, *writes) if option}
                self.assertEqual(options, used, name)

    def test_no_output_is_what_is_read(self):
        self.write("file")
        self.write("other", "another")
        for one, same in self.same_file(exists=True):
            for name, (_, reads, writes) in COMMANDS.items():
                for read in reads:
                    for written in writes:
                        if (name, read, written) in LEGITIMATE:
                            continue
                        path = os.path.join(".", same) if read == "--device" else same  # not a device's name
                        line = self.command(name, {read: path, written: one})
                        # A device is looked up when the graph or plan before it has been read.
                        if read == "--device":
                            self.assertNotEqual(run(*line, cwd=self.folder).returncode, 0, line)
                        else:
                            self.refused(line, "is read, the output must be another file")
                        with open(self.path, encoding="utf-8") as file:
                            self.assertEqual(file.read(), "precious", line)

    def test_a_device_that_is_read_is_not_written(self):
        shutil.copy(os.path.join(ROOT, "profiles/h100.json"), os.path.join(self.folder, "file"))
        graph = os.path.join(ROOT, "graphs/lenet-digits.yaml")
        os.symlink("file", os.path.join(self.folder, "link.json"))
        for line in (["planc", "plan", graph], ["planc", "predict", graph]):
            self.refused([*line, "--device", "./link.json", "-o", "file"], "is read, the output must be another file")
        for written in ("link.json", "link.properties.json"):
            self.refused(["planrun", "profile", graph, "--deviceless", "./link.json", "-o", written], "is read")
        environment = {**ENVIRONMENT, "PLANC_PROFILES": self.folder}
        os.rename(self.path, os.path.join(self.folder, "k40m.json"))
        done = subprocess.run([os.path.join(BUILD, "planc"), "plan", graph, "-o", "k40m.json"], cwd=self.folder,
                              env=environment, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("k40m.json is read", done.stderr)

    def test_two_outputs_are_two_files(self):
        for exists in (False, True):
            if exists:
                self.write("file")
                for name in ("link", "sub/far", "sub/up"):
                    os.unlink(os.path.join(self.folder, name))
            for one, same in self.same_file(exists):
                for name, (_, _, writes) in COMMANDS.items():
                    if len(writes) == 2:
                        line = self.command(name, {writes[0]: one, writes[1]: same})
                        self.refused(line, "is written twice")
        self.refused(self.command("update", {"--output": "-", "--profile-out": "-"}), "two outputs go to standard out")

    def test_what_is_written_beside_an_output_is_not_what_is_read(self):
        for name, pairs in BESIDE.items():
            for output, beside in pairs:
                self.write(beside)
                self.refused([COMMANDS[name][0], name, beside, "-o", output], f"{beside} is read")

    def test_a_watched_plan_that_is_not_there_yet_is_not_written(self):
        self.refused(["planrun", "exec", "other", "--watch", "file", "--save", "./file"], "is read")

    def test_standard_output_is_not_appended_to_what_is_read(self):
        shutil.copy(os.path.join(ROOT, "graphs/lenet-digits.yaml"), self.path)
        with open(self.path, encoding="utf-8") as file:
            before = file.read()
        with open(self.path, "a", encoding="utf-8") as out:
            done = subprocess.run([os.path.join(BUILD, "planc"), "train", "file"], cwd=self.folder, stdout=out,
                                  stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False, timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)

    def test_a_device_may_take_several_outputs(self):
        graph = os.path.join(ROOT, "graphs/lenet-digits.yaml")
        done = run("planc", "plan", graph, "--policy", "none", "--batch", "2", "-o", "any.plan", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("planrun", "exec", "any.plan", "--save", "/dev/null", "--trace", "/dev/null", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_run_goes_on_from_a_checkpoint_and_in_it(self):
        graph = os.path.join(ROOT, "graphs/lenet-digits.yaml")
        run("planc", "plan", graph, "--policy", "none", "--batch", "2", "-o", "any.plan", cwd=self.folder)
        self.assertEqual(run("planrun", "exec", "any.plan", "--save", "file", cwd=self.folder).returncode, 0)
        os.symlink("file", os.path.join(self.folder, "link"))
        done = run("planrun", "exec", "any.plan", "-n", "3", "--resume", "link", "--save", "file", "--watch",
                   "any.plan", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("iterations 3", done.stdout)

    def test_a_link_is_written_through(self):
        """Also where it leads to nothing yet, over several links, and to another folder."""
        graph = os.path.join(ROOT, "graphs/lenet-digits.yaml")
        os.symlink("sub/target", os.path.join(self.folder, "link"))
        os.symlink("link", os.path.join(self.folder, "again"))
        for _ in range(2):
            done = run("planc", "train", graph, "-o", "again", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.islink(os.path.join(self.folder, "link")))
            self.assertTrue(os.path.islink(os.path.join(self.folder, "again")))
            self.assertFalse(os.path.islink(os.path.join(self.folder, "sub/target")))
            self.assertEqual(os.listdir(os.path.join(self.folder, "sub")), ["target"])
        os.symlink("round", os.path.join(self.folder, "round"))
        done = run("planc", "train", graph, "-o", "round", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (5, "planc: round: Too many levels of symbolic links\n"))


if __name__ == "__main__":
    unittest.main()
