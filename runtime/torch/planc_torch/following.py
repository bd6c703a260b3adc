"""Follows a plan in the user's own training script: `step = planc_torch.follow("train.plan", step)`.

The step runs as the user wrote it. Before each call that it makes, everything that the call reads is where it has to be,
and between two calls libplanrt has what the plan says released, copied and computed again. Calls are held against those
that were recorded, in order, with the shapes and types of their tensors and with which tensors they are. Where they
differ, everything that is still needed comes back, the rest of the step runs as it would without a plan, and why is told.

What the plan has at home on the host between two steps comes back when the user reads or writes it. With the extension, on the
processor, all that is the plan's lies in an arena of its size, where the plan has it.
"""

import sys
import time
import warnings
from contextlib import ExitStack

import torch

from .calls import tensors_on
from .guests import STARTERS
from .iteration import DroppedTensor, Iteration
from .library import FollowError
from .micro import dividing
from .plan_file import PlanFile
from .watching import Seen
from torch_refusals import replaced

SEEN = Seen()
PATIENCE = 2  # seconds
REASONS, PLACE_REASONS = 100, 2  # kept apart, and warned of at one call
TRIMMED = 2  # first steps, in which what persists comes to the arena, so that memory is left where it was
ELSEWHERE = "it runs in another thread, too"


class PlanNotFollowed(UserWarning):
    """A step that is not the recorded one has run without its plan, from where it differed."""


class BudgetNotHeld(UserWarning):
    """Some memory cannot be taken away, so that a step may take more than its plan."""


class Followed:
    """The user's step under a plan; see follow(). `left` counts the steps that were not the recorded one, by reason."""

    def __init__(self, path, step, addresses=None):
        file = PlanFile(path)
        if file.device == "cuda" and not torch.cuda.is_available():
            raise FollowError(f"{path} is of a step on a GPU, and PyTorch sees none here")
        self.step = dividing(step, file.micro_batches)  # with and without the plan
        self.left, self.steps, self.told = {}, 0, set()
        self.warned = {}  # reasons by the number of the call
        self.iteration = Iteration(file, addresses)
        self.is_open, self.seen = True, SEEN
        self.seen.add(self.iteration)

    def __call__(self, *args, **kwargs):
        if not self.is_open:
            return self.step(*args, **kwargs)
        if not self.gets_its_turn():
            return self.beside_another(args, kwargs)
        try:
            SEEN.close_dropped()
            with SEEN.running() as is_visit:
                try:
                    return self.follow(args, kwargs)
                finally:
                    if is_visit and not self.iteration.within:
                        self.home()
        finally:
            SEEN.one_thread.release()

    def gets_its_turn(self):
        """Whether this thread may run a followed step now. If another one runs this step, it is asked to leave the plan, for
        which it gets some time; it will not if it waits for this thread."""
        if SEEN.one_thread.acquire(blocking=False):
            return True
        until = time.monotonic() + PATIENCE
        while self.iteration.within and self.iteration.reason is None and time.monotonic() < until:
            self.iteration.ask_to_leave(ELSEWHERE)
            if SEEN.one_thread.acquire(timeout=0.01):
                return True
        return False

    def beside_another(self, args, kwargs):
        """Runs the step without the plan while another thread runs one with its plan, which may be this one."""
        with SEEN.here.looking_away():
            if self.iteration.within:
                self.iteration.leave(ELSEWHERE)
            else:
                self.home()
        self.steps += 1
        self.tell("another thread ran a followed step", False, 4)
        return self.step(*args, **kwargs)

    def follow(self, args, kwargs):
        iteration, watched = self.iteration, SEEN.here
        watched.leave_steps("another followed step runs within it")
        if iteration.within:
            return self.step(*args, **kwargs)
        with watched.looking_away():
            iteration.begin()
        watched.running.append(iteration)
        raised = True
        try:
            with ExitStack() as stack:
                for owner, name in STARTERS:
                    stack.enter_context(replaced(owner, name, watched.leaving("the step starts a thread")))
                result = self.step(*args, **kwargs)
            raised = False
        except BaseException as error:
            with watched.looking_away():
                iteration.leave(f"the step raised {type(error).__name__}")
            raise
        finally:
            watched.running.remove(iteration)
            with watched.looking_away():
                ghosts = iteration.end()
            self.steps += 1
            self.count(raised)
            if iteration.memory.has_addresses and self.steps <= TRIMMED:
                iteration.memory.trim()
        if ghosts:
            names = ", ".join(iteration.memory.names[buffer] for buffer in ghosts)
            raise DroppedTensor(f"{names}: kept beyond the step, and not when it was recorded; the plan has dropped it. "
                                "Return it from the step, or record a step that keeps it")
        with watched.looking_away():
            iteration.memory.hand_out(tensors_on(iteration.device, result))
        return result

    def count(self, raised):
        """Why the step was left, if it was. That an optimizer makes its state in the first step is no surprise, and who
        has an exception needs no warning."""
        reason, staying = self.iteration.reason, self.iteration.memory.staying
        if staying and BudgetNotHeld not in self.told:
            self.told.add(BudgetNotHeld)
            warnings.warn(f"{len(staying)} tensors, such as {min(staying)}, are of an array, a file or another process, or their "
                          "address was asked for, so that they stay in memory whatever the plan says; clone() makes others of "
                          "them, and copy.deepcopy() of the state that an optimizer loads", BudgetNotHeld, stacklevel=4)
        makes_state = self.steps == 1 and self.iteration.is_making
        if reason is not None and not makes_state:
            self.tell(reason, raised, 5)

    def tell(self, reason, is_expected, depth):
        """Where reasons tell of shapes there may be as many as steps: of those at one call two are warned of."""
        if reason not in self.left and len(self.left) >= REASONS:
            reason = "other reasons"
        self.left[reason] = self.left.get(reason, 0) + 1
        warned = self.warned.setdefault(self.iteration.at, set())
        if reason not in self.told and not is_expected and len(warned) < PLACE_REASONS:
            self.told.add(reason)
            warned.add(reason)
            warnings.warn(f"a step ran without its plan from where it differed: {reason}", PlanNotFollowed, stacklevel=depth)

    def home(self):
        """Brings home all that the plan has on the host between two steps, until the next one: for whoever reads it in
        a way that PyTorch does not see."""
        if self.iteration.within:
            raise FollowError("the step is under way; what the plan has away comes back between two steps")
        with self.iteration.gate.visit("what the plan has on the host", SEEN.here.is_guest):
            self.iteration.memory.follower.bring_all()

    def close(self):
        """Brings everything home; from then on the step runs without a plan."""
        if self.is_open:
            self.home()
            with self.iteration.gate.closed():
                self.iteration.memory.close()
            self.is_open = False
            self.seen.remove(self.iteration)

    def __del__(self):
        """Whoever lets go of a followed step without close(), by following anew say, keeps neither its memory nor its plan.
        Where that is noticed while a step runs, it is closed ahead of the next one."""
        if not getattr(self, "is_open", False) or sys.is_finalizing():
            return
        is_at_work = self.seen.working or self.iteration in self.seen.here.visits
        if is_at_work or not self.seen.one_thread.acquire(blocking=False):
            self.seen.dropped.append(self)
            return
        try:
            self.close()
        finally:
            self.seen.one_thread.release()

    @property
    def counts(self):
        """A dict: `out_bytes` and `in_bytes`, copied to the host and back; `repeats`, calls that ran again; `iterations`, steps,
        and `left`, those of them that left the plan, the first one included where its optimizer makes its state."""
        return self.iteration.memory.follower.counts()

    @property
    def placed(self):
        """Of memory at the plan's addresses, a dict: the bytes of the arena, and of these in use; bytes beside it, now and at
        most; results that were moved to their places when they had been made; what was moved away, since its user has it
        longer than the plan; places that could not be had; and of calls, by number from 1 on, the scratch that was beside, where
        there was any. None without it."""
        memory = self.iteration.memory
        if not memory.has_addresses:
            return None
        told = memory.plain.placing
        scratch = {at: size for at, size in enumerate(told.pop("scratch"), 1) if size}
        return {**{name: value for name, value in told.items() if name != "arena"}, "scratch": scratch}

    def __reduce__(self):
        raise TypeError("a followed step belongs to its process; pickle or copy the step itself")


