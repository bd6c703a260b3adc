"""Records the user's own training step as it runs, into a graph with one op for each call (planc-graph(5)).

The step runs four times: twice so that everything which stays is there (the optimizer's state), once recorded, and once
more to be held against that. Where a GradScaler skips the update in the second run, it runs as often as it takes until that
has found its scale. What is there before the recorded run and used in it persists. The arguments, and tensors
that no call made, are the user's: they are not planned, and neither is what is left of the run before; their bytes are
told apart. What the step leaves to its user, as results and gradients do, is read once more by the last op, planc.end.

Each op carries the call as attribute `call`, the user's line as `line`, and `tensors` and `results`: of each tensor that
the call is given, and gives, its number in the graph, or -1 for what is not planned. By these planc_torch.follow knows
which call is which.
"""

import gc
import inspect
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode

from .calls import (END, OUTSIDE, READ, SHARES, STORAGE, address_of, described, described_tensor, is_within_an_optimizer, only_views, tensors_on,
                    touches)
from .guests import STARTERS
from .handed_out import is_forgotten
from .methods import Methods
from .micro import Division, divided
from .no_driver import has_driver
from .scratch import clock_of, uses
from torch_recorder import Call, Recorder, called, first_difference, storage_of, tensors_in
from torch_refusals import GRAD_SCALER, CannotExport, definition, replaced

# What runs where no call is seen.
UNSEEN = (*((*starter, "the step starts a thread, whose calls are not seen; let the step make them itself") for starter in STARTERS),
          (torch.cuda.CUDAGraph, "replay", "the step replays a CUDA graph, whose calls are not seen; record it without"))
PHASES = ("forward", "backward", "optimizer")
WARM_UPS, MOST_WARM_UPS = 2, 60
# What a step may read in no call and is noted; STORAGES come with torch.save, which no step is expected to do.
NOTED = ("tolist", "__repr__", "__format__", "__deepcopy__")
ZEROES = ("aten.zero_", "aten._foreach_zero_")
# Stands for an optimizer: whether it is asked for an update.
ASKED = SimpleNamespace(step=lambda *args, **kwargs: True)
COUNTS_NODES = hasattr(torch._C, "_current_autograd_node") and hasattr(torch.autograd, "_get_sequence_nr")
# What a step may give instead of running, what it is known by, and when it would run.
LAZY = (("generator", inspect.isgenerator, "as values are taken from it"),
        ("generator", inspect.isasyncgen, "as values are taken from it"), ("coroutine", inspect.isawaitable, "when it is awaited"))
# Functions of several calls that look into their second argument in none of them: sizes of batches, and where to cut.
SIZED_BY = ("lstm", "gru", "rnn_tanh", "rnn_relu", "_pad_packed_sequence", "tensor_split")


