"""How long a network takes, forwards and in a step of training, from how often it does what.

A layer takes a time for being called, one for each position of its map, and one for each of its multiply-adds. In a
network of three stages, each with twice the channels on a quarter of the positions, these grow with 1, Resolution² and
(W Resolution)². Mish is the activation that costs something, for each number; the others are as good as free. Training
does everything forwards, and goes back through all that leads to the output.

The coefficients are milliseconds for 256 images of 16 pixels on one core of a Xeon of 2.8 GHz, to whose quiet profile

    python -m surrogate.timing data/fashion_mnist_mini/runs --split data/fashion_mnist_mini/split.json

fitted them. On an AMD EPYC networks take 0.70 of these times, to 5 and 7 % in the median forwards and in training.
Models of other tasks and machines read them up to a constant and whatever they learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from jahs.spaces.parameters import PARAMETERS

__all__ = ["BACKWARD", "FORWARD", "MISH", "SHARE_FORWARD", "time_terms", "times"]

MISH: Final = dict(zip(PARAMETERS["Activation"].choices, PARAMETERS["Activation"].codes, strict=True))["Mish"]

FORWARD: Final[Mapping[str, float]] = MappingProxyType(
    {
        "once_calls": 1.17, "once_positions": 5.3, "once_macs": 0.0362,
        "conv3x3_calls": 0.418, "conv3x3_positions": 3.13, "conv3x3_macs": 0.0361,
        "conv1x1_calls": 0.399, "conv1x1_positions": 1.06, "conv1x1_macs": 0.016,
        "pool_calls": 0.0484, "pool_positions": 3.12, "pool_numbers": 0.117,
        "mish_numbers": 0.579,
    }
)  # fmt: skip
"""What an evaluation takes."""

SHARE_FORWARD: Final = 1.25
BACKWARD: Final[Mapping[str, float]] = MappingProxyType(
    {
        "once_calls": 1.61, "once_positions": 11.3, "once_macs": 0.0857,
        "trained_conv3x3_calls": 1.48, "trained_conv3x3_positions": 6.06, "trained_conv3x3_macs": 0.0521,
        "trained_conv1x1_calls": 1.02, "trained_conv1x1_positions": 3.65, "trained_conv1x1_macs": 0.0223,
        "trained_pool_calls": 0.299, "trained_pool_positions": 0.685, "trained_pool_numbers": 0.211,
        "trained_mish_numbers": 0.66,
    }
)  # fmt: skip
"""What a step of training takes, and beyond it this share of an evaluation's time."""


def time_terms(  # noqa: PLR0917  # called with positions, as every formula is
    N: Any, W: Any, Resolution: Any, Activation: Any,
    n_conv3x3: Any, n_conv1x1: Any, n_pooled: Any, n_activated: Any,
    n_trained_conv3x3: Any, n_trained_conv1x1: Any, n_trained_pooled: Any, n_trained_activated: Any,
) -> dict[str, Any]:  # fmt: skip  # Any: floats or float64 arrays
    """Return what times are sums of: how often something is done, times what each time grows with.

    "once" is stem, reductions and classifier, which activate half as much again as the inputs of the first cells.
    """
    positions = Resolution * Resolution
    units = {"calls": 1.0, "positions": positions, "numbers": W * positions, "macs": W * W * positions}
    of_conv, of_pool, of_mish = ("calls", "positions", "macs"), ("calls", "positions", "numbers"), ("numbers",)
    is_mish = Activation == MISH
    counts = {
        "once": (1.0, of_conv),
        "conv3x3": (N * n_conv3x3, of_conv),
        "conv1x1": (N * n_conv1x1, of_conv),
        "pool": (N * n_pooled, of_pool),
        "mish": (is_mish * (1.5 + N * n_activated), of_mish),
        "trained_conv3x3": (N * n_trained_conv3x3, of_conv),
        "trained_conv1x1": (N * n_trained_conv1x1, of_conv),
        "trained_pool": (N * n_trained_pooled, of_pool),
        "trained_mish": (is_mish * (1.5 + N * n_trained_activated), of_mish),
    }
    return {f"{kind}_{unit}": count * units[unit] for kind, (count, of_kind) in counts.items() for unit in of_kind}


def times(terms: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the times of an evaluation and of a step of training, given `time_terms`."""
    forward = _add(0.0, FORWARD, terms)
    return forward, _add(SHARE_FORWARD * forward, BACKWARD, terms)


def _add(total: Any, coefficients: Mapping[str, float], terms: Mapping[str, Any]) -> Any:
    for name, value in coefficients.items():  # one by one, in this order: the bits depend on it
        total = total + value * terms[name]
    return total
