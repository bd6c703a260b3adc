"""The checks in the order of what they prove, each with the minutes that it should take. Five sittings of nine
minutes hold them all."""

import json
import os

from . import clocks, followed, links, numerics, steps
from .plans import Job, Model
from .sitting import Check
from .state import writable

BATCH = 256
RESNET_BF16 = Model("resnet50", BATCH, str(BATCH), precision="bf16", nhwc=True)
RESNET_TF32 = Model("resnet50", BATCH, str(BATCH), precision="tf32")
VGG = Model("vgg16", 256, "64,256", repetitions=2)
TRANSFORMER = Model("tiny-transformer", 4096, "4096", optimizer="adam")
LENET = Model("lenet-digits", 16, "4,16", optimizer="momentum", repetitions=1)

# Policies that recompute and swap, then those that do either; what is not named comes last.
FIRST = ("superneurons", "capuchin", "tensile", "chen", "cheap", "modnn", "window", "vdnn-all", "vdnn-dyn")
SHARES = (40, 70)  # per cent of what is live with everything resident
SMALL_SHARES, FEW = (60, 90, 110), 4  # of a network whose parameters and workspaces are most of it; policies
MANY = 5  # policies that come before the other networks
TWELVE = 12 << 30
IMAGE = 80 << 20  # what ResNet-50 in f32 keeps of an image at the least
VIRTUAL = {"vmm": ("--placement", "vmm", "--chunk", "2M"), "paged": ("--placement", "paged")}
DIGITS, PIXELS = ("lenet-digits", 5, 2), ("tiny-transformer", 3, 1)  # graph, batch, rounds


def policies(commands, tools):
    """All that make plans."""
    told = commands.must(tools.planc, "compare", tools.graph("lenet-digits"), "--device", "h100", "--json", seconds=30)
    found = [row["policy"] for row in json.loads(told)["rows"] if row["policy"] not in ("ideal", "none")]
    return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def device(context):
    told = context.commands.must(context.tools.planrun, "info")
    properties = context.commands.run(context.tools.planrun, "info", "--properties")
    with writable(context.state.path("device.txt")) as file:
        print(told, clocks.facts(context.commands), sep="\n", file=file)
    if properties.returncode == 0:
        name = os.path.join("profiles", context.device + ".properties.json")
        with writable(context.state.path(name)) as file:
            file.write(properties.stdout)
        context.keep(name)
    context.row("properties dumped", properties.returncode == 0)
    context.keep("device.txt")


def numerics_of(tools, precision, minutes):
    for name, batch, rounds in (DIGITS, PIXELS):
        yield Check(f"numerics {name} {precision}", minutes, numerics.model, (tools.graph(name), precision, batch, rounds))
    yield Check(f"numerics zoo {precision}", minutes, numerics.zoo, (precision,))


def sanitizers(tools, minutes):
    sources = [(tools.graph(name), (batch, rounds)) for name, batch, rounds in (DIGITS, PIXELS)]
    for tool, needed in zip(("memcheck", "racecheck"), minutes, strict=True):
        yield Check(tool, needed, numerics.sanitize, (tool, sources))


def profile(model, minutes):
    return Check(f"{model.label} profile", minutes, steps.profile, (model,))


def resident(model, minutes, described):
    jobs = [steps.resident_job(model)] + [steps.described_job(model, described)] * bool(described)
    return Check(f"{model.label} resident", minutes, steps.resident, (model,), (f"{model.label} profile",), tuple(jobs))


def planned(name, job, minutes, whole=False):
    return Check(name, minutes, steps.planned, (job, whole), (f"{job.model.label} profile",), (job,))


def by_policies(model, names, minutes, shares=SHARES):
    for policy in names:
        yield planned(f"{model.label} {policy}", Job(model, policy, shares=shares), minutes)


def virtual(model, minutes, shares=SHARES):
    for placement, options in VIRTUAL.items():
        job = Job(model, "window", shares=shares, options=options)
        yield Check(f"virtual memory {placement}", minutes, steps.virtual_memory, (job,), (f"{model.label} profile",), (job,))


def stand_ins(model, minutes, shares=SHARES):
    job = Job(model, "vdnn-all", shares=shares)
    for options in ((), ("--graph",), ("--jitter", "1", "--poison")):
        yield Check(" ".join([f"stand-ins {model.label}", *options]), minutes, numerics.stand_ins, (job, options),
                    (f"{model.label} profile",), (job,))


def pytorch(model, minutes, *modes):
    for mode in modes:
        yield Check(f"PyTorch {model.label} {mode}", minutes, steps.pytorch, (model.name, model.batch, model.precision, mode))


