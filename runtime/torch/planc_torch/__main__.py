"""What `planc torch` runs: records a step, has planc compare the policies for it, and keeps the best plan."""

import argparse
import gc
import importlib.util
import inspect
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from contextlib import contextmanager, nullcontext, redirect_stdout

PROGRAM = "planc torch"
try:
    import torch
except ImportError:
    print(f"{PROGRAM}: {sys.executable} has no PyTorch; set PLANC_PYTHON to a Python that has it", file=sys.stderr)
    sys.exit(2)

from .batches import BatchGraph
from .calls import END, tensors_in
from .checking import difference
from .library import Follower, FollowError
from .micro import MOST
from .no_driver import NO_DRIVER, Gpu
from .plan_file import PlanFile
from .step_graph import StepGraph
from .step_recorder import record
from graphfile import legal_name, probe, write_files
from torch_refusals import CannotExport, line_raised

EXIT_INFEASIBLE, EXIT_USAGE, EXIT_BAD_INPUT, EXIT_OTHER_GRAPH, EXIT_IO, EXIT_INTERRUPTED = 1, 2, 3, 4, 5, 130
UNLIMITED = "4T"
SEARCHING = ("priced",)  # policies that --effort says something to


class Stop(Exception):
    """Why no plan is made, and the exit code."""

    def __init__(self, code, what):
        super().__init__(what)
        self.code = code


LeftOut = namedtuple("LeftOut", "number code why")  # of micro-batches, in which nothing is planned


@contextmanager
def leaving_out(number, left_out):
    """Within, what cannot be done in so many micro-batches is told in `left_out`, since others may do. Nothing of it is kept: what
    raised has the tensors of a step that may have been too large."""
    try:
        yield
        return
    except CannotExport as error:
        left_out.append(LeftOut(number, EXIT_BAD_INPUT, str(error)))
    except Stop as stop:
        if stop.code not in (EXIT_INFEASIBLE, EXIT_BAD_INPUT):
            raise
        left_out.append(LeftOut(number, stop.code, str(stop)))
    gc.collect()


@contextmanager
def reraised(what):
    """Within, what the user's code raises becomes one sentence, with the user's line."""
    try:
        with redirect_stdout(sys.stderr):  # what the user's code prints is no part of the table
            yield
    except (CannotExport, Stop):
        raise
    except (Exception, SystemExit) as error:
        at = isinstance(error, SyntaxError) and error.filename
        place = f"{error.filename}:{error.lineno}" if at else line_raised(error)
        where = f"{place}: " if place else ""
        without = any(word in str(error) for word in NO_DRIVER) and not torch.cuda.is_available()
        hint = "; --fake records a step without a GPU" if without else ""
        raise Stop(EXIT_BAD_INPUT, f"{where}{what} {type(error).__name__}: {error}{hint}") from error


# --- The user's file --------------------------------------------------------------------------------------------------


def load(place, example, arguments):
    """The step, and what gives its arguments. The file finds its own name and `arguments` in sys.argv."""
    path, _, name = place.rpartition(":")
    if not path or not name:
        raise Stop(EXIT_USAGE, f"{place}: FILE.py:STEP is expected")
    if not os.path.isfile(path):
        raise Stop(EXIT_BAD_INPUT, f"{path}: no such file")
    spec = importlib.util.spec_from_file_location("__planc_step__", path)  # a name that no other module has
    if spec is None:
        raise Stop(EXIT_USAGE, f"{path}: a Python file is expected")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look a module up by its name
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv = [path, *arguments]
    with reraised(f"{path} raised"):
        spec.loader.exec_module(module)
    functions = [getattr(module, wanted, None) for wanted in (name, example)]
    for function, wanted in zip(functions, (name, example)):
        if not callable(function):
            raise Stop(EXIT_BAD_INPUT, f"{path} has no function {wanted}")
    return functions


