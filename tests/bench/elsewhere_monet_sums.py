"""Judges a plan of one of MONET's problems by MONET's own rules, from the order of its ops and their algorithms
alone: what it takes, what is live at most, whether it is a schedule of MONET's form, and the most that MONET's
inequalities charge.
"""

import itertools
import json
import re
from dataclasses import dataclass, field

from elsewhere_iteration import BadData
from elsewhere_monet import UNIT_NS


def runs_of(path):
    """(node, algorithm) of a plan's ops in order; algorithm None where a node has none. The op at the end is left
    out."""
    ops, algorithms, runs = [], [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if "op" in row and "type" in row:
                ops.append(row["op"])
            elif "algorithm" in row:
                algorithms.append(row["algorithm"])
            elif row.get("i") == "exec" and ops[row["n"]] != "end":
                node, algorithm = ops[row["n"]].split(".")[0], re.fullmatch(r"a(\d+)", algorithms[row["a"]])
                runs.append((int(node), int(algorithm[1]) if algorithm else None))
    return runs


@dataclass
class Stage:
    """What runs ahead of a backward node: `runs` has algorithms by node. `stored`: what MONET has it begin with."""
    runs: dict = field(default_factory=dict)
    algorithm: int = None
    stored: set = field(default_factory=set)


@dataclass
class Value:
    """What a run of a node made: the stage of the run and tokens of the storages it lies in, (number, bytes)."""
    stage: int
    tokens: list
    born: int
    read: int


class Sums:
    def __init__(self, problem, layout, runs):
        self.problem, self.layout, self.nodes, self.loss = problem, layout, problem.nodes, problem.loss
        self.stages = [Stage() for _ in range(len(self.nodes) - self.loss + 1)]
        self.units, self.unlike, self.values, self.now = 0, [], [], {}
        self.counter = itertools.count()
        self.spaces = []
        stage, ran = 0, set()
        for at, (id, algorithm) in enumerate(runs):
            self.run(at, stage, self.nodes[id], algorithm, id in ran)
            ran.add(id)
            if id >= self.loss:
                if id != self.loss + stage:
                    self.unlike.append(f"{id} runs as number {stage} of the loss and the backward nodes")
                stage += 1

    def run(self, at, stage, node, algorithm, again):
        values = [self.value(u, node) for u in self.layout.reads[node.id]]
        for u, value in zip(self.layout.reads[node.id], values):
            value.read = at
            self.store(u, value.stage, stage, node.backward)
        if node.backward:
            self.stages[stage].algorithm = algorithm
        else:
            done = self.stages[stage].runs
            if done and next(reversed(done)) >= node.id:
                self.unlike.append(f"{node.id} runs behind {next(reversed(done))} in stage {stage}")
            done[node.id] = algorithm
        self.now[node.id] = Value(stage, self.tokens(node, values), at, at)
        self.values.append(self.now[node.id])
        self.units += self.time(node, algorithm, again)
        self.spaces.append(node.first[algorithm][1] if node.convolution else self.layout.workspaces[node.id])

    def value(self, u, node):
        if u not in self.now:
            raise BadData(f"{u} is not there for {node.id}")
        return self.now[u]

    def store(self, u, made, read, backward):
        """What is made in a stage is stored in all later ones up to that which reads it, and for a backward node into
        the next."""
        if u <= self.loss and made < read:
            for stage in range(made + 1, read + backward + 1):
                self.stages[stage].stored.add(u)

    def tokens(self, node, values):
        """Of storages that it takes over those of the values, which end so; else new ones."""
        taken = []
        for name, size in self.layout.pieces[node.id]:
            if name == f"t{node.id}":
                taken.append((next(self.counter), size))
                continue
            for u, value in zip(self.layout.reads[node.id], values):
                for piece, token in zip(self.layout.pieces[u], value.tokens):
                    if piece[0] == name and token not in taken:
                        taken.append(token)
                        if not node.backward:
                            self.now.pop(u, None)
        return taken

    def time(self, node, algorithm, again):
        if node.convolution:
            return node.first[algorithm][0]
        if node.backward:
            return self.layout.cost(node)[0]
        inside = self.layout.runs_in_place(node)
        return (node.again if again else node.first)[0][0] + inside * (node.in_place[0][0] - node.first[0][0])

    def live_peak(self, runs):
        """Bytes that are live at most: what is read later, each storage once, and what has no way to die."""
        begins, ends = {}, {}
        for value in self.values:
            for token in value.tokens:
                begins[token] = min(begins.get(token, value.born), value.born)
                ends[token] = max(ends.get(token, value.read), value.read)
        grown, most, live = [0] * (len(runs) + 1), 0, 0
        for token, born in begins.items():
            grown[born] += token[1]
            grown[ends[token] + 1] -= token[1]
        fixed = self.nodes[0].fixed
        for at, (id, _) in enumerate(runs):
            live += grown[at]
            fixed = max(fixed, self.nodes[id].fixed)
            most = max(most, live + fixed + self.spaces[at])
        return most

    # --- MONET's inequalities

    def charged(self):
        """The most that is charged in any stage."""
        return max(max(self.forward(t), self.backward(t)) for t in range(len(self.nodes) - self.loss))

    def forward(self, t):
        """Ahead of the backward node of a stage, at each forward node, whether it runs or not."""
        stage, after, node = self.stages[t], self.stages[t + 1].stored, self.nodes[self.loss + t]
        held = (node.local if t else 0) + self.nodes[self.loss + t - 1].fixed
        last = t == len(self.nodes) - self.loss - 1
        kept = {u for u in self.layout.reads[node.id] if u <= self.loss} - after if t else set()
        before, most = 0, 0
        behind = sum(self.nodes[u].bytes for u in stage.stored)
        for j in range(self.loss + 1):
            below = 0 if last else before
            most = max(most, held + behind + below + self.bytes_before(kept, j))
            behind -= self.nodes[j].bytes if j in stage.stored else 0
            if j in stage.runs:
                local = sum(self.nodes[u].bytes for u in self.nodes[j].local_tensors if u in after and u < j)
                own = self.workspace(j, t, stage.runs[j]) + self.nodes[j].bytes + self.nodes[j].local
                most = max(most, held + own + behind + before - local + self.bytes_before(kept, j))
            before += self.nodes[j].bytes if j in after else 0
        return most

    def bytes_before(self, ids, j):
        return sum(self.nodes[u].bytes for u in ids if u < j)

    def workspace(self, j, t, algorithm):
        node = self.nodes[j]
        if node.convolution:
            return node.first[algorithm][1]
        return (node.in_place if self.layout.runs_in_place(node) else node.again if t else node.first)[0][1]

    def backward(self, t):
        """At the backward node of a stage."""
        if not t:
            return 0
        node, after = self.nodes[self.loss + t], self.stages[t + 1].stored
        reads = {u for u in self.layout.reads[node.id] if u <= self.loss}
        space = node.first[self.stages[t].algorithm][1] if node.convolution else self.layout.cost(node)[1]
        return space + node.local + node.fixed + node.bytes + sum(self.nodes[u].bytes for u in reads | after)


def judge(problem, layout, path):
    """What is found of a plan in a file."""
    runs = runs_of(path)
    sums = Sums(problem, layout, runs)
    counts = [sum(id == node.id for id, _ in runs) for node in problem.nodes if layout.reads[node.id] is not None]
    if 0 in counts:
        raise BadData("a node does not run")
    return {"units": sums.units, "live_bytes": sums.live_peak(runs), "charged_bytes": sums.charged(),
            "unlike": sums.unlike}
