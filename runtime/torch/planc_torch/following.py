"""Follows a plan in the user's own training script: `step = planc_torch.follow("train.plan", step)`.

The step runs as the user wrote it. Before each call that it makes, everything that the call reads is where it has to be,
and between two calls libplanrt has what the plan says released, copied and computed again. Calls are held against those
that were recorded, in order, with the shapes and types of their tensors and with which tensors they are. Where they
differ, everything that is still needed comes back, the rest of the step runs as it would without a plan, and why is told.

What the plan has at home on the host between two steps comes back when the user reads or writes it.
"""

import gc
import json
import warnings

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from .calls import OUTSIDE, beneath_autograd, described, draws, name_of, only_views, tensors_on, touched, untyped
from .library import Follower
from from_recording import BATCH_NORMS
from torch_recorder import storage_of, tensors_in

# What hands out the memory of a tensor itself, which then has to stay where it is, and what reads it in no call.
SHARES = ("numpy", "__array__", "data_ptr", "__dlpack__", "share_memory_")
READS = ("tolist", "__repr__", "__format__", "storage", "untyped_storage", "_storage", "_typed_storage", "__deepcopy__")


class PlanNotFollowed(UserWarning):
    """A step that is not the recorded one has run without its plan, from where it differed."""


class DroppedTensor(RuntimeError):
    """A tensor is read later than when the step was recorded, or outlives it; the plan has dropped it."""


class PlannedCall:
    """A recorded call: its description, the user's line and, by number in the graph, its tensors."""

    def __init__(self, attrs):
        self.described, self.line = attrs["call"], attrs.get("line", "")
        self.alike = None  # the function, shapes and types that were found to be so described
        self.given, self.gives = attrs["tensors"], attrs["results"]


class PlanFile:
    """What a plan's file says of the recorded step: its calls, the names of its tensors, its device."""

    def __init__(self, path):
        self.path, self.calls, self.names, self.device = path, [], [], None
        with open(path, encoding="utf-8") as file:
            for text in file:
                if text.startswith('{"tensor":'):
                    self.names.append(json.loads(text)["tensor"])
                elif text.startswith('{"op":'):
                    self.add(json.loads(text))
                elif text.startswith('{"job":'):
                    break
        if self.device is None:
            raise ValueError(f"{path} is not of a recorded step; planc torch makes plans that are")

    def add(self, op):
        attrs = op["attrs"]
        if not {"call", "tensors", "results"} <= attrs.keys():
            raise ValueError(f"{self.path}: op {op['op']} does not say which call it is; planc torch makes plans that do")
        self.calls.append(PlannedCall(attrs))
        self.device = attrs.get("device")


def generator_of(device):
    """What draws random numbers on a device where no other generator is named."""
    return torch.cuda.default_generators[torch.cuda.current_device()] if device == "cuda" else torch.default_generator


class Again:
    """How a call is run again: as it was, with the random numbers that it drew, and without what it updates on the side."""

    def __init__(self, function, args, kwargs, device):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.differentiates = torch.is_grad_enabled()
        self.generator = kwargs.get("generator") or generator_of(device)
        self.random = self.generator.get_state() if draws(function) else None

    def run(self):
        now = None if self.random is None else self.generator.get_state()
        with torch.set_grad_enabled(self.differentiates):
            if now is None:
                return self.function(*self.untouched(), **self.kwargs)
            self.generator.set_state(self.random)
            try:
                return self.function(*self.untouched(), **self.kwargs)
            finally:
                self.generator.set_state(now)

    def untouched(self):
        """The arguments, without running statistics: these do not bear on the result in training, and may be away."""
        names = [argument.name for argument in self.function._schema.arguments]
        given = {**dict(zip(names, self.args)), **self.kwargs}
        if name_of(self.function) not in BATCH_NORMS or not given.get("training", True):
            return self.args
        statistics = ("running_mean", "running_var")
        return [torch.zeros(a.shape, dtype=a.dtype, device=a.device) if name in statistics and a is not None else a
                for name, a in zip(names, self.args)]


