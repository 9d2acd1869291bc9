"""A second family of models answers everywhere as a benchmark does, and is named wherever its answers are kept."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import jahs
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch, UnknownName
from jahs.release import read_release
from jahs.release.manifest import to_json
from jahs.release.writing import extend_release
from jahs.simulate import Simulation, read_log
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release, make_table

ACCURACIES = ("train_acc", "valid_acc", "test_acc")
CONFIGS = jahs.space().sample(30, seed=0)
ONE = CONFIGS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("second") / "digits"
    noise = noise_model("digits").to_dict()
    return make_release(path, noise=noise, n_refits=2, table=make_table("digits", 12), has_lightgbm=True)


@pytest.fixture(scope="module")
def first(folder):
    return jahs.Benchmark("digits", release=folder, engine="numpy")


@pytest.fixture(scope="module")
def second(folder):
    return jahs.Benchmark("digits", release=folder, engine="numpy", model="lightgbm")


def test_its_accuracies_are_its_own_and_all_else_is_the_releases(first, second):
    one, other = first.query_many(CONFIGS), second.query_many(CONFIGS)
    assert list(one) == list(other)
    for name in one:
        assert (one[name].tobytes() == other[name].tobytes()) == (name not in ACCURACIES), name


def test_a_pickle_and_a_log_say_which_models_answered(second, tmp_path):
    again = pickle.loads(pickle.dumps(second))
    assert again.model == "lightgbm"
    assert again.query(ONE, seed=4) == second.query(ONE, seed=4)
    assert "lightgbm" in repr(second)
    Simulation(second, n_trials=2, log=tmp_path / "log").run(lambda told: CONFIGS[len(told)])
    assert read_log(tmp_path / "log").header["model"] == "lightgbm"


def test_a_log_of_one_family_is_not_compared_with_another(first, second, tmp_path):
    from jahs.comparison.claims import view_of

    Simulation(second, n_trials=2, log=tmp_path / "log").run(lambda told: CONFIGS[len(told)])
    header = read_log(tmp_path / "log").header
    view_of(header, second)
    with pytest.raises(ProtocolMismatch, match="model='lightgbm', but this comparison requires model=None"):
        view_of(header, first)


def test_what_it_does_not_have_is_refused(folder, second, tmp_path):
    with pytest.raises(MissingData, match="lightgbm has no refits; leave model out"):
        second.predict(ONE)
    with pytest.raises(InvalidArgument, match=r"refit=0 and model='lightgbm': refits are of the release's own models"):
        jahs.Benchmark("digits", release=folder, refit=0, model="lightgbm")
    with pytest.raises(InvalidArgument, match=r"model='lightgbm': kind='table' has no models"):
        jahs.Benchmark("digits", "table", release=folder, model="lightgbm")
    with pytest.raises(UnknownName, match="lightgbm"):
        jahs.Benchmark("digits", release=folder, model="quality")
    plain = make_release(tmp_path / "plain")
    with pytest.raises(MissingData, match=r"has no models of lightgbm \(lightgbm\.json\); leave model out"):
        jahs.Benchmark("digits", release=plain, model="lightgbm")


def test_a_release_can_be_given_a_second_family_and_keeps_its_other_files(folder, tmp_path):
    plain = make_release(tmp_path / "plain")
    before = {path.name: path.read_bytes() for path in plain.iterdir() if path.name != "manifest.json"}
    extend_release(read_release(plain), {}, families={"lightgbm": read_release(folder).family("lightgbm")})
    after = {path.name: path.read_bytes() for path in plain.iterdir() if path.name != "manifest.json"}
    assert {name: after[name] for name in before} == before
    assert sorted(after.keys() - before.keys()) == ["lightgbm-0.npz", "lightgbm.json"]
    read_release(plain).verify()
    np.testing.assert_array_equal(
        jahs.Benchmark("digits", release=plain, model="lightgbm").query_many(CONFIGS)["valid_acc"],
        jahs.Benchmark("digits", release=folder, model="lightgbm").query_many(CONFIGS)["valid_acc"],
    )


def test_a_family_is_read_only_when_it_is_asked_for_and_verified_with_the_rest(tmp_path):
    damaged = make_release(tmp_path / "damaged", has_lightgbm=True)
    (damaged / "lightgbm.json").write_bytes(to_json({"format": 1}))
    assert jahs.Benchmark("digits", release=damaged).query(ONE).valid_acc > 0
    with pytest.raises(CorruptFile, match=r"lightgbm\.json"):
        jahs.Benchmark("digits", release=damaged, model="lightgbm")
    with pytest.raises(CorruptFile, match=r"lightgbm\.json"):
        read_release(damaged).verify()
