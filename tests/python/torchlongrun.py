"""A training run of many steps as users write one, in a process of its own: it goes on from its last checkpoint, evaluates
every 50 steps and can be told where to be killed.

    torchlongrun.py FOLDER [PLAN [step N | checkpoint N]]
"""

import json
import os
import signal
import sys
from types import SimpleNamespace

from torchfollow import planc_torch, torch  # first: it finds a Python with PyTorch

from sampling import TAKES_ALL
from torch import nn
from torch.nn import functional

STEPS, EVALUATED, SAVED = 1000 if TAKES_ALL else 300, 50, 40


def long_run():
    """Dropout, AdamW, a scheduler, a moving average of the weights."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 48), nn.LayerNorm(48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, 48), nn.BatchNorm1d(48),
                          nn.Tanh(), nn.Dropout(0.1), nn.Linear(48, 4))
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.8)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            for kept, p in zip(average, model.parameters()):
                kept.mul_(0.99).add_(p, alpha=0.01)
        return loss.detach()

    def example():
        x = torch.randn(96, 16)
        return x, x[:, :4].argmax(1)

    return SimpleNamespace(model=model, optimizer=optimizer, schedule=schedule, average=average, step=step, example=example)


def evaluate(made):
    made.model.eval()
    with torch.no_grad():
        x, y = made.example()
        loss = functional.cross_entropy(made.model(x), y)
    made.model.train()
    return loss.item()


# --- Checkpoints ------------------------------------------------------------------------------------------------------


def state_of(made, done, told):
    return {"model": made.model.state_dict(), "optimizer": made.optimizer.state_dict(), "schedule": made.schedule.state_dict(),
            "average": made.average, "random": torch.get_rng_state(), "done": done, "told": told}


def restore(made, state):
    for part in ("model", "optimizer", "schedule"):
        getattr(made, part).load_state_dict(state[part])
    with torch.no_grad():
        for kept, p in zip(made.average, state["average"]):
            kept.copy_(p)
    torch.set_rng_state(state["random"])
    return state["done"], state["told"]


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


class Killing:
    """A file whose writer is killed when it has written a part."""

    def __init__(self, file):
        self.file, self.left = file, 150

    def write(self, data):
        self.left -= 1
        if self.left:
            return self.file.write(data)
        self.file.write(bytes(data)[:len(data) // 2])
        self.file.flush()
        return die()

    def flush(self):
        self.file.flush()


def save(path, state, is_last):
    with open(f"{path}.part", "wb") as file:
        torch.save(state, Killing(file) if is_last else file)
    os.replace(f"{path}.part", path)


# --- The run ----------------------------------------------------------------------------------------------------------


def run(folder, plan=None, where=None, at=0):
    torch.set_num_threads(1)
    made, path, last = long_run(), os.path.join(folder, "checkpoint.pt"), int(at)
    done, told = restore(made, torch.load(path)) if os.path.exists(path) else (0, [])
    step = planc_torch.follow(plan, made.step) if plan else made.step
    while done < STEPS:
        if (where, last) == ("step", done):
            made.model[4].weight.register_hook(die)
        told.append(float(step(*made.example())))
        done += 1
        if done % EVALUATED == 0:
            told.append(evaluate(made))
        if done % SAVED == 0:
            save(path, state_of(made, done, told), (where, last) == ("checkpoint", done))
    if plan:
        print(json.dumps(step.counts))
        step.close()


if __name__ == "__main__":
    run(*sys.argv[1:])
