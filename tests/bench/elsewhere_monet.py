"""Reads a problem of MONET's (Shah et al., ICLR 2021), as measured on a P100: a .json with the nodes of a training
iteration.

Its memory model. The forward nodes 0 to `loss` run once in order, stage 0; then each backward node has a stage of its
own, in which forward nodes may run again, each at most once and in order, before it runs, once. Between two nodes
there are: the parameters and the input, for good, and from the node on that makes them the parameters' gradients
(together `fixed_mem`); what a forward node made (`mem`), as long as it is kept; and what a backward node made until
its last reader, which is neither dropped nor made again. While a node runs there are also its inputs, its output and
its workspace. A convolution takes one of up to eight algorithms each time it runs; -1000 ms is one that does not run.
A batch norm takes another time where it runs again. A ReLU may run in place each time, which ends its input;
gradients of ReLUs, sums and views are made in place where that was measured: a workspace below 0 says how much of
what dies there the output reuses. Nothing is swapped. In the modes with `multiway` a backward node has several
`args`, of which it reads one: what its forward node read, or made, or (`newnode`) an intermediate that a node beside
it makes of that, a mask or indices, which runs only where its forward node does. Bytes are rounded up to KiB and
times to 10 us, which is the objective's unit; a budget of N GB is N GiB.

MONET's own inequalities charge more than that in three places: what a skip connection reads later counts while any
node below it runs, there or not; what a backward node reads and nobody reads later, still as its successor's stage
begins; the loss twice where it is read. elsewhere_monet_sums.py has these inequalities.

As a planc graph a node is an op and its output a tensor, or several where a part is reused in place and a part is
not. Backward nodes and intermediates are ops that must not run twice; an op without cost reads all gradients of
parameters at the end. It takes what the batch norms take longer the first time, which all do once. What planc's
format cannot say is chosen for all runs of an op before it is planned: which of its `args` a backward node reads
(`choice`, node by number), and whether a ReLU is in place, which it is where nothing else reads its input. Beside
that planc has what runs again take the algorithm of its first run, and gives out addresses, of which MONET knows
none. So a plan is a schedule of MONET's, unless it lives on what the inequalities charge beyond what is there, or has
ops of a stage run again in another order than MONET's; but not every schedule of MONET's is a plan.
"""

import csv
import math
import os

from elsewhere_iteration import MOST, BadData, Iteration, first_class
from from_recording import load
from graphfile import legal_name
from recording import BadRecording, Fields

KIB = 2**10
UNIT_NS = 10_000
ABSENT = -1000  # the time of an algorithm that does not run
# A Tesla P100 has 16 GB; what is reserved is none of MONET's budgets.
MEMORY_BYTES = 16 * 2**30
CLASSES = (("conv", ("conv",)), ("norm", ("norm",)), ("pool", ("pool",)), ("gemm", ("addmm",)),
           ("copy", ("cat", "flatten", "pad")))


def kib(size):
    """Bytes, as whole KiB."""
    return math.ceil(size / KIB) * KIB


def numbers(fields, key, length=None):
    value = fields.value.get(key)
    if not isinstance(value, list) or not value or any(type(v) not in (int, float) or not abs(v) < MOST for v in value):
        fields.fail(key, "a list of numbers is expected")
    if length is not None and len(value) != length:
        fields.fail(key, f"{length} numbers are expected")
    return value


class Node:
    """`ways` are what it reads instead of each other, and (units of 10 us, bytes of workspace) are `first`, `again` and
    `in_place`: where it has algorithms by algorithm, None for one that does not run, of other backward nodes by way."""

    def __init__(self, fields, at, loss, convolutions):
        self.id, self.op, self.intermediate = at, fields.text("op"), fields.text("kind") == "IntNode"
        if fields.value.get("id") != at or not self.op:
            raise BadData(f"{fields.place}: the nodes in order, each with its id and op, are expected")
        self.backward = at > loss
        self.bytes, self.fixed, self.local = (kib(fields.size(key)) for key in ("mem", "fixed_mem", "local_memory"))
        self.local_tensors = fields.list("local_tensors", at)
        self.ways = fields.value.get("args")
        if not isinstance(self.ways, list) or not self.ways or (len(self.ways) > 1 and not self.backward):
            fields.fail("args", "a list of lists, one only of a forward node, is expected")
        for way in self.ways:
            if not isinstance(way, list) or any(type(i) is not int or not 0 <= i < at for i in way):
                fields.fail("args", "nodes before this one are expected")
        self.first, self.again, self.in_place = (self.costs(fields, prefix) for prefix in ("", "rec_", "inpl_"))
        self.convolution = str(at) in convolutions

    @staticmethod
    def costs(fields, prefix):
        times = numbers(fields, prefix + "time_ms")
        spaces = numbers(fields, prefix + "ws_mem_MiB", len(times))
        return [None if time == ABSENT else (math.ceil(time * 100), math.ceil(space * KIB) * KIB)
                for time, space in zip(times, spaces)]


