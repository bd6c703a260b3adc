#!/usr/bin/env python3
"""Tests of threads that read what is a followed step's while it runs: they find what was there between two steps, or are told by
name that they cannot."""

import _thread
import ctypes
import io
import os
import queue
import subprocess
import sys
import threading
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from torchfollow import ROOT, FollowTest, arguments_of, planc_torch, torch  # first: it finds a Python with PyTorch

from planc_torch import extension, gate
from planc_torch.following import SEEN
from planc_torch.memory import Memory
from sampling import sampled
from torch_refusals import CannotExport
from torchsteps import cnn, unet

needs_extension = unittest.skipUnless(extension.plain_calls(), "skipped: planc_torch's extension is not built (make torch-extension)")

STEPS = 5
BREAK = 0.001  # seconds in which the step goes on


def saved(tensor):
    file = io.BytesIO()
    torch.save({"x": tensor}, file)
    file.seek(0)
    return torch.load(file)["x"]


# Ways to read all of a tensor.
READS = {
    "a copy": lambda t: t.detach().clone(),
    "a list": lambda t: torch.tensor(t.tolist()),
    "an item": lambda t: torch.tensor([x.item() for x in t.detach().flatten()]).view(t.shape),
    "views": lambda t: torch.cat([part.detach() for part in t.flatten().split(7)]).view(t.shape),
    "an array": lambda t: torch.from_numpy(t.detach().numpy().copy()),
    "a file": lambda t: saved(t.detach()),
    "text": lambda t: None if "nan" in repr(t) else t.detach() * 1,
}


def bits(tensor):
    return tensor.numpy().tobytes()


def different(found):
    """Of each tensor what was read of it, what is the same once: to ask PyTorch for each reading's bits takes longer than the steps."""
    values = {}
    for n, value in found:
        values.setdefault(n, []).append(value)
    for n, read in values.items():
        for row in {row.tobytes(): row for row in torch.stack(read).numpy()}.values():
            yield n, torch.from_numpy(row)


def is_in_parts(value, others):
    """Whether each element is that of one of these: who reads them one after the other may do so in several steps."""
    return bool((torch.stack(others) == value).any(0).all())


def states(make):
    """Of a step that is not followed, its parameters before each step and after the last one."""
    made = make()
    torch.manual_seed(7)
    kept = []
    for _ in range(STEPS + 1):
        kept.append([p.detach().clone() for p in made.model.parameters()])
        made.step(*arguments_of(made.example)())
    return kept


class Logger:
    """Reads parameters, or gradients, in a thread of its own for as long as it is asked to."""

    def __init__(self, made, read, of=lambda p: p):
        self.parameters, self.read, self.of = list(made.model.parameters()), read, of
        self.found, self.wrong, self.done = [], [], threading.Event()

    def run(self):
        while not self.done.wait(BREAK):
            for n, p in enumerate(self.parameters):
                try:
                    tensor = self.of(p)
                    if tensor is not None:
                        self.found.append((n, self.read(tensor)))
                except Exception as error:
                    self.wrong.append(error)


