"""Threads that the program starts, from the import of this package on: they see what they call, as the thread that follows steps does,
so that none reads memory that a plan has taken away."""

import threading


def start(thread):
    """threading.Thread.start."""
    run = thread.run

    def seen():
        from .following import SEEN  # what it takes is loaded where it is used
        with SEEN.hosting():
            run()

    thread.run = seen
    return START(thread)


START = threading.Thread.start
threading.Thread.start = start
