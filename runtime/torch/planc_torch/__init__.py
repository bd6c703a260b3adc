"""planc for PyTorch: records the training step that the user has, and follows a plan for it. See planc(1), torch."""

import importlib

PLACES = {"DroppedTensor": "iteration", "Followed": "following", "PlanNotFollowed": "following", "follow": "following",
          "FollowError": "library", "StepGraph": "step_recorder", "record": "step_recorder"}
__all__ = tuple(PLACES)


def __getattr__(name):
    """What is asked for is imported then: without PyTorch `planc torch` still has a sentence to say."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f".{PLACES[name]}", __name__), name)
