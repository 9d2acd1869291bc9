"""Fits that each leave one fold of the configs out: they show how far a prediction depends on the configs at hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from jahs.files.tables import take
from jahs.schema import CONFIG_KEYS
from splits.folds import k_folds
from splits.kinship import FIDELITY_KEYS, ConfigColumns
from splits.split import Split
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, development_rows
from surrogate.models.model import ForestSettings, Surrogate, fit_surrogate


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
    """Return the columns with one N, W and Resolution for all, so that configs that differ in them alone are kin."""
    return {**configs, **{key: np.full_like(configs[key], configs[key][0]) for key in FIDELITY_KEYS}}
