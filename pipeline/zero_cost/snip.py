"""snip: the sum over weights of |weight * gradient|.

Lee, Ajanthan and Torr, "SNIP: single-shot network pruning based on connection sensitivity", ICLR 2019. The original
divides by this sum, which would make every network's score 1. Like grad_norm, it grows with depth.
"""

from __future__ import annotations

from pipeline.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the score."""
    return checked(total([(weight.detach() * gradient).abs().sum() for weight, gradient in probe.gradients.weights]))
