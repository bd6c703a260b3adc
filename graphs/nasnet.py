"""NASNet-A, whose cells were found by a search: 'large' and 'mobile'. Their counts are those of Keras and TF-slim."""

from layers import Net

ORIGIN = "Zoph et al., Learning transferable architectures for scalable image recognition, arXiv:1707.07012, as in Keras"
HEADING = """
NASNet-A ({n} @ {filters}) on {size}x{size} images: {parameters} parameters. Where a cell's other input is larger than
its own, the published network takes every other pixel twice, once from a corner on and once from the next pixel on: here
both are from the corner on, at the same cost."""


class Cells:
    """The cells of one network; every one takes the results of the two before it."""

    def __init__(self, net):
        self.net = net

    def relu(self, name, x):
        """Not in place: the cells' inputs have several readers."""
        return self.net.unary(name, "relu", x, self.net.shapes[x])

    def conv_bn(self, name, x, filters):
        return self.net.batchnorm(f"{name}_bn", self.net.conv(f"{name}_conv", x, filters, 1, bias=False))

    def separable(self, name, x, filters, kernel, stride=1):
        """ReLU, a convolution of each channel and one over all, batch norm, and once more without the stride."""
        for part, step in (("a", stride), ("b", 1)):
            prefix = f"{name}_{part}"
            x = self.relu(f"{prefix}_relu", x) if part == "a" else self.net.relu(f"{prefix}_relu", x)
            channels = self.net.shapes[x][0]
            x = self.net.conv(f"{prefix}_depth", x, channels, kernel, step, pad=kernel // 2, bias=False, groups=channels)
            x = self.net.batchnorm(f"{prefix}_bn", self.net.conv(f"{prefix}_point", x, filters, 1, bias=False))
        return x

    def pool(self, name, x, type, stride=1):
        return self.net.pool(name, x, 3, stride, pad=1, type=type)

    def adjusted(self, name, p, x, filters):
        """The other input in the size of the cell's own."""
        shapes = self.net.shapes
        if shapes[p][1:] != shapes[x][1:]:
            p = self.relu(f"{name}_relu", p)
            halves = [self.net.conv(f"{name}_conv{k}", self.net.pool(f"{name}_pool{k}", p, 1, 2, type="avgpool2d"),
                                    filters // 2, 1, bias=False) for k in (1, 2)]
            return self.net.batchnorm(f"{name}_bn", self.net.concat(f"{name}_concat", *halves))
        if shapes[p][0] != filters:
            return self.conv_bn(name, self.relu(f"{name}_relu", p), filters)
        return p

    def inputs(self, name, x, p, filters, last=False):
        """Both inputs of a cell; that of the last one has no other reader."""
        p = x if p is None else self.adjusted(f"{name}_p", p, x, filters)
        relu = self.net.relu if last else self.relu
        return self.conv_bn(f"{name}_h", relu(f"{name}_h_relu", x), filters), p

    def normal(self, name, x, p, filters, last):
        h, p = self.inputs(name, x, p, filters, last)
        add, separable = self.net.add, self.separable
        x1 = add(f"{name}_1_add", separable(f"{name}_1_left", h, filters, 5), separable(f"{name}_1_right", p, filters, 3))
        x2 = add(f"{name}_2_add", separable(f"{name}_2_left", p, filters, 5), separable(f"{name}_2_right", p, filters, 3))
        x3 = add(f"{name}_3_add", self.pool(f"{name}_3_left", h, "avgpool2d"), p)
        x4 = add(f"{name}_4_add", self.pool(f"{name}_4_left", p, "avgpool2d"), self.pool(f"{name}_4_right", p, "avgpool2d"))
        x5 = add(f"{name}_5_add", separable(f"{name}_5_left", h, filters, 3), h)
        return self.net.concat(f"{name}_concat", p, x1, x2, x3, x4, x5)

    def reduction(self, name, x, p, filters):
        h, p = self.inputs(name, x, p, filters)
        add, separable = self.net.add, self.separable
        x1 = add(f"{name}_1_add", separable(f"{name}_1_left", h, filters, 5, 2),
                 separable(f"{name}_1_right", p, filters, 7, 2))
        x2 = add(f"{name}_2_add", separable(f"{name}_2_right", p, filters, 7, 2),
                 self.pool(f"{name}_2_left", h, "maxpool2d", 2))
        x3 = add(f"{name}_3_add", self.pool(f"{name}_3_left", h, "avgpool2d", 2),
                 separable(f"{name}_3_right", p, filters, 5, 2))
        x4 = add(f"{name}_4_add", self.pool(f"{name}_4_left", x1, "avgpool2d"), x2)
        x5 = add(f"{name}_5_add", separable(f"{name}_5_left", x1, filters, 3),
                 self.pool(f"{name}_5_right", h, "maxpool2d", 2))
        return self.net.concat(f"{name}_concat", x2, x3, x4, x5)


def nasnet(name, size, penultimate, n_cells, stem, parameters, batch):
    heading = HEADING.format(n=n_cells, filters=penultimate, size=size, parameters=parameters)
    net = Net(name, ORIGIN, batch, heading, device="rtx2080ti")
    cells = Cells(net)
    images, labels = net.input("images", 3, size, size), net.input("labels", dtype="i64")
    filters, p = penultimate // 24, None
    x = net.batchnorm("stem_bn", net.conv("stem_conv", images, stem, 3, 2, bias=False))
    for k, width in ((1, filters // 4), (2, filters // 2)):
        x, p = cells.reduction(f"stem{k}", x, p, width), x
    for stage in (1, 2, 3):
        if stage > 1:
            filters *= 2
            x, p = cells.reduction(f"reduce{stage}", x, p, filters), x
        for k in range(1, n_cells + 1):
            x, p = cells.normal(f"cell{stage}_{k}", x, p, filters, stage == 3 and k == n_cells), x
    x = net.relu("relu", x)
    x = net.flatten("flat", net.pool("pool", x, net.shapes[x][1], net.shapes[x][1], type="avgpool2d"))
    return net.loss(net.linear("fc", x, 1000), labels)


def nasnet_large():
    return nasnet("nasnet-a-large", 331, 4032, 6, 96, "88,753,150", 16)


def nasnet_mobile():
    return nasnet("nasnet-a-mobile", 224, 1056, 4, 32, "5,289,978", 64)
