"""Reads an operator log of DTR's prototype: JSON lines, packed with gzip or plain.

CONSTANT and MEMORY make a storage that was there before: it persists, as state where the log mutates it, else as a
parameter. CALL makes its RESULTs, each followed by its MEMORY in bytes and by ALIAS: -1 for a storage of its own, else
which of the ARGS it is a view of. A view is the whole storage, as the log does not say which part. A result of 0 bytes
is none. MUTATE updates those ARGS in place (the prototype writes a copy instead, and then drops the old one). COPY is
one more name of a storage, COPY_FROM gives a name to another storage, RELEASE ends a name. What still has a name at the
end, gradients above all, is kept to the end: an op that takes no time reads it there. TIME is in nanoseconds.

DTR swaps nothing. Its device has 12 GB; for what swaps it has a link of 12 GB/s each way, what profiles/v100-32g.json has for
PCIe 3.
"""

import gzip
import json
import os
import zlib

from elsewhere_iteration import BadData, Iteration, first_class, number
from from_recording import no_constant, unique_keys
from graphfile import legal_name
from recording import BadRecording

MEMORY_BYTES = 12 * 10**9
PCIE3 = 12 * 10**9
MOST_BYTES = 2**28
# By parts of the names of operators; the first row that fits holds.
CLASSES = (("conv", ("conv",)), ("norm", ("batch_norm",)), ("pool", ("pool", "upsample")), ("gemm", ("mm",)),
           ("reduction", ("sum", "nll_loss", "softmax", "cross_entropy")), ("copy", ("cat", "pad", "slice", "view")))


