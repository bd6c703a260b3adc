"""What the tests of graphs/ share: a reader of planc-graph(5) as far as those files use it, and the demands that every
graph has to meet. The reader and the formulas are the tests' own, so that nothing is true by construction."""

import contextlib
import io
import json
import math
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAPHS = os.path.join(ROOT, "graphs")
sys.path.insert(0, GRAPHS)

DTYPE_BYTES = {"f32": 4, "bf16": 2, "i64": 8, "bool": 1, "u8": 1}
EXISTS_BEFORE = ("input", "param", "state")


def parse_law(text):
    match = re.fullmatch(r"(?:(\d+)\+)?(\d*)N|(\d+)", text)
    if match[3] is not None:
        return int(match[3]), 0
    return int(match[1] or 0), int(match[2] or 1)


def parse_flow(text):
    """A flow mapping or list of plain and quoted scalars, without look-ahead beyond one token."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^{}\[\],\s][^{}\[\],]*', text)
    position = 0

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def value(token):
        if token == "[":
            return items("]")
        if token == "{":
            return dict(items("}"))
        return json.loads(token) if token[0] == '"' else token.strip()

    def items(end):
        result = []
        while (token := take()) != end:
            if token == ",":
                continue
            if end == "}":
                key, _, rest = token.partition(": ")
                token = rest if rest.strip() else take()
                result.append((key.rstrip(": "), value(token)))
            else:
                result.append(value(token))
        return result

    return value(take())


class Tensor:
    def __init__(self, spec, tensors):
        kind, self.dtype, dims, of, start = re.fullmatch(r"(?:(\w+) )?(\w+)\[(.*?)\](?: of (\S+)(?: @ (\S+))?)?",
                                                         spec).groups()
        self.offset = parse_law(start or "0")
        self.dims = [parse_law(d) for d in dims.split(",")] if dims else []
        self.root = tensors[of].root if of else self
        self.kind = self.root.kind if of else kind or "activation"

    def bytes(self, n):
        return math.prod(f + p * n for f, p in self.dims) * DTYPE_BYTES[self.dtype]


class Graph:
    def __init__(self, text):
        self.header, self.tensors, self.ops = {}, {}, []
        for line in text.splitlines():
            if line.startswith("  - "):
                op = parse_flow(line[4:])
                for key in ("in", "out", "effects", "flags"):
                    op.setdefault(key, [])
                op.setdefault("attrs", {})
                op.setdefault("phase", "forward")
                self.ops.append(op)
            elif line.startswith("  "):
                name, _, spec = line.strip().partition(": ")
                assert name not in self.tensors, name
                self.tensors[name] = Tensor(spec, self.tensors)
            elif not line.startswith("#") and line.endswith(":"):
                continue
            elif not line.startswith("#"):
                key, _, value = line.partition(": ")
                assert key not in self.header, key
                self.header[key] = value

    def storages(self, *kinds):
        return [t for t in self.tensors.values() if t.root is t and (not kinds or t.kind in kinds)]

    def parameters(self):
        return sum(t.bytes(0) for t in self.storages("param")) // 4

    def of(self, name):
        return self.tensors[name]

    def forward_flops(self):
        """Of convolutions and matrix products, per sample; a given figure or two for every multiply-add."""
        total = 0
        for op in self.ops:
            if op["phase"] == "forward" and op["type"] in ("conv2d", "linear", "aten.addmm"):
                total += parse_law(op["flops"])[1] if "flops" in op else 2 * self.multiply_adds(op)
        return total

    def multiply_adds(self, op):
        """Of a forward convolution or linear op, per sample."""
        w, y = self.of(op["in"][1]), self.of(op["out"][0])
        return math.prod(f for f, _ in y.dims[1:]) * math.prod(f for f, _ in w.dims[1:])

    def liveness_peak(self, n):
        """The most bytes live at one op, from each storage's first to its last access; what exists before stays."""
        first, last = {}, {}
        for i, op in enumerate(self.ops):
            for name in op["in"] + op["out"] + op["effects"]:
                root = self.of(name).root
                first.setdefault(root, i)
                last[root] = i
        change = [0] * (len(self.ops) + 1)
        for root, i in first.items():
            if root.kind not in EXISTS_BEFORE:
                change[i] += root.bytes(n)
                change[last[root] + 1] -= root.bytes(n)
        return sum(t.bytes(n) for t in self.storages(*EXISTS_BEFORE)) + running_peak(change)


def running_peak(change):
    peak = live = 0
    for delta in change:
        live += delta
        peak = max(peak, live)
    return peak


def read(*path):
    with open(os.path.join(GRAPHS, *path), encoding="ascii") as file:
        return Graph(file.read())


def run(program, *arguments):
    """Exit code and messages of one of the two scripts."""
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages), contextlib.redirect_stdout(messages):
        try:
            code = program.main(list(arguments))
        except SystemExit as end:
            code = end.code
    return code, messages.getvalue()


class GraphTest(unittest.TestCase):
    def check_form(self, graph):
        """Names, phases and production order as planc-graph(5) demands."""
        for name in [*graph.tensors, *(op["op"] for op in graph.ops)]:
            self.assertRegex(name, r"\A(?![-?:;])[!-~]{1,255}(?<!:)\Z")
            self.assertFalse(set(name) & set("\"\\,[]{}#&*!|>'%@`"), name)
        names = [op["op"] for op in graph.ops]
        self.assertEqual(len(names), len(set(names)))
        phases = [("forward", "backward", "optimizer").index(op["phase"]) for op in graph.ops]
        self.assertEqual(phases, sorted(phases))
        written = {t for t in graph.storages(*EXISTS_BEFORE)}
        for op in graph.ops:
            for name in op["in"] + op["effects"]:
                self.assertIn(graph.of(name).root, written, f"{op['op']} reads {name} before it is produced")
            for name in op["out"]:
                self.assertNotEqual(graph.of(name).kind, "input", op["op"])
                written.add(graph.of(name).root)
        self.assertEqual(set(graph.storages()) - written, set(), "storages that nothing produces")
