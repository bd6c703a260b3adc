"""Keeps other threads from the tensors of a step while it follows its plan, which takes their memory away between any two calls.

Who wants them waits until the step is over or has left its plan, and is let through before the next one begins, which waits in turn
until they are used no more. Another thread is given a moment for what else it may want, so that one that logs all weights takes one
step's end and not one for each.
"""

import threading
import time
from contextlib import contextmanager

from .library import FollowError

PATIENCE, SHORT = 30, 1  # seconds in which a step makes no call; the short ones where it may well be that none of its is wanted
LINGER, AT_MOST = 0.001, 0.05  # seconds from one visit to the next, and all of them together


class Gate:
    """`progress` gives a value that changes as the step gets on."""

    def __init__(self, progress):
        self.progress = progress
        self.free = threading.Condition()
        self.is_closed, self.visitors, self.waiting, self.due = False, 0, 0, 0
        self.is_in_doubt = False  # who may want none of the step's has waited for nothing, until it is opened
        self.last = 0.0  # when the last visitor went

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
    def visit(self, name, is_guest):
        """Within, the gate is not closed. `name`: whose memory is wanted, None where that is not known; `is_guest`: by another thread than the steps'."""
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
                self.free.wait(0.1)
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
