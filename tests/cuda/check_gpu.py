#!/usr/bin/env python3
"""Checks the CUDA backend on this machine's GPU and writes down what it finds.

usage: check_gpu.py [--out FOLDER] [--minutes N] [--resume] [--small]

From a checkout (`make check-gpu`) or from the bundle (`make gpu-bundle`). Ends with "N passed, N failed" and writes
results.json, results.txt, the device's properties and the profiles made to FOLDER. Checks, in order of importance:

  numerics   every op and algorithm against the host, bits repeatable (compare_backends); whole plans of stand-ins
  plans      ResNet-50 and VGG-16 with 256 images: profiled, planned for 12G and, by every policy, for 40 % of what is
             live with everything resident (70 % where that cannot be), run with --verify --deterministic; time against
             the simulator's, with and without --graph; memory against the plan's
  PyTorch    the same models there, with and without its checkpointing
  memory     compute-sanitizer over LeNet

What does not fit the time is told as not reached, and fails; --resume goes on from the results in FOLDER, so that several
short sittings make a whole one. A plan that cannot be made is told with the least budget and is no failure. --small takes
LeNet instead, for trying this out."""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.exists(os.path.join(HERE, "bin", "planrun"))
ROOT = HERE if BUNDLED else os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "bin" if BUNDLED else os.environ.get("BUILD", "build"))
COMPARE = os.path.join(BUILD, "compare_backends" if BUNDLED else "cuda/compare_backends")
PLANC, PLANRUN = os.path.join(BUILD, "planc"), os.path.join(BUILD, "planrun")
WITHIN = 0.03  # of the time predicted
OVERHEAD = 0.01


def libraries():
    """Where CUDA's and cuDNN's shared libraries may be: the toolkit's folders, and Python's packages."""
    folders = [os.path.join(BUILD, "..", "lib")] if BUNDLED else []
    for home in ("CUDNN_HOME", "CUDA_HOME"):
        if home in os.environ:
            folders += [os.path.join(os.environ[home], name) for name in ("lib64", "lib")]
    folders += ["/usr/local/cuda/lib64", "/usr/local/cuda/lib"]
    for path in sys.path:
        folders += sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib")))
    return [folder for folder in folders if os.path.isdir(folder)]


PROFILES = os.path.join(ROOT, "profiles")
PATHS = libraries() + [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
DEADLINE = None


def run(*command, timeout=300, profiles=PROFILES, ours=True):
    """Runs a program; others than ours must not see our choice of libraries. Nothing outlasts the deadline by much."""
    environment = {**os.environ, "PLANC_PROFILES": profiles, "LD_LIBRARY_PATH": ":".join(PATHS)} if ours else os.environ
    if DEADLINE:
        timeout = max(5, min(timeout, DEADLINE - time.monotonic()))
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment,
                          timeout=timeout)


def graph(name):
    return os.path.join(ROOT, "graphs", name + ".yaml")


class Failure(Exception):
    pass


class Unfit(Exception):
    """A plan that cannot be made, with the reason."""


