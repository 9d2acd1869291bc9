"""The model of the noise between trainings, and the coverage of its intervals on repeats that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from jahs.errors import InvalidArgument, InvalidTable
from jahs.models.features import DEFAULT_TIMES, TimeCoefficients
from jahs.models.noise import NoiseModel
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import ACCURACIES
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Facts, unmeasured
from surrogate.judging.coverage import coverage, held, realism, summary
from surrogate.judging.predicted import (
    NOISY,
    Predicted,
    choose_configs,
    fold_predictions,
    join_predicted,
    outcome_deviations,
    repeated_configs,
    seed_deviations,
)
from surrogate.judging.spread_fit import fit_correlation, fit_spreads, fit_time_spread
from surrogate.models.model import ForestSettings

_FEWEST: Final = 5
_MOST_FOLDS: Final = 10
_N_FOLDS: Final = 5  # of the cross-validated coverage


def noise_of(
    measured: Measurements,
    split: Split,
    settings: Mapping[str, ForestSettings],
    *,
    times: TimeCoefficients = DEFAULT_TIMES,
    seed: int,
) -> tuple[Facts | None, Facts]:
    """Return a noise model fitted to the train and valid parts, and facts about it; None and the reason if impossible.

    The facts are the coverage of its 90 % intervals on held-out repeats: cross-validated, and on the test part if that
    has repeats.
    """
    if missing := sorted(set(NOISY) & unmeasured(measured, split).keys()):
        return None, {"reason": f"there are no measurements of {', '.join(missing)}"}
    timed = np.unique(measured.timed_runs["config_id"])  # no metric has fewer configs
    n_configs = int(np.isin(split.parts_of(timed), (0, 1)).sum())
    try:
        n_folds = min(_MOST_FOLDS, n_configs)
        parts = fold_predictions(measured, split, n_folds=n_folds, settings=settings, times=times, seed=seed)
        folded = {metric: join_predicted([of["train"], of["valid"]]) for metric, of in parts.items()}
        model = fit_noise(folded, measured.task)
    except (InvalidTable, InvalidArgument) as err:
        return None, {"reason": str(err)}
    facts: Facts = {"counts": dict(model.counts)}
    facts["realism"] = realism(model, folded)
    try:
        facts["folds"] = cross_validated_coverage(folded, measured.task)
    except InvalidTable as err:
        facts["folds"], facts["not_held_out"] = [], str(err)
    test = {metric: of["test"] for metric, of in parts.items()}
    facts["test"] = coverage(model, test) if len(repeated_configs(test)) else []
    return model.to_dict(), facts


def fit_noise(predicted: Mapping[str, Predicted], of_task: Task) -> NoiseModel:
    """Fit the spreads of repeats and of outcomes, and their correlation.

    Args:
        predicted: out-of-fold predictions of every metric of `NOISY`.

    Raises:
        InvalidTable: fewer than five configs have repeats.
    """
    between = {metric: seed_deviations(metric, predicted[metric]) for metric in NOISY}
    around = {metric: outcome_deviations(metric, predicted[metric]) for metric in NOISY}
    n_repeated = min(len(np.unique(between[metric].config_id)) for metric in ACCURACIES)
    if n_repeated < _FEWEST:
        raise InvalidTable(
            f"{n_repeated} configs were trained with more than one seed; noise needs {_FEWEST}; collect more"
        )
    seeds, outcomes = (
        fit_spreads({metric: of[metric] for metric in ACCURACIES}, of_task.max_epoch) for of in (between, around)
    )
    return NoiseModel(
        task=of_task.name,
        max_epoch=of_task.max_epoch,
        accuracies={name: {"seed": seeds[name], "outcome": outcomes[name]} for name in ACCURACIES},
        runtime={"seed": fit_time_spread(between["runtime"]), "outcome": fit_time_spread(around["runtime"])},
        correlation=fit_correlation({name: between[name] for name in ACCURACIES}, seeds, of_task.max_epoch),
        counts={
            "configs": len(np.unique(around["valid_acc"].config_id)),
            "repeated_configs": n_repeated,
            "timed_repeated_configs": len(np.unique(between["runtime"].config_id)),
        },
    )


def cross_validated_coverage(predicted: Mapping[str, Predicted], of_task: Task) -> list[Facts]:
    """Measure `coverage` with every config held out once; five configs with repeats must remain."""
    repeated = repeated_configs(predicted)
    others = np.setdiff1d(np.unique(predicted["valid_acc"].rows.config_id), repeated)
    found = []
    for number in range(_N_FOLDS):
        held_out = np.concatenate([repeated[number::_N_FOLDS], others[number::_N_FOLDS]])
        model = fit_noise(choose_configs(predicted, held_out, is_in=False), of_task)
        here = choose_configs(predicted, held_out, is_in=True)
        found += [part for metric in NOISY for part in held(model, metric, here[metric])]
    return summary(found)
