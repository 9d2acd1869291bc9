"""Variance decomposition over the keys of a space: Sobol indices by the pick-freeze method.

Two independent samples of configs are mixed: the keys of a group come from the other sample, all other keys stay. The
main effect of the group is the share of the variance that follows the group into the mixture. Its total effect, which
adds all its interactions, is the share that changes with the group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.spaces.columns import Columns
from workshop.resampling import percentile_interval

TIMES: Final = " × "  # separates the names of interacting groups
_N_RESAMPLES: Final = 200

Answer: TypeAlias = Callable[[Columns], Floats]  # maps n configs to n values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Values of two samples of configs, and of mixtures of both."""

    one: Floats  # (n,)
    other: Floats  # (n,)
    mixed: Mapping[str, Floats]  # by group, of configs with the group's keys from `other` and all others from `one`

    def changed(self, by: Callable[[Floats], Floats]) -> Draws:
        """Return the draws on another scale."""
        return Draws(
            one=by(self.one), other=by(self.other), mixed={group: by(values) for group, values in self.mixed.items()}
        )


def draw(answer: Answer, one: Columns, other: Columns, groups: Mapping[str, Collection[str]]) -> Draws:
    """Return the values of two samples and of their mixture for each group."""
    mixed = {
        group: answer({key: (other if key in keys else one)[key] for key in one}) for group, keys in groups.items()
    }
    return Draws(one=answer(one), other=answer(other), mixed=mixed)


def unions(parts: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the groups that `decomposition` needs: every union of parts except the union of all."""
    return {
        TIMES.join(names): tuple(key for name in names for key in parts[name])
        for size in range(1, len(parts))
        for names in combinations(parts, size)
    }


def effects(draws: Draws) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return the main effect of each group, and its total effect: the main effect plus all interactions.

    Both are shares of the variance; InvalidArgument if the values do not vary.
    """
    weights = _weights(len(draws.one))
    main = {group: _interval(1 - _jansen(draws, draws.other, mix, weights)) for group, mix in draws.mixed.items()}
    total = {group: _interval(_jansen(draws, draws.one, mix, weights)) for group, mix in draws.mixed.items()}
    return main, total


def decomposition(draws: Draws, parts: Sequence[str]) -> dict[str, Interval]:
    """Return the main effects of parts and all their interactions, as shares of the variance that sum to one.

    Args:
        draws: values of every group of `unions`; InvalidArgument if they do not vary.
        parts: names of the parts, which together have all keys that vary.
    """
    weights = _weights(len(draws.one))
    shares: dict[tuple[str, ...], Floats] = {}
    for size in range(1, len(parts) + 1):
        for names in combinations(parts, size):
            within = [shares[fewer] for n in range(1, size) for fewer in combinations(names, n)]
            shares[names] = _closed_index(draws, names, parts, weights) - np.sum(within, axis=0)
    return {TIMES.join(names): _interval(share) for names, share in shares.items()}


def _closed_index(draws: Draws, names: Sequence[str], parts: Sequence[str], weights: Floats) -> Floats:
    """Return the closed index of some parts, (1 + n_resamples,), from pairs that differ in all other parts only."""
    others = [part for part in parts if part not in names]
    if not others:
        return np.ones(len(weights))
    pairs = ((draws.other, draws.mixed[TIMES.join(names)]), (draws.one, draws.mixed[TIMES.join(others)]))
    index: Floats = 1 - np.mean([_jansen(draws, *pair, weights) for pair in pairs], axis=0)
    return index


def _jansen(draws: Draws, one: Floats, other: Floats, weights: Floats) -> Floats:
    """Return the squared difference of pairs relative to independent values (Jansen, 1999), (1 + n_resamples,).

    It is exactly zero for identical pairs, and exactly one for the independent values themselves.
    """
    independent = (draws.one - draws.other) ** 2
    if not independent.any():
        raise InvalidArgument("the values do not vary, so their variance cannot be decomposed")
    ratio: Floats = (weights @ (one - other) ** 2) / (weights @ independent)
    return ratio


@functools.lru_cache(maxsize=1)
def _weights(n: int) -> Floats:
    """Return weights (1 + n_resamples, n) of the sample and its bootstrap resamples; each row sums to one."""
    rng = np.random.default_rng(0)
    counts = [np.ones(n), *(np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(_N_RESAMPLES))]
    return np.array(counts, dtype=np.float64) / n


def _interval(estimates: Floats) -> Interval:
    return percentile_interval(float(estimates[0]), estimates[1:])
