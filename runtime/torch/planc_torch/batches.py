"""The graph of a step that was recorded at three batch sizes: its sizes are laws in the batch. Two give each law, and the third has
to agree. It is for plans of any batch, which are not followed: calls are told apart by shapes, and these are of one."""

import torch

from export_torch import Fit, fit_sizes, fit_storage, same
from from_recording import Converter
from recording import SCHEMA, Recording
from torch_recorder import first_difference
from torch_refusals import CannotExport

from .step_graph import kind_of


def covering(fit, values):
    """The law of a workspace, as a fixed part and one per sample. Where it follows none, a part per sample that covers it at all batches
    that were recorded."""
    try:
        return fit.law(values, "scratch")
    except CannotExport:
        return 0, max(-(-value // batch) for value, batch in zip(values, fit.batches))


class BatchGraph:
    """`graphs`: the step's StepGraph at each of `batches`. Arguments are tensors of the graph, of kind input."""

    def __init__(self, graphs, batches):
        self.fit, self.batches, self.name = Fit(batches), batches, graphs[0].name
        recorders = [graph.recorder for graph in graphs]
        self.calls = recorders[0].calls
        place, names = first_difference([recorder.calls for recorder in recorders])
        if names:
            raise CannotExport(f"{place}: the calls depend on the batch size: {', '.join(names)} at {', '.join(map(str, batches))}")
        self.used = sorted({s for call in self.calls for s in (*call.reads, *call.creates, *call.writes)})
        self.numbers = {s: n for n, s in enumerate(self.used)}
        same([len(recorder.storages) for recorder in recorders], "the number of tensors")
        value = {"schema": SCHEMA, "model": self.name, "source": f"PyTorch {torch.__version__} by planc_torch", "optimizer": "",
                 "batch_example": batches[0],
                 "tensors": [self.tensor([recorder.storages[s] for recorder in recorders]) for s in self.used],
                 "ops": [self.op(calls) for calls in zip(*(recorder.calls for recorder in recorders))]}
        self.recording = Recording(value, [{} for _ in self.calls])

    def tensor(self, storages):
        fitted = fit_storage(self.fit, storages)
        kind = fitted["kind"]
        return {**fitted, "kind": kind if kind == "input" else kind_of(storages[0])}

    def op(self, calls):
        op = fit_sizes(self.fit, calls)
        for key in ("inputs", "outputs", "inplace"):
            op[key] = [self.numbers[s] for s in op[key]]
        fixed, per_sample = covering(self.fit, [call.cost or 0 for call in calls])
        return {**op, "workspace_fixed": fixed, "workspace_per_sample": per_sample}

    def write(self, path):
        told = [{"line": call.place or ""} for call in self.calls]
        converter = Converter(self.recording, "Written by planc_torch from a training step recorded at three batch sizes.", told)
        converter.graph.header["batch"] = self.batches[0]
        converter.run().write(path)
