"""A second opinion on planc bound: the linear program whose multipliers its prices are, solved by glpsol. Work, times
and links come from a plan and a profile, read as planc-plan(5) and planc-profile(5) say; what the bound leaves to plans
is what planner/bound/bound_model.h says.

The period is a circle of slots: slot 2p is the op at position p, slot 2p + 1 what waits or runs again behind it. All
that a plan decides may be decided in parts here, each of them a variable that is not negative:
 - an op runs by its algorithms, alone, or slowed down by copies beside it;
 - of each gap of a version a part stays, a part is computed again, and a part is copied to the host, once, and back, in
   any slots. It takes memory at the ops up to the end of its copy out, and from the beginning of its copy in on. What
   the next use only overwrites takes nothing;
 - what the user feeds comes in once a period, and his results go out.
In each slot a link has the slot's length, and what lies on the device when an op begins is not more than there is. No plan of
these ops in this order is faster than the least length of all slots together, and no prices certify more than that.

What an op that runs again reads is taken to be there where an op behind the gap's first use reads it too. Else it
stays, comes from the host, or is computed again itself. What comes from the host is on the device from then on, or what is
made of it is, where that has as many bytes as all that is read for it; and it has been copied out before, which is added
up here where no gap of its own may have done so.
"""

import os
import subprocess
import tempfile
from collections import Counter, defaultdict

from work import expand

MILLION, SECOND = 10**6, 10**9
MOST_SECONDS = 600  # of glpsol
MOST_INPUTS, DEPTH = 24, 6  # of what an op that runs again reads, as far as is looked at


class Gap:
    """Between two uses of a version, at positions `start` and `end`, which may be of the next period, where it is read.
    `again`: the time for which its writer runs again, None where that is not allowed. `inputs`: what this one reads
    that is gone."""

    def __init__(self, start, end, again, inputs):
        self.start, self.end, self.again, self.inputs = start, end, again, inputs


class Input:
    """What an op that runs again reads, and nothing behind the gap's start does. Each of `parts` readers is charged
    with a part. `sent`: behind which position its copy out is made, None where it is charged with none; `askers`: how
    many such inputs share that."""

    def __init__(self, name, size, parts, again, leaves, sent):
        self.name, self.bytes, self.parts, self.again, self.leaves, self.sent = name, size, parts, again, leaves, sent
        self.askers, self.inputs = 0, []


class Version:
    def __init__(self, size, written, leaves, gaps):
        self.bytes, self.written, self.leaves, self.gaps = size, written, leaves, gaps


