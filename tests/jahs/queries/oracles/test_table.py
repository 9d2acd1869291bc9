"""Recorded runs: the contract, which run a seed picks, and what was not recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidTable, NotRecorded
from jahs.queries.oracles.table import TableOracle
from jahs.spaces.columns import rows
from jahs.spaces.configs import config_codes
from jahs.tasks.definitions import TASKS
from tests.contracts.oracle import OracleContract
from tests.releases import make_table

DIGITS = TASKS["digits"]
TABLE = make_table("digits", 21, diverged=[5, 10])
CONFIGS = rows(TABLE.configs)
FINE = [config for i, config in enumerate(CONFIGS) if i not in {5, 10}]


def recorded(i, seed, epoch, name="valid_acc"):
    """The value in the table, looked up row by row."""
    runs = TABLE.runs
    is_row = (runs["config_id"] == TABLE.configs["config_id"][i]) & (runs["seed"] == seed) & (runs["epoch"] == epoch)
    (row,) = np.flatnonzero(is_row)
    return float(runs[name][row])


@pytest.fixture(scope="module")
def oracle():
    return TableOracle(TABLE, DIGITS)


@pytest.fixture
def configs():
    return FINE


class TestTable(OracleContract):
    @pytest.fixture
    def oracle(self):
        return TableOracle(TABLE, DIGITS)


def ask(oracle, i, epoch, seed=None, name="valid_acc"):
    return oracle.query(config_codes(CONFIGS[i]), epoch, seed=seed, metrics=(name,))[name]


def test_answers_are_what_was_recorded(oracle):
    assert ask(oracle, 3, 7) == recorded(3, 0, 7)
    assert ask(oracle, 3, 7, name="test_loss") == recorded(3, 0, 7, "test_loss")
    assert ask(oracle, 3, 7, name="latency") == float(TABLE.profile["latency"][3])


def test_a_seed_picks_a_run_and_none_is_their_mean(oracle):
    of_seeds = [recorded(20, seed, 4) for seed in (0, 1, 2)]
    assert [ask(oracle, 20, 4, seed) for seed in range(6)] == of_seeds * 2
    assert ask(oracle, 20, 4) == pytest.approx(np.mean(of_seeds), rel=1e-15)
    assert {ask(oracle, 3, 4, seed) for seed in (0, 1, 2**63 - 1)} == {recorded(3, 0, 4)}


def test_a_config_that_was_not_recorded_is_a_miss_that_names_the_nearest(oracle):
    config = {**CONFIGS[7], "W": {4: 8, 8: 16, 16: 8}[CONFIGS[7]["W"]]}
    with pytest.raises(
        NotRecorded, match=rf"nearest of 21 recorded configs has W={CONFIGS[7]['W']} \(asked: {config['W']}\)"
    ):
        oracle.query(config_codes(config), 3, seed=None, metrics=("valid_acc",))
    rate = {**CONFIGS[7], "LearningRate": CONFIGS[7]["LearningRate"] * 1.0001}
    with pytest.raises(NotRecorded, match=r"recorded configs has LearningRate=[0-9.e-]+ \(asked: [0-9.e-]+\);"):
        oracle.query(config_codes(rate), 3, seed=None, metrics=("valid_acc",))


def test_a_batch_says_how_many_are_missing_and_where(oracle):
    strangers = jahs.space().sample(7, seed=99)
    codes = np.array([config_codes(config) for config in [CONFIGS[0], *strangers]])
    with pytest.raises(NotRecorded, match=r"(?s)\(config 1\).*\(config 5\)\n\.\.\. 7 of 8 are not recorded") as fault:
        oracle.query_many(codes, np.full(8, 1), seed=None, metrics=("valid_acc",))
    assert "(config 6)" not in str(fault.value)


def test_a_diverged_run_answers_for_the_epochs_before(oracle):
    assert ask(oracle, 5, 5) == recorded(5, 0, 5)
    with pytest.raises(NotRecorded, match=r"epoch 6 .* run with seed 0 measured epochs 1\.\.5 and then diverged"):
        ask(oracle, 5, 6)
    with pytest.raises(NotRecorded, match=r"3 of 3 runs measured epochs 1\.\.5 and then diverged"):
        ask(oracle, 10, 12)


def test_an_epoch_that_is_missing_in_between_is_told_in_ranges():
    runs = TABLE.runs
    is_first = (runs["config_id"] == TABLE.configs["config_id"][3]) & (runs["seed"] == 0)
    kept = ~(is_first & np.isin(runs["epoch"], (4, 6, 7)))
    oracle = TableOracle(replace(TABLE, runs={name: values[kept] for name, values in runs.items()}), DIGITS)
    with pytest.raises(NotRecorded, match=r"epoch 4 .* run with seed 0 measured epochs 1\.\.3, 5, 8\.\.\d+$"):
        ask(oracle, 3, 4)


def test_no_mean_is_made_of_the_survivors():
    runs = {name: values.copy() for name, values in TABLE.runs.items()}
    its_second = (runs["config_id"] == TABLE.configs["config_id"][20]) & (runs["seed"] == 1)
    kept = ~(its_second & (runs["epoch"] > 6))
    runs["status"] = np.where(its_second, "diverged", runs["status"])
    oracle = TableOracle(replace(TABLE, runs={name: values[kept] for name, values in runs.items()}), DIGITS)
    assert ask(oracle, 20, 12, seed=0) == recorded(20, 0, 12)
    with pytest.raises(NotRecorded, match="1 of 3 runs measured epochs"):
        ask(oracle, 20, 12)


def test_only_configs_with_runs_are_drawn_and_each_can_be():
    waiting = make_table("digits", 30)
    runs = {
        name: values[np.isin(waiting.runs["config_id"], waiting.configs["config_id"][:4])]
        for name, values in waiting.runs.items()
    }
    oracle = TableOracle(replace(waiting, runs=runs), DIGITS)
    drawn = {config["LearningRate"] for config in oracle.sample(200, seed=0)}
    assert drawn == set(waiting.configs["LearningRate"][:4].tolist())


def diverging_at_once(*configs):
    """The table, but that every run of these configs diverged in its first epoch."""
    is_theirs = np.isin(TABLE.runs["config_id"], TABLE.configs["config_id"][list(configs)])
    runs = {**TABLE.runs, "status": np.where(is_theirs, "diverged", TABLE.runs["status"])}
    return replace(TABLE, runs={name: values[~is_theirs | (TABLE.runs["epoch"] == 1)] for name, values in runs.items()})


def test_configs_that_no_epoch_answers_are_not_drawn():
    oracle = TableOracle(diverging_at_once(0, 3), DIGITS)
    drawn = oracle.sample(400, seed=0)
    assert {config["LearningRate"] for config in drawn} == {
        config["LearningRate"] for i, config in enumerate(CONFIGS) if i not in {0, 3}
    }
    for config in drawn[:20]:
        oracle.query(config_codes(config), 1, seed=None, metrics=("valid_acc",))


def test_a_table_of_which_no_epoch_answers_is_refused():
    with pytest.raises(InvalidTable, match="every recorded run diverged in its first epoch"):
        TableOracle(diverging_at_once(*range(len(CONFIGS))), DIGITS)


def test_the_configs_that_a_seed_draws_stay_what_they_were(oracle):
    assert [CONFIGS.index(config) for config in oracle.sample(8, seed=0)] == [8, 2, 6, 12, 6, 0, 8, 6]


def trained_elsewhere(*runs):
    """The table, but that these runs, by place of the config and seed, were on another processor than the profile."""
    ids, table = TABLE.configs["config_id"], TABLE.runs
    at = np.logical_or.reduce([(table["config_id"] == ids[i]) & (table["seed"] == seed) for i, seed in runs])
    return replace(TABLE, runs={**table, "machine": np.where(at, "another", table["machine"])})


def test_runtimes_are_those_of_one_processor():
    oracle = TableOracle(trained_elsewhere((20, 0), (20, 2), (3, 0)), DIGITS)
    assert {ask(oracle, 20, 4, seed, "runtime") for seed in (None, 0, 1, 2)} == {recorded(20, 1, 4, "runtime")}
    assert [ask(oracle, 20, 4, seed) for seed in (0, 1, 2)] == [recorded(20, seed, 4) for seed in (0, 1, 2)]
    assert ask(oracle, 3, 4) == recorded(3, 0, 4)
    with pytest.raises(
        NotRecorded,
        match=r"^config [0-9a-f]{16} has no recorded runtime .*not trained by torch on test, "
        r".*; name other metrics, such as",
    ):
        ask(oracle, 3, 4, name="runtime")
    with pytest.raises(NotRecorded, match=r"^config [0-9a-f]{16} has no recorded runtime [^\n]*$"):
        oracle.trajectory(config_codes(CONFIGS[3]), np.arange(1, 8), seed=None, metrics=("valid_acc", "runtime"))


def test_a_run_that_diverged_at_once_gives_no_runtime_and_hides_no_other_run():
    table = trained_elsewhere((20, 0), (20, 1), *((i, seed) for i in range(20) for seed in range(3)))
    ids, runs = table.configs["config_id"], table.runs
    only_timed = (runs["config_id"] == ids[20]) & (runs["seed"] == 2)
    kept = ~only_timed | (runs["epoch"] == 1)
    runs = {**runs, "status": np.where(only_timed, "diverged", runs["status"])}
    oracle = TableOracle(replace(table, runs={name: values[kept] for name, values in runs.items()}), DIGITS)
    assert ask(oracle, 20, 12, seed=1) == recorded(20, 1, 12)
    assert "runtime" not in oracle.metrics
    assert {"valid_acc", "latency"} <= set(oracle.metrics)


def test_a_config_without_a_runtime_is_not_drawn():
    oracle = TableOracle(trained_elsewhere((3, 0)), DIGITS)
    assert CONFIGS[3] not in oracle.sample(400, seed=0)
    assert set(oracle.metrics) == set(TableOracle(TABLE, DIGITS).metrics)
    everywhere = trained_elsewhere(*((i, seed) for i in range(21) for seed in range(3)))
    assert TableOracle(everywhere, DIGITS).sample(50, seed=0) == TableOracle(TABLE, DIGITS).sample(50, seed=0)


def test_a_latency_is_asked_only_of_profiled_configs():
    """A config that was trained elsewhere, after the profile, takes the metric from nobody."""
    table = trained_elsewhere((20, 0), (20, 1), (20, 2))
    oracle = TableOracle(replace(table, profile={name: v[:-1] for name, v in table.profile.items()}), DIGITS)
    assert ask(oracle, 3, 1, name="latency") == float(TABLE.profile["latency"][3])
    with pytest.raises(NotRecorded, match=r"no recorded latency \(it is not in the profile\); name other metrics"):
        ask(oracle, 20, 1, name="latency")
    with pytest.raises(NotRecorded, match=r"no recorded runtime \(.*\) and no latency \("):
        oracle.query(config_codes(CONFIGS[20]), 1, seed=None, metrics=("latency", "runtime"))


def test_a_metric_that_not_every_config_has_is_not_offered():
    runs = {**TABLE.runs, "runtime": np.full_like(TABLE.runs["runtime"], np.nan)}
    profile = {name: values[:-1] for name, values in TABLE.profile.items()}
    oracle = TableOracle(replace(TABLE, runs=runs, profile=profile), DIGITS)
    assert not {"runtime", "latency"} & set(oracle.metrics)
    assert "valid_acc" in oracle.metrics


def test_the_last_epoch_is_the_last_one_recorded():
    runs = {name: values[TABLE.runs["epoch"] <= 4] for name, values in TABLE.runs.items()}
    assert TableOracle(replace(TABLE, runs=runs), DIGITS).max_epoch == 4


def test_a_table_without_runs_or_configs_is_refused():
    empty = {name: values[:0] for name, values in TABLE.runs.items()}
    with pytest.raises(InvalidTable, match="no recorded run"):
        TableOracle(replace(TABLE, runs=empty), DIGITS)
    configs = {name: values[:3] for name, values in TABLE.configs.items()}
    with pytest.raises(InvalidTable, match="18 recorded configs are not in the config table"):
        TableOracle(replace(TABLE, configs=configs), DIGITS)
