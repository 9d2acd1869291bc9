"""What models read: named float32 features of the encoded matrix, built the same way for fitting and for queries.

A feature set is a list of columns with a name and a version. Trees see only the order of a column's values, so a
logarithm or an epoch's share of the task says nothing that the plain value does not; what helps are products, which
stand for sums of logarithms. Everything is therefore built from sums, products, quotients and look-ups in float64 and
rounded once: one row gives the same bits alone, in a batch and on any machine.

    >>> from jahs.tasks import TASKS
    >>> builder = FeatureBuilder(FEATURE_SETS["published"], TASKS["cifar10"])
    >>> builder.build(jahs.encode([jahs.space().default()], 200)).shape
    (1, 41)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from jahs.cell_features import CELL_FEATURES, cell_features
from jahs.cost import n_macs, n_params
from jahs.errors import InvalidArgument, InvalidFidelity, UnknownName
from jahs.parameters import PARAMETERS
from jahs.schema import COLUMNS, CONFIG_KEYS, OPS
from jahs.tasks import Task

__all__ = ["FEATURES_VERSION", "FEATURE_SETS", "GROUPS", "TRENDS", "FeatureBuilder", "FeatureSet", "feature_set"]

FEATURES_VERSION: Final = 1
"""Raised whenever a column's values change; a release built with another version is refused."""

# Any: floats for one row, float64 arrays for many; the arithmetic is the same.
_Facts = Mapping[str, Any]
_Formula = Callable[[_Facts], Any]
Trend = Literal["fixed", "rising", "falling"]

_N_CONFIG: Final = len(CONFIG_KEYS)
_OP_COLUMNS: Final = [COLUMNS.index(op) for op in OPS]
_PLACES: Final = 5.0 ** np.arange(5, -1, -1)
_SIZES: Final = tuple(product(*(PARAMETERS[key].choices for key in ("N", "W", "Resolution"))))
_ACTIVATION: Final = dict(zip(PARAMETERS["Activation"].choices, PARAMETERS["Activation"].codes, strict=True))


def _activation(name: str) -> _Formula:
    code = _ACTIVATION[name]
    return lambda f: (f["Activation"] == code) * 1.0


_FORMULAS: Final[Mapping[str, Mapping[str, _Formula]]] = {
    "published_rest": {
        **{f"Activation_{name}": _activation(name) for name in ("Hardswish", "Mish", "ReLU")},
        "Optimizer_SGD": lambda f: f["N"] * 0.0 + 1.0,
        "TrivialAugment_True": lambda f: f["TrivialAugment"],
    },
    "rates": {
        "rate_times_decay": lambda f: f["LearningRate"] * f["WeightDecay"],
        "rate_over_decay": lambda f: f["LearningRate"] / f["WeightDecay"],
    },
    "rates_by_size": {
        "rate_times_N": lambda f: f["LearningRate"] * f["N"],
        "rate_times_W": lambda f: f["LearningRate"] * f["W"],
        "rate_over_W": lambda f: f["LearningRate"] / f["W"],
        "rate_times_params": lambda f: f["LearningRate"] * f["n_params"],
        "decay_times_params": lambda f: f["WeightDecay"] * f["n_params"],
        "rate_times_decay_times_N": lambda f: f["LearningRate"] * f["WeightDecay"] * f["N"],
        "rate_times_live_paths": lambda f: f["LearningRate"] * f["n_live_paths"],
    },
    "size": {
        "network_depth": lambda f: f["N"] * f["effective_depth"],
        "network_conv3x3": lambda f: f["N"] * f["n_live_conv3x3"],
        "network_view": lambda f: f["N"] * f["widest_view"] / f["Resolution"],
        "N_times_W": lambda f: f["N"] * f["W"],
        "W_times_resolution": lambda f: f["W"] * f["Resolution"],
    },
    "work": {
        "conv3x3_maps": lambda f: f["N"] * f["n_conv3x3"] * _map(f),
        "conv1x1_maps": lambda f: f["N"] * f["n_conv1x1"] * _map(f),
        "pool_maps": lambda f: f["N"] * f["n_pool"] * _map(f),
        "convolved_maps": lambda f: f["N"] * (f["n_conv3x3"] + f["n_conv1x1"]) * _map(f),
        "touched_maps": lambda f: f["N"] * (6.0 - f["n_zero"]) * _map(f),
    },
    "epochs": {
        "rate_spent": lambda f: f["LearningRate"] * f["schedule_spent"],
        "rate_left": lambda f: f["LearningRate"] * (1.0 - f["schedule_spent"]),
        "rate_now": lambda f: f["LearningRate"] * f["schedule_now"],
        "decay_spent": lambda f: f["LearningRate"] * f["WeightDecay"] * f["schedule_spent"],
    },
}


