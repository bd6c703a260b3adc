#!/usr/bin/env python3
"""Adaptive-window scheduling against its paper (papers: out-of-core): Table 1, fragmentation (Fig. 3), largest batches.

Table 1 is ResNet-50 on a V100 of 16 GB with NVLink; its LMS rows are another paper's on a P100. Each device is calibrated
on its own baseline row and nothing else: a line through the baseline's times gives what an iteration takes beside its
images and what an image takes, which is put on every time, and which all ops are scaled to.

What decides which batches fit: lms lies where TensorFlow's allocator puts it, window with best fit where nnabla's does on a
device that gives blocks in pages of 2 MiB, and window takes the fastest algorithms whatever their workspace, nnabla's
default. The rest of lms is IBM's code as published, its four ways to wait for copies included.

Three links, all else the same. The paper writes of two NVLinks of 50 GB/s each. Taken at its word that is 100 GB/s a
direction, of which the share is reached that POWER9 does reach of its own (45.9 of 50): the rows at 91.8 GB/s, twice the
link of the device description. Its machines exist with two and with three bricks, 50 and 75 GB/s a direction at peak, 45.9
and 68 measured: 45.9, the description's, is what the words must mean if they count both directions, but the paper's times
need more than its peak ("least GB/s": what cannot stay has to go out and come back, one after the other, however it is
scheduled). 68 comes nearest to its figures. None is calibrated.

"+ VA" is the plan simulated as the paper runs it: chunks are mapped as data comes and goes, each in 100 us of a host that
has waited for the ops before. The paper does not say what mapping costs there; elsewhere a page or chunk takes 40 us to map and
34 to unmap (vAttention, arXiv 2405.04437, table 3, pages of 2 MB), more where it is larger (GMLake, arXiv 2401.08156, table 1:
five times as much for 128 MB as for 2). "Mapped before" is the same plan as planrun runs it, with nothing mapped in the
step. Where nothing is swapped, the paper's + VA rows take 0.3 to 0.4 ms longer than its baseline for each chunk that is
mapped here, waiting included. "0.2 ms" is a row with twice the assumption, no calibration either: it tells what the figures
of the paper's machine are consistent with.

Only data larger than a chunk has chunks of its own. The paper does not say so; the published implementation has the rule
and does not call it (nnabla-ext-cuda, CudaCachedVirtualArray::select_allocator). That the paper's runs were with it is an
inference: with a chunk of 40 MiB for each of the 161 parameters, their gradients and momenta, 18.9 GiB in all, the
simulation gives 208 images/s at 64 and 261 at 128 (paper 304 and 389), and loses 15.1 GiB inside chunks (Fig. 3: the gap
is small).
"""

import copy
import functools
import json
import os
import subprocess
import tempfile

from benchlib import GIB, PLANC, ROOT, bench, graph, plan, planc, table

MAPPING = {"window + VA": ["--map-in-step", "100us"], "window + VA, 0.2 ms": ["--map-in-step", "200us"],
           "window + VA, mapped before": []}
LINKS = {"91.8 GB/s": 2 * 50e9 * 45.9 / 50, "45.9 GB/s": 45.9e9, "68 GB/s": 68e9}
MAIN = "91.8 GB/s"  # the paper's words
# The LMS rows: IBM's P100 machines are POWER8, 40 GB/s of NVLink a direction at peak, of which the share that POWER9
# reaches of its 50 is assumed. The rows themselves say that it was no PCIe: 928 images need some 60 GiB out and as much
# in, more than PCIe 3 moves in the 6.8 s that the paper's 137 images/s leave.
P100_LINK = int(40e9 * 45.9 / 50)
OPTIMIZER = ["--optimizer", "momentum"]
BATCHES = [64, 128, 190, 256, 512, 928, 1120, 1248, 1440]
PAPER = {
    "p100 baseline": [235, 255, 258] + [None] * 6,
    "p100 lms": [235, 255, 241, 236, 209, 137] + [None] * 3,
    "v100 baseline": [336, 492, 587] + [None] * 6,
    "v100 window": [320, 439, 533, 559, 457, 400] + [None] * 3,
    "v100 window + VA": [304, 389, 415, 424, 446, 409, 398, 347, 321],
}
PROFILES = {"p100": "p100", "v100": "v100-16g-nvlink"}
BEST_FIT = ["--policy", "window", "--placement", "paged"]
VMM = ["--policy", "window", "--placement", "vmm"]


