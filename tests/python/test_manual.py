#!/usr/bin/env python3
"""The manual pages and README against the programs: commands, options, policies, devices; every example runs."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {**os.environ, "PATH": BUILD + os.pathsep + os.environ["PATH"],
               "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
PROGRAMS = ("planc", "planrun")


def page(name):
    """The page's source without fonts and escapes."""
    with open(os.path.join(ROOT, "man", name), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\\f[BIR]", "", text)
    return text.replace("\\-", "-").replace("\\ ", " ").replace("\\e", "\\")


def sections(text, macro):
    """Headings of .SH or .SS with what follows up to the next heading of the same or a higher level."""
    ends = r"\.SH " if macro == "SH" else r"\.S[HS] "
    return {heading: body for heading, body in
            re.findall(rf"^\.{macro} ([^\n]*)\n(.*?)(?=^{ends}|\Z)", text, re.M | re.S)}


def code_blocks(text):
    return re.findall(r"^\.nf\n(.*?)^\.fi$", text, re.M | re.S)


def run(command, **arguments):
    return subprocess.run(command, shell=True, env=ENVIRONMENT, capture_output=True, text=True, check=False,
                          timeout=120, **arguments)


def commands_of(program):
    """Names of the commands that --help lists."""
    listed = run(f"{program} --help").stdout.split("commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


class Options(unittest.TestCase):
    def test_the_synopsis_lists_the_commands(self):
        for program in PROGRAMS:
            synopsis = sections(page(program + ".1"), "SH")["SYNOPSIS"]
            listed = re.findall(rf"^{program} ([a-z]+)", synopsis, re.M)
            self.assertEqual(listed, commands_of(program), program)

    def test_every_option_of_a_command_is_in_its_section_and_conversely(self):
        for program in PROGRAMS:
            bodies = {heading.split()[0]: body for heading, body in sections(page(program + ".1"), "SS").items()}
            self.assertEqual(list(bodies), commands_of(program), program)
            for command, body in bodies.items():
                lines = re.findall(r"^ +(?:-([a-z]),)? +--([a-z-]+)", run(f"{program} {command} --help").stdout, re.M)
                offered = {name for _, name in lines} - {"help"}
                self.assertEqual(set(re.findall(r"--([a-z][a-z-]*)", body)), offered, f"{program} {command}")
                letters = {(letter, name) for letter, name in lines if letter and name != "help"}
                documented = set(re.findall(r'^\.BR -([a-z]) ", " --([a-z-]+)', body, re.M))
                self.assertLessEqual(documented, letters, f"{program} {command}")
                if command != "compare":  # it refers to plan
                    self.assertEqual(documented, letters, f"{program} {command}")


class Tables(unittest.TestCase):
    def test_policies(self):
        described = re.findall(r"^\.TP\n\.B (\S+)$", sections(page("planc.1"), "SH")["POLICIES"], re.M)
        shown = json.loads(run("planc compare inputs/tiny.yaml --json", cwd=os.path.join(ROOT, "tests/golden")).stdout)
        self.assertEqual(described, [row["policy"] for row in shown["rows"]])

    def test_devices(self):
        rows = re.findall(r"^(\S+)\t(\d+) GiB\t(?:(\d+) MiB|0)$", sections(page("planc.1"), "SH")["DEVICES"], re.M)
        described = {name: (int(memory) << 30, int(reserved or 0) << 20) for name, memory, reserved in rows}
        there = {}
        for path in glob.glob(os.path.join(ROOT, "profiles", "*.json")):
            with open(path, encoding="utf-8") as file:
                device = json.load(file)["device"]
            self.assertEqual(os.path.basename(path), device["name"] + ".json")
            there[device["name"]] = (device["memory_bytes"], device["reserved_bytes"])
        self.assertEqual(described, there)

    def test_exit_codes(self):
        """The codes that the status table gives out are the ones described, and those of --help."""
        with open(os.path.join(ROOT, "include/planc/status.h"), encoding="utf-8") as file:
            given = set(re.findall(r"^  X\([A-Z_]+, (\d)", file.read(), re.M))
        described = sections(page("planc.1"), "SH")["EXIT STATUS"]
        self.assertEqual(set(re.findall(r"^(\d)  ", described, re.M)), given)
        self.assertEqual(set(re.findall(r"[:,] (\d) ", run("planc --help").stdout.split("exit")[1])), given)


class Examples(unittest.TestCase):
    def test_every_example_runs(self):
        for program in PROGRAMS:
            blocks = code_blocks(sections(page(program + ".1"), "SH")["EXAMPLES"])
            self.assertTrue(blocks, program)
            for block in blocks:
                with self.subTest(block=block), tempfile.TemporaryDirectory() as folder:
                    for name in ("graphs", "tests"):
                        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
                    done = run("set -e\n" + block, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_tour_in_the_readme_runs(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            blocks = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
        tour = [block.replace("build/", "") for block in blocks if block.startswith("    build/")]
        self.assertEqual(len(tour), 2)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("graphs", "tests"):
                os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
            for block in tour:
                with self.subTest(block=block):
                    done = run("set -e\n" + block, cwd=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_graph_of_the_format_s_page_is_one(self):
        for block in code_blocks(sections(page("planc-graph.5"), "SH")["SYNOPSIS"]):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "graph.yaml"), "w", encoding="utf-8") as file:
                    file.write(block)
                done = run("planc plan graph.yaml --device k40m -o - | planc check /dev/stdin", cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
