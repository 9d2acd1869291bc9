"""Cells of NAS-Bench-201: a stratified sample and the best, scored piece by piece, compared with what was published."""

import csv
import functools
import json
import math

import numpy as np
import pytest

from experiments.analysis.proxy_orders import summary
from experiments.nasbench201 import choose_cells, main
from jahs.errors import InvalidArgument
from jahs.files.runs import read_configs, read_runs
from jahs.files.sealed_json import read_sealed
from jahs.schema import PROXIES
from jahs.spaces.cell import Cell, nb201_indices
from pipeline import proxies as proxies_module
from pipeline.protocol import NASBENCH201
from pipeline.verify import verify
from pipeline.zero_cost import ProxyScores
from workshop.measured import read_proxies
from workshop.real_landscape import N_CELLS

ACCURACIES = {index: (index * 7919) % N_CELLS / N_CELLS * 100 for index in range(N_CELLS)}


def test_one_cell_of_each_stratum_and_the_best_are_chosen():
    drawn, added = choose_cells(ACCURACIES, 1000)
    assert len(drawn) == 1000 - 156
    assert len({*drawn, *added}) == len(drawn) + len(added) == 1000
    ranked = sorted(ACCURACIES, key=lambda index: -ACCURACIES[index])
    strata = sorted(map(ranked.index, drawn))
    bounds = np.array_split(np.arange(N_CELLS), len(drawn))
    assert all(stratum[0] <= place <= stratum[-1] for stratum, place in zip(bounds, strata, strict=True))
    assert {*ranked[:156]} <= {*drawn, *added}
    assert choose_cells(ACCURACIES, 1000) == (drawn, added)


@pytest.mark.parametrize("n", [0, 4, N_CELLS + 1])
def test_too_few_or_too_many_cells_are_refused(n):
    with pytest.raises(InvalidArgument, match=rf"cells={n} must be in 5\.\.15625"):
        choose_cells(ACCURACIES, n)


def test_accuracies_of_some_cells_are_refused():
    with pytest.raises(InvalidArgument, match="accuracies of 3 cells; NAS-Bench-201 has 15,625"):
        choose_cells({1: 2.0, 2: 3.0, 3: 4.0}, 5)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "accuracies.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "cifar10_test_200_epochs", "cifar10_valid_12_epochs"])
        writer.writerows([index, value, 0] for index, value in ACCURACIES.items())
    return path


def test_cells_are_scored_piece_by_piece_and_compared(table, tmp_path, monkeypatch, capsys):

    def score(config, of_task, images, *, seed):
        assert (config["N"], config["W"], config["Activation"], of_task.side) == (5, 16, "ReLU", 32)
        accuracy = ACCURACIES[int(nb201_indices(np.array([Cell.from_config(config).ops]))[0])]
        values = dict.fromkeys(PROXIES, accuracy + seed) | {"zen": math.nan}
        return ProxyScores(values=values, reasons={"zen": "no path"}, cpu_s=dict.fromkeys(PROXIES, 0.5))

    monkeypatch.setattr("experiments.nasbench201.summary", functools.partial(summary, n_resamples=2))
    monkeypatch.setattr(proxies_module, "score_config", score)
    monkeypatch.setattr(proxies_module, "images_of", lambda *_: {1.0: None})
    out = tmp_path / "cells"
    command = ["--accuracies", str(table), "--out", str(out), "--workers", "1", "--seeds", "2"]
    assert main([*command, "--cells", "30"]) == 0
    assert json.loads(capsys.readouterr().out)["cells_scored"] == 30
    assert len(read_proxies(out / "runs")["seed"]) == 60
    assert len(read_runs(out / "runs")["seed"]) == 0
    assert verify(out / "runs") == []
    assert main([*command, "--cells", "40"]) == 0
    found = read_sealed(out / "agreement.json")
    assert found["n_scored"] == len(read_configs(out / "runs")["config_id"]) > 40, "what was scored before stays"
    assert found["sample"]["snip"]["spearman"]["mean"] == pytest.approx(1)
    assert found["sample"]["ntk, least first"]["spearman"]["mean"] == pytest.approx(-1)
    assert found["best"]["meco"]["kendall"]["mean"] == pytest.approx(1)
    assert found["sample"]["zen"]["spearman"]["mean"] is None
    assert found["n_missing"]["zen"] == 2 * found["n_scored"]
    assert found["cpu_s"]["grasp"] == 0.5
    assert all(0 < each["random order"] < 0.2 for each in found["parameters"].values())
    assert main([*command, "--cells", "3"]) == 2
    assert main(["--accuracies", str(tmp_path / "none.csv"), "--out", str(out)]) == 2


def test_the_cells_networks_are_those_of_nas_bench_201():
    from pipeline.network import build_network
    from workshop.real_landscape import cell_configs

    (config,) = cell_configs([0])
    network = build_network(config, NASBENCH201)
    assert network.stem.conv.weight.shape == (16, 3, 3, 3)
    assert sum(type(block).__name__ == "CellBlock" for block in network.body) == 15
    assert network.classify.weight.shape == (10, 64)
    assert np.isclose(NASBENCH201.image_side(config["Resolution"]), 32)
