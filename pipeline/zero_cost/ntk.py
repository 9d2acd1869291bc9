"""ntk: the condition number of the neural tangent kernel of at most 32 images.

Chen, Gong and Wang, "Neural architecture search on ImageNet in four GPU hours" (TE-NAS), ICLR 2021. Lower is better,
unlike for all other proxies. BatchNorm is in training mode; evaluation mode ranks networks differently.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from pipeline.probe import Probe, Undefined, checked, fresh, weights

_MOST_IMAGES: Final = 32


def score(probe: Probe) -> float:
    """Return the score."""
    return condition_number(fresh(probe.network), probe.images[:_MOST_IMAGES])


def condition_number(network: nn.Module, images: Tensor) -> float:
    """Return the largest eigenvalue of the kernel of these images over the smallest.

    The kernel is the Gram matrix of the gradients of each image's summed logits with respect to all weights, BatchNorm
    in training mode over these images.

    Raises:
        Undefined: no weight changes the output, or the kernel is singular.
    """
    params = weights(network)
    logits = network(images).sum(1)
    rows = []
    for i, logit in enumerate(logits):
        gradients = torch.autograd.grad(logit, params, retain_graph=i + 1 < len(logits), allow_unused=True)
        used = [gradient.flatten() for gradient in gradients if gradient is not None]
        if not used:
            raise Undefined("no weight changes the output")
        rows.append(torch.cat(used))
    jacobian = torch.stack(rows).double()
    eigenvalues = torch.linalg.eigvalsh(jacobian @ jacobian.T)
    if not eigenvalues[0] > 0:
        raise Undefined("the kernel is singular")
    return checked((eigenvalues[-1] / eigenvalues[0]).item())
