"""planc for PyTorch: records the training step that the user has, and follows a plan for it. See planc(1), torch."""

from .following import DroppedTensor, Followed, PlanNotFollowed, follow
from .library import FollowError
from .step_recorder import StepGraph, record

__all__ = ("DroppedTensor", "FollowError", "Followed", "PlanNotFollowed", "StepGraph", "follow", "record")
