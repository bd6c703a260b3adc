#!/usr/bin/env python3
"""Writes the model graphs of this folder: forward graphs that end in a softmax cross-entropy loss, from which
`planc train` derives backward and optimizer ops, and one iteration of Pix2PixHD, whose two losses it could not derive.

    generate.py [MODEL...] [-d DIR] [--nhwc]
                                         the named models, DIR/MODEL.yaml; DIR: this folder. None named: all but gnmt,
                                         rhn and tacotron2, whose recurrences make thousands of ops; here they stand
                                         at a size that a host trains
    generate.py --large N_OPS -o FILE    a residual training graph of exactly N_OPS ops, for measuring planc itself

The models are those of the papers that planc follows, each at a batch size of theirs, ResNet-50, and two small networks
for 8x8 digits that train in seconds on a host:
- moDNN (Chen et al., DATE 2018, section V): VGG-16, VGG-19, VGG-101, ResNet-34, FCN
- TENSILE (section V): DenseNet, Inception v3 and v4, beside VGG-16 and ResNet-50
- out-of-core training with adaptive windows (ICLR 2021 submission, section 5.2): DenseNet, DeepLabv3+, Pix2PixHD
- Zico (USENIX ATC 2021) and Waterwave (2023), which share a GPU: NASNet-A, ResNet-110 and -152, BERT-base, GNMT, RHN, Tacotron 2
They follow the conventions of the frameworks of that time: ReLU works in place where nobody else reads its input, batch
norm does not; convolutions carry a bias unless batch norms stand between them; dropout as published. Nothing is counted
that cuDNN does not keep: no pooling indices, no dropout masks.

Exit codes: 0, 2 usage, 5 a file that cannot be written.
"""

import argparse
import os
import random
import sys

from deeplab import deeplabv3plus
from graphfile import GraphFile
from inception import inception_v3, inception_v3_aux, inception_v4
from layers import Net
from nasnet import nasnet_large, nasnet_mobile
from pix2pixhd import pix2pixhd
from recurrent import gnmt, gnmt_small, rhn, rhn_small, tacotron2, tacotron2_small

HERE = os.path.dirname(os.path.abspath(__file__))


# --- The models -------------------------------------------------------------------------------------------------------


def lenet_digits():
    net = Net("lenet-digits",
              "after LeCun et al., Gradient-based learning applied to document recognition, Proc. IEEE, 1998", 64, """
LeNet for 8x8 images of digits: 9,514 parameters. Padded convolutions make the activations of a batch of 64 several
times as large as parameters and gradients together, so a memory budget bites as it does on large networks.""")
    images, labels = net.input("images", 1, 8, 8), net.input("labels", dtype="i64")
    x = net.relu("relu1", net.conv("conv1", images, 16, 5, pad=2))
    x = net.pool("pool1", x, 2, 2)
    x = net.relu("relu2", net.conv("conv2", x, 32, 3, pad=1))
    x = net.pool("pool2", x, 2, 2)
    x = net.relu("relu3", net.linear("fc1", net.flatten("flat", x), 32))
    net.file.header["outputs"] = "[probs]"
    return net.loss(net.linear("fc2", x, 10), labels)


def tiny_transformer():
    net = Net("tiny-transformer",
              "after Vaswani et al., Attention is all you need, arXiv:1706.03762, normalised before each part, without "
              "a mask", 64, """
A transformer for 8x8 images of digits as sequences of 8 rows: every pixel's brightness, 0 to 16, has an embedding, a
row's eight of them make a token. Two layers, four heads, 19,954 parameters.""")
    ids, labels = net.input("pixels", 64, dtype="i64"), net.input("labels", dtype="i64")
    x = net.view("rows", net.embedding("brightness", ids, 17, 8), 8, 64)
    x = net.position("position", net.linear("token", x, 32))
    for layer in ("layer1", "layer2"):
        x = net.add(f"{layer}.add1", net.attention(f"{layer}.attention", net.layernorm(f"{layer}.norm1", x), 4), x)
        y = net.linear(f"{layer}.fc1", net.layernorm(f"{layer}.norm2", x), 64)
        y = net.unary(f"{layer}.gelu", "gelu", y, net.shapes[y])
        x = net.add(f"{layer}.add2", net.linear(f"{layer}.fc2", y, 32), x)
    x = net.layernorm("norm", x)
    x = net.unary("mean", "mean", x, net.shapes[x][1:])
    net.file.header["outputs"] = "[probs]"
    net.file.header["optimizer"] = "adam"
    return net.loss(net.linear("classes", x, 10), labels)


