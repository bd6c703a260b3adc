"""ATen calls as ops of planc's own types, so that the planner knows what they compute and how they may be done.

A call becomes one when its operands are dense, in one order and of one floating-point type, as the type demands them
(planc-graph(5), OP TYPES), and it means the same; every other call keeps its ATen name as type and is planned from its
recorded sizes, FLOPs and traffic.
"""

from dataclasses import dataclass, replace

from graphfile import DTYPE_BYTES


@dataclass
class Typed:
    """An op of one of planc's types; operands are views."""

    type: str
    inputs: list
    outputs: list
    attrs: dict = None
    flops: tuple = None
    effects: list = ()


# The places of operands of any floating-point type, among inputs and among outputs; effects are such ones everywhere.
ANY_FLOAT = {"conv2d": ({2}, ()), "conv2d_bgrad": ((), {0}), "linear": ({2}, ()), "linear_bgrad": ((), {0}),
             "batchnorm": ({1, 2}, {1, 2}), "batchnorm_grad": ({1, 2, 3}, {1, 2}),
             "layernorm": ({1, 2}, {1, 2}), "layernorm_grad": ({1, 2, 3}, {1, 2}), "sgd": ({1}, ())}
FLOATS = ("f32", "f16", "bf16")


def typed(op, storages):
    """The typed ops that a recorded op stands for, in order, or none."""
    rule = RULES.get(op.type)
    ops = rule(op, storages) if rule else None
    return ops if ops and all(is_legal(new, storages) for new in ops) else []


def is_legal(new, storages):
    """Whether the operands are dense, in one order of dimensions, and of the floating-point types that the op's type
    demands."""
    ids = new.inputs[:1] if new.type in ("embedding", "embedding_grad") else []
    floats = [*new.inputs[len(ids):], *new.outputs, *new.effects]
    if any(v is None or v.transposed or not 0 < len(v.dims) <= 8 for v in ids + floats):
        return False
    if len({v.channels_last for v in floats} - {None}) > 1:
        return False
    any_input, any_output = ANY_FLOAT.get(new.type, ((), ()))
    alike = [v for i, v in enumerate(new.inputs[len(ids):]) if i not in any_input]
    alike += [v for i, v in enumerate(new.outputs) if i not in any_output]
    return (all(storages[v.storage].dtype == "i64" for v in ids) and
            all(storages[v.storage].dtype in FLOATS for v in floats) and
            len({storages[v.storage].dtype for v in alike}) == 1)


def operands(op, *names):
    return [op.views.get(name) for name in names]


def only(op, **expected):
    """Whether the attributes that matter have the values that the type stands for, or are left out."""
    return all(op.attrs.value.get(key, value) == value for key, value in expected.items())


def pair(value):
    return [value, value] if isinstance(value, int) else list(value) * (2 if len(value) == 1 else 1)


# --- Convolution ------------------------------------------------------------------------------------------------------


def conv_attrs(op):
    attrs = {"stride": op.attrs.list("stride") or [1, 1], "pad": op.attrs.list("padding") or [0, 0]}
    dilation, groups = op.attrs.list("dilation") or [1, 1], op.attrs.size("groups") or 1
    if dilation != [1, 1]:
        attrs["dilation"] = dilation
    if groups != 1:
        attrs["groups"] = groups
    return attrs


def is_conv2d(op, *views):
    return not op.attrs.value.get("transposed") and all(v and len(v.dims) == 4 and not v.transposed for v in views)


def conv(op, _):
    x, w, y = operands(op, "input", "weight", 0)
    if is_conv2d(op, x, w, y):
        bias = [op.views["bias"]] if "bias" in op.views else []
        return [Typed("conv2d", [x, w, *bias], [y], conv_attrs(op), op.flops)]
    return None


