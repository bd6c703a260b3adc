"""Inception v3 and v4, for generate.py. A unit is a convolution without bias, a batch norm and a ReLU; a module joins
branches of units along the channels."""

from layers import Net, pair

EPSILON = 1e-3  # of every batch norm, in both papers' published code
SZEGEDY_V3 = "Szegedy et al., Rethinking the inception architecture for computer vision, CVPR 2016"
SZEGEDY_V4 = ("Szegedy et al., Inception-v4, Inception-ResNet and the impact of residual connections on learning, "
              "AAAI 2017")


def unit(net, name, x, channels, kernel, stride=1, same=True):
    """`same`: padded so that a unit of stride 1 keeps the size."""
    pad = [k // 2 for k in pair(kernel)] if same and stride == 1 else 0
    x = net.conv(f"{name}_conv", x, channels, kernel, stride, pad, bias=False)
    return net.relu(f"{name}_relu", net.batchnorm(f"{name}_bn", x, epsilon=EPSILON))


def branch(net, name, x, *units):
    """One unit after the other, each (channels, kernel) or (channels, kernel, stride)."""
    for i, (channels, kernel, *stride) in enumerate(units, 1):
        x = unit(net, f"{name}_{i}", x, channels, kernel, *stride)
    return x


def pooled(net, name, x, channels):
    """A branch that averages 3x3 neighbourhoods first."""
    return unit(net, f"{name}_1", net.pool(f"{name}_pool", x, 3, 1, pad=1, type="avgpool2d"), channels, 1)


def forked(net, name, x, channels):
    """A branch that ends in a row and a column convolution side by side."""
    return net.concat(f"{name}_fork", unit(net, f"{name}_row", x, channels, [1, 3]),
                      unit(net, f"{name}_column", x, channels, [3, 1]))


def shrunk(net, name, x):
    """A branch that only pools."""
    return net.pool(f"{name}_pool", x, 3, 2)


def rows_and_columns(*channels, first):
    """Units of 1x7 and 7x1 windows in turn."""
    return [(c, [1, 7] if (first == "row") == (i % 2 == 0) else [7, 1]) for i, c in enumerate(channels)]


# --- v3 ---------------------------------------------------------------------------------------------------------------


def v3_35(net, name, x, pool_channels):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (64, 1)),
                      branch(net, f"{name}_b", x, (48, 1), (64, 5)),
                      branch(net, f"{name}_c", x, (64, 1), (96, 3), (96, 3)),
                      pooled(net, f"{name}_d", x, pool_channels))


def v3_to_17(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (384, 3, 2)),
                      branch(net, f"{name}_b", x, (64, 1), (96, 3), (96, 3, 2)),
                      shrunk(net, f"{name}_c", x))


def v3_17(net, name, x, width):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (192, 1)),
                      branch(net, f"{name}_b", x, (width, 1), *rows_and_columns(width, 192, first="row")),
                      branch(net, f"{name}_c", x, (width, 1),
                             *rows_and_columns(width, width, width, 192, first="column")),
                      pooled(net, f"{name}_d", x, 192))


def v3_to_8(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (192, 1), (320, 3, 2)),
                      branch(net, f"{name}_b", x, (192, 1), *rows_and_columns(192, 192, first="row"), (192, 3, 2)),
                      shrunk(net, f"{name}_c", x))


def v3_8(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (320, 1)),
                      forked(net, f"{name}_b", branch(net, f"{name}_b", x, (384, 1)), 384),
                      forked(net, f"{name}_c", branch(net, f"{name}_c", x, (448, 1), (384, 3)), 384),
                      pooled(net, f"{name}_d", x, 192))


def auxiliary(net, x, labels):
    """The second classifier, on the 17x17 maps, which only training has."""
    x = unit(net, "aux_1", net.pool("aux_pool", x, 5, 3, type="avgpool2d"), 128, 1)
    x = unit(net, "aux_2", x, 768, 5, same=False)
    return net.cross_entropy("aux_loss", net.linear("aux_fc", net.flatten("aux_flat", x), 1000), labels, "aux_probs")


