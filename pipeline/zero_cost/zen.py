"""Zen-score: how far the features move when a Gaussian image does (Lin et al., ICCV 2021).

All weights are drawn from N(0, 1), and BatchNorm is in training mode. With f the features before global pooling and
x, e standard normal: the log of the mean over images of sum|f(x) - f(x + 0.01 e)|, plus the sum over BatchNorms of
log sqrt(mean of the batch variances). The second term undoes what BatchNorm rescales.
The batch is only read for its shape.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn

from pipeline.zero_cost.probe import Probe, Undefined, checked, fresh

_MIXED: Final = 1e-2


def score(probe: Probe) -> float:
    """Return the Zen-score of one draw."""
    network, chance = fresh(probe.network), probe.chance()
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.normal_(generator=chance)
        x, moved = (torch.randn(probe.images.shape, generator=chance) for _ in range(2))
        moved = x + _MIXED * moved
        like = torch.channels_last if probe.images.is_contiguous(memory_format=torch.channels_last) else None
        x, moved = (image.to(memory_format=like) if like else image for image in (x, moved))
        scales: list[float] = []
        hooks = [norm.register_forward_pre_hook(lambda _module, of: scales.append(_scale(of[0]))) for norm in norms]
        features: list[Tensor] = []
        _keep_features(network, norms, features)
        network(x)
        for hook in hooks:
            hook.remove()
        network(moved)
    distance = (features[0] - features[1]).abs().flatten(1).sum(1).mean().item()
    if not distance > 0 or not all(scale > 0 for scale in scales):
        raise Undefined("the features do not depend on the image")
    return checked(math.log(distance) + math.fsum(0.5 * math.log(scale) for scale in scales))


def _scale(x: Tensor) -> float:
    return x.var(dim=(0, 2, 3)).mean().item()


def _keep_features(network: nn.Module, norms: list[nn.BatchNorm2d], features: list[Tensor]) -> None:
    """Keep what enters global pooling: the output of the last BatchNorm before the classifier, activated or not."""
    if norms:
        norms[-1].register_forward_hook(lambda _module, _inputs, output: features.append(output))
    else:
        last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
        last.register_forward_pre_hook(lambda _module, inputs: features.append(inputs[0]))
