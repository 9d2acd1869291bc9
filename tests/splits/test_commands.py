"""`splits.make` and `splits.check` on folders of runs: what they print, write and refuse."""

import json
import re

import numpy as np
import pytest

from jahs.files.tables import read_table, write_table
from jahs.schema import CONFIG_COLUMNS
from splits import check, make
from splits.kinship import find_leaks
from splits.recorded import read_recorded
from splits.split import Split, read_split, write_split
from tests.building import make_configs, make_runs_folder, with_ids


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs_folder(tmp_path_factory.mktemp("runs"), 200, n_epochs=2, diverged=[3, 10], n_waiting=20)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "split.json"


def call(main, *arguments):
    return main([str(argument) for argument in arguments])


def refused(capsys, main, *arguments):
    assert call(main, *arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_split_is_made_and_passes_the_check(runs, out, capsys):
    assert call(make.main, runs, "--out", out, "--seed", 1) == 0
    assert "train 140, valid 30, test 30; seed 1, digest" in capsys.readouterr().out
    assert call(check.main, runs, out) == 0
    shown = capsys.readouterr().out
    assert "nothing leaks; every group, its sources and every third" in shown
    assert "!" not in shown


def test_json_says_the_same(runs, out, capsys):
    assert call(make.main, runs, "--out", out, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert call(check.main, runs, out, "--json") == 0
    checked = json.loads(capsys.readouterr().out)
    assert made["digest"] == checked["digest"] == read_split(out).digest
    assert made["seed"] == 0
    assert checked["is_balanced"] is True
    by_name = {marginal["name"]: marginal for marginal in checked["balance"]}
    assert by_name["all"] == {
        "name": "all", "train": 140, "valid": 30, "test": 30, "off": 0.0, "is_promised": False
    }  # fmt: skip
    assert sum(by_name["every run diverged"][part] for part in ("train", "valid", "test")) == 2
    assert sum(name.startswith("repeated, ") for name in by_name) == 9


def test_diverged_configs_are_split_and_waiting_ones_are_not(runs, out):
    call(make.main, runs, "--out", out)
    recorded = read_recorded(runs)
    assert recorded.is_diverged.sum() == 2
    assert read_split(out).config_ids.tolist() == recorded.config_ids.tolist()
    assert len(recorded.config_ids) == 200


def test_the_same_command_writes_the_same_bytes_again(runs, out, tmp_path):
    call(make.main, runs, "--out", out, "--seed", 5)
    before = out.read_bytes()
    assert call(make.main, runs, "--out", out, "--seed", 5) == 0
    assert out.read_bytes() == before


def test_another_split_is_not_replaced(runs, out, capsys):
    call(make.main, runs, "--out", out, "--seed", 5)
    before = out.read_bytes()
    capsys.readouterr()
    message = refused(capsys, make.main, runs, "--out", out, "--seed", 6)
    assert f"exists and differs; choose another file, or keep its parts: --extend {out}" in message
    assert out.read_bytes() == before
    assert "--extend" not in refused(capsys, make.main, runs, "--out", out.parent), "which is no split"


def test_an_extended_split_keeps_every_side(runs, out, tmp_path, capsys):
    call(make.main, runs, "--out", out, "--seed", 5)
    old = read_split(out)
    capsys.readouterr()
    grown = make_runs_folder(tmp_path / "grown", 330, n_epochs=2)
    assert "130 of 330 recorded configs are not in the split" in refused(capsys, check.main, grown, out)
    assert call(make.main, grown, "--out", out, "--extend", out) == 0
    assert f"every config of split {old.digest} stays in its part" in capsys.readouterr().out
    new = read_split(out)
    assert (new.parts_of(old.config_ids) == old.parts).all()
    assert (new.seed, new.extends, len(new.parts)) == (5, old.digest, 330)
    assert call(check.main, grown, out) == 0
    capsys.readouterr()
    assert "130 of 330 configs of the split were not recorded" in refused(capsys, check.main, runs, out)


def kin_table():
    """Four configs: 1 is 0 with another dead operation, 2 is 0 under another id, 3 has nothing to do with them."""
    configs = make_configs(4)
    for name in configs:
        configs[name][1:3] = configs[name][0]
    for j, op in enumerate((1, 1, 2, 3, 1, 1)):
        configs[f"Op{j + 1}"][:3] = op
    configs["Op4"][1] = 2
    table = with_ids(configs)
    table["config_id"][2] = 99
    return table


@pytest.mark.parametrize(
    ("parts", "n_leaks"),
    [
        ([0, 0, 0, 1], 0),
        ([0, 0, 1, 0], 1),
        ([0, 2, 0, 0], 1),
        ([1, 2, 0, 0], 1),
        ([1, -1, 1, 0], 0),
        ([-1, -1, -1, -1], 0),
    ],
)
def test_planted_leaks_are_found(parts, n_leaks):
    assert len(find_leaks(kin_table(), np.array(parts))) == n_leaks


def test_a_config_torn_apart_by_seed_is_found():
    table = {name: np.repeat(values, 2) for name, values in kin_table().items()}  # two seeds of each
    parts = np.zeros(8, dtype=int)
    assert find_leaks(table, parts) == []
    parts[7] = 1
    (leak,) = find_leaks(table, parts)
    assert re.fullmatch(r"[0-9a-f]{16} train, [0-9a-f]{16} valid", leak)


def test_hyperparameters_one_bit_apart_are_no_leak():
    table = kin_table()
    table["LearningRate"][1] = np.nextafter(table["LearningRate"][1], 1)
    table["LearningRate"][2] = np.nextafter(table["LearningRate"][2], 0)
    assert find_leaks(table, np.array([0, 1, 2, 0])) == []


@pytest.mark.parametrize("has_other_cell", [False, True])
def test_the_check_refuses_a_folder_and_a_split_with_a_planted_leak(tmp_path, out, capsys, has_other_cell):
    configs = make_configs(200)
    for name in configs:
        configs[name][27] = configs[name][0]
    for j, op in enumerate((1, 1, 2, 3, 1, 1)):
        configs[f"Op{j + 1}"][[0, 27]] = op
    if has_other_cell:
        configs["Op4"][27] = 2
    configs = with_ids(configs)
    configs["config_id"][27] = 99
    folder = make_runs_folder(tmp_path / "runs", 200, n_epochs=1, configs=configs)
    assert call(make.main, folder, "--out", out) == 0
    assert call(check.main, folder, out) == 0
    capsys.readouterr()
    split = read_split(out)
    parts = split.parts.copy()
    at = split.config_ids.tolist().index(99)
    parts[at] = (parts[at] + 1) % 3
    planted = Split(config_ids=split.config_ids, parts=parts, seed=0, task=split.task, protocol=split.protocol)
    write_split(out, planted)
    message = refused(capsys, check.main, folder, out)
    assert "1 groups of configs with equal canonical cells and hyperparameters are in several parts: " in message
    assert "0000000000000063 " in message


def test_what_is_off_balance_is_shown(runs, out, capsys):
    recorded = read_recorded(runs)
    parts = np.zeros(200, dtype=np.int8)
    write_split(out, Split(config_ids=recorded.config_ids, parts=parts, seed=0, task="x", protocol=recorded.protocol))
    assert call(check.main, runs, out) == 0
    assert "! 36 promised marginals are off by more than one config" in capsys.readouterr().out


def rewrite(change):
    """Return a function that rewrites the config table of a folder, with each column changed."""

    def spoil(folder):
        table = read_table(folder / "configs.parquet", CONFIG_COLUMNS)
        changed = {name: change(name, values.copy()) for name, values in table.items()}
        write_table(folder / "configs.parquet", changed, CONFIG_COLUMNS)

    return spoil


def with_nan(name, values):
    if name == "LearningRate":
        values[:2] = np.nan
    return values


def forget_task(folder):
    content = json.loads((folder / "protocol.json").read_text())
    (folder / "protocol.json").write_text(json.dumps({**content, "protocol": {}}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (rewrite(lambda _, values: values[5:]), "5 configs of the runs are not in configs.parquet: "),
        (rewrite(lambda _, values: np.append(values, values[:2])), "2 ids occur more than once in configs.parquet: "),
        (rewrite(with_nan), "LearningRate=nan"),
        (forget_task, "names no task"),
        (lambda folder: (folder / "runs-0001.parquet").unlink(), "has no runs yet"),
        (lambda folder: (folder / "protocol.json").unlink(), "is not a folder of runs"),
        (lambda folder: (folder / "configs.parquet").write_bytes(b"PAR1"), "cannot be read as Parquet"),
    ],
)
def test_bad_runs_are_refused_and_nothing_is_written(tmp_path, out, capsys, spoil, message):
    folder = make_runs_folder(tmp_path / "runs", 189, n_epochs=1)
    spoil(folder)
    assert message in refused(capsys, make.main, folder, "--out", out)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_too_few_configs_are_refused_unless_told_otherwise(tmp_path, out, capsys):
    folder = make_runs_folder(tmp_path / "runs", 100, n_epochs=1)
    message = refused(capsys, make.main, folder, "--out", out)
    assert "27 of 27 fidelity groups have too few configs" in message
    assert "collect more, or lower --fewest" in message
    assert make.main([str(folder), "--out", str(out), "--fewest", "3"]) == 0
    assert read_split(out).counts == {"train": 70, "valid": 15, "test": 15}


def test_bad_arguments_are_refused(runs, out, tmp_path, capsys):
    assert "seed=-1" in refused(capsys, make.main, runs, "--out", out, "--seed", -1)
    assert "fewest=-1 must be at least 0" in refused(capsys, make.main, runs, "--out", out, "--fewest", -1)
    assert "cannot be written" in refused(capsys, make.main, runs, "--out", tmp_path / "no" / "split.json")
    assert "does not exist" in refused(capsys, make.main, runs, "--out", out, "--extend", tmp_path / "none.json")
    assert "does not exist" in refused(capsys, check.main, runs, out)
    assert list(tmp_path.iterdir()) == []
