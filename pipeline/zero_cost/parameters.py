"""The number of trainable parameters: the simplest proxy, and one that few others beat."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the number of trainable parameters, BatchNorm included."""
    return float(sum(parameter.numel() for parameter in network.parameters()))
