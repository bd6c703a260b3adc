"""planc for PyTorch: records the training step that the user has, and follows a plan for it. See planc(1), torch."""

import importlib

try:
    from . import handed_out
    from . import guests
except ModuleNotFoundError as error:  # without PyTorch `planc torch` still has a sentence to say
    if error.name != "torch":
        raise

PLACES = {"BudgetNotHeld": "following", "DroppedTensor": "iteration", "Followed": "following", "FollowError": "library",
          "PlanNotFollowed": "following", "StepGraph": "step_graph", "follow": "following", "micro_batches": "micro",
          "record": "step_recorder"}
__all__ = tuple(PLACES)


def __getattr__(name):
    """What is asked for is imported then."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f".{PLACES[name]}", __name__), name)
