#!/usr/bin/env python3
"""Followed steps whose memory lies at the plan's addresses: they compute the same, bit for bit, in an arena of the plan's size,
where each tensor is where the plan has it; what is beside it is named; and users keep what they have got."""

import json
import unittest
from unittest import mock

from torchfollow import FollowTest, Run, parameters, planc_torch, tensors_of, torch  # first: it finds a Python with PyTorch

import steps_vision
from planc_torch import calls, extension, following
from planc_torch.calls import address_of
from planc_torch.memory import NUMBER
from sampling import TAKES_ALL, sampled
from torch.utils._python_dispatch import TorchDispatchMode
from torch_recorder import called, storage_of
from torchsteps import STEPS, cnn, gpt, unet

# With parts of the plain peak, in percent. Not all have a plan for each step.
PLANS = (("none", 100), ("auto", 100), ("auto", 60), ("auto", 40), ("capuchin", 70), ("chen", 70), ("cheap", 70), ("naive", 100))
PART = 4  # of them that each step takes
needs_extension = unittest.skipUnless(
    extension.plain_calls(),
    "skipped: planc_torch's extension is not built (make torch-extension; Debian: libtorch-dev, pybind11-dev)")


def watched(run, i, args):
    """From the first step on memory that is given back is overwritten; what was placed is kept by step."""
    plain = run.followed.iteration.memory.plain
    if i == 0:
        run.placed = []
    else:
        run.placed.append(run.followed.placed)
    plain.watch_arena(True)
    return args


class PlanAddresses:
    """Where a plan's file has each of its buffers."""

    def __init__(self, path):
        self.of = {}
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(text) for text in file if text.startswith(('{"boundary":', '{"i":"acquire"', '{"memory":'))]
        memories = [row for row in rows if "memory" in row]
        self.bytes = memories[0]["arena"]
        for row in rows:
            if row.get("m") == 0:
                self.of.setdefault(row["boundary"] if "boundary" in row else row["b"], set()).add(row["at"])


class Looking(TorchDispatchMode):
    """Below a followed step it sees where the tensors of each call lie. `wrong`: what is not where the plan has it."""

    def __init__(self):
        super().__init__()
        self.iteration, self.plan, self.wrong, self.right = None, None, [], 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = called(function, args, kwargs or {})
        iteration = self.iteration
        if iteration and iteration.within and iteration.reason is None and iteration.at < len(iteration.calls):
            call = iteration.calls[iteration.at]
            if call.alike and call.alike[0] is function:
                with following.SEEN.here.looking_in():
                    self.look(call, calls.tensors_on("cpu", (args, kwargs or {})), call.given)
                    self.look(call, calls.tensors_on("cpu", result), call.gives)
        return result

    def look(self, call, tensors, numbers):
        memory = self.iteration.memory
        arena = memory.plain.placing["arena"]
        for tensor, number in zip(tensors, numbers):
            buffer = memory.buffer_of.get(number)
            if buffer is None or memory.bytes[buffer] <= NUMBER or storage_of(tensor).nbytes() != memory.bytes[buffer]:
                continue
            is_right = storage_of(tensor).data_ptr() - arena in self.plan.of.get(buffer, ())
            self.right += is_right
            if not is_right:
                self.wrong.append((call.described, memory.names[buffer]))


LOOKING = Looking()
LOOKING.__enter__()


