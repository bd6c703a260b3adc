"""Records a step without the device and without its memory: tensors that have shapes and types, and no elements.

They are PyTorch's fake tensors. They say which device they are on, so that autocast, optimizers and kernels are chosen as
there. While the user's file is imported, and while its step runs, every tensor is one, but for small ones of the host:
programs take numbers out of these, as schedules and counters of optimizers are.

What the program reads of a fake tensor by item() it may keep, print and calculate with. Everything else that depends on
elements ends in one sentence with the user's line.
"""

import copy
import logging
import math
import os
import sys
import warnings
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import SimpleNamespace

import torch
from torch.nn import functional, init
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .calls import is_within, name_of
from .exporter import TORCH
from .no_driver import NO_DRIVER, answering, answering_autograd
from torch_as_on_gpu import attention, only_math
from torch_recorder import in_place_results, storage_of, tensors_in
from torch_refusals import BRANCHES, CannotExport, base_name, gives_a_value, line_raised, replaced, users_line
from torch_refusals import READS as CONVERSIONS

try:
    from torch._subclasses.fake_tensor import (DataDependentOutputException, DynamicOutputShapeException, FakeTensor,
                                               FakeTensorMode, unset_fake_temporarily)
    from torch.utils._python_dispatch import _disable_current_modes
except ImportError:  # PyTorch 1
    FakeTensorMode = object

MOST_ELEMENTS = 2**16  # of tensors of the host that are real
WITHOUT_ELEMENTS = "with --fake tensors have none; record the step on its device without"
BRANCH = "which way the program goes depends on a tensor's value"
MAKERS = "tensor", "as_tensor"  # of numbers of the program
CAST = torch.float16, torch.bfloat16, torch.float32
# Calls whose results have a size that only the device knows.
WORKSPACES = ("mkldnn_rnn_layer", "_cudnn_rnn", "miopen_rnn")
SCALERS = tuple(os.path.join(TORCH, *place, "grad_scaler.py") for place in (("amp",), ("cuda", "amp")))
# Compute capabilities and cuDNN with which its attention is PyTorch's first choice.
HAS_FLASH, CUDNN_ATTENTION, CUDNN_WITH_ATTENTION = (8, 0), ((9, 0), (10, 0)), 91500


def is_possible():
    return FakeTensorMode is not object and hasattr(torch._C, "_ensureCUDADeviceGuardSet")


def is_fake(value):
    return isinstance(value, FakeTensor)


class NoNumber(float):
    """In place of what item() gives: what is calculated with it is none either, and no way of the program may depend on it."""

    def __new__(cls, refuse):
        number = super().__new__(cls, 1.0)  # which no function of math objects to
        number.refuse = refuse
        return number

    def __repr__(self):
        return "nan"

    __str__ = __repr__

    def __format__(self, form):
        return format(math.nan, form)

    def derived(self, *_):
        return NoNumber(self.refuse)

    def refused(self, *_):
        self.refuse(f"{BRANCH}; {WITHOUT_ELEMENTS}")


CALCULATIONS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
for name in ("neg", "pos", "abs", *CALCULATIONS, *(f"r{name}" for name in CALCULATIONS)):
    setattr(NoNumber, f"__{name}__", NoNumber.derived)
for name in ("bool", "int", "float", "index", "round", "trunc", "floor", "ceil", "lt", "le", "eq", "ne", "gt", "ge", "divmod"):
    setattr(NoNumber, f"__{name}__", NoNumber.refused)
NoNumber.__hash__ = float.__hash__


class Fakes(FakeTensorMode):
    """PyTorch's mode, as if there were no device to set up, whatever is said of one."""

    avoid_device_init = True


