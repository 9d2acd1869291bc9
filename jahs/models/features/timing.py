"""Costs of networks: parameters, multiply-adds, and estimated times of a forward pass and of a training step.

The time of a layer has a constant term, one per position of its feature map, and one per multiply-add. In a network of
three stages, each with twice the channels on a quarter of the positions, these grow with 1, Resolution² and
(W Resolution)². Mish has a cost per number; the other activations are practically free. A training step runs the whole
forward pass, and the backward pass through everything that leads to the output.

`TimeCoefficients` weigh these terms. They were measured on one processor and for one image side, so a release has its
own; `python -m surrogate.timing RUNS --split SPLIT` fits them.

Cells with equal numbers of convolutions, activations and poolings cost the same: the 15,625 cells form 618 classes. So
the table of costs by activation, size and class is small, and a query looks up four numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.cost import n_macs, n_params
from jahs.models.features.cells import CELL_FEATURES, cell_features, representative_numbers
from jahs.schema import COLUMNS, OPS, SIZE_KEYS
from jahs.spaces.cell.operations import all_ops
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task

MISH: Final = PARAMETERS["Activation"].code_of["Mish"]

FORWARD_TERMS: Final = (
    "once_calls", "once_positions", "once_macs",
    "conv3x3_calls", "conv3x3_positions", "conv3x3_macs",
    "conv1x1_calls", "conv1x1_positions", "conv1x1_macs",
    "pool_calls", "pool_positions", "pool_numbers",
    "mish_numbers",
)  # fmt: skip
_MOST: Final = 1e9
"""Greatest coefficient; sums of them stay finite."""
BACKWARD_TERMS: Final = (*FORWARD_TERMS[:3], *(f"trained_{name}" for name in FORWARD_TERMS[3:]))

WORK: Final = ("n_params", "n_macs", "forward_time", "training_time")
"""The columns of the table."""

SIZES: Final = tuple(product(*(PARAMETERS[key].choices for key in SIZE_KEYS)))
"""All 27 sizes; sizes of one depth are adjacent."""

_FACTS: Final = ("n_conv3x3", "n_conv1x1", *CELL_FEATURES["computed"], *CELL_FEATURES["trained"])
_BASE: Final = len(OPS) + 1  # exceeds each of these counts


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCoefficients:
    """The weights of the terms of a time, milliseconds for 256 images."""

    forward: tuple[float, ...]  # weights of an evaluation's time, in the order of `FORWARD_TERMS`
    share_forward: float  # factor of an evaluation's time within a training step; no unit
    backward: tuple[float, ...]  # weights of the rest of a step, in the order of `BACKWARD_TERMS`

    def __post_init__(self) -> None:
        """Refuse coefficients that are missing, negative, not finite or huge, every fault at once."""
        named: dict[str, object] = {"share_forward": self.share_forward}
        faults = []
        for part, names in _TERMS.items():
            values = getattr(self, part)
            named |= {f"{part}.{name}": value for name, value in zip(names, values, strict=False)}
            if len(values) != len(names):
                faults.append(f"{part}: {len(values)} coefficients for {len(names)} terms")
        faults += [
            f"{name}={value!r} must be a number in [0, {_MOST:g}]"
            for name, value in named.items()
            if type(value) not in {int, float} or not 0 <= value <= _MOST  # type: ignore[operator]  # a number here
        ]
        if faults:
            raise InvalidArgument("times: " + "; ".join(faults))

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the coefficients by term."""
        parts = {part: dict(zip(names, getattr(self, part), strict=True)) for part, names in _TERMS.items()}
        return {**parts, "share_forward": self.share_forward}

    @classmethod
    def from_dict(cls, state: Any) -> TimeCoefficients:  # Any: JSON
        """Return the coefficients that `to_dict` described; InvalidArgument names every fault."""
        if not isinstance(state, Mapping) or not all(isinstance(state.get(part), Mapping) for part in _TERMS):
            raise InvalidArgument(f"times must be an object with share_forward, {' and '.join(_TERMS)}, got {state!r}")
        wanted = {"share_forward", *(f"{part}.{name}" for part, names in _TERMS.items() for name in names)}
        given = {*state} - {*_TERMS} | {f"{part}.{name}" for part in _TERMS for name in state[part]}
        faults = [f"{name} is missing" for name in sorted(wanted - given)]
        faults += [f"{name} is unknown" for name in sorted(given - wanted)]
        if faults:
            raise InvalidArgument("times: " + "; ".join(faults))
        parts = {part: tuple(state[part][name] for name in names) for part, names in _TERMS.items()}
        return cls(share_forward=state["share_forward"], **parts)

    def times(self, terms: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the times of an evaluation and of a training step, given `time_terms`."""
        forward = _add(0.0, FORWARD_TERMS, self.forward, terms)
        return forward, _add(self.share_forward * forward, BACKWARD_TERMS, self.backward, terms)


_TERMS: Final = {"forward": FORWARD_TERMS, "backward": BACKWARD_TERMS}

DEFAULT_TIMES: Final = TimeCoefficients(
    forward=(
        1.17, 5.3, 0.0362,
        0.418, 3.13, 0.0361,
        0.399, 1.06, 0.016,
        0.0484, 3.12, 0.117,
        0.579,
    ),
    share_forward=1.25,
    backward=(
        1.61, 11.3, 0.0857,
        1.48, 6.06, 0.0521,
        1.02, 3.65, 0.0223,
        0.299, 0.685, 0.211,
        0.66,
    ),
)  # fmt: skip
"""The default coefficients of a release: images of 16 pixels on one core of a 2.8 GHz Xeon.

On an AMD EPYC, times are 0.70 of these, with a median error of 5 % for a forward pass and 7 % for training.
"""


def time_terms(  # noqa: PLR0917  # called with positions, as every formula is
    N: Any, W: Any, Resolution: Any, Activation: Any,
    n_conv3x3: Any, n_conv1x1: Any, n_pooled: Any, n_activated: Any,
    n_trained_conv3x3: Any, n_trained_conv1x1: Any, n_trained_pooled: Any, n_trained_activated: Any,
) -> dict[str, Any]:  # fmt: skip  # Any: floats or float64 arrays
    """Return the terms of the sums that estimate times: counts of operations, multiplied by their sizes.

    "once" is stem, reductions and classifier, which activate 1.5 times as much as the inputs of the first cells.
    """
    positions = Resolution * Resolution
    units = {"calls": 1.0, "positions": positions, "numbers": W * positions, "macs": W * W * positions}
    conv_units, pool_units, mish_units = ("calls", "positions", "macs"), ("calls", "positions", "numbers"), ("numbers",)
    is_mish = Activation == MISH
    counts = {
        "once": (1.0, conv_units),
        "conv3x3": (N * n_conv3x3, conv_units),
        "conv1x1": (N * n_conv1x1, conv_units),
        "pool": (N * n_pooled, pool_units),
        "mish": (is_mish * (1.5 + N * n_activated), mish_units),
        "trained_conv3x3": (N * n_trained_conv3x3, conv_units),
        "trained_conv1x1": (N * n_trained_conv1x1, conv_units),
        "trained_pool": (N * n_trained_pooled, pool_units),
        "trained_mish": (is_mish * (1.5 + N * n_trained_activated), mish_units),
    }
    return {f"{kind}_{unit}": count * units[unit] for kind, (count, names) in counts.items() for unit in names}


def _add(total: Any, names: tuple[str, ...], coefficients: tuple[float, ...], terms: Mapping[str, Any]) -> Any:
    for name, value in zip(names, coefficients, strict=True):  # one by one, in this order: the bits depend on it
        total = total + value * terms[name]
    return total


@cache
def _classes() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one cell of each class, and the class of each cell."""
    cells = cell_features(canonical=False)
    keys = np.column_stack([cells[name] for name in _FACTS]).astype(np.int64) @ _BASE ** np.arange(len(_FACTS))
    _, first, classes = np.unique(keys, return_index=True, return_inverse=True)
    return first, classes


def work_classes(*, canonical: bool) -> NDArray[np.intp]:
    """Return the class of each cell, (15625,); with `canonical`, the class of the cell that represents it."""
    classes = _classes()[1]
    return classes[representative_numbers()] if canonical else classes


def work_table(task: Task, times: TimeCoefficients) -> NDArray[np.float64]:
    """Return the costs of networks by activation (Mish or not), size and class of cell, (2, 27, 618, 4)."""
    cells = _classes()[0]
    X = np.ones((len(SIZES), len(cells), len(COLUMNS)), dtype=np.float32)
    X[..., [COLUMNS.index(key) for key in SIZE_KEYS]] = np.array(SIZES)[:, None]
    X[..., [COLUMNS.index(op) for op in OPS]] = all_ops()[cells]
    rows = X.reshape(-1, len(COLUMNS))
    facts = {name: cell_features(canonical=False)[name][cells].astype(np.float64) for name in _FACTS}
    size = dict(zip(SIZE_KEYS, np.array(SIZES).T[..., None], strict=True))
    table = np.empty((2, *X.shape[:2], len(WORK)))
    table[..., 0] = n_params(rows, task).reshape(X.shape[:2])
    table[..., 1] = n_macs(rows, task).reshape(X.shape[:2])
    for is_mish in (False, True):
        terms = time_terms(Activation=MISH if is_mish else MISH - 1, **size, **facts)
        table[int(is_mish), ..., 2], table[int(is_mish), ..., 3] = times.times(terms)
    return table
