"""What a first step does otherwise than the recorded one since something that persists is not there yet.

Gradients that are zeroed in place are not zeroed in the first step and not added to either: what a backward pass makes becomes
the gradient, or a copy of it does. Momentum begins as a copy of the gradient, an average as one of the weights. So calls on
what has not been seen yet may be missing, and others write there instead. Recorded calls that only lead to such are left
out where a later one is made, and the step is the recorded one again. What comes in between runs where all is there that it
takes, and changes nothing that the plan has seen.

Of a weight w, its gradient g, which is zeroed in place, and its momentum m:

    recorded        first step
    g.zero_()                       left out, as g is unmade
    d = mm(x, y)    d = mm(x, y)    as recorded
    g.add_(d)                       left out, and d is g from now on
    m.mul_(0.9)                     left out
                    m = clone(g)    comes in between
    m.add_(g)                       left out
    w.add_(m)       w.add_(m)       as recorded, and the plan sees m
"""

from .calls import described, is_within_an_optimizer, storage_in, tensors_on, written


class Unmade:
    """`iteration`: whose step it is. What persists is unmade until the plan has seen it."""

    def __init__(self, iteration):
        self.iteration, self.memory, self.calls = iteration, iteration.memory, iteration.calls
        self.copies = set()  # buffers of gradients that are copies, which are made in the place of the next call
        self.begun = []  # what calls in between have written, in order
        again = [call for at, call in enumerate(self.calls) if self.memory.follower.repeats(at)]
        self.again = {buffer for call in again for buffer in self.buffers((*call.given, *call.gives))}

    def begin(self):
        self.copies.clear()
        self.begun.clear()

    def buffers(self, numbers):
        return [self.memory.buffer_of[number] for number in numbers if number in self.memory.buffer_of]

    def is_unmade(self, buffer):
        return buffer in self.memory.lasting and buffer not in self.memory.storages

    # --- Calls that are missing ---------------------------------------------------------------------------------------

    def leave_out_until(self, function, given):
        """Whether a call is a later one than the next, and those before it could be left out; they are then."""
        if not self.memory.lacks():
            return False
        said = described(function, given)
        at = self.find(lambda call: call.described == said and self.are_operands(given, call))
        return at is not None and self.leave_out(at)

    def leave_out_rest(self):
        if self.memory.lacks():
            end = self.find(lambda call: call is self.calls[-1])
            if end is not None:
                self.leave_out(end)

    def find(self, is_wanted):
        """The first recorded call that is wanted, if all before it can be left out."""
        for at in range(self.iteration.at, len(self.calls)):
            if is_wanted(self.calls[at]):
                return at
            if not self.can_be_left_out(at):
                return None
        return None

    def can_be_left_out(self, at):
        call, memory = self.calls[at], self.memory
        changed = self.buffers(call.writes)
        if not changed or memory.follower.repeats(at):
            return False
        return all(self.is_unmade(buffer) or buffer in self.copies or
                   call.is_late and buffer not in memory.storages for buffer in changed) and self.can_be_taken_over(call)

    def leave_out(self, until):
        while self.iteration.at < until:
            self.take_over(self.calls[self.iteration.at])
            self.know_begun(self.calls[self.iteration.at])
            self.memory.follower.next()
            self.iteration.at += 1
            self.memory.follower.done()
        return True

    def are_operands(self, given, call):
        memory = self.memory
        if len(given) != len(call.given):
            return False
        for tensor, number in zip(given, call.given):
            wanted, found = memory.buffer_of.get(number), memory.buffer_in(tensor)
            if found != wanted and not (found is None and self.is_unmade(wanted)):
                return False
        return True

    # --- Gradients ----------------------------------------------------------------------------------------------------

    def addition_in(self, call):
        """Of a call that adds what a backward pass made to a gradient that is not there yet: the buffers of what it adds and of the
        gradient. None of other calls."""
        gradients = [buffer for buffer in self.buffers(call.writes) if self.is_unmade(buffer)]
        added = [buffer for buffer in self.buffers(call.given) if buffer not in gradients]
        if call.updates or len(gradients) != 1 or len(added) != 1 or added[0] in self.memory.lasting:
            return None
        return (added[0], gradients[0]) if self.memory.bytes[added[0]] == self.memory.bytes[gradients[0]] else None

    def can_be_taken_over(self, call):
        """A tensor that a later call is run again to make, or is run again from, cannot become a gradient."""
        parts = self.addition_in(call)
        return parts is None or parts[0] in self.memory.storages and parts[0] not in self.again

    def take_over(self, call):
        """Of a call that is left out: what it would have added becomes the gradient. Where it is another call, what it would have taken
        stays in memory, unless an optimizer made the call, since whoever did without the call may have kept the tensor."""
        parts, memory = self.addition_in(call), self.memory
        if parts:
            memory.rename(*parts)
        elif not call.updates and not self.copies.intersection(self.buffers(call.writes)):
            memory.pinned |= {b for b in self.buffers(call.given) if b in memory.storages and b not in memory.lasting}

    def come_to_update(self):
        """Whether the next call is an optimizer's, when those before it are left out."""
        at = self.find(lambda call: call.updates)
        return at is not None and self.leave_out(at)

    def is_copy_of_gradient(self, given):
        """Whether a call may make a copy of what it is given that becomes a gradient; calls before the one that would add it
        are left out then."""
        if len(given) != 1 or not self.memory.lacks() or is_within_an_optimizer():
            return False
        buffer = self.memory.buffer_in(given[0])
        at = None if buffer is None else self.find(lambda call: (self.addition_in(call) or (None,))[0] == buffer)
        return at is not None and self.leave_out(at)

    def know_begun(self, call):
        """Binds what a call that is left out would have written to what calls in between have written, in order and by bytes. Where
        that is a wrong guess, a later call differs and the step leaves the plan."""
        for buffer in filter(self.is_unmade, self.buffers(call.writes)):
            tensor = next((t for t in self.begun if storage_in(t).nbytes() == self.memory.bytes[buffer]), None)
            if tensor is not None:
                self.begun = [t for t in self.begun if storage_in(t)._cdata != storage_in(tensor)._cdata]
                self.memory.bind(buffer, tensor)

    # --- Calls in between ---------------------------------------------------------------------------------------------

    def writes(self, function, args, kwargs, given):
        """Whether a call writes nothing but what the plan has not seen yet, or copies of gradients, and can be made here."""
        memory = self.memory
        if not function._schema.is_mutable or not memory.lacks():
            return False
        changed = self.written(function, args, kwargs)
        may = all(memory.dropped_in(tensor) is None and memory.buffer_in(tensor) in (None, *self.copies) for tensor in changed)
        return bool(changed) and may and all(self.is_there(tensor) for tensor in given)

    def written(self, function, args, kwargs):
        return tensors_on(self.memory.device, [tensor for tensor, _ in written(function, args, kwargs)])

    def is_there(self, tensor):
        """Calls before one that takes it are left out if they have to be; else what persists comes from the host."""
        memory, buffer = self.memory, self.memory.buffer_in(tensor)
        has = memory.follower.has
        if buffer is None or has(buffer):
            return memory.dropped_in(tensor) is None
        at = self.find(lambda call: buffer in self.buffers(call.given))
        if at is not None:
            self.leave_out(at)
        if not has(buffer) and buffer in memory.lasting:
            memory.follower.bring(buffer)
        return has(buffer) and not memory.follower.is_lost(buffer)

    def call(self, function, args, kwargs, given, differs):
        """Makes one, which differs from the recorded one by `differs`."""
        memory = self.memory
        memory.order(given)
        result = function(*args, **kwargs)
        if function._schema.is_mutable:
            self.begun += [t for t in self.written(function, args, kwargs) if memory.buffer_in(t) is None]
            return result
        made, gradient = tensors_on(memory.device, result), self.addition_in(self.calls[self.iteration.at])[1]
        if len(made) == 1 and memory.buffer_in(made[0]) is None and memory.bind(gradient, made[0]) is None:
            self.copies.add(gradient)
        else:
            self.iteration.leave(differs)
        return result
