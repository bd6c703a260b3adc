"""Computes a graph file's ops for one sample, plainly and in double precision: an oracle for graphs that come with
their backward ops. Storages are lists; a result in place overwrites what lies there. Each op is a function from
attributes, dimensions and operands to the lists of its results."""

import itertools
import math
import random

EPSILON = 1e-5


def shape(tensor):
    return [fixed + slope for fixed, slope in tensor.dims]


def run(graph, params, seed=1):
    """The values of all storages, by root, after the forward and backward ops. `params`: lists by name; inputs are
    drawn from `seed`."""
    rng = random.Random(seed)
    values = {graph.of(name): list(numbers) for name, numbers in params.items()}
    for tensor in graph.storages("input"):
        values[tensor] = [float(rng.randrange(3)) for _ in range(math.prod(shape(tensor)))]
    for op in graph.ops:
        if op["phase"] == "optimizer":
            break
        inputs, outputs = ([graph.of(name) for name in op[key]] for key in ("in", "out"))
        attrs = {key: [int(v) for v in value] if isinstance(value, list) else float(value)
                 for key, value in op["attrs"].items()}
        results = OPS[op["type"].removeprefix("pix2pixhd.")](attrs, [shape(t) for t in inputs], [shape(t) for t in outputs],
                                  *(values[t.root] for t in inputs))
        for tensor, result in zip(outputs, results):
            assert len(result) == math.prod(shape(tensor)), op["op"]
            values[tensor.root] = result
    return values


# --- Windows that slide over images -----------------------------------------------------------------------------------


def places(image, result, kernel, attrs):
    """Every (pixel of an image, place in the window, pixel of the result) that meet, as offsets within a map."""
    (h, w), (p, q) = image[2:], result[2:]
    stride, pad = attrs.get("stride", [1, 1]), attrs.get("pad", [0, 0])
    for y, x, r, s in itertools.product(range(p), range(q), range(kernel[0]), range(kernel[1])):
        row, column = y * stride[0] + r - pad[0], x * stride[1] + s - pad[1]
        if 0 <= row < h and 0 <= column < w:
            yield row * w + column, r * kernel[1] + s, y * q + x


def convolve(image, result, weights, attrs, combine):
    """Calls combine(x, w, y) with the offsets of every multiply-add."""
    k, c, *kernel = weights
    area, size, window = math.prod(image[2:]), math.prod(result[2:]), math.prod(kernel)
    meets = list(places(image, result, kernel, attrs))
    for o, i in itertools.product(range(k), range(c)):
        for pixel, place, out in meets:
            combine(i * area + pixel, (o * c + i) * window + place, o * size + out)


