"""Training steps: profiles, plans run beside what was predicted of them, and the same steps in PyTorch."""

import json
import os
import sys

from .commands import Failure, Unfit, last_words, tell
from .plans import Job, read
from .state import digest

WITHIN, DESCRIBED_WITHIN = 0.03, 0.15  # of the time predicted with a measured profile, and with a description
OVERHEAD = 0.01                        # of the executor over a bare loop of the same calls
SECOND = 1e9
NOT_OURS = (3, 4)  # exit codes of a profile whose part is damaged, or of another machine or graph
DEVICE_FAILED = 6
PROCESSES = 8      # of planrun that one attempt at a profile may take
MEASURED_S, LEAST, MOST = 2, 12, 20000  # what a run is to take, its warming up included, and iterations of it
TRACED_S, FEW = 1.2, 9                  # the same of a traced run, of which the last iterations count


def share(value, of):
    return f"{value / of - 1:+.1%}"


def ms(ns):
    return round(ns / 1e6, 3)


# --- Profiles --------------------------------------------------------------------------------------------------------


def profile(context, model):
    """Goes on from where an attempt before was cut off: planrun keeps every pass. An algorithm that takes the device or the
    process with it is left out by the next process, at once: much hangs on a profile."""
    graph = context.planner.graph(model, context.commands)
    name = context.planner.profile(model)
    path = context.state.path(name)
    command = [context.tools.planrun, "profile", graph, "--backend", "cuda", "--name", context.device, "--deterministic",
               "--batches", model.batches, *unmeasured(model), "--repetitions", model.repetitions,
               *([] if context.times else ["--warm-up", 1]), "-o", path]
    processes = 0
    while not os.path.exists(path):
        before, processes = part_of(path), processes + 1
        done = context.commands.run(*command, seconds=context.minutes * 60)
        if done.returncode in NOT_OURS and before:
            os.remove(path + ".part")
        elif done.returncode and (processes >= PROCESSES or not goes_on(done.returncode, before, part_of(path))):
            raise Failure(f"{tell(command)}: exit {done.returncode}: {last_words(done.stderr)}")
    found = context.state.load(name)
    context.keep(name, model.graph)
    context.row("profile", True, reserved_bytes=found["device"]["reserved_bytes"], launch_ns=found["device"]["launch_ns"],
                variants=sum(len(op["variants"]) for op in found["ops"]), processes=processes)


def unmeasured(model):
    return ["--unmeasured", model.unmeasured] if model.unmeasured else []


def part_of(path):
    """What planrun has kept of a profile, and the word that it has left of its end."""
    try:
        with open(path + ".part", "rb") as file:
            return file.read()
    except OSError:
        return b""


def goes_on(code, before, after):
    """Whether the next process knows more of what ended this one than this one did."""
    return (code == DEVICE_FAILED or code < 0) and after != before


# --- One plan --------------------------------------------------------------------------------------------------------


def iterations(context, ns, seconds=MEASURED_S, least=LEAST):
    """How many make a time; few where times mean nothing. Clocks rise in the first tenths of a second."""
    return max(least, min(MOST, int(seconds * SECOND / max(ns, 1)))) if context.times else 2


def seconds_of(told, n):
    """What running a plan n times should take: programs begin, host memory is pinned, ops are prepared, then it runs."""
    return 10 + told["host_peak_bytes"] / 2e9 + n * told["iteration_ns"] / SECOND


def verify(context, path, made):
    told = context.execute(path, "--deterministic", "--verify", "-n", 1, seconds=seconds_of(made["told"], 3))
    reserved = made["shown"]["reserved_bytes"]
    context.row("verified, memory within the plan", told["verified"] and told["taken_bytes"] <= reserved,
                peak_bytes=told["peak_bytes"], taken_bytes=told["taken_bytes"], reserved_bytes=reserved)
    return told


def eager(context, path, made, label):
    """A traced run beside what was predicted of it; the simulator's words, and what an iteration took."""
    n = iterations(context, made["told"]["iteration_ns"], TRACED_S, FEW)
    trace = context.state.path("traces", label + ".json")
    context.execute(path, "--same-samples", "-n", n, "--trace", trace, seconds=seconds_of(made["told"], n))
    simulated = json.loads(context.commands.must(context.tools.planc, "simulate", path, "--against", trace, "--json",
                                                 seconds=30))
    return simulated, simulated["against"]["measured_ns"]


