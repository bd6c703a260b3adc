"""Sees the calls of all followed steps, and what their users do with tensors between steps.

There is one mode for calls and one for functions, for all followed steps of the process. They are entered with the first
one and stay, since others' modes may lie above them; without followed steps they let everything pass. They are of the
thread that they were entered in; in others they are there while a followed step runs.
"""

import threading
from contextlib import ExitStack, contextmanager
from types import MethodType

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import READS, SHARES, STORAGES, only_views, tensors_on
from .extension import plain_calls
from torch_recorder import called, tensors_in


class Calls(TorchDispatchMode):
    def __init__(self, watched):
        super().__init__()
        self.watched = watched

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, watched = kwargs or {}, self.watched
        if not watched.iterations or watched.aside:
            return called(function, args, kwargs)
        was, watched.inside = watched.inside, True  # as looking_in() does, in less time
        try:
            if only_views(function):
                return self.view(function, args, kwargs)
            active = watched.active()
            watched.bring((args, kwargs), active)
            return active.run(function, args, kwargs) if active else function(*args, **kwargs)
        finally:
            watched.inside = was

    def view(self, function, args, kwargs):
        """A call that touches no element. PyTorch gives no view of a storage that is too small for it, so one that has
        been emptied gets memory meanwhile."""
        emptied = []
        for iteration in self.watched.iterations:
            emptied += iteration.memory.emptied(tensors_on(iteration.device, (args, kwargs)))
        for storage, size in emptied:
            storage.resize_(size)
        try:
            return called(function, args, kwargs)
        finally:
            for storage, _ in emptied:
                storage.resize_(0)


class Functions(TorchFunctionMode):
    """Sees what reads or hands out a tensor's memory in no call."""

    NAMES = frozenset(SHARES + READS + STORAGES)

    def __init__(self, watched):
        super().__init__()
        self.watched = watched

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in self.NAMES and not self.watched.inside:
            tensors = tensors_in(args)
            if self.watched.knows(tensors) and (name not in STORAGES or self.watched.lacks(tensors)):
                return self.watched.expose(name, tensors, lambda: function(*args, **kwargs))
        return function(*args, **kwargs)


class Watched(threading.local):
    """The followed steps, of which one thread at a time runs some; all but them is of each thread."""

    def __init__(self, iterations, one_thread):
        self.iterations, self.one_thread = iterations, one_thread
        self.running, self.modes, self.own = [], None, ()
        self.is_helped = False
        self.inside = False
        self.aside = False

    def add(self, iteration):
        self.iterations.append(iteration)
        if self.modes is None:
            self.modes = self.enter(ExitStack())
        elif iteration.plain and not self.is_helped:
            self.be_helped(plain_calls())

    def enter(self, stack):
        self.own, self.is_helped = (Functions(self), Calls(self)), False
        if any(iteration.plain for iteration in self.iterations):
            self.be_helped(plain_calls())
        for mode in self.own:
            stack.enter_context(mode)
        return stack

    def be_helped(self, module):
        """Has the extension see all first, which leaves to the modes what is not plain."""
        functions, calls = self.own
        watch = module.Watch(self, only_views, Functions.NAMES, calls.__torch_dispatch__, functions.__torch_function__)
        calls.__torch_dispatch__ = MethodType(watch.see_call, calls)
        functions.__torch_function__ = MethodType(watch.see_function, functions)
        self.is_helped = True

    @contextmanager
    def seeing(self):
        """Within, the calls of this thread are seen. Gives whether they are not afterwards."""
        if self.modes:
            yield False
            return
        try:
            with ExitStack() as self.modes:
                self.enter(self.modes)
                yield True
        finally:
            self.modes = None

    def leave(self, reason):
        """Leaves the plans of the steps that run."""
        with self.looking_away():
            for iteration in self.running:
                iteration.leave(reason)

    def leaving(self, reason):
        """Makes of a method one that leaves them first, where it is the step that calls it."""
        def make(original):
            def run(*args, **kwargs):
                if not self.inside and not self.aside:
                    self.leave(reason)
                return original(*args, **kwargs)
            return run
        return make

    def remove(self, iteration):
        self.iterations.remove(iteration)

    def active(self):
        return self.running[-1] if self.running else None

    def bring(self, value, but=None):
        """Brings home what other steps than `but` have away of the tensors in a call's arguments."""
        for iteration in self.iterations:
            if iteration is not but:
                iteration.memory.bring(tensors_on(iteration.device, value))

    def knows(self, tensors):
        """Whether a tensor is of a followed step, or was."""
        with self.looking_in():
            return any(i.memory.buffer_in(t) is not None or i.memory.dropped_in(t) is not None
                       for i in self.iterations for t in tensors)

    def lacks(self, tensors):
        """Whether a tensor's memory is away."""
        with self.looking_in():
            return any(iteration.memory.emptied(tensors) for iteration in self.iterations)

    def expose(self, name, tensors, run):
        active = self.active()
        self.bring(tensors, active)
        if active is None:
            result = run()
        else:
            with self.looking_away():
                result = active.share(name, tensors, run) if name in SHARES else active.read(name, tensors, run)
        for iteration in self.iterations if name in SHARES else ():
            iteration.memory.pinned |= {iteration.memory.buffer_in(tensor) for tensor in tensors} - {None}
        return result

    @contextmanager
    def looking_in(self):
        """Within, functions are called by this package."""
        was, self.inside = self.inside, True
        try:
            yield
        finally:
            self.inside = was

    @contextmanager
    def looking_away(self):
        """Within, no call is a step's: neither those that libplanrt has run again, nor those of a read."""
        was, self.aside = self.aside, True
        try:
            yield
        finally:
            self.aside = was
