"""Data as users have it: DataFrames, Series, ConfigSpace's configurations and numpy's scalars in, tidy frames out."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidConfig, MissingDependency
from tests.hostile import ReadOnly
from tests.releases import make_release


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> jahs.Benchmark:
    return jahs.Benchmark("digits", release=make_release(tmp_path_factory.mktemp("release") / "digits"), engine="numpy")


class Configuration(ReadOnly):
    """What ConfigSpace returns: a mapping that knows its space, without the keys that have one value."""

    config_space = "jahs"


def without(config: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in config.items() if name not in names}


def test_a_frame_is_asked_like_its_columns(bench: jahs.Benchmark) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(bench.sample(5, seed=0))
    view = bench.view(fixed={"W": 16})
    for asked, given in ((bench, frame), (view, frame.drop(columns="W")), (view, frame.assign(W=16))):
        answers, wanted = asked.query_many(given, at=3), asked.query_many(given.to_dict("list"), at=3)
        assert all(np.array_equal(answers[name], wanted[name]) for name in bench.metrics)
        with pytest.raises(InvalidConfig, match=r"(?s)Op1 is missing.*lr is not a key"):
            asked.query_many(given.drop(columns="Op1").assign(lr=0.1))


def test_a_frame_without_columns_has_as_many_configs_as_rows(bench: jahs.Benchmark) -> None:
    pandas = pytest.importorskip("pandas")
    view = bench.view(search=[])
    answers = view.query_many(pandas.DataFrame(index=range(3)), metrics=["valid_acc"])["valid_acc"]
    assert answers.tolist() == [view.query({}).valid_acc] * 3


def test_one_config_may_be_a_series_a_configuration_or_hold_numpys_scalars(bench: jahs.Benchmark) -> None:
    pandas = pytest.importorskip("pandas")
    view = bench.view(fixed={"W": 16})
    config = view.sample(seed=3)
    scalars = {name: np.array([value])[0] for name, value in config.items()}
    assert type(scalars["TrivialAugment"]) is np.bool_
    part = without(config, "W")
    for asked, given in (
        *((bench, whole) for whole in (pandas.Series(config), pandas.DataFrame([config]).iloc[0], scalars)),
        (bench, Configuration(without(scalars, "Optimizer"))),
        (view, pandas.Series(part)),
        (view, Configuration(without(part, "Optimizer"))),
    ):
        assert asked.query(given, at=5).values == bench.query(config, at=5).values
        assert asked.query_many([given], at=5)["runtime"] == bench.query(config, at=5).runtime
        assert asked.trajectory(given)["runtime"][4] == bench.query(config, at=5).runtime
    with pytest.raises(InvalidConfig, match="Optimizer is missing"):
        bench.query(without(config, "Optimizer"))
    with pytest.raises(InvalidConfig, match="is a DataFrame, not a mapping of 14 keys"):
        bench.query(pandas.DataFrame([config]))


def test_answers_become_a_tidy_frame(bench: jahs.Benchmark) -> None:
    pytest.importorskip("pandas")
    configs = bench.sample(3, seed=0)
    answers = bench.query_many(configs, at=[2, 7], metrics=["valid_acc", "runtime"])
    frame = pickle.loads(pickle.dumps(answers)).to_pandas()
    assert frame.columns.tolist() == ["config", "epoch", "valid_acc", "runtime"]
    assert frame["config"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["epoch"].tolist() == [2, 7] * 3
    assert frame["runtime"].tolist() == answers["runtime"].ravel().tolist()
    each = bench.query_many(configs, each_at=[3, 4, 5]).to_pandas()
    assert each[["config", "epoch"]].to_numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert bench.query_many(configs, metrics=["latency"]).to_pandas()["epoch"].tolist() == [12] * 3
    walk = bench.trajectory(configs[0], step=4)
    assert walk.to_pandas().columns.tolist() == ["epoch", *bench.metrics]
    view = bench.view(fidelities=("epoch", "N", "Resolution"))
    ladder = [{"epoch": 3, "Resolution": 0.5}, {"N": 1}]
    frame = view.query_many(view.sample(1, seed=0), at=ladder, metrics=["valid_acc"]).to_pandas()
    assert without(frame.to_dict("list"), "valid_acc") == {
        "config": [0, 0], "epoch": [3, 12], "N": [5, 1], "Resolution": [0.5, 1.0],
    }  # fmt: skip


def test_without_pandas_the_frame_says_what_to_install(bench: jahs.Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match=r"to_pandas\(\) needs pandas .*: pip install pandas"):
        bench.trajectory(bench.sample(seed=0)).to_pandas()