def period(context, path, made, *options):
    """The steady time of an iteration in a run that is not traced."""
    n = iterations(context, made["told"]["iteration_ns"])
    return context.execute(path, "--same-samples", "-n", n, *options, seconds=seconds_of(made["told"], n))["period_ns"]


def run_plan(context, job, whole=False):
    """Verifies a plan and holds its time against the prediction. `whole`: without the trace's time stamps, as a CUDA
    Graph too and, where all is resident, against a bare loop of its calls. Gives what an iteration takes."""
    path, made = context.planner.get(job)
    ran = verify(context, path, made)
    simulated, traced = eager(context, path, made, job.name)
    measured = period(context, path, made) if whole else traced
    hold_time(context, simulated["period_ns"], measured,
              as_measured=share(simulated["against"]["predicted_as_measured_ns"], traced))
    line = {"plan": job.name, "resident": f"{job.model.label} resident", "budget_bytes": made["budget_bytes"], "share": made["share"],
            "rounds": made["told"]["rounds"], "peak_bytes": ran["peak_bytes"], "predicted_ms": ms(simulated["period_ns"]),
            "measured_ms": ms(measured), "traced_ms": ms(traced), "off": share(simulated["period_ns"], measured),
            "moved_bytes": simulated["d2h_bytes"] + simulated["h2d_bytes"],
            "recompute_ms": ms(simulated["recompute_ns"])}
    if whole:
        line.update(graph_and_bare(context, path, made, job.policy == "none", measured))
    context.give("step", line)
    context.give("measured_ns", measured)


def hold_time(context, predicted, measured, **figures):
    context.row("time within 3 %", context.timed(abs(predicted / measured - 1) <= WITHIN), off=share(predicted, measured), **figures)


def graph_and_bare(context, path, made, resident, untraced):
    out, replayed = {}, period(context, path, made, "--graph")
    captured = json.loads(context.commands.must(context.tools.planc, "simulate", path, "--graph-replay", "--json"))
    out.update(graph_ms=ms(replayed), graph_predicted_ms=ms(captured["period_ns"]))
    context.row("time with --graph within 3 %", context.timed(abs(captured["period_ns"] / replayed - 1) <= WITHIN),
                off=share(captured["period_ns"], replayed))
    if resident:
        bare = period(context, path, made, "--bare")
        out.update(bare_ms=ms(bare), overhead=share(untraced, bare), graph_overhead=share(replayed, bare))
        for way, ns in (("executor", untraced), ("executor with --graph", replayed)):
            context.row(f"{way} within 1 % of a bare loop", context.timed(ns <= bare * (1 + OVERHEAD)), over=share(ns, bare))
    return out


# --- Checks ----------------------------------------------------------------------------------------------------------


def resident(context, model):
    run_plan(context, resident_job(model), whole=True)
    measured, device = context.given("measured_ns"), context.described
    if not device:
        return
    described = context.planner.get(described_job(model, device))[1]["told"]["iteration_ns"]
    context.give("described_ms", ms(described))
    context.row("time within 15 % of the description's", context.timed(abs(described / measured - 1) <= DESCRIBED_WITHIN),
                device=device, off=share(described, measured))


def planned(context, job, whole=False):
    run_plan(context, job, whole)


def at_peak_of(context, model, other, policies):
    """The fastest of our plans, as predicted, in the memory that another program took, and its time beside that one's."""
    theirs = context.state.gives(other, "pytorch")
    jobs = [Job(model, policy, theirs["peak_bytes"]) for policy in policies]
    for job in jobs:
        context.planner.ask(job)
    made = []
    for job in jobs:
        try:
            made.append((context.planner.get(job)[1]["told"]["iteration_ns"], job.policy, job))
        except Unfit:
            continue
    if not made:
        raise Unfit(f"no policy has a plan for {theirs['peak_bytes']} bytes")
    best = min(made)[-1]
    run_plan(context, best)
    measured = context.given("measured_ns") / 1e6
    context.row("faster than PyTorch's checkpointing at the same peak", context.timed(measured < theirs["step_ms"]),
                policy=best.policy, measured_ms=round(measured, 3), pytorch_ms=theirs["step_ms"])


