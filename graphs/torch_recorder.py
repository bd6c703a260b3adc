"""Watches PyTorch run: every ATen call below autograd, with the storages that it reads, creates and writes.

Storages are told apart by identity, so views and results in place are the storage they lie in, on the meta device too,
where a tensor has no address. A weak reference keeps the identity of a storage that was freed from being given to
another one. A call that makes no storage and writes none (a view) does nothing and is left out, as are calls whose
tensors are not on the recorded device (the step counters of an optimizer).
"""

import inspect
import math
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import torch_costs

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
          torch.uint8: "u8", torch.bool: "bool"}
MADE_IN = {"forward": "activation", "backward": "actgrad", "optimizer": "temp"}
# What a batch norm writes though its schema does not say so.
UPDATED = {name: ("running_mean", "running_var") for name in ("aten.native_batch_norm", "aten.cudnn_batch_norm")}


@dataclass
class Storage:
    kind: str
    name: str
    dtype: str
    shape: tuple  # of the first tensor seen in it
    bytes: int


@dataclass
class Operand:
    """A dense tensor: its shape, its start in bytes, and whether the storage holds the rows of the transpose."""

    storage: int
    shape: tuple
    offset: int
    transposed: bool


@dataclass
class Call:
    name: str
    phase: str
    module: str
    reads: list = field(default_factory=list)  # storages
    creates: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    operands: dict = field(default_factory=dict)  # by argument name, results by number; None where not dense
    partial: bool = False  # writes a part of a storage
    flops: int = 0
    traffic: int = 0
    cost: object = None  # what the recorder's clock measured


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def tensors_in(value):
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def moved_to(device):
    """A function that replaces a tensor by one of zeros on the device."""
    def move(value):
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device).zero_()
    return move


def on_host(function, args, kwargs):
    """The result of a call that PyTorch has no meta kernel for: the call runs on zeros on the host."""
    if function is torch.ops.aten.convolution_backward.default:  # the one that would take long
        dy, x, weight = args[:3]
        results = x, weight, dy.new_empty(dy.shape[1])
        return tuple(torch.empty_like(t) if wanted else None for t, wanted in zip(results, args[10]))
    if function._schema.is_mutable:
        if any(returned.alias_info is None for returned in function._schema.returns):
            raise NotImplementedError(f"{function} cannot run on the meta device; record on another one")
        return args[0] if function._schema.returns else None
    return tree_map(moved_to("meta"), function(*tree_map(moved_to("cpu"), args), **tree_map(moved_to("cpu"), kwargs)))


class FusedDropout(TorchFunctionMode):
    """Dropout as a GPU runs it on every device: one call that keeps a mask of bytes."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.nn.functional.dropout:
            called = inspect.signature(function).bind(*args, **(kwargs or {}))
            called.apply_defaults()
            p, training, inplace = (called.arguments[key] for key in ("p", "training", "inplace"))
            if training and not inplace and 0 < p < 1:
                return torch.native_dropout(called.arguments["input"], p, True)[0]
        return function(*args, **(kwargs or {}))


class Recorder(TorchDispatchMode):
    """Records calls while `phase` is set. `clock`, if there is one, runs each call and measures it."""

    def __init__(self, device, clock=None):
        super().__init__()
        self.device, self.clock = device, clock
        self.phase, self.modules = None, []
        self.storages, self.calls = [], []
        self.ids, self.references = {}, []

    # --- Storages -----------------------------------------------------------------------------------------------------

    def know(self, tensor, kind, name=None):
        """The number of a tensor's storage, which is of `kind` if it was not known."""
        storage = storage_of(tensor)
        if storage._cdata not in self.ids:
            self.references.append(StorageWeakRef(storage))
            self.ids[storage._cdata] = len(self.storages)
            dtype = DTYPES.get(tensor.dtype, "u8")
            self.storages.append(Storage(kind, name, dtype, tuple(tensor.shape), storage.nbytes()))
        return self.ids[storage._cdata]

    def is_known(self, tensor):
        return storage_of(tensor)._cdata in self.ids

    def counts(self, tensor):
        return tensor.device.type == self.device and tensor.numel() > 0

    def operand(self, tensor):
        storage = self.know(tensor, "buffer")
        transposed = False
        if not tensor.is_contiguous():
            transposed = tensor.dim() in (2, 3) and tensor.transpose(-1, -2).is_contiguous()
            channels_last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
            if not transposed and not channels_last:
                return None
        if DTYPES.get(tensor.dtype) != self.storages[storage].dtype:
            return None
        return Operand(storage, tuple(tensor.shape), tensor.storage_offset() * tensor.element_size(), transposed)

    # --- Calls --------------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, cost = kwargs or {}, None
        try:
            if self.clock and self.phase:
                result, cost = self.clock.run(function, args, kwargs)
            else:
                result = function(*args, **kwargs)
        except NotImplementedError:
            if self.device != "meta":
                raise
            result = on_host(function, args, kwargs)
        if self.phase:
            self.note(function, args, kwargs, result, cost)
        return result

    def note(self, function, args, kwargs, result, cost):
        if function.namespace == "profiler":  # PyTorch 1.13 marks an optimizer's step by a call
            return
        call = Call(str(function).removesuffix(".default"), self.phase,
                    self.modules[-1] if self.modules and self.phase == "forward" else "", cost=cost)
        read, written, operands = [], [], {}
        for i, argument in enumerate(function._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            tensors = [t for t in tensors_in(value) if self.counts(t)]
            is_list = isinstance(value, (list, tuple))
            for k, tensor in enumerate(tensors):
                operands[f"{argument.name}.{k}" if is_list else argument.name] = tensor
            writes = (argument.alias_info is not None and argument.alias_info.is_write
                      or argument.name in UPDATED.get(call.name, ()) and args[5])
            if writes:
                written += tensors
            if torch_costs.is_read(call.name, argument.name) and not (writes and argument.kwarg_only):
                read += [(argument.name, t) for t in tensors]
            if not tensors:
                self.note_attr(call, argument, value)
        results = {i: t for i, t in enumerate(tree_flatten(result)[0])
                   if isinstance(t, torch.Tensor) and self.counts(t)}
        created = [t for t in results.values() if not self.is_known(t)]
        if not created and not written:
            return
        call.reads = self.distinct(t for _, t in read)
        call.creates = self.distinct(created, MADE_IN[self.phase])
        call.writes = self.distinct(written)
        call.partial = any(t.numel() * t.element_size() < storage_of(t).nbytes() for t in written)
        call.operands = {key: self.operand(tensor) for key, tensor in {**operands, **results}.items()}
        call.flops = torch_costs.flops(call.name, operands, call.attrs, results)
        call.traffic = torch_costs.traffic(call.name, read, created + written, lambda t: storage_of(t).nbytes())
        self.calls.append(call)

    def distinct(self, tensors, kind="buffer"):
        return list(dict.fromkeys(self.know(t, kind) for t in tensors))

    @staticmethod
    def note_attr(call, argument, value):
        plain = isinstance(value, (int, str)) or isinstance(value, float) and math.isfinite(value) or (
            isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value))
        if plain and not (argument.has_default_value() and argument.default_value == value):
            call.attrs[argument.name] = list(value) if isinstance(value, tuple) else value

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
            with FusedDropout(), self:
                yield self
        finally:
            for hook in hooks:
                hook.remove()
