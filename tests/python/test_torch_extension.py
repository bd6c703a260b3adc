#!/usr/bin/env python3
"""planc_torch with and without its extension, which has to decide as Python does: test_torch_follow.py in Python alone, what
differs told in the same words, and results that are computed again within the plan's memory."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from torchexport import torch  # first: it finds a Python with PyTorch
from torchfollow import ITERATIONS, ROOT, FollowTest, Recorded, Run, planc_torch

import test_torch_follow as follow
from sampling import sampled
from test_torch_differences import DIFFERENCES
from planc_torch import extension, following
from planc_torch.memory import Memory
from torch_recorder import storage_of
from torchmeter import Meter
from torchsteps import cnn, gpt

MODULE = extension.plain_calls()
BUILDER = os.path.join(ROOT, "runtime", "torch", "build_extension.py")
needs_extension = unittest.skipUnless(
    MODULE, "skipped: planc_torch's extension is not built (make torch-extension; Debian: libtorch-dev, pybind11-dev)")


def in_python_alone():
    return mock.patch.object(extension, "is_wanted", False)


def without_addresses():
    return mock.patch.object(Memory, "can_place", lambda memory, wanted: False)


def under(test, patched, name, **others):
    """The same tests with something else in a place of planc_torch's, and other members."""
    def set_up(self):
        patch = patched()
        patch.start()
        self.addCleanup(patch.stop)

    return type(test.__name__ + name, (test,), {"setUp": set_up, **others})


# Of the hard steps every second test, and each where all samples are taken.
TESTS = [name for name in dir(follow.HardTest) if name.startswith("test_")]
LEFT_OUT = dict.fromkeys(set(TESTS) - set(sampled(TESTS)))

FEW_PLANS = {"PLANS": [("auto", 60), ("superneurons", 70)], "FEWEST": 8, "PART": 2}
# Of every second step, among which are those that superneurons has plans of.
FEW_STEPS = {**FEW_PLANS, "PLANS": FEW_PLANS["PLANS"][::-1], "STEPS_PART": 2, "FIRST": 1}

if MODULE:  # else test_torch_follow.py runs in Python alone as it is
    PlanTestAlone, BetweenTestAlone, HardTestAlone = (
        under(follow.PlanTest, in_python_alone, "InPythonAlone", **FEW_PLANS),
        under(follow.BetweenTest, in_python_alone, "InPythonAlone", PART=4, FIRST=1),
        # That one is with the extension and without in any case.
        under(follow.HardTest, in_python_alone, "InPythonAlone", **{**LEFT_OUT, "test_memory_that_its_user_has_stays": None}))
    PlanTestAnywhere, BetweenTestAnywhere = (under(follow.PlanTest, without_addresses, "Anywhere", **FEW_STEPS),
                                             under(follow.BetweenTest, without_addresses, "Anywhere", PART=4, FIRST=3))


