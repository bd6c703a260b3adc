"""The graph of a step that was recorded at three batch sizes: its sizes are laws in the batch. Two give each law, and the third has
to agree. It is for plans of any batch, which are not followed: calls are told apart by shapes, and these are of one.

Such plans may be in rounds, with one update after them: so gradients are known as what rounds add up, and what the step makes of a
round's results behind the update, as the loss that it returns, is made at the end of the round."""

from dataclasses import replace

import torch

from export_torch import Fit, fit_sizes, fit_storage, same
from from_recording import Converter
from recording import SCHEMA, Recording
from torch_recorder import Call, first_difference
from torch_refusals import CannotExport

from .calls import END
from .step_graph import kind_of


def covering(fit, values):
    """The law of a workspace, as a fixed part and one per sample. Where it follows none, a part per sample that covers it at all batches
    that were recorded."""
    try:
        return fit.law(values, "scratch")
    except CannotExport:
        return 0, max(-(-value // batch) for value, batch in zip(values, fit.batches))


GRADIENT = ".grad"  # what the names of gradients end in that are there when the step has ended


def gradients_of(recorders):
    """What backward passes make anew that an update reads, or that is a parameter's; as large at each batch. What persists is state."""
    first = recorders[0]
    made = {s for call in first.calls if call.phase == "backward" for s in call.creates}
    read = {s for call in first.calls if call.updates for s in call.reads}
    return {s for s in made if len({recorder.storages[s].bytes for recorder in recorders}) == 1 and
            kind_of(first.storages[s]) == "activation" and (s in read or (first.storages[s].name or "").endswith(GRADIENT))}


def end_of_round(calls, own):
    """Behind which call there are none but such as need nothing of a round's own but what they make: those that clip gradients, say."""
    needed, end = set(), len(calls)
    for n in range(len(calls) - 1, -1, -1):
        needed = (needed | {*calls[n].reads, *calls[n].writes}) - set(calls[n].creates)
        if own.isdisjoint(needed):
            end = n
    return end


def as_in_rounds(recorder, gradients):
    """The step's calls. Those of a round that are made behind the first update, and need nothing that updates make, come before it;
    what is made of gradients alone is done with the update."""
    calls, storages, end = recorder.calls[:-1], recorder.storages, recorder.calls[-1]
    early = [call for call in calls if call.phase != end.phase]
    own = {s for s, storage in enumerate(storages) if storage.kind == "input"}
    own |= {s for call in early for s in call.creates if s not in gradients}
    behind = calls[len(early):]
    last = end_of_round(early, own)
    late = [replace(call, phase=end.phase) for call in early[last:]]
    own -= {s for call in late for s in call.creates}
    del early[last:]
    for call in behind:
        if call.updates or not call.reads or not own.issuperset(call.reads + call.writes):
            late.append(call)
            own -= set(call.writes)
        else:
            early.append(replace(call, phase="backward"))
            own |= set(call.creates)
    left = [s for s in end.reads if s in own]
    if left:
        early.append(Call(END, "backward", "", end.place, reads=left))
    return [*early, *late, replace(end, reads=[s for s in end.reads if s not in own])]


class BatchGraph:
    """`graphs`: the step's StepGraph at each of `batches`. Arguments are tensors of the graph, of kind input."""

    def __init__(self, graphs, batches):
        self.fit, self.batches, self.name = Fit(batches), batches, graphs[0].name
        recorders = [graph.recorder for graph in graphs]
        place, names = first_difference([recorder.calls for recorder in recorders])
        if names:
            raise CannotExport(f"{place}: the calls depend on the batch size: {', '.join(names)} at {', '.join(map(str, batches))}")
        same([len(recorder.storages) for recorder in recorders], "the number of tensors")
        self.gradients = gradients_of(recorders)
        in_rounds = [as_in_rounds(recorder, self.gradients) for recorder in recorders]
        same([len(calls) for calls in in_rounds], "the number of calls of a round")
        self.calls = in_rounds[0]
        self.used = sorted({s for call in self.calls for s in (*call.reads, *call.creates, *call.writes)})
        self.numbers = {s: n for n, s in enumerate(self.used)}
        value = {"schema": SCHEMA, "model": self.name, "source": f"PyTorch {torch.__version__} by planc_torch", "optimizer": "",
                 "batch_example": batches[0],
                 "tensors": [self.tensor(s, [recorder.storages[s] for recorder in recorders]) for s in self.used],
                 "ops": [self.op(calls) for calls in zip(*in_rounds)]}
        if not any(tensor["bytes_per_sample"] for tensor in value["tensors"]):
            raise CannotExport(f"no tensor of the step is larger at batch {batches[2]} than at {batches[0]}; let the function that gives "
                               "the arguments give them at the batch size that it is given")
        self.recording = Recording(value, [{} for _ in self.calls])

    def tensor(self, number, storages):
        fitted = fit_storage(self.fit, storages)
        if number in self.gradients:
            return {**fitted, "kind": "grad", "name": storages[0].name and storages[0].name.removesuffix(GRADIENT)}
        return {**fitted, "kind": storages[0].kind if storages[0].kind == "input" else kind_of(storages[0])}

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
