"""Results of optimisers under the same terms, with the statistics of the studies' pages."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from jahs.comparison.claims import Claim
from jahs.comparison.logs import Floats, TrialLog
from jahs.comparison.ranks import Pair, mean_ranks, pairs_of_groups
from jahs.comparison.steps import Steps, hypervolume_over_time, on_grid, regret_area
from jahs.comparison.summaries import Interval, mean_interval, summarize
from jahs.comparison.terms import StudyTerms

REFERENCE: Final = "random_search"
"""The optimiser that all others are compared with."""

_GRID: Final = np.arange(1, 101) / 100  # shares of the budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rollout:
    """One run.

    Its result is minimised: the incumbent's mean validation error (%), or with several objectives the share of the
    front's hypervolume that is missing (%).
    """

    steps: Steps  # result so far over shares of the budget
    test_error: float  # mean test error of the final incumbent (%)
    refit_error: float  # its mean validation error by the refits (%); NaN without refits

    @property
    def final(self) -> float:
        """The result at the end, with four decimals, as results ship, so that equal runs tie; NaN without any."""
        return round(float(self.steps.at(np.array([1.0]))[0]), 4)


Rollouts: TypeAlias = Mapping[str, Mapping[int, Rollout]]
"""Runs by optimiser and seed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """One optimiser. It is compared with random search over the seeds that both have."""

    name: str
    seeds: tuple[int, ...]
    has_chosen_seeds: bool  # whether they are not 0, 1, 2 and so on, so that they could have been selected
    n_without: int  # number of runs without a result
    result: float  # mean of the results at the end of the budget
    result_se: float
    median: float
    area: float  # mean normalised area under the regret curve (%); 0 is the best known result from the start
    test_error: float  # mean test error of the final incumbents (%)
    test_se: float
    refit_error: float  # their mean validation error by the refits of the release, which no search saw (%)
    refit_se: float
    rank: float  # mean rank among all optimisers, over the seeds that all have; NaN without such a seed
    difference: Interval | None  # mean result minus random search's, with a 95 % interval; None for random search
    superiority: float  # share of seeds in which it is better than random search, ties count half; else NaN
    p_holm: float  # signed-rank test against random search, Holm's correction over all tests; NaN below two seeds
    curve: tuple[tuple[float, float], ...]  # mean result at shares of the budget; NaN until every seed has one


def rollouts_of(claims: Collection[Claim], terms: StudyTerms) -> Rollouts:
    """Return the runs of checked logs under the same terms."""
    rollouts: dict[str, dict[int, Rollout]] = {}
    for claim in sorted(claims, key=lambda each: each.seed):
        steps = steps_of(claim.full, claim.incumbents, terms).scaled(terms.budget_s)
        rollout = Rollout(steps=steps, test_error=claim.test_error, refit_error=claim.refit_error)
        rollouts.setdefault(_label(claim, claims), {})[claim.seed] = rollout
    return rollouts


def standings_of(
    rollouts: Rollouts, terms: StudyTerms, pairs: Sequence[tuple[str, str, Pair]], *, chosen: Collection[str] = ()
) -> list[Standing]:
    """Return a standing for each optimiser, the best first, from runs under the same terms and their `pairs_of`.

    Args:
        chosen: optimisers whose seeds could have been selected; they come after the others.
    """
    seeds = sorted(set.intersection(*(set(runs) for runs in rollouts.values())))
    finals = np.array([[runs[seed].final for seed in seeds] for runs in rollouts.values()])
    ranks = mean_ranks(finals).tolist() if seeds else [np.nan] * len(rollouts)
    scale = {"best": _best(rollouts, terms), "guess": guess_of(terms), "budget": 1.0}
    against = {one: pair for one, other, pair in pairs if other == REFERENCE}
    standings = []
    for (name, runs), rank in zip(rollouts.items(), ranks, strict=True):
        result, test_errors, refit_errors = (
            summarize(np.array([getattr(run, name) for run in runs.values()]))
            for name in ("final", "test_error", "refit_error")
        )
        mean = on_grid([run.steps for run in runs.values()], _GRID).mean(axis=0)
        pair = against.get(name)
        standings.append(
            Standing(
                name=name,
                seeds=tuple(runs),
                has_chosen_seeds=name in chosen,
                n_without=sum(math.isnan(run.final) for run in runs.values()),
                result=float(result.mean),
                result_se=float(result.se),
                median=float(result.median),
                area=100 * float(np.mean([regret_area(run.steps, **scale) for run in runs.values()])),
                test_error=float(test_errors.mean),
                test_se=float(test_errors.se),
                refit_error=float(refit_errors.mean),
                refit_se=float(refit_errors.se),
                rank=rank,
                difference=None if name == REFERENCE else _difference(runs, rollouts.get(REFERENCE, {})),
                superiority=pair.superiority if pair else np.nan,
                p_holm=pair.p_holm if pair else np.nan,
                curve=tuple(zip(_GRID.tolist(), mean.tolist(), strict=True)),
            )
        )
    return sorted(standings, key=lambda each: (math.isnan(each.result), each.has_chosen_seeds, each.result))


