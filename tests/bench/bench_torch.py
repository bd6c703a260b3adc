#!/usr/bin/env python3
"""planc_torch over many training steps, on the processor, with the PyTorch of the Python that runs this.

recorded: each step's graph against what is measured of the step itself. Parameters are those of its modules; FLOPs are those
that PyTorch counts, where it can, which leaves out biases, and so does the column of ours beside it; made are the bytes of all
tensors that a step makes; the peak is what the graph's tensors take at most at once, and metered is what the step takes when
each of them goes after its last use, as under a plan that does nothing else. Python has tensors longer: that is plain.

followed: four iterations of steps under plans of several policies, at parts of the plain peak. The same means that losses,
parameters, buffers, gradients and the optimizer's state are those of the step without a plan, bit for bit, no iteration
left its plan, and the metered peak is no more than the plan's; twice, that it was more by no more than a result that is run
again, which without an address of its own is there twice for a moment.
"""

import argparse
import math
import os
import re
import sys
import tempfile
import warnings

from benchlib import ROOT, bench_rows, table

sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
# First what finds a Python with PyTorch.
from torchfollow import METER, Recorded, Run, arguments_of, first_difference, over, torch  # noqa: E402

import planc_torch  # noqa: E402
import steps_generative  # noqa: E402
import steps_installed  # noqa: E402
import steps_language  # noqa: E402
import steps_vision  # noqa: E402
import torchsteps  # noqa: E402
from torch_refusals import CannotExport  # noqa: E402

STEPS = {**torchsteps.STEPS, **steps_language.STEPS, **steps_vision.STEPS, **steps_generative.STEPS, **steps_installed.STEPS}
FOLLOWED = ("gpt2", "llama", "llama_checkpointed", "bert", "t5", "gru_translator", "moe", "vit", "swin", "convnext", "resnet",
            "efficientnet", "densenet_checkpointed", "diffusion", "gan", "dlrm", "lstm_tagger", *steps_installed.STEPS)
POLICIES = ("auto", "capuchin", "superneurons", "chen", "cheap", "naive")
SHARES = (100, 60, 40)
WITHIN = 1.02  # of the plan's peak
SHAPE = re.compile(r"\[([\d,]*)\]")


def chosen(options, default):
    unknown = set(options.steps) - STEPS.keys()
    if unknown:
        sys.exit(f"bench_torch: there is no step {', '.join(sorted(unknown))}")
    return {name: STEPS[name] for name in options.steps or default}


# --- Recorded ---------------------------------------------------------------------------------------------------------


def parameters(made):
    """The elements of all parameters of the modules that run."""
    parts = [made.model, *getattr(made, "beside", ())]
    return sum(p.numel() for p in {p for part in parts for p in part.parameters()})


