"""Reads a folder of G10's data: the kernels of one training iteration as its simulator has them.

kernels.tsv has the kernels in order, tensors.tsv the tensors that they read and write. A tensor with `global` lives from
one iteration to the next: it is a parameter where no kernel writes it, else state; a kernel that reads and writes it
updates it, which no recompute may do again. Of the others, one that is read before it is written is fed; one of a single
kernel, which writes it, is its workspace unless it is all that the kernel makes. What loads the next batch does not run twice.

G10's setting: 40 GiB on the device, 15.754 GB/s each way, cycles at 1.2 GHz; it never computes again. What finds no room
in its 128 GiB on the host goes to an SSD at 3.2 GB/s, past the host where there is none; here it is a storage behind the
host.
"""

import csv
import os

from elsewhere_iteration import BadData, Iteration, number
from graphfile import legal_name

GIB = 2**30
PCIE = 15_754_000_000
SSD = 3_200_000_000
KERNEL_COLUMNS = ("id", "name", "cycles_1.2GHz", "in", "out")
TENSOR_COLUMNS = ("id", "global", "bytes")
# By what a kernel's name starts with. The rest are element by element.
CLASSES = {"Conv2d": "conv", "Linear": "gemm", "BatchMatMul": "gemm", "BatchNorm2d": "norm", "MaxPool2d": "pool",
           "AdaptiveAvgPool2d": "pool", "Sum": "reduction", "Concat": "copy", "GatherV2": "copy", "LoadData": "copy"}


def rows(folder, name, columns):
    """The rows of a table, each with the place to tell of it."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="ascii", newline="") as file:
            table = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{name}: not a table of ASCII text: {error}") from error
    if not table or tuple(table[0]) != columns:
        raise BadData(f"{name}:1: the columns {', '.join(columns)} are expected")
    for line, row in enumerate(table[1:], 2):
        if len(row) != len(columns):
            raise BadData(f"{name}:{line}: {len(columns)} columns are expected")
    return [(f"{name}:{line}", dict(zip(columns, row))) for line, row in enumerate(table[1:], 2)]


class Kernel:
    def __init__(self, place, row, tensors):
        self.type, self.id = row["name"], number(row["id"], place)
        if not self.type.replace("_", "").isalnum() or legal_name("g10." + self.type) != "g10." + self.type:
            raise BadData(f"{place}: a kernel's name is of up to 251 letters, digits and _")
        self.ns = round(number(row["cycles_1.2GHz"], place) / 1.2)
        self.reads, self.writes = ([number(id, place) for id in row[side].split(",") if id] for side in ("in", "out"))
        for id in self.reads + self.writes:
            if id not in tensors:
                raise BadData(f"{place}: tensor {id} is not in tensors.tsv")
        for side in (self.reads, self.writes):
            if len(set(side)) != len(side):
                raise BadData(f"{place}: a tensor stands twice")

    def class_(self):
        if "Apply_Grad" in self.type:
            return "optimizer"
        return CLASSES.get(self.type.split("_")[0], "elementwise")


def read_tensors(folder):
    """(bytes, global) by id."""
    tensors = {}
    for place, row in rows(folder, "tensors.tsv", TENSOR_COLUMNS):
        id, size = number(row["id"], place), number(row["bytes"], place)
        if id in tensors or row["global"] not in ("0", "1") or not size:
            raise BadData(f"{place}: an id of its own, 0 or 1, and bytes are expected")
        tensors[id] = size, row["global"] == "1"
    return tensors


def workspaces(kernels, tensors):
    """The tensors of a single kernel that writes them; the first result of one that makes nothing else is not."""
    users = {}
    for kernel in kernels:
        for id in set(kernel.reads + kernel.writes):
            users.setdefault(id, []).append(kernel)
    alone = {id for id, of in users.items() if len(of) == 1 and id in of[0].writes and not tensors[id][1]}
    for kernel in kernels:
        if kernel.writes and alone.issuperset(kernel.writes):
            alone.remove(kernel.writes[0])
    return alone


def kind_of(id, is_global, fed, written):
    if is_global:
        return "state" if id in written else "param"
    if id in fed:
        return "state" if id in written else "input"
    return "activation"


def read(folder):
    tensors = read_tensors(folder)
    kernels = [Kernel(place, row, tensors) for place, row in rows(folder, "kernels.tsv", KERNEL_COLUMNS)]
    if len({kernel.id for kernel in kernels}) != len(kernels) or not kernels:
        raise BadData("kernels.tsv: kernels with an id of their own are expected")
    alone, fed, written = workspaces(kernels, tensors), set(), set()
    for kernel in kernels:
        fed |= set(kernel.reads) - written
        written |= set(kernel.writes)
    name = os.path.basename(os.path.normpath(folder))
    iteration = Iteration(name, f"{legal_name(name)} of G10's kernels, by tests/bench/elsewhere.py.", ["--no-recompute"])
    iteration.runs_on("a100-40g", "G10's setting: 40 GiB, 15.754 GB/s each way, an SSD at 3.2 GB/s, nothing else takes time", "g10",
                      40 * GIB, PCIE, SSD)
    used = {id for kernel in kernels for id in kernel.reads + kernel.writes} - alone
    for id in sorted(used):
        iteration.storage(f"t{id}", tensors[id][0], kind_of(id, tensors[id][1], fed - alone, written))
    phase = "forward"
    for kernel in kernels:
        if "Backward" in kernel.type:
            phase = "backward"
        updated = {id for id in kernel.reads if id in kernel.writes and tensors[id][1]}
        reads, writes = ([f"t{id}" for id in side if id not in alone and id not in updated]
                         for side in (kernel.reads, kernel.writes))
        workspace = sum(tensors[id][0] for id in alone.intersection(kernel.reads + kernel.writes))
        iteration.op(f"k{kernel.id}", f"g10.{kernel.type}", reads, writes, kernel.ns, workspace=workspace, phase=phase,
                     effects=[f"t{id}" for id in sorted(updated)], class_=kernel.class_(),
                     flags=["no-recompute"] if kernel.type.startswith("LoadData") else ())
    return iteration
