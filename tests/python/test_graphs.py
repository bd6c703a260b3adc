#!/usr/bin/env python3
"""Tests of the generated graphs against published figures and of the generator of large graphs. Standard library only:
`python3 tests/python/test_graphs.py`."""

import os
import re
import tempfile
import unittest

from graphtest import GRAPHS, Graph, GraphTest, read, run

import generate

# Parameters and multiply-adds of one forward pass, from the model table of torchvision's documentation
# (pytorch.org/vision/stable/models.html: "Params", "GFLOPS", the latter in multiply-adds rounded to two decimals). Its
# Inception v3 has the auxiliary classifier's parameters, but not its operations, as it runs in training only; without
# it, the parameters are those of torchvision.models.inception_v3(aux_logits=False).
PUBLISHED = {"vgg16": (138_357_544, 15.47), "vgg19": (143_667_240, 19.63), "resnet34": (21_797_672, 3.66),
             "resnet50": (25_557_032, 4.09), "resnet152": (60_192_808, 11.51), "densenet121": (7_978_856, 2.83),
             "inception-v3": (23_834_568, 5.71)}
PUBLISHED_WITH_AUXILIARY = 27_161_264
# NASNet-A's parameters are the trainable ones of keras.applications' NASNetMobile and NASNetLarge, its multiply-adds
# those of its paper's tables 1 and 2, 564 million and 23.8 billion; ResNet-110's and BERT-base's are counted from their
# papers' layers, which say 1.7 and 110 million (BERT's with a pooler of 590,592).
COUNTED = {"nasnet-a-mobile": (5_289_978, 0.564), "nasnet-a-large": (88_753_150, 23.8), "resnet110": (1_730_714, None),
           "bert-base": (108_893_186, None)}
PAPER = ("vgg16", "vgg19", "vgg101", "resnet34", "fcn")
IN_PLACE = ("relu", "add", "softmax", "position")
PAPER_BATCH = {"vgg16": 256, "vgg19": 256, "vgg101": 128, "resnet34": 256, "fcn": 128}
RECURRENT = ("gnmt-small", "rhn-small", "tacotron2-small")
# Unrolled: parameters, those of MLPerf's GNMT (160,671,297 with the one factor of its normalised attention) and of
# NVIDIA's Tacotron 2 as their logs say, RHN's counted from its paper's layers, which says 32 million; and steps of cells.
UNROLLED = {"gnmt": (160_671_296, 9 * 50), "rhn": (31_782_400, 35), "tacotron2": (28_193_153, 2 * 100 + 400)}
FORWARD = [model for model in generate.MODELS if model != "pix2pixhd"]  # whose backward ops planc train derives


def all_data(graph, batch):
    """What moDNN calls the ideal case (section V-A): every activation Y, its gradient, W and its gradient at once."""
    no_gradient = re.compile(r"loss|probs|.*\.(mean|invstd)")
    total = 2 * sum(t.bytes(batch) for t in graph.storages("param"))
    for name, tensor in graph.tensors.items():
        if tensor.root is tensor and tensor.kind in ("input", "activation"):
            once = tensor.kind == "input" or no_gradient.fullmatch(name)
            total += tensor.bytes(batch) * (1 if once else 2)
    return total


def lower_bound(graph):
    """moDNN's Eq. 2: parameters, gradients, and at sub-batch 1 the largest of the ops' inputs and output, backward
    included. Pooling's backward reads input, output and its gradient and writes the input's; the others read no more
    than a forward op's operands and one gradient beside the one they write."""
    largest = 0
    for op in graph.ops:
        x, y = graph.of(op["in"][0]), graph.of(op["out"][0])
        ours = [t for t in (graph.of(n) for n in op["in"] + op["out"]) if t.kind in ("input", "activation")]
        largest = max(largest, sum(t.bytes(1) for t in {t.root for t in ours}))
        if op["type"] == "maxpool2d":
            largest = max(largest, 2 * x.bytes(1) + 2 * y.bytes(1))
        if op["type"] in ("batchnorm", "conv2d"):
            largest = max(largest, 2 * x.bytes(1) + y.bytes(1))
    return 2 * sum(t.bytes(1) for t in graph.storages("param")) + largest


