"""The graph of a recorded step (planc-graph(5), RECORDED STEPS), and what of its memory is not in it."""

import torch

from .calls import END, OUTSIDE
from from_recording import Converter
from recording import SCHEMA, Recording
from torch_refusals import CannotExport


def kind_of(storage):
    return storage.kind if storage.kind in ("param", "buffer", "optstate", "temp") else "activation"


def value_of(storage):
    return {"kind": kind_of(storage), "name": storage.name, "dtype": storage.dtype, "bytes_fixed": storage.bytes,
            "bytes_per_sample": 0, "shape_example": list(storage.shape), "shape_per_sample": [0] * len(storage.shape)}


def short(call):
    return call.name.removeprefix("aten.").split(".")[0]


class StepGraph:
    """The graph of a recorded step, and the bytes of what is not in it."""

    def __init__(self, recorder, name):
        self.recorder, self.calls, self.name = recorder, recorder.calls, name
        self.micro_batches = recorder.division.number
        used = {s for call in self.calls for s in (*call.reads, *call.creates, *call.writes)}
        self.planned = [i for i, s in enumerate(recorder.storages) if s.kind != "input" and i in used]
        self.numbers = {s: n for n, s in enumerate(self.planned)}
        for call in self.calls:
            for s in call.writes:
                if s not in self.numbers:
                    raise CannotExport(f"{call.place}: {call.name} writes a tensor that the step was given; make it a copy, "
                                       "or a tensor that stays")
        for call in self.calls:
            for s in call.creates:
                storage = recorder.storages[s]
                storage.name = storage.name or f"{call.module or call.phase}:{short(call)}"
        value = {"schema": SCHEMA, "model": name, "source": f"PyTorch {torch.__version__} by planc_torch", "optimizer": "",
                 "batch_example": 1, "tensors": [value_of(recorder.storages[s]) for s in self.planned],
                 "ops": [self.op(call) for call in self.calls]}
        self.recording = Recording(value, [{} for _ in self.calls])
        self.scratch_bytes = max(call.cost or 0 for call in self.calls) if recorder.knows_scratch else None
        self.outside_bytes = sum(s.bytes for s in recorder.storages if s.kind == "input")
        self.outside_bytes += sum(recorder.seen_bytes[cdata] for cdata in recorder.standing if cdata not in recorder.ids)
        self.outside_bytes += sum(recorder.storages[s].bytes for s in recorder.results if s in self.numbers)

    def op(self, call):
        planned = [[s for s in side if s in self.numbers] for side in (call.reads, call.creates, call.writes)]
        reads, creates, writes = ([self.numbers[s] for s in side] for side in planned)
        return {"name": call.name, "phase": call.phase, "module": call.module, "inputs": reads, "outputs": creates + writes,
                "inplace": writes, "attrs": {**call.attrs, **({"partial_write": True} if call.partial else {})},
                "flops_fixed": call.flops, "bytes_fixed": call.traffic, "workspace_fixed": call.cost or 0}

    def followed(self, call):
        """What planc_torch.follow knows a call by."""
        ends = {"device": self.recorder.device} if call.name == END else {}
        if ends and self.micro_batches > 1:
            ends["micro_batches"] = self.micro_batches
        allocations = {"allocations": call.allocated} if call.allocated else {}
        updates = {"updates": 1} if call.updates else {}
        return {"call": call.described, "line": call.place or "", "tensors": self.listed(call.given),
                "results": self.listed(call.gives), **allocations, **updates, **ends}

    def sizes(self):
        """Bytes of the tensors in the graph."""
        return [self.recorder.storages[s].bytes for s in self.planned]

    def listed(self, storages):
        return [self.numbers.get(s, OUTSIDE) for s in storages]

    def write(self, path):
        converter = Converter(self.recording, "Written by planc_torch from a recorded training step.",
                              [self.followed(call) for call in self.calls])
        converter.run().write(path)
