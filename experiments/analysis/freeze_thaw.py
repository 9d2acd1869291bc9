"""How well the first epochs of a learning curve predict its last validation accuracy, on held-out configs.

The surrogate is fitted to the training part of a split, with the settings of the last search. The validation part
calibrates: each predictor's standard deviation, and how far an observed residual moves the surrogate's prediction. The
test part is scored, and chooses nothing. A config counts once, with its first seed, if that training has every epoch.
Configs that were recorded after the split was made take no part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.schema import SPLIT_PARTS
from jahs.tasks.definitions import Task
from splits.final import final_beside
from splits.split import read_split
from surrogate.data.measurements import read_measurements
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.judging.agreement import first_seed
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import read_params
from surrogate.models.model import fit_surrogate
from workshop.ranks import kendall_tau
from workshop.resampling import bootstrap_estimates

Floats = NDArray[np.float64]
Predictor = Literal["last value", "last value plus mean gain", "power law", "surrogate", "surrogate, corrected"]
Measure = Literal["likelihood", "mae", "tau"]

PREDICTORS: Final[tuple[Predictor, ...]] = (
    "last value", "last value plus mean gain", "power law", "surrogate", "surrogate, corrected"
)  # fmt: skip
MEASURES: Final[tuple[Measure, ...]] = ("likelihood", "mae", "tau")

_METRIC: Final = "valid_acc"
_FEWEST: Final = 10
_FEWEST_EPOCHS: Final = 3  # parameters of the power law
_EXPONENTS: Final = np.geomspace(0.05, 4.0, 40)
_SHARES: Final = (1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """Recorded learning curves of one task, and what the surrogate predicts for them.

    Attributes:
        observed: validation accuracies (%) by part, (n_configs, n_epochs).
        surrogate: predictions of the surrogate fitted to the training part.
        n_outside: recorded configs outside the split.
    """

    task: Task
    observed: Mapping[str, Floats]
    surrogate: Mapping[str, Floats]
    n_outside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One predictor after some epochs.

    Attributes:
        n_observed: epochs that it has seen.
        sd: of its errors on the validation part, in points: the Gaussian's.
        scores: Gaussian log likelihood per config, mean absolute error (points) and Kendall's tau.
    """

    predictor: Predictor
    n_observed: int
    sd: float
    scores: Mapping[Measure, Interval]


def stages(n_epochs: int) -> list[int]:
    """Return the numbers of observed epochs: 1, 2, 3, and shares of a whole training."""
    return sorted({n for n in (1, 2, 3, *(round(share * n_epochs) for share in _SHARES)) if 0 < n < n_epochs})


def read_curves(runs: Path) -> Curves:
    """Read a folder of runs with `split.json` and `search/params.json` beside it, and fit the surrogate.

    Raises:
        InvalidArgument: a part has too few whole curves.
        ProtocolMismatch: the split is of other runs.
    """
    folder = runs.resolve().parent
    split, final = read_split(folder / "split.json"), final_beside(folder / "split.json")
    measured = read_measurements(runs, final=final)
    if split.protocol != measured.protocol:
        raise ProtocolMismatch(f"{folder / 'split.json'} is of protocol {split.protocol}, not {measured.protocol}")
    rows = assemble(_METRIC, measured)
    is_inside = split.parts_of(rows.config_id) >= 0
    parts = by_part(rows.take(is_inside), split)
    settings = read_params(folder / "search" / "params.json").get(_METRIC, ForestSettings())
    model = fit_surrogate(_METRIC, parts["train"], measured.task, settings=settings)
    observed, predicted = {}, {}
    for part in SPLIT_PARTS:
        whole = _whole_curves(parts[part], measured.task.max_epoch)
        observed[part] = whole.y.reshape(-1, measured.task.max_epoch)
        predicted[part] = np.asarray(model.predict(whole.X), dtype=np.float64).reshape(observed[part].shape)
        if len(observed[part]) < _FEWEST:
            raise InvalidArgument(f"{runs}: {len(observed[part])} whole curves in {part}, {_FEWEST} are needed")
    n_outside = rows.take(~is_inside).n_configs
    return Curves(task=measured.task, observed=observed, surrogate=predicted, n_outside=n_outside)


