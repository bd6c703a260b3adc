#!/usr/bin/env python3
"""Tests of planc_torch on many models (steps_*.py): their graphs are what the steps do, and under plans they compute the same,
bit for bit, within the plan's memory. tests/bench/bench_torch.py does more of it."""

import math
import os
import tempfile
import unittest
import warnings
from types import SimpleNamespace

from torchfollow import Recorded, Run, arguments_of, first_difference, over, torch  # first: it finds a Python with PyTorch

import planc_torch
import steps_generative
import steps_language
import steps_vision
import torch_costs
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch_refusals import CannotExport
from torchtraining import HAS_SCALER

STEPS = {**steps_language.STEPS, **steps_vision.STEPS, **steps_generative.STEPS}
# Each step with policies and parts of the plain peak; where a policy has no plan, that is so at this part.
FOLLOWED = {
    "gpt2": [("auto", 40), ("chen", 100)], "llama": [("auto", 60), ("cheap", 100)], "llama_checkpointed": [("auto", 60)],
    "bert": [("capuchin", 60)], "moe": [("superneurons", 60), ("auto", 40)], "lora": [("auto", 60)], "vit": [("auto", 40)],
    "swin": [("naive", 60)], "convnext": [("auto", 60)], "efficientnet": [("auto", 40), ("cheap", 100)],
    "densenet": [("superneurons", 60)], "segmentation": [("auto", 60), ("naive", 60)], "diffusion": [("auto", 60), ("chen", 60)],
    "gan": [("auto", 60), ("superneurons", 100)], "gan_penalized": [("auto", 60)], "autoencoder": [("capuchin", 60), ("chen", 60)],
    "dlrm": [("auto", 60)], "lstm_tagger": [("auto", 60)], "gru_translator": [("auto", 60)], "speech": [("auto", 60)],
    "graph_network": [("auto", 60), ("cheap", 60)], "distillation": [("auto", 60)], "contrast": [("auto", 60), ("naive", 60)],
}


class StepsTest(unittest.TestCase):
    def recorded(self, make):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Recorded(make, folder.name)

    def assert_followed(self, recorded, plain, policy, share):
        """Whether there is a plan, under which then all is as it should be."""
        made = recorded.planned(policy, recorded.plain_bytes * share // 100)
        if made is None:
            return False
        ours = Run(recorded.make, made[0])
        self.assertIsNone(first_difference(ours, plain))
        self.assertEqual(over(recorded, ours, made[1]["peak_bytes"]), 0)
        self.assertEqual(ours.told, [])
        return True

    def test_steps_compute_the_same_within_their_plans(self):
        for name, plans in FOLLOWED.items():
            with self.subTest(name):
                recorded, plain = self.recorded(STEPS[name]), Run(STEPS[name])
                for policy, share in plans:
                    with self.subTest(name, policy=policy, share=share):
                        self.assertTrue(self.assert_followed(recorded, plain, policy, share))
