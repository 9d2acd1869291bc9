"""SynFlow: how much of a signal gets through the network, without data (Tanaka et al., NeurIPS 2020).

All parameters are made positive, BatchNorm is as it starts (running statistics, an identity but for its epsilon), the
image is all ones, and arithmetic is in double precision: scores of deep networks exceed single precision.
"""

from __future__ import annotations

import torch

from pipeline.zero_cost.probe import Probe, checked, fresh, refuse_dead, total, weights


def score(probe: Probe) -> float:
    """Return the sum over weights of |weight * gradient of the summed output|."""
    network = fresh(probe.network, is_training=False).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    inner = weights(network)
    output = network(torch.ones_like(probe.images[:1], dtype=torch.float64)).sum()
    gradients = torch.autograd.grad(output, inner, allow_unused=True)
    pairs = [(weight.detach(), found) for weight, found in zip(inner, gradients, strict=True) if found is not None]
    refuse_dead(pairs)
    return checked(total([(weight * found).abs().sum() for weight, found in pairs]))