def vgg_stages(net, x, convolutions):
    """VGG's convolutional part: per stage so many 3x3 convolutions, then a pooling. Gives every stage's result."""
    results = []
    for stage, (count, channels) in enumerate(zip(convolutions, (64, 128, 256, 512, 512)), 1):
        for i in range(1, count + 1):
            x = net.relu(f"relu{stage}_{i}", net.conv(f"conv{stage}_{i}", x, channels, 3, pad=1))
        x = net.pool(f"pool{stage}", x, 2, 2)
        results.append(x)
    return results


def vgg(name, convolutions, batch, origin, heading):
    net = Net(name, origin, batch, heading)
    images, labels = net.input("images", 3, 224, 224), net.input("labels", dtype="i64")
    x = net.flatten("flat", vgg_stages(net, images, convolutions)[-1])
    for layer in (6, 7):
        x = net.relu(f"relu{layer}", net.linear(f"fc{layer}", x, 4096))
        x = net.dropout(f"drop{layer}", x, 0.5)
    return net.loss(net.linear("fc8", x, 1000), labels)


SIMONYAN = "Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, arXiv:1409.1556"


def vgg16():
    return vgg("vgg16", (2, 2, 3, 3, 3), 256, SIMONYAN + ", configuration D",
               "VGG-16 on 224x224 images: 13 convolutions and 3 fully connected layers, 138,357,544 parameters.")


def vgg19():
    return vgg("vgg19", (2, 2, 4, 4, 4), 256, SIMONYAN + ", configuration E",
               "VGG-19 on 224x224 images: 16 convolutions and 3 fully connected layers, 143,667,240 parameters.")


def vgg101():
    return vgg("vgg101", (8, 8, 74, 4, 4), 128,
               "VGG-19 (arXiv:1409.1556) with 8, 8, 74, 4 and 4 convolutions in its stages, after Chen et al., moDNN, "
               "DATE 2018, section V", """
VGG-101: VGG-19 with more convolution layers, 8 + 8 + 74 + 4 + 4 = 98 in its five stages, and 3 fully connected ones.
The moDNN paper (section V) uses such a network and does not say where the layers went. It says that at batch 128 all
data take nearly 100 GB and that the lower bound on memory, parameters and their gradients plus the largest op at
sub-batch 1, is 1.4 GB. The fully connected layers alone take 0.99 GB of that bound and a layer of 512 channels 19 MB,
so the last two stages stay at VGG-19's 4. A layer of the first stage takes 3.3 GB of the 100, so few of the 82 layers
added fit there and most have to go to the third. 8, 8, 74, 4, 4 gives 105.5e9 bytes (98.3 GiB) and a bound of
1.52e9 bytes (1.42 GiB).""")


