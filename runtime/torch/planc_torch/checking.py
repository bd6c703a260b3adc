"""Holds a step that was recorded again against the plan that was made of it: `planc torch --check`."""

from itertools import zip_longest

from .calls import END


def of_call(i, call, then):
    """How a call differs from the planned one, None where it does not. Either may be missing."""
    if call is None:
        return f"{then.line}: the step ends where the plan has call {i + 1}, {then.described}"
    described, place = call["call"], call["line"]
    if then is None:
        return f"{place}: the step goes on with {described}, where the plan ends"
    if described != then.described:
        return f"{place}: call {i + 1} is {described}, and {then.described} in the plan"
    if (call["tensors"], call["results"]) != (then.given, then.gives):
        what = "the step leaves" if described == END else f"call {i + 1}, {described}, is of"
        return f"{place}: {what} other tensors than in the plan"
    return None


def difference(graph, file):
    """Where the step of a StepGraph is not that of a PlanFile first, in one sentence that begins with the user's line; None
    where it is the same: the same calls, with the same shapes and types, on the same tensors."""
    device = graph.recorder.device
    if device != file.device:
        fake = ", or --fake for a GPU that is not there" if file.device == "cuda" else ""
        return (f"{graph.recorder.source}: the step ran on {device}, and the plan's on {file.device}; --on {file.device} has it run "
                f"there{fake}")
    for i, (call, then) in enumerate(zip_longest(graph.calls[:-1], file.calls[:-1])):
        found = of_call(i, call and graph.followed(call), then)
        if found:
            return found
    for number, size in enumerate(graph.sizes()):
        if size != file.sizes[number]:
            return f"{graph.recorder.source}: {file.names[number]} has {size} bytes, and {file.sizes[number]} in the plan"
    return of_call(len(file.calls) - 1, graph.followed(graph.calls[-1]), file.calls[-1])
