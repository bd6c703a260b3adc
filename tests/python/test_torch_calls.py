#!/usr/bin/env python3
"""What export_torch.py says of whole training steps against what PyTorch runs. Small models run one step on the
processor, under a watch that knows nothing of the exporter: it sees each call's storages and compares their contents
before and after. The graph has to have the same calls in the same order, on the same storages, of the same sizes and
types."""

import os
import subprocess
import tempfile
import unittest
import warnings
from dataclasses import dataclass

from torchexport import graph_of, torch, total
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.checkpoint import checkpoint

from graphfile import legal_name
from graphtest import EXISTS_BEFORE, ROOT, GraphTest
from torchmodels import Block, classify, predict, sgd

import export_torch

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
BATCH = 3
OLD = torch.__version__.startswith("1.")
DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.int64: "i64", torch.bool: "bool"}

# The ATen calls that each of planc's types stands for.
MEANS = {"conv2d": ["convolution"], "linear": ["addmm", "mm"], "linear_wgrad": ["mm"], "linear_dgrad": ["mm"],
         "linear_bgrad": ["sum.dim_IntList"], "matmul": ["bmm"], "matmul_nt": ["bmm"], "matmul_tn": ["bmm"],
         "relu": ["relu", "relu_"], "relu_grad": ["threshold_backward"], "gelu": ["gelu"],
         "gelu_grad": ["gelu_backward"],
         "add": ["add.Tensor", "add_.Tensor"], "sgd": ["add_.Tensor"], "avgpool2d": ["avg_pool2d"],
         "avgpool2d_grad": ["avg_pool2d_backward"], "concat": ["cat"], "batchnorm": ["native_batch_norm"],
         "batchnorm_grad": ["native_batch_norm_backward"], "layernorm": ["native_layer_norm"],
         "layernorm_grad": ["native_layer_norm_backward"], "softmax": ["_softmax"],
         "softmax_grad": ["_softmax_backward_data"], "embedding": ["embedding"],
         "embedding_grad": ["embedding_dense_backward"]}
CONV_GRADS = ("conv2d_dgrad", "conv2d_bgrad", "conv2d_wgrad")  # in this order, of results 0, 2 and 1
# Calls that need no element of some operand: its shape alone, or it is overwritten.
UNREAD = ("_like", "nll_loss_backward", "max_pool2d_with_indices_backward", "batch_norm_backward",
          "convolution_backward", "native_layer_norm_backward", "avg_pool2d_backward", ".out", "zero_", "fill_.Scalar",
          "fill_.Tensor", "copy_", "bernoulli_.float")


# --- Watching a step --------------------------------------------------------------------------------------------------


def storage(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


@dataclass
class Call:
    """One call, with numbers of storages."""

    name: str
    phase: str
    reads: set
    creates: list
    writes: set  # by its schema
    changes: set  # by their contents
    parts: set  # written, but not to their whole
    draws: bool  # random numbers
    results: list  # None for what is no tensor


class Watch(TorchDispatchMode):
    """Every storage is kept, so that its address tells it apart; tensors are not, as PyTorch counts who holds a
    gradient."""

    def __init__(self):
        super().__init__()
        self.numbers, self.storages, self.dtypes, self.calls, self.phase = {}, [], [], [], "forward"

    def number(self, tensor):
        kept = storage(tensor)
        if kept.data_ptr() not in self.numbers:
            self.numbers[kept.data_ptr()] = len(self.storages)
            self.storages.append(kept)
            self.dtypes.append(tensor.dtype)
        return self.numbers[kept.data_ptr()]

    def content(self, number):
        return bytes(self.storages[number])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor) and t.numel()
                 and (t.dim() or storage(t).data_ptr() in self.numbers)]  # else a number that came as a tensor
        operands = [self.number(t) for t in given]
        before, drawn = {n: self.content(n) for n in operands}, torch.get_rng_state()
        known = len(self.storages)
        result = function(*args, **kwargs)
        results = [t if isinstance(t, torch.Tensor) and t.numel() else None for t in tree_flatten(result)[0]]
        made = [None if t is None else self.number(t) for t in results]
        writes = []
        for i, argument in enumerate(function._schema.arguments):
            if argument.alias_info and argument.alias_info.is_write and not function.__name__.startswith(
                    ("unsqueeze_", "squeeze_", "t_", "detach_", "transpose_")):
                value = args[i] if i < len(args) else kwargs.get(argument.name)
                writes += [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor) and t.numel()]
        changes = {n for n, content in before.items() if content != self.content(n)}
        creates = [n for n in made if n is not None and n >= known]
        is_view = not creates and any(n is not None for n in made)
        if function.namespace != "profiler" and (creates or writes or changes or operands and not is_view):
            parts = {self.number(t) for t in writes if t.numel() * t.element_size() < storage(t).nbytes()}
            self.calls.append(Call(str(function).partition(".")[2].removesuffix(".default"), self.phase,
                                   set(operands), creates, {self.number(t) for t in writes}, changes, parts,
                                   not torch.equal(drawn, torch.get_rng_state()), made))
        return result


