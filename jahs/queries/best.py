"""The best known config, the baseline of regret: among given configs, or by a search."""

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
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import COLUMN_DTYPES, Columns, Configs, codes, columns_of_codes, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import PARAMETERS, is_integer
from jahs.spaces.space import Space
from jahs.tasks.metrics import METRICS

_MOST_ENUMERATED: Final = 50_000  # a larger space is searched
_N_RANDOM: Final = 20_000
_N_KEPT: Final = 10
_N_GRID: Final = 100


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
