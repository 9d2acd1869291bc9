"""What models read: named float32 features of the encoded matrix, built the same way for fitting and for queries.

Everything is built from sums, products, quotients and look-ups in float64 and rounded once: one row gives the same bits
alone, along a trajectory, in a batch and on any machine. `jahs.feature_sets` says what the features are.

    >>> from jahs.tasks import TASKS
    >>> builder = FeatureBuilder(FEATURE_SETS["published"], TASKS["cifar10"])
    >>> builder.build(jahs.encode([jahs.space().default()], 200)).shape
    (1, 41)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.cell_features import CELL_FEATURES, cell_features
from jahs.cost import n_macs, n_params
from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.feature_sets import FEATURE_SETS, FEATURES_VERSION, FORMULAS, GROUPS, TRENDS, FeatureSet, feature_set
from jahs.parameters import PARAMETERS
from jahs.schema import COLUMNS, OPS
from jahs.tasks import Task

__all__ = [
    "FEATURES_VERSION",
    "FEATURE_SETS",
    "GROUPS",
    "TRENDS",
    "Column",
    "FeatureBuilder",
    "FeatureSet",
    "Place",
    "RowBuilder",
    "feature_set",
    "joint_columns",
]

_OP_COLUMNS: Final = [COLUMNS.index(op) for op in OPS]
_PLACES: Final = 5.0 ** np.arange(5, -1, -1)
_SIZE_KEYS: Final = ("N", "W", "Resolution")
_SIZES: Final = tuple(product(*(PARAMETERS[key].choices for key in _SIZE_KEYS)))
_N_PAIRS: Final = (len(OPS) + 1) ** 2
_CHUNK: Final = 2**13  # rows at a time, so that a formula's arrays stay in the processor's cache

_OF_CELL: Final = frozenset(name for names in CELL_FEATURES.values() for name in names)
_COSTS: Final = ("n_params", "n_macs")
_OF_CLASS: Final = "_of_class"  # suffix of what is read from the cell that represents the class
_KEYS: Final = ("Activation", "LearningRate", "N", "Resolution", "TrivialAugment", "W", "WeightDecay")
_ARGUMENTS: Final = (
    *_KEYS, "epoch", "schedule_spent", "schedule_now", *_COSTS, *(f"{name}{_OF_CLASS}" for name in _COSTS)
)  # fmt: skip

# The float32 nearest to LearningRate and WeightDecay, which is what the encoded matrix holds.
_ROUND: Final = Struct("=2f")

# Any: floats for one row, float64 arrays for many; the arithmetic is the same.
_Formulas: TypeAlias = Callable[..., tuple[Any, ...]]


class Column(NamedTuple):
    """One feature; `is_canonical` where it depends on the cell and reads the one that represents its class."""

    name: str
    is_canonical: bool


class Place(NamedTuple):
    """Where a config stands in the look-up tables: its cell's number and its (N, W, Resolution)."""

    cell: int
    size: int


def joint_columns(sets: Sequence[FeatureSet]) -> tuple[tuple[Column, ...], list[list[int]]]:
    """Return every distinct column of several feature sets, and for each set where its columns stand among them.

    One set keeps its order. Of several, what is looked up by the cell comes last, so that it is copied in one piece.
    """
    each = [[Column(name, found.is_canonical and _needs_cell(name)) for name in found.columns] for found in sets]
    columns = list(dict.fromkeys(column for one in each for column in one))
    if len(each) > 1:
        columns.sort(key=lambda column: column.name in _OF_CELL)
    place = {column: i for i, column in enumerate(columns)}
    return tuple(columns), [[place[column] for column in one] for one in each]


def _names(name: str) -> tuple[str, ...]:
    """What a column is computed from."""
    return compile(FORMULAS[name], name, "eval").co_names if name in FORMULAS else (name,)


def _needs_cell(name: str) -> bool:
    return any(part in _OF_CELL or part in _COSTS for part in _names(name))


