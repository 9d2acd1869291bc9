"""Whether intervals hold what they promise, and whether draws differ as much as trainings do.

Two spreads are measured on configs that a noise model has not seen:

- "seed": trainings of one config against each other, from the repeats; this is what a query with a seed draws. A repeat
  is held by the interval around the mean of its config's earlier trainings, widened as the mean of so few asks for.
- "outcome": one training against its prediction, the surrogate's error included; this is `NoiseModel.interval`.

The range beside a share is a 90 % interval that counts every config as one observation, for rows of a config are much
alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise import Kind, NoiseModel
from jahs.models.noise.chance import quantile
from surrogate.judging.predicted import NOISY, Predicted, outcome_deviations, repeated_configs, seed_deviations
from surrogate.judging.spread_fit import Deviations, reach
from workshop.ranks import kendall_tau

__all__ = ["Coverage", "Held", "Realism", "coverage", "held", "realism", "report", "summary"]

_LEVEL: Final = 0.9
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many measurements the 90 % intervals hold.

    Attributes:
        metric, kind, epochs: of what; epochs are "all" or "last".
        n_configs, n_rows: how many there are.
        share: of the rows that are inside, each config with equal weight.
        low, high: 90 % interval of the share.
        width: median width of the intervals, in the metric's unit, or relative to the prediction for `runtime`.
    """

    metric: str
    kind: Kind
    epochs: str
    n_configs: int
    n_rows: int
    share: float
    low: float
    high: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Realism:
    """Two measured trainings of the repeated configs against two drawn ones, at the last epoch."""

    metric: str
    n_configs: int
    measured_tau: float
    drawn_tau: float
    measured_difference: float
    drawn_difference: float


def coverage(model: NoiseModel, predicted: Mapping[str, Predicted]) -> list[Coverage]:
    """Measure the shares of rows, of configs that the model has not seen, which its 90 % intervals hold."""
    return summary([part for metric in NOISY for part in held(model, metric, predicted[metric])])


def realism(model: NoiseModel, predicted: Mapping[str, Predicted]) -> list[Realism]:
    """Compare two trainings of the repeated configs, as measured and as drawn around their predictions.

    Every pair of seeds counts, by the number of configs that have both.
    """
    found = []
    for metric in NOISY:
        rows, mean = predicted[metric].rows, predicted[metric].mean
        is_last = (rows.epoch == model.max_epoch) & np.isin(rows.config_id, repeated_configs(predicted))
        pairs: list[tuple[int, tuple[float, ...]]] = []
        compared: set[int] = set()
        for seeds in combinations(np.unique(rows.seed[is_last]).tolist(), 2):
            of_a, of_b = (np.flatnonzero(is_last & (rows.seed == seed)) for seed in seeds)
            ids, at_a, at_b = np.intersect1d(rows.config_id[of_a], rows.config_id[of_b], return_indices=True)
            if len(ids) < 2:
                continue
            a, b = of_a[at_a], of_b[at_b]
            drawn = [model.draw({metric: mean[a]}, rows.X[a], ids, seed)[metric] for seed in seeds]
            both = ((rows.y[a], rows.y[b]), (drawn[0], drawn[1]))
            found_here = (*(kendall_tau(*two) for two in both), *(_difference(metric, *two) for two in both))
            pairs.append((len(ids), found_here))
            compared.update(ids.tolist())
        if not pairs:
            continue
        weights, values = np.array([n for n, _ in pairs]), np.array([each for _, each in pairs])
        measured_tau, drawn_tau, measured_difference, drawn_difference = np.average(values, axis=0, weights=weights)
        found.append(
            Realism(
                metric=metric,
                n_configs=len(compared),
                measured_tau=float(measured_tau),
                drawn_tau=float(drawn_tau),
                measured_difference=float(measured_difference),
                drawn_difference=float(drawn_difference),
            )
        )
    return found


