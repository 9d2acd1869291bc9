"""The exhaustive search for the best config: all cells and choices, and a grid of the floats, at full size.

A model that reads canonical features answers all cells of a class alike, so one cell of each class is enough: 5,189
instead of 15,625. The floats of the best (cell, choices) pairs are searched again on finer grids.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import take
from jahs.queries.best import grid
from jahs.queries.queryable import Queryable
from jahs.release import Release
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.cell import all_ops, representatives
from jahs.spaces.columns import COLUMN_DTYPES, Columns, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST, PARAMETERS
from jahs.spaces.space import Space
from jahs.tasks.metrics import METRICS

_ROWS_AT_ONCE: Final = 400_000
_GRIDS: Final = ((1, 300), (4, 10), (40, 0))
"""For each grid: how many times finer it is than the first, and how many of the best pairs the next grid has."""


class Exhaustive(NamedTuple):
    """The best config of an exhaustive search."""

    config: Config  # all 14 keys
    value: float  # value of the metric, in its unit, at the last epoch
    on_grid: float  # best value on the first grid, which has every cell and choice
    n_asked: int  # number of configs queried, on all grids


def cells_to_ask(release: Release, metric: str) -> NDArray[np.int64]:
    """Return cells, (n_cells, 6), that cover all answers: one per class if the metric's model allows it, else all."""
    models = release.models
    is_canonical = metric in models.metrics and models.packs[models.metrics[metric].pack].features.is_canonical
    return representatives() if is_canonical else all_ops()


def at_full_size(columns: Columns) -> NDArray[np.bool_]:
    """Return which configs have the largest networks, (n_configs,)."""
    return np.asarray(np.all([columns[key] == value for key, value in LARGEST.items()], axis=0))


def cell_columns(cells: NDArray[np.int64]) -> Columns:
    """Return the columns Op1 to Op6 of cells, (n_cells, 6)."""
    return {name: cells[:, place].astype(COLUMN_DTYPES[name]) for place, name in enumerate(OPS)}


def ops_of(columns: Columns) -> NDArray[np.int64]:
    """Return the operations of configs, (n_configs, 6)."""
    return np.column_stack([columns[op] for op in OPS]).astype(np.int64)


def cells_on_grid(cells: NDArray[np.int64], space: Space, *, n_floats: int = 2) -> Columns:
    """Return each of these cells, (n_cells, 6), with every combination of the other keys in turn; see `grid`."""
    return crossed(cell_columns(cells), grid(space, [key for key in CONFIG_KEYS if key not in OPS], n_floats=n_floats))


def crossed(first: Columns, second: Columns) -> Columns:
    """Return every row of `first` with each row of `second`, which has other keys."""
    n_first, n_second = (len(next(iter(part.values()))) for part in (first, second))
    columns = {name: np.repeat(values, n_second) for name, values in first.items()}
    return columns | {name: np.tile(values, n_first) for name, values in second.items()}


def exhaustive_best(asked: Queryable, metric: str, *, cells: NDArray[np.int64], n_floats: int) -> Exhaustive:
    """Return the best config at full size.

    Args:
        asked: a benchmark or a surrogate that answers every config.
        metric: metric to compare, at the last epoch.
        cells: cells to ask, (n_cells, 6), see `cells_to_ask`.
        n_floats: values of each float on the first grid.
    """
    space = asked.space.fix(LARGEST)
    floats = [name for name in space.searched if PARAMETERS[name].kind == "float"]
    others = [name for name in CONFIG_KEYS if name not in {*OPS, *floats}]
    pairs = crossed(cell_columns(cells), grid(space, others, n_floats=n_floats))
    candidates: list[tuple[float, Columns]] = []
    n_asked = 0
    for factor, n_kept in _GRIDS:
        float_values = grid(space, floats, n_floats=factor * (n_floats - 1) + 1)
        values, places = _best_floats(asked, metric, pairs, float_values)
        order = np.argsort(-values, kind="stable")
        top = order[:1]
        candidates.append((float(values[top[0]]), take(pairs, top) | take(float_values, places[top])))
        n_asked += len(values) * len(float_values[floats[0]])
        pairs = take(pairs, order[:n_kept])
    (config,) = rows(max(candidates, key=lambda candidate: candidate[0])[1])
    value = asked.query(config, metrics=(metric,)).values[metric]
    return Exhaustive(config, value, on_grid=abs(candidates[0][0]), n_asked=n_asked)


def _best_floats(
    bench: Queryable, metric: str, pairs: Columns, floats: Columns
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return for each pair the best value over the rows of `floats`, turned so that more is better, and its row."""
    sign = 1.0 if METRICS[metric].direction == "max" else -1.0
    n_pairs, n_floats = len(pairs["N"]), len(next(iter(floats.values())))
    values, places = np.empty(n_pairs), np.empty(n_pairs, np.intp)
    for part in np.array_split(np.arange(n_pairs), -(-n_pairs * n_floats // _ROWS_AT_ONCE)):
        columns = crossed(take(pairs, part), floats)
        answers = sign * bench.query_many(columns, metrics=(metric,))[metric].reshape(len(part), n_floats)
        values[part], places[part] = answers.max(axis=1), answers.argmax(axis=1)
    return values, places
