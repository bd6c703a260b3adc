"""Pix2PixHD, for generate.py: one training iteration of a generator and its discriminators, all three phases written
out, as no single loss leads to it.

Networks and losses are those of Wang et al., CVPR 2018 (3.2: generator, discriminators and feature matching, 3.3: edges
of instances, 4: VGG loss), as the authors' code has them for 512x1024 Cityscapes images. Ops that planc-graph(5) does
not list have types of their own, with the prefix `pix2pixhd.`."""

from collections import Counter, namedtuple

from layers import Net

HEIGHT, WIDTH, LABELS = 512, 1024, 35
GENERATOR_WIDTH, DOWNS, BLOCKS = 64, 4, 9
DISCRIMINATOR_WIDTHS, SCALES = (64, 128, 256, 512), 2
VGG19 = ((2, 64), (2, 128), (4, 256), (4, 512), (1, 512))  # up to relu5_1
VGG_WEIGHTS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0)
FEATURE_WEIGHT = 10.0
SLOPE = 0.2  # of leaky ReLU
ADAM = {"lr": 0.0002, "beta1": 0.5, "beta2": 0.999, "epsilon": 1e-08}
FLOAT = 4

FOREIGN = {"edges", "instance_norm", "l1", "leaky_relu", "lsgan", "one_hot", "reflect_pad", "sum", "tanh"}

Op = namedtuple("Op", "name type inputs outputs attrs")


def full_type(type):
    """The type as the graph has it: one that planc-graph(5) does not list has a prefix."""
    return f"pix2pixhd.{type}" if type.removesuffix("_grad") in FOREIGN else type


