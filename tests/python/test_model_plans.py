#!/usr/bin/env python3
"""Plans of the generated networks under 60 % of the memory they need, checked, and run where that takes seconds."""

import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from graphtest import GRAPHS, ROOT
from sampling import sampled

import generate
import pix2pixhd
from test_pix2pixhd import SMALL

BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PROFILES = os.path.join(ROOT, "profiles")
ENVIRONMENT = {**os.environ, "PLANC_PROFILES": PROFILES}


def run(program, *arguments):
    done = subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], capture_output=True, text=True,
                          env=ENVIRONMENT)
    assert done.returncode == 0, (program, arguments, done.returncode, done.stderr)
    return done.stdout


def reserved_bytes(device):
    with open(os.path.join(PROFILES, f"{device}.json"), encoding="utf-8") as file:
        return json.load(file)["device"]["reserved_bytes"]


class Plans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.plan")
        self.small = os.path.join(folder.name, "small.yaml")

    def plan(self, graph, *options):
        return json.loads(run("planc", "plan", graph, *options, "--json", "-o", self.path))

    def plan_with_less(self, graph, beside=0, *options, policy="modnn"):
        """A plan under 60 % of what is needed with everything resident, not counting `beside`."""
        whole = self.plan(graph, "--policy", "none", "--budget", "1000G", *options)
        budget = beside + (whole["peak_bytes"] - beside) * 6 // 10
        summary = self.plan(graph, "--policy", policy, "--budget", budget, *options)
        self.assertLessEqual(summary["peak_bytes"], budget)
        run("planc", "check", self.path, "--budget", budget, "--graph", graph)
        return summary

    def test_every_network_fits_into_less(self):
        for model in sampled(list(generate.MODELS), 3):
            with self.subTest(model):
                self.plan_with_less(os.path.join(GRAPHS, f"{model}.yaml"))

    def test_eight_gpus_take_few_more_bytes_than_one(self):
        """In the same rounds, as what several GPUs need for each other's gradients may ask for smaller ones."""
        graph = os.path.join(GRAPHS, "resnet50.yaml")
        roomy, tight = ("--batch", 384), ("--sub-batch", 16, "--budget", "2G")
        for policy, options in [("none", roomy), ("best", roomy),
                                *((policy, tight) for policy in ("best", "modnn", "tensile", "vdnn-all", "window"))]:
            sizes = []
            for gpus in (1, 8):
                batch = () if options is roomy else ("--batch", 48 * gpus)
                self.plan(graph, "--policy", policy, "--device", "h100", "--gpus", gpus, "--split-batch-norm", *options, *batch)
                sizes.append(os.path.getsize(self.path))
            self.assertLessEqual(sizes[1], 1.3 * sizes[0], (policy, *options))

    def test_several_gpus_are_no_slower_where_they_may_swap(self):
        graph = os.path.join(GRAPHS, "resnet50.yaml")
        for gpus in sampled([8, 2]):
            options = ("--device", "rtx2080ti", "--budget", "4G", "--split-batch-norm", "--gpus", gpus, "--batch", 64 * gpus,
                       "--effort", 0)
            may, may_not = (self.plan(graph, *options, *less) for less in ([], ["--no-swap"]))
            self.assertLessEqual(may["iteration_ns"], may_not["iteration_ns"], gpus)
            if gpus == 8:
                self.assertRegex(may["explanation"], "; without swaps$")

    def test_what_fits_in_less_fits_in_more(self):
        """Also where what an op needs leaves little of the memory, of which addresses need some."""
        graph = os.path.join(ROOT, "tests/data/tight/mixed.yaml")
        options = ("--device", "k40m", "--policy", "priced", "--effort", 0)
        rows = json.loads(run("planc", "compare", graph, "--device", "k40m", "--policies", "priced", "--effort", 0, "--budget", "1T",
                              "--json"))["rows"]
        for more in (0, 279, 837, 1116, 1674, 8928):
            with self.subTest(more):
                summary = self.plan(graph, *options, "--budget", rows[0]["least_budget"] + more)
                self.assertLessEqual(summary["peak_bytes"], rows[0]["least_budget"] + more)

    def test_a_device_without_limit_has_no_budget(self):
        graph = os.path.join(GRAPHS, "lenet-digits.yaml")
        times = {json.loads(run("planc", "compare", graph, "--device", "k40m", "--batch", 64, "--gpus", 4, "--policies", "ideal",
                                "--budget", budget, "--json"))["rows"][0]["iteration_ns"] for budget in ("300K", "1M", "1G")}
        self.assertEqual(len(times), 1)

    def test_a_layout_changes_neither_sizes_nor_work(self):
        for model in sampled([model for model in generate.MODELS if model not in generate.NOT_IMAGES], 3, first=1):
            with self.subTest(model), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(generate.main([model, "--nhwc", "-d", folder]), 0)
                options = ("--device", "h100", "--policy", "none", "--budget", "1000G", "--batch", 2)
                last, first = (self.plan(os.path.join(where, f"{model}.yaml"), *options) for where in (folder, GRAPHS))
                self.assertEqual([last[key] for key in ("peak_bytes", "iteration_ns")],
                                 [first[key] for key in ("peak_bytes", "iteration_ns")])

    def run_verified(self):
        self.assertTrue(json.loads(run("planrun", "exec", self.path, "--synthetic", "--json").splitlines()[-1])["verified"])

    def test_networks_that_branch_run(self):
        for model, batch in (("densenet121", 1), ("inception-v3", 3)):
            with self.subTest(model):
                self.plan_with_less(os.path.join(GRAPHS, f"{model}.yaml"), reserved_bytes("a6000"), "--batch", batch)
                self.run_verified()

    def test_networks_that_are_deep_attend_or_recur_run(self):
        """With little data beside their parameters, which therefore go and come as well."""
        for model in sampled(["resnet152", "gnmt-small", "bert-base", "rhn-small", "tacotron2-small"], first=1):
            with self.subTest(model):
                self.plan_with_less(os.path.join(GRAPHS, f"{model}.yaml"), reserved_bytes("v100-32g"), "--device",
                                    "v100-32g", "--batch", 1, policy="window")
                self.run_verified()

    def test_a_small_pix2pixhd_runs_in_rounds(self):
        with mock.patch.multiple(pix2pixhd, **SMALL):
            pix2pixhd.pix2pixhd().write(self.small)
        beside = reserved_bytes("v100-16g-nvlink")
        summary = self.plan_with_less(self.small, beside, "--batch", 7, "--sub-batch", 2)
        self.assertEqual(summary["rounds"], 4)
        report = json.loads(run("planrun", "exec", self.path, "--synthetic", "--iterations", 2, "--json")
                            .splitlines()[-1])
        self.assertTrue(report["verified"])


if __name__ == "__main__":
    unittest.main()