def _map(f: _Facts) -> Any:  # Any: see _Facts
    """Numbers in a feature map of the first stage, up to the task's constant."""
    return f["W"] * f["Resolution"] * f["Resolution"]


GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "hyperparameters": ("Activation", "LearningRate", "TrivialAugment", "WeightDecay"),
        "sizes": ("N", "Resolution", "W"),
        "epoch": ("epoch",),
        "cost": ("n_params", "n_macs"),
        **CELL_FEATURES,
        **{group: tuple(formulas) for group, formulas in _FORMULAS.items()},
    }
)
"""Every column by what it is about; an ablation leaves out one group at a time."""

# What formulas read of the cell, besides columns of their own.
_CELL_FACTS: Final = frozenset(
    {*CELL_FEATURES["counts"], "n_live_paths", "effective_depth", "n_live_conv3x3", "widest_view"}
)
_FORMULA: Final = {name: formula for formulas in _FORMULAS.values() for name, formula in formulas.items()}
_KNOWN: Final = frozenset(name for names in GROUPS.values() for name in names)

TRENDS: Final[Mapping[str, Trend]] = MappingProxyType(
    {
        "epoch": "rising",
        "rate_spent": "rising",
        "decay_spent": "rising",
        "rate_left": "falling",
        "rate_now": "falling",
    }
)
"""The columns that change with the epoch, each in one direction; every other column is fixed along a trajectory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """The columns that a model reads.

    Attributes:
        name: identifier.
        columns: in order.
        is_canonical: whether cells that compute the same function get the same features.
    """

    name: str
    columns: tuple[str, ...]
    is_canonical: bool

    def __post_init__(self) -> None:
        """Refuse columns that do not exist, stand twice, or none at all."""
        if unknown := [name for name in self.columns if name not in _KNOWN]:
            raise UnknownName.of("feature", unknown[0], sorted(_KNOWN))
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise InvalidArgument(f"feature set {self.name!r}: columns={self.columns} must be some, each once")

    @property
    def varying(self) -> tuple[int, ...]:
        """Positions of the columns that change with the epoch."""
        return tuple(i for i, name in enumerate(self.columns) if name in TRENDS)

    def without(self, group: str) -> FeatureSet:
        """Return this set less the columns of `group`, a name in `GROUPS`."""
        if group not in GROUPS:
            raise UnknownName.of("group", group, GROUPS)
        left = tuple(name for name in self.columns if name not in GROUPS[group])
        return FeatureSet(name=f"{self.name} - {group}", columns=left, is_canonical=self.is_canonical)


def _of_groups(name: str, groups: Iterable[str], *, is_canonical: bool) -> FeatureSet:
    return FeatureSet(
        name=name, columns=tuple(name for group in groups for name in GROUPS[group]), is_canonical=is_canonical
    )


_ACCURACY: Final = (
    "hyperparameters",
    "sizes",
    "epoch",
    "operations",
    "paths",
    "live",
    "shortcuts",
    "nodes",
    "cost",
    "rates",
    "rates_by_size",
    "size",
    "epochs",
)
_PUBLISHED: Final = (
    *GROUPS["published_rest"][:3],
    *GROUPS["one_hot"],
    *GROUPS["published_rest"][3:],
    "LearningRate",
    "N",
    "Resolution",
    "W",
    "WeightDecay",
    "epoch",
)
_WORK: Final = ("n_params", "n_macs", *GROUPS["counts"], *GROUPS["operations"], *GROUPS["work"])

FEATURE_SETS: Final[Mapping[str, FeatureSet]] = MappingProxyType(
    {
        found.name: found
        for found in (
            FeatureSet(name="published", columns=_PUBLISHED, is_canonical=False),
            _of_groups("accuracy", _ACCURACY, is_canonical=True),
            _of_groups("accuracy_as_is", _ACCURACY, is_canonical=False),
            FeatureSet(name="latency", columns=("Activation", *GROUPS["sizes"], *_WORK), is_canonical=False),
            FeatureSet(
                name="epoch_time",
                columns=("Activation", "TrivialAugment", *GROUPS["sizes"], *_WORK),
                is_canonical=False,
            ),
        )
    }
)
"""published: JAHS-Bench-201's 41 columns, in its order. accuracy: ours, equal for cells that compute the same;
accuracy_as_is: the same columns of the cell as it is written. latency and epoch_time: what costs time, hyperparameters
and the epoch left out where they cannot matter."""


def feature_set(name: str) -> FeatureSet:
    """Return the feature set called `name`.

    Raises:
        UnknownName: if there is none; lists those that exist.
    """
    if name in FEATURE_SETS:
        return FEATURE_SETS[name]
    raise UnknownName.of("features", name, FEATURE_SETS)


class FeatureBuilder:
    """Builds one feature set for one task; look-up tables are made here, once."""

    def __init__(self, features: FeatureSet, task: Task) -> None:
        self.features = features
        self.task = task
        cells = cell_features(canonical=features.is_canonical)
        used = [name for name in cells if name in features.columns or name in _CELL_FACTS]
        self._cell_names = tuple(used)
        self._cells = np.column_stack([cells[name] for name in used]).astype(np.float64)  # (15625, n_used)
        self._size_of = {size: i for i, size in enumerate(_SIZES)}
        self._costs = _cost_tables(task)
        # The rate of epoch e is half of 1 + cos(pi (e - 1) / max_epoch), times the initial one; spent is its sum up to
        # and with e as a share of the whole. Rounded, so that cosines of different libraries give the same bits.
        now = [0.0, *(0.5 + 0.5 * math.cos(math.pi * e / task.max_epoch) for e in range(task.max_epoch))]
        total = math.fsum(now)
        self._now = [round(value, 9) for value in now]
        self._spent = [round(math.fsum(now[: e + 1]) / total, 9) for e in range(task.max_epoch + 1)]
        self._schedule = np.array([self._spent, self._now])  # (2, max_epoch + 1)
        self._plan = [(name, _FORMULA.get(name)) for name in features.columns]

    def build(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n, n_columns) float32, of encoded configs, (n, 15) float32.

        Raises:
            InvalidArgument: `X` has another shape or dtype, or holds what no config is encoded as.
            InvalidFidelity: an epoch is outside of the task.
        """
        facts = self._facts(X)
        F = np.empty((len(X), len(self._plan)), dtype=np.float32)
        for j, (name, formula) in enumerate(self._plan):
            F[:, j] = facts[name] if formula is None else formula(facts)
        return F

    def build_one(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n_columns,), of one encoded row that is known to be valid; the fast path of a query."""
        values = row.tolist()
        facts = dict(zip(COLUMNS, values, strict=True))
        number = 0
        for column in _OP_COLUMNS:
            number = 5 * number + int(values[column])
        facts.update(zip(self._cell_names, self._cells[number].tolist(), strict=True))
        size = self._size_of[facts["N"], facts["W"], facts["Resolution"]]
        n_conv3x3, n_conv1x1 = int(facts["n_conv3x3"]), int(facts["n_conv1x1"])
        facts["n_params"], facts["n_macs"] = self._costs[:, size, n_conv3x3, n_conv1x1].tolist()
        epoch = int(facts["epoch"])
        facts["schedule_spent"], facts["schedule_now"] = self._spent[epoch], self._now[epoch]
        return np.array(
            [facts[name] if formula is None else formula(facts) for name, formula in self._plan], np.float32
        )

    def _facts(self, X: NDArray[np.float32]) -> _Facts:
        numbers, sizes, epochs = self._read(X)
        facts = dict(zip(COLUMNS, X.T.astype(np.float64), strict=True))
        facts.update(zip(self._cell_names, self._cells[numbers].T, strict=True))
        counts = facts["n_conv3x3"].astype(np.int64), facts["n_conv1x1"].astype(np.int64)
        facts["n_params"], facts["n_macs"] = self._costs[:, sizes, counts[0], counts[1]]
        facts["schedule_spent"], facts["schedule_now"] = self._schedule[:, epochs]
        return facts

    def _read(self, X: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Cell numbers, places in `_SIZES` and epochs."""
        if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != len(COLUMNS):
            given = f"{X.dtype} of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
            raise InvalidArgument(f"X: {given} is not a float32 matrix of {len(COLUMNS)} columns; see jahs.encode")
        ops, epochs = X[:, _OP_COLUMNS], X[:, _N_CONFIG]
        if bad := int((~((epochs >= 1) & (epochs <= self.task.max_epoch) & (epochs == np.rint(epochs)))).sum()):
            raise InvalidFidelity(
                f"epoch: {bad} of {len(X)} rows are not integers in 1..{self.task.max_epoch} ({self.task.name})"
            )
        sizes = np.full(len(X), -1)
        for i, size in enumerate(_SIZES):
            sizes[(X[:, [COLUMNS.index(key) for key in ("N", "W", "Resolution")]] == size).all(axis=1)] = i
        is_wrong = (sizes < 0) | ~((ops >= 0) & (ops <= 4) & (ops == np.rint(ops))).all(axis=1)
        if is_wrong.any():
            raise InvalidArgument(
                f"X: {int(is_wrong.sum())} of {len(X)} rows, the first {int(is_wrong.argmax())}, are no encoded config"
            )
        return (ops @ _PLACES).astype(np.int64), sizes, epochs.astype(np.int64)


