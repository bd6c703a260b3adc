"""Training steps that generate, recommend, hear and compare, for tests and benchmarks of planc_torch (see torchsteps.py for
what a step is)."""

import math
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional

from steps_language import attended
from torchtraining import HAS_HALF, Average, adamw, fused_adamw, seeded, sgd, trained

# --- Diffusion --------------------------------------------------------------------------------------------------------


class TimedBlock(nn.Module):
    def __init__(self, a, b, width):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, a), nn.Conv2d(a, b, 3, padding=1)
        self.norm2, self.conv2, self.time = nn.GroupNorm(4, b), nn.Conv2d(b, b, 3, padding=1), nn.Linear(width, b)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(functional.dropout(functional.silu(self.norm2(y)), 0.1, self.training))


class PixelAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(4, channels), nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        q, k, v = (part[:, None] for part in self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1))
        return x + self.out(attended(q, k, v)[:, 0].transpose(1, 2).reshape(x.shape))


class Denoiser(nn.Module):
    """A U-Net with attention at its coarsest level, told of the noise's time."""

    def __init__(self, channels=16, width=32):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.stem, self.out = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.down1, self.down2 = TimedBlock(channels, channels, width), TimedBlock(channels, 2 * channels, width)
        self.middle, self.attention = TimedBlock(2 * channels, 2 * channels, width), PixelAttention(2 * channels)
        self.up2, self.up1 = TimedBlock(4 * channels, channels, width), TimedBlock(2 * channels, channels, width)

    def forward(self, x, t):
        rates = torch.exp(torch.arange(self.width // 2) * (-math.log(10000.0) / (self.width // 2)))
        angles = t[:, None].float() * rates
        time = self.time(torch.cat((angles.sin(), angles.cos()), -1))
        a = self.down1(self.stem(x), time)
        b = self.down2(functional.avg_pool2d(a, 2), time)
        y = self.attention(self.middle(functional.avg_pool2d(b, 2), time))
        y = self.up2(torch.cat((functional.interpolate(y, scale_factor=2.0), b), 1), time)
        return self.out(self.up1(torch.cat((functional.interpolate(y, scale_factor=2.0), a), 1), time))


def diffusion():
    """Noise and times are drawn in the step; a moving average."""
    seeded()
    model, kept = Denoiser(), torch.linspace(1 - 1e-4, 1 - 0.02, 100).cumprod(0)

    def loss_of(model, images):
        t, noise = torch.randint(0, 100, (images.shape[0],)), torch.randn_like(images)
        share = kept[t][:, None, None, None]
        return functional.mse_loss(model(share.sqrt() * images + (1 - share).sqrt() * noise, t), noise)

    return trained(model, lambda: (torch.randn(4, 3, 16, 16),), loss_of, fused_adamw, clip=1.0, average=Average(model))


# --- Two networks against each other ----------------------------------------------------------------------------------


def generator(width=16):
    return nn.Sequential(nn.ConvTranspose2d(24, 2 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
                         nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                         nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


def critic(width=16):
    return nn.Sequential(nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, 2, 1),
                         nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2 * width * 16, 1))


def two_networks(first_loss):
    seeded()
    makes, judges = generator(), critic()
    optimizers = [torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.99)) for part in (judges, makes)]

    def step(images):
        noise = torch.randn(images.shape[0], 24, 1, 1)
        made = makes(noise)
        optimizers[0].zero_grad(set_to_none=True)
        judged = first_loss(judges, images, made.detach())
        judged.backward()
        optimizers[0].step()
        optimizers[1].zero_grad(set_to_none=True)
        missed = functional.softplus(-judges(made)).mean()
        missed.backward()
        optimizers[1].step()
        return judged.detach(), missed.detach()

    return SimpleNamespace(model=nn.ModuleList([makes, judges]), optimizer=optimizers[0], step=step,
                           example=lambda: (torch.randn(8, 3, 16, 16),))


def gan():
    """Two optimizers, one after the other."""
    return two_networks(lambda judges, images, made:
                        (functional.softplus(-judges(images)) + functional.softplus(judges(made))).mean())


def gan_penalized():
    """A gradient is differentiated in turn."""
    def loss(judges, images, made):
        share = torch.rand(images.shape[0], 1, 1, 1)
        between = (share * images + (1 - share) * made).requires_grad_()
        slope, = torch.autograd.grad(judges(between).sum(), between, create_graph=True)
        return judges(made).mean() - judges(images).mean() + 10 * ((slope.flatten(1).norm(2, 1) - 1) ** 2).mean()
    return two_networks(loss)


# --- Autoencoders -----------------------------------------------------------------------------------------------------