def _whole_curves(rows: Rows, n_epochs: int) -> Rows:
    """Return the rows of the first seed of each config that has every epoch, curve by curve."""
    rows = rows.take(first_seed(rows))
    rows = rows.take(np.lexsort((rows.epoch, rows.config_id)))
    _, place, counts = np.unique(rows.config_id, return_inverse=True, return_counts=True)
    return rows.take(counts[place] == n_epochs)


def power_law(curves: Floats, last: int) -> Floats:
    """Return a + b t^-c at epoch `last`, by least squares on the observed epochs 1, 2, ... of (n, n_observed).

    The exponent c is on a grid; predictions are clipped to 0 and 100.
    """
    times = np.arange(1, curves.shape[1] + 1, dtype=np.float64)
    least, found = np.full(len(curves), np.inf), np.zeros(len(curves))
    for exponent in _EXPONENTS:
        basis = np.stack([np.ones_like(times), times**-exponent], axis=1)  # (n_observed, 2)
        coefficients = np.linalg.lstsq(basis, curves.T, rcond=None)[0]
        squared = ((basis @ coefficients - curves.T) ** 2).sum(axis=0)
        at_last = coefficients[0] + coefficients[1] * float(last) ** -exponent
        found = np.where(squared < least, at_last, found)
        least = np.minimum(squared, least)
    return np.clip(found, 0.0, 100.0)


def predictions(curves: Curves, part: str, n_observed: int) -> dict[Predictor, Floats]:
    """Return what each predictor says about the last epoch after the first `n_observed`; no power law for too few."""
    observed, model = curves.observed[part], curves.surrogate[part]
    last_value = observed[:, n_observed - 1]
    train = curves.observed["train"]
    found: dict[Predictor, Floats] = {
        "last value": last_value,
        "last value plus mean gain": last_value + (train[:, -1] - train[:, n_observed - 1]).mean(),
    }
    if n_observed >= _FEWEST_EPOCHS:
        found["power law"] = power_law(observed[:, :n_observed], observed.shape[1])
    found["surrogate"] = model[:, -1]
    residual = last_value - model[:, n_observed - 1]
    found["surrogate, corrected"] = np.clip(model[:, -1] + _carried(curves, n_observed) * residual, 0.0, 100.0)
    return found


def _carried(curves: Curves, n_observed: int) -> float:
    """Return which share of the surrogate's residual at an epoch remains at the last one, on the validation part."""
    residuals = curves.observed["valid"] - curves.surrogate["valid"]
    before, after = residuals[:, n_observed - 1], residuals[:, -1]
    return float(before @ after / (before @ before))


def score(curves: Curves, *, n_resamples: int) -> list[Scored]:
    """Return the scores of every predictor at every stage on the test part."""
    truth = {part: curves.observed[part][:, -1] for part in ("valid", "test")}
    found = []
    for n_observed in stages(curves.task.max_epoch):
        calibrating, judged = (predictions(curves, part, n_observed) for part in ("valid", "test"))
        for name, predicted in judged.items():
            sd = float(np.sqrt(np.mean((calibrating[name] - truth["valid"]) ** 2)))
            scores = _scores(predicted, truth["test"], sd, n_resamples=n_resamples)
            found.append(Scored(predictor=name, n_observed=n_observed, sd=sd, scores=scores))
    return found


def _scores(predicted: Floats, truth: Floats, sd: float, *, n_resamples: int) -> dict[Measure, Interval]:
    error = np.abs(predicted - truth)
    likelihood = -0.5 * (error / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)

    def each(at: NDArray[np.int64]) -> Floats:
        return np.array([likelihood[at].mean(), error[at].mean(), kendall_tau(predicted[at], truth[at])])

    found = bootstrap_estimates(each, len(truth), level=0.95, n_resamples=n_resamples)
    return dict(zip(MEASURES, found, strict=True))
