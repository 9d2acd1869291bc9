"""Optimisers that need numpy alone, by name; `baseline` is the base class of all of them."""

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.registry import OPTIMIZERS, Entry, Optimizer, make

__all__ = ["OPTIMIZERS", "Baseline", "Entry", "Optimizer", "TrialResult", "make"]
