"""NASWOT: how unlike the signs before activations are for different images (Mellor et al., ICML 2021)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.zero_cost.network import Undefined, checked, fresh, listen

__all__ = ["score"]


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the log determinant of the kernel of equal signs, summed over all activations."""
    network = fresh(network)
    kernel = torch.zeros(len(images), len(images), dtype=torch.float64)

    def heard(x: Tensor) -> None:
        sign = (x.detach().flatten(1) > 0).double()
        kernel.add_(sign @ sign.T + (1 - sign) @ (1 - sign).T)

    listen(network, heard)
    with torch.no_grad():
        network(images)
    sign, logarithm = np.linalg.slogdet(kernel.numpy())
    if not sign > 0:
        raise Undefined("two images make the same signs")
    return checked(float(logarithm))
