"""GPT-2 with AdamW, a learning rate that decays, and clipping, on words made up. It is small; sizes are the arguments of Gpt2.

    planc torch gpt2.py:step --budget 60% -o gpt2.plan     plans its step
    python3 gpt2.py gpt2.plan                              trains by the plan
    python3 gpt2.py                                        trains without: the same losses, but for rounding in micro-batches

planc_torch is installed for it, or in PYTHONPATH.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

import planc_torch

WORDS, LENGTH, BATCH, STEPS = 256, 48, 4, 8


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)).bool())

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        shares = (q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)).masked_fill(~self.mask, -math.inf).softmax(-1)
        return self.out((self.drop(shares) @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt2(nn.Module):
    def __init__(self, width=96, heads=4, layers=3):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.words.weight
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = Gpt2().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)


def step(ids):
    optimizer.zero_grad(set_to_none=True)
    total = 0
    for share, part in planc_torch.micro_batches(ids):
        logits = model(part[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()) * share
        loss.backward()
        total += loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    return total


def example():
    return torch.randint(0, WORDS, (BATCH, LENGTH + 1), device=device)


def main():
    run = step
    if len(sys.argv) > 1:
        run = planc_torch.follow(sys.argv[1], step)
    for i in range(STEPS):
        print(f"step {i}: loss {run(example()).item():.6f}")


if __name__ == "__main__":
    main()