def arguments_of(example):
    """A function that gives the step's arguments: what example() gives, a tuple or the one argument."""
    def make():
        with reraised("the function that gives the arguments raised"):
            given = example()
        return given if type(given) is tuple else (given,)
    return make


def of_batch(example, batch):
    """What gives the arguments of a batch size."""
    def make():
        try:
            inspect.signature(example).bind(batch)
        except TypeError as error:
            raise Stop(EXIT_BAD_INPUT, f"with --batches {example.__name__}() is given a batch size, which it does not take") from error
        return example(batch)
    return make


def default_device(make_args):
    """Where the step runs: on the GPU where PyTorch sees one, unless the arguments are elsewhere."""
    devices = {tensor.device.type for tensor in tensors_in(make_args())} - {"cpu"}
    if len(devices) > 1:
        raise Stop(EXIT_BAD_INPUT, f"the step's arguments are on {' and '.join(sorted(devices))}; one device is planned")
    return devices.pop() if devices else "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def session(options):
    """What the step is recorded in: a device, or with --fake what stands for one. The step may go to another folder; planc and
    what it writes stay in this one."""
    here = os.getcwd()
    try:
        with device_of(options):
            yield
    finally:
        os.chdir(here)


def device_of(options):
    if not options.fake:
        return nullcontext()
    from .fake import is_possible, without_memory
    if not is_possible():
        raise Stop(EXIT_USAGE, f"--fake needs PyTorch 2, and {sys.executable} has {torch.__version__}")
    described = read_description(options)
    return without_memory(Gpu(options.profile or options.device, described))


def recorded(options, numbers, left_out):
    """The step's graphs, of each of these numbers of micro-batches that it can be recorded in."""
    graphs, samples = [], math.inf  # of the smallest batch that the step divides
    with session(options):
        step, example = load(options.step, options.example, options.arguments)
        for number in numbers:
            with leaving_out(number, left_out):
                refuse_undivided(options, samples, number)
                graph = record_with(options, step, example, number)
                samples = graph.recorder.division.samples
                if options.micro_batches and samples is not None:
                    refuse_undivided(options, samples, number)
                graphs.append(graph)
            if options.micro_batches and samples is None:
                raise Stop(EXIT_BAD_INPUT, f"{options.step}: the step takes no micro-batches; with --micro-batches it goes through "
                           "those that planc_torch.micro_batches() gives")
    return graphs


def refuse_undivided(options, samples, number):
    if samples < number:
        raise Stop(EXIT_BAD_INPUT, f"{options.step}: a batch of {samples} sample{'s' if samples != 1 else ''} has no {number} "
                   "micro-batches; leave out what is more than its samples")


def raise_first(left_out):
    """Nothing can be planned; the first number has tried to."""
    _, code, why = min(left_out)
    raise Stop(code, why)


def recorded_at(options, batches):
    """The step's graphs at several batch sizes."""
    with session(options):
        step, example = load(options.step, options.example, options.arguments)
        return [record_with(options, step, of_batch(example, batch)) for batch in batches]


def record_with(options, step, example, micro_batches=1):
    make_args = arguments_of(example)
    with reraised(f"the step{f' {in_parts(micro_batches)}' if micro_batches > 1 else ''} raised"):
        device = options.on or ("cuda" if options.fake else default_device(make_args))
        recorder = record(step, make_args, device, not options.fake, micro_batches)
    if not any(call.name != END for call in recorder.calls):
        hint = "; move model and arguments there, or give --on cpu" if recorder.device == "cuda" else ""
        raise Stop(EXIT_BAD_INPUT, f"{options.step}: the step makes no call on {recorder.device}{hint}")
    if all(call.phase == "forward" for call in recorder.calls if call.name != END):
        raise Stop(EXIT_BAD_INPUT, f"{options.step}: the step makes no backward pass, and a plan is of training; let it call "
                   "backward(), and the optimizer's step()")
    return StepGraph(recorder, legal_name(os.path.splitext(os.path.basename(options.step.rpartition(":")[0]))[0]))


