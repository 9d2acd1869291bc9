"""Models: the contract on both engines, the transforms' own bits, and the laws of a release's answers."""

from __future__ import annotations

import importlib.util
import json
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jahs
from jahs.errors import MissingData
from jahs.models.bounds import BoundedTransform, invert_row
from jahs.models.cost import n_macs, n_params
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.release import MetricModel, Models, read_release, write_release
from jahs.spaces.columns import codes as codes_of
from tests.contracts.oracle import OracleContract, is_same
from tests.jahs.models.noise_models import noise_model
from tests.releases import METRICS, make_release

ENGINES = ["numpy", "compiled"] if importlib.util.find_spec("numba") else ["numpy"]
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("surrogate") / "r", task="fashion_mnist_mini")


@pytest.fixture(scope="module")
def configs():
    return jahs.space().sample_columns(40, seed=9)


@pytest.mark.parametrize("engine", ENGINES)
class TestSurrogate(OracleContract):
    seeds = (None,)

    @pytest.fixture
    def oracle(self, folder, engine):
        return SurrogateOracle(read_release(folder), engine=engine)


@pytest.fixture(scope="module")
def two_families(tmp_path_factory):
    noise = noise_model("fashion_mnist_mini").to_dict()
    path = tmp_path_factory.mktemp("second") / "r"
    return make_release(path, task="fashion_mnist_mini", noise=noise, has_lightgbm=True)


class TestSecondFamily(OracleContract):
    @pytest.fixture
    def oracle(self, two_families):
        return SurrogateOracle(read_release(two_families), engine="numpy", model="lightgbm")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    noise = noise_model("fashion_mnist_mini").to_dict()
    return make_release(tmp_path_factory.mktemp("noisy") / "r", task="fashion_mnist_mini", noise=noise)


class TestSurrogateWithNoise(OracleContract):
    @pytest.fixture
    def oracle(self, noisy):
        return SurrogateOracle(read_release(noisy), engine="numpy")

    def test_a_seed_changes_the_accuracies_and_the_runtime_alone(self, oracle, codes):
        epochs = np.full(len(codes), 2)
        mean, drawn = (oracle.query_many(codes, epochs, seed=seed, metrics=tuple(oracle.metrics)) for seed in (None, 3))
        changed = {name for name in mean if (mean[name] != drawn[name]).any()}
        assert changed == {"train_acc", "valid_acc", "test_acc", "runtime"}


@pytest.fixture(scope="module")
def published(folder, tmp_path_factory):
    release = read_release(folder)
    models = dict(release.models.metrics)
    unclipped = replace(models["valid_acc"].transform, published=True)
    models["valid_acc"] = replace(models["valid_acc"], transform=unclipped)
    in_millions = {"unit": "million parameters", "by_epoch": True, "published_scale": 1.0}
    transform = BoundedTransform(lower=0.01, upper=1.6)
    models["n_params"] = MetricModel(pack=0, forest=0, transform=transform, overrides=in_millions)
    path = tmp_path_factory.mktemp("published") / "r"
    packs = release.models.packs
    write_release(
        path, manifest_facts=dict(release.facts) | {"task": release.task.name},
        models=Models(costs="published", packs=packs, metrics=models), forests=release.forests,
    )  # fmt: skip
    return path


class TestPublished(OracleContract):
    """A release whose costs come from models, as an imported one has."""

    seeds = (None,)
    is_exact = False

    @pytest.fixture
    def oracle(self, published):
        return SurrogateOracle(read_release(published), engine="numpy")

    def test_metrics_say_what_is_different(self, oracle):
        assert oracle.costs == "published"
        assert (oracle.metrics["n_params"].unit, oracle.metrics["n_params"].by_epoch) == ("million parameters", True)
        assert "n_macs" not in oracle.metrics


@pytest.mark.parametrize("published", [False, True], ids=["ours", "published"])
@given(data=st.data())
def test_one_answer_has_the_bits_of_the_transform(published, data):
    lower = data.draw(st.floats(-1e3, 1e3))
    transform = BoundedTransform(
        lower=lower, upper=lower + data.draw(st.floats(1e-3, 1e4)), slope=data.draw(st.floats(1e-2, 10.0)),
        margin=data.draw(st.sampled_from([1e-6, 1e-3, 0.1])), published=published,
    )  # fmt: skip
    answers = np.array(data.draw(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1)), np.float32)
    with np.errstate(under="ignore"):
        values = invert_row([transform] * len(answers), answers.tolist())
    assert np.array(values).tobytes() == transform.inverse(answers).tobytes()