def v3(name, heading, aux):
    net = Net(name, SZEGEDY_V3, 16, heading, device="a6000")
    images, labels = net.input("images", 3, 299, 299), net.input("labels", dtype="i64")
    x = unit(net, "stem1", images, 32, 3, 2)
    x = unit(net, "stem2", x, 32, 3, same=False)
    x = net.pool("stem_pool1", unit(net, "stem3", x, 64, 3), 3, 2)
    x = unit(net, "stem4", x, 80, 1)
    x = net.pool("stem_pool2", unit(net, "stem5", x, 192, 3, same=False), 3, 2)
    for i, pool_channels in enumerate((32, 64, 64), 1):
        x = v3_35(net, f"mixed5_{i}", x, pool_channels)
    x = v3_to_17(net, "mixed6_1", x)
    for i, width in enumerate((128, 160, 160, 192), 2):
        x = v3_17(net, f"mixed6_{i}", x, width)
    aux_loss = auxiliary(net, x, labels) if aux else None
    x = v3_to_8(net, "mixed7_1", x)
    for i in (2, 3):
        x = v3_8(net, f"mixed7_{i}", x)
    x = net.dropout("drop", net.pool("pool", x, 8, 8, type="avgpool2d"), 0.5)
    logits = net.linear("fc", net.flatten("flat", x), 1000)
    if not aux:
        return net.loss(logits, labels)
    main_loss = net.cross_entropy("main_loss", logits, labels, "probs")
    loss = net.fixed("loss", ())
    net.op("loss", "add", [main_loss, aux_loss], [loss])
    return net.finish(loss)


def inception_v3():
    return v3("inception-v3",
              "Inception v3 on 299x299 images, without its auxiliary classifier: 23,834,568 parameters.", aux=False)


def inception_v3_aux():
    return v3("inception-v3-aux", """
Inception v3 on 299x299 images with the auxiliary classifier of training: 27,161,264 parameters.
Published code weights the auxiliary loss by 0.4; here both losses count fully, which costs the same.""", aux=True)


# --- v4 ---------------------------------------------------------------------------------------------------------------


def v4_stem(net, x):
    x = unit(net, "stem1", x, 32, 3, 2)
    x = unit(net, "stem2", x, 32, 3, same=False)
    x = unit(net, "stem3", x, 64, 3)
    x = net.concat("stem4_concat", shrunk(net, "stem4_a", x), branch(net, "stem4_b", x, (96, 3, 2)))
    x = net.concat("stem5_concat",
                   unit(net, "stem5_a_last", branch(net, "stem5_a", x, (64, 1)), 96, 3, same=False),
                   unit(net, "stem5_b_last",
                        branch(net, "stem5_b", x, (64, 1), *rows_and_columns(64, 64, first="row")), 96, 3, same=False))
    return net.concat("stem6_concat", branch(net, "stem6_a", x, (192, 3, 2)), shrunk(net, "stem6_b", x))


def v4_35(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (96, 1)),
                      branch(net, f"{name}_b", x, (64, 1), (96, 3)),
                      branch(net, f"{name}_c", x, (64, 1), (96, 3), (96, 3)),
                      pooled(net, f"{name}_d", x, 96))


def v4_to_17(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (384, 3, 2)),
                      branch(net, f"{name}_b", x, (192, 1), (224, 3), (256, 3, 2)),
                      shrunk(net, f"{name}_c", x))


def v4_17(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (384, 1)),
                      branch(net, f"{name}_b", x, (192, 1), *rows_and_columns(224, 256, first="row")),
                      branch(net, f"{name}_c", x, (192, 1), *rows_and_columns(192, 224, 224, 256, first="column")),
                      pooled(net, f"{name}_d", x, 128))


def v4_to_8(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (192, 1), (192, 3, 2)),
                      branch(net, f"{name}_b", x, (256, 1), *rows_and_columns(256, 320, first="row"), (320, 3, 2)),
                      shrunk(net, f"{name}_c", x))


def v4_8(net, name, x):
    return net.concat(f"{name}_concat",
                      branch(net, f"{name}_a", x, (256, 1)),
                      forked(net, f"{name}_b", branch(net, f"{name}_b", x, (384, 1)), 256),
                      forked(net, f"{name}_c", branch(net, f"{name}_c", x, (384, 1), (448, [3, 1]), (512, [1, 3])),
                             256),
                      pooled(net, f"{name}_d", x, 256))


def inception_v4():
    net = Net("inception-v4", SZEGEDY_V4, 16,
              "Inception v4 on 299x299 images, without an auxiliary classifier: 42,679,816 parameters.", device="a6000")
    images, labels = net.input("images", 3, 299, 299), net.input("labels", dtype="i64")
    x = v4_stem(net, images)
    for i in range(1, 5):
        x = v4_35(net, f"mixed5_{i}", x)
    x = v4_to_17(net, "mixed6_1", x)
    for i in range(2, 9):
        x = v4_17(net, f"mixed6_{i}", x)
    x = v4_to_8(net, "mixed7_1", x)
    for i in range(2, 5):
        x = v4_8(net, f"mixed7_{i}", x)
    x = net.dropout("drop", net.pool("pool", x, 8, 8, type="avgpool2d"), 0.2)
    return net.loss(net.linear("fc", net.flatten("flat", x), 1000), labels)