def fcn():
    net = Net("fcn", "Long et al., Fully convolutional networks for semantic segmentation, CVPR 2015, FCN-8s on VGG-16",
              128, """
FCN-8s on VGG-16, 21 classes (PASCAL VOC), 224x224 images: 134,362,751 parameters.
Where the published network pads the image by 100 pixels and crops the scores, conv6 is padded by 3 here, so that every
score map has its own stage's size; its learned deconvolutions, which start as bilinear interpolation, are bilinear
up-sampling.""")
    images, labels = net.input("images", 3, 224, 224), net.input("labels", 224, 224, dtype="i64")
    _, _, pool3, pool4, x = vgg_stages(net, images, (2, 2, 3, 3, 3))
    for layer, kernel in ((6, 7), (7, 1)):
        x = net.relu(f"relu{layer}", net.conv(f"conv{layer}", x, 4096, kernel, pad=kernel // 2))
        x = net.dropout(f"drop{layer}", x, 0.5)
    x = net.upsample("up_fr", net.conv("score_fr", x, 21, 1), 2)
    for stage, skip, scale in ((4, pool4, 2), (3, pool3, 8)):
        x = net.add(f"fuse_pool{stage}", x, net.conv(f"score_pool{stage}", skip, 21, 1))
        x = net.upsample(f"up_pool{stage}", x, scale)
    return net.loss(x, labels)


def resnet(name, blocks, bottleneck, heading, batch=256, device="k40m"):
    net = Net(name, "He et al., Deep residual learning for image recognition, CVPR 2016", batch, heading, device)

    def conv_bn(prefix, part, x, channels, kernel, stride=1):
        x = net.conv(f"{prefix}conv{part}", x, channels, kernel, stride, pad=kernel // 2, bias=False)
        return net.batchnorm(f"{prefix}bn{part}", x)

    def block(prefix, x, width, stride):
        if bottleneck:  # v1.5: the 3x3 convolution has the stride
            layers, out = ((width, 1, 1), (width, 3, stride), (4 * width, 1, 1)), 4 * width
        else:
            layers, out = ((width, 3, stride), (width, 3, 1)), width
        y = x
        for part, (channels, kernel, step) in enumerate(layers, 1):
            y = conv_bn(prefix, part, y, channels, kernel, step)
            if part < len(layers):
                y = net.relu(f"{prefix}relu{part}", y)
        if stride != 1 or net.shapes[x][0] != out:
            x = conv_bn(prefix + "down_", "", x, out, 1, stride)
        return net.relu(f"{prefix}relu{len(layers)}", net.add(f"{prefix}add", y, x))

    images, labels = net.input("images", 3, 224, 224), net.input("labels", dtype="i64")
    x = net.relu("relu1", conv_bn("", 1, images, 64, 7, 2))
    x = net.pool("pool1", x, 3, 2, pad=1)
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512)), 2):
        for i in range(1, count + 1):
            x = block(f"res{stage}_{i}_", x, width, 2 if stage > 2 and i == 1 else 1)
    x = net.flatten("flat", net.pool("pool5", x, 7, 7, type="avgpool2d"))
    return net.loss(net.linear("fc", x, 1000), labels)


