#!/usr/bin/env python3
"""Busy shares of ops (planc-profile(5), occupancy) against those of a V100's kernels in a training iteration, as published
with Orion (EuroSys 2024).

Orion counts for each kernel the processors that its blocks fill when as many are on each as fit, of 80: those of a kernel
with few threads are few, though the blocks be spread over more of them, and may be more than there are. A share is that part
of the processors, at most all. Ours are those of ops, which may be several kernels, weighted with our times; Orion's kernels
with theirs. "Before" are ours of a description that does not tell of occupancy.

The constants of the description were read off ResNet-50's kernels; nothing was fitted to MobileNetV2's and BERT's. That BERT
is the base one (twelve layers: as many softmaxes before the loss) with two outputs per token (two losses), on 384 tokens: a
product of all tokens by 768 columns takes 72 processors, 32,768 results each, at batch 8, and 270 us, which is 13.4 TFLOP/s.
Its optimizer is Adam, that of the others one with momentum. In PyTorch an update is many kernels per parameter, in ours one:
only what is before the optimizer is compared.
"""

import argparse
import collections
import csv
import json
import os
import sys
import tempfile

from benchlib import ROOT, bench, planc, simulated, table

sys.path.insert(0, os.path.join(ROOT, "graphs"))
import generate  # noqa: E402
from layers import Net  # noqa: E402

ORION = os.path.join(ROOT, "..", "shared", "bench", "orion")
DEVICE, PROCESSORS = "v100-32g", 80


