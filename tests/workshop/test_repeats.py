"""Two trainings of a config: the first two finished runs, on one processor."""

import numpy as np
import pytest

from tests.building import make_configs, make_runs
from workshop.repeats import pairs_of_seeds


def test_a_pair_is_the_first_two_finished_runs_of_a_config():
    configs = make_configs(4, seed=0)
    runs = make_runs(configs, seeds=[(0, 1, 2), (0,), (0, 1), (0, 1)], n_epochs=3, diverged=())
    ids = configs["config_id"]
    runs["status"] = np.where((runs["config_id"] == ids[3]) & (runs["seed"] == 1), "diverged", runs["status"])
    found = pairs_of_seeds(runs)
    paired = np.sort(ids[[0, 2]])
    for place, seed in enumerate((0, 1)):
        expected = [
            runs["valid_acc"][(runs["config_id"] == one) & (runs["seed"] == seed) & (runs["epoch"] == 3)][0]
            for one in paired
        ]
        assert found["valid_acc"][place].tolist() == pytest.approx(expected)


def test_runtimes_of_two_processors_do_not_compare():
    configs = make_configs(5, seed=0)
    runs = make_runs(configs, seeds=[(0, 1)] * 5, n_epochs=2, diverged=())
    ids = configs["config_id"]
    runs["machine"] = np.where(runs["config_id"] == ids[0], "another", "one")
    on_two = (runs["config_id"] == ids[1]) & (runs["seed"] == 1)
    runs["torch_version"] = np.where(on_two, "later", "2.13")
    runs["runtime"] = np.where(runs["config_id"] == ids[2], np.nan, runs["runtime"])  # trained on an accelerator
    found = pairs_of_seeds(runs)
    assert len(found["valid_acc"].first) == 5
    last = runs["epoch"] == 2
    for place, seed in enumerate((0, 1)):
        of = np.isin(runs["config_id"], ids[3:]) & last & (runs["seed"] == seed)
        assert sorted(found["runtime"][place]) == sorted(runs["runtime"][of].astype(float))


def test_the_tau_of_runtimes_is_the_mean_over_processors_weighted_with_their_pairs():
    configs = make_configs(6, seed=0)
    runs = make_runs(configs, seeds=[(0, 1)] * 6, n_epochs=1, diverged=())
    ids = configs["config_id"].tolist()
    first = dict(zip(ids, (1.0, 2.0, 3.0, 100.0, 200.0, 7.0), strict=True))
    second = dict(zip(ids, (1.0, 2.0, 3.0, 0.2, 0.1, 7.0), strict=True))  # one order on "one", its reverse on "two"
    machine = dict(zip(ids, ("one",) * 3 + ("two",) * 2 + ("three",), strict=True))
    seconds = {0: first, 1: second}
    runs["machine"] = np.array([machine[each] for each in runs["config_id"].tolist()])
    pairs_of = zip(runs["config_id"].tolist(), runs["seed"].tolist(), strict=True)
    runs["runtime"] = np.array([seconds[seed][each] for each, seed in pairs_of])
    runtime = pairs_of_seeds(runs)["runtime"]
    assert len(runtime.first) == 5
    assert runtime.tau(np.arange(5)) == pytest.approx((3 * 1 + 1 * -1) / 4)


def test_a_config_that_was_timed_alone_in_one_place_still_counts_in_another():
    configs = make_configs(3, seed=0)
    runs = make_runs(configs, seeds=[(0, 1, 2, 3), (0, 1), (0, 1)], n_epochs=1, diverged=())
    is_alone = (runs["config_id"] == configs["config_id"][0]) & (runs["seed"] < 2)
    runs["machine"] = np.where(is_alone, "a machine of its own", "shared")
    assert len(pairs_of_seeds(runs)["runtime"].first) == 3
    assert len(pairs_of_seeds(runs)["valid_acc"].first) == 3