class ThreadTest(FollowTest):
    def logged(self, make, policy, read, of=lambda p: p, is_early=False, is_bare=False):
        """What a thread reads beside a followed step. `is_early`: it is there before that is followed; `is_bare`: there is no object
        of it."""
        recorded, made, ended = self.record(make), make(), threading.Event()
        logger = Logger(made, read, of)

        def run():
            logger.run()
            ended.set()

        def start():
            if is_bare:
                _thread.start_new_thread(run, ())
            else:
                threading.Thread(target=run, daemon=True).start()

        if is_early:
            start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what numpy() has got hold of
            followed = planc_torch.follow(recorded.planned(policy, recorded.least(policy))[0], made.step)
            if not is_early:
                start()
            torch.manual_seed(7)
            for _ in range(STEPS):
                followed(*arguments_of(made.example)())
            logger.done.set()
            self.assertTrue(ended.wait(60))
        self.assertEqual((followed.left, followed.counts["left"]), ({}, 0))
        followed.close()
        return made, logger

    def test_they_find_what_was_there_between_two_steps(self):
        for number, (make, policy) in enumerate(((cnn, "naive"), (unet, "auto"))):
            plain = states(make)
            known = [{bits(state[n]) for state in plain} for n in range(len(plain[0]))]
            for helped in (True, False):
                for i, (name, read) in sampled(list(enumerate(READS.items())), 2, number + helped):
                    with self.subTest(name, step=make.__name__, helped=helped), mock.patch.object(extension, "is_wanted", helped):
                        made, logger = self.logged(make, policy, read, is_early=i % 2 == 0)
                        self.assertEqual(logger.wrong, [])
                        self.assertGreater(len(logger.found), 0)
                        self.assertTrue(all(value is not None for _, value in logger.found))
                        for n, value in different(logger.found):
                            self.assertTrue(bits(value) in known[n] or is_in_parts(value, [s[n] for s in plain]))
                        for p, last in zip(parameters_of(made), plain[-1]):
                            self.assertTrue(torch.equal(p, last), "what the step computes is the same")

    def test_gradients_too(self):
        made, logger = self.logged(cnn, "naive", lambda t: t.clone(), lambda p: p.grad)
        self.assertEqual(logger.wrong, [])
        self.assertGreater(len(logger.found), 0)
        self.assertTrue(all(bool(value.isfinite().all()) for _, value in logger.found))

    def test_what_a_step_that_ends_early_has_not_used_is_there_before_they_get_in(self):
        recorded, made, closed, refill = self.record(cnn), cnn(), [], Memory.refill

        def step(images, _):
            made.optimizer.zero_grad(set_to_none=True)
            made.model(images)

        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], step)

        def looked_at(memory, ghosts):
            closed.append(followed.iteration.gate.is_closed)
            return refill(memory, ghosts)

        with mock.patch.object(Memory, "refill", looked_at), self.assertWarnsRegex(planc_torch.PlanNotFollowed, "the step ended"):
            followed(*arguments_of(made.example)())
        followed.close()
        self.assertEqual(closed, [True])

    @needs_extension
    def test_bare_ones_too_whenever_they_were_started(self):
        plain = states(cnn)
        known = [{bits(state[n]) for state in plain} for n in range(len(plain[0]))]
        for is_early in (False, True):
            for name in ("a copy", "a list"):
                with self.subTest(name, is_early=is_early):
                    _, logger = self.logged(cnn, "naive", READS[name], is_early=is_early, is_bare=True)
                    self.assertEqual(logger.wrong, [])
                    self.assertGreater(len(logger.found), 0)
                    for n, value in different(logger.found):
                        self.assertTrue(bits(value) in known[n] or is_in_parts(value, [s[n] for s in plain]))

    @needs_extension
    def test_a_bare_one_that_reads_while_a_step_runs_waits_for_its_end(self):
        recorded, made, read, asked = self.record(cnn), cnn(), queue.Queue(), threading.Event()
        weight = made.model[0].weight

        def log():
            asked.wait()
            read.put(weight.tolist())

        def wait(*_):
            asked.set()
            with self.assertRaises(queue.Empty):
                read.get(timeout=0.2)

        made.model[-1].register_forward_hook(wait)
        _thread.start_new_thread(log, ())
        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], made.step)
        followed(*made.example())
        self.assertEqual(read.get(timeout=60), weight.tolist())
        self.assertEqual(followed.left, {})
        followed.close()

    def test_what_is_lent_to_a_thread_that_pytorch_has_made(self):
        """As it makes them for backward passes on a GPU: by no call of Python's, and with the modes of the step's thread."""
        recorded, made, seen = self.record(cnn), cnn(), []
        libc = ctypes.CDLL(None)

        def look():
            seen.append(SEEN.here is SEEN.working)

        def look_within():
            with SEEN.working.calls:
                look()

        def run(function):
            thread, body = ctypes.c_ulong(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: function())
            self.assertEqual(libc.pthread_create(ctypes.byref(thread), None, body, None), 0)
            self.assertEqual(libc.pthread_join(thread, None), 0)

        def step(*args):
            run(look)
            run(look_within)
            return made.step(*args)

        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], step)
        followed(*made.example())
        self.assertEqual((seen, followed.left), ([False, True], {}))
        followed.close()

    @needs_extension
    def test_what_starts_threads_is_replaced_while_a_step_is_followed(self):
        def starters():
            return threading.Thread.start, _thread.start_new_thread

        done = subprocess.run([sys.executable, "-B", "-c", "import sys, threading, _thread; sys.path.insert(0, sys.argv[1]); own = threading"
                               ".Thread.start, _thread.start_new_thread; import planc_torch; sys.exit(own != (threading.Thread.start, _thread"
                               ".start_new_thread))", os.path.join(ROOT, "runtime", "torch")], check=False)
        self.assertEqual(done.returncode, 0)
        recorded, before = self.record(cnn), starters()
        plan = recorded.planned("naive", recorded.least("naive"))[0]
        first, second = (planc_torch.follow(plan, cnn().step) for _ in range(2))
        self.assertTrue(all(one is not other for one, other in zip(starters(), before)))
        first.close()
        self.assertTrue(all(one is not other for one, other in zip(starters(), before)))
        with mock.patch.object(threading.Thread, "start", starters()[0]):
            theirs = threading.Thread.start
            second.close()
        self.assertEqual(starters()[1], before[1])
        ran = threading.Event()
        theirs(threading.Thread(target=ran.set))
        self.assertTrue(ran.wait(10), "what somebody has kept starts threads as before")
        threading.Thread.start = before[0]

    def test_a_step_that_starts_a_bare_one_is_told_so(self):
        recorded, made, ended = self.record(cnn), cnn(), threading.Event()

        def step(*args):
            _thread.start_new_thread(ended.set, ())
            self.assertTrue(ended.wait(10))
            return made.step(*args)

        with self.assertRaisesRegex(CannotExport, "the step starts a thread, whose calls are not seen"):
            planc_torch.record(step, arguments_of(made.example), "cpu")
        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], step)
        with self.assertWarnsRegex(planc_torch.PlanNotFollowed, "starts a thread"):
            followed(*made.example())
        followed.close()

    @needs_extension
    def test_a_step_that_waits_for_an_early_one_goes_on_without_its_plan(self):
        recorded, made, results, plain = self.record(cnn), cnn(), queue.Queue(), cnn()
        asked = threading.Event()

        def log():
            asked.wait()
            results.put(float(made.model[0].weight.sum()))

        def step(*args):
            asked.set()
            seen.append(results.get())
            return made.step(*args)

        seen = []
        threading.Thread(target=log, daemon=True).start()
        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], made.step)
        arguments = made.example()
        for run in (followed, plain.step):
            torch.manual_seed(7)
            run(*arguments)
        followed.step = step
        torch.manual_seed(8)
        with mock.patch.object(gate, "PATIENCE", 0.2), self.assertWarnsRegex(planc_torch.PlanNotFollowed, "0.weight is wanted by another thread"):
            followed(*arguments)
        self.assertEqual(seen, [float(plain.model[0].weight.sum())])
        torch.manual_seed(8)
        plain.step(*arguments)
        for one, other in zip(parameters_of(made), parameters_of(plain)):
            self.assertTrue(torch.equal(one, other))
        followed.close()

    def test_a_step_that_waits_for_such_a_thread_is_told_of(self):
        recorded, made, results = self.record(cnn), cnn(), queue.Queue()
        asked, failed = threading.Event(), []  # of one that was started while the step is followed

        def log():
            asked.wait()
            try:
                results.put(float(made.model[0].weight.sum()))
            except planc_torch.FollowError as error:
                failed.append(str(error))
                results.put(None)

        def step(*args):
            asked.set()
            results.get()
            return made.step(*args)

        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], made.step)
        followed(*made.example())
        followed.step = step
        threading.Thread(target=log, daemon=True).start()
        with mock.patch.object(gate, "PATIENCE", 0.2):
            followed(*made.example())
        self.assertRegex("".join(failed), "^0.weight is wanted by another thread than that of the step that is under way")
        followed.close()

    def test_a_first_step_may_wait_for_what_a_thread_makes(self):
        """As one does that takes its batch from a queue."""
        recorded, made, batches, asked = self.record(cnn), cnn(), queue.Queue(), threading.Event()

        def load():
            asked.wait()
            batches.put(tuple(torch.cat([part, part])[:len(part)].clone() for part in made.example()))

        def step():
            asked.set()
            return made.step(*batches.get())

        threading.Thread(target=load, daemon=True).start()
        with mock.patch.object(gate, "SHORT", 0.1):
            followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], step)
            followed()
        self.assertEqual((followed.left, followed.counts["left"]), ({}, 0))
        followed.close()

    def test_a_step_that_has_left_its_plan_lets_them_in(self):
        """As one does that starts a thread, for which it may wait."""
        recorded, made = self.record(cnn), cnn()

        def step(*args):
            with ThreadPoolExecutor(1) as pool:
                total = pool.submit(lambda: float(made.model[0].weight.sum())).result()
            return made.step(*args), total

        followed = planc_torch.follow(recorded.planned("naive", recorded.least("naive"))[0], made.step)
        followed(*made.example())
        total = float(made.model[0].weight.sum())
        followed.step = step
        with self.assertWarnsRegex(planc_torch.PlanNotFollowed, "starts a thread"):
            self.assertEqual(followed(*made.example())[1], total)
        followed.close()


def parameters_of(made):
    return [p.detach() for p in made.model.parameters()]


if __name__ == "__main__":
    unittest.main()
