"""Threads that the program starts while a step is followed: what they call is seen, as that of the thread that follows steps is, so
that none reads memory that a plan has taken away. A thread sees calls by a mode that it has to enter itself, so that what starts
threads in Python is replaced for as long. What threads call that were there before, the extension sees; without it nothing does, and so
threads are seen from the import of this package on."""

import _thread
import threading
from functools import wraps

from .extension import is_there

START = threading.Thread.start  # Python's own, for threads of this package
# What starts threads: by objects, and bare.
STARTERS = ((threading.Thread, "start"), *((_thread, name) for name in ("start_new_thread", "start_new") if hasattr(_thread, name)))


class Guests:
    def __init__(self):
        self.is_on = False
        self.replaced = {}  # what is there, and what was there before, by owner and name

    def begin(self):
        if self.is_on:
            return
        self.is_on = True
        for owner, name in STARTERS:
            before = getattr(owner, name)
            now = self.hosting_objects(before) if owner is threading.Thread else self.hosting_functions(before)
            setattr(owner, name, now)
            self.replaced[owner, name] = now, before

    def end(self):
        """What somebody else has replaced meanwhile stays, and starts threads as before."""
        self.is_on = False
        for (owner, name), (now, before) in self.replaced.items():
            if getattr(owner, name) is now:
                setattr(owner, name, before)
        self.replaced.clear()

    def seen(self, run):
        @wraps(run)
        def within(*args, **kwargs):
            if not self.is_on:
                return run(*args, **kwargs)
            from .following import SEEN  # not above: the import of the package alone would load all of it
            with SEEN.hosting():
                return run(*args, **kwargs)
        return within

    def hosting_objects(self, start):
        @wraps(start)
        def start_seen(thread):
            thread.run = self.seen(thread.run)
            return start(thread)
        return start_seen

    def hosting_functions(self, start):
        @wraps(start)
        def start_seen(function, *args):
            return start(self.seen(function), *args)
        return start_seen


GUESTS = Guests()
if not is_there():
    GUESTS.begin()
