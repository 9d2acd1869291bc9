"""grasp: how much removing weights would reduce the gradient flow.

Wang, Zhang and Grosse, "Picking winning tickets before training by preserving gradient flow", ICLR 2020. As in the
benchmark: the sum of -weight * (H g), with g the gradient of the loss and H its Hessian, at temperature 1 and with one
batch for both. Terms keep their signs, so scores of both signs occur, and single outliers are large.
"""

from __future__ import annotations

import torch

from pipeline.probe import Probe, checked, total


def score(probe: Probe) -> float:
    """Return the score."""
    pairs = probe.twice_differentiable_gradients()
    flow = torch.stack([(gradient.detach() * gradient).sum() for _, gradient in pairs]).sum()
    products = torch.autograd.grad(flow, [weight for weight, _ in pairs], retain_graph=True, allow_unused=True)
    terms = [
        (-weight.detach() * product).sum()
        for (weight, _), product in zip(pairs, products, strict=True)
        if product is not None
    ]
    return checked(total(terms))
