"""What eager PyTorch runs for a traced model: the kernels of each op of a trace as NeuSight measured them, forward and
backward, alone and in an iteration, and planc graphs of these kernels.

A trace lists ops in order with the shapes of what they read and write, but not which tensors these are. An operand is
taken to be the latest tensor of its shape that nothing has read yet, else the latest; projections to keys and values
read what the one to queries read; and of two equal operands of a sum the second is the residual, the latest result of a
normalisation. That decides what is still in the device's cache and how often gradients meet, not how long a kernel is.

The kernels are those of PyTorch 2.1: a product with a bias is one kernel, and its bias gradient a sum; matrix products of
strided operands copy them first, as do views of strided gradients; softmax's backward multiplies, then subtracts; gradients
that meet are added, and added to the parameters' gradients, which are not cleared. Alone, an op's backward was called with
gradients enabled, and dropout's then is three kernels, in an iteration one; and without autograd's engine, which sums
gradients of what was broadcast, as biases are."""

import ast
import csv
import itertools
import math
import re

BYTES = {"f32": 4, "i64": 8, "bool": 1}
DTYPES = {"torch.int64": "i64", "torch.bool": "bool"}
GATHERED_AT_ONCE = 3072  # rows of an embedding's gradient that one kernel adds up; more are sorted first
SORT_KERNELS = 6
UNVECTORIZED = "elementwise.unvectorized"  # kernels whose operands are not of one shape and type


class Tensor:
    """Of one shape and type, a window on `root`'s memory or its own; strided where its memory is in another order."""

    count = itertools.count()

    def __init__(self, shape, dtype="f32", kind="activation", root=None, offset=0, strided=False):
        self.shape, self.dtype, self.kind, self.offset, self.strided = tuple(shape), dtype, kind, offset, strided
        self.root = root.root if root else self
        self.offset += root.offset if root else 0
        self.name = f"t{next(self.count)}"
        self.grad_needed = False
        self.read = False

    def bytes(self):
        return math.prod(self.shape) * BYTES[self.dtype]

    def view(self, shape, strided=None, offset=0):
        view = Tensor(shape, self.dtype, self.kind, self, offset, self.strided if strided is None else strided)
        view.grad_needed = self.grad_needed
        return view


class Kernel:
    def __init__(self, type, reads, writes, traffic=None, **attrs):
        self.type, self.reads, self.writes, self.traffic, self.attrs = type, list(reads), list(writes), traffic, attrs


class Call:
    """One op: its kernels forward; `backward(dy)` gives kernels and the gradients of its inputs, in an iteration."""

    def __init__(self, kind, inputs, output, forward=(), backward=None, alone=None, empty=0, sums=()):
        self.kind, self.inputs, self.output, self.forward = kind, inputs, output, list(forward)
        self.backward, self.alone = backward, alone or backward
        self.empty = empty  # nodes of autograd's graph without kernel
        self.sums = list(sums)  # parameters whose gradients are accumulated


def like(tensor):
    return Tensor(tensor.shape, tensor.dtype)


def copied(tensor, kernels, matrices=False):
    """The tensor in order, copied where it is strided; one list of matrices needs no order."""
    if not tensor.strided or (matrices and (len(tensor.shape) < 4 or tensor.shape[0] == 1)):
        return tensor
    out = like(tensor)
    kernels.append(Kernel("aten.copy", [tensor], [out]))
    return out


def summed(dy, tensor):
    """Of a gradient that was broadcast from `tensor`'s shape."""
    out = Tensor(tensor.shape)
    return [Kernel("aten.sum", [dy], [out])], [out]


def elementwise(name, inputs, output, gradients):
    """`gradients`, for each input a list of kernels that each read so many tensors, or None where it is passed on."""
    one_shape = all(tensor.shape == output.shape and tensor.dtype == output.dtype for tensor in inputs)

    def backward(dy, reduced=True):
        kernels, out = [], []
        for tensor, steps in zip(inputs, gradients):
            grad = dy
            for reads in steps or ():
                operands = [grad, *inputs, output][:reads]
                grad = Tensor(dy.shape)
                type = f"aten.{name}_backward" if one_shape else UNVECTORIZED
                kernels += [Kernel(type, operands, [grad])] * tensor.grad_needed
            if reduced and tensor.shape != grad.shape and tensor.grad_needed:
                more, (grad,) = summed(grad, tensor)
                kernels += more
            out.append(grad)
        return kernels, out

    forward = Kernel(f"aten.{name}" if one_shape else UNVECTORIZED, inputs, [output])
    return Call("element-wise", inputs, output, [forward], backward, lambda dy: backward(dy, False))


