"""Fitted models: within bounds, rising where they must, the same bytes again, and back from their files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.spaces.cell import canonical_keys
from jahs.tasks.metrics import LEARNED
from surrogate.data.rows import assemble, by_part
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, fit_surrogate
from tests.surrogate.landscape import TASK, measurements, split_of
from workshop.ranks import kendall_tau

MEASURED = measurements()
SPLIT = split_of(MEASURED)
PARTS = {metric: by_part(assemble(metric, MEASURED), SPLIT) for metric in LEARNED}
SETTINGS = ForestSettings(n_trees=60, max_depth=4)

X = jahs.encode(
    jahs.space().sample_columns(500, seed=11), np.random.default_rng(0).integers(1, TASK.max_epoch + 1, 500)
)


@cache
def fitted(metric: str) -> Surrogate:
    return fit_surrogate(metric, PARTS[metric]["train"], TASK, settings=SETTINGS)


@pytest.mark.parametrize("metric", LEARNED)
def test_answers_rank_unseen_configs(metric: str) -> None:
    valid = PARTS[metric]["valid"]
    y = valid.y * valid.epoch if metric == "runtime" else valid.y
    assert kendall_tau(y, fitted(metric).predict(valid.X)) > 0.6


@pytest.mark.parametrize("metric", ["train_acc", "valid_acc", "test_acc"])
def test_accuracies_are_percentages(metric: str) -> None:
    predicted = fitted(metric).predict(X)
    assert ((predicted >= 0) & (predicted <= 100)).all()


def test_runtime_strictly_rises_with_the_epoch_and_latency_stays() -> None:
    trajectory = np.repeat(X[:100], TASK.max_epoch, axis=0)
    trajectory[:, -1] = np.tile(np.arange(1, TASK.max_epoch + 1), 100)
    runtime = fitted("runtime").predict(trajectory).reshape(100, -1)
    assert (runtime[:, 0] > 0).all()
    assert (np.diff(runtime) > 0).all()
    latency = fitted("latency").predict(trajectory).reshape(100, -1)
    assert (latency > 0).all()
    assert (np.ptp(latency, axis=1) == 0).all()


def test_cells_that_compute_the_same_get_the_same_accuracy() -> None:
    rows = np.repeat(X[:1], 2000, axis=0)
    rows[:, 3:9] = np.random.default_rng(0).choice([0, 1, 1, 1, 2, 4], (2000, 6))
    keys = canonical_keys(rows[:, 3:9].astype(int))
    for metric in ("train_acc", "valid_acc", "test_acc"):
        predicted = fitted(metric).predict(rows)
        assert all(np.ptp(predicted[keys == key]) == 0 for key in np.unique(keys))


def test_the_same_rows_and_settings_give_the_same_bytes() -> None:
    settings = replace(SETTINGS, colsample_bytree=0.5, seed=7)
    rows = PARTS["valid_acc"]["train"]
    first, again = (fit_surrogate("valid_acc", rows, TASK, settings=settings) for _ in range(2))
    other = fit_surrogate("valid_acc", rows, TASK, settings=replace(settings, seed=8))
    assert first.booster.save_raw("ubj") == again.booster.save_raw("ubj")
    assert first.booster.save_raw("ubj") != other.booster.save_raw("ubj")


def test_fewer_trees_are_the_first_trees() -> None:
    short = fit_surrogate("valid_acc", PARTS["valid_acc"]["train"], TASK, settings=replace(SETTINGS, n_trees=20))
    assert (fitted("valid_acc").predict(X, n_trees=20) == short.predict(X)).all()


def test_every_bad_setting_is_named() -> None:
    with pytest.raises(
        InvalidArgument, match=r"max_depth=0 must be an integer in 1\.\.15\nlearning_rate=nan must be a nu"
    ):
        ForestSettings(max_depth=0, learning_rate=float("nan"))
    with pytest.raises(InvalidArgument, match=r"'depth' is not a setting; the settings are n_trees, max_depth"):
        ForestSettings.from_dict({"depth": 3})
    for value in (-1, 1.5, True, "4", 10**7):
        with pytest.raises(InvalidArgument, match=r"n_distilled=.* must be an integer in 0\.\.1000000"):
            ForestSettings.from_dict({"n_distilled": value})