class HostTensors(TorchDispatchMode):
    """Runs calls on small tensors of the host, all others without elements."""

    def __init__(self, fakes):
        super().__init__()
        self.fakes, self.gives_values, self.refusal = fakes, False, None
        self.spoilt = {}  # storages of the host that a fake tensor was written into

    def refuse(self, what):
        """Kept, as the user's program may catch it."""
        self.refusal = self.refusal or CannotExport(f"{users_line() or 'the step'}: {what}")
        raise self.refusal

    def is_real(self, tensor):
        return not is_fake(tensor) and tensor.device.type == "cpu" and storage_of(tensor)._cdata not in self.spoilt

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "prim":
            return function(*args)
        kwargs, name = kwargs or {}, base_name(function)
        if name in ("_pin_memory", "is_pinned"):
            return args[0] if name == "_pin_memory" else False
        given = tensors_in((args, kwargs))
        if all(map(self.is_real, given)) and torch.device(kwargs.get("device") or "cpu").type == "cpu":
            return self.on_host(function, args, kwargs)
        if gives_a_value(function):
            return self.value()
        result = self.without_elements(function, args, kwargs)
        written = [t for t in given if not is_fake(t)] if function._schema.is_mutable else []
        self.spoilt.update((storage_of(tensor)._cdata, storage_of(tensor)) for tensor in written)
        return in_place_results(function, args, kwargs) if written else result

    def on_host(self, function, args, kwargs):
        """The real result where it is small."""
        if not function._schema.is_mutable and not gives_a_value(function):
            try:
                result = function(*args, **kwargs)
            except (DataDependentOutputException, DynamicOutputShapeException):
                result = None  # its size depends on elements that are there
            if sum(t.numel() for t in tensors_in(result)) > MOST_ELEMENTS:
                return result
        with unset_fake_temporarily():
            return function(*args, **kwargs)

    def without_elements(self, function, args, kwargs):
        if base_name(function) in WORKSPACES:
            self.refuse(f"how much memory {name_of(function)} works in only its device knows; record the step there, without "
                        "--fake")
        try:
            return function(*args, **kwargs)
        except DynamicOutputShapeException:
            self.refuse(f"the size of what {name_of(function)} gives depends on data; a graph has one size for it")
        except DataDependentOutputException:
            self.refuse(f"what {name_of(function)} tells the program depends on data; {WITHOUT_ELEMENTS}")

    def value(self):
        """A number in place of an element, where it is known what becomes of it. GradScaler finds no overflow."""
        if not (self.gives_values or is_within(SCALERS)):
            self.refuse(f"{BRANCH}; {WITHOUT_ELEMENTS}")
        return 0.0


class Reads(TorchFunctionMode):
    """What the user's program asks tensors without elements for."""

    def __init__(self, host):
        super().__init__()
        self.host = host

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        if args and isinstance(args[0], torch.Tensor) and not self.host.is_real(args[0]):
            if name == "__format__" and args[0].dim() == 0:
                return format(NoNumber(self.host.refuse), args[1])
            if name == "__deepcopy__" and is_fake(args[0]):
                return self.copied(*args)
            if name == "item":
                return self.item(function, args, kwargs)
            if name in BRANCHES:
                self.host.refuse(f"{BRANCH}; {WITHOUT_ELEMENTS}")
            if name in CONVERSIONS:
                self.host.refuse(f"{name} hands a tensor's values to the program; take item(), which may be kept and "
                                 f"printed: {WITHOUT_ELEMENTS}")
        elsewhere = torch.device(kwargs.get("device") or "cpu").type != "cpu"
        if name in MAKERS and elsewhere and args and not isinstance(args[0], torch.Tensor):
            return self.made(function, args, kwargs)
        return function(*args, **kwargs)

    def copied(self, tensor, memo):
        """A deep copy, which PyTorch's own would make a tensor of another mode. What shares memory does so in the copy."""
        if id(tensor) in memo:
            return memo[id(tensor)]
        storage = storage_of(tensor)
        with _disable_current_modes(), self.host.fakes:
            if storage._cdata not in memo:
                memo[storage._cdata] = torch.empty(storage.nbytes(), dtype=torch.uint8, device=tensor.device)
            new = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            new.set_(storage_of(memo[storage._cdata]), tensor.storage_offset(), tensor.size(), tensor.stride())
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        new = torch.nn.Parameter(new, tensor.requires_grad) if is_parameter else new.requires_grad_(tensor.requires_grad)
        memo[id(tensor)] = new
        if tensor.grad is not None:
            new.grad = copy.deepcopy(tensor.grad, memo)
        new.__dict__.update(copy.deepcopy({key: v for key, v in tensor.__dict__.items() if key not in new.__dict__}, memo))
        return new

    def made(self, function, args, kwargs):
        """A tensor on the device of numbers of the program: it is there when PyTorch hands it on, and not copied by a call."""
        wants_gradient = kwargs.get("requires_grad", False)
        with _disable_current_modes():
            like = function(*args, **{**kwargs, "device": "cpu", "requires_grad": False})
            with self.host.fakes:
                there = torch.empty_like(like, device=kwargs["device"])
        return torch.ops.aten.lift_fresh(there).requires_grad_(wants_gradient)

    def item(self, function, args, kwargs):
        was, self.host.gives_values = self.host.gives_values, True
        try:
            value = function(*args, **kwargs)
        finally:
            self.host.gives_values = was
        return value if is_within(SCALERS) else NoNumber(self.host.refuse)