def pairs_of(rollouts: Rollouts, *, first: Collection[str] = ()) -> list[tuple[str, str, Pair]]:
    """Return the tests of pairs of optimisers, over the seeds that both have, with Holm's correction over all tests.

    Args:
        first: the optimisers of which `are_tested` speaks; they come first in their pairs, and random search last.
    """
    order = sorted(rollouts, key=lambda name: (name not in first, name == REFERENCE))
    groups, names = [], []
    for one, other in [pair for pair in combinations(order, 2) if are_tested(*pair, first=first)]:
        runs = rollouts[one], rollouts[other]
        seeds = sorted(set(runs[0]) & set(runs[1]))
        if len(seeds) > 1:
            groups.append(np.array([[by_seed[seed].final for seed in seeds] for by_seed in runs]))
            names.append((one, other))
    pairs = pairs_of_groups(groups) if groups else []
    return [(*pair_names, pair) for pair_names, (pair,) in zip(names, pairs, strict=True)]


def are_tested(one: str, other: str, *, first: Collection[str]) -> bool:
    """Return whether two optimisers are tested: one of them is in `first` or random search, or `first` is empty.

    A page shows no other tests, so Holm's correction does not count them.
    """
    return not first or one in first or other in first or REFERENCE in {one, other}


def guess_of(terms: StudyTerms) -> float:
    """Return the result before the first trial: the error of guessing a class (%), or all of the hypervolume."""
    return 100.0 if len(terms.rules.objectives) > 1 else terms.bench.task.chance_error


def _label(claim: Claim, claims: Collection[Claim]) -> str:
    """Return the name, with the settings if another one has the same name."""
    settings = {each.settings for each in claims if each.name == claim.name}
    return claim.name if len(settings) == 1 else f"{claim.name} ({claim.settings or 'no settings'})"


def steps_of(full: TrialLog, incumbents: Steps, terms: StudyTerms) -> Steps:
    """Return the result so far over seconds: the incumbent's, or with several objectives the missing hypervolume (%).

    That is the share of the hypervolume of the release's front that the means of all trials so far miss.
    """
    names = terms.rules.objectives
    if len(names) == 1:
        return incumbents
    front = terms.bench.front(names)
    F = np.stack([full.minimised(name) for name in names], axis=1) if len(full) else np.empty((0, len(names)))
    volume = hypervolume_over_time(full.end, F, reference=front.reference_point)
    values = 100 * (1 - volume.values / front.hypervolume)
    return Steps(times=np.concatenate([[0.0], volume.times]), values=np.concatenate([[100.0], values]))


def _best(rollouts: Rollouts, terms: StudyTerms) -> float:
    """Return the best known result: no missing volume, or the least mean validation error of the view and all runs."""
    if len(terms.rules.objectives) > 1:
        return 0.0
    values = np.concatenate([run.steps.values for runs in rollouts.values() for run in runs.values()])
    return min(float(values.min(initial=np.inf)), _least_error(terms))


@functools.lru_cache(maxsize=32)
def _least_error(terms: StudyTerms) -> float:
    """Return the least mean validation error (%) of the view; it is searched once per process."""
    return 100.0 - terms.bench.best(view=terms.view).value


def _difference(runs: Mapping[int, Rollout], reference: Mapping[int, Rollout]) -> Interval | None:
    differences: Floats = np.array([runs[seed].final - reference[seed].final for seed in runs if seed in reference])
    if len(differences) < 2 or np.isnan(differences).any():
        return None
    return mean_interval(differences)