def watched(model, batch, loss_fn, optimizer):
    """The calls of the second step, and the numbers of the storages that exist before it by their names in a graph."""
    watch = Watch()
    for watching in (False, True):
        optimizer.zero_grad(set_to_none=True)
        if watching:
            names = {watch.number(t): n for n, t in [*model.named_buffers(), *model.named_parameters()] if t.numel()}
            names |= {watch.number(t): f"input{i}" for i, t in enumerate(batch)}
            of = {p: n for n, p in model.named_parameters()}
            names |= {watch.number(t): f"{of[p]}:{key}" for p, state in optimizer.state.items()
                      for key, t in state.items() if isinstance(t, torch.Tensor)}
            with watch:
                loss_fn(model, *batch).backward()
                watch.phase = "optimizer"
                optimizer.step()
        else:
            loss_fn(model, *batch).backward()
            optimizer.step()
    return watch, {number: legal_name(name) for number, name in names.items()}


# --- Against a graph --------------------------------------------------------------------------------------------------


class CallsTest(GraphTest):
    def compare(self, model, batch, loss_fn=total, optimizer=sgd, devices=("cpu", "meta"), seed=0):
        """Steps on the host, exports from each device, and compares."""
        torch.manual_seed(seed)
        graphs = {}
        for device in devices:
            recording, _ = export_torch.record(model, batch, lambda *given: loss_fn(*given), optimizer, device=device)
            graphs[device] = graph_of(recording)
            self.check_form(graphs[device])
        watch, names = watched(model, batch, loss_fn, optimizer(model.parameters()))
        for device, graph in graphs.items():
            with self.subTest(device):
                calls = watch.calls
                if device == "meta" and OLD:  # 1.13 makes a scalar on the host at each step, for its profiler
                    calls = [c for c in calls if (c.name, c.phase) != ("zeros", "optimizer")]
                self.compare_calls(watch, calls, dict(names), graph)
        return graphs[devices[0]]

    def compare_calls(self, watch, calls, names, graph):
        ops = list(graph.ops)
        roots = {id(tensor): name for name, tensor in graph.tensors.items()}
        for i, call in enumerate(calls):
            place = f"call {i}: {call.name}"
            taken = self.take(ops, call, place)
            outs = [roots[id(graph.of(n).root)] for op in taken for n in op["out"]]
            effects = {roots[id(graph.of(n).root)] for op in taken for n in op["effects"]}
            ins = {roots[id(graph.of(n).root)] for op in taken for n in op["in"]} | effects
            results = call.results if len(taken) < 2 else [call.results[k] for k in (0, 2, 1)]
            new = [n for n in dict.fromkeys(results) if n in call.creates]
            fresh = [name for name in dict.fromkeys(outs) if name not in names.values()]
            self.assertEqual(len(new), len(fresh), f"{place} creates")
            names.update(zip(new, fresh))
            self.compare_storages(watch, new, names, graph, place)
            self.assertEqual(set(outs) | effects, {names[n] for n in {*call.creates, *call.writes, *call.changes}},
                             f"{place} writes")
            reads = {names[n] for n in call.reads}
            self.assertLessEqual(ins, reads, f"{place} reads what it is not given")
            if not call.name.endswith(UNREAD) and not call.name.startswith("new_"):
                self.assertEqual(ins, reads, f"{place} reads")
            self.assertLessEqual({names[n] for n in call.parts}, ins, f"{place} keeps the rest")
            self.assertEqual(any("stochastic" in op["flags"] for op in taken), call.draws, f"{place} draws")
        self.assertEqual([op["type"] for op in ops], [], "calls that never ran")

    def take(self, ops, call, place):
        """The ops that a call became, taken off the list."""
        self.assertTrue(ops, f"{place} is not in the graph")
        if call.name == "convolution_backward" and ops[0]["type"] in CONV_GRADS:
            count = sum(n is not None for n in call.results)
            return [ops.pop(0) for _ in range(count)]
        op = ops.pop(0)
        self.assertIn(call.name, MEANS.get(op["type"], [op["type"].removeprefix("aten.")]), place)
        return [op]

    def compare_storages(self, watch, numbers, names, graph, place):
        for number in numbers:
            tensor = graph.of(names[number])
            self.assertNotIn(tensor.kind, EXISTS_BEFORE, place)
            self.assertEqual(tensor.bytes(BATCH), watch.storages[number].nbytes(), f"{place} makes {names[number]}")
            if tensor.dtype != "u8":
                self.assertEqual(tensor.dtype, DTYPES[watch.dtypes[number]], f"{place} makes {names[number]}")


