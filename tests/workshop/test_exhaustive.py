"""The exhaustive search: no config of its grid is better, and cells that a model cannot tell apart are asked once."""

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.queries.best import grid
from jahs.release import read_release
from jahs.spaces.cell import N_CELLS, all_ops, canonical_keys
from jahs.spaces.parameters import LARGEST
from tests.releases import make_release
from workshop.exhaustive import cell_columns, cells_on_grid, cells_to_ask, crossed, exhaustive_best


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return jahs.Benchmark("digits", release=make_release(tmp_path_factory.mktemp("release") / "digits", n_trees=5))


@pytest.mark.parametrize("metric", ["valid_acc", "latency"])
def test_no_config_of_the_grid_is_better(bench, metric):
    cells = all_ops()[::700]
    result = exhaustive_best(bench, metric, cells=cells, n_floats=3)
    space = bench.space.fix(LARGEST)
    settings = grid(space, ["Activation", "TrivialAugment", "LearningRate", "WeightDecay", "Optimizer"], n_floats=3)
    sizes = {name: np.full(54, value) for name, value in LARGEST.items()}
    values = bench.query_many(crossed(cell_columns(cells), settings | sizes), metrics=(metric,))[metric]
    best = values.max() if metric == "valid_acc" else values.min()
    assert result.on_grid == pytest.approx(best)
    assert result.value >= best if metric == "valid_acc" else result.value <= best
    assert bench.query(result.config).values[metric] == result.value
    assert result.config.items() >= LARGEST.items()
    assert (
        result.n_asked == len(values) + 9**2 * len(cells) * 6 + 81**2 * 10
    )  # the second grid has all pairs: they are few
    finest = grid(space, ["LearningRate", "WeightDecay"], n_floats=81)
    own = {k: np.array([v]) for k, v in result.config.items() if k not in finest}
    near = bench.query_many(crossed(own, finest), metrics=(metric,))[metric]
    assert result.value == (near.max() if metric == "valid_acc" else near.min())


def test_one_cell_of_each_class_is_enough_where_features_are_canonical(bench):
    release = read_release(bench.release)
    one = cells_to_ask(release, "valid_acc")
    assert len(np.unique(canonical_keys(one))) == len(one) < N_CELLS
    assert len(cells_to_ask(release, "latency")) == N_CELLS
    config = bench.sample(seed=0)
    every = crossed(
        cell_columns(all_ops()),
        {k: np.array([v]) for k, v in config.items() if not k.startswith("Op") or k == "Optimizer"},
    )
    values = bench.query_many(every, metrics=("valid_acc",))["valid_acc"]
    first = dict(zip(canonical_keys(all_ops()).tolist(), values.tolist(), strict=True))
    assert values.tolist() == [first[key] for key in canonical_keys(all_ops()).tolist()]


def test_a_grid_has_fixed_values_and_every_cell_has_all_other_settings(bench):
    space = bench.space.fix({**LARGEST, "Op3": 2, "LearningRate": 0.25})
    found = grid(space, ["Op3", "LearningRate", "Activation"], n_floats=2)
    assert {key: values.tolist() for key, values in found.items()} == {
        "Op3": [2] * 3,
        "LearningRate": [0.25] * 3,
        "Activation": ["ReLU", "Hardswish", "Mish"],
    }
    columns = cells_on_grid(all_ops()[[7, 8]], space, n_floats=3)
    assert columns.keys() == bench.sample(seed=0).keys()
    assert columns["Op6"].tolist() == [2] * 18 + [3] * 18  # of each cell, 3 activations, 2 augmentations and 3 decays
    assert all((columns[key] == value).all() for key, value in LARGEST.items())


def test_a_grid_has_two_values_of_each_float(bench):
    with pytest.raises(InvalidArgument, match="n_floats=1"):
        grid(bench.space, ["LearningRate"], n_floats=1)
