"""Proxies: those of small networks by hand, no network changed, and a folder that is scored piece by piece."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.files.runs import proxies_path, read_configs, read_proxies
from jahs.files.tables import take, write_table
from jahs.schema import CONFIG_COLUMNS, PROXIES, PROXY_COLUMNS, RUN_COLUMNS, RUNS_FORMAT
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline import proxies as proxies_module
from pipeline.data import load_images
from pipeline.protocol import protocol_digest, protocol_facts
from pipeline.proxies import main, proxy_folder, score_config, score_network
from pipeline.runs import RunsFolder
from pipeline.sampling import config_table
from tests.pipeline.unwritable import ADVICE, unwritable

SHRUNK = dataclasses.replace(TASKS["digits"], n_train=300, n_valid=280, n_test=100, max_epoch=2, index_digest=None)


@pytest.fixture(scope="module")
def images():
    return load_images(SHRUNK)


@pytest.fixture(scope="module")
def task(images):
    return dataclasses.replace(SHRUNK, index_digest=images[0.25].index_digest)


class TwoLayers(nn.Module):
    """A network whose proxies can be written down."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 20, bias=False), nn.Linear(20, 3, bias=False)
        self.activation = functional.relu

    def forward(self, images):
        return self.second(self.activation(self.first(images.flatten(1))))


def test_the_proxies_of_two_layers_are_those_of_the_formulas():
    torch.manual_seed(0)
    network, x, labels = TwoLayers(), torch.randn(8, 1, 2, 3), torch.arange(8) % 3
    before = [parameter.clone() for parameter in network.parameters()]
    found = score_network(network, x, labels)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in network.parameters())
    assert network.activation is functional.relu

    X, A, B = (t.detach().double().numpy() for t in (x.flatten(1), network.first.weight, network.second.weight))
    hidden = X @ A.T
    logits = np.maximum(hidden, 0) @ B.T
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = (chances - np.eye(3)[labels]) / 8
    of_second = error.T @ np.maximum(hidden, 0)
    of_first = ((error @ B) * (hidden > 0)).T @ X
    assert found["grad_norm"] == pytest.approx(np.linalg.norm(of_first) + np.linalg.norm(of_second), rel=1e-5)
    assert found["snip"] == pytest.approx(np.abs(A * of_first).sum() + np.abs(B * of_second).sum(), rel=1e-5)
    flow = np.abs(B) @ np.abs(A) @ np.ones(6)
    assert found["synflow"] == pytest.approx(2 * flow.sum(), rel=1e-9), "every layer passes on the whole flow"
    code = (hidden > 0).astype(float)
    kernel = code @ code.T + (1 - code) @ (1 - code).T
    assert found["naswot"] == pytest.approx(np.log(np.linalg.det(kernel)))
    jacobian = (B.sum(axis=0) * (hidden > 0)) @ A
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(jacobian)) + 1e-5
    assert found["jacob_cov"] == pytest.approx(-(np.log(eigenvalues) + 1 / eigenvalues).sum(), rel=1e-3)


def test_images_that_a_network_tells_apart_score_more():
    torch.manual_seed(0)
    network, x = TwoLayers(), torch.randn(4, 1, 2, 3)
    alike = x[:1].repeat(4, 1, 1, 1) + 1e-4 * x
    far, near = (score_network(network, batch, torch.arange(4) % 3) for batch in (x, alike))
    assert far["jacob_cov"] > near["jacob_cov"]
    assert math.isnan(near["naswot"]), "equal signs make a matrix without an inverse"


def test_a_config_has_the_same_scores_whatever_was_computed_before(task, images):
    config = space().sample(seed=3)
    first = score_config(config, task, images[config["Resolution"]])
    state = torch.random.get_rng_state()
    torch.randn(7)
    again = score_config(config, task, images[config["Resolution"]])
    assert first == again
    assert tuple(first) == PROXIES
    assert score_config(config, task, images[config["Resolution"]], seed=1) != first
    torch.random.set_rng_state(state)


def test_a_disconnected_network_has_no_score_of_its_images(task, images):
    config = {**space().default(), **{f"Op{i}": 1 for i in range(1, 7)}}
    found = score_config(config, task, images[config["Resolution"]])
    assert math.isnan(found["jacob_cov"])
    assert math.isfinite(found["grad_norm"])


