"""The exhaustive search: no config of its grid is better, and cells that a model cannot tell apart are asked once."""

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.queries.exhaustive import (
    cell_columns,
    cells_on_grid,
    cells_to_ask,
    crossed,
    exhaustive_best,
    grid,
    search_best,
)
from jahs.release import read_release
from jahs.schema import OPS
from jahs.spaces.cell import N_CELLS, all_ops, canonical_keys
from jahs.spaces.columns import codes, columns_of_codes, rows
from jahs.spaces.parameters import LARGEST
from tests.releases import make_release


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


class Deceptive:
    """More convolutions and lower learning rates are better; with six convolutions, the highest rate is the best."""

    space = jahs.space()

    def query_many(self, configs, *, metrics):
        columns = columns_of_codes(codes(configs)) if isinstance(configs, list) else configs
        n_convolutions = sum(columns[op] == 2 for op in OPS)
        rate = np.log10(columns["LearningRate"])  # -3 to 0
        return {"valid_acc": n_convolutions - 0.1 * rate + 5 * ((n_convolutions == 6) & (rate > -0.1))}


def test_a_search_climbs_to_the_best_cell_and_tries_rates_that_no_neighbour_leads_to():
    best = search_best(Deceptive(), [Deceptive.space.default()], "valid_acc")
    assert [best.config[op] for op in OPS] == [2] * 6
    assert best.config["LearningRate"] > 10**-0.1
    assert not best.is_exact


def test_a_config_that_is_known_many_times_is_followed_once(monkeypatch):
    asked, queried = Deceptive(), []
    answer = asked.query_many
    monkeypatch.setattr(asked, "query_many", lambda configs, **more: queried.append(configs) or answer(configs, **more))
    best = {**asked.space.default(), **dict.fromkeys(OPS, 2), "LearningRate": 1e-3}
    search_best(asked, [best] * 30, "valid_acc")
    followed = rows(queried[1])[:10]
    assert followed.count(best) == 1
    assert all(followed.count(config) == 1 for config in followed)
