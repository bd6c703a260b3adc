#!/usr/bin/env python3
"""Tests of export_torch.py: against recordings of the same models, of what becomes of single calls, and that planc
plans and planrun runs what it writes. What it refuses is in test_torch_refusals.py, and each call of whole steps
against what runs in test_torch_calls.py."""

import os
import subprocess
import tempfile
import unittest

from torchexport import Step, exported, graph_of, torch, types
from torch import nn
from torch.nn import functional

from graphtest import ROOT, Graph, GraphTest, parse_law, run
from sampling import TAKES_ALL, sampled
from torchmodels import LSTM, MODELS, ResNet, classify, images, predict, sgd

import export_torch
import from_recording
import torch_profile
from recording import Recording

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
RECORDINGS = os.path.join(ROOT, "..", "shared", "graphs")
needs_recordings = unittest.skipUnless(os.path.isdir(RECORDINGS), "skipped: ../shared/graphs is absent")


# --- The recorded models ----------------------------------------------------------------------------------------------


@needs_recordings
class RecordedTest(GraphTest):
    """The recordings were made with PyTorch and torchvision by another recorder. Every op and storage is the same one,
    but for the traffic of batch norms, where the recordings count only x, y and their gradients: 8 vectors of C
    elements come in addition forward (scale, shift, statistics read and written, mean and deviation kept) and 5
    backward."""

    def compare(self, model):
        path = os.path.join(RECORDINGS, f"{model}.json")
        recorded = Recording(from_recording.load(path))
        recording, _ = export_torch.record(*MODELS[model](), name=model)
        self.assertEqual(len(recording.ops), len(recorded.ops))
        for i, (ours, theirs) in enumerate(zip(recording.ops, recorded.ops)):
            for key in ("type", "phase", "module", "inputs", "outputs", "inplace", "flops"):
                self.assertEqual(getattr(ours, key), getattr(theirs, key), f"op {i}: {key}")
            vectors = {"aten.native_batch_norm": 8, "aten.native_batch_norm_backward": 5}.get(ours.type, 0)
            channels = ours.views["input"].dims[1][0] if vectors else 0
            expected = theirs.traffic[0] + 4 * vectors * channels, theirs.traffic[1]
            self.assertEqual(ours.traffic, expected, f"op {i}: {ours.type}")
        self.assertEqual(len(recording.storages), len(recorded.storages))
        for i, (ours, theirs) in enumerate(zip(recording.storages, recorded.storages)):
            for key in ("kind", "name", "dtype", "dims", "bytes"):
                self.assertEqual(getattr(ours, key), getattr(theirs, key), f"storage {i}: {key}")
        graph, converted = graph_of(recording), Graph(from_recording.convert(path).text())
        self.check_form(graph)
        self.assertEqual(graph.parameters(), converted.parameters())
        for n in (1, 7, 64):
            self.assertEqual(graph.liveness_peak(n), converted.liveness_peak(n))
        return graph

    def counts(self, graph, **expected):
        found = types(graph)
        self.assertEqual({type: found.count(type) for type in expected}, expected)
        self.assertFalse({"aten.convolution", "aten.convolution_backward", "aten.addmm", "aten.mm"} & set(found))

    def test_vgg16(self):
        graph = self.compare("vgg16")
        self.counts(graph, conv2d=13, conv2d_dgrad=12, conv2d_wgrad=13, conv2d_bgrad=13, relu=15, relu_grad=15,
                    linear=3, linear_dgrad=3, linear_wgrad=3, linear_bgrad=3)

    def test_resnet34(self):
        self.counts(self.compare("resnet34"), conv2d=36, conv2d_dgrad=35, conv2d_wgrad=36, conv2d_bgrad=0, batchnorm=36,
                    batchnorm_grad=36, relu=33, relu_grad=33, linear=1, linear_wgrad=1)

    @unittest.skipUnless(TAKES_ALL, "its calls are those of ResNet-34")
    def test_resnet50(self):
        self.counts(self.compare("resnet50"), conv2d=53, conv2d_dgrad=52, conv2d_wgrad=53, conv2d_bgrad=0, batchnorm=53,
                    batchnorm_grad=53, relu=49, relu_grad=49, linear=1, linear_wgrad=1)

    @unittest.skipUnless(torch.__version__.startswith("1.13"), "later versions leave out slices of everything")
    def test_lstm(self):
        graph = self.compare("lstm4_h1024_s25")
        self.counts(graph, linear=201, linear_wgrad=201, linear_bgrad=201, linear_dgrad=197, concat=100)
        steps = {(op["loop"], int(op["step"])) for op in graph.ops if "loop" in op}
        self.assertEqual(steps, {(f"cells.{layer}", step) for layer in range(4) for step in range(25)})