def test_the_laws_of_a_release_hold_for_100_000_random_configs(folder):
    oracle = SurrogateOracle(read_release(folder))
    columns = jahs.space().sample_columns(100_000, seed=1)
    codes = codes_of(columns)
    X = jahs.encode(columns, 1)
    early, late = np.arange(len(codes)) % 11 + 1, np.arange(len(codes)) % 11 + 2
    names = tuple(oracle.metrics)
    before, after = (oracle.query_many(codes, epochs, seed=None, metrics=names) for epochs in (early, late))
    assert np.array_equal(before["n_params"], n_params(X, oracle.task))
    assert np.array_equal(before["n_macs"], n_macs(X, oracle.task))
    assert (after["runtime"] > before["runtime"]).all()
    assert before["latency"].tobytes() == after["latency"].tobytes()
    assert (before["latency"] > 0).all()
    for name in ("train_acc", "valid_acc", "test_acc"):
        for values in (before[name], after[name]):
            assert ((values >= 0) & (values <= 100)).all()
            assert np.ptp(values) > 1  # the made-up forests tell configs apart
    rows = slice(70_000, 70_100)
    alone = oracle.query_many(codes[rows], early[rows], seed=None, metrics=names)
    assert is_same(alone, {name: values[rows] for name, values in before.items()})


def test_the_laws_hold_for_drawn_trainings_too(noisy):
    oracle = SurrogateOracle(read_release(noisy))
    codes = codes_of(jahs.space().sample_columns(20_000, seed=2))
    epochs, seeds = np.arange(len(codes)) % 11 + 1, np.arange(len(codes)) % 5
    names = ("train_acc", "valid_acc", "test_acc", "runtime", "latency")
    before, after = (oracle.query_many(codes, e, seed=seeds, metrics=names) for e in (epochs, epochs + 1))
    assert (after["runtime"] > before["runtime"]).all()
    assert before["latency"].tobytes() == after["latency"].tobytes()
    for name in names[:3]:
        assert ((after[name] >= 0) & (after[name] <= 100)).all()
        assert (after[name] != oracle.query_many(codes, epochs + 1, seed=None, metrics=(name,))[name]).mean() > 0.9


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 30))
def test_how_a_batch_is_cut_does_not_matter(noisy_oracle, seed, size):
    oracle = noisy_oracle
    codes = codes_of(jahs.space().sample_columns(60, seed=seed))
    epochs = np.random.default_rng(seed).integers(1, 13, 60)
    for draw in (None, seed):
        whole = oracle.query_many(codes, epochs, seed=draw, metrics=("valid_acc", "runtime"))
        for first in range(0, 60, size):
            part = slice(first, first + size)
            answers = oracle.query_many(codes[part], epochs[part], seed=draw, metrics=("valid_acc", "runtime"))
            assert is_same(answers, {name: values[part] for name, values in whole.items()})


@pytest.fixture(scope="module")
def noisy_oracle(noisy):
    return SurrogateOracle(read_release(noisy), engine="numpy")


def test_threads_get_the_answers_that_one_gets(folder, configs):
    oracle = SurrogateOracle(read_release(folder))
    codes, names = codes_of(configs).tolist(), tuple(oracle.metrics)
    expected = [oracle.query(row, 3, seed=None, metrics=names) for row in codes]
    wrong = []

    def ask(start):
        for i in range(200):
            k = (start + i) % len(codes)
            if oracle.query(codes[k], 3, seed=None, metrics=names) != expected[k]:
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(7 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_another_process_and_a_pickled_benchmark_give_the_same_bits(folder, configs):
    bench = jahs.Benchmark("fashion_mnist_mini", release=folder, engine="numpy")
    columns = bench.query_many(configs, at=[3, 12])
    again = pickle.loads(pickle.dumps(bench)).query_many(configs, at=[3, 12])
    assert is_same(columns, again)
    code = (
        "import sys, pickle, json, jahs\n"
        "bench = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "found = bench.query_many(jahs.space().sample_columns(40, seed=9), at=[3, 12])\n"
        "print(json.dumps({name: values.tobytes().hex() for name, values in found.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(bench).hex()], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {name: values.tobytes().hex() for name, values in columns.items()}


def test_a_seed_without_a_noise_model_is_refused_not_ignored(folder, configs):
    oracle = SurrogateOracle(read_release(folder), engine="numpy")
    codes = codes_of(configs)
    with pytest.raises(MissingData, match=r"seed=3: .* has no noise\.json .* leave seed out"):
        oracle.query(codes[0].tolist(), 2, seed=3, metrics=("valid_acc",))
    with pytest.raises(MissingData, match="leave seed out"):
        oracle.query_many(codes, np.full(len(codes), 2), seed=3, metrics=("valid_acc",))
    assert oracle.query(codes[0].tolist(), 2, seed=3, metrics=("n_params",))["n_params"] > 0


@pytest.mark.parametrize("left_out", ["latency", "runtime"])
def test_a_release_may_lack_a_metric(tmp_path, left_out):
    names = [name for name in METRICS if name != left_out]
    oracle = SurrogateOracle(read_release(make_release(tmp_path / "r", metrics=names)), engine="numpy")
    assert set(oracle.metrics) == {*names, "n_params", "n_macs"}
