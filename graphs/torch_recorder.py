"""Watches PyTorch run: every ATen call below autograd, with the storages that it reads, creates and writes.

Storages are told apart by identity, so views and results in place are the storage they lie in, on the meta device too,
where a tensor has no address. A weak reference keeps the identity of a storage that was freed from being given to
another one. A call that only gives views of its operands does nothing and is left out, as are calls whose tensors are
not on the recorded device (the step counters of an optimizer). One that reads and makes nothing there, such as .item(),
is recorded.
"""

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import torch_costs
from torch_as_on_gpu import as_on_gpu
from torch_refusals import (CannotExport, Read, base_name, foreign_autocast, is_of_an_optimizer, objection, refusing_precision,
                            users_line, without_effect)

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
          torch.uint8: "u8", torch.bool: "bool"}
MADE_IN = {"forward": "activation", "backward": "actgrad", "optimizer": "temp"}
PERSISTENT = ("param", "buffer", "optstate")
# What calls write in training though their schemas do not say so.
UPDATED = {**{f"aten.{vendor}_batch_norm": ("running_mean", "running_var") for vendor in ("native", "cudnn", "miopen")},
           "aten.batch_norm_gather_stats": ("running_mean", "running_var"),
           "aten.batch_norm_gather_stats_with_counts": ("running_mean", "running_var"),
           "aten.rrelu_with_noise": ("noise",)}
# Calls that touch no element: of a tensor's description, of its stream; and those that hand on what the host made.
NO_WORK = ("aten.record_stream", "aten.is_same_size", "aten.is_pinned.default", "aten._has_same_storage_numel")
FROM_HOST = ("aten.lift", "aten.lift_fresh")
# Arguments that say how a result lies or where from a number is drawn.
NOT_OF_THE_RESULT = (type(None), torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator)


@dataclass
class Storage:
    kind: str
    name: str
    dtype: str
    shape: tuple  # of the first tensor seen in it
    bytes: int
    maker: str = None  # the call that made it
    place: str = None  # the user's line of that call


@dataclass
class Operand:
    """A dense tensor: its shape, its start in bytes, whether the storage holds the rows of the transpose, and of four
    dimensions whether it holds channels innermost, None where that cannot be told."""

    storage: int
    shape: tuple
    offset: int
    transposed: bool
    channels_last: bool


@dataclass
class Call:
    name: str
    phase: str
    module: str
    place: str = None  # the user's line
    reads: list = field(default_factory=list)  # storages
    creates: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    unstated: bool = False  # an argument that is not in attrs
    operands: dict = field(default_factory=dict)  # by argument name, results by number; None where not dense
    partial: bool = False  # writes a part of a storage
    updates: bool = False  # an optimizer made it
    flops: int = 0
    traffic: int = 0
    cost: object = None  # what the recorder's clock measured


# The storage of a tensor itself, without an element type; PyTorch 1.13 has it by another name.
storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage


def tensors_in(value):
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def first_difference(lists):
    """Where lists of calls differ first: the user's line, in the longest list, and a name of each list; (None, []) if
    they agree."""
    for calls in zip_longest(*lists):
        if len({(call.name, call.phase) if call else None for call in calls}) > 1:
            longest = max(range(len(lists)), key=lambda i: len(lists[i]))
            return calls[longest].place, [call.name if call else "nothing" for call in calls]
    return None, []


def moved_to(device):
    """A function that replaces a tensor by one of zeros on the device."""
    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device).zero_()
    return move


def in_place_results(function, args, kwargs):
    """What a call that writes its operands returns: those of them that the schema names."""
    results = []
    for returned in function._schema.returns:
        written = [i for i, argument in enumerate(function._schema.arguments)
                   if returned.alias_info and argument.alias_info and argument.alias_info.is_write
                   and argument.alias_info.before_set == returned.alias_info.before_set]
        if not written:
            raise NotImplementedError(f"{function} cannot run on the meta device; record on another one")
        name = function._schema.arguments[written[0]].name
        results.append(args[written[0]] if written[0] < len(args) else kwargs[name])
    return results[0] if len(results) == 1 else tuple(results) or None