class RowBuilder:
    """Builds columns for one task from configs that are known to be valid; look-up tables are made here, once.

    Attributes:
        columns: what it builds, in order.
    """

    def __init__(self, columns: Iterable[Column], task: Task) -> None:
        self.columns = tuple(columns)
        cells = {flag: cell_features(canonical=flag) for flag in {column.is_canonical for column in self.columns}}
        self._copied = [i for i, column in enumerate(self.columns) if column.name in _OF_CELL]
        self._cell_rows = _table([cells[flag][name] for name, flag in self._columns(self._copied)], np.float32)
        self._computed = [i for i, column in enumerate(self.columns) if column.name not in _OF_CELL]
        self._varying = [i for i in self._computed if self.columns[i].name in TRENDS]
        facts = sorted({fact for i in self._computed for fact in _facts(self.columns[i])})
        self._facts = _table([cells[flag][name] for name, flag in facts], np.float64)
        arguments = (*_ARGUMENTS, *(_argument(name, is_canonical=flag) for name, flag in facts))
        self._formulas = _formulas(self._columns(self._computed), arguments)
        self._varying_formulas = _formulas(self._columns(self._varying), arguments)
        self._pack = _packer(len(self.columns), self._copied).pack_into
        self._to_copy: slice | list[int] = self._copied
        if self._copied and self._copied[-1] - self._copied[0] == len(self._copied) - 1:
            self._to_copy = slice(self._copied[0], self._copied[-1] + 1)
        self._costs = _cost_table(task)
        self._cost_rows = [[tuple(pair) for pair in of_size] for of_size in self._costs.tolist()]
        self._pairs = {flag: _convolution_pairs(canonical=flag) for flag in (False, True in cells)}
        self._own, self._of_class = self._pairs[False].tobytes(), self._pairs[True in cells].tobytes()
        self._size_of = {size: i for i, size in enumerate(_SIZES)}
        self._spent, self._now = _schedule(task.max_epoch)
        self._schedule = np.array([self._spent, self._now])  # (2, max_epoch + 1)

    def _columns(self, places: Sequence[int]) -> list[Column]:
        return [self.columns[i] for i in places]

    def place(self, codes: Sequence[float]) -> Place:
        """Return where a config stands, given its `jahs.configs.config_codes`."""
        _, _, n, op1, op2, op3, op4, op5, op6, _, resolution, _, w, _ = codes
        cell = ((((op1 * 5 + op2) * 5 + op3) * 5 + op4) * 5 + op5) * 5 + op6
        return Place(int(cell), self._size_of[n, w, resolution])

    def costs(self, place: Place) -> tuple[float, float]:
        """Return the exact parameters and multiply-adds of a config."""
        return self._cost_rows[place.size][self._own[place.cell]]

    def costs_many(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the exact parameters and multiply-adds of encoded configs, (n, 2)."""
        cells, sizes = _places(X)
        return self._costs[sizes, self._pairs[False][cells]]

    def build_one(self, codes: Sequence[float], epoch: int, place: Place) -> NDArray[np.float32]:
        """Return the features, (1, n_columns), of one config; the fast path of a query."""
        values = self._formulas(*self._arguments(codes, place, float(epoch), self._spent[epoch], self._now[epoch]))
        row = np.empty((1, len(self.columns)), np.float32)
        self._pack(row.data, 0, *values)
        row[0, self._to_copy] = self._cell_rows[place.cell]
        return row

    def build_walk(self, codes: Sequence[float], epochs: NDArray[np.int64], place: Place) -> NDArray[np.float32]:
        """Return the features, (n_epochs, n_columns), of one config at several epochs."""
        F = np.repeat(self.build_one(codes, int(epochs[0]), place), len(epochs), axis=0)
        schedule = self._schedule[:, epochs]
        values = self._varying_formulas(*self._arguments(codes, place, epochs.astype(np.float64), *schedule))
        for i, column in zip(self._varying, values, strict=True):
            F[:, i] = column
        return F

    def build(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n, n_columns), of encoded configs, (n, 15)."""
        F = np.empty((len(X), len(self.columns)), dtype=np.float32)
        for first in range(0, len(X), _CHUNK):
            self._fill(F[first : first + _CHUNK], X[first : first + _CHUNK])
        return F

    def _fill(self, F: NDArray[np.float32], X: NDArray[np.float32]) -> None:
        cells, sizes = _places(X)
        keys = X.T[[COLUMNS.index(key) for key in _KEYS]].astype(np.float64)
        epochs = X[:, -1].astype(np.int64)
        costs = (self._costs[sizes, self._pairs[flag][cells]].T for flag in (False, True in self._pairs))
        facts = self._facts[cells].T
        epoch_facts = epochs.astype(np.float64), *self._schedule[:, epochs]
        values = self._formulas(*keys, *epoch_facts, *(cost for pair in costs for cost in pair), *facts)
        F[:, self._to_copy] = self._cell_rows[cells]
        for i, column in zip(self._computed, values, strict=True):
            F[:, i] = column

    def _arguments(self, codes: Sequence[float], place: Place, *epoch_facts: Any) -> tuple[Any, ...]:
        """Values of `_ARGUMENTS`, then facts of the cell; `epoch_facts` are epoch, schedule_spent and schedule_now."""
        activation, rate, n, *_, resolution, augment, w, decay = codes
        rate, decay = _ROUND.unpack(_ROUND.pack(rate, decay))
        costs = self._cost_rows[place.size]
        own, of_class = costs[self._own[place.cell]], costs[self._of_class[place.cell]]
        facts = self._facts[place.cell].tolist()
        return (activation, rate, n, resolution, augment, w, decay, *epoch_facts, *own, *of_class, *facts)


class FeatureBuilder:
    """Builds one feature set for one task; look-up tables are made here, once."""

    def __init__(self, features: FeatureSet, task: Task) -> None:
        self.features = features
        self.task = task
        self._rows = RowBuilder(joint_columns([features])[0], task)

    def build(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n, n_columns) float32, of encoded configs, (n, 15) float32.

        Raises:
            InvalidArgument: `X` has another shape or dtype, or holds what no config is encoded as.
            InvalidFidelity: an epoch is outside of the task.
        """
        self._check(X)
        return self._rows.build(X)

    def build_one(self, row: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n_columns,), of one encoded row that is known to be valid."""
        *codes, epoch = row.tolist()
        found: NDArray[np.float32] = self._rows.build_one(codes, int(epoch), self._rows.place(codes))[0]
        return found

    def _check(self, X: NDArray[np.float32]) -> None:
        if not isinstance(X, np.ndarray) or X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != len(COLUMNS):
            given = f"{X.dtype} of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
            raise InvalidArgument(f"X: {given} is not a float32 matrix of {len(COLUMNS)} columns; see jahs.encode")
        ops, epochs = X[:, _OP_COLUMNS], X[:, -1]
        if bad := int((~((epochs >= 1) & (epochs <= self.task.max_epoch) & (epochs == np.rint(epochs)))).sum()):
            raise InvalidFidelity(
                f"epoch: {bad} of {len(X)} rows are not integers in 1..{self.task.max_epoch} ({self.task.name})"
            )
        is_wrong = ~((ops >= 0) & (ops <= 4) & (ops == np.rint(ops))).all(axis=1)
        for key in _SIZE_KEYS:
            is_wrong |= ~np.isin(X[:, COLUMNS.index(key)], PARAMETERS[key].choices)
        if is_wrong.any():
            raise InvalidArgument(
                f"X: {int(is_wrong.sum())} of {len(X)} rows, the first {int(is_wrong.argmax())}, are no encoded config"
            )


def _places(X: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cell numbers, and places in `_SIZES`, of encoded configs."""
    sizes = np.zeros(len(X), np.int64)
    for key in _SIZE_KEYS:
        _, middle, large = PARAMETERS[key].codes
        values = X[:, COLUMNS.index(key)]
        sizes = 3 * sizes + (values >= middle) + (values >= large)
    return (X[:, _OP_COLUMNS] @ _PLACES).astype(np.int64), sizes


def _table(columns: Sequence[NDArray[np.float32]], dtype: Any) -> NDArray[Any]:  # Any: float32 or float64
    """One row per cell, (15625, n_columns)."""
    return np.column_stack(columns).astype(dtype, copy=False) if columns else np.empty((5 ** len(OPS), 0), dtype)


def _facts(column: Column) -> list[tuple[str, bool]]:
    """What a computed column reads of the cell, besides the costs."""
    return [(name, column.is_canonical) for name in _names(column.name) if name in _OF_CELL]


def _argument(name: str, *, is_canonical: bool) -> str:
    return name + _OF_CLASS if is_canonical and (name in _OF_CELL or name in _COSTS) else name


def _formulas(columns: Sequence[Column], arguments: Sequence[str]) -> _Formulas:
    """One function of all arguments that returns all columns; the text is that of `FORMULAS`, nobody else's."""
    texts = []
    for name, is_canonical in columns:

        def replace(found: re.Match[str], *, flag: bool = is_canonical) -> str:
            return _argument(found[0], is_canonical=flag)

        texts.append(re.sub(r"[A-Za-z_]\w*", replace, FORMULAS.get(name, name)))
    function: _Formulas = eval(f"lambda {', '.join(arguments)}: ({''.join(text + ', ' for text in texts)})")  # noqa: S307
    return function


def _packer(n_columns: int, copied: Sequence[int]) -> Struct:
    """Writes the computed columns of a row as float32, each in its place; the others stay for the copy."""
    return Struct("=" + "".join("4x" if i in copied else "f" for i in range(n_columns)))


def _schedule(max_epoch: int) -> tuple[list[float], list[float]]:
    """By epoch: the share of the schedule spent up to and with it, and its learning rate as a share of the initial one.

    The rate of epoch e is half of 1 + cos(pi (e - 1) / max_epoch), times the initial one. Rounded, so that cosines of
    different libraries give the same bits.
    """
    now = [0.0, *(0.5 + 0.5 * math.cos(math.pi * e / max_epoch) for e in range(max_epoch))]
    total = math.fsum(now)
    spent = [round(math.fsum(now[: e + 1]) / total, 9) for e in range(max_epoch + 1)]
    return spent, [round(value, 9) for value in now]


def _convolution_pairs(*, canonical: bool) -> NDArray[np.uint8]:
    """By cell: 7 times its 3x3 convolutions plus its 1x1 convolutions, which is all that costs depend on, (15625,)."""
    cells = cell_features(canonical=canonical)
    return (cells["n_conv3x3"] * (len(OPS) + 1) + cells["n_conv1x1"]).astype(np.uint8)


def _cost_table(task: Task) -> NDArray[np.float64]:
    """Exact parameters and multiply-adds by (size, pair of convolutions), (27, 49, 2)."""
    pairs = [(a, b) for a in range(len(OPS) + 1) for b in range(len(OPS) + 1 - a)]
    places = list(product(range(len(_SIZES)), pairs))
    X = np.ones((len(places), len(COLUMNS)), dtype=np.float32)
    X[:, [COLUMNS.index(key) for key in _SIZE_KEYS]] = [_SIZES[size] for size, _ in places]
    X[:, _OP_COLUMNS] = [[2] * a + [3] * b + [1] * (len(OPS) - a - b) for _, (a, b) in places]
    table = np.zeros((len(_SIZES), _N_PAIRS, 2))
    size, pair = [size for size, _ in places], [a * (len(OPS) + 1) + b for _, (a, b) in places]
    for i, formula in enumerate((n_params, n_macs)):
        table[size, pair, i] = formula(X, task)
    return table
