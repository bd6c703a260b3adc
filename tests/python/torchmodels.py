"""The recorded models in plain torch.nn, with torchvision's names of modules; see graphs/recorded."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """ResNet's basic block, or its bottleneck (v1.5: the 3x3 convolution has the stride)."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = 4 * width if bottleneck else width
        layers = [(width, 1, 1), (width, 3, stride), (out, 1, 1)] if bottleneck else [(width, 3, stride), (out, 3, 1)]
        c = channels
        self.parts = len(layers)
        for i, (k, kernel, step) in enumerate(layers, 1):
            self.add_module(f"conv{i}", nn.Conv2d(c, k, kernel, step, kernel // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(k))
            c = k
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for i in range(1, self.parts + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = self.relu(y) if i < self.parts else y
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, blocks, bottleneck):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512)), 1):
            layer = nn.Sequential()
            for i in range(count):
                layer.append(Block(channels, width, 2 if stage > 1 and i == 0 else 1, bottleneck))
                channels = 4 * width if bottleneck else width
            self.add_module(f"layer{stage}", layer)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(channels, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for count, width in zip((2, 2, 3, 3, 3), (64, 128, 256, 512, 512)):
            for _ in range(count):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2, 2))
        self.features, self.avgpool = nn.Sequential(*layers), nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class LSTM(nn.Module):
    """Four layers, unrolled over the words; from the third on, a layer's input is added to its output."""

    def __init__(self, layers=4, hidden=1024, vocabulary=32000):
        super().__init__()
        self.emb = nn.Embedding(vocabulary, hidden)
        self.cells = nn.ModuleList(nn.LSTMCell(hidden, hidden) for _ in range(layers))
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(hidden, vocabulary)

    def forward(self, tokens):
        words, states, tops = self.emb(tokens), [None] * len(self.cells), []
        for t in range(tokens.shape[1]):
            x = words[:, t]
            for i, cell in enumerate(self.cells):
                states[i] = cell(self.drop(x), states[i])
                x = states[i][0] + x if i >= 2 else states[i][0]
            tops.append(x)
        return self.out(torch.stack(tops, 1))


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=False)


def classify(model, images, labels):
    return functional.cross_entropy(model(images), labels)


def predict(model, tokens, labels):
    return functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


def images(n):
    return torch.zeros(n, 3, 224, 224), torch.zeros(n, dtype=torch.long)


def words(n):
    return torch.zeros(n, 25, dtype=torch.long), torch.zeros(n, 25, dtype=torch.long)


MODELS = {
    "vgg16": lambda: (VGG16(), images, classify, sgd),
    "resnet34": lambda: (ResNet((3, 4, 6, 3), False), images, classify, sgd),
    "resnet50": lambda: (ResNet((3, 4, 6, 3), True), images, classify, sgd),
    "lstm4_h1024_s25": lambda: (LSTM(), words, predict, sgd),
}
