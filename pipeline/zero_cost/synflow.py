"""synflow: how much of a signal gets through the network, without data.

Tanaka, Kunin, Yamins and Ganguli, "Pruning neural networks without any data by iteratively conserving synaptic flow",
NeurIPS 2020. The sum over weights of |weight * gradient of the summed output|. All parameters are made positive,
BatchNorm uses its initial running statistics (an identity but for its epsilon), and the image is all ones. Signals grow
with every layer, and scores of deep networks exceed single precision, so arithmetic is in double precision.
"""

from __future__ import annotations

import torch

from pipeline.probe import Probe, checked, fresh, refuse_dead, total, weights


def score(probe: Probe) -> float:
    """Return the score."""
    network = fresh(probe.network, is_training=False).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    params = weights(network)
    output = network(torch.ones_like(probe.images[:1], dtype=torch.float64)).sum()
    gradients = torch.autograd.grad(output, params, allow_unused=True)
    pairs = [(weight.detach(), grad) for weight, grad in zip(params, gradients, strict=True) if grad is not None]
    refuse_dead(pairs)
    return checked(total([(weight * grad).abs().sum() for weight, grad in pairs]))
