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


def is_job_name(value):
    return is_name(value) and re.fullmatch("[a-zA-Z][-_a-zA-Z0-9]{0,62}", value) is not None


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
    return lambda value: type(value) is type(words[0]) and value in words


def is_region(value):
    return at_least(256)(value) and value % 256 == 0


TENSORS = is_list_of(is_size)
OR_NONE = at_least(-1)
# What a row has, in order: (key, test), and lists of these for what is optional together.
HEADER = [
    ("planc-plan", one_of(2)), ("name", is_name), ("policy", is_name), [("window", at_least(1))],
    [("workspace_limit", at_least(1))], [("window_per_use", one)], [("effort", at_least(1, 4))], [("reorder", one)],
    [("swap_rate", at_least(1, 1000000))], [("region", is_region)], [("split_size", at_least(1))],
    [("split_groups", at_least(1, 4096))], [("release_split", at_least(1))], [("split_relaxed", one)], [("split_variable", one)], [("pair_barriers", one)],
    [("no_swap", one)], [("no_recompute", one)], [("replicas", at_least(2, 4096))],
    ("memories", at_least(3, 256)), ("links", at_least(0, 4096)), ("graphs", is_count), ("tensors", is_count),
    ("ops", is_count), ("jobs", at_least(0, 256)), ("streams", at_least(0, 1024)),
    *((key, is_count) for key in ("algorithms", "boundary", "maps", "residencies", "events", "uses", "prologue", "body",
                                 "epilogue"))]
DEVICE = [("device", is_name), ("launch", is_size), ("in_flight", is_count),
          ("duplex", at_least(1, 1000000)), ("slowdown", is_count)]
STORE = [("bytes", OR_NONE), ("budget", OR_NONE), ("reserved", is_size), ("arena", is_size),
         ("align", lambda value: at_least(256, 2 ** 30)(value) and value % 256 == 0)]
MEMORIES = {
    "device": [("memory", is_name), ("gpu", is_count), *STORE, [("chunk", at_least(1)), ("maps", is_count), [("paged", one)]]],
    "host": [("memory", is_name), *STORE],
    "storage": [("memory", is_name), *STORE],
    "user": [("memory", is_name)]}
LINK = [("link", lambda value: is_list_of(is_size)(value) and len(value) == 2), ("engine", is_count), ("rate", at_least(1)),
        ("latency", is_size), [("bus", is_count)]]
PREDICTIONS = [(key, is_size) for key in ("period", "bound")]
HASH = ("hash", lambda value: type(value) is str and re.fullmatch("[0-9a-f]{16}", value))
GRAPH = [("graph", is_name), HASH, ("layout", one_of("NCHW", "NHWC")), ("tensors", is_size), ("ops", is_size),
         ("loss", OR_NONE), ("outputs", TENSORS)]
TYPED = [("dtype", one_of(*DTYPE_BYTES)), ("shape", is_list_of(is_law))]
TENSOR = [("tensor", is_name), ("kind", one_of(*KINDS)), *TYPED]
WINDOW = [("tensor", is_name), ("of", is_size), ("at", is_law), *TYPED]
OP = [("op", is_name), ("type", is_name), ("phase", one_of(*PHASES)), ("in", TENSORS), ("out", TENSORS),
      ("effects", TENSORS), ("attrs", lambda value: type(value) is dict), ("flops", is_law), ("traffic", is_law),
      ("flags", at_least(0, 31)), [("class", one_of(*CLASSES))], [("loop", is_name), ("step", is_size)]]
JOB = [("job", is_size), ("batch", at_least(1)), ("rounds", is_list_of(at_least(1))), ("iterations", at_least(1, MOST_COUNT)),
       *((key, is_size) for key in ("ideal", "busy", "stall")), [("priority", at_least(1, 5))],
       [("swap_rate", at_least(1, 1000000))], [("name", is_job_name)], [("order", TENSORS)]]
