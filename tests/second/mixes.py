#!/usr/bin/env python3
"""A second opinion on plans of several jobs, written from planc(1), planc-plan(5) and planc-profile(5) alone: what a steady
period takes, what of it each job computes, how long requests wait, and how memory goes from job to job.

    mixes.py PLAN ...         prints of each plan the period and each job's figures, or why memory does not go as it must
"""

import sys
from bisect import bisect_left
from collections import deque

from planfile import Plan, Wrong, demand
from work import expand

MANY = (12, 40, 640)  # bodies that are simulated until the period is steady
SOON = 40  # bodies behind which most are
OVER = 4  # of these, that count
FOLLOWED = 3  # bodies in which hand-overs of memory are followed
MILLION = 1000000
TINY = 1e-6  # of a nanosecond: what is left of work that has ended


class Mix:
    """A plan with the work that its jobs stand for, and by section the rows with the job whose stream or buffer each is of."""

    def __init__(self, lines):
        self.plan = Plan(lines)
        self.work = expand(self.plan)
        demand(self.plan.replicas == 1 and self.plan.devices == 1 and not self.plan.maps, "no mix on one GPU without chunks")
        self.device = self.plan.device
        self.buffer_of, self.memory_of = {}, {-1: self.plan.user}
        for _, row in self.plan.prologue + self.plan.body:
            if row["i"] == "acquire":
                self.buffer_of[row["r"]], self.memory_of[row["r"]] = row["b"], row["m"]

    def iteration(self, row):
        """Of an exec, or a copy of samples or results: which of the job's in a period it is of; None of other copies."""
        if row["i"] == "exec":
            return self.work.instances[row["n"]].key[2]
        if min(row["r"], row["from"]) < 0:
            key = self.work.buffers[self.buffer_of[max(row["r"], row["from"])]].key
            return key[2] if len(key) > 2 else None
        return None

    def job_of_stream(self, stream):
        return self.plan.streams[stream]["job"]


# --- Time ---------------------------------------------------------------------------------------------------------------


class Task:
    """An instruction of a section: what is left of its work, in nanoseconds alone on the GPU, and when it was handed over, began and
    ended."""

    def __init__(self, row, section, job, work):
        self.row, self.section, self.job, self.left = row, section, job, work
        self.handed = self.begin = self.end = None


