"""Imported releases in studies: clipped accuracies, a clock where none was published, and orders that carry over."""

from __future__ import annotations

import numpy as np
import pytest

import jahs
from experiments.folder import read_folder
from experiments.imported import CLOCK, open_for_study
from experiments.run import main as run
from jahs.queries.benchmark import Benchmark
from jahs.simulate import read_log
from tests.experiments.conftest import TASK
from tests.releases import make_release

REAL = "cifar10"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A release as the authors' pre-release is imported: without runtimes, noise and test accuracies."""
    folder = tmp_path_factory.mktemp("imported") / REAL
    return make_release(
        folder, task=REAL, metrics=("valid_acc", "latency"), n_trees=10, depth=3, facts={"source": "imported"}
    )


def test_an_imported_release_without_runtimes_takes_those_of_the_clock(imported):
    bench, clock = open_for_study(REAL, imported), jahs.Benchmark(CLOCK)
    columns = jahs.space().sample_columns(20, seed=1)
    whole = clock.query_many(columns, metrics=["runtime"])["runtime"]
    for epoch in (1, 50, 200):
        found = bench.query_many(columns, at=epoch, metrics=["runtime"])["runtime"]
        assert found == pytest.approx(whole * epoch / 200)
    plain = jahs.Benchmark(REAL, release=imported)
    every = bench.query_many(columns)
    assert set(every) == {*plain.metrics, "runtime"}
    assert np.array_equal(every["valid_acc"], plain.query_many(columns)["valid_acc"])


def test_accuracies_of_an_imported_release_are_clipped(imported, monkeypatch):
    beyond = {"valid_acc": np.array([-3.0, 50.0, 104.0]), "latency": np.array([-1.0, 0.0, 200.0])}
    monkeypatch.setattr(Benchmark, "_answer", lambda *_, metrics, **__: {name: beyond[name] for name in metrics})
    found = open_for_study(REAL, imported).query_many(jahs.space().sample_columns(3, seed=0), metrics=[*beyond])
    assert found["valid_acc"].tolist() == [0.0, 50.0, 100.0]
    assert found["latency"].tolist() == [-1.0, 0.0, 200.0]


def test_a_release_with_its_own_runtimes_keeps_them(release, tmp_path):
    assert type(open_for_study(TASK, release)) is Benchmark
    own = make_release(tmp_path / REAL, task=REAL, n_trees=10, depth=3, facts={"source": "imported"})
    bench, plain = open_for_study(REAL, own), jahs.Benchmark(REAL, release=own)
    columns = jahs.space().sample_columns(5, seed=0)
    assert bench.clock is None
    assert np.array_equal(bench.query_many(columns)["runtime"], plain.query_many(columns)["runtime"])


def test_a_study_runs_on_an_imported_release(imported, tmp_path):
    given = ["--noise", "mean", "--seeds", "2", "--workers", "1", "--release", str(imported), "--out", str(tmp_path)]
    assert run(["baselines", "--arms", "random_search", *given]) == 0
    folder = read_folder(tmp_path)
    assert list(folder.tasks) == [REAL]
    assert folder.tasks[REAL].source.startswith(f"imported, runtimes of {CLOCK} ")
    log = read_log(tmp_path / REAL / "random_search" / "seed-0001.jsonl")
    assert log.ending["ended"] == "budget"
    assert log.header["budget"] == 100 * folder.tasks[REAL].mean_runtime_s
