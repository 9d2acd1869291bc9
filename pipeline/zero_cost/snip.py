"""SNIP: how much the loss would change if single weights were removed (Lee, Ajanthan and Torr, ICLR 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from pipeline.zero_cost.network import checked, fresh, gradients_of_loss, total

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the sum over weights of |weight * gradient|."""
    pairs = gradients_of_loss(fresh(network), images, labels)
    return checked(total([(weight * gradient).abs().sum() for weight, gradient in pairs]))
