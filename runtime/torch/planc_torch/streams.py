"""Streams that copies run on beside the step's calls, as libplanrt has them ordered (planrt_streams)."""

import os
import threading
import weakref
from queue import SimpleQueue

import torch

from . import guests

CALLS = 0  # the stream that calls run on


class Streams:
    """`storages` are those that buffers are in. What a kind of device does is in `enqueue`, `record`, `wait` and `finish`. Whoever is in
    inference mode has copies made as well: their tensors are none of that mode, outside of which no thread could write them."""

    def __init__(self, storages):
        self.storages = storages
        self.host = {}  # host memory that copies run to and from, by its address

    def host_alloc(self, size):
        with torch.inference_mode(False):
            memory = self.host_memory(size)
        self.host[memory.data_ptr()] = memory
        return memory.data_ptr()

    def host_free(self, address):
        del self.host[address]

    def copy(self, stream, buffer, address, out):
        storage = self.storages[buffer]
        size = storage.nbytes()
        start = max(begin for begin in self.host if begin <= address)
        with torch.inference_mode(False):
            host = self.host[start][address - start:address - start + size]
            data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (size,))
            self.enqueue(stream, *((host, data) if out else (data, host)))


class Thread:
    """Does what it is asked for, one after the other. Python may collect garbage, and with it have other streams finish,
    wherever somebody asks; so there is no lock that one could be asked again under."""

    def __init__(self):
        self.tasks = SimpleQueue()
        self.failures = []
        self.thread = threading.Thread(target=self.work, name="planc copies", daemon=True)
        guests.START(self.thread)  # it is no guest

    def work(self):
        from .following import SEEN  # not above: that imports this
        SEEN.threads.watched.is_own = True
        while self.do(self.tasks.get()):
            pass  # what a task has goes with it, and not when another comes

    def do(self, task):
        """Whether there may be another one."""
        try:
            if task is not None:
                task()
        except Exception as error:  # whoever waits for it is told
            self.failures.append(error)
        return task is not None

    def reach(self):
        """A function that returns when all is done that was asked for until now. This thread itself, in which garbage may be
        collected as well, does that at once."""
        if threading.current_thread() is self.thread:
            while not self.tasks.empty():
                self.do(self.tasks.get())
            return bool
        reached = threading.Lock()
        reached.acquire()
        self.tasks.put(reached.release)

        def wait():
            with reached:
                pass
            if self.failures:
                raise self.failures.pop(0)
        return wait


class ProcessorStreams(Streams):
    """Each stream but that of the calls is a thread. The calls' has done all that was asked of it."""

    def __init__(self, storages):
        super().__init__(storages)
        self.threads = {}
        ALL.add(self)
        weakref.finalize(self, self.end, self.threads)
        self.events = {}  # by number: what waits for it; None where it was reached at once

    @staticmethod
    def host_memory(size):
        return torch.empty(size, dtype=torch.uint8, device="cpu")

    def thread(self, stream):
        if stream not in self.threads:
            self.threads[stream] = Thread()
        return self.threads[stream]

    def enqueue(self, stream, to, source):
        self.thread(stream).tasks.put(lambda: to.copy_(source))

    def record(self, event, stream):
        self.events[event] = None if stream == CALLS else self.thread(stream).reach()

    def wait(self, event, stream):
        wait = self.events[event]
        if wait is not None and stream == CALLS:
            wait()
        elif wait is not None:
            self.thread(stream).tasks.put(wait)

    def finish(self):
        for wait in [thread.reach() for thread in self.threads.values()]:
            wait()

    @staticmethod
    def end(threads):
        """The threads end, and before the interpreter does: none is to be stopped within a copy."""
        waits = [thread.reach() for thread in threads.values()]
        for wait, number in zip(waits, list(threads)):
            wait()
            threads.pop(number).tasks.put(None)


ALL = weakref.WeakSet()  # those of the processor


def finish_all():
    for streams in list(ALL):
        streams.finish()


def forget_threads():
    for streams in list(ALL):
        streams.threads.clear()
        streams.events.update(dict.fromkeys(streams.events))


# A process that was forked has none of these threads. What they have recorded was reached before.
os.register_at_fork(before=finish_all, after_in_child=forget_threads)


class GpuStreams(Streams):
    """Streams of CUDA's, of the device that the step is on. Calls run on the one that is current."""

    def __init__(self, storages):
        super().__init__(storages)
        self.others, self.events = {}, {}

    @property
    def device(self):
        return next((storage.device for storage in self.storages.values()), None)

    @staticmethod
    def host_memory(size):
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def stream(self, number):
        if number == CALLS:
            return torch.cuda.current_stream(self.device)
        if number not in self.others:
            self.others[number] = torch.cuda.Stream(self.device)
        return self.others[number]

    def event(self, number):
        if number not in self.events:
            self.events[number] = torch.cuda.Event()
        return self.events[number]

    def enqueue(self, stream, to, source):
        with torch.cuda.stream(self.stream(stream)):
            to.copy_(source, non_blocking=True)

    def record(self, event, stream):
        self.event(event).record(self.stream(stream))

    def wait(self, event, stream):
        self.stream(stream).wait_event(self.event(event))

    def finish(self):
        for stream in (CALLS, *self.others):
            self.stream(stream).synchronize()


KINDS = {"cpu": ProcessorStreams, "cuda": GpuStreams}
