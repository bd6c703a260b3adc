#!/usr/bin/env python3
"""moDNN's experiments (papers: moDNN, V, Figs. 6-8) on the simulator: K40m, nothing reserved, plain SGD.

The paper prints bar charts without numbers; what its text says stands beside our figures. ResNet-34 has batch
normalisation and is split by name, as the paper does silently.

Two ways to choose rounds, for modnn and for vdnn+ alike. "Eq. 3" is the paper's: its equation, halved while the policy finds
no plan. "Searched" is the best by the simulator of Eq. 3's rounds, the whole batch, and all powers of two below it, which
is what policy modnn does where it is not told otherwise; vdnn+ does it here only, as vdnn-dyn in each of these rounds.
vDNN itself has no rounds.

The numbers of layers of VGG-101 in each stage were fitted to two figures that the paper gives for it, 100 GB ideal and 1.4 GB
at least: its rows are marked *, and no mean has them.
"""

import functools
import json
import os
import subprocess

from benchlib import BUILD, GIB, ROOT, bench, compare, graph, moved, overhead, plan, planc, simulated, table

NETS = [("vgg16", 256), ("vgg19", 256), ("vgg101", 128), ("resnet34", 256), ("fcn", 128)]
FITTED = "vgg101"
VDNN = ["vdnn-all", "vdnn-conv", "vdnn-dyn"]
K40M = os.path.join(ROOT, "profiles", "k40m.json")
SWAPS = 1 << 20  # results alone are a few bytes


def options(name):
    return ["--split-batch-norm"] if name == "resnet34" else []


def marked(name, batch):
    return f"{name}{'*' if name == FITTED else ''}/{batch}"


def mean(by_net):
    """Of the nets that were not fitted; None is no plan. With how many they are."""
    known = [value for name, value in by_net.items() if name != FITTED and value is not None]
    return f"{sum(known) / len(known):.1%} of {len(known)}"


# --- Rounds ---------------------------------------------------------------------------------------------------------

def equation_3(name, batch, budget):
    """The paper's sub-batch, 0 where no rounds will do."""
    out = subprocess.run([os.path.join(BUILD, "bench", "eq3_rounds"), graph(name), K40M, str(batch), str(budget)],
                         capture_output=True, text=True, check=True).stdout
    return int(out)


@functools.lru_cache(None)
def in_rounds(name, batch, budget, policy, size):
    return plan(name, batch, budget, policy, "--sub-batch", str(size), *options(name))


def by_equation(name, batch, budget, policy):
    size = equation_3(name, batch, budget)
    while size >= 1:
        got = in_rounds(name, batch, budget, policy, size)
        if got:
            return got
        size //= 2
    return None


def searched(name, batch, budget, policy):
    sizes = {equation_3(name, batch, budget), batch} | {1 << k for k in range(batch.bit_length()) if 1 << k < batch}
    found = [in_rounds(name, batch, budget, policy, size) for size in sizes if size]
    return min((got for got in found if got), key=lambda got: got["iteration_ns"], default=None)


def both_ways(name, batch, budget):
    """Plans of modnn and of vdnn+ with Eq. 3's rounds, then with those searched for."""
    return [by_equation(name, batch, budget, "modnn"), by_equation(name, batch, budget, "vdnn-dyn"),
            plan(name, batch, budget, "modnn", *options(name)), searched(name, batch, budget, "vdnn-dyn")]


def without_rounds(name, batch, budget):
    """The fastest of vDNN's that fit."""
    found = [in_rounds(name, batch, budget, policy, batch) for policy in VDNN]
    return min((got for got in found if got), key=lambda got: got["iteration_ns"], default=None)


def cells(got):
    """Round and overhead."""
    return [got["sub_batch"], f"{over_ideal(got):+.1%}"] if got else ["-", "-"]


def over_ideal(got):
    return overhead(got, got["ideal_ns"]) if got else None


WAYS = ["Eq. 3: round", "modnn", "round", "vdnn+", "searched: round", "modnn", "round", "vdnn+"]


# --- Figures --------------------------------------------------------------------------------------------------------

def all_data(name, batch):
    """Sum of all data, as moDNN counts the ideal case, from `planc show` of the training graph."""
    return json.loads(planc("show", graph(name), "--batch", batch, "--json"))["training"]


def least_budget(name, batch):
    return compare(name, batch, "12G", ["modnn"], *options(name))["modnn"]["least_budget"]