@needs_extension
class PlacedTest(FollowTest):
    def plans(self, make):
        recorded = self.record(make)
        for policy, share in sampled(PLANS, PART, list(STEPS.values()).index(make)):
            made = recorded.planned(policy, recorded.plain_bytes * share // 100)
            if made:
                yield f"{make.__name__} by {policy} at {share} %", recorded, *made

    def test_steps_compute_the_same_within_the_arena(self):
        followed = 0
        for make in STEPS.values():
            plain = Run(make)
            for what, recorded, path, summary in self.plans(make):
                try:
                    ours = Run(make, path, watched)
                except planc_torch.FollowError as error:
                    self.assertIn("two versions", str(error), what)
                    continue
                followed += 1
                self.assert_same(ours, plain, what)
                self.assertEqual(ours.told, [], what)
                first, *later = ours.placed
                # What calls allocate is known from the recording, but for what libraries happen to do at another time.
                self.assertLessEqual(first["moved_in"], len(ours.followed.iteration.calls) // 50, what)
                self.assertLessEqual(max(first["scratch"].values(), default=0), 1024, what)
                for placed in later:
                    self.assertEqual(placed["bytes"], summary["peak_bytes"], what)
                    self.assertEqual(placed["refused"], 0, what)
                    self.assertLessEqual(placed["in_use"], placed["bytes"])
                last, before = later[-1], later[-2] if len(later) > 1 else first
                self.assertEqual(last["moved_in"], before["moved_in"], f"{what}: results are made where they belong")
                # Beside it there are numbers, and what the step has of the one before or gives to its user.
                numbers = 4 * NUMBER * sum(b <= NUMBER for b in ours.followed.iteration.memory.bytes.values())
                self.assertLessEqual(last["most_beside"], numbers + recorded.graph.outside_bytes, what)
                self.assertEqual(last["scratch"], {}, what)
        self.assertGreater(followed, 30 // (1 if TAKES_ALL else PART))

    def test_what_a_step_leaves_stays_in_its_place_until_the_next_one_has_cleared_it(self):
        """Weights that the plan has elsewhere by then come there later, from the first step on, in which momentum begins."""
        make = steps_vision.STEPS["resnet"]
        recorded = self.record(make)
        for share in sampled((50, 60, 70)):
            with self.subTest(share=share):
                ours = Run(make, recorded.planned("auto", recorded.plain_bytes * share // 100)[0], watched)
                before, last = ours.placed[-2:]
                self.assertEqual(last["moved_out"], before["moved_out"])
                self.assertLessEqual(max(placed["most_beside"] for placed in ours.placed), recorded.graph.outside_bytes)

    def test_a_step_without_scratch_and_results_is_in_the_arena_alone(self):
        for what, _, path, _ in self.plans(STEPS["accumulating"]):
            ours = Run(STEPS["accumulating"], path, watched)
            self.assertEqual(ours.placed[-1]["scratch"], {}, what)
            self.assertLessEqual(ours.placed[-1]["most_beside"], 16 * NUMBER, what)

    def test_tensors_lie_where_the_plan_has_them(self):
        for make in (cnn, gpt, unet):
            for what, _, path, _ in self.plans(make):
                LOOKING.wrong, LOOKING.right, LOOKING.plan = [], 0, PlanAddresses(path)

                def between(run, i, args):
                    LOOKING.iteration = run.followed.iteration if i > 1 else None
                    return args

                try:
                    ours = Run(make, path, between)
                finally:
                    LOOKING.iteration = None
                self.assertEqual(LOOKING.wrong, [], what)
                self.assertGreater(LOOKING.right, len(ours.followed.iteration.calls), what)
                self.assertEqual(LOOKING.plan.bytes, ours.followed.iteration.memory.follower.arena_bytes())


def keeping(run, i, args):
    """A user who keeps gradients of all steps, and holds each against what it was."""
    if i == 0:
        run.gradients, run.same = [], []
    run.same += [torch.equal(gradient, copy) for gradients, copies in run.gradients for gradient, copy in zip(gradients, copies)]
    gradients = [p.grad for p in parameters(run) if p.grad is not None]
    run.gradients.append((gradients, tensors_of(gradients)))
    return watched(run, i, args)


@needs_extension
class KeptTest(FollowTest):
    def plan(self, make, share=45):
        recorded = self.record(make)
        return recorded.planned("auto", recorded.plain_bytes * share // 100)[0]

    def test_what_users_keep_is_not_overwritten(self):
        for make in (cnn, gpt):
            ours = Run(make, self.plan(make), keeping)
            self.assert_same(ours, Run(make), make.__name__)
            self.assertGreater(ours.placed[-1]["moved_out"], 0, "gradients lay where the plan wanted something else")
            self.assertGreater(len(ours.same), 0)
            self.assertTrue(all(ours.same), make.__name__)

    def test_what_a_step_returns_is_beside_the_arena(self):
        made = unet()
        followed, pictures = planc_torch.follow(self.plan(unet), made.step), []
        followed.iteration.memory.plain.watch_arena(True)
        for _ in range(4):
            loss, picture = followed(*made.example())
            placed = followed.iteration.memory.plain.placing
            for tensor in (loss, picture):
                self.assertFalse(0 <= storage_of(tensor).data_ptr() - placed["arena"] < placed["bytes"])
            pictures.append((picture, picture.clone()))
        followed.close()
        self.assertTrue(all(torch.equal(picture, copy) for picture, copy in pictures))

    def test_memory_that_is_handed_out_stays_where_it_is(self):
        made = cnn()
        followed = planc_torch.follow(self.plan(cnn), made.step)
        for _ in range(3):
            followed(*made.example())
        weight = made.model[0].weight
        array = weight.detach().numpy()
        placed = followed.iteration.memory.plain.placing
        self.assertFalse(0 <= weight.data_ptr() - placed["arena"] < placed["bytes"])
        for _ in range(2):
            followed(*made.example())
            self.assertTrue(torch.equal(torch.from_numpy(array), weight.detach()))
        followed.close()

    def test_memory_that_is_handed_out_while_a_call_runs_is_not_moved_any_more(self):
        plan, results = self.plan(cnn), []
        for follows in (True, False):
            made = cnn()
            torch.manual_seed(6)
            step = planc_torch.follow(plan, made.step) if follows else made.step
            losses = [step(*made.example()) for _ in range(3)]
            weight = made.model[3].weight
            if follows:
                memory, storage = step.iteration.memory, storage_of(weight)
                memory.bring([weight])
                memory.plain.call(0, memory.follower.rooms(), False, memory.plain.hand_out, (storage,), {})
                memory.pin([weight])
                where = storage.data_ptr()
            losses += [step(*made.example()) for _ in range(3)]
            if follows:
                self.assertEqual(storage.data_ptr(), where)
                step.close()
                self.assertEqual(storage.data_ptr(), where)
            results.append(losses + tensors_of(list(made.model.parameters())))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(*results)))

    def test_the_arena_goes_when_the_step_is_closed(self):
        made, plain = cnn(), cnn()
        followed = planc_torch.follow(self.plan(cnn), made.step)
        steps = []
        for step, example in ((followed, made.example), (plain.step, plain.example)):
            torch.manual_seed(3)
            steps.append([step(*example()) for _ in range(3)])
        arena = followed.placed
        self.assertGreater(arena["in_use"], 0)
        pointers = {address_of(storage_of(p)) for p in made.model.parameters()}
        followed.close()
        self.assertIsNone(followed.placed)
        self.assertTrue(pointers.isdisjoint(address_of(storage_of(p)) for p in made.model.parameters()))
        for step, example in ((followed, made.example), (plain.step, plain.example)):
            torch.manual_seed(4)
            steps.append([step(*example())])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(steps[0] + steps[2], steps[1] + steps[3])))

    def test_two_plans_for_one_model(self):
        """What both use goes to and fro."""
        recorded = self.record(cnn)
        paths = [recorded.planned("auto", recorded.plain_bytes * share // 100)[0] for share in (45, 100)]
        results = []
        for follows in (True, False):
            made = cnn()
            torch.manual_seed(5)
            steps = [planc_torch.follow(path, made.step) if follows else made.step for path in paths]
            results.append([steps[i % 2](*made.example()) for i in range(6)] + tensors_of(list(made.model.parameters())))
            for step in steps if follows else ():
                self.assertEqual(step.counts["left"], 0)
                step.close()
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(*results)))

    def test_allocations_may_be_other_ones_than_before(self):
        """With another number of threads kernels take other scratch."""
        threads = torch.get_num_threads()

        def between(run, i, args):
            torch.set_num_threads(2 if i % 2 else 1)
            return args

        try:
            for make in (cnn, unet):
                self.assert_same(Run(make, self.plan(make), between), Run(make, None, between), make.__name__)
        finally:
            torch.set_num_threads(threads)


class AskedTest(FollowTest):
    def test_where_there_are_none_a_sentence_says_why(self):
        path = self.record(cnn).planned("none", "1T")[0]
        with mock.patch.object(extension, "is_wanted", False):
            with self.assertRaisesRegex(planc_torch.FollowError, "cannot be at the plan's addresses: .*extension"):
                planc_torch.follow(path, cnn().step, addresses=True)
            followed = planc_torch.follow(path, cnn().step)
            self.assertIsNone(followed.placed)
            followed.close()

    @needs_extension
    def test_they_may_be_done_without(self):
        followed = planc_torch.follow(self.record(cnn).planned("none", "1T")[0], cnn().step, addresses=False)
        self.assertIsNone(followed.placed)
        followed.close()


if __name__ == "__main__":
    unittest.main()
