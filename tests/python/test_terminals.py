#!/usr/bin/env python3
"""What files and their names hold does not reach terminals and build servers' logs as anything that they obey."""

import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

from test_inputs import BUILD, ENVIRONMENT, LENET, READERS, ROOT, TINY

# Programs leave an interrupt alone that is ignored, as it is in the background of a shell's script: not those of tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

HOSTILE = "x\n::error::forged\r\x1b[2J\x1b]0;title\x07\x9b31m\u202e##[error]y##vso[task.complete]\x7f"


def run(*command, folder):
    done = subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], cwd=folder, env=ENVIRONMENT, check=False,
                          capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Terminals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.assertEqual(run("planc", "plan", LENET, "--policy", "none", "--batch", "2", "-o", "any.plan",
                             folder=self.folder)[0], 0)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def assert_harmless(self, text, what):
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", what)
        self.assertNotRegex(text, r"(?m)^\s*::|##", what)

    def run_harmless(self, *command, code=None):
        seen, out, messages = run(*command, folder=self.folder)
        self.assert_harmless(out, command)
        self.assert_harmless(messages, command)
        if code is not None:
            self.assertEqual(seen, code, (command, messages))
        return out + messages

    def test_names_of_files(self):
        for reader in READERS:
            for text in (None, "nothing that any reader knows", self.read("any.plan")):
                path = os.path.join(self.folder, HOSTILE.replace("/", "-"))
                if text is not None:
                    self.write(path, text)
                elif os.path.exists(path):
                    os.unlink(path)
                command = [{"FILE": "./" + os.path.basename(path), "ANY": "any.plan"}.get(word, word)
                           for word in reader]
                self.run_harmless(*command)
        self.run_harmless("planc", "check", "any.plan", "./" + os.path.basename(path), code=0)
        self.run_harmless("planc", "plan", TINY, "--policy", "none", "-o", HOSTILE, code=0)
        self.run_harmless("planc", "predict", TINY, "-o", HOSTILE, code=0)
        self.run_harmless("planrun", "exec", "any.plan", "--trace", HOSTILE, code=0)
        self.run_harmless("planc", "simulate", "any.plan", "--against", HOSTILE, code=0)
        self.run_harmless("planc", "simulate", "any.plan", "--vanilla", "any.plan", code=0)

    def test_names_where_a_line_begins(self):
        for name in ("::error::forged", " ::error::forged", "\u00a0::error::forged", ":::error::forged"):
            self.run_harmless("planc", "plan", TINY, "--policy", "none", "-o", name, code=0)
            for form in ("text", "github"):
                self.run_harmless("planc", "check", "--format", form, name, "any.plan", code=0)
                self.run_harmless("planc", "check", "--format", form, "any.plan", name, code=0)
            self.write(name, self.read("any.plan"))
            self.run_harmless("planc", "simulate", "any.plan", "--vanilla", name, code=0)
            self.run_harmless("planc", "predict", TINY, "-o", name, code=0)
            self.run_harmless("planrun", "exec", "any.plan", "--trace", name, code=0)
            self.run_harmless("planc", "simulate", "any.plan", "--against", name, code=0)

    def test_forms_for_programs(self):
        """JSON and XML say the name, in characters that nothing obeys."""
        self.run_harmless("planc", "plan", TINY, "--policy", "none", "-o", HOSTILE, code=0)
        for name in (HOSTILE, "missing" + HOSTILE):
            line = self.run_harmless("planc", "check", "--format", "json", name).splitlines()[0]
            self.assertEqual(json.loads(line)["plan"], name)
            out = run("planc", "check", "--format", "junit", name, folder=self.folder)[1]
            self.assert_harmless(out, name)
            suite = xml.etree.ElementTree.fromstring(out)[0]
            self.assertEqual(suite.get("name"), re.sub("[\0-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", name))
            self.run_harmless("planc", "check", "--format", "github", "any.plan", HOSTILE, code=0)
        line = self.run_harmless("planc", "plan", TINY, "--policy", "none", "--json", "-o", HOSTILE).splitlines()
        self.assertIn(HOSTILE, [json.loads(text)["output"] for text in line if text.startswith("{")])

    def test_annotations(self):
        _, out, messages = run("planc", "check", "--format", "github", HOSTILE, folder=self.folder)
        self.assertEqual(len(re.findall(r"(?m)^::", out)), 1, out)
        self.assertNotRegex(out + messages, "[\x1b\x07\x7f]")

    def test_words_of_the_command_line(self):
        for command in (("planc", HOSTILE), ("planc", "plan", HOSTILE), ("planc", "plan", LENET, "--policy", HOSTILE),
                        ("planc", "check", "any.plan", "--budget", HOSTILE), ("planrun", "exec", "any.plan", HOSTILE),
                        ("planrun", "profile", LENET, "--deviceless", HOSTILE),
                        ("planrun", "exec", "any.plan", "--link", HOSTILE)):
            self.run_harmless(*command)

    def test_strings_of_plans(self):
        """Every string of a plan, one after the other, as far as it is free."""
        text = self.read("any.plan")
        tables = text.index('{"tensor"')
        strings = list(re.finditer(r'(?<=[:\[,])"([^"\\]*)"(?!:)', text))
        self.assertGreater(len(strings), 50)
        forged = json.dumps(HOSTILE, ensure_ascii=False)
        # A plan's own escapes are of control characters below a space alone.
        forged = forged.replace("\\n", "\\u000a").replace("\\r", "\\u000d")
        for value in (forged, '"::error::forged"', '"##[error]forged"'):
            seen = set()
            for found in strings:
                kind = (text[:found.start()].rsplit("\n", 1)[-1][:12], found.group(1) if found.start() < tables else "")
                if kind in seen:
                    continue
                seen.add(kind)
                self.write("forged.plan", text[:found.start()] + value + text[found.end():])
                for command in (("planc", "check"), ("planc", "show"), ("planc", "simulate"), ("planrun", "exec")):
                    self.run_harmless(*command, "forged.plan")

    def test_strings_of_profiles(self):
        with open(os.path.join(ROOT, "profiles/k40m.json"), encoding="utf-8") as file:
            text = file.read()
        for found in re.finditer(r'"([^"\\]*)"', text):
            for value in (HOSTILE, "::error::forged", "##[error]forged"):
                self.write("forged.json", text[:found.start()] + json.dumps(value) + text[found.end():])
                self.run_harmless("planc", "plan", TINY, "--device", "./forged.json", "--policy", "none", "-o", "out")

    def test_strings_of_graphs(self):
        with open(TINY, encoding="utf-8") as file:
            text = file.read()
        text = text.replace("batch: 4", "batch: 4\norigin: somewhere\npolicy: none\noptimizer: sgd")
        for found in re.finditer(r"\b[\w.]+\b", text):
            for value in (HOSTILE, "::error::forged", "##[error]forged"):
                self.write("forged.yaml", text[:found.start()] + json.dumps(value) + text[found.end():])
                self.run_harmless("planc", "show", "forged.yaml")

    def test_checkpoints(self):
        self.run_harmless("planrun", "exec", "any.plan", "--save", "saved", code=0)
        with open(os.path.join(self.folder, "saved"), "rb") as file:
            saved = file.read()
        changed = saved[:-8].replace(b"checkpoint/3", b"checkpoint/" + json.dumps(HOSTILE)[1:-1].encode(), 1)
        with open(os.path.join(self.folder, "saved"), "wb") as file:
            file.write(changed + b"%08x" % zlib.crc32(changed))
        self.assertIn("is not known", self.run_harmless("planrun", "exec", "any.plan", "--resume", "saved", code=3))