def resnet110():
    net = Net("resnet110", "He et al., Deep residual learning for image recognition, CVPR 2016, section 4.2", 128, """
ResNet-110 for the 32x32 images of CIFAR: three stages of 18 blocks, 1,730,714 parameters, 2,752 of them in the two
projections of shortcuts (option B), where the paper pads with zeros.""", device="rtx2080ti")

    def conv_bn(name, x, channels, kernel, stride=1):
        x = net.conv(f"{name}_conv", x, channels, kernel, stride, pad=kernel // 2, bias=False)
        return net.batchnorm(f"{name}_bn", x)

    images, labels = net.input("images", 3, 32, 32), net.input("labels", dtype="i64")
    x = net.relu("relu", conv_bn("stem", images, 16, 3))
    for stage, width in enumerate((16, 32, 64), 1):
        for i in range(1, 19):
            name, stride = f"res{stage}_{i}", 2 if stage > 1 and i == 1 else 1
            y = net.relu(f"{name}_relu1", conv_bn(f"{name}_1", x, width, 3, stride))
            y = conv_bn(f"{name}_2", y, width, 3)
            if stride > 1:
                x = conv_bn(f"{name}_down", x, width, 1, stride)
            x = net.relu(f"{name}_relu2", net.add(f"{name}_add", y, x))
    x = net.flatten("flat", net.pool("pool", x, 8, 8, type="avgpool2d"))
    return net.loss(net.linear("fc", x, 10), labels)


def resnet152():
    return resnet("resnet152", (3, 8, 36, 3), True,
                  "ResNet-152 v1.5 (stride in the 3x3 convolutions) on 224x224 images: 60,192,808 parameters.", 160,
                  "v100-32g")


def bert_base(tokens=128):
    width, dropout = 768, 0.1
    net = Net("bert-base", "Devlin et al., BERT: Pre-training of deep bidirectional transformers for language "
              "understanding, arXiv:1810.04805, for questions about texts", 32, f"""
BERT-base, uncased, on sequences of {tokens} tokens, with the head that finds where an answer begins and ends in a text
(SQuAD): 12 layers, 12 heads, 108,893,186 parameters; the pooler of the first token has no part in that.""",
              device="v100-32g")

    def normed(name, x, y):
        return net.layernorm(f"{name}.norm", net.add(f"{name}.add", net.dropout(f"{name}.add.drop", y, dropout), x))

    words, types, places = (net.input(name, tokens, dtype="i64") for name in ("words", "types", "places"))
    x = net.add("embeddings.add1", net.embedding("embeddings.words", words, 30522, width),
                net.embedding("embeddings.types", types, 2, width))
    x = net.add("embeddings.add2", x, net.embedding("embeddings.places", places, 512, width))
    x = net.dropout("embeddings.drop", net.layernorm("embeddings.norm", x), dropout)
    for layer in (f"layer{k}" for k in range(1, 13)):
        x = normed(f"{layer}.attention", x, net.attention(f"{layer}.attention", x, 12, dropout))
        y = net.linear(f"{layer}.up", x, 4 * width)
        y = net.unary(f"{layer}.gelu", "gelu", y, net.shapes[y])
        x = normed(f"{layer}.down", x, net.linear(f"{layer}.down", y, width))
    net.file.header["optimizer"] = "adam"
    return net.loss(net.linear("answer", x, 2), net.input("answers", 2, dtype="i64"))


def resnet34():
    return resnet("resnet34", (3, 4, 6, 3), False, "ResNet-34 on 224x224 images: 21,797,672 parameters.")


def resnet50():
    return resnet("resnet50", (3, 4, 6, 3), True,
                  "ResNet-50 v1.5 (stride in the 3x3 convolutions) on 224x224 images: 25,557,032 parameters.")


def densenet121():
    net = Net("densenet121", "Huang et al., Densely connected convolutional networks, CVPR 2017", 16, """
DenseNet-121 on 224x224 images, growth 32: 7,978,856 parameters. Every layer's result is concatenated to a copy of all
that came before it in its block, as frameworks do.""", device="a6000")

    def layer(name, x, channels, kernel):
        """Batch norm, ReLU, convolution."""
        x = net.relu(f"{name}_relu", net.batchnorm(f"{name}_bn", x))
        return net.conv(f"{name}_conv", x, channels, kernel, pad=kernel // 2, bias=False)

    images, labels = net.input("images", 3, 224, 224), net.input("labels", dtype="i64")
    x = net.conv("conv1", images, 64, 7, 2, pad=3, bias=False)
    x = net.pool("pool1", net.relu("relu1", net.batchnorm("bn1", x)), 3, 2, pad=1)
    for block, count in enumerate((6, 12, 24, 16), 1):
        for i in range(1, count + 1):
            y = layer(f"dense{block}_{i}_b", layer(f"dense{block}_{i}_a", x, 4 * 32, 1), 32, 3)
            x = net.concat(f"dense{block}_{i}_concat", x, y)
        if block < 4:
            x = layer(f"transition{block}", x, net.shapes[x][0] // 2, 1)
            x = net.pool(f"transition{block}_pool", x, 2, 2, type="avgpool2d")
    x = net.relu("relu5", net.batchnorm("bn5", x))
    x = net.flatten("flat", net.pool("pool5", x, 7, 7, type="avgpool2d"))
    return net.loss(net.linear("fc", x, 1000), labels)


MODELS = {"lenet-digits": lenet_digits, "tiny-transformer": tiny_transformer, "vgg16": vgg16, "vgg19": vgg19,
          "vgg101": vgg101, "resnet34": resnet34, "resnet50": resnet50, "fcn": fcn,
          "densenet121": densenet121, "inception-v3": inception_v3, "inception-v3-aux": inception_v3_aux,
          "inception-v4": inception_v4, "deeplabv3plus": deeplabv3plus, "pix2pixhd": pix2pixhd,
          "resnet110": resnet110, "resnet152": resnet152, "nasnet-a-mobile": nasnet_mobile,
          "nasnet-a-large": nasnet_large, "bert-base": bert_base, "gnmt-small": gnmt_small, "rhn-small": rhn_small,
          "tacotron2-small": tacotron2_small}
# Unrolled to thousands of ops: megabytes, which are written when they are wanted.
UNROLLED = {"gnmt": gnmt, "rhn": rhn, "tacotron2": tacotron2}
NOT_IMAGES = ("tiny-transformer", "bert-base", "gnmt-small", "rhn-small", "tacotron2-small", *UNROLLED)


# --- A large training graph -------------------------------------------------------------------------------------------

LARGE_SEED = 20180319
LARGE_BATCH, LARGE_CHANNELS, LARGE_PIXELS = 64, 32, 8
# Per block: 4 forward, 6 backward and 2 optimizer ops. The first one has 2 fewer, as nobody needs the input's gradient,
# and the loss adds 2.
LARGE_BLOCK_OPS = 12


def large(n_ops):
    """A chain of residual blocks x + conv1x1(relu(conv3x3(x))) with all three phases written out, exactly `n_ops` ops.

    The width inside the blocks varies, so no two neighbours have equal sizes. Every block keeps its input and its inner
    activation for the backward pass; parameters are a small part, so the liveness peak, at the turn from forward to
    backward, is made of activations and a budget of 60 % of it has to move about as many bytes as the arithmetic can
    hide. What does not fill a block is spent on ops that measure a block's output, as training scripts do."""
    n_blocks, n_probes = divmod(n_ops, LARGE_BLOCK_OPS)
    rng = random.Random(LARGE_SEED)
    widths = [8 * rng.randint(2, 16) for _ in range(n_blocks)]
    graph = GraphFile(f"A generated residual training graph of {n_ops} ops: generate.py --large {n_ops}.",
                      name=f"large-{n_ops}", layout="NCHW", batch=LARGE_BATCH, device="k40m",
                      origin=f'"generate.py --large {n_ops}, seed {LARGE_SEED}"', loss="loss")

    def maps(name, channels, kind="activation"):
        return graph.tensor(name, "f32", [(0, 1), (channels, 0), (LARGE_PIXELS, 0), (LARGE_PIXELS, 0)], kind)

    def weights(name, k, c, size, kind):
        return graph.tensor(name, "f32", [(k, 0), (c, 0), (size, 0), (size, 0)], kind)

    maps("x0", LARGE_CHANNELS, "input")
    graph.tensor("labels", "i64", [(0, 1), (LARGE_PIXELS, 0), (LARGE_PIXELS, 0)], "input")
    for i, width in enumerate(widths):
        x, h, a, b, y = f"x{i}", f"h{i}", f"a{i}.w", f"b{i}.w", f"x{i + 1}"
        weights(a, width, LARGE_CHANNELS, 3, "param")
        weights(b, LARGE_CHANNELS, width, 1, "param")
        graph.op(f"a{i}", "conv2d", [x, a], [maps(h, width)], attrs={"pad": [1, 1]})
        graph.op(f"relu{i}", "relu", [h], [h])
        graph.op(f"b{i}", "conv2d", [h, b], [maps(y, LARGE_CHANNELS)])
        graph.op(f"add{i}", "add", [y, x], [y])
    for i in range(n_probes):
        graph.op(f"probe{i}", "my.rms", [f"x{i % n_blocks + 1}"], [graph.tensor(f"rms{i}", "f32", [(0, 1)])])
    last = f"x{n_blocks}"
    maps("probs", LARGE_CHANNELS)
    graph.op("loss", "softmax_xent", [last, "labels"], [graph.tensor("loss", "f32", []), "probs"])

    graph.op("loss.d", "softmax_xent_grad", ["probs", "labels"], [maps(f"{last}.d", LARGE_CHANNELS)], phase="backward")
    for i, width in reversed(list(enumerate(widths))):
        x, h, a, b, dy = f"x{i}", f"h{i}", f"a{i}.w", f"b{i}.w", f"x{i + 1}.d"
        dh = maps(f"h{i}.d", width)
        da = weights(f"{a}.d", width, LARGE_CHANNELS, 3, "grad")
        db = weights(f"{b}.d", LARGE_CHANNELS, width, 1, "grad")
        graph.op(f"b{i}.dw", "conv2d_wgrad", [h, dy], [db], phase="backward")
        graph.op(f"b{i}.dx", "conv2d_dgrad", [b, dy], [dh], phase="backward")
        graph.op(f"relu{i}.d", "relu_grad", [h, dh], [dh], phase="backward")
        graph.op(f"a{i}.dw", "conv2d_wgrad", [x, dh], [da], phase="backward", attrs={"pad": [1, 1]})
        if i > 0:
            dx = maps(f"{x}.d", LARGE_CHANNELS)
            graph.op(f"a{i}.dx", "conv2d_dgrad", [a, dh], [dx], phase="backward", attrs={"pad": [1, 1]})
            graph.op(f"add{i}.d", "add", [dx, dy], [dx], phase="backward")
    for i in range(n_blocks):
        for w in (f"a{i}.w", f"b{i}.w"):
            graph.op(f"{w}.sgd", "sgd", [w, f"{w}.d"], [w], phase="optimizer")
    return graph


# --- Command line -----------------------------------------------------------------------------------------------------


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Write planc's model graphs.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"any of {', '.join([*MODELS, *UNROLLED])}; none: all "
                        f"but {', '.join(UNROLLED)}")
    parser.add_argument("--all", action="store_true", help="write every model")
    parser.add_argument("-d", metavar="DIR", default=HERE, help="folder to write to (default: this script's)")
    parser.add_argument("--nhwc", action="store_true", help="write them in layout NHWC; not to this folder")
    parser.add_argument("--large", metavar="N_OPS", type=int, help="write a training graph of N_OPS ops instead")
    parser.add_argument("-o", metavar="FILE", help="where --large writes")
    options = parser.parse_args(arguments)
    for model in options.models:
        if model not in {**MODELS, **UNROLLED}:
            parser.error(f"no model is called {model}; there are {', '.join([*MODELS, *UNROLLED])}")
        if options.nhwc and model in NOT_IMAGES:
            parser.error(f"--nhwc: {model} has tensors of four dimensions that are no images")
    if options.nhwc and (not options.models or os.path.realpath(options.d) == os.path.realpath(HERE)):
        parser.error("--nhwc takes models by name and another folder than the NCHW ones'")
    if (options.large is None) != (options.o is None):
        parser.error("--large and -o belong together")
    if options.large is not None and options.models + ["--all"] * options.all:
        parser.error("--large does not go with models")
    if options.large is not None and options.large < LARGE_BLOCK_OPS:
        parser.error(f"--large needs at least {LARGE_BLOCK_OPS} ops")
    try:
        if options.large is not None:
            large(options.large).write(options.o)
        else:
            for model in MODELS if options.all else options.models or MODELS:
                graph = {**MODELS, **UNROLLED}[model]()
                if options.nhwc:
                    graph.channels_last()
                graph.write(os.path.join(options.d, f"{model}.yaml"))
    except OSError as error:
        print(f"generate.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
