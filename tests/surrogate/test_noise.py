"""A noise law that is known is found again, and the intervals hold what they promise on configs that were held out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jahs.errors import InvalidTable
from jahs.models.noise import NoiseModel
from jahs.spaces.columns import config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import ACCURACIES
from surrogate.data.rows import Rows
from surrogate.judging.noise import coverage, cross_validated_coverage, fit_noise, realism
from surrogate.judging.predicted import NOISY, Predicted
from tests.jahs.models.noise_models import noise_model

TASK = TASKS["digits"]
TRUTH = noise_model()


def trainings(n_configs: int, n_repeated: int, *, seed: int, error: float = 0.0) -> dict[str, Predicted]:
    """Trainings drawn from the law, the first configs with three seeds; predictions are off by `error` points."""
    chance = np.random.default_rng(seed)
    configs = space().sample_columns(n_configs, seed=seed)
    n_seeds = np.where(np.arange(n_configs) < n_repeated, 3, 1)
    at = np.repeat(np.arange(n_configs), 12 * n_seeds)
    of_seed = np.concatenate([np.repeat(np.arange(n), 12) for n in n_seeds])
    epoch = np.tile(np.arange(1, 13), n_seeds.sum())
    X, ids = encode({key: values[at] for key, values in configs.items()}, epoch), config_ids(configs)[at]
    curve = 10 + 85 * chance.beta(6, 2, n_configs)[at] * (1 - np.exp(-epoch / 4))
    means = {"train_acc": curve - 3, "valid_acc": curve, "test_acc": curve - 0.5, "runtime": 2.0 * epoch}
    drawn = TRUTH.draw(means, X, ids, of_seed)
    off = chance.normal(0, error, n_configs)[at]
    found = {}
    for metric, mean in means.items():
        is_used = epoch == 12 if metric == "runtime" else epoch > 0
        by = 12 if metric == "runtime" else 1
        rows = Rows(X=X[is_used], y=drawn[metric][is_used] / by, config_id=ids[is_used], seed=of_seed[is_used])
        predicted = mean / by if metric == "runtime" else np.clip(mean + off, 0, 100)
        found[metric] = Predicted(rows=rows, mean=predicted[is_used])
    return found


@pytest.fixture(scope="module")
def fitted() -> NoiseModel:
    return fit_noise(trainings(200, 120, seed=3, error=2), TASK)


def test_ninety_percent_intervals_hold_85_to_95_percent_of_held_out_repeats(fitted: NoiseModel) -> None:
    found = coverage(fitted, trainings(300, 300, seed=1, error=2))
    assert {(c["metric"], c["kind"]) for c in found} == {(m, k) for m in NOISY for k in ("seed", "outcome")}
    for c in found:
        assert 0.85 <= c["share"] <= 0.95, c
        assert c["low"] < c["share"] < c["high"]


@pytest.mark.parametrize("seed", [3, 4])
def test_twenty_repeated_configs_are_enough_for_sensible_intervals(seed: int) -> None:
    model = fit_noise(trainings(40, 20, seed=seed), TASK)
    shares = [c["share"] for c in coverage(model, trainings(200, 200, seed=5))]
    assert min(shares) >= 0.82
    assert max(shares) <= 0.98


def test_the_law_is_found_again(fitted: NoiseModel) -> None:
    X = encode(space().sample_columns(500, seed=9), np.arange(500) % 12 + 1)
    for name in ACCURACIES:
        for level in (40.0, 60.0, 80.0):
            y = np.full(500, level)
            ratio = fitted.accuracies[name]["seed"].of_rows(y, X) / TRUTH.accuracies[name]["seed"].of_rows(y, X)
            assert 0.67 < float(np.exp(np.log(ratio).mean())) < 1.5, (name, level)
            assert float(np.log(ratio).std()) < 0.25, (name, level)
    assert fitted.runtime["seed"].spread == pytest.approx(0.06, rel=0.2)
    truth = TRUTH.correlation
    assert fitted.correlation.halving == pytest.approx(truth.halving, abs=0.08)
    for pair in ("train", "evaluation", "twins"):
        assert getattr(fitted.correlation, pair) == pytest.approx(getattr(truth, pair), abs=0.1)


def test_the_error_of_predictions_widens_outcomes_and_not_draws() -> None:
    exact, off = (fit_noise(trainings(150, 60, seed=2, error=error), TASK) for error in (0, 6))
    X = encode(space().sample_columns(50, seed=9), 12)
    y = np.full(50, 80.0)
    for kind, least, most in (("seed", 0.8, 1.25), ("outcome", 1.5, 6.0)):
        ratio = off.accuracies["valid_acc"][kind].of_rows(y, X) / exact.accuracies["valid_acc"][kind].of_rows(y, X)
        assert least < float(np.median(ratio)) < most


def test_every_config_is_held_out_once() -> None:
    given = trainings(60, 40, seed=6)
    found = cross_validated_coverage(given, TASK)
    last = {(c["metric"], c["kind"]): c for c in found if c["epochs"] == "last"}
    assert last["valid_acc", "seed"]["n_configs"] == 40
    assert last["valid_acc", "seed"]["n_rows"] == 80
    assert last["valid_acc", "outcome"]["n_configs"] == 60
    assert all(c["share"] > 0.75 for c in found)


def test_an_interval_of_few_configs_is_wide() -> None:
    few, many = (
        next(c for c in coverage(TRUTH, trainings(n, n, seed=7)) if c["metric"] == "runtime") for n in (20, 300)
    )
    assert few["high"] - few["low"] > 3 * (many["high"] - many["low"])


def test_draws_differ_as_much_as_trainings(fitted: NoiseModel) -> None:
    for r in realism(fitted, trainings(300, 300, seed=8)):
        assert r["drawn_difference"] == pytest.approx(r["measured_difference"], rel=0.25)
        assert r["drawn_tau"] == pytest.approx(r["measured_tau"], abs=0.1)


def test_the_order_of_rows_decides_nothing(fitted: NoiseModel) -> None:
    given = trainings(40, 20, seed=3)
    order = {metric: np.random.default_rng(0).permutation(len(p.rows)) for metric, p in given.items()}
    shuffled = fit_noise({metric: p.take(order[metric]) for metric, p in given.items()}, TASK)
    assert json.dumps(shuffled.to_dict()) == json.dumps(fit_noise(given, TASK).to_dict())


def test_too_few_repeats_are_refused() -> None:
    with pytest.raises(InvalidTable, match="4 configs were trained with more than one seed; noise needs 5"):
        fit_noise(trainings(30, 4, seed=0), TASK)


@pytest.mark.parametrize("n_timed", [0, 4])
def test_few_timed_repeats_take_no_noise_from_accuracies(n_timed: int) -> None:
    """Repeats on another processor than the profile's repeat accuracies, not runtimes."""
    given = trainings(60, 40, seed=6)
    of_time = given["runtime"]
    chosen = np.unique(of_time.rows.config_id)[:n_timed]
    kept = (of_time.rows.seed == 0) | np.isin(of_time.rows.config_id, chosen)
    found = fit_noise({**given, "runtime": of_time.take(kept)}, TASK)
    assert found.accuracies == fit_noise(given, TASK).accuracies
    assert 0 < found.runtime["seed"].spread < 0.2
    assert found.counts["repeated_configs"] == 40
    assert found.counts["timed_repeated_configs"] <= n_timed
