"""Optimisers by name, asked and told by a simulation; see `registry` for how another one enters."""

from experiments.optimizers.registry import OPTIMIZERS, Entry, Optimizer, make

__all__ = ["OPTIMIZERS", "Entry", "Optimizer", "make"]