class Memory:
    """The storages that the plan's buffers are in, as libplanrt has them handled."""

    def __init__(self, file):
        self.file, self.device = file, file.device
        self.storages = {}  # by buffer
        self.buffers = {}  # by the storage's identity
        self.again = {}  # by call
        self.ghosts = {}  # by buffer: what the plan has no use for any more, should it live on
        self.dropped = {}  # these by the storage's identity
        self.pinned = set()  # buffers whose memory somebody has got hold of
        self.follower = Follower(file.path, self)
        numbers = {number for call in file.calls for number in (*call.given, *call.gives)} - {OUTSIDE}
        self.buffer_of = {number: self.follower.buffer(number) for number in numbers}
        self.lasting = {buffer for buffer in self.buffer_of.values() if self.follower.persists(buffer)}
        self.names = {buffer: file.names[number] for number, buffer in self.buffer_of.items()}
        self.kept = {self.buffer_of[number] for number in file.calls[-1].given}

    def lacks(self):
        """Whether something that persists has not been seen yet."""
        return not self.lasting <= self.storages.keys()

    def buffer_in(self, tensor):
        return self.buffers.get(storage_of(tensor)._cdata)

    def bind(self, buffer, tensor):
        """Takes the tensor's storage for the buffer; says what is wrong with it, if anything is."""
        storage = untyped(tensor)
        if storage.nbytes() != self.follower.bytes(buffer):
            return f"{self.names[buffer]} has {storage.nbytes()} bytes and had {self.follower.bytes(buffer)}"
        self.storages[buffer], self.buffers[storage._cdata] = storage, buffer
        return None

    def unbind(self, buffer):
        del self.buffers[self.storages.pop(buffer)._cdata]

    def view(self, function, args, kwargs):
        """A call that touches no element. PyTorch gives no view of a storage that is too small for it, so one that has
        been dropped gets memory meanwhile."""
        storages = [untyped(tensor) for tensor in tensors_on(self.device, (args, kwargs))]
        dropped = {s._cdata: s for s in storages if s.nbytes() == 0 and self.bytes_of(s)}
        if not dropped:
            return function(*args, **kwargs)
        for storage in dropped.values():
            storage.resize_(self.bytes_of(storage))
        try:
            return function(*args, **kwargs)
        finally:
            for storage in dropped.values():
                storage.resize_(0)

    def bytes_of(self, storage):
        """Of a storage of the plan's, whether it has memory or not; 0: it is none."""
        buffer = self.buffers.get(storage._cdata, self.dropped.get(storage._cdata))
        return 0 if buffer is None else self.follower.bytes(buffer)

    def end(self, was_left):
        """Forgets what does not outlive an iteration; all of it where one was left, for what persists may be new. Gives
        what outlives it and should not have."""
        self.again.clear()
        for buffer in [b for b in self.storages if was_left or b not in self.lasting]:
            self.unbind(buffer)
        ghosts, self.ghosts = self.ghosts, {}
        self.dropped.clear()
        if not all(ghost.expired() for ghost in ghosts.values()):
            gc.collect()
        return {buffer: ghost for buffer, ghost in ghosts.items() if not ghost.expired()}

    # --- What libplanrt asks for --------------------------------------------------------------------------------------

    def address(self, buffer):
        storage = self.storages.get(buffer)
        return None if storage is None or buffer in self.pinned else storage.data_ptr()

    def allocate(self, buffer):
        self.storages[buffer].resize_(self.follower.bytes(buffer))

    def release(self, buffer, last):
        if not last:
            self.storages[buffer].resize_(0)
        elif buffer in self.storages:
            if buffer not in self.kept:
                self.storages[buffer].resize_(0)
                self.ghosts[buffer] = StorageWeakRef(self.storages[buffer])
                self.dropped[self.storages[buffer]._cdata] = buffer
            self.unbind(buffer)

    def repeat(self, call, wanted):
        with beneath_autograd():
            results = tensors_on(self.device, self.again[call].run())
            for tensor, number in zip(results, self.file.calls[call].gives):
                buffer = self.buffer_of.get(number)
                if buffer in wanted and self.buffer_in(tensor) != buffer:
                    self.allocate(buffer)
                    here = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                    here.set_(self.storages[buffer], tensor.storage_offset(), tensor.size(), tensor.stride()).copy_(tensor)


