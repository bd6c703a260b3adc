"""Finds the exporter's modules: beside this package where it is installed, in graphs/ of the source tree otherwise."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = (os.path.join(HERE, "graphs"), os.path.join(HERE, "..", "..", "..", "graphs"))

sys.path[:0] = [os.path.normpath(place) for place in PLACES if os.path.exists(os.path.join(place, "torch_recorder.py"))][:1]

import torch_refusals  # noqa: E402 (the path comes first)

# What this package calls is not what the user wrote.
for folder in (HERE, os.path.dirname(__file__)):  # code knows the path that it was found by
    torch_refusals.EXPORTER.update(os.path.join(folder, name) for name in os.listdir(HERE) if name.endswith(".py"))