def conv2d(attrs, reads, makes, x, w, b=(0.0,)):
    size = math.prod(makes[0][2:])
    y = [b[i // size if len(b) > 1 else 0] for i in range(math.prod(makes[0]))]

    def combine(i, j, o):
        y[o] += x[i] * w[j]
    convolve(reads[0], makes[0], reads[1], attrs, combine)
    return [y]


def conv2d_dgrad(attrs, reads, makes, w, dy):
    dx = [0.0] * math.prod(makes[0])

    def combine(i, j, o):
        dx[i] += dy[o] * w[j]
    convolve(makes[0], reads[1], reads[0], attrs, combine)
    return [dx]


def conv2d_wgrad(attrs, reads, makes, x, dy):
    dw = [0.0] * math.prod(makes[0])

    def combine(i, j, o):
        dw[j] += dy[o] * x[i]
    convolve(reads[0], reads[1], makes[0], attrs, combine)
    return [dw]


def pool_places(attrs, image, result):
    """(pixel of the image, pixel of the result), channel by channel."""
    meets = list(places(image, result, attrs["kernel"], attrs))
    area, size = math.prod(image[2:]), math.prod(result[2:])
    for c in range(image[1]):
        for pixel, _, out in meets:
            yield c * area + pixel, c * size + out


def avgpool2d(attrs, reads, makes, x):
    y = [0.0] * math.prod(makes[0])
    for i, o in pool_places(attrs, reads[0], makes[0]):
        y[o] += x[i] / math.prod(attrs["kernel"])
    return [y]


def avgpool2d_grad(attrs, reads, makes, dy):
    dx = [0.0] * math.prod(makes[0])
    for i, o in pool_places(attrs, makes[0], reads[0]):
        dx[i] += dy[o] / math.prod(attrs["kernel"])
    return [dx]


def maxpool2d(attrs, reads, makes, x):
    y = [-math.inf] * math.prod(makes[0])
    for i, o in pool_places(attrs, reads[0], makes[0]):
        y[o] = max(y[o], x[i])
    return [y]


def maxpool2d_grad(attrs, reads, makes, x, y, dy):
    dx, given = [0.0] * math.prod(makes[0]), set()
    for i, o in pool_places(attrs, reads[0], reads[1]):
        if x[i] == y[o] and o not in given:
            given.add(o)
            dx[i] += dy[o]
    return [dx]


def mirrored(attrs, image):
    """Of every pixel of a padded image, the pixel it repeats."""
    pad, (_, c, h, w) = int(attrs["pad"]), image

    def fold(at, size):
        return abs(at) if at < size else 2 * size - 2 - at
    for m, y, x in itertools.product(range(c), range(-pad, h + pad), range(-pad, w + pad)):
        yield (m * h + fold(y, h)) * w + fold(x, w)


def reflect_pad(attrs, reads, makes, x):
    return [[x[i] for i in mirrored(attrs, reads[0])]]


def reflect_pad_grad(attrs, reads, makes, dy):
    dx = [0.0] * math.prod(makes[0])
    for o, i in enumerate(mirrored(attrs, makes[0])):
        dx[i] += dy[o]
    return [dx]


# --- Maps -------------------------------------------------------------------------------------------------------------


def maps(dims, values):
    size = math.prod(dims[2:])
    return [values[at:at + size] for at in range(0, len(values), size)]


def bias(attrs, reads, makes, x, b):
    return [[v + shift for m, shift in zip(maps(reads[0], x), b) for v in m]]


def bias_grad(attrs, reads, makes, dy):
    return [[sum(m) for m in maps(reads[0], dy)]]


def instance_norm(attrs, reads, makes, x):
    y, means, invstds = [], [], []
    for m in maps(reads[0], x):
        mean = sum(m) / len(m)
        invstd = (sum((v - mean) ** 2 for v in m) / len(m) + EPSILON) ** -0.5
        y += [(v - mean) * invstd for v in m]
        means.append(mean)
        invstds.append(invstd)
    return [y, means, invstds]


def instance_norm_grad(attrs, reads, makes, x, means, invstds, dy):
    dx = []
    for m, d, mean, invstd in zip(maps(reads[0], x), maps(reads[0], dy), means, invstds):
        normed = [(v - mean) * invstd for v in m]
        level = sum(d) / len(d)
        tilt = sum(a * b for a, b in zip(d, normed)) / len(d)
        dx += [invstd * (a - level - b * tilt) for a, b in zip(d, normed)]
    return [dx]


def concat_grad(attrs, reads, makes, dy):
    size, start = math.prod(reads[0][2:]), int(attrs["offset"])
    return [dy[start * size:(start + makes[0][1]) * size]]


# --- Elements and losses ----------------------------------------------------------------------------------------------


def each(function):
    return lambda attrs, reads, makes, *operands: [[function(attrs, *v) for v in zip(*operands)]]


def slope(attrs):
    return attrs.get("slope", 0.0)


def mean(function):
    return lambda attrs, reads, makes, *given: [[sum(function(attrs, *v) for v in zip(*given)) / len(given[0])]]


def mean_grad(function):
    return lambda attrs, reads, makes, *given: [[function(attrs, *v) / len(given[0]) for v in zip(*given)]]


OPS = {
    "conv2d": conv2d, "conv2d_dgrad": conv2d_dgrad, "conv2d_wgrad": conv2d_wgrad, "conv2d_bgrad": bias_grad,
    "bias": bias, "bias_grad": bias_grad,
    "avgpool2d": avgpool2d, "avgpool2d_grad": avgpool2d_grad, "maxpool2d": maxpool2d, "maxpool2d_grad": maxpool2d_grad,
    "reflect_pad": reflect_pad, "reflect_pad_grad": reflect_pad_grad,
    "instance_norm": instance_norm, "instance_norm_grad": instance_norm_grad,
    "concat": lambda attrs, reads, makes, *parts: [list(itertools.chain(*parts))], "concat_grad": concat_grad,
    "add": each(lambda attrs, a, b: a + b),
    "relu": each(lambda attrs, x: max(x, 0.0)), "relu_grad": each(lambda attrs, y, dy: dy if y > 0 else 0.0),
    "leaky_relu": each(lambda attrs, x: x if x > 0 else slope(attrs) * x),
    "leaky_relu_grad": each(lambda attrs, y, dy: dy if y > 0 else slope(attrs) * dy),
    "tanh": each(lambda attrs, x: math.tanh(x)), "tanh_grad": each(lambda attrs, y, dy: dy * (1 - y * y)),
    "one_hot": lambda attrs, reads, makes, x: [[float(v == k) for k in range(makes[0][1]) for v in x]],
    "edges": each(lambda attrs, x: float(x > 1)),
    "lsgan": mean(lambda attrs, x: (x - attrs["target"]) ** 2),
    "lsgan_grad": mean_grad(lambda attrs, x: 2 * (x - attrs["target"])),
    "l1": mean(lambda attrs, a, b: attrs["weight"] * abs(a - b)),
    "l1_grad": mean_grad(lambda attrs, a, b: math.copysign(attrs["weight"], a - b)),
    "sum": lambda attrs, reads, makes, *terms: [[sum(t[0] for t in terms)]],
}
