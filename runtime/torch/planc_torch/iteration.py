"""One iteration of a followed step: holds its calls against the recorded ones, and hands them to libplanrt."""

from .calls import (READ, described, described_tensor, draws, is_within_an_optimizer, storage_in, tensors_on, touched,
                    written)
from .gate import Gate
from .library import FollowError
from .memory import Memory
from .unmade import Unmade


class DroppedTensor(RuntimeError):
    """A tensor is read later than when the step was recorded, or outlives it; the plan has dropped it."""


class Iteration:
    """`within`: the step runs. `reason`: why it is not the recorded one, from where on it runs without the plan; None as
    long as it is."""

    def __init__(self, file, addresses=None):
        self.memory, self.calls, self.device = Memory(file, addresses), file.calls, file.device
        self.plain = self.memory.plain  # makes the calls that are as recorded, if there is an extension
        self.unmade = Unmade(self)
        self.at, self.within, self.reason = 0, False, None
        self.in_between = None  # the place of calls that were let pass last, and what differs in the first of them
        self.is_making = False  # it was left where an optimizer's call was next and not all that persists was there: untold of a first step
        self.gate = Gate(lambda: self.at)  # closed while the step follows the plan
        self.asked = None  # why another thread wants the step to be left

    def begin(self):
        self.at, self.within, self.reason, self.in_between, self.is_making = 0, True, None, None, False
        self.asked, self.plain = None, self.memory.plain
        self.unmade.begin()
        self.gate.close()
        try:
            self.memory.renew()
            self.memory.follower.begin()
        except BaseException:
            self.within = False
            self.gate.open()
            raise

    def ask_to_leave(self, reason):
        """Of another thread: the step is left before its next call."""
        self.asked, self.plain = reason, None

    def leave(self, reason, made=False):
        """Runs the rest of the step without the plan. `made`: the call that differs has run."""
        if self.reason is None:
            self.give_up_plan(reason, made)
            self.gate.open()

    def give_up_plan(self, reason, made):
        call = self.calls[self.at]
        self.is_making = self.memory.lacks() and call.is_late
        n = len(self.calls) - 1  # without that for the end
        place = f"at call {self.at + 1} of {n}" if self.at < n else f"behind the last of {n} calls"
        at, differs = self.in_between or (None, None)
        self.reason = f"{place}, recorded at {call.line}: {differs if at == self.at else reason}"
        self.memory.follower.leave(made)
        self.memory.note_lost()

    def end(self):
        """The dropped tensors that outlive the step. Whatever fails, the next step begins anew."""
        with self.gate.closed():
            return self.end_alone()

    def end_alone(self):
        ghosts, is_through = {}, False
        try:
            if self.reason is None:
                self.unmade.leave_out_rest()
            if self.at + 1 == len(self.calls) and self.reason is None:
                self.memory.follower.next()
                self.memory.follower.done()
                is_through = True
            elif self.reason is None:
                self.give_up_plan("the step ended", made=False)  # others still wait
        finally:
            self.within = False
            try:
                self.memory.follower.end()
            finally:
                ghosts = self.memory.end(not is_through)
                self.memory.refill(ghosts)
        return ghosts

    # --- Calls --------------------------------------------------------------------------------------------------------

    def run(self, function, args, kwargs):
        """A call of the step that touches elements."""
        self.refuse_failed()
        if self.asked and self.reason is None:
            self.leave(self.asked)
        if self.reason is not None:
            return self.run_without(function, args, kwargs)
        given = tensors_on(self.device, (args, kwargs))
        differs = self.difference(function, given, self.calls[self.at])
        if differs and self.unmade.leave_out_until(function, given):
            differs = self.difference(function, given, self.calls[self.at])
        if differs:
            return self.other(function, args, kwargs, given, differs)
        return self.as_recorded(function, args, kwargs)

    def as_recorded(self, function, args, kwargs):
        memory, follower, call = self.memory, self.memory.follower, self.calls[self.at]
        follower.next()
        if follower.repeats(self.at):
            memory.recall(self.at, function, args, kwargs)
        result = memory.call(self.at, function, args, kwargs)
        self.made(result, call)
        return result

    def refuse_failed(self):
        if self.memory.follower.has_failed:
            raise FollowError("memory could not be had, or data not be moved, earlier in this step, so that what it reads may not be "
                              "there; begin another step")

    def made(self, result, call):
        """The call has run as recorded, and gave `result`; unless the step was left meanwhile."""
        if self.reason is not None:
            return
        differs = self.unlike(tensors_on(self.device, result), call)
        if differs:
            self.leave(differs, made=True)
        else:
            self.at += 1
            self.memory.follower.done()

    def run_without(self, function, args, kwargs):
        if self.memory.dropped:
            self.refuse_dropped(touched(function, args, kwargs))
        if self.memory.lost:
            self.refuse_lost(function, args, kwargs)
        return function(*args, **kwargs)

    def read(self, name, tensors, run):
        """The user's program reads a tensor's elements in no call, by the method of this name."""
        self.refuse_failed()
        self.refuse_dropped(tensors)
        call, buffers = self.calls[self.at], [self.memory.buffer_in(tensor) for tensor in tensors[:1]]
        is_recorded = call.described == READ.format(name, described_tensor(tensors[0])) and buffers == [
            self.memory.buffer_of.get(number) for number in call.given]
        if self.reason is not None or not is_recorded:
            if buffers != [None]:
                self.leave(f"{name} of {self.memory.names[buffers[0]]}")
                self.refuse(set(buffers) & self.memory.lost)
            return run()
        self.memory.follower.next()
        result = run()
        self.at += 1
        self.memory.follower.done()
        return result

    def share(self, name, tensors, run):
        """The user's program gets hold of a tensor's memory."""
        self.refuse_dropped(tensors)
        self.leave(f"{name} of a tensor of the plan's")
        self.refuse({self.memory.buffer_in(tensor) for tensor in tensors} & self.memory.lost)
        return run()

    def refuse_dropped(self, tensors):
        self.refuse({self.memory.dropped_in(tensor) for tensor in tensors} - {None})

    def refuse_lost(self, function, args, kwargs):
        """Refuses a call that reads what has no data; what it overwrites as a whole has data from then on."""
        memory = self.memory
        again = {id(tensor) for tensor, is_read in written(function, args, kwargs)
                 if not is_read and tensor.numel() * tensor.element_size() >= storage_in(tensor).nbytes()}
        taken = [tensor for tensor in touched(function, args, kwargs) if id(tensor) not in again]
        self.refuse({memory.buffer_in(tensor) for tensor in taken} & memory.lost)
        memory.lost -= {memory.buffer_in(tensor) for tensor, _ in written(function, args, kwargs)}

    def refuse(self, buffers):
        if buffers:
            raise DroppedTensor(f"{self.memory.names[min(buffers)]} is read once more than when the step was recorded, and the plan "
                                "has dropped it. Record a step that does so")

    def other(self, function, args, kwargs, given, differs):
        """A call that is not the recorded one. Calls that touch nothing of the device are none; those that make what
        persists, as optimizers and loss scales do in their first step, come in between."""
        if self.unmade.writes(function, args, kwargs, given) or self.unmade.is_copy_of_gradient(given):
            self.let_pass(differs)
            return self.unmade.call(function, args, kwargs, given, differs)
        makes = self.makes_what_persists(function, args, kwargs, given)
        if given and not makes:
            self.leave(differs)
            return self.run_without(function, args, kwargs)
        self.memory.order(given)
        result = function(*args, **kwargs)
        if tensors_on(self.device, result):
            if makes:
                self.let_pass(differs)
            else:
                self.leave(differs)
        return result

    def let_pass(self, differs):
        """Where the recorded call does not come after all, the first of those that came instead tells why."""
        if not self.in_between or self.in_between[0] != self.at:
            self.in_between = self.at, differs

    def makes_what_persists(self, function, args, kwargs, given):
        """`given`: tensors of the device. Whoever makes something of none, or reads none of their elements, may make what persists at
        any time."""
        memory = self.memory
        if not memory.lacks() or function._schema.is_mutable:
            return False
        if not touched(function, args, kwargs):
            return not draws(function)
        if not is_within_an_optimizer() or not self.unmade.come_to_update():
            return False
        return all(self.unmade.is_there(tensor) for tensor in touched(function, args, kwargs))

    # --- What differs -------------------------------------------------------------------------------------------------

    def difference(self, function, given, call):
        """What about a call is not as recorded; binds what persists and is seen for the first time."""
        alike = function, [(t.shape, t.dtype) for t in given]
        if alike != call.alike:
            said = described(function, given)
            if said != call.described or len(given) != len(call.given):
                return f"{said} instead of {call.described}"
            call.alike = alike
        memory = self.memory
        for tensor, number in zip(given, call.given):
            wanted, found = memory.buffer_of.get(number), memory.buffer_in(tensor)
            if wanted is None or found == wanted:
                if wanted is None and found is not None:
                    return f"{call.described} of {memory.names[found]} instead of a tensor of the user's"
                continue
            if memory.dropped_in(tensor) == wanted:
                continue  # only its shape is of interest, or libplanrt will miss it
            if found is not None or wanted in memory.storages or wanted not in memory.lasting:
                is_replaced = found is None and wanted in memory.lasting
                why = ", which its user has as well: who replaces what persists, as load_state_dict() does, lets go of the one before" \
                    if is_replaced else ""
                return f"{call.described} of another tensor than {memory.names[wanted]}{why}"
            wrong = memory.bind(wanted, tensor)
            if wrong:
                return wrong
        return None

    def unlike(self, results, call):
        """What about a call's results is not as recorded; binds what was made."""
        memory = self.memory
        if len(results) != len(call.gives):
            return f"{call.described} gives {len(results)} tensors and gave {len(call.gives)}"
        for tensor, number in zip(results, call.gives):
            wanted, found = memory.buffer_of.get(number), memory.buffer_in(tensor)
            if found == wanted:
                continue
            if found is not None or wanted is None or wanted in memory.storages:
                return f"{call.described} gives another tensor than it gave"
            wrong = memory.bind(wanted, tensor)
            if wrong:
                return wrong
        return None
