#!/usr/bin/env python3
"""`make install`: what it puts there works from there, and `make uninstall` takes it away."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import pythons
from sampling import TAKES_ALL

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PLANC_PROFILES", "PLANC_PYTHON", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
EMBEDDER = """
int main(int argc, char **argv) {
  planc_graph *graph;
  planc_status status = planc_graph_read(argv[argc - 1], &graph);
  if (status) return planc_exit_code(planc_status_code(status));
  planc_graph_free(graph);
  planc_plan *plan;
  planrt_session *session;
  planrt_options options = {0};
  status = planc_plan_read(argv[1], &plan);
  if (!status) status = planrt_session_new(plan, &options, &session);
  if (!status) planrt_session_free(session);
  planc_plan_free(plan);
  return planc_exit_code(planc_status_code(status));
}
"""
FOLLOW = """
import sys; sys.path.append(%r)
import small, planc_torch
step = planc_torch.follow(%r, small.step)
for _ in range(3):  # the first makes the momenta
    step(*small.example())
print(step.counts["iterations"] - step.counts["left"])
"""


def run(*command, cwd=None, **options):
    return subprocess.run(command, env={**ENVIRONMENT, **options}, capture_output=True, text=True, check=False, cwd=cwd)


PYTHON = pythons.with_torch()


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.to = os.path.join(cls.folder.name, "usr")
        cls.make("install", cls.folder.name)

    @staticmethod
    def make(target, folder):
        done = run("make", "-C", ROOT, f"BUILD={BUILD}", f"DESTDIR={folder}", "PREFIX=/usr", target)
        assert done.returncode == 0, done.stderr

    def test_the_source_tree_s_programs_find_what_comes_with_them(self):
        for program in (os.path.join(BUILD, "planc"), os.path.join(BUILD, "release", "planc")):
            if os.path.exists(program):
                done = run(program, "plan", os.path.join(ROOT, "graphs", "lenet-digits.yaml"), "--device", "k40m", "-o",
                           os.path.join(self.to, "x.plan"))
                self.assertEqual(done.returncode, 0, done.stderr)
                done = run(program, "torch", "none.py:step", PLANC_PYTHON=PYTHON or sys.executable)
                self.assertIn("none.py: no such file" if PYTHON else "has no PyTorch", done.stderr)

    def test_the_programs_find_their_devices(self):
        plan = os.path.join(self.folder.name, "x.plan")
        graph = os.path.join(ROOT, "tests/golden/inputs/tiny.yaml")
        done = run(os.path.join(self.to, "bin/planc"), "plan", graph, "--device", "p100", "-o", plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(os.path.join(self.to, "bin/planrun"), "exec", plan, "--synthetic")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_program_can_embed_the_libraries(self):
        for compiler, suffix in (("gcc -std=c11", "c"), ("g++ -std=c++17", "cpp")):
            with self.subTest(compiler):
                self.embed(compiler.split(), suffix)

    def embed(self, compiler, suffix):
        source, program = (os.path.join(self.folder.name, name) for name in (f"embed.{suffix}", "embed"))
        include = os.path.join(self.to, "include")
        headers = sorted(os.path.relpath(path, include) for path in glob.glob(include + "/*/*.h"))
        with open(source, "w", encoding="utf-8") as file:
            file.write("".join(f"#include <{header}>\n" for header in headers) + EMBEDDER)
        flags = run("pkg-config", "--cflags", "--libs", "planc",
                    PKG_CONFIG_PATH=os.path.join(self.to, "lib/pkgconfig"), PKG_CONFIG_SYSROOT_DIR=self.folder.name,
                    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
        self.assertEqual(flags.returncode, 0, flags.stderr)
        built = run(*compiler, "-Wall", "-Werror", "-o", program, source, *flags.stdout.split())
        self.assertEqual(built.returncode, 0, built.stderr)
        plan, graph = os.path.join(ROOT, "tests/data/plan/small.plan"), os.path.join(ROOT, "graphs/vgg16.yaml")
        self.assertEqual(run(program, plan, graph).returncode, 6)  # small.plan has foreign ops, which no backend runs
        self.assertEqual(run(program, graph, graph).returncode, 3)
        self.assertEqual(run(program, plan, source).returncode, 3)

    def step(self, planc, **options):
        """A step planned and followed by what is installed, from another folder than the source tree's."""
        plan = os.path.join(self.folder.name, "small.plan")
        done = run(planc, "torch", os.path.join(ROOT, "tests/data/torch/small.py") + ":step", "--budget", "80%", "-o", plan, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return plan

    @unittest.skipUnless(PYTHON, "skipped: no Python here has PyTorch (Debian: python3-torch)")
    def test_a_pytorch_step_is_planned_and_followed(self):
        plan = self.step(os.path.join(self.to, "bin/planc"), PLANC_PYTHON=PYTHON)
        follow = FOLLOW % (os.path.join(ROOT, "tests/data/torch"), plan)
        done = run(PYTHON, "-B", "-c", follow, PYTHONPATH=os.path.join(self.to, "share/planc/python"))
        self.assertEqual((done.returncode, done.stdout), (0, "3\n"), done.stderr)

    @unittest.skipUnless(PYTHON, "skipped: no Python here has PyTorch (Debian: python3-torch)")
    def test_so_it_is_by_the_package_alone(self):
        at = os.path.join(self.folder.name, "site")
        if not TAKES_ALL:  # as `make torch-extension` has compiled it by the same line, which takes longest of all
            os.makedirs(os.path.join(at, "planc_torch"))
            for file in glob.glob(os.path.join(BUILD, "plain_calls-*.so")):
                shutil.copy2(file, os.path.join(at, "planc_torch"))
        built = run(PYTHON, "setup.py", "-q", "build", "--build-base", os.path.join(self.folder.name, "work"), "--build-lib", at,
                    cwd=os.path.join(ROOT, "runtime/torch"), CFLAGS="-O0 -g0")
        self.assertEqual(built.returncode, 0, built.stderr)
        program = "import sys; from planc_torch.program import main; main()"
        plan = os.path.join(self.folder.name, "small.plan")
        done = run(PYTHON, "-B", "-c", program, "torch", os.path.join(ROOT, "tests/data/torch/small.py") + ":step", "--budget", "80%",
                   "-o", plan, PYTHONPATH=at)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(PYTHON, "-B", "-c", FOLLOW % (os.path.join(ROOT, "tests/data/torch"), plan), PYTHONPATH=at)
        self.assertEqual((done.returncode, done.stdout), (0, "3\n"), done.stderr)

    def test_the_libraries_neither_abort_nor_exit(self):
        for name in ("libplanc.a", "libplanrt.a"):
            with self.subTest(name):
                taken = run("nm", "--undefined-only", os.path.join(self.to, "lib", name))
                self.assertEqual(taken.returncode, 0, taken.stderr)
                names = {line.split()[-1] for line in taken.stdout.splitlines() if line}
                self.assertIn("malloc", names)
                self.assertEqual(names & {"__assert_fail", "abort", "exit", "_exit"}, set())

    def test_nothing_is_left_after_uninstall(self):
        with tempfile.TemporaryDirectory() as folder:
            for target, is_left in (("install", True), ("uninstall", False)):
                self.make(target, folder)
                left = [path for path in glob.glob(folder + "/**", recursive=True) if not os.path.isdir(path)]
                self.assertEqual(bool(left), is_left, left)


if __name__ == "__main__":
    unittest.main()
