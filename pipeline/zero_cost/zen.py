"""Zen-score: how far the features move when a Gaussian image does (Lin et al., ICCV 2021).

All weights are drawn from N(0, 1), and BatchNorm is in training mode. With f the features before global pooling and
x, e standard normal: the log of the mean over images of sum|f(x) - f(x + 0.01 e)|, plus the sum over BatchNorms of
log sqrt(mean of the batch variances). The second term undoes what BatchNorm rescales.
Images are only read for their shape.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn

from pipeline.zero_cost.network import Undefined, checked, fresh

__all__ = ["score"]

_MIXED: Final = 1e-2


def score(network: nn.Module, images: Tensor, labels: Tensor) -> float:  # noqa: ARG001  # every proxy's signature
    """Return the Zen-score of one draw, from torch's global generator."""
    network = fresh(network)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.normal_()
        scales: list[float] = []
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.register_forward_pre_hook(
                    lambda _module, inputs: scales.append(inputs[0].var(dim=(0, 2, 3)).mean().item())
                )
        features: list[Tensor] = []
        last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
        _before_pooling(network, last, features)
        x = torch.randn_like(images)
        moved = x + _MIXED * torch.randn_like(images)
        network(x)
        of_first = list(scales)
        network(moved)
    distance = (features[0] - features[1]).abs().flatten(1).sum(1).mean().item()
    if not distance > 0 or not all(scale > 0 for scale in of_first):
        raise Undefined("the features do not depend on the image")
    return checked(math.log(distance) + math.fsum(0.5 * math.log(scale) for scale in of_first))


def _before_pooling(network: nn.Module, last: nn.Linear, features: list[Tensor]) -> None:
    """Keep what enters global pooling: the output of the last BatchNorm before the classifier, activated or not."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    if norms:
        norms[-1].register_forward_hook(lambda _module, _inputs, output: features.append(output))
    else:
        last.register_forward_pre_hook(lambda _module, inputs: features.append(inputs[0]))
