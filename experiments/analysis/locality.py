"""Locality: autocorrelation of random walks, as in NAS-Bench-101, and mutations of the best configs.

Each step of a walk is one of `jahs.Space.neighbors`, with equal probability. If only some keys change, the walks of one
context share the values of all other keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from jahs.adapters.values import shown_parameters
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, percentile_interval
from jahs.errors import InvalidArgument
from jahs.optimizers.moves import mutated
from jahs.spaces.configs import Config
from jahs.spaces.space import Space

_N_RESAMPLES: Final = 500


def contexts(space: Space, keys: Sequence[str], n: int, *, seed: int) -> list[Space]:
    """Return `n` spaces that search only `keys`, with all other keys of `space` fixed at random values."""
    fixed = [key for key in space.searched if key not in set(keys)]
    columns = space.sample_columns(n, seed=seed)
    return [space.fix({key: columns[key][i] for key in fixed}) for i in range(n)]


def random_walk(space: Space, n_steps: int, *, seed: int) -> list[Config]:
    """Return a random config and the configs after each of `n_steps` random moves."""
    rng = np.random.default_rng([seed, 1])
    visited = [space.sample(seed=seed)]
    for _ in range(n_steps):
        near = space.neighbors(visited[-1])
        visited.append(near[int(rng.integers(len(near)))])
    return visited


def autocorrelation(values: Floats, means: Floats, *, n_lags: int) -> list[Interval]:
    """Return the correlation of values 1, 2, ... `n_lags` steps apart, with bootstrap intervals over contexts.

    Args:
        values: (n_contexts, n_walks, n_steps + 1).
        means: (n_contexts,), the mean over each context; differences between contexts do not count.
        n_lags: the largest distance, at most the number of steps.
    """
    n_places = values.shape[2]
    dev = values - means[:, None, None]
    products = np.array([(dev[..., : n_places - lag] * dev[..., lag:]).mean(axis=(1, 2)) for lag in range(n_lags + 1)])
    if not products[0].any():
        raise InvalidArgument("values are all equal, so a correlation is undefined")
    picks = np.random.default_rng(0).integers(0, len(values), (_N_RESAMPLES, len(values)))
    cov, resampled = products.mean(axis=1), products[:, picks].mean(axis=2)  # (n_lags + 1, n_resamples)
    return [percentile_interval(float(cov[i] / cov[0]), resampled[i] / resampled[0]) for i in range(1, n_lags + 1)]


def mutants(
    space: Space, config: Config, *, n: int, n_keys: int, decades: float, keys: Sequence[str], seed: int
) -> list[Config]:
    """Return `n` mutants of `config`, each with `n_keys` of `keys` changed (`jahs.optimizers.moves.mutated`)."""
    rng = np.random.default_rng(seed)
    candidates = [key for key in shown_parameters(space) if key in set(keys)]
    chosen = (rng.choice(len(candidates), n_keys, replace=False).tolist() for _ in range(n))
    return [mutated(space, config, rng, keys=[candidates[i] for i in picked], decades=decades) for picked in chosen]