class Recorded(Net):
    """A net that keeps its ops for the way back. A layer may stand in several passes, which share its parameters: what
    comes before the last `/` of its name is the pass."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.record = []
        self.params = []

    def op(self, name, type, inputs, outputs, **fields):
        super().op(name, full_type(type), inputs, outputs, **fields)
        self.record.append(Op(name, type, inputs, outputs, fields.get("attrs", {})))

    def filters(self, name, shape, biases):
        layer = name.rpartition("/")[2]
        names = [f"{layer}.w", f"{layer}.b"]
        if names[0] not in self.params:
            self.params += super().filters(layer, shape, biases)
        return names

    # --- Layers. planc-graph(5) lists no types for those after the first.

    def deconv(self, name, x, channels):
        """The transposed 3x3 convolution that doubles the size: the gradient of one of stride 2 by its input."""
        c, h, w = self.shapes[x]
        weights, bias = self.filters(name, (c, channels, 3, 3), channels)
        y = self.batched(f"{name}.y", (channels, 2 * h, 2 * w))
        self.op(name, "conv2d_dgrad", [weights, x], [y], attrs={"stride": [2, 2], "pad": [1, 1]})
        return self.unary(f"{name}.bias", "bias", y, self.shapes[y], [bias], in_place=True)

    def reflect(self, name, x, pad):
        c, h, w = self.shapes[x]
        return self.unary(name, "reflect_pad", x, (c, h + 2 * pad, w + 2 * pad), pad=pad)

    def instance_norm(self, name, x):
        """Every map to mean 0 and deviation 1, without scale and shift. Reads x twice."""
        c, h, w = self.shapes[x]
        y = self.batched(f"{name}.y", self.shapes[x])
        saved = [self.batched(f"{name}.{s}", (c,)) for s in ("mean", "invstd")]
        self.op(name, "instance_norm", [x], [y, *saved], traffic=(0, FLOAT * (3 * c * h * w + 2 * c)))
        return y

    def leaky_relu(self, name, x):
        return self.unary(name, "leaky_relu", x, self.shapes[x], in_place=True, slope=SLOPE)

    def term(self, name, type, inputs, **attrs):
        """One term of a loss: a mean over the batch."""
        loss = self.fixed(name, ())
        self.op(name, type, inputs, [loss], attrs=attrs, flags=["batch-mean"])
        return loss

    def total(self, name, terms):
        self.op(name, "sum", terms, [self.fixed(name, ())])
        return name


# --- Networks ---------------------------------------------------------------------------------------------------------


def generator(net, x):
    def normed(name, x):
        return net.relu(f"{name}_relu", net.instance_norm(f"{name}_norm", x))

    width = GENERATOR_WIDTH
    x = normed("G_first", net.conv("G_first", net.reflect("G_first_pad", x, 3), width, 7))
    for i in range(1, DOWNS + 1):
        width *= 2
        x = normed(f"G_down{i}", net.conv(f"G_down{i}", x, width, 3, 2, pad=1))
    for i in range(1, BLOCKS + 1):
        y = normed(f"G_res{i}_1", net.conv(f"G_res{i}_1", net.reflect(f"G_res{i}_1_pad", x, 1), width, 3))
        y = net.conv(f"G_res{i}_2", net.reflect(f"G_res{i}_2_pad", y, 1), width, 3)
        x = net.add(f"G_res{i}_add", net.instance_norm(f"G_res{i}_2_norm", y), x)
    for i in range(1, DOWNS + 1):
        width //= 2
        x = normed(f"G_up{i}", net.deconv(f"G_up{i}", x, width))
    x = net.conv("G_last", net.reflect("G_last_pad", x, 3), 3, 7)
    return net.unary("G_tanh", "tanh", x, net.shapes[x])


def discriminators(net, run, maps, image):
    """Of every scale, the results of the layers: features and, last, a score for every patch."""
    results = []
    x = net.concat(f"{run}/D_input", maps, image)
    for scale in range(1, SCALES + 1):
        prefix = f"{run}/D{scale}"
        if scale > 1:
            x = net.pool(f"{prefix}_down", x, 3, 2, pad=1, type="avgpool2d")
        y, layers = x, []
        for i, width in enumerate(DISCRIMINATOR_WIDTHS, 1):
            y = net.conv(f"{prefix}_{i}", y, width, 4, 1 if i == len(DISCRIMINATOR_WIDTHS) else 2, pad=2)
            y = net.leaky_relu(f"{prefix}_{i}_relu", net.instance_norm(f"{prefix}_{i}_norm", y) if i > 1 else y)
            layers.append(y)
        results.append([*layers, net.conv(f"{prefix}_score", y, 1, 4, pad=2)])
    return results


def vgg_features(net, run, x):
    """What the first ReLU of every stage gives."""
    features = []
    for stage, (count, channels) in enumerate(VGG19, 1):
        if stage > 1:
            x = net.pool(f"{run}/V_pool{stage - 1}", x, 2, 2)
        for i in range(1, count + 1):
            x = net.conv(f"{run}/V{stage}_{i}", x, channels, 3, pad=1)
            x = net.relu(f"{run}/V{stage}_{i}_relu", x)
            if i == 1:
                features.append(x)
    return features


# --- The way back -----------------------------------------------------------------------------------------------------


class Backward:
    """Gradients of the sum of some loss terms with respect to the parameters whose names start with `trained`, as
    backward ops. Ops are taken in reverse; only inputs that depend on those parameters get a gradient."""

    def __init__(self, net, terms, trained):
        self.net, self.terms = net, set(terms)
        self.trained = [p for p in net.params if p.startswith(trained)]
        self.gradients = {}  # forward tensor -> the tensor with its gradient
        self.users = Counter()  # of the bytes of a gradient: how many forward tensors still need them
        self.roots = {}  # gradient that lies over another -> the one whose bytes they are
        self.active = set()
        for op in net.record:
            if any(self.wants(x) for x in op.inputs):
                self.active.update(op.outputs)

    def wants(self, tensor):
        return tensor in self.active or tensor in self.trained

    def derive(self):
        """The gradient of every trained parameter, in the order of the parameters."""
        for op in reversed(self.net.record):
            if op.outputs[0] in self.terms:
                for x in op.inputs:
                    self.make(f"{op.name}.grad", f"{op.type}_grad", op.inputs, x, attrs=op.attrs, flags=["batch-mean"])
            elif op.outputs[0] in self.gradients:
                dy = self.gradients.pop(op.outputs[0])
                self.users[self.root(dy)] -= 1
                getattr(self, op.type)(op, dy)
        return {p: self.gradients[p] for p in self.trained}

    # --- The gradient of one tensor

    def root(self, gradient):
        return self.roots.get(gradient, gradient)

    def make(self, name, type, reads, x, over=None, **fields):
        """Adds the op that makes a gradient of x, over gradient `over`, which nobody else may need."""
        if not self.wants(x):
            return
        assert over is None or not self.users[self.root(over)]
        target = self.tensor(x, over and self.root(over))
        self.net.file.op(name, full_type(type), reads, [target], phase="backward", **fields)
        self.arrive(name, x, target)

    def tensor(self, x, over):
        tensors, param = self.net.file.tensors, x in self.trained
        target = first = f"{x}.grad" if param else f"d.{x}"
        while target in tensors:
            target = f"{first}.{int(target[len(first) + 1:] or 1) + 1}"
        if param:  # the second and later ones are added to the first
            tensors[target] = tensors[x].replace("param", "grad" if target == first else "temp", 1)
            return target
        if over:
            self.roots[target] = over
        return self.net.batched(target, self.net.shapes[x], of=over)

    def arrive(self, name, x, gradient):
        """`gradient` becomes the gradient of x or is added to it. An addition shares its gradient among its inputs; the
        one that lies deeper has let go of it by the time the other one gets more."""
        if not self.wants(x):
            return
        before = self.gradients.setdefault(x, gradient)
        if before == gradient:
            self.users[self.root(gradient)] += 1
            return
        assert self.users[self.root(before)] == 1
        self.net.file.op(f"{name}.sum", "add", [before, gradient], [before], phase="backward")

    # --- By type: gradients of the inputs from dy, that of the first output

    def conv2d(self, op, dy):
        x, w, b = op.inputs
        self.make(f"{op.name}.bgrad", "conv2d_bgrad", [dy], b)
        self.make(f"{op.name}.wgrad", "conv2d_wgrad", [x, dy], w, attrs=op.attrs)
        self.make(f"{op.name}.dgrad", "conv2d_dgrad", [w, dy], x, attrs=op.attrs)

    def conv2d_dgrad(self, op, dy):
        w, x = op.inputs
        self.make(f"{op.name}.wgrad", "conv2d_wgrad", [dy, x], w, attrs=op.attrs)
        self.make(f"{op.name}.xgrad", "conv2d", [dy, w], x, attrs=op.attrs)

    def bias(self, op, dy):
        x, b = op.inputs
        self.make(f"{op.name}.bgrad", "bias_grad", [dy], b)
        self.arrive(op.name, x, dy)

    def add(self, op, dy):
        for x in op.inputs:
            self.arrive(op.name, x, dy)

    def concat(self, op, dy):
        offset = 0
        for i, x in enumerate(op.inputs, 1):
            self.make(f"{op.name}.grad.{i}", "concat_grad", [dy], x, attrs={**op.attrs, "offset": offset})
            offset += self.net.shapes[x][0]

    def instance_norm(self, op, dy):
        """Reads x and dy twice."""
        (x,), (_, mean, invstd) = op.inputs, op.outputs
        c, h, w = self.net.shapes[x]
        self.make(f"{op.name}.grad", "instance_norm_grad", [x, mean, invstd, dy], x,
                  traffic=(0, FLOAT * (5 * c * h * w + 2 * c)))

    def from_result(self, op, dy):
        self.make(f"{op.name}.grad", f"{op.type}_grad", [op.outputs[0], dy], op.inputs[0], over=dy, attrs=op.attrs)

    def from_both(self, op, dy):
        self.make(f"{op.name}.grad", f"{op.type}_grad", [*op.inputs, *op.outputs, dy], op.inputs[0], attrs=op.attrs)

    def linear(self, op, dy):
        self.make(f"{op.name}.grad", f"{op.type}_grad", [dy], op.inputs[0], attrs=op.attrs)

    relu = leaky_relu = tanh = from_result
    maxpool2d = from_both
    avgpool2d = reflect_pad = linear


# --- The iteration ----------------------------------------------------------------------------------------------------


def adam(net, gradients):
    for param, gradient in gradients.items():
        spec = net.file.tensors[param].replace("param", "state", 1)
        moments = [f"{param}.m", f"{param}.v"]
        net.file.tensors.update(dict.fromkeys(moments, spec))
        net.file.op(f"{param}.adam", "adam", [param, gradient, *moments], [param, *moments], phase="optimizer",
                    attrs=ADAM)


def conditions(net):
    """What the networks see: an image of 0 and 1 for every label, and one of the edges between instances."""
    labels, instances = net.input("labels", 1, HEIGHT, WIDTH), net.input("instances", 1, HEIGHT, WIDTH)
    one_hot = net.unary("one_hot", "one_hot", labels, (LABELS, HEIGHT, WIDTH))
    edges = net.unary("edges", "edges", instances, (1, HEIGHT, WIDTH))
    return net.concat("maps", one_hot, edges)


def pix2pixhd():
    net = Recorded("pix2pixhd",
                   "Wang et al., High-resolution image synthesis and semantic manipulation with conditional GANs, "
                   "CVPR 2018", 4, """
