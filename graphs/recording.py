"""A recorded PyTorch training iteration, schema planc-opgraph-1: from_recording.py reads it, export_torch.py makes it.

The recording is a JSON value. Each access checks the type of what it finds, so that a recording that is not one is
refused with the place.
"""

from dataclasses import dataclass

from graphfile import DTYPE_BYTES, law, legal_name

SCHEMA = "planc-opgraph-1"
KIND = {"param": "param", "buffer": "state", "optstate": "state", "input": "input", "activation": "activation",
        "actgrad": "activation", "grad": "grad", "temp": "temp"}
PHASES = ("forward", "backward", "optimizer")
INT64_MAX = 2**63 - 1


class BadRecording(Exception):
    """What is wrong and where."""


class Fields:
    """One JSON object of the recording; every access checks the type and names the place."""

    def __init__(self, value, place):
        if not isinstance(value, dict):
            raise BadRecording(f"{place}: an object is expected")
        self.value, self.place = value, place

    def fail(self, key, what):
        raise BadRecording(f"{self.place}: {key}: {what}")

    def text(self, key, default=None):
        value = self.value.get(key, default)
        if value is not None and not isinstance(value, str):
            self.fail(key, "a string is expected")
        return value

    def choice(self, key, choices):
        value = self.text(key)
        if value not in choices:
            self.fail(key, f"one of {', '.join(choices)} is expected")
        return value

    def size(self, key):
        value = self.value.get(key, 0)
        if type(value) is not int or not 0 <= value <= INT64_MAX:
            self.fail(key, "an integer from 0 to 2^63-1 is expected")
        return value

    def law(self, key):
        return self.size(f"{key}_fixed"), self.size(f"{key}_per_sample")

    def list(self, key, limit=INT64_MAX):
        """A list of integers from 0 to `limit`."""
        value = self.value.get(key, [])
        if not isinstance(value, list) or any(type(v) is not int or not 0 <= v <= limit for v in value):
            self.fail(key, f"a list of integers from 0 to {limit} is expected")
        return value

    def objects(self, key):
        value = self.value.get(key)
        if not isinstance(value, list):
            self.fail(key, "a list is expected")
        return [Fields(v, f"{key}[{i}]") for i, v in enumerate(value)]


class Storage:
    """A recorded storage: its kind, recorded name, element type and dimensions as laws."""

    def __init__(self, fields, batch):
        self.kind = fields.choice("kind", KIND)
        self.name = fields.text("name")
        self.bytes = fields.law("bytes")
        self.dtype = fields.text("dtype")
        self.dims = self.dims_of(fields, batch)
        if self.dims is None:  # the shape does not explain the bytes
            self.dtype, self.dims = "u8", [self.bytes]

    def dims_of(self, fields, batch):
        example = fields.list("shape_example")
        slopes = fields.list("shape_per_sample") or [0] * len(example)
        if len(slopes) != len(example):
            fields.fail("shape_per_sample", "shape_example has another rank")
        dims = [(size - slope * batch, slope) for size, slope in zip(example, slopes)]
        if len(dims) > 8 or self.dtype not in DTYPE_BYTES or any(fixed < 0 for fixed, _ in dims):
            return None
        fixed, per_sample, square = DTYPE_BYTES[self.dtype], 0, 0
        for f, p in dims:
            fixed, per_sample, square = fixed * f, fixed * p + per_sample * f, square or per_sample * p
        return dims if (fixed, per_sample) == self.bytes and not square else None

    def shape(self):
        """The dimensions as the recording writes an operand's."""
        return [law(d) if d[1] else d[0] for d in self.dims]


@dataclass(frozen=True)
class View:
    """How an operand lies in its storage: its dimensions and, if they are not those of the storage, where it starts."""

    storage: int
    dims: tuple  # laws
    offset: tuple = (0, 0)  # a law, in bytes
    transposed: bool = False  # the storage holds the rows of the transposed matrices; `dims` are theirs, not its
    channels_last: bool = None  # whether the storage holds the channels of images innermost, None where it may be both


class Op:
    """A recorded op. `views` are its operands by the names of ATen's arguments, and its results by number, None where
    they are not dense; a recorder that is at hand gives them, a file has those of convolutions alone. Without views an
    op gets none of planc's types."""

    def __init__(self, fields, storages, views=None):
        self.fields = fields
        self.type = legal_name(fields.text("name") or fields.fail("name", "a string is expected"))
        self.phase = fields.choice("phase", PHASES)
        self.module = fields.text("module") or ""
        self.inputs, self.outputs, self.inplace = (fields.list(k, len(storages) - 1)
                                                   for k in ("inputs", "outputs", "inplace"))
        self.attrs = Fields(fields.value.get("attrs", {}), f"{fields.place}: attrs")
        self.flops, self.traffic, self.workspace = (fields.law(key) for key in ("flops", "bytes", "workspace"))
        if not set(self.inplace) <= set(self.outputs):
            fields.fail("inplace", "a storage is not among the outputs")
        self.views = self.whole_operands(storages) if views is None else views

    def whole_operands(self, storages):
        """The views of a convolution, or of its backward, whose operands are whole storages."""
        names, results = {"aten.convolution": (("input", "weight", "bias"), 1),
                          "aten.convolution_backward": (("grad_output", "input", "weight"), 3)}.get(self.type, ((), 0))
        shapes = [storages[s].shape() for s in self.inputs + self.outputs]
        if self.inplace or len(self.outputs) > results or self.attrs.value.get("shapes") != shapes:
            return {}
        results = range(results)
        if self.type == "aten.convolution_backward":
            results = [i for i in results if self.output_mask()[i]]
        operands = [*zip(names, self.inputs), *zip(results, self.outputs)]
        return {key: View(s, tuple(storages[s].dims)) for key, s in operands}

    def output_mask(self):
        """Which results of a fused backward are wanted."""
        mask = self.attrs.value.get("output_mask")
        if not isinstance(mask, list) or len(mask) != 3:
            self.attrs.fail("output_mask", "a list of three booleans is expected")
        return mask


class Recording:
    def __init__(self, value, views=None):
        fields = Fields(value, "recording")
        if fields.text("schema") != SCHEMA:
            fields.fail("schema", f"{SCHEMA} is expected")
        self.model, self.source = fields.text("model", "recording"), fields.text("source", "")
        self.optimizer = fields.text("optimizer", "")
        batch = fields.size("batch_example")
        self.storages = [Storage(f, batch) for f in fields.objects("tensors")]
        self.ops = [Op(f, self.storages, views and views[i]) for i, f in enumerate(fields.objects("ops"))]
