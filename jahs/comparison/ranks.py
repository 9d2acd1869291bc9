"""Ranks, and Wilcoxon tests of all pairs of arms with Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument

ALPHA: Final = 0.05
"""The significance level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A two-sided Wilcoxon signed-rank test of two arms, and how large their difference is."""

    one: int  # number of an arm
    other: int  # number of the other arm
    p: float
    p_holm: float  # after Holm's correction
    rank_sum: float  # sum of the test's signed ranks of one minus other; below zero, one is better
    difference: float  # median over blocks of one minus other; NaN if it rests on a missing result
    superiority: float  # share of blocks in which one is better; ties count half
    mean: Interval | None  # mean of one minus other, with an interval; None without refits, or with a missing result
    holds: float | None  # estimated share of refits on which the arms differ in this direction; None as for `mean`
    differs: bool  # whether the difference is significant and holds on at least 95 % of the refits

    @property
    def is_significant(self) -> bool:
        """Whether the test is significant after Holm's correction, whatever holds on refits."""
        return self.p_holm < ALPHA


def ranks(values: Floats) -> Floats:
    """Return ranks along the first axis, 1 for the smallest; ties share their mean rank, and NaN ranks last."""
    filled = np.where(np.isnan(values), np.inf, values)
    n_below = np.stack([(filled < row).sum(axis=0) for row in filled])
    n_equal = np.stack([(filled == row).sum(axis=0) for row in filled])
    return np.asarray(n_below + (n_equal + 1) / 2, dtype=np.float64)


def mean_ranks(values: Floats) -> Floats:
    """Return the mean rank over blocks of (n_arms, n_blocks, ...), as (n_arms, ...)."""
    return np.asarray(ranks(values).mean(axis=1))


def signed_ranks(one: Floats, other: Floats) -> Floats:
    """Return the ranks of the absolute differences of paired values, with the sign of one minus other, (n,).

    Differences that are equal to nine decimals tie; the rank of no difference is 0.
    """
    difference = np.round(one - other, 9)
    return np.asarray(np.sign(difference) * ranks(np.abs(difference)))


def wilcoxon_p(one: Floats, other: Floats) -> float:
    """Return the exact two-sided p-value of the signed-rank test on paired values; 1 if no pair differs.

    Under the null hypothesis, every rank has either sign. The ranks of zeros are split between both signs.
    """
    halves = np.rint(2 * signed_ranks(one, other)).astype(np.int64)  # ties have half ranks
    moves = np.abs(halves[halves != 0])
    chance = np.zeros(int(moves.sum()) + 1)  # probability of each sum of positive ranks
    chance[0] = 1.0
    for move in moves.tolist():
        chance[move:] = (chance[move:] + chance[:-move]) / 2
        chance[:move] /= 2
    positive = int(halves[halves > 0].sum())
    tails = chance[: positive + 1].sum(), chance[positive:].sum()
    return float(min(1.0, 2 * min(tails)))


def holm(p_values: Floats) -> Floats:
    """Return p-values after Holm's step-down correction, (n,)."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    result = np.empty(len(p_values))
    result[order] = np.minimum(adjusted, 1.0)
    return result


def least_seeds(n_pairs: int) -> int:
    """Return the number of seeds from which one of so many pairs can differ significantly.

    The smallest p-value of the signed-rank test is 2 ** (1 - n_seeds), and Holm's correction multiplies it by the
    number of pairs.
    """
    return math.floor(math.log2(n_pairs / ALPHA)) + 2


def pairs_of_groups(groups: Sequence[Floats]) -> list[tuple[Pair, ...]]:
    """Test all pairs of arms of each group; Holm's correction is over the pairs of all groups.

    Args:
        groups: values (n_arms, n_blocks), at least two arms on two blocks; less is better, and NaN without a result is
            worse than every result.
    """
    for values in groups:
        n_arms, n_blocks = values.shape
        if n_arms < 2 or n_blocks < 2:
            raise InvalidArgument(f"values has {n_arms} arms and {n_blocks} blocks; a comparison requires two of each")
    filled = [without_gaps(values) for values in groups]
    p_values = [[wilcoxon_p(one, other) for one, other in combinations(rows, 2)] for rows in filled]
    corrected = holm(np.array([p for group in p_values for p in group])).tolist()
    found = []
    for values, rows, group in zip(groups, filled, p_values, strict=True):
        p_holms, corrected = corrected[: len(group)], corrected[len(group) :]
        numbered = zip(combinations(range(len(rows)), 2), group, p_holms, strict=True)
        found.append(
            tuple(_pair(i, j, p=p, p_holm=p_holm, values=values, filled=rows) for (i, j), p, p_holm in numbered)
        )
    return found


def without_gaps(values: Floats) -> Floats:
    """Return values with a number in place of each missing one, which is worse than the worst result.

    It is worse by more than any two results differ: its difference ranks last.
    """
    known = values[~np.isnan(values)]
    worse = 2 * known.max() - known.min() + 1 if len(known) else 0.0
    return np.where(np.isnan(values), worse, values)


def _pair(i: int, j: int, *, p: float, p_holm: float, values: Floats, filled: Floats) -> Pair:
    differences, n = filled[i] - filled[j], values.shape[1]
    middle = np.argsort(differences, kind="stable")[(n - 1) // 2 : n // 2 + 1]
    is_known = not np.isnan(values[[i, j]][:, middle]).any()
    return Pair(
        one=i,
        other=j,
        p=p,
        p_holm=p_holm,
        rank_sum=float(signed_ranks(filled[i], filled[j]).sum()),
        difference=float(np.median(differences)) if is_known else math.nan,
        superiority=float((0.5 - np.sign(differences) / 2).mean()),
        mean=None,
        holds=None,
        differs=p_holm < ALPHA,
    )