# --- Single calls -----------------------------------------------------------------------------------------------------


class CallTest(GraphTest):
    def only(self, graph, type):
        (op,) = [op for op in graph.ops if op["type"] == type]
        return op

    def test_linear_and_its_gradients(self):
        graph = exported(nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 4)),
                         torch.zeros(2, 3, 4))
        self.check_form(graph)
        forward = [op for op in graph.ops if op["type"] == "linear"]
        self.assertEqual([op["in"][1:] for op in forward], [["2.weight", "2.bias"], ["4.weight", "4.bias"]])
        self.assertEqual([op["flops"] for op in forward], [f"{2 * 12 * 5 + 5}N", f"{2 * 5 * 4 + 4}N"])
        flat = graph.of(forward[0]["in"][0])
        self.assertEqual((flat.dims, flat.root.dims), ([(0, 1), (12, 0)], [(0, 1), (3, 0), (4, 0)]))
        wgrad = self.only(graph, "linear_wgrad")  # the other one's dy is one number, expanded
        self.assertEqual((wgrad["in"][0], wgrad["out"]), (forward[0]["in"][0], ["2.weight:grad"]))

    def test_views_start_where_they_did(self):
        class Halves(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                a, b = torch.relu(x).view(2, -1, 4)
                return self.first(a) * self.second(b)

        graph = exported(Halves(), torch.zeros(2, 4, 4))
        a, b = (op["in"][0] for op in graph.ops if op["type"] == "linear")
        self.assertEqual([(graph.of(x).root, graph.of(x).offset) for x in (a, b)],
                         [(graph.of(a).root, (0, 0)), (graph.of(a).root, (0, 32))])

    def test_convolution(self):
        graph = exported(nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1, 1, groups=2), nn.ReLU()), torch.zeros(2, 4, 8, 8))
        self.assertEqual(self.only(graph, "conv2d")["attrs"], {"stride": ["2", "2"], "pad": ["1", "1"], "groups": "2"})
        self.assertEqual(types(graph, "backward")[-2:], ["conv2d_bgrad", "conv2d_wgrad"])
        self.assertEqual(self.only(graph, "conv2d_wgrad")["flops"], f"{2 * 6 * 16 * 2 * 9}N")
        self.assertEqual(self.only(graph, "conv2d_bgrad")["flops"], f"{6 * 16}N")

    def test_what_is_no_conv2d_stays(self):
        for module, shape in ((nn.Conv1d(4, 6, 3), (2, 4, 8)), (nn.ConvTranspose2d(4, 6, 3), (2, 4, 8, 8))):
            graph = exported(module, torch.zeros(*shape))
            op = self.only(graph, "aten.convolution")
            out = graph.of(op["out"][0])
            spread = 6 * 6 if len(shape) == 3 else 4 * 64  # output, or input where it is transposed
            per_element = 4 * 3 if len(shape) == 3 else 6 * 9
            self.assertEqual(parse_law(op["flops"]), (0, 2 * spread * per_element + out.bytes(1) // 4))
            self.assertFalse([t for t in types(graph) if t.startswith("conv2d")])

    def test_batch_norm(self):
        model = nn.Sequential(nn.BatchNorm2d(3, eps=1e-3), nn.ReLU())
        op = self.only(exported(model, torch.zeros(2, 3, 4, 4)), "batchnorm")
        self.assertEqual((op["in"][1:], op["effects"]), (["0.weight", "0.bias"], ["0.running_mean", "0.running_var"]))
        self.assertEqual(op["attrs"], {"momentum": "0.1", "epsilon": "0.001"})
        model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, affine=False))
        op = self.only(exported(model, torch.zeros(2, 3, 4, 4)), "aten.native_batch_norm")
        self.assertEqual((op["effects"], op["flags"]), (["1.running_mean", "1.running_var"], ["batch-coupled"]))

    def test_pooling_and_concatenation(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 3, 1)

            def forward(self, x):
                y = functional.avg_pool2d(self.conv(x), 2)
                return torch.relu(torch.cat([y, functional.avg_pool2d(x, 3, 2, 1)], 1))

        graph = exported(Net(), torch.zeros(2, 3, 4, 4))
        pools = [op["attrs"] for op in graph.ops if op["type"] == "avgpool2d"]
        self.assertEqual(pools, [{"kernel": ["2", "2"], "stride": ["2", "2"], "pad": ["0", "0"]},
                                 {"kernel": ["3", "3"], "stride": ["2", "2"], "pad": ["1", "1"]}])
        self.assertEqual(self.only(graph, "concat")["attrs"], {"axis": "1"})
        ceil = exported(nn.Sequential(nn.Conv2d(3, 3, 1), nn.AvgPool2d(2, ceil_mode=True)), torch.zeros(2, 3, 5, 5))
        self.assertIn("aten.avg_pool2d", types(ceil))

    def test_ops_of_transformers(self):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.norm = nn.Embedding(17, 8), nn.LayerNorm(8, eps=1e-6)
                self.q, self.k, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 5)

            def forward(self, tokens):
                x = self.norm(self.words(tokens))
                shares = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2), -1)
                return self.out(functional.gelu(shares @ x))

        graph = exported(Attention(), torch.zeros(2, 6, dtype=torch.long))
        self.check_form(graph)
        ours = {"embedding", "layernorm", "matmul_nt", "softmax", "matmul", "gelu"}
        self.assertEqual([t for t in types(graph, "forward") if t in ours],
                         ["embedding", "layernorm", "matmul_nt", "softmax", "matmul", "gelu"])
        self.assertEqual([t for t in types(graph, "backward") if t.startswith("matmul") or t[:-5] in ours],
                         ["gelu_grad", "matmul_tn", "matmul_nt", "softmax_grad", "matmul_tn", "matmul",
                          "layernorm_grad", "embedding_grad"])
        self.assertEqual(self.only(graph, "embedding")["in"][1], "words.weight")
        self.assertEqual(self.only(graph, "embedding_grad")["out"], ["words.weight:grad"])
        norm = self.only(graph, "layernorm")
        self.assertEqual((norm["in"][1:], norm["attrs"]), (["norm.weight", "norm.bias"], {"epsilon": "1e-06"}))
        self.assertEqual([graph.of(n).dims for n in norm["out"][1:]], [[(0, 1), (6, 0)]] * 2)
        self.assertEqual(self.only(graph, "layernorm_grad")["in"][2:4], norm["out"][1:])
        scores = next(op for op in graph.ops if op["type"] == "matmul_nt")
        self.assertEqual([graph.of(n).dims[1:] for n in scores["in"] + scores["out"]],
                         [[(6, 0), (8, 0)], [(6, 0), (8, 0)], [(6, 0), (6, 0)]])
        self.assertEqual(scores["flops"], f"{2 * 6 * 6 * 8}N")

    def test_what_transformers_do_otherwise_stays(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.norm = nn.Embedding(9, 4, padding_idx=0), nn.LayerNorm((3, 4))

            def forward(self, tokens):
                x = functional.gelu(self.norm(self.words(tokens)), approximate="tanh")
                return torch.softmax(x.transpose(1, 2) @ x, 1).relu()

        found = types(exported(Net(), torch.zeros(2, 3, dtype=torch.long)))
        for type in ("native_layer_norm", "native_layer_norm_backward", "gelu", "gelu_backward", "_softmax",
                     "_softmax_backward_data", "embedding_dense_backward"):
            self.assertIn(f"aten.{type}", found)

    def test_dropout_keeps_bytes(self):
        graph = exported(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.ReLU()), torch.zeros(2, 4))
        op = self.only(graph, "aten.native_dropout")
        self.assertEqual((op["flags"], graph.of(op["out"][1]).dtype), (["stochastic"], "bool"))
        evaluated = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3)).eval()
        self.assertNotIn("aten.native_dropout", types(exported(evaluated, torch.zeros(2, 4))))

    def test_plain_sgd(self):
        graph = exported(nn.Linear(4, 4), torch.zeros(2, 4),
                         optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.25, foreach=False))
        steps = [op for op in graph.ops if op["phase"] == "optimizer"]
        self.assertEqual([(op["type"], op["in"], op["out"], op["attrs"]) for op in steps],
                         [("sgd", ["weight", "weight:grad"], ["weight"], {"lr": "0.25"}),
                          ("sgd", ["bias", "bias:grad.view"], ["bias"], {"lr": "0.25"})])

    def test_attributes_that_a_graph_cannot_hold_are_left_out(self):
        class Masked(nn.Linear):
            def forward(self, x):
                return super().forward(x).masked_fill(x > 0, float("-inf"))

        graph = exported(Masked(4, 4), torch.zeros(2, 4))
        op = next(op for op in graph.ops if op["type"] == "aten.masked_fill.Scalar")
        self.assertEqual(op["attrs"], {})

    def test_an_optimizer_that_takes_all_parameters_at_once(self):
        graph = exported(nn.Linear(4, 4), torch.zeros(2, 4),
                         optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.25, momentum=0.9, foreach=True))
        self.check_form(graph)
        step = [op for op in graph.ops if op["type"].startswith("aten._foreach_add_")][-1]
        self.assertEqual(step["out"], ["weight", "bias"])

    def test_sums_and_concatenations_of_mixed_types_stay(self):
        graph = exported(Step(lambda module, x: torch.cat([module.fc(x) + x.bfloat16(), x], 1)
                              + torch.cat([x.bfloat16(), module.fc(x)], 1)), torch.zeros(2, 4))
        self.assertEqual(types(graph, "forward").count("aten.add.Tensor"), 1)
        self.assertEqual((types(graph).count("concat"), types(graph).count("aten.cat")), (1, 1))

    def test_parts_of_one_storage_are_all_joined(self):
        graph = exported(Step(lambda module, x: torch.cat([module.fc(x), x, x], 1)), torch.zeros(2, 4))
        self.assertEqual(self.only(graph, "concat")["in"][1:], ["input0", "input0"])

    def test_attributes_that_are_not_stated_make_no_type(self):
        for alpha in (len, lambda x: float("inf")):
            graph = exported(Step(lambda module, x, alpha=alpha: torch.add(module.fc(x), x, alpha=alpha(x))),
                             torch.zeros(2, 4))
            self.assertIn("aten.add.Tensor", types(graph, "forward"))
            self.assertNotIn("add", types(graph, "forward"))

    def test_pools_of_single_images_stay(self):
        module = Step(lambda module, x: functional.avg_pool2d(module.fc(x).view(-1, 2, 2), 2))
        graph = exported(module, torch.zeros(2, 4))
        self.assertIn("aten.avg_pool2d", types(graph))

    def test_images_in_two_orders_are_not_joined(self):
        def joined(model, x):
            y = model(x)
            return torch.cat([y, (2 * y).contiguous(memory_format=order)], 1).sum()

        for order, type in ((torch.channels_last, "aten.cat"), (torch.contiguous_format, "concat")):
            self.only(exported(nn.Conv2d(3, 4, 3), torch.zeros(2, 3, 8, 8), loss=joined), type)

    def test_means_over_the_batch(self):
        def loss(reduction):
            return lambda model, x: functional.mse_loss(model(x), x, reduction=reduction)

        for reduction, flags in (("mean", ["batch-mean"]), ("sum", [])):
            graph = exported(nn.Linear(4, 4), torch.zeros(2, 4), loss=loss(reduction))
            for type in ("aten.mse_loss", "aten.mse_loss_backward"):
                self.assertEqual(self.only(graph, type)["flags"], flags)

    def test_batch_norm_of_given_statistics_is_not_coupled(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
        for op in exported(model, torch.zeros(2, 4)).ops:
            self.assertEqual((op["flags"], op["effects"]), ([], []))

    def test_all_that_draw_random_numbers(self):
        """By PyTorch's own account. Those that are made of others are never called themselves, as their parts are;
        those of fused layers draw where they drop."""
        made_of_others = {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "rrelu"}
        fused = ("attention", "_cudnn_", "lstm", "gru", "rnn_", "miopen_rnn", "_fused_sdp_choice")
        for schema in torch._C._jit_get_all_schemas():
            space, _, name = schema.name.partition("::")
            call = getattr(getattr(torch.ops.aten, name, None), schema.overload_name or "default", None)
            if space != "aten" or call is None or name.startswith("_no_grad_") or any(part in name for part in fused):
                continue
            draws = torch.Tag.nondeterministic_seeded in call.tags or "generator" in [a.name for a in schema.arguments]
            if draws and name.removesuffix("_") not in made_of_others | {"_nested_tensor_softmax_with_shape"}:
                self.assertIn(name.removesuffix("_"), from_recording.STOCHASTIC)

    def test_partial_write_keeps_the_rest(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                y = self.fc(x)
                with torch.no_grad():
                    y[:, 1:3].mul_(2)
                return y

        graph = exported(Net(), torch.zeros(2, 4))
        op = next(op for op in graph.ops if op["type"] == "aten.mul_.Tensor")
        self.assertEqual((op["in"], op["traffic"]), (op["out"], "16N"))


# --- What exists before, and how a module is given --------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 6)
        self.out = nn.Linear(6, 10, bias=False)
        self.out.weight = self.words.weight

    def forward(self, tokens):
        return self.out(self.words(tokens))


class ModuleTest(GraphTest):
    def test_tied_parameters_are_one(self):
        graph = exported(Tied(), torch.zeros(2, 3, dtype=torch.long))
        self.assertEqual([t.bytes(1) for t in graph.storages("param")], [240])
        self.assertEqual([t.bytes(1) for t in graph.storages("grad")], [240])

    def test_modules_that_keep_lists_of_parameters(self):
        graph = exported(nn.LSTM(6, 5, batch_first=True), torch.zeros(2, 3, 6), loss=lambda model, x: model(x)[0].sum())
        self.check_form(graph)
        self.assertEqual(sorted(t.bytes(1) for t in graph.storages("param")), [80, 80, 400, 480])
        self.assertEqual(len(graph.storages("grad")), 4)

    def test_optimizer_as_an_instance(self):
        model = nn.Linear(4, 4)
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        graph = exported(model, torch.zeros(2, 4), optimizer=optimizer)
        names = [name for name, tensor in graph.tensors.items() if tensor.kind == "state"]
        self.assertEqual(names, ["weight:exp_avg", "weight:exp_avg_sq", "bias:exp_avg", "bias:exp_avg_sq"])
        self.assertEqual((model.weight.device.type, model.weight.grad, optimizer.state), ("cpu", None, {}))

    def test_inputs_are_called_as_the_loss_calls_them(self):
        graph = exported(nn.Linear(4, 4), torch.zeros(2, 4), torch.zeros(2, 4),
                         loss=lambda model, given, wanted: (model(given) - wanted).square().mean())
        self.assertEqual([n for n, t in graph.tensors.items() if t.kind == "input"], ["given", "wanted"])
        self.assertEqual(graph.header["loss"], "loss")
        graph = exported(nn.Linear(4, 4), torch.zeros(2, 4))
        self.assertEqual([n for n, t in graph.tensors.items() if t.kind == "input"], ["input0"])

    def test_the_host_runs_the_same_ops(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(),
                              nn.Flatten(), nn.Linear(36, 5))
        batch = torch.zeros(2, 3, 8, 8), torch.zeros(2, dtype=torch.long)
        meta, host = (exported(model, *batch, loss=classify, device=device) for device in ("meta", "cpu"))
        for phase in ("forward", "backward"):
            self.assertEqual(*([op for op in graph.ops if op["phase"] == phase] for graph in (meta, host)))
        # PyTorch 1.13 makes a scalar on the host at each optimizer's step, to mark it for its profiler.
        self.assertEqual(types(meta, "optimizer"), [t for t in types(host, "optimizer") if t != "aten.zeros"])
        self.assertEqual(meta.liveness_peak(64), host.liveness_peak(64))

    def test_what_cannot_be_exported(self):
        class Paired(nn.Linear):
            def forward(self, x):
                return super().forward(x) @ super().forward(x).t()

        class Counting(nn.Linear):
            def forward(self, x):
                for _ in range(len(x)):
                    x = super().forward(x)
                return x

        class Writing(nn.Linear):
            def forward(self, x):
                return super().forward(x.mul_(2))

        x = torch.zeros(2, 4)
        for module, batch, optimizer, what in (
                (Paired(4, 4), (x,), sgd, "not a fixed part plus one per sample"),
                (Counting(4, 4), (x,), sgd, "depends on the batch size"),
                (Writing(4, 4), (x,), sgd, "writes the input"),
                (nn.Linear(4, 4), (x, torch.zeros(3)), sgd, "first dimensions agree"),
                (nn.Linear(4, 4), (torch.zeros(()),), sgd, "first dimensions agree"),
                (nn.Linear(4, 4), (x,), sgd(nn.Linear(4, 4).parameters()), "not the model's")):
            with self.subTest(what), self.assertRaisesRegex(export_torch.CannotExport, what):
                exported(module, *batch, optimizer=optimizer)
        for batches in ((2, 4), (4, 2, 7), (0, 1, 2)):
            with self.assertRaisesRegex(export_torch.CannotExport, "three ascending"):
                exported(nn.Linear(4, 4), x, batches=batches)


# --- Through planc and planrun ----------------------------------------------------------------------------------------


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, program, *arguments):
        done = subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True,
                              check=False, env={**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")})
        self.assertEqual(done.returncode, 0, f"{program} {arguments}: {done.stderr}")
        return done.stdout

    def go(self, *made, batch, budgets):
        """Exports, shows, plans by each policy under a budget that binds, checks and runs."""
        graph, plan = os.path.join(self.folder, "x.yaml"), os.path.join(self.folder, "x.plan")
        export_torch.export(*made, graph)
        self.run_program("planc", "show", graph, "--batch", batch)
        for policy, budget in budgets.items():
            self.run_program("planc", "plan", graph, "--batch", batch, "--device", "a100-40g", "--policy", policy,
                             "--budget", budget, "-o", plan)
            self.run_program("planc", "check", plan, "--graph", graph, "--budget", budget)
            self.assertIn("verified", self.run_program("planrun", "exec", plan, "--synthetic", "--iterations", 2))

    def test_a_measured_profile(self):
        """The profile of a clock that knows no GPU: each call takes 1000 ns for each of its operands."""
        class Clock:
            def run(self, function, args, kwargs):
                cost = 1000 * len(args), 256
                is_conv = function is torch.ops.aten.convolution_backward.default
                return function(*args, **kwargs), [None, cost, (7000, 512)] if is_conv else cost

        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
        batch = torch.zeros(2, 3, 8, 8), torch.zeros(2, dtype=torch.long)
        recording, costs = export_torch.record(model, batch, classify, sgd, device="cpu", clock=Clock())
        converter = from_recording.Converter(recording, "")
        graph, profile = os.path.join(self.folder, "x.yaml"), os.path.join(self.folder, "x.json")
        converter.run().write(graph)
        base = export_torch.read_profile(os.path.join(ROOT, "profiles/h100.json"))
        torch_profile.write(profile, base, converter.made, (2, 4, 7), costs)
        measured = {op["op"]: op["variants"][0]["points"] for op in export_torch.read_profile(profile)["ops"]}
        self.assertEqual(list(measured), [op["op"] for op in Graph(converter.graph.text()).ops])
        wgrad, bgrad = (next(points for name, points in measured.items() if f"conv2d_{part}grad" in name)
                        for part in "wb")
        for points, *expected in ((wgrad, 11000, 256), (bgrad, 7000, 512)):
            self.assertEqual([(p["batch"], p["time_ns"], p["workspace_bytes"]) for p in points],
                             [(batch, *expected) for batch in (2, 4, 7)])
        plan = os.path.join(self.folder, "x.plan")
        self.run_program("planc", "plan", graph, "--batch", 4, "--profile", profile, "-o", plan)
        self.run_program("planrun", "exec", plan, "--synthetic")

    def test_resnet34(self):
        self.go(ResNet((3, 4, 6, 3), False), images, classify, sgd, batch=2,
                budgets=dict.fromkeys(sampled(["modnn", "chen"]), "1150M"))

    def test_lstm(self):
        def words(n):
            return torch.zeros(n, 5, dtype=torch.long), torch.zeros(n, 5, dtype=torch.long)

        self.go(LSTM(4, 64, 1000), words, predict, sgd, batch=8, budgets={"modnn": "812M", "chen": "810M"})


class CommandLineTest(unittest.TestCase):
    SOURCE = """
import torch
def make():
    return (torch.nn.Linear(4, 4), (torch.zeros(2, 4),), lambda model, x: model(x).sum(),
            lambda parameters: torch.optim.SGD(parameters, lr=0.1))
def bad():
    model, _, loss, optimizer = make()
    return model, (torch.zeros(()),), loss, optimizer
def alone():
    return make()[0]
def without_loss():
    model, batch, _, optimizer = make()
    return model, batch, None, optimizer
def with_batch(batch):
    model, _, loss, optimizer = make()
    return model, batch, loss, optimizer
def of_a_tensor():
    return with_batch(torch.zeros(2, 4))
def of_a_maker():
    return with_batch(lambda n: torch.zeros(n, 4))
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.module, self.graph = (os.path.join(folder.name, name) for name in ("module.py", "graph.yaml"))
        with open(self.module, "w", encoding="utf-8") as file:
            file.write(self.SOURCE)

    def test_a_graph(self):
        self.assertEqual(run(export_torch, f"{self.module}:make", "-o", self.graph, "--name", "tiny"), (0, ""))
        with open(self.graph, encoding="ascii") as file:
            graph = Graph(file.read())
        self.assertEqual((graph.header["name"], types(graph, "forward")[0]), ("tiny", "linear"))

    def test_errors(self):
        place = f"{self.module}:make"
        for arguments, code, what in (
                ((self.module, "-o", self.graph), 2, "FILE.py:FUNCTION"),
                ((f"{self.module}:none", "-o", self.graph), 2, "has no none"),
                (("/absent.py:make", "-o", self.graph), 2, "no such Python file"),
                ((place,), 2, "-o"),
                ((place, "-o", self.graph, "--batches", "2,x"), 2, "--batches"),
                ((place, "-o", self.graph, "--profile", "p.json"), 2, "belong together"),
                ((place, "-o", self.graph, "--profile", "p.json", "--base", "b.json"), 2, "needs --device cuda"),
                ((place, "-o", self.graph, "--batches", "4,2,7"), 3, "three ascending"),
                ((f"{self.module}:bad", "-o", self.graph), 3, "first dimensions"),
                ((f"{self.module}:alone", "-o", self.graph), 3, "a module, a batch, a loss function"),
                ((f"{self.module}:without_loss", "-o", self.graph), 3, "a module, a batch, a loss function"),
                ((f"{self.module}:of_a_tensor", "-o", self.graph), 3, "a tuple of tensors, not Tensor"),
                ((f"{self.module}:of_a_maker", "-o", self.graph), 3, "a tuple of tensors, not Tensor"),
                ((place, "-o", "/nonexistent/graph.yaml"), 5, "No such file")):
            with self.subTest(arguments):
                code_found, message = run(export_torch, *arguments)
                self.assertEqual(code_found, code, message)
                self.assertIn(what, message)
                self.assertFalse(os.path.exists(self.graph))

    def test_help_describes_the_function(self):
        code, text = run(export_torch, "--help")
        self.assertEqual(code, 0)
        self.assertIn("(model, batch, loss_fn, optimizer)", text)


if __name__ == "__main__":
    if not os.path.isdir(RECORDINGS):
        print("skipped: the recorded models, ../shared/graphs is absent")
    unittest.main()
