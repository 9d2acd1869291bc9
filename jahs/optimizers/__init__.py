"""Optimisers that only need numpy, by name, their base class, and expert priors for optimisers that take one."""

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.priors import QUALITIES, expert_prior
from jahs.optimizers.registry import OPTIMIZERS, Entry, Optimizer, make

__all__ = ["OPTIMIZERS", "QUALITIES", "Baseline", "Entry", "Optimizer", "TrialResult", "expert_prior", "make"]
