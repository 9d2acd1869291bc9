"""Recorded FLOPS beside exact ones: labels of an imported table, group by group, on the page of repeated trainings."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import jahs
from experiments.science.__main__ import main
from experiments.science.repeats import PAPER_FLOPS, flops_agreement, recorded_flops
from jahs.errors import InvalidArgument, MissingData
from jahs.models.cost import n_macs
from jahs.published.table import import_table
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import TASKS
from tests.experiments.conftest import TASK
from tests.published_files import frame_bytes
from tests.published_tables import N_EPOCHS, make_columns
from tests.published_tables import TASK as PUBLISHED

SIZE = (3, 8, 0.5)
N_MODELS = 24


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The runs of a table with two sizes; within one of them, recorded FLOPS have the opposite order."""
    configs = jahs.space().sample_columns(N_MODELS, seed=0)
    for key, value, other in zip(("N", "W", "Resolution"), SIZE, (1, 4, 1.0), strict=True):
        configs[key] = np.where(np.arange(N_MODELS) % 2, value, other).astype(configs[key].dtype)
    configs = {key: np.concatenate([values[:-1], values[1:2]]) for key, values in configs.items()}  # one has two models
    columns = make_columns(N_MODELS, configs=configs)
    flops = columns["labels", "FLOPS"]
    is_odd = np.repeat(np.arange(N_MODELS) % 2 == 1, N_EPOCHS)
    flops[is_odd] = flops[is_odd].max() + 1 - flops[is_odd]
    path = tmp_path_factory.mktemp("published") / PUBLISHED.name
    path.mkdir()
    (path / "raw.pkl.gz").write_bytes(frame_bytes(columns))
    return import_table(path, path / "out")[PUBLISHED.name], configs, flops[::N_EPOCHS]


def test_exact_flops_agree_in_every_group_and_reversed_ones_disagree():
    columns = jahs.space().sample_columns(400, seed=0)
    exact = n_macs(encode(columns, 1), TASKS["cifar10"])
    taus = flops_agreement(columns, exact / 1e6, TASKS["cifar10"])
    assert list(taus) == [None, *PAPER_FLOPS]
    assert list(taus.values()) == pytest.approx([1.0] * 28)
    assert flops_agreement(columns, -exact, TASKS["cifar10"])[5, 16, 1.0] == pytest.approx(-1)


def test_labels_of_an_imported_table_are_those_that_were_recorded(published):
    folder, configs, flops = published
    columns, found = recorded_flops(folder)
    assert np.sort(found) == pytest.approx(np.sort(flops))
    expected = flops_agreement(configs, flops, PUBLISHED)
    assert flops_agreement(columns, found, PUBLISHED) == pytest.approx(expected, nan_ok=True)
    assert expected[SIZE] == pytest.approx(-1)
    assert expected[1, 4, 1.0] == pytest.approx(1)


def test_the_page_of_repeats_has_the_table_if_one_is_given(published, release, tmp_path):
    arguments = ["repeats", "--task", TASK, "--release", str(release), "--docs", "--out"]
    assert main([*arguments, str(tmp_path / "with"), "--table", str(published[0])]) == 0
    page = (tmp_path / "with" / "report.md").read_text(encoding="utf-8")
    assert f"| 3 | 8 | 0.5 | {N_MODELS // 2} | {PAPER_FLOPS[SIZE]:.3f} | -1.000 |" in page
    assert "by construction" in page
    assert main(["cells", *arguments[1:], str(tmp_path / "cells"), "--table", str(published[0])]) == 2


def test_a_folder_that_was_not_imported_has_exact_flops(tmp_path):
    with pytest.raises(MissingData, match="not a folder of runs"):
        recorded_flops(tmp_path)
    with pytest.raises(InvalidArgument, match="are computed from the configs"):
        recorded_flops(Path(__file__).parents[2] / "data/cifar10_mini/runs")
