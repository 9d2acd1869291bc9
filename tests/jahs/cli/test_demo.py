"""The demo: exact costs for anybody, and a search where something answers."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import jahs
from jahs.cli.demo import demo, one_by_one, successive_halving, time_unit, write_picture
from jahs.errors import UnknownName
from tests.fake_bench import FakeBench

BENCH = FakeBench()
CONFIGS = jahs.space().sample(27, seed=0)


def test_a_third_goes_on_and_it_is_the_best_third() -> None:
    halving = successive_halving(BENCH, CONFIGS)
    assert [rung.epoch for rung in halving.rungs] == [1, 4, 12]
    assert [len(rung.configs) for rung in halving.rungs] == [27, 9, 3]
    for rung, after in pairwise(halving.rungs):
        assert set(after.configs) == set(rung.configs[: len(after.configs)])
        assert list(rung.valid_acc) == sorted(rung.valid_acc, reverse=True)
    for rung in halving.rungs:
        answers = BENCH.query_many([CONFIGS[i] for i in rung.configs], at=rung.epoch)["valid_acc"]
        assert answers.tolist() == list(rung.valid_acc)


def test_only_new_epochs_cost_simulated_time() -> None:
    halving = successive_halving(BENCH, CONFIGS)
    last = {i: rung.epoch for rung in halving.rungs for i in rung.configs}
    runtimes = BENCH.query_many(CONFIGS, each_at=np.array([last[i] for i in range(27)]))["runtime"]
    assert halving.rungs[-1].spent_s == pytest.approx(runtimes.sum())
    assert halving.best_so_far[-1] == (halving.rungs[-1].spent_s, halving.rungs[-1].valid_acc[0])


@pytest.mark.parametrize("steps", ["halving", "in_full"])
def test_time_goes_on_and_the_best_never_falls(steps: str) -> None:
    found = successive_halving(BENCH, CONFIGS).best_so_far if steps == "halving" else one_by_one(BENCH, CONFIGS, 9.0)
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(found))


def test_full_trainings_stop_where_the_time_ends() -> None:
    runtimes = BENCH.query_many(CONFIGS, at=12)["runtime"]
    assert len(one_by_one(BENCH, CONFIGS, float(runtimes[:3].sum()) * 1.0001)) == 3
    assert one_by_one(BENCH, CONFIGS, float(runtimes[0]) * 0.999) == ()
    assert len(one_by_one(BENCH, CONFIGS, 1e9)) == 27


def test_a_search_finds_what_it_does_with_few_configs_too() -> None:
    assert [len(rung.configs) for rung in successive_halving(BENCH, CONFIGS[:2]).rungs] == [2, 1, 1]


def test_without_a_benchmark_the_costs_are_shown_alone() -> None:
    shown = demo(seed=1, task_name="digits")
    assert shown.halving is None
    assert set(shown.to_dict()) == {"cell", "config", "n_macs", "n_params", "seed", "task"}
    with pytest.raises(UnknownName, match="task='mnist' does not exist"):
        demo(seed=1, task_name="mnist")


def test_the_picture_is_one_svg_in_the_folder_that_was_named(tmp_path) -> None:
    shown = demo(seed=1, task_name="fashion_mnist_mini", bench=BENCH)
    path = write_picture(shown, BENCH, tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert ET.parse(path).getroot().tag.endswith("svg")
    again = demo(seed=1, task_name="fashion_mnist_mini", bench=BENCH)
    assert again.to_dict() == shown.to_dict()
    assert write_picture(again, BENCH, tmp_path).read_bytes() == path.read_bytes()


def test_times_are_told_in_the_unit_that_fits() -> None:
    assert [time_unit(s)[1] for s in (5, 119, 120, 7199, 7200)] == ["seconds", "seconds", "minutes", "minutes", "hours"]
