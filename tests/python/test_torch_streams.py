#!/usr/bin/env python3
"""Tests of the streams that copies of followed steps run on. What orders them is tested in tests/unit/test_follow.c, and
that steps compute the same with them in test_torch_follow.py."""

import gc
import os
import subprocess
import sys
import threading
import unittest
from contextlib import contextmanager
from queue import SimpleQueue
from unittest import mock

from torchexport import torch  # first: it finds a Python with PyTorch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "runtime", "torch"))

from planc_torch.memory import storage_of
from planc_torch.streams import CALLS, GpuStreams, ProcessorStreams

OUT, IN = 1, 2


def held_up(streams, stream):
    """The stream does nothing until it may go on."""
    go_on = threading.Event()
    streams.thread(stream).tasks.put(go_on.wait)
    return go_on


class ProcessorTest(unittest.TestCase):
    def setUp(self):
        self.tensors = [torch.full((64,), float(k)) for k in range(3)]
        self.streams = ProcessorStreams({k: storage_of(tensor) for k, tensor in enumerate(self.tensors)})
        self.host = self.streams.host_alloc(1024)

    def test_host_waits_for_what_a_stream_has_recorded(self):
        go_on = held_up(self.streams, OUT)
        self.streams.copy(OUT, 1, self.host + 256, True)
        self.streams.record(0, OUT)
        self.streams.wait(0, IN)
        self.streams.copy(IN, 2, self.host + 256, False)
        self.streams.record(1, IN)
        self.assertEqual(self.tensors[2].tolist(), [2.0] * 64)
        go_on.set()
        self.streams.wait(1, CALLS)
        self.assertEqual(self.tensors[2].tolist(), [1.0] * 64)

    def test_calls_have_done_what_they_record(self):
        self.streams.record(0, CALLS)
        self.streams.wait(0, OUT)
        self.streams.copy(OUT, 1, self.host, True)
        self.streams.copy(OUT, 2, self.host, False)
        self.streams.finish()
        self.assertEqual(self.tensors[2].tolist(), [1.0] * 64)

    def test_copy_that_fails_is_told_where_it_is_waited_for(self):
        self.streams.enqueue(OUT, torch.empty(2), torch.empty(3))
        self.streams.record(0, OUT)
        with self.assertRaises(RuntimeError):
            self.streams.wait(0, CALLS)
        self.streams.finish()  # it is told once

    def test_a_process_that_was_forked_has_threads_of_its_own(self):
        self.streams.copy(OUT, 1, self.host, True)
        self.streams.record(0, OUT)
        child = os.fork()
        if child == 0:
            try:
                self.streams.wait(0, IN)
                self.streams.wait(0, CALLS)
                self.streams.copy(OUT, 2, self.host, False)
                self.streams.finish()
            finally:
                os._exit(0 if self.tensors[2].tolist() == [1.0] * 64 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_others_finish_in_the_middle_of_a_question(self):
        """As where garbage is collected within it."""
        other = ProcessorStreams(self.streams.storages)
        other.copy(OUT, 1, other.host_alloc(256), True)
        go_on = held_up(other, OUT)
        threading.Timer(0.05, go_on.set).start()
        asked = []

        class Interrupted(SimpleQueue):
            def put(self, task):
                other.finish()
                asked.append(task)
                super().put(task)
        with mock.patch("planc_torch.streams.SimpleQueue", Interrupted):
            self.streams.copy(OUT, 1, self.host, True)
        self.assertEqual(len(asked), 1)

    def test_threads_end_with_what_asked_them(self):
        before = set(threading.enumerate())
        self.streams.copy(OUT, 1, self.host, True)
        made = set(threading.enumerate()) - before
        self.assertEqual(len(made), 1)
        self.streams = None
        gc.collect()
        for thread in made:
            thread.join()

    def test_interpreter_ends_after_what_was_asked_for(self):
        program = ("import sys, time\n"
                   f"sys.path.insert(0, {os.path.join(ROOT, 'runtime', 'torch')!r})\n"
                   "import torch\n"
                   "from planc_torch.streams import ProcessorStreams\n"
                   "streams = ProcessorStreams({})\n"
                   "streams.thread(1).tasks.put(lambda: time.sleep(0.2))\n"
                   "streams.thread(1).tasks.put(lambda: print('copied', flush=True))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "copied\n", ""))


class Stream:
    """Stands for a stream of CUDA's: writes down what is asked of it."""

    def __init__(self, device=None):
        self.device, self.asked = device, []

    def wait_event(self, event):
        self.asked.append(("wait", event))

    def synchronize(self):
        self.asked.append(("synchronize",))


class Event:
    def record(self, stream):
        stream.asked.append(("record", self))


class GpuTest(unittest.TestCase):
    """Without a GPU: that copies, records and waits are asked of the streams that they are for."""

    def test_each_is_asked_of_its_stream(self):
        calls, current = Stream(), []

        @contextmanager
        def entered(stream):
            current.append(stream)
            yield
            current.pop()

        def copy(to, source, non_blocking):
            self.assertTrue(non_blocking)
            current[-1].asked.append(("copy", to.data_ptr(), source.data_ptr(), to.numel()))
        tensors = [torch.full((64,), float(k)) for k in range(2)]
        streams = GpuStreams({k: storage_of(tensor) for k, tensor in enumerate(tensors)})
        with mock.patch.multiple(torch.cuda, Stream=Stream, Event=Event, stream=entered, current_stream=lambda device: calls), \
                mock.patch.object(GpuStreams, "host_memory", staticmethod(ProcessorStreams.host_memory)), \
                mock.patch.object(torch.Tensor, "copy_", copy):
            host = streams.host_alloc(1024)
            streams.record(5, CALLS)
            streams.wait(5, OUT)
            streams.copy(OUT, 1, host + 512, True)
            streams.record(6, OUT)
            streams.wait(6, IN)
            streams.copy(IN, 0, host + 512, False)
            streams.wait(6, CALLS)
            streams.finish()
            streams.host_free(host)
        out, back = streams.others[OUT], streams.others[IN]
        first, second = streams.events[5], streams.events[6]
        self.assertEqual(calls.asked, [("record", first), ("wait", second), ("synchronize",)])
        self.assertEqual(out.asked, [("wait", first), ("copy", host + 512, tensors[1].data_ptr(), 256), ("record", second),
                                     ("synchronize",)])
        self.assertEqual(back.asked, [("wait", second), ("copy", tensors[0].data_ptr(), host + 512, 256), ("synchronize",)])
        self.assertEqual(streams.host, {})


if __name__ == "__main__":
    unittest.main()
