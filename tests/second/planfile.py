"""Reads plans as planc-plan(5) gives their form: the rows, their keys in order, and what the header counts."""

import json
import re
from functools import lru_cache

MOST, MOST_COUNT = 2 ** 53, 2 ** 31 - 1
DTYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "u8": 1, "bool": 1}
KINDS = ("input", "param", "state", "grad", "activation", "temp")
PHASES = ("forward", "backward", "optimizer")
CLASSES = ("conv", "gemm", "elementwise", "reduction", "norm", "pool", "optimizer", "copy")


ESCAPES = {"b": "\\u0008", "t": "\\u0009", "n": "\\u000a", "f": "\\u000c", "r": "\\u000d"}


class Wrong(Exception):
    """Why a plan is not valid."""


def demand(holds, what):
    if not holds:
        raise Wrong(what)


def whole(value):
    return type(value) is int and -MOST <= value <= MOST


def is_size(value):
    return whole(value) and value >= 0


def is_count(value):
    return is_size(value) and value <= MOST_COUNT


def is_name(value):
    return type(value) is str


def is_list_of(test):
    return lambda value: type(value) is list and all(map(test, value))


@lru_cache(maxsize=None)
def law(text):
    """A size law as (fixed, per sample), None where it is none."""
    if is_size(text):
        return text, 0
    match = re.fullmatch(r"(?:([1-9]\d*)\+)?([1-9]\d*)?N", text) if is_name(text) else None
    if not match or match[2] == "1":
        return None
    return int(match[1] or 0), int(match[2] or 1)


def is_law(value):
    return type(value) in (int, str) and law(value) is not None


def one(value):
    return type(value) is int and value == 1


def at_least(least, most=MOST):
    return lambda value: whole(value) and least <= value <= most


def one_of(*words):
    return lambda value: type(value) is str and value in words


TENSORS = is_list_of(is_size)
HEADER = [
    ("planc-plan", one), ("name", is_name), ("policy", is_name), ["window", at_least(1)],
    ["workspace_limit", at_least(1)], ["window_per_use", one], ["swap_rate", at_least(1, 1000000)],
    ["no_swap", one], ["no_recompute", one],
    ("hash", lambda value: type(value) is str and re.fullmatch("[0-9a-f]{16}", value)),
    ("budget", is_size), ("host_budget", at_least(-1)), ("arena", is_size), ("host_arena", is_size),
    ["chunk", at_least(1)], ["mappings", is_count], ["paged", one], ("gpus", at_least(1, 256)), ["shared_link", one],
    *((key, is_count) for key in ("graphs", "tensors", "ops", "jobs", "streams", "algorithms", "boundary", "residencies",
                                 "events", "uses", "prologue", "body", "epilogue"))]
LINK = is_list_of(is_size)
DEVICE = [("device", is_name), ("memory", is_size), ("reserved", is_size), ("launch", is_size), ("in_flight", is_count),
          ("h2d", LINK), ("d2h", LINK), ("duplex", is_size), ("slowdown", is_size)]
PREDICTIONS = [(key, is_size) for key in ("iteration", "ideal", "bound", "peak", "host_peak", "d2h", "h2d", "recompute",
                                          "stall")]
GRAPH = [("graph", is_name), ("layout", one_of("NCHW", "NHWC")), ("tensors", is_size), ("ops", is_size),
         ("loss", at_least(-1)), ("outputs", TENSORS)]
TYPED = [("dtype", one_of(*DTYPE_BYTES)), ("shape", is_list_of(is_law))]
TENSOR = [("tensor", is_name), ("kind", one_of(*KINDS)), *TYPED]
WINDOW = [("tensor", is_name), ("of", is_size), ("at", is_law), *TYPED]
OP = [("op", is_name), ("type", is_name), ("phase", one_of(*PHASES)), ("in", TENSORS), ("out", TENSORS),
      ("effects", TENSORS), ("attrs", lambda value: type(value) is dict), ("flops", is_law), ("traffic", is_law),
      ("flags", lambda value: whole(value) and 0 <= value < 32),
      ["class", one_of(*CLASSES)], ["loop", is_name], ["step", is_size]]
JOB = [("job", is_size), ("batch", at_least(1)), ("rounds", is_list_of(at_least(1))), ("iterations", at_least(1, MOST_COUNT)),
       ["replica", is_size], ["replicas", at_least(2)], ["order", TENSORS]]
