"""GraSP: how much removing a weight would reduce the gradient's flow (Wang, Zhang and Grosse, ICLR 2020).

As Abdelfattah et al. (2021) use it: temperature 1, one batch for both gradients, and -weight * (Hessian * gradient)
summed with its sign, which is why scores of both signs occur and why single outliers are large.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.zero_cost.network import Undefined, checked, fresh, total, weights

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the sum over weights of -weight * (H g), with g the gradient of the loss and H its Hessian."""
    network = fresh(network)
    inner = weights(network)
    loss = functional.cross_entropy(network(images), labels)
    gradients = torch.autograd.grad(loss, inner, create_graph=True, allow_unused=True)
    used = [(weight, gradient) for weight, gradient in zip(inner, gradients, strict=True) if gradient is not None]
    if not used:
        raise Undefined("no weight changes the loss")
    flow = torch.stack([(gradient.detach() * gradient).sum() for _, gradient in used]).sum()
    products = torch.autograd.grad(flow, [weight for weight, _ in used], allow_unused=True)
    terms = [
        (-weight.detach() * product).sum()
        for (weight, _), product in zip(used, products, strict=True)
        if product is not None
    ]
    return checked(total(terms))
