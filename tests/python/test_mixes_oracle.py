#!/usr/bin/env python3
"""Plans of several jobs against tests/second/mixes.py, which was written from the manual alone: of random mixes, by every policy,
both simulate the same period, and memory goes from job to job in order.

MIXES_ORACLE_COUNT=N plans N mixes; MIXES_ORACLE_SEED=N other ones."""

import json
import os
import re
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

import mixes  # noqa: E402

TINY, DROPNORM = "tests/golden/inputs/tiny.yaml", "tests/golden/inputs/dropnorm.yaml"
LENET, TRANSFORMER = "graphs/lenet-digits.yaml", "graphs/tiny-transformer.yaml"
GRAPHS = (TINY, DROPNORM, DROPNORM, LENET, LENET, LENET, TRANSFORMER)
FORWARD = (LENET, LENET, TRANSFORMER)
POLICIES = ("temporal", "preemptive", "zico", "waterwave", "waterwave-s", "tensile", "vdnn-conv", "capuchin")
NEVER_SLOWER = ("zico", "waterwave", "waterwave-s")
DEADLINE = "20ms"
COUNT = int(os.environ.get("MIXES_ORACLE_COUNT", 30 if TAKES_ALL else 18))
SEED = int(os.environ.get("MIXES_ORACLE_SEED", 17))


