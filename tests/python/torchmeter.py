"""Counts the bytes of all storages that a PyTorch program has seen, after each call, and where the extension is there what a call
has while it runs, but for what it has in a plan's arena."""

from contextlib import contextmanager

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from planc_torch.calls import tensors_on
from planc_torch import following
from planc_torch.extension import plain_calls
from torch_recorder import called, storage_of

STORAGE = type(storage_of(torch.empty(1)))


def arenas():
    """What followed steps have on the host, which on the processor is memory like any other."""
    return {storage_of(memory)._cdata for iteration in following.SEEN.iterations for memory in
            iteration.memory.streams.host.values()}


def most_at_once(allocations):
    """Of what is allocated among (address, bytes), no bytes where it is freed."""
    held, now, most = {}, 0, 0
    for address, size in allocations:
        now += size - (0 if size else held.pop(address, 0))
        if size:
            held[address] = size
        most = max(most, now)
    return most


class Meter(TorchDispatchMode):
    """Counts while `is_on`. `peak` is the most bytes at once, `made` the bytes of all that calls gave anew. What was there before
    and is touched by no call does not count, nor do host arenas. Whoever follows plans takes operands away when their call is
    over: what it does is seen by a meter that was entered before."""

    def __init__(self, device="cpu", is_on=True):
        super().__init__()
        self.is_on, self.device, self.seen, self.peak, self.made = is_on, device, {}, 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not self.is_on:
            return called(function, args, kwargs or {})
        self.see((args, kwargs))
        module = plain_calls()
        if module and module.see_allocations():
            before = self.bytes()
            result, allocations = module.allocations(called, (function, args, kwargs or {}))
            self.peak = max(self.peak, before + most_at_once(allocations))
        else:
            result = called(function, args, kwargs or {})
        self.made += self.see(result)
        self.peak = max(self.peak, self.bytes())
        return result

    @contextmanager
    def counting(self):
        """Within, it counts, peak and what is made from nothing on."""
        self.peak, self.made, self.is_on = 0, 0, True
        try:
            yield self
        finally:
            self.is_on = False

    def see(self, value):
        """The bytes of what was not seen before."""
        new = 0
        with following.SEEN.here.looking_in():  # a meter reads nothing
            storages = [storage_of(tensor) for tensor in tensors_on(self.device, value)]
            beside = arenas() if storages else ()
        for storage in storages:
            if storage._cdata not in self.seen and storage._cdata not in beside:
                self.seen[storage._cdata] = StorageWeakRef(storage)
                new += storage.nbytes()
        return new

    def bytes(self):
        module = plain_calls()
        total, gone = module.bytes_of(self.seen) if module else self.bytes_in_python()
        for cdata in gone:
            del self.seen[cdata]
        return total

    def bytes_in_python(self):
        """Where no storage only says that it has bytes."""
        there = {cdata: STORAGE._new_with_weak_ptr(seen.cdata) for cdata, seen in self.seen.items()}
        return (sum(storage.nbytes() for storage in there.values() if storage is not None),
                [cdata for cdata, storage in there.items() if storage is None])
