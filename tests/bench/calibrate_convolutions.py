#!/usr/bin/env python3
"""Constants of a device description for convolutions in f32, calibrated on one measured profile.

    calibrate_convolutions.py DEVICE PROFILE GRAPH [-o FILE]

GRAPH is the training graph that PROFILE (planrun profile, at one batch) was measured on. An algorithm that beats the
device's peak on any op, its multiplications counted as the direct product's, transforms; one of cuBLASLt's is a product
with what lies in memory; all others are implicit products. For each of the three the rate is found at which predictions
are nearest to what the fastest algorithm of its kind took, in the mean of logarithms, every op counting the same. Prints
profiles/DEVICE.json with the rates in place; FFT, which nothing tells from Winograd, gets its."""

import argparse
import json
import math
import os
import subprocess
import tempfile

from benchlib import BUILD, ROOT

KINDS = ("implicit-gemm", "gemm", "winograd")
ALL = (*KINDS, "fft")
RATIOS = (1.5, 1.2, 1.05, 1.01)
CONVOLUTIONS = ("conv2d", "conv2d_dgrad", "conv2d_wgrad")
OFF = 1  # ppm: a rate at which nothing is fast
ORIGIN = "calibrated on the convolutions of {} (profiles/measured): tests/bench/calibrate_convolutions.py"


def convolutions(description, graph, batch, folder):
    """By name of each convolution its FLOPs and the time of its fastest algorithm, of a plan with everything resident."""
    device, plan = os.path.join(folder, "device.json"), os.path.join(folder, "x.plan")
    with open(device, "w", encoding="utf-8") as file:
        json.dump(description, file)
    subprocess.run([os.path.join(BUILD, "planc"), "plan", graph, "--device", device, "--batch", str(batch), "--policy", "none",
                    "--budget", "1T", "-o", plan], check=True, capture_output=True)
    with open(plan, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    ops = [line for line in lines if "op" in line]
    return {ops[line["n"]]["op"]: (int(str(ops[line["n"]]["flops"]).removesuffix("N")) * batch, line["t"]) for line in lines
            if line.get("i") == "exec" and ops[line["n"]]["type"] in CONVOLUTIONS}


def measured_by_kind(profile, flops, peak):
    """By kind and op: the least time of any of its algorithms."""
    times = {}  # by algorithm and op
    for op in profile["ops"]:
        for variant in op["variants"] if op["op"] in flops else ():
            times.setdefault(variant["algorithm"], {})[op["op"]] = min(point["time_ns"] for point in variant["points"])
    out = {kind: {} for kind in KINDS}
    for algorithm, of in times.items():
        beats = any(flops[op] / ns * 1e9 > peak for op, ns in of.items())
        kind = "gemm" if algorithm.startswith("cublaslt") else "winograd" if beats else "implicit-gemm"
        for op, ns in of.items():
            out[kind][op] = min(ns, out[kind].get(op, ns))
    return out


def alone(description, kind, ppm):
    """With every other kind too slow to be chosen."""
    rates = {other: {**description["multiply"][other], "flops_ppm": ppm if other == kind else OFF} for other in ALL}
    return {**description, "multiply": {**description["multiply"], **rates}}


def rate_of(description, kind, measured, predict):
    def distance(ppm):
        predicted = predict(alone(description, kind, ppm))
        errors = [abs(math.log(predicted[op][1] / ns)) for op, ns in measured.items()
                  if predicted[op][1] < 100 * ns]  # else the shape does not allow this kind
        return sum(errors) / len(errors)

    ppm = description["multiply"][kind]["flops_ppm"]
    best = distance(ppm)
    for ratio in RATIOS:
        for factor in (ratio, 1 / ratio):
            while (now := distance(min(1000000, round(ppm * factor)))) < best - 1e-6:
                ppm, best = min(1000000, round(ppm * factor)), now
    return ppm, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("profile")
    parser.add_argument("graph")
    parser.add_argument("-o", dest="output")
    options = parser.parse_args()
    path = os.path.join(ROOT, "profiles", options.device + ".json")
    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    with open(options.profile, encoding="utf-8") as file:
        profile = json.load(file)
    (batch,) = {point["batch"] for op in profile["ops"] for variant in op["variants"] for point in variant["points"]}
    with tempfile.TemporaryDirectory() as folder:
        def predict(now):
            return convolutions(now, options.graph, batch, folder)

        flops = {op: count for op, (count, _) in predict(description).items()}
        measured = measured_by_kind(profile, flops, description["compute"]["flops_per_second"])
        found = {kind: rate_of(description, kind, measured[kind], predict) for kind in KINDS}
    for kind in ALL:
        ppm, error = found[kind if kind in found else "winograd"]
        description["multiply"][kind]["flops_ppm"] = ppm
        description["origin"][f"multiply.{kind}"] = ORIGIN.format(os.path.basename(options.profile).removesuffix(".json"))
        if kind in found:
            print(f"{kind}: {ppm} ppm; {len(measured[kind])} ops, off by a factor of {math.exp(error):.3f} in the mean")
    with open(options.output or path, "w", encoding="utf-8") as file:
        json.dump(description, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
