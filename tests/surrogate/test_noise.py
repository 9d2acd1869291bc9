"""A noise law that is known is found again, and the intervals hold what they promise on configs that were held out."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from jahs.errors import InvalidTable
from jahs.models.noise import NoiseModel
from jahs.models.noise.spread import LEVELS, Spread
from jahs.spaces.columns import config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import ACCURACIES
from surrogate.data.rows import Rows
from surrogate.judging.noise import (
    REGIONS,
    coverage,
    cross_validated_coverage,
    fit_noise,
    realism,
    seed_spreads,
)
from surrogate.judging.predicted import NOISY, PredictedRows
from tests.jahs.models.noise_models import noise_model

TASK = TASKS["digits"]
TRUTH = noise_model()


def uneven() -> NoiseModel:
    """A law whose noise decays where trainings succeed and not where they fail, the more so the more images there are.

    Training accuracy depends on its level in another way than the two others.
    """
    last = np.interp(LEVELS, [0, 40, 60, 80, 100], [0.12, 0.12, 0.05, 0.012, 0.01])
    laws = {}
    for name, factor, own in (("train_acc", 1.0, np.full(21, 0.05)), ("valid_acc", 1.0, last), ("test_acc", 1.4, last)):
        law = Spread(level=(0.08 * factor,) * 21, last=tuple((factor * own).tolist()), epoch=(1.0,) * 12, tail=0.05)
        laws[name] = {"seed": law, "outcome": law}
    return dataclasses.replace(TRUTH, accuracies=laws)


def trainings(
    n_configs: int, n_repeated: int, *, seed: int, error: float = 0.0, law: NoiseModel = TRUTH
) -> dict[str, PredictedRows]:
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
    drawn = law.draw(means, X, ids, of_seed)
    off = chance.normal(0, error, n_configs)[at]
    found = {}
    for metric, mean in means.items():
        is_used = epoch == 12 if metric == "runtime" else epoch > 0
        by = 12 if metric == "runtime" else 1
        rows = Rows(X=X[is_used], y=drawn[metric][is_used] / by, config_id=ids[is_used], seed=of_seed[is_used])
        predicted = mean / by if metric == "runtime" else np.clip(mean + off, 0, 100)
        found[metric] = PredictedRows(rows=rows, mean=predicted[is_used])
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
    others = trainings(400, 0, seed=11)
    for name in ACCURACIES:
        X, y = others[name].rows.X, others[name].mean
        of_both = [model.accuracies[name]["seed"].of_rows(y, X) for model in (fitted, TRUTH)]
        ratio = np.log(of_both[0] / of_both[1])
        for low in (45, 60, 75):
            for is_last in (X[:, -1] < 12, X[:, -1] == 12):
                here = ratio[(y >= low) & (y < low + 15) & is_last]
                assert 0.67 < float(np.exp(here.mean())) < 1.5, (name, low)
                assert float(here.std()) < 0.25, (name, low)
    assert fitted.runtime["seed"].spread == pytest.approx(0.06, rel=0.2)
    truth = TRUTH.correlation
    assert fitted.correlation.halving == pytest.approx(truth.halving, abs=0.08)
    for pair in ("train", "evaluation", "twins"):
        assert getattr(fitted.correlation, pair) == pytest.approx(getattr(truth, pair), abs=0.1)


def test_heavy_tails_of_bad_configs_give_good_ones_no_extreme_draws() -> None:
    heavy = {name: dataclasses.replace(each["seed"], tail=0.45) for name, each in TRUTH.accuracies.items()}
    failing = dataclasses.replace(TRUTH, accuracies={name: {"seed": s, "outcome": s} for name, s in heavy.items()})
    mixed = trainings(200, 200, seed=3)
    middle = np.median([mixed[name].mean for name in ACCURACIES])
    for name, one in trainings(200, 200, seed=3, law=failing).items():
        own = mixed[name].rows
        y = np.where((one.mean < middle) & (name in ACCURACIES), one.rows.y, own.y)
        mixed[name] = PredictedRows(rows=dataclasses.replace(own, y=y), mean=one.mean)
    fitted = fit_noise(mixed, TASK)
    tails = {name: laws["seed"].tail for name, laws in fitted.accuracies.items()}
    assert tails == pytest.approx(dict.fromkeys(ACCURACIES, 0.08), abs=0.04)  # 0.145 with the tails of all


def test_the_error_of_predictions_widens_outcomes_and_not_draws() -> None:
    exact, off = (fit_noise(trainings(150, 60, seed=2, error=error), TASK) for error in (0, 4))
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


def test_draws_have_the_planted_sd_in_every_region() -> None:
    """On average over the whole space, a model can be right that draws twice the noise among the best configs."""
    law, of_task = uneven(), dataclasses.replace(TASK, n_valid=3200, n_test=1600)  # an image is less than the noise
    fitted = fit_noise(trainings(200, 150, seed=3, law=law), of_task)
    found = seed_spreads(fitted, trainings(400, 400, seed=1, law=law))
    assert [(one["metric"], one["region"]) for one in found] == [(m, region) for m in ACCURACIES for region in REGIONS]
    for one in found:
        assert one["low"] / 1.1 <= 1 <= one["high"] * 1.1, one  # 10 % for the error of the fit
        assert one["freedom"] == 2 * one["n_configs"]


def test_a_law_that_draws_too_much_is_seen_in_its_region() -> None:
    law = uneven()
    valid = law.accuracies["valid_acc"]["seed"]
    last = tuple(2 * sd if level >= 75 else sd for level, sd in zip(LEVELS, valid.last, strict=True))
    wrong = {
        **law.accuracies,
        "valid_acc": {**law.accuracies["valid_acc"], "seed": dataclasses.replace(valid, last=last)},
    }
    found = seed_spreads(dataclasses.replace(law, accuracies=wrong), trainings(300, 300, seed=1, law=law))
    by_region = {one["region"]: one for one in found if one["metric"] == "valid_acc"}
    assert by_region["best tenth"]["ratio"] == pytest.approx(2, rel=0.2)
    assert by_region["best tenth"]["low"] > 1
    assert by_region["worst third"]["low"] < 1 < by_region["worst third"]["high"]


def test_regions_without_repeats_are_left_out() -> None:
    found = seed_spreads(TRUTH, trainings(40, 2, seed=1))
    assert found == []


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
