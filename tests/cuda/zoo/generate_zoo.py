#!/usr/bin/env python3
"""Writes the op zoo: graphs that together have every op, dtype and layout of the CUDA backend, for compare_backends.

usage: generate_zoo.py [-d DIR]

  image-model, token-model   to train, through `planc train --precision`
  ops/                       single ops on inputs, in every dtype, at sizes with and without tails; to run as they are
  large/                     tensors of more than 2^31 bytes, at its own batch for a GPU, where it takes 7 GiB, and 30 GiB
                             on the host"""

import argparse
import itertools
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "graphs"))

from graphfile import GraphFile  # noqa: E402
from layers import Net, pair, slid  # noqa: E402

WRITTEN = "Written by generate_zoo.py: change that, not this file."
REALS = ("f32", "bf16")
# Of activations, and of what goes with them, which is like them or f32.
PAIRS = (("f32", "f32"), ("bf16", "f32"), ("bf16", "bf16"))
# Types of factors, whether to TF32, and types of the biases of convolutions and products; "": none.
FACTORS = (("f32", 0, ("f32",)), ("f32", 1, ("",)), ("bf16", 0, ("f32", "bf16")))
# Sizes: one, odd, multiples of 4 and 8, primes beyond a block and a warp.
FLAT = (1, 3, 8, 1027, 4099)
ROWS = ((1, 1), (5, 7), (4, 64), (3, 131), (2, 1031))  # tokens, width
IMAGES = ((1, 1, 1), (3, 7, 5), (8, 4, 4), (17, 13, 11))  # channels, height, width
# Kernel, stride, pad, image.
POOLS = (((2, 2), (2, 2), (0, 0), (8, 8)), ((3, 3), (2, 2), (1, 1), (13, 11)), ((3, 2), (1, 3), (2, 0), (7, 9)),
         ((1, 1), (3, 2), (0, 0), (10, 7)), ((7, 5), (1, 1), (3, 2), (7, 5)))
# Input and output channels, kernel, stride, pad, dilation, groups, image.
CONVS = ((1, 1, 1, 1, 0, 1, 1, (1, 1)), (3, 16, 3, 1, 1, 1, 1, (8, 8)), (8, 8, 1, 1, 0, 1, 1, (7, 5)),
         (5, 7, (5, 3), (2, 1), (2, 0), 1, 1, (9, 11)), (4, 6, 3, 1, 2, 2, 1, (9, 8)), (8, 16, 3, 1, 1, 1, 2, (8, 8)),
         (8, 8, 3, 1, 1, 1, 8, (7, 7)), (3, 8, 7, 2, 3, 1, 1, (15, 15)), (16, 32, 3, 2, 1, 1, 1, (9, 9)),
         (13, 17, 1, (2, 3), 0, 1, 1, (7, 7)))
PRODUCTS = ((1, 1, 1, 1), (2, 5, 7, 3), (4, 16, 8, 24), (1, 33, 65, 31))  # how many, rows, depth, columns
LINEARS = ((1, 1), (7, 5), (64, 32), (131, 67))  # inputs, outputs
PHASES = ("forward", "backward", "optimizer")


def dims_of(sizes):
    """Laws: -1 stands for N."""
    return [(0, 1) if size < 0 else (size, 0) for size in sizes]


