"""The comparisons of a whole study: which arms, their final results, and tests with one correction for all of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from experiments.report.results import RepetitionResult, Results
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Comparison, compare_groups
from jahs.comparison.steps import Steps, hypervolume_over_time
from jahs.errors import MissingData, UnknownName

FEWEST_TO_COMPARE: Final = 6  # blocks; with fewer, no two-sided signed-rank test can reach 0.05

_Family: TypeAlias = dict[tuple[str, tuple[str, ...]], Comparison]


def groups(results: Results, task: str) -> Iterator[tuple[str, tuple[Arm, ...]]]:
    """Yield arms that a page compares: those of a chapter, with the only arm of another one as their reference."""
    chapters = {name: results.arms_of(name, task) for name in results.study.chapters}
    alone = tuple(arms[0] for arms in chapters.values() if len(arms) == 1)
    for name, arms in chapters.items():
        if len(arms) > 1:
            yield name, (*alone, *arms)


@functools.lru_cache(maxsize=2)
def compared(results: Results) -> _Family:
    """Return the comparison of each group on each task, by task and names of arms; Holm's correction is over all.

    A difference counts if it is significant and has the same sign on at least 95 % of the refits, where there are any.
    """
    keys, values = [], []
    for task in results.tasks:
        for _, arms in groups(results, task):
            of_release, of_refits = finals(results, task, arms)
            if of_release.shape[1] >= FEWEST_TO_COMPARE and not np.isnan(of_release).any():
                keys.append((task, tuple(arm.name for arm in arms)))
                values.append((of_release, of_refits.mean(axis=2) if of_refits.size else None))
    return dict(zip(keys, compare_groups(values), strict=True)) if keys else {}


def finals(results: Results, task: str, arms: Sequence[Arm]) -> tuple[Floats, Floats]:
    """Return final results, (n_arms, n_seeds) on the release and (n_arms, n_refits, n_seeds), that all arms have.

    They are to be minimised: mean validation errors of incumbents, or minus the shares of the front's hypervolume.
    """
    seeds = results.seeds(task, arms)
    of_release = np.array(
        [[_final(results, task, arm, result) for result in results.of(task, arm, seeds)] for arm in arms]
    ).reshape(len(arms), len(seeds))
    found = [
        {
            (r.repetition.refit, r.repetition.seed): _final(results, task, arm, r)
            for r in results.on_refits.get((task, arm.name), ())
            if r.repetition.refit is not None
        }
        for arm in arms
    ]
    common = sorted(set.intersection(*map(set, found)))
    refits = sorted({refit for refit, _ in common})
    whole = sorted(seed for seed in {seed for _, seed in common} if all((refit, seed) in common for refit in refits))
    values = np.array([[[of[refit, seed] for seed in whole] for refit in refits] for of in found])
    return of_release, values.reshape(len(arms), len(refits), len(whole))


def curve(results: Results, task: str, arm: Arm, result: RepetitionResult) -> Steps:
    """Return the result so far of one repetition, minimised; with several objectives it needs a frozen front."""
    if len(arm.objectives) == 1:
        return result.incumbents
    front = results.bench[task].front(arm.objectives)
    times, F = result.points(arm.objectives)
    volume = hypervolume_over_time(times, F, reference=front.reference_point)
    return Steps(times=volume.times, values=-volume.values / front.hypervolume)


def _final(results: Results, task: str, arm: Arm, result: RepetitionResult) -> float:
    try:
        values = curve(results, task, arm, result).values
    except (MissingData, UnknownName):
        return np.nan  # a release without this front
    worst = 100.0 if len(arm.objectives) == 1 else 0.0
    return float(values[-1]) if len(values) else worst
