#!/usr/bin/env python3
"""Exports one training iteration of a PyTorch module to planc-graph(5).

    export_torch.py FILE.py:FUNCTION -o OUT.yaml

FUNCTION() gives (model, batch, loss_fn, optimizer):

    def make():
        model = torchvision.models.resnet50()
        batch = torch.zeros(2, 3, 224, 224), torch.zeros(2, dtype=torch.long)
        loss_fn = lambda model, images, labels: torch.nn.functional.cross_entropy(model(images), labels)
        return model, batch, loss_fn, lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

`batch` is a tuple of tensors whose first dimension is the batch, or a function that makes one of a given size; what
loss_fn gives for the model and a batch is minimized; the optimizer is one over the model's parameters, or a function
that makes it. As a library: `from export_torch import export`, then export(*make(), "resnet50.yaml").

The second iteration (forward, backward, step) is recorded with all its ATen calls, by default on the meta device, which
computes nothing and needs no memory; --device cpu or cuda runs it. It is recorded at three batch sizes: two give every
size as a fixed part and a part per sample, the third must agree. Gradients start absent. The third iteration must run
the same calls, and read of the second only what is written in place into parameters, buffers and the optimizer's state.
The model is not changed: a copy runs.

In the graph, each storage is a tensor; calls that planc has a type for get it (aten_types.py), all others keep their
ATen name. Some calls are made as on a GPU (torch_as_on_gpu.py); what a graph cannot show is refused with the user's
line (torch_refusals.py). The rest is as from_recording.py says.

--profile also measures each op on a GPU (--device cuda) and writes a profile (planc-profile(5)) with the description
of the device from --base. Times are of the op alone, medians (an op in place runs once); the busy share is not measured
and stated as all. The batches are then those to measure at, so give some that keep the GPU busy.

Needs PyTorch, 1.13 or later. Exit codes: 0, 1 no PyTorch, 2 usage, 3 a module that cannot be exported, 5 an output that
cannot be written; what the module raises itself ends with its traceback.
"""

import argparse
import copy
import importlib.util
import inspect
import json
import os
import sys

try:
    import torch
except ImportError:
    if __name__ == "__main__":
        sys.exit(f"export_torch.py: {sys.executable} has no PyTorch (Debian's package python3-torch is for /usr/bin/python3)")
    raise

import torch_profile
from from_recording import Converter
from recording import SCHEMA, BadRecording, Recording, View
from torch_recorder import Recorder, first_difference
from torch_refusals import CannotExport, definition, is_compiled, noting_precision, refusing_use

BATCHES = (2, 4, 7)


# --- Running the module -----------------------------------------------------------------------------------------------


def place(model, optimizer, device):
    """A copy of the model on the device, ties between parameters kept, and an optimizer over it."""
    made = optimizer if callable(optimizer) and not isinstance(optimizer, torch.optim.Optimizer) else None
    model, optimizer = copy.deepcopy((model, None if made else optimizer))
    moved = {}
    for module in model.modules():
        for store in (module._parameters, module._buffers):
            for name, tensor in list(store.items()):
                if tensor is not None and tensor not in moved:
                    there = tensor.detach().to(device)
                    is_parameter = isinstance(tensor, torch.nn.Parameter)
                    moved[tensor] = torch.nn.Parameter(there, tensor.requires_grad) if is_parameter else there
                setattr(module, name, moved.get(tensor))  # as a module that keeps lists of its own expects
    if made:
        return model, made(model.parameters())
    for group in optimizer.param_groups:
        if any(p not in moved for p in group["params"]):
            raise CannotExport("the optimizer has a parameter that is not the model's")
        group["params"] = [moved[p] for p in group["params"]]
    optimizer.state.clear()
    return model, optimizer


def check_tensors(batch, what):
    """The batch, which has to be a tuple of tensors; a tensor alone would be taken for its samples."""
    if not isinstance(batch, (tuple, list)) or not all(isinstance(t, torch.Tensor) for t in batch):
        raise CannotExport(f"{what} a tuple of tensors, not {type(batch).__name__}")
    return batch


