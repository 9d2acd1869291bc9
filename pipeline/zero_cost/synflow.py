"""SynFlow: how much of a signal gets through the network, without data (Tanaka et al., NeurIPS 2020).

All parameters are made positive, BatchNorm is as it starts (running statistics, an identity but for its epsilon), the
image is all ones, and arithmetic is in double precision: scores of deep networks exceed single precision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.zero_cost.network import Undefined, checked, fresh, total, weights

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the sum over weights of |weight * gradient of the summed output|."""
    network = fresh(network, is_training=False).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    inner = weights(network)
    output = network(torch.ones_like(images[:1], dtype=torch.float64)).sum()
    gradients = torch.autograd.grad(output, inner, allow_unused=True)
    terms = [
        (weight.detach() * gradient).abs().sum()
        for weight, gradient in zip(inner, gradients, strict=True)
        if gradient is not None
    ]
    if not terms:
        raise Undefined("no weight changes the output")
    return checked(total(terms))
