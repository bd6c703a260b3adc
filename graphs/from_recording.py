#!/usr/bin/env python3
"""Converts a recorded PyTorch training iteration (JSON, schema planc-opgraph-1) to planc-graph(5).

    from_recording.py IN.json -o OUT.yaml

What stays: order, phases, sizes, FLOPs, and the liveness peak to the byte. A recorded storage becomes a tensor: params,
optimizer state, buffers and gradients under their recorded names (`features.0.weight:grad`), the others as t123. ATen
ops keep their names as types, so they are planned from the recorded sizes, FLOPs and traffic.

What changes:
- aten.convolution becomes conv2d, and its fused backward the data, bias and weight gradients, each an op that can have
  its own algorithm. In this order everything the fused op held is live at the weight gradient, so the peak is the
  recorded one. A convolution whose operand is a slice of a storage stays the ATen op: a slice of channels is no window.
- The running statistics of a batch norm are effects: a recompute leaves them alone.
- A module that reads one of its parameters in several visits is a recurrence: its forward ops carry the module as loop
  and the visit as step.
- Attributes that are scalars or lists of integers are kept, booleans as 0 and 1.

recorded/ holds the conversions of recordings of torchvision's VGG-16, ResNet-34 and ResNet-50 and of a four-layer LSTM.

Exit codes: 0, 2 usage, 3 bad input, 5 an output that cannot be written.
"""

import argparse
import json
import math
import sys

from graphfile import DTYPE_BYTES, NAME_LIMIT, GraphFile, law, legal_name

SCHEMA = "planc-opgraph-1"
KIND = {"param": "param", "buffer": "state", "optstate": "state", "input": "input", "activation": "activation",
        "actgrad": "activation", "grad": "grad", "temp": "temp"}
PHASES = ("forward", "backward", "optimizer")
FLAGS = {
    "aten.native_batch_norm": ("batch-coupled",),
    "aten.native_batch_norm_backward": ("batch-coupled",),
    "aten.native_dropout": ("stochastic",),
    "aten.nll_loss_forward": ("batch-mean",),
    "aten.nll_loss_backward": ("batch-mean",),
}
MEAN_REDUCTION = 1
# Shapes and storage ids that only the recorder's own checks need.
NOT_ATTRS = {"shapes", "shape_only", "partial_write"}
INT64_MAX = 2**63 - 1
LARGEST_ATTR = 2**53


# --- Reading the recording --------------------------------------------------------------------------------------------


class BadRecording(Exception):
    """What is wrong and where."""


def unique_keys(pairs):
    keys = dict(pairs)
    if len(keys) != len(pairs):
        key = next(k for i, (k, _) in enumerate(pairs) if k in dict(pairs[:i]))
        raise BadRecording(f"key {json.dumps(key)} appears twice in one object")
    return keys


