"""The storages that a plan's buffers are in, as libplanrt has them handled."""

import _thread
import gc

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .calls import OUTSIDE, STORAGE, address_of, beneath_autograd, draws, name_of, storage_in, tensors_on
from .extension import plain_calls
from .handed_out import HANDED_OUT
from .library import Follower, FollowError
from .streams import KINDS
from from_recording import BATCH_NORMS
from torch_recorder import storage_of

NUMBER = 16  # bytes: a loss or a norm, which takes no room worth having and which users look at when they please; as in csrc


def generator_of(device):
    """What draws random numbers on a device where no other generator is named."""
    return torch.cuda.default_generators[torch.cuda.current_device()] if device == "cuda" else torch.default_generator


def alias(value):
    """The tensors in an argument as others on the same memory: their user may change how the own ones lie."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    return type(value)(map(alias, value)) if isinstance(value, (list, tuple)) else value


class Again:
    """How a call is run again: as it was, with the random numbers that it drew, and without what it updates on the side. `infers`: in
    inference mode."""

    def __init__(self, function, args, kwargs, device):
        self.infers = torch.is_inference_mode_enabled()
        with beneath_autograd():
            self.args, self.kwargs = alias(list(args)), {key: alias(value) for key, value in kwargs.items()}
        self.function = function
        self.differentiates = torch.is_grad_enabled()
        self.generator = kwargs.get("generator") or generator_of(device)
        self.random = self.generator.get_state() if draws(function) else None

    def run(self, call):
        now = None if self.random is None else self.generator.get_state()
        with torch.set_grad_enabled(self.differentiates):
            if now is None:
                return call(self.function, self.untouched(), self.kwargs)
            self.generator.set_state(self.random)
            try:
                return call(self.function, self.untouched(), self.kwargs)
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


def is_shared(storage):
    """Whether other processes have it, too, which may be so since it was bound."""
    return storage.device.type == "cpu" and storage.is_shared()


def can_be_emptied(storage):
    """Whether PyTorch can take a storage's memory away: not that of an array, say."""
    if hasattr(storage, "resizable"):
        return storage.resizable()
    return by_another_thread(resizes, storage)


def resizes(storage):
    try:
        storage.resize_(-1)  # which no storage has; whether it can be resized is asked first
    except RuntimeError as error:
        return "not resizable" not in str(error)
    return True


def by_another_thread(function, *args):
    """PyTorch 1 looks up every frame of the stack where it makes an error, which in a step takes milliseconds each time. There
    are few on a thread's own."""
    results, errors, is_done = [], [], _thread.allocate_lock()

    def work():
        try:
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)
        finally:
            is_done.release()

    is_done.acquire()
    _thread.start_new_thread(work, ())
    is_done.acquire()
    for error in errors:
        raise error
    return results[0]


