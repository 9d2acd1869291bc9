"""Optimisers by name, for studies: those of `jahs.optimizers`, and those of other tools."""

from experiments.optimizers.registry import OPTIMIZERS, make, refuse_lacking

__all__ = ["OPTIMIZERS", "make", "refuse_lacking"]
