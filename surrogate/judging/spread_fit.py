"""Fit the spread of trainings (`jahs.models.noise.spread`) to deviations of repeats and of outcomes from predictions.

Over 300 lines: it is one statistical model: its parameters, its likelihood and its shrinkage are read together.

Repeats are few, so the model is small and shrunk. The logarithm of the spread is a sum of an intercept for each
accuracy, a smooth curve of the predicted accuracy, a curve of the epoch, slopes for N, W and Resolution, and a curve of
the learning rate; each is pulled towards flat by a normal prior. The curve of the predicted accuracy goes from one
early in a training to another at its end: noise decays with the learning rate where a training succeeds, and not where
it fails. Training accuracy is fitted apart from the two others, which differ by an intercept alone, since they are
measured on different numbers of images. Scale and tail are then set by cross-validated deviations, since the curves fit
their own configs too closely. The tail is that of the better half of the predictions: where trainings fail, many do
not differ at all and a few differ much, and their tail would give good configs draws that no training supports.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise.chance import quantile
from jahs.models.noise.spread import (
    LEVELS,
    RATE_COLUMN,
    RATES,
    SIZE_COLUMNS,
    Correlation,
    Spread,
    TimeSpread,
    to_line,
    with_tail,
)
from jahs.schema import SIZE_KEYS
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES

_N_FOLDS: Final = 5
_TAIL_FREEDOM: Final = 8.0  # of the Student's t of the fit; a smaller one takes heavy tails for a small spread
_WORTH: Final = 8.0  # effective number of deviations per unit: its epochs and 3 accuracies are highly correlated
_FITTED_TOGETHER: Final = (("train_acc",), ("valid_acc", "test_acc"))
_SHARES: Final = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
_OUTER: Final = (0.8, 0.9, 0.9, 0.95)
_TAIL_PRIOR: Final = 0.05
_TAIL_WORTH: Final = 10.0  # configs that the prior of the tail is worth
_TIME_PRIOR: Final = 0.05
_TIME_WORTH: Final = 3.0
_SHARE_PRIOR: Final = 0.2
_MOST_STEPS: Final = 100
_LONGEST_STEP: Final = 2.0
_SMALL_STEP: Final = 1e-8
_DIGITS: Final = 6
_PLACES: Final = 4
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deviations:
    """Deviations of one metric, each distributed like the deviation of a training from its mean."""

    # The deviations, (n,), on the line of `jahs.models.noise.spread`; for times, deviations of the logarithm.
    size: _Floats
    predicted: _Floats  # answers of a query, (n,)
    X: NDArray[np.float32]
    unit: NDArray[np.int64]  # (n,), numbers of independent observations: a config and a position among its repeats
    config_id: NDArray[np.uint64]

    def take(self, rows: NDArray[np.bool_ | np.integer]) -> Deviations:
        """Return some deviations: positions or a mask."""
        return Deviations(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def fit_spreads(found: Mapping[str, Deviations], of_task: Task) -> dict[str, Spread]:
    """Fit the spreads of the accuracies."""
    configs = np.unique(np.concatenate([deviations.config_id for deviations in found.values()]))
    fold = np.arange(len(configs)) % _N_FOLDS  # ids are digests, so their order is random
    standard = {name: np.full(len(d.size), np.nan) for name, d in found.items()}
    for number in range(_N_FOLDS):
        is_here = {name: np.isin(d.config_id, configs[fold == number]) for name, d in found.items()}
        curves = _fit_all_curves({name: d.take(~is_here[name]) for name, d in found.items()}, of_task)
        for name, here in is_here.items():
            d = found[name].take(here)
            standard[name][here] = d.size / curves[name].of_rows(d.predicted, d.X)
    weights = {name: _weights(d, of_task.max_epoch) for name, d in found.items()}
    every, of_every = (np.concatenate(list(parts.values())) for parts in (standard, weights))
    predicted = np.concatenate([d.predicted for d in found.values()])
    is_better = predicted >= np.median(predicted)
    tail = _tail(every[is_better], of_every[is_better], len(configs))
    curves = _fit_all_curves(found, of_task)
    spreads = {}
    for names in _FITTED_TOGETHER:
        u = np.concatenate([standard[name] for name in names])
        w = np.concatenate([weights[name] for name in names])
        scale = _scale(u, w, tail)
        for name in names:
            spreads[name] = _rounded(curves[name], scale=scale, tail=tail)
    return spreads


def points_of_an_image(of_task: Task, metric: str) -> float:
    """Return how many points of an accuracy one image is."""
    n_train = of_task.epoch_images or of_task.n_train
    return 100.0 / {"train_acc": n_train, "valid_acc": of_task.n_valid, "test_acc": of_task.n_test}[metric]


def fit_time_spread(deviations: Deviations) -> TimeSpread:
    """Fit the spread of the factor of times: one number, with a prior of 5 % that counts as three configs."""
    n = len(deviations.size)
    if not n:
        return TimeSpread(spread=_TIME_PRIOR)
    weights = _weights(deviations)
    tail = _tail(deviations.size, weights, n)
    spread = _scale(deviations.size, weights, tail)
    spread = float(np.sqrt((n * spread**2 + _TIME_WORTH * _TIME_PRIOR**2) / (n + _TIME_WORTH)))
    return TimeSpread(spread=_round(min(spread, 1.5)), tail=_round(tail))


def fit_correlation(found: Mapping[str, Deviations], spreads: Mapping[str, Spread], max_epoch: int) -> Correlation:
    """Fit the correlation between epochs and accuracies of one training, by least squares."""
    from scipy.optimize import least_squares

    epochs = np.unique(np.rint(np.linspace(1, max_epoch, min(max_epoch, 12))).astype(int))
    measured, n_units = _correlations(found, spreads, epochs)
    default = Correlation()
    shares = np.divide(default.evaluation, default.twins)
    start = np.array([default.halving, *default.train, *shares, *default.twins])
    is_known = np.isfinite(measured)
    weight = np.sqrt(10.0 * n_units / max(int(is_known.sum()), 1))

    def faults(values: _Floats) -> _Floats:
        model = _model_correlations(_correlation(values), epochs, max_epoch)
        return np.concatenate([weight * (model - measured)[is_known], (values - start) / _SHARE_PRIOR])

    best = least_squares(faults, start, bounds=(0.0, 1.0), x_scale=0.1, diff_step=np.full(7, 1e-2))
    return _correlation(np.round(best.x, _PLACES))


def reach(spread: Spread | TimeSpread, level: float) -> float:
    """Return the half-width, in standard deviations, of the interval with probability `level`."""
    return with_tail(quantile((1 + level) / 2), spread.tail)


def _fit_all_curves(found: Mapping[str, Deviations], of_task: Task) -> dict[str, Spread]:
    """Fit everything but scale and tail."""
    together = [{name: found[name] for name in names} for names in _FITTED_TOGETHER]
    return {name: spread for some in together for name, spread in _fit_curves(some, of_task).items()}


def _fit_curves(found: Mapping[str, Deviations], of_task: Task) -> dict[str, Spread]:
    """Maximise the penalised likelihood of a Student's t, by Fisher's scoring."""
    last = of_task.max_epoch
    F = np.concatenate([_design(place, d, last) for place, d in enumerate(found.values())])
    share = np.concatenate([d.X[:, -1].astype(np.float64) / last for d in found.values()])[:, None]
    squares = np.concatenate(
        [_at_least_an_image(d, points_of_an_image(of_task, name)) ** 2 for name, d in found.items()]
    )
    weights = np.concatenate([_weights(d, last) for d in found.values()]) * _WORTH / len(ACCURACIES)
    tents, penalty, theta = F[:, _LAST].copy(), _penalty(), np.zeros(_N_PARAMETERS)
    for _ in range(_MOST_STEPS):
        growth = np.exp(tents @ theta[_LAST])[:, None]  # the last curve over the first one
        mixed = 1 - share + share * growth
        F[:, _LAST] = 0.0
        log_spread = _BASE + F @ theta + np.log(mixed[:, 0])
        F[:, _LAST] = tents * (share * growth / mixed)
        ratio = squares * np.exp(-2 * log_spread) / _TAIL_FREEDOM
        information = (F * (weights * 2 * _TAIL_FREEDOM / (_TAIL_FREEDOM + 3))[:, None]).T @ F + penalty
        slope = F.T @ (weights * (1 - (_TAIL_FREEDOM + 1) * ratio / (1 + ratio))) + penalty @ theta
        step = np.linalg.solve(information, slope)
        theta -= step * min(1.0, _LONGEST_STEP / np.abs(step).max(initial=_SMALL_STEP))
        if np.abs(step).max() < _SMALL_STEP:
            break
    return {name: _as_spread(place, theta, last) for place, name in enumerate(found)}


# The parameters, in order: an intercept for each of at most two accuracies, the level's curve, the logarithm of the
# last epoch's curve over the level's, the epoch's curve (which ends at 0), three slopes and the rate's curve.
_DECADES: Final = np.array([-3.0, -2.0, -1.0, 0.0])
_EPOCH_KNOTS: Final = np.array([0.0, 0.5, 1.0])
_LEVEL_KNOTS: Final = np.array(LEVELS, dtype=np.float64)
_LAST_KNOTS: Final = _LEVEL_KNOTS[::2]
_LEVEL: Final = slice(2, 2 + len(_LEVEL_KNOTS))
_LAST: Final = slice(_LEVEL.stop, _LEVEL.stop + len(_LAST_KNOTS))
_EPOCH: Final = slice(_LAST.stop, _LAST.stop + 2)
_SIZE: Final = slice(_EPOCH.stop, _EPOCH.stop + len(SIZE_KEYS))
_RATE: Final = slice(_SIZE.stop, _SIZE.stop + len(_DECADES))
_N_PARAMETERS: Final = _RATE.stop
_BASE: Final = -2.0  # logarithm of the spread where nothing is known


def _design(place: int, d: Deviations, max_epoch: int) -> _Floats:
    """Return the design matrix of the parameters, (n, n_parameters), without `_BASE`; the last curve's are tents."""
    F = np.zeros((len(d.size), _N_PARAMETERS))
    F[:, place] = 1
    F[:, _LEVEL] = _tents(_LEVEL_KNOTS, d.predicted)
    F[:, _LAST] = _tents(_LAST_KNOTS, d.predicted)
    F[:, _EPOCH] = _tents(_EPOCH_KNOTS, d.X[:, -1] / max_epoch)[:, :2]
    for j, (key, column) in enumerate(zip(SIZE_KEYS, SIZE_COLUMNS, strict=True)):
        F[:, _SIZE.start + j] = np.searchsorted(PARAMETERS[key].codes, d.X[:, column]) - 1.0
    F[:, _RATE] = _tents(_DECADES, np.log10(d.X[:, RATE_COLUMN].astype(np.float64)))
    return F


