"""Fisher: how much the loss would change if single channels were removed (Turner et al., ICLR 2020).

As Abdelfattah et al. (2021) use it: half the mean over images of (activation * gradient)^2, summed over pixels first,
for the outputs of convolutions and linear layers before BatchNorm.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.zero_cost.network import Undefined, checked, fresh, listen_to_layers, total

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the sum over channels of half the mean squared product of activation and gradient."""
    network = fresh(network)
    outputs: list[Tensor] = []
    listen_to_layers(network, outputs.append)
    loss = functional.cross_entropy(network(images), labels)
    gradients = torch.autograd.grad(loss, outputs, allow_unused=True)
    terms = [
        (output.detach() * gradient).flatten(2).sum(2).square().mean(0).mul(0.5).sum()
        if output.ndim > 2
        else (output.detach() * gradient).square().mean(0).mul(0.5).sum()
        for output, gradient in zip(outputs, gradients, strict=True)
        if gradient is not None
    ]
    if not terms:
        raise Undefined("no layer changes the loss")
    return checked(total(terms))