class Period:
    """What one period of a plan's job has to do. `algorithms`: (time, workspace) by position. `operands`: bytes by
    position. `fed`, `results`: (bytes, position of the first use, or of the last write). `stays`: bytes by position of
    what can neither be copied nor run again."""

    def __init__(self, plan, profile, swap=True, recompute=True):
        self.work, self.swap, self.recompute = expand(plan), swap, recompute
        self.device = profile["device"]
        self.instances, self.buffers = self.work.instances, self.work.buffers
        self.n = len(self.instances)
        self.algorithms = algorithms_of(plan, self.work, profile)
        self.operands = [sum(self.buffers[a.buffer].bytes for a in i.accesses) for i in self.instances]
        self.uses, self.readers, self.writer = defaultdict(list), defaultdict(list), {}
        for at, instance in enumerate(self.instances):
            for access in instance.accesses:
                self.uses[access.buffer].append((at, access))
                if access.read is not None:
                    self.readers[access.buffer, access.read].append(at)
                if access.write is not None:
                    self.writer[access.buffer, access.write] = at
        self.fed, self.results, self.versions, self.stays = [], [], [], [0] * self.n
        for number in self.uses:
            self.add_buffer(number)
        asked = [it for version in self.versions for gap in version.gaps for it in gap.inputs if it.sent is not None]
        askers = Counter(it.name for it in asked)
        for it in asked:
            it.askers = askers[it.name]

    def add_buffer(self, number):
        buffer, uses = self.buffers[number], self.uses[number]
        if buffer.kind == "input":
            self.fed.append((buffer.bytes, uses[0][0]))
        if buffer.result and (number, buffer.last) in self.writer:
            self.results.append((buffer.bytes, self.writer[number, buffer.last]))
        times = defaultdict(list)  # by version, when it is written and read: in the next period, too, where it persists
        for at, access in uses:
            if access.read is not None:
                times[access.read].append((at, True))
            if access.write is not None:
                times[access.write].append((at, True))
        if buffer.persists:
            first, access = uses[0]
            times[buffer.last].append((first + self.n, access.read is not None))
            if buffer.last:
                times[buffer.last] += [(at + self.n, True) for at, _ in times.pop(0, [])[1:]]
        for version, points in times.items():
            gaps = []
            for (start, _), (end, back) in zip(points, points[1:]):
                if back:
                    self.add_gap(number, version, start, end, gaps)
            if gaps:
                written, leaves = self.writer.get((number, version)), self.leaves(number, version)
                self.versions.append(Version(buffer.bytes, written, leaves, gaps))

    def add_gap(self, number, version, start, end, gaps):
        writer, leaves = self.runs_again(number, version), self.leaves(number, version)
        if writer is None and not leaves:
            for at in range(start + 1, end):
                self.stays[at % self.n] += self.buffers[number].bytes
            return
        charged = writer is not None and self.charged(writer) == number
        again = None if writer is None else self.least_time(writer) if charged else 0
        inputs = self.inputs_of(writer, start, DEPTH, [MOST_INPUTS]) if charged and end > start + 1 else []
        gaps.append(Gap(start, end, again, inputs))

    def leaves(self, number, version):
        """Whether it may be copied from the host."""
        return self.swap or (version == 0 and self.buffers[number].kind == "input")

    def runs_again(self, number, version):
        """Who writes it and may do so again."""
        writer = self.writer.get((number, version))
        if not self.recompute or writer is None or self.buffers[number].persists:
            return None
        return writer if self.instances[writer].again else None

    def sent(self, number, version):
        """Where it is written, if no op runs between two of its uses."""
        if (number, version) not in self.writer:
            return None
        times = [self.writer[number, version], *self.readers[number, version]]
        return times[0] if all(later <= earlier + 1 for earlier, later in zip(times, times[1:])) else None

    def charged(self, writer):
        """Of what it writes, the largest."""
        written = [a.buffer for a in self.instances[writer].accesses if a.write is not None and not a.effect]
        return max(written, key=lambda b: self.buffers[b].bytes)

    def least_time(self, position):
        return min(time for time, _ in self.algorithms[position])

    def inputs_of(self, writer, start, depth, left):
        found = []
        for access in self.instances[writer].accesses:
            buffer, readers = self.buffers[access.buffer], self.readers[access.buffer, access.read]
            if access.effect or access.read is None or not left[0]:
                continue
            if buffer.persists or buffer.result or max(readers) > start:
                continue
            left[0] -= 1
            own = self.runs_again(access.buffer, access.read)
            charged = own is not None and self.charged(own) == access.buffer
            again = None if own is None else self.least_time(own) if charged else 0
            name, leaves = (access.buffer, access.read), self.leaves(access.buffer, access.read)
            sent = self.sent(*name) if depth == DEPTH else None
            found.append((own if charged else None, Input(name, buffer.bytes, len(readers), again, leaves, sent)))
        for own, it in found:
            if own is not None and depth > 1:
                it.inputs = self.inputs_of(own, start, depth - 1, left)
        return [it for _, it in found]


def algorithms_of(plan, work, profile):
    """What may run each instance: by the profile, or what adds up rounds, as in the plan."""
    points = {op["op"]: op["variants"] for op in profile["ops"]}
    rows = {row["n"]: row for _, row in plan.body if row["i"] == "exec"}
    result = []
    for number, instance in enumerate(work.instances):
        if len(instance.key) > 4 or instance.key[1] not in points:
            result.append([(rows[number]["t"], rows[number]["wsb"])])
            continue
        job = plan.jobs[0]
        op = next(op for op in plan.graphs[0].ops if op["op"] == instance.key[1])
        batch = job["batch"] if op["phase"] == "optimizer" else job["rounds"][instance.key[3]]
        result.append([(point["time_ns"], point["workspace_bytes"]) for variant in points[instance.key[1]]
                       for point in variant["points"] if point["batch"] == batch])
    return result


