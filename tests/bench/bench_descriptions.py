#!/usr/bin/env python3
"""Device descriptions held against published measurements: training ops alone and whole iterations in eager PyTorch, f32,
measured by NeuSight (ASPLOS '25), against what planc predicts from profiles/*.json.

    bench_descriptions.py [FOLDER] [--device NAME|FILE] [--ops]

FOLDER has NeuSight's train files of any models, ../shared/bench/neusight by default; --ops tells each size and direction of a
class apart, and the op of each that is predicted worst. Only errors are told, never what was measured. Descriptions are calibrated on BERT-large alone
(calibrate_description.py), and so is what the measuring itself adds, which is no device's; all other models are held out:

- An op alone was timed between two events on a device that waited for it. An op without a kernel shows how long the host
  takes to record an event; the device runs the op's kernels meanwhile. No op is faster than the fastest of its kind, which
  the host binds.
- An iteration is forward and backward, each timed from an idle device, without optimizer. Before, the allocator of
  PyTorch had been emptied, so that the host waits for cudaMalloc again and again as it enqueues kernels. The device does not
  wait for it: kernels enqueued before and after run on beside it (NVIDIA, "GPU Pro Tip: CUDA 7 Streams Simplify
  Concurrency", whose kernels overlap although cudaMalloc stands between them). What the device does not hide is added."""

import argparse
import functools
import glob
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

import eager
from benchlib import PLANC, ROOT, bench, table
from torch_allocator import segments_of

FOLDER = os.path.join(os.path.dirname(ROOT), "shared", "bench", "neusight")
CALIBRATED_ON = "bert_large"
DEVICES = {"NVIDIA_H100_80GB_HBM3": "h100", "NVIDIA_A100_80GB_PCIe": "a100-80g", "NVIDIA_L4": "l4"}
DIRECTIONS = {"forward": ("fw_latency",), "backward": ("bw_latency", "acc_latency")}
MOST_CALL_NS, CALL_STEP_NS = 1000000, 10000
REPEATS = 3  # of an op alone, the last of which counts: the cache then holds what it can
NS = 1e6     # in a millisecond


class Measured:
    """A file of ops and the iteration's beside it."""

    def __init__(self, path):
        self.path, stem = path, path[:-len(".csv")]
        self.gpu, _, model = os.path.basename(stem).partition(".")
        self.model, _, self.size = model.partition("-train-")
        with open(stem + ".json", encoding="utf-8") as file:
            self.whole = json.load(file)
        self.trace = eager.Trace(path, 1)

    def times(self, name):
        """How often an iteration runs the op of that name."""
        first, end = self.trace.layer()
        return max(1, self.whole["num_layer"]) if name in {row["Name"] for row in self.trace.rows[first:end]} else 1


def files_of(folder, gpu="*", model="*", size="*"):
    return [Measured(path) for path in sorted(glob.glob(os.path.join(folder, f"{gpu}.{model}-train-{size}.csv")))]


# --- planc --------------------------------------------------------------------------------------------------------

def description(device):
    with open(device if os.sep in device else os.path.join(ROOT, "profiles", device + ".json"), encoding="utf-8") as file:
        return json.load(file)


class Planned:
    """Kernels as a planc graph in a temporary folder."""

    def __init__(self, kernels):
        self.folder = tempfile.TemporaryDirectory()
        self.graph, self.count = os.path.join(self.folder.name, "g.yaml"), len(kernels)
        with open(self.graph, "w", encoding="utf-8") as file:
            file.write(eager.graph_text("trace", kernels))

    def on(self, profile):
        """planc's plan with all data resident: its summary and every kernel's time in ns."""
        out, device = os.path.join(self.folder.name, "x.plan"), os.path.join(self.folder.name, "device.json")
        with open(device, "w", encoding="utf-8") as file:
            json.dump({key: value for key, value in profile.items() if key != "origin"}, file)
        done = subprocess.run([PLANC, "plan", self.graph, "--inference", "--policy", "none", "--budget", "4000G",
                               "--device", device, "--json", "-o", out], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"planc plan: exit {done.returncode}\n{done.stderr}")
        with open(out, encoding="utf-8") as file:
            times = [int(re.search(r'"t":(\d+)', line)[1]) for line in file if line.startswith('{"i":"exec"')]
        assert len(times) == self.count
        return json.loads(done.stdout), times


# --- Ops alone ----------------------------------------------------------------------------------------------------