class Device:
    """A device whose ops take what the paper's baseline takes an image, and its fixed time of an iteration."""

    def __init__(self, name, folder):
        self.name = name
        points = [(b, 1e3 * b / ips) for b, ips in zip(BATCHES, PAPER[name + " baseline"]) if ips]
        mean_b = sum(b for b, _ in points) / len(points)
        mean_ms = sum(ms for _, ms in points) / len(points)
        slope = sum((b - mean_b) * (ms - mean_ms) for b, ms in points) / sum((b - mean_b) ** 2 for b, _ in points)
        self.fixed_ms, self.image_ms = mean_ms - slope * mean_b, slope
        with open(os.path.join(ROOT, "profiles", PROFILES[name] + ".json"), encoding="utf-8") as file:
            profile = json.load(file)
        self.profile = profile
        self.described_rate = profile["compute"]["flops_per_second"]
        self.path = os.path.join(folder, name + ".json")
        if name == "p100":
            self.link(P100_LINK)
        self.write(profile)
        times = [self.plan(b, "none")["iteration_ns"] / 1e6 for b in (64, 128)]
        self.scale = slope / ((times[1] - times[0]) / 64)
        for rate in ["flops_per_second", "half_flops_per_second", "memory_bytes_per_second"]:
            if rate in profile["compute"]:
                profile["compute"][rate] = int(profile["compute"][rate] / self.scale)
        self.write(profile)

    def link(self, rate):
        for direction in ("h2d", "d2h"):
            self.profile["device"][direction]["bytes_per_second"] = int(rate)
        self.profile["device"]["slowdown_ppm"] = int(rate * 10**6 / self.profile["compute"]["memory_bytes_per_second"])

    def with_link(self, name, folder):
        other = copy.deepcopy(self)
        other.path = os.path.join(folder, name.replace("/", "-") + ".json")
        other.link(LINKS[name])
        other.write(other.profile)
        return other

    def write(self, profile):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(profile, file)

    def plan(self, batch, policy, *options):
        return plan("resnet50", batch, "16G", policy, *OPTIMIZER, *options, device=self.path)

    def plan_to(self, path, batch, options):
        """Whether there is such a plan, which is then in the file."""
        command = [PLANC, "plan", graph("resnet50"), "--batch", batch, "--device", self.path, "--budget", "16G", *OPTIMIZER,
                   *options, "-o", path]
        return subprocess.run(list(map(str, command)), capture_output=True).returncode == 0

    def ips(self, batch, iteration_ns):
        return batch / (iteration_ns / 1e9 + self.fixed_ms / 1e3)


def cell(ips):
    return f"{ips:.0f}" if ips else "x"


def simulated(path, *options):
    return json.loads(planc("simulate", path, "--json", *options))


class Runs:
    """The devices, and what they run, each run once."""

    def __init__(self, folder):
        self.folder = folder

    @functools.cached_property
    def devices(self):
        devices = {name: Device(name, self.folder) for name in PROFILES}
        return devices | {link: devices["v100"].with_link(link, self.folder) for link in LINKS}

    @functools.lru_cache(None)
    def ips(self, device, batch, policy, *options):
        """Images a second, None where it does not fit."""
        got = self.devices[device].plan(batch, policy, *options)
        return self.devices[device].ips(batch, got["iteration_ns"]) if got else None

    @functools.lru_cache(None)
    def mapped(self, link, batch):
        """Of window with virtual memory: images a second by how chunks are mapped, bytes that are moved, and what `planc show`
        says; None where it does not fit."""
        path = os.path.join(self.folder, "vmm.plan")
        if not self.devices[link].plan_to(path, batch, VMM):
            return None
        runs = {row: simulated(path, *options) for row, options in MAPPING.items()}
        run = runs["window + VA"]
        return ({row: self.devices[link].ips(batch, one["period_ns"]) for row, one in runs.items()},
                run["d2h_bytes"] + run["h2d_bytes"], json.loads(planc("show", path, "--json")))

    def window(self, link, batch, row):
        if row == "window":
            return self.ips(link, batch, *BEST_FIT[1:])
        got = self.mapped(link, batch)
        return got and got[0][row]

    def baseline(self, name):
        """The fastest with everything resident."""
        return max(self.ips(name, batch, "none") or 0 for batch in BATCHES)


def links(runs):
    committed = runs.devices["v100"].profile["device"]["d2h"]["bytes_per_second"]
    rows = []
    for link, rate in LINKS.items():
        told = ["the description's" if abs(rate - committed) < 1e8 else f"{rate / committed:.1f} times the description's"]
        for batch, row in ((928, "window"), (1440, "window + VA")):
            told.append(f"{(runs.window(link, batch, row) or 0) / runs.baseline('v100'):.0%}")
        rows.append([link, *told])
    table("The link of Table 1 decides: of the baseline's speed", ["link a direction", "", "window at 928", "+ VA at 1440"],
          [*rows, ["paper", "", "68%", "55%"]],
          [f"rows \"{MAIN}\" take the paper's words for a direction's rate; the machine's measured one is the description's"])


