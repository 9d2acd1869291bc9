"""Ranks over time, pairwise Wilcoxon tests with Holm's correction, and critical differences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import N_RESAMPLES, Interval, percentile_interval
from jahs.errors import InvalidArgument

__all__ = ["Comparison", "Pair", "compare", "holm", "mean_ranks", "rank_agreement", "ranks", "wilcoxon_p"]

_FEWEST_BLOCKS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A two-sided Wilcoxon signed-rank test of two arms, and how large their difference is.

    Attributes:
        one, other: numbers of the arms.
        p, p_holm: the p-value, and after Holm's correction.
        difference: median over blocks of one minus other.
        superiority: share of blocks in which one is better; ties count half.
    """

    one: int
    other: int
    p: float
    p_holm: float
    difference: float
    superiority: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """The content of a critical-difference diagram.

    Attributes:
        mean_ranks: 1 is best, (n_arms,).
        pairs: every pair of arms.
        cliques: maximal groups of two or more arms, adjacent in rank, without a significant pair; best first.
        alpha: significance level.
        n_blocks: number of paired blocks, (task, seed).
        p_friedman: p-value of Friedman's test that no arm differs; NaN for two arms.
    """

    mean_ranks: Floats
    pairs: tuple[Pair, ...]
    cliques: tuple[tuple[int, ...], ...]
    alpha: float
    n_blocks: int
    p_friedman: float


def ranks(values: Floats) -> Floats:
    """Return ranks along the first axis, 1 for the smallest; ties share their mean rank, and NaN ranks last."""
    return np.asarray(stats.rankdata(np.where(np.isnan(values), np.inf, values), axis=0), dtype=np.float64)


def mean_ranks(values: Floats) -> Floats:
    """Return the mean rank over blocks of (n_arms, n_blocks, ...), as (n_arms, ...)."""
    return np.asarray(ranks(values).mean(axis=1))


def wilcoxon_p(one: Floats, other: Floats) -> float:
    """Return the two-sided p-value of the signed-rank test on paired values; 1 if no pair differs."""
    difference = one - other
    if not np.any(difference):
        return 1.0
    # scipy uses the exact distribution for few blocks without ties. The ranks of zeros are split between both signs.
    return float(stats.wilcoxon(difference, zero_method="zsplit").pvalue)


def holm(p_values: Floats) -> Floats:
    """Return p-values after Holm's step-down correction, (n,)."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    result = np.empty(len(p_values))
    result[order] = np.minimum(adjusted, 1.0)
    return result


def compare(values: Floats, *, alpha: float = 0.05) -> Comparison:
    """Compare arms on paired blocks.

    Args:
        values: (n_arms, n_blocks), less is better, NaN without a result.
        alpha: significance level.

    Raises:
        InvalidArgument: fewer than two arms or blocks.
    """
    n_arms, n_blocks = values.shape
    if n_arms < 2 or n_blocks < _FEWEST_BLOCKS:
        raise InvalidArgument(f"values has {n_arms} arms and {n_blocks} blocks; a comparison requires two of each")
    of_arm = mean_ranks(values)
    # An arm without a result gets the worst result of all.
    worst = np.nanmax(values) if not np.all(np.isnan(values)) else 0.0
    filled = np.where(np.isnan(values), worst, values)
    numbers = list(combinations(range(n_arms), 2))
    p_values = np.array([wilcoxon_p(filled[i], filled[j]) for i, j in numbers])
    pairs = tuple(
        Pair(
            one=i,
            other=j,
            p=float(p),
            p_holm=float(corrected),
            difference=float(np.median(filled[i] - filled[j])),
            superiority=float((np.sign(filled[j] - filled[i]) / 2 + 0.5).mean()),
        )
        for (i, j), p, corrected in zip(numbers, p_values, holm(p_values), strict=True)
    )
    return Comparison(
        mean_ranks=of_arm,
        pairs=pairs,
        cliques=_cliques(of_arm, {(pair.one, pair.other) for pair in pairs if pair.p_holm < alpha}),
        alpha=alpha,
        n_blocks=n_blocks,
        p_friedman=_friedman_p(filled),
    )


def _friedman_p(values: Floats) -> float:
    if len(values) < 3:
        return float("nan")
    if not np.ptp(values, axis=0).any():
        return 1.0
    return float(stats.friedmanchisquare(*values).pvalue)


def rank_agreement(
    one: Floats,
    other: Floats,
    *,
    has_same_seeds: bool,
    n_resamples: int = N_RESAMPLES,
) -> Interval:
    """Return Kendall's tau-b between the arms' orders by mean final value in two worlds, with a bootstrap interval.

    Args:
        one, other: final values in each world, (n_arms, n_seeds).
        has_same_seeds: whether column i is the same seed in both worlds; then both resample the same columns.
        n_resamples: number of bootstrap resamples.
    """
    rng = np.random.default_rng(0)
    picks = [rng.integers(0, world.shape[1], size=(n_resamples, world.shape[1])) for world in (one, other)]
    if has_same_seeds:
        picks[1] = picks[0]
    means = [
        np.concatenate([world.mean(axis=1)[None], world[:, chosen].mean(axis=2).T])
        for world, chosen in zip((one, other), picks, strict=True)
    ]
    found = _tau(*means)
    return percentile_interval(float(found[0]), found[1:])


def _tau(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of each pair of rows, (n, n_arms) to (n,); 0 if all values of a row are equal."""
    i, j = np.triu_indices(one.shape[1], k=1)
    signs = [np.sign(world[:, i] - world[:, j]) for world in (one, other)]
    n_ordered = np.sqrt(np.prod([np.abs(sign).sum(axis=1) for sign in signs], axis=0))
    return np.asarray((signs[0] * signs[1]).sum(axis=1) / np.maximum(n_ordered, 1.0))


def _cliques(of_arm: Floats, differ: set[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    order: NDArray[np.intp] = np.argsort(of_arm, kind="stable")
    cliques: list[tuple[int, ...]] = []
    last_end = 0
    for begin in range(len(order)):
        end = begin + 1
        while end < len(order) and not any(
            (min(i, int(order[end])), max(i, int(order[end]))) in differ for i in order[begin:end].tolist()
        ):
            end += 1
        if end - begin > 1 and end > last_end:
            cliques.append(tuple(order[begin:end].tolist()))
            last_end = end
    return tuple(cliques)
