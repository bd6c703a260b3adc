"""Keeps other threads from the tensors of a step while it follows its plan, which takes their memory away between any two calls.

Who wants them waits until the step is over or has left its plan, and is let through before the next one begins, which waits in turn
until they are used no more. A thread that has used one is given a moment for the next, so that one that logs all weights has to wait
for the end of one step and not of one for each weight.
"""

import threading
import time
from contextlib import contextmanager

from .library import FollowError

# Seconds in which a step makes no call, after which it is taken to wait for the thread that waits for it: more than calls and
# loading a batch take; SHORT where the thread may want nothing of the step's, and nothing is lost by letting it pass.
PATIENCE, SHORT = 30, 1
# Seconds that a step waits for another visit after one, and for all of them together: little beside a step.
LINGER, AT_MOST = 0.001, 0.05
LOOK = 0.1  # seconds from one look at the step's progress to the next


class Gate:
    """`progress` gives a value that changes as the step gets on."""

    def __init__(self, progress):
        self.progress = progress
        self.free = threading.Condition()
        self.is_closed = False
        self.visitors, self.waiting = 0, 0  # visits that are under way, and threads that wait for theirs
        self.due = 0  # of those that waited when it was opened, how many have not passed yet: the next step waits for them
        self.is_in_doubt = False  # until it is opened again: who may want none of the step's need not wait
        self.last = 0.0  # when the last visitor of another thread went; 0 where none did since it was closed

    def close(self):
        """By the thread that runs the step: nobody passes until it is opened."""
        until = time.monotonic() + AT_MOST
        with self.free:
            while self.visitors or self.due or self.lingers(until):
                self.free.wait(LINGER / 2 if self.last else None)
            self.is_closed, self.last = True, 0.0

    def lingers(self, until):
        now = time.monotonic()
        return now < min(self.last + LINGER, until)

    def open(self):
        with self.free:
            self.is_closed, self.is_in_doubt, self.due = False, False, self.waiting
            self.free.notify_all()

    @contextmanager
    def closed(self):
        """Within, it is closed; whatever fails there, nobody waits for ever behind it."""
        self.close()
        try:
            yield
        finally:
            self.open()

    @contextmanager
    def visit(self, name, is_guest):
        """Within, the gate is not closed. `name`: whose memory is wanted, None where it may be none of the step's; `is_guest`: by
        another thread than the steps'."""
        with self.free:
            self.wait(name)
            self.visitors += 1
        try:
            yield
        finally:
            with self.free:
                self.visitors -= 1
                self.last = time.monotonic() if is_guest else self.last
                self.free.notify_all()

    def wait(self, name):
        seen, since = self.progress(), time.monotonic()
        self.waiting += 1
        try:
            while self.is_closed and not (name is None and self.is_in_doubt):
                self.free.wait(LOOK)
                if self.progress() != seen:
                    seen, since = self.progress(), time.monotonic()
                elif name is None and time.monotonic() > since + SHORT:
                    self.is_in_doubt = True
                elif time.monotonic() > since + PATIENCE:
                    raise FollowError(f"{name} is wanted by another thread than that of the step that is under way, which has "
                                      f"made no call for {PATIENCE} seconds; use it between two steps")
        finally:
            self.waiting -= 1
            self.due = max(0, self.due - 1)
            self.free.notify_all()
