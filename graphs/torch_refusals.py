"""What a PyTorch step does that a recording of its calls cannot show, so that it is refused, with the user's line.

- A size, a branch or a whole result that depends on data. A graph has one list of ops and one law for each size.
- Values read on the meta device, which has none.
- A tensor of the host where one of the device belongs: PyTorch does not check this on the meta device.
- Autocast of another device than the recorded one, which PyTorch leaves without effect, and GradScaler, whose step is
  not the optimizer's.
- Tensors that change their storage, and tensors without one.
"""

import inspect
import os
import sys
import sysconfig
from contextlib import ExitStack, contextmanager
from functools import wraps

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
EXPORTER = {os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".py")}
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
# Where Python keeps what the user did not write.
LIBRARIES = tuple({sysconfig.get_path(key) + os.sep for key in ("stdlib", "purelib", "platlib")} |
                  {os.path.dirname(os.path.dirname(TORCH)) + os.sep, "<"})
# Calls that tell a truth about data to the program, which then goes one way or the other.
BRANCHES = ("__bool__", "__index__", "__contains__")
# Calls that hand values of a tensor to the program, which may make anything of them.
READS = ("tolist", "numpy", "__array__", "__float__", "__int__", "__complex__", "__dlpack__")
# Calls that may mix tensors of the host and of a device.
MIXED = ("copy_", "_to_copy", "index", "index_put", "index_put_", "_index_put_impl_", "_pack_padded_sequence",
         "_ctc_loss", "_ctc_loss_backward", "_cudnn_rnn", "_cudnn_rnn_backward", "tensor_split")
MASKS = (torch.bool, torch.uint8)


class CannotExport(Exception):
    """What about the module does not fit a graph."""


# --- The user's line --------------------------------------------------------------------------------------------------


def users_line():
    """FILE:LINE of the innermost call being made that the user wrote, else of the innermost one outside PyTorch, else None.
    Calls of backward passes come from PyTorch alone."""
    found, frame = None, sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path in EXPORTER:
            if frame.f_code.co_name == "run_iteration":
                break
        elif not path.startswith(TORCH):
            line = f"{path}:{frame.f_lineno}"
            if not path.startswith(LIBRARIES):
                return line
            found = found or line
        frame = frame.f_back
    return found


def line_raised(error):
    """FILE:LINE of the innermost call that the user wrote and that an exception came through, else of the innermost one
    outside PyTorch, else None."""
    found, written, step = None, None, error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if path not in EXPORTER and not path.startswith(TORCH):
            found = f"{path}:{step.tb_lineno}"
            written = written if path.startswith(LIBRARIES) else found
        step = step.tb_next
    return written or found


def definition(function):
    """FILE:LINE where a function, or the class of a callable, is written."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else type(function).__name__


# --- Calls ------------------------------------------------------------------------------------------------------------


def base_name(function):
    """aten.index.Tensor -> index."""
    return function._schema.name.partition("::")[2]


def is_of_an_optimizer():
    """Whether PyTorch's optimizers ask: what they read of their own steps is no data."""
    frame = sys._getframe(1)
    between = EXPORTER | {TORCH + "overrides.py"}
    while frame is not None and frame.f_code.co_filename in between:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(os.path.join(TORCH, "optim"))


USED = "what the program does with a value read of a tensor depends on data; a graph has one way, and no constants of data"


class Read:
    """A value that the program has read, which it may keep and print. Whatever else it does with it would be in the
    graph as a constant, or as the way that this value happens to go."""

    def __init__(self, value, refuse):
        self.value, self.refuse = value, refuse

    def __str__(self):
        return str(self.value)

    __repr__ = __str__

    def __format__(self, form):
        return format(self.value, form)


def refused_use(self, *_):
    self.refuse(USED)


@contextmanager
def refusing_use(refuse):
    """Within, what C code says of a value that it gets and cannot take is a use of it, too."""
    try:
        yield
    except TypeError as error:
        if Read.__name__ not in str(error):
            raise
        refuse(USED, line_raised(error))


UNARY = ("bool", "int", "float", "complex", "index", "hash", "neg", "pos", "abs", "invert", "round", "trunc", "floor",
         "ceil", "lt", "le", "eq", "ne", "gt", "ge", "torch_function")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor", "or",
          "matmul")
for operation in (*UNARY, *BINARY, *(f"r{name}" for name in BINARY)):
    setattr(Read, f"__{operation}__", refused_use)


def has_sizes_from_data(function, args, kwargs):
    name = base_name(function)
    if name == "index":
        return any(t is not None and t.dtype in MASKS for t in args[1])
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    return (torch.Tag.dynamic_output_shape in function.tags or name == "_unique") and name != "_ctc_loss"


def gives_a_value(function):
    return base_name(function) in ("_local_scalar_dense", "is_nonzero")


