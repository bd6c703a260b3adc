#!/usr/bin/env python3
"""Constants of a device description calibrated on BERT-large's training ops, batch 2 and 8, as NeuSight measured them.

    calibrate_description.py DEVICE [FOLDER] [--batch N] [-o FILE]

Prints profiles/DEVICE.json with the constants in place. Each constant is moved in turn as long as that brings the
predictions nearer to the times of ops alone; what the file said of them before is forgotten first. --batch leaves the other
batch out, to see how well it is predicted by constants that have not seen it (bench_descriptions.py --device)."""

import argparse
import itertools
import json
import math
import statistics
import sys

import bench_descriptions as bench
import eager

RATIOS = (1.25, 1.08, 1.02)
STEPS = (64, 24, 8, 2)
TILES = ((256, 128), (256, 64), (128, 64), (128, 32), (64, 32))
FAMILIES = {"linear": "linear", "linear-bias": "linear", "batched": "matrix product"}
SHARES = [("efficiency", name) for name in ("elementwise", "reduction", "gemm")] + \
         [("types", name) for name in ("softmax_grad", "layernorm", "aten.native_layer_norm_backward", "aten.native_dropout",
                                       eager.UNVECTORIZED, "aten.embedding_dense_backward",
                                       "aten.embedding_dense_backward.sorted")]
# Of kernels that find each element by its index, draw random numbers or reduce rows.
RATES = [("rates", name) for name in ("aten.native_dropout", "layernorm", "aten.native_layer_norm_backward", "embedding")]
MEMORY_BOUND = {"element-wise", "dropout", "layer norm", "softmax"}
CACHES = tuple(mib << 20 for mib in range(16, 54, 6))
CACHE_RATES = (2, 4, 8, 16)  # times that of the memory
KERNEL_NS = (1500, 4000)


def start(profile):
    """What calibration sets out from."""
    profile["compute"].update(kernel_ns=3000, sustained_ppm=1000000)
    profile["types"] = {}
    for section, name in SHARES:
        profile[section][name] = 700000
    profile["rates"] = {name: unbound(profile) for _, name in RATES}
    for family in FAMILIES:
        profile["multiply"][family] = {"flops_ppm": 800000, "tile": 128, "depth_overhead": 32, "small_tile": 64,
                                       "small_flops_ppm": 600000}


def fastest(profile):
    """No kernel asks for more than a cache gives."""
    return CACHE_RATES[-1] * profile["compute"]["memory_bytes_per_second"]


def unbound(profile):
    """A rate that binds no kernel whose operands come from memory, and those that find all in a fast cache."""
    return 2 * profile["compute"]["memory_bytes_per_second"]


