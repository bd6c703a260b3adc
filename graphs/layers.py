"""The layer builder that the models of this folder are written with: layers as ops of planc-graph(5)."""

import math

from graphfile import GraphFile


def pair(value):
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


def slid(sizes, kernel, stride, pad, dilation=(1, 1)):
    """Height and width of what a window that slides over such an image gives."""
    return tuple((x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d in zip(sizes, kernel, stride, pad, dilation))


class Net:
    """A forward graph in NCHW under construction. A layer method takes the name of its op and of its input tensor and
    gives the name of its output tensor, NAME.y; parameters are NAME.w, NAME.b and the like."""

    def __init__(self, name, origin, batch, heading="", device="k40m", optimizer="sgd"):
        self.file = GraphFile(f"{heading.strip()}\nWritten by generate.py: change that, not this file.",
                              name=name, layout="NCHW", batch=batch, device=device, optimizer=optimizer,
                              origin=f'"{origin}"')
        self.shapes = {}  # per sample, for tensors that have a batch dimension
        self.dropouts = 0

    # --- Tensors and ops

    def batched(self, name, shape, dtype="f32", kind="activation", of=None):
        self.shapes[name] = tuple(shape)
        return self.file.tensor(name, dtype, [(0, 1)] + [(d, 0) for d in shape], kind, of)

    def fixed(self, name, shape, kind="activation"):
        return self.file.tensor(name, "f32", [(d, 0) for d in shape], kind)

    def input(self, name, *shape, dtype="f32"):
        return self.batched(name, shape, dtype, "input")

    def op(self, name, type, inputs, outputs, **fields):
        """Every forward op passes here."""
        self.file.op(name, type, inputs, outputs, **fields)

    def unary(self, name, type, x, shape, inputs=(), in_place=False, **attrs):
        y = self.batched(f"{name}.y", shape, of=x if in_place else None)
        self.op(name, type, [x, *inputs], [y], attrs=attrs)
        return y

    # --- Convolution and products

    def conv(self, name, x, channels, kernel, stride=1, pad=0, bias=True, dilation=1, groups=1):
        c, *sizes = self.shapes[x]
        kernel, stride, pad, dilation = pair(kernel), pair(stride), pair(pad), pair(dilation)
        params = self.filters(name, (channels, c // groups, *kernel), channels if bias else 0)
        attrs = {"stride": stride, "pad": pad}
        if dilation != [1, 1]:
            attrs["dilation"] = dilation
        if groups != 1:
            attrs["groups"] = groups
        return self.unary(name, "conv2d", x, (channels, *slid(sizes, kernel, stride, pad, dilation)), params, **attrs)

    def filters(self, name, shape, biases):
        """The parameters of convolution `name`."""
        weights = self.fixed(f"{name}.w", shape, "param")
        return [weights, self.fixed(f"{name}.b", (biases,), "param")] if biases else [weights]

    def linear(self, name, x, features):
        *leading, inputs = self.shapes[x]
        params = [self.fixed(f"{name}.w", (features, inputs), "param"), self.fixed(f"{name}.b", (features,), "param")]
        return self.unary(name, "linear", x, (*leading, features), params)

    def attention(self, name, x, heads, dropout=0):
        """Multi-head self-attention of tokens (T, D): softmax(q k' / sqrt(D / heads)) v for every head, and a product
        over all heads. `dropout`: of the shares."""
        tokens, width = self.shapes[x]
        q, k, v = (self.heads(f"{name}.{part}", self.linear(f"{name}.{part}", x, width), heads) for part in "qkv")
        scores = self.unary(f"{name}.scores", "matmul_nt", q, (heads, tokens, tokens), [k],
                            scale=(width // heads) ** -0.5)
        shares = self.unary(f"{name}.softmax", "softmax", scores, self.shapes[scores], in_place=True)
        if dropout:
            shares = self.dropout(f"{name}.drop", shares, dropout)
        mixed = self.unary(f"{name}.mix", "matmul", shares, self.shapes[v], [v])
        back = self.unary(f"{name}.back", "transpose", mixed, (tokens, heads, width // heads), axis=1)
        return self.linear(f"{name}.out", self.view(f"{name}.rows", back, tokens, width), width)

    def heads(self, name, x, heads):
        """(T, D) as (heads, T, D / heads)."""
        tokens, width = self.shapes[x]
        parts = self.view(f"{name}.parts", x, tokens, heads, width // heads)
        return self.unary(f"{name}.heads", "transpose", parts, (heads, tokens, width // heads), axis=1)

    # --- Element by element

    def relu(self, name, x):
        return self.unary(name, "relu", x, self.shapes[x], in_place=True)

    def add(self, name, a, b):
        """a + b, in place on a."""
        return self.unary(name, "add", a, self.shapes[a], [b], in_place=True)

    def dropout(self, name, x, p):
        self.dropouts += 1
        return self.unary(name, "dropout", x, self.shapes[x], p=p, seed=self.dropouts)

    # --- Images

    def pool(self, name, x, kernel, stride, pad=0, type="maxpool2d"):
        c, *sizes = self.shapes[x]
        kernel, stride, pad = pair(kernel), pair(stride), pair(pad)
        return self.unary(name, type, x, (c, *slid(sizes, kernel, stride, pad)), kernel=kernel, stride=stride, pad=pad)

    def upsample(self, name, x, scale, mode="bilinear"):
        c, *sizes = self.shapes[x]
        sizes = [(s - 1) * scale + 1 if mode == "aligned" else s * scale for s in sizes]
        return self.unary(name, "upsample", x, (c, *sizes), scale=scale, mode=mode)

    def concat(self, name, *parts):
        """Along the channels."""
        first, *others = parts
        channels = sum(self.shapes[part][0] for part in parts)
        return self.unary(name, "concat", first, (channels, *self.shapes[first][1:]), others, axis=1)

    # --- Views

    def view(self, name, x, *shape):
        """The same numbers in another shape: no op."""
        assert math.prod(shape) == math.prod(self.shapes[x])
        return self.batched(name, shape, of=x)

    def flatten(self, name, x):
        """A view of x with one row per sample."""
        return self.view(name, x, math.prod(self.shapes[x]))

    # --- Normalization and sequences

    def batchnorm(self, name, x, **attrs):
        c = self.shapes[x][0]
        gamma, beta = (self.fixed(f"{name}.{p}", (c,), "param") for p in ("gamma", "beta"))
        y = self.batched(f"{name}.y", self.shapes[x])
        saved = [self.fixed(f"{name}.{s}", (c,)) for s in ("mean", "invstd")]
        running = [self.fixed(f"{name}.{s}", (c,), "state") for s in ("running_mean", "running_var")]
        self.op(name, "batchnorm", [x, gamma, beta], [y, *saved], effects=running, attrs=attrs)
        return y

    def layernorm(self, name, x):
        *leading, width = self.shapes[x]
        params = [self.fixed(f"{name}.{p}", (width,), "param") for p in ("gamma", "beta")]
        y = self.batched(f"{name}.y", self.shapes[x])
        saved = [self.batched(f"{name}.{s}", leading) for s in ("mean", "invstd")]
        self.op(name, "layernorm", [x, *params], [y, *saved])
        return y

    def embedding(self, name, ids, entries, width):
        table = self.fixed(f"{name}.w", (entries, width), "param")
        y = self.batched(f"{name}.y", (*self.shapes[ids], width))
        self.op(name, "embedding", [ids, table], [y])
        return y

    def position(self, name, x):
        return self.unary(name, "position", x, self.shapes[x], [self.fixed(f"{name}.p", self.shapes[x], "param")],
                          in_place=True)

    # --- Loss

    def cross_entropy(self, name, logits, labels, probs):
        """Softmax cross-entropy, the mean over the batch and, where there are any, over the pixels."""
        loss = self.fixed(name, ())
        self.batched(probs, self.shapes[logits])
        self.op(name, "softmax_xent", [logits, labels], [loss, probs])
        return loss

    def finish(self, loss):
        self.file.header["loss"] = loss
        return self.file

    def loss(self, logits, labels):
        """The whole graph, with the cross-entropy of `logits` as its loss."""
        return self.finish(self.cross_entropy("loss", logits, labels, "probs"))
