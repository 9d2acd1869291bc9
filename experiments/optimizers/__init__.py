"""Optimisers by name, for simulations; `registry` lists them."""

from experiments.optimizers.registry import OPTIMIZERS, Entry, Optimizer, make

__all__ = ["OPTIMIZERS", "Entry", "Optimizer", "make"]
