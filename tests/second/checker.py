#!/usr/bin/env python3
"""A second checker of plans, written from planc-plan(5) alone, "What makes a plan valid". Rules are named by their numbers
there.

It plays runs of 0, 1, 2 and 3 bodies in file order, with all replicas, each with memories, residencies and events of its own.
What orders two instructions is kept as sets: each stream knows the
instructions of the run that have ended before what it does next, each byte the instructions that touched it. Two that
conflict are then found one by one, with nothing left out because something between them orders it.

    checker.py PLAN ...         says of each whether it holds, after how many bodies it does not, and why
"""

import sys
from bisect import bisect_left, bisect_right

from planfile import Plan, Wrong, demand
from work import expand

MOST_BODIES = 3
MOST_REPLICAS = 6  # that are played: a further one does to these what they do to each other


class Place:
    """Where something lies: its memory, its address there, the segments of the arena, and these as a set of bits."""

    def __init__(self, memory, address, segments):
        self.memory, self.address, self.segments, self.bits = memory, address, [], 0
        for segment in segments:
            demand(not self.bits >> segment & 1, "two of its bytes are the same")
            self.bits |= 1 << segment
            self.segments.append(segment)


class Arena:
    """Addresses of a memory as bytes of its arena, in segments between all that the plan names of it."""

    def __init__(self, number, row, maps):
        self.number, self.align, self.chunk, self.chunks = number, row["align"], row.get("chunk", 0), []
        self.range, self.rows = row["arena"], []
        self.ends, self.known = [], {}
        if self.chunk:
            demand(self.chunk % self.align == 0 and row["arena"] % self.chunk == 0, "rule 2: chunks")
            for part in maps:
                demand(part["map"] + part["chunks"] <= row["arena"] // self.chunk, "rule 2: a map row leaves the arena")
                self.rows.append(len(self.chunks) * self.chunk)
                self.chunks.extend(range(part["map"], part["map"] + part["chunks"]))
            self.range = len(self.chunks) * self.chunk

    def pieces(self, start, size):
        """Of the arena; None where it is misaligned or not inside."""
        if start + size > self.range or start % self.align:
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

    def rows_of(self, start, size):
        """How many map rows it lies in; 0 where there are none, or it is not inside."""
        if not self.chunk or start + size > self.range:
            return 0
        return bisect_right(self.rows, start + size - 1) - bisect_right(self.rows, start) + 1

    def place(self, start, size):
        key = start, size
        if key not in self.known:
            pieces = self.pieces(start, size)
            demand(pieces is not None, "misaligned, or not inside the arena")
            self.known[key] = Place(self.number, start, (
                segment for first, end in pieces
                for segment in range(bisect_left(self.ends, first), bisect_left(self.ends, end))))
        return self.known[key]


def named(plan):
    """All stretches of memories that rows name."""
    for section in (plan.prologue, plan.body, plan.epilogue):
        for _, row in section:
            if row["i"] == "acquire":
                yield row["m"], row["at"], row["bytes"]
            elif row["i"] == "exec" and row["wsb"]:
                yield plan.streams[row["s"]].get("memory", plan.user), row["ws"], row["wsb"]


def most_of(plan, row):
    """The arenas and the reserved memory of a memory, as rule 21 counts them."""
    return row["arena"] * (1 if row["memory"] == "device" else plan.replicas) + row["reserved"]


def arenas_of(plan):
    """The arena of every memory but the user's."""
    result, at = [], 0
    for number, row in enumerate(plan.memories[:plan.user]):
        demand(most_of(plan, row) <= 2**53, "rule 2: a memory beyond 2^53 bytes")
        result.append(Arena(number, row, plan.maps[at:at + row.get("maps", 0)]))
        at += row.get("maps", 0)
    demand(sum(result[memory].rows_of(start, size) for memory, start, size in named(plan) if memory != plan.user) <= 2**24,
           "rule 2: too many map rows")
    ends = [set() for _ in result]
    for memory, start, size in named(plan):
        if memory != plan.user:
            for piece in result[memory].pieces(start, size) or ():
                ends[memory].update(piece)
    for arena, known in zip(result, ends, strict=True):
        arena.ends = sorted(known)
    return result


class Memory:
    """Of each segment of an arena which instructions wrote and which touched it, and which segments are taken."""

    def __init__(self, segments):
        self.wrote, self.touched, self.occupied = [0] * segments, [0] * segments, 0

    def copy(self):
        result = object.__new__(Memory)
        result.wrote, result.touched, result.occupied = self.wrote[:], self.touched[:], self.occupied
        return result


class Replica:
    """What a replica has as far as the run has come. `open`: the buffer and place of each open residency; `content`: the
    version in it, None where undefined. `knows`: by stream, the instructions that have ended; `recorded`: by event, the same
    when it was recorded in this section, and the one before. `ran`, `delivered`, `next`: of this section, the algorithms of the
    instances that ran, what went to the user, and the next residency."""

    def __init__(self, arenas, streams):
        self.memories = [Memory(len(arena.ends)) for arena in arenas]
        self.open, self.content = {}, {}
        self.knows, self.recorded, self.before = [0] * streams, {}, None

    def copy(self):
        result = object.__new__(Replica)
        result.memories = [memory.copy() for memory in self.memories]
        result.open, result.content = dict(self.open), dict(self.content)
        result.knows, result.recorded, result.before = self.knows[:], self.recorded, self.before
        return result

    def enter(self, section, first):
        self.before, self.recorded = self.recorded if section != "prologue" else None, {}
        self.ran, self.delivered, self.next = {}, set(), first

    def residency(self, number):
        demand(number in self.open, f"rule 5: residency {number} is not open")
        return self.open[number]


class Run:
    """A run of all replicas as far as it has come: each row is carried out by all of them before the next one."""

    def __init__(self, plan, work):
        self.plan, self.work, self.arenas = plan, work, arenas_of(plan)
        self.links = {(*row["link"], row["engine"]) for row in plan.links}
        self.replicas = [Replica(self.arenas, len(plan.streams)) for _ in range(min(plan.replicas, MOST_REPLICAS))]
        self.count = 0
        self.take_part()

    def take_part(self):
        self.do = {name: getattr(self, name) for name in ("acquire", "release", "exec", "copy", "record", "wait")}

    def fork(self):
        result = Run.__new__(Run)
        result.__dict__.update(self.__dict__)
        result.replicas = [replica.copy() for replica in self.replicas]
        result.take_part()
        return result

    def section(self, name, rows):
        self.name = name
        recorded = set()
        for line, row in rows:
            if row["i"] == "record":
                demand(row["e"] not in recorded, f"line {line}: rule 18: recorded twice")
                recorded.add(row["e"])
        for replica in self.replicas:
            replica.enter(name, len(self.plan.boundary) if name == "body" else 0)
        for line, row in rows:
            do = self.do[row["i"]]
            try:
                for replica in self.replicas:
                    do(replica, row)
            except Wrong as wrong:
                raise Wrong(f"line {line}: {row['i']}: {wrong}") from None
        for replica in self.replicas:
            getattr(self, f"end_{name}")(replica)

    def others(self, replica):
        return [other for other in self.replicas if other is not replica]

    # --- Residencies ----------------------------------------------------------------------------------------------

    def acquire(self, mine, row):
        number, buffer, memory = row["r"], row["b"], row["m"]
        demand(buffer < len(self.work.buffers), "no such buffer")
        demand(self.name != "epilogue" and number == mine.next, "rule 3: out of order")
        mine.next += 1
        if self.name == "prologue":
            demand(number < len(self.plan.boundary), "rule 3: not the boundary's")
            demand(self.plan.boundary[number] == {"boundary": buffer, "m": memory, "at": row["at"]},
                   "rule 3: not as its boundary row says")
        demand(memory != self.plan.user, "rule 4: in the user's memory")
        demand(row["bytes"] == self.work.buffers[buffer].bytes, "rule 4: not the buffer's size")
        place = self.arenas[memory].place(row["at"], row["bytes"])
        demand(not place.bits & mine.memories[memory].occupied, "rule 4: overlaps an open residency")
        mine.memories[memory].occupied |= place.bits
        mine.open[number], mine.content[number] = (buffer, place), None

    def release(self, mine, row):
        _, place = mine.residency(row["r"])
        mine.memories[place.memory].occupied &= ~place.bits
        del mine.open[row["r"]]

    # --- What runs ------------------------------------------------------------------------------------------------

    def touch(self, mine, stream, reads, writes):
        """Rule 20, for an instruction that reads and writes these places, each of a replica."""
        conflicting = 0
        for replica, place in writes:
            touched = replica.memories[place.memory].touched
            for segment in place.segments:
                conflicting |= touched[segment]
        for replica, place in reads:
            wrote = replica.memories[place.memory].wrote
            for segment in place.segments:
                conflicting |= wrote[segment]
        demand(not conflicting & ~mine.knows[stream], "rule 20: not ordered after what it conflicts with")
        bit = 1 << self.count
        self.count += 1
        mine.knows[stream] |= bit
        for places, written in ((reads, False), (writes, True)):
            for replica, place in places:
                memory = replica.memories[place.memory]
                for segment in place.segments:
                    memory.touched[segment] |= bit
                    if written:
                        memory.wrote[segment] |= bit

    def exec(self, mine, row):
        demand(self.name == "body", "rule 7: not in the body")
        demand(row["n"] < len(self.work.instances), "no such instance")
        instance, again = self.work.instances[row["n"]], "re" in row
        stream = self.plan.streams[row["s"]]
        demand(stream["stream"] == "compute" and stream["job"] == instance.job, "rule 7: on a stream of another kind or job")
        demand(row["busy"] <= 1000000, "rule 7: busy")
        if again:
            demand(mine.ran.get(row["n"]) == row["a"], "rule 8: has not run with this algorithm")
            demand(instance.again, "rule 8: must not run again")
        else:
            demand(row["n"] not in mine.ran, "rule 8: runs twice")
            mine.ran[row["n"]] = row["a"]
        demand(len(row["use"]) == len(instance.accesses), "rule 9: not one use for each access")
        reads, writes = [], []
        for access, number in zip(instance.accesses, row["use"], strict=True):
            if again and access.effect:
                demand(number == -1, "rule 9: a side effect in a recompute")
                continue
            buffer, place = mine.residency(number)
            demand(buffer == access.buffer, "rule 9: a residency of another buffer")
            demand(place.memory == stream["memory"], "rule 9: a residency in another memory")
            if access.read is not None:
                demand(mine.content[number] == access.read, "rule 10: reads another version")
            if access.write is not None:
                mine.content[number] = access.write
            (reads if access.write is None else writes).append((mine, place))
        if row["wsb"]:
            try:
                place = self.arenas[stream["memory"]].place(row["ws"], row["wsb"])
            except Wrong as wrong:
                raise Wrong(f"rule 11: {wrong}") from None
            demand(not place.bits & mine.memories[place.memory].occupied, "rule 11: the workspace overlaps an open residency")
            writes.append((mine, place))
        else:
            demand(not row["ws"], "address of no workspace")
        self.touch(mine, row["s"], reads, writes)

    def copy(self, mine, row):
        if "peers" in row:
            self.gather(mine, row)
            return
        number, origin, version = row["r"], row["from"], 0
        demand(number != origin, "rule 12: to itself, or from the user to the user")
        target, source = (mine.residency(end) if end >= 0 else None for end in (number, origin))
        buffer = (target or source)[0]
        self.check_way(row, buffer, source, target)
        demand(row["bytes"] == self.work.buffers[buffer].bytes, "rule 12: bytes")
        if source:
            demand(self.name != "prologue", "rule 16: not from the user")
            version = mine.content[origin]
            demand(version is not None, "rule 13: holds no version")
        else:
            demand(self.name == "prologue" or self.name == "body" and self.work.buffers[buffer].kind == "input",
                   "rule 15: nothing that comes from the user here")
        if not target:
            self.deliver(mine, buffer, version)
        else:
            demand(self.name != "epilogue", "rule 16: not to the user")
            demand(not source or source[0] == buffer, "rule 14: of another buffer")
            mine.content[number] = version
        self.touch(mine, row["s"], [(mine, source[1])] if source else [], [(mine, target[1])] if target else [])

    def gather(self, mine, row):
        """A copy of what the other replicas have."""
        number, origin = row["r"], row["from"]
        demand(self.name == "body", "rule 14: not in the body")
        demand(min(number, origin) >= 0, "rule 14: of the user")
        buffer, place = mine.residency(number)
        wanted = self.work.buffers[buffer].comes_from
        demand(wanted, "rule 14: to no buffer for the others' gradients")
        sources = [(other, other.residency(origin)) for other in self.others(mine)]
        for other, (gradient, there) in sources:
            self.check_way(row, buffer, (gradient, there), (buffer, place))
            demand(row["bytes"] == self.work.buffers[gradient].bytes, "rule 12: bytes")
            demand(there.memory >= self.plan.devices, "rule 14: from a device")
            demand((gradient, other.content[origin]) == wanted, "rule 14: not what the exchange is of")
        mine.content[number] = 0
        self.touch(mine, row["s"], [(other, there) for other, (_, there) in sources], [(mine, place)])

    def check_way(self, row, buffer, source, target):
        """Rule 12's stream and time."""
        stream = self.plan.streams[row["s"]]
        start, end = (side[1].memory if side else self.plan.user for side in (source, target))
        demand(stream["job"] == self.work.buffers[buffer].job, "rule 12: on a stream of another job")
        if start == end:
            demand(stream.get("memory") == start, "rule 12: on no compute stream of this memory")
        else:
            demand("t" not in row, "rule 12: a time beside that of the link")
            demand((start, end, stream.get("engine")) in self.links, "rule 12: on no copy stream of an engine that links these")

    def deliver(self, mine, buffer, version):
        demand(buffer not in mine.delivered, "rule 16: goes to the user twice")
        mine.delivered.add(buffer)
        if self.name == "body":
            demand(self.work.buffers[buffer].result, "rule 16: no result")
            demand(version == self.work.buffers[buffer].last, "rule 16: not the last version")
        else:
            demand(version == 0, "rule 16: not version 0")

    def record(self, mine, row):
        mine.recorded[row["e"]] = mine.knows[row["s"]]

    def wait(self, mine, row):
        event = row["e"]
        demand("lag" not in row or self.name != "prologue", "rule 19: lag 1 in the prologue")
        demand("lag" not in row or event not in mine.recorded, "rule 19: behind its own section's record")
        for replica in self.others(mine) if "peers" in row else [mine]:
            records = replica.before if "lag" in row else replica.recorded
            demand(event in records, "rule 19: no record of this or the section before")
            mine.knows[row["s"]] |= records[event]

    # --- Ends of sections -----------------------------------------------------------------------------------------

    def at_boundary(self, mine, after_body):
        """Rule 6; what is there is version 0 then."""
        parked = {}
        for number, row in enumerate(self.plan.boundary):
            last = self.work.buffers[row["boundary"]].last if after_body else 0
            there = [r for r, (buffer, place) in mine.open.items()
                     if (buffer, place.memory, place.address) == (row["boundary"], row["m"], row["at"])]
            demand(there, f"rule 6: buffer {row['boundary']} is not in its place")
            demand(mine.content[there[0]] == last, f"rule 6: buffer {row['boundary']} has another version")
            parked[number] = mine.open[there[0]]
        demand(len(parked) == len(mine.open), "rule 6: more is open than the boundary's")
        mine.open, mine.content = parked, dict.fromkeys(parked, 0)

    def end_prologue(self, mine):
        demand(mine.next == len(self.plan.boundary), "rule 3: the boundary's residencies are not all acquired")
        self.at_boundary(mine, False)

    def end_body(self, mine):
        demand(mine.next == self.plan.header["residencies"], "rule 3: another number of residencies")
        demand(len(mine.ran) == len(self.work.instances), "rule 8: an instance does not run")
        results = {number for number, buffer in enumerate(self.work.buffers) if buffer.result}
        demand(mine.delivered == results, "rule 16: a result does not go to the user")
        self.at_boundary(mine, True)

    def end_epilogue(self, mine):
        demand(not mine.open, "rule 17: the epilogue leaves something open")
        demand(mine.delivered == {row["boundary"] for row in self.plan.boundary}, "rule 16: not all go back to the user")


def static_rules(plan, work):
    """What no run needs to show: the rest of rules 1, 6 and 18."""
    persistent = [number for number, buffer in enumerate(work.buffers) if buffer.persists]
    demand(sorted(row["boundary"] for row in plan.boundary) == persistent, "rule 6: not each persistent buffer once")
    stream = {}
    for line, row in plan.prologue + plan.body + plan.epilogue:
        if row["i"] == "record":
            demand(stream.setdefault(row["e"], row["s"]) == row["s"], f"line {line}: rule 18: on another stream")


def budget(plan):
    """Rule 21."""
    for row in plan.memories[:plan.user]:
        demand(row["budget"] == -1 or most_of(plan, row) <= row["budget"], f"budget: {row['memory']}'s")


def why_not(lines, bodies=range(MOST_BODIES + 1)):
    """None if the plan of these lines is valid in runs of so many bodies, else the reason. One that only does not fit its
    budget has a reason that starts with "budget"."""
    try:
        plan = Plan(lines)
        work_bound = len(plan.body) + 1
        demand(all(job["iterations"] <= work_bound for job in plan.jobs), "rule 8: more iterations than instructions")
        work = expand(plan)
        static_rules(plan, work)
        run = Run(plan, work)
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