STREAMS = {"compute": [("stream", is_name), ("job", is_size), ("memory", is_size)],
           "copy": [("stream", is_name), ("job", is_size), ("engine", is_size)]}
ALGORITHM = [("algorithm", is_name)]
BOUNDARY = [("boundary", is_size), ("m", is_size), ("at", is_size)]
MAP = [("map", is_size), ("chunks", at_least(1))]
WHICH, RESIDENCY, BYTES, ON = ("i", is_name), ("r", is_size), ("bytes", is_size), ("s", is_size)
INSTRUCTIONS = {
    "acquire": [WHICH, RESIDENCY, ("b", is_size), ("m", is_size), ("at", is_size), BYTES],
    "release": [WHICH, RESIDENCY],
    "exec": [WHICH, ("n", is_size), [("re", one)], ("a", is_size), ON, ("ws", is_size), ("wsb", is_size), ("t", is_size),
             ("busy", is_size), ("use", is_list_of(OR_NONE))],
    "copy": [WHICH, ("r", OR_NONE), ("from", OR_NONE), [("peers", one)], BYTES, [("t", at_least(1))], ON],
    "record": [WHICH, ("e", is_size), ON],
    "wait": [WHICH, ("e", is_size), [("lag", one)], [("peers", one)], ON]}
# Of rows of several kinds, the key that says of which one is, and the form of each.
KINDS_OF = {"memory": ("memory", MEMORIES), "stream": ("stream", STREAMS), "instruction": ("i", INSTRUCTIONS)}
FORMS = {"header": HEADER, "device": DEVICE, "link": LINK, "predictions": PREDICTIONS, "graph": GRAPH, "op": OP, "job": JOB,
         "algorithm": ALGORITHM, "boundary": BOUNDARY, "map": MAP}


def dumps(row):
    """A row in the one form, but for real numbers. json's short escapes are not among those that plans have."""
    text = json.dumps(row, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r'\\([bfnrt"\\])', lambda match: ESCAPES.get(match[1], match[0]), text)


def takes(row, keys, form):
    """Takes the form's keys from these, in order."""
    for rule in form:
        if type(rule) is list:
            if keys and keys[0] == rule[0][0] and not takes(row, keys, rule):
                return False
        elif not keys or keys[0] != rule[0] or not rule[1](row[keys.pop(0)]):
            return False
    return True