class Ops:
    """Single ops, each on tensors of its own."""

    def __init__(self, name, layout):
        self.file = GraphFile(f"Single ops of the CUDA backend.\n{WRITTEN}", name=name, layout=layout, batch=5)
        self.layout = layout
        self.waiting = {phase: [] for phase in PHASES}  # phases stand in this order in the file

    def tensor(self, dtype, *sizes, kind="activation", of=None):
        return self.file.tensor(f"t{len(self.file.tensors)}", dtype, dims_of(sizes), kind, of)

    def input(self, dtype, *sizes):
        return self.tensor(dtype, *sizes, kind="input")

    def made(self, dtype, *sizes):
        """Something that an op may write over."""
        return self.op("add", [self.input(dtype, *sizes), self.input(dtype, *sizes)], self.tensor(dtype, *sizes))

    def summed(self, dtype, *sizes):
        """A sum over the samples, as gradients are, which rounds add up."""
        return self.op("position_grad", [self.input(dtype, -1, *sizes)], self.tensor(dtype, *sizes, kind="temp"),
                       phase="backward")

    def op(self, type, inputs, *outputs, phase="forward", effects=(), **attrs):
        self.waiting[phase].append((type, inputs, list(outputs), effects, attrs))
        return outputs[0]

    def over(self, type, inputs, index, dtype, *sizes, **how):
        """The op in place on the input of that index."""
        return self.op(type, inputs, self.tensor(dtype, *sizes, of=inputs[index]), **how)

    def image(self, c, h, w):
        """The dimensions of images."""
        return (-1, c, h, w) if self.layout == "NCHW" else (-1, h, w, c)

    def finish(self):
        for phase in PHASES:
            for type, inputs, outputs, effects, attrs in self.waiting[phase]:
                self.file.op(f"{type}{len(self.file.ops)}", type, inputs, outputs, phase=phase, effects=effects, attrs=attrs)
        return self.file


# --- Single ops ------------------------------------------------------------------------------------------------------


def elementwise(ops):
    for t, size in itertools.product(REALS, FLAT):
        x, dy = ops.input(t, -1, size), ops.input(t, -1, size)
        for type in ("relu", "gelu", "sigmoid", "tanh"):
            ops.op(type, [x], ops.tensor(t, -1, size))
            ops.over(type, [ops.made(t, -1, size)], 0, t, -1, size)
            ops.op(f"{type}_grad", [x, dy], ops.tensor(t, -1, size))
            ops.over(f"{type}_grad", [x, ops.made(t, -1, size)], 1, t, -1, size)
        for type in ("affine", "affine_grad"):
            ops.op(type, [x], ops.tensor(t, -1, size), scale=-1.0, shift=1.0)
            ops.over(type, [ops.made(t, -1, size)], 0, t, -1, size, scale=0.5)
        for type in ("add", "mul"):
            ops.op(type, [x, dy], ops.tensor(t, -1, size))
            ops.over(type, [ops.made(t, -1, size), x], 0, t, -1, size)
        for number, type in enumerate(("dropout", "dropout_grad")):
            ops.op(type, [x], ops.tensor(t, -1, size), p=0.3, seed=number)
            ops.over(type, [ops.made(t, -1, size)], 0, t, -1, size, p=0.5, seed=number)
    for size, a, b in itertools.product(FLAT, REALS, REALS):
        ops.op("cast", [ops.input(a, -1, size)], ops.tensor(b, -1, size))
        ops.op("cast", [ops.summed(a, size)], ops.tensor(b, size, kind="grad"), phase="backward")


