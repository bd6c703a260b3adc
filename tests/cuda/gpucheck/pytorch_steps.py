#!/usr/bin/env python3
"""A training step of ResNet-50 or VGG-16 in PyTorch: what it takes, and what memory.

usage: pytorch_steps.py --model resnet50|vgg16 --batch N [--mode plain|checkpoint|save_on_cpu|followed --plan FILE]
           [--precision f32|tf32|bf16] [--image 224] [--steps 5] [--warm-up 3] [--device cuda|cpu] [--deterministic]

The networks are those of graphs/resnet50.yaml and graphs/vgg16.yaml, the optimizer is plain SGD. `checkpoint` keeps
what lies between the blocks of a network and computes the rest again, `save_on_cpu` keeps on the host what backward needs,
`followed` is plain under a plan that planc torch made of it. bf16 is autocast, images by channels last; f32 has no TF32.
With --deterministic the same steps leave the same weights, whose hash is "bits". Prints one line of JSON; what does not fit
the memory has "oom": true there."""

import argparse
import contextlib
import hashlib
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

CLASSES = 1000

# --- Networks --------------------------------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    """v1.5: the 3x3 convolution has the stride."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or channels != 4 * width:
            self.down = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        return self.relu(y + (self.down(x) if self.down else x))


class Stages(nn.Module):
    """A network in stages: those of `apart` are computed again block by block where that is asked for."""

    def __init__(self, first, apart, last):
        super().__init__()
        self.first, self.apart, self.last = first, nn.ModuleList(apart), last

    def forward(self, x, again=False):
        x = self.first(x)
        for stage in self.apart:
            for block in stage:
                x = checkpoint(block, x, use_reentrant=False) if again else block(x)
        return self.last(x)


def resnet50():
    first = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                          nn.MaxPool2d(3, 2, 1))
    stages, channels = [], 64
    for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        blocks = []
        for i in range(count):
            blocks.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
        stages.append(nn.Sequential(*blocks))
    return Stages(first, stages, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)))


def vgg16():
    blocks, channels = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        block = []
        for _ in range(count):
            block += [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU(inplace=True)]
            channels = width
        blocks.append(nn.Sequential(*block, nn.MaxPool2d(2, 2)))
    last = nn.Sequential(nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True),
                         nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, CLASSES))
    return Stages(nn.Identity(), [nn.Sequential(*blocks)], last)


MODELS = {"resnet50": resnet50, "vgg16": vgg16}

# --- Steps -----------------------------------------------------------------------------------------------------------


def prepare(options):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.deterministic = options.deterministic
    torch.backends.cudnn.benchmark = not options.deterministic  # it takes what is fastest at the moment


def make_step(options):
    """The network, and a function that takes one step."""
    torch.manual_seed(0)
    half = options.precision == "bf16"
    layout = torch.channels_last if half else torch.contiguous_format
    model = MODELS[options.model]().to(options.device, memory_format=layout).train()
    images = torch.rand(options.batch, 3, options.image, options.image, device=options.device).to(memory_format=layout)
    labels = torch.randint(CLASSES, (options.batch,), device=options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def forward():
        with torch.autocast(options.device, dtype=torch.bfloat16) if half else contextlib.nullcontext():
            return functional.cross_entropy(model(images, again=options.mode == "checkpoint"), labels)

    def step():
        optimizer.zero_grad(set_to_none=True)
        host = options.mode == "save_on_cpu"
        with torch.autograd.graph.save_on_cpu(pin_memory=options.device == "cuda") if host else contextlib.nullcontext():
            loss = forward()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def under_plan(options, step):
    import planc_torch  # of the folder that PYTHONPATH has
    return planc_torch.follow(options.plan, step)


def bits_of(model):
    """A hash of all weights; bf16 is autocast, so they are f32."""
    found = hashlib.sha256()
    for parameter in model.parameters():
        found.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def mark(gpu):
    """A point in time, on a GPU in stream order: the host goes on to enqueue the next step, as planrun does."""
    if not gpu:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def ms_between(begin, end):
    return 1e3 * (end - begin) if isinstance(end, float) else begin.elapsed_time(end)


def measure(options):
    gpu = options.device == "cuda"
    prepare(options)
    model, step = make_step(options)
    if options.mode == "followed":
        step = under_plan(options, step)
    for _ in range(options.warm_up):
        step()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    marks = [mark(gpu)]
    for _ in range(options.steps):
        loss = step()
        marks.append(mark(gpu))
    if gpu:
        torch.cuda.synchronize()
    times = [ms_between(begin, end) for begin, end in zip(marks, marks[1:])]
    return {"step_ms": round(statistics.median(times), 3),
            "peak_bytes": torch.cuda.max_memory_allocated() if gpu else None,
            "reserved_bytes": torch.cuda.max_memory_reserved() if gpu else None, "loss": round(float(loss), 4),
            "bits": bits_of(model) if options.deterministic else None,
            "parameters": sum(parameter.numel() for parameter in model.parameters())}


def is_out_of_memory(error):
    return "out of memory" in str(error) or "can't allocate memory" in str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--mode", choices=("plain", "checkpoint", "save_on_cpu", "followed"), default="plain")
    parser.add_argument("--plan")
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="f32")
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("pytorch_steps: PyTorch finds no GPU")
    told = {"mode": options.mode, "model": options.model, "batch": options.batch, "precision": options.precision,
            "torch": torch.__version__}
    try:
        told.update(measure(options))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        told["oom"] = True
    print(json.dumps(told))


if __name__ == "__main__":
    main()