def recorded_parameters(recorder):
    return sum(s.bytes // 4 for s in recorder.storages if s.kind == "param")  # all of them are f32


def bias_flops(call, storages):
    """What the biases add, of which PyTorch does not count any."""
    if call.name in ("aten.addmm", "aten.baddbmm") or call.name == "aten.convolution" and "bias" in call.operands:
        return math.prod(storages[call.creates[0]].shape)
    if call.name == "aten.convolution_backward" and call.attrs["output_mask"][2]:
        return math.prod(int(size) for size in SHAPE.search(call.described).group(1).split(","))
    return 0


def counted_flops(made):
    """As PyTorch counts them; None where it has no counter."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        return None
    counter = FlopCounterMode(display=False)
    args = arguments_of(made.example)()
    try:
        with counter:
            made.step(*args)
    except RuntimeError as error:
        if "running autograd.grad()" not in str(error):
            raise
        return None  # says PyTorch's counter
    return counter.get_total_flops()


def liveness_peak(graph):
    """The most bytes that the graph's tensors take at once, each from the call that makes it to the last that needs it."""
    storages, first, last = graph.recorder.storages, {}, {}
    for i, call in enumerate(graph.calls):
        for s in (*call.reads, *call.creates, *call.writes):
            made = s in call.creates or first.get(s, -1) >= 0
            first.setdefault(s, i if made else 0)
            last[s] = i if storages[s].maker else len(graph.calls)
    change = [0] * (len(graph.calls) + 2)
    for s in graph.planned:
        change[first[s]] += storages[s].bytes
        change[last[s] + 1] -= storages[s].bytes
    held = peak = 0
    for step in change:
        held += step
        peak = max(peak, held)
    return peak


def metered(made):
    """The bytes that one more iteration makes."""
    args, METER.seen = arguments_of(made.example)(), {}
    with METER.counting():
        made.step(*args)
    return METER.made


def recorded_row(name, make):
    with tempfile.TemporaryDirectory() as folder:
        recorded = Recorded(make, folder, effort=1)
        graph, made = recorded.graph, make()
        for _ in range(2):
            made.step(*arguments_of(made.example)())
        storages = graph.recorder.storages
        flops, biases = (sum(f(call) for call in graph.calls) for f in (lambda c: c.flops, lambda c: bias_flops(c, storages)))
        path, told = recorded.planned("none", "1T")
        return {"step": name, "calls": len(graph.calls) - 1, "parameters": recorded_parameters(graph.recorder),
                "true_parameters": parameters(made), "flops": flops, "flops_but_biases": flops - biases,
                "counted_flops": counted_flops(made), "made_bytes": sum(s.bytes for s in storages if s.maker),
                "true_made_bytes": metered(made), "peak_bytes": liveness_peak(graph), "planned_bytes": told["peak_bytes"],
                "metered_bytes": Run(make, path, metered=True).metered - graph.outside_bytes,
                "plain_bytes": Run(make, metered=True).metered - graph.outside_bytes}


def recorded_rows(options):
    rows = []
    for name, make in chosen(options, STEPS).items():
        try:
            rows.append(recorded_row(name, make))
        except (CannotExport, planc_torch.FollowError) as error:
            rows.append({"step": name, "refused": str(error)})
        print(name, file=sys.stderr, flush=True)
    return rows


def apart(ours, true):
    if true is None:
        return "-"
    return f"{ours / true - 1:+.2%}" if true else "0" if ours == 0 else "new"


def show_recorded(rows):
    taken = [row for row in rows if "refused" not in row]
    lines = [[row["step"], row["calls"], row["parameters"], apart(row["parameters"], row["true_parameters"]),
              f"{row['flops'] / 1e6:.2f}", apart(row["flops_but_biases"], row["counted_flops"]), row["made_bytes"],
              apart(row["made_bytes"], row["true_made_bytes"]), row["peak_bytes"], apart(row["planned_bytes"], row["peak_bytes"]),
              apart(row["metered_bytes"], row["peak_bytes"]), apart(row["plain_bytes"], row["peak_bytes"])] for row in taken]
    notes = [f"refused: {row['step']}: {row['refused']}" for row in rows if "refused" in row]
    notes += [f"not installed: {package}" for package in steps_installed.MISSING]
    notes += ["PyTorch's counter takes the gradient of a grouped convolution's weights for that of a dense one (convnext, mobilenet,",
              "efficientnet), has nothing for recurrent layers of one call (lstm), and cannot count a gradient of a gradient.",
              "What is metered is less where gradients are cleared in the midst of a step: they are counted for all of it."]
    table(f"Recorded, PyTorch {torch.__version__}",
          ["step", "calls", "parameters", "true", "MFLOPs", "counted", "made", "true", "peak", "planned", "metered", "plain"],
          lines, notes)


# --- Followed ---------------------------------------------------------------------------------------------------------


def outcome(recorded, plain, policy, share):
    """What comes of it, in a word, and the metered peak as a part of the plan's."""
    made = recorded.planned(policy, recorded.plain_bytes * share // 100)
    if made is None:
        return "infeasible", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = Run(recorded.make, made[0], metered=True)
    except planc_torch.FollowError as error:
        return f"refused: {str(error).split(': ', 1)[-1]}", None
    part = (ours.metered - recorded.graph.outside_bytes) / made[1]["peak_bytes"]
    different = first_difference(ours, plain)
    if different or ours.told:
        return f"DIFFERS: {different}" if different else f"left: {ours.told[0]}", part
    if part <= WITHIN:
        return "same", part
    return "OVER" if over(recorded, ours, made[1]["peak_bytes"]) else "twice", part


def followed_rows(options):
    rows = []
    for name, make in chosen(options, FOLLOWED).items():
        with tempfile.TemporaryDirectory() as folder:
            recorded, plain = Recorded(make, folder, effort=1), Run(make)
            for policy in options.policies.split(","):
                for share in SHARES:
                    what, part = outcome(recorded, plain, policy, share)
                    rows.append({"step": name, "policy": policy, "share": share, "outcome": what, "part_of_plan": part})
                    print(f"{name} {policy} {share}: {what}", file=sys.stderr, flush=True)
    return rows


def show_followed(rows):
    names, policies = (list(dict.fromkeys(row[key] for row in rows)) for key in ("step", "policy"))
    cells = {(row["step"], row["policy"], row["share"]): row["outcome"].split(":")[0] for row in rows}
    lines = [[name, *("/".join(cells[name, policy, share] for share in SHARES) for policy in policies)] for name in names]
    counts = {}
    for row in rows:
        counts[row["outcome"].split(":")[0]] = counts.get(row["outcome"].split(":")[0], 0) + 1
    parts = [row["part_of_plan"] for row in rows if row["part_of_plan"] is not None]
    notes = [", ".join(f"{count} {what}" for what, count in sorted(counts.items())),
             f"metered peaks are up to {max(parts, default=0):.1%} of the plan's"]
    notes += sorted({f"{row['step']} by {row['policy']}: {row['outcome']}" for row in rows if ":" in row["outcome"]})
    table(f"Followed at {', '.join(map(str, SHARES))} % of the plain peak, PyTorch {torch.__version__}", ["step", *policies],
          lines, notes)


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("steps", nargs="*", metavar="STEP", help="these alone")
    arguments.add_argument("--policies", default=",".join(POLICIES), help="of the part followed")
    bench_rows("run on the processor; plans are for device description v100-32g without what libraries take.",
               {"recorded": (recorded_rows, show_recorded), "followed": (followed_rows, show_followed)}, arguments)