class Program:
    """A linear program whose variables are not negative and whose objective is to be least. Rows are (terms, sense,
    bound)."""

    def __init__(self):
        self.n, self.costs, self.rows = 0, {}, []

    def variable(self, cost=0.0):
        self.n += 1
        if cost:
            self.costs[self.n] = cost
        return self.n

    def row(self, terms, sense, bound):
        factors = {}
        for variable, factor in terms:
            factors[variable] = factors.get(variable, 0) + factor
        self.rows.append((factors.items(), sense, bound))

    def write(self, file):
        file.write("Minimize\n obj: " + text_of(self.costs.items()) + "\nSubject To\n")
        for terms, sense, bound in self.rows:
            file.write(f" {text_of(terms)} {sense} {bound!r}\n")
        file.write("End\n")

    def solve(self):
        """The least objective."""
        with tempfile.TemporaryDirectory() as folder:
            path, out = (os.path.join(folder, name) for name in ("program.lp", "solution"))
            with open(path, "w", encoding="ascii") as file:
                self.write(file)
            done = subprocess.run(["glpsol", "--lp", path, "-w", out, "--tmlim", str(MOST_SECONDS)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                raise RuntimeError("glpsol: " + done.stdout)
            with open(out, encoding="ascii") as file:
                status = next(line.split() for line in file if line.startswith("s "))
        if status[4:6] != ["f", "f"]:  # both primal and dual feasible
            raise RuntimeError("glpsol finds no optimum: " + done.stdout)
        return float(status[6])


def text_of(terms):
    """Terms of a row, on lines that are not too long."""
    pieces = [f"{'+' if factor >= 0 else '-'} {abs(factor)!r} x{variable}" for variable, factor in terms]
    return "\n".join(" ".join(pieces[at:at + 8]) for at in range(0, len(pieces), 8)) or "0 x1"


class Fluid:
    """The program of a period in so many bytes, in parts of `unit` ns and of all bytes."""

    def __init__(self, period, room):
        self.period, self.room, self.n = period, room, period.n
        self.unit = max(1, sum(map(period.least_time, range(self.n))))
        self.program = Program()
        self.memory = [[] for _ in range(self.n)]  # terms by position
        self.ins, self.outs, self.own = ([[] for _ in range(2 * self.n)] for _ in range(3))  # terms by slot
        self.slow = 1 + period.device["slowdown_ppm"] / MILLION
        for position in range(self.n):
            self.add_op(position)
        for size, first in period.fed:
            self.add_fed(size, first)
        for size, written in period.results:
            slots = range(2 * written, 2 * (written + self.n))
            self.program.row([(self.copy("d2h", size, slot), 1) for slot in slots], "=", 1)
        for version in period.versions:
            self.add_version(version)
        self.add_links()
        for position, terms in enumerate(self.memory):
            beside = room - period.operands[position] - period.stays[position]
            self.program.row(terms, "<=", beside / room)

    def least(self):
        """The least time of a period, in ns."""
        return self.program.solve() * self.unit

    def run(self, slot, time, parts=1):
        """Variables for how much of so long a run is in the slot, alone, and beside copies, which have its time."""
        alone, slowed = (self.program.variable(time * slower / parts / self.unit) for slower in (1, self.slow))
        self.own[slot % (2 * self.n)].append((slowed, time * self.slow / parts / self.unit))
        return alone, slowed

    def copy(self, link, size, slot, parts=1):
        """A variable for how much of a copy is in the slot."""
        variable, rate = self.program.variable(), self.period.device[link]["bytes_per_second"]
        way = self.ins if link == "h2d" else self.outs
        way[slot % (2 * self.n)].append((variable, size * SECOND / rate / parts / self.unit))
        return variable

    def keep(self, position, variable, size):
        self.memory[position % self.n].append((variable, size / self.room))

    def add_op(self, position):
        shares = []
        for time, workspace in self.period.algorithms[position]:
            both = self.run(2 * position, time)
            shares += both
            for variable in both if workspace else ():
                self.keep(position, variable, workspace)
        self.program.row([(share, 1) for share in shares], "=", 1)

    def add_links(self):
        """A copy has a part of its speed while the other direction copies. Where that is less than half they take
        turns."""
        duplex = self.period.device["duplex_ppm"] / MILLION
        beside = (1 - duplex) / duplex if duplex > 0.5 else 1
        for own, ins, outs in zip(self.own, self.ins, self.outs):
            waits = self.program.variable(1)
            for one, other in ((ins, outs), (outs, ins)):
                terms = one + [(variable, beside * factor) for variable, factor in other if beside]
                if terms:
                    self.program.row(terms + [(variable, -factor) for variable, factor in own + [(waits, 1)]], "<=", 0)

    def add_fed(self, size, first):
        here, copies = None, []
        for slot in range(2 * first, 2 * (first + self.n)):
            if slot % 2 == 0:
                here = self.held(slot // 2, size, here, copies[-2:], ())
            copies.append(self.copy("h2d", size, slot))
        self.program.row([(copy, 1) for copy in copies], "=", 1)

    def held(self, position, size, before, come, gone):
        """A variable for what is there at an op: what was at the one before, and has come since, less what has gone."""
        here = self.program.variable()
        terms = [(here, 1), *((copy, -1) for copy in come), *((copy, 1) for copy in gone)]
        self.program.row(terms + ([(before, -1)] if before else []), "=", 0)
        self.keep(position, here, size)
        return here

    def add_version(self, version):
        host = []  # how much of it the host has when a gap begins: the sum of these, or 1 where nothing wrote it
        for gap in version.gaps:
            row, slots, shares = self.program.row, range(2 * gap.start + 1, 2 * gap.end), []
            stays, ins, later, leaves = self.program.variable(), {}, {}, []
            if gap.again is not None:
                again = self.program.variable()
                shares.append(again)
                self.add_again(gap, slots, again, gap.again, gap.inputs, 1, version.bytes)
            if version.leaves:
                copied = self.program.variable()  # of what the host has
                row([(copied, 1), *((variable, -1) for variable in host)], "<=", 1 if version.written is None else 0)
                if version.written is not None:
                    later = {slot: self.copy("d2h", version.bytes, slot) for slot in slots}
                    before = range(2 * version.written + 1, 2 * gap.start + 1) if version.written < gap.start else ()
                    leaves = [*later.values(), *(self.copy("d2h", version.bytes, slot) for slot in before)]
                    if gap.again is not None:  # for the copy, of what is taken to be there
                        made = [self.copy("d2h", version.bytes, slot) for slot in slots]
                        self.run_behind(slots, gap.again, made, 1)
                        leaves += made
                    row([(variable, 1) for variable in host + leaves], "<=", 1)
                ins = {slot: self.copy("h2d", version.bytes, slot) for slot in slots}
                gone = [copied, *leaves]
                row([(it, 1) for it in ins.values()] + [(variable, -1) for variable in gone], "=", 0)
                shares += [copied, *leaves]
            row([(variable, 1) for variable in (stays, *shares)], "=", 1)
            self.add_presence(version, gap, stays, ins, later)
            host = host + leaves

    def add_presence(self, version, gap, stays, ins, later):
        here = None
        for position in range(gap.start + 1, gap.end):
            come = [ins[slot] for slot in (2 * position - 2, 2 * position - 1) if slot in ins]
            gone = [later[slot] for slot in (2 * position - 2, 2 * position - 1) if slot in later]
            if here is None:  # what leaves later, and has not gone yet, stays as well
                come += [stays, *later.values()]
            here = self.held(position, version.bytes, here, come, gone)

    def run_behind(self, slots, time, shares, parts):
        """Runs, behind ops, together as much as these."""
        if time:
            runs = [variable for slot in slots if slot % 2 for variable in self.run(slot, time, parts)]
            self.program.row([(variable, 1) for variable in runs] + [(share, -1) for share in shares], "=", 0)

    def add_again(self, gap, slots, share, time, inputs, parts, made):
        """Of what runs again, and of what it reads; of several readers each is charged with a part. `made`: the bytes
        that take the place of the inputs, 0: it is open when."""
        self.run_behind(slots, time, [share], parts)
        gives_way = sum(-(-it.bytes // it.parts) for it in inputs) <= made
        for it in inputs:
            own, stays = parts * it.parts, self.program.variable()
            shares = [(stays, 1)]
            for position in range(gap.start + 1, gap.end):
                self.keep(position, stays, it.bytes / own)
            if it.leaves:
                shares += [(copy, 1) for copy in self.add_copies(gap, slots, it, own, gives_way)]
            if it.again is not None:
                shares.append((self.program.variable(), 1))
                self.add_again(gap, slots, shares[-1][0], it.again, it.inputs, own, it.bytes if gives_way else 0)
            self.program.row(shares + [(share, -1)], "=", 0)

    def add_copies(self, gap, slots, it, parts, gives_way):
        """Of what an op that runs again reads: its copies in."""
        ins, here = {slot: self.copy("h2d", it.bytes, slot, parts) for slot in slots}, None
        for position in range(gap.start + 1, gap.end if gives_way else 0):
            come = [ins[slot] for slot in (2 * position - 2, 2 * position - 1) if slot in ins]
            here = self.held(position, it.bytes / parts, here, come, ())
        if it.sent is not None:
            outs = [self.copy("d2h", it.bytes, slot, parts * it.askers) for slot in range(2 * it.sent + 1, 2 * gap.end)]
            self.program.row([(out, 1) for out in outs] + [(copy, -1) for copy in ins.values()], "=", 0)
        return list(ins.values())