@needs_extension
class SameTest(FollowTest):
    """Runs with the extension beside others without it."""

    def both(self, make, plan, between=None):
        ours = Run(make, plan, between)
        with in_python_alone():
            in_python = Run(make, plan, between)
        self.assertIsNone(in_python.followed.iteration.plain)
        return ours, in_python, ours.followed.iteration.plain.made

    def test_what_differs_is_told_in_the_same_words(self):
        recorded = self.record(cnn)
        plan = recorded.planned("auto", recorded.plain_bytes // 2)[0]
        for name, (between, _, _) in sampled(list(DIFFERENCES.items()), 5):
            with self.subTest(name):
                ours, in_python, made = self.both(cnn, plan, between)
                self.assert_same(ours, in_python, name)
                for part in (lambda run: run.told, lambda run: run.followed.left):
                    self.assertEqual(part(ours), part(in_python))
                with without_addresses():  # where a step is left, what is there yet depends on where it is
                    elsewhere = Run(cnn, plan, between)
                self.assertEqual(elsewhere.counts, in_python.counts)
                self.assertGreater(made, len(ours.followed.iteration.calls), "the extension makes calls")

    def test_state_that_was_loaded_is_taken_away_as_any_other(self):
        """torch.load gives storages that PyTorch empties for nobody, though their memory is nobody else's."""
        saved = io.BytesIO()
        torch.save(Run(cnn).made.optimizer.state_dict(), saved)

        def make():
            made = cnn()
            saved.seek(0)
            made.optimizer.load_state_dict(torch.load(saved))
            return made

        recorded = self.record(cnn)
        plan, plain = recorded.planned("auto", recorded.least("auto"))[0], Run(make)
        copies = torch.__version__.startswith("1.")  # what an optimizer is given to load
        for prepare, warns in ((contextlib.nullcontext, False), (without_addresses, False), (in_python_alone, not copies)):
            with prepare(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = make()
                torch.manual_seed(7)
                followed = planc_torch.follow(plan, made.step)
                for _ in range(3):
                    followed(*made.example())
                staying = followed.iteration.memory.staying
                followed.close()
                self.assert_same(Run(make, plan), plain, prepare)
            self.assertEqual(bool(staying), warns)
            self.assertEqual(any(issubclass(w.category, planc_torch.BudgetNotHeld) for w in caught), warns)

    def test_whose_memory_is_another_s_keeps_it(self):
        array = torch.ones(8).numpy()
        mapped = os.path.join(self.folder.name, "mapped")
        with open(mapped, "wb") as file:
            file.write(bytes(32))
        for tensor in (torch.from_numpy(array), torch.from_file(mapped, shared=True, size=8), torch.ones(8).share_memory_()):
            storage = storage_of(tensor)
            can_be_emptied = hasattr(storage, "resizable") and storage.resizable()
            self.assertEqual(MODULE.make_resizable(storage), can_be_emptied)
        self.assertTrue(MODULE.make_resizable(storage_of(torch.ones(8))))

    def test_it_makes_all_calls_of_a_step_that_is_as_recorded(self):
        recorded = self.record(gpt)
        plan = recorded.planned("auto", recorded.plain_bytes // 2)[0]
        with without_addresses():  # in an arena what leaves makes room at once, where it else may still be there when it comes
            ours, in_python, made = self.both(gpt, plan)
        self.assertEqual(ours.counts, in_python.counts)
        # All but the end's; Python has each call once, and again in the step after, where the optimizer's state is new.
        each = len(ours.followed.iteration.calls) - 1
        self.assertGreaterEqual(made, (ITERATIONS - 2) * each)


@needs_extension
class MemoryTest(FollowTest):
    def metered(self, path):
        """The most bytes in a step, and while each call is made again, by a meter that sees what planc_torch calls, too."""
        meter, made, peaks = Meter(), cnn(), []
        repeat = Memory.repeat

        def metered_repeat(memory, *call):
            before, meter.peak = meter.peak, 0
            repeat(memory, *call)
            peaks.append(meter.peak)
            meter.peak = max(meter.peak, before)

        with mock.patch.object(following, "SEEN", following.Seen()), mock.patch.object(Memory, "repeat", metered_repeat):
            with meter:
                step = following.follow(path, made.step)
                for _ in range(3):
                    meter.peak = 0
                    peaks.clear()
                    step(*made.example())
                following.SEEN.leave()
        return meter.peak, peaks

    def test_a_result_computed_again_is_there_once(self):
        recorded = self.record(cnn)
        path, summary = recorded.planned("cheap", recorded.least("cheap"))
        peak, ours = self.metered(path)
        with in_python_alone():
            _, alone = self.metered(path)
        self.assertLessEqual(peak - recorded.graph.outside_bytes, summary["peak_bytes"])
        self.assertEqual(len(ours), len(alone))
        # One that works in place makes nothing.
        self.assertTrue(all(a <= b for a, b in zip(ours, alone)), (ours, alone))
        self.assertGreater(sum(a < b for a, b in zip(ours, alone)), len(ours) // 2)

    def take(self, tensor, bytes=None):
        """An emptied storage of a tensor like this one, and whether it took the memory."""
        other = torch.empty_like(tensor)
        storage = storage_of(other)
        storage.resize_(0)
        return other, MODULE.take_memory(storage, tensor, storage_of(tensor).nbytes() if bytes is None else bytes, storage_of)

    def test_memory_moves_with_all_that_lies_in_it(self):
        tensor = torch.arange(24.0).reshape(4, 6).clone()
        where = tensor.data_ptr()
        other = torch.empty(4, 6)
        view = other.t()[2:]
        storage = storage_of(other)
        storage.resize_(0)
        self.assertTrue(MODULE.take_memory(storage, tensor, 96, storage_of))
        self.assertEqual((other.data_ptr(), storage_of(tensor).nbytes(), storage_of(other).nbytes()), (where, 0, 96))
        del tensor
        again = torch.zeros(4, 6)
        self.assertTrue(torch.equal(other, torch.arange(24.0).reshape(4, 6)))
        self.assertTrue(torch.equal(view, torch.arange(24.0).reshape(4, 6).t()[2:]))
        self.assertFalse(again.any())

    def test_memory_that_is_not_the_tensor_s_alone_stays(self):
        tensor = torch.ones(8)
        shared = tensor[2:]
        self.assertFalse(self.take(tensor)[1])
        self.assertTrue(shared.eq(1).all())
        self.assertFalse(self.take(torch.from_numpy(torch.ones(8).numpy()))[1])
        self.assertFalse(self.take(torch.ones(8), 16)[1])
        whole = torch.ones(8)
        self.assertFalse(MODULE.take_memory(storage_of(torch.ones(8)), whole, 32, storage_of))  # it has memory
        self.assertFalse(MODULE.take_memory(storage_of(whole), whole, 32, storage_of))
        self.assertTrue(self.take(whole)[1])


@needs_extension
class CollectTest(unittest.TestCase):
    """What it takes for a call's tensors decides what it makes itself."""

    def test_subclasses_are_python_s(self):
        class Own(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        made = cnn()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Recorded(cnn, folder).planned("none", "1T")[0]
            step = planc_torch.follow(path, made.step)
            for _ in range(2):
                step(*made.example())
            images, labels = made.example()
            seen = torch._C._DisableTorchDispatch()
            own = images.as_subclass(Own)
            del seen
            before = step.iteration.plain.made
            step(own, labels)
            self.assertEqual(step.counts["left"], 0)
            self.assertLess(step.iteration.plain.made - before, len(step.iteration.calls) - 1)
            step.close()


class BuildTest(unittest.TestCase):
    def build(self, *arguments):
        return subprocess.run([sys.executable, "-B", BUILDER, *arguments], capture_output=True, text=True, check=False)

    def test_where_it_cannot_be_built_a_sentence_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            for options, code in (((), 1), (("--optional",), 0)):
                done = self.build(*options, folder, "/bin/false")
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertEqual(done.stderr, "planc_torch's extension is not built: /bin/false has no PyTorch\n")
            self.assertEqual(os.listdir(folder), [])

    def test_what_cannot_be_loaded_is_done_without(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            self.assertIsNone(extension.load(file.name))
        self.assertIsNone(extension.load("/nowhere/plain_calls.so"))


if __name__ == "__main__":
    unittest.main()
