"""Has a step run in several micro-batches, over which it accumulates gradients: in as many as it is recorded with, or as the plan has
that it follows, and in one otherwise."""

import copy
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from numbers import Number

import torch

MOST = 64


class Division:
    """In how many micro-batches a step runs. `samples`: of the smallest batch that it has had divided, None before."""

    def __init__(self, number):
        self.number, self.samples = number, None

    def note(self, samples):
        self.samples = samples if self.samples is None else min(self.samples, samples)


DIVISION = ContextVar("DIVISION", default=Division(1))  # of the step that this thread runs


@contextmanager
def divided(number):
    """Within, micro_batches() of this thread gives so many."""
    token = DIVISION.set(Division(number))
    try:
        yield DIVISION.get()
    finally:
        DIVISION.reset(token)


def dividing(step, number):
    """The step as it runs in so many micro-batches."""
    def run(*args, **kwargs):
        with divided(number):
            return step(*args, **kwargs)
    return run


def micro_batches(*batch):
    """Gives the micro-batches of a batch one after the other, each as (share, *parts), for a step that accumulates gradients:

        for share, images, labels in planc_torch.micro_batches(images, labels):
            loss = cross_entropy(model(images), labels) * share
            loss.backward()

    batch  tensors, or tuples, lists, dicts and dataclasses of such, all with the batch's samples along dimension 0; numbers, tensors
           of no dimension, strings and None in them are handed on as they are, also where a list has one for each sample
    share  how much of the batch's samples are in the micro-batch: times this the means over micro-batches add up to the batch's
    parts  what is given, with the micro-batch's samples, as views

    There is one, the batch itself, unless the step is recorded by `planc torch --micro-batches`, or followed by a plan that this has
    made, with and after it. Their sizes differ by one at most, and none is empty: a batch of fewer samples has as many micro-batches as
    samples. Each use divides anew, so that one within another divides a micro-batch. ValueError where tensors differ in their number of
    samples or there is none, TypeError of what else has no parts."""
    sizes = []
    mapped(batch, lambda tensor: sizes.append(tensor.shape[0]) or tensor)
    if not sizes:
        raise ValueError("micro_batches() divides a batch, and is given no tensor that has samples")
    if min(sizes) < max(sizes):
        raise ValueError(f"micro_batches() is given tensors of {min(sizes)} and of {max(sizes)} samples along dimension 0; let it "
                         "have those of the batch alone")
    division = DIVISION.get()
    division.note(sizes[0])
    return parts_of(batch, sizes[0], min(division.number, sizes[0]))


def parts_of(batch, samples, number):
    if number <= 1:
        yield (1.0, *batch)
        return
    each, larger = divmod(samples, number)
    start = 0
    for i in range(number):
        size = each + (i < larger)
        yield (size / samples, *mapped(batch, lambda tensor, at=start, n=size: tensor.narrow(0, at, n)))
        start += size


def mapped(value, function):
    """`value` with what `function` gives in the place of each tensor that has dimensions; itself where that is all the same."""
    if isinstance(value, torch.Tensor):
        return function(value) if value.dim() else value
    if value is None or isinstance(value, (Number, str)):
        return value
    if isinstance(value, Mapping):
        items = dict(value.items())
    elif isinstance(value, (tuple, list)):
        items = dict(enumerate(value))
    elif is_dataclass(value) and not isinstance(value, type):
        items = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        raise TypeError(f"micro_batches() divides tensors, and tuples, lists, dicts and dataclasses of them, and is given a "
                        f"{type(value).__name__}")
    made = {key: mapped(item, function) for key, item in items.items()}
    if all(made[key] is item for key, item in items.items()):
        return value
    if isinstance(value, tuple):
        return getattr(value, "_make", type(value))(list(made.values()))
    copied = copy.copy(value)
    for key, item in made.items():
        if isinstance(value, (Mapping, list)):
            copied[key] = item
        else:
            object.__setattr__(copied, key, item)  # one that is frozen, too
    return copied
