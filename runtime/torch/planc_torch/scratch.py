"""What calls allocate and free themselves, beside what they give: the memory that a plan has to leave them as workspace.

On the processor the extension sees each allocation. On a GPU PyTorch counts the bytes that are allocated, and the most of them.
"""

import torch

from .extension import plain_calls
from torch_recorder import called

SCRATCH, KEPT = -1, -2  # uses of an allocation that is no result's; as in csrc/placing.h
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


def uses(allocations, results):
    """Of each allocation (as above) its bytes and what becomes of it: the number of the result whose memory it is, by the
    addresses of these, SCRATCH where it is freed, KEPT where somebody else has it. A flat list."""
    open_at, found = {}, []
    for address, size in allocations:
        if size > 0:
            open_at[address] = len(found)
            found.append([size, KEPT])
        elif address in open_at:
            found[open_at.pop(address)][1] = SCRATCH
    for number, address in enumerate(results):
        if address in open_at:
            found[open_at.pop(address)][1] = number
    return [part for allocation in found for part in allocation]


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
    """A clock of a Recorder's (torch_recorder.py) that measures the bytes that a call works in. `seen`: the last call's
    allocations."""

    def __init__(self, module):
        self.allocations, self.seen = module.allocations, []

    def run(self, function, args, kwargs):
        result, self.seen = self.allocations(called, (function, args, kwargs))
        return result, first_fit(freed_within(self.seen))


class OnGpu:
    """The same. What is there before or after a call is none of its. Single allocations are not seen."""

    seen = ()

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
