#!/usr/bin/env python3
"""planc bound against the linear program whose multipliers its prices are (tests/second/fluid.py), solved by glpsol,
and both against plans: no prices certify more than the program's optimum, the search finds most of it, and no plan is
faster than either.

BOUND_LP_COUNT=N looks at N random graphs; BOUND_LP_SEED=N at other ones; BOUND_LP_LARGE=1 at larger graphs of the
library as well, which takes a minute; BOUND_LP_SHOW=1 prints all figures."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from random import Random

from sampling import TAKES_ALL

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANC = os.path.join(ROOT, os.environ.get("BUILD", "build"), "planc")
sys.path.insert(0, os.path.join(ROOT, "tests/second"))

import fluid  # noqa: E402
from planfile import Plan  # noqa: E402

COUNT = int(os.environ.get("BOUND_LP_COUNT", 30 if TAKES_ALL else 15))
SEED = int(os.environ.get("BOUND_LP_SEED", 0))
SHOW = os.environ.get("BOUND_LP_SHOW")
LENET, DROPNORM, ODD = "graphs/lenet-digits.yaml", "tests/golden/inputs/dropnorm.yaml", "tests/second/odd.yaml"
TRANSFORMER, VGG, RESNET = "graphs/tiny-transformer.yaml", "graphs/vgg16.yaml", "graphs/resnet50.yaml"
# Graph, device, batch, options, and budgets in percent of what policy none takes.
CASES = [
    (LENET, "k40m", 64, [], (95, 70, 57)),
    (LENET, "k40m", 4096, ["--launch", "1ns"], (90, 70)),
    (LENET, "k40m", 64, ["--sub-batch", "16"], (60,)),
    (LENET, "k40m", 4096, ["--no-swap"], (90,)),
    (LENET, "h100", 65536, ["--no-recompute"], (90, 75)),
    (DROPNORM, "k40m", 4, [], (90, 60)),
    (ODD, "k40m", 4, ["--launch", "1ns"], (90, 75)),
    (ODD, "k40m", 4, ["--sub-batch", "2"], (85,)),
    (TRANSFORMER, "k40m", 64, ["--inference"], (90, 70)),
    (VGG, "h100", 64, [], (85,)),
]
LARGE = [
    (RESNET, "k40m", 64, ["--inference"], (70,)),
    (TRANSFORMER, "k40m", 512, [], (90, 60)),
    (VGG, "h100", 16, [], (60,)),
    (VGG, "h100", 1, [], (90,)),
]
HANDMADE = ("dropped-behind-boundary.plan", "fed-twice.plan")
# With graphs and profiles of their own. While one op runs a tensor leaves and another comes into its place; and what the
# next period is fed comes into the place of what that only overwrites, ahead of this period's end.
WITH_TIMES = ("two-in-one-op", "fed-ahead-of-the-period")
EXACT = 1e-6  # of the optimum: what glpsol's tolerances leave open
FOUND = 0.97


def planc(*arguments):
    return subprocess.run([PLANC, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def told(*arguments):
    """What planc prints as JSON; None where nothing fits, or a policy has nothing to do."""
    done = planc(*arguments, "--json")
    assert done.returncode == 0 or not done.stdout, done.stderr
    return json.loads(done.stdout) if done.stdout else None


class Problem:
    """A graph with the options of a plan in given rounds. `profile`: a file with the times of all its ops."""

    def __init__(self, name, graph, profile, batch, options):
        rounds = [] if "--sub-batch" in options else ["--sub-batch", batch]
        self.name = " ".join([name, f"batch {batch}", *options])
        self.asked = [graph, "--profile", profile, "--batch", batch, *rounds, *options]
        none = planc("plan", *self.asked, "--policy", "none", "--budget", "1T", "-o", "-")
        assert none.returncode == 0, none.stderr
        self.plan = Plan(none.stdout.splitlines())
        with open(profile, encoding="utf-8") as file:
            times = json.load(file)
        self.period = fluid.Period(self.plan, times, "--no-swap" not in options, "--no-recompute" not in options)
        self.reserved = self.plan.memories[0]["reserved"]
        self.most = self.plan.memories[0]["arena"] + self.reserved


class Figures:
    """Of a problem and a budget: what is certified, the program's optimum, and the time of a plan, None where there is
    none. `there_and_back`: how long the links need for what the budget holds, in times of all ops."""

    def __init__(self, problem, budget, effort, plan):
        self.name, self.plan = f"{problem.name} in {budget} bytes", plan
        found = told("bound", *problem.asked, "--budget", budget, "--effort", effort)
        self.bound, self.ideal = found["bound_ns"], found["ideal_ns"]
        device, room = problem.period.device, budget - problem.reserved
        self.launches = problem.period.n * problem.plan.device["launch"]
        self.least = fluid.Fluid(problem.period, room).least()
        copies = [room * fluid.SECOND / device[way]["bytes_per_second"] for way in ("h2d", "d2h")]
        self.there_and_back = sum(copies) / self.ideal
        if SHOW:
            found = self.bound / max(self.least, self.launches)
            print(f"{self.name}: ideal {self.ideal}, bound {self.bound}, program {self.least:.0f}, found {found:.4f}, "
                  f"links {self.there_and_back:.2f}, plan {self.plan}")


def of_auto(problem, budget):
    made = told("plan", *problem.asked, "--policy", "auto", "--budget", budget, "-o", os.devnull)
    return made and made["iteration_ns"]


def fastest(problem, budget):
    """Of all policies that planc compares."""
    rows = told("compare", *problem.asked, "--budget", budget)["rows"]
    return min((row["iteration_ns"] for row in rows if row["feasible"] and row["policy"] != "ideal"), default=None)


# --- Random graphs ----------------------------------------------------------------------------------------------------


class RandomGraph:
    """A graph that is trained, of ops of no known type, with what storages can do: branches, results in place, several
    results of an op, state, side effects, ops that run once only. `text` is the file; `ops` are the names."""

    SIZES = (256, 1024, 1024, 4096, 8192)

    def __init__(self, random):
        self.random, self.tensors, self.rows, self.ops, self.forward = random, {}, [], [], []
        self.live = ["x"]
        self.add_tensor("x", "input ")
        for number in range(random.randint(3, 7)):
            self.add_layer(number)
        self.tensors["loss"] = "f32[]"
        self.add_op("last", "forward", self.live[-1:], ["loss"])
        gradient = self.add_tensor("last.grad")
        self.add_op("last.back", "backward", self.live[-1:], [gradient])
        for number, operands, weight in reversed(self.forward):
            gradient = self.add_gradient(number, gradient, operands, weight)
        for number, _, weight in self.forward:
            if weight:
                self.add_step(number, weight)
        results = [name for name in self.tensors if name.endswith(".main") and random.random() < 0.1]
        tensors = "".join(f"  {name}: {law}\n" for name, law in self.tensors.items())
        self.text = f"""planc-graph: 1