def instructions(path):
    """(place, fields) of each line."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadData(f"cannot be unpacked: {error}") from error
    if len(content) > MOST_BYTES:
        raise BadData(f"more than {MOST_BYTES >> 20} MiB")
    for i, line in enumerate(content.splitlines(), 1):
        try:
            fields = json.loads(line, object_pairs_hook=unique_keys, parse_constant=no_constant)
        except (BadRecording, ValueError, RecursionError) as error:
            raise BadData(f"line {i}: not a JSON text: {error}") from error
        if not isinstance(fields, dict) or not isinstance(fields.get("INSTRUCTION"), str):
            raise BadData(f"line {i}: an INSTRUCTION is expected")
        yield f"line {i}", fields


def text(fields, key, place):
    if not isinstance(fields.get(key), str) or not fields[key]:
        raise BadData(f"{place}: {key} is expected")
    return fields[key]


def names(fields, key, place):
    value = fields.get(key)
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise BadData(f"{place}: a list {key} is expected")
    return value


class Replay:
    """What is known at a line. A storage is a number; what has no bytes has None."""

    def __init__(self, path):
        self.lines = instructions(path)
        self.sizes, self.constants, self.updated = [], set(), set()
        self.named = {}  # name -> storage
        self.ops = []  # (type, phase, reads, writes, ns)
        self.phase, self.begun = "forward", False

    def follow(self):
        for place, fields in self.lines:
            instruction = fields["INSTRUCTION"]
            if instruction == "ANNOTATE":
                self.annotate(text(fields, "ANNOTATION", place))
            elif instruction == "CONSTANT":
                self.constant(text(fields, "NAME", place))
            elif instruction in ("COPY", "COPY_FROM"):
                source = self.storage(text(fields, "SRC", place), place)
                self.name(text(fields, "DST", place), source, place, anew=instruction == "COPY_FROM")
            elif instruction == "RELEASE":  # of what was there before the log began, too
                self.named.pop(text(fields, "NAME", place), None)
            elif instruction == "CALL":
                self.call(fields, place)
            elif instruction == "MUTATE":
                self.mutate(fields, place)
            else:
                raise BadData(f"{place}: {legal_name(instruction)} is not an instruction that is known here")
        return self

    def annotate(self, what):
        if what == "BACKWARD":
            self.phase = "backward"

    def storage(self, name, place):
        if name not in self.named:
            raise BadData(f"{place}: {legal_name(name)} has no storage here")
        return self.named[name]

    def name(self, name, storage, place, anew=False):
        if name in self.named and not anew:
            raise BadData(f"{place}: {legal_name(name)} has a storage already")
        self.named[name] = storage

    def next_of(self, instruction, name):
        """The line that has to follow: its fields and place."""
        place, fields = next(self.lines, ("the end", {"INSTRUCTION": ""}))
        if fields["INSTRUCTION"] != instruction or fields.get("NAME") != name:
            raise BadData(f"{place}: {instruction} of {legal_name(name)} is expected")
        return fields, place

    def size(self, name):
        fields, place = self.next_of("MEMORY", name)
        return number(fields.get("MEMORY"), place)

    def made(self, size):
        if not size:
            return None
        self.sizes.append(size)
        return len(self.sizes) - 1

    def constant(self, name):
        storage = self.made(self.size(name))
        if storage is not None:
            self.constants.add(storage)
        self.name(name, storage, "a constant")

    def arguments(self, fields, place):
        return [self.storage(name, place) for name in names(fields, "ARGS", place)]

    def call(self, fields, place):
        arguments, writes = self.arguments(fields, place), []
        for name in names(fields, "RESULT", place):
            size = self.size(name)
            alias, at = self.next_of("ALIAS", name)
            if alias.get("ALIAS") == "-1":
                storage = self.made(size)
                writes += [] if storage is None else [storage]
            else:
                which = number(alias.get("ALIAS"), at)
                if which >= len(arguments):
                    raise BadData(f"{at}: a view of argument {which}, of {len(arguments)}")
                storage = arguments[which]
            self.name(name, storage, at)
        self.op(fields, place, arguments, writes)

    def mutate(self, fields, place):
        arguments, which = self.arguments(fields, place), fields.get("MUTATE")
        if not isinstance(which, list) or any(type(i) is not int or not 0 <= i < len(arguments) for i in which):
            raise BadData(f"{place}: MUTATE, a list of arguments by number, is expected")
        changed = [arguments[i] for i in which if arguments[i] is not None]
        self.updated |= self.constants.intersection(changed)
        self.op(fields, place, arguments, changed)

    def op(self, fields, place, reads, writes):
        ns = number(fields.get("TIME"), place)
        reads = [storage for storage in dict.fromkeys(reads) if storage is not None]
        self.ops.append((text(fields, "NAME", place), self.phase, reads, list(dict.fromkeys(writes)), ns))


def read(path):
    replay = Replay(path).follow()
    if not replay.ops:
        raise BadData("the log has no call")
    left = sorted({storage for storage in replay.named.values() if storage is not None} - replay.constants)
    if left:
        replay.ops.append(("end", replay.phase, left, [], 0))
    name = os.path.basename(path).removesuffix(".gz").removesuffix(".log")
    iteration = Iteration(name, f"{legal_name(name)} of DTR's logs, by tests/bench/elsewhere.py.", ["--no-swap"])
    iteration.runs_on("v100-16g-nvlink", "a Titan V as DTR's paper has it: 12 GB; DTR has no link, this one is PCIe 3 as v100-32g has it",
                      "titan-v", MEMORY_BYTES, PCIE3)
    for storage in sorted({storage for _, _, reads, writes, _ in replay.ops for storage in reads + writes}):
        kind = "state" if storage in replay.updated else "param" if storage in replay.constants else "activation"
        iteration.storage(f"s{storage}", replay.sizes[storage], kind)
    for i, (type, phase, reads, writes, ns) in enumerate(replay.ops):
        updated = replay.updated.intersection(writes)
        iteration.op(legal_name(f"{i}.{type}"), legal_name("dtr." + type), [f"s{s}" for s in reads if s not in updated],
                     [f"s{s}" for s in writes if s not in updated], ns, phase=phase,
                     effects=[f"s{s}" for s in sorted(updated)], class_=first_class(type, CLASSES))
    return iteration
