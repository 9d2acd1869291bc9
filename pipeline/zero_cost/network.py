"""What the proxies share: fresh copies, layers, gradients, and listening to activations.

A proxy never changes the network that it is given: it scores a copy. Activations of our networks are functions, held in
the attribute `activation` of their blocks, so listening means wrapping that attribute in the copy.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from pipeline.network import ConvBN

__all__ = [
    "Undefined",
    "checked",
    "fresh",
    "gradients_of_loss",
    "layers",
    "listen",
    "listen_to_layers",
    "total",
    "weights",
]


class Undefined(Exception):
    """A network has no such score; the message is the reason."""


def fresh(network: nn.Module, *, is_training: bool = True) -> nn.Module:
    """Return a copy without gradients, in training mode unless told otherwise."""
    found = copy.deepcopy(network)
    found.zero_grad(set_to_none=True)
    return found.train(is_training)


def layers(network: nn.Module) -> list[nn.Conv2d | nn.Linear]:
    """Return the convolutions and linear layers in order."""
    return [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]


def weights(network: nn.Module) -> list[Tensor]:
    """Return the weights of `layers`; biases and BatchNorm do not count."""
    return [layer.weight for layer in layers(network)]


def gradients_of_loss(network: nn.Module, images: Tensor, labels: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return each weight that the loss depends on with its gradient of the mean cross-entropy.

    Raises:
        Undefined: the loss depends on no weight, or a gradient is not finite.
    """
    inner = weights(network)
    loss = functional.cross_entropy(network(images), labels)
    found = torch.autograd.grad(loss, inner, allow_unused=True)
    pairs = [(weight.detach(), gradient) for weight, gradient in zip(inner, found, strict=True) if gradient is not None]
    if not pairs:
        raise Undefined("no weight changes the loss")
    if not all(torch.isfinite(gradient).all() for _, gradient in pairs):
        raise Undefined("a gradient is not finite")
    return pairs


def listen(network: nn.Module, heard: Callable[[Tensor], None]) -> None:
    """Call `heard` with the input of every activation of this copy, in the order of computation."""

    def wrapped(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        def call(x: Tensor) -> Tensor:
            heard(x)
            return activation(x)

        return call

    for module in network.modules():
        if callable(activation := getattr(module, "activation", None)):
            setattr(module, "activation", wrapped(activation))  # noqa: B010  # torch declares no such attribute


def listen_to_layers(network: nn.Module, heard: Callable[[Tensor], None]) -> None:
    """Call `heard` with the output of every convolution and linear layer of this copy, before BatchNorm."""
    blocks = [module for module in network.modules() if isinstance(module, ConvBN)]
    for block in blocks:  # a block may compute its convolution without calling the module
        block.norm.register_forward_pre_hook(lambda _module, inputs: heard(inputs[0]))
    inner = {block.conv for block in blocks}
    for layer in layers(network):
        if layer not in inner:
            layer.register_forward_hook(lambda _module, _inputs, output: heard(output))


def checked(value: float, what: str = "the score") -> float:
    """Return a finite score.

    Raises:
        Undefined: it is NaN or infinite.
    """
    if not math.isfinite(value):
        raise Undefined(f"{what} is not finite")
    return value


def total(parts: Sequence[Tensor]) -> float:
    """Return the sum of scalars, exactly rounded."""
    return math.fsum(part.item() for part in parts)