def planc(*arguments):
    return subprocess.run([PLANC, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def random_mix(random, policy):
    """Jobs and options for this policy."""
    count = random.choice((2, 2, 3))
    jobs = [f"{random.choice(GRAPHS)}:{random.choice((4, 8, 16))}:{random.choice((1, 1, 2, 3))}" for _ in range(count)]
    options = ["--device", random.choice(("k40m", "h100")), "--launch", random.choice(("1ns", "1us", "5us"))]
    if policy == "preemptive" or random.random() < 0.25:
        jobs[0] = f"{random.choice(FORWARD)}:4:{random.choice((1, 2))}:inference"
    if policy == "preemptive":
        options += ["--deadline", DEADLINE]
    if random.random() < 0.4:
        options += ["--priority", f"{random.randrange(count)}:{random.randint(1, 5)}"]
    if policy == "zico":
        options += ["--region", random.choice(("256", "4K"))]
        if random.random() < 0.5:
            jobs[-1] = f"{LENET}:8:1"
            options += ["--accumulate", f"{count - 1}:2"]
    return jobs + options


class Planned:
    """A plan that planc makes of this, with what it prints of it; `lines` is None where it makes none."""

    def __init__(self, mix, policy, budget=None):
        self.name = " ".join([*mix, "--policy", policy] + (["--budget", str(budget)] if budget else []))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mix.plan")
            done = planc("colocate", *self.name.split(), "--json", "-o", path)
            self.code, self.message, self.lines = done.returncode, done.stderr, None
            if not done.returncode:
                self.summary = json.loads(done.stdout)
                with open(path, encoding="utf-8") as file:
                    self.lines = file.read().split("\n")[:-1]
                self.simulated = json.loads(planc("simulate", path, "--json").stdout)

    def least(self):
        """The least budget that is told, and whether it is said to be the least."""
        told = re.search(r"least feasible budget of all jobs with policy \S+ is (\d+) bytes \([^)]*\)(.*)", self.message)
        return (int(told[1]), "as far as" not in told[2]) if told else (None, False)


def made():
    """Plans of random mixes, where there is room and where there is less than that asks for."""
    random, plans = Random(SEED), []
    for number in range(COUNT):
        policy = POLICIES[number % len(POLICIES)]
        mix = random_mix(random, policy)
        plan = Planned(mix, policy)
        if plan.lines and number % 3:
            tight = Planned(mix, policy, plan.summary["peak_bytes"] * random.choice((6, 7, 8, 9)) // 10 // 256 * 256)
            least, _ = tight.least()
            plan = tight if tight.lines else Planned(mix, policy, least) if least else plan
        plan.mix, plan.policy = mix, policy
        plans.append(plan)
    return plans


def is_in_order(lines):
    """Why memory does not go as it must from job to job, None where it does."""
    try:
        mixes.follow_memory(mixes.Mix(lines))
    except (mixes.Wrong, KeyError) as wrong:
        return str(wrong)
    return None


def without_wait(lines, at):
    header = json.loads(lines[0])
    header["body"] -= 1
    return [json.dumps(header, separators=(",", ":")), *lines[1:at], *lines[at + 1:]]


def waits_for_other_jobs(mix):
    """Lines of the body's waits for what a stream of another job records."""
    records = {row["e"]: row["s"] for _, row in mix.plan.body if row["i"] == "record"}
    return [line - 1 for line, row in mix.plan.body if row["i"] == "wait" and row["e"] in records and
            mix.job_of_stream(records[row["e"]]) != mix.job_of_stream(row["s"])]


def swapped(lines, one, other):
    """With the addresses of two acquires swapped."""
    first, second = json.loads(lines[one]), json.loads(lines[other])
    first["at"], second["at"] = second["at"], first["at"]
    result = lines[:]
    result[one], result[other] = (json.dumps(row, separators=(",", ":")) for row in (first, second))
    return result


def judged_by_planc(mutants):
    """Of each whether planc checks it to be valid."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{number}.plan") for number in range(len(mutants))]
        for path, lines in zip(paths, mutants, strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in lines))
        return [json.loads(line)["valid"] for line in planc("check", "--json", *paths).stdout.splitlines()]


class MixesOracle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = made()
        cls.plans = [plan for plan in cls.all if plan.lines]

    def test_most_mixes_have_a_plan(self):
        for plan in self.all:
            with self.subTest(plan=plan.name):
                self.assertIn(plan.code, (0, 1), plan.message)
        self.assertGreater(len(self.plans), 0.8 * COUNT)
        self.assertEqual({plan.policy for plan in self.plans}, set(POLICIES))

    def test_both_simulate_the_same(self):
        compared = 0
        for plan in self.plans:
            mix = mixes.Mix(plan.lines)
            simulation = mixes.steady(mix, mixes.SOON)
            if simulation:
                with self.subTest(plan=plan.name):
                    self.assertEqual(mixes.wrong_times(mix, simulation, plan.simulated) +
                                     mixes.wrong_figures(mix, plan.summary, simulation), [])
                compared += 1
        print(f"{compared} of {len(self.plans)} plans")
        self.assertGreater(compared, 0.9 * len(self.plans))

    def test_no_job_is_faster_than_its_launches(self):
        plan = Planned([f"{TRANSFORMER}:8:1", f"{LENET}:4:2", "--device", "k40m", "--launch", "5us"], "waterwave")
        mix = mixes.Mix(plan.lines)
        launched = sum(row["i"] in ("exec", "copy") and mix.job_of_stream(row["s"]) == 0 for _, row in mix.plan.body)
        self.assertGreaterEqual(plan.summary["period_ns"], launched * mix.device["launch"])

    def test_response_is_that_of_a_steady_period(self):
        plan = Planned([f"{LENET}:64:1", f"{LENET}:32:1", "--device", "k40m", "--launch", "1us"], "capuchin", 1500 << 10)
        ours = mixes.steady(mixes.Mix(plan.lines)).response(0)
        self.assertLess(abs(plan.summary["shares"][0]["response_ns"] - ours), len(plan.lines))

    def test_compare_says_what_plans_do(self):
        mix = [f"{LENET}:8:2", f"{TINY}:4:1", "--device", "k40m", "--launch", "1us"]
        table = json.loads(planc("compare", "--colocate", *mix, "--budget", "1M", "--json").stdout)
        rows = {row["policy"]: row for row in table["rows"] if row["planned"] and row["feasible"]}
        self.assertEqual(table["best"], max(rows, key=lambda policy: rows[policy]["throughput"]))
        for policy, row in rows.items():
            with self.subTest(policy=policy):
                summary = Planned(mix, policy, "1M").summary
                for key in ("period_ns", "peak_bytes", "throughput"):
                    self.assertEqual(row[key], summary[key], key)
                self.assertEqual(row["speeds"], [share["speed"] for share in summary["shares"]])
                self.assertEqual([job["alone_ns"] for job in table["jobs"]], [share["alone_ns"] for share in summary["shares"]])
                self.assertEqual(row["ratio"], [2, 1])

    def test_memory_goes_from_job_to_job_in_order(self):
        handed = []
        for plan in self.plans:
            with self.subTest(plan=plan.name):
                handed.append(mixes.follow_memory(mixes.Mix(plan.lines)))
        self.assertGreater(sum(map(bool, handed)), len(handed) // 3)

    def test_never_slower_than_turns(self):
        for plan in self.plans:
            if plan.policy in NEVER_SLOWER and "--accumulate" not in plan.mix:
                budget, options = re.search(r"--budget (\d+)", plan.name), plan.mix[:]
                if "--region" in options:
                    at = options.index("--region")
                    del options[at:at + 2]
                turns = Planned(options, "temporal", budget and budget[1])
                if turns.lines:
                    with self.subTest(plan=plan.name):
                        self.assertLessEqual(plan.summary["period_ns"], turns.summary["period_ns"])

    def test_least_budgets(self):
        for plan in self.all[::6]:
            least, is_least = Planned(plan.mix, plan.policy, 1).least()
            if least:
                with self.subTest(plan=plan.name, least=least):
                    self.assertEqual(Planned(plan.mix, plan.policy, least).code, 0)
                    if is_least:
                        self.assertEqual(Planned(plan.mix, plan.policy, least - 256).code, 1)

    def test_mutants_are_judged_alike(self):
        random, mutants = Random(SEED), []
        for plan in self.plans:
            mix = mixes.Mix(plan.lines)
            waits = waits_for_other_jobs(mix)
            mutants += [without_wait(plan.lines, at) for at in random.sample(waits, min(3, len(waits)))]
            jobs = [[line - 1 for line, row in mix.plan.body if row["i"] == "acquire" and row["m"] == 0 and
                     mix.work.buffers[row["b"]].job == job] for job in (0, 1)]
            if all(jobs):
                mutants.append(swapped(plan.lines, *map(random.choice, jobs)))
        ours = [is_in_order(lines) for lines in mutants]
        theirs = judged_by_planc(mutants)
        print(f"{len(mutants)} mutants, {sum(map(bool, ours))} not in order")
        self.assertEqual([why is None for why in ours], theirs)
        self.assertGreater(sum(map(bool, ours)), len(mutants) // 3)

    def test_other_times_are_told(self):
        for plan in self.plans[::5]:
            slower = [re.sub(r'"t":(\d+)', lambda match: f'"t":{int(match[1]) * 2}', line) for line in plan.lines]
            mix = mixes.Mix(slower)
            simulation = mixes.Simulation(mix, mixes.MANY[0])
            with self.subTest(plan=plan.name):
                self.assertNotEqual(mixes.wrong_times(mix, simulation, plan.simulated), [])


if __name__ == "__main__":
    unittest.main()