class Op:
    """One op in one direction: the kernels that each call of it runs, and what was measured."""

    def __init__(self, row, call, direction, times):
        forward, backward, sums = eager.alone(call)
        self.kind, self.direction, self.name, self.times = call.kind, direction, row["Name"], times
        self.calls = [forward] if direction == "forward" else [backward] * bool(backward) + [[k] for k in sums]
        self.empty = call.empty if direction == "backward" else 0
        self.ns = sum(float(row[column]) for column in DIRECTIONS[direction]) * NS

    def kernels(self):
        return [(kernel, "forward") for call in self.calls for kernel in repeated(call, self.direction == "backward")]


def repeated(kernels, alternating):
    """The kernels so often that the cache is as it was in a loop; where results of the last turn are still held when
    the next are made, they alternate between two places."""
    out = []
    for turn in range(REPEATS):
        other = {tensor: eager.like(tensor) for kernel in kernels for tensor in kernel.writes
                 if alternating and turn % 2 and tensor.kind == "activation"}
        out += [eager.Kernel(kernel.type, [other.get(t, t) for t in kernel.reads], [other.get(t, t) for t in kernel.writes],
                             kernel.traffic) for kernel in kernels]
    return out


class Ops:
    """Those of a file that have kernels and were measured; of some kinds where told."""

    def __init__(self, measured, kinds=None):
        ops = [Op(row, call, direction, measured.times(row["Name"])) for row, call in measured.trace.calls
               for direction in DIRECTIONS if kinds is None or call.kind in kinds]
        self.ops = [op for op in ops if op.ns > 0 and any(op.calls)]

    @functools.cached_property
    def planned(self):
        return Planned([kernel for op in self.ops for kernel in op.kernels()])

    def predict(self, profile, host):
        """Nanoseconds of each op alone, which lasts too short for the device's clock to fall."""
        compute = {key: value for key, value in profile["compute"].items() if key != "sustained_ppm"}
        _, times = self.planned.on({**profile, "compute": compute})
        launch_ns = profile["device"]["launch_ns"]
        out, at = [], 0
        for op in self.ops:
            ns = op.empty * host.event_ns
            for call in op.calls:
                at += REPEATS * len(call)
                ns += max(launched(times[at - len(call):at], launch_ns), len(call) * launch_ns + host.event_ns)
            out.append(max(ns, host.least_ns.get((op.kind, op.direction), 0)))
        return out


def launched(times, launch_ns, waits=itertools.repeat(0)):
    """When the last of these kernels ends on a device that waits for the first; the host waits before it launches each."""
    host = end = 0
    for time, wait in zip(times, waits):
        host += wait + launch_ns
        end = max(end, host) + time
    return end


class Host:
    """What measuring takes on the machine of a GPU, from BERT-large's ops."""

    def __init__(self, gpu):
        files = files_of(FOLDER, gpu, CALIBRATED_ON)
        empty = [float(row["fw_latency"]) * NS for measured in files for row in measured.trace.rows
                 if row["op"] in ("call_function", "call_method") and row["output_shape"] == "(1,)" and not row["dtype"]]
        self.event_ns = statistics.median(empty) if empty else 0
        self.least_ns = {}
        for measured in files:
            for op in Ops(measured).ops:
                key = op.kind, op.direction
                self.least_ns[key] = min(self.least_ns.get(key, op.ns), op.ns)


# --- Iterations ---------------------------------------------------------------------------------------------------

class Iteration:
    """An iteration's forward and backward, and the segments that each kernel waits for as the driver makes them."""

    def __init__(self, measured):
        phases = eager.iteration_of(eager.Trace(measured.path, measured.whole["num_layer"]))
        self.asked = segments_of(phases)[::2]
        self.parts = [Planned([(kernel, "forward") for kernel in sum(phases[:end], [])]) for end in (1, 2, 3)]
        self.measured_ns = measured.whole["fw_latency"] * NS, measured.whole["bwall_latency"] * NS

    def predict(self, profile):
        """Nanoseconds of forward and of backward, without the loss between them, on a host that has its memory; and
        those of their kernels."""
        plans = [part.on(profile) for part in self.parts]
        ends = [summary["iteration_ns"] for summary, _ in plans]
        return (ends[0], ends[2] - ends[1]), (plans[0][1], plans[2][1][self.parts[1].count:])


# Of a segment of so many bytes half the driver's time is for the bytes and half for the call. GMLake (ASPLOS 2024, arXiv
# 2401.08156, section 2.3, table 1) made 2 GiB on an A100 by cuMemCreate in chunks of 2, 128 and 1024 MiB, in 18.1, 0.89 and
# 0.79 times as long as one cudaMalloc of all takes. By least squares each of the 1024, 16 or 2 calls takes 0.0170 of that and
# 2 GiB take 0.687. Assumption: cudaMalloc parts its time alike, on every GPU.
CALL_BYTES = 51 << 20


