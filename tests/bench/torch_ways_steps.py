"""The steps of bench_torch_ways.py, on the meta device: a model, its blocks, its arguments and its loss. Attention is written
out, and dropouts are left out, of which that device has other calls than a GPU."""

import os
import sys
from types import SimpleNamespace

import torch
from benchlib import ROOT
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

from torchmodels import ResNet
from torchsteps import Attention, Gpt, Mlp, double_conv


class Vit(nn.Module):
    def __init__(self, width=768, heads=12, layers=8, patches=196):
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.zeros(patches, width))
        self.blocks = nn.ModuleList(nn.Sequential(Attention(width, heads, patches), Mlp(width)) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512)):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.down = nn.ModuleList(double_conv(a, b) for a, b in [(3, widths[0]), *pairs])
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.join = nn.ModuleList(double_conv(2 * a, a) for a, _ in reversed(pairs))
        self.out = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(functional.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for up, join, skipped in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat([up(x), skipped], 1))
        return self.out(x)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = (nn.Parameter(torch.ones(width)) for _ in range(2))

    @staticmethod
    def normed(x, weight):
        wide = x.float()
        return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)

    @staticmethod
    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x, cos, sin, mask):
        y = self.normed(x, self.norm1)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        shares = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + mask).float().softmax(-1).to(x.dtype)
        x = x + self.o((shares @ v).transpose(1, 2).flatten(2))
        y = self.normed(x, self.norm2)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words=32000, length=512, width=1024, heads=16, layers=8, hidden=2816):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        for name, shape in ("cos", (length, width // heads)), ("sin", (length, width // heads)), ("mask", (length, length)):
            self.register_buffer(name, torch.zeros(shape))

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        return self.head(x)


def bf16_llama():
    """Made in that type: PyTorch does not convert modules of fake tensors."""
    was = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        return Llama()
    finally:
        torch.set_default_dtype(was)


def of_words(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def tokens(batch, length):
    return torch.zeros(batch, length, dtype=torch.long), torch.zeros(batch, length, dtype=torch.long)


def pictures(batch, side):
    return torch.zeros(batch, 3, side, side), torch.zeros(batch, dtype=torch.long)


def stages(model):
    return [block for i in range(1, 5) for block in getattr(model, f"layer{i}")]


# The model, what its blocks are, its arguments and its loss.
MODELS = {
    "gpt2": (lambda: Gpt(50257, 512, 768, 12, 12), lambda m: m.blocks, lambda: tokens(8, 512), of_words),
    "vit": (Vit, lambda m: m.blocks, lambda: pictures(64, 224), functional.cross_entropy),
    "unet": (UNet, lambda m: [*m.down, *m.join], lambda: (torch.zeros(8, 3, 256, 256), torch.zeros(8, 1, 256, 256)),
             functional.binary_cross_entropy_with_logits),
    "resnet50": (lambda: ResNet((3, 4, 6, 3), True), stages, lambda: pictures(128, 224), functional.cross_entropy),
    "llama": (bf16_llama, lambda m: m.blocks, lambda: tokens(8, 512), of_words),
}


def step_of(name, compute=None):
    """A step that trains a model with AdamW, and what gives its arguments. `compute` makes of the model and its loss a
    function of the arguments, and may change the model's blocks."""
    make, blocks_of, arguments, loss_of = MODELS[name]

    def make_both():
        model = make()
        for part in model.modules():
            if isinstance(part, nn.Dropout):
                part.eval()
        return model, arguments()

    with torch.device("meta"):
        model, args = make_both()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    made = SimpleNamespace(model=model, blocks=list(blocks_of(model)), make=make_both,
                           loss_of=lambda predict, x, y: loss_of(predict(x), y), loss=lambda x, y: loss_of(model(x), y))
    loss_by = compute(made) if compute else made.loss

    def step(x, y):
        with torch.device("meta"):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_by(x, y)
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step, lambda: args