def batch_of(batch, size, device):
    """A batch of `size` samples: made by the user's function, or of the example's samples, repeated as needed."""
    if callable(batch):
        return [t.to(device) for t in check_tensors(batch(size), "what makes a batch is to give")]
    check_tensors(batch, "the batch is to be")
    if any(t.dim() == 0 or len(t) != len(batch[0]) for t in batch):
        raise CannotExport("the batch is to be a tuple of tensors whose first dimensions agree")
    return [t[torch.arange(size) % len(t)].to(device) for t in batch]


def run_iteration(recorder, model, batch, loss_fn, optimizer, record):
    """One iteration from absent gradients. Gives its loss."""
    optimizer.zero_grad(set_to_none=True)
    recorder.phase = "forward" if record else None
    with refusing_use(recorder.refuse):
        loss = loss_fn(model, *batch)
    recorder.phase = "backward" if record else None
    loss.backward()
    recorder.phase = "optimizer" if record else None
    optimizer.step()
    recorder.phase = None
    return loss


def name_storages(recorder, model, optimizer, batch, loss_fn):
    """Tells the recorder what exists before the iteration. Inputs are called as loss_fn's parameters are."""
    names = {}
    for name, tensor in model.named_parameters():
        names[tensor] = name
        recorder.know(tensor, "param", name)
    for name, tensor in model.named_buffers():
        if recorder.counts(tensor):
            recorder.know(tensor, "buffer", name)
    for parameter, state in optimizer.state.items():
        for key, tensor in state.items():
            if isinstance(tensor, torch.Tensor) and recorder.counts(tensor):
                if parameter not in names:
                    raise CannotExport("the optimizer has a parameter that is not the model's")
                recorder.know(tensor, "optstate", f"{names[parameter]}:{key}")
    called = [p.name for p in inspect.signature(loss_fn).parameters.values() if p.kind != p.VAR_POSITIONAL]
    for i, tensor in enumerate(batch):
        recorder.know(tensor, "input", called[i + 1] if i + 1 < len(called) else f"input{i}")


def watch(model, batches, loss_fn, optimizer, device, clock):
    """The recorded second iteration on the first of `batches`. If there is another one, a third iteration on it has to
    be the second again."""
    recorder = Recorder(device, clock, definition(loss_fn))
    with recorder.watching(model):
        run_iteration(recorder, model, batches[0], loss_fn, optimizer, record=False)
        name_storages(recorder, model, optimizer, batches[0], loss_fn)
        loss = run_iteration(recorder, model, batches[0], loss_fn, optimizer, record=True)
        recorder.storages[recorder.know(loss, "activation")].name = "loss"
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                storage = recorder.storages[recorder.know(parameter.grad, "grad")]
                if storage.kind == "actgrad":
                    storage.kind, storage.name = "grad", name
        for other in batches[1:]:
            with recorder.repeating(other):
                run_iteration(recorder, model, other, loss_fn, optimizer, record=True)
    return recorder


# --- Sizes as laws in the batch ---------------------------------------------------------------------------------------


class Fit:
    """Laws through the values at the three batch sizes."""

    def __init__(self, batches):
        self.batches = batches

    def law(self, values, what):
        (n, m, _), (at_n, at_m, _) = self.batches, values
        slope, rest = divmod(at_m - at_n, m - n)
        fixed = at_n - slope * n
        if rest or fixed < 0 or slope < 0 or any(fixed + slope * b != v for b, v in zip(self.batches, values)):
            raise CannotExport(f"{what} is {', '.join(map(str, values))} at batches {', '.join(map(str, self.batches))}: "
                               f"{self.objection(values)}")
        return fixed, slope

    def objection(self, values):
        (n, m, last), (at_n, at_m, at_last) = self.batches, values
        grows_alike = at_m > at_n and (at_m - at_n) * (last - m) == (at_last - at_m) * (m - n)
        if grows_alike and (at_m - at_n) % (m - n):
            return "a fixed part plus a part of each sample's; let the batch size be that of a micro-batch"
        return "not a fixed part plus one per sample"

    def shape(self, shapes, what):
        return [self.law(sizes, f"a dimension of {what}") for sizes in zip(*shapes)]

    def pair(self, key, values, what):
        return dict(zip((f"{key}_fixed", f"{key}_per_sample"), self.law(values, what)))


