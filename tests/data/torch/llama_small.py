"""A narrow LLaMA of two layers, for tests."""

from llama import training

model, step, example = training(words=512, length=64, width=128, heads=2, hidden=256, layers=2)
