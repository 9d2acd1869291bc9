"""A benchmark and its views are one thing to whoever searches, and so are their objectives and fronts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import UnknownName
from jahs.queries.references import build_references
from tests.contracts.queryable import QueryableContract
from tests.releases import make_release


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> jahs.Benchmark:
    folder: Path = tmp_path_factory.mktemp("releases")
    plain = jahs.Benchmark("digits", release=make_release(folder / "plain", task="digits"), engine="numpy")
    references = build_references(plain, n_configs=300, seed=0, n_rounds=1).to_dict()
    release = make_release(folder / "whole", task="digits", references=references)
    return jahs.Benchmark("digits", release=release, engine="numpy")


class TestBenchmark(QueryableContract):
    @pytest.fixture
    def bench(self, whole: jahs.Benchmark) -> jahs.Benchmark:
        return whole


class TestPlainView(QueryableContract):
    @pytest.fixture
    def bench(self, whole: jahs.Benchmark) -> object:
        return whole.view()


class TestViewOfSizes(QueryableContract):
    @pytest.fixture
    def bench(self, whole: jahs.Benchmark) -> object:
        return whole.view(fidelities=("epoch", "N", "Resolution"), fixed={"W": 8}, search="nas")


def test_a_view_without_choices_answers_what_the_benchmark_does(whole: jahs.Benchmark) -> None:
    view = whole.view()
    configs = whole.sample(4, seed=1)
    assert view.sample(4, seed=1) == configs
    assert np.array_equal(view.objectives(configs, at=3), whole.objectives(configs, at=3))


def test_a_view_knows_the_objectives_that_its_benchmark_does(whole: jahs.Benchmark) -> None:
    some = jahs.Benchmark("digits", release=whole.release, metrics=["valid_acc"], engine="numpy")
    configs = some.sample(4, seed=1)
    for metrics in (("valid_acc", "latency"), ("FLOPS",)):
        F = some.view().objectives(configs, at=3, metrics=metrics)
        assert np.array_equal(F, some.objectives(configs, at=3, metrics=metrics))
    for asked in (some, some.view()):
        with pytest.raises(UnknownName, match="metric='valid_loss' is recorded, not predicted: ask a table"):
            asked.objectives(configs, metrics=("valid_loss",))