class Sizes(TorchFunctionMode):
    """Tells the recorder of sizes that PyTorch reads in no call."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, args=(), kwargs=None):
        recorder = self.recorder
        if getattr(function, "__name__", "") in SIZED_BY and len(args) > 1 and recorder.phase and not recorder.aside:
            recorder.leave_out([t for t in tensors_in(args[1]) if not t.is_floating_point()])
        return function(*args, **(kwargs or {}))


class StepRecorder(Recorder):
    """Records what a step calls. Phases only go on: what runs after the first backward pass is of it, and so on."""

    def __init__(self, device, source):
        super().__init__(device, None, source)
        self.reached, self.passes, self.clearing, self.aside = 0, 0, 0, False
        self.roots, self.names = {}, {}  # of modules that are called by no other: their parts and the names of these
        self.seen_bytes = {}
        self.results = []  # storages of what the recorded run returned
        self.has_streams, self.stream = device == "cuda" and has_driver(), None  # of a GPU: that of the calls
        self.has_skipped = False  # a GradScaler has left out an update
        self.zeroed = None  # the user's line that zeroes gradients in place
        self.knows_scratch = False  # the cost of a call is the bytes that it works in beside what it gives
        self.forward_of = {}  # module and line of the call behind each node of autograd, by the node's number
        self.division = Division(1)  # into micro-batches
        self.standing = None  # storages that are there when the recorded run makes its first call, but to clear gradients

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if self.aside or function.namespace == "prim":  # which asks a fake tensor for its device
            return called(function, args, kwargs or {})
        return super().__torch_dispatch__(function, types, args, kwargs)

    @contextmanager
    def looking_away(self):
        """Within, calls are not the step's: what they make comes to it from outside."""
        self.aside = True
        try:
            yield
        finally:
            self.aside = False

    # --- Where a call belongs -----------------------------------------------------------------------------------------

    def see(self, storage):
        super().see(storage)
        self.seen_bytes[storage._cdata] = storage.nbytes()

    def begin(self):
        self.reached, self.phase = 0, PHASES[0]

    def reach(self, phase):
        self.reached = max(self.reached, PHASES.index(phase))
        self.phase = PHASES[self.reached]

    def note(self, function, args, kwargs, result, cost):
        made_for = self.node_of_call()
        if only_views(function):
            return
        self.refuse_streams()
        updates = not self.clearing and is_within_an_optimizer()
        self.reach("optimizer" if updates else "backward" if self.passes else "forward")
        given, gives = (tensors_on(self.device, value) for value in ((args, kwargs), result))
        for tensor in given:
            if not self.is_number(tensor):
                self.know(tensor, "input" if self.is_new(tensor) else "buffer")  # what no call made came from the user
        if not self.clearing:
            self.note_standing()
        before = len(self.calls)
        super().note(function, args, kwargs, result, cost)
        if len(self.calls) == before:
            return
        call = self.calls[-1]
        call.given, call.gives = ([self.number_of(t) for t in tensors] for tensors in (given, gives))
        call.described, call.updates = described(function, given), updates
        call.allocated = uses(self.clock.seen, [address_of(storage_of(t)) for t in gives]) if self.clock else []
        if self.clearing and call.name.startswith(ZEROES):
            self.zeroed = self.zeroed or call.place
        if made_for and call.phase == PHASES[1]:
            call.module, call.place = made_for[0], f"{made_for[1]} ({call.phase})"

    def note_standing(self):
        if self.standing is None:
            self.standing = [cdata for cdata, reference in self.seen.items() if not reference.expired()]

    def node_of_call(self):
        """Module and line of the forward call that a call of a backward pass is for, None of others. PyTorch 2 numbers the nodes
        that calls are given, and the first call after such a number is the node's."""
        if not COUNTS_NODES or self.clearing:
            return None
        node = torch._C._current_autograd_node()
        if node is not None:
            return self.forward_of.get(node._sequence_nr())
        last = torch.autograd._get_sequence_nr() - 1
        if last not in self.forward_of:
            self.forward_of[last] = self.modules[-1] if self.modules else "", self.place()
        return None

    def see_read(self, name, tensor, run):
        """The step reads a tensor in no call, or gets hold of its memory."""
        if not self.phase or self.aside or not self.has_part(tensor) or is_forgotten(name):
            return run()
        if name in SHARES:
            self.refuse(f"{name} hands out a tensor's memory, which a plan may take away; use tolist() or item()")
        self.note_read_of(name, tensor)
        with self.looking_away():
            return run()

    def has_part(self, tensor):
        """Whether a tensor, or a storage, is one of the device that has elements."""
        if isinstance(tensor, STORAGE):
            return tensor.device.type == self.device and tensor.nbytes() > 0
        return self.counts(tensor)

    def refuse_streams(self):
        """A plan has all calls on one."""
        if not self.has_streams:
            return
        stream = torch.cuda.current_stream()
        self.stream = self.stream or stream
        if stream != self.stream:
            self.refuse("the step makes calls on several streams of the GPU; make them on one")

    def note_read_of(self, name, tensor):
        """A read in no call, as an op of its own; not of what is the user's."""
        number = self.know(tensor, "input" if self.is_new(tensor) else "buffer")
        if self.storages[number].kind == "input":
            return
        call = Call(f"planc.{name}", self.phase, "", self.place(), reads=[number])
        call.given, call.gives, call.allocated = [number], [], []
        call.described = READ.format(name, described_tensor(tensor))
        self.calls.append(call)

    def leave_out(self, tensors):
        """Makes tensors the user's, which no plan takes away."""
        for tensor in tensors:
            if self.counts(tensor):
                self.storages[self.know(tensor, "input")].kind = "input"

    def number_of(self, tensor):
        return OUTSIDE if self.is_number(tensor) else self.know(tensor, "buffer")

    def counting_passes(self, backward):
        counted = self.counting("passes")(backward)

        @wraps(backward)
        def run(*args, **kwargs):
            if is_within_an_optimizer():
                self.refuse("the optimizer is given a closure, which cannot be followed; call backward() before its step()")
            return counted(*args, **kwargs)
        return run

    def counting(self, counter):
        """Makes of a function one that counts, while it runs, in the attribute `counter`."""
        def make(original):
            @wraps(original)
            def run(*args, **kwargs):
                setattr(self, counter, getattr(self, counter) + 1)
                try:
                    return original(*args, **kwargs)
                finally:
                    setattr(self, counter, getattr(self, counter) - 1)
            return run
        return make

    def noting_skips(self, step):
        """Makes of GradScaler.step one that tells whether it found gradients by which no optimizer updates."""
        @wraps(step)
        def run(scaler, optimizer, *args, **kwargs):
            result = step(scaler, optimizer, *args, **kwargs)
            state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer), {})
            with self.looking_away():  # the scaler itself looks, as it does for an update
                updates = not state.get("found_inf_per_device") or scaler._maybe_opt_step(ASKED, state)
            self.has_skipped |= not updates
            return result
        return run

    def refusing(self, what):
        def make(_):
            return lambda *args, **kwargs: self.refuse(what)
        return make

    def needs(self, name, argument):
        """Kernels may touch what they only take the shape of."""
        return touches(name, argument)

    # --- Modules ------------------------------------------------------------------------------------------------------

    def enter_module(self, module, *_):
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None):
            self.refuse("what torch.compile makes of a module cannot be followed; record the step without it")
        if not self.modules:
            if module not in self.roots:
                self.roots[module] = {part: name for name, part in module.named_modules()}
            self.names = self.roots[module]
        self.modules.append(self.names.get(module, ""))

    def leave_module(self, *_):
        if self.modules:
            self.modules.pop()

    @contextmanager
    def watching_step(self):
        hooks = torch.nn.modules.module
        with ExitStack() as stack:
            for handle in (hooks.register_module_forward_pre_hook(self.enter_module),
                           hooks.register_module_forward_hook(self.leave_module)):
                stack.callback(handle.remove)
            for name in ("backward", "grad"):
                stack.enter_context(replaced(torch.autograd, name, self.counting_passes))
            for owner in (torch.optim.Optimizer, torch.nn.Module):
                stack.enter_context(replaced(owner, "zero_grad", self.counting("clearing")))
            stack.enter_context(replaced(GRAD_SCALER, "step", self.noting_skips))
            for owner, name, what in UNSEEN:
                if hasattr(owner, name):
                    stack.enter_context(replaced(owner, name, self.refusing(what)))
            stack.enter_context(Methods(NOTED + SHARES, self.see_read))
            stack.enter_context(Sizes(self))
            stack.enter_context(self)
            yield
        if self.refusal:
            raise self.refusal


