"""An imported release made exact: the contract of our own releases holds for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jahs
from jahs.models.bounds import BoundedTransform
from jahs.models.features import feature_set
from jahs.queries.oracles.repaired import RepairedOracle
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.release import MetricModel, Models, Pack, read_release, write_release
from jahs.spaces.columns import codes as codes_of
from jahs.tasks.metrics import METRICS
from tests.contracts.oracle import OracleContract, is_same
from tests.releases import make_forest

NAMES = ("train_acc", "valid_acc", "test_acc", "latency", "runtime", "n_params", "n_macs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release as `jahs import` writes it: seven forests over the published columns, each of them sees the epoch."""
    features = feature_set("published")
    forest = make_forest(features, task="cifar10", n_forests=len(NAMES), rise=0.2, n_trees=30)
    models = {
        name: MetricModel(pack=0, forest=i, transform=BoundedTransform(lower=0.5, upper=99.0, published=True))
        for i, name in enumerate(NAMES)
    }
    path = tmp_path_factory.mktemp("imported") / "cifar10"
    write_release(
        path,
        manifest_facts={"task": "cifar10"},
        models=Models(costs="repaired", packs=(Pack(file="forests-0", features=features),), metrics=models),
        forests=[forest],
    )
    return path


@pytest.fixture
def configs():
    return jahs.space().sample_columns(6, seed=2)


@pytest.fixture
def published(folder):
    return SurrogateOracle(read_release(folder), engine="numpy")


class TestRepaired(OracleContract):
    seeds = (None,)

    @pytest.fixture
    def oracle(self, published):
        return RepairedOracle(published)


def test_what_is_repaired_needed_it_and_the_rest_is_as_published(published, configs):
    repaired = RepairedOracle(published)
    codes = codes_of(configs)
    epochs = np.arange(1, 201)
    fell = 0
    for row in codes.tolist():
        before, after = (o.trajectory(row, epochs, seed=None, metrics=NAMES) for o in (published, repaired))
        fell += int((np.diff(before["runtime"]) < 0).sum())
        assert (after["runtime"] >= before["runtime"]).all()
        assert np.ptp(before["latency"]) > 0
        assert after["latency"][0] == before["latency"][-1]
        assert is_same(*({name: answers[name] for name in NAMES[:3]} for answers in (before, after)))
    assert fell > 0


def test_one_walk_answers_for_every_row_of_a_config(published, configs, monkeypatch):
    repaired = RepairedOracle(published)
    codes = codes_of(configs)
    chosen = np.random.default_rng(0).permutation(np.repeat(np.arange(len(codes)), 20))
    epochs = np.random.default_rng(1).integers(1, 201, len(chosen))
    pairs = zip(codes[chosen].tolist(), epochs.tolist(), strict=True)
    alone = [repaired.query(row, epoch, seed=None, metrics=("runtime",))["runtime"] for row, epoch in pairs]
    walks = []
    walk = published.trajectory
    monkeypatch.setattr(published, "trajectory", lambda *args, **kwargs: walks.append(args) or walk(*args, **kwargs))
    assert repaired.query_many(codes[chosen], epochs, seed=None, metrics=("runtime",))["runtime"].tolist() == alone
    assert len(walks) == len(codes)


def test_it_says_what_it_is(published):
    repaired = RepairedOracle(published)
    assert (published.costs, repaired.costs) == ("repaired", "repaired")
    assert repaired.metrics["n_macs"] == METRICS["n_macs"]
    assert repaired.metrics["latency"] == METRICS["latency"]
    described = repaired.metrics["runtime"].description
    assert repaired.metrics["runtime"] == replace(METRICS["runtime"], description=described)
    assert described.endswith("as published but made strictly increasing.")
    assert "may fall" not in described
