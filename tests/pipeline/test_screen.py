"""Screening: seeds that agree are told from seeds that do not, and what was trained is not trained again."""

import json

import pytest

from pipeline.collect import Settings, collect
from pipeline.screen import main, summarise

pytestmark = pytest.mark.slow


def rows(first, second):
    return [
        {"number": number, "seed": seed, "status": "finished", "valid_acc": value, "cpu_time_s": 2.0}
        for seed, values in enumerate((first, second))
        for number, value in enumerate(values)
    ]


def test_tau_and_difference_are_those_of_the_pairs():
    same = summarise(rows([10, 20, 30, 40], [11, 21, 31, 41]))
    assert (same["tau"], same["mean_abs_difference"], same["n_configs"]) == (1, 1, 4)
    assert summarise(rows([10, 20, 30, 40], [40, 30, 20, 10]))["tau"] == -1
    assert summarise(rows([10, 20, 30, 40], [10, 20, 40, 30]))["tau"] == pytest.approx(4 / 6)


def test_a_diverged_run_is_counted_and_its_config_left_out():
    broken = rows([10, 20, 30, 40], [10, 20, 30, 40])
    broken[0]["status"] = "diverged"
    facts = summarise(broken)
    assert (facts["n_configs"], facts["n_diverged_runs"]) == (3, 1)


def test_a_screening_goes_on_where_it_was(tmp_path, capsys):
    sizes = {"train": 256, "valid": 256, "test": 256, "epochs": 2, "configs": 2, "workers": 1}
    arguments = ["--task", "digits", *(part for name, size in sizes.items() for part in (f"--{name}", str(size)))]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    first = capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(before) == 4
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_recorded_pairs_are_compared_and_too_few_are_refused(tmp_path, capsys, caplog):
    out = tmp_path / "runs"
    collect(Settings(task="digits", out=out, runs=3, workers=1))
    assert main(["--runs", str(out)]) == 2
    assert "1 configs finished with both seeds" in caplog.text
    collect(Settings(task="digits", out=out, runs=2, workers=1, pairs=2))
    capsys.readouterr()
    assert main(["--runs", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["n_configs"] == 2
