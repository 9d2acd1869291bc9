"""Code that was written for `jahs_bench.Benchmark` runs here."""

from __future__ import annotations

import enum
import pickle

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, UnknownName
from tests.releases import make_release, make_table

PUBLISHED = {"FLOPS", "latency", "runtime", "size_MB", "test-acc", "train-acc", "valid-acc"}
EXAMPLE = {
    "Optimizer": "SGD", "LearningRate": 0.1, "WeightDecay": 5e-05, "Activation": "Mish", "TrivialAugment": False,
    "Op1": 4, "Op2": 1, "Op3": 2, "Op4": 0, "Op5": 2, "Op6": 1, "N": 5, "W": 16, "Resolution": 1.0,
}  # fmt: skip


class BenchmarkTasks(enum.Enum):
    CIFAR10 = "cifar10"


class BenchmarkTypes(enum.Enum):
    Surrogate = "surrogate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("data") / "cifar10", task="cifar10")


@pytest.fixture(scope="module")
def bench(folder):
    return jahs.Benchmark("cifar10", "surrogate", True, folder.parent, None, False, engine="numpy")


def test_the_published_example_runs(bench):
    results = bench(EXAMPLE, nepochs=200)
    assert set(results) == {200}
    assert set(results[200]) == PUBLISHED
    assert {type(value) for value in results[200].values()} == {float}
    assert (results[200]["size_MB"], results[200]["FLOPS"]) == (0.559386, 78.56193)


def test_answers_are_those_of_a_query_in_published_units(bench):
    mine, theirs = bench.query(EXAMPLE, at=7), bench(EXAMPLE, nepochs=7)[7]
    assert (theirs["valid-acc"], theirs["runtime"], theirs["latency"]) == (mine.valid_acc, mine.runtime, mine.latency)
    assert theirs["FLOPS"] == mine.n_macs / 1e6


def test_a_full_trajectory_has_every_epoch(bench):
    results = bench(EXAMPLE, nepochs=9, full_trajectory=True)
    assert list(results) == list(range(1, 10))
    assert results[9] == bench(EXAMPLE, nepochs=9)[9]
    assert {type(value) for value in results[3].values()} == {float}


def test_tasks_and_kinds_come_in_any_case_and_as_members_of_enumerations(folder):
    for task, kind in (("CIFAR10", "Surrogate"), (BenchmarkTasks.CIFAR10, BenchmarkTypes.Surrogate)):
        bench = jahs.Benchmark(task=task, kind=kind, save_dir=folder.parent, download=False, engine="numpy")
        assert (bench.task.name, bench.kind) == ("cifar10", "surrogate")


def test_metrics_are_chosen_by_their_published_names(folder):
    bench = jahs.Benchmark("cifar10", metrics=["valid-acc", "FLOPS"], release=folder, lazy=True, engine="numpy")
    assert set(bench(EXAMPLE)[200]) == {"valid-acc", "FLOPS"}
    with pytest.raises(UnknownName, match="valid-accuracy"):
        jahs.Benchmark("cifar10", metrics=["valid-accuracy"], release=folder, engine="numpy")


def test_a_sampled_config_has_no_epoch_and_one_that_has_is_answered(bench):
    config = bench.sample_config(random_state=3)
    assert config == bench.sample_config(random_state=np.int64(3)) == bench.sample(seed=3)
    assert "epoch" not in config
    assert bench({**config, "epoch": 42}, nepochs=7) == bench(config, nepochs=7)
    assert bench.sample_config() != bench.sample_config()


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng], ids=["RandomState", "Generator"])
def test_a_random_state_gives_other_configs_each_time_and_the_same_again(bench, make):
    first, again = make(5), make(5)
    drawn = [bench.sample_config(first) for _ in range(3)]
    assert drawn == [bench.sample_config(again) for _ in range(3)]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("state", ["5", 1.5, True, [3]], ids=repr)
def test_what_is_no_random_state_is_refused(bench, state):
    with pytest.raises(InvalidArgument, match="random_state="):
        bench.sample_config(state)


def test_a_table_has_the_published_metrics_by_epoch_and_the_losses_that_were_asked_for(tmp_path):
    folder = make_release(tmp_path / "digits", table=make_table("digits", 12))
    whole = jahs.Benchmark("digits", kind="table", release=folder)
    config = whole.sample_config(random_state=0)
    for bench in (whole, pickle.loads(pickle.dumps(whole))):
        assert {epoch: set(values) for epoch, values in bench(config, nepochs=1).items()} == {1: PUBLISHED}
    bench = jahs.Benchmark("digits", kind="table", release=folder, metrics=["valid-loss", "valid-acc"])
    result = bench.query(config)
    expected = {bench.max_epoch: {"valid-loss": result.valid_loss, "valid-acc": result.valid_acc}}
    assert bench(config) == pickle.loads(pickle.dumps(bench))(config) == expected
    assert [*bench(config, full_trajectory=True)[1]] == ["valid-loss", "valid-acc"]
