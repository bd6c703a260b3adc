#!/usr/bin/env python3
"""A second checker of plans, written from planc-plan(5) alone, "What makes a plan valid". Rules are named by their numbers there.

It plays runs of 0, 1, 2 and 3 bodies in file order. What orders two instructions is kept as sets: each stream knows the
instructions of the run that have ended before what it does next, each byte the instructions that touched it. Two that
conflict are then found one by one, with nothing left out because something between them orders it.

    checker.py PLAN ...         says of each whether it holds, after how many bodies it does not, and why
"""

import sys
from bisect import bisect_left

from planfile import Plan, Wrong, demand
from work import expand

ALIGNMENT = 256
MOST_BODIES = 3


class Memory:
    """Bytes as segments between all addresses that the plan names: which instructions wrote and which touched each."""

    def __init__(self, ends):
        self.ends = sorted(set(ends))
        self.wrote, self.touched = [0] * len(self.ends), [0] * len(self.ends)

    def segments(self, start, end):
        return range(bisect_left(self.ends, start), bisect_left(self.ends, end))

    def copy(self):
        result = object.__new__(Memory)
        result.ends, result.wrote, result.touched = self.ends, self.wrote[:], self.touched[:]
        return result


class Place:
    """Where something lies: its memory, the segments, and these as a set of bits."""

    def __init__(self, memory, number, pieces):
        self.memory, self.segments, self.bits = number, [], 0
        for start, end in pieces:
            for segment in memory.segments(start, end):
                demand(not self.bits >> segment & 1, "two of its bytes are the same")
                self.bits |= 1 << segment
                self.segments.append(segment)


