"""Configs trained with annealed and with continued budgets: agreement with the full training, and searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.runs import last_rows, read_configs, read_protocol, read_runs, without_final
from jahs.files.tables import Table, rows_of, take
from jahs.tasks.definitions import PROSE, Task
from jahs.tasks.own import task_facts
from pipeline.protocol import recorded_task
from pipeline.sampling import group_positions
from workshop.ranks import kendall_tau_within, spearman
from workshop.resampling import bootstrap_estimates

KINDS: Final = ("continued", "annealed")
MEASURES: Final = ("Spearman", "Spearman, best quarter", "Spearman, best tenth", "Kendall's τ within fidelity groups")
SEARCHES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "successive halving": ((27, 0),),
    "Hyperband": ((27, 0), (12, 1), (6, 2), (4, 3)),
}
"""Brackets of each search: how many configs start, and the rung of their first budget, at most the last one."""

_ETA: Final = 3
_SHARES: Final = (1.0, 0.25, 0.1)
_FEWEST: Final = 30
_N_DRAWS: Final = 400
_MOST_TRAININGS: Final = 200
_FREE: Final = ("name", "max_epoch", *PROSE)  # facts that may differ


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trainings:
    """The same configs, trained with every budget.

    Attributes:
        budgets: epochs of each budget, the full training last.
        valid: validation accuracies (%) by kind, (n_configs, n_budgets); the last column is the same for both.
        test: test accuracies (%) of the full trainings.
        groups: numbers of the fidelity groups.
        n_left_out: configs in all folders of which a training did not finish.
    """

    task: Task
    budgets: tuple[int, ...]
    valid: Mapping[str, Floats]
    test: Floats
    groups: NDArray[np.int64]
    n_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCost:
    """A search with one kind of budget.

    Attributes:
        cost: its cost in full trainings.
        reached: mean test accuracy (%) of the config that it returns.
        needed: full trainings that random search needs to find as good a config.
        speed_up: `needed` divided by the cost.
        gain: the speed-up minus the one with continued budgets, paired.
    """

    cost: float
    reached: Interval
    needed: Interval
    speed_up: Interval
    gain: Interval


def read_trainings(whole: Path, short: Sequence[Path]) -> Trainings:
    """Read a folder of full trainings, and folders of annealed ones of the same configs, one for each budget.

    Raises:
        ProtocolMismatch: protocols differ in more than name and number of epochs, or two have the same number.
        InvalidArgument: too few configs have all trainings.
    """
    task = recorded_task(read_protocol(whole).facts)
    folders = {_budget_of(folder, task): folder for folder in short}
    if len(folders) < len(short) or max(folders) >= task.max_epoch:
        raise ProtocolMismatch(
            f"{', '.join(map(str, short))} must have different budgets below {task.max_epoch} epochs"
        )
    budgets = (*sorted(folders), task.max_epoch)
    configs = read_configs(whole)
    runs = _first_seeds(without_final(read_runs(whole), configs)[0])
    last = {task.max_epoch: last_rows(runs), **{n: last_rows(_first_seeds(read_runs(folders[n]))) for n in folders}}
    shared = np.array(sorted(set.intersection(*(set(rows["config_id"].tolist()) for rows in last.values()))))
    is_whole = [
        np.isin(shared, rows["config_id"][(rows["status"] == "finished") & (rows["epoch"] == n)])
        for n, rows in last.items()
    ]
    ids = shared[np.all(is_whole, axis=0)] if len(shared) else shared
    if len(ids) < _FEWEST:
        raise InvalidArgument(f"{len(ids)} configs finished with every budget; {_FEWEST} are needed")
    by_budget = {n: rows_of(take(runs, runs["epoch"] == n), ids) for n in budgets}
    end = by_budget[task.max_epoch]["valid_acc"].astype(np.float64)
    continued = [by_budget[n]["valid_acc"] for n in budgets[:-1]]
    annealed = [rows_of(last[n], ids)["valid_acc"] for n in budgets[:-1]]
    return Trainings(
        task=task,
        budgets=budgets,
        valid={kind: np.stack([*start, end], axis=1) for kind, start in zip(KINDS, (continued, annealed), strict=True)},
        test=by_budget[task.max_epoch]["test_acc"].astype(np.float64),
        groups=group_positions(rows_of(configs, ids)),
        n_left_out=len(shared) - len(ids),
    )


def _budget_of(folder: Path, whole: Task) -> int:
    """Return the number of epochs of annealed trainings; only that and the name of their task may differ."""
    task = recorded_task(read_protocol(folder).facts)
    facts, whole_facts = task_facts(task), task_facts(whole)
    if differing := [key for key in facts if key not in _FREE and facts[key] != whole_facts[key]]:
        raise ProtocolMismatch(f"{folder} differs from the whole trainings in {', '.join(differing)}")
    return int(task.max_epoch)


def _first_seeds(runs: Table) -> Table:
    return take(runs, runs["seed"] == 0)


def correlations(of: Trainings, *, n_resamples: int) -> dict[tuple[int, str], dict[str, Interval]]:
    """Return each measure of agreement with the full training, by budget and kind; `gain` is annealed - continued."""
    by_budget: dict[tuple[int, str], dict[str, Interval]] = {}
    for place, budget in enumerate(of.budgets[:-1]):

        def measured(at: NDArray[np.int64], place: int = place) -> Floats:
            both = [_measures(of.valid[kind][at, place], of.valid[kind][at, -1], of.groups[at]) for kind in KINDS]
            return np.concatenate([*both, both[1] - both[0]])

        estimates = bootstrap_estimates(measured, len(of.test), level=0.95, n_resamples=n_resamples)
        for number, kind in enumerate((*KINDS, "gain")):
            part = estimates[number * len(MEASURES) : (number + 1) * len(MEASURES)]
            by_budget[budget, kind] = dict(zip(MEASURES, part, strict=True))
    return by_budget


def _measures(early: Floats, end: Floats, groups: NDArray[np.int64]) -> Floats:
    order = np.argsort(-end, kind="stable")
    tops = [order[: max(3, round(share * len(end)))] for share in _SHARES]
    return np.array([*(spearman(early[top], end[top]) for top in tops), kendall_tau_within(early, end, groups)])


def search(of: Trainings, *, n_resamples: int) -> dict[tuple[str, str], SearchCost]:
    """Return what each search costs and reaches, by search and kind of budget."""
    pairs = [(name, kind) for name in SEARCHES for kind in KINDS]
    costs = np.array([cost(SEARCHES[name], of.budgets, kind) for name, kind in pairs])
    continued = [pairs.index((name, KINDS[0])) for name, _ in pairs]

    def measured(at: NDArray[np.int64]) -> Floats:
        test, whole = of.test[at], of.valid["continued"][at, -1]
        reached = np.array([_reach(of.valid[kind][at], test, SEARCHES[name]) for name, kind in pairs])
        needed = _trainings_for(reached, whole, test)
        speed_ups = needed / costs
        return np.concatenate([reached, needed, speed_ups, speed_ups - speed_ups[continued]])

    estimates = bootstrap_estimates(measured, len(of.test), level=0.95, n_resamples=n_resamples)
    parts = zip(*(estimates[i : i + len(pairs)] for i in range(0, len(estimates), len(pairs))), strict=True)
    return {
        pair: SearchCost(cost=float(total_cost), reached=reached, needed=needed, speed_up=speed_up, gain=gain)
        for pair, total_cost, (reached, needed, speed_up, gain) in zip(pairs, costs, parts, strict=True)
    }


def cost(brackets: Sequence[tuple[int, int]], budgets: Sequence[int], kind: str) -> float:
    """Return the cost of a search in full trainings.

    Example:
        >>> cost([(27, 0)], (1, 3, 9, 27), "continued"), cost([(27, 0)], (1, 3, 9, 27), "annealed")
        (3.0, 4.0)
    """
    epochs = 0
    for n_configs, first in brackets:
        trained, alive = 0, n_configs
        for budget in budgets[min(first, len(budgets) - 1) :]:
            epochs += alive * (budget - (trained if kind == "continued" else 0))
            trained, alive = budget, max(1, alive // _ETA)
    return epochs / budgets[-1]


def _reach(valid: Floats, test: Floats, brackets: Sequence[tuple[int, int]]) -> float:
    """Return the mean test accuracy of the config that a search returns."""
    rng, ends = np.random.default_rng(0), []
    for n_configs, first in brackets:
        alive = rng.integers(len(test), size=(_N_DRAWS, n_configs))
        for rung in range(first, valid.shape[1] - 1):
            order = np.argsort(-valid[alive, rung], axis=1, kind="stable")
            alive = np.take_along_axis(alive, order[:, : max(1, alive.shape[1] // _ETA)], axis=1)
        ends.append(alive)
    trained = np.concatenate(ends, axis=1)
    best = valid[trained, -1].argmax(axis=1)
    return float(test[trained[np.arange(_N_DRAWS), best]].mean())


def _trainings_for(reached: Floats, whole: Floats, test: Floats) -> Floats:
    """Return how many draws with replacement random search needs for each mean test accuracy."""
    order = np.argsort(whole, kind="stable")
    n = np.geomspace(1.0, _MOST_TRAININGS, 400)
    below = (np.arange(len(test) + 1) / len(test)) ** n[:, None]  # probability that the best is among the worst i
    means = np.maximum.accumulate(np.diff(below, axis=1) @ test[order])
    return np.interp(reached, means, n)
