#!/usr/bin/env python3
"""planc's checker against a second one, written from planc-plan(5) alone (tests/second): of plans of every policy, and of many
mutants of them, both say the same: valid with any number of bodies, valid but over its budget, or not valid.

SECOND_CHECKER_MUTANTS=N judges N mutants; SECOND_CHECKER_SEED=N other ones; SECOND_CHECKER_KEEP=FOLDER keeps the plans on which
they disagree."""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest
from random import Random

from sampling import sampled

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANC = os.path.join(ROOT, os.environ.get("BUILD", "build"), "planc")
sys.path.insert(0, os.path.join(ROOT, "tests/second"))

import checker  # noqa: E402
import compose  # noqa: E402
import mutants  # noqa: E402

TINY, ODD, ODDER = "tests/golden/inputs/tiny.yaml", "tests/second/odd.yaml", "tests/second/odder.yaml"
DROPNORM, LENET = "tests/golden/inputs/dropnorm.yaml", "graphs/lenet-digits.yaml"
WORKS = [(TINY, []), (TINY, ["--gpus", "2"]), (ODD, []), (ODD, ["--sub-batch", "2"]),
         (ODD, ["--gpus", "2", "--sub-batch", "1"]), (ODDER, ["--sub-batch", "2"]),
         (ODDER, ["--gpus", "2", "--sub-batch", "1"]), (TINY, ["--gpus", "3", "--batch", "6", "--shared-link"]),
         (ODDER, ["--gpus", "5", "--batch", "10", "--sub-batch", "1"]),
         (DROPNORM, ["--device", "k40m", "--batch", "4"]),
         (LENET, ["--batch", "8", "--optimizer", "momentum"]), (LENET, ["--batch", "8", "--sub-batch", "3"])]
PLACEMENTS = [["--placement", "vmm", "--chunk", "1K"], ["--placement", "paged", "--chunk", "512"]]
MIXES = [[TINY + ":4", TINY + ":4"], [TINY + ":4:2", TINY + ":8:1"], [ODD + ":4:2", TINY + ":2:3"],
         [TINY + ":2", ODDER + ":2", TINY + ":2:2"], [LENET + ":4:inference", TINY + ":8"], [LENET + ":4", LENET + ":4"],
         [ODD + ":4", "--accumulate", "2", "--launch", "1ns"], [LENET + ":6:2", "--accumulate", "3", "--launch", "1ns"],
         [ODDER + ":2", LENET + ":4", "--accumulate", "2", "--launch", "1ns"]]
MIX_OPTIONS = {"temporal": [[]], "zico": [["--region", "256"], ["--region", "1K"]],
               "waterwave": [[], ["--split-groups", "6", "--no-swap"], ["--split-groups", "4", "--pair-barriers"]],
               "waterwave-s": [["--pair-barriers"]], "tensile": [[], ["--swap-rate", "50"]], "vdnn-conv": [[]], "capuchin": [[]]}
SEARCHED = [LENET, "--batch", "16", "--device", "k40m", "--launch", "1ns", "--policy", "priced", "--budget"]
SEARCHES = [[*SEARCHED, "175000"], [*SEARCHED, "200K", "--effort", "2", "--reorder"]]
BUDGETS = (1, 1.15, 1.5)
MUTANTS = int(os.environ.get("SECOND_CHECKER_MUTANTS", 500))
SEED = int(os.environ.get("SECOND_CHECKER_SEED", 0))
KEEP = os.environ.get("SECOND_CHECKER_KEEP")
AT_ONCE = 20