def no_constant(text):
    raise BadRecording(f"{text} is not a number of JSON")


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=unique_keys, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise BadRecording(f"{error.lineno}:{error.colno}: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise BadRecording(f"not a JSON text: {error}") from error


class Fields:
    """One JSON object of the recording; every access checks the type and names the place."""

    def __init__(self, value, place):
        if not isinstance(value, dict):
            raise BadRecording(f"{place}: an object is expected")
        self.value, self.place = value, place

    def fail(self, key, what):
        raise BadRecording(f"{self.place}: {key}: {what}")

    def text(self, key, default=None):
        value = self.value.get(key, default)
        if value is not None and not isinstance(value, str):
            self.fail(key, "a string is expected")
        return value

    def choice(self, key, choices):
        value = self.text(key)
        if value not in choices:
            self.fail(key, f"one of {', '.join(choices)} is expected")
        return value

    def size(self, key):
        value = self.value.get(key, 0)
        if type(value) is not int or not 0 <= value <= INT64_MAX:
            self.fail(key, "an integer from 0 to 2^63-1 is expected")
        return value

    def law(self, key):
        return self.size(f"{key}_fixed"), self.size(f"{key}_per_sample")

    def list(self, key, limit=INT64_MAX):
        """A list of integers from 0 to `limit`."""
        value = self.value.get(key, [])
        if not isinstance(value, list) or any(type(v) is not int or not 0 <= v <= limit for v in value):
            self.fail(key, f"a list of integers from 0 to {limit} is expected")
        return value

    def objects(self, key):
        value = self.value.get(key)
        if not isinstance(value, list):
            self.fail(key, "a list is expected")
        return [Fields(v, f"{key}[{i}]") for i, v in enumerate(value)]


class Storage:
    """A recorded storage: its kind, recorded name, element type and dimensions as laws."""

    def __init__(self, fields, batch):
        self.kind = fields.choice("kind", KIND)
        self.name = fields.text("name")
        self.bytes = fields.law("bytes")
        self.dtype = fields.text("dtype")
        self.dims = self.dims_of(fields, batch)
        if self.dims is None:  # the shape does not explain the bytes
            self.dtype, self.dims = "u8", [self.bytes]

    def dims_of(self, fields, batch):
        example = fields.list("shape_example")
        slopes = fields.list("shape_per_sample") or [0] * len(example)
        if len(slopes) != len(example):
            fields.fail("shape_per_sample", "shape_example has another rank")
        dims = [(size - slope * batch, slope) for size, slope in zip(example, slopes)]
        if len(dims) > 8 or self.dtype not in DTYPE_BYTES or any(fixed < 0 for fixed, _ in dims):
            return None
        fixed, per_sample, square = DTYPE_BYTES[self.dtype], 0, 0
        for f, p in dims:
            fixed, per_sample, square = fixed * f, fixed * p + per_sample * f, square or per_sample * p
        return dims if (fixed, per_sample) == self.bytes and not square else None

    def shape(self):
        """The dimensions as the recording writes an operand's."""
        return [law(d) if d[1] else d[0] for d in self.dims]


class Op:
    """A recorded op."""

    def __init__(self, fields, n_storages):
        self.fields = fields
        self.type = legal_name(fields.text("name") or fields.fail("name", "a string is expected"))
        self.phase = fields.choice("phase", PHASES)
        self.module = fields.text("module") or ""
        self.inputs, self.outputs, self.inplace = (fields.list(k, n_storages - 1)
                                                   for k in ("inputs", "outputs", "inplace"))
        self.attrs = Fields(fields.value.get("attrs", {}), f"{fields.place}: attrs")
        self.flops, self.traffic = fields.law("flops"), fields.law("bytes")
        if not set(self.inplace) <= set(self.outputs):
            fields.fail("inplace", "a storage is not among the outputs")


class Recording:
    def __init__(self, value):
        fields = Fields(value, "recording")
        if fields.text("schema") != SCHEMA:
            fields.fail("schema", f"{SCHEMA} is expected")
        self.model, self.source = fields.text("model", "recording"), fields.text("source", "")
        self.optimizer = fields.text("optimizer", "")
        batch = fields.size("batch_example")
        self.storages = [Storage(f, batch) for f in fields.objects("tensors")]
        self.ops = [Op(f, len(self.storages)) for f in fields.objects("ops")]


# --- Converting -------------------------------------------------------------------------------------------------------


class Names:
    """Legal names, each given out once."""

    def __init__(self):
        self.taken = set()

    def give(self, wanted):
        name, n = legal_name(wanted), 1
        while name in self.taken:
            n += 1
            suffix = f".{n}"
            name = legal_name(wanted)[:NAME_LIMIT - len(suffix)] + suffix
        self.taken.add(name)
        return name


def tensor_names(storages):
    names = Names()
    return [names.give(f"t{i}" if s.name is None else s.name + ":grad" * (s.kind == "grad"))
            for i, s in enumerate(storages)]


def loops(recording):
    """Per op (loop, step) or None: see the heading."""
    visits, readers, visit_of = {}, {}, []
    previous = None
    for op in recording.ops:
        module = op.module if op.phase == "forward" else ""
        if module and module != previous:
            visits[module] = visits.get(module, -1) + 1
        visit_of.append((module, visits[module]) if module else None)
        for storage in op.inputs if module else ():
            if recording.storages[storage].kind == "param":
                readers.setdefault((module, storage), set()).add(visits[module])
        previous = module
    recurrent = {module for (module, _), seen in readers.items() if len(seen) > 1}
    return [(legal_name(v[0]), v[1]) if v and v[0] in recurrent else None for v in visit_of]


def kept_attrs(op):
    """The attributes that planc-graph(5) can hold; ATen's largest integer, "to the end" of a slice, is not one."""
    kept = {}
    for key, value in op.attrs.value.items():
        if isinstance(value, float) and not math.isfinite(value):
            op.attrs.fail(key, "a finite number is expected")
        parts = value if isinstance(value, list) else [value]
        whole = all(isinstance(v, int) and abs(v) <= LARGEST_ATTR for v in parts)
        if key not in NOT_ATTRS and (whole or isinstance(value, (float, str))):
            kept[legal_name(key)] = value
    return kept


def conv_attrs(op):
    attrs = {"stride": op.attrs.list("stride") or [1, 1], "pad": op.attrs.list("padding") or [0, 0]}
    dilation, groups = op.attrs.list("dilation") or [1, 1], op.attrs.size("groups") or 1
    if dilation != [1, 1]:
        attrs["dilation"] = dilation
    if groups != 1:
        attrs["groups"] = groups
    return attrs


def is_plain_conv(op, storages):
    """Whether a recorded convolution, or its backward, is one of two dimensions over whole storages."""
    shapes = [storages[s].shape() for s in op.inputs + op.outputs]
    ranks = [len(shape) for shape in shapes]
    attrs = op.attrs.value
    if attrs.get("transposed") or op.inplace or attrs.get("shapes") != shapes:
        return False
    if op.type == "aten.convolution":
        return ranks in ([4, 4, 4], [4, 4, 1, 4])
    mask = attrs.get("output_mask")
    if not isinstance(mask, list) or len(mask) != 3:
        op.attrs.fail("output_mask", "a list of three booleans is expected")
    return ranks == [4, 4, 4] + [rank for rank, wanted in zip((4, 4, 1), mask) if wanted]


class Converter:
    def __init__(self, recording):
        self.recording = recording
        self.names = tensor_names(recording.storages)
        self.op_names = Names()
        header = {"name": legal_name(f"{recording.model}-recorded"), "layout": "NCHW"}
        header["origin"] = json.dumps(f"one training iteration recorded from {recording.source}, {recording.optimizer}")
        loss = [n for n, s in zip(self.names, recording.storages) if s.name == "loss" and s.kind == "activation"]
        if loss:
            header["loss"] = loss[0]
        self.graph = GraphFile("Written by from_recording.py from a recorded PyTorch training iteration.", **header)

    def run(self):
        storages = self.recording.storages
        for name, storage in zip(self.names, storages):
            self.graph.tensor(name, storage.dtype, storage.dims, KIND[storage.kind])
        for i, (op, loop) in enumerate(zip(self.recording.ops, loops(self.recording))):
            if op.type == "aten.convolution" and is_plain_conv(op, storages):
                self.emit(i, op, "conv2d", op.inputs, op.outputs, attrs=conv_attrs(op), flops=op.flops, loop=loop)
            elif op.type == "aten.convolution_backward" and is_plain_conv(op, storages):
                self.conv_backward(i, op)
            else:
                self.aten(i, op, loop)
        return self.graph

    def emit(self, i, op, type, inputs, outputs, **rest):
        name = self.op_names.give(f"{op.module}.{type}.{i}" if op.module else f"{type}.{i}")
        self.graph.op(name, type, [self.names[s] for s in inputs], [self.names[s] for s in outputs], phase=op.phase,
                      **rest)

    def conv_backward(self, i, op):
        dy, x, w = op.inputs
        results = iter(op.outputs)
        dx, dw, db = (next(results) if wanted else None for wanted in op.attrs.value["output_mask"])
        # The bias gradient adds up the elements of dy; the other two cost the same.
        storage = self.recording.storages[dy]
        bias = tuple(part // DTYPE_BYTES[storage.dtype] if db is not None else 0 for part in storage.bytes)
        shares = max((dx is not None) + (dw is not None), 1)
        each = tuple((total - part) // shares for total, part in zip(op.flops, bias))
        if min(each) < 0 or any(e * shares + part != total for e, part, total in zip(each, bias, op.flops)):
            op.fields.fail("flops", "they do not split into data, weight and bias gradient")
        attrs = conv_attrs(op)
        if dx is not None:
            self.emit(i, op, "conv2d_dgrad", [w, dy], [dx], attrs=attrs, flops=each)
        if db is not None:
            self.emit(i, op, "conv2d_bgrad", [dy], [db], flops=bias)
        if dw is not None:
            self.emit(i, op, "conv2d_wgrad", [x, dy], [dw], attrs=attrs, flops=each)

    def aten(self, i, op, loop):
        inputs, outputs, effects = op.inputs, op.outputs, []
        attrs = op.attrs.value
        if op.type == "aten.native_batch_norm":
            effects = op.inplace
            inputs, outputs = ([s for s in side if s not in effects] for side in (inputs, outputs))
        if attrs.get("partial_write"):  # what it leaves of an existing storage is read in effect
            inputs = inputs + [s for s in op.inplace if s not in inputs]
        flags = FLAGS.get(op.type, ())
        if "batch-mean" in flags and attrs.get("reduction") != MEAN_REDUCTION:
            flags = ()
        if op.type == "aten.mm" and [self.recording.storages[s].kind for s in outputs] == ["grad"]:
            flags = ("accumulates",)  # a matrix product adds to its result at no cost: beta = 1
        self.emit(i, op, op.type, inputs, outputs, effects=[self.names[s] for s in effects], attrs=kept_attrs(op),
                  flops=op.flops if any(op.flops) else None, traffic=op.traffic, flags=flags, loop=loop)


def convert(path):
    """The graph in the recording at `path`."""
    return Converter(Recording(load(path))).run()


# --- Command line -----------------------------------------------------------------------------------------------------


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Convert a recorded PyTorch training iteration to a planc graph.")
    parser.add_argument("input", metavar="IN.json")
    parser.add_argument("-o", metavar="OUT.yaml", required=True)
    options = parser.parse_args(arguments)
    try:
        graph = convert(options.input)
    except (BadRecording, OSError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        print(f"from_recording.py: {options.input}: {what}", file=sys.stderr)
        return 3
    try:
        graph.write(options.o)
    except OSError as error:
        print(f"from_recording.py: {options.o}: {error.strerror}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
