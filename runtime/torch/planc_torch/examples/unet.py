"""A U-Net with group norms that finds discs in noise, with Adam; see gpt2.py for how it is planned and run."""

import sys

import torch
from torch import nn
from torch.nn import functional

SIDE, BATCH, STEPS = 64, 4, 10


def twice(given, made):
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU(inplace=True),
                         nn.Conv2d(made, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        sizes = [width * 2**i for i in range(depth + 1)]
        self.first = twice(1, width)
        self.down = nn.ModuleList(twice(a, b) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.join = nn.ModuleList(twice(2 * a, a) for a in sizes[:-1])
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        levels = [self.first(x)]
        for down in self.down:
            levels.append(down(functional.max_pool2d(levels[-1], 2)))
        y = levels.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            y = join(torch.cat([up(y), levels.pop()], 1))
        return self.last(y)


torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = UNet().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def step(pictures, discs):
    optimizer.zero_grad(set_to_none=True)
    loss = functional.binary_cross_entropy_with_logits(model(pictures), discs)
    loss.backward()
    optimizer.step()
    return loss.detach()


def example():
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    x, y = (torch.randint(0, SIDE, (BATCH, 1, 1, 1)) for _ in range(2))
    discs = ((rows - y) ** 2 + (columns - x) ** 2 < (SIDE // 6) ** 2).float().to(device)
    return discs + torch.randn_like(discs), discs


def main():
    run = step
    if len(sys.argv) > 1:
        import planc_torch

        run = planc_torch.follow(sys.argv[1], step)
    for i in range(STEPS):
        print(f"step {i}: loss {run(*example()).item():.6f}")


if __name__ == "__main__":
    main()