def _at_least_an_image(d: Deviations, points: float) -> _Floats:
    """Return the absolute deviations, at least one image: trainings that all fail alike do not differ at all."""
    y = np.clip(d.predicted, 0.0, 100.0 - points)
    return np.maximum(np.abs(d.size), to_line(y + points) - to_line(y))


def _penalty() -> _Floats:
    """Return the inverse covariance of the prior."""
    P = np.zeros((_N_PARAMETERS, _N_PARAMETERS))
    curves = ((_LEVEL, 1.0, 1.6, 2.0), (_LAST, 0.5, 1.0, 4.0), (_RATE, 0.4, np.inf, 1.0))
    for block, first, second, own in curves:  # standard deviations of first and second differences, and of the values
        same = np.eye(block.stop - block.start)
        differences = ((np.diff(same, axis=0), first), (np.diff(same, n=2, axis=0), second), (same, own))
        P[block, block] = sum(D.T @ D / sd**2 for D, sd in differences)
    for block, own in ((slice(0, 2), 2.0), (_EPOCH, 0.7), (_SIZE, 0.05)):
        P[block, block] = np.eye(block.stop - block.start) / own**2
    return P


def _as_spread(place: int, theta: _Floats, max_epoch: int) -> Spread:
    of_epoch = _tents(_EPOCH_KNOTS, np.arange(1, max_epoch + 1) / max_epoch)[:, :2] @ theta[_EPOCH]
    of_rate = _tents(_DECADES, np.log10(RATES)) @ theta[_RATE]
    level = _BASE + theta[place] + theta[_LEVEL]
    last = level + _tents(_LAST_KNOTS, _LEVEL_KNOTS) @ theta[_LAST]
    n, w, resolution = (tuple(np.exp(slope * np.arange(-1, 2)).tolist()) for slope in theta[_SIZE])
    return Spread(
        level=tuple(np.exp(level).tolist()),
        last=tuple(np.exp(last).tolist()),
        epoch=tuple(np.exp(of_epoch).tolist()),
        rate=tuple(np.exp(of_rate).tolist()),
        N=n,
        W=w,
        Resolution=resolution,
    )