# --- Running the step -------------------------------------------------------------------------------------------------


def run_iteration(step, args):
    """Its name ends the search for the user's line (torch_refusals.users_line)."""
    result = step(*args)
    for kind, is_one, when in LAZY:
        if is_one(result):
            if hasattr(result, "close"):
                result.close()  # which else is told of as never awaited
            raise CannotExport(f"{definition(step)}: the step gives a {kind}, which runs only {when}; let the step be a function that "
                               "runs the iteration to its end and returns")
    return result


def record(step, make_args, device, has_elements=True, micro_batches=1):
    """The recorder that has watched the step, which runs in so many micro-batches if it uses micro_batches(); `make_args` gives its
    arguments anew for each run. Where tensors have no elements calls work in no memory, which is then not known."""
    recorder = StepRecorder(device, definition(step))

    def arguments():
        with recorder.looking_away():
            return make_args()

    with divided(micro_batches) as recorder.division, recorder.watching_step():
        for i in range(MOST_WARM_UPS):
            if i < WARM_UPS or recorder.has_skipped:
                recorder.has_skipped = False
                run_iteration(step, arguments())
        args = arguments()
        recorder.begin()
        recorder.clock = clock_of(device) if has_elements else None
        result = run_iteration(step, args)
        recorder.phase, recorder.knows_scratch, recorder.clock = None, recorder.clock is not None, None
        recorder.note_standing()  # where it made none
        if recorder.has_skipped:
            recorder.refuse("GradScaler finds infinite gradients in this run, so that the optimizer makes no update; give it a "
                            "smaller init_scale", recorder.source)
        gc.collect()
        kept = [i for i, ref in enumerate(recorder.references) if not ref.expired()]
        note_end(recorder, kept, device, result)
        name_persistent(recorder)
        del result, args
        hold_against(recorder, step, arguments())
    return recorder


