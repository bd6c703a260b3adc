"""What calls allocate and free themselves, beside what they give: the memory that a plan has to leave them as workspace.

On the processor the extension sees each allocation. On a GPU PyTorch counts the bytes that are allocated, and the most of them.
"""

import torch

from .extension import plain_calls
from torch_recorder import called

ALIGNMENT = 64  # of what a call has in its workspace; as in csrc/torch_arena.h


def freed_within(allocations):
    """Of allocations (address, bytes; none where it is freed) those that are freed among them, as the same with numbers in the
    place of addresses."""
    open_at, ends = {}, {}
    for i, (address, size) in enumerate(allocations):
        if size > 0:
            open_at[address] = i
        elif address in open_at:
            ends[i] = open_at.pop(address)
    freed = set(ends.values())
    return [(ends.get(i, i), size) for i, (_, size) in enumerate(allocations) if i in freed or i in ends]


def first_fit(allocations):
    """The bytes in which such allocations find place, each where it is free first, as they do when a call is followed."""
    held, most = {}, 0
    for number, size in allocations:
        if size <= 0:
            del held[number]
            continue
        start = 0
        for taken, end in sorted(held.values()):
            if taken >= start + size:
                break
            start = max(start, -(-end // ALIGNMENT) * ALIGNMENT)
        held[number] = start, start + size
        most = max(most, start + size)
    return most


class OnProcessor:
    """A clock of a Recorder's (torch_recorder.py) that measures the bytes that a call works in."""

    def __init__(self, module):
        self.allocations = module.allocations

    def run(self, function, args, kwargs):
        result, allocations = self.allocations(called, (function, args, kwargs))
        return result, first_fit(freed_within(allocations))


class OnGpu:
    """The same. What is there before or after a call is none of its."""

    def run(self, function, args, kwargs):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = called(function, args, kwargs)
        return result, max(0, torch.cuda.max_memory_allocated() - max(before, torch.cuda.memory_allocated()))


def clock_of(device):
    """What measures it on a device; None where nothing does."""
    if device == "cuda":
        return OnGpu()
    module = plain_calls() if device == "cpu" else None
    return OnProcessor(module) if module and module.see_allocations() else None