def same(items, what):
    if any(item != items[0] for item in items):
        raise CannotExport(f"{what} depends on the batch size: {', '.join(map(str, items))}")
    return items[0]


def fit_storage(fit, storages):
    first = storages[0]
    what = f"{first.place}: what {first.maker} makes" if first.maker else f"storage {first.name or first.shape}"
    same([(s.kind, s.name, s.dtype, len(s.shape)) for s in storages], what)
    sizes = fit.law([s.bytes for s in storages], what)
    dims = fit.shape([s.shape for s in storages], what)
    kind = "actgrad" if first.kind == "grad" and sizes[1] else first.kind  # a part of something larger
    name = None if kind != first.kind else first.name
    return {"kind": kind, "name": name, "dtype": first.dtype, "bytes_fixed": sizes[0], "bytes_per_sample": sizes[1],
            "shape_example": list(first.shape), "shape_per_sample": [slope for _, slope in dims]}


def fit_sizes(fit, calls):
    """A recorded op. Attributes that vary with the batch are left out."""
    first = calls[0]
    storages = [(c.module, c.reads, c.creates, c.writes) for c in calls]
    same(storages, f"{first.place}: what {first.name} reads and writes")
    attrs = {key: value for key, value in first.attrs.items() if all(c.attrs.get(key) == value for c in calls)}
    if first.partial:
        attrs["partial_write"] = True
    return {"name": first.name, "phase": first.phase, "module": first.module, "inputs": first.reads,
            "outputs": first.creates + first.writes, "inplace": first.writes, "attrs": attrs,
            **fit.pair("flops", [c.flops for c in calls], f"{first.place}: FLOPs of {first.name}"),
            **fit.pair("bytes", [c.traffic for c in calls], f"{first.place}: traffic of {first.name}")}


def fit_op(fit, calls):
    """A recorded op and its views, but those of an op with an attribute that is not stated, or varies with the batch: none
    of planc's types is sure to mean the same."""
    first, op = calls[0], fit_sizes(fit, calls)
    stated = op["attrs"].keys() - {"partial_write"}
    exact = not any(c.unstated or c.attrs.keys() != stated for c in calls)
    views = {}
    for key in first.operands if exact else ():
        seen = [c.operands.get(key) for c in calls]
        views[key] = None
        if None not in seen and len({(o.transposed, o.channels_last) for o in seen}) == 1:
            what = f"{first.place}: %s of an operand of {first.name}"
            dims = fit.shape([o.shape for o in seen], what % "the shape")
            offset = fit.law([o.offset for o in seen], what % "the start")
            views[key] = View(seen[0].storage, tuple(dims), offset, seen[0].transposed, seen[0].channels_last)
    return op, views


def recording_of(recorders, batches, name, optimizer):
    fit = Fit(batches)
    place, names = first_difference([r.calls for r in recorders])
    if names:
        raise CannotExport(f"{place}: the list of ops depends on the batch size: {', '.join(names)} at {batches}")
    same([len(r.storages) for r in recorders], "the number of storages")
    storages = [fit_storage(fit, at) for at in zip(*(r.storages for r in recorders))]
    fitted = [fit_op(fit, calls) for calls in zip(*(r.calls for r in recorders))]
    for (op, _), call in zip(fitted, recorders[0].calls):
        for s in op["inplace"]:
            kind, stated = storages[s]["kind"], storages[s]["name"]
            if kind == "input" or kind == "param" and op["phase"] != "optimizer":
                raise CannotExport(f"{call.place}: {op['name']} writes the {kind} {stated}, which a graph cannot")
    value = {"schema": SCHEMA, "model": name, "source": f"PyTorch {torch.__version__} by export_torch.py",
             "optimizer": type(optimizer).__name__, "batch_example": batches[0], "tensors": storages,
             "ops": [op for op, _ in fitted]}
    return Recording(value, [views for _, views in fitted])