def rows(ops):
    for (t, p), (tokens, width) in itertools.product(PAIRS, ROWS):
        ops.op("linear_bgrad", [ops.input(t, -1, tokens, width)], ops.tensor(p, width, kind="grad"), phase="backward")
    for t, (tokens, width) in itertools.product(REALS, ROWS):
        sizes = (-1, tokens, width)
        x, dy = (ops.input(t, *sizes) for _ in range(2))
        position = ops.tensor(t, tokens, width, kind="param")
        ops.op("position", [x, position], ops.tensor(t, *sizes))
        ops.over("position", [ops.made(t, *sizes), position], 0, t, *sizes)
        ops.op("position_grad", [x], ops.tensor(t, tokens, width, kind="grad"), phase="backward")
        ids, vocabulary = ops.input("i64", -1, tokens), width + 3
        ops.op("embedding", [ids, ops.tensor(t, vocabulary, width, kind="param")], ops.tensor(t, *sizes))
        ops.op("embedding_grad", [ids, x], ops.tensor(t, vocabulary, width, kind="grad"), phase="backward")
        ops.op("mean", [x], ops.tensor(t, -1, width))
        ops.op("mean_grad", [ops.input(t, -1, width)], ops.tensor(t, *sizes))
        ops.op("expand", [ops.input(t, -1, width)], ops.tensor(t, *sizes))
        ops.op("expand_grad", [x], ops.tensor(t, -1, width))
        ops.op("mse", [x, ops.input(t, *sizes)], ops.tensor("f32"))
        ops.op("mse_grad", [x, ops.input(t, *sizes)], ops.tensor(t, *sizes))
        ops.op("transpose", [x], ops.tensor(t, -1, width, tokens), axis=1)
        ops.op("transpose", [ops.input(t, -1, 3, tokens, width)], ops.tensor(t, -1, tokens, 3, width), axis=1)
        ops.op("transpose", [ops.input(t, -1, 3, tokens, width)], ops.tensor(t, -1, 3, width, tokens), axis=2)
        ops.op("concat", [x], ops.tensor(t, *sizes), axis=1)
        ops.op("concat", [x, ops.input(t, -1, 3, width), dy], ops.tensor(t, -1, 2 * tokens + 3, width), axis=1)
        ops.op("concat", [x, ops.input(t, -1, tokens, 5)], ops.tensor(t, -1, tokens, width + 5), axis=2)
        ops.op("concat_grad", [ops.input(t, -1, tokens + 4, width)], ops.tensor(t, *sizes), axis=1, offset=3)
        ops.op("concat_grad", [ops.input(t, -1, tokens, width + 5)], ops.tensor(t, *sizes), axis=2, offset=5)
        ops.op("split", [x], ops.tensor(t, *sizes), axis=1)
        ops.op("split", [ops.input(t, -1, tokens, width + 8)], *(ops.tensor(t, -1, tokens, part) for part in (5, width, 3)),
               axis=2)
        y = ops.op("softmax", [x], ops.tensor(t, *sizes))
        ops.over("softmax", [ops.made(t, *sizes)], 0, t, *sizes)
        ops.op("softmax_grad", [y, dy], ops.tensor(t, *sizes))
        ops.over("softmax_grad", [y, ops.made(t, *sizes)], 1, t, *sizes)
        gamma, beta = (ops.tensor("f32", width, kind="param") for _ in range(2))
        mean, invstd = (ops.tensor("f32", -1, tokens) for _ in range(2))
        ops.op("layernorm", [x, gamma, beta], ops.tensor(t, *sizes), mean, invstd, epsilon=0.001)
        ops.op("layernorm_grad", [x, gamma, mean, invstd, dy], ops.tensor(t, *sizes),
               *(ops.tensor("f32", width, kind="grad") for _ in range(2)), phase="backward")
    # Gradients of what cannot accumulate go through a temporary.
    for t in REALS:
        factors = [ops.tensor(t, 7, 5, kind="param"), ops.summed(t, 7, 3)]
        ops.op("matmul_tn", factors, ops.tensor(t, 5, 3, kind="grad"), phase="backward")


def losses(ops):
    for (t, p), (c, *sizes) in itertools.product(PAIRS, ((1,), (7,), (131,), (10, 5), (3, 7, 5), (1031,))):
        channels = (-1, c, *sizes) if ops.layout == "NCHW" else (-1, *sizes, c)
        labels, probs = ops.input("i64", -1, *sizes), ops.tensor(p, *channels)
        ops.op("softmax_xent", [ops.input(t, *channels), labels], ops.tensor("f32"), probs)
        ops.op("softmax_xent_grad", [probs, labels], ops.tensor(t, *channels))
        if p != t:
            ops.op("softmax_xent_grad", [probs, labels], ops.tensor(p, *channels))


