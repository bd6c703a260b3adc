"""The benchmark that holds device descriptions against measurements of eager PyTorch, on a trace made up here."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import bench_descriptions
import eager
import torch_allocator

HEAD = "op,target,input_shapes,output_shape,dtype,latency,fw_latency,bw_latency,acc_latency,Name"
ROWS = [
    ("placeholder", "ids", "[]", "(2, 8)", "torch.int64", "ids"),
    ("call_module", "wte", "[[2, 8]]", "(2, 8, 16)", "torch.float32", "wte"),
    ("call_module", "h.0.ln", "[[2, 8, 16]]", "(2, 8, 16)", "torch.float32", "h_0_ln"),
    ("call_module", "h.0.fc", "[[2, 8, 16]]", "(2, 8, 16)", "torch.float32", "h_0_fc"),
    ("call_function", "<function softmax at 0x1>", "[[2, 8, 16]]", "(2, 8, 16)", "torch.float32", "softmax"),
    ("call_module", "h.0.drop", "[[2, 8, 16]]", "(2, 8, 16)", "torch.float32", "h_0_drop"),
    ("call_function", "<built-in method cumsum of type object at 0x1>", "[[2, 8, 16]]", "(2, 8, 16)", "torch.float32", "cumsum"),
    ("call_function", "<built-in function add>", "[[2, 8, 16], [2, 8, 16]]", "(2, 8, 16)", "torch.float32", "add"),
    ("call_module", "lm_head", "[[2, 8, 16]]", "(2, 8, 32)", "torch.float32", "lm_head"),
    ("output", "output", "[[2, 8, 32]]", "(2, 8, 32)", "torch.float32", "output"),
]


class Descriptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stem = os.path.join(folder.name, "NVIDIA_L4.tiny-train-8-2")
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(HEAD.split(","))
        for op, target, inputs, output, dtype, name in ROWS:
            writer.writerow([op, target, inputs, output, dtype, 0.3, 0.1, 0.1, 0.1, name])
        with open(self.stem + ".csv", "w", encoding="utf-8") as file:
            file.write(out.getvalue())
        with open(self.stem + ".json", "w", encoding="utf-8") as file:
            json.dump({"num_layer": 3, "e2e_latency": 2.0, "fw_latency": 1.0, "bwall_latency": 1.0}, file)

    def test_the_layer_is_repeated_and_gradients_meet(self):
        trace = eager.Trace(self.stem + ".csv", 3)
        forward, _, backward = eager.iteration_of(trace)
        count = [sum(kernel.type == type for kernel in kernels) for kernels, type in (
            (forward, "layernorm"), (forward, "linear"), (backward, "linear_dgrad"), (backward, "linear_bgrad"),
            (backward, "softmax_grad"), (backward, "aten.native_dropout_backward"), (backward, "aten.native_layer_norm_backward"))]
        # The loss has a softmax as well, and the head no bias.
        self.assertEqual(count, [3, 4, 4, 3, 4, 3, 6])
        # In each layer the result of the norm goes on by the product and past it.
        self.assertEqual(sum(kernel.type == "add" for kernel in backward), 3)
        self.assertEqual(trace.unknown, {"cumsum": 3})

    def test_a_folder_of_a_model_with_an_unknown_op(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/bench/bench_descriptions.py"),
                               os.path.dirname(self.stem), "--ops"], capture_output=True, text=True, check=True)
        self.assertIn("tiny: 1 of cumsum, which no kernel is known for, are left out", done.stdout)
        self.assertRegex(done.stdout, r"l4\s+tiny\s+8-2\s+yes\s+[+-]\d")
        for kind in ("linear", "softmax", "dropout", "layer norm", "embedding"):
            self.assertRegex(done.stdout, rf"tiny\s+8-2\s+{kind}\s+backward\s+[12]\s+\d")

    def test_a_folder_without_measurements(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests/bench/bench_descriptions.py"), folder],
                                  capture_output=True, text=True, check=True)
        self.assertIn("left out", done.stdout)

    def test_segments_of_the_allocator(self):
        allocator = torch_allocator.Allocator()
        mib = torch_allocator.MIB
        small, large, own = allocator.take(1000), allocator.take(3 * mib), allocator.take(19 * mib - 1)
        self.assertEqual(allocator.segments, [2 * mib, 20 * mib, 20 * mib])
        shared = allocator.take(17 * mib)  # what is left of the second segment
        self.assertEqual(len(allocator.segments), 3)
        allocator.give(large)
        allocator.give(shared)
        allocator.take(20 * mib)  # merged again
        self.assertEqual(len(allocator.segments), 3)
        allocator.give(small)
        allocator.give(own)

    def test_segments_are_asked_for_by_the_kernel_that_needs_them(self):
        forward, _, backward = eager.iteration_of(eager.Trace(self.stem + ".csv", 3))
        asked = torch_allocator.segments_of([forward, backward])
        self.assertEqual([len(of) for of in asked], [len(forward), len(backward)])
        # All activations of this model are small: its first kernel's segment holds them.
        self.assertEqual(asked[0][0], [2 * torch_allocator.MIB])
        self.assertEqual(sum(map(len, asked[0] + asked[1])), 1)

    def test_the_device_hides_what_the_host_waits_for(self):
        launched, kernels = bench_descriptions.launched, [100, 100, 100]
        self.assertEqual(launched(kernels, 10), 310)
        self.assertEqual(launched(kernels, 10, [0, 90, 90]), 310)
        self.assertEqual(launched(kernels, 10, [0, 0, 300]), 430)
        self.assertEqual(launched(kernels, 10, [50, 0, 0]), 360)


if __name__ == "__main__":
    unittest.main()
