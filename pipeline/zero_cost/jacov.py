"""Jacobian covariance: how unlike the gradients at different images are (Mellor et al., 2020, first version).

The eigenvalues v of the correlation matrix of the per-image gradients of the summed logits are scored by
-sum(log(v + k) + 1 / (v + k)), k = 1e-5. BatchNorm in training mode mixes the images, as in the original.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.zero_cost.network import Undefined, checked, fresh

__all__ = ["score"]

_JITTER: Final = 1e-5


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the score of the correlations between images; highest where they are uncorrelated."""
    images = images.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(fresh(network)(images).sum(), [images], allow_unused=True)
    if gradient is None:
        raise Undefined("the output does not depend on the images")
    jacobian = gradient.flatten(1).double().numpy()
    if not jacobian.std(axis=1).all():
        raise Undefined("the output does not depend on some image")
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(jacobian)) + _JITTER
    return checked(-float(np.sum(np.log(eigenvalues) + 1 / eigenvalues)))