def products(ops):
    for t, tf32, biases in FACTORS:
        for count, m, k, j in PRODUCTS:
            heads = (-1, count)
            tensors = {"mk": (m, k), "kj": (k, j), "jk": (j, k), "km": (k, m)}
            x = {name: ops.input(t, *heads, *sizes) for name, sizes in tensors.items()}
            for type, a, b in (("matmul", "mk", "kj"), ("matmul_nt", "mk", "jk"), ("matmul_tn", "km", "kj")):
                ops.op(type, [x[a], x[b]], ops.tensor(t, *heads, m, j), tf32=tf32, **({"scale": 0.125} if count == 2 else {}))
        for i, o in LINEARS:
            x, dy = ops.input(t, -1, 3, i), ops.input(t, -1, 3, o)
            w = ops.tensor(t, o, i, kind="param")
            for b in biases:
                ops.op("linear", [x, w, *([ops.tensor(b, o, kind="param")] if b else [])], ops.tensor(t, -1, 3, o),
                       tf32=tf32)
            ops.op("linear_dgrad", [w, dy], ops.tensor(t, -1, 3, i), tf32=tf32)
            ops.op("linear_wgrad", [x, dy], ops.tensor(t, o, i, kind="grad"), phase="backward", tf32=tf32)


def convolutions(ops):
    for (t, tf32, biases), (c, k, kernel, stride, pad, dilation, groups, sizes) in itertools.product(FACTORS, CONVS):
        window = [pair(value) for value in (kernel, stride, pad, dilation)]
        attrs = dict(zip(("stride", "pad", "dilation"), window[1:]), groups=groups, tf32=tf32)
        image, filters = ops.image(c, *sizes), ops.image(c // groups, *window[0])[1:]
        result = ops.image(k, *slid(sizes, *window))
        x, dy, w = ops.input(t, *image), ops.input(t, *result), ops.tensor(t, k, *filters, kind="param")
        for b in biases:
            ops.op("conv2d", [x, w, *([ops.tensor(b, k, kind="param")] if b else [])], ops.tensor(t, *result), **attrs)
        ops.op("conv2d_dgrad", [w, dy], ops.tensor(t, *image), **attrs)
        ops.op("conv2d_wgrad", [x, dy], ops.tensor(t, k, *filters, kind="grad"), phase="backward", **attrs)


def images(ops):
    for (t, p), (c, h, w) in itertools.product(PAIRS, IMAGES):
        sizes = ops.image(c, h, w)
        ops.op("bias", [ops.input(t, *sizes), ops.tensor(p, c, kind="param")], ops.tensor(t, *sizes))
        ops.over("bias", [ops.made(t, *sizes), ops.tensor(p, c, kind="param")], 0, t, *sizes)
        for type in ("bias_grad", "conv2d_bgrad"):
            ops.op(type, [ops.input(t, *sizes)], ops.tensor(p, c, kind="grad"), phase="backward")
    for t, (c, h, w) in itertools.product(REALS, IMAGES):
        sizes = ops.image(c, h, w)
        x, gamma, beta = ops.input(t, *sizes), *(ops.tensor("f32", c, kind="param") for _ in range(2)),
        running = [ops.tensor("f32", c, kind="state") for _ in range(2)]
        mean, invstd = (ops.tensor("f32", c) for _ in range(2))
        ops.op("batchnorm", [x, gamma, beta], ops.tensor(t, *sizes), mean, invstd, effects=running, momentum=0.25)
        ops.op("batchnorm_infer", [x, gamma, beta, *(ops.tensor("f32", c, kind="state") for _ in range(2))],
               ops.tensor(t, *sizes), epsilon=0.001)
        ops.op("batchnorm_grad", [x, gamma, mean, invstd, ops.input(t, *sizes)], ops.tensor(t, *sizes),
               *(ops.tensor("f32", c, kind="grad") for _ in range(2)), phase="backward")
        for mode, scale in (("nearest", 2), ("bilinear", 2), ("bilinear", 3), ("aligned", 4)):
            larger = ops.image(c, *((s - 1) * scale + 1 if mode == "aligned" else s * scale for s in (h, w)))
            ops.op("upsample", [x], ops.tensor(t, *larger), scale=scale, mode=mode)
            ops.op("upsample_grad", [ops.input(t, *larger)], ops.tensor(t, *sizes), scale=scale, mode=mode)
    for t, c, (kernel, stride, pad, image) in itertools.product(REALS, (3, 8), POOLS):
        attrs = {"kernel": list(kernel), "stride": list(stride), "pad": list(pad)}
        sizes, pooled = ops.image(c, *image), ops.image(c, *slid(image, kernel, stride, pad))
        x, dy = ops.input(t, *sizes), ops.input(t, *pooled)
        y = ops.op("maxpool2d", [x], ops.tensor(t, *pooled), **attrs)
        ops.op("maxpool2d_grad", [x, y, dy], ops.tensor(t, *sizes), **attrs)
        ops.op("avgpool2d", [x], ops.tensor(t, *pooled), **attrs)
        ops.op("avgpool2d_grad", [dy], ops.tensor(t, *sizes), **attrs)


def optimizers(ops):
    for g, size in itertools.product(REALS, FLAT):
        for type, states, attrs in (("sgd", 0, {}), ("momentum", 1, {"momentum": 0.7}), ("adam", 2, {"beta2": 0.9})):
            w = ops.tensor("f32", size, kind="param")
            kept = [w, *(ops.tensor("f32", size, kind="state") for _ in range(states))]
            gradient = ops.op("cast", [ops.summed("f32", size)], ops.tensor(g, size, kind="grad"), phase="backward")
            ops.op(type, [w, gradient, *kept[1:]], *kept, phase="optimizer", **attrs)


def single(name, layout, *families):
    ops = Ops(name, layout)
    for family in families:
        family(ops)
    return ops.finish()


# --- Models ----------------------------------------------------------------------------------------------------------


def model(name, heading, optimizer):
    net = Net(name, "one op of each kind", 4, heading, device="h100", optimizer=optimizer)
    net.file.heading = f"{heading}\n{WRITTEN}"
    return net


def image_model(name):
    net = model(name, "A model of images with every op that trains, at sizes with tails.", "momentum")
    x = net.input("images", 3, 17, 13)
    labels = net.input("labels", dtype="i64")
    stem = net.relu("stem.relu", net.batchnorm("stem.norm", net.conv("stem", x, 12, 5, 2, 2, bias=False)))
    pooled = net.pool("stem.pool", stem, 3, 2, 1)
    wide = net.upsample("wide", net.conv("wide.conv", pooled, 6, 3, 1, 2, dilation=2), 2, "nearest")
    grouped = net.upsample("grouped", net.conv("grouped.conv", pooled, 9, 3, 1, 1, groups=3), 2)
    tall = net.pool("tall", net.upsample("tall.up", pooled, 2, "aligned"), 2, 1, 1, "avgpool2d")
    joined = net.concat("joined", wide, grouped, tall)
    x = net.dropout("drop", net.relu("joined.relu", net.batchnorm("joined.norm", joined)), 0.3)
    x = net.add("sum", net.conv("left", x, 8, 1), net.conv("right", x, 8, (3, 1), 1, (1, 0)))
    x = net.pool("all", x, net.shapes[x][1:], 1, type="avgpool2d")
    return net.loss(net.linear("classes", net.flatten("flat", x), 11), labels)


def token_model(name):
    net = model(name, "A transformer's layer on tokens, at sizes with tails.", "adam")
    tokens = net.input("tokens", 7, dtype="i64")
    labels = net.input("labels", dtype="i64")
    x = net.position("position", net.embedding("embedding", tokens, 37, 30))
    x = net.add("add1", net.attention("attention", net.layernorm("norm1", x), 3), x)
    wide = net.unary("gelu", "gelu", net.linear("fc1", net.layernorm("norm2", x), 53), (7, 53))
    x = net.add("add2", net.dropout("drop", net.linear("fc2", wide, 30), 0.1), x)
    x = net.unary("mean", "mean", net.layernorm("norm3", x), (30,))
    return net.loss(net.linear("classes", x, 13), labels)


# --- Large tensors ---------------------------------------------------------------------------------------------------


def large(name):
    """2.2 GB each. What ops put out shares two storages, which every op writes anew."""
    file = GraphFile(f"Ops on tensors of more than 2^31 bytes and 2^16 blocks, for a GPU.\n{WRITTEN}", name=name,
                     layout="NCHW", batch=32771)
    c, h, w = 8, 32, 65
    image, flat = dims_of((-1, c, h, w)), dims_of((-1, c * h, w))
    pooled = dims_of((-1, c, h // 2, (w - 1) // 2))
    sizes = {"x": image, "y": image, "z": image}
    for name, dims in sizes.items():
        file.tensor(name, "f32", dims, "input" if name == "x" else "activation")
    for name, of, dtype, dims in (("x.rows", "x", "f32", flat), ("y.rows", "y", "f32", flat), ("y.half", "y", "bf16", image),
                                  ("y.pooled", "y", "f32", pooled), ("z.small", "z", "f32", pooled),
                                  ("y.turned", "y", "f32", dims_of((-1, w, c * h)))):
        file.tensor(name, dtype, dims, of=of)
    for name, shape in (("b", (c,)), ("gamma", (c,)), ("beta", (c,)), ("w", (c, c, 1, 1)), ("fc", (w, w))):
        file.tensor(name, "f32", dims_of(shape), "param")
    for name in ("mean", "invstd"):
        file.tensor(name, "f32", dims_of((c,)))
        file.tensor(f"running.{name}", "f32", dims_of((c,)), "state")
    for name, shape in (("db", (c,)), ("dw", (c, c, 1, 1)), ("dgamma", (c,)), ("dbeta", (c,))):
        file.tensor(name, "f32", dims_of(shape), "grad")
    pool = {"kernel": [2, 2], "stride": [2, 2]}
    file.op("relu", "relu", ["x"], ["y"])
    file.op("dropout", "dropout", ["x"], ["y"], attrs={"p": 0.5, "seed": 1})
    file.op("add", "add", ["x", "y"], ["z"])
    file.op("bias", "bias", ["x", "b"], ["y"])
    file.op("cast", "cast", ["x"], ["y.half"])
    file.op("softmax", "softmax", ["x.rows"], ["y.rows"])
    file.op("transpose", "transpose", ["x.rows"], ["y.turned"], attrs={"axis": 1})
    file.op("linear", "linear", ["x.rows", "fc"], ["y.rows"])
    file.op("conv", "conv2d", ["x", "w"], ["y"])
    file.op("maxpool", "maxpool2d", ["x"], ["y.pooled"], attrs=pool)
    file.op("batchnorm", "batchnorm", ["x", "gamma", "beta"], ["z", "mean", "invstd"],
            effects=["running.mean", "running.invstd"])
    file.op("maxpool.grad", "maxpool2d_grad", ["x", "y.pooled", "y.pooled"], ["z"], phase="backward", attrs=pool)
    file.op("avgpool", "avgpool2d", ["x"], ["z.small"], phase="backward", attrs=pool)
    file.op("bgrad", "bias_grad", ["x"], ["db"], phase="backward")
    file.op("conv.dgrad", "conv2d_dgrad", ["w", "x"], ["y"], phase="backward")
    file.op("conv.wgrad", "conv2d_wgrad", ["x", "y"], ["dw"], phase="backward")
    file.op("batchnorm.grad", "batchnorm_grad", ["x", "gamma", "mean", "invstd", "y"], ["z", "dgamma", "dbeta"],
            phase="backward")
    return file


ZOO = {"ops/elements": lambda name: single(name, "NCHW", elementwise, optimizers),
       "ops/rows": lambda name: single(name, "NCHW", rows, products),
       "ops/images-nchw": lambda name: single(name, "NCHW", images, losses),
       "ops/images-nhwc": lambda name: single(name, "NHWC", images, losses),
       "ops/convolutions-nchw": lambda name: single(name, "NCHW", convolutions),
       "ops/convolutions-nhwc": lambda name: single(name, "NHWC", convolutions),
       "image-model": image_model, "token-model": token_model, "large/large": large}


def main():
    parser = argparse.ArgumentParser(description="Write the op zoo.")
    parser.add_argument("-d", metavar="DIR", default=HERE, help="folder to write to (default: this script's)")
    options = parser.parse_args()
    for path, make in ZOO.items():
        folder, name = os.path.split(path)
        os.makedirs(os.path.join(options.d, folder), exist_ok=True)
        make(name).write(os.path.join(options.d, f"{path}.yaml"))


if __name__ == "__main__":
    main()
