#!/usr/bin/env python3
"""The work of `planc check` grows as the plan's length does, also with virtual memory: it looks at the pieces that data lies in
when that is written first, not at each access. So a limit on what is acquired is enough."""

import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
sys.path.insert(0, os.path.join(ROOT, "tests", "second"))
import benchlib  # noqa: E402
import checker  # noqa: E402
from foldertest import FolderCase  # noqa: E402

CHUNK = 256
SMALL, TIMES = 500, 4
MOST = 1.25  # work per row of the large plan against that of the small one; one look at each piece per access makes it 4


def graph(n_ops, n_chunks):
    """Ops that read one tensor of so many chunks, each."""
    rows = ["planc-graph: 1", f"name: readers{n_ops}", "batch: 1", "device: k40m", "outputs: [y0]", "tensors:",
            f"  w: param f32[{n_chunks * CHUNK // 4}]", "  x: input f32[N,64]"]
    rows += [f"  y{i}: f32[N,64]" for i in range(n_ops)]
    rows += ["ops:", "  - {op: f0, type: my.op, in: [x, w], out: [y0]}"]
    rows += [f"  - {{op: f{i}, type: my.op, in: [y{i - 1}, w], out: [y{i}]}}" for i in range(1, n_ops)]
    return "\n".join(rows) + "\n"


def with_workspaces(text, n_chunks):
    """The plan with so much workspace for each op, in bytes behind its arena."""
    arena = int(re.search(r'"arena":(\d+),', text)[1])
    text = text.replace(f'"arena":{arena},', f'"arena":{arena + n_chunks * CHUNK},', 1)
    return text.replace('"ws":0,"wsb":0', f'"ws":{arena},"wsb":{n_chunks * CHUNK}')


def mapped(text):
    """The plan with the chunks of its arena in reverse order, each mapped by a row of its own."""
    n = int(re.search(r'"arena":(\d+),', text)[1]) // CHUNK
    text = re.sub(r'("memory":"device",.*"align":256)}', rf'\1,"chunk":{CHUNK},"maps":{n}}}', text, count=1)
    text = text.replace('"maps":0', f'"maps":{n}', 1)
    rows = "".join(f'{{"map":{n - 1 - k},"chunks":1}}\n' for k in range(n))
    first = re.search(r'^{"i":', text, re.M).start()
    return text[:first] + rows + text[first:]


class CheckGrowth(FolderCase):
    def plan(self, n_ops, n_chunks, n_workspace=0):
        source = self.put("x.yaml", graph(n_ops, n_chunks).encode())
        path = self.path("x.plan")
        subprocess.run([benchlib.PLANC, "plan", source, "--inference", "--policy", "none", "-o", path], check=True,
                       capture_output=True)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = mapped(with_workspaces(text, n_workspace) if n_workspace else text)
        return self.put("mapped.plan", text.encode())

    def judged(self, path):
        """As planc and the second checker do."""
        done = subprocess.run([benchlib.PLANC, "check", path], capture_output=True, text=True)
        return done.returncode, done.stderr, checker.why_not(checker.read_lines(path))

    def work_per_row(self, *sizes):
        path = self.plan(*sizes)
        with open(path, encoding="utf-8") as file:
            return benchlib.counted_work("check", path) / len(file.readlines())

    def test_accesses_to_many_pieces(self):
        small, large = self.work_per_row(SMALL, SMALL), self.work_per_row(SMALL * TIMES, SMALL * TIMES)
        self.assertLess(large / small, MOST)

    def test_more_pieces_than_there_may_be(self):
        self.assertEqual(self.judged(self.plan(5, 1, 7)), (0, "", None))
        path = self.plan(4096, 1, 4096)
        self.assertEqual(self.judged(path),
                         (1, f"planc: {path}: residencies and workspaces lie in more than {2**24} pieces of memory: it needs "
                          "larger chunks\n", "rule 2: too many map rows"))


if __name__ == "__main__":
    unittest.main()
