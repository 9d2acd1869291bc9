"""LightGBM's trees as a flat forest: the same branches, the same answers, and a file beside an unchanged release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.models.features import FeatureBuilder
from jahs.queries.benchmark import Benchmark
from jahs.release import read_release
from surrogate import release
from surrogate.contents import ReleaseSettings
from surrogate.data.rows import assemble, by_part
from surrogate.models.boosting import ForestSettings
from surrogate.models.lightgbm import _first_above, fit_lightgbm, predict_lightgbm
from surrogate.models.model import fit_surrogate
from surrogate.release import make_release
from tests.surrogate.landscape import TASK, measurements, split_of
from tests.surrogate.test_release import write_params

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)
PARTS = by_part(assemble("valid_acc", MEASURED), SPLIT)


def test_every_float32_goes_the_same_way_at_a_threshold() -> None:
    rng = np.random.default_rng(0)
    thresholds = [*rng.normal(size=50), *rng.normal(size=50).astype(np.float32).astype(float), 0.0, 1e-35, 4e8, -1.5]
    for t in thresholds:
        near = np.float32(t)
        x = np.array([np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))])
        np.testing.assert_array_equal(x.astype(np.float64) <= t, x < np.float32(_first_above(t)))


def test_the_flat_forest_answers_as_the_booster() -> None:
    first = fit_surrogate("valid_acc", PARTS["train"], TASK, settings=ForestSettings(n_trees=5))
    booster = fit_lightgbm(PARTS["train"], first)
    X = PARTS["test"].X
    wanted = first.transform.inverse(booster.predict(FeatureBuilder(first.features, TASK).build(X), num_threads=1))
    np.testing.assert_allclose(predict_lightgbm(booster, X, first), wanted, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("without_noise")
def test_a_release_has_the_second_family_beside_files_that_stay_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_N_REFERENCE_CONFIGS", 500)
    how = ReleaseSettings(params=write_params(tmp_path / "tuned", MEASURED), curve_seeds=0, n_refits=0, workers=1)
    make_release(MEASURED, SPLIT, tmp_path / "plain", how)
    quality = make_release(MEASURED, SPLIT, tmp_path / "both", replace(how, families=["lightgbm"]))
    assert quality["lightgbm"]["test"]["valid_acc"]["last epoch"]["tau"] > 0.4
    plain, both = (read_release(tmp_path / name) for name in ("plain", "both"))
    more = both.manifest.files.keys() - plain.manifest.files.keys()
    assert sorted(more) == ["lightgbm-0.npz", "lightgbm.json"]
    for name in plain.manifest.files.keys() - {"quality.json"}:
        assert (tmp_path / "both" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes(), name
    assert "--families lightgbm" in both.facts["command"]
    one, other = (Benchmark(TASK.name, release=both.path, model=name) for name in (None, "lightgbm"))
    configs = one.sample(50, seed=0)
    a, b = (bench.query_many(configs)["valid_acc"] for bench in (one, other))
    assert (a != b).any()
    assert np.corrcoef(a, b)[0, 1] > 0.5
