"""Measures ATen calls on a GPU and writes planc-profile(5)."""

import json
import os
import statistics

import torch

REPEATS = 5
# The GPU spins this long before a call, so that the host has issued the call and both events when it starts.
SPIN_CYCLES = 1_000_000
# Which part of convolution_backward's output_mask each of the ops that it becomes stands for.
PARTS = {"conv2d_dgrad": 0, "conv2d_wgrad": 1, "conv2d_bgrad": 2}


class Clock:
    """Runs a call and gives its result and cost: (ns, workspace bytes), for convolution_backward one for each part."""

    def run(self, function, args, kwargs):
        if function._schema.is_mutable:  # once: it would change its operands again
            return self.once(function, args, kwargs)
        if function is torch.ops.aten.convolution_backward.default:
            cost = []
            for part in range(3):
                mask = [args[10][i] and i == part for i in range(3)]
                cost.append(self.measure(function, (*args[:10], mask), kwargs) if any(mask) else None)
        else:
            cost = self.measure(function, args, kwargs)
        return function(*args, **kwargs), cost

    def measure(self, function, args, kwargs):
        costs = [self.once(function, args, kwargs)[1] for _ in range(REPEATS)]
        return int(statistics.median(ns for ns, _ in costs)), costs[-1][1]

    @staticmethod
    def once(function, args, kwargs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda._sleep(SPIN_CYCLES)
        start.record()
        result = function(*args, **kwargs)
        end.record()
        torch.cuda.synchronize()
        workspace = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        return result, (int(start.elapsed_time(end) * 1e6), workspace)


def cost_of(type, cost):
    """What an op of this type takes of its call's cost."""
    if not isinstance(cost, list):
        return cost
    if type in PARTS:
        return cost[PARTS[type]]
    parts = [part for part in cost if part]
    return sum(ns for ns, _ in parts), max(workspace for _, workspace in parts)


def write(path, base, made, batches, costs):
    """Writes to `path` the device description in the profile `base` with, for each op in `made` (lists of name and type
    by recorded op), its costs at the batches."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    ops = []
    for i, (name, type) in ((i, op) for i, made_of_call in enumerate(made) for op in made_of_call):
        points = []
        for batch, at_batch in zip(batches, costs):
            ns, workspace = cost_of(type, at_batch[i])
            points.append({"batch": batch, "time_ns": ns, "workspace_bytes": workspace, "busy_ppm": 1000000})
        variant = {"algorithm": "pytorch", "deterministic": deterministic, "points": points}
        ops.append({"op": name, "variants": [variant]})
    aside = f"{path}.tmp"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump({**base, "ops": ops}, file, indent=2)
        file.write("\n")
    os.replace(aside, path)
