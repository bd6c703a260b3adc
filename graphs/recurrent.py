"""Models with recurrences, unrolled: every step of a cell is ops of its own, which carry the cell's name and the step in
`loop` and `step`. Batches are padded to one length; what a padded place would hide is computed."""

from layers import Net

SMALL = "\nSmall enough for a host to train: fewer steps and features, otherwise the same."


class RecurrentNet(Net):
    """Names of a step's ops and tensors end in `.STEP`."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.at = None  # (cell, step) while ops of one are made

    def op(self, name, type, inputs, outputs, **fields):
        super().op(name, type, inputs, outputs, **{"loop": self.at, **fields} if self.at else fields)

    def steps(self, cell, count):
        """The steps of a cell, as suffixes of names; ops made meanwhile belong to it."""
        for step in range(count):
            self.at = (cell, step)
            yield step, f".{step}"
        self.at = None

    # --- Element by element

    def sigmoid(self, name, x):
        return self.unary(name, "sigmoid", x, self.shapes[x], in_place=True)

    def tanh(self, name, x):
        return self.unary(name, "tanh", x, self.shapes[x], in_place=True)

    def mul(self, name, a, b):
        return self.unary(name, "mul", a, self.shapes[a], [b])

    def sum(self, name, a, b):
        """a + b, which leaves both as they are."""
        return self.unary(name, "add", a, self.shapes[a], [b])

    # --- Sequences

    def weights(self, name, features, inputs, bias=True):
        """A linear layer that several steps share: what it gives for a row, and its parameters."""
        params = [self.fixed(f"{name}.w", (features, inputs), "param")]
        return features, params + [self.fixed(f"{name}.b", (features,), "param")] if bias else params

    def product(self, name, x, layer):
        features, params = layer
        return self.unary(name, "linear", x, (*self.shapes[x][:-1], features), params)

    def parts(self, name, x, axis, *sizes):
        """x cut along one of its axes; axis 0 is the first one behind the batch."""
        shape = self.shapes[x]
        made = [self.batched(f"{name}.y{k}", (*shape[:axis], size, *shape[axis + 1:])) for k, size in enumerate(sizes)]
        self.op(name, "split", [x], made, attrs={"axis": axis + 1})
        return made

    def joined(self, name, parts, axis):
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[part][axis] for part in parts)
        return self.unary(name, "concat", parts[0], shape, parts[1:], axis=axis + 1)

    def of_steps(self, name, x):
        """(T, C) as T tensors (C)."""
        steps, width = self.shapes[x]
        return [self.view(f"{part}.row", part, width) for part in self.parts(name, x, 0, *[1] * steps)]

    def over_steps(self, name, rows):
        """T tensors (C) as one (T, C)."""
        return self.joined(name, [self.view(f"{row}.step", row, 1, *self.shapes[row]) for row in rows], 0)

    # --- Cells

    def lstm(self, name, width, inputs):
        """The layers of a cell, with two biases as cuDNN and PyTorch have them."""
        return self.weights(f"{name}.x", 4 * width, inputs), self.weights(f"{name}.h", 4 * width, width)

    def lstm_step(self, name, cell, at, x, state):
        """One step: gates i, f, g, o; what it gives and its state, (hidden, memory)."""
        hidden, memory = state
        width = self.shapes[hidden][0]
        gates = self.add(f"{name}.gates{at}", self.product(f"{name}.x{at}", x, cell[0]),
                         self.product(f"{name}.h{at}", hidden, cell[1]))
        i, f, g, o = self.parts(f"{name}.parts{at}", gates, 0, *[width] * 4)
        i, f, o = (self.sigmoid(f"{name}.{gate}{at}", z) for gate, z in zip("ifo", (i, f, o)))
        g = self.tanh(f"{name}.g{at}", g)
        memory = self.add(f"{name}.c{at}", self.mul(f"{name}.keep{at}", f, memory), self.mul(f"{name}.new{at}", i, g))
        y = self.mul(f"{name}.y{at}", o, self.unary(f"{name}.tanh{at}", "tanh", memory, (width,)))
        return y, (y, memory)

    def lstm_layer(self, name, rows, width, state, backwards=False):
        """A layer over all steps: its results in the order of `rows`."""
        cell = self.lstm(name, width, self.shapes[rows[0]][0])
        results = []
        for step, at in self.steps(name, len(rows)):
            y, state = self.lstm_step(name, cell, at, rows[len(rows) - 1 - step if backwards else step], state)
            results.append(y)
        return results[::-1] if backwards else results

    def zeros(self, name, *shape):
        """A state that is fed: zeros, or what the batch before left."""
        return self.input(name, *shape)

    def square_error(self, name, x, target):
        loss = self.fixed(name, ())
        self.op(name, "mse", [x, target], [loss])
        return loss


# --- Translation ------------------------------------------------------------------------------------------------------


def gnmt_of(name, heading, device, batch, steps, width, words):
    net = RecurrentNet(name, "Wu et al., Google's neural machine translation system, arXiv:1609.08144, as MLPerf Training "
                       "has it", batch, heading, device=device)
    source, target = (net.input(side, steps, dtype="i64") for side in ("source", "target"))
    labels, zeros = net.input("labels", steps, dtype="i64"), net.zeros("zeros", width)
    start, drop = (zeros, zeros), 0.2
    table = net.fixed("embedding.w", (words, width), "param")

    def embedded(side, ids):
        y = net.batched(f"{side}.embedding.y", (steps, width))
        net.op(f"{side}.embedding", "embedding", [ids, table], [y])
        return net.of_steps(f"{side}.words", net.dropout(f"{side}.drop", y, drop))

    def deeper(layer, rows, extra=None, residual=True):
        """A layer over the rows with dropout in front; `extra`, by row, is read beside them."""
        cell = net.lstm(layer, width, sum(net.shapes[row][0] for row in [rows[0], *(extra or [])[:1]]))
        state, results = start, []
        for step, at in net.steps(layer, steps):
            x = net.dropout(f"{layer}.drop{at}", rows[step], drop)
            if extra:
                x = net.joined(f"{layer}.in{at}", [x, extra[step]], 0)
            y, state = net.lstm_step(layer, cell, at, x, state)
            results.append(net.sum(f"{layer}.add{at}", y, rows[step]) if residual else y)
        return results

    words_in = embedded("encoder", source)
    ahead = net.lstm_layer("encoder1.ahead", words_in, width, start)
    back = net.lstm_layer("encoder1.back", words_in, width, start, backwards=True)
    rows = [net.joined(f"encoder1.both.{k}", [a, b], 0) for k, (a, b) in enumerate(zip(ahead, back))]
    rows = deeper("encoder2", rows, residual=False)
    for layer in ("encoder3", "encoder4"):
        rows = deeper(layer, rows)
    memory = net.over_steps("encoder.all", rows)

    # Bahdanau's attention, normalised but for its one factor; the layer below it reads what step before it found.
    keys = net.product("attention.keys", memory, net.weights("attention.k", width, width, bias=False))
    query, energy = net.weights("attention.q", width, width), net.weights("attention.v", 1, width, bias=False)
    words_out = embedded("decoder", target)
    cell = net.lstm("decoder1", width, width)
    rows, contexts, state = [], [], start
    for step, at in net.steps("decoder1", steps):
        y, state = net.lstm_step("decoder1", cell, at, words_out[step], state)
        asked = net.unary(f"attention.asked{at}", "expand", net.product(f"attention.query{at}", y, query), (steps, width))
        fits = net.tanh(f"attention.tanh{at}", net.add(f"attention.sum{at}", asked, keys))
        scores = net.view(f"attention.row{at}", net.product(f"attention.score{at}", fits, energy), 1, steps)
        shares = net.unary(f"attention.softmax{at}", "softmax", scores, (1, steps), in_place=True)
        mixed = net.unary(f"attention.mix{at}", "matmul", shares, (1, width), [memory])
        contexts.append(net.view(f"attention.context{at}", mixed, width))
        rows.append(y)
    rows = deeper("decoder2", rows, contexts, residual=False)
    for layer in ("decoder3", "decoder4"):
        rows = deeper(layer, rows, contexts)
    logits = net.linear("classifier", net.over_steps("decoder.all", rows), words)
    by_word = net.unary("words", "transpose", logits, (words, steps), axis=1)
    return net.loss(by_word, labels)


def gnmt():
    return gnmt_of("gnmt", """
