"""Verify finds what is wrong, retraining reproduces, and folders of one protocol merge."""

import json
import shutil

import numpy as np
import pytest

from jahs.files.tables import read_table, write_table
from jahs.runs import read_runs, run_shards
from jahs.schema import CONFIG_COLUMNS, RUN_COLUMNS
from pipeline.collect import Settings, collect
from pipeline.inspect_runs import main, merge, retrain, status, verify

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    out = tmp_path_factory.mktemp("collected") / "runs"
    collect(Settings(task="digits", out=out, runs=4, workers=1))
    return out


@pytest.fixture
def folder(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "copy")


def change(path, columns, name, edit):
    table = read_table(path, columns)
    table[name] = table[name].copy()
    edit(table[name])
    write_table(path, table, columns)


def test_what_was_collected_is_sound(folder):
    assert verify(folder) == []
    merge(folder, [])
    assert verify(folder) == []


@pytest.mark.parametrize(
    ("column", "edit", "fault"),
    [
        ("valid_acc", lambda v: v.__setitem__(2, 101), "an accuracy is outside 0..100"),
        ("train_loss", lambda v: v.__setitem__(2, np.nan), "a loss is negative or not finite"),
        ("runtime", lambda v: v.__setitem__(2, v[1]), "runtime does not increase"),
        ("epoch", lambda v: v.__setitem__(2, 40), "epochs are not 1..12"),
        ("status", lambda v: v.__setitem__(slice(None), "diverged"), "losses of its last epoch are finite"),
        ("config_id", lambda v: v.__setitem__(slice(None), 1), "not in configs.parquet"),
    ],
)
def test_every_planted_fault_is_found(folder, column, edit, fault):
    change(run_shards(folder)[0], RUN_COLUMNS, column, edit)
    assert any(fault in line for line in verify(folder))


def test_a_config_that_is_not_its_number_is_found(folder):
    change(folder / "configs.parquet", CONFIG_COLUMNS, "LearningRate", lambda v: v.__setitem__(4, 0.5))
    assert any("1 ids do not belong to their configs, first in row 4" in line for line in verify(folder))


def test_retraining_on_the_same_machine_gives_the_same_bits(folder):
    lines, faults = retrain(folder, 2)
    assert len(lines) == 2
    assert faults == []
    assert all("the same bits: reproduced" in line for line in lines)


def test_retraining_notices_a_changed_measurement(folder):
    for shard in run_shards(folder):
        change(shard, RUN_COLUMNS, "valid_loss", lambda v: v.__setitem__(-1, v[-1] + 1e-6))
    _, faults = retrain(folder, 1)
    assert "differs in valid_loss" in faults[0]


def test_another_processor_is_held_to_the_noise_between_seeds(folder):
    for shard in run_shards(folder):
        change(shard, RUN_COLUMNS, "torch_version", lambda v: v.__setitem__(slice(None), "0"))
    lines, faults = retrain(folder, 1)
    assert "within three standard deviations" in lines[0]
    assert faults == []


def test_folders_of_one_protocol_merge_without_doubles(folder, recorded, tmp_path):
    other = tmp_path / "other"
    collect(Settings(task="digits", out=other, runs=6, workers=1))
    before = read_runs(folder)
    assert merge(folder, [other, recorded]) == (6, 8)
    assert verify(folder) == []
    assert len(run_shards(folder)) == 1
    after = read_runs(folder)
    assert np.array_equal(after["config_id"], read_runs(other)["config_id"])
    assert set(before["runtime"].tolist()) <= set(after["runtime"].tolist())  # its own measurements were kept


def test_another_protocol_is_not_merged(folder, recorded, tmp_path, caplog):
    other = shutil.copytree(recorded, tmp_path / "other")
    content = json.loads((other / "protocol.json").read_text())
    (other / "protocol.json").write_text(json.dumps({**content, "digest": "0" * 16}))
    assert main(["merge", str(folder), str(other)]) == 2
    assert "they cannot be merged" in caplog.text


def test_the_status_counts_what_is_there(folder, capsys):
    facts = status(folder)
    assert (facts["n_configs"], facts["n_runs"], facts["n_repeated_configs"]) == (2, 4, 1)
    assert sum(facts["configs_per_group"]) == 2
    assert main(["status", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_runs"] == 4


def test_verify_says_so_in_its_exit_status(folder, capsys):
    assert main(["verify", str(folder)]) == 0
    assert "sound" in capsys.readouterr().out
    change(run_shards(folder)[0], RUN_COLUMNS, "valid_acc", lambda v: v.__setitem__(2, -1))
    assert main(["verify", str(folder)]) == 1
    assert "outside 0..100" in capsys.readouterr().out
