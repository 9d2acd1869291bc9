"""SNIP: how much the loss would change if single weights were removed (Lee, Ajanthan and Torr, ICLR 2019)."""

from __future__ import annotations

from pipeline.zero_cost.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the sum over weights of |weight * gradient|."""
    pairs = probe.gradients.weights
    return checked(total([(weight.detach() * gradient).abs().sum() for weight, gradient in pairs]))
