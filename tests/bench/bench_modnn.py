#!/usr/bin/env python3
"""moDNN's experiments (papers: moDNN, V, Figs. 6-8) on the simulator: K40m, nothing reserved, plain SGD.

The paper prints bar charts without numbers; what its text says stands beside our figures. ResNet-34 has batch
normalisation and is split by name, as the paper does silently.
"""

import json

from benchlib import GIB, compare, graph, moved, overhead, plan, planc, table

NETS = [("vgg16", 256), ("vgg19", 256), ("vgg101", 128), ("resnet34", 256), ("fcn", 128)]
VDNN = ["vdnn-all", "vdnn-conv", "vdnn-dyn"]


def options(name):
    return ["--split-batch-norm"] if name == "resnet34" else []


def all_data(name, batch):
    """Sum of all data, as moDNN counts the ideal case, from `planc show` of the training graph."""
    return json.loads(planc("show", graph(name), "--batch", batch, "--json"))["training"]


def figure_6():
    rows, ratios = [], []
    for name, batch in NETS:
        memory = all_data(name, batch)
        least = compare(name, batch, "12G", ["modnn"], *options(name))["modnn"]["least_budget"]
        ratios.append(memory["all_data_bytes"] / memory["lower_bound_bytes"])
        rows.append([f"{name}/{batch}", f"{memory['all_data_bytes'] / 1e9:.1f}", f"{memory['liveness_bytes'] / 1e9:.1f}",
                     f"{memory['lower_bound_bytes'] / 1e9:.2f}", f"{least / 1e9:.2f}", f"{ratios[-1]:.1f}"])
    table("Fig. 6: memory in GB", ["net", "ideal", "liveness", "bound (Eq. 2)", "least budget", "ideal/bound"], rows,
          [f"mean ideal/bound {sum(ratios) / len(ratios):.1f} (paper: 50 on average, VGG-101 nearly 100 GB and 1.4 GB)"])


def figure_7():
    rows, ours, theirs, our_bytes, their_bytes, overheads, vdnn_overheads = [], 0, 0, 0, 0, [], []
    for name, batch in NETS:
        got = compare(name, batch, "12G", ["ideal", "modnn", *VDNN, "vdnn+"], *options(name))
        ideal = got["modnn"]["ideal_ns"]
        fitting = [got[p] for p in VDNN if got[p]["feasible"]]
        best = min(fitting, key=lambda r: r["iteration_ns"]) if fitting else None
        modnn = got["modnn"]
        overheads.append(overhead(modnn, ideal))
        if best:
            vdnn_overheads.append(overhead(best, ideal))
        if best and modnn["d2h_bytes"] > 1 << 20:  # results alone are a few bytes
            ours += overhead(modnn, ideal)
            theirs += overhead(best, ideal)
            our_bytes += moved(modnn)
            their_bytes += moved(best)
        rows.append([f"{name}/{batch}", modnn["sub_batch"], f"{ideal / 1e6:.0f}", f"{overheads[-1]:+.1%}",
                     f"{overhead(got['vdnn+'], ideal):+.1%}" if got["vdnn+"]["feasible"] else "-",
                     f"{overhead(best, ideal):+.1%}" if best else "-", best["policy"] if best else "none fits",
                     f"{moved(modnn) / GIB:.2f}", f"{moved(best) / GIB:.2f}" if best else "-"])
    notes = [f"mean overhead of modnn {sum(overheads) / len(overheads):.1%} (paper: 8 %)"]
    if vdnn_overheads:
        notes.append(f"mean overhead of the best vDNN that fits {sum(vdnn_overheads) / len(vdnn_overheads):.1%} (paper: 40 %)")
    if ours and our_bytes:
        notes.append(f"over the nets where modnn moves bytes, in sums: vDNN's overhead is {theirs / ours:.1f} times, "
                     f"its bytes {their_bytes / our_bytes:.1f} times modnn's (paper: 5 and 5)")
    table("Fig. 7: one batch at 12 GB", ["net", "round", "ideal ms", "modnn", "vdnn+", "vDNN", "which", "modnn GiB", "vDNN GiB"],
          rows, notes)


def figure_8():
    for name, batch, budgets in [("vgg16", 256, [12, 10, 8, 6, 4, 3, 2, 1.5]), ("vgg101", 128, [12, 10, 8, 6, 4, 3, 2]),
                                 ("resnet34", 256, [6, 4, 3, 2, 1, 0.5])]:
        rows = []
        for budget in budgets:
            got = {p: plan(name, batch, f"{budget}G", p, *options(name)) for p in ["modnn", "vdnn+", *VDNN]}
            fitting = [got[p] for p in VDNN if got[p]]
            cells = [got["modnn"], got["vdnn+"], min(fitting, key=lambda r: r["iteration_ns"]) if fitting else None]
            rows.append([f"{budget:g}"] + [f"{overhead(c, c['ideal_ns']):+.1%}" if c else "-" for c in cells])
        table(f"Fig. 8: {name}/{batch}, overhead over ideal by budget (GiB)", ["budget", "modnn", "vdnn+", "best vDNN"], rows)


if __name__ == "__main__":
    figure_6()
    figure_7()
    figure_8()
