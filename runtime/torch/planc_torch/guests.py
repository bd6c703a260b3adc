"""Threads that the program starts, from the import of this package on: what they call is seen, as that of the thread that follows
steps is, so that none reads memory that a plan has taken away. A thread sees calls by a mode that it has to enter itself, so that
threading.Thread.start is replaced for the whole process; threads of other libraries, and earlier ones, are not seen."""

import threading


def start(thread):
    """threading.Thread.start."""
    run = thread.run

    def seen():
        from .following import SEEN  # not above: the import of the package alone would load all of it
        with SEEN.hosting():
            run()

    thread.run = seen
    return START(thread)


START = threading.Thread.start  # Python's own, for threads of this package
threading.Thread.start = start
