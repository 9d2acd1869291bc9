"""naswot: the log determinant of the kernel of equal signs before all activations.

Mellor, Turner, Storkey and Crowley, "Neural architecture search without training", ICML 2021. It grows with the number
of units, so networks are only comparable on the same number of images.
"""

from __future__ import annotations

import torch

from pipeline.probe import Probe, Undefined, checked, refuse_constant


def score(probe: Probe) -> float:
    """Return the score."""
    refuse_constant(probe)
    kernel = torch.zeros(len(probe.images), len(probe.images), dtype=torch.float64)
    for signs in probe.signs:
        positive = signs.double()
        kernel += positive @ positive.T + (1 - positive) @ (1 - positive).T
    sign, logarithm = torch.linalg.slogdet(kernel)
    if not sign > 0:
        raise Undefined("two images make the same signs")
    return checked(logarithm.item())
