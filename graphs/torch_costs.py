"""What one ATen call computes and moves: FLOPs (a multiply-add counts as 2) and traffic in device memory.

FLOPs are those of convolutions, matrix products, fused attention and recurrent layers that are one call, biases included; all
other calls have none.
Traffic counts every operand that is read once, every result once, with no credit for caches; an expanded operand counts
at most its storage. Operands are tensors by the names of ATen's arguments.
"""

import math

# Arguments of which only the shape matters, and those that a call overwrites without reading.
SHAPE_ONLY = {
    "aten.nll_loss_backward": ("self",),
    "aten.nll_loss2d_backward": ("self",),
    "aten.max_pool2d_with_indices_backward": ("self",),
    "aten.avg_pool2d_backward": ("self",),
    "aten._adaptive_avg_pool2d_backward": ("self",),
    "aten.native_batch_norm_backward": ("running_mean", "running_var"),
    "aten.cudnn_batch_norm_backward": ("running_mean", "running_var"),
}
SHAPE_ONLY_PREFIXES = ("aten.new_", "aten.empty_like", "aten.zeros_like", "aten.ones_like", "aten.full_like",
                       "aten.rand_like", "aten.randn_like")
OVERWRITTEN = ("zero_", "fill_", "copy_", "_foreach_zero_", "_foreach_copy_", "bernoulli_", "cauchy_", "exponential_",
               "geometric_", "log_normal_", "normal_", "random_", "uniform_")
EMPTY_PREFIXES = ("aten.empty", "aten.new_empty")
# Training reads these twice: for statistics, then for the result.
READ_TWICE = {
    "aten.native_batch_norm": ("input",),
    "aten.cudnn_batch_norm": ("input",),
    "aten.native_batch_norm_backward": ("grad_out", "input"),
    "aten.cudnn_batch_norm_backward": ("grad_output", "input"),
}
# Of these tables only the elements that the result needs are read: one for each element of the result, or of `target`.
ROWS_OF = {
    "aten.embedding": ("weight", 0),
    "aten.gather": ("self", 0),
    "aten.index_select": ("self", 0),
    "aten.index.Tensor": ("self", 0),
    "aten.nll_loss_forward": ("self", "target"),
    "aten.nll_loss2d_forward": ("self", "target"),
}
BAGS = ("aten._embedding_bag", "aten._embedding_bag_forward_only")  # of their tables a row for each index


def is_read(name, argument):
    """Whether the call reads the elements of an argument."""
    if argument == "self" and (name.startswith(SHAPE_ONLY_PREFIXES) or name.split(".")[1] in OVERWRITTEN):
        return False
    return argument not in SHAPE_ONLY.get(name, ())


def traffic(name, reads, results, nbytes):
    """Bytes of the operands `reads` (argument name, tensor) and of `results`; `nbytes` gives those of a storage."""
    if name.startswith(EMPTY_PREFIXES):
        return 0
    total = sum(t.numel() * t.element_size() for t in results)
    table, taken_by = ROWS_OF.get(name, (None, None))
    for argument, tensor in reads:
        if name in BAGS and argument == "weight":
            total += tensor.element_size() * dict(reads)["indices"].numel() * tensor.shape[-1]
        elif argument == table:
            total += tensor.element_size() * (results[0] if taken_by == 0 else dict(reads)[taken_by]).numel()
        else:
            times = 2 if argument in READ_TWICE.get(name, ()) else 1
            total += times * min(tensor.numel() * tensor.element_size(), nbytes(tensor))
    return total


def conv_products(operands, output, transposed):
    """Multiply-adds of a convolution: of each element of its output or, if it is transposed, of its input."""
    weight = operands["weight"]
    spread = operands["input"] if transposed else output
    return spread.numel() * weight.numel() // weight.shape[0]


def convolution(operands, attrs, results):
    bias = results[0].numel() if "bias" in operands else 0
    return 2 * conv_products(operands, results[0], attrs["transposed"]) + bias


def convolution_backward(operands, attrs, _):
    dy = operands["grad_output"]
    data, weight, bias = attrs["output_mask"]
    return 2 * (data + weight) * conv_products(operands, dy, attrs["transposed"]) + bias * dy.numel()


def product(left, bias):
    """A matrix product, maybe of a batch of matrices, whose left operand has this name."""
    def flops(operands, _, results):
        depth = operands[left].shape[-1]
        return 2 * math.prod(results[0].shape) * depth + (results[0].numel() if bias else 0)
    return flops


def with_a_vector(matrix):
    """A product of a matrix of this name, or of a vector, and a vector."""
    return lambda operands, _, __: 2 * operands[matrix].numel()


def sum_of_products(operands, _, __):
    """The products of a batch of matrices, summed up."""
    left, right = operands["batch1"], operands["batch2"]
    return 2 * left.numel() * right.shape[-1]


def recurrent(times):
    """A recurrent layer in one call: each of its weights, and each bias, meets each word of each sample."""
    def flops(operands, _, __):
        words = operands["input"].numel() // operands["input"].shape[-1]
        weights = [t for name, t in operands.items() if name.startswith("weight") and name != "weight_buf"]
        return words * sum(t.numel() * (2 * times if t.dim() > 1 else 1) for t in weights)
    return flops


def attention(products):
    """Fused attention as so many products of queries and keys, or of their shares and values, of the same size."""
    def flops(operands, _, __):
        query, key = operands["query"], operands["key"]
        return 2 * products * math.prod(query.shape) * key.shape[-2]
    return flops


ATTENTION = [f"aten._scaled_dot_product_{kernel}" for kernel in ("flash_attention", "efficient_attention",
                                                                 "cudnn_attention", "flash_attention_for_cpu")]
FLOPS = {
    "aten.convolution": convolution,
    "aten.convolution_backward": convolution_backward,
    "aten.mm": product("self", bias=False),
    "aten.addmm": product("mat1", bias=True),
    "aten.bmm": product("self", bias=False),
    "aten.baddbmm": product("batch1", bias=True),
    "aten.addbmm": sum_of_products,
    "aten._addmm_activation": product("mat1", bias=True),
    "aten._scaled_mm": product("self", bias=False),
    "aten._int_mm": product("self", bias=False),
    "aten.mv": with_a_vector("self"),
    "aten.addmv": with_a_vector("mat"),
    "aten.dot": with_a_vector("self"),
    "aten.vdot": with_a_vector("self"),
    "aten.mkldnn_rnn_layer": recurrent(1),
    "aten.mkldnn_rnn_layer_backward": recurrent(2),
    "aten._cudnn_rnn": recurrent(1),
    "aten._cudnn_rnn_backward": recurrent(2),
    **dict.fromkeys(ATTENTION, attention(2)),
    # The shares once more, and the gradients of values, shares, queries and keys.
    **{f"{name}_backward": attention(5) for name in ATTENTION},
}


def flops(name, operands, attrs, results):
    """Of a call, be it into a given tensor (aten.mm.out) or in place (aten.addmm_)."""
    base = ".".join(name.split(".")[:2]).removesuffix("_")
    return FLOPS[base](operands, attrs, results) if base in FLOPS else 0
