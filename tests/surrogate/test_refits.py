"""Refits: what is resampled, what fits into the bytes, and what a release with them predicts."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.models.features import FeatureBuilder
from jahs.models.forest import open_engine
from jahs.release import read_release
from jahs.release.writing import extend_release
from jahs.tasks.metrics import ACCURACIES
from surrogate.card.noise import uncertainty_blocks
from surrogate.contents import FittedModels, ReleaseSettings, refits_of
from surrogate.data.rows import by_part, training_rows
from surrogate.judging.quality import rounded
from surrogate.judging.uncertainty import LEVELS, choose_scale, covered, uncertain_of
from surrogate.models.boosting import ForestSettings
from surrogate.models.fitting import fit_each
from surrogate.models.model import fit_surrogate
from surrogate.models.refits import _forest, _size, fit_refits, refit_settings, refit_share, weights_of
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from tests.surrogate.landscape import TASK, measurements, split_of
from workshop.pages.document import Table, Text

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)
SETTINGS = ForestSettings(n_trees=20, max_depth=4, learning_rate=0.3)
PARTS = training_rows(["valid_acc"], MEASURED, SPLIT, fewest=0)
TRAIN = PARTS["valid_acc"]["train"]
TRAINING = {"valid_acc": TRAIN}
FITTED = {"valid_acc": fit_surrogate("valid_acc", TRAIN, TASK, settings=SETTINGS)}


def test_a_config_counts_with_all_its_rows_as_often_as_it_was_drawn() -> None:
    weights = [weights_of(TRAIN.config_id, refit=k, seed=0) for k in range(3)]
    for of_rows in weights:
        by_config = {i: set(of_rows[TRAIN.config_id == i].tolist()) for i in np.unique(TRAIN.config_id).tolist()}
        assert all(len(values) == 1 for values in by_config.values())
        assert sum(value for (value,) in by_config.values()) == TRAIN.n_configs
        assert 0.5 < sum(value > 0 for (value,) in by_config.values()) / TRAIN.n_configs < 0.75
    assert len({of_rows.tobytes() for of_rows in weights}) == 3
    np.testing.assert_array_equal(weights[0], weights_of(TRAIN.config_id, refit=0, seed=0))


def test_rows_that_count_once_give_the_model_itself_and_unused_ones_do_not_count() -> None:
    same = fit_surrogate("valid_acc", TRAIN, TASK, settings=SETTINGS, weights=np.ones(len(TRAIN)))
    np.testing.assert_array_equal(FITTED["valid_acc"].predict(TRAIN.X), same.predict(TRAIN.X))
    weights = weights_of(TRAIN.config_id, refit=0, seed=0)
    changed = TRAIN.take(np.arange(len(TRAIN)))
    changed.y[weights == 0] = 50.0
    one, other = (
        fit_surrogate("valid_acc", rows, TASK, settings=SETTINGS, weights=weights) for rows in (TRAIN, changed)
    )
    np.testing.assert_array_equal(one.predict(TRAIN.X), other.predict(TRAIN.X))
    assert one.counts["configs"] < TRAIN.n_configs


def test_refits_have_the_settings_of_the_model_but_for_the_size() -> None:
    settings = refit_settings(SETTINGS, refit=3, share=0.5)
    assert asdict(settings) == asdict(SETTINGS) | {
        "n_trees": 10, "learning_rate": 0.6, "min_child_weight": 20, "seed": 3,
    }  # fmt: skip


def test_refits_have_more_and_shallower_trees_than_a_model_of_deep_ones() -> None:
    deep = replace(SETTINGS, max_depth=6, n_trees=100, slope=0.5, colsample_bytree=0.7, n_distilled=10)
    settings = refit_settings(deep, refit=1, share=0.5)
    assert asdict(settings) == asdict(deep) | {
        "n_trees": 240, "max_depth": 5, "learning_rate": 0.16, "min_child_weight": 20, "seed": 1,
    }  # fmt: skip


def test_the_share_of_trees_is_the_largest_that_fits() -> None:
    assert refit_share(TRAINING, FITTED, n_refits=8) == 1.0
    (first,) = fit_refits(TRAINING, FITTED, share=1.0, seed=0, n_refits=1)["valid_acc"]
    whole = 8 * _size(_forest([first]))
    shares = [refit_share(TRAINING, FITTED, most_bytes=int(part * whole)) for part in (0.8, 0.5, 0.06)]
    assert shares == [0.75, 0.45, 0.05]
    with pytest.raises(InvalidArgument, match=r"8 refits have .* bytes, more than the 100 allowed"):
        refit_share(TRAINING, FITTED, n_refits=8, most_bytes=100)


def test_short_leaves_hardly_change_an_answer() -> None:
    how = {"share": 1.0, "seed": 0, "n_refits": 2}
    fitted = fit_refits(TRAINING, FITTED, **how)["valid_acc"]
    F = FeatureBuilder(fitted[0].features, TASK).build(TRAIN.X)
    answers = open_engine(_forest(fitted), "numpy").predict(F)
    for k, one in enumerate(fitted):
        assert np.abs(one.transform.inverse(answers[:, k]) - one.predict(TRAIN.X)).max() < 0.5


def test_validation_chooses_the_scale_that_covers() -> None:
    several = fit_refits(TRAINING, FITTED, share=1.0, seed=0)["valid_acc"]
    valid = by_part(PARTS["valid_acc"]["train"], SPLIT)["train"]  # any rows will do
    answer = uncertain_of(FITTED["valid_acc"], several, valid, noise_model(TASK.name, max_epoch=TASK.max_epoch))
    rng = np.random.default_rng(0)
    answer.mean = np.clip(answer.mean, 20, 80)
    answer.refits = answer.mean[..., None] + rng.normal(0, 3, answer.refits.shape)
    deviation = rng.normal(0, 1, len(valid))
    scales = []
    for sd in (3, 14):
        valid.y[:] = np.clip(answer.mean[0] + sd * deviation, 0, 100)
        scales.append(choose_scale(answer, valid))
    assert scales[0] < scales[1]
    assert scales[1] > 1
    answer = replace(answer, scale=np.array([[scales[1]]]))
    assert covered(answer, valid, 0.9)["share"] == pytest.approx(0.9, abs=0.05)
    assert 0 <= covered(answer, valid, LEVELS[0])["share"] <= covered(answer, valid, LEVELS[-1])["share"] <= 1
    assert choose_scale(answer, valid.take(np.zeros(0, np.intp))) == 1.0


def test_a_release_with_refits_answers_as_before_and_predicts(tmp_path: Path) -> None:
    noise = noise_model(TASK.name, max_epoch=TASK.max_epoch).to_dict()
    folder = make_release(tmp_path / "release", task=TASK.name, quality={"format": 1}, noise=noise)
    before = read_release(folder)
    parts = training_rows(ACCURACIES, MEASURED, SPLIT, fewest=0)
    fitted = fit_each({m: of["train"] for m, of in parts.items()}, TASK, dict.fromkeys(ACCURACIES, SETTINGS))
    models = FittedModels(MEASURED, SPLIT, parts, fitted, fitted)
    refits, forests, facts = refits_of(models, before.models, noise, ReleaseSettings(n_refits=3, workers=1))
    quality = {"format": 1, "uncertainty": rounded(facts)}
    extend_release(before, {}, refits=refits, refit_forests=forests, quality=quality)
    now = read_release(folder)
    now.verify()
    assert now.manifest.files.keys() - before.manifest.files.keys() == {"refits.json", "refits-0.npz"}
    uncertainty = now.quality["uncertainty"]
    assert (uncertainty["n_refits"], set(uncertainty["metrics"])) == (3, set(ACCURACIES))
    assert {(e["cut"], e["level"]) for e in uncertainty["metrics"]["valid_acc"]["coverage"]} >= {("last epoch", 0.9)}
    blocks = list(uncertainty_blocks(uncertainty))
    assert [len(block.rows) for block in blocks if isinstance(block, Table)][::2] == [9, 6]
    assert isinstance(blocks[-1], Text)
    assert "the absolute errors" in blocks[-1].text
    assert now.refits.scales == {metric: facts["metrics"][metric]["scale"] for metric in ACCURACIES}
    prediction = jahs.Benchmark(TASK.name, release=folder).predict(jahs.space().default(), metrics=["valid_acc"])
    assert prediction.total_sd["valid_acc"] > prediction.noise_sd["valid_acc"] > 0
