"""Makes PyTorch call what it calls on a GPU, whatever device it runs on.

- Dropout is one call that keeps a mask of bytes.
- On the meta device, scaled_dot_product_attention is the fused kernel that GPUs from compute capability 8.0 on take;
  there PyTorch itself would take the products and the softmax apart. Where it depends on more than is known here which
  kernel runs, it is refused.
- On the meta device, optimizers treat all parameters at once where they do so by default, and so does clipping.

A recurrent layer (nn.LSTM, nn.GRU, nn.RNN) stays the steps that it is without cuDNN.
"""

import inspect
import math
import sys
from contextlib import ExitStack, contextmanager

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten

from torch_refusals import BRANCHES, READS, Read, refused_use, replaced

DROPOUTS = (functional.dropout, torch.dropout)
ATTENTION = getattr(functional, "scaled_dot_product_attention", None)
HALF = (torch.float16, torch.bfloat16)
LARGEST_FLASH_HEAD, LARGEST_CUDNN_HEAD = 256, 128
ALIGNED_BYTES = 16  # what the last dimension has to be a multiple of


def only_math():
    """Whether the user forbade all fused attention, so that even a GPU runs products and softmax."""
    backends = torch.backends.cuda
    return not any(getattr(backends, name)() for name in ("flash_sdp_enabled", "mem_efficient_sdp_enabled",
                                                          "cudnn_sdp_enabled") if hasattr(backends, name))


def is_simple(mask):
    """Whether a kernel takes a mask as it is, or converted, without a copy of another layout."""
    return mask.dim() == 4 and not mask.requires_grad and mask.stride(-1) == 1 and not any(
        stride % ALIGNED_BYTES for stride in mask.stride()[:-1])


def added(mask, query):
    """The mask as what is added to the products of queries and keys."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.where(mask.logical_not(), -math.inf, torch.scalar_tensor(0.0, dtype=query.dtype, device=mask.device))


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False, *,
              prefers_cudnn=None):
    """The output by the fused kernel, None where we do not know which one a GPU takes. `prefers_cudnn`: whether it takes
    cuDNN's where that can be, None of an unknown GPU."""
    aten, backends, operands = torch.ops.aten, torch.backends.cuda, (query, key, value)
    head = query.shape[-1]
    if (attn_mask is not None and (prefers_cudnn is None or not is_simple(attn_mask))
            or any(t.dim() != 4 or t.shape[-1] != head for t in operands) or len({t.dtype for t in operands}) > 1
            or head * query.element_size() % ALIGNED_BYTES or is_causal and query.shape[-2] != key.shape[-2]):
        return None
    needs_sum = torch.is_grad_enabled() and any(t.requires_grad for t in operands)
    if prefers_cudnn and query.dtype in HALF and head <= LARGEST_CUDNN_HEAD and backends.cudnn_sdp_enabled():
        mask = added(attn_mask, query)
        return aten._scaled_dot_product_cudnn_attention(*operands, mask, needs_sum, dropout_p, is_causal, scale=scale)[0]
    if attn_mask is None and query.dtype in HALF and head <= LARGEST_FLASH_HEAD and backends.flash_sdp_enabled():
        return aten._scaled_dot_product_flash_attention(*operands, dropout_p, is_causal, scale=scale)[0]
    if enable_gqa and query.shape[1] != key.shape[1]:  # which the two above take as they are
        return None
    if query.dtype in (*HALF, torch.float32) and backends.mem_efficient_sdp_enabled():
        mask = added(attn_mask, query)
        if mask is not None:
            mask = mask.expand(*query.shape[:3], key.shape[2])
        return aten._scaled_dot_product_efficient_attention(*operands, mask, needs_sum, dropout_p, is_causal,
                                                            scale=scale)[0]
    return None


def fused_dropout(original, args, kwargs):
    """The output, None where even a GPU has no fused dropout."""
    if original is DROPOUTS[1]:
        given, p, training = (*args, *(kwargs[key] for key in ("input", "p", "train")[len(args):]))
        inplace = False
    else:
        called = inspect.signature(original).bind(*args, **kwargs)
        called.apply_defaults()
        given, p, training, inplace = (called.arguments[key] for key in ("input", "p", "training", "inplace"))
    return torch.native_dropout(given, p, True)[0] if training and not inplace and 0 < p < 1 else None


class AsOnGpu(TorchFunctionMode):
    """Takes the calls of a GPU. Tells `recorder` what it cannot see below: a branch on data, and autocast."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        of_tensor = args and isinstance(args[0], torch.Tensor)
        if of_tensor and name in BRANCHES:
            self.recorder.note_branch(args[0])
        if of_tensor and name in READS:
            self.recorder.note_read(args[0], name)
        for value in tree_flatten((args, kwargs))[0]:
            if isinstance(value, Read):
                refused_use(value)
        self.recorder.note_autocast()
        result = self.call(function, args, kwargs or {})
        return self.recorder.value_read(args[0], result) if of_tensor and name == "item" else result

    def call(self, function, args, kwargs):
        result = None
        if function in DROPOUTS:
            result = fused_dropout(function, args, kwargs)
        elif function is ATTENTION and self.recorder.device == "meta" and not only_math():
            result = attention(*args, **kwargs)
            if result is None:
                self.recorder.refuse("which kernel scaled_dot_product_attention runs with these operands is the GPU's "
                                     "choice; record with --device cuda")
        return function(*args, **kwargs) if result is None else result

    def instead_of(self, original):
        return lambda *args, **kwargs: self.call(original, args, kwargs)


def and_meta(devices):
    return lambda: [*devices(), "meta"]


@contextmanager
def as_on_gpu(recorder):
    """Within, PyTorch runs what it runs on a GPU. The mode sees neither what PyTorch's own Python functions call nor
    what a backward pass runs again, so the functions are replaced where they are looked up, too."""
    mode = AsOnGpu(recorder)
    places = [(functional, "dropout"), (torch, "dropout"), (functional, "scaled_dot_product_attention")]
    with ExitStack() as stack:
        for owner, name in places:
            if hasattr(owner, name):
                stack.enter_context(replaced(owner, name, mode.instead_of))
        listing = "_get_foreach_kernels_supported_devices"
        for module in (torch.optim.Optimizer.__module__, "torch.utils._foreach_utils"):  # looked up in both
            if recorder.device == "meta" and hasattr(sys.modules.get(module), listing):
                stack.enter_context(replaced(sys.modules[module], listing, and_meta))
        stack.enter_context(mode)
        yield
