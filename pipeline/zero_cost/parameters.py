"""parameters: the number of trainable parameters, BatchNorm included.

It needs no batch, and few other proxies rank networks better.
"""

from __future__ import annotations

from pipeline.probe import Probe


def score(probe: Probe) -> float:
    """Return the score."""
    return float(sum(parameter.numel() for parameter in probe.network.parameters()))
