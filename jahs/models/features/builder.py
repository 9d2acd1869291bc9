"""Builds named float32 features of the encoded matrix, the same way for fitting and for queries.

Everything is built from sums, products, quotients and look-ups in float64 and rounded once: one row gives the same bits
alone, along a trajectory, in a batch and on any machine. `jahs.models.features.sets` defines the features.

    >>> from jahs.models.features import FEATURE_SETS
    >>> from jahs.tasks.definitions import TASKS
    >>> builder = FeatureBuilder(FEATURE_SETS["published"], TASKS["cifar10"])
    >>> builder.build(jahs.encode([jahs.space().default()], 200)).shape
    (1, 41)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.models.features.cells import CELL_FEATURES, SIGNAL_FEATURES, cell_features, signal_features
from jahs.models.features.formulas import FORMULAS, Formula, columns_of, parameters_of
from jahs.models.features.sets import VARYING, FeatureSet
from jahs.models.features.timing import (
    DEFAULT_TIMES,
    MISH,
    SIZES,
    WORK,
    TimeCoefficients,
    work_classes,
    work_table,
)
from jahs.schema import COLUMNS, CONFIG_KEYS, OPS, SIZE_KEYS
from jahs.spaces.cell import N_CELLS
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task

_OP_COLUMNS: Final = [COLUMNS.index(op) for op in OPS]
_PLACES: Final = 5.0 ** np.arange(5, -1, -1)
_DEPTHS: Final = tuple(int(n) for n in PARAMETERS["N"].choices)
_N_SIZES: Final = len(SIZES)
_N_SIZES_EACH: Final = _N_SIZES // len(_DEPTHS)
_CHUNK: Final = 2**12  # rows at a time, so that a formula's arrays stay in the processor's cache

_CELL_COLUMNS: Final = frozenset(name for names in CELL_FEATURES.values() for name in names)
FACTS: Final = _CELL_COLUMNS | frozenset(SIGNAL_FEATURES)
"""Features that are looked up by the cell: its own, and its signal's."""

OF_CLASS: Final = "_of_class"
"""Suffix of values that are read from the cell that represents the class."""

# Names that formulas may use. LearningRate and WeightDecay occur twice: as given, and rounded to float32 as in the
# encoded matrix; features use the latter.
_ARGUMENTS: Final = (
    *(f"given_{key}" if key in {"LearningRate", "WeightDecay"} else key for key in CONFIG_KEYS),
    "LearningRate", "WeightDecay", *WORK, *(f"{name}{OF_CLASS}" for name in WORK),
)  # fmt: skip
_EPOCH_ARGUMENTS: Final = ("epoch", "schedule_spent", "schedule_now")
_ACTIVATION, _RATE, _DECAY = (CONFIG_KEYS.index(key) for key in ("Activation", "LearningRate", "WeightDecay"))
_WORK_ROW, _COSTS = Struct(f"={len(WORK)}d"), Struct("=2d")
# Rounds to the nearest float32.
_ROUND: Final = Struct("=2f")


# Any: floats for one row, float64 arrays for many; the arithmetic is the same.
_Formulas: TypeAlias = Callable[[list[Any]], tuple[Any, ...]]


class Column(NamedTuple):
    """One feature; `is_canonical` if it depends on the cell and reads the one that represents its class."""

    name: str
    is_canonical: bool


Place: TypeAlias = tuple[int, int]
"""The position of a config in the look-up tables: its cell's number, and its (N, W, Resolution) among all 27."""


def joint_columns(sets: Sequence[FeatureSet]) -> tuple[tuple[Column, ...], list[list[int]]]:
    """Return every distinct column of several feature sets, and for each set the positions of its columns among them.

    One set keeps its order. With several, columns looked up by the cell come last, so that one copy moves them all.
    """
    by_set = [[Column(name, s.is_canonical and _needs_cell(name)) for name in s.columns] for s in sets]
    columns = list(dict.fromkeys(column for set_columns in by_set for column in set_columns))
    if len(by_set) > 1:
        columns.sort(key=lambda column: column.name in _CELL_COLUMNS)
    place = {column: i for i, column in enumerate(columns)}
    return tuple(columns), [[place[column] for column in set_columns] for set_columns in by_set]


def _reads(name: str) -> tuple[str, ...]:
    """Return the names of a column's inputs."""
    return parameters_of(FORMULAS[name]) if name in FORMULAS else (name,)


def _needs_cell(name: str) -> bool:
    return any(part in FACTS or part in WORK for part in _reads(name))


