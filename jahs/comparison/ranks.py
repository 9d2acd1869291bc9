"""Ranks over time, pairwise Wilcoxon tests with Holm's correction, and critical differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import FEWEST_SEEDS, N_RESAMPLES, Interval, percentile_interval, t_quantile
from jahs.errors import InvalidArgument

HOLDS: Final = 0.95
"""The share of refits on which a difference must have the same sign to count."""

_ALPHA: Final = 0.05


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
        return self.p_holm < _ALPHA


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """The content of a critical-difference diagram."""

    mean_ranks: Floats  # 1 is best, (n_arms,)
    pairs: tuple[Pair, ...]  # every pair of arms
    cliques: tuple[tuple[int, ...], ...]  # maximal groups, adjacent in rank, without a pair that differs
    alpha: float  # significance level
    n_family: int  # number of pairs in Holm's correction
    n_blocks: int  # paired blocks, (task, seed)
    p_friedman: float  # p-value of Friedman's test that no arm differs; NaN for two arms


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
    return math.floor(math.log2(n_pairs / _ALPHA)) + 2


def compare_groups(groups: Sequence[tuple[Floats, Floats | None]]) -> list[Comparison]:
    """Compare the arms of each group, at least two on two blocks; Holm's correction is over the pairs of all groups.

    Args:
        groups: values (n_arms, n_blocks), less is better, NaN without a result, which is worse than every result; and
            the values of the same arms on refits of the release, (n_arms, n_refits, n_seeds), or None. The seeds of the
            refits are those of the first blocks. With fewer than two of them, no statement about refits is made.
    """
    tests = []
    for values, _ in groups:
        n_arms, n_blocks = values.shape
        if n_arms < 2 or n_blocks < 2:
            raise InvalidArgument(f"values has {n_arms} arms and {n_blocks} blocks; a comparison requires two of each")
        known = values[~np.isnan(values)]
        # A missing result is worse than the worst by more than any two results differ: its difference ranks last.
        worse = 2 * known.max() - known.min() + 1 if len(known) else 0.0
        filled = np.where(np.isnan(values), worse, values)
        tests.append((filled, [wilcoxon_p(filled[i], filled[j]) for i, j in combinations(range(n_arms), 2)]))
    corrected = holm(np.array([p for _, p_values in tests for p in p_values]))
    comparisons = []
    for (values, on_refits), (filled, p_values) in zip(groups, tests, strict=True):
        p_holms, corrected = corrected[: len(p_values)], corrected[len(p_values) :]
        numbers = combinations(range(len(filled)), 2)
        pairs = tuple(
            _pair(i, j, p=p, p_holm=float(p_holm), values=filled, is_known=~np.isnan(values), on_refits=on_refits)
            for (i, j), p, p_holm in zip(numbers, p_values, p_holms, strict=True)
        )
        arm_ranks = mean_ranks(values)
        comparisons.append(
            Comparison(
                mean_ranks=arm_ranks,
                pairs=pairs,
                cliques=_cliques(arm_ranks, {(pair.one, pair.other) for pair in pairs if pair.differs}),
                alpha=_ALPHA,
                n_family=sum(len(p_values) for _, p_values in tests),
                n_blocks=values.shape[1],
                p_friedman=_friedman_p(filled),
            )
        )
    return comparisons


def _pair(
    i: int, j: int, *, p: float, p_holm: float, values: Floats, is_known: NDArray[np.bool_], on_refits: Floats | None
) -> Pair:
    differences, rank_sum = values[i] - values[j], float(signed_ranks(values[i], values[j]).sum())
    are_known, n = is_known[i] & is_known[j], len(differences)
    middle = np.argsort(differences, kind="stable")[(n - 1) // 2 : n // 2 + 1]
    mean = holds = None
    if on_refits is not None and on_refits.shape[2] > 1 and are_known.all() and np.isfinite(on_refits[[i, j]]).all():
        refit_differences = on_refits[i] - on_refits[j]
        mean = mean_with_refits(differences, refit_differences)
        sign = np.sign(rank_sum or differences.mean())
        holds = _share_that_holds(differences * sign, refit_differences * sign)
    return Pair(
        one=i,
        other=j,
        p=p,
        p_holm=p_holm,
        rank_sum=rank_sum,
        difference=float(np.median(differences)) if are_known[middle].all() else math.nan,
        superiority=float((0.5 - np.sign(differences) / 2).mean()),
        mean=mean,
        holds=holds,
        differs=p_holm < _ALPHA and (holds is None or holds >= HOLDS),
    )


def mean_with_refits(values: Floats, on_refits: Floats) -> Interval:
    """Return the mean over seeds, (n_seeds,), with a 95 % interval that contains the error of the models.

    Its variance is the variance of the mean over seeds plus the variance between refits, from values on refits,
    (n_refits, n_seeds). The interval is Student's, with Satterthwaite's degrees of freedom. It is NaN without two
    refits or seeds.
    """
    of_seeds = float(values.var(ddof=1)) / len(values) if len(values) > 1 else math.nan
    between = crossed_variances(on_refits)[0]
    mean, variance = float(values.mean()), of_seeds + between
    reach = math.sqrt(variance)
    if variance > 0:
        reach *= t_quantile(variance**2 / (of_seeds**2 / (len(values) - 1) + between**2 / (len(on_refits) - 1)))
    return Interval(value=mean, low=mean - reach, high=mean + reach)


def _share_that_holds(own: Floats, on_refits: Floats) -> float:
    """Return the estimated share of refits on which a difference is positive.

    It is known from many seeds on the released models, `own` (n_seeds,), and from the first few of these on each refit,
    (n_refits, n_few). A few seeds may have the other sign by chance, even on the released models. So the mean over the
    refits is corrected by the luck of these seeds on the released models, times the correlation of two models over
    seeds (a control variate). The share is the probability that the difference on a new refit is positive, from a
    normal distribution with the variance between refits and the variance of the corrected mean.
    """
    few, n = on_refits.shape[1], len(own)
    between, _, rest = crossed_variances(on_refits)
    total = float(own.var(ddof=1))
    shared = max(total - rest, 0.0)  # the part of the variance over seeds that all models have in common
    correlation = shared / total if total else 0.0
    mean = float(on_refits.mean() + correlation * (own.mean() - own[:few].mean()))
    of_refits = float(on_refits.mean(axis=1).var(ddof=1)) / len(on_refits)
    of_seeds = shared / few - correlation * shared * (1 / few - 1 / n)
    variance = between + of_refits + of_seeds
    return (1 + math.erf(mean / math.sqrt(2 * variance))) / 2 if variance > 0 else float(mean > 0)


def crossed_variances(values: Floats) -> tuple[float, float, float]:
    """Return the variances between refits, between seeds, and of residuals, of values (n_refits, n_seeds).

    Every refit has the same seeds: refits and seeds are crossed random effects. The variance of either means contains
    a part of the residual variance, which is subtracted. They are NaN for fewer than two refits or seeds.
    """
    if min(values.shape) < 2:
        return math.nan, math.nan, math.nan
    refit_means, seed_means = values.mean(axis=1), values.mean(axis=0)
    residuals = values - refit_means[:, None] - seed_means + values.mean()
    rest = float((residuals**2).sum()) / math.prod(n - 1 for n in values.shape)
    refits, seeds = (
        max(float(means.var(ddof=1)) - rest / n, 0.0)
        for means, n in zip((refit_means, seed_means), values.shape[::-1], strict=True)
    )
    return refits, seeds, rest


def _friedman_p(values: Floats) -> float:
    """Return the p-value of Friedman's test, corrected for ties, of (n_arms, n_blocks)."""
    n_arms = len(values)
    if n_arms < 3:
        return float("nan")
    centred = ranks(values) - (n_arms + 1) / 2
    spread = float((centred**2).sum())
    return _chi2_tail((n_arms - 1) * float((centred.sum(axis=1) ** 2).sum()) / spread, n_arms - 1) if spread else 1.0


