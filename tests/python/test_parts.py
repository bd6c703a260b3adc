"""Graphs in rounds, and on two GPUs, beside the same in one piece: what runs in parts ends with the same parameters, but for
how sums round, and what would not is refused. `planrun exec --verify` cannot tell: its reference runs in the same rounds."""

import os
import struct
import subprocess
import unittest

from foldertest import FolderCase

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
BATCH = 4
WHOLE = ["--sub-batch", BATCH]
PARTS = [["--sub-batch", 2], ["--sub-batch", 3], ["--gpus", 2, "--sub-batch", 2], ["--gpus", 2, "--sub-batch", 1]]
CLOSE = 1e-6  # of parameters of about 1

# A layer and its loss; cases add tensors, and ops between its gradient dw and that of the parameter, g.
TENSORS = """\
  x: input f32[N,4]
  t: input f32[N,4]
  w: param f32[4,4]
  y: f32[N,4]
  dy: f32[N,4]
  dw: temp f32[4,4]
  g: grad f32[4,4]
  loss: f32[]
"""
FORWARD = """\
  - {op: fc, type: linear, in: [x, w], out: [y]}
  - {op: l, type: mse, in: [y, t], out: [loss]}
  - {op: lg, type: mse_grad, phase: backward, in: [y, t], out: [dy]}
  - {op: wg, type: linear_wgrad, phase: backward, in: [x, dy], out: [dw]}
"""
END = "  - {op: u, type: sgd, phase: optimizer, in: [w, g], out: [w], attrs: {lr: 0.1}}\n"


def op(name, type, inputs, outputs, phase="backward", attrs=""):
    return f"  - {{op: {name}, type: {type}, phase: {phase}, in: [{inputs}], out: [{outputs}]{', attrs: {' + attrs + '}' if attrs else ''}}}\n"


def tensors(*lines):
    return "".join(f"  {line}\n" for line in lines)


TEMPS = tensors("a: temp f32[4,4]", "b: temp f32[4,4]")
PACKED = tensors("d: temp f32[8,4]", "d1: f32[4,4] of d", "d2: f32[4,4] of d @ 64")
TWICE = tensors("xx: input f32[2N,4]", "xa: f32[N,4] of xx", "xb: f32[N,4] of xx @ 16N", "c: f32[2N,4]", "ca: f32[N,4] of c",
                "cb: f32[N,4] of c @ 16N", "dw2: temp f32[4,4]")
LAST = op("o", "cast", "dw", "g")

EQUAL = {
    "as it is": ("", LAST),
    "scaled": ("", op("o", "affine", "dw", "g", attrs="scale: 0.5")),
    "times a fixed input": (tensors("c: input f32[4,4]"), op("o", "mul", "dw, c", "g")),
    "by linear ops": (TEMPS, op("p", "matmul_tn", "w, dw", "a") + op("q", "tanh_grad", "w, a", "b") + op("o", "add", "b, dw", "g")),
    "beside others in a storage": (PACKED, op("p", "cast", "dw", "d1") + op("q", "relu", "w", "d2") + op("o", "mul", "d1, d2", "g")),
    "written again in another shape": (tensors("d: temp f32[16]", "d1: f32[4,4] of d"),
                                       op("p", "cast", "dw", "d1") + op("q", "relu", "w", "d1") + op("o", "mul", "dw, d1", "g")),
    "samples behind a dimension of one": (tensors("xa: f32[1,N,4] of x", "ya: f32[1,N,4] of dy", "dw2: temp f32[4,4]"),
                                          op("p", "linear_wgrad", "xa, ya", "dw2") + op("o", "add", "dw, dw2", "g")),
    "two blocks of samples": (tensors("c: f32[2N,4]", "ca: f32[N,4] of c", "cb: f32[N,4] of c @ 16N", "dw2: temp f32[4,4]"),
                              op("p", "relu", "dy", "ca") + op("q", "relu", "x", "cb") +
                              op("r", "linear_wgrad", "cb, ca", "dw2") + op("o", "add", "dw, dw2", "g")),
    "a penalty that is a mean": (TEMPS + tensors("w0: state f32[4,4]"),
                                 op("p", "mse_grad", "w, w0", "a") + op("o", "add", "dw, a", "g")),
    "a small penalty": (tensors("v: param f32[2]", "v0: state f32[2]", "m: f32[]", "gv: grad f32[2]"),
                        op("p", "mse_grad", "v, v0", "gv") + LAST + op("uv", "sgd", "v, gv", "v", "optimizer", "lr: 0.1")),
}

