"""PyTorch's own step under a plan of ours: as large as its checkpointing's peak, and to the same bits as without a plan."""

import os
import sys

from .commands import Failure, Unfit, last_words
from .plans import read
from .steps import pytorch_step

STEP = """# The step that planc torch records.
import sys
from types import SimpleNamespace

sys.path.insert(0, {here!r})
import pytorch_steps

options = SimpleNamespace(**{options})
pytorch_steps.prepare(options)
step = pytorch_steps.make_step(options)[1]


def example():
    return ()
"""


def followed(context, model, batch, precision, other):
    if not context.described:
        raise Unfit("the device is not described")
    theirs = context.state.gives(other, "pytorch")
    plan = planned(context, model, batch, precision, theirs["peak_bytes"], False)
    told = pytorch_step(context, model, batch, precision, "followed", "--plan", plan)
    context.row("peak within its checkpointing's", told["peak_bytes"] <= theirs["peak_bytes"], peak_bytes=told["peak_bytes"],
                checkpoint_bytes=theirs["peak_bytes"])
    context.row("faster than its checkpointing at the same peak", context.timed(told["step_ms"] < theirs["step_ms"]),
                followed_ms=told["step_ms"], checkpoint_ms=theirs["step_ms"])
    context.give("pytorch", told)


def same_bits(context, model, batch, precision, other):
    if not context.described:
        raise Unfit("the device is not described")
    peak = context.state.gives(other, "pytorch")["peak_bytes"]
    plan = planned(context, model, batch, precision, peak, True)
    plain = pytorch_step(context, model, batch, precision, "plain", "--deterministic")
    told = pytorch_step(context, model, batch, precision, "followed", "--deterministic", "--plan", plan)
    context.row("the same bits as without a plan", told["bits"] == plain["bits"], followed_ms=told["step_ms"],
                plain_ms=plain["step_ms"])


def step_file(path, **options):
    """Writes the file that has such a step of pytorch_steps'."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(STEP.format(here=os.path.dirname(os.path.abspath(__file__)), options={"mode": "plain", **options}))


def planned(context, model, batch, precision, budget, deterministic):
    """A plan for the step in so many bytes of the device, and what PyTorch itself takes beside them."""
    name = f"followed-{model}-{batch}-{precision}{'-deterministic' if deterministic else ''}"
    step, plan = context.state.path(name + ".py"), context.state.path(name + ".plan")
    step_file(step, model=model, batch=batch, precision=precision, image=224, device="cuda", deterministic=deterministic)
    described = os.path.join(context.tools.profiles, context.described + ".json")
    with open(described, encoding="utf-8") as file:
        reserved = read(file.read())["device"]["reserved_bytes"]
    done = context.commands.run(sys.executable, "-B", "-m", "planc_torch", f"{step}:step", "--planc", context.tools.planc,
                                "--device", described, "--on", "cuda", "--budget", budget + reserved, "--json", "--output", plan,
                                seconds=60, PYTHONPATH=context.tools.package)
    if done.returncode:
        why = last_words(done.stderr, 200) or f"exit {done.returncode}"
        raise (Unfit if "has no PyTorch" in why else Failure)(why)
    told = read(done.stdout)
    context.row("plan", True, policy=told["taken"], budget_bytes=told["budget_bytes"], plain_bytes=told["plain_bytes"])
    return plan