# --- Ops ----------------------------------------------------------------------------------------------------------

def linear(x, shape, biased, empty):
    depth, width = x.shape[-1], shape[-1]
    w = Tensor((width, depth), kind="param")
    b = Tensor((width,), kind="param")
    y = Tensor(shape)

    def backward(dy, with_bias=True):
        kernels, dx = [], Tensor(x.shape)
        dy = copied(dy, kernels)
        if x.grad_needed:
            kernels.append(Kernel("linear_dgrad", [w, dy], [dx]))
        kernels.append(Kernel("linear_wgrad", [x, dy], [Tensor(w.shape)]))
        if biased and with_bias:
            kernels.append(Kernel("linear_bgrad", [dy], [Tensor(b.shape)]))
        return kernels, [dx]

    return Call("linear", [x], y, [Kernel("linear", [x, w] + [b] * biased, [y])], backward,
                lambda dy: backward(dy, False), empty, [w] + [b] * biased)


def product(a, b, shape):
    forward, y = [], Tensor(shape)
    left, right = copied(a, forward, True), copied(b, forward, True)
    forward.append(Kernel("matmul", [left, right], [y]))

    def backward(dy):
        kernels, da, db = [], Tensor(a.shape), Tensor(b.shape)
        dy = copied(dy, kernels, True)
        kernels.append(Kernel("matmul_nt", [dy, right], [da]))
        kernels.append(Kernel("matmul_tn", [left, dy], [db]))
        return kernels, [da, db]

    return Call("matrix product", [a, b], y, forward, backward, empty=6 if len(shape) > 3 else 0)


def softmax(x):
    y = like(x)

    def backward(dy):
        multiplied, dx = like(x), like(x)
        return [Kernel("aten.mul", [dy, y], [multiplied]), Kernel("softmax_grad", [y, multiplied], [dx])], [dx]

    return Call("softmax", [x], y, [Kernel("softmax", [x], [y])], backward)


def dropout(x):
    y, mask = like(x), Tensor(x.shape, "bool")

    def backward(dy):
        dx = like(x)
        return [Kernel("aten.native_dropout_backward", [dy, mask], [dx])], [dx]

    def alone(dy):
        cast, scaled, dx = like(x), like(x), like(x)
        return [Kernel(UNVECTORIZED, [mask], [cast]), Kernel("aten.mul", [cast], [scaled]),
                Kernel("aten.mul", [dy, scaled], [dx])], [dx]

    return Call("dropout", [x], y, [Kernel("aten.native_dropout", [x], [y, mask])], backward, alone)


def layernorm(x):
    width = x.shape[-1]
    gamma, beta = Tensor((width,), kind="param"), Tensor((width,), kind="param")
    y, mean, invstd = like(x), Tensor(x.shape[:-1]), Tensor(x.shape[:-1])

    def backward(dy):
        dx, dgamma, dbeta = like(x), Tensor((width,)), Tensor((width,))
        kernels = []
        dy = copied(dy, kernels)
        name = "aten.native_layer_norm_backward"
        kernels += [Kernel(name, [x, gamma, mean, invstd, dy], [dx]),
                    Kernel(name, [x, mean, invstd, dy], [dgamma, dbeta])]
        return kernels, [dx]

    return Call("layer norm", [x], y, [Kernel("layernorm", [x, gamma, beta], [y, mean, invstd])], backward,
                sums=[gamma, beta])