def must(*command, **how):
    done = run(*command, **how)
    if done.returncode:
        name = os.path.basename(str(command[0]))
        raise Failure(f"{name} {' '.join(map(str, command[1:]))}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


class Checks:
    def __init__(self, out, minutes, resume):
        global DEADLINE
        self.out = out
        DEADLINE = time.monotonic() + 60 * minutes
        self.rows, self.done = [], []
        os.makedirs(out, exist_ok=True)
        path = os.path.join(out, "results.json")
        if resume and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.done = found["done"]
            self.rows = [row for row in found["rows"] if row["of"] in self.done]

    def count(self, ok):
        return sum(row["ok"] is ok for row in self.rows)

    def row(self, name, ok, of=None, **figures):
        """A line of the results, a part of check `of`; `ok` None: for information."""
        self.rows.append({"check": name, "ok": ok, "of": of or name, **figures})
        mark = {True: "ok    ", False: "FAILED", None: "      "}[ok]
        print(mark, name, " ".join(f"{key}={value}" for key, value in figures.items()), flush=True)

    def each(self, name, function, *arguments):
        """Runs a check that may fail, if there is time and it has not been run; gives what it gives."""
        if name in self.done:
            return None
        if time.monotonic() > DEADLINE:
            self.row(name, False, why="not reached in time")
            return None
        out = None
        try:
            out = function(self, name, *arguments)
        except Unfit as unfit:
            self.row(name, None, why=str(unfit))
        except subprocess.TimeoutExpired as error:
            self.row(name, False, why=f"took too long: {error.cmd[1:3]}")
            return None
        except (Failure, OSError, KeyError, ValueError, IndexError, TypeError) as error:
            self.row(name, False, why=str(error))
        self.done.append(name)
        return out

    def write(self, head):
        path = os.path.join(self.out, "results.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({**head, "done": self.done, "rows": self.rows}, file, indent=1)
        os.replace(path + ".part", path)
        with open(os.path.join(self.out, "results.txt"), "w", encoding="utf-8") as file:
            for key, value in head.items():
                print(f"{key}: {value}", file=file)
            for row in self.rows:
                mark = {True: "ok", False: "FAILED", None: "-"}[row["ok"]]
                rest = " ".join(f"{key}={value}" for key, value in row.items() if key not in ("check", "ok", "of"))
                print(f"{mark:6} {row['check']:44} {rest}", file=file)


def roomy_profiles(folder, reserved_bytes):
    """The profiles with an H100 that reserves more: tools take memory as well."""
    with open(os.path.join(PROFILES, "h100.json"), encoding="utf-8") as file:
        profile = json.load(file)
    profile["device"]["reserved_bytes"] = reserved_bytes
    with open(os.path.join(folder, "h100.json"), "w", encoding="utf-8") as file:
        json.dump(profile, file)
    return folder


def least_budget(told):
    found = re.search(r"least feasible budget of \S+ is (\d+) bytes", told)
    if not found:
        raise Failure(f"no least budget in: {told.strip()[-200:]}")
    return int(found[1])


# --- Numerics --------------------------------------------------------------------------------------------------------


def numerics(checks, name, model, precision, batch, rounds):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.yaml")
        must(PLANC, "train", graph(model), "--precision", precision, "-o", path)
        done = run(COMPARE, "cuda", path, batch, rounds)
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()[-300:]]
    checks.row(name, done.returncode == 0, told=last[0].split(": ", 1)[-1],
               **({"first": done.stdout.splitlines()[0]} if done.returncode and done.stdout else {}))


def stand_ins(checks, name, model, batch, policy, options):
    with tempfile.TemporaryDirectory() as folder:
        path, profiles = os.path.join(folder, "x.plan"), roomy_profiles(folder, 2 << 30)
        common = [PLANC, "plan", graph(model), "--device", "h100", "--batch", batch, "--policy", policy, "-o", path]
        least = least_budget(run(*common, "--budget", "1K", profiles=profiles).stderr)
        must(*common, "--budget", least + (64 << 20), profiles=profiles)
        verified = json.loads(must(PLANRUN, "exec", path, "--backend", "cuda", "--synthetic", "-n", 3, "--json", *options))
    checks.row(name, verified["verified"])


# --- Plans -----------------------------------------------------------------------------------------------------------


class Model:
    """A graph at a batch, with a profile made here."""

    def __init__(self, checks, name, batch, batches, repetitions):
        self.name, self.batch = name, batch
        self.profile = os.path.join(checks.out, f"{name}-{batch}.json")
        start, there = time.monotonic(), os.path.exists(self.profile)
        if not there:
            must(PLANRUN, "profile", graph(name), "--backend", "cuda", "--deterministic", "--batches", batches,
                 "--repetitions", repetitions, "-o", self.profile, timeout=400)
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        self.reserved = profile["device"]["reserved_bytes"]
        told = run(PLANC, "plan", graph(name), "--profile", self.profile, "--batch", batch, "--policy", "none", "--budget",
                   "1K", "-o", os.devnull).stderr
        self.live = least_budget(told)  # of what is live with everything resident, and what is reserved
        if not there:
            checks.row(f"profile {name}", True, seconds=round(time.monotonic() - start), live_bytes=self.live,
                       variants=sum(len(op["variants"]) for op in profile["ops"]), reserved_bytes=self.reserved)

    def share(self, percent):
        """So much of the peak. A small model's is hardly more than what is reserved: there that is left aside."""
        if self.live > 4 * self.reserved:
            return self.live * percent // 100
        return self.reserved + (self.live - self.reserved) * percent // 100

    def plan(self, folder, policy, budget, *options):
        """A plan's path, and what planc says of it. Unfit where the budget is too small."""
        path = os.path.join(folder, f"{self.name}-{policy}.plan")
        done = run(PLANC, "plan", graph(self.name), "--profile", self.profile, "--batch", self.batch, "--policy", policy,
                   "--budget", budget, "--json", "-o", path, *options)
        if done.returncode == 1:
            raise Unfit(f"does not fit {budget} bytes; least {least_budget(done.stderr)}")
        if done.returncode:
            raise Failure(f"planc plan: {done.stderr.strip()[-300:]}")
        must(PLANC, "check", path, "--budget", budget)
        return path, json.loads(done.stdout)


def iteration_ns(path, few, many, *options):
    """Of the steady state: what more iterations take more."""
    times = {}
    for n in (few, many):
        times[n] = json.loads(must(PLANRUN, "exec", path, "--backend", "cuda", "--same-samples", "-n", n, "--json",
                                   *options))["run_ns"]
    return (times[many] - times[few]) / (many - few)


def traced(path, folder, iterations):
    """The median iteration of a run beside the predicted one, and what exec tells of it."""
    trace = os.path.join(folder, "run.json")
    told = json.loads(must(PLANRUN, "exec", path, "--backend", "cuda", "--same-samples", "-n", iterations, "--trace", trace,
                           "--json"))
    return json.loads(must(PLANC, "simulate", path, "--against", trace, "--json")), told


def run_plan(checks, name, model, policy, budget, resident_ns, graph_too=False, of=None):
    """Plans, verifies, times; gives what an iteration takes."""
    of = of or name
    with tempfile.TemporaryDirectory() as folder:
        path, told = model.plan(folder, policy, budget)
        few, many = (2, 4) if told["iteration_ns"] > 500e6 else (3, 9)
        verified = json.loads(must(PLANRUN, "exec", path, "--backend", "cuda", "--deterministic", "--verify", "-n", 1,
                                   "--json"))["verified"]
        simulated, ran = traced(path, folder, many)
        measured = simulated["against"]["measured_ns"]
        off = [simulated["iteration_ns"] / measured - 1]
        figures = {"budget_bytes": budget, "peak_bytes": ran["peak_bytes"], "taken_bytes": ran["taken_bytes"],
                   "measured_ms": round(measured / 1e6, 3), "predicted_ms": round(simulated["iteration_ns"] / 1e6, 3),
                   "moved_bytes": simulated["d2h_bytes"] + simulated["h2d_bytes"],
                   "recompute_ms": round(simulated["recompute_ns"] / 1e6, 3)}
        if resident_ns:
            figures["overhead"] = f"{measured / resident_ns - 1:+.1%}"
        if graph_too:
            replayed = iteration_ns(path, few, many, "--graph")
            captured = json.loads(must(PLANC, "simulate", path, "--graph-replay", "--json"))["iteration_ns"]
            figures.update(graph_ms=round(replayed / 1e6, 3), graph_predicted_ms=round(captured / 1e6, 3))
            off.append(captured / replayed - 1)
            checks.row(f"{name}: executor's overhead with --graph", replayed <= captured * (1 + OVERHEAD), of=of,
                       overhead=f"{replayed / captured - 1:+.2%}")
    checks.row(f"{name}: verified, memory within the plan", verified and ran["taken_bytes"] <= model.reserved, of=of,
               **figures)
    checks.row(f"{name}: time within 3 %", all(abs(o) <= WITHIN for o in off), of=of,
               off=",".join(f"{o:+.1%}" for o in off))
    return measured


def policies():
    """All that make plans."""
    rows = json.loads(must(PLANC, "compare", graph("lenet-digits"), "--device", "h100", "--json"))["rows"]
    return [row["policy"] for row in rows if row["policy"] not in ("ideal", "none")]


def by_policy(checks, name, model, policy, resident_ns):
    try:
        run_plan(checks, f"{name} at 40 %", model, policy, model.share(40), resident_ns, of=name)
    except Unfit:
        run_plan(checks, f"{name} at 70 %", model, policy, model.share(70), resident_ns, of=name)


# --- Comparisons -----------------------------------------------------------------------------------------------------

TORCH = r"""
import json, sys, time, torch, torchvision
from torch.utils.checkpoint import checkpoint_sequential
name, batch, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
model = getattr(torchvision.models, name)().cuda().train()
x, y = torch.rand(batch, 3, 224, 224, device="cuda"), torch.randint(1000, (batch,), device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def forward(x):
    if mode != "checkpoint":
        return model(x)
    if name == "vgg16":
        x = checkpoint_sequential(model.features, 6, x, use_reentrant=False)
        return model.classifier(torch.flatten(model.avgpool(x), 1))
    x = model.maxpool(model.relu(model.bn1(model.conv1(x))))
    for stage in (model.layer1, model.layer2, model.layer3, model.layer4):
        x = checkpoint_sequential(stage, len(stage), x, use_reentrant=False)
    return model.fc(torch.flatten(model.avgpool(x), 1))
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(forward(x), y).backward()
    optimizer.step()
for _ in range(3): step()
torch.cuda.synchronize(); torch.cuda.reset_peak_memory_stats()
times = []
for _ in range(5):
    start = time.perf_counter(); step(); torch.cuda.synchronize(); times.append(time.perf_counter() - start)
print(json.dumps({"step_ms": round(1e3 * sorted(times)[2], 3), "peak_bytes": torch.cuda.max_memory_allocated(),
                  "reserved_bytes": torch.cuda.max_memory_reserved(), "torch": torch.__version__}))
"""


def pytorch(checks, name, model, batch, mode):
    done = run(sys.executable, "-c", TORCH, model, batch, mode, timeout=120, ours=False)
    if done.returncode:
        checks.row(name, None, why=done.stderr.strip().splitlines()[-1:] or "failed")
    else:
        checks.row(name, None, **json.loads(done.stdout))


def sanitizer(checks, name):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        checks.row(name, None, why="there is no compute-sanitizer")
        return
    with tempfile.TemporaryDirectory() as folder:
        path, profiles = os.path.join(folder, "x.plan"), roomy_profiles(folder, 8 << 30)
        must(PLANC, "plan", graph("lenet-digits"), "--device", "h100", "--batch", 32, "--policy", "vdnn-all", "--budget",
             "16G", "-o", path, profiles=profiles)
        done = run(tool, "--error-exitcode", 9, PLANRUN, "exec", path, "--backend", "cuda", "-n", 2, timeout=180)
    if "Device not supported" in done.stdout + done.stderr:
        checks.row(name, None, why="compute-sanitizer does not support this device here")
    else:
        told = re.findall(r"ERROR SUMMARY: .*", done.stdout + done.stderr)
        checks.row(name, done.returncode == 0, told=told[-1] if told else done.stderr.strip()[-200:])


# --- All -------------------------------------------------------------------------------------------------------------


def check(checks, info, small):
    properties = run(PLANRUN, "info", "--properties")
    if properties.returncode == 0:
        name = re.sub(r"[^A-Za-z0-9]+", "-", info["device"]).strip("-").lower()
        with open(os.path.join(checks.out, name + ".properties.json"), "w", encoding="utf-8") as file:
            file.write(properties.stdout)
    checks.row("device properties dumped", properties.returncode == 0)

    for model, batch, rounds in (("lenet-digits", 5, 2), ("tiny-transformer", 3, 1)):
        for precision in ("f32", "tf32", "bf16"):
            checks.each(f"numerics {model} {precision}", numerics, model, precision, batch, rounds)
    if not small:
        checks.each("numerics resnet50 f32", numerics, "resnet50", "f32", 2, 1)
    for model, batch in (("lenet-digits", 8),) if small else (("tiny-transformer", 16), ("resnet50", 8)):
        for options in ([], ["--graph"], ["--jitter", "1", "--poison"]):
            checks.each(f"stand-ins {model} {' '.join(options)}".strip(), stand_ins, model, batch, "vdnn-all", options)
    checks.each("compute-sanitizer", sanitizer)

    models = (("lenet-digits", 32, "8,32", 1),) if small else (("resnet50", 256, "128,256", 2),
                                                               ("vgg16", 256, "128,256", 2))
    made = []
    for name, batch, batches, repetitions in models:
        try:
            model = Model(checks, name, batch, batches, repetitions)
        except (Failure, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
            checks.row(f"profile {name}", False, why=str(error)[-300:])
            continue
        resident_ns = checks.each(f"{name} resident", run_plan, model, "none", info["memory_bytes"] * 9 // 10, None, True)
        budget = model.share(60) if small else 12 << 30
        checks.each(f"{name} modnn for {budget >> 20} MiB", run_plan, model, "modnn", budget, resident_ns, True)
        made.append((model, resident_ns))
        for mode in () if small else ("plain", "checkpoint"):
            checks.each(f"PyTorch {name} {mode}", pytorch, name, batch, mode)
    for model, resident_ns in made:
        for policy in policies():
            checks.each(f"{model.name} {policy}", by_policy, model, policy, resident_ns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.join(ROOT if BUNDLED else BUILD, "check-gpu"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    told = json.loads(must(PLANRUN, "info", "--json"))
    info = next(backend for backend in told["backends"] if backend["name"] == "cuda")
    if not info["available"]:
        sys.exit(f"check-gpu: there is no GPU to check: {info['missing']}")
    checks = Checks(arguments.out, arguments.minutes, arguments.resume)
    head = {"device": info["device"], "versions": info["library"], "planrun": told["version"]}
    print(", ".join(f"{key} {value}" for key, value in head.items()), flush=True)
    try:
        check(checks, info, arguments.small)
    finally:
        checks.write(head)
    print(f"{checks.count(True)} passed, {checks.count(False)} failed")
    return 1 if checks.count(False) else 0


if __name__ == "__main__":
    sys.exit(main())