def follow(path, step, addresses=None):
    """Gives `step` as it runs under the plan at `path`, which `planc torch` made of it: a function to call in its place, with the
    same arguments and results, to the bit.

    path       the plan's file
    step       the function that was recorded, or one that makes the same calls, on models, optimizers and arguments of the
               same shapes
    addresses  whether its memory lies where the plan has it, in an arena of the plan's size: True makes it an error where that
               cannot be, False leaves memory where PyTorch has it; None, the default: where it is possible, which takes the
               extension and the processor

    What is given has
    left       a dict: how many steps ran without the plan, from where they differed, by reason; but for the first one, in which
               an optimizer makes its state
    counts     a dict: bytes copied out and in, calls that ran again, steps, and how many left the plan
    placed     a dict of what memory lies where, see planc(1); None without addresses
    home()     brings what is on the host home until the next step, for whoever reads it in a way that PyTorch does not see
    close()    does so for good; from then on the step runs without the plan

    It falls back, which is to run the rest of a step as without a plan, where a call is not the recorded one (another shape or
    type, another tensor, more calls or fewer), where the step raises or starts a thread, and where another thread runs a
    followed step. Results are the same; a PlanNotFollowed warning says why. BudgetNotHeld warns of memory that PyTorch cannot take
    away. DroppedTensor is raised where the step keeps or reads what the plan has dropped, FollowError where the plan cannot be
    followed here or memory cannot be had, and in another thread where that wants what is the step's while the step waits for it, and
    ValueError where the file is none of a recorded step."""
    return Followed(path, step, addresses)
