"""Zero-cost proxies: scores of an untrained network on one batch.

Over 300 lines: every proxy is here, with its reference, its constants and its caveats, so that they can be compared.
"As in the benchmark" means as computed by Abdelfattah et al. (ICLR 2021) and by the zero-cost benchmark after them.

>>> sorted(PROXIES)[:3]
['fisher', 'grad_norm', 'grasp']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.probe import Probe, Undefined, checked, fresh, listen_to_layers, refuse_dead, total, weights

Score: TypeAlias = Callable[[Probe], float]
"""Returns the score of an untrained network on a batch, or raises `Undefined`."""

_JITTER: Final = 1e-5
_MOST_IMAGES: Final = 32  # images of the neural tangent kernel
_MIXUP: Final = 1e-2  # weight of the noise that perturbs the image of zen


def parameters(probe: Probe) -> float:
    """Return the number of trainable parameters, BatchNorm included: a proxy that few others beat."""
    return float(sum(parameter.numel() for parameter in probe.network.parameters()))


def grad_norm(probe: Probe) -> float:
    """Return the sum over layers of the Euclidean norm of the weight's gradient (Abdelfattah et al., ICLR 2021).

    It grows with the number of layers, and depends on the scale of the initial weights.
    """
    return checked(total([gradient.norm() for _, gradient in probe.gradients.weights]))


def fisher(probe: Probe) -> float:
    """Return how much the loss would change if single channels were removed (Turner et al., ICLR 2020).

    As in the benchmark: half the mean over images of (activation * gradient)^2, summed over pixels first, for the
    outputs of convolutions and linear layers before BatchNorm.
    """
    terms = []
    for output, gradient in probe.gradients.outputs:
        product = output.detach() * gradient
        by_channel = product.flatten(2).sum(2) if product.ndim > 2 else product
        terms.append(by_channel.square().mean(0).mul(0.5).sum())
    return checked(total(terms))


def jacov(probe: Probe) -> float:
    """Return how dissimilar the gradients of images are: Jacobian covariance (Mellor et al., 2020, version 1).

    The eigenvalues v of the correlation matrix of the per-image gradients of the summed logits are scored by
    -sum(log(v + k) + 1 / (v + k)), k = 1e-5. BatchNorm in training mode mixes the images, as in the original.
    """
    jacobian = probe.gradients_of_images.flatten(1).double()
    if not jacobian.std(dim=1).all():
        raise Undefined("the output does not depend on some image")
    eigenvalues = torch.linalg.eigvalsh(torch.corrcoef(jacobian)) + _JITTER
    return checked(-float((eigenvalues.log() + 1 / eigenvalues).sum()))


def snip(probe: Probe) -> float:
    """Return the sum over weights of |weight * gradient| (Lee, Ajanthan and Torr, ICLR 2019).

    The original divides by this sum, which would be 1 for every network; like `grad_norm`, it grows with depth.
    """
    return checked(total([(weight.detach() * gradient).abs().sum() for weight, gradient in probe.gradients.weights]))


def grasp(probe: Probe) -> float:
    """Return how much removing weights would reduce the gradient flow (Wang, Zhang and Grosse, ICLR 2020).

    As in the benchmark: the sum of -weight * (H g), with g the gradient of the loss and H its Hessian, at temperature 1
    and with one batch for both. Terms keep their signs, so scores of both signs occur, and single outliers are large.
    """
    pairs = probe.twice_differentiable_gradients()
    flow = torch.stack([(gradient.detach() * gradient).sum() for _, gradient in pairs]).sum()
    products = torch.autograd.grad(flow, [weight for weight, _ in pairs], retain_graph=True, allow_unused=True)
    terms = [
        (-weight.detach() * product).sum()
        for (weight, _), product in zip(pairs, products, strict=True)
        if product is not None
    ]
    return checked(total(terms))


def synflow(probe: Probe) -> float:
    """Return how much of a signal gets through the network, without data (Tanaka et al., NeurIPS 2020).

    It is the sum over weights of |weight * gradient of the summed output|. All parameters are made positive, BatchNorm
    uses its initial running statistics (an identity but for its epsilon), the image is all ones, and arithmetic is in
    double precision: signals grow with every layer, and scores of deep networks exceed single precision.
    """
    network = fresh(probe.network, is_training=False).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_()
    params = weights(network)
    output = network(torch.ones_like(probe.images[:1], dtype=torch.float64)).sum()
    gradients = torch.autograd.grad(output, params, allow_unused=True)
    pairs = [(weight.detach(), grad) for weight, grad in zip(params, gradients, strict=True) if grad is not None]
    refuse_dead(pairs)
    return checked(total([(weight * grad).abs().sum() for weight, grad in pairs]))


def ntk(probe: Probe) -> float:
    """Return the condition number of the neural tangent kernel of at most 32 images (Chen et al., TE-NAS, ICLR 2021).

    Lower is better, unlike for all others. BatchNorm is in training mode; evaluation mode ranks networks differently.
    """
    return condition_number(fresh(probe.network), probe.images[:_MOST_IMAGES])


def condition_number(network: nn.Module, images: Tensor) -> float:
    """Return the largest eigenvalue of the kernel of these images over the smallest.

    The kernel is the Gram matrix of the gradients of each image's summed logits with respect to all weights, BatchNorm
    in training mode over these images.

    Raises:
        Undefined: no weight changes the output, or the kernel is singular.
    """
    params = weights(network)
    logits = network(images).sum(1)
    rows = []
    for i, logit in enumerate(logits):
        gradients = torch.autograd.grad(logit, params, retain_graph=i + 1 < len(logits), allow_unused=True)
        used = [gradient.flatten() for gradient in gradients if gradient is not None]
        if not used:
            raise Undefined("no weight changes the output")
        rows.append(torch.cat(used))
    jacobian = torch.stack(rows).double()
    eigenvalues = torch.linalg.eigvalsh(jacobian @ jacobian.T)
    if not eigenvalues[0] > 0:
        raise Undefined("the kernel is singular")
    return checked((eigenvalues[-1] / eigenvalues[0]).item())


def zen(probe: Probe) -> float:
    """Return the sensitivity of the features to a Gaussian image: the Zen-score of one draw (Lin et al., ICCV 2021).

    All weights are drawn from N(0, 1), and BatchNorm is in training mode. With f the features before global pooling and
    x, e standard normal: the log of the mean over images of sum|f(x) - f(x + 0.01 e)|, plus the sum over BatchNorms of
    log sqrt(mean of the batch variances), which undoes the rescaling by BatchNorm. A BatchNorm that no path leads to is
    left out, since it has no variance to rescale. The batch is only read for its shape.
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


