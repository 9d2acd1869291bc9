"""A Gaussian process learns curves, and a forest learns from it: gradients, noise, drawn configs, and what it gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jahs.errors import InvalidArgument
from jahs.models.features import FeatureBuilder
from jahs.schema import COLUMNS
from jahs.spaces.parameters import LARGEST
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.models import curve_process
from surrogate.models.boosting import ForestSettings
from surrogate.models.curve_process import fit_curves
from surrogate.models.model import default_features, distil, fit_surrogate, fit_transform
from surrogate.models.teacher import teach
from tests.surrogate.landscape import EPOCHS, TASK, measurements, split_of
from workshop.ranks import kendall_tau

MEASURED = measurements(9)
PARTS = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
FEATURES = default_features("valid_acc")
TRANSFORM = fit_transform("valid_acc", PARTS["train"].y)
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


def test_noise_where_values_are_low_does_not_blur_the_high_ones() -> None:
    """As in trainings: those that fail differ by much more between seeds than those that succeed."""
    rng = np.random.default_rng(0)
    F = rng.uniform(-1, 1, (400, 2)).astype(np.float32)
    curves = curves_of(3 * F)
    is_low = curves[:, -1] < 0
    noisy = curves + rng.normal(0, np.where(is_low, 1.0, 0.02)[:, None], (400, 1))
    predicted = fit_curves(F, noisy, np.ones(400)).predict(F)
    assert np.abs(predicted - curves)[~is_low].mean() < 0.1


def test_variances_of_noise_are_those_of_configs_with_similar_predictions() -> None:
    predicted = np.random.default_rng(0).permutation(1000).astype(np.float64)
    variances = curve_process._local_variances(predicted, np.where(predicted < 500, 4.0, 1.0))
    far = np.abs(predicted - 500) > 100
    assert variances[far & (predicted < 500)] / variances[far & (predicted > 500)].mean() == pytest.approx(4)
    assert (curve_process._local_variances(predicted[:5], np.full(5, 2.0)) == 1).all()


def test_the_last_value_of_a_curve_is_a_coefficient_of_its_own() -> None:
    F = np.random.default_rng(0).uniform(-1, 1, (60, 3)).astype(np.float32)
    process = fit_curves(F, curves_of(F, 7), np.ones(60))
    assert process.predict_last(F) == pytest.approx(process.predict(F)[:, -1], abs=1e-9)
    assert process.components[:, -1] == pytest.approx([1, *[0] * (len(process.components) - 1)], abs=1e-9)


def test_leave_one_out_errors_are_those_of_fits_without_the_config() -> None:
    rng = np.random.default_rng(0)
    Z, y, variance = rng.normal(size=(20, 2)), rng.normal(size=20), rng.uniform(0.5, 2, 20)
    process = curve_process._fit(Z, y, variance)
    K = curve_process._noisy_kernel(process.A, process.noise * variance)
    z = (y - process.mean) / process.sd
    for i, error in enumerate(curve_process._leave_one_out_errors(process)):
        rest = np.delete(np.arange(20), i)
        predicted = K[i, rest] @ np.linalg.solve(K[np.ix_(rest, rest)], z[rest])
        assert error == pytest.approx(process.sd * (z[i] - predicted))


def test_no_capped_curve_ends_above_the_best_fitted_config() -> None:
    rng = np.random.default_rng(0)
    F = rng.uniform(-1, 1, (80, 2)).astype(np.float32)
    last = (F.sum(axis=1) + rng.normal(0, 0.05, 80)).astype(np.float64)
    process = fit_curves(F, np.column_stack([last / 2, last]), np.ones(80))
    far = rng.uniform(-3, 3, (500, 2)).astype(np.float32)
    plain, capped = process.predict(far), process.predict(far, is_capped=True)
    best = process.mean[-1] + process.processes[0].best
    assert best <= last.max() + 0.1
    assert plain[:, -1].max() > best
    assert capped[:, -1].max() <= best
    assert (capped[:, -1] <= plain[:, -1]).all()
    is_low = plain[:, -1] < best - 2
    assert capped[is_low] == pytest.approx(plain[is_low], abs=1e-6)


def test_a_capped_value_is_the_mean_of_the_truncated_posterior() -> None:
    rng = np.random.default_rng(0)
    Z, y, variance = rng.normal(size=(20, 2)), rng.normal(size=20), rng.uniform(0.5, 2, 20)
    process = curve_process._fit(Z, y, variance)
    K = curve_process._noisy_kernel(process.A, process.noise * variance)
    new = rng.normal(size=(1, 2))
    k = curve_process._matern(curve_process._squares(new / process.scales, process.A))[0][0]
    mean, sd = process.predict(new)[0], process.sd * np.sqrt(1 - k @ np.linalg.solve(K, k))
    draws = mean + sd * rng.normal(size=200_000)
    expected = draws[draws < process.best].mean()
    assert process.capped(new, np.array([mean]))[0] == pytest.approx(expected, abs=0.01 * sd)


def test_drawn_configs_are_uniform_at_full_size_good_and_mutants_of_the_best() -> None:
    rows = PARTS["train"]
    teacher = teach(rows, TASK, FEATURES, TRANSFORM)
    X = teacher.draw_configs(100)
    assert (teacher.draw_configs(100) == X).all()
    assert (X[:, -1] == EPOCHS[-1]).all()
    is_full = (X[:, [COLUMNS.index(key) for key in LARGEST]] == [*LARGEST.values()]).all(axis=1)
    assert not is_full[:60].all()
    assert is_full[60:].all()
    last = teacher.curves.predict_last(FeatureBuilder(FEATURES, TASK).build(X))
    assert last[75:88].min() > np.median(last[60:75])
    assert np.median(last[88:]) > np.median(last[75:88])
    for n in range(6):
        assert len(teacher.draw_configs(n)) == n


def test_what_a_forest_learns_are_curves_of_drawn_configs() -> None:
    rows = PARTS["train"]
    teacher = teach(rows, TASK, FEATURES, TRANSFORM)
    F, predicted = teacher.distil(40)
    X = np.repeat(teacher.draw_configs(40), 3, axis=0)
    X[:, -1] = F[:, FEATURES.columns.index("epoch")]
    assert set(X[:, -1].tolist()) == set(EPOCHS)
    assert (X[::3, -1] == EPOCHS[-1]).all()
    assert (FeatureBuilder(FEATURES, TASK).build(X) == F).all()
    assert predicted[::3] == pytest.approx(teacher.predict_last(X[::3]))
    assert predicted[::3] == pytest.approx(TRANSFORM.inverse(teacher.curves.predict(F[::3], is_capped=True)[:, -1]))


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


def test_a_teacher_may_be_given() -> None:
    rows = PARTS["train"]
    taught = distil("valid_acc", rows, TASK, 500)
    first, again = (
        fit_surrogate("valid_acc", rows, TASK, settings=TAUGHT, taught=given).booster.save_raw("ubj")
        for given in (None, taught)
    )
    assert first == again


def test_configs_that_lack_an_epoch_are_left_to_the_forest() -> None:
    rows = PARTS["train"]
    ids = np.unique(rows.config_id)
    is_cut = np.isin(rows.config_id, ids[:5]) & (rows.epoch == TASK.max_epoch)
    left = rows.take(~is_cut)
    teacher = teach(left, TASK, FEATURES, TRANSFORM)
    assert teacher.epochs == EPOCHS
    assert len(teacher.curves.processes[0].A) == len(ids) - 5


def test_too_few_curves_are_refused() -> None:
    rows = PARTS["train"].take(np.isin(PARTS["train"].config_id, PARTS["train"].config_id[:1]))
    with pytest.raises(InvalidArgument, match=r"1 configs have all 4 epochs; distillation needs 8; .*--distilled 0"):
        fit_surrogate("valid_acc", rows, TASK, settings=TAUGHT)
