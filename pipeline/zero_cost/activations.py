"""Proxies from features and activations, without a gradient."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.probe import Probe, Undefined, checked, fresh, listen_to_layers, refuse_constant

_MIXUP: Final = 1e-2  # weight of the noise that perturbs the image


def zen(probe: Probe) -> float:
    """Return the sensitivity of the features to a Gaussian image, the Zen-score of one draw.

    Lin et al., "Zen-NAS: a zero-shot NAS for high-performance image recognition", ICCV 2021. All weights are drawn from
    N(0, 1), and BatchNorm is in training mode. With f the features before global pooling and x, e standard normal: the
    log of the mean over images of sum|f(x) - f(x + 0.01 e)|, plus the sum over BatchNorms of log sqrt(mean of the batch
    variances), which undoes the rescaling by BatchNorm. A BatchNorm that no path leads to is left out, since it has no
    variance to rescale. The batch is only read for its shape.
    """
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


def meco(probe: Probe) -> float:
    """Return how independent the channels of feature maps are.

    Jiang, Wang and Bie, "MeCo: zero-shot NAS with one data and single forward pass via minimum eigenvalue of
    correlation", NeurIPS 2023. For one image of random pixels, the sum over layers of the smallest eigenvalue of the
    correlation matrix of the layer's channels; undefined correlations (constant channels, maps of one pixel) count as
    0. The batch is only read for its shape. BatchNorm in training mode needs two values, so where maps have one pixel a
    second image is in the batch; it is in every batch, so that scores do not depend on the side.
    """
    network = fresh(probe.network)
    smallest: list[float] = []

    def add_smallest(output: Tensor) -> None:
        if output.ndim == 4 and output.shape[1] > 1 and output.shape[2:].numel() > 1:
            correlations = torch.nan_to_num(torch.corrcoef(output[0].flatten(1).double()), nan=0, posinf=0, neginf=0)
            smallest.append(torch.linalg.eigvalsh(correlations)[0].item())

    listen_to_layers(network, add_smallest)
    with torch.no_grad():
        one, other = network(torch.randn((2, *probe.images.shape[1:]), generator=probe.chance()))
    if torch.equal(one, other):
        raise Undefined("the output does not depend on the image")
    return checked(float(sum(smallest)))


def swap(probe: Probe) -> float:
    """Return how many different activation patterns the images make.

    Peng, Song, Fayek, Ciesielski and Chang, "SWAP-NAS: sample-wise activation patterns for ultra-fast NAS", ICLR 2024.
    A pattern belongs to one unit: the signs of its input over all images of the batch. The score is the number of
    different patterns among all units of all activations. It saturates at the number of units, and at 2^images.
    """
    refuse_constant(probe)
    if not probe.signs:
        return 0.0
    packed = np.concatenate([np.packbits(signs.numpy(), axis=0).T for signs in probe.signs])  # (n_units, n_bytes)
    n_bytes = packed.shape[1]
    patterns = np.ascontiguousarray(packed).view(f"u{n_bytes}" if n_bytes in {1, 2, 4, 8} else f"V{n_bytes}")
    return float(len(np.unique(patterns)))


def naswot(probe: Probe) -> float:
    """Return the log determinant of the kernel of equal signs before all activations.

    Mellor, Turner, Storkey and Crowley, "Neural architecture search without training", ICML 2021. It grows with the
    number of units, so networks are only comparable on the same number of images.
    """
    refuse_constant(probe)
    kernel = torch.zeros(len(probe.images), len(probe.images), dtype=torch.float64)
    for signs in probe.signs:
        positive = signs.double()
        kernel += positive @ positive.T + (1 - positive) @ (1 - positive).T
    sign, logarithm = torch.linalg.slogdet(kernel)
    if not sign > 0:
        raise Undefined("two images make the same signs")
    return checked(logarithm.item())
