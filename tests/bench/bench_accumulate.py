#!/usr/bin/env python3
"""Gradient accumulation as co-location (papers/000, 2.2): K rounds of a batch side by side against the same rounds one after
the other, which is policy none, under the same budget.

The paper states no figures for this. Its claim is that rounds of translation and speech models leave part of the GPU idle;
nothing is calibrated, and by the device description kernels of GNMT fill more of the GPU than the paper's did, so that the
gain is that of two jobs of so small a batch (bench_zico.py). The whole batch at once is told beside it: rounds are for batches
that have no room. Tacotron 2 has batch normalisation, which here each round does for itself.
"""

import json
import sys
import tempfile

from benchlib import GIB, bench, graph_in, period_ns, planc, simulated, table

RTX, V100 = "rtx2080ti", "v100-32g"
MODELS = [("GNMT", "gnmt", RTX, 64), ("RHN", "rhn", RTX, 64), ("Tacotron 2", "tacotron2", RTX, 32), ("BERT", "bert-base", V100, 32)]


def made(command, *arguments):
    return json.loads(planc(command, *arguments, "--split-batch-norm", "--json", "-o", "/dev/null"))


def one_by_one(path, device, batch, k):
    return made("plan", path, "--batch", str(batch), "--sub-batch", str(batch // k), "--policy", "none", "--device", device)


def side_by_side(path, device, batch, k, budget=None):
    return made("colocate", f"{path}:{batch}", "--accumulate", str(k), "--device", device,
                *(["--budget", str(budget)] if budget else []))


def told(plan):
    return f"{period_ns(plan) / 1e6:.1f}", f"{plan['peak_bytes'] / GIB:.2f}"


def gain(turns, beside):
    return f"{period_ns(turns) / period_ns(beside) - 1:+.1%}"


def rounds(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, name, device, batch in MODELS:
            path = graph_in(folder, name)
            whole = one_by_one(path, device, batch, 1)
            for k in (2, 4, 8):
                turns, beside = one_by_one(path, device, batch, k), side_by_side(path, device, batch, k)
                rows.append([model, device, f"{batch}", f"{k}", told(whole)[0], *told(turns), *told(beside), gain(turns, beside)])
                print(" ", *rows[-1], file=sys.stderr, flush=True)
    table("K rounds of a batch, with all of the GPU's memory: times of an iteration in ms, peaks in GiB",
          ["model", "GPU", "batch", "K", "at once", "in turn", "peak", "side by side", "peak", "gain"], rows,
          ["paper (2.2): rounds of translation and speech models gain; no figures"])


def budgets(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, name, device, batch in MODELS[:2]:
            path = graph_in(folder, name)
            turns, beside = one_by_one(path, device, batch, 2), side_by_side(path, device, batch, 2)
            least, most = turns["peak_bytes"], beside["peak_bytes"]
            for part in (100, 75, 50, 25, 0):
                limited = side_by_side(path, device, batch, 2, least + (most - least) * part // 100)
                rows.append([model, device, f"{part}%", *told(limited), gain(turns, limited),
                             limited["explanation"].split("; ")[-1]])
                print(" ", *rows[-1], file=sys.stderr, flush=True)
    table("Two rounds, by the memory beyond what they take in turn, as a part of what they take side by side",
          ["model", "GPU", "memory", "ms", "peak", "gain", "plan"], rows, [])


if __name__ == "__main__":
    bench(simulated(f"{V100} and {RTX}"), {"rounds": rounds, "budgets": budgets})