# --- planc ------------------------------------------------------------------------------------------------------------


def run_planc(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode < 0:
        raise Stop(EXIT_IO, f"planc {arguments[0]} was ended by signal {-done.returncode}: {signal.strsignal(-done.returncode)}")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("planc: note:")]
        raise Stop(done.returncode, "\n".join(lines).removeprefix("planc: "))
    return done.stdout


def read_description(options):
    """The device's description, or the profile that has one."""
    with open(options.profile or options.device, encoding="utf-8") as file:
        try:
            described = json.load(file)
            for key in ("name", "memory_bytes", "reserved_bytes"):
                described["device"][key]
            return described
        except (ValueError, KeyError, TypeError) as error:
            raise Stop(EXIT_BAD_INPUT, f"{file.name}: not a device description or profile") from error


class Problem:
    """The recorded graph, in a file, and how much there is of the device that it is planned for. `first`: the same step in fewer
    micro-batches, whose budget is this one's."""

    def __init__(self, graph, options, folder, first=None):
        self.program, self.graph = options.planc, graph
        self.path = os.path.join(folder, f"step-{self.number}.yaml")
        graph.write(self.path)
        self.outside = graph.outside_bytes
        described = read_description(options)
        # On the processor there is no context of a device, and libraries work in what they allocate.
        self.reserved = 0 if graph.recorder.device == "cpu" else described["device"]["reserved_bytes"]
        # What the user holds beside the plan is taken of the device as what its libraries take.
        kind, self.device = ("--profile", options.profile) if options.profile else ("--device", options.device)
        self.common = [self.path, kind, self.device, "--reserved", self.reserved + self.outside]
        if options.host_budget:
            self.common += ["--host-budget", options.host_budget]
        plain = json.loads(self.planc("plan", "--policy", "none", "--budget", UNLIMITED, "--json", "-o",
                                      os.path.join(folder, "plain.plan")))
        self.plain_bytes, self.plain_ns, self.ideal_ns = plain["peak_bytes"], plain["iteration_ns"], plain["ideal_ns"]
        self.share = ""
        self.budget = first.budget if first else self.budget_of(options.budget)
        self.effort = ["--effort", options.effort] if options.effort else []
        self.bound_ns, self.fits_best = None, False  # not known; math.inf where no plan fits
        self.compared, self.rows = None, []

    @property
    def number(self):
        """Of micro-batches."""
        return self.graph.micro_batches

    def find_bound(self):
        """What no plan in these micro-batches is faster than."""
        try:
            bound = json.loads(self.planc("bound", *self.budget, "--json"))
        except Stop as stop:
            if stop.code != EXIT_INFEASIBLE:
                raise
            self.bound_ns = math.inf
            return
        self.bound_ns = bound["bound_ns"]
        self.fits_best = self.plain_bytes <= bound["budget_bytes"] and self.plain_ns <= self.bound_ns

    def compare(self):
        """Of a step that fits as it is, than which nothing is faster, that is all there is to ask for."""
        asked = ["--policies", "none"] if self.fits_best else self.effort
        self.compared = json.loads(self.planc("compare", *self.budget, *asked, "--json"))
        self.rows = [{**row, "micro_batches": self.number} for row in self.compared["rows"] if row["policy"] != "ideal"]

    def planc(self, command, *arguments):
        return run_planc(self.program, command, *self.common, *arguments)

    def budget_of(self, text):
        """The device's by default. N%: of what the step itself takes as it is, beside what libraries take."""
        if not text or not text.endswith("%"):
            return ["--budget", text] if text else []
        try:
            share = float(text[:-1])
        except ValueError:
            share = 0.0
        if not 0 < share <= 1000:
            raise Stop(EXIT_USAGE, f"--budget takes a size or a percentage above 0, not {text}")
        own, beside = self.plain_bytes - self.reserved, " beside the libraries'" if self.reserved else ""
        self.share = f" ({share:g} % of the {size(own)} that the step takes itself{beside})"
        return ["--budget", self.reserved + int(own * share / 100)]