class Autoencoder(nn.Module):
    def __init__(self, width=16, hidden=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ELU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ELU(),
                                     nn.Flatten(), nn.Linear(2 * width * 16, 2 * hidden))
        self.decoder = nn.Sequential(nn.Linear(hidden, 2 * width * 16), nn.Unflatten(1, (2 * width, 4, 4)), nn.ELU(),
                                     nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ELU(), nn.Upsample(scale_factor=2),
                                     nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        mean, spread = self.encoder(x).chunk(2, -1)
        drawn = torch.distributions.Normal(mean, spread.mul(0.5).exp()).rsample()
        return self.decoder(drawn), -0.5 * (1 + spread - mean.pow(2) - spread.exp()).sum(1).mean()


def autoencoder():
    """Draws in the middle of the network; a number and a tensor are returned."""
    seeded()

    def loss_of(model, images):
        made, apart = model(images)
        return functional.binary_cross_entropy_with_logits(made, images.sigmoid()) + 1e-3 * apart

    return trained(Autoencoder(), lambda: (torch.randn(8, 3, 16, 16),), loss_of, adamw,
                   result=lambda loss: (loss, loss.item()))


# --- Recommendation ---------------------------------------------------------------------------------------------------


class Dlrm(nn.Module):
    def __init__(self, width=16, tables=4):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(500, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, numbers, keys):
        x = self.bottom(numbers)
        parts = torch.stack([x, *(table(keys[:, i]) for i, table in enumerate(self.tables))], 1)
        products = torch.bmm(parts, parts.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat((x, products), 1)).squeeze(1)


def dlrm():
    """Bags of embeddings, Adagrad."""
    seeded()
    return trained(Dlrm(), lambda: (torch.randn(64, 13), torch.randint(0, 500, (64, 4, 3)), torch.randint(0, 2, (64,)).float()),
                   lambda m, numbers, keys, y: functional.binary_cross_entropy_with_logits(m(numbers, keys), y),
                   lambda m: torch.optim.Adagrad(m.parameters(), lr=0.01))


# --- Speech -----------------------------------------------------------------------------------------------------------


class Listener(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(10, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, batch_first=True, norm_first=True)
        self.out = nn.Linear(width, 12)

    def forward(self, sound):
        return self.out(self.layer(self.stem(sound.unflatten(1, (-1, 10)))))


def speech():
    """PyTorch's own transformer layer, and the loss of alignments."""
    seeded()
    lengths = torch.tensor([17, 17]), torch.tensor([6, 4])

    def loss_of(model, sound, text):
        return functional.ctc_loss(model(sound).log_softmax(-1).transpose(0, 1), text, *lengths)

    return trained(Listener(), lambda: (torch.randn(2, 170), torch.randint(1, 12, (2, 6))), loss_of, adamw, clip=1.0)


# --- Graphs -----------------------------------------------------------------------------------------------------------


class Messages(nn.Module):
    def __init__(self, width=24, layers=3):
        super().__init__()
        self.stem, self.out = nn.Linear(8, width), nn.Linear(width, 5)
        self.send, self.take = (nn.ModuleList(nn.Linear(n * width, width) for _ in range(layers)) for n in (1, 2))

    def forward(self, x, edges):
        x, (source, target) = self.stem(x), edges
        for send, take in zip(self.send, self.take):
            messages = functional.relu(send(x[source]))
            arrived = torch.zeros_like(x).index_add(0, target, messages)
            x = x + functional.relu(take(torch.cat((x, arrived), -1)))
        return self.out(x)


def graph_network():
    seeded()
    return trained(Messages(), lambda: (torch.randn(100, 8), torch.randint(0, 100, (2, 400)), torch.randint(0, 5, (100,))),
                   lambda m, x, edges, y: functional.cross_entropy(m(x, edges), y), lambda m: torch.optim.NAdam(m.parameters()))


# --- Comparison -------------------------------------------------------------------------------------------------------


def distillation():
    """A teacher in evaluation mode, f16 with a scaler where the processor has it."""
    seeded()

    def net(width):
        return nn.Sequential(nn.Linear(32, width), nn.BatchNorm1d(width), nn.Hardswish(), nn.Linear(width, width), nn.PReLU(),
                             nn.Linear(width, 10))

    model, teacher = net(64), net(128).eval()

    def loss_of(model, x, y):
        with torch.no_grad():
            shown = teacher(x)
        said = model(x)
        apart = functional.kl_div((said / 2).log_softmax(-1), (shown / 2).softmax(-1), reduction="batchmean")
        return apart * 4 + functional.cross_entropy(said, y)

    return trained(model, lambda: (torch.randn(64, 32), torch.randint(0, 10, (64,))), loss_of, sgd, scaled=True, clip=1.0,
                   beside=[teacher], autocast=torch.float16 if HAS_HALF else torch.bfloat16)


def contrast():
    """Two views against a slow copy of the network, which is updated in the step."""
    seeded()
    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 16))
    slow = Average(model)

    def loss_of(model, one, other):
        with torch.no_grad():
            keys = functional.normalize(slow.kept(other), dim=1)
        return functional.cross_entropy(functional.normalize(model(one), dim=1) @ keys.t() / 0.2, torch.arange(one.shape[0]))

    return trained(model, lambda: (torch.randn(8, 3, 16, 16), torch.randn(8, 3, 16, 16)), loss_of, sgd, average=slow,
                   beside=[slow.kept])


STEPS = {f.__name__: f for f in (diffusion, gan, gan_penalized, autoencoder, dlrm, speech, graph_network, distillation, contrast)}