def beyond(context, model, batch, other=None, shares=()):
    """A batch that does not fit the device, or these shares of what it takes: by the fastest plan for that, and by the
    fastest for the memory that another program takes for the batch, or else by one that swaps. No reference has room:
    each plan ends with the same bits twice, and the two, which move and recompute unlike things, with the same where they
    have the same algorithms."""
    refuse_resident(context, Job(model, "none", shares=shares, batch=batch))
    theirs = other and context.state.gives(other, "pytorch")
    jobs = [Job(model, "best", shares=shares, batch=batch),
            Job(model, "best", theirs["peak_bytes"], batch=batch) if theirs else Job(model, "window", shares=shares, batch=batch)]
    for job in jobs:
        context.planner.ask(job)
    ends, lines = [], []
    for job in jobs:
        path, made = context.planner.get(job)
        ends.append((algorithms_of(path), train(context, path, made)))
        context.row("the same bits again", train(context, path, made) == ends[-1][1])
        measured = period(context, path, made)
        hold_time(context, made["told"]["iteration_ns"], measured, policy=made["told"]["policy"])
        lines.append(line_of_beyond(made, measured))
    if context.times:  # else the fastest plans and their algorithms are any
        alike = ends[0][0] == ends[1][0]
        context.row("two plans end with the same bits", ends[0][1] == ends[1][1] if alike else None, same_algorithms=alike)
    if theirs:
        context.row("faster than PyTorch's checkpointing at the same peak",
                    context.timed(lines[1]["measured_ms"] < theirs["step_ms"]), measured_ms=lines[1]["measured_ms"],
                    pytorch_ms=theirs["step_ms"])
    context.give("beyond", {"batch": batch, "plans": lines})


def refuse_resident(context, job):
    try:
        context.planner.get(job)
    except Unfit as unfit:
        context.row("does not fit with everything resident", True, batch=job.batch, told=str(unfit))
    else:
        raise Failure(f"batch {job.batch} fits")


def train(context, path, made):
    """Two iterations; the digest of what they leave."""
    end = path + ".end"
    told = context.execute(path, "--deterministic", "-n", 2, "--save", end, seconds=seconds_of(made["told"], 4) + 30)
    reserved = made["shown"]["reserved_bytes"]
    context.row("trains, memory within the plan", told["taken_bytes"] <= reserved, peak_bytes=told["peak_bytes"],
                taken_bytes=told["taken_bytes"], reserved_bytes=reserved)
    found = digest(end)
    os.remove(end)
    return found


def algorithms_of(path):
    """By op, in a plan."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    names = [line["algorithm"] for line in lines if "algorithm" in line]
    return {line["n"]: names[line["a"]] for line in lines if line.get("i") == "exec"}


def line_of_beyond(made, measured):
    told = made["told"]
    return {"policy": told["policy"], "peak_bytes": told["peak_bytes"], "predicted_ms": ms(told["iteration_ns"]),
            "measured_ms": ms(measured), "off": share(told["iteration_ns"], measured)}


def resident_job(model):
    return Job(model, "none")


def described_job(model, device):
    return Job(model, "none", device=device)


def virtual_memory(context, job):
    path, made = context.planner.get(job)
    for options in ([], ["--graph"]):
        told = context.execute(path, "--verify", "--deterministic", "-n", 2, *options, seconds=seconds_of(made["told"], 4))
        context.row(" ".join(["verified", *options]), told["verified"])


def drift(context, job, seconds):
    """Whether an iteration takes as long after a minute as before: clocks fall when a device gets hot."""
    path, made = context.planner.get(job)
    measured = context.state.gives(f"{job.model.label} resident", "measured_ns") or made["told"]["iteration_ns"]
    first = period(context, path, made, "--graph")
    n = max(LEAST, int(seconds * SECOND / measured))
    long = context.execute(path, "--same-samples", "--graph", "-n", n, seconds=10 + seconds)["period_ns"]
    context.row("within 3 % after a minute", context.timed(abs(long / first - 1) <= WITHIN), first_ms=ms(first),
                long_ms=ms(long), drift=share(long, first))


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def pytorch(context, model, batch, precision, mode):
    """The same step there; nothing of ours hangs on it."""
    context.give("pytorch", pytorch_step(context, model, batch, precision, mode))


def pytorch_step(context, model, batch, precision, mode, *options):
    done = context.commands.run(sys.executable, "-B", os.path.join(os.path.dirname(__file__), "pytorch_steps.py"),
                                "--model", model, "--batch", batch, "--precision", precision, "--mode", mode, *options,
                                seconds=30, ours=mode == "followed", PYTHONPATH=context.tools.package)
    if done.returncode:
        why = last_words(done.stderr, 200) or f"exit {done.returncode}"
        raise (Unfit if "No module named" in why else Failure)(why)
    told = read(done.stdout)
    if told.get("oom"):
        context.row("PyTorch", None, **told)
        raise Unfit("out of memory")
    context.row("PyTorch", None, **told)
    return told