# --- The calls of a step ----------------------------------------------------------------------------------------------


class Calls(TorchDispatchMode):
    """Holds the calls of a step against the recorded ones, and hands them to libplanrt."""

    def __init__(self, memory):
        super().__init__()
        self.memory, self.calls, self.device = memory, memory.file.calls, memory.file.device
        self.at, self.within, self.reason = 0, False, None
        self.is_first = False  # the step that left the plan had not seen all that persists

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if only_views(function):
            return self.memory.view(function, args, kwargs)
        if self.within and self.reason is None:
            return self.planned(function, args, kwargs)
        if not self.within:
            self.bring(tensors_in((args, kwargs)))
        elif self.memory.dropped:
            self.refuse_dropped(touched(function, args, kwargs))
        return function(*args, **kwargs)

    def refuse_dropped(self, tensors):
        for tensor in tensors:
            buffer = self.memory.dropped.get(storage_of(tensor)._cdata)
            if buffer is not None:
                raise DroppedTensor(f"{self.memory.names[buffer]} is read once more than when the step was recorded, and the "
                                    "plan has dropped it. Record a step that does so")

    def bring(self, tensors):
        """Brings home what persists, for a user between two steps."""
        for tensor in tensors:
            buffer = self.memory.buffer_in(tensor)
            if buffer is not None and not self.memory.follower.has(buffer):
                self.memory.follower.bring(buffer)

    def planned(self, function, args, kwargs):
        memory, follower, call = self.memory, self.memory.follower, self.calls[self.at]
        given = tensors_on(self.device, (args, kwargs))
        differs = self.difference(function, given, call)
        if differs:
            return self.other(function, args, kwargs, given, differs)
        follower.next()
        if follower.repeats(self.at):
            memory.again[self.at] = Again(function, args, kwargs, self.device)
        result = function(*args, **kwargs)
        differs = self.unlike(tensors_on(self.device, result), call)
        if differs:
            self.leave(differs, made=True)
        else:
            self.at += 1
            follower.done()
        return result

    def other(self, function, args, kwargs, given, differs):
        """A call that is not the recorded one. Calls that touch nothing of the device are none; those that make what
        persists, as optimizers do in their first step, come in between."""
        if given and not self.makes_what_persists(function, args, kwargs):
            self.leave(differs)
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        if not given and tensors_on(self.device, result) and not self.memory.lacks():
            self.leave(differs)
        return result

    def makes_what_persists(self, function, args, kwargs):
        memory = self.memory
        if not memory.lacks() or function._schema.is_mutable:
            return False
        buffers = {memory.buffer_in(tensor) for tensor in touched(function, args, kwargs)} - {None}
        return all(memory.follower.has(buffer) for buffer in buffers)

    def difference(self, function, given, call):
        """What about a call is not as recorded; binds what persists and is seen for the first time."""
        alike = function, [(t.shape, t.dtype) for t in given]
        if alike != call.alike:
            said = described(function, given)
            if said != call.described:
                return f"{said} instead of {call.described}"
            call.alike = alike
        memory = self.memory
        for tensor, number in zip(given, call.given):
            wanted, found = memory.buffer_of.get(number), memory.buffer_in(tensor)
            if wanted is None or found == wanted:
                if wanted is None and found is not None:
                    return f"{call.described} of {memory.names[found]} instead of a tensor of the user's"
                continue
            if memory.dropped.get(storage_of(tensor)._cdata) == wanted:
                continue  # only its shape is of interest, or libplanrt will miss it
            if found is not None or wanted in memory.storages or not memory.follower.persists(wanted):
                return f"{call.described} of another tensor than {memory.names[wanted]}"
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

    # --- A step -------------------------------------------------------------------------------------------------------

    def begin(self):
        self.at, self.within, self.reason = 0, True, None
        self.memory.follower.begin()

    def leave(self, reason, made=False):
        """Runs the rest of the step without the plan. `made`: the call that differs has run."""
        if self.reason is None:
            line = self.calls[self.at].line
            self.reason = f"at call {self.at + 1} of {len(self.calls)}, recorded at {line}: {reason}"
            self.is_first = self.memory.lacks()
            self.memory.follower.leave(made)

    def end(self):
        """Why the step was not the recorded one, None if it was, and the dropped tensors that outlive it."""
        if self.at + 1 == len(self.calls) and self.reason is None:
            self.memory.follower.next()
            self.memory.follower.done()
        else:
            self.leave("the step ended")
        self.memory.follower.end()
        self.within = False
        return self.reason, self.memory.end(self.reason is not None)