def table_1(runs):
    ours = {f"{name} {policy}": [runs.ips(name, batch, policy) for batch in BATCHES]
            for name, policy in [("p100", "none"), ("p100", "lms"), ("v100", "none")]}
    ours |= {f"{row}, {link}": [runs.window(link, batch, row) for batch in BATCHES]
             for row in ["window", *MAPPING] for link in LINKS}
    last_of = {"p100 none": "p100 baseline", "p100 lms": "p100 lms", "v100 none": "v100 baseline"}
    last_of |= {f"{row}, {list(LINKS)[-1]}": f"v100 {row}" for row in ("window", "window + VA")}
    rows = []
    for row, cells in ours.items():
        rows.append([row.replace("none", "baseline")] + [cell(c) for c in cells])
        if row in last_of:
            rows.append(["paper"] + [cell(c) for c in PAPER[last_of[row]]])
    least = [least_rate(batch, i) for i, batch in enumerate(BATCHES)]
    rows.append(["least GB/s for the paper's times"] + [f"{rate / 1e9:.1f}" if rate else "" for rate in least])
    table("Table 1: ResNet-50, images/s", ["batch", *BATCHES], rows,
          [*(calibrated(runs.devices[name]) for name in PROFILES), *claims(runs, ours)])


def calibrated(device):
    """What the line through the baseline's times is in operations."""
    with tempfile.NamedTemporaryFile(suffix=".yaml") as training:
        planc("train", graph("resnet50"), *OPTIMIZER, "-o", training.name)
        flops = json.loads(planc("show", training.name, "--batch", 128, "--json"))["flops"] / 128
    rate = flops / device.image_ms * 1e3
    return (f"{device.name}: {device.fixed_ms:.0f} ms an iteration beside its images, ops take {device.scale:.2f} of the description's "
            f"time: {rate / 1e12:.0f} TFLOP/s, the description has {device.described_rate / 1e12:.1f} at f32"
            + (" (more than f32 gives: tensor cores, or algorithms with fewer operations, of which the paper says nothing)" if rate > device.described_rate else ""))


def least_rate(batch, i):
    """What of the data that is live at a time does not fit goes out before and comes in after, but for parameters, which may
    have been out: bytes a second of each direction, in the time of the paper's faster row."""
    memory = json.loads(planc("show", graph("resnet50"), "--batch", batch, "--json"))["training"]
    beyond = memory["liveness_bytes"] - 16 * GIB
    ips = max(PAPER[row][i] or 0 for row in ("v100 window", "v100 window + VA"))
    return max(0, 2 * beyond - memory["persistent_bytes"]) * ips / batch


def claims(runs, ours):
    def share(row, batch, name):
        return (ours[row][BATCHES.index(batch)] or 0) / runs.baseline(name)

    def slower(window, vmm):
        return [b for b, w, v in zip(BATCHES, ours[window], ours[vmm]) if w and v and v >= w] or "none"

    largest = {name: largest_batch("resnet50", policy, *OPTIMIZER, *options, device=runs.devices[device].path)
               for name, device, policy, *options in [("baseline", "v100", "none"), ("lms", "p100", "lms"),
                                                      ("window + VA", MAIN, *VMM[1:])]}
    yield (f"largest batch, by bisection: baseline {largest['baseline']}, lms {largest['lms']}, window + VA {largest['window + VA']}, "
           f"which is {largest['window + VA'] / largest['baseline']:.2f} times the baseline's (paper 7.5) and "
           f"{largest['window + VA'] / largest['lms']:.2f} times lms's (paper 1.55, of the batches in the table)")
    yield f"of the baseline's speed at 928: lms {share('p100 lms', 928, 'p100'):.0%} (paper 53 %)"
    for link in LINKS:
        faster = [b for b, w, m in zip(BATCHES, ours[f"window, {link}"], ours["p100 lms"]) if w and m and w <= m]
        yield (f"{link}: window is not faster than lms at {faster or 'none'} (paper: none), + VA not slower than window at "
               f"{slower(f'window, {link}', f'window + VA, {link}')}, with 0.2 ms a chunk at "
               f"{slower(f'window, {link}', f'window + VA, 0.2 ms, {link}')} ([928])")
    yield ("where + VA is not slower: what best fit loses between data (Fig. 3) cannot be scheduled with, so that more is swapped, "
           "which takes longer than mapping chunks")