# --- Exporting --------------------------------------------------------------------------------------------------------


def record(model, batch, loss_fn, optimizer, *, name=None, device="meta", batches=BATCHES, clock=None):
    """One iteration as a Recording, and what the clock measured: for each batch size, of each op."""
    if len(batches) != 3 or not 0 < batches[0] < batches[1] < batches[2]:
        raise CannotExport("three ascending batch sizes are needed")
    if is_compiled(model):
        raise CannotExport(f"{definition(loss_fn)}: what torch.compile makes of a module is not recorded; give the "
                           "module as it was before")
    name = name or type(model).__name__
    model, optimizer = place(model, optimizer, device)
    recorders = []
    for n in batches:  # the third iteration is alike at all sizes, so it is held against the second at one
        given = [batch_of(batch, n, device) for _ in range(1 if recorders else 2)]
        recorders.append(watch(model, given, loss_fn, optimizer, device, clock))
    return recording_of(recorders, batches, name, optimizer), [[c.cost for c in r.calls] for r in recorders]


def check_parts(made):
    """What the user's function has given, which has to be all that is exported."""
    parts = made if isinstance(made, (tuple, list)) and len(made) == 4 else (None,) * 4
    model, _, loss_fn, optimizer = parts
    if not isinstance(model, torch.nn.Module) or not callable(loss_fn) or not (
            callable(optimizer) or isinstance(optimizer, torch.optim.Optimizer)):
        raise CannotExport("the function is to give a module, a batch, a loss function and an optimizer, see --help")
    return parts


def export(model, batch, loss_fn, optimizer, path, *, profile=None, base=None, batches=BATCHES, **options):
    """Writes the graph of one iteration to `path`, and what its ops take to `profile`; see the heading. `options` are
    those of record()."""
    description = read_profile(base) if profile else None
    clock = torch_profile.Clock() if profile else None
    recording, costs = record(model, batch, loss_fn, optimizer, batches=batches, clock=clock, **options)
    converter = Converter(recording, "Written by export_torch.py from a recorded PyTorch training iteration.")
    converter.run().write(path)
    if profile:
        torch_profile.write(profile, description, converter.made, batches, costs)


def read_profile(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise CannotExport(f"{path}: {error}") from error


# --- Command line -----------------------------------------------------------------------------------------------------


def load_function(parser, place):
    path, _, name = place.rpartition(":")
    if not path:
        parser.error(f"{place}: FILE.py:FUNCTION is expected")
    spec = importlib.util.spec_from_file_location("exported", path)
    if spec is None or not os.path.exists(path):
        parser.error(f"{path}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        parser.error(f"{path} has no {name}")
    return getattr(module, name)


def integers(text):
    return tuple(int(part) for part in text.split(","))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="FILE.py:FUNCTION")
    parser.add_argument("-o", metavar="OUT.yaml", required=True)
    parser.add_argument("--name", help="the graph's name (default: the model's class)")
    parser.add_argument("--device", choices=("meta", "cpu", "cuda"), default="meta")
    parser.add_argument("--batches", metavar="B,B,B", type=integers, default=BATCHES, help="default: 2,4,7")
    parser.add_argument("--profile", metavar="OUT.json", help="measure the ops on a GPU")
    parser.add_argument("--base", metavar="PROFILE.json", help="the profile whose device description --profile takes")
    options = parser.parse_args(arguments)
    if (options.profile is None) != (options.base is None):
        parser.error("--profile and --base belong together")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU")
    if options.profile and options.device != "cuda":
        parser.error("--profile needs --device cuda")
    try:
        with noting_precision():
            make = load_function(parser, options.function)
            export(*check_parts(make()), options.o, name=options.name, device=options.device, batches=options.batches,
                   profile=options.profile, base=options.base)
    except (CannotExport, BadRecording) as error:
        print(f"export_torch.py: {options.function}: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"export_torch.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