class Of(nn.Module):
    """Two linear layers around a function."""

    def __init__(self, function, width=8, between=None):
        super().__init__()
        self.first, self.last, self.function = nn.Linear(width, width), nn.Linear(between or width, 5), function
        self.register_buffer("average", torch.ones(width))

    def forward(self, x):
        return self.last(self.function(self, self.first(x)))


def rows(width=8):
    return (torch.randn(BATCH, width),)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01, foreach=False)


class Rotary(nn.Module):
    """A GPT of two layers with rotary positions and one matrix for words in and out."""

    def __init__(self, width=8, heads=2, length=6, words=11):
        super().__init__()
        self.heads, half = heads, width // heads // 2
        self.words, self.final = nn.Embedding(words, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "before": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width, bias=False),
            "out": nn.Linear(width, width), "after": nn.LayerNorm(width),
            "up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width)}) for _ in range(2))
        self.register_buffer("angles", torch.arange(length)[:, None] * 100.0 ** (-torch.arange(half) / half))
        self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1))

    @staticmethod
    def turn(x, angles):
        a, b = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()

    def forward(self, tokens):
        x, angles = self.words(tokens), torch.cat([self.angles, self.angles], -1)
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["before"](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = self.turn(q, angles), self.turn(k, angles)
            shares = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(self.later, float("-inf")).softmax(-1)
            x = x + layer["out"]((shares @ v).transpose(1, 2).flatten(2))
            x = x + layer["down"](functional.gelu(layer["up"](layer["after"](x))))
        return self.final(x) @ self.words.weight.t()


class Averaging(torch.optim.SGD):
    """Keeps a running mean of the parameters in its state."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "mean" not in state:
                    state["mean"] = p.detach().clone()
                state["mean"].mul_(0.9).add_(p, alpha=0.1)


class Clipping(torch.optim.SGD):
    def step(self, closure=None):
        nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], 1.0)
        super().step(closure)


def plain(kind):
    return lambda parameters: kind(parameters, lr=0.1, foreach=False)


class ModelsTest(CallsTest):
    def test_convolutions(self):
        model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
                              Block(4, 4, 2, False), nn.AvgPool2d(2), nn.ConvTranspose2d(4, 4, 2), nn.GroupNorm(2, 4),
                              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4, 5))
        self.compare(model, (torch.randn(BATCH, 3, 8, 8), torch.tensor([0, 3, 1])), classify)

    def rotary(self):
        return Rotary(), (torch.randint(11, (BATCH, 6)), torch.randint(11, (BATCH, 6)))

    def test_rotary_positions(self):
        graph = self.compare(*self.rotary(), predict)
        (joined,) = [op for op in graph.ops if op["type"] == "concat"]
        self.assertEqual(joined["in"], ["angles", "angles"])
        self.assertEqual(sum(op["type"] == "aten.cat" for op in graph.ops), 8)  # of halves, which are not dense
        self.compare(*self.rotary(), predict, adam, devices=("cpu",))

    @unittest.skipUnless(OLD, "later versions run the host's fused layer, whose workspace follows no law")
    def test_recurrent_layers(self):
        class Net(nn.LSTM):
            def forward(self, x):
                return super().forward(x)[0]

        self.compare(Net(4, 3, num_layers=2, batch_first=True), (torch.randn(BATCH, 5, 4),), devices=("cpu",))

    def test_unrolled_cells(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell, self.out = nn.GRUCell(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                state = None
                for word in x.unbind(1):
                    state = self.cell(word, state)
                return self.out(state)

        self.compare(Net(), (torch.randn(BATCH, 3, 4),))

    def test_autocast(self):
        def loss(model, *given):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return functional.mse_loss(model(given[0]).float(), given[1])

        model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 5))
        graph = self.compare(model, (*rows(), torch.randn(BATCH, 5)), loss, devices=("cpu",))
        self.assertIn("bf16", {graph.of(op["out"][0]).dtype for op in graph.ops if op["type"] == "linear"})

    def test_random_numbers(self):
        def function(module, x):
            kept = torch.empty_like(x).bernoulli_(0.7).div_(0.7)
            noise = torch.randn_like(x) * 0.1 + torch.rand(x.shape, device=x.device)
            return torch.native_dropout(x * kept + noise, 0.3, True)[0]

        graph = self.compare(Of(function), rows())
        self.assertEqual([op["type"] for op in graph.ops if "stochastic" in op["flags"]],
                         ["aten.bernoulli_.float", "aten.randn_like", "aten.rand", "aten.native_dropout"])

    def test_views(self):
        def function(module, x):
            a, b = x.chunk(2, -1)
            c = torch.stack([a, b, a.expand_as(b)], 1).flatten(1)
            d, e, _ = torch.split(c, [3, 4, 5], 1)
            both = torch.cat([d, x[:, :2], b, d], 1)
            return torch.cat([both, both.view(-1, 2, 6).transpose(1, 2).reshape(-1, 12), e.t().t()], 1)

        self.compare(Of(function, between=2 * (3 + 2 + 4 + 3) + 4), rows())

    def test_mixed_types(self):
        def function(module, x):
            low = x.bfloat16()
            both = torch.cat([low, low * 2], 1).float() + torch.cat([x, low], 1)
            return (x + low) + (low + low).float() + both[:, :8] + (x > 0)

        graph = self.compare(Of(function), rows())
        for op in graph.ops:
            if op["type"] in ("add", "concat"):
                self.assertEqual(len({graph.of(n).dtype for n in op["in"] + op["out"]}), 1, op["op"])

    def test_accumulation(self):
        def loss(model, *given):
            return sum((model(part) - given[1]).square().mean() for part in (given[0], given[0] * 2)) / 2

        self.compare(Of(lambda _, x: functional.relu(x)), (*rows(), torch.randn(BATCH, 5)), loss)

    def test_averages(self):
        def function(module, x):
            with torch.no_grad():
                module.average.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x * module.average

        self.compare(Of(function), rows(), optimizer=plain(Averaging))

    def test_clipping(self):
        self.compare(Of(lambda _, x: torch.tanh(x)), rows(), optimizer=plain(Clipping),
                     devices=("cpu", "meta") if OLD else ("cpu",))

    def test_writes_in_part(self):
        def function(module, x):
            y = x.clone()
            y[:, 1:3] = x[:, 4:6]
            y[:, 3].mul_(2)
            square = x.sum(0).expand(8, 8).clone()
            square.fill_diagonal_(0)
            y.t_().t_()
            y.unsqueeze_(0).squeeze_(0)
            return y @ square

        self.compare(Of(function), rows())

        def number(module, x):
            y = x.clone()
            y[:, 1:3] = 0.5
            return y

        self.compare(Of(number), rows(), devices=("cpu",))  # the meta device makes a tensor of the number

    def test_results_in_given_tensors(self):
        def function(module, x):
            held = torch.empty_like(x)
            with torch.no_grad():
                torch.mul(x, 2, out=held)
            return x + held

        self.compare(Of(function), rows())

    def test_recomputation(self):
        def function(module, x):
            return checkpoint(lambda y: torch.sin(torch.exp(module.first(y))), x, use_reentrant=False)

        self.compare(Of(function), rows())

    def test_values_read(self):
        log = []

        def function(module, x):
            log.append(x.detach().abs().max().item())
            return x

        graph = self.compare(Of(function), rows(), devices=("cpu",))
        (op,) = [op for op in graph.ops if op["type"] == "aten._local_scalar_dense"]
        self.assertEqual((len(op["in"]), op["out"]), (1, []))

    def test_constants(self):
        def function(module, x):
            return x * torch.full((8,), 3.0, device=x.device) + torch.arange(8, device=x.device)

        self.compare(Of(function), rows())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = graph_of(export_torch.record(
                Of(lambda _, x: x * torch.tensor([1.0] * 8, device=x.device)), rows(), total, sgd)[0])
        states = {name for name, tensor in graph.tensors.items() if tensor.kind == "state"}
        self.assertEqual({name for name in states if not name.endswith(":momentum_buffer")}, {"average"})


class PlannedTest(unittest.TestCase):
    """planc takes what these models become, and the plan runs."""

    def test_plans(self):
        def logged(model, *given):
            loss = predict(model, *given)
            loss.item()
            return loss

        for device, loss_fn in (("meta", predict), ("cpu", logged)):
            with self.subTest(device), tempfile.TemporaryDirectory() as folder:
                graph, plan = (os.path.join(folder, name) for name in ("x.yaml", "x.plan"))
                export_torch.export(*ModelsTest().rotary(), loss_fn, adam, graph, device=device)
                environment = {**os.environ, "PLANC_PROFILES": os.path.join(ROOT, "profiles")}
                for command in (["planc", "plan", graph, "--batch", "8", "--device", "a100-40g", "-o", plan],
                                ["planc", "check", plan, "--graph", graph],
                                ["planrun", "exec", plan, "--synthetic", "--iterations", "2"]):
                    done = subprocess.run([os.path.join(BUILD, command[0]), *command[1:]], capture_output=True,
                                          text=True, check=False, env=environment)
                    self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
