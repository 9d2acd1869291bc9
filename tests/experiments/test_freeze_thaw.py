"""Freeze-thaw: predictors of the last epoch, what they may see, and the page from a small folder of runs."""

import shutil

import numpy as np
import pytest

from experiments.freeze_thaw import (
    MEASURES,
    PREDICTORS,
    Curves,
    main,
    power_law,
    predictions,
    read_curves,
    score,
    stages,
)
from jahs.errors import InvalidArgument
from jahs.files.sealed_json import sealed_text
from splits.split import Split, read_split, write_split
from tests.experiments.conftest import page_written_twice
from tests.surrogate import landscape

N_EPOCHS = landscape.TASK.max_epoch


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Whole curves of ten configs in each fidelity group, with a split and settings beside them."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "EPOCHS", tuple(range(1, N_EPOCHS + 1)))
        runs = landscape.write_folder(folder / "runs", landscape.measurements(10))
    shutil.move(runs / "split.json", folder / "split.json")
    (folder / "search").mkdir()
    quick = {"valid_acc": {"n_trees": 20, "max_depth": 4}}
    (folder / "search" / "params.json").write_text(sealed_text({"metrics": quick}))
    return runs


def made_up(n=50, n_epochs=N_EPOCHS, *, noise=0.0, seed=0):
    """Return curves whose residuals of the surrogate stay as they are, but for noise, in every part."""
    rng = np.random.default_rng(seed)
    observed, surrogate = {}, {}
    for part in ("train", "valid", "test"):
        surrogate[part] = 80 - rng.uniform(20, 40, (n, 1)) / np.arange(1, n_epochs + 1) ** rng.uniform(0.3, 1, (n, 1))
        observed[part] = surrogate[part] + rng.normal(0, 2, (n, 1)) + rng.normal(0, noise, (n, n_epochs))
    return Curves(task=landscape.TASK, observed=observed, surrogate=surrogate)


def test_a_power_law_is_extrapolated():
    times = np.arange(1, 31, dtype=np.float64)
    curves = np.stack([90 - 40 * times**-0.5, 60 - 10 * times**-1.0])
    assert power_law(curves[:, :10], 30) == pytest.approx(curves[:, -1], abs=0.5)
    assert power_law(np.array([[10.0, 60.0, 99.0]]), 30) == pytest.approx([100.0])


def test_the_observed_prefix_corrects_the_level_of_the_surrogate():
    curves = made_up()
    truth = curves.observed["test"][:, -1]
    predicted = predictions(curves, "test", 3)
    assert predicted["surrogate, corrected"] == pytest.approx(truth)
    assert np.array_equal(predicted["last value"], curves.observed["test"][:, 2])
    gain = (curves.observed["train"][:, -1] - curves.observed["train"][:, 2]).mean()
    assert predicted["last value plus mean gain"] == pytest.approx(predicted["last value"] + gain)
    assert "power law" not in predictions(curves, "test", 2)


def test_predictors_see_no_later_epoch_and_the_test_part_chooses_nothing():
    curves = made_up()
    changed = {part: values.copy() for part, values in curves.observed.items()}
    changed["test"][:, 4:] = 0.0
    other = Curves(task=curves.task, observed=changed, surrogate=curves.surrogate)
    for n in (1, 3, 4):
        for name, values in predictions(curves, "test", n).items():
            assert np.array_equal(values, predictions(other, "test", n)[name]), name


def test_scores_are_those_of_a_gaussian():
    curves = made_up(noise=0.5)
    scores = score(curves, n_resamples=20)
    assert list(scores) == stages(landscape.TASK.max_epoch)
    one = scores[3]["last value"]
    errors = {part: curves.observed[part][:, 2] - curves.observed[part][:, -1] for part in ("valid", "test")}
    assert one.sd == pytest.approx(np.sqrt((errors["valid"] ** 2).mean()))
    density = -((errors["test"] / one.sd) ** 2) / 2 - np.log(one.sd * np.sqrt(2 * np.pi))
    assert one.scores["likelihood"].value == pytest.approx(density.mean())
    assert one.scores["mae"].value == pytest.approx(np.abs(errors["test"]).mean())
    assert all(one.scores[m].low <= one.scores[m].value <= one.scores[m].high for m in MEASURES)


def test_configs_outside_the_split_take_no_part(runs, tmp_path):
    whole = read_curves(runs)
    shutil.copytree(runs.parent, tmp_path / "data")
    split = read_split(runs.parent / "split.json")
    kept = np.arange(len(split.config_ids)) % 9 != 0
    facts = {"seed": split.seed, "task": split.task, "protocol": split.protocol}
    smaller = Split(config_ids=split.config_ids[kept], parts=split.parts[kept], **facts)
    write_split(tmp_path / "data" / "split.json", smaller)
    curves = read_curves(tmp_path / "data" / "runs")
    assert curves.n_outside == int((~kept).sum())
    assert sum(map(len, curves.observed.values())) == sum(map(len, whole.observed.values())) - curves.n_outside


def test_the_page_has_every_predictor_and_the_same_bytes(runs, tmp_path):
    files = page_written_twice(main, ["--runs", str(runs), "--docs", "--resamples", "20"], tmp_path)
    assert "predictors.svg" in files
    text = files["report.md"].decode()
    assert all(f"| {name} |" in text for name in PREDICTORS)


def test_too_few_curves_are_refused(runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("experiments.freeze_thaw._FEWEST", 10**6)
    assert main(["--runs", str(runs), "--docs", "--out", str(tmp_path / "page")]) == 2
    assert "complete curves in train, 1000000 are needed" in capsys.readouterr().err
    with pytest.raises(InvalidArgument):
        read_curves(runs)
