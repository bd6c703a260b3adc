#!/usr/bin/env python3
"""Data parallelism (papers: moDNN, V-C and Fig. 9; TENSILE, IV-F) on the simulator: K40m, nothing reserved, plain SGD.

The batch is the whole one and its parts are equal. In the paper the GPUs share the PCIe bus; beside that stands what
links of their own give, which is what TENSILE supposes.
"""

import json
import os

from benchlib import GIB, ROOT, bench, compare, moved, plan, simulated, table

NETS, BATCH, BUDGET = ["vgg16", "vgg19"], 256, "12G"
POLICIES = ["none", "modnn", "lms", "capuchin", "tensile", "window", "vdnn-conv", "vdnn-all"]
LINKS = {"one": ["--shared-link"], "own": []}


def ideal(name):
    return compare(name, BATCH, BUDGET, ["ideal"])["ideal"]["ideal_ns"]


def on(gpus, name, policy, batch, link, budget=BUDGET):
    return plan(name, batch, budget, policy, "--gpus", str(gpus), *LINKS[link])


def cell(one, several, parts=1):
    """How many times as fast, for `parts` times the work."""
    return f"{parts * one['iteration_ns'] / several['iteration_ns']:.2f}" if one and several else "-"


def ms(ns):
    return f"{ns / 1e6:.0f}"


def mean(values):
    return sum(values) / len(values)


def figure_9(_):
    rows, ratios = [], {link: ([], []) for link in LINKS}
    for name in NETS:
        ideal_ns, one_ns = ideal(name), plan(name, BATCH, BUDGET, "modnn")["iteration_ns"]
        for link in LINKS:
            two = on(2, name, "modnn", BATCH, link)
            over = [ns / two["iteration_ns"] for ns in (ideal_ns, one_ns)]
            for kept, ratio in zip(ratios[link], over):
                kept.append(ratio)
            rows.append([f"{name}/{BATCH}", link, ms(ideal_ns), ms(one_ns), ms(two["ideal_ns"]), ms(two["iteration_ns"]),
                         f"{over[0]:.2f}", f"{over[1]:.2f}", f"{moved(two) / GIB:.2f}"])
    table("Fig. 9: modnn on two GPUs of 12 GB, ms an iteration and speed-up over one GPU",
          ["net", "link", "ideal, 1", "modnn, 1", "ideal, 2", "modnn, 2", "over ideal", "over modnn", "moved GiB"], rows,
          [f"means with {link} link: {mean(a):.2f} over ideal, {mean(b):.2f} over modnn" for link, (a, b) in ratios.items()] +
          ["paper: 1.5 over ideal, 1.84 over modnn, hence its modnn on one GPU 1.23 times its ideal"])


def exchange(_):
    """What the exchange takes when nothing runs beside it: all gradients out, then all in, over one link."""
    with open(os.path.join(ROOT, "profiles", "k40m.json")) as file:
        device = json.load(file)["device"]
    rows = []
    for name in NETS:
        one_ns = plan(name, BATCH, BUDGET, "modnn")["iteration_ns"]
        two = on(2, name, "modnn", BATCH, "one")
        sent = on(2, name, "none", 2, "one")["d2h_bytes"]  # and losses of a few bytes
        alone_ns = sum(sent * 1e9 / device[way]["bytes_per_second"] for way in ("d2h", "h2d"))
        rows.append([name, f"{sent / GIB:.2f}", ms(alone_ns), ms(two["iteration_ns"] - two["ideal_ns"]),
                     f"{one_ns / two['iteration_ns']:.2f}", f"{one_ns / (two['ideal_ns'] + alone_ns):.2f}"])
    table("The exchange over one link", ["net", "sent GiB", "alone ms", "modnn's overhead ms", "over modnn", "with it alone"],
          rows, ["A gradient is sent while the backward pass goes on, and so costs less than alone. In the paper the exchange is",
                 "the last step of an iteration, alone (V-C): that by itself would bring the speed-up close to the paper's."])


def budgets(_):
    """The same memory budget on each of the two GPUs as on the one."""
    rows = []
    for budget in [12, 8, 6, 4, 3, 2]:
        one = plan("vgg16", BATCH, f"{budget}G", "modnn")
        two = {link: on(2, "vgg16", "modnn", BATCH, link, f"{budget}G") for link in LINKS}
        rows.append([budget, ms(one["iteration_ns"])] + [cell(one, two[link]) for link in LINKS] +
                    [f"{moved(one) / GIB:.2f}", f"{moved(two['one']) / GIB:.2f}"])
    table(f"vgg16/{BATCH}, modnn on two GPUs over modnn on one, by budget of each (GiB)",
          ["budget", "modnn, 1", "one link", "own links", "moved GiB, 1", "2"], rows)


def policies(_):
    """TENSILE schedules each GPU as if it were alone, and supposes links enough (IV-F): 64 samples on each."""
    rows = []
    for policy in POLICIES:
        one = plan("vgg16", 64, "8G", policy)
        rows.append([policy, ms(one["iteration_ns"]) if one else "-"] +
                    [cell(one, on(n, "vgg16", policy, 64 * n, link, "8G"), n) for n in (2, 4) for link in LINKS])
    table("vgg16, 64 samples on each GPU of 8 GiB: samples/s over one GPU's",
          ["policy", "ms, 1", "2, one link", "2, own", "4, one link", "4, own"], rows)


if __name__ == "__main__":
    bench(simulated("k40m"), {"figure-9": figure_9, "exchange": exchange, "budgets": budgets, "policies": policies})
