"""Critical differences: tests of all pairs of arms that hold on refits, cliques of arms, and agreement of orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from scipy import stats

from jahs.comparison.logs import Floats
from jahs.comparison.ranks import ALPHA, Pair, mean_ranks, pairs_of_groups, without_gaps
from jahs.comparison.summaries import FEWEST_SEEDS, Interval, t_quantile
from workshop.resampling import N_RESAMPLES, percentile_interval

HOLDS: Final = 0.95
"""The share of refits on which a difference must have the same sign to count."""


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


def compare_groups(groups: Sequence[tuple[Floats, Floats | None]]) -> list[Comparison]:
    """Compare the arms of each group, at least two on two blocks; Holm's correction is over the pairs of all groups.

    Args:
        groups: values (n_arms, n_blocks), less is better, NaN without a result, which is worse than every result; and
            the values of the same arms on refits of the release, (n_arms, n_refits, n_seeds), or None. The seeds of the
            refits are those of the first blocks. With fewer than two of them, no statement about refits is made.
    """
    tests = pairs_of_groups([values for values, _ in groups])
    comparisons = []
    for (values, on_refits), tested in zip(groups, tests, strict=True):
        pairs = tested
        if on_refits is not None and on_refits.shape[2] > 1:
            pairs = tuple(_on_refits(pair, values, on_refits) for pair in tested)
        arm_ranks = mean_ranks(values)
        comparisons.append(
            Comparison(
                mean_ranks=arm_ranks,
                pairs=pairs,
                cliques=_cliques(arm_ranks, {(pair.one, pair.other) for pair in pairs if pair.differs}),
                alpha=ALPHA,
                n_family=sum(map(len, tests)),
                n_blocks=values.shape[1],
                p_friedman=_friedman_p(without_gaps(values)),
            )
        )
    return comparisons


def _on_refits(pair: Pair, values: Floats, on_refits: Floats) -> Pair:
    """Return a pair with its mean difference and the share of refits on which it holds, if no result is missing."""
    arms = [pair.one, pair.other]
    if np.isnan(values[arms]).any() or not np.isfinite(on_refits[arms]).all():
        return pair
    differences, refit_differences = (each[pair.one] - each[pair.other] for each in (values, on_refits))
    sign = np.sign(pair.rank_sum or differences.mean())
    holds = _share_that_holds(differences * sign, refit_differences * sign)
    mean = mean_with_refits(differences, refit_differences)
    return replace(pair, mean=mean, holds=holds, differs=pair.is_significant and holds >= HOLDS)


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
    """Return the p-value of Friedman's test of (n_arms, n_blocks); NaN for two arms, 1 if all are equal."""
    if len(values) < 3:
        return math.nan
    return float(stats.friedmanchisquare(*values).pvalue) if (values != values[0]).any() else 1.0


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
