"""One training loop for the many models of steps_*.py: what users do around a model's loss, each part of it where asked."""

import copy
from contextlib import nullcontext
from types import SimpleNamespace

import torch
from torch import nn

HAS_HALF = hasattr(torch, "get_autocast_dtype")  # autocast of the CPU takes float16 from then on
HAS_SCALER = hasattr(torch.amp, "GradScaler")


def seeded(seed=0):
    torch.manual_seed(seed)


def adamw(model, **options):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, **options)


def fused_adamw(model):
    """The fused kernel where PyTorch has one for the processor, else one over all parameters at once."""
    try:
        return adamw(model, fused=True)
    except (RuntimeError, TypeError):
        return adamw(model, foreach=True)


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, **options)


def halves(batch):
    """A batch's tensors, in a tuple or a dict, in two micro-batches."""
    if isinstance(batch, dict):
        parts = {key: value.chunk(2) for key, value in batch.items()}
        return [{key: value[i] for key, value in parts.items()} for i in range(2)]
    parts = [value.chunk(2) for value in batch]
    return [[value[i] for value in parts] for i in range(2)]


class Average:
    """A moving average of a model's weights."""

    def __init__(self, model):
        self.model, self.kept = model, copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, decay=0.9):
        for kept, p in zip(self.kept.parameters(), self.model.parameters()):
            kept.lerp_(p, 1 - decay)
        for kept, p in zip(self.kept.buffers(), self.model.buffers()):
            kept.copy_(p)


def trained(model, example, loss_of, optimizer, *, clip=None, micro=False, autocast=None, scaled=False, schedule=None,
            average=None, beside=(), result=lambda loss: loss):
    """A step: `loss_of(model, *batch)` gives its loss; `result` makes of the loss what the step returns. `beside`: modules that
    run, too."""
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0) if scaled and HAS_SCALER else None
    optimizer = optimizer(model)
    schedule = schedule(optimizer) if schedule else None

    def backward(batch, parts):
        with torch.autocast("cpu", dtype=autocast) if autocast else nullcontext():
            loss = loss_of(model, batch) if isinstance(batch, dict) else loss_of(model, *batch)
        loss = loss / parts if parts > 1 else loss
        (scaler.scale(loss) if scaler else loss).backward()
        return loss.detach()

    def update():
        if scaler:
            scaler.unscale_(optimizer)
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        if schedule:
            schedule.step()
        if average:
            average.update()

    def step(*batch):
        batch = batch[0] if isinstance(batch[0], dict) else batch
        optimizer.zero_grad(set_to_none=True)
        parts = halves(batch) if micro else [batch]
        losses = [backward(part, len(parts)) for part in parts]
        update()
        return result(sum(losses[1:], losses[0]))

    more = list(average.kept.parameters()) + list(average.kept.buffers()) if average else []
    return SimpleNamespace(model=model, optimizer=optimizer, step=step, example=example, more=more, beside=beside)