# --- The table --------------------------------------------------------------------------------------------------------


def size(count):
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return ""


def time(ns):
    return f"{ns / 1e6:.3f} ms" if ns < 10**9 else f"{ns / 1e9:.3f} s"


def row_text(row, first, is_divided, best):
    overhead = row["iteration_ns"] / first.plain_ns - 1 if first.plain_ns else 0.0
    number = f"{row['micro_batches']:>14}" if is_divided else ""
    return (f"{row['policy']:<14}{number}{size(row['peak_bytes']):>14}{time(row['iteration_ns']):>14}{overhead:>+9.1%}"
            f"{size(row['d2h_bytes']):>13}{size(row['h2d_bytes']):>13}{time(row['recompute_ns']):>14}{best}")


def in_parts(number):
    return f"in {number} micro-batch{'es' if number > 1 else ''}"


def as_it_is(problem):
    """The step without a plan, in its micro-batches where it has several."""
    return "as it is" + (f" {in_parts(problem.number)}" if problem.number > 1 else "")


def verdict(row):
    """The winner in the words that its users know it by."""
    number, swaps, again = row["micro_batches"], row["d2h_bytes"] or row["h2d_bytes"], row["recompute_ns"]
    if not swaps and not again:
        return (f"the step fits {in_parts(number)}: gradient accumulation, and nothing else" if number > 1 else
                "the step fits as it is, and its plan changes nothing")
    what = [f"swaps {size(row['d2h_bytes'])} out and {size(row['h2d_bytes'])} in"] if swaps else []
    what += [f"computes again for {time(again)}"] if again else []
    does = f"the plan {' and '.join(what)}"
    if number > 1:
        beside = [name for name, is_done in (("swaps", swaps), ("checkpointing", again)) if is_done]
        return f"in each step, of {number} micro-batches, {does}, which is gradient accumulation with {' and '.join(beside)}"
    return f"in each step {does}" + ("" if swaps else ", which is checkpointing")


def show(problems, rows, chosen, left_out, options):
    """`problems` by their numbers of micro-batches, as everywhere here; `rows` that are feasible, and the one of these that is taken."""
    first, *others = problems.values()
    taken = problems[chosen["micro_batches"]]
    graph, compared, is_divided = first.graph, taken.compared, bool(options.micro_batches)
    print(f"{graph.name}: {len(graph.calls) - 1} calls; {as_it_is(first)} {size(first.plain_bytes)} of device memory and "
          f"{time(first.plain_ns)} a step on {compared['device']}")
    for problem in others:
        print(f"{in_parts(problem.number)} {len(problem.graph.calls) - 1} calls, {size(problem.plain_bytes)} and {time(problem.plain_ns)}")
    print(f"budget {size(compared['budget_bytes'])}{first.share}, of which {size(taken.reserved)} are the libraries' and "
          f"{size(taken.outside)} the step's arguments and what else the plan leaves alone")
    if graph.scratch_bytes is None:
        why = "nothing is allocated with --fake" if options.fake else "it takes planc_torch's extension to see it"
        print(f"no room is planned for what calls allocate and free themselves: {why}")
    if graph.recorder.zeroed:
        print(f"{graph.recorder.zeroed}: gradients are zeroed in place, so that they stay between steps; "
              "zero_grad(set_to_none=True) frees them")
    number = f"{'micro-batches':>14}" if is_divided else ""
    print(f"{'policy':<14}{number}{'peak':>14}{'step':>14}{'slower':>9}{'to the host':>13}{'and back':>13}{'run again for':>14}")
    for row in rows:
        print(row_text(row, first, is_divided, "  <- taken" if row is chosen else ""))
    for problem in problems.values():
        tell_missing(problem, is_divided)
    for line in told(left_out):
        print(line)
    print(f"slower is than the step {as_it_is(first)}; planc explain and planc compare count from ideal, the calls alone: "
          f"{time(taken.ideal_ns)}")
    print(f"{verdict(chosen)}: {options.output}")
    if options.graph:
        line = options.graph, *taken.common[1:], "--budget", compared["budget_bytes"], *taken.effort
        words = " ".join(shlex.quote(str(word)) for word in line)
        print(f"planc compare {words} compares them again" + (f" {in_parts(taken.number)}" if is_divided else ""))