STREAM = [("stream", one_of("compute", "h2d", "d2h")), ("job", is_size), ("gpu", is_size)]
ALGORITHM = [("algorithm", is_name)]
BOUNDARY = [("boundary", is_size), ("at", is_size)]
HOME = [("boundary", is_size), ("home", is_size)]
MAP = [("map", is_size), ("chunks", at_least(1))]
RESIDENCY, BYTES, ON = ("r", is_size), ("bytes", is_size), ("s", is_size)
INSTRUCTIONS = {
    "acquire": [RESIDENCY, ("b", is_size), ("at", is_size), BYTES],
    "release": [RESIDENCY],
    "exec": [("n", is_size), ["re", one], ("a", is_size), ON, ("ws", is_size), ("wsb", is_size), ("t", is_size),
             ("busy", is_size), ("use", is_list_of(at_least(-1)))],
    "offload": [RESIDENCY, ("h", at_least(-1)), BYTES, ON],
    "prefetch": [RESIDENCY, ("h", at_least(-1)), BYTES, ON],
    "move": [RESIDENCY, ("from", is_size), BYTES, ON],
    "record": [("e", is_size), ON],
    "wait": [("e", is_size), ("lag", lambda value: type(value) is int and value in (0, 1)), ON]}
FORM_OF_INSTRUCTION = {name: [("i", is_name), *form] for name, form in INSTRUCTIONS.items()}
TOGETHER = (("chunk", "mappings"), ("loop", "step"), ("replica", "replicas"))


def dumps(row):
    """A row in the one form, but for real numbers. json's short escapes are not among those that plans have."""
    text = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r'\\([bfnrt"\\])', lambda match: ESCAPES.get(match[1], match[0]), text)


def holds(row, form):
    """Optional keys, the lists among the form's rows, may be left out."""
    keys = list(row)
    for rule in form:
        if keys and keys[0] == rule[0]:
            if not rule[1](row[keys.pop(0)]):
                return False
        elif type(rule) is tuple:
            return False
    return not keys and all((a in row) == (b in row) for a, b in TOGETHER) and ("chunk" in row or "paged" not in row)


@lru_cache(maxsize=200000)
def parse_row(line):
    """The row that a line holds, which must be in the one form."""
    try:
        row = json.loads(line)
    except ValueError:
        raise Wrong("not a JSON object") from None
    demand(type(row) is dict, "not a JSON object")
    reals = any(type(value) is float for value in row.get("attrs", {}).values()) if "op" in row else False
    demand("\\u0000" not in line, "a character that is none of text")
    demand(reals or dumps(row) == line, "not in the one form")
    return row


@lru_cache(maxsize=200000)
def fits_form(line, name):
    row = parse_row(line)
    if name == "instruction":
        return row.get("i") in FORM_OF_INSTRUCTION and holds(row, FORM_OF_INSTRUCTION[row["i"]])
    if name == "tensor":
        return holds(row, TENSOR) or holds(row, WINDOW)
    if name == "boundary":
        return holds(row, BOUNDARY) or holds(row, HOME)
    return holds(row, {"header": HEADER, "device": DEVICE, "predictions": PREDICTIONS, "graph": GRAPH, "op": OP,
                       "job": JOB, "stream": STREAM, "algorithm": ALGORITHM, "map": MAP}[name])


class Tensor:
    """A tensor's storage, the tensor itself where it has one of its own, and the bytes of it that it covers."""

    def __init__(self, number, row, tensors):
        self.kind, self.storage, self.at = row.get("kind"), number, (0, 0)
        fixed, per_sample = DTYPE_BYTES[row["dtype"]], 0
        for size in map(law, row["shape"]):
            demand(not (per_sample and size[1]), "a shape that depends on the batch twice")
            fixed, per_sample = fixed * size[0], fixed * size[1] + per_sample * size[0]
        self.bytes = fixed, per_sample
        if "of" in row:
            demand(row["of"] < number and tensors[row["of"]].kind, "a window on no storage")
            self.storage, self.at, self.kind = row["of"], law(row["at"]), None

    def size(self, batch):
        return self.bytes[0] + self.bytes[1] * batch


class Graph:
    def __init__(self, row, tensors, ops):
        self.tensors, self.ops = [], ops
        for number, tensor in enumerate(tensors):
            self.tensors.append(Tensor(number, tensor, self.tensors))
        named = [t for op in ops for t in op["in"] + op["out"] + op["effects"]] + row["outputs"] + [row["loss"]]
        demand(all(t < len(tensors) for t in named), "a tensor that the graph does not have")
        self.results = {self.tensors[t].storage for t in row["outputs"] + [row["loss"]] if t >= 0}