def on_host(function, args, kwargs):
    """The result of a call that PyTorch has no meta kernel for: the call runs on zeros on the host."""
    if function is torch.ops.aten.convolution_backward.default:  # the one that would take long
        dy, x, weight = args[:3]
        results = x, weight, dy.new_empty(dy.shape[1])
        return tuple(torch.empty_like(t) if wanted else None for t, wanted in zip(results, args[10]))
    if function._schema.is_mutable:
        return in_place_results(function, args, kwargs)
    if any(returned.alias_info is not None for returned in function._schema.returns):
        raise NotImplementedError(f"{function} cannot run on the meta device; record on another one")
    return tree_map(moved_to("meta"), function(*tree_map(moved_to("cpu"), args), **tree_map(moved_to("cpu"), kwargs)))


def called(function, args, kwargs):
    """What a call gives. Under a mode PyTorch 1.13 hands on a number that it has as a tensor as what it is, where hooks on what
    is saved for a backward pass detach it, as checkpoints do."""
    if function is torch.ops.aten.detach.default and not isinstance(args[0], torch.Tensor):
        return torch.tensor(args[0], dtype=torch.float64 if isinstance(args[0], float) else None)
    return function(*args, **kwargs)


def in_parts(mode, function, args, kwargs):
    """In inference mode PyTorch hands a mode calls as a whole that it takes apart elsewhere. Makes one of these in its parts, which
    `mode` sees, for they tell what they write, as batch norms do. NotImplemented of other calls, which are not made."""
    if not torch.is_inference_mode_enabled() or not hasattr(function, "decompose"):
        return NotImplemented
    with mode:
        return function.decompose(*args, **(kwargs or {}))