def planc(*arguments):
    return subprocess.run([PLANC, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def least_budgets(graph, options):
    """Of every policy that can plan this."""
    done = planc("compare", graph, *options, "--budget", "1", "--json")
    return {row["policy"]: row["least_budget"] for row in json.loads(done.stdout)["rows"]
            if row["least_budget"] and row["policy"] != "ideal"}


def behind_tables(lines):
    """What a plan does: not what it is for."""
    header = json.loads(lines[0])
    return lines[3 + header["memories"] + header["links"]:]


def made_by_planc():
    """Lines of plans by what they were made with, those that do the same once."""
    plans = {}
    for graph, options in WORKS:
        for number, (policy, least) in enumerate(least_budgets(graph, options).items()):
            for placement in [[], *PLACEMENTS] if policy == "window" else [[]]:
                for factor in sampled(BUDGETS, 3, number):
                    budget = int(least * factor)
                    # What plans hold does not follow from how long they were searched for.
                    effort = ["--effort", "0"] if policy in ("auto", "priced") and "--effort" not in options else []
                    done = planc("plan", graph, *options, *placement, *effort, "--policy", policy, "--budget", str(budget), "-o", "-")
                    if not done.returncode:
                        lines = done.stdout.splitlines()
                        name = " ".join([graph, policy, *options, *placement, str(budget)])
                        plans.setdefault(tuple(behind_tables(lines)), (name, lines))
    return list(plans.values())


def made_of_mixes():
    """The same of several jobs that planc plans together."""
    plans = {}
    for mix in MIXES:
        rows = json.loads(planc("compare", "--colocate", *mix, "--device", "k40m", "--json").stdout)["rows"]
        for policy, least in {row["policy"]: row["least_budget"] for row in rows if row["planned"]}.items():
            for options in MIX_OPTIONS[policy]:
                # Rounds need room beside each other.
                for factor in (*BUDGETS, 4) if "--accumulate" in mix else sampled(BUDGETS, 2):
                    budget = int(least * factor)
                    done = planc("colocate", *mix, "--device", "k40m", "--policy", policy, *options, "--budget", str(budget),
                                 "-o", "-")
                    if not done.returncode:
                        lines = done.stdout.splitlines()
                        name = " ".join([*mix, policy, *options, str(budget)])
                        plans.setdefault(tuple(behind_tables(lines)), (name, lines))
    return list(plans.values())


def holds_in_host(rows):
    return any(row["m"] == mutants.devices(rows) for row in mutants.acquired(rows).values())


def replicas(rows):
    return rows.header.get("replicas")


def kinds_of_copies(lines):
    """Of a plan, each as what it leads from and to."""
    rows = mutants.Rows(lines)
    kind = {number: rows.memories[row["m"]]["memory"] for number, row in mutants.acquired(rows).items()}
    copies = [row for name in mutants.SECTIONS for row in getattr(rows, name) if row["i"] == "copy"]
    return {(kind.get(row["from"], "user"), kind.get(row["r"], "user")) for row in copies}


def composed(plans):
    """Plans of several jobs, several iterations, other orders, other memories and more links."""
    random = Random(1)
    rows = [(name, mutants.Rows(lines)) for name, lines in plans if len(lines) < 300]
    for name, one in random.sample(rows, 12):
        yield f"repeat {name}", compose.repeat(one).lines()
    for name, one in random.sample(rows, 12):
        yield f"link_all {name}", compose.link_all(one).lines()
        there = compose.emigrate(random, one)
        yield f"emigrate {name}", there.lines()
        yield f"emigrate twice {name}", compose.emigrate(random, there).lines()
    for name, one in random.sample([(name, one) for name, one in rows if holds_in_host(one)], 12):
        yield f"store {name}", compose.store(random, one).lines()
    plain = [(name, one) for name, one in rows if not one.maps]
    for same_gpu in (False, True) * 6:
        first, one = random.choice(plain)
        second, other = random.choice([another for another in plain if replicas(another[1]) == replicas(one)])
        yield f"join {same_gpu} {first}, {second}", compose.join(random, one, other, same_gpu).lines()
    for name, one in random.sample([(name, one) for name, one in plain if name.startswith(ODD)], 3):
        for number, ordered in zip(range(2), compose.legal_orders(one)):
            yield f"order {number} {name}", ordered.lines()


def text_of(lines):
    return "".join(line + "\n" for line in lines)


def judged_by_planc(texts):
    """"valid", "over" for what is only over its budget, or "wrong", of each, with planc's words."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{number}.plan") for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        verdicts = [json.loads(line) for line in planc("check", "--json", *paths).stdout.splitlines()]
    assert len(verdicts) == len(texts)
    return [("valid", "") if verdict["valid"] else
            ("over" if "budget is " in verdict["message"] else "wrong", verdict["message"].split(".plan", 1)[-1])
            for verdict in verdicts]


def judged_by_second(lines):
    why = checker.why_not(lines)
    return ("valid", "") if why is None else ("over" if why.startswith("budget") else "wrong", why)


def compare(task):
    """Mutants of a plan: how many were judged each way, and what was not judged alike."""
    name, lines, seed, count = task
    random, whole, tally, apart = Random(seed), mutants.Rows(lines), {}, []
    rows = whole
    for start in range(0, count, AT_ONCE):
        made = [mutants.mutate(random, rows) for _ in range(min(AT_ONCE, count - start))]
        valid = []
        for (mutant, done), theirs in zip(made, judged_by_planc([text_of(mutant) for mutant, _ in made]), strict=True):
            ours = judged_by_second(mutant)
            tally[ours[0]] = tally.get(ours[0], 0) + 1
            if ours[0] != theirs[0]:
                apart.append((f"{name}: {done}: planc: {theirs}, second: {ours}", text_of(mutant)))
            elif ours[0] == "valid":
                valid.append(mutant)
        # Mutants of valid mutants get far from what planc makes.
        rows = mutants.Rows(random.choice(valid)) if valid and random.random() < 0.9 else whole
    return tally, apart


class SecondChecker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plans = made_by_planc()
        cls.plans += composed(cls.plans)
        mixes = made_of_mixes()
        assert len(mixes) > 2 * len(MIXES), mixes
        cls.plans += mixes
        cls.plans += [(" ".join(search), planc("plan", *search, "-o", "-").stdout.splitlines()) for search in SEARCHES]
        folder = os.path.join(ROOT, "tests/data/plan")
        cls.plans += [(name, checker.read_lines(os.path.join(folder, name))) for name in sorted(os.listdir(folder))]

    def test_plans_show_all_that_the_manual_has(self):
        text = "".join(text_of(lines) for _, lines in self.plans)
        for part in ('"re":1', '"map":', '"replicas":2', '"replicas":3', '"replicas":5',
                     '"lag":1,"peers":1', '"rounds":[3,3,2]', '"iterations":2', '"order":', '"effects":[4]', '"job":1', '"lag":1,"s"', '"wsb":2',
                     ',-1,', '"gpu":2', '"bus":1', '"memory":"storage"', '"effort":3', '"reorder":1'):
            with self.subTest(part=part):
                self.assertTrue(part in text)
        self.assertRegex(text, r'"wait","e":[0-9]+,"peers":1')
        self.assertRegex(text, r'"copy","r":[0-9]+,"from":[0-9]+,"bytes":[0-9]+,"t":[0-9]+')
        copies = set().union(*(kinds_of_copies(lines) for _, lines in self.plans))
        for ways in (("user", "device"), ("device", "user"), ("device", "device"), ("device", "host"), ("host", "device"),
                     ("user", "host"), ("host", "user"), ("device", "storage"), ("storage", "device"), ("user", "storage"),
                     ("host", "storage"), ("storage", "host")):
            with self.subTest(ways=ways):
                self.assertIn(ways, copies)

    def test_some_have_rounds_side_by_side(self):
        jobs = [[row["job"] for row in map(json.loads, lines[1:]) if row.get("stream") == "compute"] for _, lines in self.plans]
        self.assertTrue(any(name.count("--accumulate") and len(streams) > len(set(streams))
                            for (name, _), streams in zip(self.plans, jobs, strict=True)))

    def test_whole_plans_are_valid_to_both(self):
        verdicts = judged_by_planc([text_of(lines) for _, lines in self.plans])
        for (name, lines), theirs in zip(self.plans, verdicts, strict=True):
            with self.subTest(plan=name):
                self.assertEqual((theirs, judged_by_second(lines)), (("valid", ""), ("valid", "")))

    def test_mutants_are_judged_alike(self):
        random = Random(SEED)
        # Small plans are judged faster, and as many things are wrong with them.
        shares = [1 / len(lines) for _, lines in self.plans]
        counts = [0] * len(self.plans)
        for number in random.choices(range(len(self.plans)), shares, k=MUTANTS):
            counts[number] += 1
        tasks = [(name, lines, f"{SEED} {name}", count)
                 for (name, lines), count in zip(self.plans, counts, strict=True) if count]
        tally, apart = {}, []
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count() or 1) as pool:
            for part, more in pool.map(compare, tasks):
                apart += more
                for verdict, count in part.items():
                    tally[verdict] = tally.get(verdict, 0) + count
        print(f"{sum(tally.values())} mutants of {len(self.plans)} plans: {tally}, judged otherwise by planc: {len(apart)}")
        for number, (_, text) in enumerate(apart if KEEP else ()):
            with open(os.path.join(KEEP, f"{number}.plan"), "w", encoding="utf-8") as file:
                file.write(text)
        self.assertFalse(apart, "\n".join(what for what, _ in apart[:20]))
        for verdict in ("valid", "over", "wrong"):
            self.assertTrue(tally.get(verdict), verdict)


if __name__ == "__main__":
    unittest.main()
