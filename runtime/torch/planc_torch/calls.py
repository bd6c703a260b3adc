"""ATen calls as recorder and follower both see them: which of them count, and what tells one from another."""

import os
import sys
from contextlib import contextmanager
from functools import lru_cache

import torch

from .exporter import STOCHASTIC, TORCH, torch_costs
from torch_recorder import DTYPES, NO_WORK, storage_of, tensors_in

OPTIMIZERS = os.path.join(TORCH, "optim")
DATA_PTR = torch._C.StorageBase.data_ptr  # not the method that tells of whoever asks
STORAGE = type(storage_of(torch.empty(1)))
OUTSIDE = -1  # in lists of tensors: not the plan's, as a batch and numbers of the program are
# Calls that give a view though their schemas do not say so.
VIEWS = ("aten._unsafe_view", "aten._reshape_alias", "aten.unsafe_split.Tensor", "aten.unsafe_split_with_sizes")
RESIZES = ("aten.resize_", "aten.resize_as_")  # of such that give other ones, those that may move elements
# Methods that hand out the memory of a tensor itself, which then has to stay where it is, and some that read it in no call.
SHARES = ("numpy", "__array__", "data_ptr", "__dlpack__", "to_dlpack", "share_memory_")
READS = ("tolist", "__repr__", "__format__", "__deepcopy__")
STORAGES = ("storage", "untyped_storage", "_storage", "_typed_storage")  # that give what may be read, as torch.save does
READ = "planc.{}({})"  # describes such a read by the method and the tensor
END = "planc.end"  # stands for the end of the step in a plan: it reads what the step leaves to its user


def address_of(storage):
    """PyTorch 1.13 gives a typed storage of what is indexed, although it is asked for an untyped one."""
    return DATA_PTR(storage if isinstance(storage, torch._C.StorageBase) else storage._storage)


def storage_in(tensor):
    """Its storage; one is its own."""
    return tensor if isinstance(tensor, STORAGE) else storage_of(tensor)


def tensors_on(device, value):
    """The tensors of a device that have elements, in the order of a call's arguments or results: lists are of tensors."""
    found = []
    for part in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(part, torch.Tensor):
            if part.device.type == device and part.numel() > 0:
                found.append(part)
        elif isinstance(part, (tuple, list, dict)) and part:
            found += tensors_on(device, tuple(part.values()) if isinstance(part, dict) else part)
    return found


def name_of(function):
    return str(function).removesuffix(".default")


def described(function, tensors):
    """A call by its name and the types and shapes of its tensors: `aten.mm(f32[8,16], f32[16,4])`."""
    return f"{name_of(function)}({', '.join(described_tensor(t) for t in tensors)})"


def described_tensor(tensor):
    return f"{DTYPES.get(tensor.dtype, tensor.dtype)}[{','.join(map(str, tensor.shape))}]"


@lru_cache(maxsize=None)
def only_views(function):
    """Whether a call touches no element: it gives views of its operands, or describes them."""
    if function.namespace == "profiler" or name_of(function) in (*NO_WORK, *VIEWS) or torch.Tag.inplace_view in function.tags:
        return True
    schema = function._schema
    aliases = [r.alias_info for r in schema.returns]
    return not schema.is_mutable and bool(aliases) and all(alias is not None for alias in aliases)


@lru_cache(maxsize=None)
def draws(function):
    """Whether a call may draw random numbers."""
    seeded = getattr(torch.Tag, "nondeterministic_seeded", None)
    return seeded in function.tags or function._schema.name.partition("::")[2].removesuffix("_") in STOCHASTIC


def touches(name, argument):
    """Whether a call's kernel may look for the elements of an argument, be it that it only needs the shape."""
    return torch_costs.is_read(name, argument) or argument in torch_costs.SHAPE_ONLY.get(name, ())


def arguments_in(function, args, kwargs):
    """Pairs of a call's arguments, as its schema has them, and their values."""
    by_name = {argument.name: argument for argument in function._schema.arguments}
    return [*zip(function._schema.arguments, args), *((by_name[name], value) for name, value in kwargs.items())]


def touched(function, args, kwargs):
    """The tensors that a call's kernel may look for the elements of."""
    return [t for argument, value in arguments_in(function, args, kwargs) if touches(name_of(function), argument.name)
            for t in tensors_in(value)]


def written(function, args, kwargs):
    """Pairs of the tensors that a call writes, and whether it reads them, too."""
    return [(t, touches(name_of(function), argument.name) and not argument.kwarg_only)
            for argument, value in arguments_in(function, args, kwargs)
            if argument.alias_info is not None and argument.alias_info.is_write for t in tensors_in(value)]


def is_within(places):
    """Whether a function of files whose paths so begin makes a call, through whatever lies between."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(places):
        frame = frame.f_back
    return frame is not None


def is_within_an_optimizer():
    return is_within(OPTIMIZERS)


@contextmanager
def beneath_autograd():
    """Within, calls are neither differentiated nor counted as changes of what they write: for what only restores. Whether
    gradients are enabled stays as it is, since kernels ask for it."""
    key = torch._C.DispatchKey.ADInplaceOrView
    was = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
    below = torch._C._AutoDispatchBelowAutograd()  # as long as it lives
    torch._C._dispatch_tls_set_dispatch_key_excluded(key, True)
    try:
        yield
    finally:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, was)
        del below