def _tents(knots: _Floats, x: NDArray[np.floating]) -> _Floats:
    """Return linear interpolation weights of the knots, (n, n_knots), constant beyond the outermost knots."""
    place = np.interp(x, knots, np.arange(len(knots)))
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(place[:, None] - np.arange(len(knots)))))


def _weights(deviations: Deviations, max_epoch: int = 0) -> _Floats:
    """Return weights with which every unit counts as one; its row at `max_epoch` has as much as all its others."""
    own = np.where(deviations.X[:, -1] == max_epoch, 1.0 + max_epoch, 1.0)
    place = np.unique(deviations.unit, return_inverse=True)[1]
    return np.asarray(own / np.bincount(place, weights=own)[place], dtype=np.float64)


def _tail(u: _Floats, weights: _Floats, n_configs: int) -> float:
    """Return the tail that fits the quantiles of `u`, shrunk to a prior."""
    points = np.log([_point(u, weights, share) for share in _SHARES])
    g = np.array([quantile((1 + share) / 2) for share in _SHARES])
    tails = np.linspace(0.0, 0.5, 101)[:, None]
    logs = points - np.log(with_tail(g, tails))  # (n_tails, n_shares)
    tail = float(tails[np.argmin(logs.var(axis=1)), 0])
    return (n_configs * tail + _TAIL_WORTH * _TAIL_PRIOR) / (n_configs + _TAIL_WORTH)