def embedding(ids, rows, shape, distinct):
    """`distinct`: of positions. All other ids were the same in what was measured, so that one row takes all gradients."""
    width = shape[-1]
    w, y = Tensor((rows, width), kind="param"), Tensor(shape)

    def backward(dy):
        dw, sorted_ids = Tensor(w.shape), like(ids)
        kernels, name = [Kernel("aten.zero", [], [dw])], "aten.embedding_dense_backward"
        if math.prod(ids.shape) > GATHERED_AT_ONCE:
            kernels += [Kernel("aten.sort", [ids], [sorted_ids]) for _ in range(SORT_KERNELS)]
            name += ".sorted"
        kernels.append(Kernel("aten.add_" if distinct else name, [ids, dy], [dw], traffic=3 * dy.bytes()))
        return kernels, [None]

    return Call("embedding", [ids], y, [Kernel("embedding", [ids, w], [y])], backward, sums=[w])


ACTIVATIONS = {"gelu": 2, "relu": 2, "tanh": 2, "sigmoid": 2, "silu": 2}  # tensors that the backward reads
# True: of another order; False: of the same order, in which the gradient is then needed; None: as the operand
VIEWS = {"view": False, "reshape": False, "permute": True, "transpose": True,
         **dict.fromkeys(("expand", "unsqueeze", "squeeze", "getitem", "type", "to", "detach"))}
HOST = {"size", "dim", "eq", "getattr", "finfo", "torch.finfo"}
MADE = {"ones", "zeros", "full", "arange"}