def holds(row, form):
    keys = list(row)
    return takes(row, keys, form) and not keys


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
    if name in KINDS_OF:
        key, forms = KINDS_OF[name]
        return is_name(row.get(key)) and row[key] in forms and holds(row, forms[row[key]])
    if name == "tensor":
        return holds(row, TENSOR) or holds(row, WINDOW)
    return holds(row, FORMS[name])


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
            demand(row["of"] < number and tensors[row["of"]].kind, "a view of no storage")
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
    """The rows of a plan: the header, and lists of those that bear on its rules. Sections are lists of (line in the file,
    row). `devices`: how many memories are devices'. `user`: the number of the user's memory. `replicas`: 1 without."""

    def __init__(self, lines):
        self.lines = lines
        demand(lines and fits_form(lines[0], "header"), "line 1: no header")
        self.header = header = parse_row(lines[0])
        self.replicas = header.get("replicas", 1)
        counts = [1, 1, header["memories"], header["links"], 1, header["graphs"] + header["tensors"] + header["ops"],
                  *(header[key] for key in ("jobs", "streams", "algorithms", "boundary", "maps", "prologue", "body",
                                            "epilogue"))]
        demand(len(lines) == sum(counts), "line 1: other rows than the header counts")
        parts, at = [], 0
        for count in counts:
            parts.append(range(at, at + count))
            at += count
        self.device, = self.rows(parts[1], "device")
        self.memories = self.rows(parts[2], "memory")
        self.links = self.rows(parts[3], "link")
        self.predictions, = self.rows(parts[4], "predictions")
        self.graph_lines = tuple(lines[parts[5].start:parts[5].stop])
        self.graphs = read_graphs(self.graph_lines, header["graphs"])
        demand(sum(len(graph.tensors) for graph in self.graphs) == header["tensors"], "another number of tensors")
        self.jobs = self.rows(parts[6], "job")
        demand("split_size" not in header or "split_groups" not in header, "line 1: a size of node groups and a number")
        demand("swap_rate" not in header or not any("swap_rate" in job for job in self.jobs), "a swap rate of its own")
        self.streams = self.rows(parts[7], "stream")
        self.rows(parts[8], "algorithm")
        self.boundary = self.rows(parts[9], "boundary")
        self.maps = self.rows(parts[10], "map")
        self.prologue, self.body, self.epilogue = (
            list(zip(range(part.start + 1, part.stop + 1), self.rows(part, "instruction"), strict=True))
            for part in parts[11:])
        self.check_memories()
        self.check_links()
        self.check_counts()

    def rows(self, part, name):
        for line in part:
            demand(fits_form(self.lines[line], name), f"line {line + 1}: no {name} row")
        return [parse_row(self.lines[line]) for line in part]

    def check_memories(self):
        kinds = [row["memory"] for row in self.memories]
        self.devices, self.user = kinds.count("device"), len(kinds) - 1
        others = kinds[self.devices:]
        demand(self.devices and kinds[:self.devices] == ["device"] * self.devices and
               others in (["host", "user"], ["host", "storage", "user"]), "other memories, or another order")
        demand(all(row["gpu"] == at for at, row in enumerate(self.memories[:self.devices])), "GPUs in another order")
        demand(sum(row.get("maps", 0) for row in self.memories) == len(self.maps), "another number of map rows")

    def check_links(self):
        buses, ways = {}, set()
        for row in self.links:
            way = *row["link"], row["engine"]
            demand(max(row["link"]) <= self.user, "a link of a memory that there is not")
            demand(way[0] != way[1] and way not in ways, "a link from a memory to itself, or one that there is already")
            demand(row.get("bus", 0) < len(self.links), "a bus with a number beyond those of links")
            demand(buses.setdefault(row["engine"], row.get("bus")) == row.get("bus"), "an engine on several buses")
            ways.add(way)
        self.engines = len(buses)
        demand(set(buses) == set(range(self.engines)), "engines with gaps")

    def check_counts(self):
        header = self.header
        instructions = self.prologue + self.body + self.epilogue
        demand(max(header["residencies"], header["events"]) <= len(instructions), "line 1: too many")
        demand(sum(len(row.get("use", ())) for _, row in instructions) == header["uses"], "line 1: another number of uses")
        first = []
        for job in self.jobs:
            demand(job["job"] < header["graphs"], "a graph that there is not")
            if job["job"] not in first:
                first.append(job["job"])
        demand(first == list(range(header["graphs"])), "graphs are numbered as jobs first name them")
        names = [job["name"] for job in self.jobs if "name" in job]
        demand(len(set(names)) == len(names), "rule 1: two jobs of one name")
        for stream in self.streams:
            demand(stream["job"] < header["jobs"], "a stream of no job")
            demand(stream.get("memory", 0) < self.devices, "a compute stream of no device")
            demand(stream.get("engine", -1) < self.engines, "a copy stream of no engine")
        demand(all(row["m"] < header["memories"] for row in self.boundary), "a boundary row's memory")
        most = {"r": header["residencies"], "from": header["residencies"], "e": header["events"], "s": header["streams"],
                "a": header["algorithms"], "m": header["memories"]}
        for line, row in instructions:
            demand(self.replicas > 1 or "peers" not in row, f"line {line}: rule 1: peers without replicas")
            for key, bound in most.items():
                demand(row.get(key, -1) < bound, f"line {line}: {key} is not within what the header counts")
            demand(all(use < header["residencies"] for use in row.get("use", ())), f"line {line}: use")
