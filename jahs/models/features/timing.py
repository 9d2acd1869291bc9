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
from typing import Final

from jahs.spaces.parameters import PARAMETERS

__all__ = ["BACKWARD", "FORWARD", "SHARE_FORWARD", "TIMES", "TIME_TERMS"]

_MISH: Final = dict(zip(PARAMETERS["Activation"].choices, PARAMETERS["Activation"].codes, strict=True))["Mish"]
_AREA: Final = "Resolution * Resolution"
_UNITS: Final = {"calls": "1.0", "positions": _AREA, "numbers": f"W * {_AREA}", "macs": f"W * W * {_AREA}"}
_OF_CONV: Final = ("calls", "positions", "macs")
_OF_POOL: Final = ("calls", "positions", "numbers")
_OF_MISH: Final = ("numbers",)
# How often, and what each time takes. Once: stem, reductions and classifier, which activate half as much again as the
# inputs of the first cells.
_KINDS: Final = {
    "once": ("1.0", _OF_CONV),
    "conv3x3": ("N * n_conv3x3", _OF_CONV),
    "conv1x1": ("N * n_conv1x1", _OF_CONV),
    "pool": ("N * n_pooled", _OF_POOL),
    "mish": (f"(Activation == {_MISH}) * (1.5 + N * n_activated)", _OF_MISH),
    "trained_conv3x3": ("N * n_trained_conv3x3", _OF_CONV),
    "trained_conv1x1": ("N * n_trained_conv1x1", _OF_CONV),
    "trained_pool": ("N * n_trained_pooled", _OF_POOL),
    "trained_mish": (f"(Activation == {_MISH}) * (1.5 + N * n_trained_activated)", _OF_MISH),
}

TIME_TERMS: Final[Mapping[str, str]] = MappingProxyType(
    {f"{kind}_{unit}": f"{count} * {_UNITS[unit]}" for kind, (count, units) in _KINDS.items() for unit in units}
)
"""What times are sums of, as Python expressions of keys of a config and columns of the cell."""

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


def _sum(coefficients: Mapping[str, float]) -> str:
    return " + ".join(f"{value!r} * ({TIME_TERMS[name]})" for name, value in coefficients.items() if value)


TIMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "forward_time": _sum(FORWARD),
        "training_time": f"{SHARE_FORWARD!r} * ({_sum(FORWARD)}) + {_sum(BACKWARD)}",
    }
)
"""Estimated times, as Python expressions of keys of a config and columns of the cell."""