# --- What PyTorch does otherwise with fake tensors than with real ones -------------------------------------------------


def prefers_cudnn(gpu):
    """Whether PyTorch takes cuDNN's attention first."""
    return gpu.capability in CUDNN_ATTENTION and (torch.backends.cudnn.version() or 0) > CUDNN_WITH_ATTENTION


def as_autocast_has_it(value):
    """Operands of attention, which autocast has in its own type."""
    if not torch.is_autocast_enabled():
        return value
    wanted = torch.get_autocast_dtype("cuda")
    return tree_map(lambda t: t.to(wanted) if isinstance(t, torch.Tensor) and t.dtype in CAST else t, value)


def choosing_attention(gpu, host):
    """PyTorch asks the driver which kernel it takes."""
    def make(original):
        @wraps(original)
        def call(query, *args, **kwargs):
            if query.device.type != "cuda" or only_math():
                return original(query, *args, **kwargs)
            query, args, kwargs = as_autocast_has_it((query, args, kwargs))
            is_known = gpu.capability and gpu.capability >= HAS_FLASH
            result = attention(query, *args, **kwargs, prefers_cudnn=prefers_cudnn(gpu)) if is_known else None
            if result is None:
                host.refuse("which kernel scaled_dot_product_attention runs with these operands is the GPU's choice; record "
                            "the step on one, without --fake")
            return result
        return call
    return make


def leaving_as_is(original):
    """What fills a tensor without elements."""
    @wraps(original)
    def fill(tensor, *args, **kwargs):
        return tensor if is_fake(tensor) else original(tensor, *args, **kwargs)
    return fill


def making_fake_parameters(host):
    """A parameter keeps its kind when its module goes to another device, and so its place in an optimizer."""
    def make(original):
        def new(cls, data=None, requires_grad=True):
            return original(cls, data if data is None or is_fake(data) else host.fakes.from_tensor(data), requires_grad)
        return new
    return make


@contextmanager
def counting_as_tensors():
    """Within, optimizers and clipping take fake tensors in lists, as they do with real ones."""
    modules = torch.optim.Optimizer.__module__, "torch.utils._foreach_utils"
    places = [sys.modules[module]._foreach_supported_types for module in modules]
    for types in places:
        types.append(FakeTensor)
    try:
        yield
    finally:
        for types in places:
            types.remove(FakeTensor)


# --- The session ------------------------------------------------------------------------------------------------------


@contextmanager
def without_memory(gpu):
    """Within, all that is made of tensors is fake, and there is this GPU. Gives what tells why a program cannot go on."""
    host = HostTensors(Fakes(allow_non_fake_inputs=True))
    with ExitStack() as stack:
        stack.enter_context(replaced(logging.getLogger(FakeTensorMode.__module__), "disabled", lambda _: True))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")  # PyTorch's own code does
        stack.enter_context(answering_autograd())
        stack.enter_context(answering(gpu))
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(counting_as_tensors())
        stack.enter_context(replaced(functional, "scaled_dot_product_attention", choosing_attention(gpu, host)))
        stack.enter_context(replaced(torch.nn.Parameter, "__new__", making_fake_parameters(host)))
        # PyTorch swaps no tensor that something refers to weakly, as its fake tensors refer to each other.
        stack.enter_context(replaced(torch.utils, "weakref", lambda _: SimpleNamespace(getweakrefs=lambda tensor: [])))
        stack.enter_context(replaced(FakeTensor, "tolist", lambda _: torch.Tensor.tolist))  # which modes see
        for name in [name for name in vars(init) if name.endswith("_") and not name.startswith("_")]:
            stack.enter_context(replaced(init, name, leaving_as_is))
        for mode in (host.fakes, host, Reads(host)):
            stack.enter_context(mode)
        try:
            yield host
        except Exception as error:
            if isinstance(error, CannotExport) or not any(word in str(error) for word in NO_DRIVER):
                raise host.refusal or error
            where = line_raised(error.__cause__ or error) or "the step"
            raise CannotExport(f"{where}: what is called there asks the GPU's driver, and with --fake there is none; leave it "
                               "out, or record the step on a GPU") from error
        if host.refusal:
            raise host.refusal
