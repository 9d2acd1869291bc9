"""Annealed and continued budgets: what agreement and searches must be where they are known, and the page."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.schedules import KINDS, MEASURES, SEARCHES, Trainings, correlations, main, read_trainings, search
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.tables import take
from tests.experiments.conftest import page_written_twice
from tests.surrogate import landscape

N_EPOCHS = landscape.TASK.max_epoch
BUDGETS = (1, 3)


def write_short(folder, measured, n_epochs, **facts):
    """Write the trainings as if their schedule ended after some epochs: half a point better than on the way."""
    runs = take(measured.runs, measured.runs["epoch"] <= n_epochs)
    is_end = runs["epoch"] == n_epochs
    runs["valid_acc"] = np.where(is_end, runs["valid_acc"] + np.float32(0.5), runs["valid_acc"]).astype(np.float32)
    landscape.write_folder(folder, replace(measured, runs=runs))
    told = json.loads((folder / "protocol.json").read_text())
    told["protocol"]["task"] |= {"max_epoch": n_epochs, **facts}
    (folder / "protocol.json").write_text(json.dumps(told))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of whole trainings, and one of annealed trainings for each budget."""
    folder = tmp_path_factory.mktemp("schedules")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "EPOCHS", tuple(range(1, N_EPOCHS + 1)))
        measured = landscape.measurements(3)
    short = [write_short(folder / f"annealed{n}", measured, n) for n in BUDGETS]
    return landscape.write_folder(folder / "whole", measured), short


def made_up(n=120, **columns):
    """Return trainings whose accuracies by kind and budget are given; the others are noise."""
    rng = np.random.default_rng(0)
    end = rng.normal(60, 5, n)
    early = {kind: columns.get(kind, rng.normal(30, 5, (n, 3))) for kind in KINDS}
    valid = {kind: np.column_stack([values, end]) for kind, values in early.items()}
    return end, Trainings(
        task=landscape.TASK, budgets=(1, 3, 9, 27), valid=valid, test=end - 1, groups=np.arange(n) % 4
    )


def test_kinds_that_measure_the_same_have_no_gain():
    same = np.random.default_rng(1).normal(30, 5, (120, 3))
    _, of = made_up(continued=same, annealed=same)
    found = correlations(of, n_resamples=20)
    assert all(each == replace(each, value=0, low=0, high=0) for (_, kind, _), each in found.items() if kind == "gain")
    searched = search(of, n_resamples=5)
    for name in SEARCHES:
        assert searched[name, "continued"].reached == searched[name, "annealed"].reached


def test_rungs_in_the_order_of_the_whole_training_find_the_best_config_that_was_drawn():
    end, _ = made_up()
    _, of = made_up(annealed=np.column_stack([end - 20, end - 10, end - 5]))
    measures = correlations(of, n_resamples=20)
    assert all(measures[n, "annealed", measure].value == pytest.approx(1) for n in (1, 3, 9) for measure in MEASURES)
    searched = search(of, n_resamples=5)
    halving = searched["successive halving", "annealed"]
    assert halving.needed.value == pytest.approx(27, rel=0.15)
    assert halving.speed_up.value == halving.needed.value / 4
    assert halving.gain.value == halving.speed_up.value - searched["successive halving", "continued"].speed_up.value
    assert searched["successive halving", "continued"].needed.value < 5  # noise: one random config, trained wholly
    assert searched["Hyperband", "annealed"].needed.value == pytest.approx(27 + 12 + 6 + 4, rel=0.2)


def test_what_is_read_is_what_was_trained(folders):
    whole, short = folders
    of = read_trainings(whole, short)
    assert of.budgets == (1, 3, N_EPOCHS)
    assert len(of.test) == 81
    early = of.valid["annealed"][:, :2] - of.valid["continued"][:, :2]
    assert early == pytest.approx(0.5, abs=1e-4)
    assert np.array_equal(of.valid["annealed"][:, 2], of.valid["continued"][:, 2])
    assert len(set(of.groups.tolist())) == 27


def test_a_config_with_a_diverged_training_is_left_out(folders, tmp_path):
    _, short = folders
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "EPOCHS", tuple(range(1, N_EPOCHS + 1)))
        measured = landscape.measurements(3)
    runs = dict(measured.runs)
    lost = (runs["config_id"] == measured.configs["config_id"][5]) & (runs["seed"] == 0)
    kept = ~lost | (runs["epoch"] < N_EPOCHS)
    runs = take({**runs, "status": np.where(lost, "diverged", runs["status"])}, kept)
    folder = landscape.write_folder(tmp_path / "whole", replace(measured, runs=runs))
    of = read_trainings(folder, short)
    assert (len(of.test), of.n_left_out) == (80, 1)


def test_trainings_that_do_not_belong_together_are_refused(folders, tmp_path, monkeypatch):
    whole, short = folders
    measured = landscape.measurements(3)
    cropped = write_short(tmp_path / "cropped", measured, 3, random_crop=False)
    facts = json.loads((whole / "protocol.json").read_text())
    assert "random_crop" not in facts["protocol"]["task"]  # as it is by default
    with pytest.raises(ProtocolMismatch, match="differs from the whole trainings in random_crop"):
        read_trainings(whole, [cropped])
    with pytest.raises(ProtocolMismatch, match="must have different budgets below 12 epochs"):
        read_trainings(whole, [short[0], short[0]])
    with pytest.raises(ProtocolMismatch, match="must have different budgets below 12 epochs"):
        read_trainings(whole, [whole])
    monkeypatch.setattr("experiments.schedules._FEWEST", 1000)
    with pytest.raises(InvalidArgument, match="81 configs finished with every budget; 1000 are needed"):
        read_trainings(whole, short)


def test_the_page_shows_both_kinds_and_has_the_same_bytes(folders, tmp_path, caplog):
    whole, short = folders
    arguments = ["--whole", str(whole), "--short", *map(str, short), "--docs"]
    text = page_written_twice(main, [*arguments, "--resamples", "20"], tmp_path)["report.md"].decode()
    assert all(f"| {word} |" in text for word in (*MEASURES, *KINDS, *SEARCHES))
    assert " nan" not in text
    assert main([*arguments, "--resamples", "0", "--out", str(tmp_path / "none")]) == 2
    assert "resamples=0 must be at least 1" in caplog.text