GNMT: 4 layers of LSTM cells to read (the first in both directions), 4 to write with attention, 1024 wide, 32,320 word
pieces, sentences of 50. 160,671,296 parameters: MLPerf's have one more, the factor of the normalised attention.""",
                   "rtx2080ti", 128, 50, 1024, 32320)


def gnmt_small():
    return gnmt_of("gnmt-small", "GNMT." + SMALL, "k40m", 64, 5, 16, 40)


# --- Language model -----------------------------------------------------------------------------------------------------


def rhn_of(name, heading, device, batch, steps, width, depth, words):
    net = RecurrentNet(name, "Zilly et al., Recurrent highway networks, ICML 2017, variational, without tied weights",
                       batch, heading, device=device)
    ids, labels, state = net.input("words", steps, dtype="i64"), net.input("labels", steps, dtype="i64"), \
        net.zeros("state", width)
    x = net.dropout("in.drop", net.embedding("embedding", ids, words, width), 0.75)
    rows = net.of_steps("in.words", x)
    inputs = net.weights("cell.x", 2 * width, width, bias=False)
    layers = [net.weights(f"cell.h{k}", 2 * width, width) for k in range(depth)]
    masks = [net.dropouts + 1 + k for k in range(depth)]  # of a sequence, not of a step
    net.dropouts += depth
    results = []
    for step, at in net.steps("cell", steps):
        for k, layer in enumerate(layers):
            kept = net.unary(f"cell.drop{k}{at}", "dropout", state, (width,), p=0.25, seed=masks[k])
            gates = net.product(f"cell.h{k}{at}", kept, layer)
            if k == 0:
                gates = net.add(f"cell.in{at}", gates, net.product(f"cell.x{at}", rows[step], inputs))
            h, t = net.parts(f"cell.parts{k}{at}", gates, 0, width, width)
            h, t = net.tanh(f"cell.tanh{k}{at}", h), net.sigmoid(f"cell.sigmoid{k}{at}", t)
            carry = net.unary(f"cell.carry{k}{at}", "affine", t, (width,), scale=-1.0, shift=1.0)
            state = net.add(f"cell.s{k}{at}", net.mul(f"cell.new{k}{at}", h, t), net.mul(f"cell.old{k}{at}", state, carry))
        results.append(state)
    y = net.dropout("out.drop", net.over_steps("out.all", results), 0.75)
    return net.loss(net.unary("words.by", "transpose", net.linear("classifier", y, words), (words, steps), axis=1), labels)