def _scale(u: _Floats, weights: _Floats, tail: float) -> float:
    """Return the standard deviation that fits the outer quantiles of `u`, above all the 90 % quantile."""
    logs = [math.log(_point(u, weights, share) / with_tail(quantile((1 + share) / 2), tail)) for share in _OUTER]
    return math.exp(sum(logs) / len(logs))


def _point(u: _Floats, weights: _Floats, share: float) -> float:
    """Return the weighted quantile of the absolute values."""
    order = np.argsort(np.abs(u), kind="stable")
    places = np.cumsum(weights[order]) - weights[order] / 2
    return max(float(np.interp(share * weights.sum(), places, np.abs(u)[order])), 1e-9)


def _rounded(curves: Spread, *, scale: float, tail: float) -> Spread:
    by = {"level": scale, "last": scale, **dict.fromkeys(("epoch", "N", "W", "Resolution", "rate"), 1.0)}
    values = {name: tuple(_round(max(v * factor, 1e-6)) for v in getattr(curves, name)) for name, factor in by.items()}
    return Spread(**values, tail=_round(tail))


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _correlation(values: _Floats) -> Correlation:
    """Return the correlation of seven values: halving, train pair, evaluation pair as shares of the twins, twins."""
    halving, a, b, first, last, u, v = values.tolist()
    evaluation = min(round(first * u, _PLACES), u), min(round(last * v, _PLACES), v)
    return Correlation(halving=halving, train=(a, b), evaluation=evaluation, twins=(u, v))


def _correlations(
    found: Mapping[str, Deviations], spreads: Mapping[str, Spread], epochs: NDArray[np.integer]
) -> tuple[_Floats, int]:
    """Return correlations of all pairs of (accuracy, epoch), NaN where too few units have both; and how many units."""
    units = np.unique(np.concatenate([found[name].unit for name in ACCURACIES]))
    g = np.full((len(units), len(ACCURACIES), len(epochs)), np.nan)
    grid = np.linspace(-4.0, 4.0, 801)
    for j, name in enumerate(ACCURACIES):
        deviations, spread = found[name], spreads[name]
        chosen = deviations.take(np.isin(deviations.X[:, -1], epochs))
        u = chosen.size / spread.of_rows(chosen.predicted, chosen.X)
        normal = np.interp(u, with_tail(grid, spread.tail), grid)
        g[np.searchsorted(units, chosen.unit), j, np.searchsorted(epochs, chosen.X[:, -1])] = normal
    flat = g.reshape(len(units), -1)
    is_there = np.isfinite(flat)
    flat = np.where(is_there, flat, 0.0)
    squares = (flat**2).T @ is_there.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        measured = (flat.T @ flat) / np.sqrt(squares * squares.T)
    n_both = is_there.astype(np.int64).T @ is_there.astype(np.int64)
    measured[(n_both < 3) | np.tri(len(measured), dtype=np.bool_)] = np.nan
    return measured, len(units)


def _model_correlations(model: Correlation, epochs: NDArray[np.integer], max_epoch: int) -> _Floats:
    """Return the correlations of a model, arranged as by `_correlations`."""
    loadings = model.slow_loadings(max_epoch)
    L = np.zeros((len(epochs), max(map(len, loadings))))
    for i, epoch in enumerate(epochs.tolist()):
        L[i, : len(loadings[epoch - 1])] = loadings[epoch - 1]
    weights = np.array(model.weights(max_epoch))[epochs - 1]
    own = {"train_acc": weights[:, 0], "valid_acc": weights[:, 2], "test_acc": weights[:, 2]}
    blocks = [[np.outer(own[a], own[b]) * (L @ L.T) for b in ACCURACIES] for a in ACCURACIES]
    for a, b in product(range(len(ACCURACIES)), repeat=2):
        if {ACCURACIES[a], ACCURACIES[b]} == {"valid_acc", "test_acc"}:
            blocks[a][b] = blocks[a][b] + np.diag(weights[:, 3] ** 2)
    return np.block(blocks)