def leaves_device(function, args, kwargs):
    """Whether a call copies to the host."""
    to = kwargs.get("device") if base_name(function) == "_to_copy" else None
    return (to is not None and torch.device(to).type == "cpu" or
            base_name(function) == "copy_" and args[0].device.type == "cpu")


def objection(function, args, kwargs, tensors, device, recording):
    """Why a call on these tensors cannot be in a graph, None if it can. Before the recorded iteration only that counts
    what would be a guess on the meta device."""
    name = str(function).removesuffix(".default")
    for tensor in tensors:
        if tensor.layout != torch.strided:
            return f"{name} has a tensor without dense storage ({tensor.layout})"
    there = [t for t in tensors if t.device.type == device and t.numel() > 0]
    if not there or not (recording or device == "meta"):
        return None
    if has_sizes_from_data(function, args, kwargs):
        return f"the size of what {name} gives depends on data; a graph has one size for it"
    if torch.Tag.data_dependent_output in function.tags and not gives_a_value(function):
        return f"what {name} tells the program depends on data; a graph has one way"
    if base_name(function) in ("set_", "resize_", "resize_as_"):
        return f"{name} changes a tensor's storage, which a graph cannot"
    if device != "meta":
        return None
    if gives_a_value(function) or leaves_device(function, args, kwargs):
        return f"{name} reads a value, and the meta device has none; leave it out, or record with --device cpu or cuda"
    if base_name(function) not in MIXED and not base_name(function).startswith("_foreach_") and any(
            t.device.type == "cpu" and t.dim() > 0 for t in tensors):
        return (f"{name} has a tensor of the host among those of the device; make it a buffer of the module or a part "
                "of the batch")
    return None


def is_compiled(model):
    """Whether torch.compile was asked to make something else of the module or a part of it."""
    return any(hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None)
               for module in model.modules())


# --- Mixed precision --------------------------------------------------------------------------------------------------


GRAD_SCALER = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
SCALER_CALLS = ("scale", "unscale_", "step", "update")


@contextmanager
def replaced(owner, name, make):
    """Within, an attribute is what `make` gives for it."""
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def noting(init):
    """A constructor that keeps whether its object was asked to be enabled. PyTorch forgets that where it has no GPU."""
    @wraps(init)  # keeps the signature where this one is noted in turn
    def noting_init(self, *args, **kwargs):
        called = inspect.signature(init).bind(self, *args, **kwargs)
        called.apply_defaults()
        self.asked_by_user = called.arguments["enabled"]
        init(self, *args, **kwargs)
    return noting_init


@contextmanager
def noting_precision():
    """Within, autocast and GradScaler objects that are made can tell whether they were asked to be enabled."""
    with replaced(torch.autocast, "__init__", noting), replaced(GRAD_SCALER, "__init__", noting):
        yield


def is_wanted(precision, device):
    """Whether an autocast or GradScaler was asked to be enabled; one from before we noted counts as asked where PyTorch
    turned it off for want of a GPU, which looks the same as the user's word."""
    if hasattr(precision, "asked_by_user"):
        return precision.asked_by_user
    return precision._enabled or device == "cuda" and not torch.cuda.is_available()


def without_effect(autocast, device):
    return f"autocast of {autocast} does nothing on the {device} device; record with --device {autocast}"


@contextmanager
def refusing_precision(device, refuse):
    """Within, what PyTorch would do otherwise or not at all on this device is refused."""
    def check(autocast, on):
        if device not in ("cuda", on) and is_wanted(autocast, on):
            refuse(without_effect(on, device))

    def entering(enter):
        def checked(self, *args):
            check(self, self.device)
            return enter(self, *args)
        return checked

    def making(init):  # which fails without a GPU where PyTorch 1.13 asks it whether it has bfloat16
        def checked(self, device_type, *args, **kwargs):
            try:
                init(self, device_type, *args, **kwargs)
            except AssertionError:
                check(self, device_type)
                raise
        return checked

    def scaling(call):
        def checked(self, *args, **kwargs):
            if is_wanted(self, getattr(self, "_device", "cuda")):
                refuse("GradScaler is not recorded, only the loss's backward pass and the optimizer's step are; "
                       "leave it out, it costs no memory but its scale")
            return call(self, *args, **kwargs)
        return checked

    with ExitStack() as stack:
        stack.enter_context(noting_precision())
        stack.enter_context(replaced(torch.autocast, "__init__", making))
        stack.enter_context(replaced(torch.autocast, "__enter__", entering))
        for name in SCALER_CALLS:
            stack.enter_context(replaced(GRAD_SCALER, name, scaling))
        yield


def foreign_autocast(device):
    """The device whose autocast is on though another one is recorded: someone switched it on without `autocast`."""
    if device != "cuda" and torch.is_autocast_enabled():
        return "cuda"
    enabled_on_cpu = torch.is_autocast_enabled("cpu") if hasattr(torch, "get_autocast_dtype") else (
        torch.is_autocast_cpu_enabled())
    return "cpu" if device == "meta" and enabled_on_cpu else None