class Trace:
    """The calls of one iteration, the layer as often as told. `unknown` has the ops that no kernel is known for."""

    def __init__(self, path, layers):
        with open(path, encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        self.unknown, self.tensors, self.normed, self.queried = {}, [], {}, None
        self.calls = []  # (row, call)
        self.vocabulary = self.vocabulary_of()
        for row in self.expanded(max(1, layers)):
            call = self.call_of(row)
            if call:
                for tensor in call.inputs:
                    tensor.read = True
                if call.output:
                    call.output.grad_needed = bool(call.sums) or any(t.grad_needed for t in call.inputs)
                    self.tensors.append(call.output)
                self.calls.append((row, call))

    def vocabulary_of(self):
        shapes = ast.literal_eval(self.rows[-1]["input_shapes"] or "[]")
        return shapes[0][-1] if shapes and shapes[0] else 1

    def layer(self):
        """The rows of the one layer, first and end; a trace of whole models, which has several, has none."""
        of_layer = [i for i, row in enumerate(self.rows) if re.search(r"(layers?|blocks?|h)_0_", row["Name"])
                    and row["op"] != "get_attr"]
        if not of_layer:
            return 0, 0
        after = [i for i, row in enumerate(self.rows) if row["op"] == "call_module" and i > of_layer[-1]]
        return of_layer[0], after[0] if after else len(self.rows)

    def expanded(self, layers):
        first, end = self.layer()
        return self.rows[:first] + self.rows[first:end] * layers + self.rows[end:]

    def find(self, shape, but=(), dtype="f32"):
        known = [t for t in self.tensors if t.shape == tuple(shape) and t.dtype == dtype and t not in but]
        fresh = [t for t in known if not t.read]
        if not known:
            known = [Tensor(shape, dtype, "state")]
            self.tensors.append(known[0])
        return (fresh or known)[-1]

    def call_of(self, row):
        shapes = [tuple(s) for s in ast.literal_eval(row["input_shapes"] or "[]")]
        out = ast.literal_eval(row["output_shape"])
        if row["op"] in ("placeholder", "get_attr"):
            dtype = DTYPES.get(row["dtype"], "f32")
            self.tensors.append(Tensor(out, dtype, "state"))
            return None
        if row["op"] == "output":
            return None
        if out == (1,) and not row["dtype"]:
            if "split" in row["target"]:
                self.split_parts(shapes[0])
            return Call("host", [], None)
        if row["op"] == "call_module":
            return self.module(row["Name"], shapes, out)
        name = re.sub(r"^<(built-in (function|method)|function|class) '?", "", row["target"])
        return self.function(re.match(r"[\w.]*", name)[0], row, shapes, out)

    def split_parts(self, shape):
        """The parts' gradients are copied into one."""
        whole = self.find(shape)
        whole.read = True
        self.parts, self.parts_grad = [whole], like(whole)

    def module(self, name, shapes, out):
        x = self.find(shapes[0], dtype="i64" if len(out) == len(shapes[0]) + 1 else "f32")
        if len(out) == len(shapes[0]) + 1:
            return embedding(x, self.rows_of_embedding(name, out), out, bool(re.search(r"position|wpe", name)))
        if re.search(r"norm|ln_|_ln", name):
            call = layernorm(x)
            self.normed[x.shape] = call.output
            return call
        if "drop" in name:
            return dropout(x)
        if re.search(r"act", name) and out == shapes[0]:
            return elementwise("relu" if "relu" in name else "tanh", [x], Tensor(out), [[ACTIVATIONS["relu"]]])
        if re.search(r"(key|value|k_proj|v_proj|_k|_v)$", name) and self.queried and self.queried.shape == x.shape:
            x = self.queried
        self.queried = x
        return linear(x, out, "lm_head" not in name, 3 if len(out) > 2 else 1)

    def rows_of_embedding(self, name, out):
        if re.search(r"word|wte|tokens|shared", name):
            return self.vocabulary
        return 2 if "type" in name else out[-2]

    def function(self, name, row, shapes, out):
        tensors = [s for s in shapes if s != (1,)]
        if name in VIEWS:
            return self.viewed(name, tensors, out, DTYPES.get(row["dtype"], "f32"))
        if name in HOST:
            return Call("host", [], None)
        if name in MADE:
            made = Tensor(out, DTYPES.get(row["dtype"], "f32"))
            return Call("element-wise", [], made, [Kernel("aten.fill", [], [made])])
        if name in ("addmm", "linear"):
            return linear(self.find(tensors[-2]), out, len(tensors) > 2, 0 if name == "addmm" else 1)
        if name in ("matmul", "bmm"):
            a = self.find(tensors[0])
            return product(a, self.find(tensors[1], but=(a,)), out)
        if name == "contiguous":
            x = self.find(tensors[0])
            y = Tensor(out)
            return Call("element-wise", [x], y, [Kernel("aten.copy", [x], [y])] if x.strided else [],
                        lambda dy: ([], [dy.view(x.shape)]))
        if name == "softmax":
            return softmax(self.find(tensors[0]))
        if name == "dropout":
            return dropout(self.find(tensors[0]))
        return self.arithmetic(name, tensors, out)

    def viewed(self, name, tensors, out, dtype):
        if not tensors and name == "getitem" and getattr(self, "parts", None):
            whole, offset, grad = self.parts[0], (len(self.parts) - 1) * math.prod(out) * BYTES["f32"], self.parts_grad
            part = whole.view(out, True, offset)
            self.parts = self.parts + [part] if offset + 2 * part.bytes() <= whole.bytes() else None
            return Call("host", [whole], part,
                        backward=lambda dy: ([Kernel("aten.copy", [dy], [grad.view(out, False, offset)])], [grad]))
        if not tensors:
            return Call("host", [], None)
        x = self.find(tensors[0], dtype=dtype)
        if math.prod(x.shape) > math.prod(out):
            return self.slice_of(x, out)
        if math.prod(x.shape) < math.prod(out):
            return Call("host", [x], Tensor(out, dtype), backward=lambda dy: summed(dy, x))
        strided = VIEWS[name]
        y = x.view(out, strided or x.strided)

        def backward(dy):
            kernels = []
            if strided is False:
                dy = copied(dy, kernels)
            return kernels, [dy.view(x.shape, strided or dy.strided)]

        return Call("host", [x], y, backward=backward)

    @staticmethod
    def slice_of(x, out):
        def backward(dy):
            whole = like(x)
            return [Kernel("aten.zero", [], [whole]), Kernel("aten.copy", [dy], [whole.view(out)])], [whole]

        return Call("host", [x], x.view(out), backward=backward)

    def arithmetic(self, name, tensors, out):
        inputs = []
        for shape in tensors:
            residual = self.normed.get(shape) if inputs and name == "add" and inputs[0].shape == shape else None
            fresh = self.find(shape, but=inputs, dtype="bool" if name == "where" and not inputs else "f32")
            inputs.append(residual if residual and fresh.read and residual not in inputs else fresh)
        y = Tensor(out)
        gradients = {
            "add": [None] * len(inputs), "sub": [None] * len(inputs),
            "mul": [[len(inputs)]] * len(inputs),
            "truediv": [[len(inputs)]] * len(inputs), "div": [[len(inputs)]] * len(inputs),
            "pow": [[1, 1, 2]],
            "where": [None, [2], [2]][:len(inputs)],
            **{activation: [[reads]] for activation, reads in ACTIVATIONS.items()},
        }
        if name not in gradients or not inputs:
            self.unknown[name] = self.unknown.get(name, 0) + 1
            return Call("host", inputs, y,
                        backward=lambda dy: ([], [dy if t.shape == dy.shape else Tensor(t.shape) for t in inputs]))
        return elementwise(name, inputs, y, gradients[name])


# --- An iteration ---------------------------------------------------------------------------------------------------

def iteration_of(trace):
    """Kernels of the forward pass, of the loss, cross entropy of the model's first result, and of the backward pass."""
    shapes = ast.literal_eval(trace.rows[-1]["input_shapes"])
    logits = next(t for t in reversed(trace.tensors) if t.shape == tuple(shapes[0]))
    logarithms, zeroed, grad = like(logits), like(logits), like(logits)
    forward = [kernel for _, call in trace.calls for kernel in call.forward]
    loss = [Kernel("aten.log_softmax", [logits], [logarithms])]
    kernels = [Kernel("aten.zero", [], [zeroed]), Kernel("softmax_grad", [logarithms, zeroed], [grad])]
    gradients = {logits: grad}
    for _, call in reversed(trace.calls):
        dy = gradients.get(call.output)
        if not call.backward or dy is None:
            continue
        made, inner = call.backward(dy)
        kernels += made
        for tensor, grad in zip(call.inputs, inner):
            if grad is None or not tensor.grad_needed:
                continue
            if tensor in gradients and gradients[tensor] is not grad:
                total = like(tensor)
                kernels.append(Kernel("add", [gradients[tensor].view(tensor.shape), grad.view(tensor.shape)], [total]))
                grad = total
            gradients[tensor] = grad
        written = {w.shape: w for kernel in made for w in kernel.writes}
        for parameter in call.sums:
            if parameter.shape in written:
                kernels.append(accumulation(parameter, written[parameter.shape]))
    return forward, loss, kernels


def accumulation(parameter, grad):
    total = Tensor(parameter.shape, kind="state")
    return Kernel("aten.add_", [total, grad], [total])


# --- Alone ----------------------------------------------------------------------------------------------------------

def alone(call):
    """The kernels that were measured alone: forward, backward, and one accumulation after the other."""
    if not call.backward or not call.output.grad_needed or call.kind == "host":
        return call.forward, [], []
    kernels, _ = call.alone(Tensor(call.output.shape))
    weights = [p for p in call.sums if len(p.shape) > 1 or call.kind == "layer norm"]
    return call.forward, kernels, [accumulation(p, Tensor(p.shape)) for p in weights]


# --- planc's graphs -------------------------------------------------------------------------------------------------

def spec(tensor, kind):
    dims = ",".join(map(str, tensor.shape))
    return f"{kind + ' ' if kind else ''}{tensor.dtype}[{dims}]"


def graph_text(name, kernels):
    """A planc graph of (kernel, phase); what no kernel has written before it is read is there from the start."""
    tensors, ops, written = {}, [], set()
    for index, (kernel, phase) in enumerate(kernels):
        for tensor in kernel.reads + kernel.writes:
            root = tensor.root
            if root.name not in tensors:
                read_first = tensor in kernel.reads and root.name not in written
                kind = "param" if root.kind == "param" else "state" if read_first or root.kind == "state" else ""
                tensors[root.name] = spec(root, kind)
            if tensor is not root and tensor.name not in tensors:
                tensors[tensor.name] = spec(tensor, "") + f" of {root.name}" + (f" @ {tensor.offset}" if tensor.offset
                                                                               else "")
        written.update(tensor.root.name for tensor in kernel.writes)
        extra = "" if kernel.traffic is None else f", traffic: {kernel.traffic}"
        names = [", ".join(t.name for t in side) for side in (kernel.reads, kernel.writes)]
        ops.append(f"  - {{op: k{index}, type: {kernel.type}, phase: {phase}, in: [{names[0]}], out: [{names[1]}]{extra}}}")
    return "\n".join([f"planc-graph: 1\nname: {name}\nbatch: 1\ntensors:", *(f"  {n}: {s}" for n, s in tensors.items()),
                      "ops:", *ops, ""])