def conv_backward(op, storages):
    """The fused op's data, bias and weight gradients. In this order everything that the fused op holds is live at the
    weight gradient, so the peak is the recorded one."""
    dy, x, w = operands(op, "grad_output", "input", "weight")
    if not is_conv2d(op, dy, x, w):
        return None
    wanted = op.output_mask()
    dx, dw, db = (op.views.get(i) if wanted[i] else None for i in range(3))
    # The bias gradient adds up the elements of dy; the other two cost the same.
    bias = tuple(part // DTYPE_BYTES[storages[dy.storage].dtype] if wanted[2] else 0
                 for part in storages[dy.storage].bytes)
    shares = max(wanted[0] + wanted[1], 1)
    each = tuple((total - part) // shares for total, part in zip(op.flops, bias))
    if min(each) < 0 or any(e * shares + part != total for e, part, total in zip(each, bias, op.flops)):
        op.fields.fail("flops", "they do not split into data, weight and bias gradient")
    ops = [Typed("conv2d_dgrad", [w, dy], [dx], conv_attrs(op), each),
           Typed("conv2d_bgrad", [dy], [db], None, bias),
           Typed("conv2d_wgrad", [x, dy], [dw], conv_attrs(op), each)]
    return [new for new, keep in zip(ops, (wanted[0], wanted[2], wanted[1])) if keep]


# --- Matrix products --------------------------------------------------------------------------------------------------


def turned(view):
    """The matrix, or matrices, whose rows the storage of a transposed view holds."""
    return replace(view, dims=(*view.dims[:-2], view.dims[-1], view.dims[-2]), transposed=False)


def is_constant(view):
    return view is not None and all(slope == 0 for _, slope in view.dims)


def addmm(op, _):
    b, x, w, y = operands(op, "self", "mat1", "mat2", 0)
    if b and len(b.dims) == 1 and w and w.transposed and is_constant(w) and only(op, alpha=1, beta=1):
        return [Typed("linear", [x, turned(w), b], [y], None, op.flops)]
    return None


def mm(op, _):
    """y = x w' forward, dx = dy w and dw = dy' x backward."""
    left, right, result = operands(op, "self", "mat2", 0)
    if not left or not right or not result:
        return None
    if right.transposed and is_constant(right):
        return [Typed("linear", [left, turned(right)], [result], None, op.flops)]
    if left.transposed and is_constant(result):
        return [Typed("linear_wgrad", [right, turned(left)], [result], None, op.flops)]
    if is_constant(right):
        return [Typed("linear_dgrad", [right, left], [result], None, op.flops)]
    return None


def bmm(op, _):
    a, b, y = operands(op, "self", "mat2", 0)
    if not a or not b or not y or a.transposed and b.transposed:
        return None
    if any(slope for _, slope in (*a.dims[1:], *y.dims[1:])):
        return None
    if a.transposed:
        return [Typed("matmul_tn", [turned(a), b], [y], None, op.flops)]
    if b.transposed:
        return [Typed("matmul_nt", [a, turned(b)], [y], None, op.flops)]
    return [Typed("matmul", [a, b], [y], None, op.flops)]


def bias_sum(op, _):
    dy, db = operands(op, "self", 0)
    if dy and db and len(dy.dims) == 2 and is_constant(db) and op.attrs.value.get("dim") == [0]:
        return [Typed("linear_bgrad", [dy], [replace(db, dims=dy.dims[1:])])]
    return None


# --- Element by element, pooling, concatenation -----------------------------------------------------------------------


def relu(op, _):
    x, y = operands(op, "self", 0)
    return [Typed("relu", [x], [y])]


def relu_backward(op, _):
    dy, y, dx = operands(op, "grad_output", "self", 0)
    return [Typed("relu_grad", [y, dy], [dx])] if only(op, threshold=0) else None


def add(op, storages):
    a, b, y = operands(op, "self", "other", 0)
    if not a or not b or not y or a.dims != b.dims or b.storage == y.storage:
        return None
    scale = op.attrs.value.get("alpha", 1)
    if scale == 1:
        return [Typed("add", [a, b], [y])]
    if storages[a.storage].kind == "param" and storages[b.storage].kind == "grad" and a == y and scale < 0:
        return [Typed("sgd", [a, b], [y], {"lr": float(-scale)})]
    return None


def avg_pool(op):
    """The attributes of an average pooling, None when its divisor is not the kernel's area."""
    if not only(op, ceil_mode=False, count_include_pad=True) or "divisor_override" in op.attrs.value:
        return None
    kernel = pair(op.attrs.value["kernel_size"])
    return {"kernel": kernel, "stride": pair(op.attrs.value.get("stride") or kernel),
            "pad": pair(op.attrs.value.get("padding", 0))}


def avg_pool2d(op, _):
    x, y = operands(op, "self", 0)
    attrs = avg_pool(op) if x and len(x.dims) == 4 else None
    return attrs and [Typed("avgpool2d", [x], [y], attrs)]


def avg_pool2d_backward(op, _):
    dy, dx = operands(op, "grad_output", 0)
    attrs = avg_pool(op) if dx and len(dx.dims) == 4 else None
    return attrs and [Typed("avgpool2d_grad", [dy], [dx], attrs)]


def cat(op, _):
    parts = [view for key, view in op.views.items() if str(key).startswith("tensors.")]
    if not parts or None in parts:
        return None
    axis = op.attrs.value.get("dim", 0)
    return [Typed("concat", parts, [op.views.get(0)], {"axis": axis % len(parts[0].dims)})]


# --- Batch normalization ----------------------------------------------------------------------------------------------


def batch_norm(op, _):
    if not only(op, training=True):
        return None
    attrs = {"momentum": float(op.attrs.value.get("momentum", 0.1)), "epsilon": float(op.attrs.value.get("eps", 1e-5))}
    return [Typed("batchnorm", operands(op, "input", "weight", "bias"), operands(op, 0, 1, 2), attrs,
                  effects=operands(op, "running_mean", "running_var"))]


def batch_norm_backward(op, _):
    if not only(op, train=True, output_mask=[True, True, True]):
        return None
    inputs = operands(op, "input", "weight", "save_mean", "save_invstd", "grad_out")
    return [Typed("batchnorm_grad", inputs, operands(op, 0, 1, 2))]


# --- Sequences --------------------------------------------------------------------------------------------------------


def rows(view):
    """What is one number a row, kept as a last dimension of 1, without that."""
    return view and replace(view, dims=view.dims[:-1])


def layer_norm(op, _):
    if len(op.attrs.list("normalized_shape")) != 1:
        return None
    y, mean, invstd = operands(op, 0, 1, 2)
    return [Typed("layernorm", operands(op, "input", "weight", "bias"), [y, rows(mean), rows(invstd)],
                  {"epsilon": float(op.attrs.value.get("eps", 1e-5))})]


def layer_norm_backward(op, _):
    if len(op.attrs.list("normalized_shape")) != 1 or not only(op, output_mask=[True, True, True]):
        return None
    x, gamma, mean, invstd, dy = operands(op, "input", "weight", "mean", "rstd", "grad_out")
    return [Typed("layernorm_grad", [x, gamma, rows(mean), rows(invstd), dy], operands(op, 0, 1, 2))]


def gelu(op, _):
    return [Typed("gelu", operands(op, "self"), operands(op, 0))] if only(op, approximate="none") else None


def gelu_backward(op, _):
    if not only(op, approximate="none"):
        return None
    return [Typed("gelu_grad", operands(op, "self", "grad_output"), operands(op, 0))]


def is_over_rows(op, view):
    dim = op.attrs.value.get("dim")
    return view is not None and dim in (-1, len(view.dims) - 1) and view.dims[-1][1] == 0


def softmax(op, _):
    x, y = operands(op, "self", 0)
    return [Typed("softmax", [x], [y])] if is_over_rows(op, x) and only(op, half_to_float=False) else None


def softmax_backward(op, _):
    dy, y, dx = operands(op, "grad_output", "output", 0)
    return [Typed("softmax_grad", [y, dy], [dx])] if is_over_rows(op, y) else None


def embedding(op, _):
    ids, table, y = operands(op, "indices", "weight", 0)
    return [Typed("embedding", [ids, table], [y])]


def embedding_backward(op, _):
    if not only(op, padding_idx=-1, scale_grad_by_freq=False):
        return None
    ids, dy, dtable = operands(op, "indices", "grad_output", 0)
    return [Typed("embedding_grad", [ids, dy], [dtable])]


RULES = {
    "aten.convolution": conv,
    "aten.convolution_backward": conv_backward,
    "aten.addmm": addmm,
    "aten.mm": mm,
    "aten.bmm": bmm,
    "aten.sum.dim_IntList": bias_sum,
    "aten.relu": relu,
    "aten.relu_": relu,
    "aten.threshold_backward": relu_backward,
    "aten.add.Tensor": add,
    "aten.add_.Tensor": add,
    "aten.avg_pool2d": avg_pool2d,
    "aten.avg_pool2d_backward": avg_pool2d_backward,
    "aten.cat": cat,
    "aten.native_batch_norm": batch_norm,
    "aten.native_batch_norm_backward": batch_norm_backward,
    "aten.native_layer_norm": layer_norm,
    "aten.native_layer_norm_backward": layer_norm_backward,
    "aten.gelu": gelu,
    "aten.gelu_backward": gelu_backward,
    "aten._softmax": softmax,
    "aten._softmax_backward_data": softmax_backward,
    "aten.embedding": embedding,
    "aten.embedding_dense_backward": embedding_backward,
}
