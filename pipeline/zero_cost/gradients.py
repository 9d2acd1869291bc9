"""Proxies from gradients: of the loss, of the logits, and of a signal without data."""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.probe import Probe, Undefined, checked, fresh, refuse_dead, total, weights

_JITTER: Final = 1e-5
_MOST_IMAGES: Final = 32


def grad_norm(probe: Probe) -> float:
    """Return the sum over layers of the Euclidean norm of the weight's gradient.

    Abdelfattah, Mehrotra, Dudziak and Lane, "Zero-cost proxies for lightweight NAS", ICLR 2021. The loss is the mean
    cross-entropy of the batch. The score grows with the number of layers, and depends on the scale of the initial
    weights.
    """
    return checked(total([gradient.norm() for _, gradient in probe.gradients.weights]))


def fisher(probe: Probe) -> float:
    """Return how much the loss would change if single channels were removed.

    Turner, Crowley, O'Boyle, Storkey and Gray, "BlockSwap: Fisher-guided block substitution for network compression on
    a budget", ICLR 2020. As in the benchmark: half the mean over images of (activation * gradient)^2, summed over
    pixels first, for the outputs of convolutions and linear layers before BatchNorm.
    """
    terms = []
    for output, gradient in probe.gradients.outputs:
        product = output.detach() * gradient
        by_channel = product.flatten(2).sum(2) if product.ndim > 2 else product
        terms.append(by_channel.square().mean(0).mul(0.5).sum())
    return checked(total(terms))


def snip(probe: Probe) -> float:
    """Return the sum over weights of |weight * gradient|.

    Lee, Ajanthan and Torr, "SNIP: single-shot network pruning based on connection sensitivity", ICLR 2019. The original
    divides by this sum, which would make every network's score 1. Like grad_norm, it grows with depth.
    """
    return checked(total([(weight.detach() * gradient).abs().sum() for weight, gradient in probe.gradients.weights]))


def grasp(probe: Probe) -> float:
    """Return how much removing weights would reduce the gradient flow.

    Wang, Zhang and Grosse, "Picking winning tickets before training by preserving gradient flow", ICLR 2020. As in the
    benchmark: the sum of -weight * (H g), with g the gradient of the loss and H its Hessian, at temperature 1 and with
    one batch for both. Terms keep their signs, so scores of both signs occur, and single outliers are large.
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
    """Return how much of a signal gets through the network, without data.

    Tanaka, Kunin, Yamins and Ganguli, "Pruning neural networks without any data by iteratively conserving synaptic
    flow", NeurIPS 2020. The sum over weights of |weight * gradient of the summed output|. All parameters are made
    positive, BatchNorm uses its initial running statistics (an identity but for its epsilon), and the image is all
    ones. Signals grow with every layer, and scores of deep networks exceed single precision, so arithmetic is in double
    precision.
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


def jacov(probe: Probe) -> float:
    """Return how dissimilar the gradients of images are (Jacobian covariance).

    Mellor, Turner, Storkey and Crowley, "Neural architecture search without training", arXiv 2006.04647, version 1. The
    eigenvalues v of the correlation matrix of the images' gradients of their summed logits are scored by
    -sum(log(v + k) + 1 / (v + k)), k = 1e-5. BatchNorm in training mode mixes the images, as in the original.
    """
    jacobian = probe.gradients_of_images.flatten(1).double()
    if not jacobian.std(dim=1).all():
        raise Undefined("the output does not depend on some image")
    eigenvalues = torch.linalg.eigvalsh(torch.corrcoef(jacobian)) + _JITTER
    return checked(-float((eigenvalues.log() + 1 / eigenvalues).sum()))


def ntk(probe: Probe) -> float:
    """Return the condition number of the neural tangent kernel of at most 32 images.

    Chen, Gong and Wang, "Neural architecture search on ImageNet in four GPU hours" (TE-NAS), ICLR 2021. Lower is
    better, unlike for all other proxies. BatchNorm is in training mode; evaluation mode ranks networks differently.
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


def zico(probe: Probe) -> float:
    """Return how large gradients are and how well batches agree on them.

    Li, Yang, Bhardwaj and Marculescu, "ZiCo: zero-shot NAS via inverse coefficient of variation on gradients", ICLR
    2023. The sum over layers of the log of the sum over weights of mean|gradient| / standard deviation of the gradient,
    over batches: here the two halves of the batch. Weights whose gradient does not vary, and layers without any, do not
    count.
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
