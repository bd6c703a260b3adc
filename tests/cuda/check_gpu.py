#!/usr/bin/env python3
"""Checks the CUDA backend on this machine's GPU and writes down what it finds.

usage: check_gpu.py [--out FOLDER] [--minutes N] [--resume] [--small]

From a checkout (`make check-gpu`) or from the bundle (`make gpu-bundle`). Ends with "N passed, N failed" and writes
results.json, results.txt, the device's properties and the profiles made to FOLDER. Checks, in order of importance:

  numerics   every op and algorithm in f32 against the host, bits repeatable (compare_backends); whole plans of stand-ins
  plans      ResNet-50 and VGG-16 with 256 images: profiled, planned for 12G, run with --verify --deterministic; time
             against the simulator's, with and without --graph; memory against the plan's
  PyTorch    the same models there, with and without its checkpointing
  policies   the same models by every policy for 40 % of what is live with everything resident, 70 % where that cannot be
  the rest   virtual memory, TF32 and bf16, stand-ins under every way to run, compute-sanitizer

What does not fit the time is told as not reached, and fails; --resume goes on from the results in FOLDER, so that several
short sittings make a whole one. A plan that cannot be made is told with the least budget and is no failure. --small takes
LeNet instead, for trying this out."""

import argparse
import concurrent.futures
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
LONG_NS = 500e6  # of iterations of which few are enough


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
    environment = os.environ
    if ours:
        environment = {"PLANRT_PLUGINS": BUILD, **os.environ, "PLANC_PROFILES": profiles,
                       "LD_LIBRARY_PATH": ":".join(PATHS)}
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
    def __init__(self, out, minutes, resume, head):
        global DEADLINE
        self.out, self.head = out, head
        DEADLINE = time.monotonic() + 60 * minutes
        self.rows, self.done = [], {}  # checks that are over, with what they gave
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
        """Runs a check that may fail, if there is time and it has not been run; gives what it gives or gave."""
        if name in self.done:
            return self.done[name]
        if time.monotonic() > DEADLINE:
            self.row(name, False, why="not reached in time")
            return None
        out = None
        self.write()  # whatever may end this program
        try:
            out = function(self, name, *arguments)
        except Unfit as unfit:
            self.row(name, None, why=str(unfit))
        except subprocess.TimeoutExpired as error:
            self.row(name, False, why=f"took too long: {error.cmd[1:3]}")
            return None
        except (Failure, OSError, KeyError, ValueError, IndexError, TypeError) as error:
            self.row(name, False, why=str(error))
        self.done[name] = out
        return out

    def write(self):
        path = os.path.join(self.out, "results.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({**self.head, "done": self.done, "rows": self.rows}, file, indent=1)
        os.replace(path + ".part", path)
        with open(os.path.join(self.out, "results.txt"), "w", encoding="utf-8") as file:
            for key, value in self.head.items():
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

NUMERICS = (("lenet-digits", 5, 2), ("tiny-transformer", 3, 1))  # model, batch, rounds


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


def reserved_of(path):
    """What a plan reserves, its algorithms' code included."""
    return json.loads(must(PLANC, "show", path, "--json"))["reserved_bytes"]


class Model:
    """A graph at a batch, with a profile made here."""

    def __init__(self, checks, name, batch, batches, repetitions):
        self.name, self.batch = name, batch
        self.profile = os.path.join(checks.out, f"{name}-{batch}.json")
        checks.each(f"profile {name}", self.make_profile, batches, repetitions)
        told = run(PLANC, "plan", graph(name), "--profile", self.profile, "--batch", batch, "--policy", "none", "--budget",
                   "1K", "-o", os.devnull).stderr
        self.live = least_budget(told)  # of what is live with everything resident, and what is reserved
        with tempfile.TemporaryDirectory() as folder:
            self.reserved = reserved_of(self.plan(folder, "none", self.live)[0])

    def make_profile(self, checks, name, batches, repetitions):
        start = time.monotonic()
        must(PLANRUN, "profile", graph(self.name), "--backend", "cuda", "--deterministic", "--batches", batches,
             "--repetitions", repetitions, "-o", self.profile, timeout=400)
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        checks.row(name, True, seconds=round(time.monotonic() - start), reserved_bytes=profile["device"]["reserved_bytes"],
                   variants=sum(len(op["variants"]) for op in profile["ops"]))

    def share(self, percent):
        """So much of the peak. A small model's is hardly more than what is reserved: there that is left aside."""
        if self.live > 4 * self.reserved:
            return self.live * percent // 100
        return self.reserved + (self.live - self.reserved) * percent // 100

    def plan(self, folder, policy, budget, *options):
        """A plan's path, and what planc says of it. Unfit where the budget is too small."""
        path = os.path.join(folder, f"{self.name}-{policy}-{budget}.plan")
        done = run(PLANC, "plan", graph(self.name), "--profile", self.profile, "--batch", self.batch, "--policy", policy,
                   "--budget", budget, "--json", "-o", path, *options)
        if done.returncode == 1:
            raise Unfit(f"does not fit {budget} bytes; least {least_budget(done.stderr)}")
        if done.returncode:
            raise Failure(f"planc plan: {done.stderr.strip()[-300:]}")
        must(PLANC, "check", path, "--budget", budget)
        return path, json.loads(done.stdout)

    def plan_by(self, folder, policy):
        """The plan at 40 %, or at 70 % where that cannot be, with its budget; or why there is none."""
        for percent in (40, 70):
            try:
                return (percent, self.share(percent), *self.plan(folder, policy, self.share(percent)))
            except (Unfit, Failure, subprocess.TimeoutExpired) as error:
                why = error
        return why


def must_have(model):
    if not model:
        raise Failure("there is no profile")


def execute(path, *options):
    return json.loads(must(PLANRUN, "exec", path, "--backend", "cuda", "--json", *options))


def traced(path, folder, iterations):
    """A run beside what was predicted of it, and what exec tells."""
    trace = os.path.join(folder, "run.json")
    told = execute(path, "--same-samples", "-n", iterations, "--trace", trace)
    return json.loads(must(PLANC, "simulate", path, "--against", trace, "--json")), told


def run_plan(checks, name, model, path, told, budget, resident_ns, graph_too=False, of=None):
    """Verifies a plan and times it; gives what an iteration takes."""
    of = of or name
    long = told["iteration_ns"] > LONG_NS
    with tempfile.TemporaryDirectory() as folder:
        verified = execute(path, "--deterministic", "--verify", "-n", 1)["verified"]
        simulated, ran = traced(path, folder, 3 if long else 9)
    measured = simulated["against"]["measured_ns"]
    off = [simulated["iteration_ns"] / measured - 1]
    figures = {"budget_bytes": budget, "peak_bytes": ran["peak_bytes"], "taken_bytes": ran["taken_bytes"],
               "measured_ms": round(measured / 1e6, 3), "predicted_ms": round(simulated["iteration_ns"] / 1e6, 3),
               "ops_as_measured_ms": round(simulated["against"]["predicted_as_measured_ns"] / 1e6, 3),
               "moved_bytes": simulated["d2h_bytes"] + simulated["h2d_bytes"],
               "recompute_ms": round(simulated["recompute_ns"] / 1e6, 3), "rounds": told["rounds"]}
    if resident_ns:
        figures["overhead"] = f"{measured / resident_ns - 1:+.1%}"
    if graph_too:
        replayed = execute(path, "--same-samples", "-n", 8 if long else 30, "--graph")["period_ns"]
        captured = json.loads(must(PLANC, "simulate", path, "--graph-replay", "--json"))["iteration_ns"]
        figures.update(graph_ms=round(replayed / 1e6, 3), graph_predicted_ms=round(captured / 1e6, 3))
        off.append(captured / replayed - 1)
        # Beyond what the run's own ops take: what they were predicted to take is the other check's.
        least = simulated["against"]["predicted_as_measured_ns"]
        checks.row(f"{name}: executor's overhead with --graph", replayed <= least * (1 + OVERHEAD), of=of,
                   overhead=f"{replayed / least - 1:+.2%}")
    checks.row(f"{name}: verified, memory within the plan", verified and ran["taken_bytes"] <= reserved_of(path),
               of=of, **figures)
    checks.row(f"{name}: time within 3 %", all(abs(o) <= WITHIN for o in off), of=of,
               off=",".join(f"{o:+.1%}" for o in off))
    return measured


def plan_and_run(checks, name, model, policy, budget, resident_ns, graph_too):
    must_have(model)
    budget = budget or model.share(60)
    with tempfile.TemporaryDirectory() as folder:
        path, told = model.plan(folder, policy, budget)
        return run_plan(checks, name, model, path, told, budget, resident_ns, graph_too)


def policies():
    """All that make plans."""
    rows = json.loads(must(PLANC, "compare", graph("lenet-digits"), "--device", "h100", "--json"))["rows"]
    return [row["policy"] for row in rows if row["policy"] not in ("ideal", "none")]


def by_policy(checks, name, model, planned, resident_ns):
    must_have(model)
    made = planned.result()
    if isinstance(made, Exception):
        raise made
    percent, budget, path, told = made
    run_plan(checks, f"{name} at {percent} %", model, path, told, budget, resident_ns, of=name)


def by_all_policies(checks, made):
    """Plans are made beside each other; only one runs at a time."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        tasks = [(f"{name} {policy}", model, policy, resident_ns) for name, model, resident_ns in made
                 for policy in policies()]
        planned = {name: pool.submit(model.plan_by, folder, policy) for name, model, policy, _ in tasks
                   if model and name not in checks.done and time.monotonic() < DEADLINE}
        concurrent.futures.wait(planned.values())
        for name, model, _, resident_ns in tasks:
            checks.each(name, by_policy, model, planned.get(name), resident_ns)


def virtual_memory(checks, name, model, batch, placement):
    with tempfile.TemporaryDirectory() as folder:
        path, profiles = os.path.join(folder, "x.plan"), roomy_profiles(folder, 2 << 30)
        common = [PLANC, "plan", graph(model), "--device", "h100", "--batch", batch, "--policy", "window", "--placement",
                  placement, "--chunk", "2M", "-o", path]
        least = least_budget(run(*common, "--budget", "1K", profiles=profiles).stderr)
        must(*common, "--budget", least + (64 << 20), profiles=profiles)
        verified = [execute(path, "--verify", "-n", 2, *options)["verified"] for options in ([], ["--graph"])]
    checks.row(name, all(verified))


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
        # Newer libraries ask older drivers for what they lack, and go on without: that is no error of ours.
        done = run(tool, "--report-api-errors", "no", "--error-exitcode", 9, PLANRUN, "exec", path, "--backend", "cuda", "-n", 2, timeout=180)
    if "Device not supported" in done.stdout + done.stderr:
        checks.row(name, None, why="compute-sanitizer does not support this device here")
    else:
        told = re.findall(r"ERROR SUMMARY: .*", done.stdout + done.stderr)
        checks.row(name, done.returncode == 0, told=told[-1] if told else done.stderr.strip()[-200:])


# --- All -------------------------------------------------------------------------------------------------------------


def hold_device():
    """As long as somebody has the device open its driver stays as it is; else each program starts it anew."""
    try:
        return os.open("/dev/nvidia0", os.O_RDWR)
    except OSError:
        return None


def check(checks, info, small):
    properties = run(PLANRUN, "info", "--properties")
    if properties.returncode == 0:
        name = re.sub(r"[^A-Za-z0-9]+", "-", info["device"]).strip("-").lower()
        with open(os.path.join(checks.out, name + ".properties.json"), "w", encoding="utf-8") as file:
            file.write(properties.stdout)
    checks.row("device properties dumped", properties.returncode == 0)

    for model, batch, rounds in NUMERICS:
        checks.each(f"numerics {model} f32", numerics, model, "f32", batch, rounds)
    if not small:
        checks.each("numerics resnet50 f32", numerics, "resnet50", "f32", 2, 1)
    ways = (("lenet-digits", 8),) if small else (("tiny-transformer", 16), ("resnet50", 8))
    checks.each(f"stand-ins {ways[0][0]}", stand_ins, *ways[0], "vdnn-all", [])

    models = (("lenet-digits", 32, "8,32", 1),) if small else (("resnet50", 256, "256", 2), ("vgg16", 256, "64,128,256", 2))
    made = []
    for name, batch, batches, repetitions in models:
        try:
            model = Model(checks, name, batch, batches, repetitions)
        except (Failure, OSError, KeyError, ValueError, subprocess.TimeoutExpired):
            model = None  # which its profile's row tells
        resident_ns = checks.each(f"{name} resident", plan_and_run, model, "none", info["memory_bytes"] * 9 // 10, None,
                                  True)
        checks.each(f"{name} modnn at 60 %" if small else f"{name} modnn for 12 GiB", plan_and_run, model, "modnn",
                    None if small else 12 << 30, resident_ns, True)
        made.append((name, model, resident_ns))
        for mode in () if small else ("plain", "checkpoint"):
            checks.each(f"PyTorch {name} {mode}", pytorch, name, batch, mode)
    by_all_policies(checks, made)

    for placement in ("vmm", "paged"):
        checks.each(f"virtual memory {placement}", virtual_memory, *(("lenet-digits", 256) if small else ("resnet50", 8)),
                    placement)
    for model, batch, rounds in NUMERICS:
        for precision in ("tf32", "bf16"):
            checks.each(f"numerics {model} {precision}", numerics, model, precision, batch, rounds)
    for model, batch in ways:
        for options in (["--graph"], ["--jitter", "1", "--poison"]):
            checks.each(f"stand-ins {model} {' '.join(options)}", stand_ins, model, batch, "vdnn-all", options)
    checks.each("compute-sanitizer", sanitizer)


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
    head = {"device": info["device"], "versions": info["library"], "planrun": told["version"]}
    checks = Checks(arguments.out, arguments.minutes, arguments.resume, head)
    held = hold_device()
    print(", ".join(f"{key} {value}" for key, value in head.items()), flush=True)
    try:
        check(checks, info, arguments.small)
    finally:
        checks.write()
        if held is not None:
            os.close(held)
    print(f"{checks.count(True)} passed, {checks.count(False)} failed")
    return 1 if checks.count(False) else 0


if __name__ == "__main__":
    sys.exit(main())
