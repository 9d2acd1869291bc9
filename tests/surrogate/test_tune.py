"""The search with NePS: it survives kill -9, belongs to its rows, and ends with the smallest good forest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.atomic import hold
from jahs.tasks.definitions import Task
from surrogate import tune
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Facts, Rows, assemble, by_part
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, fit_surrogate
from surrogate.models.search import evaluated, search
from surrogate.tune import FORESTS, settings_of, sizes, smallest, validation_tau
from tests.surrogate.landscape import TASK, arguments, measurements, split_of, write_folder
from workshop.ranks import kendall_tau

ROOT = Path(__file__).resolve().parents[2]
MEASURED = measurements(8)
PARTS = by_part(assemble("latency", MEASURED), split_of(MEASURED))
FACTS = {"metric": "latency", "task": TASK.name, "n_trees": 10}
POINT = {
    "max_depth": 3, "min_child_weight": 2, "colsample_bytree": 0.5, "colsample_bylevel": 1.0, "learning_rate": 0.2,
    "sigmoid_k": 1.5,
}  # fmt: skip


def searched(
    folder: Path, *, facts: Mapping[str, object] = FACTS, parts: Mapping[str, Rows] = PARTS, n: int = 0
) -> None:
    how = {"evaluations": n, "optimizer": "random_search"}
    search(folder, FORESTS, lambda point: point["max_depth"] / 15, facts=facts, parts=parts, **how)


def test_a_folder_belongs_to_one_search_of_one_set_of_rows(tmp_path: Path) -> None:
    searched(tmp_path)
    searched(tmp_path)
    with pytest.raises(ProtocolMismatch, match=r"holds another search .n_trees: 10, not 20"):
        searched(tmp_path, facts={**FACTS, "n_trees": 20})
    with pytest.raises(ProtocolMismatch, match=r"holds another search .rows:"):
        searched(tmp_path, parts={**PARTS, "valid": PARTS["test"]})
    assert evaluated(tmp_path) == []


def test_two_searches_cannot_have_one_folder(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a") as file:
        hold(file)
        with pytest.raises(InvalidArgument, match="a search is running in"):
            searched(tmp_path)
    searched(tmp_path)


def test_metrics_that_were_searched_before_stay_if_they_are_of_the_same_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "search", lambda *_, **__: [])
    split = split_of(MEASURED)

    def found(measured: Measurements, *metrics: str, n_trees: int) -> tuple[dict[str, object], dict[str, object]]:
        tune.tune_all(measured, split, tmp_path / "out", metrics=metrics, n_trees=n_trees)
        names = ("history.json", "params.json")
        tables = [json.loads((tmp_path / "out" / name).read_text())["metrics"] for name in names]
        return tables[0], tables[1]

    found(MEASURED, "latency", n_trees=5)
    summaries, chosen = found(MEASURED, "runtime", n_trees=6)
    assert {m: summary["chosen"]["settings"]["n_trees"] for m, summary in summaries.items()} == {
        "latency": 5,
        "runtime": 6,
    }
    assert {m: summary["chosen"]["settings"] for m, summary in summaries.items()} == chosen
    moved = replace(MEASURED, profile={**MEASURED.profile, "machine": np.full(216, "another")})
    summaries, chosen = found(moved, "valid_acc", n_trees=5)
    assert summaries.keys() == chosen.keys() == {"valid_acc"}


def test_a_point_of_the_space_stands_for_settings() -> None:
    assert settings_of(POINT, ForestSettings(n_trees=30)) == ForestSettings(
        n_trees=30, max_depth=3, min_child_weight=2, colsample_bytree=0.5, learning_rate=0.2, slope=1.5
    )


def test_the_smallest_forest_within_the_tolerance_is_chosen() -> None:
    def size(n_nodes: int, tau: float, r2: float | None = 0.95) -> Facts:
        return {"settings": {}, "n_nodes": n_nodes, "tau": tau, "r2": r2}

    forests = [size(1000, 0.9), size(300, 0.8985), size(200, 0.8979), size(300, 0.899)]
    assert smallest(forests) == forests[3]
    far_off = [size(10, 0.95, r2=-4.0), size(20, 0.9, r2=0.93)]
    assert smallest([*forests, *far_off]) == forests[3]
    assert smallest([*forests, size(100, 0.899, r2=0.9401)])["n_nodes"] == 100
    assert smallest([*forests, size(100, 0.8955)], tolerance=0.005)["n_nodes"] == 100
    assert smallest([size(10, 0.9, r2=None), size(20, 0.9)])["n_nodes"] == 20
    good, bad = {**size(90, 0.899), "tau_top": 0.7}, {**size(50, 0.9), "tau_top": 0.6}
    assert smallest([good, bad, {**size(80, 0.899), "tau_top": 0.696}])["n_nodes"] == 80


def test_of_settings_that_are_as_good_those_with_the_best_top_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taus = {2: (0.70, 0.9), 3: (0.7995, 0.3), 4: (0.80, 0.1), 5: (0.7985, 0.2)}  # overall and at the top, by depth
    points = [{**POINT, "max_depth": depth} for depth in taus]
    records = [{"number": d, "tau": taus[d][0], "seconds": 0.0, "point": p} for d, p in zip(taus, points, strict=True)]

    def measured_top(of_task: Task, valid: Rows, fitted: Surrogate, *, n_trees: int = 0) -> float:
        return taus[fitted.settings.max_depth][1]

    monkeypatch.setattr(tune, "search", lambda *_, **__: records)
    monkeypatch.setattr(tune, "validation_tau", lambda *_: 0.5)
    monkeypatch.setattr(tune, "last_top_tau", measured_top)
    facts = {"n_trees": 20, "n_distilled": 0}
    for metric, depth in (("valid_acc", 3), ("latency", 4)):
        found = tune.search_metric(tmp_path, {**facts, "metric": metric}, PARTS, TASK, evaluations=4)
        assert {size["settings"]["max_depth"] for size in found["sizes"]} == {depth}
        assert ["tau_top" in entry for entry in found["evaluations"]] == [False, *[metric == "valid_acc"] * 3]


def test_tau_at_the_top_is_that_of_the_best_quarter_at_the_last_epoch() -> None:
    parts = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
    settings = ForestSettings(n_trees=30, max_depth=3)
    valid = parts["valid"].take(parts["valid"].epoch == TASK.max_epoch)
    best = valid.take(np.argsort(-valid.y)[: len(valid) // 4 + 1])
    fitted = fit_surrogate("valid_acc", parts["train"], TASK, settings=settings)
    tau = kendall_tau(best.y, fitted.predict(best.X))
    assert tune.last_top_tau(TASK, parts["valid"], fitted) == pytest.approx(tau, abs=0.02)
    assert tune.last_top_tau(TASK, valid.take(np.zeros(len(valid), np.bool_)), fitted) == 0.0


def test_sizes_are_measured_on_the_forests_that_would_be_shipped() -> None:
    best = ForestSettings(n_trees=60, max_depth=5)
    forests = {(s["settings"]["max_depth"], s["settings"]["n_trees"]): s for s in sizes("latency", TASK, PARTS, best)}
    assert set(forests) == {(4, 50), (4, 60), (5, 50), (5, 60)}
    for forest in forests.values():
        settings = ForestSettings.from_dict(forest["settings"])
        assert forest["tau"] == validation_tau("latency", TASK, PARTS, settings)
    assert forests[4, 50]["n_nodes"] < forests[4, 60]["n_nodes"]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_search_that_was_killed_goes_on_and_every_evaluation_counts_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on in this process, which has loaded NePS."""
    runs = write_folder(tmp_path / "runs", MEASURED)
    out = tmp_path / "tuned"
    given = [*arguments(runs, out), "--metrics", "valid_acc", "--evaluations", "3", "--trees", "100", "--workers", "1"]
    command = [sys.executable, "-m", "surrogate.tune", *given]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as first:
        while not evaluated(out / "valid_acc") and first.poll() is None:
            time.sleep(0.02)
        assert first.poll() is None
        os.killpg(first.pid, signal.SIGKILL)
    assert not (out / "params.json").exists()
    before = evaluated(out / "valid_acc")
    assert 1 <= len(before) < 3
    caplog.set_level("INFO")
    assert tune.main(given) == 0
    assert f"going on after {len(before)}/3 evaluations" in caplog.text
    records = evaluated(out / "valid_acc")
    assert len(records) == 3
    assert records[: len(before)] == before
    assert all(0 < evaluation["tau"] < 1 for evaluation in records)
    summary = json.loads((out / "history.json").read_text())["metrics"]["valid_acc"]
    best = max([summary["default_tau"], *(evaluation["tau"] for evaluation in summary["evaluations"])])
    assert best <= max(size["tau"] for size in summary["sizes"])
    enough_r2 = max(size["r2"] for size in summary["sizes"]) - 0.01
    near = [size["tau"] for size in summary["sizes"] if size["r2"] >= enough_r2]
    assert max(near) - 0.002 <= summary["chosen"]["tau"]
    chosen = json.loads((out / "params.json").read_text())["metrics"]["valid_acc"]
    parts = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))
    assert validation_tau("valid_acc", TASK, parts, ForestSettings.from_dict(chosen)) == summary["chosen"]["tau"]