@pytest.fixture
def folder(task, tmp_path):
    content = {"format": RUNS_FORMAT, "digest": protocol_digest(task), "protocol": protocol_facts(task)}
    (tmp_path / "protocol.json").write_text(json.dumps(content))
    configs = config_table(0, 6)
    write_table(tmp_path / "configs.parquet", configs, CONFIG_COLUMNS)
    trained = {"config_id": configs["config_id"][:5], "status": np.full(5, "finished"), "device": np.full(5, "cpu")}
    texts = {name: np.full(5, protocol_digest(task)) for name in ("machine", "torch_version", "protocol")}
    runs = {name: np.ones(5).astype("U" if dtype == "string" else dtype) for name, dtype in RUN_COLUMNS.items()}
    write_table(tmp_path / "runs-0001.parquet", {**runs, **trained, **texts}, RUN_COLUMNS)
    return tmp_path


def test_what_was_trained_is_scored_once_and_goes_on_where_it_ended(folder, task, monkeypatch):
    scored = []

    def count(config, of_task, images, *, seed):
        if len(scored) == 3:
            raise KeyboardInterrupt
        scored.append(config["LearningRate"])
        return dict.fromkeys(PROXIES, math.nan if len(scored) == 1 else float(len(scored)))

    monkeypatch.setattr(proxies_module, "_SAVE_EVERY", 2)
    monkeypatch.setattr(proxies_module, "score_config", count)
    with pytest.raises(KeyboardInterrupt):
        proxy_folder(folder, task)
    assert len(read_proxies(folder)["config_id"]) == 2
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, seed: dict.fromkeys(PROXIES, 1.0))
    assert proxy_folder(folder, task) == 3
    found = read_proxies(folder)
    assert set(found["config_id"].tolist()) == set(read_configs(folder)["config_id"][:5].tolist())
    assert np.isnan(found["synflow"]).sum() == 1
    assert proxy_folder(folder, task) == 0
    with pytest.raises(InvalidArgument, match="scores of seed 0, not 1"):
        proxy_folder(folder, task, seed=1)


@pytest.mark.parametrize("their_seed", [0, 1])
def test_scores_that_another_process_saves_meanwhile_stay(folder, task, monkeypatch, their_seed):
    ids = read_configs(folder)["config_id"][:2].tolist()

    def score(*_, seed):
        if not proxies_path(folder).exists():
            theirs = [dict.fromkeys(PROXIES, 7.0)] * 2
            table = proxies_module._table_of(ids, theirs, seed=their_seed, protocol=protocol_digest(task))
            RunsFolder(folder).commit("proxies.parquet", table, PROXY_COLUMNS)
        return dict.fromkeys(PROXIES, 1.0)

    monkeypatch.setattr(proxies_module, "score_config", score)
    monkeypatch.setattr(proxies_module, "_SAVE_EVERY", 2)
    if their_seed == 0:
        assert proxy_folder(folder, task) == 5
    else:
        with pytest.raises(InvalidArgument, match="scores of seed 1, not 0"):
            proxy_folder(folder, task)
    found = read_proxies(folder)
    assert found["snip"][np.isin(found["config_id"], ids)].tolist() == [7.0, 7.0]
    assert len(found["config_id"]) == (5 if their_seed == 0 else 2)


def test_the_command_scores_a_folder_and_says_what_is_wrong(folder, task, monkeypatch, capsys):
    monkeypatch.setattr(proxies_module, "trained_task", lambda name: task if name == "digits" else TASKS[name])
    assert main(["--task", "digits", "--runs", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["configs_scored"] == 5
    found = read_proxies(folder)
    assert np.isfinite(found["snip"]).all()
    assert set(found) == set(PROXY_COLUMNS)
    RunsFolder(folder).commit("proxies.parquet", take(found, np.arange(2)), PROXY_COLUMNS)
    assert main(["--task", "digits", "--runs", str(folder)]) == 0
    again = read_proxies(folder)
    assert all(np.array_equal(found[name], again[name], equal_nan=found[name].dtype.kind == "f") for name in found)
    assert main(["--task", "fashion_mnist_mini", "--runs", str(folder)]) == 2
    assert "protocol" in capsys.readouterr().err
    with pytest.raises(ProtocolMismatch):
        proxy_folder(folder, TASKS["fashion_mnist_mini"])


@pytest.mark.parametrize("number", ADVICE)
def test_scores_that_cannot_be_written_are_one_line(folder, task, monkeypatch, capsys, number):
    monkeypatch.setattr(proxies_module, "trained_task", lambda name: task)
    monkeypatch.setattr(proxies_module, "score_config", lambda *_, **__: dict.fromkeys(PROXIES, 1.0))
    with unwritable(folder, number):
        assert main(["--task", "digits", "--runs", str(folder)]) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("pipeline.proxies: ")]
    assert ADVICE[number] in said
    assert main(["--task", "digits", "--runs", str(folder)]) == 0
    assert len(read_proxies(folder)["seed"]) == 5