def states_class(op):
    """Whether the class of this op, which states one, is another than it would be of without."""
    return "." in op["type"] and op["class"] != ("gemm" if any(law(op["flops"])) else "elementwise")


@lru_cache(maxsize=64)
def read_graphs(lines, count):
    """The graphs of these lines."""
    graphs, at = [], 0
    for _ in range(count):
        demand(at < len(lines) and fits_form(lines[at], "graph"), "no graph row")
        row = parse_row(lines[at])
        tensors, ops = lines[at + 1:at + 1 + row["tensors"]], lines[at + 1 + row["tensors"]:][:row["ops"]]
        demand(len(tensors) == row["tensors"] and all(fits_form(line, "tensor") for line in tensors), "a tensor's row")
        demand(len(ops) == row["ops"] and all(fits_form(line, "op") for line in ops), "an op's row")
        ops = [parse_row(line) for line in ops]
        demand(all(states_class(op) for op in ops if "class" in op), "a class of an op that has it without, or another")
        graphs.append(Graph(row, [parse_row(line) for line in tensors], ops))
        at += 1 + len(tensors) + len(ops)
    demand(at == len(lines), "tensors or ops that no graph has")
    return graphs


class Plan:
    """The rows of a plan: of the header, the device, the predictions, and lists of the others by kind. Sections are lists
    of (line in the file, row)."""

    def __init__(self, lines):
        self.lines = lines
        demand(lines and fits_form(lines[0], "header"), "line 1: no header")
        self.header = header = parse_row(lines[0])
        counts = [1, 1, 1, header["graphs"] + header["tensors"] + header["ops"],
                  *(header[key] for key in ("jobs", "streams", "algorithms", "boundary")), header.get("mappings", 0),
                  *(header[key] for key in ("prologue", "body", "epilogue"))]
        demand(len(lines) == sum(counts), "line 1: other rows than the header counts")
        parts, at = [], 0
        for count in counts:
            parts.append(range(at, at + count))
            at += count
        self.first_job_line = parts[4].start
        self.device, self.predictions = (self.rows(parts[k], name)[0] for k, name in ((1, "device"), (2, "predictions")))
        self.graph_lines = tuple(lines[parts[3].start:parts[3].stop])
        self.graphs = read_graphs(self.graph_lines, header["graphs"])
        demand(sum(len(graph.tensors) for graph in self.graphs) == header["tensors"], "another number of tensors")
        self.jobs = self.rows(parts[4], "job")
        self.streams = self.rows(parts[5], "stream")
        self.algorithms = self.rows(parts[6], "algorithm")
        self.boundary = self.rows(parts[7], "boundary")
        self.maps = self.rows(parts[8], "map")
        self.prologue, self.body, self.epilogue = (
            list(zip(range(part.start + 1, part.stop + 1), self.rows(part, "instruction"), strict=True))
            for part in parts[9:])
        self.check_counts()

    def rows(self, part, name):
        for line in part:
            demand(fits_form(self.lines[line], name), f"line {line + 1}: no {name} row")
        return [parse_row(self.lines[line]) for line in part]

    def check_counts(self):
        header = self.header
        instructions = self.prologue + self.body + self.epilogue
        demand(len(self.device["h2d"]) == len(self.device["d2h"]) == 2, "line 2: a link")
        demand(header["jobs"] <= 4096 and header["streams"] <= 256, "line 1: too many")
        demand(max(header["residencies"], header["events"]) <= len(instructions), "line 1: too many")
        demand(sum(len(row.get("use", ())) for _, row in instructions) == header["uses"], "line 1: another number of uses")
        first = []
        for job in self.jobs:
            demand(job["job"] < header["graphs"], "a graph that there is not")
            if job["job"] not in first:
                first.append(job["job"])
        demand(first == list(range(header["graphs"])), "graphs are numbered as jobs first name them")
        for stream in self.streams:
            demand(stream["job"] < header["jobs"] and stream["gpu"] < header["gpus"], "a stream of no job or GPU")
        most = {"r": header["residencies"], "from": header["residencies"], "e": header["events"], "s": header["streams"],
                "a": header["algorithms"]}
        for line, row in instructions:
            for key, bound in most.items():
                demand(row.get(key, -1) < bound, f"line {line}: {key} is not within what the header counts")
            demand(all(use < header["residencies"] for use in row.get("use", ())), f"line {line}: use")