class Recorder(TorchDispatchMode):
    """Records calls while `phase` is set. `clock`, if there is one, runs each call and measures it. `source` is where
    the loss is written; it stands for the user's line where a call has none, as in backward passes."""

    def __init__(self, device, clock, source):
        super().__init__()
        self.device, self.clock, self.source = device, clock, source
        self.phase, self.modules = None, []
        self.storages, self.calls = [], []
        self.ids, self.references = {}, []
        self.seen = {}  # storages of calls before the recorded iteration
        self.kept = frozenset()  # storages that the next iteration is not to read
        self.refusal = None

    def refuse(self, what, place=None):
        """Raises why the module cannot be exported; kept, as the module may catch it."""
        self.refusal = self.refusal or CannotExport(f"{place or self.place()}: {what}")
        raise self.refusal

    def place(self):
        return users_line() or self.source + (f" ({self.phase})" if self.phase else "")

    # --- Storages -----------------------------------------------------------------------------------------------------

    def know(self, tensor, kind, name=None):
        """The number of a tensor's storage, which is of `kind` if it was not known."""
        storage = storage_of(tensor)
        if storage._cdata not in self.ids:
            self.references.append(StorageWeakRef(storage))
            self.ids[storage._cdata] = len(self.storages)
            dtype = DTYPES.get(tensor.dtype, "u8")
            self.storages.append(Storage(kind, name, dtype, tuple(tensor.shape), storage.nbytes()))
        number = self.ids[storage._cdata]
        if self.storages[number].bytes != storage.nbytes():
            self.refuse("a tensor's storage changes its size, which a graph cannot")
        return number

    def is_known(self, tensor):
        return storage_of(tensor)._cdata in self.ids

    def is_new(self, tensor):
        return not self.is_known(tensor) and storage_of(tensor)._cdata not in self.seen

    def is_number(self, tensor):
        """Whether PyTorch handed a number of the program on as a tensor; on a GPU that is one of the host."""
        return self.device == "cpu" and tensor.dim() == 0 and self.is_new(tensor)

    def counts(self, tensor):
        return tensor.device.type == self.device and tensor.numel() > 0

    def operand(self, tensor):
        storage = self.know(tensor, "buffer")
        plain, transposed = tensor.is_contiguous(), False
        channels_last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
        if not plain:
            transposed = tensor.dim() in (2, 3) and tensor.transpose(-1, -2).is_contiguous()
            if not transposed and not channels_last:
                return None
        if DTYPES.get(tensor.dtype) != self.storages[storage].dtype:
            return None
        order = None if tensor.dim() != 4 or plain and channels_last else channels_last
        return Operand(storage, tuple(tensor.shape), tensor.storage_offset() * tensor.element_size(), transposed, order)

    # --- Calls --------------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, cost = kwargs or {}, None
        if not isinstance(function, torch._ops.OpOverload):
            self.refuse(f"{function} is no ATen call; what it runs is not recorded")
        made = in_parts(self, function, args, kwargs)
        if made is not NotImplemented:
            return made
        self.object_to(function, args, kwargs)
        try:
            if self.clock and self.phase:
                result, cost = self.clock.run(function, args, kwargs)
            else:
                result = called(function, args, kwargs)
        except NotImplementedError:
            if self.device != "meta":
                raise
            result = on_host(function, args, kwargs)
        if self.phase:
            self.note(function, args, kwargs, result, cost)
        else:
            for tensor in tensors_in((args, kwargs)):
                self.see(storage_of(tensor))
        return result

    def see(self, storage):
        self.seen[storage._cdata] = StorageWeakRef(storage)

    def repeats_by_a_number(self, function, args):
        """Whether a call repeats elements as often as a number says, of which PyTorch 1.13 makes a tensor."""
        if self.device == "meta" or base_name(function) != "repeat_interleave" or not self.is_known(args[0]):
            return False
        times = self.ids[storage_of(args[0])._cdata]
        return next((c.name for c in reversed(self.calls) if times in c.creates + c.writes), None) == "aten.fill_.Scalar"

    def object_to(self, function, args, kwargs):
        if self.repeats_by_a_number(function, args):
            return
        what = objection(function, args, kwargs, tensors_in((args, kwargs)), self.device, self.phase is not None)
        if what:
            self.refuse(what)

    def note_autocast(self):
        """Someone may have switched it on without torch.autocast."""
        foreign = foreign_autocast(self.device)
        if foreign:
            self.refuse(without_effect(foreign, self.device))

    def note_branch(self, tensor):
        """The program asks for the truth of a tensor, or for it as an index."""
        if self.counts(tensor) and (self.phase or self.device == "meta"):
            self.refuse("which way the program goes depends on a tensor's value; a graph has one way")

    def is_read(self, tensor):
        return self.phase and self.counts(tensor) and not is_of_an_optimizer()

    def note_read(self, tensor, name):
        """The program asks for values in a form of its own, which nobody can follow."""
        if self.device != "meta" and self.is_read(tensor):
            self.refuse(f"{name} hands a tensor's values to the program, and what it does with them is not recorded; "
                        "leave it out")

    def value_read(self, tensor, value):
        return Read(value, self.refuse) if self.is_read(tensor) else value

    def note(self, function, args, kwargs, result, cost):
        call = Call(str(function).removesuffix(".default"), self.phase,
                    self.modules[-1] if self.modules and self.phase == "forward" else "", self.place(), cost=cost)
        # PyTorch 1.13 marks an optimizer's step by a call of namespace profiler.
        if function.namespace == "profiler" or call.name in NO_WORK or torch.Tag.inplace_view in function.tags:
            return
        read, written, operands = self.arguments(function, call, args, kwargs)
        results = {i: t for i, t in enumerate(tree_flatten(result)[0])
                   if isinstance(t, torch.Tensor) and self.counts(t)}
        created = [t for t in results.values() if not self.is_known(t)]
        if call.name in FROM_HOST:
            read = []
        is_view = any(r.alias_info is not None for r in function._schema.returns)
        if not created and not written and (results or is_view or not read):
            return
        created += [t for t in written if self.is_new(t)]  # had no bytes until now
        written = [t for t in written if not self.is_new(t)]
        self.refuse_kept(call, [t for _, t in read] + written)
        self.note_unseen(call, [t for _, t in read])
        call.reads = self.distinct(t for _, t in read)
        call.creates = self.distinct(created, MADE_IN[self.phase])
        for number in call.creates:
            self.storages[number].maker, self.storages[number].place = call.name, call.place
        call.writes = self.distinct(written)
        call.partial = any(t.numel() * t.element_size() < storage_of(t).nbytes() for t in written)
        call.operands = {key: self.operand(tensor) for key, tensor in {**operands, **results}.items()}
        call.flops = torch_costs.flops(call.name, operands, call.attrs, results)
        taken = [(name, t) for name, t in read if torch_costs.is_read(call.name, name)]
        call.traffic = torch_costs.traffic(call.name, taken, created + written, lambda t: storage_of(t).nbytes())
        self.calls.append(call)

    def needs(self, name, argument):
        """Whether an argument of a call is to be in memory."""
        return torch_costs.is_read(name, argument)

    def arguments(self, function, call, args, kwargs):
        """The tensors on the device that a call reads (with the argument's name) and writes, and all by name."""
        given = {argument.name: args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
                 for i, argument in enumerate(function._schema.arguments)}
        updated = UPDATED.get(call.name, ()) if given.get("training", True) else ()
        read, written, operands = [], [], {}
        for argument in function._schema.arguments:
            value = given[argument.name]
            tensors = [t for t in tensors_in(value) if self.counts(t) and not self.is_number(t)]
            is_list = isinstance(value, (list, tuple))
            for k, tensor in enumerate(tensors):
                operands[f"{argument.name}.{k}" if is_list else argument.name] = tensor
            writes = (argument.alias_info is not None and argument.alias_info.is_write or argument.name in updated)
            if writes:
                written += tensors
            if self.needs(call.name, argument.name) and not (writes and argument.kwarg_only):
                read += [(argument.name, t) for t in tensors]
            if not tensors:
                self.note_attr(call, argument, value)
        return read, written, operands

    def note_unseen(self, call, tensors):
        """What is neither known nor was there before the iteration was made in it by no call: by torch.tensor() on the
        meta device of PyTorch 1.13. Other versions and devices hand it on by this one."""
        for tensor in tensors:
            if self.is_new(tensor):
                made = Call(FROM_HOST[1], call.phase, call.module, call.place, traffic=storage_of(tensor).nbytes())
                made.creates = self.distinct([tensor], MADE_IN[call.phase])
                made.operands = {0: self.operand(tensor)}
                self.calls.append(made)

    def refuse_kept(self, call, tensors):
        """An iteration that reads what the one before left behind would find it in no graph."""
        for tensor in tensors if self.kept else ():
            number = self.ids.get(storage_of(tensor)._cdata)
            if number in self.kept:
                storage = self.storages[number]
                left = f"{storage.maker} at {storage.place}" if storage.maker else storage.name
                self.refuse(f"{call.name} reads what the iteration before left behind ({left}); "
                            "what stays is to be written in place into a parameter, a buffer or the optimizer's state",
                            call.place)

    def distinct(self, tensors, kind="buffer"):
        return list(dict.fromkeys(self.know(t, kind) for t in tensors))

    @staticmethod
    def note_attr(call, argument, value):
        if isinstance(value, NOT_OF_THE_RESULT) or tensors_in(value) or (
                argument.has_default_value() and argument.default_value == value):
            return
        if isinstance(value, (int, str)) or isinstance(value, float) and math.isfinite(value) or (
                isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value)):
            call.attrs[argument.name] = list(value) if isinstance(value, tuple) else value
        else:
            call.unstated = True

    # --- What runs ----------------------------------------------------------------------------------------------------

    @contextmanager
    def watching(self, model):
        """Within, calls are recorded when `phase` is set and know the innermost module that they belong to."""
        def leave(*_):
            self.modules.pop()

        hooks = []
        for name, module in model.named_modules():
            hooks.append(module.register_forward_pre_hook(lambda *_, name=name: self.modules.append(name)))
            hooks.append(module.register_forward_hook(leave))
        try:
            with refusing_precision(self.device, self.refuse), as_on_gpu(self), self:
                yield self
        except Exception as error:
            raise self.refusal or error
        finally:
            for hook in hooks:
                hook.remove()
        if self.refusal:
            raise self.refusal

    @contextmanager
    def repeating(self, batch):
        """Within, an iteration on another batch is held against the recorded one: the same calls, none of which reads
        what that one left behind."""
        recorded, count, clock = self.calls, len(self.storages), self.clock
        given = {self.know(tensor, "input") for tensor in batch}
        self.kept = {i for i in range(count) if self.storages[i].kind not in PERSISTENT} - given
        self.calls, self.clock = [], None
        yield
        place, names = first_difference([recorded, self.calls])
        if names:
            self.refuse(f"iterations differ: {names[0]} in the second, {names[1]} in the third", place)
        self.calls, self.clock, self.kept = recorded, clock, frozenset()
        del self.storages[count:]
