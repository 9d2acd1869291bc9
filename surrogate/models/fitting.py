"""Fits of several models: one for each metric, and fits that each leave a fold of the configs out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.sealed_json import read_sealed
from jahs.files.tables import take
from jahs.models.features import DEFAULT_TIMES, TimeCoefficients
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import LEARNED
from splits.folds import k_folds
from splits.kinship import ConfigColumns
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, development_rows
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, fit_surrogate
from workshop.jobs import in_processes


def fit_each(
    training: Mapping[str, Rows],
    of_task: Task,
    settings: Mapping[str, ForestSettings],
    *,
    times: TimeCoefficients = DEFAULT_TIMES,
    workers: int = 1,
) -> dict[str, Surrogate]:
    """Fit one model for each metric, with default settings for metrics without any.

    Fits are spread over processes, the largest first. The number of workers does not change a byte.
    """
    by_size = sorted(training, key=lambda metric: -len(training[metric]))
    shared = {"of_task": of_task, "times": times}
    calls = [
        {"metric": metric, "rows": training[metric], "settings": settings.get(metric, ForestSettings()), **shared}
        for metric in by_size
    ]
    models = dict(zip(by_size, in_processes(fit_surrogate, calls, workers=workers), strict=True))
    return {metric: models[metric] for metric in training}


def read_params(path: Path) -> dict[str, ForestSettings]:
    """Read the settings of some metrics, as `surrogate.tune` writes them.

    Raises:
        MissingData: there is no such file.
        CorruptFile, UnknownFormat: it was damaged or edited, or was written by another version.
        InvalidArgument: a setting does not exist or is out of range.
    """
    content = read_sealed(path)
    if not isinstance(metrics := content.get("metrics"), dict):
        raise CorruptFile(f"{path}: 'metrics' must be an object with the settings of each metric")
    settings, faults = {}, []
    for metric, given in metrics.items():
        if metric not in LEARNED:
            faults.append(f"{metric!r} is not a learned metric")
            continue
        try:
            settings[metric] = ForestSettings.from_dict(given)
        except InvalidArgument as err:
            faults.append(f"{metric}: {err}")
    if faults:
        raise InvalidArgument("\n".join(f"{path}: {fault}" for fault in faults))
    return settings


def leave_folds_out(
    metric: str, measured: Measurements, split: Split, *, n_folds: int, seed: int, settings: ForestSettings
) -> Iterator[Surrogate]:
    """Yield models of a metric that are each fitted to train and valid without one fold of their configs."""
    rows = development_rows(metric, measured, split)
    for is_out in held_out_rows(measured, rows, n_folds, seed=seed):
        yield fit_surrogate(metric, rows.take(~is_out), measured.task, settings=settings)


def held_out_rows(
    measured: Measurements, rows: Rows, n_folds: int, *, seed: int, has_sizes: bool = True
) -> Iterator[NDArray[np.bool_]]:
    """Yield, for each fold of the configs of `rows`, which rows it holds out.

    Args:
        has_sizes: False puts configs that differ in N, W and Resolution alone into one fold.
    """
    configs = take(measured.configs, np.isin(measured.configs["config_id"], rows.config_id))
    columns = {key: configs[key] for key in (*CONFIG_KEYS, "config_id")}
    for _, held_out in k_folds(columns if has_sizes else without_sizes(columns), n_folds, seed=seed):
        yield np.isin(rows.config_id, configs["config_id"][held_out])


def without_sizes(configs: ConfigColumns) -> dict[str, NDArray[np.generic]]:
    """Return the columns with one N, W and Resolution for all, so that configs that differ only there are kin."""
    return {**configs, **{key: np.full_like(configs[key], configs[key][0]) for key in SIZE_KEYS}}
