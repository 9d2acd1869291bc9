"""How optimisers did under the same terms: final results, ranks, differences from random search, and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from jahs.comparison.claims import Claim
from jahs.comparison.logs import Floats, trial_log
from jahs.comparison.steps import Steps, hypervolume_over_time, incumbents, on_grid
from jahs.comparison.summaries import Interval, bootstrap_interval, summarize
from jahs.comparison.terms import StudyTerms
from jahs.simulate import read_log

__all__ = ["REFERENCE", "Standing", "standings_of"]

REFERENCE: Final = "random_search"
"""The optimiser that all others are compared with."""

_GRID: Final = np.arange(1, 101) / 100  # of the budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """One optimiser.

    Attributes:
        name: its label.
        seeds: those of its runs.
        result, result_se: mean and standard error of what is minimised, at the end of the budget: the validation error
            (%), or with several objectives the share of the front's hypervolume that is missing (%).
        test_error, test_se: mean and standard error of the final incumbents' test errors (%).
        rank: mean rank among all optimisers, over the seeds that all have; NaN without such a seed.
        difference: result minus random search's, over common seeds, with a 95 % interval; None for random search.
        curve: mean result so far, at shares of the budget; NaN until every seed has one.
    """

    name: str
    seeds: tuple[int, ...]
    result: float
    result_se: float
    test_error: float
    test_se: float
    rank: float
    difference: Interval | None
    curve: tuple[tuple[float, float], ...]


def standings_of(claims: Mapping[Path, Claim], terms: StudyTerms) -> list[Standing]:
    """Return a standing for each optimiser, the best first.

    Args:
        claims: checked logs under the same terms.
        terms: of the study.
    """
    found: dict[str, dict[int, tuple[Claim, Steps]]] = {}
    for path, claim in sorted(claims.items(), key=lambda pair: pair[1].seed):
        found.setdefault(_label(claim, claims.values()), {})[claim.seed] = (claim, _steps(path, terms))
    finals = {name: {seed: _final(*of, terms) for seed, of in runs.items()} for name, runs in found.items()}
    ranks = _mean_ranks(finals)
    standings = [_standing(name, runs, finals, ranks[name], terms) for name, runs in found.items()]
    return sorted(standings, key=lambda each: (np.isnan(each.result), each.result))


def _label(claim: Claim, claims: Iterable[Claim]) -> str:
    """Return the name, with the settings if another one has the same name."""
    same = {each.settings for each in claims if each.name == claim.name}
    return claim.name if len(same) == 1 else f"{claim.name} ({claim.settings or 'no settings'})"


def _steps(path: Path, terms: StudyTerms) -> Steps:
    """Return the result so far as a function of time."""
    log = read_log(path)
    columns = trial_log(log.header, log.trials)
    names = terms.rules.objectives
    if len(names) == 1:
        return incumbents(columns, objective=names[0]).steps
    front = terms.bench.front(names)
    rows = np.flatnonzero(columns.is_full)
    F = np.stack([columns.minimised(name)[rows] for name in names], axis=1) if len(rows) else np.empty((0, len(names)))
    volume = hypervolume_over_time(columns.end[rows], F, reference=front.reference_point)
    return Steps(times=volume.times, values=100 * (1 - volume.values / front.hypervolume))


def _final(claim: Claim, steps: Steps, terms: StudyTerms) -> float:
    if len(terms.rules.objectives) == 1:
        return claim.valid_error
    return float(steps.values[-1]) if len(steps.values) else 100.0


def _mean_ranks(finals: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Return mean ranks over common seeds; equal results share their mean rank."""
    seeds = sorted(set.intersection(*(set(of) for of in finals.values())))
    if not seeds:
        return dict.fromkeys(finals, float("nan"))
    values = np.nan_to_num(np.array([[of[seed] for seed in seeds] for of in finals.values()]), nan=np.inf)
    below = (values[None] < values[:, None]).sum(axis=1)
    equal = (values[None] == values[:, None]).sum(axis=1)
    return dict(zip(finals, (below + (equal + 1) / 2).mean(axis=1).tolist(), strict=True))


def _standing(
    name: str,
    runs: Mapping[int, tuple[Claim, Steps]],
    finals: Mapping[str, Mapping[int, float]],
    rank: float,
    terms: StudyTerms,
) -> Standing:
    own = finals[name]
    result = summarize(np.array([*own.values()]))
    test = summarize(np.array([claim.test_error for claim, _ in runs.values()]))
    mean = on_grid([steps for _, steps in runs.values()], _GRID * terms.budget_s).mean(axis=0)
    return Standing(
        name=name,
        seeds=tuple(own),
        result=float(result.mean),
        result_se=float(result.se),
        test_error=float(test.mean),
        test_se=float(test.se),
        rank=rank,
        difference=None if name == REFERENCE else _difference(own, finals.get(REFERENCE, {})),
        curve=tuple(zip(_GRID.tolist(), mean.tolist(), strict=True)),
    )


def _difference(own: Mapping[int, float], reference: Mapping[int, float]) -> Interval | None:
    differences: Floats = np.array([own[seed] - reference[seed] for seed in own if seed in reference])
    if len(differences) < 2 or np.isnan(differences).any():
        return None
    return bootstrap_interval(differences, lambda values: values.mean(axis=1))
