"""The embedded benchmark's reference config: good, at full size, and where its views fix what they do not search."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest

import jahs
from jahs.errors import CorruptFile, MissingData, PoorView
from jahs.schema import OPS
from tests.releases import make_release


@pytest.fixture(scope="module")
def bench() -> jahs.Benchmark:
    return jahs.Benchmark("fashion_mnist_mini")


def best_and_median(asked: jahs.Benchmark | jahs.View) -> tuple[float, float]:
    accuracies = asked.query_many(asked.space.sample_columns(1_000, seed=0), metrics=("valid_acc",))["valid_acc"]
    return float(accuracies.max()), float(np.median(accuracies))


@pytest.mark.parametrize("search", ["hpo", "nas"])
def test_a_view_at_the_reference_is_worth_searching(bench: jahs.Benchmark, search: str) -> None:
    reference = bench.reference_config
    assert reference is not None
    assert (reference["N"], reference["W"], reference["Resolution"]) == (5, 16, 1.0)
    (best, median), (best_of_all, median_of_all) = best_and_median(bench.view(search=search)), best_and_median(bench)
    assert best > best_of_all - 3
    assert median > median_of_all
    assert bench.query(reference).valid_acc > median_of_all


def test_the_first_query_of_a_poor_view_warns_once(bench: jahs.Benchmark) -> None:
    view = bench.view(search="hpo", fixed={"N": 5, "W": 16, **dict.fromkeys(OPS, 1)})
    assert pickle.loads(pickle.dumps(view)).space == view.space
    configs = view.sample(2, seed=0)
    with pytest.warns(PoorView, match=r"fixes N=5, Op1=1, .*has valid_acc 15\.5 %, below the median 82\.7 %") as caught:
        view.query_many(configs)
    assert [one.filename for one in caught] == [__file__]
    other = bench.view(search="hpo", fixed={"N": 5, "W": 16, **dict.fromkeys(OPS, 1)})
    with pytest.warns(PoorView):
        other.predict(configs, metrics=["valid_acc"])
    searched = bench.view(search="hpo", fixed={"N": 5, "W": 16, **dict.fromkeys(OPS, 1)})
    with pytest.warns(PoorView) as caught:
        jahs.Simulation(searched, n_trials=2).run(lambda _: configs[0])
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view.query(configs[0])
        bench.view(fixed={"N": 5, "W": 16}).query(bench.reference_config)
        bench.view().query(configs[0])


def test_a_table_of_the_release_has_its_reference_and_recorded_runs_alone_have_none(bench: jahs.Benchmark) -> None:
    table = jahs.Benchmark("fashion_mnist_mini", kind="table")
    assert table.reference_config == bench.reference_config
    assert table.view(search="nas").space.searched == OPS


def test_a_release_without_a_reference_says_so_and_a_damaged_one_is_refused(tmp_path) -> None:
    folder = make_release(tmp_path / "digits")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["reference_config"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    old = jahs.Benchmark("digits", release=folder, engine="numpy")
    assert old.reference_config is None
    with pytest.raises(MissingData, match="has no reference_config; give fixed='default', or values"):
        old.view(search="hpo")
    (folder / "manifest.json").write_text(
        json.dumps({**manifest, "reference_config": {**jahs.space().default(), "N": 4}})
    )
    with pytest.raises(CorruptFile, match=r"manifest\.json: reference_config: N=4 is not one of 1, 3, 5"):
        _ = jahs.Benchmark("digits", release=folder, engine="numpy").reference_config
