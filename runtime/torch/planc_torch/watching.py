"""Sees the calls of all followed steps, and what their users do with tensors between steps.

There is one mode for calls and one for functions, for all followed steps of the process. They are entered with the first
one and stay, since others' modes may lie above them; without followed steps they let everything pass. They are of the
thread that they were entered in.
"""

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import READS, SHARES, only_views, tensors_on
from torch_recorder import tensors_in


class Calls(TorchDispatchMode):
    def __init__(self, watched):
        super().__init__()
        self.watched = watched

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.watched.iterations or self.watched.aside:
            return function(*args, **kwargs)
        if only_views(function):
            return self.view(function, args, kwargs)
        active = self.watched.active()
        self.watched.bring(tensors_in((args, kwargs)), active)
        return active.run(function, args, kwargs) if active else function(*args, **kwargs)

    def view(self, function, args, kwargs):
        """A call that touches no element. PyTorch gives no view of a storage that is too small for it, so one that has
        been emptied gets memory meanwhile."""
        emptied = []
        for iteration in self.watched.iterations:
            emptied += iteration.memory.emptied(tensors_on(iteration.device, (args, kwargs)))
        for storage, size in emptied:
            storage.resize_(size)
        try:
            return function(*args, **kwargs)
        finally:
            for storage, _ in emptied:
                storage.resize_(0)


class Functions(TorchFunctionMode):
    """Sees what reads or hands out a tensor's memory in no call."""

    def __init__(self, watched):
        super().__init__()
        self.watched = watched

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in SHARES or name in READS:
            tensors = tensors_in(args)
            if self.watched.knows(tensors):
                return self.watched.expose(name, tensors, lambda: function(*args, **kwargs))
        return function(*args, **kwargs)


class Watched:
    """The followed steps."""

    def __init__(self):
        self.iterations, self.running, self.modes, self.aside = [], [], None, False

    def add(self, iteration):
        self.iterations.append(iteration)
        if self.modes is None:
            self.modes = Functions(self), Calls(self)
            for mode in self.modes:
                mode.__enter__()

    def remove(self, iteration):
        self.iterations.remove(iteration)

    def active(self):
        return self.running[-1] if self.running else None

    def bring(self, tensors, but=None):
        for iteration in self.iterations:
            if iteration is not but:
                iteration.memory.bring(tensors)

    def knows(self, tensors):
        """Whether a tensor is of a followed step, or was."""
        return any(i.memory.buffer_in(t) is not None or i.memory.dropped_in(t) is not None
                   for i in self.iterations for t in tensors)

    def expose(self, name, tensors, run):
        active = self.active()
        self.bring(tensors, active)
        if active is None:
            result = run()
        elif name in SHARES:
            active.refuse_dropped(tensors)
            active.leave(f"{name} of a tensor of the plan's")
            result = run()
        else:
            result = active.read(name, tensors, lambda: self.looking_away(run))
        for iteration in self.iterations if name in SHARES else ():
            iteration.memory.pinned |= {iteration.memory.buffer_in(tensor) for tensor in tensors} - {None}
        return result

    def looking_away(self, run):
        """Runs what reads in no call of the step, whatever calls it makes."""
        self.aside = True
        try:
            return run()
        finally:
            self.aside = False