class Simulation:
    """The prologue and so many bodies, as hosts, streams and engines work on them. What the manual does not say is marked by *.

    Each job has a host, which goes through the instructions of the job's streams in the order of the file, one section behind
    the other. It launches ops, and copies as well *, one at a time, each in the time of a launch, an op not before less than
    in_flight of those that it has launched have not ended; all else it hands over in no time. It enters a section when all jobs
    have ended the section before the last *. A stream starts an instruction when the host has handed it over and the one before has
    ended. An engine copies one at a time; of several streams that have a copy for it the one with the lowest number goes first *."""

    def __init__(self, mix, bodies):
        self.mix, plan = mix, mix.plan
        self.now = 0.0
        self.hosts = [deque() for _ in plan.jobs]
        self.free_at = [0.0] * len(plan.jobs)
        self.launching = [None] * len(plan.jobs)
        self.pending = [0] * len(plan.jobs)
        self.queues = [deque() for _ in plan.streams]
        self.busy_with = [None] * len(plan.streams)
        self.waiting = [[] for _ in range(plan.engines)]
        self.copying = [None] * plan.engines
        self.happened, self.tasks = set(), []
        self.unended = {}  # by section, the execs and copies of all jobs
        self.opposite = opposite_engines(plan)
        self.beside = {row["engine"] for row in plan.links if 0 in row["link"]}
        for section in range(-1, bodies):
            for _, row in plan.body if section >= 0 else plan.prologue:
                if row["i"] in ("exec", "copy"):
                    self.unended[section] = self.unended.get(section, 0) + 1
                if "s" in row:
                    self.hosts[mix.job_of_stream(row["s"])].append((row, section))
        self.run()

    def run(self):
        while True:
            while self.advance_hosts() | self.advance_streams() | self.advance_engines():
                pass
            rates = self.rates()
            steps = [task.left / rate for task, rate in rates if rate]
            steps += [at - self.now for at, launching in zip(self.free_at, self.launching, strict=True) if launching]
            if not steps:
                break
            step = max(min(steps), 0.0)
            self.now += step
            for task, rate in rates:
                task.left -= rate * step
                if task.left < TINY:
                    self.finish(task)
        demand(not any(self.hosts) and not any(self.queues), "the simulation stands still")

    def advance_hosts(self):
        moved = False
        for job, rows in enumerate(self.hosts):
            if self.launching[job]:
                if self.free_at[job] > self.now + TINY:
                    continue
                task, self.launching[job] = self.launching[job], None
                task.handed = self.now
                self.queues[task.row["s"]].append(task)
                moved = True
            while rows and not self.unended.get(rows[0][1] - 2):
                row, section = rows[0]
                if row["i"] == "exec" and self.pending[job] >= self.mix.device["in_flight"]:
                    break
                rows.popleft()
                task = self.task(row, section, job)
                moved = True
                if row["i"] in ("exec", "copy"):
                    self.pending[job] += row["i"] == "exec"
                    self.launching[job], self.free_at[job] = task, self.now + self.mix.device["launch"]
                    break
                self.queues[row["s"]].append(task)
        return moved

    def task(self, row, section, job):
        work = row["t"] if row["i"] == "exec" else copy_time(self.mix, row) if row["i"] == "copy" else 0
        task = Task(row, section, job, work)
        if row["i"] in ("exec", "copy"):
            self.tasks.append(task)
        return task

    def advance_streams(self):
        moved = False
        for number, queue in enumerate(self.queues):
            while queue and not self.busy_with[number]:
                task = queue[0]
                row = task.row
                if row["i"] == "wait":
                    if (row["e"], task.section - row.get("lag", 0)) not in self.happened:
                        break
                elif row["i"] == "record":
                    self.happened.add((row["e"], task.section))
                else:
                    self.busy_with[number] = task
                    if row["i"] == "copy":
                        self.waiting[engine_of(self.mix.plan, row)].append(task)
                    else:
                        task.begin = self.now
                queue.popleft()
                moved = True
        return moved

    def advance_engines(self):
        moved = False
        for engine, queue in enumerate(self.waiting):
            if queue and not self.copying[engine]:
                task = min(queue, key=lambda task: task.row["s"])
                queue.remove(task)
                self.copying[engine] = task
                task.begin, moved = self.now, True
        return moved

    def rates(self):
        """Of all that runs, (task, nanoseconds of work done in one)."""
        copies = [(task, self.copy_rate(engine)) for engine, task in enumerate(self.copying) if task]
        ops = [task for task in self.busy_with if task and task.row["i"] == "exec"]
        slowed = any(self.copying[engine] for engine in self.beside)
        pace = MILLION / (MILLION + self.mix.device["slowdown"]) if slowed else 1.0
        return copies + [(task, share * pace) for task, share in self.shares(ops)]

    def copy_rate(self, engine):
        opposed = any(self.copying[other] for other in self.opposite[engine])
        return self.mix.device["duplex"] / MILLION if opposed else 1.0

    def shares(self, ops):
        """What of its speed alone each of these ops has beside the others. Those of the highest priority have what they can use, the
        others what that leaves. What ops of one priority have of the GPU is in proportion to their work, which is their time alone
        by their busy share *; none has more than its busy share, and what it cannot use goes to the others in the same proportion."""
        result, left = [], 1.0
        priority = [self.mix.plan.jobs[task.job].get("priority", 0) for task in ops]
        for level in sorted(set(priority), reverse=True):
            group = [task for task, other in zip(ops, priority, strict=True) if other == level]
            for task, share in divide(left, [(task, task.row["t"], task.row["busy"] / MILLION) for task in group]):
                result.append((task, share * MILLION / task.row["busy"] if task.row["busy"] else 1.0))
                left -= share
        return result

    def finish(self, task):
        task.end, task.left = self.now, 0.0
        self.unended[task.section] -= 1
        self.busy_with[task.row["s"]] = None
        if task.row["i"] == "copy":
            self.copying[engine_of(self.mix.plan, task.row)] = None
        else:
            self.pending[task.job] -= 1

    # --- What of it is steady ---------------------------------------------------------------------------------------------

    def ends(self):
        """When the last exec or copy of each section ends, the prologue's first."""
        result = {}
        for task in self.tasks:
            result[task.section] = max(result.get(task.section, 0.0), task.end)
        return [result.get(section, 0.0) for section in range(-1, max(result) + 1)]

    def first_body(self):
        prologue, first, *_ = self.ends()
        return first - prologue

    def window(self):
        """Begin and end of bodies that are steady: at the end of a run no job has others beside it."""
        ends = self.ends()
        return ends[-3 - OVER], ends[-3]

    def period(self):
        first, last = self.window()
        return (last - first) / OVER

    def is_steady(self):
        """Whether the bodies that count lead to where they began: all is handed over, begins and ends at the same times in the body
        before them and in the last of them, seen from each one's end. Bodies that take equally long are not steady where a host is
        ahead by less in each, and bodies that do not may be, by turns."""
        ends, bodies = self.ends(), {}
        for task in self.tasks:
            bodies.setdefault(task.section, []).append(task)
        last = len(bodies) - 4
        before, after = ([time - ends[section + 1] for task in sorted(bodies[section], key=lambda task: task.job)
                          for time in (task.handed, task.begin, task.end)] for section in (last - OVER, last))
        return all(abs(a - b) < 0.01 for a, b in zip(before, after, strict=True))

    def busy(self, job):
        """Of a period: how long some compute stream of the job computes."""
        first, last = self.window()
        total, end = 0.0, first
        for begin, stop in sorted((max(task.begin, first), min(task.end, last)) for task in self.tasks
                                  if task.job == job and task.row["i"] == "exec" and task.end > first and task.begin < last):
            total += max(stop - max(begin, end), 0.0)
            end = max(end, stop)
        return total / OVER

    def spans(self, job):
        """Begin and end of each iteration of a job, copies of samples and results included."""
        result = {}
        for task in self.tasks:
            number = self.mix.iteration(task.row) if task.job == job and task.section >= 0 else None
            if number is not None:
                at = task.section * self.mix.plan.jobs[job]["iterations"] + number
                begin, end = result.get(at, (task.begin, task.end))
                result[at] = min(begin, task.begin), max(end, task.end)
        return [result[at] for at in range(len(result))]

    def response(self, job):
        """The longest that a request of a job waits and runs once the period repeats: from the begin of an iteration, just behind
        which it may have come, to the end of the next one."""
        spans = self.spans(job)
        first, last = self.window()
        return max(after[1] - before[0] for before, after in zip(spans, spans[1:]) if first <= before[0] < last)


