"""DeepLabv3+ on Xception-65, for generate.py."""

from layers import Net

BACKBONE_EPSILON = 1e-3
STEM = ((32, 2), (64, 1))
ENTRY = (128, 256, 728)
MIDDLE_BLOCKS = 16
RATES = (6, 12, 18)  # of the spatial pyramid, at output stride 16
CLASSES = 21


class DeepLab(Net):
    def conv_bn(self, name, x, channels, kernel, stride=1, relu=True, **attrs):
        x = self.conv(f"{name}_conv", x, channels, kernel, stride, pad=kernel // 2, bias=False)
        x = self.batchnorm(f"{name}_bn", x, **attrs)
        return self.relu(f"{name}_relu", x) if relu else x

    def separable(self, name, x, channels, stride=1, rate=1, relu="none", **attrs):
        """A 3x3 convolution of every channel by itself and a 1x1 convolution, each with a batch norm. `relu`: after
        which of them ("none", "last", "both")."""
        c = self.shapes[x][0]
        x = self.conv(f"{name}_depth", x, c, 3, stride, pad=rate, bias=False, dilation=rate, groups=c)
        x = self.batchnorm(f"{name}_depth_bn", x, **attrs)
        if relu == "both":
            x = self.relu(f"{name}_depth_relu", x)
        x = self.batchnorm(f"{name}_point_bn", self.conv(f"{name}_point", x, channels, 1, bias=False), **attrs)
        return x if relu == "none" else self.relu(f"{name}_point_relu", x)

    def block(self, name, x, widths, stride=1, shortcut=True, tapped=None):
        """Three separable convolutions with a ReLU before each, beside a 1x1 convolution or nothing. A ReLU is in place
        where nobody else reads its input: not the first one's, nor the result of convolution number `tapped`. Gives
        the results of block and tapped convolution."""
        y, tap = x, None
        for i, width in enumerate(widths, 1):
            kept = i == 1 or tapped == i - 1
            y = self.unary(f"{name}_relu{i}", "relu", y, self.shapes[y], in_place=not kept)
            y = self.separable(f"{name}_{i}", y, width, stride if i == 3 else 1, epsilon=BACKBONE_EPSILON)
            tap = y if tapped == i else tap
        if shortcut:
            x = self.conv_bn(f"{name}_skip", x, widths[-1], 1, stride, relu=False, epsilon=BACKBONE_EPSILON)
        return self.add(f"{name}_add", y, x), tap

    def xception65(self, x):
        """The features at stride 4, for the decoder, and those at stride 16."""
        for i, (channels, stride) in enumerate(STEM, 1):
            x = self.conv_bn(f"stem{i}", x, channels, 3, stride, epsilon=BACKBONE_EPSILON)
        low = None
        for i, width in enumerate(ENTRY, 1):
            x, tap = self.block(f"entry{i}", x, (width,) * 3, 2, tapped=2 if i == 2 else None)
            low = low or tap
        for i in range(1, MIDDLE_BLOCKS + 1):
            x, _ = self.block(f"middle{i}", x, (728,) * 3, shortcut=False)
        x, _ = self.block("exit1", x, (728, 1024, 1024))
        for i, width in enumerate((1536, 1536, 2048), 1):
            x = self.separable(f"exit2_{i}", x, width, rate=2, relu="both", epsilon=BACKBONE_EPSILON)
        return low, x

    def pyramid(self, x):
        """Atrous spatial pyramid pooling: the whole image's mean, 1x1, and 3x3 at three rates, projected."""
        size = self.shapes[x][1]
        mean = self.conv_bn("aspp_mean", self.pool("aspp_pool", x, size, size, type="avgpool2d"), 256, 1)
        branches = [self.upsample("aspp_spread", mean, size, mode="nearest"), self.conv_bn("aspp0", x, 256, 1)]
        branches += [self.separable(f"aspp{i}", x, 256, rate=rate, relu="both") for i, rate in enumerate(RATES, 1)]
        return self.conv_bn("aspp_project", self.concat("aspp_concat", *branches), 256, 1)

    def decoder(self, low, x):
        x = self.upsample("decoder_up", x, 4, mode="aligned")
        x = self.concat("decoder_concat", x, self.conv_bn("decoder_low", low, 48, 1))
        for i in (1, 2):
            x = self.separable(f"decoder{i}", x, 256, relu="both")
        return self.upsample("up", self.conv("score", x, CLASSES, 1), 4, mode="aligned")


def deeplabv3plus():
    net = DeepLab("deeplabv3plus",
                  "Chen et al., Encoder-decoder with atrous separable convolution for semantic image segmentation, "
                  "ECCV 2018", 6, """
DeepLabv3+ with an Xception-65 backbone, output stride 16, 21 classes (PASCAL VOC), 513x513 images: 41,055,413
parameters.
The out-of-core paper (ICLR 2021 submission, section 5.2), which runs out of 16 GB above batch 6, does not name the
backbone; Xception-65 is that of the published network's best results and of its framework's own example. What follows
the concatenated pyramid has no dropout there and here.""", device="v100-16g-nvlink", optimizer="momentum")
    images, labels = net.input("images", 3, 513, 513), net.input("labels", 513, 513, dtype="i64")
    low, x = net.xception65(images)
    return net.loss(net.decoder(low, net.pyramid(x)), labels)
