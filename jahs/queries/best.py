"""The best known config of a benchmark or a view: what the regret of a search is measured against."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jahs.errors import MissingData
from jahs.queries.oracles.oracle import config_of
from jahs.queries.oracles.table import TableOracle
from jahs.queries.queryable import Queryable
from jahs.spaces.columns import COLUMN_DTYPES, Columns, rows
from jahs.spaces.configs import Config
from jahs.spaces.space import Space
from jahs.tasks.metrics import METRICS

_MOST_ENUMERATED: Final = 50_000
_N_RANDOM: Final = 20_000
_N_KEPT: Final = 10
_N_GRID: Final = 100


class Best(NamedTuple):
    """The best known config."""

    config: Config  # all 14 keys
    value: float  # of its metric, in the metric's unit, at the full fidelity
    is_exact: bool  # whether no config that may be asked for is better; else a long search may find one


def best_of(asked: Queryable, configs: list[Config], metric: str, *, is_exact: bool) -> Best:
    """Return the best of these configs, of which there is one at least."""
    config = configs[_order(asked, configs, metric)[0]]
    return Best(config, asked.query(config, metrics=(metric,)).values[metric], is_exact)


def recorded_in_full(
    table: TableOracle, names: Sequence[str], *, fixed: Mapping[str, object] = MappingProxyType({})
) -> list[Config]:
    """Return the recorded configs, one at least, that have these metrics at the last epoch and the fixed values."""
    configs = [config_of(row) for row in table.trained_in_full(names).tolist()]
    if found := [config for config in configs if config.items() >= fixed.items()]:
        return found
    where = f" with {', '.join(f'{key}={value}' for key, value in fixed.items())}" if fixed else ""
    raise MissingData(
        f"this table of {table.task.name} has no config{where} that is recorded at epoch {table.max_epoch}, "
        "and so no front and no best one"
    )


def search_best(asked: Queryable, known: list[Config], metric: str) -> Best:
    """Return the best config of a space: exactly if it is small enough to ask for all of it, else by a search.

    A search starts from random configs and from the `known` ones, with the space's fixed values. It follows the
    neighbours of the best ten until none is better, tries a grid of the floats at the best one, and does so again.
    """
    space = asked.space
    if (everything := _enumerate(space)) is not None:
        return best_of(asked, rows(everything), metric, is_exact=True)
    starts = [cast("Config", {**config, **space.fixed}) for config in known]
    beam = _best_few(asked, [*starts, *space.sample(_N_RANDOM, seed=0)], metric)
    beam = _climb(asked, beam, metric)
    beam = _climb(asked, _best_few(asked, [*beam, *_grid(space, beam[0])], metric), metric)
    return best_of(asked, beam, metric, is_exact=False)


def _climb(asked: Queryable, beam: list[Config], metric: str) -> list[Config]:
    """Return the best few configs, none of whose neighbours is better than the first."""
    before: list[Config] = []
    while beam[:1] != before[:1]:
        near = [one for config in beam for one in asked.space.neighbors(config)]
        before, beam = beam, _best_few(asked, [*beam, *near], metric)
    return beam


def _grid(space: Space, config: Config) -> list[Config]:
    """Return the config with every pair of values, close to one another, of the floats that are searched."""
    floats = [parameter for parameter in space.parameters.values() if parameter.kind == "float"]
    axes = [np.geomspace(one.lower, one.upper, _N_GRID).tolist() for one in floats]
    names = [parameter.name for parameter in floats]
    return [cast("Config", {**config, **dict(zip(names, values, strict=True))}) for values in product(*axes)]


def _best_few(asked: Queryable, configs: list[Config], metric: str) -> list[Config]:
    """Return the best configs, the best one first; equally good ones in the order given, each once."""
    few: list[Config] = []
    for i in _order(asked, configs, metric).tolist():
        if configs[i] not in few:
            few.append(configs[i])
        if len(few) == _N_KEPT:
            break
    return few


def _order(asked: Queryable, configs: list[Config], metric: str) -> NDArray[np.intp]:
    values = asked.query_many(configs, metrics=(metric,))[metric]
    return np.argsort(-values if METRICS[metric].direction == "max" else values, kind="stable")


def _enumerate(space: Space) -> Columns | None:
    """Return every config of a space; None if there are too many, or a float is searched."""
    parameters = space.parameters
    n_configs = math.prod(len(parameter.choices) for parameter in parameters.values())  # a float has no choices
    if not 0 < n_configs <= _MOST_ENUMERATED:
        return None
    columns, rest = space.sample_columns(n_configs, seed=0), np.arange(n_configs)
    for name, parameter in parameters.items():
        rest, place = np.divmod(rest, len(parameter.choices))
        columns[name] = np.array(parameter.choices, dtype=COLUMN_DTYPES[name])[place]
    return columns
