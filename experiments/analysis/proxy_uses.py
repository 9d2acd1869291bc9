"""What scores of untrained networks are good for: as features of accuracy models, and as the zeroth rung of halving."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_orders import last_where_missing
from experiments.analysis.proxy_tasks import ScoredTask, is_test
from jahs.comparison.logs import Floats
from jahs.files.tables import take
from jahs.models.features import FeatureBuilder
from splits.folds import k_folds
from surrogate.models.model import default_features
from workshop.ranks import kendall_tau

SIZES: Final = (100, 400, 1400)
"""Training configs of the accuracy models."""

N_SCORED: Final = 81
"""Configs that a zeroth rung scores; plain halving starts with a third of them."""

_N_FOLDS: Final = 5
_N_REPEATS: Final = 2
_ETA: Final = 3
_FOREST: Final = {"tree_method": "hist", "nthread": 1, "max_depth": 6, "learning_rate": 0.1, "min_child_weight": 3}
_N_TREES: Final = 150


class Gain(NamedTuple):
    """Kendall's tau of held-out predictions without and with proxies, mean over folds and its standard error.

    Attributes:
        without, with_proxies: tau.
        difference, error: with minus without, by fold.
    """

    n: int
    without: float
    with_proxies: float
    difference: float
    error: float


class Halving(NamedTuple):
    """Mean final regret of a search in points of validation accuracy, and its cost in full trainings.

    Attributes:
        regret, error: mean over repetitions, and its standard error.
        cost: of everything, scoring included.
        scoring: of the scoring alone.
        gain, gain_error: regret of plain halving minus this regret, paired.
    """

    regret: float
    error: float
    cost: float
    scoring: float
    gain: float
    gain_error: float


def gains_of_features(scored: ScoredTask, *, sizes: Sequence[int] = SIZES) -> list[Gain]:
    """Return what proxies add to models of validation accuracy at the last epoch, by number of training configs.

    Models are fitted and scored in folds of the configs that are not in the test part; sizes that no fold reaches are
    left out.
    """
    kept = np.flatnonzero(~is_test(scored))
    if len(kept) < 2 * _N_FOLDS:
        return []
    plain = FeatureBuilder(default_features("valid_acc"), scored.task).build(scored.X)[kept]
    proxies = np.column_stack([_flattened(values)[kept] for values in scored.scores.values()])
    both = np.column_stack([plain, proxies]).astype(np.float32)
    y, table, rng = scored.accuracy[kept, -1], take(scored.configs, kept), np.random.default_rng(0)
    found: dict[int, list[tuple[float, float]]] = {}
    for repeat in range(_N_REPEATS):
        for fit, held_out in k_folds(table, _N_FOLDS, seed=repeat):
            order = rng.permutation(fit)
            for n in sizes:
                if n <= len(order):
                    taus = [kendall_tau(_predicted(F, y, order[:n], held_out), y[held_out]) for F in (plain, both)]
                    found.setdefault(n, []).append((taus[0], taus[1]))
    gains = []
    for n, pairs in found.items():
        without, with_proxies = np.array(pairs).T
        apart = with_proxies - without
        gains.append(Gain(n, float(without.mean()), float(with_proxies.mean()), float(apart.mean()), _error(apart)))
    return gains


def halvings(scored: ScoredTask, *, n_repetitions: int = 500) -> dict[str, Halving]:
    """Return successive halving over epochs from random configs, and from the best of three times as many by a proxy.

    A search with a zeroth rung keeps as many configs as plain halving could have paid for: its first rung shrinks until
    everything, the scoring included, costs no more. Nothing where too few configs were timed on one processor.
    """
    timed = np.flatnonzero(np.isfinite(scored.runtime_s).all(axis=1))
    if len(timed) < 1.25 * N_SCORED:
        return {}
    world = _World(scored.accuracy[timed], scored.runtime_s[timed])
    rng = np.random.default_rng(0)
    draws = [rng.permutation(len(timed))[:N_SCORED] for _ in range(n_repetitions)]
    plain = [world.halve(drawn[: N_SCORED // _ETA]) for drawn in draws]
    found = {"plain": _halving(world, plain, plain, 0.0)}
    for name, values in scored.scores.items():
        scores, cpu_s = last_where_missing(values[0, timed]), scored.cpu_s[name][timed]
        runs = [
            world.halve_within(drawn[np.argsort(-scores[drawn], kind="stable")], float(cpu_s[drawn].sum()), budget)
            for drawn, (_, budget) in zip(draws, plain, strict=True)
        ]
        scoring = float(np.mean([cpu_s[drawn].sum() for drawn in draws]))
        found[name] = _halving(world, runs, plain, scoring)
    return found


@dataclass(frozen=True, slots=True)
class _World:
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

    def halve_within(self, ranked: NDArray[np.intp], scoring_s: float, budget_s: float) -> tuple[float, float]:
        """Return the same for as many of the ranked configs as the budget allows, one at least."""
        for n in range(N_SCORED // _ETA, 0, -1):
            best, spent_s = self.halve(ranked[:n])
            if spent_s + scoring_s <= budget_s or n == 1:
                return best, spent_s + scoring_s
        raise AssertionError("a search has at least one config")


def _halving(
    world: _World, runs: Sequence[tuple[float, float]], plain: Sequence[tuple[float, float]], scoring_s: float
) -> Halving:
    full_s = float(world.runtime_s[:, -1].mean())
    best, spent_s = np.array(runs).T
    regrets, gains = float(world.accuracy[:, -1].max()) - best, best - np.array(plain)[:, 0]
    return Halving(
        regret=float(regrets.mean()),
        error=_error(regrets),
        cost=float(spent_s.mean()) / full_s,
        scoring=scoring_s / full_s,
        gain=float(gains.mean()),
        gain_error=_error(gains),
    )


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _flattened(values: Floats) -> Floats:
    """Return the mean over seeds on a logarithmic scale with its sign, NaN where no seed has a score."""
    known = np.isfinite(values)
    scaled = np.sign(values) * np.log1p(np.abs(values))
    mean = np.where(known, scaled, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known.any(axis=0), mean, np.nan)


def _predicted(F: NDArray[np.float32], y: Floats, fit: NDArray[np.intp], held_out: NDArray[np.intp]) -> Floats:
    import xgboost

    data = xgboost.QuantileDMatrix(F[fit], y[fit], nthread=1)
    parameters: Mapping[str, object] = {**_FOREST, "objective": "reg:squarederror"}
    booster = xgboost.train(dict(parameters), data, _N_TREES)
    return np.asarray(booster.inplace_predict(F[held_out]), dtype=np.float64)
