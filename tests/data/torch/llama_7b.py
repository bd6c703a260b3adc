"""The LLaMA of 7 billion parameters, with 2,048 tokens."""

from llama import training

model, step, example = training(words=32000, length=2048, width=4096, heads=32, hidden=11008, layers=32)
