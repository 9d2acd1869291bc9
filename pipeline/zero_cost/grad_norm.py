"""Gradient norm: the lengths of the loss's gradients, summed over layers (Abdelfattah et al., ICLR 2021)."""

from __future__ import annotations

from torch import Tensor, nn

from pipeline.zero_cost.network import checked, fresh, gradients_of_loss, total

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the sum over layers of the Euclidean norm of the weight's gradient."""
    return checked(total([gradient.norm() for _, gradient in gradients_of_loss(fresh(network), images, labels)]))