def zico(probe: Probe) -> float:
    """Return how large gradients are and how well batches agree on them (Li et al., ICLR 2023).

    The sum over layers of the log of the sum over weights of mean|gradient| / deviation of the gradient, over batches:
    here the two halves of the batch. Weights whose gradient does not vary, and layers without any, do not count.
    """
    network = fresh(probe.network)
    params = weights(network)
    halves = [
        torch.autograd.grad(functional.cross_entropy(network(x), y), params, allow_unused=True)
        for x, y in zip(probe.images.chunk(2), probe.labels.chunk(2), strict=True)
    ]
    terms = []
    for pair in zip(*halves, strict=True):
        if any(gradient is None for gradient in pair):
            continue
        gradients = torch.stack(pair)
        deviation = gradients.std(0, correction=0)
        varies = deviation > 0
        if varies.any():
            terms.append(math.log((gradients.abs().mean(0)[varies] / deviation[varies]).double().sum().item()))
    if not terms:
        raise Undefined("no gradient varies between the halves of the batch")
    return checked(math.fsum(terms))


def meco(probe: Probe) -> float:
    """Return how independent the channels of feature maps are (Jiang, Wang and Bie, NeurIPS 2023).

    For one image of random pixels, the sum over layers of the smallest eigenvalue of the correlation matrix of the
    layer's channels; undefined correlations (constant channels, maps of one pixel) count as 0. The batch is only read
    for its shape. BatchNorm in training mode needs two values, so where maps have one pixel a second image is in the
    batch; it is in every batch, so that scores do not depend on the side.
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
    """Return how many different activation patterns the images make (Peng et al., ICLR 2024).

    A pattern belongs to one unit: the signs of its input over all images of the batch. The score is the number of
    different patterns among all units of all activations. It saturates at the number of units, and at 2^images.
    """
    _refuse_constant(probe)
    if not probe.signs:
        return 0.0
    packed = np.concatenate([np.packbits(signs.numpy(), axis=0).T for signs in probe.signs])  # (n_units, n_bytes)
    n_bytes = packed.shape[1]
    patterns = np.ascontiguousarray(packed).view(f"u{n_bytes}" if n_bytes in {1, 2, 4, 8} else f"V{n_bytes}")
    return float(len(np.unique(patterns)))


def naswot(probe: Probe) -> float:
    """Return the log determinant of the kernel of equal signs before all activations (Mellor et al., ICML 2021).

    It grows with the number of units, so a network is only comparable with others on as many images.
    """
    _refuse_constant(probe)
    kernel = torch.zeros(len(probe.images), len(probe.images), dtype=torch.float64)
    for signs in probe.signs:
        positive = signs.double()
        kernel += positive @ positive.T + (1 - positive) @ (1 - positive).T
    sign, logarithm = torch.linalg.slogdet(kernel)
    if not sign > 0:
        raise Undefined("two images make the same signs")
    return checked(logarithm.item())


def _refuse_constant(probe: Probe) -> None:
    """Refuse a network whose output is the same for all images: activations that lead nowhere have signs, too."""
    if torch.equal(probe.logits, probe.logits[:1].expand_as(probe.logits)):
        raise Undefined("the output does not depend on the image")


_SCORES: Final = (
    parameters, grad_norm, fisher, jacov, snip, grasp, synflow, ntk, zen, zico, meco, swap, naswot,
)  # fmt: skip
PROXIES: Final[Mapping[str, Score]] = MappingProxyType({score.__name__: score for score in _SCORES})
"""Every proxy by name, in the order of the zero-cost benchmark's figures; naswot is ours in addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyScores:
    """The scores of one network by every proxy.

    Attributes:
        values: scores by proxy; NaN for a missing score.
        reasons: why each missing score is missing.
        cpu_s: CPU seconds that each would take alone, including shared passes.
    """

    values: dict[str, float]
    reasons: dict[str, str]
    cpu_s: dict[str, float]


def score_all(probe: Probe) -> ProxyScores:
    """Return every proxy of a network on a batch; shared passes are computed once."""
    results = {name: probe.timed(score) for name, score in PROXIES.items()}
    return ProxyScores(
        values={name: math.nan if isinstance(value, Undefined) else value for name, (value, _) in results.items()},
        reasons={name: str(value) for name, (value, _) in results.items() if isinstance(value, Undefined)},
        cpu_s={name: seconds for name, (_, seconds) in results.items()},
    )