class Fit:
    """A description and how far its predictions are from what was measured: for each kind of op the mean logarithm of the
    ratio of an op's times, and the median one, which counts for whoever reads what bench_descriptions.py prints."""

    def __init__(self, profile, host, files):
        self.profile, self.host, self.files = profile, host, files
        self.ops = {}

    def of(self, kinds):
        key = frozenset(kinds or ())
        if key not in self.ops:
            self.ops[key] = [bench.Ops(measured, kinds) for measured in self.files]
        return self.ops[key]

    def distance(self, kinds=None):
        """The shortest op waits for one launch and for one kernel or the event after it."""
        waits_ns = max(self.host.event_ns, self.profile["compute"]["kernel_ns"])
        self.profile["device"]["launch_ns"] = max(0, round(self.host.least_ns["element-wise", "forward"] - waits_ns))
        pairs = {}
        for of in self.of(kinds):
            for op, ns in zip(of.ops, of.predict(self.profile, self.host)):
                pairs.setdefault(op.kind, []).append((ns, op.ns))
        errors = [[abs(math.log(a / b)) for a, b in of] for of in pairs.values()]
        return sum(statistics.mean(of) + statistics.median(of) for of in errors)

    def candidates(self, holder, name):
        value = holder[name]
        if name == "depth_overhead":
            return sorted({max(0, min(1024, value + sign * step)) for step in STEPS for sign in (-1, 1)})
        rate = self.profile["compute"]["memory_bytes_per_second"]
        least, most = {"kernel_ns": KERNEL_NS, "bytes": (1, 1 << 40),
                       "bytes_per_second": (rate, fastest(self.profile))}.get(name, (1, 1000000))
        if holder is self.profile["rates"]:
            # One that binds nothing has to be brought far down at once.
            return sorted({round(min(rate * 1.25 ** step, fastest(self.profile))) for step in range(-12, 13)} |
                          {round(value * factor) for ratio in RATIOS for factor in (ratio, 1 / ratio)})
        return sorted({max(least, min(most, round(value * factor))) for ratio in RATIOS for factor in (ratio, 1 / ratio)})

    def move(self, holder, names, kinds=None):
        """Moves each constant as long as that brings the predictions nearer."""
        best = self.distance(kinds)
        while True:
            before = best
            for name in names:
                for candidate in self.candidates(holder, name):
                    kept, holder[name] = holder[name], candidate
                    found = self.distance(kinds) if candidate != kept else best
                    if found < best:
                        best = found
                    else:
                        holder[name] = kept
            if best > before * 0.998:
                return best

    def family(self, name):
        """The two sizes of tiles with which a family's shares fit best."""
        kinds, tried = {FAMILIES[name]}, []
        for tile, small_tile in TILES:
            self.profile["multiply"][name] = {"flops_ppm": 800000, "tile": tile, "depth_overhead": 32,
                                              "small_tile": small_tile, "small_flops_ppm": 600000}
            best = self.move(self.profile["multiply"][name], ["flops_ppm", "small_flops_ppm", "depth_overhead"], kinds)
            tried.append((best, dict(self.profile["multiply"][name])))
        self.profile["multiply"][name] = min(tried, key=lambda of: of[0])[1]


    def cache(self):
        """The cache with which ops that the memory binds fit best; shares and cache depend on each other."""
        tried = []
        moved = [(section, name) for section, name in SHARES + RATES if name != "gemm" and "embedding" not in name]
        for size, rate in itertools.product(CACHES, CACHE_RATES):
            self.profile["cache"] = {"bytes": size, "bytes_per_second":
                                     rate * self.profile["compute"]["memory_bytes_per_second"]}
            for section, name in moved:
                self.profile[section][name] = unbound(self.profile) if section == "rates" else 800000
            for _ in range(2):
                for section, name in moved:
                    self.move(self.profile[section], [name], MEMORY_BOUND)
                best = self.move(self.profile["cache"], ["bytes", "bytes_per_second"], MEMORY_BOUND)
            tried.append((best, json.dumps({key: self.profile[key] for key in ("cache", "efficiency", "types", "rates")})))
        self.profile.update(json.loads(min(tried)[1]))


def calibrate(profile, host, files):
    fit = Fit(profile, host, files)
    fit.cache()
    for turn in range(2):
        fit.move(profile["compute"], ["kernel_ns"])
        for section, name in SHARES + RATES:
            fit.move(profile[section], [name])
        fit.move(profile["cache"], ["bytes", "bytes_per_second"])
        for family in FAMILIES:
            fit.family(family)
        print(f"turn {turn + 1}: distance {fit.distance():.4f}", file=sys.stderr, flush=True)


def sustain(profile, files):
    """A device that is busy for long lowers its clock: products get slower until whole backward passes fit."""
    iterations = [bench.Iteration(measured) for measured in files]

    def is_too_fast(sustained_ppm):
        profile["compute"]["sustained_ppm"] = sustained_ppm
        return math.prod(of.predict(profile)[0][1] / of.measured_ns[1] for of in iterations) < 1

    low, high = 500, 1000
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (low, middle - 1) if is_too_fast(middle * 1000) else (middle, high)
    profile["compute"]["sustained_ppm"] = low * 1000


def tell_origins(profile, files):
    text = (f"calibrated on the training ops of BERT-large, batch {' and '.join(f.size.split('-')[1] for f in files)}, f32, "
            "eager PyTorch, as NeuSight (ASPLOS 2025) measured them: tests/bench/calibrate_description.py")
    origins = profile["origin"]
    for key in ["device.launch_ns", "compute.kernel_ns", "compute.sustained_ppm", "cache", "types", "rates"] + \
            [f"efficiency.{name}" for section, name in SHARES if section == "efficiency"] + \
            [f"multiply.{family}" for family in FAMILIES]:
        origins[key] = text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("device")
    parser.add_argument("folder", nargs="?", default=bench.FOLDER)
    parser.add_argument("--batch", help="calibrate on this batch alone")
    parser.add_argument("-o", "--output", default="-")
    options = parser.parse_args()
    gpu = next(gpu for gpu, device in bench.DEVICES.items() if device == options.device)
    files = bench.files_of(options.folder, gpu, bench.CALIBRATED_ON, f"*-{options.batch or '*'}")
    if not files:
        sys.exit(f"{options.folder} has no {bench.CALIBRATED_ON} of {gpu}")
    profile = bench.description(options.device)
    start(profile)
    calibrate(profile, bench.Host(gpu), files)
    sustain(profile, files)
    tell_origins(profile, files)
    text = json.dumps(profile, indent=2) + "\n"
    if options.output == "-":
        print(text, end="")
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
