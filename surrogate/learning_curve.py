"""How scores grow with the number of training configs, and what they will be with more.

python -m surrogate.learning_curve RUNS --split SPLIT --metric valid_acc --sizes 100 200 400 800 1400 --target 1400

Sizes count training configs: 70 % of those collected, so 2,000 collected configs are 1,400. 1 - tau falls as a power of
the size, log(1 - tau) = a + b log(size), fitted by least squares over all sizes and seeds. The interval is that of one
more fit with one more seed, by Student's t, with one degree of freedom less 2 for each *size*: seeds of one size share
their validation rows, and large subsets share configs, so they are not worth as many fits. As a check, the largest size
is predicted from the others.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument, JahsError
from jahs.features import FeatureSet, feature_set
from jahs.tables import Table, take
from splits.folds import learning_curve_subsets
from splits.split import read_split
from surrogate.dataset import Measurements, Rows, assemble, read_measurements
from surrogate.folders import write_json
from surrogate.model import Settings, fit_surrogate
from surrogate.scores import agreement, first_seed, kendall_tau

__all__ = ["CURVE_FORMAT", "Point", "Prediction", "curve", "curve_text", "extrapolate", "main"]

CURVE_FORMAT: Final = 1
_FEWEST_SIZES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One fit: on how many configs, with which seed, and how well it does on the validation part.

    Attributes:
        tau: Kendall's tau at the last epoch, first seeds.
        r2: over all epochs, first seeds.
    """

    n_configs: int
    seed: int
    tau: float
    r2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the power law says for a size; `low` and `high` hold one more fit with probability `level`."""

    n_configs: int
    value: float
    low: float
    high: float
    level: float
    exponent: float


def curve(
    metric: str,
    measured: Measurements,
    parts: Mapping[str, Rows],
    sizes: Sequence[int],
    *,
    seeds: Sequence[int],
    settings: Settings,
    features: FeatureSet | None = None,
) -> list[Point]:
    """Fit on nested subsets of the training configs, balanced over the fidelity groups; score on the validation part.

    Raises:
        InvalidArgument: a size is not between 1 and the number of training configs.
    """
    train, valid = parts["train"], parts["valid"]
    valid = valid.take(first_seed(valid))
    is_last = valid.epoch == valid.epoch.max()
    times = valid.epoch if metric == "runtime" else np.ones(len(valid))
    configs: Table = take(measured.configs, np.isin(measured.configs["config_id"], train.config_id))
    points = []
    for seed in seeds:
        subsets = learning_curve_subsets(configs, sizes, seed=seed)
        for size, chosen in zip(sizes, subsets, strict=True):
            rows = train.take(np.isin(train.config_id, configs["config_id"][chosen]))
            fitted = fit_surrogate(
                metric, rows, measured.task, settings=replace(settings, seed=seed), features=features
            )
            predicted, y = fitted.predict(valid.X), valid.y * times
            r2 = agreement(metric, y, predicted)["r2"]
            tau = kendall_tau(y[is_last], predicted[is_last])
            points.append(Point(n_configs=size, seed=seed, tau=tau, r2=math.nan if r2 is None else r2))
    return points


def extrapolate(points: Sequence[Point], n_configs: int, *, score: str = "tau", level: float = 0.9) -> Prediction:
    """Predict a score, "tau" or "r2", for `n_configs` training configs.

    Raises:
        InvalidArgument: fewer than four sizes, or a score that is not between 0 and 1.
    """
    from scipy.stats import t as student

    x = np.log([point.n_configs for point in points])
    values = np.array([getattr(point, score) for point in points], dtype=np.float64)
    n_sizes = len(np.unique(x))
    if n_sizes < _FEWEST_SIZES:
        raise InvalidArgument(f"{n_sizes} sizes; a curve and its spread need at least {_FEWEST_SIZES}")
    if bad := int((~((values > 0) & (values < 1))).sum()):
        raise InvalidArgument(f"{score}: {bad} of {len(values)} values are not between 0 and 1; leave small sizes out")
    y = np.log1p(-values)
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - (intercept + slope * x)
    freedom = n_sizes - 2
    spread = float((residual**2).sum()) / (len(y) - 2)
    at = math.log(n_configs)
    width = float(((x - x.mean()) ** 2).sum()) * n_sizes / len(y)
    error = math.sqrt(spread * (1 + 1 / n_sizes + (at - float(x.mean())) ** 2 / width))
    reach = float(student.ppf((1 + level) / 2, freedom)) * error
    middle = float(intercept + slope * at)
    return Prediction(
        n_configs=n_configs,
        value=1 - math.exp(middle),
        low=1 - math.exp(middle + reach),
        high=1 - math.exp(middle - reach),
        level=level,
        exponent=float(slope),
    )


def curve_text(points: Sequence[Point], predictions: Mapping[str, Prediction]) -> str:
    """The curve as Markdown, a size a row, with the predictions under it."""
    lines = [
        "| training configs | seeds | tau, last epoch | spread | R2, all epochs |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size in sorted({point.n_configs for point in points}):
        taus = [point.tau for point in points if point.n_configs == size]
        r2 = [point.r2 for point in points if point.n_configs == size]
        spread = float(np.std(taus, ddof=1)) if len(taus) > 1 else math.nan
        lines.append(f"| {size} | {len(taus)} | {np.mean(taus):.4f} | {spread:.4f} | {np.mean(r2):.4f} |")
    lines += [
        f"\n{name}: {p.value:.4f} with {p.n_configs} training configs, {100 * p.level:.0f} % interval {p.low:.4f} to "
        f"{p.high:.4f}; 1 - score falls with size to the power {p.exponent:.2f}"
        for name, p in predictions.items()
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m surrogate.learning_curve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m surrogate.learning_curve runs/ --split split.json --sizes 100 200 400 800 1400",
    )
    parser.add_argument("runs", type=Path, help="a folder of runs")
    parser.add_argument("--split", type=Path, required=True, help="the split of its configs")
    parser.add_argument("--metric", default="valid_acc", help="a learned metric (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="numbers of training configs, five or more")
    parser.add_argument("--seeds", type=int, default=5, help="subsets of each size (%(default)s)")
    parser.add_argument("--target", type=int, default=1400, help="training configs to predict for (%(default)s)")
    parser.add_argument("--features", help="a feature set other than the metric's own")
    parser.add_argument("--trees", type=int, default=300, help="in every forest (%(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="of every forest (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for the points and predictions")
    given = parser.parse_args(argv)
    try:
        measured, split = read_measurements(given.runs), read_split(given.split)
        points = curve(
            given.metric,
            measured,
            assemble(given.metric, measured, split),
            sorted(set(given.sizes)),
            seeds=range(given.seeds),
            settings=Settings(n_trees=given.trees, learning_rate=given.learning_rate),
            features=feature_set(given.features) if given.features else None,
        )
        largest = max(given.sizes)
        smaller = [point for point in points if point.n_configs < largest]
        predictions = {"tau": extrapolate(points, given.target), "r2": extrapolate(points, given.target, score="r2")}
        if len({point.n_configs for point in smaller}) >= _FEWEST_SIZES:
            predictions[f"check: tau at {largest} from smaller sizes"] = extrapolate(smaller, largest)
        if given.out:
            content = {
                "points": [asdict(p) for p in points],
                "predictions": {k: asdict(p) for k, p in predictions.items()},
            }
            write_json(given.out, {"format": CURVE_FORMAT, "metric": given.metric, "split": split.digest, **content})
    except JahsError as err:
        sys.stderr.write(f"surrogate.learning_curve: {err}\n")
        return 2
    sys.stdout.write(curve_text(points, predictions) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