def _chi2_tail(x: float, dof: int) -> float:
    """Return the chance that a chi-squared variable with an integer number of degrees of freedom exceeds `x`."""
    half, is_odd = x / 2, dof % 2
    first = math.erfc(math.sqrt(half)) if is_odd else 0.0
    powers = (i + is_odd / 2 for i in range(dof // 2))
    return first + math.exp(-half) * math.fsum(math.pow(half, power) / math.gamma(power + 1) for power in powers)


def rank_agreement(one: Floats, other: Floats, *, has_same_seeds: bool, n_resamples: int = N_RESAMPLES) -> Interval:
    """Return Kendall's tau-b between the arms' orders by mean final value in two worlds, with a bootstrap interval.

    Values are (n_arms, n_seeds). If column i is the same seed in both worlds, both resample the same columns. The
    percentile interval is extended to the estimate: resampling adds noise, so it lowers a large tau. It is NaN for
    fewer than `FEWEST_SEEDS`.
    """
    if min(one.shape[1], other.shape[1]) < FEWEST_SEEDS:
        value = float(_tau(one.mean(axis=1)[None], other.mean(axis=1)[None])[0])
        return Interval(value=value, low=math.nan, high=math.nan)
    rng = np.random.default_rng(0)
    picks = [rng.integers(0, world.shape[1], size=(n_resamples, world.shape[1])) for world in (one, other)]
    if has_same_seeds:
        picks[1] = picks[0]
    means = [
        np.concatenate([world.mean(axis=1)[None], world[:, columns].mean(axis=2).T])
        for world, columns in zip((one, other), picks, strict=True)
    ]
    taus = _tau(*means)
    tau = percentile_interval(float(taus[0]), taus[1:])
    return Interval(value=tau.value, low=min(tau.low, tau.value), high=max(tau.high, tau.value))


def _tau(one: Floats, other: Floats) -> Floats:
    """Return Kendall's tau-b of each pair of rows, (n, n_arms) to (n,); 0 if all values of a row are equal."""
    i, j = np.triu_indices(one.shape[1], k=1)
    signs = [np.sign(world[:, i] - world[:, j]) for world in (one, other)]
    n_ordered = np.sqrt(np.prod([np.abs(sign).sum(axis=1) for sign in signs], axis=0))
    return np.asarray((signs[0] * signs[1]).sum(axis=1) / np.maximum(n_ordered, 1.0))


def _cliques(arm_ranks: Floats, differ: set[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    order = tuple(np.argsort(arm_ranks, kind="stable").tolist())
    groups = [
        order[begin:end]
        for begin, end in combinations(range(len(order) + 1), 2)
        if end - begin > 1 and not any((min(pair), max(pair)) in differ for pair in combinations(order[begin:end], 2))
    ]
    return tuple(group for group in groups if not any(set(group) < set(other) for other in groups))
