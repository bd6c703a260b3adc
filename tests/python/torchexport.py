"""What the tests of graphs/export_torch.py share. Where this Python has no PyTorch and Debian's has, that one runs
them."""

import os
import sys

from pythons import DEBIAN, has_torch

try:
    import torch
except ImportError:
    if sys.executable != DEBIAN and os.path.exists(DEBIAN) and has_torch(DEBIAN):
        os.execv(DEBIAN, [DEBIAN, "-B", *sys.argv])
    print("skipped: no torch (Debian: python3-torch)\nRan 0 tests")
    sys.exit(0)

from graphtest import Graph
from torchmodels import sgd

import export_torch
import from_recording


def graph_of(recording):
    return Graph(from_recording.Converter(recording, "").run().text())


def total(model, *inputs):
    return model(*inputs).sum()


def exported(module, *batch, optimizer=sgd, loss=total, **options):
    """The graph of a module whose output is summed up, or of another loss."""
    recording, _ = export_torch.record(module, batch, loss, optimizer, **options)
    return graph_of(recording)


def types(graph, phase=None):
    return [op["type"] for op in graph.ops if phase in (None, op["phase"])]


class Step(torch.nn.Module):
    """A module of one linear layer and one buffer, whose forward pass is `function(module, *inputs)`."""

    def __init__(self, function, width=4):
        super().__init__()
        self.function, self.kept = function, None
        self.fc = torch.nn.Linear(width, width)
        self.register_buffer("seen", torch.ones(width))

    def forward(self, *inputs):
        return self.function(self, *inputs)