def note_end(recorder, kept, device, result):
    made = {s for call in recorder.calls for s in call.creates}
    call = Call(END, PHASES[-1], "", recorder.source, reads=[s for s in kept if s in made])
    call.given, call.gives, call.allocated, call.described = call.reads, [], [], END
    recorder.calls.append(call)
    recorder.results = [recorder.know(t, "buffer") for t in tensors_on(device, result) if recorder.is_known(t)]


def hold_against(recorder, step, args):
    """Another run has to make the same calls."""
    recorded, count = recorder.calls, len(recorder.storages)
    recorder.calls = []
    recorder.begin()
    run_iteration(step, args)
    recorder.phase = None
    place, ways = first_difference([recorded[:-1], recorder.calls])
    if not ways:
        place, ways = next(((one.place, (one.described, other.described)) for one, other in zip(recorded, recorder.calls)
                            if one.described != other.described), (None, None))
    if ways:
        raise CannotExport(f"{place}: runs of the step differ: {ways[0]} in the third, {ways[1]} in the fourth; what is not done "
                           "in each step belongs outside, and all micro-batches of an update into one step")
    recorder.calls = recorded
    del recorder.storages[count:]


def name_persistent(recorder):
    """Names what persists: parameters, their gradients and buffers by the modules that ran, the state of optimizers by its
    parameters, and what modules have that did not run, such as averages, by these and their class. Parameters are those of
    a module that only the optimizer's phase writes."""
    early = {s for call in recorder.calls if call.phase != PHASES[-1] for s in call.writes}
    names = {}

    def give(tensor, name, kind):
        if isinstance(tensor, torch.Tensor) and recorder.counts(tensor) and recorder.is_known(tensor):
            number = recorder.know(tensor, "buffer")
            storage = recorder.storages[number]
            if storage.kind == "buffer":
                storage.name, storage.kind = name, kind if number not in early else "optstate"

    def name_only(tensor, name):
        if tensor is not None and recorder.counts(tensor) and recorder.is_known(tensor):
            storage = recorder.storages[recorder.know(tensor, "buffer")]
            storage.name = storage.name or name

    for root in recorder.roots:
        for name, tensor in root.named_parameters():
            names[tensor] = name
            give(tensor, name, "param")
            name_only(tensor.grad, f"{name}.grad")
        for name, tensor in root.named_buffers():
            give(tensor, name, "optstate")
    objects = gc.get_objects()
    for module in outermost([o for o in objects if issubclass(type(o), torch.nn.Module)]):
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            name_only(tensor, f"{type(module).__name__}.{name}")
    for optimizer in (o for o in objects if issubclass(type(o), torch.optim.Optimizer)):
        for parameter, state in optimizer.state.items():
            for key, tensor in state.items():
                give(tensor, f"{names.get(parameter, 'parameter')}:{key}", "optstate")


def outermost(modules):
    """Those that are no part of another."""
    parts = {id(part) for module in modules for part in module.children()}
    return [module for module in modules if id(module) not in parts]
