"""The sections on refits: whether orders and differences hold on them, and whether incumbents keep their ranks.

A refit is a model of another sample of configs. What holds on the release but not on its refits may be a trait of the
release's models, not of the task. A search exploits the errors of its model, which overestimates the accuracy of the
configs that are found. The runs on the released models never asked the refits, so an error that only the released
models make gives no arm an advantage.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.analysis.critical_differences import (
    HOLDS,
    Comparison,
    compare_groups,
    crossed_variances,
    rank_agreement,
)
from experiments.report.comparison import comparison_of, final_of, finals, groups, worst_of
from experiments.report.results import RepetitionResult, Results, split_by_run
from experiments.report.writing import table
from experiments.study import Arm
from jahs.comparison.benches import errors_by_refits, refits_of
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Pair
from jahs.comparison.summaries import number_text, summarize
from jahs.queries.benchmark import Benchmark
from workshop.pages.document import Block, Text, answer
from workshop.resampling import interval_text


def refits_blocks(results: Results) -> Iterator[str | Block]:
    """Yield how far orders and differences hold over refits; nothing without repetitions on refits."""
    rows, by_arm, totals = [], [], np.zeros(3, dtype=int)
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
                counts = len(tests.pairs), len(significant), number_text(n_hold, 0), n_always
                rows.append((task, title, *_refits_row(arms, on_release, on_refits), *counts))
                for arm, shares in zip(arms, map(variance_shares, on_refits), strict=True):
                    by_arm.append((task, title, arm.title, *(number_text(100 * share, 0) for share in shares)))
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
    yield table(
        f"{values} on the released models and on refits to resampled configs",
        (
            *("task", "arms", "refits × seeds", "agreement of orders, Kendall's tau (95 % interval)"),
            *("tau of two halves of the seeds", "variance between refits (%)", "variance between seeds (%)"),
            *("rest of the variance (%)", "pairs", "significant pairs", "hold on refits", "same sign on every refit"),
        ),
        rows,
        n_labels=2,
    )
    yield Text(
        f"Orders are by {by}. The agreement is between the released models and the mean of the refits, on the "
        "same seeds; tau between two halves of the seeds shows the effect of chance alone. Every refit has the same "
        "seeds, so shares of variance are from a crossed analysis of variance; given are the smallest and the largest "
        "of the arms, and the arm of the largest between refits."
    )
    caption = "Shares of the variance of each arm's final results on refits, in percent"
    head = ("task", "arms", "arm", "between refits", "between seeds", "rest")
    yield table(caption, head, by_arm, n_labels=3, is_folded=True)
    yield Text(
        "The last column of the first table counts the pairs whose mean difference has the same sign on all refits. "
        "With few seeds, the sign of a small difference can change by chance, even between identical models. With "
        "two seeds or more on each refit, we therefore estimate the probability that a new refit gives the sign "
        f"found on the released models; a pair holds if it is at least {100 * HOLDS:.0f} %. The estimate assumes a "
        "normal distribution over refits. Its centre is the mean difference on the refits, corrected by the luck of "
        "their few seeds, as far as the released models with all seeds show it; its variance is the between-refit "
        "variance plus the squared standard error of the centre. With few refits and seeds the estimate is "
        "uncertain: if a pair does not hold, this does not show that its sign depends on the refit. Intervals over "
        "seeds and refits in the tables above add the between-refit variance to the squared standard error over "
        "seeds."
    )


def _has_one_sign(on_release: Floats, on_refits: Floats, pair: Pair) -> bool:
    """Return whether the mean difference has the sign of the release on every refit."""
    difference = float((on_release[pair.one] - on_release[pair.other]).mean())
    refit_differences = (on_refits[pair.one] - on_refits[pair.other]).mean(axis=1)
    return bool((np.sign(refit_differences) == np.sign(difference)).all())


def _refits_row(arms: Sequence[Arm], on_release: Floats, on_refits: Floats) -> tuple[str, ...]:
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


class _Group(NamedTuple):
    """The final incumbents of one group of arms on a task; errors are (n_arms, n_seeds), with the same seeds."""

    task: str
    title: str
    arms: tuple[Arm, ...]
    tests: Comparison  # of the errors by the released models, as on the rest of the page
    own: Floats  # errors by the released models
    crossed: Floats  # errors by the mean of the refits


@functools.lru_cache(maxsize=2)
def cross_scored(results: Results) -> tuple[tuple[_Group, Comparison], ...]:
    """Return every group of arms with the tests of its errors by the refits.

    Empty if the release has no refits, if the study has several objectives, or if an arm ran in another world, whose
    answers cannot be repeated.
    """
    if results.study.combinations or any(arm.world != "release" for arm in results.arms):
        return ()
    found = list(_groups(results))
    crossed = compare_groups([(group.crossed, None) for group in found]) if found else ()
    return tuple(zip(found, crossed, strict=True))


def cross_scored_blocks(results: Results) -> Iterator[str | Block]:
    """Yield which differences remain if the refits score the incumbents; nothing without refits."""
    if not (found := cross_scored(results)):
        return
    yield "Do incumbents keep their ranks on models that the search did not see?"
    rows, counts = [], [kept_pairs(group.tests, crossed) for group, crossed in found]
    for (group, _), numbers in zip(found, counts, strict=True):
        tau = rank_agreement(group.own, group.crossed, has_same_seeds=True)
        best = (group.arms[values.mean(axis=1).argmin()].title for values in (group.own, group.crossed))
        rows.append((group.task, group.title, tau, *numbers, *best))
    n, n_same, n_significant, n_reversed = np.sum(counts, axis=0)
    kept = (
        f" If the refits score the incumbents, {n_same} of them keep the sign of the rank test, {n_significant} "
        f"significantly; significantly reversed: {n_reversed}."
    )
    yield answer(f"Pairs of arms that differ on this page: {n}.{kept * bool(n)}")
    yield table(
        "Final incumbents of the runs on the released models, scored by these models and by the mean of the refits",
        (
            *("task", "arms", "Kendall's tau of the rankings (95 % interval)", "pairs that differ", "same sign"),
            *("same sign, significant", "significantly reversed", "best arm", "best arm by the refits"),
        ),
        rows,
        n_labels=2,
    )
    yield Text(
        "A search exploits the errors of its model, which overestimates the accuracy of the configs that are found "
        "(winner's curse). The refits took no part in these "
        "searches, so errors that only the released models make give no arm an advantage. They are fitted to resamples "
        "of the same trainings, so errors that come from these trainings remain. Each refit was fitted to about two "
        "thirds of the configs, so compare arms, not absolute errors. Pairs are tested as on the released models, with "
        "Holm's correction over all pairs."
    )
    if lost := [row for group, crossed in found for row in _lost_rows(group, crossed)]:
        yield table(
            "Pairs that differ on this page, but not significantly or in the other direction by the refits; mean "
            "differences in points, the first arm minus the second, which is worse by the released models",
            (
                *("task", "arms", "better arm", "other arm", "by the released models", "by the refits"),
                "rank test by the refits",
            ),
            lost,
            n_labels=4,
            is_folded=True,
        )
    by_arm = [_arm_row(group, i) for group, _ in found for i in np.argsort(group.crossed.mean(axis=1)).tolist()]
    caption = "Mean validation errors of final incumbents, in percent, by the models that score them"
    head = ("task", "arms", "arm", "by the released models", "by the refits", "difference (± standard error)")
    yield table(caption, head, by_arm, n_labels=3, is_folded=True)


def kept_pairs(tests: Comparison, crossed: Comparison) -> tuple[int, int, int, int]:
    """Return how many pairs differ; and of these, those with the same sign in other tests of the same arms.

    Then those that are significant there with the same sign, and with the opposite sign.
    """
    both = [pairs for pairs in zip(tests.pairs, crossed.pairs, strict=True) if pairs[0].differs]
    is_same = [one.rank_sum * other.rank_sum > 0 for one, other in both]
    significant = [same for same, (_, other) in zip(is_same, both, strict=True) if other.is_significant]
    return len(both), sum(is_same), sum(significant), len(significant) - sum(significant)


def _groups(results: Results) -> Iterator[_Group]:
    for task in results.tasks:
        has_refits = task in results.bench and bool(refits_of(results.bench[task], "valid_acc"))
        for title, arms in groups(results, task) if has_refits else ():
            if tests := comparison_of(results, task, arms):
                seeds = results.seeds(task, arms)
                runs = [results.of(task, arm, seeds) for arm in arms]
                own = [
                    [final_of(results, task, arm, run) for run in of_arm]
                    for arm, of_arm in zip(arms, runs, strict=True)
                ]
                crossed = [
                    last_by_refits(results.bench[task], of_arm, worst=worst_of(arm))
                    for arm, of_arm in zip(arms, runs, strict=True)
                ]
                yield _Group(task, title, arms, tests, np.array(own), np.array(crossed))


def last_by_refits(bench: Benchmark, runs: Sequence[RepetitionResult], *, worst: float = np.nan) -> Floats:
    """Return the refits' mean error of the final incumbent of each run, (n_runs,); `worst` for a run without any."""
    last = [run.configs[-1:] for run in runs]
    values = split_by_run(errors_by_refits(bench, [config for configs in last for config in configs]), last)
    return np.array([value[0] if len(value) else worst for value in values])


def _lost_rows(group: _Group, crossed: Comparison) -> Iterator[tuple[str, ...]]:
    """Yield a row for each pair that differs, and is not significant with the same sign by the refits."""
    for own, other in zip(group.tests.pairs, crossed.pairs, strict=True):
        is_same = own.rank_sum * other.rank_sum > 0
        if own.differs and not (is_same and other.is_significant):
            better, worse = (own.one, own.other) if own.rank_sum < 0 else (own.other, own.one)
            gaps = (float((values[better] - values[worse]).mean()) for values in (group.own, group.crossed))
            verdict = f"{'same' if is_same else 'other'} sign, {'' if other.is_significant else 'not '}significant"
            titles = group.arms[better].title, group.arms[worse].title
            yield group.task, group.title, *titles, *(f"{gap:+.2f}" for gap in gaps), verdict


def _arm_row(group: _Group, i: int) -> tuple[str, ...]:
    gap = summarize(group.crossed[i] - group.own[i])
    means = (f"{values[i].mean():.2f}" for values in (group.own, group.crossed))
    return group.task, group.title, group.arms[i].title, *means, f"{gap.mean:+.2f} ± {gap.se:.2f}"
