"""zen: the sensitivity of the features to a Gaussian image, the Zen-score of one draw.

Lin et al., "Zen-NAS: a zero-shot NAS for high-performance image recognition", ICCV 2021. All weights are drawn from
N(0, 1), and BatchNorm is in training mode. With f the features before global pooling and x, e standard normal: the log
of the mean over images of sum|f(x) - f(x + 0.01 e)|, plus the sum over BatchNorms of log sqrt(mean of the batch
variances), which undoes the rescaling by BatchNorm. A BatchNorm that no path leads to is left out, since it has no
variance to rescale. The batch is only read for its shape.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn

from pipeline.probe import Probe, Undefined, checked, fresh

_MIXUP: Final = 1e-2  # weight of the noise that perturbs the image


def score(probe: Probe) -> float:
    """Return the score."""
    distance, scales, _ = zen_passes(probe)
    if not distance > 0:
        raise Undefined("the features do not depend on the image")
    return checked(math.log(distance) + math.fsum(0.5 * math.log(scale) for scale in scales if scale > 0))


def zen_passes(probe: Probe) -> tuple[float, list[float], nn.Module]:
    """Return how far the features move, each BatchNorm's mean batch variance, and the network after both passes."""
    network, chance = fresh(probe.network), probe.chance()
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.normal_(generator=chance)
        x, noise = (torch.randn(probe.images.shape, generator=chance) for _ in range(2))
        perturbed = x + _MIXUP * noise
        layout = torch.channels_last if probe.images.is_contiguous(memory_format=torch.channels_last) else None
        x, perturbed = (image.to(memory_format=layout) if layout else image for image in (x, perturbed))
        scales: list[float] = []
        hooks = [norm.register_forward_pre_hook(lambda _, inputs: scales.append(_scale(inputs[0]))) for norm in norms]
        features: list[Tensor] = []
        _record_features(network, norms, features)
        network(x)
        for hook in hooks:
            hook.remove()
        network(perturbed)
    distance = (features[0] - features[1]).abs().flatten(1).sum(1).mean().item()
    return distance, scales, network


def _scale(x: Tensor) -> float:
    return x.var(dim=(0, 2, 3)).mean().item()


def _record_features(network: nn.Module, norms: list[nn.BatchNorm2d], features: list[Tensor]) -> None:
    """Record the input of global pooling: the output of the last BatchNorm before the classifier, activated or not."""
    if norms:
        norms[-1].register_forward_hook(lambda _module, _inputs, output: features.append(output))
    else:
        last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
        last.register_forward_pre_hook(lambda _module, inputs: features.append(inputs[0]))
