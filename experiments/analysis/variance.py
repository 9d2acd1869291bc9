"""Which keys decide where a config stands: shares of a variance (Sobol's indices, by picking and freezing).

Two independent samples of configs are mixed: every key of a group comes from the other sample, the rest stays. What
the group decides alone is how far an answer follows it into the mixture; what it decides alone or together with others
is how much an answer changes. The difference is interplay: what no search of one part of the space can see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from experiments.analysis.logs import Floats
from experiments.analysis.summaries import Interval, percentile_interval
from jahs.errors import InvalidArgument, UnknownName
from jahs.spaces.columns import Columns

__all__ = ["INTERPLAY", "Draws", "decomposition", "draw", "shares_alone", "shares_in_all", "unions"]

INTERPLAY: Final = " × "
"""Stands between the names of groups that decide something together."""

_N_RESAMPLES: Final = 200

Answer: TypeAlias = Callable[[Columns], Floats]
"""From n configs to their n answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Answers for two samples of configs, and for mixtures of both.

    Attributes:
        one, other: (n,).
        mixed: by group, the answers where the group's keys come from `other` and the rest from `one`.
    """

    one: Floats
    other: Floats
    mixed: Mapping[str, Floats]

    def changed(self, by: Callable[[Floats], Floats]) -> Draws:
        """Return the same draws on another scale."""
        return Draws(
            one=by(self.one), other=by(self.other), mixed={group: by(found) for group, found in self.mixed.items()}
        )


def draw(answer: Answer, one: Columns, other: Columns, groups: Mapping[str, Iterable[str]]) -> Draws:
    """Ask for two samples and for the mixture that each group makes of them.

    Raises:
        UnknownName: a group has a key that the samples lack.
    """
    mixed = {}
    for group, keys in groups.items():
        for key in (chosen := frozenset(keys)):
            if key not in one:
                raise UnknownName.of(f"group {group!r}", key, one)
        mixed[group] = answer({key: (other if key in chosen else one)[key] for key in one})
    return Draws(one=answer(one), other=answer(other), mixed=mixed)


def unions(parts: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the groups that `decomposition` needs: every union of parts but that of all."""
    return {
        INTERPLAY.join(names): tuple(key for name in names for key in parts[name])
        for size in range(1, len(parts))
        for names in combinations(parts, size)
    }


def shares_alone(draws: Draws) -> dict[str, Interval]:
    """What each group decides alone: the share of the variance that is left of averages over everything else.

    Raises:
        InvalidArgument: the answers do not vary.
    """
    weights = _weights(len(draws.one))
    return {group: _interval(1 - _apart(draws, draws.other, found, weights)) for group, found in draws.mixed.items()}


def shares_in_all(draws: Draws) -> dict[str, Interval]:
    """What each group decides alone or together with others.

    Raises:
        InvalidArgument: the answers do not vary.
    """
    weights = _weights(len(draws.one))
    return {group: _interval(_apart(draws, draws.one, found, weights)) for group, found in draws.mixed.items()}


def decomposition(draws: Draws, parts: Sequence[str]) -> dict[str, Interval]:
    """Divide the variance among parts that hold every key that varies, and their interplays; the shares sum to one.

    Args:
        draws: with every group of `unions`.
        parts: names of the parts.

    Raises:
        InvalidArgument: the answers do not vary.
    """
    weights = _weights(len(draws.one))
    decided: dict[tuple[str, ...], Floats] = {}
    for size in range(1, len(parts) + 1):
        for names in combinations(parts, size):
            within = [decided[fewer] for n in range(1, size) for fewer in combinations(names, n)]
            decided[names] = _decided_by(draws, names, parts, weights) - np.sum(within, axis=0)
    return {INTERPLAY.join(names): _interval(found) for names, found in decided.items()}


def _decided_by(draws: Draws, names: Sequence[str], parts: Sequence[str], weights: Floats) -> Floats:
    """(1 + n_resamples,), from two pairs of answers that differ in all other parts and nothing else."""
    rest = [part for part in parts if part not in names]
    if not rest:
        return np.ones(len(weights))
    pairs = ((draws.other, draws.mixed[INTERPLAY.join(names)]), (draws.one, draws.mixed[INTERPLAY.join(rest)]))
    found: Floats = 1 - np.mean([_apart(draws, *pair, weights) for pair in pairs], axis=0)
    return found


def _apart(draws: Draws, one: Floats, other: Floats, weights: Floats) -> Floats:
    """(1 + n_resamples,), how far pairs lie apart as a share of how far independent answers do (Jansen, 1999).

    Where the pairs are the same answers this is exactly nothing, and where they are the independent ones exactly one.
    """
    independent = (draws.one - draws.other) ** 2
    if not independent.any():
        raise InvalidArgument("the answers do not vary, so there is no variance to divide")
    found: Floats = (weights @ (one - other) ** 2) / (weights @ independent)
    return found


@functools.lru_cache(maxsize=1)
def _weights(n: int) -> Floats:
    """(1 + n_resamples, n): the sample as it is, then resampled; each row sums to one."""
    rng = np.random.default_rng(0)
    counts = [np.ones(n), *(np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(_N_RESAMPLES))]
    return np.array(counts, dtype=np.float64) / n


def _interval(estimates: Floats) -> Interval:
    return percentile_interval(float(estimates[0]), estimates[1:])
