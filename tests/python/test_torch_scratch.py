#!/usr/bin/env python3
"""What calls allocate and free themselves: measured while a step is recorded, it has room in the plan."""

import json
import os
import re
import unittest
from unittest import mock

from torchfollow import FollowTest, planc_torch, torch  # first: it finds a Python with PyTorch

from planc_torch import extension, scratch
from planc_torch.__main__ import arguments_of
from planc_torch.plan_file import PlanFile, PlannedCall
from torchsteps import STEPS, cnn


class FirstFitTest(unittest.TestCase):
    def test_by_hand(self):
        a, b, c = 1, 2, 3
        for allocations, wanted in (([], 0), ([(a, 100), (a, 0)], 100), ([(a, 100), (b, 10), (b, 0), (a, 0)], 128 + 10),
                                    ([(a, 100), (a, 0), (b, 30), (b, 0)], 100),
                                    ([(a, 100), (b, 10), (a, 0), (c, 128), (b, 0), (c, 0)], 128 + 10),
                                    ([(a, 100), (b, 10), (a, 0), (c, 129), (b, 0), (c, 0)], 192 + 129)):
            self.assertEqual(scratch.first_fit(allocations), wanted, allocations)

    def test_what_a_call_gives_or_had_is_no_scratch(self):
        kept, had, freed = 64, 128, 192
        allocations = [(kept, 1000), (had, 0), (freed, 10), (freed, 0), (freed, 20), (freed, 0)]
        self.assertEqual([size for _, size in scratch.freed_within(allocations)], [10, 0, 20, 0])
        self.assertEqual(scratch.first_fit(scratch.freed_within(allocations)), 20)


class UsesTest(unittest.TestCase):
    def test_by_hand(self):
        had, a, b, c = 64, 128, 192, 256
        allocations = [(a, 10), (had, 0), (b, 20), (b, 0), (b, 30), (c, 40)]
        self.assertEqual(scratch.uses(allocations, [b, had, b, a]), [10, 3, 20, scratch.SCRATCH, 30, 0, 40, scratch.KEPT])
        self.assertEqual(scratch.uses([], [a]), [])


class GpuTest(unittest.TestCase):
    def test_what_is_there_before_or_after_is_no_scratch(self):
        for before, after, most, wanted in ((100, 160, 200, 40), (100, 80, 120, 20), (100, 160, 160, 0)):
            with mock.patch.multiple(torch.cuda, reset_peak_memory_stats=mock.DEFAULT, memory_allocated=mock.DEFAULT,
                                     max_memory_allocated=mock.DEFAULT) as of:
                of["memory_allocated"].side_effect = [before, after]
                of["max_memory_allocated"].return_value = most
                result, cost = scratch.clock_of("cuda").run(torch.ops.aten.add.Tensor, (torch.ones(2), torch.ones(2)), {})
                self.assertEqual((result.tolist(), cost), ([2.0, 2.0], wanted))


class RecordedTest(FollowTest):
    def graph(self, make, **options):
        made = make()
        recorder = planc_torch.record(made.step, arguments_of(made.example), "cpu", **options)
        return planc_torch.StepGraph(recorder, make.__name__)

    def workspaces(self, graph):
        """Of each op, as the graph's file states it."""
        path = os.path.join(self.folder.name, "graph.yaml")
        graph.write(path)
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("  - {op: ")]
        found = [re.search(r", workspace: (\d+)", line) for line in lines]
        return [int(match[1]) if match else 0 for match in found]

    def test_without_the_extension_none_is_known(self):
        with mock.patch.object(extension, "is_wanted", False):
            graph = self.graph(cnn)
        self.assertEqual((graph.scratch_bytes, set(self.workspaces(graph))), (None, {0}))
        graph = self.graph(cnn, has_elements=False)
        self.assertEqual((graph.scratch_bytes, set(self.workspaces(graph))), (None, {0}))

    @unittest.skipUnless(extension.plain_calls(), "skipped: planc_torch's extension is not built (make torch-extension)")
    def test_a_plan_has_room_for_the_most_of_each_call(self):
        graph = self.graph(cnn)
        found = self.workspaces(graph)
        self.assertEqual(found, [call.cost or 0 for call in graph.calls])
        self.assertEqual(max(found), graph.scratch_bytes)
        convolutions = [size for size, call in zip(found, graph.calls) if "convolution_backward" in call.name]
        self.assertGreater(min(convolutions), 0)
        path, _ = self.record(cnn).planned("none", "1T")
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.startswith(('{"op":', '{"i":"exec"'))]
        ops = [row for row in rows if "op" in row]
        executed = [row for row in rows if "i" in row]
        self.assertEqual([op.get("workspace", 0) for op in ops], found)
        self.assertEqual(sorted(row["wsb"] for row in executed), sorted(found))

    @unittest.skipUnless(extension.plain_calls(), "skipped: planc_torch's extension is not built (make torch-extension)")
    def test_two_recordings_measure_the_same(self):
        for make in (STEPS["cnn"], STEPS["gpt"]):
            first, second = ([(call.cost, call.allocated) for call in self.graph(make).calls] for _ in range(2))
            self.assertEqual(first, second, make.__name__)

    @unittest.skipUnless(extension.plain_calls(), "skipped: planc_torch's extension is not built (make torch-extension)")
    def test_a_plan_has_the_allocations_of_each_call(self):
        recorded = self.record(cnn)
        calls = PlanFile(recorded.planned("none", "1T")[0]).calls
        self.assertEqual([call.allocated for call in calls], [call.allocated for call in recorded.graph.calls])
        for call, planned in zip(recorded.graph.calls[:-1], calls):
            made = {number: size for size, number in zip(call.allocated[::2], call.allocated[1::2]) if number >= 0}
            new = {call.gives.index(s): recorded.graph.recorder.storages[s].bytes for s in call.creates if s in call.gives}
            self.assertEqual(made, new, planned.described)

    def test_a_plan_with_other_allocations_is_refused(self):
        op = {"phase": "forward", "out": [0], "attrs": {"call": "x", "line": "", "tensors": [], "results": [0]}}
        for allocated in ([], [8, 0], [8, scratch.SCRATCH, 8, scratch.KEPT]):
            op["attrs"]["allocations"] = allocated
            self.assertFalse(PlannedCall(op).is_wrong(1))
        for allocated in ([8], [8, 1], [0, 0], [8, -3], ["8", 0], 8):
            op["attrs"]["allocations"] = allocated
            self.assertTrue(PlannedCall(op).is_wrong(1), allocated)


if __name__ == "__main__":
    unittest.main()
