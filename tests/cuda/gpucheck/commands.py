"""Running programs: every one in a process group of its own, under a limit that follows from how long it should take.

A program that outlasts its limit gets SIGINT, on which planrun keeps what it has and ends. One that still runs is asked
where it hangs, by a debugger where there is one, and then killed; at the end of a sitting there is no time to ask. All that
programs print is kept in a log."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import time

GRACE = 10  # seconds from one signal to the next
DEBUGGERS = ("gdb", "cuda-gdb")
LOOK, LAST_LOOK = 60, 20  # seconds for a debugger, and where the sitting has fewer left
MOST_KEPT = 4 << 20  # characters of what a program prints, from its beginning and from its end
SLACK, FACTOR = 30, 4  # of a limit: seconds beside, and times, what was predicted


class Failure(Exception):
    """A check does not hold, with the reason."""


class Unfit(Exception):
    """A check that cannot be, by its nature, with the reason: no failure."""


class Over(Exception):
    """The sitting's time is up: what was going on counts for nothing."""


class Commands:
    """Runs programs for one check at a time. `environment` is added to ours; `deadline` is the sitting's end on the
    monotonic clock."""

    def __init__(self, environment, deadline, patience=1):
        self.environment, self.deadline, self.patience = dict(environment), deadline, patience
        self.log = None          # a text file, or None
        self.children = set()    # that run
        self.extra = {}          # environment of the check at hand
        self.other_limit = None  # seconds instead of the limits of all its programs

    def remaining(self):
        return self.deadline - time.monotonic()

    def limit(self, seconds):
        if self.other_limit is not None:
            return self.other_limit
        return self.patience * (SLACK + FACTOR * seconds)

    def run(self, *command, seconds=5, ours=True, **environment):
        """What the program printed and its exit code, `seconds` being what it should take. Others than ours must not
        see our choice of libraries."""
        return self.wait(self.start(*command, ours=ours, **environment), seconds)

    def must(self, *command, **how):
        """Its standard output; it must end with exit code 0."""
        done = self.run(*command, **how)
        if done.returncode:
            raise Failure(f"{tell(command)}: exit {done.returncode}: {last_words(done.stderr)}")
        return done.stdout

    def start(self, *command, ours=True, **environment):
        added = {**self.environment, **environment} if ours else environment
        child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="backslashreplace", start_new_session=True,
                                 preexec_fn=with_us(), env={**os.environ, **added, **self.extra})
        self.children.add(child)
        return child

    def kill_all(self):
        self.deadline = time.monotonic()  # for those that begin meanwhile
        for child in list(self.children):
            signal_group(child, signal.SIGKILL)

    def wait(self, child, seconds):
        begun, limit = time.monotonic(), self.limit(seconds)
        ends_first = self.remaining() < limit  # the sitting
        try:
            out, err = child.communicate(timeout=max(1, min(limit, self.remaining())))
        except subprocess.TimeoutExpired:
            out, err = self.stop(child, asks=not ends_first)
            self.write(child, out, err, begun)
            if ends_first:
                raise Over("the time is up") from None
            raise Failure(f"{tell(child.args)}: took more than {limit:.0f} s") from None
        except BaseException:  # we are told to end
            self.write(child, *self.stop(child, asks=False), begun)
            raise
        finally:
            self.children.discard(child)
        self.write(child, out, err, begun)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def stop(self, child, asks):
        """Ends a program that does not end, even where we are interrupted meanwhile. What it had printed, and where it
        hangs. A profile takes being killed for the fault of the algorithm that it tries, and leaves that out from then on;
        two interrupts it blames on nothing."""
        where = ""
        try:
            return interrupt(child)
        except subprocess.TimeoutExpired:
            if asks:
                where = trace_of(child, LOOK if self.remaining() > LOOK else LAST_LOOK)
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return interrupt(child)
        finally:
            kill(child)
        try:
            out, err = child.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired as held:  # by a driver, or by who left its group
            out, err = so_far(held.stdout), so_far(held.stderr) + "\n# it does not die\n"
            child.stdout.close()
            child.stderr.close()
        return out, err + where

    def write(self, child, out, err, begun):
        if not self.log:
            return
        self.log.write(f"$ {tell(child.args, 1000)}\n# exit {child.returncode}, {time.monotonic() - begun:.1f} s\n"
                       f"{shortened(out)}{shortened(err)}\n")
        self.log.flush()


def with_us():
    """What a new process does first, so that it heeds our interrupts and does not outlive us on the device, however we
    end."""
    try:
        import ctypes
    except ImportError:  # a Python without libffi
        return heed_interrupts
    return functools.partial(die_with, os.getpid(), ctypes.CDLL(None).prctl)


def heed_interrupts():
    """Where we are started so that they are ignored, as in the background of a shell's script, they are for us alone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def die_with(parent, prctl):
    heed_interrupts()
    set_parent_death_signal = 1
    prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:  # it has died meanwhile
        os._exit(1)


def so_far(printed):
    return printed.decode(errors="backslashreplace") if isinstance(printed, bytes) else printed or ""


def tell(command, most=160):
    """A command as people read it."""
    name, *rest = map(str, command)
    text = " ".join([os.path.basename(name), *rest])
    return text if len(text) <= most else text[:most] + "..."


def shortened(text):
    """Whoever prints the same for ever must not fill the disk."""
    between = len(text) - 2 * MOST_KEPT
    return text if between <= 0 else f"{text[:MOST_KEPT]}\n# {between} characters\n{text[-MOST_KEPT:]}"


def last_words(text, most=400):
    return text.strip()[-most:]


def signal_group(child, number):
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def interrupt(child):
    """What it had printed, if it ends by that."""
    signal_group(child, signal.SIGINT)
    return child.communicate(timeout=GRACE)


def kill(child):
    """One that a driver holds may not even die."""
    signal_group(child, signal.SIGKILL)
    try:
        child.wait(timeout=GRACE)
    except subprocess.TimeoutExpired:
        pass


def trace_of(child, seconds):
    """Where all threads of a process are, as a debugger sees it."""
    for debugger in filter(shutil.which, DEBUGGERS):
        try:
            found = subprocess.run([debugger, "-p", str(child.pid), "-batch", "-ex", "thread apply all bt"],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="backslashreplace",
                                   timeout=seconds)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"\n# {debugger}: {error}\n"
        return f"\n# {debugger}:\n{found.stdout}\n{last_words(found.stderr)}\n"
    return f"\n# where it hangs is not known: there is no {' and no '.join(DEBUGGERS)}\n"
