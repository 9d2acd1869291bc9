"""jacov: how dissimilar the gradients of images are (Jacobian covariance).

Mellor, Turner, Storkey and Crowley, "Neural architecture search without training", arXiv 2006.04647, version 1. The
eigenvalues v of the correlation matrix of the images' gradients of their summed logits are scored by
-sum(log(v + k) + 1 / (v + k)), k = 1e-5. BatchNorm in training mode mixes the images, as in the original.
"""

from __future__ import annotations

from typing import Final

import torch

from pipeline.probe import Probe, Undefined, checked

_JITTER: Final = 1e-5


def score(probe: Probe) -> float:
    """Return the score."""
    jacobian = probe.gradients_of_images.flatten(1).double()
    if not jacobian.std(dim=1).all():
        raise Undefined("the output does not depend on some image")
    eigenvalues = torch.linalg.eigvalsh(torch.corrcoef(jacobian)) + _JITTER
    return checked(-float((eigenvalues.log() + 1 / eigenvalues).sum()))
