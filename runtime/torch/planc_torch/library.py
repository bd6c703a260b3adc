"""libplanrt's follower (planrt/follow.h) in Python."""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_int, c_int32, c_int64, c_void_p,
                    pointer)

NAME = "libplanrt-follow.so"
HERE = os.path.dirname(os.path.abspath(__file__))


class FollowError(RuntimeError):
    """What libplanrt refuses, in its words."""


class Streams(Structure):
    """planrt_streams."""

    HOST_ALLOC = CFUNCTYPE(c_void_p, c_void_p, c_int64)
    HOST_FREE = CFUNCTYPE(None, c_void_p, c_void_p)
    COPY = CFUNCTYPE(c_int, c_void_p, c_int32, c_int32, c_void_p, c_bool)
    RECORD = WAIT = CFUNCTYPE(c_int, c_void_p, c_int32, c_int32)
    FINISH = CFUNCTYPE(c_int, c_void_p)
    _fields_ = [("host_alloc", HOST_ALLOC), ("host_free", HOST_FREE), ("copy", COPY), ("record", RECORD), ("wait", WAIT),
                ("finish", FINISH)]


class Framework(Structure):
    """planrt_framework."""

    ADDRESS = CFUNCTYPE(c_void_p, c_void_p, c_int32)
    ALLOCATE = MOVE = CFUNCTYPE(c_int, c_void_p, c_int32, c_int64)
    RELEASE = CFUNCTYPE(c_int, c_void_p, c_int32, c_bool)
    REPEAT = CFUNCTYPE(c_int, c_void_p, c_int32, POINTER(c_int32), c_int32, c_void_p)
    _fields_ = [("user", c_void_p), ("address", ADDRESS), ("allocate", ALLOCATE), ("move", MOVE), ("release", RELEASE),
                ("repeat", REPEAT), ("streams", POINTER(Streams))]


class Counts(Structure):
    """planrt_follow_counts."""

    _fields_ = [(name, c_int64) for name in ("out_bytes", "in_bytes", "repeats", "iterations", "left")]


# Where the library is: beside this package, in the source tree's build folder, or installed with it.
PLACES = [HERE, os.path.join(HERE, "..", "..", "..", "build"), os.path.join(HERE, "..", "..", "..", "..", "lib")]


def find(name):
    return next((path for path in (os.path.join(place, name) for place in PLACES) if os.path.exists(path)), name)


def load():
    try:
        library = ctypes.CDLL(find(NAME))
    except OSError as error:
        raise FollowError(f"{NAME} cannot be loaded: {error}; `make` builds it") from error
    takes = {"new": (c_void_p, POINTER(Framework), POINTER(c_void_p)), "next": (c_void_p, POINTER(c_int32)),
             "leave": (c_void_p, c_bool), "bring": (c_void_p, c_int32), "place": (c_void_p, c_void_p)}
    for name in ("new", "place", "begin", "next", "done", "leave", "end", "bring", "renew", "bring_all"):
        function = getattr(library, f"planrt_follow_{name}")
        function.argtypes, function.restype = takes.get(name, (c_void_p,)), c_void_p
    for name, result in (("buffer", c_int32), ("bytes", c_int64), ("persists", c_bool), ("repeats", c_bool), ("has", c_bool),
                         ("is_lost", c_bool)):
        function = getattr(library, f"planrt_follow_{name}")
        function.argtypes, function.restype = (c_void_p, c_int32), result
    for name, result in (("rooms", c_void_p), ("arena_bytes", c_int64)):
        function = getattr(library, f"planrt_follow_{name}")
        function.argtypes, function.restype = (c_void_p,), result
    library.planrt_follow_counted.argtypes, library.planrt_follow_counted.restype = (c_void_p,), Counts
    library.planrt_follow_free.argtypes, library.planrt_follow_free.restype = (c_void_p,), None
    library.planc_plan_read.argtypes, library.planc_plan_read.restype = (c_char_p, POINTER(c_void_p)), c_void_p
    library.planc_plan_free.argtypes, library.planc_plan_free.restype = (c_void_p,), None
    library.planc_status_message.argtypes, library.planc_status_message.restype = (c_void_p,), c_char_p
    library.planc_status_free.argtypes, library.planc_status_free.restype = (c_void_p,), None
    return library


