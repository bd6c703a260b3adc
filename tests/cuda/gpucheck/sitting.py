"""A sitting: goes through the checks that are not over, in their order, until its time is up."""

import dataclasses
import errno
import json
import os
import sys
import time
import traceback
import typing

from .commands import Failure, Over, Unfit
from .state import MOST, cut_off, slug, writable

FULL = os.strerror(errno.ENOSPC)
IN_TIME = 30  # seconds for a look at the device
MARKS = {True: "ok    ", False: "FAILED", None: "      "}


def say(text):
    """Where nobody reads it any more, or a disk is full: all is in the archive."""
    try:
        print(text, flush=True)
    except OSError:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@dataclasses.dataclass(frozen=True)
class Check:
    name: str
    minutes: float  # that it should take
    run: typing.Callable
    arguments: tuple = ()
    needs: tuple = ()  # the names of checks that must have passed
    jobs: tuple = ()   # plans that it runs


class Context:
    """What a check is given, and gives."""

    def __init__(self, check, sitting):
        self.check, self.minutes = check, check.minutes
        self.tools, self.state, self.planner = sitting.tools, sitting.state, sitting.planner
        self.commands, self.described, self.times = sitting.commands, sitting.described, sitting.times
        self.device = sitting.device  # a name for files
        self.rows, self.gives, self.files = [], {}, []

    def row(self, name, ok, **figures):
        """A line of the results; `ok` None: for information."""
        self.rows.append({"row": name, "ok": ok, **figures})
        told = " ".join(f"{key}={value}" for key, value in figures.items())
        say(f"{MARKS[ok]} {self.check.name}: {name} {told}".rstrip())

    def timed(self, ok):
        """What a time says is for information on a device whose times mean nothing."""
        return bool(ok) if self.times else None

    def keep(self, *files):
        """Files of the state that later checks need of this one."""
        self.files += files

    def give(self, key, value):
        self.gives[key] = value

    def given(self, key):
        return self.gives[key]

    def execute(self, plan, *options, seconds):
        told = self.commands.must(self.tools.planrun, "exec", plan, "--backend", "cuda", "--json", *options, seconds=seconds)
        return json.loads(told.strip().splitlines()[-1])


class Sitting:
    def __init__(self, tools, state, planner, commands, *, device="device", described=None, times=True, faults=None):
        self.tools, self.state, self.planner, self.commands = tools, state, planner, commands
        self.device, self.described, self.times = device, described, times
        self.faults = faults or {}  # what goes wrong in the first attempt of a check; for tests

    def go(self, checks, put_away):
        """First attempts in order, then second ones. What the sitting's end cut off comes behind all others in the next.
        What is known is put away before each and behind it."""
        begun, over = False, set()
        self.ask_ahead(checks)
        while check := self.next(checks, begun, over):
            try:
                self.attempt(check, put_away)
            except Over as reason:
                say(f"       {check.name}: {reason}")
                over.add(check.name)
                begun = True
                put_away()
                continue
            except OSError as error:  # ours, not the check's: nothing can be kept any more
                say(f"       {check.name}: {error}: the sitting ends")
                return
            begun = True
            self.ask_ahead(checks)
            put_away()
            failed = self.state.attempts(check.name)[-1]["outcome"] == "failed"
            if failed and self.commands.remaining() > IN_TIME and not self.has_device():
                say("       the device is gone: the sitting ends")
                return

    def left(self, checks):
        """How many are not through."""
        return sum(not self.is_over(check) for check in checks)

    def has_device(self):
        """Whether planrun still finds it, in good time."""
        self.commands.extra, self.commands.other_limit = {}, None
        try:
            told = json.loads(self.commands.must(self.tools.planrun, "info", "--json", seconds=10))
        except (Failure, Over, ValueError):
            return False
        return any(backend["name"] == "cuda" and backend["available"] for backend in told["backends"])

    # --- Which is next

    def is_over(self, check):
        return self.state.outcome(check.name) is not None or self.is_left_out(check)

    def is_left_out(self, check):
        """What needs a check that cannot pass any more is not tried."""
        return self.state.blocked_by(check.needs) is not None

    def is_ready(self, check):
        return not self.is_over(check) and all(self.state.outcome(need) == "passed" for need in check.needs)

    def next(self, checks, begun, over):
        """The first that fits into what is left of the sitting; of a sitting that has just begun, the first."""
        ready = [check for check in checks if self.is_ready(check) and check.name not in over]
        for attempt in range(sum(MOST.values()) + 1):
            for check in ready:
                enough = self.commands.remaining() >= 60 * check.minutes
                if len(self.state.attempts(check.name)) == attempt and (enough or not begun):
                    return check
        return None

    def ask_ahead(self, checks):
        """Plans whose profile is there are made while the device works."""
        for check in checks:
            if self.is_ready(check):
                for job in check.jobs:
                    self.planner.ask(job)

    # --- One attempt

    def attempt(self, check, put_away):
        """Over when it came to no end: the sitting's time is up, or the disk is full."""
        try:
            self.state.begin(check.name)
            put_away()
            self.try_once(check)
        except BaseException:
            if self.state.going_on == check.name:
                self.state.withdraw(check.name)
            raise

    def try_once(self, check):
        context, begun = Context(check, self), time.monotonic()
        number = len(self.state.attempts(check.name))
        outcome, why = "passed", None
        self.commands.extra, self.commands.other_limit = {}, None
        fault = self.faults.get(check.name)
        if fault and number == 1:
            self.commands.extra, self.commands.other_limit = fault.environment, fault.limit
        with writable(self.state.path("logs", f"{slug(check.name)}-{number}.log")) as log:
            self.commands.log = log
            try:
                check.run(context, *check.arguments)
                if any(row["ok"] is False for row in context.rows):
                    outcome = "failed"
            except Over as over:
                self.state.keep(check.name, cut_off(str(over), round(time.monotonic() - begun, 1)), [])
                raise
            except Unfit as unfit:
                outcome, why = "unfit", str(unfit)
            except Failure as failure:
                outcome, why = "failed", str(failure)
            except Exception as error:  # whatever a check did not foresee is no reason to lose the others
                outcome, why = "failed", f"{type(error).__name__}: {error}"
                traceback.print_exc(file=log)
            finally:
                self.commands.log = None
        if outcome == "failed" and FULL in (why or ""):
            raise Over(why)
        if why:
            context.row(outcome, {"failed": False, "unfit": None}[outcome], why=why)
        files = [file for file in context.files if os.path.exists(self.state.path(file))] if outcome == "passed" else []
        self.state.keep(check.name, {"outcome": outcome, "rows": context.rows, "gives": context.gives,
                                     "seconds": round(time.monotonic() - begun, 1)}, files)
