#!/usr/bin/env python3
"""What other programs read: verdicts of `planc check` on files of any name, the README's CI example, run traces."""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest
from xml.etree import ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
LENET = os.path.join(ROOT, "graphs/lenet-digits.yaml")


def run(program, *arguments, folder):
    return subprocess.run([os.path.join(BUILD, program), *arguments], capture_output=True, cwd=folder, env=ENVIRONMENT,
                          check=False)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.assertEqual(run("planc", "plan", LENET, "--budget", "400K", "-o", "x.plan", folder=self.folder).returncode,
                         0)


class Replicas(InFolder):
    """What is there for all GPUs is told of all of them, by whatever command."""

    def test_host_and_storage(self):
        with open(os.path.join(ROOT, "tests/data/profile/toy.json"), encoding="utf-8") as file:
            profile = json.load(file)
        link = {"bytes_per_second": 10**9, "latency_ns": 1000}
        profile["device"]["storage"] = {"write": link, "read": link}
        with open(os.path.join(self.folder, "p.json"), "w", encoding="utf-8") as file:
            json.dump(profile, file)
        done = run("planc", "plan", os.path.join(ROOT, "tests/golden/inputs/tiny.yaml"), "--gpus", "2", "--batch", "4",
                   "--policy", "vdnn-all", "--budget", "1M", "--host-budget", "8K", "--storage", "1G", "--profile", "p.json",
                   "-o", "x.plan", "--json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        planned, checked = json.loads(done.stdout), json.loads(run("planc", "check", "x.plan", "--json", folder=self.folder).stdout)
        for key in ("peak_bytes", "host_peak_bytes", "storage_peak_bytes"):
            self.assertGreater(planned[key], 0)
            self.assertEqual(planned[key], checked[key])
        shown = run("planc", "show", "x.plan", folder=self.folder).stdout.decode()
        kib = {what: float(re.search(what + r" ([\d.]+) KiB", shown)[1]) for what in ("host", "storage")}
        self.assertEqual(kib, {what: planned[what + "_peak_bytes"] / 1024 for what in kib})


class Verdicts(InFolder):
    @staticmethod
    def names():
        """File names of any bytes but / and NUL, those that the forms treat specially often."""
        draw = random.Random(0)
        special = [b"%", b":", b",", b"\r", b"\n", b"<", b"&", b"]]>", b'"', b"\x01", b"\x1b", b"\xff", b"\xed\xa0\x80",
                   "\ufffe".encode(), "\u00e9".encode()]
        for _ in range(60):
            others = [bytes([byte]) for byte in range(1, 256) if byte != ord("/")]
            parts = [draw.choice(special if draw.random() < 0.6 else others) for _ in range(draw.randint(1, 8))]
            yield b"n" + b"".join(parts)

    @staticmethod
    def text(name):
        """What a form of characters can hold of a name."""
        text = name.decode(errors="surrogateescape")
        return "".join(c if c in "\t\n\r" or " " <= c < "\ud800" or "\ue000" <= c < "\ufffe" else "\ufffd"
                       for c in text)

    @staticmethod
    def logged(text, obeyed=""):
        """What a log shows of a text; lines and per cents have marks of their own there. What is no text comes as surrogates."""
        numbered = "[\x01-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]|(?<=#)#"
        numbers = lambda m: "".join(f"\\x{byte:02x}" for byte in m[0].encode(errors="surrogateescape"))
        return re.sub(numbered + obeyed, numbers, text.decode(errors="surrogateescape")).encode()

    def check(self, name, form):
        done = run("planc", "check", name, "--budget", "1M,1K", "--format=" + form, folder=self.folder)
        self.assertEqual(done.returncode, 1, name)
        return done.stdout

    def test_every_name_gives_well_formed_output(self):
        for name in set(self.names()):
            shutil.copy(os.path.join(self.folder, "x.plan"), os.path.join(os.fsencode(self.folder), name))
            with self.subTest(name=name):
                tree = ElementTree.fromstring(self.check(name, "junit"))
                suite = tree[0]
                self.assertEqual((suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")),
                                 (self.text(name), "2", "1", "0"))
                self.assertEqual([case.get("name") for case in suite], ["budget 1M", "budget 1K"])
                self.assertTrue(suite[1][0].get("message").startswith(self.text(name) + ": needs "))

                passed, failed = self.check(name, "github").split(b"\n")[:2]
                self.assertNotIn(b"::error", passed)
                found = re.fullmatch(rb"::error file=([^,:]*),title=[^,:]*::(.*)", failed, re.S)
                self.assertTrue(found, failed)
                undo = lambda value: re.sub(rb"%(25|0D|0A|3A|2C)", lambda m: bytes.fromhex(m[1].decode()), value)
                self.assertEqual(undo(found[1]), self.logged(name))
                message = self.logged(name + b": needs ", obeyed="|(?<![!-~]):(?=:)")
                self.assertTrue(undo(found[2]).startswith(message))

                lines = [json.loads(line) for line in self.check(name, "json").decode().splitlines()]
                self.assertEqual([line["valid"] for line in lines], [True, False])


class Readme(InFolder):
    def test_the_commands_of_the_ci_example_run(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            commands = re.findall(r"^ +- run: (planc/build/planc .*)$", file.read(), re.M)
        self.assertEqual(len(commands), 2)
        for name in ("memory", "planc"):
            os.mkdir(os.path.join(self.folder, name))
        os.symlink(BUILD, os.path.join(self.folder, "planc/build"))
        shutil.copy(LENET, os.path.join(self.folder, "memory/model.yaml"))
        os.rename(os.path.join(self.folder, "x.plan"), os.path.join(self.folder, "memory/model.plan"))
        for command in commands:
            done = subprocess.run(command, shell=True, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        suites = ElementTree.parse(os.path.join(self.folder, "planc.xml")).getroot()
        self.assertEqual((suites.get("tests"), suites.get("failures")), ("1", "0"))


class Traces(InFolder):
    def test_a_run_s_trace_is_complete_and_compares(self):
        done = run("planrun", "exec", "x.plan", "--iterations", "6", "--trace", "run.json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "run.json"), encoding="utf-8") as file:
            trace = json.load(file)
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        named = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["ph"] == "M"}
        self.assertLessEqual({(span["pid"], span["tid"]) for span in spans}, named)
        self.assertEqual(trace["otherData"]["periods"], 6)
        self.assertEqual({span["args"]["period"] for span in spans}, set(range(6)))

        done = run("planc", "simulate", "x.plan", "--against", "run.json", "--json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        against = json.loads(done.stdout)["against"]
        self.assertEqual(against["periods"], 6)
        self.assertEqual(sum(entry["count"] for entry in against["classes"]) * 6, len(spans))
        types = {span["args"].get("type") for span in spans} - {None}
        self.assertEqual(types, {entry["class"] for entry in against["classes"]} - {"copy in", "copy out", "move"})
        self.assertLessEqual(against["least_ns"], against["measured_ns"])
        self.assertLessEqual(against["measured_ns"], against["most_ns"])
        self.assertGreater(against["streams"][0]["measured"]["busy_ns"], 0)


if __name__ == "__main__":
    unittest.main()
