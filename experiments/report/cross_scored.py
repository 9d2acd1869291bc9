"""The final incumbents of a study, scored by models that no search saw.

A search exploits the errors of its model, which overestimates the accuracy of the configs that are found. The runs on
the released models never asked the refits, so an error that only the released models make gives no arm an advantage.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.report.comparison import comparison_of, final_of, groups, worst_of
from experiments.report.results import RepetitionResult, Results, split_by_run
from experiments.study import Arm
from jahs.comparison.benches import errors_by_refits, refits_of
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Comparison, compare_groups, rank_agreement
from jahs.comparison.summaries import interval_text, summarize
from jahs.queries.benchmark import Benchmark
from workshop.pages.document import Block, Table, Text, answer


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
        tau = interval_text(rank_agreement(group.own, group.crossed, has_same_seeds=True))
        best = (group.arms[values.mean(axis=1).argmin()].title for values in (group.own, group.crossed))
        rows.append((group.task, group.title, tau, *map(str, numbers), *best))
    n, n_same, n_significant, n_reversed = np.sum(counts, axis=0)
    kept = (
        f" If the refits score the incumbents, {n_same} of them keep the sign of the rank test, {n_significant} "
        f"significantly; significantly reversed: {n_reversed}."
    )
    yield answer(f"Pairs of arms that differ on this page: {n}.{kept * bool(n)}")
    yield Table(
        caption="Final incumbents of the runs on the released models, scored by these models and by the mean of the "
        "refits",
        columns=(
            *("task", "arms", "Kendall's tau of the rankings (95 % interval)", "pairs that differ", "same sign"),
            *("same sign, significant", "significantly reversed", "best arm", "best arm by the refits"),
        ),
        rows=tuple(rows),
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
    if lost := tuple(row for group, crossed in found for row in _lost_rows(group, crossed)):
        yield Table(
            caption="Pairs that differ on this page, but not significantly or in the other direction by the refits; "
            "mean differences in points, the first arm minus the second, which is worse by the released models",
            columns=(
                *("task", "arms", "better arm", "other arm", "by the released models", "by the refits"),
                "rank test by the refits",
            ),
            rows=lost,
            n_labels=4,
            is_folded=True,
        )
    yield Table(
        caption="Mean validation errors of final incumbents, in percent, by the models that score them",
        columns=("task", "arms", "arm", "by the released models", "by the refits", "difference (± standard error)"),
        rows=tuple(_arm_row(group, i) for group, _ in found for i in np.argsort(group.crossed.mean(axis=1)).tolist()),
        n_labels=3,
        is_folded=True,
    )


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
