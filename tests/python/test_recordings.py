#!/usr/bin/env python3
"""Tests of the conversions of recorded PyTorch iterations: against their recordings, against the generated graphs of
the same models, and of the converter on small and on bad input. Standard library only:
`python3 tests/python/test_recordings.py`. What needs the recordings, which are not part of the project, is skipped
where they are absent, and says so."""

import copy
import json
import math
import os
import tempfile
import unittest

from graphtest import DTYPE_BYTES, GRAPHS, ROOT, Graph, GraphTest, parse_law, read, run, running_peak

import from_recording

RECORDINGS = os.path.join(ROOT, "..", "shared", "graphs")
needs_recordings = unittest.skipUnless(os.path.isdir(RECORDINGS), "skipped: ../shared/graphs is absent")

# --- The eight recordings -------------------------------------------------------------------------------------------

COMMITTED = {"vgg16": "vgg16", "resnet34": "resnet34", "resnet50": "resnet50", "lstm4": "lstm4_h1024_s25"}
MODELS = ("vgg16", "vgg19", "resnet34", "resnet50", "densenet121", "inception_v3", "bert_base_s128", "lstm4_h1024_s25")


def converted(model):
    return Graph(from_recording.convert(os.path.join(RECORDINGS, f"{model}.json")).text())


class RecordingTest(GraphTest):
    @needs_recordings
    def test_committed_conversions_are_fresh(self):
        for name, model in COMMITTED.items():
            with open(os.path.join(GRAPHS, "recorded", f"{name}.yaml"), encoding="ascii") as file:
                fresh = from_recording.convert(os.path.join(RECORDINGS, f"{model}.json")).text()
                self.assertTrue(file.read() == fresh, f"recorded/{name}.yaml: run graphs/from_recording.py")

    @needs_recordings
    def test_nothing_is_lost(self):
        for model in MODELS:
            with self.subTest(model), open(os.path.join(RECORDINGS, f"{model}.json"), encoding="utf-8") as file:
                recording, graph = json.load(file), converted(model)
                self.check_form(graph)
                self.check_ops(recording, graph)
                self.check_storages(recording, graph)
                for n in (1, 7, 64):
                    self.assertEqual(graph.liveness_peak(n), self.recorded_peak(recording, n))

    def check_ops(self, recording, graph):
        """Ops in order, one for one but for split convolution backward; FLOPs of each, traffic of the unsplit."""
        of_id, last = {}, -1
        for op in graph.ops:
            i = int(op["op"].rpartition(".")[2])
            self.assertGreaterEqual(i, last)
            last = i
            of_id.setdefault(i, []).append(op)
        self.assertEqual(sorted(of_id), [op["id"] for op in recording["ops"]])
        for recorded in recording["ops"]:
            ops, attrs = of_id[recorded["id"]], recorded.get("attrs", {})
            split = recorded["name"] == "aten.convolution_backward" and len(ops) > 1
            self.assertEqual(len(ops), sum(attrs["output_mask"]) if split else 1)
            self.assertEqual({op["phase"] for op in ops}, {recorded["phase"]})
            flops = [parse_law(op.get("flops", "0")) for op in ops]
            self.assertEqual(tuple(map(sum, zip(*flops))),
                             (recorded.get("flops_fixed", 0), recorded.get("flops_per_sample", 0)))
            for op in ops if split else ():  # 2 N K P Q C R S for data and weights, N K P Q for the bias
                n, k, p, q = attrs["shapes"][0]
                c, r, s = attrs["shapes"][2][1:]
                each = k * p * q if op["type"] == "conv2d_bgrad" else 2 * k * p * q * c * r * s
                self.assertEqual((n, parse_law(op["flops"])), ("N", (0, each)))
            if "traffic" in ops[0]:
                self.assertEqual(parse_law(ops[0]["traffic"]),
                                 (recorded.get("bytes_fixed", 0), recorded.get("bytes_per_sample", 0)))
            else:
                self.assertTrue(ops[0]["type"].startswith("conv2d"))

    def check_storages(self, recording, graph):
        tensors = list(graph.tensors.values())
        self.assertEqual(len(tensors), len(recording["tensors"]))
        kinds = {"param": "param", "buffer": "state", "optstate": "state", "input": "input", "activation": "activation",
                 "actgrad": "activation", "grad": "grad", "temp": "temp"}
        for recorded, tensor in zip(recording["tensors"], tensors):
            self.assertEqual(tensor.kind, kinds[recorded["kind"]])
            self.assertEqual(tensor.dtype, recorded["dtype"])
            for n in (1, 2, 9):
                self.assertEqual(tensor.bytes(n), recorded["bytes_fixed"] + n * recorded["bytes_per_sample"])

    def recorded_peak(self, recording, n):
        change = [0] * (len(recording["ops"]) + 1)
        before = 0
        for tensor in recording["tensors"]:
            size = tensor["bytes_fixed"] + n * tensor["bytes_per_sample"]
            if tensor["kind"] in ("param", "buffer", "optstate", "input"):
                before += size
            else:
                change[tensor["first"]] += size
                change[tensor["last_use"] + 1] -= size
        return before + running_peak(change)

    @needs_recordings
    def test_convolutions_are_split_but_on_slices(self):
        # DenseNet's four blocks end in a convolution whose output gradient is a slice of channels of a larger storage.
        for model in MODELS:
            left = [op for op in converted(model).ops if op["type"].startswith("aten.convolution")]
            self.assertEqual(len(left), 4 if model == "densenet121" else 0, model)

    @needs_recordings
    def test_recurrences_carry_loop_and_step(self):
        for model in MODELS:
            steps = {}
            for op in converted(model).ops:
                if "loop" in op:
                    steps.setdefault(op["loop"], set()).add(int(op["step"]))
            lstm = {f"cells.{layer}": set(range(25)) for layer in range(4)}
            self.assertEqual(steps, lstm if model == "lstm4_h1024_s25" else {})

    def test_committed_form(self):
        for name in COMMITTED:
            path = os.path.join(GRAPHS, "recorded", f"{name}.yaml")
            self.assertLess(os.path.getsize(path), 2**20)
            self.check_form(read("recorded", f"{name}.yaml"))