def mobilenet_v2():
    net = Net("mobilenet-v2", "Sandler et al., MobileNetV2: Inverted residuals and linear bottlenecks, CVPR 2018", 32)

    def unit(name, x, channels, kernel=1, stride=1, groups=1):
        return net.batchnorm(f"{name}_bn", net.conv(name, x, channels, kernel, stride, kernel // 2, False, groups=groups))

    def block(name, x, wide, channels, stride):
        y = x
        if wide > net.shapes[x][0]:
            y = net.relu(f"{name}_relu1", unit(f"{name}_expand", y, wide))
        y = net.relu(f"{name}_relu2", unit(f"{name}_depthwise", y, wide, 3, stride, wide))
        y = unit(f"{name}_project", y, channels)
        return net.add(f"{name}_add", y, x) if net.shapes[y] == net.shapes[x] else y

    images, labels = net.input("images", 3, 224, 224), net.input("labels", dtype="i64")
    x = net.relu("stem_relu", unit("stem", images, 32, 3, 2))
    for stage, (factor, channels, count, stride) in enumerate(((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                               (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)), 1):
        for i in range(count):
            x = block(f"block{stage}_{i}", x, factor * net.shapes[x][0], channels, stride if i == 0 else 1)
    x = net.relu("head_relu", unit("head", x, 1280))
    x = net.dropout("drop", net.flatten("flat", net.pool("pool", x, 7, 7, type="avgpool2d")), 0.2)
    return net.loss(net.linear("fc", x, 1000), labels)


# Our graph, batch, optimizer, kernels, and what of them is the last before the optimizer.
MODELS = {"ResNet-50": (generate.resnet50, 32, "momentum", "resnet50_32_fb1.csv", "Conv"),
          "MobileNetV2": (mobilenet_v2, 32, "momentum", "mobilenetv2_32_fb1.csv", "Conv"),
          "BERT": (lambda: generate.bert_base(384), 8, "adam", "bert_8_fb1.csv", "embedding_backward")}
KINDS = ("convolution", "depthwise", "product", "norm", "softmax", "reduction", "pooling", "element-wise")
# Parts of names of kernels, and of types of ops, by kind; the first that is found counts.
KERNELS = (("depthwise", "depthwise"), ("Conv", "convolution"), ("gemm", "product"), ("BatchNorm", "norm"), ("layer_norm", "norm"),
           ("GammaBeta", "norm"), ("softmax", "softmax"), ("nll_loss", "softmax"), ("reduce_kernel", "reduction"),
           ("pool", "pooling"))
OPS = (("bgrad", "reduction"), ("bias_grad", "reduction"), ("conv2d", "convolution"), ("linear", "product"), ("matmul", "product"),
       ("norm", "norm"), ("softmax", "softmax"), ("avgpool2d_grad", "element-wise"), ("avgpool2d", "reduction"), ("pool", "pooling"))


def kind_of(name, kinds):
    return next((kind for part, kind in kinds if part in name), "element-wise")


# --- Spans: (kind, phase, time, share) --------------------------------------------------------------------------------

def measured(path, last):
    """What zeroes gradients comes before the first op, and the optimizer after the last one; both are element by element."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    first = next(i for i, row in enumerate(rows) if any(part in row["Name"] for part in ("Conv", "Select", "gemm")))
    loss = max(i for i, row in enumerate(rows) if "nll_loss_forward" in row["Name"])
    end = max(i for i, row in enumerate(rows) if last in row["Name"])
    for i, row in enumerate(rows[first:end + 1], first):
        share = min(1, int(row["SM_usage"]) / PROCESSORS)
        yield kind_of(row["Name"], KERNELS), "forward" if i <= loss else "backward", int(row["Duration"]), share


def planned(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    ops = [row for row in rows if "op" in row and "type" in row]
    for row in rows:
        op = ops[row["n"]] if row.get("i") == "exec" else {"phase": "optimizer"}
        if op["phase"] != "optimizer":
            depthwise = op["type"].startswith("conv2d") and op["attrs"].get("groups", 1) > 1
            yield "depthwise" if depthwise else kind_of(op["type"], OPS), op["phase"], row["t"], row["busy"] / 1e6


def without_occupancy(folder):
    with open(os.path.join(ROOT, "profiles", DEVICE + ".json"), encoding="utf-8") as file:
        profile = json.load(file)
    del profile["occupancy"], profile["origin"]["occupancy"]
    path = os.path.join(folder, "before.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(profile, file)
    return path


# --- Tables -----------------------------------------------------------------------------------------------------------

def mean(spans):
    whole = sum(time for _, _, time, _ in spans)
    return f"{sum(time * share for _, _, time, share in spans) / whole:.1%}" if whole else "-"


def part(spans, holds):
    return f"{sum(time for _, _, time, share in spans if holds(share)) / sum(time for _, _, time, _ in spans):.1%}"


def distribution(spans):
    return [mean(spans), part(spans, lambda share: share < 0.25), part(spans, lambda share: share < 0.5),
            part(spans, lambda share: share >= 0.9999)]


def shares(options):
    if not os.path.isdir(options.orion):
        print(f"bench_shares: left out: {os.path.relpath(options.orion, ROOT)} is absent")
        return
    whole, kinds = [], []
    with tempfile.TemporaryDirectory() as folder:
        before = without_occupancy(folder)
        for model, (make, batch, optimizer, file, last) in MODELS.items():
            graph, path = os.path.join(folder, "graph.yaml"), os.path.join(folder, "x.plan")
            make().write(graph)
            found = {"Orion": list(measured(os.path.join(options.orion, file), last))}
            for name, device in ("ours", DEVICE), ("before", before):
                planc("plan", graph, "--batch", batch, "--device", device, "--optimizer", optimizer, "--policy", "none", "-o", path)
                found[name] = list(planned(path))
            for phase in ("forward", "backward", "both"):
                for name, spans in found.items():
                    of = [span for span in spans if phase in (span[1], "both")]
                    whole.append([f"{model}:{batch}", phase, name, f"{sum(span[2] for span in of) / 1e6:.1f}", *distribution(of)])
            kinds += by_kind(model, found)
    table("Busy shares of the processors, V100", ["model", "phase", "of", "ms", "mean", "below 25 %", "below 50 %", "all"], whole,
          ["weighted with time: mean share, and parts of the time at shares below 25 % and 50 %, and at all processors"])
    table("Mean busy share by kind, V100", ["model", "kind", "ms in Orion", "ours", "forward", "ours", "before", "backward", "ours",
                                            "before"], kinds, ["forward and backward: Orion's kernels"])


def by_kind(model, found):
    times = {name: collections.Counter() for name in found}
    for name, spans in found.items():
        for kind, _, time, _ in spans:
            times[name][kind] += time
    for kind in KINDS:
        if times["Orion"][kind] + times["ours"][kind] == 0:
            continue
        row = [model, kind, *(f"{times[name][kind] / 1e6:.1f}" for name in ("Orion", "ours"))]
        for phase in ("forward", "backward"):
            row += [mean([span for span in found[name] if span[:2] == (kind, phase)]) for name in ("Orion", "ours", "before")]
        yield row


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--orion", metavar="FOLDER", default=ORION)
    bench(simulated(DEVICE), {"shares": shares}, arguments)
