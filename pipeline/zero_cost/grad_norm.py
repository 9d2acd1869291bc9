"""Gradient norm: the lengths of the loss's gradients, summed over layers (Abdelfattah et al., ICLR 2021)."""

from __future__ import annotations

from pipeline.zero_cost.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the sum over layers of the Euclidean norm of the weight's gradient."""
    return checked(total([gradient.norm() for _, gradient in probe.gradients.weights]))
