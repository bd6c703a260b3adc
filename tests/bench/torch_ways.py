"""What PyTorch's users do where a step does not fit, as steps to be recorded (bench_torch_ways.py)."""

import math

import torch
from torch import nn
from torch._functorch import config
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.forward_of = block.forward

    def forward(self, *args):
        return checkpoint(self.forward_of, *args, use_reentrant=False, preserve_rng_state=False)


def checkpointing(made):
    """torch.utils.checkpoint around each block."""
    for block in made.blocks:
        block.forward = Checkpointed(block).forward
    return made.loss


class Offloading:
    """torch.autograd.graph.save_on_cpu without its copies, whose bytes it counts: what is saved has no memory until it is
    read, and then new memory for each read."""

    def __init__(self):
        self.out = self.back = self.copies = 0

    def pack(self, tensor):
        self.out += tensor.numel() * tensor.element_size()
        self.copies += 1
        return tensor.shape, tensor.stride(), tensor.dtype

    def unpack(self, packed):
        shape, stride, dtype = packed
        self.back += math.prod(shape) * dtype.itemsize
        self.copies += 1
        return torch.empty_strided(shape, stride, dtype=dtype, device="meta")

    def __call__(self, made):
        def loss(*args):
            self.__init__()
            with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
                return made.loss(*args)
        return loss


# --- torch.compile's activation memory budget -------------------------------------------------------------------------


def boxed(graph):
    """Runs a traced graph call by call; what the list of its arguments holds, and makes, lives no longer than it is used."""
    for node in graph.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("meta")}
    return lambda args: torch.fx.Interpreter(graph).boxed_run(args)


def partition(made, budget, solver):
    """The graphs of forward and backward passes that torch.compile would make code of, and how many results of the first
    are its user's. Traced on the processor: PyTorch does not differentiate what it traces on the meta device."""
    parts = []

    def keep(joint, inputs, **options):
        parts.append((*min_cut_rematerialization_partition(joint, inputs, **options), options["num_fwd_outputs"]))
        return parts[0][:2]

    def run(tensors, *args):
        return made.loss_of(lambda x: functional_call(model, tensors, (x,)), *args)

    def as_it_is(graph, _):
        function = boxed(graph)
        function._boxed_call = True
        return function

    with FakeTensorMode(), torch.device("cpu"), config.patch(activation_memory_budget=budget,
                                                             activation_memory_budget_solver=solver):
        model, args = made.make()
        traced = aot_function(run, fw_compiler=as_it_is, bw_compiler=as_it_is, partition_fn=keep)
        traced({**dict(model.named_parameters()), **dict(model.named_buffers())}, *args)
    return parts[0]


class Partitioned(torch.autograd.Function):
    """What the first of them gives that is not its user's is what the second is given, by its names."""

    @staticmethod
    def forward(ctx, parts, *tensors):
        first, second, n_results = parts
        results = boxed(first)(list(tensors))
        names = [node.name for node in next(iter(first.graph.find_nodes(op="output"))).args[0]]
        ctx.second, ctx.kept = second, dict(zip(names[n_results:], results[n_results:]))
        return results[n_results - 1]

    @staticmethod
    def backward(ctx, gradient):
        given = [ctx.kept.pop(node.name, gradient) for node in ctx.second.graph.find_nodes(op="placeholder")]
        return None, *boxed(ctx.second)(given)


def compiled(budget, solver="dp"):
    """torch.compile's partition under an activation memory budget, with its own solver or another. Calls are not fused."""
    def compute(made):
        parts = partition(made, budget, solver)
        tensors = [*made.model.parameters(), *made.model.buffers()]
        return lambda *args: Partitioned.apply(parts, *tensors, *args)
    return compute
