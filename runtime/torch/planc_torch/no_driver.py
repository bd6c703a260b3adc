"""Lets PyTorch work with a GPU's tensors where there is none: what it asks of the driver is answered by a device's
description.

Autograd asks before a backward pass whether the process has the GPU in use, and PyTorch raises where it sees none, though
tensors without memory need none. That question has its answer replaced by another one that is always yes. Where it stands
in the table of such answers the header tells that comes with PyTorch.
"""

import ctypes
import json
import os
import re
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import torch

from .exporter import TORCH
from torch_refusals import replaced

HEADER = os.path.join(TORCH, "include", "ATen", "detail", "AcceleratorHooksInterface.h")
LIBRARY = os.path.join(TORCH, "lib", "libtorch_cpu.so")
QUESTION, ALWAYS_YES = "hasPrimaryContext", "isBuilt"
LARGEST_TABLE = 128
# What PyTorch says where it has none.
NO_DRIVER = "CUDA error", "NVIDIA driver", "not compiled with CUDA"
SUPPORTS_BF16 = (8, 0)
RANDOM_STATE_BYTES = 16


class Gpu:
    """The planned one, of a description: its name, memory and, where its properties lie beside the description, its compute
    capability, else None."""

    def __init__(self, path, described):
        self.name, self.memory_bytes = str(described["device"]["name"]), int(described["device"]["memory_bytes"])
        self.processors = described.get("compute", {}).get("processors", 0)
        self.capability = None
        place = os.path.join(os.path.dirname(path), f"{self.name}.properties.json")
        if os.path.exists(place):
            with open(place, encoding="utf-8") as file:
                version = json.load(file)["properties"]["deviceVer"]
            self.capability = version // 100, version % 100 // 10

    def properties(self, *_):
        major, minor = self.capability or SUPPORTS_BF16
        return SimpleNamespace(name=self.name, major=major, minor=minor, total_memory=self.memory_bytes,
                               multi_processor_count=self.processors)


def has_driver():
    """Whether there is a GPU to ask, whatever torch.cuda is made to say."""
    return torch.cuda._is_compiled() and torch._C._cuda_getDeviceCount() > 0


def answers(gpu):
    """What torch.cuda's functions give."""
    def says(value):
        return lambda *args, **kwargs: value

    capability = gpu.capability or SUPPORTS_BF16
    nothing = ("init", "synchronize", "empty_cache", "ipc_collect", "set_device", "manual_seed", "manual_seed_all", "seed",
               "seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
               "reset_accumulated_memory_stats", "set_per_process_memory_fraction")
    empty = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    return {"is_available": says(True), "is_initialized": says(True), "device_count": says(1), "current_device": says(0),
            "is_bf16_supported": says(capability >= SUPPORTS_BF16), "get_device_capability": says(capability),
            "get_device_name": says(gpu.name), "get_device_properties": gpu.properties,
            "mem_get_info": says((gpu.memory_bytes, gpu.memory_bytes)),
            "get_rng_state": lambda *_: torch.zeros(RANDOM_STATE_BYTES, dtype=torch.uint8),
            **dict.fromkeys(nothing, says(None)), **dict.fromkeys(empty, says(0))}


@contextmanager
def answering(gpu):
    """Within, torch.cuda says that this GPU is there."""
    with ExitStack() as stack:
        for name, answer in answers(gpu).items():
            if hasattr(torch.cuda, name):
                stack.enter_context(replaced(torch.cuda, name, lambda _, answer=answer: answer))
        for name, value in (("device_count", 1), ("current_device_index", 0)):
            if hasattr(getattr(torch, "accelerator", None), name):
                stack.enter_context(replaced(torch.accelerator, name, lambda _, value=value: lambda *args: value))
        yield


# --- The question before a backward pass ------------------------------------------------------------------------------


def places_in_table():
    """By name, where the functions of PyTorch's accelerators stand in their table: in the order of the header, after the
    two that a destructor takes."""
    with open(HEADER, encoding="utf-8") as file:
        names = re.findall(r"^\s*virtual [^;{]*?(~?\w+)\(", file.read(), re.MULTILINE)
    if not names or not names[0].startswith("~"):
        raise OSError(f"{HEADER} is not as expected")
    return {name: i + 1 for i, name in enumerate(names)}


@contextmanager
def answering_autograd():
    """Within, backward passes run without a driver."""
    if torch.cuda._is_compiled() and not has_driver():
        places = places_in_table()
        library = ctypes.CDLL(LIBRARY)
        library._ZN2at6detail12getCUDAHooksEv.restype = ctypes.c_void_p
        hooks = ctypes.cast(library._ZN2at6detail12getCUDAHooksEv(), ctypes.POINTER(ctypes.c_void_p))
        original = hooks[0]
        before = 2 * ctypes.sizeof(ctypes.c_void_p)  # what stands before a table's first function
        words = ctypes.cast(original - before, ctypes.POINTER(ctypes.c_void_p))
        table = (ctypes.c_void_p * LARGEST_TABLE)(*words[:LARGEST_TABLE])
        table[2 + places[QUESTION]] = table[2 + places[ALWAYS_YES]]
        hooks[0] = ctypes.addressof(table) + before
        try:
            yield
        finally:
            hooks[0] = original
    else:
        yield
