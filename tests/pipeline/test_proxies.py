"""Proxies of a folder of runs: scored config by config, resumed, merged; those of networks are in test_zero_cost."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from jahs.errors import InvalidArgument, ProtocolMismatch, UnknownFormat
from jahs.files.runs import SCORES, read_configs
from jahs.files.tables import take, write_table
from jahs.schema import CONFIG_KEYS, PROXIES, PROXY_COLUMNS, RUN_COLUMNS
from jahs.spaces.columns import rows
from jahs.spaces.configs import config_id
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline import proxies as proxies_module
from pipeline import zero_cost
from pipeline.data import load_images
from pipeline.protocol import protocol_digest
from pipeline.proxies import main, proxy_folder, score_config
from pipeline.runs import RunsFolder
from pipeline.zero_cost import ProxyScores
from tests.pipeline.run_folders import filled, make_folder
from tests.pipeline.unwritable import ADVICE, fails_in_one_line_and_goes_on
from workshop.jobs import Where
from workshop.measured import read_proxies


@pytest.fixture(scope="module")
def images(task):
    return load_images(task)


def scores(value=1.0, **reasons):
    values = {name: math.nan if name in reasons else value for name in PROXIES}
    return ProxyScores(values=values, reasons=reasons, cpu_s=dict.fromkeys(PROXIES, 0.25))


def test_the_names_of_the_schema_are_those_of_the_modules():
    assert tuple(zero_cost.PROXIES) == PROXIES


def test_a_config_has_the_same_scores_whatever_was_computed_before(task, images):
    config = {**space().default(), **{f"Op{i}": 2 for i in range(1, 7)}}
    first = score_config(config, task, images[config["Resolution"]])
    state = torch.random.get_rng_state()
    torch.randn(7)
    again = score_config(config, task, images[config["Resolution"]])
    assert first.values == again.values
    assert tuple(first.values) == PROXIES
    other = score_config(config, task, images[config["Resolution"]], seed=1).values
    assert {name for name in PROXIES if other[name] == first.values[name]} <= {"parameters", "swap"}
    torch.random.set_rng_state(state)


def test_a_disconnected_network_has_reasons_where_it_has_no_scores(task, images):
    config = {**space().default(), **{f"Op{i}": 1 for i in range(1, 7)}}
    proxies = score_config(config, task, images[config["Resolution"]])
    assert math.isnan(proxies.values["jacov"])
    assert proxies.reasons["jacov"]
    assert proxies.reasons["grasp"] == proxies.reasons["synflow"] == "no live path: no weight changes the output"
    assert math.isfinite(proxies.values["parameters"])


def test_a_seed_draws_its_batch():
    batches = [proxies_module._batch(300, seed).tolist() for seed in (0, 0, 1)]
    assert batches[0] == batches[1] != batches[2]
    assert len(set(batches[0])) == 64


@pytest.fixture
def folder(task, tmp_path):
    return trained_folder(tmp_path, task, 5)


def trained_folder(path, of_task, n):
    """Write a folder of runs of the first configs, and one config more that was not trained."""
    ids = read_configs(make_folder(path, of_task, n + 1))["config_id"][:n]
    runs = filled(RUN_COLUMNS, n, config_id=ids, status="finished", device="cpu", protocol=protocol_digest(of_task))
    write_table(path / "runs-0001.parquet", runs, RUN_COLUMNS)
    return path


HERE = Where(workers=1)


def test_what_was_trained_is_scored_once_and_a_kill_loses_the_config_under_way(folder, task, monkeypatch):
    scored = []

    def count(config, of_task, images, *, seed):
        if len(scored) == 7:
            raise KeyboardInterrupt
        scored.append(config["LearningRate"])
        return scores(float(len(scored)), **({"zen": "no path", "ntk": "singular"} if len(scored) == 1 else {}))

    monkeypatch.setattr(proxies_module, "score_config", count)
    with pytest.raises(KeyboardInterrupt):
        proxy_folder(folder, task, where=HERE)
    assert len(read_proxies(folder)["config_id"]) == 6, "two configs with three seeds"
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, seed: scores())
    assert proxy_folder(folder, task, where=HERE) == 3
    proxies = read_proxies(folder)
    assert proxies["config_id"].tolist() == np.repeat(np.sort(read_configs(folder)["config_id"][:5]), 3).tolist()
    assert proxies["seed"].tolist() == [0, 1, 2] * 5
    assert np.isnan(proxies["zen"]).sum() == 1
    assert proxies["reason"][np.isnan(proxies["zen"])].tolist() == ["zen: no path; ntk: singular"]
    assert (proxies["snip_s"] == np.float32(0.25)).all()
    assert proxy_folder(folder, task, where=HERE) == 0
    assert proxy_folder(folder, task, where=HERE, n_seeds=4) == 5, "each lacks one seed"
    assert proxies["snip"].tolist() == read_proxies(folder)["snip"][read_proxies(folder)["seed"] < 3].tolist()


def test_limits_end_the_scoring(folder, task, monkeypatch):
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, seed: scores())
    now = iter(range(0, 10_000, 50))
    monkeypatch.setattr(proxies_module.time, "monotonic", lambda: next(now))
    assert 0 < proxy_folder(folder, task, where=HERE, minutes=1.7) < 3


def test_bad_settings_are_refused_at_once(folder, task):
    with pytest.raises(InvalidArgument, match=r"(?s)workers=0.*seeds=0.*minutes=0"):
        proxy_folder(folder, task, where=Where(workers=0), n_seeds=0, minutes=0)


def test_scores_that_another_process_saves_meanwhile_stay(folder, task, monkeypatch):
    config = rows({key: read_configs(folder)[key] for key in CONFIG_KEYS})[0]

    def score(*_, seed):
        if not (folder / SCORES).exists():
            theirs = proxies_module._table_of((config, (0, 1)), [scores(7.0)] * 2, protocol=protocol_digest(task))
            RunsFolder(folder).commit("proxies.parquet", theirs, PROXY_COLUMNS)
        return scores()

    monkeypatch.setattr(proxies_module, "score_config", score)
    assert proxy_folder(folder, task, where=HERE) == 5
    proxies = read_proxies(folder)
    assert proxies["snip"][proxies["config_id"] == config_id(config)].tolist() == [7.0, 7.0, 1.0]
    assert len(proxies["config_id"]) == 15


def test_a_table_of_another_version_is_refused(folder, task, monkeypatch):
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, seed: scores())
    assert proxy_folder(folder, task, where=HERE) == 5
    proxies = read_proxies(folder)
    RunsFolder(folder).commit("proxies.parquet", {**proxies, "format": proxies["format"] + 1}, PROXY_COLUMNS)
    with pytest.raises(UnknownFormat, match="scores: format 3; this version of jahs reads format 2"):
        read_proxies(folder)


def test_the_command_scores_a_folder_and_says_what_is_wrong(folder, task, monkeypatch, capsys):
    monkeypatch.setattr(proxies_module, "trained_task", lambda name: task if name == "digits" else TASKS[name])
    command = ["--task", "digits", "--runs", str(folder), "--seeds", "1", "--workers", "1"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["configs_scored"] == 5
    proxies = read_proxies(folder)
    assert np.isfinite(proxies["snip"]).all()
    assert (proxies["grasp_s"] > 0).all()
    assert set(proxies) == set(PROXY_COLUMNS)
    RunsFolder(folder).commit("proxies.parquet", take(proxies, np.arange(1)), PROXY_COLUMNS)
    assert main(command) == 0
    again = read_proxies(folder)
    assert all(np.array_equal(proxies[name], again[name], equal_nan=True) for name in PROXIES)
    assert main(["--task", "fashion_mnist_mini", "--runs", str(folder)]) == 2
    assert "protocol" in capsys.readouterr().err
    with pytest.raises(ProtocolMismatch):
        proxy_folder(folder, TASKS["fashion_mnist_mini"], where=HERE)


def test_the_command_of_a_terminal_scores_in_several_processes(tmp_path):
    folder = trained_folder(tmp_path, TASKS["digits"], 2)
    command = ["-m", "pipeline.proxies", "--task", "digits", "--runs", str(folder), "--seeds", "1", "--workers", "2"]
    done = subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("proxies config")) == (0, 2), done.stderr
    assert len(read_proxies(folder)["config_id"]) == 2


@pytest.mark.parametrize("number", ADVICE)
def test_scores_that_cannot_be_written_are_one_line(folder, task, monkeypatch, capsys, number):
    monkeypatch.setattr(proxies_module, "trained_task", lambda name: task)
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, **__: scores())
    command = ["--task", "digits", "--runs", str(folder), "--workers", "1"]
    fails_in_one_line_and_goes_on(main, command, folder, number, lambda: capsys.readouterr().err)
    assert len(read_proxies(folder)["seed"]) == 15