Pix2PixHD on 512x1024 Cityscapes images with 35 labels: one training iteration of the global generator (182,546,755
parameters) and of two discriminators (5,603,202) with the losses of the authors' code at its defaults: least squares,
feature matching and VGG-19 (its 12,944,960 parameters up to relu5_1 stay as they are). No feature encoder, no pool of
earlier images.
An iteration makes an image from labels and instance edges; the discriminators see it cut off from the generator, then
the real image, then the image again for the generator's loss; then come both losses' backward passes and both Adam
steps. Gradients that the authors' code makes and throws away, of the discriminators from the generator's loss, are left
out, and its Adam step of the generator comes before the discriminators' backward pass, which does not see it.""",
                   device="v100-16g-nvlink", optimizer="adam")
    maps, real = conditions(net), net.input("image", 3, HEIGHT, WIDTH)
    fake = generator(net, maps)
    cut, seen, judged = (discriminators(net, run, maps, image)
                         for run, image in (("cut", fake), ("real", real), ("fake", fake)))
    terms_d = [net.term(f"D_fake{i}", "lsgan", [scale[-1]], target=0.0) for i, scale in enumerate(cut, 1)]
    terms_d += [net.term(f"D_real{i}", "lsgan", [scale[-1]], target=1.0) for i, scale in enumerate(seen, 1)]
    terms_g = [net.term(f"G_gan{i}", "lsgan", [scale[-1]], target=1.0) for i, scale in enumerate(judged, 1)]
    for i, (ours, theirs) in enumerate(zip(judged, seen), 1):
        for k, pair in enumerate(zip(ours[:-1], theirs[:-1]), 1):
            terms_g.append(net.term(f"G_feature{i}_{k}", "l1", list(pair), weight=FEATURE_WEIGHT / SCALES))
    features = zip(vgg_features(net, "fake", fake), vgg_features(net, "real", real), VGG_WEIGHTS)
    for k, (ours, theirs, weight) in enumerate(features, 1):
        terms_g.append(net.term(f"G_vgg{k}", "l1", [ours, theirs], weight=FEATURE_WEIGHT * weight))
    loss_g, loss_d = net.total("G_loss", terms_g), net.total("D_loss", terms_d)
    gradients = {**Backward(net, terms_g, "G_").derive(), **Backward(net, terms_d, "D").derive()}
    adam(net, gradients)
    net.file.header["outputs"] = f"[{loss_d}]"
    return net.finish(loss_g)