def figure_6(_):
    rows, ratios = [], {}
    for name, batch in NETS:
        memory = all_data(name, batch)
        ratios[name] = memory["all_data_bytes"] / memory["lower_bound_bytes"]
        rows.append([marked(name, batch), f"{memory['all_data_bytes'] / 1e9:.1f}", f"{memory['liveness_bytes'] / 1e9:.1f}",
                     f"{memory['lower_bound_bytes'] / 1e9:.2f}", f"{least_budget(name, batch) / 1e9:.2f}", f"{ratios[name]:.1f}"])
    others = [ratio for name, ratio in ratios.items() if name != FITTED]
    table("Fig. 6: memory in GB", ["net", "ideal", "liveness", "bound (Eq. 2)", "least budget", "ideal/bound"], rows,
          [f"mean ideal/bound {sum(others) / len(others):.1f} of the {len(others)} not fitted "
           f"(paper: 50 on average of all five)",
           "* layers fitted to the paper's \"nearly 100 GB\" and 1.4 GB for this net, which are no comparison"])


def figure_7(_):
    rows, overheads, swapping, paper = [], {}, [], []
    for name, batch in NETS:
        got = [*both_ways(name, batch, 12 * GIB), without_rounds(name, batch, 12 * GIB)]
        overheads[name] = [over_ideal(one) for one in got]
        swapping += [marked(name, batch)] if got[2]["d2h_bytes"] > SWAPS else []
        paper += [marked(name, batch)] if got[0] and got[0]["d2h_bytes"] > SWAPS else []
        eq_modnn, eq_vdnn, modnn, vdnn, best = got
        rows.append([marked(name, batch), f"{modnn['ideal_ns'] / 1e6:.0f}", *cells(eq_modnn), *cells(eq_vdnn), *cells(modnn),
                     *cells(vdnn), *(cells(best)[1:]), best["policy"] if best else "none fits"]
                    + [f"{moved(one) / GIB:.2f}" if one else "-" for one in got])
    columns = [{name: found[i] for name, found in overheads.items()} for i in range(5)]
    table("Fig. 7: one batch at 12 GB", ["net", "ideal ms", *WAYS, "vDNN", "which", "moved GiB: modnn", "vdnn+", "modnn", "vdnn+",
                                         "vDNN"], rows,
          ["means of the nets that are not fitted: with Eq. 3's rounds modnn {} and vdnn+ {}; searched modnn {} and vdnn+ {}; the "
           "best vDNN that fits {}".format(*map(mean, columns)),
           "(paper: modnn 8 %, vDNN 40 %, of all five)",
           f"with 12 GB modnn need not swap but in: {', '.join(swapping) or 'none'}; with Eq. 3's rounds: {', '.join(paper) or 'none'}. "
           "In all others its overhead is that of rounds alone, and the paper's ratios",
           "between vDNN and modnn (5 times in overhead and in bytes) cannot be compared there",
           "* fitted, see Fig. 6"])


def all_swap(_):
    """Budgets in which not one sample at a time fits without a swap: midway between the least of modnn and that."""
    rows, columns = [], [{}, {}, {}, {}]
    for name, batch in NETS:
        resident = in_rounds(name, batch, 12 * GIB, "none", 1)["peak_bytes"]
        budget = (least_budget(name, batch) + resident) // 2
        got = both_ways(name, batch, budget)
        for column, one in zip(columns, got):
            column[name] = over_ideal(one)
        rows.append([marked(name, batch), f"{resident / GIB:.3f}", f"{budget / GIB:.3f}", *(c for one in got for c in cells(one))]
                    + [f"{moved(one) / GIB:.1f}" if one else "-" for one in got])
        if any(one and one["d2h_bytes"] <= SWAPS for one in got):
            raise SystemExit(f"{name}: not every plan swaps in {budget} bytes")
    table("All must swap: budgets midway between modnn's least and what one sample takes without a swap",
          ["net", "one sample GiB", "budget GiB", *WAYS, "moved GiB: modnn", "vdnn+", "modnn", "vdnn+"], rows,
          ["means of the nets that are not fitted and have a plan: with Eq. 3's rounds modnn {} and vdnn+ {}; searched modnn {} and "
           "vdnn+ {}".format(*map(mean, columns)), "* fitted, see Fig. 6"])


def figure_8(name, batch, budgets):
    rows = []
    for budget in budgets:
        got = [*both_ways(name, batch, int(budget * GIB)), without_rounds(name, batch, int(budget * GIB))]
        rows.append([f"{budget:g}", *(c for one in got[:4] for c in cells(one)), cells(got[4])[1]])
    table(f"Fig. 8: {marked(name, batch)}, overhead over ideal by budget (GiB)", ["budget", *WAYS, "best vDNN"], rows,
          ["* fitted, see Fig. 6"] if name == FITTED else [])


if __name__ == "__main__":
    bench(simulated("k40m"), {
        "figure-6": figure_6, "figure-7": figure_7, "all-swap": all_swap,
        "figure-8-vgg16": lambda _: figure_8("vgg16", 256, [12, 10, 8, 6, 4, 3, 2, 1.5]),
        "figure-8-vgg101": lambda _: figure_8("vgg101", 128, [12, 10, 8, 6, 4, 3, 2]),
        "figure-8-resnet34": lambda _: figure_8("resnet34", 256, [6, 4, 3, 2, 1, 0.5])})
