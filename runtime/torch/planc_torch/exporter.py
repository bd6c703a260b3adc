"""Finds the exporter's modules: beside this package where it is installed, in graphs/ of the source tree otherwise."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = (os.path.join(HERE, "graphs"), os.path.join(HERE, "..", "..", "..", "graphs"))

FOUND = next(os.path.normpath(place) for place in PLACES if os.path.exists(os.path.join(place, "torch_recorder.py")))
sys.path.insert(0, FOUND)

import torch_costs
import torch_refusals
from from_recording import STOCHASTIC
from torch_refusals import TORCH

__all__ = ("STOCHASTIC", "TORCH", "torch_costs")

# What this package calls is not what the user wrote.
for folder in (HERE, os.path.dirname(__file__)):  # code knows the path that it was found by
    torch_refusals.EXPORTER.update(os.path.join(folder, name) for name in os.listdir(HERE) if name.endswith(".py"))