class GeneratedTest(GraphTest):
    def test_committed_files_are_what_the_generator_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(generate, "--all", "-d", folder), (0, ""))
            for model in generate.MODELS:
                with open(os.path.join(folder, f"{model}.yaml"), "rb") as fresh:
                    with open(os.path.join(GRAPHS, f"{model}.yaml"), "rb") as committed:
                        self.assertEqual(fresh.read(), committed.read(), f"{model}.yaml: run graphs/generate.py")

    def test_form(self):
        for model in generate.MODELS:
            with self.subTest(model):
                graph = read(f"{model}.yaml")
                self.check_form(graph)
                self.assertIn("loss", graph.header)
                if model in FORWARD:
                    self.assertEqual(graph.header["loss"], graph.ops[-1]["out"][0])
                    self.assertEqual({op["phase"] for op in graph.ops}, {"forward"})
                # RHN drops the same part of its state in all steps.
                seeds = [op["attrs"]["seed"] for op in graph.ops if op["type"] == "dropout" and (model, op.get("loop")) != (
                    "rhn-small", "cell")]
                self.assertEqual(len(seeds), len(set(seeds)))

    def assertTogether(self, axis, whole, parts):
        self.assertEqual({(*part[:axis], *part[axis + 1:]) for part in parts}, {(*whole[:axis], *whole[axis + 1:])})
        self.assertEqual(whole[axis], (sum(part[axis][0] for part in parts), 0))

    def test_shapes_follow_from_operands_and_attributes(self):
        def window(x, kernel, attrs):
            stride, pad = ([int(v) for v in attrs[k]] for k in ("stride", "pad"))
            dilation = [int(v) for v in attrs.get("dilation", (1, 1))]
            reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
            return [(x[2 + i][0] + 2 * pad[i] - reach[i]) // stride[i] + 1 for i in (0, 1)]

        for model in FORWARD:
            graph = read(f"{model}.yaml")
            for op in graph.ops:
                with self.subTest(model, op=op["op"]):
                    x, *others = (graph.of(n).dims for n in op["in"])
                    y = graph.of(op["out"][0]).dims
                    if op["type"] == "conv2d":
                        (k, c, *kernel) = (f for f, _ in others[0])
                        self.assertEqual(c * int(op["attrs"].get("groups", 1)), x[1][0])
                        self.assertEqual([f for f, _ in y[1:]], [k, *window(x, kernel, op["attrs"])])
                        self.assertEqual(others[1:], [[(k, 0)]] * len(others[1:]))
                    elif op["type"] in ("maxpool2d", "avgpool2d"):
                        kernel = [int(v) for v in op["attrs"]["kernel"]]
                        self.assertEqual([f for f, _ in y[1:]], [x[1][0], *window(x, kernel, op["attrs"])])
                    elif op["type"] == "linear":
                        self.assertEqual(others, [[y[-1], x[-1]], [y[-1]]][:len(others)])
                        self.assertTrue(len(others) == 2 or model in RECURRENT)
                        self.assertEqual(y[:-1], x[:-1])
                    elif op["type"] == "embedding":
                        self.assertEqual(y, [*x, others[0][1]])
                    elif op["type"] == "layernorm":
                        self.assertEqual((y, others), (x, [x[-1:], x[-1:]]))
                        self.assertEqual([graph.of(n).dims for n in op["out"][1:]], [x[:-1], x[:-1]])
                    elif op["type"] == "position":
                        self.assertEqual((y, others), (x, [x[1:]]))
                    elif op["type"] in ("matmul", "matmul_nt"):
                        depth, columns = others[0][-2:] if op["type"] == "matmul" else others[0][:-3:-1]
                        self.assertEqual((x[-1], y), (depth, [*x[:-1], columns]))
                        self.assertEqual(others[0][:-2], x[:-2])
                    elif op["type"] == "transpose":
                        self.assertEqual(op["attrs"]["axis"], "1")
                        self.assertEqual(y, [x[0], x[2], x[1], *x[3:]])
                    elif op["type"] == "mean":
                        self.assertEqual(y, x[:-2] + x[-1:])
                    elif op["type"] == "expand":
                        self.assertEqual(x, y[:-2] + y[-1:])
                    elif op["type"] == "mse":
                        self.assertEqual((y, others), ([], [x]))
                    elif op["type"] == "split":
                        self.assertTogether(int(op["attrs"]["axis"]), x, [graph.of(n).dims for n in op["out"]])
                    elif op["type"] == "upsample":
                        scale = int(op["attrs"]["scale"])
                        more = scale - 1 if op["attrs"]["mode"] == "aligned" else 0
                        self.assertEqual(y, [x[0], x[1]] + [(f * scale - more, p) for f, p in x[2:]])
                    elif op["type"] == "concat":
                        self.assertTogether(int(op["attrs"]["axis"]), y, [x, *others])
                    elif op["type"] == "softmax_xent":
                        self.assertEqual((y, others[0]), ([], [x[0], *x[2:]]))
                    else:
                        self.assertEqual(y, x)
                        for other in others:
                            self.assertIn(other, (x, x[1:2]))

    def test_views_keep_the_size(self):
        for model in generate.MODELS:
            for name, tensor in read(f"{model}.yaml").tensors.items():
                self.assertEqual(tensor.bytes(3), tensor.root.bytes(3), f"{model}: {name}")

    def test_published_parameters_and_multiply_adds(self):
        for model, (parameters, giga) in PUBLISHED.items():
            with self.subTest(model):
                graph = read(f"{model}.yaml")
                self.assertEqual(graph.parameters(), parameters)
                self.assertEqual(round(graph.forward_flops() / 2e9, 2), giga)

    def test_counts_of_others(self):
        for model, (parameters, giga) in COUNTED.items():
            with self.subTest(model):
                graph = read(f"{model}.yaml")
                self.assertEqual(graph.parameters(), parameters)
                if giga:
                    self.assertAlmostEqual(graph.forward_flops() / 2e9 / giga, 1, delta=0.001)

    def test_inception_v3_with_its_auxiliary_classifier(self):
        # An average over windows makes 5x5 maps of the 17x17; then come a 1x1 convolution to 128 and a 5x5 one to 768
        # channels, each with a batch norm, and 1000 classes.
        with_it, without = read("inception-v3-aux.yaml"), read("inception-v3.yaml")
        self.assertEqual(with_it.parameters(), PUBLISHED_WITH_AUXILIARY)
        auxiliary = 25 * 768 * 128 + 25 * 128 * 768 + 768 * 1000
        self.assertEqual(with_it.forward_flops() - without.forward_flops(), 2 * auxiliary)

    def test_inception_v4(self):
        # Parameters as the test in pytorchcv's inceptionv4.py says. 24.584 GFLOP are those of googlenet-v4 in the Open
        # Model Zoo of OpenVINO, which does not say what it counts beside multiply-adds.
        graph = read("inception-v4.yaml")
        self.assertEqual(graph.parameters(), 42_679_816)
        self.assertAlmostEqual(graph.forward_flops() / 24.584e9, 1, delta=0.004)

    def test_deeplab(self):
        # 54.17 billion multiply-adds are those of xception_coco_voc_trainaug at output stride 16 in the model zoo of
        # TensorFlow's DeepLab, which does not say what its profiler counts. 41,258,213 parameters, with the running
        # statistics, as Keras counts, are those of keras-deeplab-v3-plus on Xception for 21 classes.
        graph = read("deeplabv3plus.yaml")
        self.assertAlmostEqual(graph.forward_flops() / 2 / 54.17e9, 1, delta=0.004)
        running = sum(t.bytes(0) for t in graph.storages("state")) // 4
        self.assertEqual(graph.parameters() + running, 41_258_213)
        # Output stride 16 and a decoder at stride 4, corners aligned: 513 = 32 * 16 + 1 = 128 * 4 + 1.
        self.assertEqual(graph.of("aspp_concat.y").dims[1:], [(1280, 0), (33, 0), (33, 0)])
        self.assertEqual(graph.of("decoder_concat.y").dims[1:], [(304, 0), (129, 0), (129, 0)])
        self.assertEqual(graph.of("up.y").dims[1:], [(21, 0), (513, 0), (513, 0)])

    def test_decoder_of_deeplab_sees_features_before_their_relu(self):
        # Nobody writes to what the decoder's 1x1 convolution reads, or what a residual connection adds.
        graph = read("deeplabv3plus.yaml")
        readers = {op["op"]: graph.of(op["in"][-1 if op["type"] == "add" else 0]).root for op in graph.ops
                   if op["type"] == "add" or op["op"] == "decoder_low_conv"}
        for i, op in enumerate(graph.ops):
            if op["op"] in readers:
                writers = [o["op"] for o in graph.ops[:i] if graph.of(o["out"][0]).root is readers[op["op"]]]
                self.assertTrue(all(re.search(r"_(bn|add)$", w) for w in writers), (op["op"], writers))

    def test_densenet_keeps_all_that_came_before(self):
        graph = read("densenet121.yaml")
        for block, (count, channels) in enumerate(zip((6, 12, 24, 16), (64, 128, 256, 512)), 1):
            for i in range(1, count + 1):
                self.assertEqual(graph.of(f"dense{block}_{i}_concat.y").dims[1][0], channels + 32 * i)

    def test_resnet50_has_its_stride_in_the_3x3_convolution(self):
        graph = read("resnet50.yaml")
        strided = [graph.of(op["in"][1]).dims[2][0] for op in graph.ops
                   if op["type"] == "conv2d" and op["attrs"]["stride"] == ["2", "2"]]
        self.assertEqual(sorted(strided), [1, 1, 1, 3, 3, 3, 7])

    def test_fcn_parameters(self):
        # VGG-16's convolutions; conv6 7x7x512 and conv7 1x1x4096 to 4096; scores of 21 classes from conv7, pool4
        # and pool3. Long et al., Table 1, say 134 million for FCN-VGG16.
        vgg = sum(9 * c * k + k for c, k in zip((3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512),
                                                (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)))
        self.assertEqual(vgg, 14_714_688)
        conv6, conv7 = 49 * 512 * 4096 + 4096, 4096 * 4096 + 4096
        scores = sum(c * 21 + 21 for c in (4096, 512, 256))
        self.assertEqual(read("fcn.yaml").parameters(), vgg + conv6 + conv7 + scores)

    def test_conventions_of_the_time(self):
        for model in FORWARD:
            if model in RECURRENT:
                continue
            graph = read(f"{model}.yaml")
            readers = {}
            for op in graph.ops:
                for root in {id(graph.of(name).root) for name in op["in"]}:
                    readers[root] = readers.get(root, 0) + 1
            for op in graph.ops:
                in_place = graph.of(op["in"][0]).root is graph.of(op["out"][0]).root
                kept = model == "deeplabv3plus" and op["type"] == "relu" and not in_place  # tested above
                if model.startswith("nasnet") and op["type"] == "relu" and not in_place:
                    kept = readers[id(graph.of(op["in"][0]).root)] > 1
                if not kept and op["op"] != "loss":
                    self.assertEqual(in_place, op["type"] in IN_PLACE, f"{model}: {op['op']}")
                if op["type"] == "conv2d":
                    normed = {o["in"][0] for o in graph.ops if o["type"] == "batchnorm"}
                    bias = op["out"][0] not in normed and not model.startswith(("densenet", "nasnet"))
                    self.assertEqual(len(op["in"]), 3 if bias else 2, f"{model}: {op['op']}")

    def test_headers(self):
        for model in generate.MODELS:
            header = read(f"{model}.yaml").header
            self.assertEqual(header["name"], model)
            # A device and a batch of the paper that trains the network: moDNN's, TENSILE's, or the largest batch that
            # the out-of-core paper (section 5.2) fits into 16 GB.
            batch, device = {**{model: (batch, "k40m") for model, batch in PAPER_BATCH.items()},
                             "resnet50": (256, "k40m"), "lenet-digits": (64, "k40m"), "tiny-transformer": (64, "k40m"),
                             "densenet121": (16, "a6000"), "inception-v3": (16, "a6000"),
                             "inception-v3-aux": (16, "a6000"), "inception-v4": (16, "a6000"),
                             "deeplabv3plus": (6, "v100-16g-nvlink"), "pix2pixhd": (4, "v100-16g-nvlink"),
                             # Those of Zico's and Waterwave's GPUs, at batches that fit them.
                             "resnet110": (128, "rtx2080ti"), "resnet152": (160, "v100-32g"), "bert-base": (32, "v100-32g"),
                             "nasnet-a-mobile": (64, "rtx2080ti"), "nasnet-a-large": (16, "rtx2080ti"),
                             "gnmt-small": (64, "k40m"), "rhn-small": (64, "k40m"),
                             "tacotron2-small": (64, "k40m")}[model]
            optimizer = {"tiny-transformer": "adam", "pix2pixhd": "adam", "bert-base": "adam", "deeplabv3plus": "momentum",
                         "tacotron2-small": "adam"}.get(model, "sgd")
            self.assertEqual([header[k] for k in ("planc-graph", "layout", "batch", "optimizer", "device")],
                             ["1", "NCHW", str(batch), optimizer, device])

    def test_vgg101_meets_both_figures_of_the_paper(self):
        # moDNN, V-A: "nearly 100 GB" and a lower bound of 1.4 GB; read as powers of two. 101 = 98 + 3 layers.
        graph = read("vgg101.yaml")
        self.assertEqual([sum(op["type"] == t for op in graph.ops) for t in ("conv2d", "linear")], [98, 3])
        self.assertAlmostEqual(all_data(graph, 128) / 2**30, 98.3, delta=0.1)
        self.assertAlmostEqual(lower_bound(graph) / 2**30, 1.42, delta=0.01)

    def test_ideal_memory_of_the_papers_networks(self):
        # moDNN, V-A: all five need more than 12 GB, the VGGs more than 24 GB (and the other two, it follows, do not).
        ratios = []
        for model in PAPER:
            graph = read(f"{model}.yaml")
            ideal = all_data(graph, PAPER_BATCH[model])
            self.assertGreater(ideal, 12 * 2**30, model)
            self.assertEqual(ideal > 24 * 2**30, model.startswith("vgg"), model)
            ratios.append(ideal / lower_bound(graph))
        # The paper's average of 50 has no bars to check; these networks come to 46.
        self.assertAlmostEqual(sum(ratios) / len(ratios), 46, delta=1)

    def test_lenet_is_small_and_its_activations_dominate(self):
        graph = read("lenet-digits.yaml")
        self.assertLessEqual(graph.parameters(), 40_000)
        # Live at once in the first pooling's backward: its operands, their gradients and, from then on, all gradients.
        pool = next(op for op in graph.ops if op["type"] == "maxpool2d")
        live = 2 * (graph.of(pool["in"][0]).bytes(64) + graph.of(pool["out"][0]).bytes(64))
        self.assertGreater(live, 5 * 2 * 4 * graph.parameters())

    def test_transformer(self):
        graph = read("tiny-transformer.yaml")
        # 17 pixel values by 8; 8 x 8 numbers to a token of 32, 8 positions; twice two norms, four products with 32 x 32
        # weights and two with 32 x 64; a norm and ten classes.
        block = 2 * 2 * 32 + 4 * (32 * 32 + 32) + 64 * 32 + 64 + 32 * 64 + 32
        self.assertEqual(graph.parameters(), 17 * 8 + 64 * 32 + 32 + 8 * 32 + 2 * block + 2 * 32 + 32 * 10 + 10)
        self.assertIn(f"{graph.parameters():,} parameters", " ".join(generate.tiny_transformer().heading.split()))
        scales = [float(op["attrs"]["scale"]) for op in graph.ops if op["type"] == "matmul_nt"]
        self.assertEqual([round(scale**-2, 9) for scale in scales], [8, 8])
        # Attention is over the tokens of every head of every sample.
        self.assertEqual({tuple(graph.of(op["out"][0]).dims) for op in graph.ops if op["type"] == "softmax"},
                         {((0, 1), (4, 0), (8, 0), (8, 0))})

    def test_usage_errors(self):
        for arguments in (["vgg17"], ["--large", "100"], ["-o", "x.yaml"], ["--large", "11", "-o", "x.yaml"],
                          ["--large", "100", "-o", "x.yaml", "vgg16"], ["--large", "many", "-o", "x.yaml"], ["--nhwc"],
                          ["--nhwc", "vgg16"], ["--nhwc", "tiny-transformer", "-d", "/nonexistent"]):
            self.assertEqual(run(generate, *arguments)[0], 2, arguments)
        self.assertFalse(os.path.exists("x.yaml"))
        code, message = run(generate, "vgg16", "-d", "/nonexistent")
        self.assertEqual(code, 5)
        self.assertIn("/nonexistent", message)


class UnrolledTest(GraphTest):
    """The recurrent models at the size of their papers, which are no files of the folder."""

    def test_parameters_and_steps(self):
        for model, (parameters, steps) in UNROLLED.items():
            with self.subTest(model):
                graph = Graph(generate.UNROLLED[model]().text())
                self.check_form(graph)
                self.assertEqual(graph.parameters(), parameters)
                self.assertIn(f"{parameters:,}", " ".join(generate.UNROLLED[model]().heading.split()))
                self.assertEqual(len({(op["loop"], op["step"]) for op in graph.ops if "loop" in op}), steps)

    def test_a_step_reads_what_the_step_before_made(self):
        """And nothing of a later one; the first reads states that are fed."""
        for model in RECURRENT:
            graph, made = read(f"{model}.yaml"), {}
            carried = set()
            for op in graph.ops:
                for name in op["in"]:
                    loop, step = made.get(id(graph.of(name).root), (None, None))
                    if "loop" in op and loop == op["loop"]:
                        self.assertIn(int(op["step"]) - step, (0, 1), f"{model}: {op['op']}")
                        carried |= {(loop, int(op["step"]))} if int(op["step"]) > step else set()
                for name in op["out"] if "loop" in op else []:
                    made[id(graph.of(name).root)] = op["loop"], int(op["step"])
            steps = {(op["loop"], int(op["step"])) for op in graph.ops if "loop" in op and op["step"] != "0"}
            self.assertEqual(carried, steps, model)

    def test_named_alone_they_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run(generate, "rhn", "-d", folder), (0, ""))
            self.assertEqual(os.listdir(folder), ["rhn.yaml"])


