"""Sees the calls of all followed steps, and what their users do with tensors between steps.

There is one set of methods in the place of PyTorch's for all followed steps of the process, and one mode for calls in each
thread that follows some. In the thread that follows the first one they stay, since others' modes may lie above, and in those
that are started while a step is followed (guests.py), which wait at the gate of a step for what is its; in others they are
there while a followed step runs. What others call, as threads do that were there before, the extension sees
(csrc/other_threads.h). Without followed steps they let everything pass.

PyTorch runs backward passes of a GPU in threads of its own, with the modes of the thread that asked for it. So a mode knows
whose it is, and does not ask in which thread it is called.
"""

import sys
import threading
from contextlib import ExitStack, contextmanager, nullcontext
from types import MethodType

from torch.utils._python_dispatch import TorchDispatchMode, _get_dispatch_stack_at, _len_torch_dispatch_stack

from .calls import READS, RESIZES, SHARES, STORAGE, STORAGES, name_of, only_views, tensors_on
from .extension import anyway, plain_calls
from .guests import GUESTS
from .handed_out import is_forgotten
from .library import FollowError
from .methods import Methods
from torch_recorder import called, in_parts


class Calls(TorchDispatchMode):
    def __init__(self, watched):
        super().__init__()
        self.watched = watched
        self.is_helped = False

    def be_helped(self, module):
        """Has the extension see calls first, which leaves to Python what is not plain."""
        if not self.is_helped:
            watch = module.Watch(self.watched, only_views, self.__torch_dispatch__)
            self.__torch_dispatch__, self.is_helped = MethodType(watch.see_call, self), True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, watched = kwargs or {}, self.watched
        if not watched.iterations or watched.aside:
            return called(function, args, kwargs)
        made = in_parts(self, function, args, kwargs) if watched.running else NotImplemented
        if made is not NotImplemented:
            return made
        was, watched.inside = watched.inside, True  # as looking_in() does, in less time
        try:
            with watched.visiting((args, kwargs)):
                return self.view(function, args, kwargs) if only_views(function) else self.call(function, args, kwargs)
        finally:
            watched.inside = was

    def call(self, function, args, kwargs):
        active = self.watched.active()
        self.watched.bring((args, kwargs), active)
        return active.run(function, args, kwargs) if active else function(*args, **kwargs)

    def view(self, function, args, kwargs):
        """A call that touches no element. PyTorch gives no view of a storage that is too small for it, so one that has
        been emptied says meanwhile that it is not. Without the extension, and for what gives it another size, which
        copies elements, it gets memory; what persists comes home for that."""
        emptied, resizes = [], name_of(function) in RESIZES
        for iteration in self.watched.iterations:
            tensors = tensors_on(iteration.device, (args, kwargs))
            if resizes:
                iteration.memory.bring(tensors)
            emptied += iteration.memory.emptied(tensors)
        module = plain_calls() if emptied and not resizes else None
        resize = module.say_bytes if module else STORAGE.resize_
        for storage, size in emptied:
            resize(storage, size)
        try:
            return called(function, args, kwargs)
        finally:
            for storage, _ in emptied:
                resize(storage, 0)


