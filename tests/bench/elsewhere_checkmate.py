"""Reads a graph of Checkmate's evaluation, or a random layered one, as another project's solver has them: NetworkX
node-link JSON.

Each node is an op with one output of `cost_ram` bytes that takes `cost_cpu`; of a random graph `out_cost` counts 256 bytes
and `duration` is the time. The nodes' order is that of the graph's `order`, else that of the file. Times are in a unit of
the file's own: it is taken as that power of ten of nanoseconds with which an iteration takes 1 to 10 s.

The rules of that problem: each output is kept or dropped, an op's inputs and output are in memory when it runs, an op runs
at most twice, and nothing is swapped. planc knows no limit of runs: whoever compares counts them.
"""

import os

from elsewhere_iteration import BadData, Iteration, first_class
from from_recording import load
from graphfile import legal_name
from recording import BadRecording, Fields

RANDOM_UNIT_BYTES = 256
# By parts of the names of Keras's layers; the first row that fits holds.
CLASSES = (("norm", ("bn", "batch_norm")), ("elementwise", ("relu", "act")), ("copy", ("pad", "crop", "reshape")),
           ("pool", ("pool", "up_sampling")), ("conv", ("conv",)), ("gemm", ("fc", "dense", "predictions")))


def size(fields, key):
    if key not in fields.value:
        fields.fail(key, "is missing")
    return fields.size(key)


class Node:
    def __init__(self, fields, place):
        self.random = "out_cost" in fields.value
        self.id = size(fields, "name" if self.random else "id")
        if self.random:
            self.name, self.backward = f"n{self.id}", False
            self.bytes, self.cost = size(fields, "out_cost") * RANDOM_UNIT_BYTES, size(fields, "duration")
            if size(fields, "param_cost"):
                fields.fail("param_cost", "only 0 is known")
        else:
            self.name, self.backward = fields.text("name"), fields.value.get("backward")
            self.bytes, self.cost = size(fields, "cost_ram"), size(fields, "cost_cpu")
            if not self.name or not isinstance(self.backward, bool):
                raise BadData(f"{place}: a name and whether it is backward are expected")
        if not self.bytes:
            raise BadData(f"{place}: an output of 0 bytes")
        self.inputs = []

    def type(self):
        return legal_name("checkmate." + ("node" if self.random else self.name))


def in_order(nodes, order):
    """The nodes in execution order: every input before its reader, the forward nodes before the backward ones."""
    if order is None:
        order = list(nodes)
    if not isinstance(order, list) or any(type(id) is not int for id in order) or sorted(order) != sorted(nodes):
        raise BadData("graph: order: each node once is expected")
    done, backward = set(), False
    for id in order:
        node = nodes[id]
        if not done.issuperset(node.inputs):
            raise BadData(f"{legal_name(node.name)} comes before what it reads")
        if backward and not node.backward:
            raise BadData(f"{legal_name(node.name)} is a forward node behind a backward one")
        done.add(id)
        backward = node.backward
    return [nodes[id] for id in order]


def read_nodes(fields):
    nodes = {}
    for i, of in enumerate(fields.objects("nodes")):
        node = Node(of, f"nodes[{i}]")
        if node.id in nodes:
            raise BadData(f"nodes[{i}]: {node.id} is there twice")
        nodes[node.id] = node
    for link in fields.objects("links"):
        source, target = (size(link, key) for key in (("source", "target") if "source" in link.value else ("0", "1")))
        if source not in nodes or target not in nodes or source in nodes[target].inputs:
            raise BadData(f"{link.place}: a link of two nodes, stated once, is expected")
        nodes[target].inputs.append(source)
    return nodes


def unit_of(cost):
    """A unit of time in nanoseconds, as numerator and denominator."""
    up, down = 1, 1
    while 0 < cost * up < 10**9:
        up *= 10
    while cost >= down * 10**10:
        down *= 10
    return up, down


def read(path):
    try:
        fields = Fields(load(path), "the file")
        header = Fields(fields.value.get("graph", {}), "graph")
        nodes = read_nodes(fields)
    except BadRecording as error:
        raise BadData(str(error)) from error
    ordered = in_order(nodes, header.value.get("order"))
    if not ordered:
        raise BadData("nodes: a graph has one or more")
    name = os.path.basename(path).removesuffix(".json")
    up, down = unit_of(sum(node.cost for node in ordered))
    has_backward = any(node.backward for node in ordered)
    iteration = Iteration(name, f"{legal_name(name)}, by tests/bench/elsewhere.py. Times are the file's, times {up} / {down}.",
                          ["--no-swap"] + ([] if has_backward else ["--inference"]))
    iteration.runs_on("v100-32g", "none is stated: all outputs have room twice, and nothing is to be swapped", "checkmate",
                      2 * sum(node.bytes for node in ordered))
    names = {}
    for i, node in enumerate(ordered):
        names[node.id] = f"t{i}"
        iteration.storage(names[node.id], node.bytes)
    for i, node in enumerate(ordered):
        iteration.op(legal_name(f"{i}.{node.name}"), node.type(), [names[id] for id in node.inputs], [names[node.id]],
                     (node.cost * up + down // 2) // down, phase="backward" if node.backward else "forward",
                     class_=None if node.random else first_class(node.name, CLASSES))
    return iteration
