"""What a plan's file says of the recorded step."""

import json
import math

from .calls import OUTSIDE
from .micro import MOST
from .scratch import KEPT
from graphfile import DTYPE_BYTES

DEVICES = ("cpu", "cuda")
OF_CALLS = {"call", "tensors", "results"}  # attributes that an op has where a plan of it is followed


class PlannedCall:
    """A recorded call: its description, the user's line, whether it was made in the last phase and by an optimizer, by number in
    the graph its tensors and which of them it writes, and what it allocates (scratch.uses)."""

    def __init__(self, op):
        attrs = op["attrs"]
        self.described, self.line = attrs["call"], attrs["line"]
        self.is_late, self.updates = op["phase"] == "optimizer", bool(attrs.get("updates"))
        self.given, self.gives, self.allocated = attrs["tensors"], attrs["results"], attrs.get("allocations", [])
        self.writes = op["out"]
        self.alike = None  # the function, shapes and types that were found to be so described

    def is_wrong(self, n_tensors):
        lists = self.given, self.gives, self.writes
        return (not isinstance(self.described, str) or not isinstance(self.line, str) or
                not all(isinstance(one, list) and all(type(n) is int and OUTSIDE <= n < n_tensors for n in one) for one in lists) or
                self.allocates_otherwise())

    def allocates_otherwise(self):
        """Whether that is no list of sizes and what becomes of them."""
        parts = self.allocated
        if not isinstance(parts, list) or len(parts) % 2 or not all(type(part) is int for part in parts):
            return True
        return any(size <= 0 for size in parts[::2]) or not all(KEPT <= use < len(self.gives) for use in parts[1::2])


def what_to_record(job):
    """How a step is to be recorded for what the job of a plan does, whose batch may run in rounds. Micro-batches differ by one sample at
    most, so that none is larger than the largest of as many rounds."""
    rounds = len(job["rounds"])
    return f"batch {job['batch']}" + (f" with --micro-batches {rounds}" if rounds > 1 else " without --batches")


class PlanFile:
    """The step's calls, the names and bytes of its tensors, its device, and in how many micro-batches it runs. ValueError where the
    plan is not of a recorded step, or is cut short."""

    def __init__(self, path):
        self.path, self.calls, self.names, self.sizes, self.device, self.micro_batches = path, [], [], [], None, 1
        text, is_plan, is_whole, is_of_batches, advice = "", False, False, False, None
        try:
            with open(path, encoding="utf-8") as file:
                for text in file:
                    is_plan = is_plan or text.startswith('{"planc-plan":')
                    if text.startswith('{"tensor":'):
                        tensor = json.loads(text)
                        self.names.append(tensor["tensor"])
                        self.sizes.append(DTYPE_BYTES[tensor["dtype"]] * math.prod(tensor["shape"]))
                    elif text.startswith('{"op":'):
                        op = json.loads(text)
                        is_of_batches = is_of_batches or "line" in op["attrs"] and OF_CALLS.isdisjoint(op["attrs"])
                        if is_of_batches:
                            continue
                        self.calls.append(PlannedCall(op))
                        self.device, self.micro_batches = op["attrs"].get("device"), op["attrs"].get("micro_batches", 1)
                    elif text.startswith('{"job":'):
                        is_whole = True
                        advice = what_to_record(json.loads(text)) if is_of_batches else None
                        break
        except json.JSONDecodeError as error:
            if not text.endswith("\n"):
                raise ValueError(f"{path} is cut short; make the plan again") from error
            raise ValueError(f"{path} is not of a recorded step; planc torch makes plans that are") from error
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not of a recorded step; planc torch makes plans that are") from error
        if is_plan and not is_whole:
            raise ValueError(f"{path} is cut short; make the plan again")
        if is_of_batches:
            raise ValueError(f"{path} is of a step recorded at several batch sizes, and such plans tell what to record: planc "
                             f"torch records the step at {advice}, and makes a plan that is followed")
        is_divided = type(self.micro_batches) is int and 1 <= self.micro_batches <= MOST
        if self.device not in DEVICES or not is_divided or any(call.is_wrong(len(self.names)) for call in self.calls):
            raise ValueError(f"{path} is not of a recorded step; planc torch makes plans that are")
