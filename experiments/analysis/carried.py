"""Whether the order of a study's arms, and the differences between them, carry over to another landscape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from experiments.analysis.critical_differences import rank_agreement
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Pair
from jahs.comparison.summaries import Interval
from workshop.ranks import kendall_tau

Verdict = Literal["carries over", "same sign", "other sign", "reversed", "only there"]
VERDICTS: Final[Mapping[Verdict, str]] = {
    "carries over": "significant on both, same sign of the rank test",
    "same sign": "significant on this task alone, same sign of the rank test",
    "other sign": "significant on this task alone, other sign of the rank test, or none",
    "reversed": "significant on both, opposite signs of the rank test",
    "only there": "significant on the real landscape alone",
}
"""What each verdict means."""

_N_SPLITS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between two arms that is significant on at least one of the landscapes."""

    one: int  # number of the arm that the rank test finds better here, or there if it is significant only there
    other: int  # number of the other arm
    here: float  # mean difference, one minus other, on this task
    there: float  # the same on the real landscape
    verdict: Verdict
    holds: bool | None  # whether it holds on refits of this task; None if it is not significant here, or without refits


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAgreement:
    """Agreement of two landscapes about the same arms."""

    tau: Interval  # Kendall's tau of the orders by mean final value, over the seeds of both; NaN if one has no order
    split_half: float  # see `split_half_of_two`; it uses half of the seeds, so `tau` may exceed it
    findings: tuple[Finding, ...]  # every difference that is significant on at least one of them

    def count(self, verdict: Verdict) -> int:
        """Return the number of findings with this verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def n_hold(self) -> int | None:
        """The number of findings that hold on refits of this task; None if this is known of none."""
        known = [finding.holds for finding in self.findings if finding.holds is not None]
        return sum(known) if known else None


def carry_over(here: Floats, there: Floats, pairs: Sequence[Pair], pairs_there: Sequence[Pair]) -> OrderAgreement:
    """Compare the final values of the same arms on two landscapes, (n_arms, n_seeds) each; lower is better.

    The seeds are independent. `pairs` and `pairs_there` are the tests of every pair of arms, in the same order, judged
    by the corrected p-value and the sign of the rank sum; what holds on refits of this task does not change a verdict.
    """
    means = here.mean(axis=1), there.mean(axis=1)
    findings = []
    for pair, pair_there in zip(pairs, pairs_there, strict=True):
        if pair.is_significant or pair_there.is_significant:
            i, j = pair.one, pair.other
            if (pair if pair.is_significant else pair_there).rank_sum > 0:
                i, j = j, i
            gap, gap_there = (float(mean[i] - mean[j]) for mean in means)
            verdict = _verdict(pair, pair_there)
            holds = pair.differs if pair.is_significant and pair.holds is not None else None
            findings.append(Finding(one=i, other=j, here=gap, there=gap_there, verdict=verdict, holds=holds))
    tau = rank_agreement(here, there, has_same_seeds=False)
    if not all(np.ptp(mean) for mean in means):  # all arms are equal
        tau = Interval(value=math.nan, low=math.nan, high=math.nan)
    return OrderAgreement(tau=tau, split_half=split_half_of_two(here, there), findings=tuple(findings))


def _verdict(pair: Pair, pair_there: Pair) -> Verdict:
    if not pair.is_significant:
        return "only there"
    has_same_sign = pair.rank_sum * pair_there.rank_sum > 0
    if pair_there.is_significant:
        return "carries over" if has_same_sign else "reversed"
    return "same sign" if has_same_sign else "other sign"


def split_half_of_two(one: Floats, other: Floats) -> float:
    """Return the geometric mean of two landscapes' `split_half`; 0 if one is negative."""
    return math.sqrt(max(split_half(one), 0.0) * max(split_half(other), 0.0))


def split_half(values: Floats) -> float:
    """Return the mean Kendall's tau between the orders of arms by two halves of the seeds, of (n_arms, n_seeds).

    Returns:
        NaN for fewer than two seeds, or if all arms have the same values.
    """
    half = values.shape[1] // 2
    if not half:
        return math.nan
    rng = np.random.default_rng(0)
    orders = [rng.permutation(values.shape[1]) for _ in range(_N_SPLITS)]
    taus = [
        kendall_tau(values[:, order[:half]].mean(axis=1), values[:, order[half : 2 * half]].mean(axis=1))
        for order in orders
    ]
    known = [tau for tau in taus if not math.isnan(tau)]
    return float(np.mean(known)) if known else math.nan