def rhn():
    return rhn_of("rhn", """
Recurrent highway network for the Penn treebank: depth 10, 830 wide, 10,000 words, 35 steps. 31,782,400 parameters,
published as 32 million.""", "rtx2080ti", 20, 35, 830, 10, 10000)


def rhn_small():
    return rhn_of("rhn-small", "Recurrent highway network." + SMALL, "k40m", 64, 4, 16, 3, 30)


# --- Speech -------------------------------------------------------------------------------------------------------------


def tacotron2_of(name, heading, device, batch, letters, frames, scale, symbols):
    """`scale` divides every number of features."""
    net = RecurrentNet(name, "Shen et al., Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions, "
                       "arXiv:1712.05884, as NVIDIA's DeepLearningExamples have it", batch, heading, device=device)
    bands, wide, cell_width, prenet = 80 // scale, 512 // scale, 1024 // scale, 256 // scale
    asked_width, places = 128 // scale, 32 // scale
    text, labels = net.input("text", letters, dtype="i64"), net.input("stops", frames, dtype="i64")
    given, target = net.input("frames", frames, bands), net.input("target", bands, frames)
    no_logit = net.zeros("no_stop", 1, frames)

    def column(name, x):
        """(T, C) as an image (C, T, 1)."""
        steps, width = net.shapes[x]
        return net.view(f"{name}.image", net.unary(name, "transpose", x, (width, steps), axis=1), width, steps, 1)

    def filtered(name, x, channels, activation=None):
        x = net.batchnorm(f"{name}.norm", net.conv(f"{name}.conv", x, channels, (5, 1), pad=(2, 0)))
        if activation:
            x = net.unary(f"{name}.{activation}", activation, x, net.shapes[x])
        return net.dropout(f"{name}.drop", x, 0.5)

    x = column("letters", net.embedding("embedding", text, symbols, wide))
    for k in (1, 2, 3):
        x = filtered(f"encoder{k}", x, wide, "relu")
    x = net.unary("encoder.rows", "transpose", net.view("encoder.columns", x, wide, letters), (letters, wide), axis=1)
    zeros = net.zeros("zeros", wide // 2)
    rows = net.of_steps("encoder.letters", x)
    ahead, back = (net.lstm_layer(f"encoder.{way}", rows, wide // 2, (zeros, zeros), way == "back")
                   for way in ("ahead", "back"))
    memory = net.over_steps("encoder.all", [net.joined(f"encoder.both.{k}", [a, b], 0)
                                            for k, (a, b) in enumerate(zip(ahead, back))])
    keys = net.product("attention.keys", memory, net.weights("attention.k", asked_width, wide, bias=False))

    x = given
    for k in (1, 2):
        x = net.product(f"prenet{k}", x, net.weights(f"prenet{k}", prenet, net.shapes[x][-1], bias=False))
        x = net.dropout(f"prenet{k}.drop", net.relu(f"prenet{k}.relu", x), 0.5)
    rows = net.of_steps("prenet.frames", x)

    listen, speak = net.lstm("listen", cell_width, prenet + wide), net.lstm("speak", cell_width, cell_width + wide)
    query = net.weights("attention.q", asked_width, cell_width, bias=False)
    energy = net.weights("attention.v", 1, asked_width, bias=False)
    filters = net.filters("attention.places", (places, 2, 31, 1), 0)
    located = net.weights("attention.l", asked_width, places, bias=False)
    out, stop = net.weights("out", bands, cell_width + wide), net.weights("stop", 1, cell_width + wide)
    silence = net.zeros("silence", cell_width)
    listening = speaking = (silence, silence)
    context, shares, seen = net.zeros("context", wide), net.zeros("shares", 1, letters), net.zeros("seen", 1, letters)
    heard, stops = [], []
    for step, at in net.steps("decoder", frames):
        y, (_, kept) = net.lstm_step("listen", listen, at, net.joined(f"listen.in{at}", [rows[step], context], 0), listening)
        y = net.dropout(f"listen.drop{at}", y, 0.1)
        listening = (y, kept)
        where = net.view(f"attention.image{at}", net.joined(f"attention.seen{at}", [shares, seen], 0), 2, letters, 1)
        near = net.unary(f"attention.conv{at}", "conv2d", where, (places, letters, 1), filters, stride=[1, 1], pad=[15, 0])
        near = net.unary(f"attention.rows{at}", "transpose", net.view(f"attention.columns{at}", near, places, letters),
                         (letters, places), axis=1)
        fits = net.unary(f"attention.asked{at}", "expand", net.product(f"attention.query{at}", y, query),
                         (letters, asked_width))
        fits = net.add(f"attention.sum{at}", fits, net.product(f"attention.near{at}", near, located))
        fits = net.tanh(f"attention.tanh{at}", net.add(f"attention.all{at}", fits, keys))
        scores = net.view(f"attention.row{at}", net.product(f"attention.score{at}", fits, energy), 1, letters)
        shares = net.unary(f"attention.softmax{at}", "softmax", scores, (1, letters), in_place=True)
        if step + 1 < frames:
            seen = net.sum(f"attention.heard{at}", shares, seen)
        mixed = net.unary(f"attention.mix{at}", "matmul", shares, (1, wide), [memory])
        context = net.view(f"attention.context{at}", mixed, wide)
        y, (_, kept) = net.lstm_step("speak", speak, at, net.joined(f"speak.in{at}", [y, context], 0), speaking)
        y = net.dropout(f"speak.drop{at}", y, 0.1)
        speaking = (y, kept)
        y = net.joined(f"out.in{at}", [y, context], 0)
        heard.append(net.product(f"out{at}", y, out))
        stops.append(net.product(f"stop{at}", y, stop))

    spectrum = column("spectrum", net.over_steps("out.all", heard))
    x = spectrum
    for k in range(1, 6):
        x = filtered(f"postnet{k}", x, wide if k < 5 else bands, "tanh" if k < 5 else None)
    better = net.sum("postnet.add", x, spectrum)
    errors = [net.square_error(f"loss.{name}", net.view(f"{name}.bands", tensor, bands, frames), target)
              for name, tensor in (("before", spectrum), ("behind", better))]
    # A softmax of a logit and zero is the logit's sigmoid.
    logits = net.view("stop.logits", net.over_steps("stop.all", stops), 1, frames)
    errors.append(net.cross_entropy("loss.stop", net.joined("stop.both", [logits, no_logit], 0), labels, "probs"))
    loss = errors[0]
    for k, error in enumerate(errors[1:]):
        total = net.fixed(f"loss.sum{k}" if k + 2 < len(errors) else "loss", ())
        net.op(f"{total}.add", "add", [loss, error], [total])
        loss = total
    net.file.header["optimizer"] = "adam"
    return net.finish(loss)


def tacotron2():
    return tacotron2_of("tacotron2", """
Tacotron 2 for the letters of LJ Speech: 3 convolutions and an LSTM in both directions read, attention and two LSTM cells
write 80 mel bands frame by frame, 5 convolutions smooth them. 28,193,153 parameters. 148 symbols, 100 letters, 400 frames.""",
                        "v100-32g", 64, 100, 400, 1, 148)


def tacotron2_small():
    return tacotron2_of("tacotron2-small", "Tacotron 2." + SMALL, "k40m", 64, 6, 4, 16, 20)
