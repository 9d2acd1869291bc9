"""The best known config, the baseline of regret: among given configs, by a search, or by querying all configs.

The exhaustive search goes over all cells and choices and a grid of the floats, at fixed sizes. A model that reads
canonical features answers all cells of a class alike, so one cell of each class is enough: 5,189 instead of 15,625. The
floats of the best (cell, choices) pairs are searched again on finer grids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, MissingData
from jahs.files.tables import take
from jahs.queries.oracles.table import TableOracle
from jahs.queries.queryable import Queryable
from jahs.release.reading import Release
from jahs.schema import CONFIG_KEYS, OPS
from jahs.spaces.cell import all_ops, representatives
from jahs.spaces.columns import COLUMN_DTYPES, Columns, Configs, codes, columns_of_codes, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST, PARAMETERS, is_integer
from jahs.spaces.space import Space
from jahs.tasks.metrics import METRICS

_ROWS_AT_ONCE: Final = 400_000
_GRIDS: Final = ((1, 300), (4, 10), (40, 0))
"""For each grid: how many times finer it is than the first, and how many of the best pairs the next grid has."""

# Settings of a search that is not exhaustive.
_MOST_ENUMERATED: Final = 50_000
_N_RANDOM: Final = 20_000
_N_KEPT: Final = 10
_N_GRID: Final = 100


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


def grid(space: Space, keys: Sequence[str], *, n_floats: int) -> Columns:
    """Return every combination of `keys`: fixed values, all choices, and `n_floats` (>= 2) values of each float."""
    if not is_integer(n_floats) or n_floats < 2:
        raise InvalidArgument(f"n_floats={n_floats!r} must be an integer >= 2")
    axes = []
    for key in keys:
        parameter = PARAMETERS[key]
        values = np.array([space.fixed[key]] if key in space.fixed else parameter.choices)
        if not len(values):
            values = (np.geomspace if parameter.is_log else np.linspace)(parameter.lower, parameter.upper, n_floats)
        axes.append(values.astype(COLUMN_DTYPES[key]))
    return {key: values.ravel() for key, values in zip(keys, np.meshgrid(*axes, indexing="ij"), strict=True)}


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


class Best(NamedTuple):
    """The best known config."""

    config: Config  # all 14 keys
    value: float  # value of the metric, in its unit, at the full fidelity
    is_exact: bool  # whether it is certainly the best; else a longer search may find a better one


def best_of(asked: Queryable, configs: list[Config], metric: str, *, is_exact: bool) -> Best:
    """Return the best of these configs; there must be at least one."""
    config = configs[_order(asked, configs, metric)[0]]
    return Best(config, asked.query_many([config], metrics=(metric,))[metric].item(), is_exact)


def recorded_in_full(table: TableOracle, names: Sequence[str], *, fixed: Mapping[str, object]) -> list[Config]:
    """Return the recorded configs, at least one, that have these metrics at the last epoch and the fixed values."""
    configs = rows(columns_of_codes(table.trained_in_full(names)))
    if configs := [config for config in configs if config.items() >= fixed.items()]:
        return configs
    where = f" with {', '.join(f'{key}={value}' for key, value in fixed.items())}" if fixed else ""
    raise MissingData(
        f"this table of {table.task.name} has no config{where} that is recorded at epoch {table.max_epoch}, "
        "and so no front and no best one"
    )


def search_best(asked: Queryable, known: list[Config], metric: str) -> Best:
    """Return the best config of a space: exactly if it is small enough to query all of it, else by a search.

    A search starts from random configs and from the `known` ones, with the space's fixed values. It follows the
    neighbours of the best ten until none is better, tries a grid of the floats at the best one, and does so again.
    """
    space = asked.space
    n_configs = math.prod(len(parameter.choices) for parameter in space.parameters.values())  # a float has no choices
    if 0 < n_configs <= _MOST_ENUMERATED:
        every = grid(space, [*reversed(CONFIG_KEYS)], n_floats=2)  # the first key changes fastest
        return best_of(asked, _best_few(asked, [every], metric), metric, is_exact=True)
    starts = _columns([{**config, **space.fixed} for config in known])
    beam = _climb(asked, [starts, space.sample_columns(_N_RANDOM, seed=0)], metric)
    choices = {key: value for key, value in beam[0].items() if PARAMETERS[key].kind != "float"}
    near = grid(space.fix(choices), CONFIG_KEYS, n_floats=_N_GRID)
    beam = _climb(asked, [_columns(beam), near], metric)
    return best_of(asked, beam, metric, is_exact=False)


def _climb(bench: Queryable, starts: Sequence[Columns], metric: str) -> list[Config]:
    """Return the best few configs that are found from the best `starts`; no neighbour is better than the first."""
    previous, beam = list[Config](), _best_few(bench, starts, metric)
    while beam[:1] != previous[:1]:
        neighbors = [neighbor for config in beam for neighbor in bench.space.neighbors(config)]
        previous, beam = beam, _best_few(bench, [_columns([*beam, *neighbors])], metric)
    return beam


def _best_few(bench: Queryable, parts: Sequence[Columns], metric: str) -> list[Config]:
    """Return the best configs of all parts, the best one first; equally good ones in the order given, each once."""
    configs = {key: np.concatenate([part[key] for part in parts]) for key in CONFIG_KEYS}
    best: list[Config] = []
    for place in _order(bench, configs, metric):
        (config,) = rows(take(configs, place[None]))
        if config not in best:
            best.append(config)
        if len(best) == _N_KEPT:
            break
    return best


def _order(bench: Queryable, configs: Configs, metric: str) -> NDArray[np.intp]:
    values = bench.query_many(configs, metrics=(metric,))[metric]
    return np.argsort(-values if METRICS[metric].direction == "max" else values, kind="stable")


def _columns(configs: Sequence[Mapping[str, object]]) -> Columns:
    return columns_of_codes(codes(configs))
