#!/usr/bin/env python3
"""Converts a recorded PyTorch training iteration (JSON, schema planc-opgraph-1) to planc-graph(5).

    from_recording.py IN.json -o OUT.yaml

What stays: order, phases, sizes, FLOPs, and the liveness peak to the byte. A recorded storage becomes a tensor: params,
optimizer state, buffers and gradients under their recorded names (`features.0.weight:grad`), the others as t123. ATen
ops keep their names as types, so they are planned from the recorded sizes, FLOPs and traffic.

What changes:
- aten.convolution becomes conv2d, and its fused backward the data, bias and weight gradients, each an op that can have
  its own algorithm. In this order everything the fused op held is live at the weight gradient, so the peak is the
  recorded one. A convolution whose operand is a slice of a storage stays the ATen op: a slice of channels is no view.
  A file does not say how the operands of other ops lie in their storages; export_torch.py knows, and gives more ops a
  type of planc's (aten_types.py).
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

from aten_types import typed
from graphfile import NAME_LIMIT, GraphFile, legal_name
from recording import KIND, BadRecording, Recording

BATCH_NORMS = ("aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._batch_norm_with_update",
               "aten.cudnn_batch_norm")
BATCH_NORM_GRADS = ("aten.native_batch_norm_backward", "aten.batch_norm_backward", "aten.cudnn_batch_norm_backward")
# Losses that take a mean over the batch unless they are told otherwise, and their gradients.
LOSSES = ("nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss",
          "mse_loss_backward", "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward",
          "binary_cross_entropy", "binary_cross_entropy_backward", "binary_cross_entropy_with_logits",
          "soft_margin_loss", "soft_margin_loss_backward", "multi_margin_loss", "multi_margin_loss_backward",
          "multilabel_margin_loss_forward", "multilabel_margin_loss_backward")
MEAN_REDUCTION = 1
# Calls that draw random numbers, without the `_` of those in place.
STOCHASTIC = ("_fill_mem_eff_dropout_mask", "_fused_dropout", "_sample_dirichlet", "_standard_gamma", "bernoulli",
              "binomial", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "native_dropout", "normal",
              "normal_functional", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
              "random", "randperm", "rrelu_with_noise", "rrelu_with_noise_functional", "uniform")
# Calls that do so where this attribute is not 0.
STOCHASTIC_IF = ("dropout_p", "dropout")
# Shapes and storage ids that only the recorder's own checks need.
NOT_ATTRS = {"shapes", "shape_only", "partial_write"}
LARGEST_ATTR = 2**53


# --- Reading the recording --------------------------------------------------------------------------------------------


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


# --- Converting -------------------------------------------------------------------------------------------------------


class Names:
    """Legal names, each given out once."""

    def __init__(self):
        self.taken = set()
        self.last = {}  # the last number that a name was given out with

    def give(self, wanted):
        legal = legal_name(wanted)
        name, n = legal, self.last.get(legal, 1)
        while name in self.taken:
            n += 1
            suffix = f".{n}"
            name = legal[:NAME_LIMIT - len(suffix)] + suffix
        self.last[legal] = n
        self.taken.add(name)
        return name


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


def flags_of(op):
    """What a planner must know of an ATen call beside its sizes."""
    call = op.type.removeprefix("aten.").split(".")[0]
    attrs, flags = op.attrs.value, []
    if f"aten.{call}" in BATCH_NORMS + BATCH_NORM_GRADS and attrs.get("training", attrs.get("train", True)):
        flags.append("batch-coupled")
    if call.removesuffix("_") in STOCHASTIC or any(attrs.get(key) for key in STOCHASTIC_IF):
        flags.append("stochastic")
    if call in LOSSES and attrs.get("reduction", MEAN_REDUCTION) == MEAN_REDUCTION:
        flags.append("batch-mean")
    return flags


def class_of(op):
    """What a planner would not take an ATen call for: a product, which is what has FLOPs, where it is a convolution."""
    return "conv" if "convolution" in op.type and any(op.flops) else None


class Converter:
    """The graph of a recording. `made` names the ops that each recorded op became, with their types. `told`, if given, has
    further attributes of each recorded op, for those that keep their ATen name."""

    def __init__(self, recording, heading, told=None):
        self.recording, self.told = recording, told
        self.tensor_names, self.op_names = Names(), Names()
        self.names = [self.tensor_names.give(f"t{i}" if s.name is None else s.name + ":grad" * (s.kind == "grad"))
                      for i, s in enumerate(recording.storages)]
        self.views = {}
        self.made = [[] for _ in recording.ops]
        header = {"name": legal_name(recording.model), "layout": "NCHW"}
        header["origin"] = json.dumps(f"one training iteration recorded from {recording.source}, {recording.optimizer}")
        loss = [n for n, s in zip(self.names, recording.storages) if s.name == "loss" and s.kind == "activation"]
        if loss:
            header["loss"] = loss[0]
        self.graph = GraphFile(heading, **header)

    def run(self):
        storages = self.recording.storages
        for name, storage in zip(self.names, storages):
            self.graph.tensor(name, storage.dtype, storage.dims, KIND[storage.kind])
        for i, (op, loop) in enumerate(zip(self.recording.ops, loops(self.recording))):
            for new in typed(op, storages):
                inputs, outputs, effects = ([self.operand(v) for v in views]
                                            for views in (new.inputs, new.outputs, new.effects))
                self.emit(i, new.type, inputs, outputs, effects=effects, attrs=new.attrs, flops=new.flops, loop=loop)
            if not self.made[i]:
                self.aten(i, op, loop)
        return self.graph

    def emit(self, i, type, inputs, outputs, **rest):
        op = self.recording.ops[i]
        name = self.op_names.give(f"{op.module}.{type}.{i}" if op.module else f"{type}.{i}")
        self.made[i].append((name, type))
        self.graph.op(name, type, inputs, outputs, phase=op.phase, **rest)

    def operand(self, view):
        """The tensor that a view is: the storage's own, or one that has `of`."""
        storage, root = self.recording.storages[view.storage], self.names[view.storage]
        if list(view.dims) == storage.dims:
            return root
        if view not in self.views:
            name = self.tensor_names.give(f"{root}.view")
            self.views[view] = self.graph.tensor(name, storage.dtype, view.dims, of=root, offset=view.offset)
        return self.views[view]

    def aten(self, i, op, loop):
        inputs, outputs, effects = op.inputs, op.outputs, []
        attrs = op.attrs.value
        if op.type in BATCH_NORMS:
            effects = op.inplace
            inputs, outputs = ([s for s in side if s not in effects] for side in (inputs, outputs))
        if attrs.get("partial_write"):  # what it leaves of an existing storage is read in effect
            inputs = inputs + [s for s in op.inplace if s not in inputs]
        flags = flags_of(op)
        if op.type == "aten.mm" and [self.recording.storages[s].kind for s in outputs] == ["grad"]:
            flags.append("accumulates")  # a matrix product adds to its result at no cost: beta = 1
        inputs, outputs, effects = ([self.names[s] for s in side] for side in (inputs, outputs, effects))
        attrs = {**kept_attrs(op), **(self.told[i] if self.told else {})}
        self.emit(i, op.type, inputs, outputs, effects=effects, attrs=attrs,
                  flops=op.flops if any(op.flops) else None, traffic=op.traffic,
                  workspace=op.workspace if any(op.workspace) else None, flags=flags, class_=class_of(op), loop=loop)


def convert(path):
    """The graph in the recording at `path`."""
    recording = Recording(load(path))
    recording.model += "-recorded"
    return Converter(recording, "Written by from_recording.py from a recorded PyTorch training iteration.").run()


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