class Problem:
    def __init__(self, path):
        try:
            fields = Fields(load(path), "the file")
            self.loss = fields.size("loss")
            convolutions = Fields(fields.value.get("conv_list", {}), "conv_list").value
            self.nodes = [Node(of, i, self.loss, convolutions) for i, of in enumerate(fields.objects("nodes"))]
            over = Fields(fields.value.get("inplace_list", {}), "inplace_list").value
        except BadRecording as error:
            raise BadData(str(error)) from error
        if not 0 < self.loss < len(self.nodes) - 1 or not self.nodes[0].fixed:
            raise BadData("a loss with nodes before and after it, and fixed_mem of the first, are expected")
        self.name = os.path.basename(path).removesuffix(".json")
        for node in self.nodes:
            self.check(node)
        # What a node can be in place over.
        self.over = {node.id: over[str(node.id)] for node in self.nodes
                     if not node.backward and over.get(str(node.id)) in node.ways[0]}

    def check(self, node):
        place = f"nodes[{node.id}]"
        if node.convolution and (not any(node.first) or any(cost and cost[1] < 0 for cost in node.first)):
            raise BadData(f"{place}: an algorithm that runs, and no workspace below 0, are expected")
        few = len(node.first) < len(node.ways) or None in node.first + node.again + node.in_place
        if few and not node.convolution:
            raise BadData(f"{place}: a time and workspace for each of args are expected")
        if node.intermediate and (node.backward or len(node.ways[0]) != 1):
            raise BadData(f"{place}: an intermediate of one forward node is expected")

    def chosen(self, choice):
        """What each node reads, None of an intermediate that nobody reads. Without a choice it is what all ways have in
        common."""
        if choice is None:
            reads = [[u for u in node.ways[0] if all(u in way for way in node.ways)] for node in self.nodes]
        else:
            reads = [node.ways[choice.get(node.id, 0)] for node in self.nodes]
        wanted = {u for way in reads for u in way}
        return [None if node.intermediate and node.id not in wanted else way for node, way in zip(self.nodes, reads)]

    def choices(self):
        """Nodes with several ways, and how many each has."""
        return {node.id: len(node.ways) for node in self.nodes if len(node.ways) > 1}


class Layout:
    """In which storages the output of a node lies: lists of (name, bytes). A node in place has those of its input."""

    def __init__(self, problem, choice):
        self.problem, self.choice = problem, choice
        self.reads = problem.chosen(choice)
        self.readers = {}
        for v, way in enumerate(self.reads):
            for u in way or ():
                self.readers.setdefault(u, []).append(v)
        self.pieces, self.workspaces, self.inside = [], [], set()
        for node in problem.nodes:
            self.place(node)

    def cost(self, node):
        """(10 us, workspace) of a node that is no convolution, each time it runs."""
        if node.backward and self.choice is None:
            return tuple(map(min, zip(*node.first)))
        if node.backward:
            return node.first[self.choice.get(node.id, 0)]
        return (node.in_place if self.runs_in_place(node) else node.again)[0]

    def runs_in_place(self, node):
        """An intermediate does where its forward node does."""
        return node.id in self.inside or (node.intermediate and node.ways[0][0] in self.inside)

    def place(self, node):
        reused = self.reused(node) if self.reads[node.id] else []
        if reused and not node.backward and node.id in self.problem.over:
            self.inside.add(node.id)
        fresh = node.bytes - sum(size for _, size in reused)
        self.pieces.append(reused + ([(f"t{node.id}", fresh)] if fresh else []))
        self.workspaces.append(None if node.convolution else self.workspace(node, node.bytes - fresh))

    def workspace(self, node, reused):
        """Bytes beside inputs and output, what is reused counted once. What was measured of an intermediate beside a
        node in place has the bytes of that node's input off."""
        if node.intermediate and self.runs_in_place(node):
            return max(0, node.in_place[0][1] + self.problem.nodes[node.ways[0][0]].bytes)
        return max(0, self.cost(node)[1] + reused)

    def reused(self, node):
        """Storages of inputs that die here, as many as measured, and no more than the output has."""
        if node.id in self.problem.over and not node.intermediate:
            wanted = node.bytes
        else:
            wanted = 0 if node.convolution or node.intermediate else -self.cost(node)[1]
        taken, size = [], 0
        for u in sorted(self.reads[node.id], key=lambda u: self.problem.nodes[u].bytes != node.bytes):
            for piece in self.pieces[u] if self.dies(u, node) else ():
                if size < wanted and size + piece[1] <= node.bytes:
                    taken.append(piece)
                    size += piece[1]
        return taken


    def dies(self, u, node):
        """Whether a node is the last that reads what another of its own pass made."""
        if self.problem.nodes[u].backward != node.backward:
            return False
        return self.readers[u][-1] == node.id if node.backward else self.readers[u] == [node.id]


