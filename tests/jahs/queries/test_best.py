"""The best known config: what regrets are measured against, of a release, of a table and of every view of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, MissingData
from jahs.queries.best import search_best
from jahs.release import read_release
from jahs.schema import OPS
from jahs.spaces.columns import codes, columns_of_codes, rows
from tests.jahs.queries.test_reference_config import best_and_median
from tests.releases import make_release


@pytest.fixture(scope="module")
def bench() -> jahs.Benchmark:
    return jahs.Benchmark("fashion_mnist_mini")


@pytest.fixture(scope="module")
def table() -> jahs.Benchmark:
    return jahs.Benchmark("fashion_mnist_mini", kind="table")


def test_the_best_of_a_release_is_the_end_of_its_fronts_as_it_answers(bench: jahs.Benchmark) -> None:
    best = bench.best()
    front = bench.front(("valid_acc", "latency"))
    assert best == (front.configs[0], bench.query(front.configs[0]).valid_acc, False)
    stored = pytest.approx(front.ideal, rel=1e-9)  # the last bits of an answer differ between processors
    assert [100 - best.value, bench.best("latency").value] == stored
    assert best.value > best_and_median(bench)[0]


@pytest.mark.parametrize("choice", [{}, {"search": "hpo"}, {"fixed": {"N": 1, "Resolution": 0.5}}], ids=repr)
def test_the_best_of_a_view_is_in_it_and_no_random_config_beats_it(bench: jahs.Benchmark, choice: dict) -> None:
    view = bench.view(**choice)
    config, value, is_exact = bench.best(view=view)
    assert not is_exact
    assert view.query(config).valid_acc == value >= best_and_median(view)[0]
    assert bench.best(view=view) == (config, value, False)


def test_the_best_of_a_view_that_can_be_enumerated_is_exact(bench: jahs.Benchmark) -> None:
    view = bench.view(search=["Op1", "Op6", "N", "TrivialAugment"], fidelities=("epoch", "Resolution"))
    every = [
        {"Op1": first, "Op6": last, "N": n, "TrivialAugment": is_augmented}
        for first in range(5) for last in range(5) for n in (1, 3, 5) for is_augmented in (True, False)
    ]  # fmt: skip
    best = bench.best("test_acc", view)
    assert best.is_exact
    assert best.value == view.query_many(every)["test_acc"].max() == view.query(best.config).test_acc
    one = bench.view(search=())
    assert bench.best("n_macs", one) == (one.space.fixed, one.query({}).n_macs, True)


def test_the_best_of_a_table_is_the_best_recorded_one(table: jahs.Benchmark) -> None:
    best, small = table.best(), table.best(view=table.view(fixed={"N": 1, "W": 4}))
    assert best.is_exact
    assert table.release is not None
    runs = read_release(table.release).table.runs  # also of configs whose runtimes do not count
    ends: dict[int, list[float]] = {}
    rows = zip(*(runs[key].tolist() for key in ("config_id", "epoch", "valid_acc")), strict=True)
    for config_id, epoch, value in rows:
        if epoch == table.max_epoch:
            ends.setdefault(config_id, []).append(value)
    assert best.value == pytest.approx(max(map(np.mean, ends.values())))
    costs = table.front(("valid_acc", "n_params"))
    assert costs.F[0, 0] == pytest.approx(100 - best.value)
    assert (small.config["N"], small.config["W"]) == (1, 4)
    assert small.value < best.value
    with pytest.raises(MissingData, match=r"has no config with LearningRate=0\.0123 that is recorded at epoch 27"):
        table.best(view=table.view(fixed={"LearningRate": 0.0123}))


def test_an_equal_view_has_the_same_best_and_what_is_returned_can_be_changed(bench: jahs.Benchmark) -> None:
    view = bench.view(search="nas")
    best = bench.best(view=view)
    elsewhere = jahs.Benchmark("fashion_mnist_mini").view(search="nas")
    others = (pickle.loads(pickle.dumps(view)), copy.deepcopy(view), elsewhere)
    assert [bench.best(view=other) for other in others] == [best] * 3
    for other in (jahs.Benchmark("cifar10_mini"), jahs.Benchmark("fashion_mnist_mini", refit=0)):
        with pytest.raises(InvalidArgument, match="view must be a view of this benchmark"):
            bench.best(view=other.view(search="nas"))
    bench.quality().clear()
    assert bench.quality()


@pytest.mark.parametrize("other", [{"refit": 1}, {"model": "lightgbm"}], ids=repr)
def test_the_best_of_other_models_is_their_own(bench: jahs.Benchmark, other: dict) -> None:
    models = jahs.Benchmark("fashion_mnist_mini", **other)
    config, value, is_exact = models.best()
    assert models.query(config).valid_acc == value
    assert not is_exact
    assert value > models.query_many(jahs.space().sample_columns(40_000, seed=1))["valid_acc"].max()
    assert value >= models.query_many(bench.front(("valid_acc", "latency")).configs)["valid_acc"].max()


def test_a_metric_without_references_is_searched(bench: jahs.Benchmark) -> None:
    config, value, is_exact = bench.best("test_acc")
    assert bench.query(config).test_acc == value
    assert not is_exact
    assert value > bench.query_many(jahs.space().sample_columns(20_000, seed=1))["test_acc"].max()
    assert value >= bench.query(bench.best().config).test_acc


def test_what_has_no_best_says_so(bench: jahs.Benchmark, table: jahs.Benchmark, tmp_path) -> None:
    with pytest.raises(InvalidArgument, match=r"must be a name; for a view: bench\.best\('valid_acc', view\)"):
        bench.best(bench.view())
    with pytest.raises(InvalidArgument, match=r"view must be a view of this benchmark, got .*; make one by bench\.vi"):
        bench.best(view=table.view())
    plain = jahs.Benchmark("digits", release=make_release(tmp_path / "digits"), engine="numpy")
    assert plain.best(view=plain.view(search=["N", "W"])).is_exact


def test_a_front_prints_in_three_lines_and_becomes_a_frame(bench: jahs.Benchmark) -> None:
    pytest.importorskip("pandas")
    front = bench.front(("runtime", "valid_acc"))
    assert len(repr(front).splitlines()) == 3
    assert repr(front).startswith(f"<Front of {len(front.configs)} configs: runtime (s), 100 - valid_acc (%)\n ideal ")
    frame = front.to_pandas()
    assert frame.columns.tolist() == [*jahs.space().searched, "runtime", "valid_acc"]
    answers = bench.query_many(frame[list(jahs.space().searched)])
    for metric in ("valid_acc", "runtime"):  # computed elsewhere: `np.exp` differs in the last digit between processors
        np.testing.assert_allclose(frame[metric], answers[metric], rtol=1e-12)


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
