"""An untrained network with one batch, and the passes through it that several proxies share, each computed once.

No proxy changes the network that it is given: passes run on copies. Activations of our networks are functions, held in
the attribute `activation` of their blocks, so their inputs are recorded by wrapping that attribute in a copy.
"""

from __future__ import annotations

import copy
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from jahs.errors import InvalidArgument
from pipeline.network import ConvBN

_Pass = TypeVar("_Pass")
_FEWEST: Final = 4  # images: BatchNorm needs two in each half of a batch


class Undefined(Exception):
    """A network has no such score; the message is the reason."""


class Gradients(NamedTuple):
    """Gradients of the mean cross-entropy of the batch; tensors that do not affect it are left out.

    Attributes:
        weights: (weight, gradient) of convolutions and linear layers.
        outputs: (output, gradient) of the same layers, before BatchNorm.
    """

    weights: list[tuple[Tensor, Tensor]]
    outputs: list[tuple[Tensor, Tensor]]


class _Forward(NamedTuple):
    weights: list[Tensor]
    images: Tensor
    logits: Tensor
    outputs: list[Tensor]
    signs: list[Tensor]


class Probe:
    """An untrained network and one batch.

    Args:
        network: the network; it is not changed.
        images: images as the network reads them, (n, channels, side, side).
        labels: labels of the images, (n,).
        seed: seed of the random draws of proxies.

    Raises:
        InvalidArgument: fewer than four images, or not a label for each.
    """

    def __init__(self, network: nn.Module, images: Tensor, labels: Tensor, *, seed: int = 0) -> None:
        if images.ndim != 4 or len(images) < _FEWEST or labels.shape != images.shape[:1]:
            raise InvalidArgument(
                f"images {tuple(images.shape)} and labels {tuple(labels.shape)} must be (n, channels, side, side) and "
                f"(n,), with n >= {_FEWEST}"
            )
        self.network, self.images, self.labels, self.seed = network, images, labels, seed
        self._results: dict[str, Any] = {}  # Any: what each pass returns
        self._seconds: dict[str, float] = {}
        self._used: set[str] = set()
        self._shared_s = 0.0

    def chance(self) -> torch.Generator:
        """Return a generator, the same for every proxy."""
        return torch.Generator().manual_seed(self.seed)

    def timed(self, score: Callable[[Probe], float]) -> tuple[float | Undefined, float]:
        """Return a score, or why it is missing, and the CPU seconds that it takes alone, including shared passes."""
        self._used, self._shared_s = set(), 0.0
        started = time.thread_time()
        result: float | Undefined
        try:
            result = score(self)
        except Undefined as err:
            result = err
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # absent from its stubs
            result = Undefined("a matrix has no eigenvalues")
        unshared_s = time.thread_time() - started - self._shared_s
        return result, unshared_s + sum(self._seconds[name] for name in self._used)

    def twice_differentiable_gradients(self) -> list[tuple[Tensor, Tensor]]:
        """Return each weight with its gradient of the loss, as a function of the weights; not cached, as it is large.

        Raises:
            Undefined: the loss depends on no weight.
        """
        pairs = self._pairs(self._forward.weights, create_graph=True)
        refuse_dead(pairs)
        return pairs

    @property
    def signs(self) -> list[Tensor]:
        """Masks of the positive inputs of each activation, each (n_images, n_units) of bool."""
        return self._forward.signs

    @property
    def logits(self) -> Tensor:
        """The output for the batch, (n_images, n_classes)."""
        return self._forward.logits.detach()

    @property
    def gradients_of_images(self) -> Tensor:
        """The gradient of the summed logits with respect to the images.

        Raises:
            Undefined: the output does not depend on the images.
        """
        forward = self._forward
        (gradient,) = torch.autograd.grad(forward.logits.sum(), [forward.images], retain_graph=True, allow_unused=True)
        if gradient is None:
            raise Undefined("the output does not depend on the images")
        return gradient

    @property
    def gradients(self) -> Gradients:
        """The gradients of the loss.

        Raises:
            Undefined: the loss depends on no weight, or a gradient is not finite.
        """
        forward = self._forward  # before the gradients, so that each pass is timed on its own
        return self._once("gradients", lambda: self._compute_gradients(forward))

    @property
    def _forward(self) -> _Forward:
        return self._once("forward", self._compute_forward)

    def _compute_forward(self) -> _Forward:
        network = fresh(self.network)
        outputs: list[Tensor] = []
        signs: list[Tensor] = []
        listen_to_layers(network, outputs.append)
        _listen_to_activations(network, lambda x: signs.append(x.detach().flatten(1) > 0))
        images = self.images.clone().requires_grad_()
        return _Forward(weights(network), images, network(images), outputs, signs)

    def _compute_gradients(self, forward: _Forward) -> Gradients:
        pairs = self._pairs([*forward.weights, *forward.outputs], create_graph=False)
        if not all(torch.isfinite(gradient).all() for _, gradient in pairs):
            raise Undefined("a gradient is not finite")
        known = {id(weight) for weight in forward.weights}
        gradients = Gradients(
            [pair for pair in pairs if id(pair[0]) in known], [pair for pair in pairs if id(pair[0]) not in known]
        )
        refuse_dead(gradients.weights)
        return gradients

    def _pairs(self, tensors: list[Tensor], *, create_graph: bool) -> list[tuple[Tensor, Tensor]]:
        loss = functional.cross_entropy(self._forward.logits, self.labels)
        gradients = torch.autograd.grad(loss, tensors, retain_graph=True, create_graph=create_graph, allow_unused=True)
        return [(tensor, gradient) for tensor, gradient in zip(tensors, gradients, strict=True) if gradient is not None]

    def _once(self, name: str, compute: Callable[[], _Pass]) -> _Pass:
        """Return the result of a pass, computed at the first call, and record its seconds."""
        self._used.add(name)
        if name not in self._results:
            started = time.thread_time()
            try:
                self._results[name] = compute()
            finally:
                self._seconds[name] = time.thread_time() - started
                self._shared_s += self._seconds[name]
        result: _Pass = self._results[name]
        return result