def name_of(node, part, piece):
    """Of the tensor that is a node's output in one of its storages: a view where another node made the storage."""
    return piece[0] if piece[0] == f"t{node.id}" else f"t{node.id}.{part}"


def iteration_of(problem, choice):
    """The problem as an iteration, with the ways of backward nodes that `choice` states, else their first ones. None:
    backward nodes read what all their ways have in common, in the least time, so that what is certified of it is so of
    every schedule of MONET's."""
    layout = Layout(problem, choice)
    heading = f"{legal_name(problem.name)} of MONET's problems, by tests/bench/elsewhere.py."
    iteration = Iteration(problem.name, heading, ["--no-swap"])
    iteration.runs_on("p100", "a Tesla P100 as MONET's paper has it: 16 GB", "monet", MEMORY_BYTES)
    iteration.storage("fixed", problem.nodes[0].fixed, "param")
    names = [[name_of(node, *part) for part in enumerate(layout.pieces[node.id])] for node in problem.nodes]
    kept = []
    for node in problem.nodes:
        if layout.reads[node.id] is None:
            continue
        for name, piece in zip(names[node.id], layout.pieces[node.id]):
            iteration.storage(name, piece[1], of=None if name == piece[0] else piece[0])
        writes = names[node.id]
        grown = node.fixed - problem.nodes[node.id - 1].fixed if node.id else 0
        if grown > 0:
            kept.append(f"g{node.id}")
            iteration.storage(kept[-1], grown)
            writes = writes + kept[-1:]
        reads = list(dict.fromkeys(name for u in layout.reads[node.id] for name in names[u]))
        once, kind = node.backward or node.intermediate, node.op.split("::")[-1]
        iteration.op(legal_name(f"{node.id}.{kind}"), legal_name("monet." + kind), reads if node.id else ["fixed"],
                     writes, phase="backward" if node.backward else "forward", flags=["no-recompute"] if once else (),
                     class_=first_class(node.op, CLASSES), **cost_of(node, layout))
    iteration.op("end", "monet.end", kept, [], first_runs(problem) * UNIT_NS, phase="backward")
    return iteration


def first_runs(problem):
    """How much longer all nodes together take the first time than again."""
    once = [node for node in problem.nodes if not node.backward and not node.convolution]
    longer = sum(node.first[0][0] - node.again[0][0] for node in once)
    if longer < 0:
        raise BadData(f"nodes take {-longer} units less the first time than again: no op takes less than nothing")
    return longer


def cost_of(node, layout):
    """The time and workspace of its op, or of each algorithm."""
    if not node.convolution:
        return {"ns": layout.cost(node)[0] * UNIT_NS, "workspace": layout.workspaces[node.id]}
    return {"ns": 0, "algorithms": {f"a{i}": (cost[0] * UNIT_NS, cost[1]) for i, cost in enumerate(node.first) if cost}}


def published(path):
    """What is published of a problem, in the tables beside it: by budget the objective and its bound in units of 10 us,
    None where there is none, and `status` where there is no objective."""
    stem, folder = os.path.basename(path).removesuffix(".json"), os.path.dirname(path)
    solved = {float(row["budget_GB"]): float(row["total_cost"])
              for row in table(folder, "solutions.tsv") if row["mode"] == stem}
    of_model = {}
    for row in table(folder, "gurobi_results.tsv"):
        if stem.endswith(f"_{row['batch']}_{row['mode']}"):
            of_model.setdefault(row["model"], {})[float(row["budget_GB"])] = row
    found = same_model(of_model, solved)
    if not solved and not found:
        raise BadData(f"{path}: nothing is told of its budgets in solutions.tsv and gurobi_results.tsv beside it")
    return {budget: told_of(found.get(budget, {}), solved.get(budget)) for budget in sorted({*solved, *found})}


def same_model(of_model, solved):
    """The rows of the model with the same objectives, as models have other names there; else of the only one."""
    for rows in of_model.values():
        if any(told_of(rows.get(budget, {}), None)["objective"] == cost for budget, cost in solved.items()):
            return rows
    return next(iter(of_model.values())) if len(of_model) == 1 else {}


def table(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def told_of(row, solved):
    objective = float(row["best_obj_10us"]) if row.get("best_obj_10us") else solved
    return {"objective": objective, "bound": float(row["bound_10us"]) if row.get("bound_10us") else None,
            "status": row.get("status") if objective is None else None}


def is_problem(path):
    try:
        return "fwd_to_bwd" in load(path)
    except (BadRecording, OSError, TypeError):
        return False


def read(path):
    return iteration_of(Problem(path), {})
