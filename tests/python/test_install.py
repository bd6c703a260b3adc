#!/usr/bin/env python3
"""`make install`: what it puts there works from there, and `make uninstall` takes it away."""

import glob
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("PLANC_PROFILES", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
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


def run(*command, **options):
    return subprocess.run(command, env={**ENVIRONMENT, **options}, capture_output=True, text=True, check=False)


class Install(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.to = os.path.join(self.folder.name, "usr")
        self.make("install")

    def make(self, target):
        done = run("make", "-C", ROOT, f"BUILD={BUILD}", f"DESTDIR={self.folder.name}", "PREFIX=/usr", target)
        self.assertEqual(done.returncode, 0, done.stderr)

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
        flags = run("pkg-config", "--cflags", "--libs", "--static", "planc",
                    PKG_CONFIG_PATH=os.path.join(self.to, "lib/pkgconfig"), PKG_CONFIG_SYSROOT_DIR=self.folder.name,
                    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
        self.assertEqual(flags.returncode, 0, flags.stderr)
        built = run(*compiler, "-Wall", "-Werror", "-o", program, source, *flags.stdout.split())
        self.assertEqual(built.returncode, 0, built.stderr)
        plan, graph = os.path.join(ROOT, "tests/data/plan/small.plan"), os.path.join(ROOT, "graphs/vgg16.yaml")
        self.assertEqual(run(program, plan, graph).returncode, 6)  # small.plan has foreign ops, which no backend runs
        self.assertEqual(run(program, graph, graph).returncode, 3)
        self.assertEqual(run(program, plan, source).returncode, 3)

    def test_the_libraries_neither_abort_nor_exit(self):
        for name in ("libplanc.a", "libplanrt.a"):
            with self.subTest(name):
                taken = run("nm", "--undefined-only", os.path.join(self.to, "lib", name))
                self.assertEqual(taken.returncode, 0, taken.stderr)
                names = {line.split()[-1] for line in taken.stdout.splitlines() if line}
                self.assertIn("malloc", names)
                self.assertEqual(names & {"__assert_fail", "abort", "exit", "_exit"}, set())

    def test_nothing_is_left_after_uninstall(self):
        self.make("uninstall")
        left = [path for path in glob.glob(self.to + "/**", recursive=True) if not os.path.isdir(path)]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