class Functions(TorchFunctionMode):
    """Sees what reads or hands out a tensor's memory in no call."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in SHARES or name in READS:
            self.expose(name, tensors_in(args))
        return function(*args, **(kwargs or {}))

    def expose(self, name, tensors):
        memory = self.calls.memory
        buffers = {memory.buffer_in(tensor) for tensor in tensors} - {None}
        if not buffers:
            return
        if self.calls.within:
            self.calls.leave(f"{name} of {memory.names[min(buffers)]}")
        else:
            self.calls.bring(tensors)
        if name in SHARES:
            memory.pinned |= buffers


# --- The step ---------------------------------------------------------------------------------------------------------


class Followed:
    """The user's step under a plan. `left` counts the steps that were not the recorded one, by reason."""

    def __init__(self, path, step):
        self.step, self.left, self.steps = step, {}, 0
        self.calls = Calls(Memory(PlanFile(path)))
        self.functions = Functions(self.calls)
        self.is_open = False

    def __call__(self, *args, **kwargs):
        self.open()
        self.calls.begin()
        try:
            result = self.step(*args, **kwargs)
        except BaseException as error:
            self.calls.leave(f"the step raised {type(error).__name__}")
            self.calls.end()
            raise
        reason, ghosts = self.calls.end()
        self.steps += 1
        if reason:
            self.tell(reason)
        if ghosts:
            self.refuse(ghosts)
        return result

    def tell(self, reason):
        """That what persists is made in the first step, gradients and momenta, is no surprise."""
        if reason not in self.left and not (self.steps == 1 and self.calls.is_first):
            warnings.warn(f"a step ran without its plan from where it differed: {reason}", PlanNotFollowed, stacklevel=3)
        self.left[reason] = self.left.get(reason, 0) + 1

    def refuse(self, ghosts):
        """Gives memory back to what should not have lived on, so that no read of it fails in another way."""
        memory = self.calls.memory
        for buffer, ghost in ghosts.items():
            storage = type(untyped(torch.empty(1)))._new_with_weak_ptr(ghost.cdata)
            if storage is not None:
                storage.resize_(memory.follower.bytes(buffer))
                storage.fill_(0xFF)
        names = ", ".join(memory.names[buffer] for buffer in ghosts)
        raise DroppedTensor(f"{names}: kept beyond the step, and not when it was recorded; the plan has dropped it. Return it "
                            "from the step, or record a step that keeps it")

    def open(self):
        if not self.is_open:
            self.functions.__enter__()
            self.calls.__enter__()
            self.is_open = True

    def close(self):
        """Brings everything home; from then on the step runs without a plan."""
        if self.is_open:
            self.calls.memory.follower.bring_all()
            self.calls.__exit__(None, None, None)
            self.functions.__exit__(None, None, None)
            self.is_open = False

    @property
    def counts(self):
        """Bytes copied, calls run again and steps, as libplanrt counts them."""
        return self.calls.memory.follower.counts()


def follow(path, step):
    """`step` under the plan at `path`, which `planc torch` made of it."""
    return Followed(path, step)
