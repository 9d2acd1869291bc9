"""Learning curves: scores by the number of training configs, and their extrapolation by a power law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument
from jahs.files.tables import Table, take
from splits.folds import learning_curve_subsets
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Facts, Rows
from surrogate.judging.agreement import agreement, first_seed
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, fit_again
from surrogate.models.teacher import has_enough
from workshop.jobs import in_processes
from workshop.ranks import kendall_tau

_FEWEST_SIZES: Final = 4
_N_SIZES: Final = 6
_LEAST: Final = 4  # fewest configs of a point
_LEVEL: Final = 0.9


def curve(
    model: Surrogate,
    measured: Measurements,
    parts: Mapping[str, Rows],
    sizes: Sequence[int],
    *,
    seeds: Sequence[int],
    workers: int = 1,
) -> list[Facts]:
    """Fit again on nested, balanced subsets of the training configs, `sizes` of them; score on the validation part.

    Returns:
        A point for each fit: `n_configs`, `seed`, Kendall's `tau` at the last epoch, `r2` over all; first seeds only.
    """
    train, valid = parts["train"], parts["valid"]
    valid = valid.take(first_seed(valid))
    configs: Table = take(measured.configs, np.isin(measured.configs["config_id"], train.config_id))
    calls: list[dict[str, object]] = []
    for seed in seeds:
        settings = replace(model.settings, seed=seed)
        for chosen in learning_curve_subsets(configs, sizes, seed=seed):
            rows = train.take(np.isin(train.config_id, configs["config_id"][chosen]))
            if not has_enough(rows, settings):
                continue
            calls.append({"model": model, "rows": rows, "valid": valid, "settings": settings})
    return in_processes(_point, calls, workers=workers)


def _point(model: Surrogate, rows: Rows, valid: Rows, settings: ForestSettings) -> Facts:
    fitted = fit_again(model, rows, settings=settings)
    predicted = fitted.predict(valid.X)
    y = fitted.measured(valid)
    is_last = valid.epoch == valid.epoch.max()
    r2 = agreement(model.metric, y, predicted)["r2"]
    tau = kendall_tau(y[is_last], predicted[is_last])
    return {
        "n_configs": fitted.counts["configs"],
        "seed": settings.seed,
        "tau": tau,
        "r2": math.nan if r2 is None else r2,
    }


def sizes_for(n_configs: int) -> list[int]:
    """Return six sizes on a log scale, from a sixteenth of `n_configs` (at least 4) to all; equal ones once."""
    first = max(_LEAST, n_configs / 16)
    if n_configs < _LEAST:
        return []
    return sorted(set(np.rint(np.geomspace(first, n_configs, _N_SIZES)).astype(int).tolist()))


def predictions(points: Sequence[Facts], n_configs: int) -> tuple[dict[str, Facts], dict[str, str]]:
    """Extrapolate tau and R2 to a size by a power law, and check it: predict tau at the largest size from the others.

    Sizes at which a score is not between 0 and 1 are left out of its fit, and so are smaller ones.

    Returns:
        The predictions, and for scores that could not be predicted the reason.
    """
    extrapolated, reasons = {}, {}
    largest = max((point["n_configs"] for point in points), default=0)
    smaller = [point for point in points if point["n_configs"] < largest]
    wanted = {
        "tau": ("tau", points, n_configs),
        "r2": ("r2", points, n_configs),
        f"check: tau at {largest} from smaller sizes": ("tau", smaller, largest),
    }
    for name, (score, subset, target) in wanted.items():
        bad = [point["n_configs"] for point in subset if not 0 < point[score] < 1]
        usable = [point for point in subset if point["n_configs"] > max(bad, default=0)]
        try:
            extrapolated[name] = extrapolate(usable, target, score=score)
        except InvalidArgument as err:
            left_out = f"; sizes up to {max(bad)} have scores that are not between 0 and 1" if bad else ""
            reasons[name] = f"{err}{left_out}"
    return extrapolated, reasons


def extrapolate(points: Sequence[Facts], n_configs: int, *, score: str = "tau") -> Facts:
    """Predict a score between 0 and 1, "tau" or "r2", for `n_configs` training configs by the power law.

    One more fit is between `low` and `high` with probability `level`.

    Raises:
        InvalidArgument: fewer than four sizes.
    """
    from scipy.stats import t as student

    x = np.log([point["n_configs"] for point in points])
    values = np.array([point[score] for point in points], dtype=np.float64)
    n_sizes = len(np.unique(x))
    if n_sizes < _FEWEST_SIZES:
        raise InvalidArgument(f"a curve and its spread need {_FEWEST_SIZES} sizes, and there are {n_sizes}")
    y = np.log1p(-values)
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - (intercept + slope * x)
    freedom = n_sizes - 2
    spread = float((residual**2).sum()) / (len(y) - 2)
    at = math.log(n_configs)
    width = float(((x - x.mean()) ** 2).sum()) * n_sizes / len(y)
    error = math.sqrt(spread * (1 + 1 / n_sizes + (at - float(x.mean())) ** 2 / width))
    reach = float(student.ppf((1 + _LEVEL) / 2, freedom)) * error
    middle = float(intercept + slope * at)
    return {
        "n_configs": n_configs,
        "value": 1 - math.exp(middle),
        "low": 1 - math.exp(middle + reach),
        "high": 1 - math.exp(middle - reach),
        "level": _LEVEL,
        "exponent": float(slope),
    }
