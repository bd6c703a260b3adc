#!/usr/bin/env python3
"""A run of many followed steps that is killed twice and goes on from its checkpoints ends with the bits of a plain one that
nobody disturbs."""

import json
import os
import signal
import subprocess
import sys
import unittest

from torchfollow import FollowTest, torch  # first: it finds a Python with PyTorch

import torchlongrun
from sampling import TAKES_ALL
from torch.utils._pytree import tree_flatten

KILLED = ((("step", 437, 400), ("checkpoint", 760, 720)) if TAKES_ALL else
          (("step", 137, 120), ("checkpoint", 200, 160)))  # where, at which step, and the last one whose checkpoint is whole


class LongTest(FollowTest):
    def run_on(self, folder, *arguments):
        done = subprocess.run([sys.executable, "-B", torchlongrun.__file__, folder, *map(str, arguments)], capture_output=True,
                              text=True, check=False)
        self.assertNotIn("PlanNotFollowed", done.stderr)
        return done

    def folder_of(self, name):
        path = os.path.join(self.folder.name, name)
        os.mkdir(path)
        return path

    def test_a_run_that_is_killed_twice_ends_as_one_that_is_not(self):
        recorded = self.record(torchlongrun.long_run)
        plan = recorded.planned("auto", recorded.plain_bytes * 55 // 100)[0]
        plain, ours = self.folder_of("plain"), self.folder_of("ours")
        undisturbed = self.run_on(plain)
        self.assertEqual(undisturbed.returncode, 0, undisturbed.stderr)
        for where, at, saved in KILLED:
            killed = self.run_on(ours, plan, where, at)
            self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
            self.assertEqual(self.saved(ours)["done"], saved)
        part = os.path.join(ours, "checkpoint.pt.part")
        self.assertGreater(os.path.getsize(part), 0)
        with self.assertRaises((OSError, RuntimeError)):
            torch.load(part)
        last = self.run_on(ours, plan)
        self.assertEqual(last.returncode, 0, last.stderr)
        counts = json.loads(last.stdout)
        self.assertEqual((counts["iterations"], counts["left"]), (torchlongrun.STEPS - saved, 0))
        self.assertGreater(min(counts["out_bytes"], counts["repeats"]), 0)
        a, b = (tree_flatten(self.saved(folder))[0] for folder in (ours, plain))
        self.assertEqual(len(a), len(b))
        self.assertTrue(all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(a, b)))

    def saved(self, folder):
        return torch.load(os.path.join(folder, "checkpoint.pt"))


if __name__ == "__main__":
    unittest.main()
