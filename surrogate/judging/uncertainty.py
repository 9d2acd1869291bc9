"""Calibration of `bench.predict`: coverage of its intervals on held-out configs, and the refits' scores.

The models and refits that are judged were fitted to the training part. For each accuracy, the factor that scales the
spread between refits is chosen on validation configs; coverage is reported on test configs. Every config has the same
weight, however many rows it has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise import NoiseModel
from jahs.queries.prediction import Uncertain
from surrogate.data.rows import Facts, Rows, features_of, is_full_size
from surrogate.judging.agreement import last_and_first
from surrogate.judging.noise import share_inside
from surrogate.models.model import Surrogate
from workshop.ranks import kendall_tau

LEVELS: Final = (0.5, 0.8, 0.9, 0.95)
_SCALES: Final = tuple(round(0.1 * k, 1) for k in range(5, 51))
_N_BINS: Final = 10
_N_NEAREST: Final = 5


def uncertain_of(
    fitted: Surrogate, refits: Sequence[Surrogate], rows: Rows, noise: NoiseModel, *, scale: float = 1.0
) -> Uncertain:
    """Return the answer of `bench.predict` for these rows, with one metric."""
    return Uncertain(
        metrics=(fitted.metric,),
        mean=fitted.predict(rows.X)[None],
        refits=np.stack([refit.predict(rows.X) for refit in refits], axis=1)[None],
        scale=np.array([[scale]]),
        noise=noise,
        X=rows.X,
    )


def choose_scale(found: Uncertain, rows: Rows) -> float:
    """Return the scale with which the coverages at `LEVELS` are closest to the levels; 1 without rows."""
    if not len(rows):
        return 1.0

    def miss(scale: float) -> float:
        scaled = dataclasses.replace(found, scale=np.array([[scale]]))
        return sum(abs(float(covered(scaled, rows, level)["share"]) - level) for level in LEVELS)

    return min(_SCALES, key=miss)


def covered(found: Uncertain, rows: Rows, level: float, is_in: NDArray[np.bool_] | slice = slice(None)) -> Facts:
    """Return the coverage of the intervals of a level, for all rows or a subset; see `share_inside`."""
    low, high = (found.quantile(q, "total")[0] for q in ((1 - level) / 2, (1 + level) / 2))
    is_inside = (rows.y >= low) & (rows.y <= high)
    return share_inside(rows.config_id[is_in], is_inside[is_in], (high - low)[is_in])


def uncertainty_facts(
    fitted: Surrogate, refits: Sequence[Surrogate], parts: Mapping[str, Rows], noise: NoiseModel
) -> Facts:
    """Return the scale of one metric's refits, the coverage of the intervals, and the scores of single refits."""
    scale = choose_scale(uncertain_of(fitted, refits, parts["valid"], noise), parts["valid"])
    test = parts["test"]
    facts: Facts = {"scale": scale, "coverage": [], "scores": None, "by_model_sd": None, "by_distance": None}
    if not len(test):
        return facts
    answer = uncertain_of(fitted, refits, test, noise, scale=scale)
    for cut, is_in in _cuts(test, answer):
        facts["coverage"] += [{"cut": cut, "level": level, **covered(answer, test, level, is_in)} for level in LEVELS]
    facts["scores"] = _scores(answer, test)
    is_last = last_and_first(test)
    error = np.abs(answer.mean[0] - test.y)[is_last]
    facts["by_model_sd"] = _errors_by(answer.model_sd[0, is_last], error)
    facts["by_distance"] = _errors_by(distance_to_data(fitted, test.take(is_last), parts["train"]), error)
    return facts


def distance_to_data(fitted: Surrogate, rows: Rows, training: Rows) -> NDArray[np.float64]:
    """Return the mean distance of each row to its five nearest training configs.

    A distance is a sum over the model's features: the difference of their ranks among the training configs,
    weighted by the square root of the gain of the feature's splits.
    """
    _, first = np.unique(training.config_id, return_index=True)
    X = training.X[first]
    X[:, -1] = training.epoch.max()
    F_train, F_rows = (features_of(each, fitted.features, fitted.task) for each in (X, rows.X))
    gain = fitted.booster.get_score(importance_type="total_gain")
    distances = np.zeros((len(F_rows), len(F_train)))
    for j in range(F_train.shape[1]):
        order = np.sort(F_train[:, j])
        ranks = [np.searchsorted(order, F[:, j]) / len(order) for F in (F_rows, F_train)]
        distances += np.sqrt(gain.get(f"f{j}", 0.0)) * np.abs(ranks[0][:, None] - ranks[1])
    return np.asarray(np.sort(distances, axis=1)[:, :_N_NEAREST].mean(axis=1))


def _cuts(rows: Rows, answer: Uncertain) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the rows that coverage is reported for; predictions choose the best tenth, since measurements regress."""
    is_last = rows.epoch == rows.epoch.max()
    is_full = is_last & is_full_size(rows.X)
    is_best = is_last & (answer.mean[0] >= np.quantile(answer.mean[0, is_last], 0.9))
    yield "all epochs", np.ones(len(rows), np.bool_)
    yield "last epoch", is_last
    if is_full.any():
        yield "full size", is_full
    yield "best tenth", is_best


def _scores(answer: Uncertain, rows: Rows) -> Facts:
    """Return tau and MAE at the last epoch, first seeds: of the model, of single refits (average), of their mean."""
    is_last = last_and_first(rows)
    y = rows.y[is_last]

    def score(predicted: NDArray[np.float64]) -> tuple[float, float]:
        return kendall_tau(y, predicted[is_last]), float(np.abs(predicted[is_last] - y).mean())

    single = np.mean([score(refit) for refit in answer.refits[0].T], axis=0).tolist()
    pairs = {"model": score(answer.mean[0]), "refit": single, "mean_of_refits": score(answer.refits[0].mean(axis=1))}
    return {name: {"tau": tau, "mae": mae} for name, (tau, mae) in pairs.items()}


def _errors_by(score: NDArray[np.float64], error: NDArray[np.float64]) -> Facts:
    """Return the mean absolute error by decile of a score, Kendall's tau over the deciles, and over the rows."""
    bins = [at for at in np.array_split(np.argsort(score, kind="stable"), _N_BINS) if len(at)]
    means = [float(error[at].mean()) for at in bins]
    return {
        "tau": kendall_tau(score, error),
        "tau_of_bins": kendall_tau(np.arange(len(means), dtype=np.float64), np.array(means)),
        "mae": means,
    }