def by_auto(runs):
    """What auto makes of the two batches that the paper tells of, in one piece of memory and in pages of virtual memory, which
    its plans have mapped before the first step."""
    rows = []
    for link in LINKS:
        device = runs.devices[link]
        for batch in (928, 1440):
            row = [link, batch, cell(runs.window(link, batch, "window")), cell(runs.window(link, batch, "window + VA"))]
            for options in ([], ["--placement", "paged"]):
                got = device.plan(batch, "auto", *options)
                ips = device.ips(batch, got["iteration_ns"])
                row += [cell(ips), f"{ips / runs.baseline('v100'):.0%}", f"{got['ideal_ns'] / got['iteration_ns']:.1%}"]
            rows.append([*row, f"{got['ideal_ns'] / got['bound_ns']:.1%}"])
    table("ResNet-50 by auto, images/s",
          ["link a direction", "batch", "window", "+ VA", "auto", "of baseline", "of ops", "paged", "of baseline", "of ops", "bound"], rows,
          ["of baseline: of the speed of the fastest batch that is resident, which is how the paper counts (68 % at 928, 55 % at 1440 with VA)",
           "of ops: the ops' own time at that batch, with their fastest algorithms, over the plan's; the bound says that no plan reaches more"])


def figure_3(runs):
    rows = []
    path = os.path.join(runs.folder, "best-fit.plan")
    for batch in BATCHES:
        if not runs.mapped(MAIN, batch):
            continue
        _, moved, vmm = runs.mapped(MAIN, batch)
        cells = ["x", "x", "x"]
        if runs.devices[MAIN].plan_to(path, batch, BEST_FIT):
            best_fit, run = json.loads(planc("show", path, "--json")), simulated(path)
            cells = [f"{n / GIB:.2f}" for n in (best_fit["peak"]["live_bytes"], best_fit["arena_bytes"])]
            cells.append(f"{(run['d2h_bytes'] + run['h2d_bytes']) / GIB:.1f}")
        rows.append([batch, *cells, f"{vmm['peak']['live_bytes'] / GIB:.2f}", f"{vmm['arena_bytes'] / GIB:.2f}",
                     f"{moved / GIB:.1f}", f"{vmm['lost_inside_bytes'] / GIB:.2f}",
                     f"{vmm['lost_inside_bound_bytes'] / GIB:.2f}", f"{vmm['lost_shared_bytes'] / GIB:.2f}"])
    table("Fig. 3: most bytes in use at a time, arena, and what is moved, GiB",
          ["batch", "best fit", "arena", "moved", "VA", "arena", "moved", "inside chunks", "bound", "shared ones"], rows,
          ["paper at 928: 8 GB scheduled take nearly 16 GB with best fit, with VA the gap is small; \"inside chunks\" is in the last chunks of "
           "data larger than a chunk (bound: Eq. 2), \"shared ones\" in those that smaller data shares"])


def largest_batch(name, policy, *options, device="v100-16g-nvlink"):
    """The largest batch that fits 16G, by doubling and bisection."""
    def fits(batch):
        return plan(name, batch, "16G", policy, *options, device=device) is not None
    low, high = 0, 1
    while fits(high) and high < 1 << 16:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def figures_4_and_5():
    rows = []
    for name, shown, paper in [("resnet50", "ResNet-50", "190 928 1440"), ("densenet121", "DenseNet", "512 768 1152-1536"),
                               ("deeplabv3plus", "DeepLabv3+", "6 32 48-64"), ("pix2pixhd", "Pix2PixHD", "4 16 24-32")]:
        if not os.path.exists(graph(name)):
            continue
        found = [largest_batch(name, "none"), *(largest_batch(name, *options[1:]) for options in (BEST_FIT, VMM))]
        ratios = [f"{a / b:.1f}" if b else "-" for a, b in [(found[1], found[0]), (found[2], found[1])]]
        rows.append([shown, *found, *ratios, paper])
    cheap, chen = (largest_batch("densenet121", policy) for policy in ("cheap", "chen"))
    table("Figs. 4, 5: largest batch in 16 GiB", ["net", "none", "window", "+ VA", "window/none", "VA/window", "paper"], rows,
          ["paper: window 1.5 (DenseNet), 4 (Pix2PixHD) and 5.3 (DeepLabv3+) times the baseline, VA 1.5 to 2 times that",
           "512 of DenseNet without swapping would have 32 MiB each, of which the results of DenseNet-121's convolutions alone are 26.3, "
           f"and its batch norms read the joined ones: what reaches such sizes recomputes, policy cheap {cheap}, chen {chen}",
           "nnabla's example of DeepLabv3+ is not in place: five results for each separable convolution to keep, four here; its largest op "
           "takes 0.1 GB a sample, of which 16 GiB hold 158"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(folder)
        bench("simulated, device descriptions v100-16g-nvlink and p100 (this one with NVLink), calibrated as the benchmark's head "
              f"says. The link of rows \"{MAIN}\", of Fig. 3 and of the largest batch beside lms is twice that of the description, "
              "45.9 GB/s, whose rows stand beside them. Times are predictions.",
              {"links": lambda _: links(runs), "table-1": lambda _: table_1(runs), "auto": lambda _: by_auto(runs), "figure-3": lambda _: figure_3(runs),
               "figures-4-5": lambda _: figures_4_and_5()})


if __name__ == "__main__":
    main()