class Layout:
    """Device addresses as bytes of the arenas, one for each GPU, and the host arena behind these."""

    def __init__(self, plan, work):
        header = plan.header
        self.arena, self.host_arena, self.gpus = header["arena"], header["host_arena"], header["gpus"]
        self.chunk = header.get("chunk", 0)
        self.gpu_of_job = [None] * header["jobs"]
        for stream in plan.streams:
            known = self.gpu_of_job[stream["job"]]
            demand(known in (None, stream["gpu"]), "rule 2: streams of a job on several GPUs")
            self.gpu_of_job[stream["job"]] = stream["gpu"]
        self.map_chunks(plan.maps)
        ends, self.known = {}, {}
        for memory, start, size in self.named(plan, work):
            pieces = self.host_pieces(start, size) if memory == self.gpus else self.pieces(start, size)
            for piece in pieces or ():
                ends.setdefault(memory, []).extend(piece)
        self.memories = [Memory(ends.get(memory, ())) for memory in range(self.gpus + 1)]

    def map_chunks(self, maps):
        self.chunks = []
        if not self.chunk:
            self.range = self.arena
            return
        demand(self.chunk % ALIGNMENT == 0 and self.arena % self.chunk == 0, "rule 2: chunks")
        for row in maps:
            demand(row["map"] + row["chunks"] <= self.arena // self.chunk, "rule 2: a map row leaves the arena")
            self.chunks.extend(range(row["map"], row["map"] + row["chunks"]))
        self.range = len(self.chunks) * self.chunk

    def pieces(self, start, size):
        """Of the arena; None where it is not inside."""
        if start < 0 or start + size > self.range or start % ALIGNMENT:
            return None
        if not self.chunk:
            return [(start, start + size)]
        result, end = [], start + size
        while start < end:
            chunk, offset = divmod(start, self.chunk)
            part = min(end - start, self.chunk - offset)
            at = self.chunks[chunk] * self.chunk + offset
            if result and result[-1][1] == at:
                result[-1] = result[-1][0], at + part
            else:
                result.append((at, at + part))
            start += part
        return result

    def host_pieces(self, start, size):
        inside = start >= 0 and start + size <= self.host_arena and start % ALIGNMENT == 0
        return [(start, start + size)] if inside else None

    def named(self, plan, work):
        """All stretches of memory that rows name."""
        for row in plan.boundary:
            if "home" in row and row["boundary"] < len(work.buffers):
                yield self.gpus, row["home"], work.buffers[row["boundary"]].bytes
        for section in (plan.prologue, plan.body, plan.epilogue):
            for _, row in section:
                if row["i"] == "acquire" and row["b"] < len(work.buffers):
                    yield self.gpu_of_job[work.buffers[row["b"]].job], row["at"], row["bytes"]
                elif row["i"] == "exec" and row["wsb"]:
                    yield plan.streams[row["s"]]["gpu"], row["ws"], row["wsb"]
                elif row["i"] in ("offload", "prefetch") and row["h"] >= 0:
                    yield self.gpus, row["h"], row["bytes"]

    def place(self, memory, start, size):
        key = memory, start, size
        if key not in self.known:
            demand(memory is not None, "a job without streams is on no GPU")
            pieces = self.host_pieces(start, size) if memory == self.gpus else self.pieces(start, size)
            demand(pieces is not None, "misaligned, or not inside the arena")
            self.known[key] = Place(self.memories[memory], memory, pieces)
        return self.known[key]


class Run:
    """A run as far as it has come. `open`: the buffer and place of each open residency; `content`: the version in it, None
    where undefined. `host`: by address, buffer, version and place of what an offload left. `knows`: by stream, the
    instructions that have ended; `recorded`: by event, the same when it was recorded in this section, and the one before."""

    def __init__(self, plan, work, layout):
        self.plan, self.work, self.layout = plan, work, layout
        self.memories = [memory.copy() for memory in layout.memories]
        self.open, self.content, self.host = {}, {}, {}
        self.occupied = [0] * (layout.gpus + 1)
        self.knows, self.count = [0] * len(plan.streams), 0
        self.recorded, self.before = {}, None
        self.do = {name: getattr(self, name) for name in ("acquire", "release", "exec", "offload", "prefetch", "move",
                                                          "record", "wait")}

    def fork(self):
        result = Run.__new__(Run)
        result.__dict__.update(self.__dict__)
        result.memories = [memory.copy() for memory in self.memories]
        for name in ("open", "content", "host", "recorded"):
            setattr(result, name, dict(getattr(self, name)))
        result.occupied, result.knows = self.occupied[:], self.knows[:]
        result.do = {name: getattr(result, name) for name in self.do}
        return result

    def section(self, name, rows):
        self.name, self.before, self.recorded = name, self.recorded if name != "prologue" else None, {}
        self.events = {}
        for line, row in rows:
            if row["i"] == "record":
                demand(row["e"] not in self.events, f"line {line}: rule 18: recorded twice")
                self.events[row["e"]] = line
        self.ran, self.delivered = {}, set()
        self.next = 0 if name != "body" else len(self.plan.boundary)
        for line, row in rows:
            try:
                self.do[row["i"]](line, row)
            except Wrong as wrong:
                raise Wrong(f"line {line}: {row['i']}: {wrong}") from None
        getattr(self, f"end_{name}")()

    # --- Residencies ----------------------------------------------------------------------------------------------

    def acquire(self, line, row):
        number, buffer = row["r"], row["b"]
        boundary = self.plan.boundary
        demand(buffer < len(self.work.buffers), "no such buffer")
        if self.name == "epilogue":
            while self.next < len(boundary) and "home" not in boundary[self.next]:
                self.next += 1
        demand(number == self.next and (self.name == "body" or number < len(boundary)), "rule 3: out of order")
        self.next += 1
        if self.name != "body":
            demand(buffer == boundary[number]["boundary"], "rule 3: not its boundary row's buffer")
            demand("home" in boundary[number] or row["at"] == boundary[number]["at"], "rule 3: not at the row's address")
        demand(row["bytes"] == self.work.buffers[buffer].bytes, "rule 4: not the buffer's size")
        place = self.layout.place(self.layout.gpu_of_job[self.work.buffers[buffer].job], row["at"], row["bytes"])
        demand(not place.bits & self.occupied[place.memory], "rule 4: overlaps an open residency")
        self.occupied[place.memory] |= place.bits
        self.open[number], self.content[number] = (buffer, place, row["at"]), None

    def release(self, line, row):
        place = self.residency(row["r"])[1]
        self.occupied[place.memory] &= ~place.bits
        del self.open[row["r"]]

    def residency(self, number):
        demand(number in self.open, f"rule 5: residency {number} is not open")
        return self.open[number]

    # --- What runs ------------------------------------------------------------------------------------------------

    def touch(self, stream, reads, writes):
        """Rule 20, for an instruction that reads and writes these places."""
        conflicting = 0
        for place in writes:
            touched = self.memories[place.memory].touched
            for segment in place.segments:
                conflicting |= touched[segment]
        for place in reads:
            wrote = self.memories[place.memory].wrote
            for segment in place.segments:
                conflicting |= wrote[segment]
        demand(not conflicting & ~self.knows[stream], "rule 20: not ordered after what it conflicts with")
        bit = 1 << self.count
        self.count += 1
        self.knows[stream] |= bit
        for places, written in ((reads, False), (writes, True)):
            for place in places:
                memory = self.memories[place.memory]
                for segment in place.segments:
                    memory.touched[segment] |= bit
                    if written:
                        memory.wrote[segment] |= bit

    def on_stream(self, row, kind, job, rule):
        stream = self.plan.streams[row["s"]]
        demand(stream["stream"] == kind and stream["job"] == job, f"rule {rule}: on a stream of another kind or job")

    def exec(self, line, row):
        demand(self.name == "body", "rule 7: not in the body")
        demand(row["n"] < len(self.work.instances), "no such instance")
        instance, again = self.work.instances[row["n"]], "re" in row
        self.on_stream(row, "compute", instance.job, 7)
        demand(row["busy"] <= 1000000, "rule 7: busy")
        if again:
            demand(self.ran.get(row["n"]) == row["a"], "rule 8: has not run with this algorithm")
            demand(instance.again, "rule 8: must not run again")
        else:
            demand(row["n"] not in self.ran, "rule 8: runs twice")
            self.ran[row["n"]] = row["a"]
        demand(len(row["use"]) == len(instance.accesses), "rule 9: not one use for each access")
        reads, writes = [], []
        for access, number in zip(instance.accesses, row["use"], strict=True):
            if again and access.effect:
                demand(number == -1, "rule 9: a side effect in a recompute")
                continue
            buffer, place, _ = self.residency(number)
            demand(buffer == access.buffer, "rule 9: a residency of another buffer")
            if access.read is not None:
                demand(self.content[number] == access.read, "rule 10: reads another version")
            if access.write is not None:
                self.content[number] = access.write
            (reads if access.write is None else writes).append(place)
        if row["wsb"]:
            try:
                place = self.layout.place(self.plan.streams[row["s"]]["gpu"], row["ws"], row["wsb"])
            except Wrong as wrong:
                raise Wrong(f"rule 11: {wrong}") from None
            demand(not place.bits & self.occupied[place.memory], "rule 11: the workspace overlaps an open residency")
            writes.append(place)
        else:
            demand(not row["ws"], "address of no workspace")
        self.touch(row["s"], reads, writes)

    def copy(self, row, kind):
        buffer, place, _ = self.residency(row["r"])
        self.on_stream(row, kind, self.work.buffers[buffer].job, 12)
        demand(row["bytes"] == self.work.buffers[buffer].bytes, "rule 12: bytes")
        host = self.layout.place(self.layout.gpus, row["h"], row["bytes"]) if row.get("h", -1) >= 0 else None
        return buffer, place, host

    def offload(self, line, row):
        buffer, place, host = self.copy(row, "d2h")
        version = self.content[row["r"]]
        demand(version is not None, "rule 13: holds no version")
        if host:
            demand(self.name != "epilogue", "rule 16: the epilogue offloads to the user")
            demand(self.name == "body" or "home" in self.plan.boundary[row["r"]], "rule 16: not at home")
            for address in [address for address, (_, _, other) in self.host.items() if other.bits & host.bits]:
                del self.host[address]
            self.host[row["h"]] = buffer, version, host
        else:
            demand(self.name != "prologue", "rule 16: the prologue offloads to the host arena")
            demand(buffer not in self.delivered, "rule 16: goes to the user twice")
            self.delivered.add(buffer)
            if self.name == "body":
                demand(self.work.buffers[buffer].result, "rule 16: no result")
                demand(version == self.work.buffers[buffer].last, "rule 16: not the last version")
            else:
                demand(version == 0, "rule 16: not version 0")
        self.touch(row["s"], [place], [host] if host else [])

    def prefetch(self, line, row):
        number = row["r"]
        buffer, place, host = self.copy(row, "h2d")
        about = self.work.buffers[buffer]
        if not host:
            demand(self.name != "epilogue", "rule 16: the epilogue prefetches from the host arena")
            demand(self.name == "prologue" or about.kind == "input", "rule 15: no input")
            self.content[number] = 0
        else:
            demand(self.name != "prologue", "rule 16: the prologue prefetches from the user")
            demand(self.name == "body" or "home" in self.plan.boundary[number], "rule 16: not at home")
            left = self.host.get(row["h"])
            demand(left and left[0] in (buffer, about.comes_from and about.comes_from[0]), "rule 14: nothing of it there")
            if left[0] != buffer:
                demand(left[1] == about.comes_from[1], "rule 14: not the version that is exchanged")
            self.content[number] = left[1] if left[0] == buffer else 0
        self.touch(row["s"], [host] if host else [], [place])

    def move(self, line, row):
        demand(self.name == "body", "rule 17: not in the body")
        buffer, place, _ = self.copy(row, "compute")
        other, origin, _ = self.residency(row["from"])
        demand(other == buffer, "rule 12: another buffer")
        demand(row["from"] != row["r"], "a move to itself")
        demand(self.content[row["from"]] is not None, "rule 13: holds no version")
        self.content[row["r"]] = self.content[row["from"]]
        self.touch(row["s"], [origin], [place])

    def record(self, line, row):
        self.recorded[row["e"]] = self.knows[row["s"]]

    def wait(self, line, row):
        event = row["e"]
        if row["lag"]:
            demand(self.name != "prologue", "rule 19: lag 1 in the prologue")
            demand(event in self.before, "rule 19: not recorded by the section before")
            demand(event not in self.recorded, "rule 19: behind its own section's record")
            self.knows[row["s"]] |= self.before[event]
        else:
            demand(event in self.recorded, "rule 19: before the record")
            self.knows[row["s"]] |= self.recorded[event]

    # --- Ends of sections -----------------------------------------------------------------------------------------

    def at_boundary(self, after_body):
        """Rule 6; what is there is version 0 then."""
        resident, homes = {}, {}
        for number, row in enumerate(self.plan.boundary):
            buffer = row["boundary"]
            last = self.work.buffers[buffer].last if after_body else 0
            if "home" in row:
                left = self.host.get(row["home"])
                demand(left and left[:2] == (buffer, last), f"rule 6: buffer {buffer} is not at home")
                homes[row["home"]] = buffer, 0, left[2]
                continue
            there = [r for r, (other, _, at) in self.open.items() if other == buffer and at == row["at"]]
            demand(there, f"rule 6: buffer {buffer} is not resident at its address")
            demand(self.content[there[0]] == last, f"rule 6: buffer {buffer} has another version")
            resident[number] = self.open[there[0]]
        demand(len(resident) == len(self.open), "rule 6: more is resident than the boundary's")
        self.open, self.host, self.content = resident, homes, dict.fromkeys(resident, 0)

    def end_prologue(self):
        demand(self.next == len(self.plan.boundary), "rule 3: the boundary's residencies are not all acquired")
        self.at_boundary(False)

    def end_body(self):
        demand(self.next == self.plan.header["residencies"], "rule 3: another number of residencies")
        demand(len(self.ran) == len(self.work.instances), "rule 8: an instance does not run")
        results = {number for number, buffer in enumerate(self.work.buffers) if buffer.result}
        demand(self.delivered == results, "rule 16: a result does not go to the user")
        self.at_boundary(True)

    def end_epilogue(self):
        demand(not self.open, "rule 17: the epilogue leaves something open")
        demand(self.delivered == {row["boundary"] for row in self.plan.boundary}, "rule 16: not all go back to the user")


def static_rules(plan, work):
    """What no run needs to show: the rest of rules 1, 6 and 18."""
    header = plan.header
    demand(plan.predictions["peak"] == header["arena"] + plan.device["reserved"], "rule 1: predicted peak")
    demand(plan.predictions["host_peak"] == header["host_arena"], "rule 1: predicted host peak")
    persistent = [number for number, buffer in enumerate(work.buffers) if buffer.persists]
    demand(sorted(row["boundary"] for row in plan.boundary) == persistent, "rule 6: not each persistent buffer once")
    stream = {}
    for line, row in plan.prologue + plan.body + plan.epilogue:
        if row["i"] == "record":
            demand(stream.setdefault(row["e"], row["s"]) == row["s"], f"line {line}: rule 18: on another stream")


def budget(plan):
    """Rule 21."""
    header = plan.header
    demand(header["arena"] + plan.device["reserved"] <= header["budget"], "budget: the device's")
    demand(header["host_budget"] == -1 or header["host_arena"] <= header["host_budget"], "budget: the host's")


def why_not(lines, bodies=range(MOST_BODIES + 1)):
    """None if the plan of these lines is valid in runs of so many bodies, else the reason. One that only does not fit its
    budget has a reason that starts with "budget"."""
    try:
        plan = Plan(lines)
        work_bound = len(plan.body) + 1
        demand(all(job["iterations"] <= work_bound for job in plan.jobs), "rule 8: more iterations than instructions")
        work = expand(plan)
        static_rules(plan, work)
        run = Run(plan, work, Layout(plan, work))
        run.section("prologue", plan.prologue)
        for count in range(max(bodies) + 1):
            if count:
                run.section("body", plan.body)
            if count in bodies:
                try:
                    run.fork().section("epilogue", plan.epilogue)
                except Wrong as wrong:
                    raise Wrong(f"{wrong}, after {count} bodies") from None
        budget(plan)
    except Wrong as wrong:
        return str(wrong)
    return None


def read_lines(path):
    """None where it is no text of whole lines."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        return text.decode().split("\n")[:-1] if text.endswith(b"\n") else None
    except ValueError:
        return None


def judge(path, bodies):
    """Of a plan's file and a number of bodies: None or the reason."""
    lines = read_lines(path)
    return "cut off, or no UTF-8" if lines is None else why_not(lines, (bodies,))


def main():
    failed = False
    for path in sys.argv[1:]:
        for bodies in range(MOST_BODIES + 1):
            reason = judge(path, bodies)
            if reason:
                print(f"{path}: {bodies} bodies: {reason}")
                failed = True
                break
        else:
            print(f"{path}: holds")
    return failed


if __name__ == "__main__":
    sys.exit(main())