class Waiting(unittest.TestCase):
    """Whoever waits for a plan sees what is asked, and may end it."""

    def plan(self, folder, stderr, *options):
        command = [os.path.join(BUILD, "planc"), "plan", os.path.join(ROOT, "graphs/recorded/resnet50.yaml"), "--device",
                   "v100-32g", "--budget", "2600M", "-o", "x.plan", *options]
        return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=stderr)

    def read_until(self, terminal, text):
        seen = ""
        while text not in seen:
            seen += os.read(terminal, 4096).decode()
        return seen

    def test_an_interrupt_keeps_the_best_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            terminal, inside = pty.openpty()
            with self.plan(folder, inside, "--effort", "3") as child:
                os.close(inside)
                seen = self.read_until(terminal, "asking priced")
                self.assertRegex(seen, r"asking capuchin; the fastest so far takes [\d.]+ ms")
                child.send_signal(signal.SIGINT)
                self.read_until(terminal, "ending with the best plan found so far; again to end at once")
                out = child.communicate(timeout=120)[0].decode()
                self.assertEqual(child.returncode, -signal.SIGINT)
            os.close(terminal)
            self.assertRegex(out, r"why +interrupted when priced was asked")
            checked = run("planc", "check", "x.plan", folder=folder)
            self.assertEqual(checked[0], 0, checked)

    def test_no_line_where_there_is_no_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.plan(folder, subprocess.PIPE, "--effort", "0") as child:
                errors = child.communicate(timeout=120)[1].decode()
                self.assertEqual(child.returncode, 0, errors)
            self.assertNotIn("asking", errors)


if __name__ == "__main__":
    unittest.main()