REFUSED = {
    "decay": ("", op("o", "add", "dw, w", "g"), "does not add up"),
    "square": ("", op("o", "mul", "dw, dw", "g"), "does not add up"),
    "shift": ("", op("o", "affine", "dw", "g", attrs="scale: 0.5, shift: 0.1"), "does not add up"),
    "bias": (TEMPS + tensors("v: param f32[4]"), op("p", "linear", "w, dw, v", "a") + op("o", "cast", "a", "g"), "does not add up"),
    "no samples": ("", op("o", "cast", "w", "g"), "does not follow from samples"),
    "decay in one storage": (PACKED + tensors("v: param f32[8,4]", "gv: grad f32[8,4]"),
                             op("p", "cast", "dw", "d1") + op("q", "affine", "w", "d2", attrs="scale: 0.1") +
                             op("r", "cast", "d", "gv") + LAST, "the gradient gv does not add up"),
    "a state that goes on": (TEMPS + tensors("s: state f32[4,4]"),
                             op("p", "affine", "s", "s", attrs="scale: 0.9, shift: 1.0") + op("q", "mul", "dw, s", "a") +
                             op("o", "cast", "a", "g"), "the state s is written in each part"),
    "random weights": (TEMPS, op("p", "dropout", "w", "a", attrs="p: 0.5, seed: 1") + op("o", "mul", "dw, a", "g"),
                       "a is drawn anew"),
    "some samples": (tensors("xx: input f32[N,4,4]", "v: f32[4,4] of xx"), op("o", "mul", "dw, v", "g"),
                     "v is of some samples of xx alone"),
    "halves of an input": (TWICE, op("p", "linear_wgrad", "xa, dy", "dw2") + op("o", "add", "dw, dw2", "g"),
                           "have bytes in common"),
    "a whole of halves": (TWICE, op("p", "relu", "dy", "ca") + op("q", "relu", "x", "cb") +
                          op("r", "linear_wgrad", "xx, c", "dw2") + op("o", "add", "dw, dw2", "g"), "have bytes in common"),
    "cut samples": (TWICE + tensors("ea: f32[N,4]", "eb: f32[N,4]"),
                    op("p", "split", "xx", "ea, eb", attrs="axis: 0") + op("q", "linear_wgrad", "ea, dy", "dw2") +
                    op("o", "add", "dw, dw2", "g"), "it joins or cuts xx along the samples"),
    "joined samples": (tensors("c: f32[2N,4]", "xx: input f32[2N,4]", "dw2: temp f32[4,4]"),
                       op("p", "concat", "x, dy", "c", attrs="axis: 0") + op("q", "linear_wgrad", "xx, c", "dw2") +
                       op("o", "add", "dw, dw2", "g"), "it joins or cuts x along the samples"),
    "samples in columns": (tensors("h: input f32[3,N,4]", "k: f32[3,N,4]"), op("p", "relu", "h", "k") + LAST,
                           "the samples of h are not its rows"),
}

# A gradient straight from an op that adds its other outputs to what is there.
NORM = """\
planc-graph: 1
name: norm
loss: loss
tensors:
  x: input f32[N,4]
  t: input f32[N,4]
  w: param f32[4,4]
  gamma: param f32[4]
  beta: param f32[4]
  v: temp f32[4,4]
  mean: temp f32[4]
  invstd: temp f32[4]
  y: f32[N,4]
  loss: f32[]
ops:
  - {op: norm, type: layernorm, in: [w, gamma, beta], out: [v, mean, invstd]}
  - {op: fc, type: linear, in: [x, v], out: [y]}
  - {op: l, type: mse, in: [y, t], out: [loss]}
"""

SAME_LOSS = """\
planc-graph: 1
name: same
loss: loss
tensors:
  x: input f32[N,4]
  y: f32[N,4]
  w: param f32[4,4]
  t: state f32[4,4]
  m: temp f32[4]
  n: f32[]
  loss: f32[]
ops:
  - {op: r, type: relu, in: [x], out: [y]}
  - {op: p, type: mean, in: [w], out: [m]}
  - {op: q, type: mse, in: [w, t], out: [n]}
  - {op: o, type: mul, in: [n, n], out: [loss]}
"""


def run(program, *arguments):
    return subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)


class Parts(FolderCase):
    def graph(self, added, ops):
        text = f"planc-graph: 1\nname: g\nloss: loss\ntensors:\n{TENSORS}{added}ops:\n{FORWARD}{ops}{END}"
        return self.put("g.yaml", text.encode())

    def plan(self, graph, parts):
        return run("planc", "plan", graph, "--batch", BATCH, "--device", "k40m", "--policy", "none", *parts, "-o", self.path("x.plan"))

    def trained(self, graph, parts):
        """The parameters and states of each replica behind three iterations."""
        planned = self.plan(graph, parts)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        ran = run("planrun", "exec", self.path("x.plan"), "--iterations", 3, "--seed", 5, "--save", self.path("x.ckpt"))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(self.path("x.ckpt"), "rb") as file:
            values = file.read().partition(b"\n")[2][:-8]
        return struct.unpack(f"<{len(values) // 4}f", values)

    def assert_equal_in_parts(self, graph):
        whole = self.trained(graph, WHOLE)
        for parts in PARTS:
            replicas = self.trained(graph, parts)
            self.assertEqual(len(replicas) % len(whole), 0)
            for k, value in enumerate(replicas):
                self.assertAlmostEqual(value, whole[k % len(whole)], delta=CLOSE, msg=f"{parts}, value {k}")

    def test_what_adds_up_is_the_same(self):
        for name, case in EQUAL.items():
            with self.subTest(name):
                self.assert_equal_in_parts(self.graph(*case))

    def test_what_does_not_is_refused(self):
        for name, (added, ops, why) in REFUSED.items():
            with self.subTest(name):
                graph = self.graph(added, ops)
                whole = self.plan(graph, WHOLE)
                self.assertEqual(whole.returncode, 0, whole.stderr)
                for parts in PARTS:
                    refused = self.plan(graph, parts)
                    self.assertEqual(refused.returncode, 3, refused.stderr)
                    self.assertIn(why, refused.stderr)

    def test_a_gradient_that_is_written_over_beside_those_that_add_up(self):
        self.assert_equal_in_parts(self.put("norm.yaml", NORM.encode()))

    def test_a_loss_that_is_the_same_in_each_part(self):
        graph = self.put("same.yaml", SAME_LOSS.encode())
        self.assertEqual(self.plan(graph, ["--inference", *WHOLE]).returncode, 0)
        refused = self.plan(graph, ["--inference", *PARTS[0]])
        self.assertIn("what it makes of n", refused.stderr)


if __name__ == "__main__":
    unittest.main()