def under_plans(model, minutes):
    """PyTorch's own step, following a plan."""
    theirs, step = f"PyTorch {model.label} checkpoint", (model.name, model.batch, model.precision)
    for name, check in (("followed", followed.followed), ("followed to the same bits", followed.same_bits)):
        yield Check(f"PyTorch {model.label} {name}", minutes, check, (*step, theirs), (theirs,))


def beyond(model, minutes):
    batch = model.unmeasured
    theirs = f"PyTorch {model.label} checkpoint, batch {batch}"
    yield Check(theirs, minutes[0], steps.pytorch, (model.name, batch, model.precision, "checkpoint"))
    yield Check(f"{model.label} beyond the memory", minutes[1], steps.beyond, (model, batch, theirs),
                (f"{model.label} profile", theirs))


def full(tools, names, described, memory_bytes):
    resnet = Model("resnet50", BATCH, str(BATCH), unmeasured=(memory_bytes // (BATCH * IMAGE) + 1) * BATCH)
    yield Check("device", 0.1, device)
    yield from numerics_of(tools, "f32", 0.05)
    yield Check("numerics ops", 2.8, numerics.ops)
    yield Check("links", 0.1, links.links, ("8G",))
    yield from numerics_of(tools, "bf16", 0.3)
    yield from numerics_of(tools, "tf32", 0.1)

    yield profile(resnet, 1.2)
    yield resident(resnet, 0.35, described)
    yield from pytorch(resnet, 0.6, "plain", "checkpoint")
    yield from under_plans(resnet, 1.0)
    yield Check("resnet50-f32 at PyTorch's checkpointing's peak", 0.3, steps.at_peak_of,
                (resnet, "PyTorch resnet50-f32 checkpoint", names),
                ("resnet50-f32 profile", "PyTorch resnet50-f32 checkpoint"))
    yield profile(RESNET_BF16, 1.5)
    yield resident(RESNET_BF16, 0.35, described)
    yield from pytorch(RESNET_BF16, 0.5, "plain")
    yield profile(RESNET_TF32, 1.0)
    yield resident(RESNET_TF32, 0.35, described)

    yield from by_policies(resnet, names[:MANY], 0.2)
    yield from beyond(resnet, (1.8, 1.3))
    yield profile(TRANSFORMER, 0.25)
    yield resident(TRANSFORMER, 0.25, described)
    yield profile(VGG, 2.1)
    yield resident(VGG, 0.5, described)
    yield from pytorch(VGG, 1.2, "plain", "checkpoint")
    yield from sanitizers(tools, (0.9, 0.8))
    yield planned("resnet50-f32 modnn for 12 GiB", Job(resnet, "modnn", TWELVE), 0.9, whole=True)
    yield from virtual(resnet, 0.3)
    yield from stand_ins(resnet, 0.2)
    yield from by_policies(resnet, names[MANY:], 0.4)
    yield Check("numerics resnet50 f32", 0.4, numerics.model, (tools.graph("resnet50"), "f32", 2, 1))
    yield planned("vgg16-f32 modnn for 12 GiB", Job(VGG, "modnn", TWELVE), 0.6, whole=True)
    yield from pytorch(resnet, 1.2, "save_on_cpu")
    yield Check("numerics large", 1.5, numerics.large)
    yield Check("drift", 1.3, steps.drift, (steps.resident_job(resnet), 60), ("resnet50-f32 profile",),
                (steps.resident_job(resnet),))


def small(tools, names, described, memory_bytes):
    """The same with networks that take no time, for trying this out."""
    yield Check("device", 0.1, device)
    yield from numerics_of(tools, "f32", 0.1)
    yield Check("links", 0.1, links.links, ("16M",))
    yield profile(LENET, 0.1)
    yield resident(LENET, 0.1, described)
    yield planned("lenet-digits-f32 modnn for 60 %", Job(LENET, "modnn", shares=(60,)), 0.1, whole=True)
    yield from by_policies(LENET, names[:FEW], 0.1, SMALL_SHARES)
    yield Check("lenet-digits-f32 beyond 90 %", 0.1, steps.beyond, (LENET, LENET.batch, None, SMALL_SHARES[1:2]),
                ("lenet-digits-f32 profile",))
    yield from virtual(LENET, 0.1, (10000,))
    yield from stand_ins(LENET, 0.1, SMALL_SHARES)
    yield Check("drift", 0.1, steps.drift, (steps.resident_job(LENET), 0), ("lenet-digits-f32 profile",),
                (steps.resident_job(LENET),))