class LargeTest(GraphTest):
    def large(self, n_ops):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.yaml")
            self.assertEqual(run(generate, "--large", str(n_ops), "-o", path), (0, ""))
            self.assertEqual(os.listdir(folder), ["large.yaml"])
            with open(path, encoding="ascii") as file:
                return file.read()

    def test_exact_number_of_ops(self):
        for n_ops in (12, 13, 23, 24, 1000, 1007):
            graph = Graph(self.large(n_ops))
            self.check_form(graph)
            self.assertEqual(len(graph.ops), n_ops)

    def test_hundred_thousand_ops_stay_compact_and_the_same(self):
        text = self.large(100_000)
        self.assertEqual(len(re.findall(r"^  - ", text, re.M)), 100_000)
        self.assertLess(len(text), 20_000_000)
        self.assertEqual(text, self.large(100_000))

    def test_backward_is_the_chain_rule_of_a_block(self):
        ops = {op["op"]: (op["type"], op["in"], op["out"]) for op in Graph(self.large(36)).ops}
        y, dx, dy = "x2", "x1.d", "x2.d"
        expected = {
            "a1": ("conv2d", ["x1", "a1.w"], ["h1"]),
            "relu1": ("relu", ["h1"], ["h1"]),
            "b1": ("conv2d", ["h1", "b1.w"], [y]),
            "add1": ("add", [y, "x1"], [y]),
            "b1.dw": ("conv2d_wgrad", ["h1", dy], ["b1.w.d"]),
            "b1.dx": ("conv2d_dgrad", ["b1.w", dy], ["h1.d"]),
            "relu1.d": ("relu_grad", ["h1", "h1.d"], ["h1.d"]),
            "a1.dw": ("conv2d_wgrad", ["x1", "h1.d"], ["a1.w.d"]),
            "a1.dx": ("conv2d_dgrad", ["a1.w", "h1.d"], [dx]),
            "add1.d": ("add", [dx, dy], [dx]),
            "a1.w.sgd": ("sgd", ["a1.w", "a1.w.d"], ["a1.w"]),
            "b1.w.sgd": ("sgd", ["b1.w", "b1.w.d"], ["b1.w"]),
        }
        self.assertEqual({name: ops[name] for name in expected}, expected)

    def test_every_result_but_gradients_of_parameters_is_used(self):
        graph = Graph(self.large(1000))
        read_names = {n for op in graph.ops for n in op["in"]}
        unread = {n for n in graph.tensors if n not in read_names and not n.startswith("rms")}
        self.assertEqual(unread, {"loss"})

    def test_activations_make_the_peak_and_sixty_percent_of_it_bites(self):
        graph = Graph(self.large(6000))
        peak = graph.liveness_peak(64)
        resident = 2 * 4 * graph.parameters()
        kept = sum(t.bytes(64) for n, t in graph.tensors.items() if re.fullmatch(r"[xh]\d+", n))
        self.assertGreater(kept, 0.8 * peak)
        largest = max(sum(t.bytes(64) for t in {graph.of(n).root for n in op["in"] + op["out"]}) for op in graph.ops)
        self.assertLess(resident + largest, 0.3 * peak)
        self.assertGreater(len({t.bytes(64) for t in graph.storages("activation")}), 10)


if __name__ == "__main__":
    unittest.main()
