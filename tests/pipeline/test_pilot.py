"""Screening: seeds that agree are told from seeds that do not, and what was trained is not trained again."""

import dataclasses
import json
import math

import numpy as np
import pytest
from pipeline.screen import main, recorded_rows, screen_one, summarise

from jahs.files.tables import write_table
from jahs.schema import PROFILE_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.tasks import RESOLUTIONS, TASKS
from pipeline import screen
from pipeline.collect import Settings, collect
from pipeline.train import CONSTANTS, EPOCH_FIELDS, TrainedRun

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


def test_few_configs_have_an_interval_of_the_resamples_that_are_not_all_equal():
    facts = summarise(rows([10, 20, 30], [11, 21, 31]))
    assert (facts["tau_low"], facts["tau"], facts["tau_high"]) == (1, 1, 1)
    facts = summarise(rows([10, 10, 10], [11, 21, 31]))
    assert (facts["tau_low"], facts["tau"], facts["tau_high"]) == (None, None, None)
    json.dumps(facts, allow_nan=False)


def test_what_was_trained_for_another_task_or_protocol_is_trained_again(tmp_path, monkeypatch):
    trained = []

    def train(config, candidate, images, *, seed):
        trained.append(candidate.name)
        return TrainedRun(status="diverged", epochs=np.empty((0, len(EPOCH_FIELDS))), network=None)

    monkeypatch.setattr(screen, "train", train)
    monkeypatch.setattr(screen, "load_images", lambda candidate: dict.fromkeys(RESOLUTIONS))
    digits = dataclasses.replace(TASKS["digits"], index_digest=None)
    candidates = [digits, dataclasses.replace(digits, name="letters"), dataclasses.replace(digits, side=32)]
    for candidate in candidates * 2:
        screen_one(candidate, 0, 0, tmp_path)
    assert trained == ["digits", "letters", "digits"]
    monkeypatch.setitem(CONSTANTS, "momentum", 0.8)
    screen_one(digits, 0, 0, tmp_path)
    assert len(trained) == len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(("machines", "seconds"), [("AABB", 2.0), ("AGGG", 2.0), ("GGGG", None)])
def test_seconds_of_recorded_runs_are_of_the_profiles_processor_alone(tmp_path, capsys, machines, seconds):
    (tmp_path / "protocol.json").write_text(json.dumps({"format": RUNS_FORMAT, "digest": "d", "protocol": {}}))
    recorded = {name: np.ones(4).astype("U" if dtype == "string" else dtype) for name, dtype in RUN_COLUMNS.items()}
    recorded |= {
        "config_id": np.array([1, 1, 2, 2], dtype=np.uint64),
        "seed": np.array([0, 1, 0, 1]),
        "valid_acc": np.array([10, 11, 20, 21], dtype=np.float32),
        "runtime": np.array([{"A": 2, "B": 9, "G": math.nan}[name] for name in machines], dtype=np.float32),
        "status": np.full(4, "finished"),
        "device": np.array(["cuda" if name == "G" else "cpu" for name in machines]),
        "machine": np.array(list(machines)),
        "protocol": np.full(4, "d"),
    }
    write_table(tmp_path / "runs-0001.parquet", recorded, RUN_COLUMNS)
    profile = {name: np.ones(1).astype("U" if dtype == "string" else dtype) for name, dtype in PROFILE_COLUMNS.items()}
    profile |= {"machine": np.array(["A"]), "protocol": np.array(["d"])}
    write_table(tmp_path / "profile.parquet", profile, PROFILE_COLUMNS)
    known = [row["cpu_time_s"] for row in recorded_rows(tmp_path)]
    assert known == [2.0 if name == "A" else None for name in machines]
    assert main(["--runs", str(tmp_path)]) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (facts["mean_cpu_time_s"], facts["tau"]) == (seconds, 1)


def test_recorded_pairs_are_compared_and_too_few_are_refused(tmp_path, capsys, caplog):
    out = tmp_path / "runs"
    collect(Settings(task="digits", out=out, runs=3, workers=1))
    assert main(["--runs", str(out)]) == 2
    assert "1 configs finished with both seeds" in caplog.text
    collect(Settings(task="digits", out=out, runs=2, workers=1, pairs=2))
    capsys.readouterr()
    assert main(["--runs", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["n_configs"] == 2
