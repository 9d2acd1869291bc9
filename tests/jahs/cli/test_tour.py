"""`jahs demo` with a release: a tour that ends with a search and one picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from jahs.cli import main
from jahs.cli.demo import demo, successive_halving
from jahs.queries.benchmark import Benchmark


def test_the_tour_ends_with_a_search_and_writes_one_picture(run, bench, tmp_path: Path) -> None:
    shown = run("demo", "--seed", "2", "--out", str(tmp_path))
    (picture,) = tmp_path.iterdir()
    assert f"A picture of it: {picture}" in shown.splitlines()
    assert sum(line.startswith("  jahs ") for line in shown.split("Try next:")[1].splitlines()) == 3
    halving = successive_halving(bench, bench.space.sample(27, seed=2))
    for rung in halving.rungs:
        (row,) = [
            line.split() for line in shown.splitlines() if line.split()[:2] == [str(rung.epoch), str(len(rung.configs))]
        ]
        assert float(row[2]) == round(rung.valid_acc[0], 2)


def test_a_recorded_config_is_shown_with_what_its_training_reached(run_json, release: Path, tmp_path: Path) -> None:
    facts = run_json("demo", "--out", str(tmp_path))
    table = Benchmark("cifar10_mini", "table", release=release)
    assert facts["config"] == table.sample(seed=25)
    assert facts["trained_valid_acc"] == table.query(facts["config"]).valid_acc


def test_the_embedded_release_says_what_was_trained_and_its_search_beats_full_trainings_on_average() -> None:
    bench = Benchmark("cifar10_mini", engine="numpy")
    shown = demo(seed=25, task_name=bench.task.name, bench=bench, table=Benchmark("cifar10_mini", "table"))
    low, high = shown.interval or (0.0, 0.0)
    assert shown.trained is not None
    assert low < shown.trained < high
    gains = shown.gains
    assert len(gains) == 20
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_machines_get_the_same_search(run_json, bench, tmp_path: Path) -> None:
    facts = run_json("demo", "--out", str(tmp_path))
    halving = successive_halving(bench, bench.space.sample(27, seed=25))
    assert [rung["valid_acc"] for rung in facts["rungs"]] == [list(rung.valid_acc) for rung in halving.rungs]
    assert facts["best"] == halving.configs[halving.rungs[-1].configs[0]]
    assert Path(facts["picture"]).is_file()


def test_without_a_folder_the_picture_goes_to_a_temporary_one(run_json, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    picture = Path(run_json("demo")["picture"])
    assert picture.is_relative_to(tmp_path)


def test_the_name_of_a_task_has_any_case(run_json, capsys, tmp_path: Path) -> None:
    given = ["demo", "--out", str(tmp_path), "--task"]
    assert run_json(*given, "CIFAR10_Mini")["best"] == run_json(*given, "cifar10_mini")["best"]
    assert main([*given, "CIFAR10", "--json"]) == 0  # without a release
    assert "rungs" not in json.loads(capsys.readouterr().out)


def test_a_folder_that_is_not_there_is_a_mistake(run) -> None:
    assert run("demo", "--out", "no/such/folder", code=2) == "jahs demo: --out no/such/folder is not a folder\n"


def test_a_picture_that_cannot_be_written_is_told_without_a_traceback(run, tmp_path: Path) -> None:
    (tmp_path / "jahs-demo-cifar10_mini-seed-25.svg").mkdir()
    told = run("demo", "--out", str(tmp_path), code=1)
    assert told.startswith("jahs demo: ")
    assert "jahs-demo-cifar10_mini-seed-25.svg" in told


def test_without_a_release_the_tour_says_so_in_one_line(capsys, monkeypatch) -> None:
    monkeypatch.setattr("jahs.release.find.data_folders", tuple)
    assert main(["demo", "--task", "digits"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1].startswith("No release is embedded for digits")
    assert main(["demo", "--task", "digits", "--json"]) == 0
    assert "rungs" not in json.loads(capsys.readouterr().out)


def test_a_release_that_was_named_must_be_there(capsys) -> None:
    assert main(["demo", "--release", "no/such/folder"]) == 2
    assert "no/such/folder is not a release" in capsys.readouterr().err


def test_a_data_folder_that_is_none_is_not_the_same_as_no_release(capsys, monkeypatch) -> None:
    monkeypatch.setenv("JAHS_DATA_DIR", "no/such/folder")
    assert main(["demo", "--task", "digits"]) == 2
    assert "JAHS_DATA_DIR=no/such/folder" in capsys.readouterr().err
