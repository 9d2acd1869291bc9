"""ZiCo: gradients that are large and agree between batches (Li et al., ICLR 2023).

The sum over layers of the log of the sum over weights of mean|gradient| / deviation of the gradient, over batches: here
the two halves of the batch. Weights whose gradient does not vary, and layers without any, do not count.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from pipeline.zero_cost.probe import Probe, Undefined, checked, fresh, weights


def score(probe: Probe) -> float:
    """Return the sum over layers of log sum(mean|g| / std(g)) over two half batches."""
    network = fresh(probe.network)
    inner = weights(network)
    halves = [
        torch.autograd.grad(functional.cross_entropy(network(x), y), inner, allow_unused=True)
        for x, y in zip(probe.images.chunk(2), probe.labels.chunk(2), strict=True)
    ]
    terms = []
    for each in zip(*halves, strict=True):
        if any(gradient is None for gradient in each):
            continue
        gradients = torch.stack(each)
        deviation = gradients.std(0, correction=0)
        varies = deviation > 0
        if varies.any():
            terms.append(math.log((gradients.abs().mean(0)[varies] / deviation[varies]).double().sum().item()))
    if not terms:
        raise Undefined("no gradient varies between the halves of the batch")
    return checked(math.fsum(terms))