def _cost_tables(task: Task) -> NDArray[np.float64]:
    """Exact parameters and multiply-adds by (size, 3x3 convolutions, 1x1 convolutions), (2, 27, 7, 7)."""
    counts = [(a, b) for a in range(len(OPS) + 1) for b in range(len(OPS) + 1 - a)]
    X = np.ones((len(_SIZES) * len(counts), len(COLUMNS)), dtype=np.float32)
    places = list(product(range(len(_SIZES)), counts))
    for i, (size, (n_conv3x3, n_conv1x1)) in enumerate(places):
        for key, value in zip(("N", "W", "Resolution"), _SIZES[size], strict=True):
            X[i, COLUMNS.index(key)] = value
        ops = [2] * n_conv3x3 + [3] * n_conv1x1 + [1] * (len(OPS) - n_conv3x3 - n_conv1x1)
        X[i, _OP_COLUMNS] = ops
    tables = np.zeros((2, len(_SIZES), len(OPS) + 1, len(OPS) + 1))
    for values, formula in zip(tables, (n_params, n_macs), strict=True):
        found = formula(X, task)
        for (size, (n_conv3x3, n_conv1x1)), value in zip(places, found.tolist(), strict=True):
            values[size, n_conv3x3, n_conv1x1] = value
    return tables
