"""grad_norm: the sum over layers of the Euclidean norm of the weight's gradient.

Abdelfattah, Mehrotra, Dudziak and Lane, "Zero-cost proxies for lightweight NAS", ICLR 2021. The loss is the mean
cross-entropy of the batch. The score grows with the number of layers, and depends on the scale of the initial weights.
"""

from __future__ import annotations

from pipeline.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the score."""
    return checked(total([gradient.norm() for _, gradient in probe.gradients.weights]))
