"""A training as an oracle: the contract, and what is kept between queries."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, NotRecorded
from jahs.models.cost import cost
from jahs.spaces.configs import config_codes
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from pipeline import live
from pipeline.live import LiveOracle
from pipeline.protocol import EPOCH_FIELDS
from pipeline.train import TrainedRun, train
from tests.contracts.oracle import OracleContract

TINY = replace(TASKS["digits"], n_train=300, n_valid=100, n_test=100, max_epoch=3, index_digest=None)
SMALL = space(fixed={"N": 1, "W": 4, "Resolution": 0.25, "LearningRate": 0.05, "TrivialAugment": False})
FINE = SMALL.sample(2, seed=3)
MEASURED = ("valid_acc", "runtime")


@pytest.fixture(scope="module")
def shared():
    return LiveOracle(TINY)


class TestLive(OracleContract):
    seeds = (None, 3)

    @pytest.fixture
    def oracle(self, shared):
        return shared

    @pytest.fixture
    def configs(self):
        return FINE


def spy(monkeypatch):
    trainings = []

    def watched(config, task, images, **keywords):
        trainings.append((keywords["seed"], keywords["epochs"]))
        return train(config, task, images, **keywords)

    monkeypatch.setattr(live, "train", watched)
    return trainings


def test_a_training_is_kept_and_goes_on_where_it_ended(monkeypatch):
    trainings = spy(monkeypatch)
    oracle = LiveOracle(TINY)
    codes = config_codes(FINE[0])
    two = oracle.trajectory(codes, np.array([1, 2]), seed=1, metrics=MEASURED)
    assert oracle.query(codes, 1, seed=1, metrics=MEASURED)["runtime"] == two["runtime"][0]
    three = oracle.trajectory(codes, np.array([1, 2, 3]), seed=1, metrics=MEASURED)
    assert three["runtime"][:2].tolist() == two["runtime"].tolist()
    assert (np.diff(three["runtime"]) > 0).all()
    oracle.query(codes, 1, seed=2, metrics=MEASURED)
    assert trainings == [(1, 2), (1, 3), (2, 1)]
    folder = oracle._folder
    assert folder.is_dir()
    del oracle
    gc.collect()
    assert not folder.exists()


def test_it_measures_what_the_training_loop_measures(shared):
    images = live.load_images(TINY, resolutions=(0.25,))[0.25]
    run = train(FINE[1], TINY, images, seed=3, epochs=2)
    columns = shared.trajectory(config_codes(FINE[1]), np.array([1, 2]), seed=3, metrics=EPOCH_FIELDS[:6])
    for name, column in zip(EPOCH_FIELDS[:6], run.epochs.T, strict=False):
        assert columns[name].tolist() == column.tolist()


def test_a_training_that_diverges_is_an_error_that_says_when(monkeypatch):
    def diverge(config, task, images, **keywords):
        rows = np.ones((2, len(EPOCH_FIELDS)))
        rows[1, 3] = np.nan
        return TrainedRun(status="diverged", epochs=rows, network=None)

    monkeypatch.setattr(live, "train", diverge)
    oracle = LiveOracle(TINY)
    codes = config_codes(FINE[0])
    with pytest.raises(NotRecorded, match="diverged in epoch 2; 1 epochs were measured"):
        oracle.query(codes, 2, seed=0, metrics=MEASURED)
    with pytest.raises(NotRecorded, match="with seed 0 diverged"):
        oracle.query(codes, 2, seed=None, metrics=MEASURED)
    assert oracle.query(codes, 1, seed=0, metrics=MEASURED)["valid_acc"] == 1.0


def test_a_benchmark_of_kind_live_trains():
    bench = jahs.Benchmark("digits", kind="live")
    result = bench.query(FINE[0], at=1, seed=3)
    assert 0 < result.valid_acc < 100
    assert result.cost > 0
    assert result.n_params == cost(FINE[0], TASKS["digits"])["n_params"]
    assert bench(FINE[0], nepochs=1)[1]["size_MB"] == result.n_params / 1e6
    with pytest.raises(InvalidArgument, match="reads no release"):
        jahs.Benchmark("digits", kind="live", release="somewhere")


def test_what_follows_from_the_config_is_answered_without_training(monkeypatch):
    monkeypatch.setattr(live, "train", lambda *_, **__: pytest.fail("trained"))
    (config,) = SMALL.sample(1, seed=5)
    bench = LiveOracle(TINY)
    answers = bench.trajectory(config_codes(config), np.array([1, 3]), seed=None, metrics=("n_params", "n_macs"))
    assert answers["n_macs"].tolist() == [cost(config, TINY)["n_macs"]] * 2


def test_a_task_with_a_batch_of_one_image_is_refused_before_it_trains():
    with pytest.raises(InvalidArgument, match="has a batch of one image"):
        LiveOracle(replace(TINY, n_train=2 * TINY.batch_size + 1))