# --- Generated against recorded -------------------------------------------------------------------------------------


class SameModelTest(GraphTest):
    """These models exist twice: generated, as a cuDNN-era framework runs them, and recorded from PyTorch. They have the
    same parameters and the same convolutions and matrix products. They differ in this:
    - PyTorch counts a bias add as one operation per element beside the 2 of a multiply-add; planc's op table does not.
    - PyTorch's max pooling keeps int64 indices for backward; cuDNN's reads input and output again.
    - PyTorch's dropout keeps a mask of one byte per element; planc's is counter-based and keeps none.
    - torchvision's VGG has an adaptive average pooling, at 224x224 a copy of 7x7 maps.
    - torchvision's DenseNet copies the input of each of its four blocks, as a concatenation of one.
    - The recorded loss is a log-softmax and nll_loss, which also returns its total weight (one float)."""

    def compare(self, model, recorded):
        generated = read(f"{model}.yaml")
        self.assertEqual(generated.parameters(), recorded.parameters())

        bias_adds = sum(math.prod(f for f, _ in recorded.of(op["out"][0]).dims[1:]) for op in recorded.ops
                        if op["type"] == "aten.addmm" or op["type"] == "conv2d" and len(op["in"]) == 3)
        self.assertEqual(generated.forward_flops(), recorded.forward_flops() - bias_adds)

        def made_forward(graph, n):
            return sum(t.bytes(n) for t in {graph.of(name).root for op in graph.ops if op["phase"] == "forward"
                                            for name in op["out"]} if t.kind == "activation")

        pytorch_only = {"aten.max_pool2d_with_indices": 1, "aten.native_dropout": 1, "aten.nll_loss_forward": 1,
                        "aten._adaptive_avg_pool2d": 0}
        extra = [recorded.of(op["out"][pytorch_only[op["type"]]]) for op in recorded.ops if op["type"] in pytorch_only]
        extra += [recorded.of(op["out"][0]) for op in recorded.ops if op["type"] == "aten.cat" and len(op["in"]) == 1]
        for n in (1, 256):
            self.assertEqual(made_forward(generated, n), made_forward(recorded, n) - sum(t.bytes(n) for t in extra))

    def test_vgg16(self):
        self.compare("vgg16", read("recorded", "vgg16.yaml"))

    def test_resnet34(self):
        self.compare("resnet34", read("recorded", "resnet34.yaml"))

    def test_resnet50(self):
        self.compare("resnet50", read("recorded", "resnet50.yaml"))

    @needs_recordings
    def test_vgg19(self):
        self.compare("vgg19", converted("vgg19"))

    @needs_recordings
    def test_densenet121(self):
        recorded = converted("densenet121")
        self.compare("densenet121", recorded)
        self.compare_ops("densenet121", recorded)

    @needs_recordings
    def test_inception_v3(self):
        recorded = converted("inception_v3")
        self.compare("inception-v3", recorded)
        self.compare_ops("inception-v3", recorded)

    def compare_ops(self, model, recorded):
        """Convolutions, poolings, batch norms and concatenations one for one, whatever the order of branches."""
        named = {"aten.native_batch_norm": "batchnorm", "aten.max_pool2d_with_indices": "maxpool2d",
                 "aten.mean.dim": "avgpool2d", "aten.avg_pool2d": "avgpool2d", "aten.cat": "concat"}

        def kinds(graph):
            shapes = []
            for op in graph.ops:
                type, single = named.get(op["type"], op["type"]), len(op["in"]) == 1
                if op["phase"] == "forward" and type in ("conv2d", "batchnorm", "maxpool2d", "avgpool2d", "concat"):
                    x, y = graph.of(op["in"][0]), graph.of(op["out"][0])
                    if not (type == "concat" and single):
                        shapes.append((type, 0 if type == "concat" else x.bytes(7), y.bytes(7)))
            return sorted(shapes)

        self.assertEqual(kinds(read(f"{model}.yaml")), kinds(recorded))


