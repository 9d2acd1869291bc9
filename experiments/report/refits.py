"""The section on refits: whether orders and differences hold on them, and how much they explain of the variance.

A refit is a model of another sample of configs. What holds on the release but not on its refits may be a trait of the
release's models, not of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.report.comparison import comparison_of, finals, groups
from experiments.report.results import Results
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import HOLDS, Pair, crossed_variances, rank_agreement
from jahs.comparison.summaries import interval_text, number_text
from workshop.pages.document import Block, Table, Text, answer


def refits_blocks(results: Results) -> Iterator[str | Block]:
    """Yield how far orders and differences hold over refits; nothing without repetitions on refits."""
    rows, totals = [], np.zeros(3, dtype=int)
    for task in results.tasks:
        for title, arms in groups(results, task):
            on_release, on_refits = finals(results, task, arms)
            tests = comparison_of(results, task, arms)
            if on_refits.size and tests:
                significant = [pair for pair in tests.pairs if pair.is_significant]
                n_always = sum(_has_one_sign(on_release, on_refits, pair) for pair in significant)
                is_known = on_refits.shape[2] > 1
                n_hold = sum(pair.differs for pair in significant) if is_known else None
                totals += [len(significant), n_hold or 0, not is_known]
                counts = str(len(tests.pairs)), str(len(significant)), number_text(n_hold, 0), str(n_always)
                rows.append((task, title, *_row(arms, on_release, on_refits), *counts))
    if not rows:
        return
    values, by = "Final mean errors of the incumbents", "mean error"
    if results.study.combinations:
        values, by = "Final shares of hypervolume", "mean share"
    yield "Does it hold on refits?"
    n, n_hold, n_unknown = totals
    found = f"{n} pairs of arms differ significantly on the released models"
    if n_unknown:
        yield answer(
            f"{found}. With one seed on each refit, a change of sign may be chance, so it is not estimated whether "
            "they hold on the refits."
        )
    else:
        yield answer(
            f"{found}; by estimate, {n_hold} of them have the same sign on at least {100 * HOLDS:.0f} % of the refits. "
            "Only these count as different on this page."
        )
    yield Table(
        caption=f"{values} on the released models and on refits to resampled configs",
        columns=(
            *("task", "arms", "refits × seeds", "agreement of orders, Kendall's tau (95 % interval)"),
            *("tau of two halves of the seeds", "variance between refits (%)", "variance between seeds (%)"),
            *("rest of the variance (%)", "pairs", "significant pairs", "hold on refits", "same sign on every refit"),
        ),
        rows=tuple(rows),
        n_labels=2,
    )
    yield Text(
        f"Orders are by {by}. The agreement is between the released models and the mean of the refits, on the "
        "same seeds; tau between two halves of the seeds shows the effect of chance alone. Every refit has the same "
        "seeds, so shares of variance are from a crossed analysis of variance; given are the smallest and the largest "
        "of the arms, and the arm of the largest between refits."
    )
    yield Text(
        "The last column counts the pairs whose mean difference has the same sign on all refits. With few seeds, the "
        "sign of a small difference can change by chance, even between identical models. With two seeds or more on "
        "each refit, we therefore estimate the probability that a new refit gives the sign found on the released "
        f"models; a pair holds if it is at least {100 * HOLDS:.0f} %. The estimate assumes a normal distribution over "
        "refits. Its centre is the mean difference on the refits, corrected by the luck of their few seeds, as far as "
        "the released models with all seeds show it; its variance is the between-refit variance plus the squared "
        "standard error of the centre. With few refits and seeds the estimate is uncertain: if a pair does not hold, "
        "this does not show that its sign depends on the refit. Intervals over seeds and refits in the tables above "
        "add the between-refit variance to the squared standard error over seeds."
    )


def _has_one_sign(on_release: Floats, on_refits: Floats, pair: Pair) -> bool:
    """Return whether the mean difference has the sign of the release on every refit."""
    difference = float((on_release[pair.one] - on_release[pair.other]).mean())
    refit_differences = (on_refits[pair.one] - on_refits[pair.other]).mean(axis=1)
    return bool((np.sign(refit_differences) == np.sign(difference)).all())


def _row(arms: Sequence[Arm], on_release: Floats, on_refits: Floats) -> tuple[str, ...]:
    _, n_refits, n_seeds = on_refits.shape
    tau = rank_agreement(on_release[:, :n_seeds], on_refits.mean(axis=1), has_same_seeds=True)
    half = on_release.shape[1] // 2
    chance = rank_agreement(on_release[:, :half], on_release[:, half : 2 * half], has_same_seeds=False)
    shares = np.array([variance_shares(values) for values in on_refits])
    largest = ""
    if len(known := np.flatnonzero(np.isfinite(shares[:, 0]))):
        largest = f" ({arms[known[shares[known, 0].argmax()]].title})"
    refits, *others = map(_range_text, shares.T)
    return f"{n_refits} × {n_seeds}", interval_text(tau), f"{chance.value:.2f}", f"{refits}{largest}", *others


def _range_text(shares: Floats) -> str:
    """Return the smallest and the largest share of some arms in percent; a dash where none is known."""
    finite = 100 * shares[np.isfinite(shares)]
    return f"{finite.min():.0f} to {finite.max():.0f}" if finite.size else "–"


def variance_shares(values: Floats) -> tuple[float, float, float]:
    """Return the shares of the variance between refits, between seeds, and of the rest, of values (n_refits, n_seeds).

    They are NaN for fewer than two refits or seeds, or if the values do not vary.
    """
    variances = crossed_variances(values)
    total = sum(variances)
    refits, seeds, rest = (variance / total if total > 0 else np.nan for variance in variances)
    return refits, seeds, rest