class Seen:
    """The followed steps of the process, of which one thread at a time runs some."""

    def __init__(self):
        self.iterations, self.one_thread = [], threading.RLock()
        self.working = None  # what the thread sees that runs a step
        self.dropped = []  # followed steps that nobody has any more and that are open still
        self.methods = Methods(SHARES + READS + STORAGES, self.see)
        self.threads = Threads(self)
        self.is_entered = False
        self.asking = None  # the extension, where it tells of other threads

    @property
    def here(self):
        """What this thread sees. One of PyTorch's own sees what the one does that runs a step."""
        own = self.threads.watched
        return self.working if own.calls is None and self.working and self.working.is_lent() else own

    def see(self, name, tensor, run):
        """What reads or hands out a tensor's memory, or a storage's, in no call."""
        watched = self.here if self.iterations else None
        if watched is None or watched.inside or watched.reads or watched.is_own:
            return run()
        watched.is_guest |= watched.calls is None
        watched.reads = True
        try:
            with watched.visiting([tensor]):
                return self.see_of_plan(watched, name, tensor, run) if watched.knows([tensor]) else run()
        finally:
            watched.reads = False

    def see_of_plan(self, watched, name, tensor, run):
        """A guest may read a storage when another step runs already, as one that saves weights does: it stays."""
        is_passing = name in STORAGES or is_forgotten(name)
        if is_passing and watched.is_guest:
            return watched.expose(name, [tensor], run, True)
        if is_passing and not watched.lacks([tensor]):
            return run()
        return watched.expose(name, [tensor], run, name in SHARES and not is_passing)

    @contextmanager
    def hosting(self):
        """Within, which is as long as it lives, this thread is one that the program has started."""
        watched = self.threads.watched
        watched.is_guest = True
        watched.enter()
        try:
            yield
        finally:
            watched.leave()

    def let_in(self, tensors):
        """A call in a thread of Python's without a mode is given these. Waits until it may have them, and gives what is closed behind it."""
        watched = self.threads.watched
        if watched.calls is not None or watched.is_own or not self.iterations:
            watched.say_seen()
            return None
        if watched.inside or watched.aside or watched.reads:
            return None
        watched.is_guest = watched.inside = True
        try:
            stack = self.visit_of(watched, tensors)
            watched.bring(tensors)
        finally:
            watched.inside = False
        return stack

    def visit_of(self, watched, tensors):
        """Who waits in vain has steps leave their plans, since that cannot be told as an exception of the call."""
        stack = ExitStack()
        while True:
            try:
                stack.enter_context(watched.visiting_others(tensors))
                return stack
            except FollowError as error:
                with watched.looking_away():
                    for iteration in self.iterations:
                        if iteration.within and iteration.memory.has_any(tensors_on(iteration.device, tensors)):
                            iteration.leave(str(error))

    def add(self, iteration):
        self.iterations.append(iteration)
        if not self.is_entered:
            self.enter()
        GUESTS.begin()
        self.ask_of_others(anyway())
        for watched in (self.here, self.working):
            if watched:
                watched.find_help()

    def enter(self):
        """From now on this thread sees what it calls."""
        watched = self.threads.watched
        self.methods.__enter__()
        if watched.calls is None:
            watched.enter()
        watched.is_guest, self.is_entered = False, True

    def leave(self):
        self.threads.watched.leave()
        self.methods.__exit__()
        self.is_entered = False

    def remove(self, iteration):
        self.iterations.remove(iteration)
        if not self.iterations and self.asking:
            GUESTS.end()
            self.ask_of_others(None)

    def ask_of_others(self, module):
        """Has the extension tell of what threads without a mode call, or without one no more."""
        if self.asking and self.asking is not module:
            self.asking.ask_of_others(None)
        if module and self.asking is not module:
            module.ask_of_others(self.let_in)
        self.asking = module

    def close_dropped(self):
        """By the thread that may run a step, ahead of it."""
        while self.dropped and not self.working:
            self.dropped.pop().close()

    @contextmanager
    def running(self):
        """Within, a step runs in this thread, whose calls are seen. Gives whether it is another than the one of the first step."""
        watched, before = self.threads.watched, self.working
        is_entered = watched.calls is not None
        if not is_entered:
            watched.enter()
        self.working = watched
        try:
            yield not is_entered or watched.is_guest
        finally:
            self.working = before
            if not is_entered:
                watched.leave()


class Threads(threading.local):
    def __init__(self, seen):
        self.watched = Watched(seen.iterations)


