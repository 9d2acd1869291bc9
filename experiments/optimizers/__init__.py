"""Optimisers by name, for studies: those of `jahs.optimizers`, and those of other tools."""

from experiments.optimizers.registry import OPTIMIZERS, make

__all__ = ["OPTIMIZERS", "make"]
