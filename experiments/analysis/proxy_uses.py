"""Uses of scores of untrained networks: as features of accuracy models, and as the zeroth rung of successive halving.

Both use the scored configs of a folder of runs: their scores by seed, learning curves and costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_orders import last_where_missing, seeds_of
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import summarize
from jahs.files.runs import is_timed, read_configs, read_profile, read_protocol, read_runs, timing_machine
from jahs.files.tables import Table, take
from jahs.models.cost import n_macs
from jahs.schema import CONFIG_KEYS, PROXIES, PROXY_TIMES, SPLIT_PARTS
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import Task
from jahs.tasks.own import task_of_protocol
from splits.folds import k_folds
from splits.kinship import fidelity_groups
from splits.split import read_split
from surrogate.data.rows import features_of
from surrogate.models.model import default_features
from workshop.measured import read_proxies, without_final
from workshop.ranks import kendall_tau

SIZES: Final = (100, 400, 1400)  # training configs of the accuracy models
N_SCORED: Final = 81  # configs that a zeroth rung scores; plain halving starts with a third of them
_N_FOLDS: Final = 10
_ETA: Final = 3
_FOREST: Final = {"tree_method": "hist", "nthread": 1, "max_depth": 6, "learning_rate": 0.1, "min_child_weight": 3}
_N_TREES: Final = 150


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredTask:
    """The n configs of a folder that have scores and a finished run, without the final test set, sorted by id."""

    task: Task
    n_recorded: int  # number of configs with a finished run
    configs: Table
    X: NDArray[np.float32]  # encoded configs, (n, 15)
    group: NDArray[np.intp]  # fidelity group of each config
    part: NDArray[np.int64]  # part of each config in the split, as a position in `SPLIT_PARTS`; -1 without a split
    accuracy: Floats  # validation accuracy of the first finished run, (n, epochs)
    runtime_s: Floats  # cumulative CPU seconds of this run, (n, epochs); NaN if it was not timed on the timing machine
    scores: dict[str, Floats]  # scores by proxy, (n_seeds, n); NaN for a missing score
    cpu_s: dict[str, Floats]  # mean CPU seconds of each proxy, (n,)
    versions: tuple[str, ...]  # versions of torch, and processors

    @property
    def baselines(self) -> dict[str, Floats]:
        """Scores that cost nothing, or one epoch, (1, n) each."""
        return {
            "multiply-adds": np.asarray(n_macs(self.X, self.task), dtype=np.float64)[None],
            "accuracy after one epoch": self.accuracy[None, :, 0],
        }


def read_scored(folder: Path) -> ScoredTask:
    """Read a folder of runs without the final test set, and the split beside it if there is one."""
    task = task_of_protocol(read_protocol(folder).facts)
    configs, scored = read_configs(folder), read_proxies(folder)
    runs, _ = without_final(read_runs(folder), configs)
    runs["runtime"] = np.where(is_timed(runs, timing_machine(runs, read_profile(folder))), runs["runtime"], np.nan)
    runs = take(runs, runs["status"] == "finished")
    recorded, first = np.unique(runs["config_id"], return_index=True)
    ids = np.intersect1d(recorded, scored["config_id"])
    n_epochs = int(max(runs["epoch"], default=task.max_epoch))
    rows = first[np.searchsorted(recorded, ids)][:, None] + np.arange(n_epochs)  # a run's epochs are in order
    table = take(configs, np.argsort(configs["config_id"]))
    table = take(table, np.isin(table["config_id"], ids))
    split = folder.parent / "split.json"
    return ScoredTask(
        task=task,
        n_recorded=len(recorded),
        configs=table,
        X=encode({key: table[key] for key in CONFIG_KEYS}, n_epochs),
        group=fidelity_groups(table)[0] if len(ids) else np.empty(0, np.intp),
        part=read_split(split).parts_of(ids).astype(np.int64) if split.exists() else np.full(len(ids), -1),
        accuracy=runs["valid_acc"][rows].astype(np.float64),
        runtime_s=runs["runtime"][rows].astype(np.float64),
        scores={name: seeds_of(scored, name, ids) for name in PROXIES},
        cpu_s={name: _mean_over_seeds(seeds_of(scored, column, ids)) for name, column in PROXY_TIMES.items()},
        versions=(*sorted(set(scored["torch_version"].tolist())), *sorted(set(scored["machine"].tolist()))),
    )


def _mean_over_seeds(values: Floats) -> Floats:
    """Return the mean over seeds, (n,), ignoring missing scores; NaN if all are missing."""
    return np.asarray(np.ma.masked_invalid(values).mean(axis=0).filled(np.nan))


class Gain(NamedTuple):
    """Kendall's tau of held-out predictions, by models fitted to n configs without and with proxies."""

    n: int
    without: float
    with_proxies: float
    difference: float  # mean over folds, with minus without
    error: float  # standard error of the difference


class HalvingResult(NamedTuple):
    """Mean final regret of a search in points of validation accuracy, and its cost in full trainings."""

    regret: float  # mean over repetitions
    error: float  # standard error of the regret
    cost: float  # total cost, scoring included
    scoring: float  # cost of the scoring alone
    gain: float  # regret of plain halving minus this regret, paired by repetition
    gain_error: float  # standard error of the gain