def fresh(network: nn.Module, *, is_training: bool = True) -> nn.Module:
    """Return a copy without gradients, in training mode by default."""
    clone = copy.deepcopy(network)
    clone.zero_grad(set_to_none=True)
    return clone.train(is_training)


def _layers(network: nn.Module) -> list[nn.Conv2d | nn.Linear]:
    return [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]


def weights(network: nn.Module) -> list[Tensor]:
    """Return the weights of the convolutions and linear layers in order; biases and BatchNorm do not count."""
    return [layer.weight for layer in _layers(network)]


def _listen_to_activations(network: nn.Module, heard: Callable[[Tensor], None]) -> None:
    """Call `heard` with the input of every activation of this copy, in the order of computation."""

    def call(activation: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        heard(x)
        return activation(x)

    for module in network.modules():
        if callable(activation := getattr(module, "activation", None)):
            setattr(module, "activation", functools.partial(call, activation))  # noqa: B010  # torch declares no such attribute


def listen_to_layers(network: nn.Module, heard: Callable[[Tensor], None]) -> None:
    """Call `heard` with the output of every convolution and linear layer of this copy, before BatchNorm."""
    blocks = [module for module in network.modules() if isinstance(module, ConvBN)]
    for block in blocks:  # a block may compute its convolution without calling the module
        block.norm.register_forward_pre_hook(lambda _module, inputs: heard(inputs[0]))
    convs = {block.conv for block in blocks}
    for layer in _layers(network):
        if layer not in convs:
            layer.register_forward_hook(lambda _module, _inputs, output: heard(output))


def refuse_constant(probe: Probe) -> None:
    """Refuse a network whose output is the same for all images: activations that lead nowhere have signs, too."""
    if torch.equal(probe.logits, probe.logits[:1].expand_as(probe.logits)):
        raise Undefined("the output does not depend on the image")


def refuse_dead(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Refuse weights whose gradients are all zero.

    Raises:
        Undefined: no path leads from the images to the output.
    """
    if not any(gradient.any() for _, gradient in pairs):
        raise Undefined("no live path: no weight changes the output")


def checked(value: float) -> float:
    """Return a finite score.

    Raises:
        Undefined: it is NaN or infinite.
    """
    if not math.isfinite(value):
        raise Undefined("the score is not finite")
    return value


def total(parts: Sequence[Tensor]) -> float:
    """Return the sum of scalars, correctly rounded."""
    return math.fsum(part.item() for part in parts)
