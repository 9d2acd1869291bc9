"""GraSP: how much removing a weight would reduce the gradient's flow (Wang, Zhang and Grosse, ICLR 2020).

As Abdelfattah et al. (2021) use it: temperature 1, one batch for both gradients, and -weight * (Hessian * gradient)
summed with its sign, which is why scores of both signs occur and why single outliers are large.
"""

from __future__ import annotations

import torch

from pipeline.zero_cost.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the sum over weights of -weight * (H g), with g the gradient of the loss and H its Hessian."""
    pairs = probe.twice_differentiable_gradients()
    flow = torch.stack([(gradient.detach() * gradient).sum() for _, gradient in pairs]).sum()
    products = torch.autograd.grad(flow, [weight for weight, _ in pairs], retain_graph=True, allow_unused=True)
    terms = [
        (-weight.detach() * product).sum()
        for (weight, _), product in zip(pairs, products, strict=True)
        if product is not None
    ]
    return checked(total(terms))