def gains_of_features(scored: ScoredTask) -> list[Gain]:
    """Return the gain of models of validation accuracy at the last epoch from proxies, by number of training configs.

    Models are fitted and scored by cross-validation over the configs outside the test part; sizes that no fold reaches
    are left out.
    """
    used = np.flatnonzero(scored.part != SPLIT_PARTS.index("test"))
    if len(used) < 2 * _N_FOLDS:
        return []
    plain = features_of(scored.X, default_features("valid_acc"), scored.task)[used]
    on_log_scale = (np.sign(values) * np.log1p(np.abs(values)) for values in scored.scores.values())
    proxies = np.column_stack([_mean_over_seeds(values)[used] for values in on_log_scale])
    both = np.column_stack([plain, proxies]).astype(np.float32)
    y, table, rng = scored.accuracy[used, -1], take(scored.configs, used), np.random.default_rng(0)
    taus_by_size: dict[int, list[list[float]]] = {}
    for fit, held_out in k_folds(table, _N_FOLDS, seed=0):
        order = rng.permutation(fit)
        for n in SIZES:
            if n <= len(order):
                taus = [kendall_tau(_predicted(F, y, order[:n], held_out), y[held_out]) for F in (plain, both)]
                taus_by_size.setdefault(n, []).append(taus)
    gains = []
    for n, pairs in taus_by_size.items():
        without, with_proxies = np.array(pairs).T
        gain = summarize(with_proxies - without)
        gains.append(Gain(n, float(without.mean()), float(with_proxies.mean()), float(gain.mean), float(gain.se)))
    return gains


def halvings(scored: ScoredTask, *, n_repetitions: int = 500) -> dict[str, HalvingResult]:
    """Return successive halving over epochs from random configs, and from the best third of a sample by a proxy.

    A search with a zeroth rung has the budget of plain halving: it scores and starts fewer configs until the total
    cost, scoring included, is not higher, but at least one. Multiply-adds cost nothing, and `ntk` prefers small values.
    Empty if too few configs were timed on one processor.
    """
    timed = np.flatnonzero(np.isfinite(scored.runtime_s).all(axis=1))
    if len(timed) < 1.25 * N_SCORED:
        return {}
    trainings = _Trainings(scored.accuracy[timed], scored.runtime_s[timed])
    rng = np.random.default_rng(0)
    draws = [rng.permutation(len(timed))[:N_SCORED] for _ in range(n_repetitions)]
    plain = [_Search(*trainings.halve(drawn[: N_SCORED // _ETA])) for drawn in draws]
    results = {"plain": _halving(trainings, plain, plain)}
    rungs = {name: (values[0], scored.cpu_s[name]) for name, values in scored.scores.items()}
    largest_first, ntk_s = rungs.pop("ntk")
    rungs["ntk, least first"] = -largest_first, ntk_s
    rungs["multiply-adds"] = scored.baselines["multiply-adds"][0], np.zeros(len(ntk_s))
    for name, (values, cpu_s) in rungs.items():
        halve = partial(trainings.halve_within, scores=last_where_missing(values[timed]), cpu_s=cpu_s[timed])
        runs = [halve(drawn, budget_s=search.spent_s) for drawn, search in zip(draws, plain, strict=True)]
        results[name] = _halving(trainings, runs, plain)
    return results


class _Search(NamedTuple):
    """The best accuracy at the last epoch that a search finds, its seconds, and those of them spent on scoring."""

    best: float
    spent_s: float
    scoring_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Trainings:
    """Recorded trainings: accuracies and cumulative seconds, (n, epochs) each."""

    accuracy: Floats
    runtime_s: Floats

    def halve(self, configs: NDArray[np.intp]) -> tuple[float, float]:
        """Return the best accuracy at the last epoch of successive halving, and the seconds of all trainings."""
        last = self.accuracy.shape[1]
        spent_s, before_s = 0.0, np.zeros(len(configs))
        for epoch in sorted({max(1, round(last / _ETA**2)), max(1, round(last / _ETA)), last}):
            spent_s += float((self.runtime_s[configs, epoch - 1] - before_s).sum())
            if epoch < last:
                best = np.argsort(-self.accuracy[configs, epoch - 1], kind="stable")[: math.ceil(len(configs) / _ETA)]
                configs = configs[best]
                before_s = self.runtime_s[configs, epoch - 1]
        return float(self.accuracy[configs, -1].max()), spent_s

    def halve_within(self, drawn: NDArray[np.intp], scores: Floats, cpu_s: Floats, budget_s: float) -> _Search:
        """Return successive halving from the best third of the drawn configs by a score, within a budget.

        Args:
            drawn: configs to score; only the first ones if more cost too much, but at least three.
            scores, cpu_s: score of each recorded config, and its seconds.
        """
        for n in range(len(drawn) // _ETA, 0, -1):
            scored = drawn[: _ETA * n]
            scoring_s = float(cpu_s[scored].sum())
            best, spent_s = self.halve(scored[np.argsort(-scores[scored], kind="stable")][:n])
            if spent_s + scoring_s <= budget_s or n == 1:
                return _Search(best, spent_s + scoring_s, scoring_s)
        raise AssertionError("a search has at least three configs")


def _halving(trainings: _Trainings, runs: Sequence[_Search], plain: Sequence[_Search]) -> HalvingResult:
    full_s = float(trainings.runtime_s[:, -1].mean())
    best, spent_s, scoring_s = np.array(runs).T
    regret = summarize(float(trainings.accuracy[:, -1].max()) - best)
    gain = summarize(best - np.array(plain)[:, 0])
    cost, scoring = (float(seconds.mean()) / full_s for seconds in (spent_s, scoring_s))
    return HalvingResult(float(regret.mean), float(regret.se), cost, scoring, float(gain.mean), float(gain.se))


def _predicted(F: NDArray[np.float32], y: Floats, fit: NDArray[np.intp], held_out: NDArray[np.intp]) -> Floats:
    import xgboost

    data = xgboost.QuantileDMatrix(F[fit], y[fit], nthread=1)
    booster = xgboost.train({**_FOREST, "objective": "reg:squarederror"}, data, _N_TREES)
    return np.asarray(booster.inplace_predict(F[held_out]), dtype=np.float64)
