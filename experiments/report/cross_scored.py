"""The final incumbents of a study, scored by models that no search saw.

A search finds the configs that its model overrates. The runs on the released models never asked the refits, so an error
of the released models that the refits do not share gives no arm an advantage.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from experiments.report.comparison import comparison_of, groups, worst_of
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
    tests: Comparison  # of the released models' errors, as on the rest of the page
    own: Floats  # by the released models
    crossed: Floats  # by the mean of the refits
    kept: tuple[int, int, int, int] = (0, 0, 0, 0)  # `kept_pairs`


@functools.lru_cache(maxsize=2)
def cross_scored(results: Results) -> tuple[_Group, ...]:
    """Return every group of arms whose incumbents the refits score; none without refits or for several objectives."""
    is_of_release = all(arm.world == "release" for arm in results.arms)  # other worlds cannot be queried again
    if results.study.combinations or not is_of_release:
        return ()
    found = list(_groups(results))
    crossed = compare_groups([(group.crossed, None) for group in found]) if found else ()
    kept = (kept_pairs(group.tests, tests) for group, tests in zip(found, crossed, strict=True))
    return tuple(group._replace(kept=counts) for group, counts in zip(found, kept, strict=True))


def cross_scored_blocks(results: Results) -> Iterator[str | Block]:
    """Yield which differences remain if the refits score the incumbents; nothing without refits."""
    if not (found := cross_scored(results)):
        return
    yield "Do incumbents keep their ranks on models that the search did not see?"
    rows = []
    for group in found:
        tau = interval_text(rank_agreement(group.own, group.crossed, has_same_seeds=True))
        best = (group.arms[values.mean(axis=1).argmin()].title for values in (group.own, group.crossed))
        rows.append((group.task, group.title, tau, *map(str, group.kept), *best))
    n, n_same, n_significant, n_reversed = np.sum([group.kept for group in found], axis=0)
    kept = (
        f" If the refits score the incumbents, {n_same} of them keep the sign of the rank test, {n_significant} "
        f"significantly; significantly reversed: {n_reversed}."
    )
    yield answer(f"Pairs of arms that differ on this page: {n}.{kept * bool(n)}")
    yield Table(
        caption="Final incumbents of the runs on the released models, scored by these models and by the mean of the "
        "refits",
        columns=(
            *("task", "arms", "agreement of orders, Kendall's tau (95 % interval)", "pairs that differ", "same sign"),
            *("same sign, significant", "significantly reversed", "best arm", "best arm by the refits"),
        ),
        rows=tuple(rows),
        n_labels=2,
    )
    yield Text(
        "A search finds the configs that its model overrates (winner's curse). An arm gains more from that if it "
        "searches fewer configs more thoroughly, or has values that the same models chose, such as tuned "
        "hyperparameters. The refits took no part in these searches, so errors of the released models that they do not "
        "share give no arm an advantage. Each refit was fitted to about two thirds of the configs, so compare arms, "
        "not levels. Pairs are tested as on the released models, with Holm's correction over all pairs."
    )
    yield Table(
        caption="Mean validation errors of final incumbents, in percent, by the models that score them",
        columns=("task", "arms", "arm", "by the released models", "by the refits", "difference (± standard error)"),
        rows=tuple(_arm_row(group, i) for group in found for i in np.argsort(group.crossed.mean(axis=1)).tolist()),
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
                own = [[_final(arm, run) for run in of_arm] for arm, of_arm in zip(arms, runs, strict=True)]
                crossed = [
                    last_by_refits(results.bench[task], of_arm, worst=worst_of(arm))
                    for arm, of_arm in zip(arms, runs, strict=True)
                ]
                yield _Group(task, title, arms, tests, np.array(own), np.array(crossed))


def _final(arm: Arm, run: RepetitionResult) -> float:
    return float(run.incumbents.values[-1]) if run.configs else worst_of(arm)


def last_by_refits(bench: Benchmark, runs: Sequence[RepetitionResult], *, worst: float = np.nan) -> Floats:
    """Return the refits' mean error of the final incumbent of each run, (n_runs,); `worst` for a run without any."""
    last = [run.configs[-1:] for run in runs]
    values = split_by_run(errors_by_refits(bench, [config for configs in last for config in configs]), last)
    return np.array([value[0] if len(value) else worst for value in values])


def _arm_row(group: _Group, i: int) -> tuple[str, ...]:
    gap = summarize(group.crossed[i] - group.own[i])
    means = (f"{values[i].mean():.2f}" for values in (group.own, group.crossed))
    return group.task, group.title, group.arms[i].title, *means, f"{gap.mean:+.2f} ± {gap.se:.2f}"
