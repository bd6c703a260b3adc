"""Training steps of models of vision, for tests and benchmarks of planc_torch (see torchsteps.py for what a step is)."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from steps_language import attended, heads_of, joined
from torchmodels import ResNet
from torchtraining import HAS_HALF, Average, adamw, fused_adamw, seeded, sgd, trained

CLASSES, BATCH, SIDE = 10, 4, 32


def pictures():
    return torch.randn(BATCH, 3, SIDE, SIDE), torch.randint(0, CLASSES, (BATCH,))


def class_loss(model, images, labels):
    return functional.cross_entropy(model(images), labels)


def dropped_paths(x, p, training):
    """Stochastic depth: whole samples of a branch are left out."""
    if not training:
        return x
    return x * torch.empty(x.shape[0], *[1] * (x.dim() - 1)).bernoulli_(1 - p).div_(1 - p)


# --- Transformers -----------------------------------------------------------------------------------------------------


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(joined(attended(q, k, v)))
        return x + self.wide(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, width=48, heads=4, layers=3):
        super().__init__()
        self.patches, self.label = nn.Conv2d(3, width, 4, 4), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (SIDE // 4) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(VitBlock(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.label.expand(x.shape[0], -1, -1), x), 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit():
    """Images and labels are mixed; f16 with a scaler where the processor has it; what is returned has a name."""
    seeded()

    def loss_of(model, images, labels):
        share = torch.distributions.Beta(0.8, 0.8).sample()
        target = functional.one_hot(labels, CLASSES).float()
        images, target = (share * t + (1 - share) * t.flip(0) for t in (images, target))
        return functional.cross_entropy(model(images), target)

    return trained(Vit(), pictures, loss_of, lambda m: adamw(m, foreach=True), clip=1.0, scaled=True,
                   autocast=torch.float16 if HAS_HALF else torch.bfloat16, result=lambda loss: {"loss": loss})


def windows(x, size):
    batch, height, width, channels = x.shape
    x = x.view(batch, height // size, size, width // size, size, channels)
    return x.transpose(2, 3).reshape(-1, size * size, channels)


def unwindowed(x, size, height, width):
    x = x.view(-1, height // size, width // size, size, size, x.shape[-1])
    return x.transpose(2, 3).reshape(x.shape[0], height, width, -1)


class SwinBlock(nn.Module):
    def __init__(self, width, heads, side, size=4, shift=0):
        super().__init__()
        self.heads, self.size, self.shift = heads, size, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.table = nn.Parameter(torch.zeros((2 * size - 1) ** 2, heads))
        y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        y, x = (c.flatten()[:, None] - c.flatten()[None] + size - 1 for c in (y, x))
        self.register_buffer("apart", y * (2 * size - 1) + x)
        self.register_buffer("mask", self.shifted_mask(side) if shift else None)

    def shifted_mask(self, side):
        parts, size, shift = torch.zeros(1, side, side, 1), self.size, self.shift
        cuts = slice(0, -size), slice(-size, -shift), slice(-shift, None)
        for i, rows in enumerate(cuts):
            for k, columns in enumerate(cuts):
                parts[:, rows, columns] = 3 * i + k
        parts = windows(parts, self.size).squeeze(-1)
        return (parts[:, None] != parts[:, :, None]).float() * -100.0

    def forward(self, x):
        batch, height, width, channels = x.shape
        y = self.norm1(x)
        y = torch.roll(y, (-self.shift, -self.shift), (1, 2)) if self.shift else y
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(windows(y, self.size)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + self.table[self.apart].permute(2, 0, 1)
        if self.mask is not None:
            scores = scores.view(batch, -1, *scores.shape[1:]) + self.mask[None, :, None]
            scores = scores.flatten(0, 1)
        y = unwindowed(self.out(joined(scores.softmax(-1) @ v)), self.size, height, width)
        x = x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)
        return x + self.wide(self.norm2(x))


class Merged(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        return self.out(self.norm(torch.cat([x[:, i::2, k::2] for k in (0, 1) for i in (0, 1)], -1)))


class Swin(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.patches, side = nn.Conv2d(3, width, 2, 2), SIDE // 2
        self.blocks = nn.Sequential(SwinBlock(width, 2, side), SwinBlock(width, 2, side, shift=2), Merged(width),
                                    SwinBlock(2 * width, 4, side // 2), SwinBlock(2 * width, 4, side // 2, shift=2))
        self.norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, CLASSES)

    def forward(self, images):
        x = self.blocks(self.patches(images).permute(0, 2, 3, 1))
        return self.head(self.norm(x).mean((1, 2)))


def swin():
    seeded()
    return trained(Swin(), pictures, class_loss, fused_adamw, clip=1.0)


# --- Convolutions -----------------------------------------------------------------------------------------------------


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(functional.gelu(self.up(y)))
        return x + dropped_paths(y.permute(0, 3, 1, 2), 0.1, self.training)


class ConvNext(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem, self.narrow = nn.Conv2d(3, width, 2, 2), nn.Conv2d(width, 2 * width, 2, 2)
        self.first = nn.Sequential(*(ConvNextBlock(width) for _ in range(2)))
        self.second = nn.Sequential(*(ConvNextBlock(2 * width) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, CLASSES)

    def forward(self, images):
        x = self.second(self.narrow(self.first(self.stem(images))))
        return self.head(self.norm(x.mean((2, 3))))


def convnext():
    """A moving average of the weights."""
    seeded()
    model = ConvNext()
    return trained(model, pictures, class_loss, adamw, average=Average(model))


def resnet():
    """Momentum after Nesterov, channels innermost."""
    seeded()
    model = ResNet((1, 1, 1, 1), True)
    model.fc = nn.Linear(2048, CLASSES)
    model = model.to(memory_format=torch.channels_last)
    return trained(model, lambda: (torch.randn(2, 3, 48, 48).contiguous(memory_format=torch.channels_last),
                                   torch.randint(0, CLASSES, (2,))), class_loss, lambda m: sgd(m, nesterov=True))


def unit(a, b, kernel=3, stride=1, groups=1, activation=nn.SiLU):
    parts = [nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*parts, *([activation(inplace=True)] if activation else []))


class Inverted(nn.Module):
    """A wide depthwise convolution between narrow layers, with squeeze and excitation where asked."""

    def __init__(self, a, b, factor, stride, squeezed, activation):
        super().__init__()
        wide = a * factor
        self.same = a == b and stride == 1
        self.first = nn.Sequential(unit(a, wide, 1, activation=activation), unit(wide, wide, 3, stride, wide, activation))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.SiLU(), nn.Conv2d(4, wide, 1),
                                     nn.Sigmoid()) if squeezed else None
        self.last = unit(wide, b, 1, activation=None)

    def forward(self, x):
        y = self.first(x)
        y = self.last(y * self.squeeze(y) if self.squeeze else y)
        if not self.same:
            return y
        return x + (dropped_paths(y, 0.2, self.training) if self.squeeze else y)


def inverted_net(squeezed, activation):
    shapes = [(8, 8, 1, 1), (8, 16, 4, 2), (16, 16, 4, 1), (16, 24, 4, 2), (24, 24, 4, 1)]
    blocks = [Inverted(a, b, factor, stride, squeezed, activation) for a, b, factor, stride in shapes]
    return nn.Sequential(unit(3, 8, 3, 2, activation=activation), *blocks, unit(24, 64, 1, activation=activation),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, CLASSES))


def mobilenet():
    """RMSprop with momentum, steps of the rate."""
    seeded()
    return trained(inverted_net(False, nn.ReLU6), pictures, class_loss,
                   lambda m: torch.optim.RMSprop(m.parameters(), lr=1e-3, momentum=0.9),
                   schedule=lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.9))


def efficientnet():
    """bf16 by autocast, a moving average that has the statistics, too."""
    seeded()
    model = inverted_net(True, nn.SiLU)
    return trained(model, pictures, class_loss, sgd, autocast=torch.bfloat16, average=Average(model))


class DenseLayer(nn.Module):
    def __init__(self, channels, growth):
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 2 * growth, 1, bias=False))
        self.second = nn.Sequential(nn.BatchNorm2d(2 * growth), nn.ReLU(),
                                    nn.Conv2d(2 * growth, growth, 3, padding=1, bias=False))

    def forward(self, *parts):
        return self.second(self.first(torch.cat(parts, 1)))


class DenseNet(nn.Module):
    """Its layers recompute themselves where asked."""

    def __init__(self, growth=8, layers=4, checkpointed=False):
        super().__init__()
        self.checkpointed, self.stem = checkpointed, nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.blocks, channels = nn.ModuleList(), 16
        for _ in range(2):
            block = nn.ModuleList(DenseLayer(channels + i * growth, growth) for i in range(layers))
            channels += layers * growth
            self.blocks.append(nn.ModuleList([block, nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(),
                                                                   nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2))]))
            channels //= 2
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for block, narrow in self.blocks:
            parts = [x]
            for layer in block:
                parts.append(checkpoint(layer, *parts, use_reentrant=False) if self.checkpointed else layer(*parts))
            x = narrow(torch.cat(parts, 1))
        return self.head(x.mean((2, 3)))


def densenet():
    seeded()
    return trained(DenseNet(), pictures, class_loss, lambda m: sgd(m, foreach=True))


def densenet_checkpointed():
    seeded()
    return trained(DenseNet(checkpointed=True), pictures, class_loss, lambda m: torch.optim.Adagrad(m.parameters(), lr=1e-2))


class Segmented(nn.Module):
    """Dilated convolutions side by side, enlarged to the picture."""

    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(unit(3, width, stride=2, activation=nn.ReLU),
                                  unit(width, 2 * width, stride=2, activation=nn.ReLU))
        self.parts = nn.ModuleList(nn.Conv2d(2 * width, width, 3, padding=d, dilation=d) for d in (1, 2, 3))
        self.out = nn.Conv2d(3 * width, 5, 1)

    def forward(self, x):
        y = self.stem(x)
        y = self.out(functional.relu(torch.cat([part(y) for part in self.parts], 1)))
        return functional.interpolate(y, x.shape[-2:], mode="bilinear", align_corners=False)


def segmentation():
    """Two micro-batches, a loss per pixel with weights."""
    seeded()
    weights = torch.tensor([1.0, 2.0, 1.0, 0.5, 1.0])
    return trained(Segmented(), lambda: (torch.randn(4, 3, 32, 32), torch.randint(0, 5, (4, 32, 32))),
                   lambda m, images, labels: functional.cross_entropy(m(images), labels, weight=weights, ignore_index=4), sgd,
                   micro=True, schedule=lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda i: (1 - i / 100) ** 0.9))


STEPS = {f.__name__: f for f in (vit, swin, convnext, resnet, mobilenet, efficientnet, densenet, densenet_checkpointed,
                                 segmentation)}