class Driver:
    """What asking the driver for memory takes: the one constant with which BERT-large's forward passes fit best."""

    def __init__(self, gpu, profile):
        self.call_ns, self.launch_ns = 0, profile["device"]["launch_ns"]
        forwards = []
        for measured in files_of(FOLDER, gpu, CALIBRATED_ON):
            of = Iteration(measured)
            ns, kernels = of.predict(profile)
            forwards.append((ns[0], kernels[0], of.asked[0], of.measured_ns[0]))

        def distance(call_ns):
            self.call_ns = call_ns
            return sum(math.log((ns + self.exposed_ns(kernels, asked)) / measured_ns) ** 2
                       for ns, kernels, asked, measured_ns in forwards)

        self.call_ns = min(range(0, MOST_CALL_NS, CALL_STEP_NS), key=distance) if forwards else 0

    def exposed_ns(self, kernels, asked):
        """How much later the last of the kernels ends because the host waits for segments before it launches them."""
        waits = [sum(self.call_ns * (1 + size / CALL_BYTES) for size in segments) for segments in asked]
        return launched(kernels, self.launch_ns, waits) - launched(kernels, self.launch_ns)


# --- The whole ----------------------------------------------------------------------------------------------------

def error(predicted, measured):
    return predicted / measured - 1


def percent(value):
    return f"{100 * value:+.1f}"


def whole_iteration(measured, profile, driver):
    of = Iteration(measured)
    ns = [alone + driver.exposed_ns(kernels, asked) for alone, kernels, asked in zip(*of.predict(profile), of.asked)]
    return [error(a, b) for a, b in (*zip(ns, of.measured_ns), (sum(ns), measured.whole["e2e_latency"] * NS))]


def kinds_of(ops, predicted):
    """Errors by kind and direction."""
    errors = {}
    for op, ns in zip(ops, predicted):
        errors.setdefault((op.kind, op.direction), []).append((error(ns, op.ns), op.name))
    return errors


def main(options):
    gpus = {gpu: device for gpu, device in DEVICES.items() if options.gpu in (None, device)}
    files = [m for m in files_of(options.folder, model=options.model) if m.gpu in gpus]
    if not files:
        print(f"bench_descriptions: left out: there are no measurements of these GPUs in {options.folder}")
        sys.exit()
    iterations, kinds, worst, notes, classes = [], [], [], [], {}
    hosts, drivers = {}, {}
    for measured in files:
        profile = description(options.device or gpus[measured.gpu])
        if measured.gpu not in hosts:
            hosts[measured.gpu], drivers[measured.gpu] = Host(measured.gpu), Driver(measured.gpu, profile)
        told = [gpus[measured.gpu], measured.model, measured.size, "no" if measured.model == CALIBRATED_ON else "yes"]
        iterations.append(told + [percent(e) for e in whole_iteration(measured, profile, drivers[measured.gpu])])
        ops = Ops(measured)
        errors = kinds_of(ops.ops, ops.predict(profile, hosts[measured.gpu]))
        for (kind, direction), of in sorted(errors.items()):
            kinds.append(told[:3] + [kind, direction, len(of),
                                     f"{100 * statistics.median(abs(e) for e, _ in of):.1f}"])
            classes.setdefault((*told[:2], kind), []).extend(abs(e) for e, _ in of)
            furthest = max(of, key=lambda pair: abs(pair[0]))
            worst.append(told[:3] + [kind, direction, furthest[1], percent(furthest[0])])
        notes += [f"{measured.model}: {count} of {name}, which no kernel is known for, are left out"
                  for name, count in sorted(measured.trace.unknown.items())]
    table("Whole iterations, error in per cent", ["device", "model", "sequence-batch", "held out", "forward", "backward", "whole"],
          iterations, sorted(set(notes)))
    table("Ops alone, median error in per cent by class", ["device", "model", "held out", "class", "ops", "error"],
          [[*key[:2], "no" if key[1] == CALIBRATED_ON else "yes", key[2], len(of), f"{100 * statistics.median(of):.1f}"]
           for key, of in sorted(classes.items())])
    if options.ops:
        table("The same by size and direction", ["device", "model", "sequence-batch", "class", "direction", "ops", "error"],
              kinds)
        table("The op that is furthest off", ["device", "model", "sequence-batch", "class", "direction", "op", "error"], worst)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", nargs="?", default=FOLDER)
    arguments.add_argument("--model", default="*", help="only files of this model")
    arguments.add_argument("--gpu", choices=sorted(DEVICES.values()), help="only files of this GPU")
    arguments.add_argument("--device", metavar="NAME|FILE", help="in place of the GPU's description")
    arguments.add_argument("--ops", action="store_true", help="sizes and directions apart, and the worst op of each")
    bench("predicted from device descriptions as committed, beside measurements published.", {"all": main}, arguments)