def tell_missing(problem, is_divided):
    if problem.fits_best and problem.compared:
        print(f"{in_parts(problem.number)} no plan is faster than that of policy none: no other was compared")
    elif not problem.compared and problem.bound_ns < math.inf:
        print(f"{in_parts(problem.number)} no plan is faster than {time(problem.bound_ns)}: none was compared")
    missing = [row["policy"] for row in problem.rows if not row["feasible"]]
    if missing or not problem.compared and problem.bound_ns == math.inf:
        number = f" {in_parts(problem.number)}" if is_divided else ""
        policies = f" by {', '.join(missing)}" if len(missing) < len(problem.rows) else ""
        print(f"no plan fits{number}{policies}")


def told(left_out):
    """Of each number in which nothing is planned why, in one line whatever raised in the user's code says."""
    return [f"{in_parts(number)} nothing is planned: {' '.join(why.split())}" for number, _, why in sorted(left_out)]


def refusal(problems, path, is_divided):
    """That no plan fits, with the least budget that was found to, if it is the device's, and what binds."""
    first = next(iter(problems.values()))
    beyond = [(row["least_budget"], problem.number, row["policy"], problem) for problem in problems.values() for row in problem.rows
              if row["least_budget"] is not None]
    least, number, policy, problem = min(beyond, key=lambda one: one[:3], default=(0, 1, "", first))
    why = ""
    try:
        problem.planc("plan", *problem.budget, *problem.effort, "-o", path)
    except Stop as stop:
        why = str(stop)
    numbers = [str(k) for k in (1, 2, 4) if k <= (first.graph.recorder.division.samples or 0)]
    if not is_divided and len(numbers) > 1:
        why = f"{why}\nthe step can accumulate gradients: --micro-batches {','.join(numbers)} plans it in micro-batches, too".lstrip()
    if least <= first.compared["budget_bytes"]:
        return why or "no policy has a plan"
    share = -(-100 * (least - first.reserved) // max(first.plain_bytes - first.reserved, 1))  # that does, taken as --budget
    where = f" {in_parts(number)}" if is_divided else ""
    host = ", with host memory that is not limited" if "--host-budget" in first.common else ""
    return (f"no plan fits {size(first.compared['budget_bytes'])}: the least found for one, by {policy}{where}, is {size(least)}, "
            f"{share} % of what the step takes {as_it_is(first)}{host}\n{why}")


class NoFramework:
    """Stands for PyTorch where a plan is only to be looked at."""

    @staticmethod
    def address(_):
        return None

    allocate = release = repeat = address
    streams = None


def problems_of(graphs, options, left_out, folder):
    problems = {}
    for graph in graphs:
        with leaving_out(graph.micro_batches, left_out):
            first = next(iter(problems.values()), None)
            problem = Problem(graph, options, folder, first)
            if len(graphs) > 1:
                problem.find_bound()
            problems[problem.number] = problem
    return problems


def search(problems, left_out, path):
    """Makes the fastest plan that can be followed, at `path`; gives all rows that are feasible, the fastest first, and that plan's,
    which is None where there are none. Of equal ones that in fewer micro-batches is taken. Numbers are compared in the order of what
    no plan in them is faster than, for as long as that is less than what has been found."""
    waiting = sorted(problems.values(), key=lambda problem: (problem.bound_ns or 0, problem.number))
    rows, tried, why = [], 0, None
    while True:
        while waiting and (tried == len(rows) or (waiting[0].bound_ns, waiting[0].number) < rank(rows[tried])):
            problem = waiting.pop(0)
            with leaving_out(problem.number, left_out):
                problem.compare()
            if not problem.compared:
                del problems[problem.number]
            rows = sorted([*rows, *(row for row in problem.rows if row["feasible"])], key=rank)
        if tried == len(rows):
            break
        problem = problems[rows[tried]["micro_batches"]]
        searching = problem.effort if rows[tried]["policy"] in SEARCHING else []
        problem.planc("plan", *problem.budget, *searching, "--policy", rows[tried]["policy"], "-o", path)
        try:
            Follower(path, NoFramework).close()
            return rows, rows[tried]
        except FollowError as error:
            why = str(error).removeprefix(f"{path}: ")
        tried += 1
    if rows:
        raise Stop(EXIT_INFEASIBLE, f"no plan within the budget can be followed: {why}")
    return rows, None


def rank(row):
    return row["iteration_ns"], row["micro_batches"]


def recording(problem):
    """What there is to tell of a recording in JSON."""
    return {"calls": len(problem.graph.calls) - 1, "plain_bytes": problem.plain_bytes, "plain_ns": problem.plain_ns,
            "reserved_bytes": problem.reserved, "outside_bytes": problem.outside, "scratch_bytes": problem.graph.scratch_bytes}


def bound_of(problem):
    return {"bound_ns": None if problem.bound_ns == math.inf else problem.bound_ns, "compared": problem.compared is not None}


def refuse_share(options, numbers, left_out):
    """A budget that is a part of what the step takes in the first number is none where that is not known."""
    if left_out and min(left_out).number == numbers[0] and (options.budget or "").endswith("%"):
        _, code, why = min(left_out)
        raise Stop(code, f"--budget {options.budget} is of what the step takes {in_parts(numbers[0])}, and in that nothing is planned: {why}")


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def table(problems, chosen, left_out, path):
    """The JSON of all that."""
    keys = ("policy", "micro_batches", "feasible", "least_budget", "peak_bytes", "iteration_ns", "d2h_bytes", "h2d_bytes",
            "recompute_ns")
    first, compared = next(iter(problems.values())), problems[chosen["micro_batches"]].compared
    return {"planc": "torch/1", "graph": first.graph.name, "device": compared["device"], **recording(first),
            "budget_bytes": compared["budget_bytes"],
            "recorded": [{"micro_batches": problem.number, **recording(problem), **bound_of(problem)} for problem in problems.values()],
            "left_out": [{"micro_batches": number, "why": why} for number, _, why in sorted(left_out)],
            "policies": [{key: row[key] for key in keys} for problem in problems.values() for row in problem.rows],
            "taken": chosen["policy"], "taken_micro_batches": chosen["micro_batches"], "output": path}


def check(options):
    """Whether the plan is of the step as it is now."""
    try:
        file = PlanFile(options.check)
    except ValueError as error:
        raise Stop(EXIT_BAD_INPUT, str(error)) from error
    left_out = []
    graphs = recorded(options, [file.micro_batches], left_out)
    if not graphs:
        raise_first(left_out)
    graph, = graphs
    found = difference(graph, file)
    if found:
        raise Stop(EXIT_OTHER_GRAPH, f"{found}: {options.check} is not of this step any more")
    parts = f" {in_parts(file.micro_batches)}" if file.micro_batches > 1 else ""
    print(f"{options.check}: of this step{parts}, {len(graph.calls) - 1} calls")
    return 0


def numbers_in(text):
    """Of micro-batches."""
    numbers = [int(part) for part in text.split(",") if re.fullmatch("[0-9]{1,2}", part)]
    if len(numbers) <= text.count(",") or numbers != sorted(set(numbers)) or not 1 <= numbers[0] <= numbers[-1] <= MOST:
        raise Stop(EXIT_USAGE, f"--micro-batches takes ascending numbers from 1 to {MOST}, such as 1,2,4,8, not {text}")
    return numbers


def three_sizes(text):
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or not 0 < int(parts[0]) < int(parts[1]) < int(parts[2]):
        raise Stop(EXIT_USAGE, f"--batches takes three ascending batch sizes, such as 8,16,32, not {text}")
    return tuple(map(int, parts))


def of_all_batches(options):
    """Writes the step's graph with sizes as laws in the batch, and no plan."""
    batches = three_sizes(options.batches)
    graph = BatchGraph(recorded_at(options, batches), batches)
    graph.write(options.graph)
    calls = sum(call.name != END for call in graph.calls)
    if options.json:
        print(json.dumps({"planc": "torch/1", "graph": graph.name, "calls": calls, "batches": batches, "output": options.graph},
                         separators=(",", ":")))
    else:
        print(f"{graph.name}: {calls} calls, recorded at batches {options.batches}; sizes are laws in the batch: {options.graph}\n"
              f"planc plan {options.graph} --batch N plans it, and planc compare {options.graph} --max-batch tells the largest batch; "
              f"to be followed, a step is recorded at its batch")
    return 0


class Words(argparse.ArgumentParser):
    """What planc hands on; a wrong word is one sentence."""

    def error(self, message):
        raise Stop(EXIT_USAGE, message.removeprefix("argument "))


def refuse_empty(options):
    """An option with an empty word, as of a variable of the shell that is not set, asks for something all the same."""
    for name, value in vars(options).items():
        if value == "":
            raise Stop(EXIT_USAGE, f"--{name.replace('_', '-')}: no value is given")


def main(arguments=None):
    parser = Words(prog=PROGRAM, add_help=False, allow_abbrev=False)
    parser.add_argument("step")
    parser.add_argument("--arguments", nargs=argparse.REMAINDER, default=[])  # last: of the step's file
    parser.add_argument("--example", default="example")
    parser.add_argument("--on", choices=("cpu", "cuda"))
    parser.add_argument("--fake", action="store_true")
    for name in ("device", "profile", "budget", "host-budget", "effort", "graph", "batches", "micro-batches", "check", "output"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--planc", required=True)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    refuse_empty(options)
    if options.on == "cuda" and not options.fake and not torch.cuda.is_available():
        raise Stop(EXIT_USAGE, "PyTorch sees no GPU; --fake records the step without one")
    if options.check:
        return check(options)
    outputs = [path for path in (options.output, options.graph) if path]
    numbers = numbers_in(options.micro_batches) if options.micro_batches else [1]
    if options.effort and not re.fullmatch("[0-3]", options.effort):
        raise Stop(EXIT_USAGE, f"--effort {options.effort}: not an integer from 0 to 3")
    for path in outputs:
        probe(path)
    if options.batches:
        return of_all_batches(options)
    left_out = []
    with tempfile.TemporaryDirectory() as folder:
        problems = problems_of(recorded(options, numbers, left_out), options, left_out, folder)
        if not problems:
            raise_first(left_out)
        refuse_share(options, numbers, left_out)
        plan = os.path.join(folder, "taken.plan")
        rows, chosen = search(problems, left_out, plan)
        if not problems:
            raise_first(left_out)
        if not chosen:
            raise Stop(EXIT_INFEASIBLE, "\n".join([refusal(problems, plan, bool(options.micro_batches)), *told(left_out)]))
        made = {options.output: plan, options.graph: problems[chosen["micro_batches"]].path}
        write_files([(path, contents(made[path])) for path in outputs])
    if options.json:
        print(json.dumps(table(problems, chosen, left_out, options.output), separators=(",", ":")))
    else:
        show(problems, rows, chosen, left_out, options)
    return 0


def run(arguments=None):
    try:
        return main(arguments)
    except Stop as stop:
        print(f"{PROGRAM}: {stop}", file=sys.stderr)
        return stop.code
    except CannotExport as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except OSError as error:
        print(f"{PROGRAM}: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return EXIT_IO


if __name__ == "__main__":
    sys.exit(run())