class RowBuilder:
    """Builds columns for one task from configs that are known to be valid; look-up tables are made here, once."""

    def __init__(self, columns: Iterable[Column], task: Task, times: TimeCoefficients = DEFAULT_TIMES) -> None:
        self.columns = tuple(columns)
        flags = {column.is_canonical for column in self.columns}
        cells = {flag: cell_features(canonical=flag) for flag in flags}
        first, end = _copied_run(self.columns)
        self._copied = slice(first, end)
        self._computed = [*range(first), *range(end, len(self.columns))]
        self._varying = [i for i in self._computed if self.columns[i].name in VARYING]
        self._cell_rows = _table([cells[flag][name] for name, flag in self.columns[first:end]], np.float32)
        self._cell_bytes, self._width = self._cell_rows.tobytes(), 4 * (end - first)
        computed = [self.columns[i] for i in self._computed]
        # The inputs of computed columns from the cell and its signal, besides the costs.
        facts = sorted({(part, flag) for name, flag in computed for part in _reads(name) if part in FACTS})
        self._facts = np.concatenate([_fact_table(facts, n) for n in _DEPTHS])
        self._fact_bytes = self._facts.tobytes()
        self._fact_row = Struct(f"={len(facts)}d")
        arguments = (*_ARGUMENTS, *(_argument(name, is_canonical=flag) for name, flag in facts), *_EPOCH_ARGUMENTS)
        self._formulas = _formulas(computed, arguments)
        self._varying_formulas = _formulas([self.columns[i] for i in self._varying], arguments)
        self._n_before = first
        self._before, self._behind = Struct(f"={first}f"), Struct(f"={len(self.columns) - end}f")
        table = work_table(task, times)
        self._work, self._n_classes = table.reshape(-1, len(WORK)), table.shape[2]
        self._work_bytes = self._work.tobytes()
        # Costs belong to the cell as it is; a canonical column reads the costs of the cell that represents its class.
        self._classes = tuple(work_classes(canonical=flag) for flag in (False, True in flags))
        self._cell_offsets, self._class_offsets = ((_WORK_ROW.size * c).tolist() for c in self._classes)  # in bytes
        self._size_of = {size: i for i, size in enumerate(SIZES)}
        self._spent, self._now = schedule(task.max_epoch)
        self._schedule = np.array([self._spent, self._now])  # (2, max_epoch + 1)

    def place(self, codes: Sequence[float]) -> Place:
        """Return the position of a config in the tables, given its `jahs.spaces.configs.config_codes`."""
        _, _, n, op1, op2, op3, op4, op5, op6, _, resolution, _, w, _ = codes
        cell = ((((op1 * 5 + op2) * 5 + op3) * 5 + op4) * 5 + op5) * 5 + op6
        return int(cell), self._size_of[n, w, resolution]

    def costs(self, place: Place) -> tuple[float, float]:
        """Return the exact parameters and multiply-adds of a config."""
        cell, size = place
        return _COSTS.unpack_from(self._work_bytes, _WORK_ROW.size * self._n_classes * size + self._cell_offsets[cell])

    def costs_many(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the exact parameters and multiply-adds of encoded configs, (n, 2)."""
        cells, sizes = _places(X)
        return self._work[sizes * self._n_classes + self._classes[0][cells], :2]

    def pack(self, codes: Sequence[float], epoch: int, place: Place) -> bytes:
        """Return the features of one config as packed float32; the fast path of a query."""
        return self._pack(self._config_arguments(codes, place), epoch, place[0])

    def build_walk(self, codes: Sequence[float], epochs: NDArray[np.int64], place: Place) -> NDArray[np.float32]:
        """Return the features, (n_epochs, n_columns), of one config at several epochs."""
        arguments = self._config_arguments(codes, place)
        first = np.frombuffer(self._pack([*arguments], int(epochs[0]), place[0]), np.float32)
        F = np.repeat(first[None], len(epochs), axis=0)
        values = self._varying_formulas([*arguments, epochs.astype(np.float64), *self._schedule[:, epochs]])
        for i, column in zip(self._varying, values, strict=True):
            F[:, i] = column
        return F

    def build(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (n, n_columns), of encoded configs, (n, 15)."""
        F = np.empty((len(X), len(self.columns)), dtype=np.float32)
        for first in range(0, len(X), _CHUNK):
            self._fill(F[first : first + _CHUNK], X[first : first + _CHUNK])
        return F

    def _config_arguments(self, codes: Sequence[float], place: Place) -> list[float]:
        """Return all arguments of a config except those that depend on the epoch."""
        cell, size = place
        first = _WORK_ROW.size * self._n_classes * (_N_SIZES * (codes[_ACTIVATION] == MISH) + size)
        return [
            *codes, *_ROUND.unpack(_ROUND.pack(codes[_RATE], codes[_DECAY])),
            *_WORK_ROW.unpack_from(self._work_bytes, first + self._cell_offsets[cell]),
            *_WORK_ROW.unpack_from(self._work_bytes, first + self._class_offsets[cell]),
            *self._fact_row.unpack_from(
                self._fact_bytes, self._fact_row.size * (size // _N_SIZES_EACH * N_CELLS + cell)
            ),
        ]  # fmt: skip

    def _pack(self, arguments: list[float], epoch: int, cell: int) -> bytes:
        arguments += (epoch, self._spent[epoch], self._now[epoch])
        values = self._formulas(arguments)
        copied = self._cell_bytes[cell * self._width : (cell + 1) * self._width]
        before = self._n_before
        if before == len(values):
            return self._before.pack(*values) + copied
        return self._before.pack(*values[:before]) + copied + self._behind.pack(*values[before:])

    def _fill(self, F: NDArray[np.float32], X: NDArray[np.float32]) -> None:
        cells, sizes = _places(X)
        codes = X[:, :-1].T.astype(np.float64)
        epochs = X[:, -1].astype(np.int64)
        first = (_N_SIZES * (codes[_ACTIVATION] == MISH) + sizes) * self._n_classes
        work = (column for classes in self._classes for column in self._work.take(first + classes[cells], axis=0).T)
        values = self._formulas(
            [*codes, codes[_RATE], codes[_DECAY], *work, *self._facts[sizes // _N_SIZES_EACH * N_CELLS + cells].T,
             epochs.astype(np.float64), *self._schedule[:, epochs]]
        )  # fmt: skip
        F[:, self._copied] = self._cell_rows[cells]
        for i, column in zip(self._computed, values, strict=True):
            F[:, i] = column


class FeatureBuilder(RowBuilder):
    """Builds one feature set for one task."""

    def __init__(self, features: FeatureSet, task: Task) -> None:
        super().__init__(joint_columns([features])[0], task, features.times)
        self.features, self.task = features, task


def _places(X: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return cell numbers, and positions in `SIZES`, of encoded configs."""
    sizes = np.zeros(len(X), np.int64)
    for key in SIZE_KEYS:
        _, middle, large = PARAMETERS[key].codes
        values = X[:, COLUMNS.index(key)]
        sizes = 3 * sizes + (values >= middle) + (values >= large)
    return (X[:, _OP_COLUMNS] @ _PLACES).astype(np.int64), sizes


def _table(columns: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:  # Any: float32 or float64
    """Return one row per cell, (15625, n_columns)."""
    return np.column_stack(columns).astype(dtype, copy=False) if columns else np.empty((N_CELLS, 0), dtype)


def _fact_table(facts: Sequence[tuple[str, bool]], n_cells: int) -> NDArray[np.float64]:
    """Return facts of networks with `n_cells` cells a stage, (15625, n_facts)."""
    columns = [
        cell_features(canonical=flag)[name] if name in _CELL_COLUMNS else signal_features(n_cells, canonical=flag)[name]
        for name, flag in facts
    ]
    table: NDArray[np.float64] = _table(columns, np.float64)
    return table


def _argument(name: str, *, is_canonical: bool) -> str:
    return name + OF_CLASS if is_canonical and _needs_cell(name) else name


def _formulas(columns: Sequence[Column], arguments: Sequence[str]) -> _Formulas:
    """Return a function of the list of all arguments that computes `columns`, calling each formula once.

    It appends to the list.
    """
    names = list(arguments)
    calls: list[tuple[Formula, _Formulas]] = []
    for formula, flag in dict.fromkeys((FORMULAS[name], flag) for name, flag in columns if name in FORMULAS):
        read = [_argument(name, is_canonical=flag) for name in parameters_of(formula)]
        calls.append((formula, itemgetter(*map(names.index, read))))
        names += [_argument(name, is_canonical=flag) for name in columns_of(formula)]
    places = [names.index(_argument(name, is_canonical=flag)) for name, flag in columns]
    choose: _Formulas = itemgetter(*places) if len(places) > 1 else lambda values: tuple(values[i] for i in places)

    def compute(values: list[Any]) -> tuple[Any, ...]:
        for formula, pick in calls:
            values += formula(*pick(values)).values()
        return choose(values)

    return compute


def _copied_run(columns: Sequence[Column]) -> tuple[int, int]:
    """Return the start of the longest run of columns that are looked up by the cell, and one past its end."""
    best = start = 0, 0
    for i, column in enumerate(columns):
        start = (start[0] if column.name in _CELL_COLUMNS else i + 1, i + 1)
        best = max(best, start, key=lambda run: run[1] - run[0])
    return best


def schedule(max_epoch: int) -> tuple[list[float], list[float]]:
    """Return by epoch the share of the schedule that is spent after it, and its learning rate relative to the first.

    The rate of epoch e is half of 1 + cos(pi (e - 1) / max_epoch), times the initial one. Rounded, so that cosines of
    different libraries give the same bits.
    """
    now = [0.0, *(0.5 + 0.5 * math.cos(math.pi * e / max_epoch) for e in range(max_epoch))]
    total = math.fsum(now)
    spent = [round(math.fsum(now[: e + 1]) / total, 9) for e in range(max_epoch + 1)]
    return spent, [round(value, 9) for value in now]