# --- The converter on small and on bad input ------------------------------------------------------------------------


def storage(kind, shape, slopes=None, name=None, dtype="f32", size=None):
    slopes = slopes or [0] * len(shape)
    fixed, per_sample = math.prod(shape) * DTYPE_BYTES[dtype], 0
    if any(slopes):
        (i,) = (i for i, s in enumerate(slopes) if s)
        assert shape[i] == 2 * slopes[i]
        fixed, per_sample = 0, fixed // 2
    record = {"kind": kind, "dtype": dtype, "shape_example": shape, "shape_per_sample": slopes,
              "bytes_fixed": fixed, "bytes_per_sample": per_sample}
    return {**record, **({"name": name} if name else {}), **(size or {})}


# A recording with one of everything that the converter treats specially.
N4 = [1, 0, 0, 0]
CONV = {"stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "groups": 1}
TINY = {
    "schema": "planc-opgraph-1", "model": "tiny", "source": "test", "optimizer": "SGD", "batch_example": 2,
    "tensors": [
        storage("input", [2, 3, 4, 4], N4, "images"),                          # 0
        storage("param", [5, 3, 3, 3], name="conv.weight"),                    # 1
        storage("param", [5], name="conv.bias"),                               # 2
        storage("activation", [2, 5, 2, 2], N4),                               # 3
        storage("buffer", [5], name="bn: mean"),                               # 4
        storage("activation", [2, 5, 2, 2], N4),                               # 5
        storage("activation", [], name="loss"),                                # 6
        storage("actgrad", [2, 5, 2, 2], N4),                                  # 7
        storage("grad", [5, 3, 3, 3], name="conv.weight"),                     # 8
        storage("grad", [5], name="conv.bias"),                                # 9
        storage("actgrad", [3], size={"bytes_fixed": 5, "bytes_per_sample": 7}),  # 10
        storage("actgrad", [2, 3, 4, 4], N4),                                  # 11
    ],
    "ops": [
        {"name": "aten.convolution", "phase": "forward", "module": "conv", "inputs": [0, 1, 2], "outputs": [3],
         "attrs": {**CONV, "shapes": [["N", 3, 4, 4], [5, 3, 3, 3], [5], ["N", 5, 2, 2]]}, "flops_per_sample": 1100},
        {"name": "aten.native_batch_norm", "phase": "forward", "inputs": [3, 4], "outputs": [5, 4], "inplace": [4],
         "attrs": {"training": True, "eps": 1e-05}},
        {"name": "aten.nll_loss_forward", "phase": "forward", "inputs": [5], "outputs": [6], "attrs": {"reduction": 1}},
        {"name": "aten.copy_", "phase": "backward", "inputs": [5], "outputs": [7]},
        {"name": "aten.sigmoid_", "phase": "backward", "inputs": [5], "outputs": [7], "inplace": [7],
         "attrs": {"partial_write": True}},
        {"name": "aten.convolution_backward", "phase": "backward", "inputs": [7, 0, 1], "outputs": [11, 8, 9],
         "attrs": {**CONV, "output_mask": [True, True, True], "shapes": [
             ["N", 5, 2, 2], ["N", 3, 4, 4], [5, 3, 3, 3], ["N", 3, 4, 4], [5, 3, 3, 3], [5]]},
         "flops_per_sample": 2180},
        {"name": "aten.mm", "phase": "backward", "inputs": [11], "outputs": [10]},
    ],
}


class ConverterTest(GraphTest):
    def convert(self, recording):
        """Exit code, messages and the graph, None when there is none."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "in.json"), os.path.join(folder, "out.yaml")
            with open(source, "w", encoding="utf-8") as file:
                file.write(recording if isinstance(recording, str) else json.dumps(recording))
            code, message = run(from_recording, source, "-o", target)
            graph = None
            if os.path.exists(target):
                with open(target, encoding="ascii") as file:
                    graph = Graph(file.read())
            self.assertEqual(set(os.listdir(folder)), {"in.json"} | ({"out.yaml"} if graph else set()))
            return code, message, graph

    def tiny(self):
        code, message, graph = self.convert(TINY)
        self.assertEqual((code, message), (0, ""))
        self.check_form(graph)
        return graph

    def test_names(self):
        graph = self.tiny()
        self.assertEqual(list(graph.tensors), ["images", "conv.weight", "conv.bias", "t3", "bn:_mean", "t5", "loss",
                                               "t7", "conv.weight:grad", "conv.bias:grad", "t10", "t11"])
        self.assertEqual(graph.header["loss"], "loss")
        twin = copy.deepcopy(TINY)
        twin["tensors"][2]["name"] = "conv.weight"
        twin["tensors"][4]["name"] = "-" * 300
        names = list(self.convert(twin)[2].tensors)
        self.assertEqual(names[2], "conv.weight.2")
        self.assertEqual(names[4], "_" + "-" * 254)

    def test_convolution(self):
        graph = self.tiny()
        forward = graph.ops[0]
        self.assertEqual((forward["op"], forward["type"], forward["in"], forward["out"], forward["flops"]),
                         ("conv.conv2d.0", "conv2d", ["images", "conv.weight", "conv.bias"], ["t3"], "1100N"))
        self.assertEqual(forward["attrs"], {"stride": ["2", "2"], "pad": ["1", "1"]})
        backward = [(op["type"], op["in"], op["out"], op["flops"]) for op in graph.ops[5:8]]
        self.assertEqual(backward, [("conv2d_dgrad", ["conv.weight", "t7"], ["t11"], "1080N"),
                                    ("conv2d_bgrad", ["t7"], ["conv.bias:grad"], "20N"),
                                    ("conv2d_wgrad", ["images", "t7"], ["conv.weight:grad"], "1080N")])

    def test_every_output_mask(self):
        for mask in range(1, 8):
            wanted = [bool(mask & bit) for bit in (1, 2, 4)]
            recording = copy.deepcopy(TINY)
            op = recording["ops"][5]
            op["outputs"] = [s for s, w in zip((11, 8, 9), wanted) if w]
            op["attrs"]["output_mask"] = wanted
            op["attrs"]["shapes"][3:] = [s for s, w in zip(op["attrs"]["shapes"][3:], wanted) if w]
            op["flops_per_sample"] = 1080 * (wanted[0] + wanted[1]) + 20 * wanted[2]
            recording["ops"] = recording["ops"][:6]
            code, message, graph = self.convert(recording)
            self.assertEqual((code, message), (0, ""))
            expected = [t for t, w in (("conv2d_dgrad", wanted[0]), ("conv2d_bgrad", wanted[2]),
                                       ("conv2d_wgrad", wanted[1])) if w]
            self.assertEqual([op["type"] for op in graph.ops[5:]], expected)

    def test_convolution_over_a_slice_stays(self):
        recording = copy.deepcopy(TINY)
        recording["ops"][5]["attrs"]["shapes"][0] = ["N", 4, 2, 2]
        graph = self.convert(recording)[2]
        self.assertEqual((graph.ops[5]["type"], graph.ops[5]["class"]), ("aten.convolution_backward", "conv"))
        self.assertEqual(graph.ops[5]["attrs"]["output_mask"], ["1", "1", "1"])

    def test_batch_norm_updates_running_statistics_as_effects(self):
        op = self.tiny().ops[1]
        self.assertEqual((op["in"], op["out"], op["effects"], op["flags"]),
                         (["t3"], ["t5"], ["bn:_mean"], ["batch-coupled"]))
        self.assertEqual(op["attrs"], {"training": "1", "eps": "1e-05"})

    def test_loss_flags(self):
        self.assertEqual(self.tiny().ops[2]["flags"], ["batch-mean"])
        recording = copy.deepcopy(TINY)
        recording["ops"][2]["attrs"]["reduction"] = 2  # a sum
        self.assertEqual(self.convert(recording)[2].ops[2]["flags"], [])

    def test_partial_write_reads_what_it_leaves(self):
        self.assertEqual(self.tiny().ops[4]["in"], ["t5", "t7"])

    def test_bytes_that_the_shape_does_not_explain(self):
        tensor = self.tiny().of("t10")
        self.assertEqual((tensor.dtype, tensor.dims), ("u8", [(5, 7)]))

    def test_bad_input(self):
        cases = [
            ("schema", lambda r: r.update(schema="planc-opgraph-2")),
            ("tensors: a list", lambda r: r.update(tensors={})),
            ("ops: a list", lambda r: r.pop("ops")),
            ("batch_example", lambda r: r.update(batch_example=-1)),
            ("tensors[3]: an object", lambda r: r["tensors"].__setitem__(3, 7)),
            ("tensors[3]: kind", lambda r: r["tensors"][3].update(kind="weight")),
            ("tensors[3]: bytes_fixed", lambda r: r["tensors"][3].update(bytes_fixed=2**63)),
            ("tensors[3]: bytes_per_sample", lambda r: r["tensors"][3].update(bytes_per_sample=1.5)),
            ("tensors[3]: shape_per_sample", lambda r: r["tensors"][3].update(shape_per_sample=[1])),
            ("tensors[3]: shape_example", lambda r: r["tensors"][3].update(shape_example=[-2])),
            ("tensors[3]: name", lambda r: r["tensors"][3].update(name=[])),
            ("ops[0]: inputs", lambda r: r["ops"][0].update(inputs=[12])),
            ("ops[0]: outputs", lambda r: r["ops"][0].update(outputs=[-1])),
            ("ops[0]: inputs", lambda r: r["ops"][0].update(inputs=[True])),
            ("ops[0]: phase", lambda r: r["ops"][0].update(phase="sideways")),
            ("ops[0]: name", lambda r: r["ops"][0].pop("name")),
            ("ops[0]: attrs", lambda r: r["ops"][0].update(attrs=[])),
            ("ops[0]: attrs: stride", lambda r: r["ops"][0]["attrs"].update(stride=["1", "1"])),
            ("ops[1]: inplace", lambda r: r["ops"][1].update(inplace=[3])),
            ("ops[1]: attrs: eps", lambda r: r["ops"][1]["attrs"].update(eps=float("1e999"))),
            ("ops[5]: flops", lambda r: r["ops"][5].update(flops_per_sample=2181)),
            ("ops[5]: flops", lambda r: r["ops"][5].update(flops_per_sample=3)),
            ("ops[5]: attrs: output_mask", lambda r: r["ops"][5]["attrs"].update(output_mask=[True])),
        ]
        for place, change in cases:
            with self.subTest(place):
                recording = copy.deepcopy(TINY)
                change(recording)
                text = json.dumps(recording).replace("Infinity", "1e999")
                code, message, graph = self.convert(text)
                self.assertEqual((code, graph), (3, None))
                self.assertIn(place, message)
                self.assertEqual(message.count("\n"), 1)

    def test_bad_json(self):
        for text, part in (("", "1:1:"), ("{", "1:2:"), ('{"a": 1, "a": 2}', '"a" appears twice'), ("[]", "an object"),
                           ('{"schema": NaN}', "NaN"), ("[" * 100_000, "not a JSON text"), ('"\\ud800"', "an object"),
                           (json.dumps(TINY)[:-20], "1:"), ("9" * 5000, "")):
            code, message, graph = self.convert(text)
            self.assertEqual((code, graph, message.count("\n")), (3, None, 1), text[:30])
            self.assertIn(part, message)

    def test_absent_files(self):
        self.assertEqual(run(from_recording, "/nonexistent.json", "-o", "out.yaml")[0], 3)
        self.assertEqual(run(from_recording)[0], 2)
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "in.json")
            with open(source, "w", encoding="utf-8") as file:
                json.dump(TINY, file)
            self.assertEqual(run(from_recording, source, "-o", os.path.join(folder, "absent", "out.yaml"))[0], 5)


if __name__ == "__main__":
    unittest.main()
