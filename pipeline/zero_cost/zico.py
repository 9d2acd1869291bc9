"""zico: how large gradients are and how well batches agree on them.

Li, Yang, Bhardwaj and Marculescu, "ZiCo: zero-shot NAS via inverse coefficient of variation on gradients", ICLR 2023.
The sum over layers of the log of the sum over weights of mean|gradient| / standard deviation of the gradient, over
batches: here the two halves of the batch. Weights whose gradient does not vary, and layers without any, do not count.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from pipeline.probe import Probe, Undefined, checked, fresh, weights


def score(probe: Probe) -> float:
    """Return the score."""
    network = fresh(probe.network)
    params = weights(network)
    halves = [
        torch.autograd.grad(functional.cross_entropy(network(x), y), params, allow_unused=True)
        for x, y in zip(probe.images.chunk(2), probe.labels.chunk(2), strict=True)
    ]
    terms = []
    for pair in zip(*halves, strict=True):
        if any(gradient is None for gradient in pair):
            continue
        gradients = torch.stack(pair)
        deviation = gradients.std(0, correction=0)
        varies = deviation > 0
        if varies.any():
            terms.append(math.log((gradients.abs().mean(0)[varies] / deviation[varies]).double().sum().item()))
    if not terms:
        raise Undefined("no gradient varies between the halves of the batch")
    return checked(math.fsum(terms))
