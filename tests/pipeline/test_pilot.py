"""A pilot: agreement with the real landscape, between seeds, and what a protocol must reach."""

import json
import math

import numpy as np
import pytest

from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch
from jahs.files.runs import sorted_runs
from jahs.schema import PROFILE_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.spaces.space import space
from pipeline import pilot
from pipeline.pilot import read_last_epochs, report, seed_agreement, write_cells
from pipeline.runs import RunsFolder
from pipeline.sampling import config_table
from tests.fake_benchmark import FakeBenchmark
from tests.pipeline.run_folders import filled
from workshop import real_landscape
from workshop.real_landscape import compare_cells, compare_with_landscape, read_cell_accuracies, read_check

LANDSCAPE = FakeBenchmark(max_epoch=200)
COLUMNS = space().sample_columns(300, seed=3)
REAL = LANDSCAPE.query_many(COLUMNS, at=200)["valid_acc"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Fewer resamples: the laws do not need them."""
    monkeypatch.setattr(real_landscape, "_N_RESAMPLES", 100)
    monkeypatch.setattr(pilot, "_N_RESAMPLES", 100)


def folder_of(path, accuracies, *, machines=None, statuses=None):
    """Write runs of the first configs of the stream: `accuracies` has a row for each config, a column for each seed."""
    n_configs, n_seeds = np.shape(accuracies)
    n = n_configs * n_seeds
    path.mkdir(exist_ok=True)
    (path / "protocol.json").write_text(json.dumps({"format": RUNS_FORMAT, "digest": "d", "protocol": {}}))
    configs = config_table(0, n_configs)
    folder = RunsFolder(path)
    folder.add_configs(configs)
    machines = ["A"] * n if machines is None else machines
    runs = filled(
        RUN_COLUMNS,
        n,
        config_id=np.repeat(configs["config_id"], n_seeds),
        seed=np.tile(np.arange(n_seeds), n_configs),
        valid_acc=np.ravel(accuracies),
        runtime=[{"A": 2, "B": 9, "G": math.nan}[name] for name in machines],
        status=statuses or "finished",
        device=["cuda" if name == "G" else "cpu" for name in machines],
        machine=machines,
        protocol="d",
    )
    folder.commit("runs-0001.parquet", sorted_runs(runs), RUN_COLUMNS)
    folder.commit("profile.parquet", filled(PROFILE_COLUMNS, 1, machine="A", protocol="d"), PROFILE_COLUMNS)
    return read_last_epochs(path)


# ------------------------------------------------------------------------------------------- the real landscape


def test_the_landscape_agrees_with_itself_in_everything():
    facts = compare_with_landscape(COLUMNS, REAL, LANDSCAPE)
    best = facts["epochs"]["200"]
    assert list(best.values()) == pytest.approx([1] * len(best))
    assert facts["resolution"]["ratio"] == 1
    assert all(row["ours"] == row["real"] for rows in facts["marginals"].values() for row in rows)
    json.dumps(facts, allow_nan=False)


def test_an_order_turned_round_is_minus_one_and_a_flat_resolution_has_no_effect():
    facts = compare_with_landscape(COLUMNS, -REAL, LANDSCAPE)
    assert facts["epochs"]["200"]["rho"] == facts["epochs"]["200"]["tau"] == pytest.approx(-1)
    assert facts["resolution"]["ratio"] == -1
    assert compare_with_landscape(COLUMNS, np.full(300, 50.0), LANDSCAPE)["resolution"]["ratio"] == 0


def test_marginal_means_are_those_of_each_value_and_count_every_config():
    facts = compare_with_landscape(COLUMNS, REAL, LANDSCAPE)["marginals"]
    assert set(facts) == set(COLUMNS) - {"Optimizer"}
    for key, rows in facts.items():
        assert sum(row["n_configs"] for row in rows) == 300, key
    widest = next(row for row in facts["W"] if row["value"] == "16")
    assert widest["ours"] == round(float(REAL[COLUMNS["W"] == 16].mean()), 2)
    assert [row["n_configs"] for row in facts["LearningRate"]] == [75] * 4


def test_few_configs_are_refused():
    few = {key: values[:2] for key, values in COLUMNS.items()}
    with pytest.raises(InvalidArgument, match="2 configs were given; at least 3"):
        compare_with_landscape(few, REAL[:2], LANDSCAPE)


def test_cells_are_compared_with_the_published_accuracies_of_their_indices(tmp_path):
    path = tmp_path / "cells.csv"
    lines = [f"{i},x,{i / 200},1,{90 - i / 200},1,1" for i in range(15_625)]
    header = "index,arch,cifar10_valid_12_epochs,cifar10_seconds_12_epochs,cifar10_test_200_epochs,a,b"
    path.write_text("\n".join([header, *lines]))
    published = read_cell_accuracies(path)
    assert (published[200][7], published[12][7]) == (89.965, 0.035)
    ops = np.stack([COLUMNS[f"Op{i}"] for i in range(1, 7)], axis=1)[:40]
    from jahs.spaces.cell.index import nb201_indices

    facts = compare_cells(ops, nb201_indices(ops).astype(float), published)
    assert facts["n_cells"] == 40
    rhos = [facts["12"]["rho"], facts["200"]["rho"], facts["200"]["rho_better_half"]]
    assert rhos == pytest.approx([1, -1, -1])


def test_a_table_of_cells_that_is_none_is_named(tmp_path):
    with pytest.raises(MissingData, match=r"absent.csv cannot be read"):
        read_cell_accuracies(tmp_path / "absent.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CorruptFile, match=r"other.csv is not a table with the columns index, cifar10_test_200_epochs"):
        read_cell_accuracies(tmp_path / "other.csv")
    (tmp_path / "few.csv").write_text(
        "index,cifar10_valid_12_epochs,cifar10_test_200_epochs\n0,50,60\n2,50,60\n", encoding="utf-8"
    )
    (tmp_path / "wild.csv").write_text("index,cifar10_valid_12_epochs,cifar10_test_200_epochs\n0,50,60\n1,nan,60\n")
    (tmp_path / "long.csv").write_text("index," + "9" * 200_000)
    with pytest.raises(CorruptFile, match=r"long.csv is not a table with the columns index, .*field larger than"):
        read_cell_accuracies(tmp_path / "long.csv")
    with pytest.raises(CorruptFile, match=r"wild.csv: cifar10_valid_12_epochs must be in 0..100; it is nan at index 1"):
        read_cell_accuracies(tmp_path / "wild.csv")
    with pytest.raises(CorruptFile, match=r"few.csv lacks 15,623 of 15,625 cells, among them index 1"):
        read_cell_accuracies(tmp_path / "few.csv")


# ------------------------------------------------------------------------------------------------ recorded runs


def test_seeds_agree_as_far_as_their_pairs_do(tmp_path):
    agreement = seed_agreement(folder_of(tmp_path, [[10, 11], [20, 21], [30, 31], [40, 41]]))
    assert (agreement["n_configs"], agreement["tau"], agreement["mean_abs_difference"]) == (4, 1, 1)
    agreement = seed_agreement(folder_of(tmp_path, [[10, 10], [20, 20], [30, 40], [40, 30]]))
    assert agreement["tau"] == pytest.approx(4 / 6)


def test_a_config_with_one_finished_seed_is_no_pair(tmp_path):
    measured = folder_of(tmp_path, [[10, 11], [20, 21]], statuses=["finished"] * 3 + ["diverged"])
    assert seed_agreement(measured) == {
        "n_configs": 1,
        "tau": None,
        "tau_low": None,
        "tau_high": None,
        "mean_abs_difference": None,
    }


@pytest.mark.parametrize(("machines", "seconds"), [("ABAB", 2.0), ("AGGG", 2.0), ("GGGG", None)])
def test_seconds_are_of_the_profiles_processor_alone(tmp_path, machines, seconds):
    facts = report(folder_of(tmp_path, [[10], [20], [30], [40]], machines=list(machines)), LANDSCAPE)
    assert facts["mean_cpu_time_s"] == seconds
    json.dumps(facts, allow_nan=False)


def test_configs_of_other_sources_are_not_reported_on(tmp_path):
    statuses = ["finished"] * 4 + ["diverged"] * 2
    measured = folder_of(tmp_path, [[10], [20], [30], [40], [50], [60]], statuses=statuses)
    assert report(measured, LANDSCAPE)["n_diverged_runs"] == 2
    is_other = np.arange(6) == np.flatnonzero(measured["status"] == "diverged")[0]
    measured["source"] = np.where(is_other, "final", "uniform")
    facts = report(measured, LANDSCAPE)
    assert (facts["n_configs"], facts["n_diverged_runs"]) == (4, 1)


def test_the_gate_says_which_conditions_hold(tmp_path):
    """The made-up landscape orders configs alike at every epoch, so that one condition cannot hold."""
    configs = {key: values for key, values in config_table(0, 81).items() if key in COLUMNS}
    real = LANDSCAPE.query_many(configs, at=200)["valid_acc"]
    facts = report(folder_of(tmp_path, np.stack([real, real], axis=1)), LANDSCAPE)
    assert facts["n_configs"] == 81
    assert facts["gate"] == {
        "rho at epoch 200": True,
        "rho at epoch 200 above rho at 20 and 3": False,
        "Resolution effect": True,
        "tau between seeds": True,
        "core-seconds a run": True,
    }
    assert facts["epochs"]["20"]["rho"] == facts["epochs"]["200"]["rho"]
    worst = report(folder_of(tmp_path, np.stack([-real, real], axis=1)), LANDSCAPE)["gate"]
    assert (worst["rho at epoch 200"], worst["Resolution effect"], worst["tau between seeds"]) == (False, False, False)


def test_a_folder_is_reported_on_and_the_report_saved(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pilot, "Benchmark", lambda *args, **kwargs: LANDSCAPE)
    (tmp_path / "manifest.json").write_text("{}")
    runs = tmp_path / "runs"
    folder_of(runs, [[10, 11], [20, 21], [30, 31], [40, 41]])
    arguments = ["--runs", str(runs), "--landscape", str(tmp_path)]
    assert pilot.main(arguments) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (facts["n_configs"], facts["seeds"]["n_configs"]) == (4, 4)
    assert pilot.main([*arguments, "--start", "1", "--save"]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert saved["n_configs"] == 3
    assert read_check(runs, protocol="d").items() >= saved.items()
    with pytest.raises(
        ProtocolMismatch, match=r"landscape\.json was saved for protocol d, but the runs have 00; save it again"
    ):
        read_check(runs, protocol="00")
    assert pilot.main([*arguments, "--start", "90"]) == 2
    assert "no config has a number from 90 on" in capsys.readouterr().err


def test_cells_are_at_full_size_with_default_rates_and_always_the_same(tmp_path):
    write_cells(tmp_path / "a")
    write_cells(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    configs = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert len({json.dumps(config) for config in configs}) == 60
    assert {(c["N"], c["W"], c["Resolution"], c["LearningRate"], c["WeightDecay"]) for c in configs} == {
        (5, 16, 1.0, 0.1, 5e-4)
    }
