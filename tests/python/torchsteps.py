"""Training steps as users write them, for tests of planc_torch. Each function makes one anew, from the same seed: the model
and what belongs to it, the step, and example(), which gives its arguments."""

import math
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def made(seed=0):
    torch.manual_seed(seed)


def cnn():
    """Batch norms, results in place, dropout, AdamW, clipping."""
    made()
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(32 * 64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(images, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                           example=lambda: (torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))))


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.length = heads, length
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool())

    def forward(self, x):
        batch, _, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, self.length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        shares = (q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)).masked_fill(~self.mask, -math.inf).softmax(-1)
        return x + self.out((self.drop(shares) @ v).transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.parts = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width),
                                   nn.Dropout(0.1))

    def forward(self, x):
        return x + self.parts(x)


class Gpt(nn.Module):
    """Ties the embedding to the head; recomputes its blocks itself if it is told to."""

    def __init__(self, words=96, length=24, width=32, heads=4, layers=2, checkpointed=False):
        super().__init__()
        self.words, self.checkpointed = words, checkpointed
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(nn.Sequential(Attention(width, heads, length), Mlp(width)) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = checkpoint(block, x) if self.checkpointed else block(x)
        return self.head(self.norm(x))


def gpt(checkpointed=False):
    """A scheduler, gradients cleared in the middle of the step, a dict as result."""
    made()
    model = Gpt(checkpointed=checkpointed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (1 + i))

    def step(ids, targets):
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        return {"loss": loss.detach()}

    return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                           example=lambda: (torch.randint(0, 96, (4, 24)), torch.randint(0, 96, (4, 24))))


def checkpointed_gpt():
    return gpt(checkpointed=True)


def accumulating():
    """Three micro-batches from a dict, momentum, gradients zeroed in place, a moving average of the weights."""
    made()
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(batch):
        optimizer.zero_grad(set_to_none=False)
        total = 0
        for x, y in batch["micro"]:
            loss = functional.cross_entropy(model(x), y) / len(batch["micro"])
            loss.backward()
            total += loss.detach()
        optimizer.step()
        with torch.no_grad():
            for kept, p in zip(average, model.parameters()):
                kept.mul_(0.9).add_(p, alpha=0.1)
        return total

    return SimpleNamespace(
        model=model, optimizer=optimizer, step=step, more=average,
        example=lambda: {"micro": [(torch.randn(64, 32), torch.randint(0, 10, (64,))) for _ in range(3)]})


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(50, 32), nn.LSTM(32, 48, 2, batch_first=True, dropout=0.1), nn.Linear(48, 50)

    def forward(self, ids):
        return self.out(self.lstm(self.words(ids))[0])


def lstm():
    """Its loss leaves the step as a number."""
    made()
    model = Lstm()
    optimizer = torch.optim.Adam(model.parameters())

    def step(ids, targets):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                           example=lambda: (torch.randint(0, 50, (8, 8)), torch.randint(0, 50, (8, 8))))


def double_conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = double_conv(3, 8), double_conv(8, 16), double_conv(16, 16)
        self.up2, self.join2 = nn.ConvTranspose2d(16, 16, 2, 2), double_conv(32, 16)
        self.up1, self.join1 = nn.ConvTranspose2d(16, 8, 2, 2), double_conv(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(functional.max_pool2d(a, 2))
        y = self.up2(self.middle(functional.max_pool2d(b, 2)))
        return self.out(self.join1(torch.cat([self.up1(self.join2(torch.cat([y, b], 1))), a], 1)))


def unet():
    """What it returns holds on to the picture; gradients are not cleared before the forward pass."""
    made()
    model = UNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def step(x, target):
        y = model(x)
        loss = functional.binary_cross_entropy_with_logits(y, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach(), y.detach()

    return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                           example=lambda: (torch.randn(4, 3, 32, 32), torch.rand(4, 1, 32, 32)))


def mixed():
    """bf16 by autocast, an optimizer over all parameters at once."""
    made()
    model = nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return SimpleNamespace(model=model, optimizer=optimizer, step=step,
                           example=lambda: (torch.randn(128, 32), torch.randint(0, 10, (128,))))


STEPS = {f.__name__: f for f in (cnn, gpt, checkpointed_gpt, accumulating, lstm, unet, mixed)}
