"""Neural tangent kernel: its condition number (Chen, Gong and Wang, TE-NAS, ICLR 2021). Less is better.

The kernel of the first images is the Gram matrix of the gradients of each image's summed logits with respect to all
weights, BatchNorm in training mode over these images. The score is the largest eigenvalue over the smallest.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from pipeline.zero_cost.probe import Probe, Undefined, checked, fresh, weights

_MOST_IMAGES: Final = 32


def score(probe: Probe) -> float:
    """Return the condition number of the kernel of at most 32 images."""
    return condition_number(fresh(probe.network), probe.images[:_MOST_IMAGES])


def condition_number(network: nn.Module, images: Tensor) -> float:
    """Return the condition number of the kernel of these images.

    Raises:
        Undefined: no weight changes the output, or the kernel is singular.
    """
    inner = weights(network)
    logits = network(images).sum(1)
    rows = []
    for i, logit in enumerate(logits):
        found = torch.autograd.grad(logit, inner, retain_graph=i + 1 < len(logits), allow_unused=True)
        used = [gradient.flatten() for gradient in found if gradient is not None]
        if not used:
            raise Undefined("no weight changes the output")
        rows.append(torch.cat(used))
    gradients = torch.stack(rows).double()
    eigenvalues = torch.linalg.eigvalsh(gradients @ gradients.T)
    if not eigenvalues[0] > 0:
        raise Undefined("the kernel is singular")
    return checked((eigenvalues[-1] / eigenvalues[0]).item())