class Watched:
    """What one thread sees of the followed steps. `calls`: its mode, while that is entered. `inside`: it is this package that
    calls; `aside`: no call is a step's; `reads`: a method is looked at; `is_guest`: the program has started it; `visits`: steps
    that have to wait for it; `is_own`: it is one of this package's."""

    def __init__(self, iterations):
        self.iterations, self.running, self.calls = iterations, [], None
        self.is_guest, self.visits, self.is_own = False, [], False
        self.inside = self.aside = self.reads = False

    def enter(self):
        self.calls = Calls(self)
        self.find_help()
        self.calls.__enter__()
        self.say_seen()

    def leave(self):
        self.calls.__exit__(None, None, None)
        self.calls = None
        self.say_seen()

    def is_lent(self):
        """Whether PyTorch has made this thread, for a backward pass that is seen here. The thread has the modes of the one that asked for
        it, and within a mode, which is none of them, what is called comes from this package. Bare threads of Python's have neither."""
        if not isinstance(threading.current_thread(), threading._DummyThread):
            return False
        if any(_get_dispatch_stack_at(n) is self.calls for n in range(_len_torch_dispatch_stack())):
            return True
        first = sys._getframe()
        while first.f_back:
            first = first.f_back
        return first.f_globals.get("__name__", "").startswith(__package__ + ".")

    def say_seen(self):
        """The extension need not ask of this thread."""
        module = anyway()
        if module:
            module.say_seen(self.calls is not None or self.is_own)

    def find_help(self):
        if self.calls and any(iteration.plain for iteration in self.iterations):
            self.calls.be_helped(plain_calls())

    def leave_steps(self, reason):
        """Leaves the plans of the steps that run."""
        with self.looking_away():
            for iteration in self.running:
                iteration.leave(reason)

    def leaving(self, reason):
        """Makes of a method one that leaves them first, where it is the step that calls it."""
        thread = threading.get_ident()

        def make(original):
            def run(*args, **kwargs):
                if threading.get_ident() == thread and not self.inside and not self.aside:
                    self.leave_steps(reason)
                return original(*args, **kwargs)
            return run
        return make

    def active(self):
        return self.running[-1] if self.running else None

    def bring(self, value, but=None):
        """Brings home what other steps than `but` have away of the tensors in a call's arguments."""
        for iteration in self.iterations:
            if iteration is not but:
                iteration.memory.bring(tensors_on(iteration.device, value))

    def visiting(self, value):
        """Within, tensors in a call's arguments that are other steps' than those that run in this thread may be used."""
        return nullcontext() if self.iterations == self.running else self.visiting_others(value)

    @contextmanager
    def visiting_others(self, value):
        tensors = {device: tensors_on(device, value) for device in {iteration.device for iteration in self.iterations}}
        others = [i for i in self.iterations if i not in self.running and i not in self.visits]
        wanted = [i for i in others if i.memory.has_any(tensors[i.device])]
        with ExitStack() as stack:
            for iteration in wanted:
                name = iteration.memory.name_among(tensors[iteration.device])
                stack.enter_context(iteration.gate.visit(name, self.is_guest))
            self.visits += wanted
            try:
                yield
            finally:
                del self.visits[len(self.visits) - len(wanted):]

    def knows(self, tensors):
        """Whether a tensor is of a followed step, or was."""
        with self.looking_in():
            return any(i.memory.buffer_in(t) is not None or i.memory.dropped_in(t) is not None
                       for i in self.iterations for t in tensors)

    def lacks(self, tensors):
        """Whether a tensor's memory is away."""
        with self.looking_in():
            return any(iteration.memory.emptied(tensors) for iteration in self.iterations)

    def expose(self, name, tensors, run, shares):
        """`shares`: who calls the method may keep the memory, which stays where it is then."""
        def share():
            for iteration in self.iterations:
                iteration.memory.hand_out(tensors)
            return run()

        active = self.active()
        with self.looking_away():
            for iteration in self.iterations:
                if iteration is not active:
                    iteration.memory.bring(tensors)
        if active is None:
            result = share() if shares else run()
        else:
            with self.looking_away():
                result = active.share(name, tensors, share) if name in SHARES else active.read(name, tensors, run)
        for iteration in self.iterations if shares else ():
            iteration.memory.pin(tensors)
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
