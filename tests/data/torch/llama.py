"""A LLaMA of any size in bfloat16, trained by AdamW: rotary positions, RMSNorm, SwiGLU."""

import torch
from torch import nn
from torch.nn import functional


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class RotaryAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, cos, sin):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = functional.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.attention, self.norm2 = RmsNorm(width), RotaryAttention(width, heads), RmsNorm(width)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words, length, width, heads, hidden, layers):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, words, bias=False)
        share = torch.arange(0, width // heads, 2) / (width // heads)
        angle = (torch.arange(length)[:, None] / 10000 ** share).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def training(words, length, **sizes):
    """The model, a step of it and what gives the step's arguments."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Llama(words, length, **sizes).to(device).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def example():
        ids = torch.randint(0, words, (1, length + 1), device=device)
        return ids[:, :-1], ids[:, 1:]

    def step(ids, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(ids).flatten(0, 1).float(), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return model, step, example
