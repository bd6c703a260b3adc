#!/usr/bin/env python3
"""Tests of the generated iteration of Pix2PixHD: its counts, who is trained by what, and its backward ops against
differences of its losses on a small version. Standard library only: `python3 tests/python/test_pix2pixhd.py`."""

import random
import unittest
from unittest import mock

from graphtest import Graph, GraphTest, read

import graph_numerics
import pix2pixhd

SMALL = {"HEIGHT": 8, "WIDTH": 12, "LABELS": 2, "GENERATOR_WIDTH": 2, "DOWNS": 1, "BLOCKS": 2,
         "DISCRIMINATOR_WIDTHS": (2, 3, 2, 3), "VGG19": ((1, 2), (2, 3)), "VGG_WEIGHTS": (0.5, 1.0)}


def count(graph, prefix):
    return sum(t.bytes(0) // 4 for name, t in graph.tensors.items() if t.kind == "param" and name.startswith(prefix))


def convolution(c, k, size):
    return c * k * size * size + k


class IterationTest(GraphTest):
    def setUp(self):
        self.graph = read("pix2pixhd.yaml")

    def test_parameters(self):
        # Wang et al., appendix on architectures: c7s1-64, d128, d256, d512, d1024, R1024 nine times, u512, u256, u128,
        # u64, c7s1-3, on 35 labels and the edges; C64, C128, C256, C512 and a last layer on those and the image, twice.
        # VGG-19 up to conv5_1: configuration E of arXiv:1409.1556.
        widths = (64, 128, 256, 512, 1024)
        steps = list(zip(widths, widths[1:]))
        generator = convolution(36, 64, 7) + sum(convolution(c, k, 3) for c, k in steps)
        generator += 18 * convolution(1024, 1024, 3) + sum(convolution(k, c, 3) for c, k in steps)
        self.assertEqual(count(self.graph, "G_"), generator + convolution(64, 3, 7))
        layers = ((39, 64), (64, 128), (128, 256), (256, 512), (512, 1))
        self.assertEqual(count(self.graph, "D"), 2 * sum(convolution(c, k, 4) for c, k in layers))
        vgg = (3, 64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512)
        self.assertEqual(count(self.graph, "V"), sum(convolution(c, k, 3) for c, k in zip(vgg, vgg[1:])))
        self.assertIn(f"({count(self.graph, 'G_'):,}", " ".join(pix2pixhd.pix2pixhd().heading.split()))
        self.assertIn(f"({count(self.graph, 'D'):,}", " ".join(pix2pixhd.pix2pixhd().heading.split()))

    def test_sizes(self):
        for name, size in (("G_down4_norm.y", (1024, 32, 64)), ("G_tanh.y", (3, 512, 1024)),
                           ("real/D1_score.y", (1, 67, 131)), ("real/D2_score.y", (1, 35, 67)),
                           ("real/V5_1_relu.y", (512, 32, 64))):
            self.assertEqual(tuple(f for f, _ in self.graph.of(name).dims[1:]), size)

    def test_every_trained_parameter_gets_one_step_and_vgg_none(self):
        steps = [op for op in self.graph.ops if op["phase"] == "optimizer"]
        trained = [name for name, t in self.graph.tensors.items() if t.kind == "param" and name[0] in "GD"]
        self.assertEqual([op["in"][0] for op in steps], trained)
        self.assertEqual(len(trained), 2 * (1 + 4 + 18 + 4 + 1) + 2 * 2 * 5)
        for op in steps:
            w = op["in"][0]
            self.assertEqual((op["type"], op["in"][1:], op["out"]), ("adam", [f"{w}.grad", f"{w}.m", f"{w}.v"],
                                                                      [w, f"{w}.m", f"{w}.v"]))

    def test_only_what_is_needed_comes_back(self):
        backward = [op for op in self.graph.ops if op["phase"] == "backward"]
        runs = {op["op"].partition("/")[0] for op in backward if op["type"] == "conv2d_wgrad" and "/" in op["op"]}
        self.assertEqual(runs, {"cut", "real"})  # the discriminators learn from these runs only
        read_later = {name for op in self.graph.ops for name in op["in"]}
        unread = [name for op in backward for name in op["out"] if name not in read_later]
        self.assertEqual(unread, [])

    def test_gradients_of_activation_functions_lie_over_what_they_read(self):
        for op in self.graph.ops:
            if op["type"] in ("relu_grad", "pix2pixhd.leaky_relu_grad", "pix2pixhd.tanh_grad"):
                self.assertIs(self.graph.of(op["out"][0]).root, self.graph.of(op["in"][1]).root, op["op"])

    def test_losses_leave(self):
        self.assertEqual((self.graph.header["loss"], self.graph.header["outputs"]), ("G_loss", "[D_loss]"))


class NumericsTest(GraphTest):
    def test_gradients_are_the_slopes_of_the_losses(self):
        with mock.patch.multiple(pix2pixhd, **SMALL):
            graph = Graph(pix2pixhd.pix2pixhd().text())
        self.check_form(graph)
        rng = random.Random(3)
        params = {name: [rng.uniform(-0.4, 0.4) for _ in range(t.bytes(0) // 4)]
                  for name, t in graph.tensors.items() if t.root is t and t.kind == "param"}
        values = graph_numerics.run(graph, params)
        forward = Graph("")
        forward.tensors, forward.ops = graph.tensors, [op for op in graph.ops if op["phase"] == "forward"]
        for prefix, loss in (("G_", "G_loss"), ("D", "D_loss")):
            along = {name: [rng.uniform(-1, 1) for _ in numbers] for name, numbers in params.items()
                     if name.startswith(prefix)}

            def loss_at(step, along=along, loss=loss):
                moved = {name: [v + step * d for v, d in zip(numbers, along.get(name, [0.0] * len(numbers)))]
                         for name, numbers in params.items()}
                return graph_numerics.run(forward, moved)[graph.of(loss)][0]

            slope = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6
            predicted = sum(g * d for name in along for g, d in zip(values[graph.of(f"{name}.grad")], along[name]))
            self.assertAlmostEqual(predicted / slope, 1, delta=1e-5, msg=loss)


if __name__ == "__main__":
    unittest.main()
