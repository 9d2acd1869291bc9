"""NASWOT: how unlike the signs before activations are for different images (Mellor et al., ICML 2021)."""

from __future__ import annotations

import torch

from pipeline.zero_cost.probe import Probe, Undefined, checked


def score(probe: Probe) -> float:
    """Return the log determinant of the kernel of equal signs, summed over all activations."""
    kernel = torch.zeros(len(probe.images), len(probe.images), dtype=torch.float64)
    for signs in probe.signs:
        sign = signs.double()
        kernel += sign @ sign.T + (1 - sign) @ (1 - sign).T
    sign_of_all, logarithm = torch.linalg.slogdet(kernel)
    if not sign_of_all > 0:
        raise Undefined("two images make the same signs")
    return checked(logarithm.item())
