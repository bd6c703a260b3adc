"""Writing planc-graph(5) files: what generate.py, from_recording.py and export_torch.py share.

A size is a law in the batch size N, held as a pair (fixed, per_sample) and written `3+50N`. A file is built in memory,
one tensor and one op per line, and put in place whole by a rename, so a failed run leaves no half-written graph.
"""

import contextlib
import json
import os
import re
import secrets
import stat

KINDS = ("input", "param", "state", "grad", "activation", "temp")
DTYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "u8": 1, "bool": 1}
NAME_LIMIT = 255
# Characters that planc-graph(5) keeps out of names, so that every name is a plain YAML scalar wherever it stands.
NOT_IN_NAMES = frozenset("\"\\,[]{}#&*!|>'%@`")
NOT_FIRST_IN_NAMES = frozenset("-?:;")


def legal_name(text):
    """`text` with every character that a name may not hold replaced by `_`."""
    name = "".join(c if "!" <= c <= "~" and c not in NOT_IN_NAMES else "_" for c in text)[:NAME_LIMIT] or "_"
    if name[0] in NOT_FIRST_IN_NAMES:
        name = "_" + name[1:]
    return name[:-1] + "_" if name[-1] == ":" else name


def law(value):
    """A size law as text: 7, N, 25N, 3+50N."""
    fixed, per_sample = value
    if per_sample == 0:
        return str(fixed)
    slope = "N" if per_sample == 1 else f"{per_sample}N"
    return slope if fixed == 0 else f"{fixed}+{slope}"


def scalar(value):
    """An attribute's value as text: an integer, a real (which has a point or an exponent), integers or a string."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(str(int(v)) for v in value) + "]"
    if isinstance(value, (bool, int)):
        return str(int(value))
    return value if value[:1].isalpha() and legal_name(value) == value else json.dumps(value)


class GraphFile:
    """A graph file under construction. `header` holds the keys before `tensors`, in the order they are written."""

    def __init__(self, heading, **header):
        self.heading = heading
        self.header = header
        self.tensors = {}
        self.ops = {}

    def tensor(self, name, dtype, dims, kind="activation", of=None, offset=(0, 0)):
        """Adds a tensor of `dims` (laws), with storage of its own or as a view of that of tensor `of`, `offset` bytes
        (a law) from its start."""
        assert name not in self.tensors, name
        shape = f"{dtype}[{','.join(law(d) for d in dims)}]"
        prefix = "" if kind == "activation" else kind + " "
        start = f" @ {law(offset)}" if any(offset) else ""
        self.tensors[name] = f"{shape} of {of}{start}" if of else prefix + shape
        return name

    def op(self, name, type, inputs, outputs, *, phase="forward", effects=(), attrs=None, flops=None, traffic=None,
           workspace=None, flags=(), class_=None, loop=None):
        """Adds an op; `flops`, `traffic` and `workspace` are laws, left to the op type when None, `loop` is (name, step)."""
        assert name not in self.ops, name
        fields = [f"op: {name}", f"type: {type}"]
        if phase != "forward":
            fields.append(f"phase: {phase}")
        for key, names in (("in", inputs), ("out", outputs), ("effects", effects)):
            if names:
                fields.append(f"{key}: [{', '.join(names)}]")
        if attrs:
            fields.append("attrs: {" + ", ".join(f"{k}: {scalar(v)}" for k, v in attrs.items()) + "}")
        for key, value in (("flops", flops), ("traffic", traffic), ("workspace", workspace)):
            if value is not None:
                fields.append(f"{key}: {law(value)}")
        if flags:
            fields.append(f"flags: [{', '.join(flags)}]")
        if class_:
            fields.append(f"class: {class_}")
        if loop:
            fields.append(f"loop: {loop[0]}, step: {loop[1]}")
        self.ops[name] = "{" + ", ".join(fields) + "}"

    def channels_last(self):
        """Turns a graph of images from NCHW into NHWC: every tensor of four dimensions, KCRS filters included, and the
        axis along which such tensors are joined."""
        def last(spec):
            return re.sub(r"\[([^],]+),([^],]+),([^],]+),([^],]+)\]", r"[\1,\3,\4,\2]", spec)

        self.header["layout"] = "NHWC"
        self.tensors = {name: last(spec) for name, spec in self.tensors.items()}
        self.ops = {name: re.sub(r"\baxis: 1\b", "axis: 3", op) for name, op in self.ops.items()}
        return self

    def text(self):
        lines = [f"# {line}".rstrip() for line in self.heading.strip().splitlines()]
        lines.append("planc-graph: 1")
        lines += [f"{key}: {value}" for key, value in self.header.items()]
        lines.append("tensors:")
        lines += [f"  {name}: {spec}" for name, spec in self.tensors.items()]
        lines.append("ops:")
        lines += [f"  - {op}" for op in self.ops.values()]
        return "\n".join(lines) + "\n"

    def write(self, path):
        write_files([(path, self.text().encode("ascii"))])


# --- Outputs, as planc(1) has them (INPUTS AND OUTPUTS) ---------------------------------------------------------------


def write_files(files):
    """Puts pairs of a path and its bytes in their places: all stand aside before the first is renamed, so that a run that fails
    leaves each as it was. A link stays one, and what replaces a file has its permissions."""
    aside = []
    try:
        for path, data in files:
            if is_renamed(path):
                aside.append((path, beside(path)))
                put(aside[-1][1], data, path)
        for path, data in files:
            if not is_renamed(path):
                put(path, data, path)
        while aside:
            with named(aside[0][0]):
                os.replace(aside[0][1], os.path.realpath(aside[0][0]))
            del aside[0]
    finally:
        for _, made in aside:
            os.remove(made)


def probe(path):
    """OSError where no output can be written to a path, for whoever works long before it is."""
    if is_renamed(path):
        os.remove(beside(path))
    elif os.path.isdir(path):
        put(path, b"", path)


def is_renamed(path):
    """A device or a pipe is written to as it is: there is nothing to preserve, and a rename would replace it."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True


def beside(path):
    """A new file beside the one that is to be written."""
    target = os.path.realpath(path)
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode) & 0o777
    except OSError:
        mode = 0o666
    made = f"{target}.{secrets.token_hex(3)}"
    with named(path):
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    return made


def put(to, data, path):
    with named(path), open(to, "wb") as file:
        file.write(data)
        file.flush()
        if to != path:
            os.fsync(file.fileno())  # a rename may reach the disk before what is renamed


@contextlib.contextmanager
def named(path):
    """Within, what fails is said of the path that the user has given."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