class Memory:
    """`addresses`: whether it lies where the plan has it; None: it does where that is possible."""

    def __init__(self, file, addresses=None):
        self.file, self.device = file, file.device
        self.storages = {}  # by buffer
        self.buffers = {}  # by the storage's identity
        self.again = {}  # by call
        self.ghosts = {}  # by buffer: what the plan has no use for any more, should it live on
        self.dropped = {}  # these by the storage's identity
        self.pinned = set()  # buffers whose memory has to stay where it is
        self.lost = set()  # buffers that have memory and no data, since the plan was left where it has them overwritten next
        self.is_seen = False  # whether all that persists had been seen when the last step ended
        self.staying = set()  # names of those that PyTorch cannot empty
        self.streams = KINDS[self.device](self.storages)
        self.take_memory = self.make_resizable = lambda *_: False
        self.trim = lambda: None
        # On the processor the extension has these maps as well, so that they stay the same objects.
        module = plain_calls() if self.device == "cpu" else None
        self.plain = module.Plan() if module else None
        self.follower = Follower(file.path, self, self.plain)
        numbers = {number for call in file.calls for number in (*call.given, *call.gives)} - {OUTSIDE}
        self.buffer_of = {number: self.follower.buffer(number) for number in numbers}
        if min(self.buffer_of.values(), default=0) < 0:
            raise ValueError(f"{file.path} names tensors that none of its ops touches")
        self.bytes = {buffer: self.follower.bytes(buffer) for buffer in self.buffer_of.values()}
        self.lasting = {buffer for buffer in self.buffer_of.values() if self.follower.persists(buffer)}
        self.names = {buffer: file.names[number] for number, buffer in self.buffer_of.items()}
        self.kept = {self.buffer_of[number] for number in file.calls[-1].given}
        self.has_addresses = self.can_place(addresses)
        if self.plain:
            self.begin_plain(module)
        # Where it begins, and its bytes.
        self.arena = (self.plain.placing["arena"], self.follower.arena_bytes()) if self.has_addresses else (0, 0)
        if self.has_addresses:
            self.follower.place(self.arena[0])

    def can_place(self, wanted):
        possible = self.plain is not None and self.follower.arena_bytes() > 0
        if wanted and not possible:
            reason = "the plan has none in one arena" if self.plain else "planc_torch's extension, on the processor, sees to them"
            raise FollowError(f"{self.file.path}: memory cannot be at the plan's addresses: {reason}")
        return possible if wanted is None else wanted

    def begin_plain(self, module):
        def buffers(numbers):
            return [self.buffer_of.get(number, OUTSIDE) for number in numbers]

        self.take_memory, self.make_resizable, self.trim = module.take_memory, module.make_resizable, module.trim
        follow, follow_next, follow_done, follow_rooms = self.follower.addresses()
        self.plain.begin(
            device=self.device, follower=self.follower, follow=follow, next=follow_next, done=follow_done, rooms=follow_rooms,
            calls=[(c, buffers(c.given), buffers(c.gives), self.follower.repeats(i), c.allocated)
                   for i, c in enumerate(self.file.calls)],
            bytes=[self.bytes.get(buffer, 0) for buffer in range(max(self.bytes, default=-1) + 1)], storages=self.storages,
            buffers=self.buffers, dropped=self.dropped, ghosts=self.ghosts, kept=self.kept, lasting=self.lasting,
            pinned=self.pinned, storage_of=storage_of, arena_bytes=self.follower.arena_bytes() if self.has_addresses else 0)

    def lacks(self):
        """Whether something that persists has not been seen yet."""
        return not self.lasting <= self.storages.keys()

    def note_lost(self):
        self.lost = {buffer for buffer in self.bytes if self.follower.is_lost(buffer)}

    def buffer_in(self, tensor):
        return self.buffers.get(storage_in(tensor)._cdata)

    def dropped_in(self, tensor):
        return self.dropped.get(storage_in(tensor)._cdata)

    def planned_in(self, tensor):
        """The buffer that a tensor is, or was until the plan dropped it."""
        buffer = self.buffer_in(tensor)
        return self.dropped_in(tensor) if buffer is None else buffer

    def name_among(self, tensors):
        """What to call those that has_any has found; None where they may be none of the step's."""
        buffers = [buffer for buffer in map(self.planned_in, tensors) if buffer is not None]
        if buffers:
            return self.names[buffers[0]]
        return "a tensor that the step has made" if self.is_seen else None

    def has_any(self, tensors):
        """Whether one is the plan's, was, lies in its arena, or may be what persists and has not been seen yet."""
        if not self.is_seen:
            return bool(tensors)
        return any(self.planned_in(tensor) is not None or self.is_in_arena(tensor) for tensor in tensors)

    def is_in_arena(self, tensor):
        start, size = self.arena
        return size > 0 and 0 <= address_of(storage_in(tensor)) - start < size

    def bind(self, buffer, tensor):
        """Takes the tensor's storage for the buffer; says what is wrong with it, if anything is."""
        storage = storage_in(tensor)
        if storage.nbytes() != self.bytes[buffer]:
            return f"{self.names[buffer]} has {storage.nbytes()} bytes and had {self.bytes[buffer]}"
        self.storages[buffer], self.buffers[storage._cdata] = storage, buffer
        if buffer in self.lasting and (is_shared(storage) or not (
                self.make_resizable(storage) or can_be_emptied(storage))):
            self.pinned.add(buffer)
            self.staying.add(self.names[buffer])
        if HANDED_OUT.has(storage):
            self.pinned.add(buffer)
        return None

    def pin(self, tensors):
        """The user's program has got hold of their memory, which stays where it is from now on."""
        for tensor in tensors:
            buffer = self.buffer_in(tensor)
            if buffer is not None:
                self.pinned.add(buffer)
                HANDED_OUT.add(tensor)

    def recall(self, call, function, args, kwargs):
        self.again[call] = Again(function, args, kwargs, self.device)

    def call(self, at, function, args, kwargs):
        """Makes a call, for which libplanrt is ready."""
        if not self.has_addresses:
            return function(*args, **kwargs)
        return self.plain.call(at, self.follower.rooms(), False, function, tuple(args), kwargs)

    def hand_out(self, tensors):
        """The user gets hold of them: their memory is no longer where the plan may want some."""
        for tensor in tensors if self.has_addresses else ():
            self.plain.hand_out(storage_in(tensor))

    def close(self):
        """What is at the plan's addresses is so no longer."""
        if self.has_addresses:
            self.has_addresses, self.arena = False, (0, 0)
            self.follower.place(None)
            self.plain.leave_arena()

    def unbind(self, buffer):
        del self.buffers[self.storages.pop(buffer)._cdata]
        self.pinned.discard(buffer)

    def renew(self):
        """Lets go of what persists that its user has let go of, as whoever loads an optimizer's state has of the one before. What is
        there in its place is bound at its first use, as in a first step."""
        gone = self.plain.gone() if self.plain else [b for b in self.lasting & self.storages.keys() if self.is_alone(b)]
        for buffer in gone:
            self.follower.renew(buffer)
            self.unbind(buffer)
        self.is_seen = self.is_seen and not gone

    def is_alone(self, buffer):
        """Whether nobody but the plan has what a buffer is in. Another storage stands for it then."""
        weak = StorageWeakRef(self.storages[buffer])
        del self.storages[buffer]
        if not weak.expired():
            self.storages[buffer] = STORAGE._new_with_weak_ptr(weak.cdata)
            return False
        stand_in = storage_of(torch.empty(0, device=self.device))
        del self.buffers[weak.cdata]
        self.storages[buffer], self.buffers[stand_in._cdata] = stand_in, buffer
        return True

    def rename(self, old, new):
        """What one buffer is in becomes the other's, which has as many bytes."""
        storage = self.storages[old]
        self.unbind(old)
        self.bind(new, storage)

    def order(self, tensors):
        """A call that is not the plan's takes what is there, after all copies of it."""
        for buffer in {self.buffer_in(tensor) for tensor in tensors} - {None}:
            if self.follower.has(buffer):
                self.follower.bring(buffer)

    def bring(self, tensors):
        """Brings home what persists, for a user between two steps."""
        for tensor in tensors:
            buffer = self.buffer_in(tensor)
            if buffer is not None and not self.follower.has(buffer):
                self.follower.bring(buffer)

    def emptied(self, tensors):
        """The plan's storages among those of tensors that have no memory, with the bytes that they should have."""
        storages = {s._cdata: s for s in map(storage_in, tensors) if s.nbytes() == 0}
        buffers = [(s, self.buffers.get(cdata, self.dropped.get(cdata))) for cdata, s in storages.items()]
        return [(s, self.bytes[buffer]) for s, buffer in buffers if buffer is not None]

    def end(self, was_left):
        """Forgets what does not outlive an iteration; all of it where one was left, for what persists may be new, but for
        what could not be brought home. Gives what outlives it and should not have."""
        self.again.clear()
        self.ghosts.update((b, StorageWeakRef(self.storages[b])) for b in self.lost & self.storages.keys())
        self.lost.clear()
        self.staying |= {self.names[b] for b in self.pinned & self.lasting}
        for buffer in [b for b in self.storages if b not in self.lasting or was_left and self.follower.has(b)]:
            self.unbind(buffer)
        self.is_seen = not self.lacks()
        ghosts = dict(self.ghosts)
        self.ghosts.clear()
        self.dropped.clear()
        if not all(ghost.expired() for ghost in ghosts.values()):
            gc.collect()
        return {buffer: ghost for buffer, ghost in ghosts.items() if not ghost.expired()}

    def refill(self, ghosts):
        """Gives memory back to what should not have lived on, no numbers, so that no read of it fails in another way."""
        for buffer, ghost in ghosts.items():
            storage = STORAGE._new_with_weak_ptr(ghost.cdata)
            if storage is not None:
                storage.resize_(self.bytes[buffer])
                storage.fill_(0xFF)

    # --- What libplanrt asks for --------------------------------------------------------------------------------------

    def address(self, buffer):
        storage = self.storages.get(buffer)
        if storage is None or buffer in self.pinned or storage.nbytes() != self.bytes[buffer]:
            return None
        if is_shared(storage):
            self.pinned.add(buffer)
            return None
        return address_of(storage)

    def allocate(self, buffer, _=None):
        self.storages[buffer].resize_(self.bytes[buffer])

    def release(self, buffer, last):
        storage = self.storages.get(buffer)
        if not last:
            storage.resize_(0)
        elif storage is not None and self.bytes[buffer] > NUMBER:
            if buffer not in self.kept:
                storage.resize_(0)
                self.ghosts[buffer] = StorageWeakRef(storage)
                self.dropped[storage._cdata] = buffer
            self.unbind(buffer)

    def repeat(self, call, wanted, rooms):
        def make(function, args, kwargs):
            if not self.has_addresses:
                return function(*args, **kwargs)
            return self.plain.call(call, rooms, True, function, tuple(args), kwargs)

        with torch.inference_mode(self.again[call].infers), beneath_autograd():
            results = tensors_on(self.device, self.again[call].run(make))
            for tensor, number in zip(results, self.file.calls[call].gives):
                buffer = self.buffer_of.get(number)
                if buffer in wanted and self.buffer_in(tensor) != buffer:
                    if self.take_memory(self.storages[buffer], tensor, self.bytes[buffer], storage_of):
                        continue
                    self.allocate(buffer)
                    here = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                    here.set_(self.storages[buffer], tensor.storage_offset(), tensor.size(), tensor.stride()).copy_(tensor)