name: random
loss: loss
outputs: [{", ".join(results)}]
tensors:
{tensors}ops:
{"".join(self.rows)}"""

    def add_tensor(self, name, kind="", samples="N,"):
        self.tensors[name] = f"{kind}f32[{samples}{self.random.choice(self.SIZES)}]"
        return name

    def add_op(self, name, phase, reads, writes, **lists):
        lists = {"in": reads, "out": writes, **lists}
        stated = ", ".join(f"{key}: [{', '.join(names)}]" for key, names in lists.items() if names)
        self.rows.append(f"  - {{op: {name}, type: my.op, phase: {phase}, {stated}}}\n")
        self.ops.append(name)

    def add_layer(self, number):
        random, lists = self.random, {}
        reads = random.sample(self.live[-3:], min(len(self.live), random.choice((1, 1, 2))))
        over = next((name for name in reads if name.endswith(".main")), None)
        weight = self.add_tensor(f"w{number}", "param ", "") if random.random() < 0.6 else None
        if random.random() < 0.2:
            lists["effects"] = [self.add_tensor(f"s{number}", "state ", "")]
        if random.random() < 0.15:
            lists["flags"] = ["no-recompute"]
        if over and not weight and random.random() < 0.4:
            writes = [f"a{number}"]
            self.tensors[writes[0]] = f"{self.tensors[over]} of {over}"
            self.live.remove(over)
        else:
            writes = [self.add_tensor(f"a{number}.main")]
        if random.random() < 0.25:
            writes.append(self.add_tensor(f"a{number}.more"))
        self.add_op(f"f{number}", "forward", reads + ([weight] if weight else []), writes, **lists)
        self.forward.append((number, reads + writes, weight))
        self.live += writes

    def add_gradient(self, number, gradient, operands, weight):
        reads = self.random.sample(operands, self.random.randint(1, min(2, len(operands))))
        result = self.add_tensor(f"g{number}")
        writes = [result]
        if weight:
            self.tensors[f"{weight}.grad"] = self.tensors[weight].replace("param", "grad")
            writes.append(f"{weight}.grad")
            reads += [weight] if self.random.random() < 0.7 else []
        self.add_op(f"b{number}", "backward", [gradient, *reads], writes)
        return result

    def add_step(self, number, weight):
        changed = [weight]
        if self.random.random() < 0.4:
            self.tensors[f"{weight}.m"] = self.tensors[weight].replace("param", "state")
            changed.append(f"{weight}.m")
        self.add_op(f"o{number}", "optimizer", [*changed, f"{weight}.grad"], changed)


def random_profile(random, ops, batch):
    """Times of most ops, each with some algorithms, and links from slow to fast."""
    with open(os.path.join(ROOT, "profiles/k40m.json"), encoding="utf-8") as file:
        profile = json.load(file)
    profile["device"] = {
        "name": "random", "memory_bytes": 1 << 30, "reserved_bytes": random.choice((0, 4096)), "in_flight": 1024,
        "launch_ns": random.choice((0, 0, 1000)), "duplex_ppm": random.choice((1000000, 900000, 600000, 300000)),
        "slowdown_ppm": random.choice((0, 13000, 500000, 2000000)),
        **{way: {"bytes_per_second": random.choice((20, 200, 1000, 2000)) * fluid.MILLION,
                 "latency_ns": random.choice((0, 1000))} for way in ("h2d", "d2h")}}
    profile["origin"] = {}
    profile["ops"] = [{"op": op, "variants": [
        {"algorithm": f"a{number}", "deterministic": True, "points": [
            {"batch": batch, "time_ns": random.randint(1000, 200000), "busy_ppm": fluid.MILLION,
             "workspace_bytes": random.choice((0, 0, 4096, 20000, 60000))}]}
        for number in range(random.choice((1, 1, 2, 3)))]} for op in ops]
    return profile


def random_problem(seed, folder):
    random = Random(seed)
    graph, batch = RandomGraph(random), random.choice((1, 2, 4))
    path, profile = (os.path.join(folder, f"{seed}.{ending}") for ending in ("yaml", "json"))
    with open(path, "w", encoding="ascii") as file:
        file.write(graph.text)
    with open(profile, "w", encoding="ascii") as file:
        json.dump(random_profile(random, graph.ops, batch), file)
    options = [option for option in ("--no-swap", "--no-recompute") if random.random() < 0.15]
    problem = Problem(f"random graph {seed}", path, profile, batch, options)
    least = told("bound", *problem.asked, "--budget", problem.most, "--effort", 0)["least_budget"]
    return problem, least + int((problem.most - least) * random.choice((0, 0.1, 0.3, 0.6, 0.9)))


# --- Tests ------------------------------------------------------------------------------------------------------------


def library_figures(cases, folder):
    for number, (graph, device, batch, options, parts) in enumerate(cases):
        profile = os.path.join(folder, f"case{number}.json")
        costs = [option for option in options if option == "--inference"]
        done = planc("predict", graph, "--device", device, "--batch", batch, *costs, "-o", profile)
        assert done.returncode == 0, done.stderr
        problem = Problem(f"{graph} {device}", graph, profile, batch, options)
        for part in parts:
            budget = problem.most * part // 100
            yield Figures(problem, budget, 3, of_auto(problem, budget))


def graph_of_plan(lines):
    """The text of a plan's graph, of plain ops of no known type."""
    rows = list(map(json.loads, lines))
    tensors, ops = ([row for row in rows if key in row] for key in ("tensor", "op"))
    names, graph = [row["tensor"] for row in tensors], next(row for row in rows if "graph" in row)

    def listed(numbers):
        return "[" + ", ".join(names[number] for number in numbers) + "]"
    shapes = [f"  {row['tensor']}: {row['kind']} {row['dtype']}[{','.join(map(str, row['shape']))}]" for row in tensors]
    stated = [f"  - {{op: {row['op']}, type: {row['type']}, in: {listed(row['in'])}, out: {listed(row['out'])}, "
              f"flops: {row['flops']}, traffic: {row['traffic']}}}" for row in ops]
    head = ["planc-graph: 1", f"name: {graph['graph']}", f"outputs: {listed(graph['outputs'])}"]
    return "\n".join([*head, "tensors:", *shapes, "ops:", *stated, ""])