def divide(whole, asking):
    """Of (who, time, busy share): what each has of the whole. The longest ones reach their busy share first."""
    asking = sorted(asking, key=lambda item: -item[1])
    work = sum(time * busy for _, time, busy in asking)
    result = []
    for who, time, busy in asking:
        share = min(busy, whole * time * busy / work) if work > 0 else busy
        result.append((who, share))
        whole, work = max(whole - share, 0.0), work - time * busy
    return result


def steady(mix, most=MANY[-1]):
    """A simulation that has come to steady periods, None where it has not within so many bodies."""
    for bodies in filter(lambda bodies: bodies <= most, MANY):
        simulation = Simulation(mix, bodies)
        if simulation.is_steady():
            return simulation
    return None


def engine_of(plan, row):
    return plan.streams[row["s"]]["engine"]


def copy_time(mix, row):
    """What a copy takes alone: latency, and its bytes at the link's rate, rounded up."""
    stream = mix.plan.streams[row["s"]]
    demand(stream["stream"] == "copy", "moves inside a memory are not simulated here")
    way = [mix.memory_of[row["from"]], mix.memory_of[row["r"]]]
    link, = (link for link in mix.plan.links if link["engine"] == stream["engine"] and link["link"] == way)
    return link["latency"] + -(-row["bytes"] * 10 ** 9 // link["rate"])



def opposite_engines(plan):
    """Of each engine those that copy in the opposite way."""
    ways = [set() for _ in range(plan.engines)]
    for row in plan.links:
        if 0 in row["link"]:
            ways[row["engine"]].add(tuple(row["link"]))
    return [[other for other in range(plan.engines) if other != engine and
             any((there, here) in ways[other] for here, there in ways[engine])] for engine in range(plan.engines)]


# --- Memory -------------------------------------------------------------------------------------------------------------


class Followed:
    """The prologue and some bodies in the order of the file. Each stream has a clock: of every stream the last instruction that has
    ended before what it does next. Of each stretch of a memory the last accesses of each stream are kept."""

    def __init__(self, mix):
        self.mix, plan = mix, mix.plan
        self.clocks = [[0] * len(plan.streams) for _ in plan.streams]
        self.recorded, self.before = {}, {}
        self.open, self.place = {}, {}
        self.edges = [sorted(edges) for edges in self.named()]
        self.touched = [[({}, {}) for _ in edges] for edges in self.edges]
        self.handed = 0
        self.section(plan.prologue)
        for _ in range(FOLLOWED):
            self.section(plan.body)
            self.at_boundary()

    def named(self):
        """The ends of all stretches that rows name, by memory."""
        result = [set() for _ in self.mix.plan.memories]
        for _, row in self.mix.plan.prologue + self.mix.plan.body:
            if row["i"] == "acquire":
                result[row["m"]].update((row["at"], row["at"] + row["bytes"]))
            elif row["i"] == "exec" and row["wsb"]:
                result[0].update((row["ws"], row["ws"] + row["wsb"]))
        return result

    def section(self, rows):
        self.before, self.recorded = self.recorded, {}
        for line, row in rows:
            try:
                getattr(self, row["i"])(row)
            except Wrong as wrong:
                raise Wrong(f"line {line}: {row['i']}: {wrong}") from None

    def acquire(self, row):
        start, end = row["at"], row["at"] + row["bytes"]
        demand(end <= self.mix.plan.memories[row["m"]]["arena"], "beyond the arena")
        self.demand_free(row["m"], start, end)
        self.open[row["r"]] = self.place[row["r"]] = row["m"], start, end, self.mix.work.buffers[row["b"]].job

    def demand_free(self, memory, start, end):
        for other, (there, first, last, job) in self.open.items():
            demand(there != memory or end <= first or last <= start, f"overlaps residency {other} of job {job}")

    def release(self, row):
        del self.open[row["r"]]

    def exec(self, row):
        instance = self.mix.work.instances[row["n"]]
        uses = [(access, self.open[number]) for access, number in zip(instance.accesses, row["use"], strict=True) if number >= 0]
        demand(all(place[3] == instance.job == self.mix.job_of_stream(row["s"]) for _, place in uses), "another job's memory")
        accesses = [(place, access.write is not None) for access, place in uses]
        if row["wsb"]:
            self.demand_free(0, row["ws"], row["ws"] + row["wsb"])
            accesses.append(((0, row["ws"], row["ws"] + row["wsb"], instance.job), True))
        self.touch(row["s"], accesses)

    def copy(self, row):
        self.touch(row["s"], [(self.open[row[key]], key == "r") for key in ("from", "r") if row[key] >= 0])

    def touch(self, stream, accesses):
        """What conflicts, of another job as well, has ended by the clock of this stream."""
        clock = self.clocks[stream]
        clock[stream] += 1
        for (memory, start, end, job), writes in accesses:
            edges = self.edges[memory]
            for at in range(bisect_left(edges, start), bisect_left(edges, end)):
                read, wrote = self.touched[memory][at]
                for earlier in (read, wrote) if writes else (wrote,):
                    for other, tick in earlier.items():
                        demand(tick <= clock[other], f"not ordered after job {self.mix.job_of_stream(other)}, stream {other}, "
                               f"at {edges[at]} of memory {memory}")
                        self.handed += self.mix.job_of_stream(other) != job
                (wrote if writes else read)[stream] = clock[stream]

    def record(self, row):
        self.recorded[row["e"]] = self.clocks[row["s"]][:]

    def wait(self, row):
        known = (self.before if "lag" in row else self.recorded).get(row["e"])
        demand(known, "an event that has not been recorded")
        self.clocks[row["s"]] = list(map(max, self.clocks[row["s"]], known))

    def at_boundary(self):
        """The boundary's residencies are there again, under their numbers."""
        there = {place: number for number, place in self.open.items()}
        demand(len(there) == len(self.mix.plan.boundary), "more is open than the boundary's, or less")
        parked = {}
        for number, row in enumerate(self.mix.plan.boundary):
            buffer = self.mix.work.buffers[row["boundary"]]
            place = row["m"], row["at"], row["at"] + buffer.bytes, buffer.job
            demand(place in there, f"boundary {number} is not in its place")
            parked[number] = place
        self.open = parked


def follow_memory(mix):
    """How often a job touches what another job did, in three bodies, all of it in order; or Wrong."""
    follow_iterations(mix)
    for memory in mix.plan.memories[:-1]:
        demand(memory["budget"] < 0 or memory["arena"] + memory["reserved"] <= memory["budget"], "beyond a budget")
    return Followed(mix).handed


def follow_iterations(mix):
    """Every instance of every job runs once, and a stream begins no iteration before the one before is done. Ops within one may run
    in another order, as what they read allows."""
    ran, last = set(), {}
    for line, row in mix.plan.body:
        if row["i"] == "exec" and "re" not in row:
            demand(row["n"] not in ran, f"line {line}: runs twice")
            iteration = mix.iteration(row)
            demand(iteration >= last.get(row["s"], 0), f"line {line}: an iteration that is over")
            last[row["s"]] = iteration
            ran.add(row["n"])
    demand(len(ran) == len(mix.work.instances), "not all of every job's iterations run")


# --- Figures ------------------------------------------------------------------------------------------------------------


def wrong_times(mix, simulation, predicted):
    """What `simulate --json` says otherwise than the simulation here. Each exec and copy may be rounded up to a nanosecond, and so
    may each change of what runs beside it, of which a body has as many begins and ends as execs and copies."""
    slack = 1 + sum(row["i"] in ("exec", "copy") for _, row in mix.plan.body)
    figures = [("period_ns", predicted["period_ns"], simulation.period()),
               ("first_period_ns", predicted["first_period_ns"], simulation.first_body()),
               ("prologue_ns", predicted["prologue_ns"], simulation.ends()[0])]
    for number, job in enumerate(predicted.get("jobs", ())):
        busy = simulation.busy(number)
        figures += [(f"busy_ns of job {number}", job["busy_ns"], busy),
                    (f"stall_ns of job {number}", job["stall_ns"], simulation.period() - busy)]
    return [f"{name}: {theirs}, here {ours:.0f}" for name, theirs, ours in figures if abs(theirs - ours) > slack]


def wrong_figures(mix, summary, simulation):
    """What `colocate --json` says otherwise than follows from the plan and from its other figures."""
    period, shares, wrong = summary["period_ns"], summary["shares"], []

    def compare(name, theirs, ours, slack=0.0):
        if abs(theirs - ours) > slack:
            wrong.append(f"{name}: {theirs}, here {ours}")

    memory = mix.plan.memories
    compare("peak_bytes", summary["peak_bytes"], memory[0]["arena"] + memory[0]["reserved"])
    compare("host_peak_bytes", summary["host_peak_bytes"], memory[1]["arena"] + memory[1]["reserved"])
    compare("period of the file", mix.plan.predictions["period"], period)
    if mix.plan.predictions["bound"] > simulation.period() + 1:
        wrong.append("a lower bound above the period")
    for number, (job, row) in enumerate(zip(summary.get("jobs", ()), mix.plan.jobs)):
        for key in ("ideal", "busy", "stall"):
            compare(f"{key} of job {number} in the file", row[key], job[f"{key}_ns"])
    slack = 1 + 2 * sum(row["i"] in ("exec", "copy") for _, row in mix.plan.body)
    for number, (share, job) in enumerate(zip(shares, mix.plan.jobs, strict=True)):
        compare(f"iterations of job {number}", share["iterations"], job["iterations"])
        compare(f"speed of job {number}", share["speed"], share["whole_ns"] * share["iterations"] / period, 1.001e-6)
        compare(f"response_ns of job {number}", share["response_ns"], simulation.response(number), slack)
        if share["deadline_ns"] is not None and share["response_ns"] > share["deadline_ns"]:
            wrong.append(f"job {number} misses its deadline")
    compare("throughput", summary["throughput"], sum(share["speed"] for share in shares), 1.001e-6 * len(shares))
    return wrong


def main():
    failed = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            mix = Mix(file.read().split("\n")[:-1])
        try:
            handed = follow_memory(mix)
            simulation = steady(mix)
            demand(simulation, "no steady period")
            print(f"{path}: {simulation.period():.0f} ns, {handed} accesses to what was another job's; " + "; ".join(
                f"job {number}: busy {simulation.busy(number):.0f} ns, response {simulation.response(number):.0f} ns"
                for number in range(len(mix.plan.jobs))))
        except Wrong as wrong:
            print(f"{path}: {wrong}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
