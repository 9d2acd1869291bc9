"""A Gaussian process learns curves, and a forest learns from it: gradients, noise, drawn configs, and what it gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jahs.errors import InvalidArgument
from jahs.models.features import FeatureBuilder
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.models import curve_process
from surrogate.models.boosting import ForestSettings
from surrogate.models.curve_process import fit_curves
from surrogate.models.model import default_features, fit_surrogate
from surrogate.models.teacher import draw_configs, teach
from tests.surrogate.landscape import EPOCHS, TASK, measurements, split_of
from workshop.ranks import kendall_tau

MEASURED = measurements(9)
PARTS = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
FEATURES = default_features("valid_acc")
SETTINGS = ForestSettings(n_trees=60, max_depth=4)
TAUGHT = replace(SETTINGS, n_distilled=500)


def curves_of(F: np.ndarray, n_epochs: int = 5) -> np.ndarray:
    """Smooth curves whose height and pace depend on two features."""
    return np.sin(F[:, :1]) + np.outer(F[:, 1], np.linspace(0, 1, n_epochs))


def test_the_gradient_of_the_likelihood_is_that_of_its_differences() -> None:
    rng = np.random.default_rng(0)
    Z, y, variance = rng.normal(size=(30, 3)), rng.normal(size=30), rng.uniform(0.3, 1, 30)
    at = np.array([0.3, -0.2, 0.5, -2.0])
    _, gradient = curve_process._minus_log_likelihood(at, Z, y, variance)
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-5
        high, low = (curve_process._minus_log_likelihood(at + sign * step, Z, y, variance)[0] for sign in (1, -1))
        assert gradient[k] == pytest.approx((high - low) / 2e-5, rel=1e-4)


def test_curves_of_unseen_configs_are_predicted() -> None:
    F = np.random.default_rng(0).uniform(-1, 1, (120, 3)).astype(np.float32)
    curves = curves_of(F)
    predicted = fit_curves(F[:100], curves[:100], np.ones(100)).predict(F[100:])
    assert predicted.shape == (20, 5)
    assert np.abs(predicted - curves[100:]).max() < 0.05


def test_a_config_with_more_trainings_is_followed_more_closely() -> None:
    rng = np.random.default_rng(0)
    F = rng.uniform(-1, 1, (80, 2)).astype(np.float32)
    curves = curves_of(F) + rng.normal(0, 0.5, (80, 1))
    n = np.ones(80)
    once = fit_curves(F, curves, n).predict(F)[0]
    n[0] = 50
    often = fit_curves(F, curves, n).predict(F)[0]
    assert np.abs(often - curves[0]).max() < np.abs(once - curves[0]).max()


def test_drawn_configs_are_the_same_each_time_and_a_fifth_has_full_size() -> None:
    drawn = draw_configs(TASK, FEATURES, 100, EPOCHS)
    draw_configs.cache_clear()
    again = draw_configs(TASK, FEATURES, 100, EPOCHS)
    assert (drawn.F == again.F).all()
    assert (drawn.epochs[:, 0] == EPOCHS[-1]).all()
    assert set(drawn.epochs.ravel().tolist()) == set(EPOCHS)
    columns = [FEATURES.columns.index(key) for key in ("N", "W", "Resolution")]
    assert ((drawn.F_last[:, columns] == (5, 16, 1)).all(axis=1)).sum() >= 20
    assert (drawn.F.reshape(100, 3, -1)[:, 0] == drawn.F_last).all()


def test_a_forest_that_learns_from_the_teacher_ranks_better() -> None:
    valid = by_part(assemble("valid_acc", measurements(9, noise=0.0)), split_of(MEASURED))["valid"]
    alone, taught = (
        kendall_tau(valid.y, fit_surrogate("valid_acc", PARTS["train"], TASK, settings=settings).predict(valid.X))
        for settings in (SETTINGS, replace(TAUGHT, n_distilled=3000))
    )
    assert taught > alone + 0.02


def test_the_same_rows_give_the_same_bytes_and_count_measured_ones_alone() -> None:
    first, again = (fit_surrogate("valid_acc", PARTS["train"], TASK, settings=TAUGHT) for _ in range(2))
    assert first.booster.save_raw("ubj") == again.booster.save_raw("ubj")
    assert first.counts == fit_surrogate("valid_acc", PARTS["train"], TASK, settings=SETTINGS).counts


def test_rows_without_weight_are_not_learned() -> None:
    """The transform is fitted to all rows, so a value that is changed stays within their range."""
    rows = PARTS["train"]
    weights = np.where(rows.config_id == rows.config_id[0], 0.0, 1.0)
    changed = Rows(X=rows.X, y=np.where(weights > 0, rows.y, 50.0), config_id=rows.config_id, seed=rows.seed)
    plain, other = (
        fit_surrogate("valid_acc", part, TASK, settings=TAUGHT, weights=weights).predict(rows.X)
        for part in (rows, changed)
    )
    assert (plain == other).all()


def test_configs_that_lack_an_epoch_are_left_to_the_forest() -> None:
    rows = PARTS["train"]
    ids = np.unique(rows.config_id)
    is_cut = np.isin(rows.config_id, ids[:5]) & (rows.epoch == TASK.max_epoch)
    left = rows.take(~is_cut)
    teacher = teach(left, FeatureBuilder(FEATURES, TASK).build(left.X), left.y, TASK, FEATURES)
    assert teacher.epochs == EPOCHS
    assert len(teacher.curves.processes[0].A) == len(ids) - 5


def test_too_few_curves_are_refused() -> None:
    rows = PARTS["train"].take(np.isin(PARTS["train"].config_id, PARTS["train"].config_id[:1]))
    with pytest.raises(InvalidArgument, match=r"1 configs have all 4 epochs; distillation needs 8; .*--distilled 0"):
        fit_surrogate("valid_acc", rows, TASK, settings=TAUGHT)


@pytest.mark.parametrize("value", [-1, 1.5, True, "4", 10**7])
def test_a_number_of_drawn_configs_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"n_distilled=.* must be an integer in 0\.\.1000000"):
        ForestSettings(n_distilled=value)  # type: ignore[arg-type]


def test_settings_of_earlier_releases_are_read() -> None:
    assert ForestSettings.from_dict({"max_depth": 3, "top_weight": 0.0}) == ForestSettings(max_depth=3)
    with pytest.raises(InvalidArgument, match="'top_weight' is not a setting"):
        ForestSettings.from_dict({"top_weight": 4.0})