def handmade_figures(folder):
    """Of plans that no policy makes, within what they take."""
    for name in HANDMADE:
        path = os.path.join(ROOT, "tests/data/bound", name)
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        graph, profile = (os.path.join(folder, name + ending) for ending in (".yaml", ".json"))
        with open(graph, "w", encoding="ascii") as file:
            file.write(graph_of_plan(lines))
        done = planc("predict", graph, "--device", "k40m", "--batch", 1, "--inference", "-o", profile)
        assert done.returncode == 0, done.stderr
        problem = Problem(name, graph, profile, 1, ["--inference"])
        yield Figures(problem, Plan(lines).memories[0]["arena"], 3, told("simulate", path)["period_ns"])


def figures_with_times():
    for name in WITH_TIMES:
        graph, profile, path = (os.path.join(ROOT, "tests/data/bound", name + ending) for ending in (".yaml", ".json", ".plan"))
        problem = Problem(name, graph, profile, 1, ["--inference"])
        with open(path, encoding="ascii") as file:
            memory = Plan(file.read().splitlines()).memories[0]
        yield Figures(problem, memory["arena"] + memory["reserved"], 3, told("simulate", path)["period_ns"])


def random_figures(folder):
    for seed in range(SEED, SEED + COUNT):
        problem, budget = random_problem(seed, folder)
        yield Figures(problem, budget, 2, fastest(problem, budget))


class BoundAndProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cases = CASES + (LARGE if os.environ.get("BOUND_LP_LARGE") else [])
            cls.all = [*library_figures(cases, folder), *handmade_figures(folder), *figures_with_times(), *random_figures(folder)]

    def test_no_prices_certify_more(self):
        for figures in self.all:
            with self.subTest(of=figures.name):
                self.assertLessEqual(figures.bound, max(figures.least * (1 + EXACT), figures.launches))

    def test_search_finds_most(self):
        for figures in self.all:
            with self.subTest(of=figures.name):
                self.assertGreaterEqual(figures.bound, FOUND * figures.least)

    def test_no_plan_is_faster(self):
        planned = [figures for figures in self.all if figures.plan]
        for figures in planned:
            with self.subTest(of=figures.name):
                self.assertLessEqual(figures.bound, figures.plan)
                self.assertLessEqual(figures.least, figures.plan * (1 + EXACT))
        self.assertGreater(len(planned), 0.6 * len(self.all))

    def test_it_says_something(self):
        """Most optima are above the ops' own time, and some plans are near them."""
        self.assertGreater(sum(figures.least > 1.001 * figures.ideal for figures in self.all), 0.6 * len(self.all))
        near = sum(bool(figures.plan) and figures.least > 0.9 * figures.plan for figures in self.all)
        self.assertGreater(near, 0.1 * len(self.all))


if __name__ == "__main__":
    unittest.main()
