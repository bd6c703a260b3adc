"""The memory that PyTorch's caching allocator asks the driver for as kernels run, its cache empty at first.

Requests are rounded up to 512 bytes. Those up to 1 MiB share segments of 2 MiB; larger ones, segments of 20 MiB up to
10 MiB, else of their size in whole 2 MiB. The best fit is taken and split where enough is left; what is free is merged."""

MIB = 1 << 20


class Allocator:
    def __init__(self):
        self.free = {True: [], False: []}  # by smallness: [segment, offset, bytes]
        self.segments = []                 # bytes of each, in order

    def take(self, size):
        size = -(-size // 512) * 512
        small = size <= MIB
        free = self.free[small]
        block = min((block for block in free if block[2] >= size), key=lambda block: block[2], default=None)
        if block:
            free.remove(block)
        else:
            segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            self.segments.append(segment)
            block = [len(self.segments) - 1, 0, segment]
        if block[2] - size >= (512 if small else MIB):
            free.append([block[0], block[1] + size, block[2] - size])
            block[2] = size
        return small, block

    def give(self, taken):
        small, block = taken
        free = self.free[small]
        for other in [other for other in free if other[0] == block[0]]:
            if other[1] + other[2] == block[1] or block[1] + block[2] == other[1]:
                free.remove(other)
                block = [block[0], min(block[1], other[1]), block[2] + other[2]]
        free.append(block)


def segments_of(phases):
    """For each list of kernels, run one after the other, the bytes of the segments that each of its kernels waits for.
    What lives from one iteration to the next was there before."""
    allocator, held, last, out = Allocator(), {}, {}, []
    for index, kernel in enumerate(kernel for kernels in phases for kernel in kernels):
        last.update({tensor.root: index for tensor in kernel.reads + kernel.writes})
    index = 0
    for kernels in phases:
        asked = []
        for kernel in kernels:
            before = len(allocator.segments)
            touched = dict.fromkeys(tensor.root for tensor in kernel.writes + kernel.reads)
            for tensor in touched:
                if tensor.kind == "activation" and tensor not in held:
                    held[tensor] = allocator.take(tensor.bytes())
            for tensor in touched:
                if tensor in held and last[tensor] == index:
                    allocator.give(held.pop(tensor))
            index += 1
            asked.append(allocator.segments[before:])
        out.append(asked)
    return out
