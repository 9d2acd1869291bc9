"""The number of trainable parameters: the simplest proxy, and one that few others beat."""

from __future__ import annotations

from pipeline.zero_cost.probe import Probe


def score(probe: Probe) -> float:
    """Return the number of trainable parameters, BatchNorm included."""
    return float(sum(parameter.numel() for parameter in probe.network.parameters()))