class Follower:
    """A planrt_follow over the plan at `path`. `framework` has the methods address(buffer), allocate(buffer, address),
    release(buffer, last) and repeat(call, buffers, rooms); what one of them raises comes out of the call that led to it. So have
    its `streams`, unless they are None, host_alloc(bytes), host_free(address), copy(stream, buffer, address, out),
    record(event, stream), wait(event, stream) and finish(). `plain`: an extension.Plan that has some of all these, too."""

    def __init__(self, path, framework, plain=None):
        self.library, self.plan, self.handle = load(), c_void_p(), c_void_p()
        self.raised, self.call = None, c_int32()
        self.has_failed = False  # since the iteration began: then what it reads may not be there
        self.call_address = byref(self.call)
        self.functions = Framework(None, Framework.ADDRESS(self.guarded(framework.address, None)),
                                   Framework.ALLOCATE(self.guarded(framework.allocate, 1)), Framework.MOVE(),
                                   Framework.RELEASE(self.guarded(framework.release, 1)),
                                   Framework.REPEAT(self.guarded(
                                       lambda call, wanted, n, rooms: framework.repeat(call, wanted[:n], rooms), 1)),
                                   self.streams_of(framework.streams))
        self.plain = plain  # has to live as long
        for name, address in plain.framework.items() if plain else ():
            setattr(self.functions, name, dict(Framework._fields_)[name](address))
        self.check(self.library.planc_plan_read(os.fsencode(path), byref(self.plan)))
        try:
            self.check(self.library.planrt_follow_new(self.plan, byref(self.functions), byref(self.handle)))
        except FollowError as error:
            self.close()
            raise FollowError(f"{path}: {error}") from None

    def streams_of(self, streams):
        if streams is None:
            return None
        self.streams = Streams(Streams.HOST_ALLOC(self.guarded(streams.host_alloc, None)),
                               Streams.HOST_FREE(self.guarded(streams.host_free, None)),
                               Streams.COPY(self.guarded(streams.copy, 1)), Streams.RECORD(self.guarded(streams.record, 1)),
                               Streams.WAIT(self.guarded(streams.wait, 1)), Streams.FINISH(self.guarded(streams.finish, 1)))
        return pointer(self.streams)

    def guarded(self, function, failure):
        """`function` without its first argument, for C: an exception waits until C has returned."""
        def call(_, *args):
            try:
                return function(*args) or 0
            except BaseException as error:  # an interrupt, too
                self.raised = self.raised or error
                return failure
        return call

    def check(self, status):
        raised, self.raised = self.raised, None
        if not status and not raised:
            return
        self.has_failed = True
        if not status:
            raise raised
        message = self.library.planc_status_message(status).decode()
        self.library.planc_status_free(status)
        raise raised or FollowError(message)

    def place(self, arena):
        self.check(self.library.planrt_follow_place(self.handle, arena))

    def arena_bytes(self):
        return self.library.planrt_follow_arena_bytes(self.handle)

    def rooms(self):
        return self.library.planrt_follow_rooms(self.handle)

    def begin(self):
        self.has_failed = False
        self.check(self.library.planrt_follow_begin(self.handle))

    def next(self):
        self.check(self.library.planrt_follow_next(self.handle, self.call_address))

    def done(self):
        self.check(self.library.planrt_follow_done(self.handle))

    def leave(self, made):
        self.check(self.library.planrt_follow_leave(self.handle, made))

    def end(self):
        self.check(self.library.planrt_follow_end(self.handle))

    def bring(self, buffer):
        self.check(self.library.planrt_follow_bring(self.handle, buffer))

    def renew(self, buffer):
        self.check(self.library.planrt_follow_renew(self.handle, buffer))

    def bring_all(self):
        self.check(self.library.planrt_follow_bring_all(self.handle))

    def has(self, buffer):
        return self.library.planrt_follow_has(self.handle, buffer)

    def is_lost(self, buffer):
        return self.library.planrt_follow_is_lost(self.handle, buffer)

    def buffer(self, tensor):
        return self.library.planrt_follow_buffer(self.handle, tensor)

    def bytes(self, buffer):
        return self.library.planrt_follow_bytes(self.handle, buffer)

    def persists(self, buffer):
        return self.library.planrt_follow_persists(self.handle, buffer)

    def repeats(self, call):
        return self.library.planrt_follow_repeats(self.handle, call)

    def addresses(self):
        """Of itself and of what a call takes, for C."""
        functions = (getattr(self.library, f"planrt_follow_{name}") for name in ("next", "done", "rooms"))
        return (self.handle.value, *(ctypes.cast(function, c_void_p).value for function in functions))

    def counts(self):
        counted = self.library.planrt_follow_counted(self.handle)
        return {name: getattr(counted, name) for name, _ in Counts._fields_}

    def __del__(self):
        if getattr(self, "handle", None):
            self.close()

    def close(self):
        self.library.planrt_follow_free(self.handle)
        self.library.planc_plan_free(self.plan)
        self.plan, self.handle = c_void_p(), c_void_p()