def report(coverages: Sequence[Coverage], comparisons: Sequence[Realism]) -> str:
    """Both measurements as Markdown."""
    lines = [
        "| metric | around | epochs | configs | rows | inside 90 % | interval of that share | median width |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for c in coverages:
        around = {"seed": "earlier trainings", "outcome": "prediction"}[c.kind]
        width = f"{100 * c.width:.1f} %" if c.metric == "runtime" else f"{c.width:.2f} points"
        lines.append(
            f"| {c.metric} | {around} | {c.epochs} | {c.n_configs} | {c.n_rows} | {100 * c.share:.1f} % | "
            f"{100 * c.low:.0f} to {100 * c.high:.0f} % | {width} |"
        )
    lines += [
        "",
        "| metric, last epoch | configs | tau of two trainings | of two draws | their mean difference | of two draws |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in comparisons:
        factor, unit = (100, "%") if r.metric == "runtime" else (1, "points")
        lines.append(
            f"| {r.metric} | {r.n_configs} | {r.measured_tau:.3f} | {r.drawn_tau:.3f} | "
            f"{factor * r.measured_difference:.2f} {unit} | {factor * r.drawn_difference:.2f} {unit} |"
        )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Which rows of a metric are inside their intervals, how wide those are, and whose rows they are."""

    metric: str
    kind: Kind
    is_inside: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    width: _Floats
    config_id: NDArray[np.uint64]


def held(model: NoiseModel, metric: str, predicted: Predicted) -> list[Held]:
    """Say of each row, for both kinds, whether it is inside its 90 % interval; a first training has no "seed"."""
    low, high = model.interval({metric: predicted.mean}, predicted.rows.X, level=_LEVEL, of="outcome")[metric]
    y, around = predicted.rows.y, outcome_deviations(metric, predicted)
    order = np.lexsort((predicted.rows.seed, predicted.rows.epoch, predicted.rows.config_id))
    between = seed_deviations(metric, predicted)
    spread = model.runtime["seed"] if metric == "runtime" else model.accuracies[metric]["seed"]
    sigma = (
        np.full(len(between.size), model.runtime["seed"].spread)
        if metric == "runtime"
        else model.accuracies[metric]["seed"].of_rows(between.predicted, between.X)
    )
    ends = model.interval({metric: between.predicted}, between.X, level=_LEVEL, of="seed")[metric]
    kinds: tuple[tuple[Kind, Deviations, NDArray[np.bool_], _Floats], ...] = (
        ("seed", between, np.abs(between.size) <= sigma * reach(spread, _LEVEL), ends[1] - ends[0]),
        ("outcome", around, ((y >= low) & (y <= high))[order], (high - low)[order]),
    )
    return [
        Held(
            metric=metric,
            kind=kind,
            is_inside=is_inside,
            is_last=(d.X[:, -1] == model.max_epoch) | (metric == "runtime"),
            width=width / d.predicted if metric == "runtime" else width,
            config_id=d.config_id,
        )
        for kind, d, is_inside, width in kinds
    ]


def summary(parts: Sequence[Held]) -> list[Coverage]:
    """Return the shares that are inside, of each kind and metric, over all epochs and at the last one."""
    found = []
    kinds: tuple[Kind, ...] = ("seed", "outcome")
    for kind in kinds:
        for metric in NOISY:
            of = [part for part in parts if (part.metric, part.kind) == (metric, kind)]
            ids, is_inside, is_last, width = (
                np.concatenate([getattr(part, name) for part in of])
                for name in ("config_id", "is_inside", "is_last", "width")
            )
            for epochs, is_in in (("all", np.ones(len(ids), np.bool_)), ("last", is_last)):
                if not is_in.any() or (metric == "runtime" and epochs == "all"):
                    continue
                _, place, counts = np.unique(ids[is_in], return_inverse=True, return_counts=True)
                share = float(np.mean(np.bincount(place.reshape(-1), weights=is_inside[is_in]) / counts))
                low, high = _share_interval(share, len(counts))
                found.append(
                    Coverage(
                        metric=metric,
                        kind=kind,
                        epochs=epochs,
                        n_configs=len(counts),
                        n_rows=int(is_in.sum()),
                        share=share,
                        low=low,
                        high=high,
                        width=float(np.median(width[is_in])),
                    )
                )
    return found


def _share_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 90 % interval of a share of n."""
    z = quantile(0.95)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _difference(metric: str, a: _Floats, b: _Floats) -> float:
    return float(np.mean(np.abs(np.log(a / b) if metric == "runtime" else a - b)))
