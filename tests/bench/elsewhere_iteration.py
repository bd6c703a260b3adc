"""One training iteration that somebody else measured, written as a planc graph (planc-graph(5)) and a profile
(planc-profile(5)): what the readers of elsewhere.py have in common.

Sizes are for the one batch that was measured, so the graph has batch 1 and no size depends on it. The profile has one
point for every op; what the source does not say of the device is that of a description in profiles/ and is asked for no
op. Launches, reserved memory, latencies and slow-down by copies are 0 unless the source has them.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "graphs"))
from graphfile import GraphFile, legal_name

MOST = 2**53 - 1  # what a profile can hold
CLASSES = ("conv", "gemm", "elementwise", "reduction", "norm", "pool", "optimizer", "copy")


class BadData(Exception):
    """What is wrong in a file, and where: one sentence."""


def number(text, place):
    """A count, size or time, given as digits."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > MOST:
        raise BadData(f"{place}: a whole number below 2^53 is expected")
    return int(text)


def first_class(name, table):
    """The class of the first row (class, parts) of the table one of whose parts is in the name."""
    return next((class_ for class_, parts in table if any(part in name for part in parts)), None)


def variant(algorithm, cost):
    point = {"batch": 1, "time_ns": cost[0], "workspace_bytes": cost[1], "busy_ppm": 1000000}
    return {"algorithm": algorithm, "deterministic": True, "points": [point]}


class Iteration:
    def __init__(self, name, heading, options=()):
        """`options` are those of `planc plan` that state the source's rules."""
        self.name, self.options = legal_name(name), list(options)
        self.graph = GraphFile(heading, name=self.name, batch=1)
        self.costs, self.device, self.origin, self.base = [], {}, {}, None

    def storage(self, name, size, kind="activation", of=None):
        self.graph.tensor(name, "u8", [(size, 0)], kind, of)

    def op(self, name, type, reads, writes, ns, *, workspace=0, class_=None, algorithms=None, **more):
        """`algorithms`: (ns, workspace) by name, where there are several."""
        costs = algorithms or {"default": (ns, workspace)}
        for time, _ in costs.values():
            if not 0 <= time <= MOST:
                raise BadData(f"{name}: a time of {time} ns is out of range")
        self.graph.op(name, type, reads, writes, class_=class_, **more)
        self.costs.append({"op": name, "variants": [variant(*cost) for cost in costs.items()]})

    def runs_on(self, base, origin, name, memory_bytes, bytes_per_second=None, stored_per_second=None):
        """The device: a description of profiles/ but for what is known, and where that is from."""
        self.base, self.origin = base, {"device": origin}
        self.device = {"name": name, "memory_bytes": memory_bytes, "reserved_bytes": 0, "launch_ns": 0,
                       "duplex_ppm": 1000000, "slowdown_ppm": 0}
        if bytes_per_second:
            link = {"bytes_per_second": bytes_per_second, "latency_ns": 0}
            self.device.update(h2d=link, d2h=link)
        if stored_per_second:
            link = {"bytes_per_second": stored_per_second, "latency_ns": 0}
            self.device.update(storage={"write": link, "read": link})

    def busy_ns(self):
        return sum(cost["variants"][0]["points"][0]["time_ns"] for cost in self.costs)

    def profile(self):
        with open(os.path.join(ROOT, "profiles", self.base + ".json"), encoding="utf-8") as file:
            base = json.load(file)
        origin = {**self.origin, **{key: f"of {self.base}, asked for no op: all are measured"
                                    for key in ("compute", "efficiency", "multiply")}}
        return {"planc-profile": 1, "device": {**base["device"], **self.device},
                **{key: base[key] for key in ("compute", "efficiency", "multiply")}, "origin": origin, "ops": self.costs}

    def write(self, folder):
        """Writes the graph and the profile and gives their paths."""
        graph, profile = (os.path.join(folder, self.name + ending) for ending in (".yaml", ".profile.json"))
        self.graph.write(graph)
        aside = f"{profile}.tmp"
        try:
            with open(aside, "w", encoding="utf-8") as file:
                json.dump(self.profile(), file)
                file.write("\n")
            os.replace(aside, profile)
        finally:
            if os.path.exists(aside):
                os.remove(aside)
        return graph, profile
