"""Refits answer everywhere as a benchmark does, and `predict` says how far they and two trainings differ."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, MissingData, UnknownName
from jahs.queries.prediction import Prediction
from jahs.simulate import Simulation, read_log
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release, make_table

ACCURACIES = ("train_acc", "valid_acc", "test_acc")
N = 4
CONFIGS = jahs.space().sample(40, seed=0)
ONE = CONFIGS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("refits") / "digits"
    return make_release(path, n_refits=N, noise=noise_model("digits").to_dict(), table=make_table("digits", 12))


@pytest.fixture(scope="module")
def bench(folder):
    return jahs.Benchmark("digits", release=folder, engine="numpy")


@pytest.fixture(scope="module", params=["numpy", "auto"])
def worlds(folder, request):
    return [jahs.Benchmark("digits", release=folder, engine=request.param, refit=k) for k in range(N)]


def test_refits_differ_where_they_exist_and_else_answer_as_the_release(bench, worlds):
    columns = [world.query_many(CONFIGS) for world in (bench, *worlds)]
    for name in columns[0]:
        distinct = len({values[name].tobytes() for values in columns})
        assert distinct == (N + 1 if name in ACCURACIES else 1), name


def test_a_refit_answers_the_same_bits_in_every_form(bench, worlds):
    prediction = bench.predict(CONFIGS, at=[3, 12])
    one = bench.predict(ONE, at=3)
    for k, world in enumerate(worlds):
        many = world.query_many(CONFIGS, at=[3, 12], metrics=ACCURACIES)
        walk = world.trajectory(ONE, metrics=ACCURACIES)
        for name in ACCURACIES:
            np.testing.assert_array_equal(prediction.refits[name][..., k], many[name])
            assert one.refits[name][k] == many[name][0, 0] == walk[name][2]
            assert world.query(ONE, at=3).values[name] == many[name][0, 0]
        objectives = world.objectives(CONFIGS, metrics=["valid_acc", "latency"])
        np.testing.assert_array_equal(objectives[:, 0], 100 - many["valid_acc"][:, 1])
        view = world.view(fidelities=("epoch", "N"), fixed="default")
        whole = {**view.space.default(), "N": 1}
        config = {key: whole[key] for key in view.space.searched}
        assert view.query(config, at={"epoch": 4, "N": 1}).valid_acc == world.query(whole, at=4).valid_acc
        again = pickle.loads(pickle.dumps(world))
        assert again.refit == k
        assert again.query(ONE) == world.query(ONE)
        assert f"refit {k}" in repr(world)


def test_noise_is_drawn_around_the_refit(worlds):
    drawn = [world.query(ONE, seed=5).valid_acc for world in worlds]
    assert len(set(drawn)) == N
    assert drawn[0] != worlds[0].query(ONE).valid_acc


def test_the_header_of_a_log_names_the_refit(bench, worlds, tmp_path):
    for i, (asked, said) in enumerate(((bench, None), (worlds[2], 2))):
        path = tmp_path / f"{i}"
        trials = Simulation(asked, n_trials=3, log=path).run(lambda told: CONFIGS[len(told)])
        assert read_log(path).header.get("refit") == said
        assert trials[0].metrics["valid_acc"] == asked.query(trials[0].config).valid_acc


def test_a_prediction_has_the_shape_of_its_question(bench):
    one = bench.predict(ONE, metrics=["valid_acc"])
    assert isinstance(one, Prediction)
    assert one.mean == {"valid_acc": bench.query(ONE).valid_acc}
    assert all(type(each["valid_acc"]) is float for each in (one.mean, one.model_sd, one.noise_sd, one.total_sd))
    assert one.refits["valid_acc"].shape == (N,)
    assert one.quantile([0.1, 0.9])["valid_acc"].shape == (2,)
    assert bench.predict(ONE, at=[1, 2, 3]).mean["valid_acc"].shape == (3,)
    assert bench.predict(CONFIGS[:5], at=[1, 2]).quantile([0.1, 0.5, 0.9])["test_acc"].shape == (5, 2, 3)
    assert bench.predict(CONFIGS[:3], each_at=[1, 2, 3]).mean["valid_acc"].shape == (3,)
    assert bench.predict([]).mean["valid_acc"].shape == (0,)
    assert bench.predict(CONFIGS).metrics == ACCURACIES
    assert jahs.Benchmark("digits", release=bench.release, metrics=["runtime", "test_acc"]).predict(ONE).metrics == (
        "test_acc",
    )


def test_one_or_many_configs_or_columns_give_the_same_numbers(bench):
    pandas = pytest.importorskip("pandas")
    columns = jahs.space().sample_columns(30, seed=1)
    many = bench.predict(columns)
    frame = bench.predict(pandas.DataFrame(columns))
    for i, row in enumerate(pandas.DataFrame(columns).to_dict("records")):
        one = bench.predict(row)
        for name in ACCURACIES:
            for what in ("mean", "model_sd", "noise_sd", "total_sd"):
                values = getattr(many, what)[name]
                assert getattr(one, what)[name] == pytest.approx(values[i], rel=1e-12)
                np.testing.assert_array_equal(getattr(frame, what)[name], values)
            for of in ("model", "noise", "total"):
                assert one.quantile(0.9, of=of)[name] == pytest.approx(many.quantile(0.9, of=of)[name][i], rel=1e-12)
    assert bench.predict(pandas.Series(ONE)).mean == bench.predict(ONE).mean
    series, listed = (bench.predict(configs) for configs in (pandas.Series(CONFIGS[:3]), CONFIGS[:3]))
    np.testing.assert_array_equal(series.mean["valid_acc"], listed.mean["valid_acc"])
    assert series.shape == (3,)
    assert bench.predict(pandas.DataFrame(CONFIGS[:1])).shape == (1,)


def test_noise_is_that_of_draws_and_both_kinds_add(bench):
    found = bench.predict(CONFIGS[:8], at=9, metrics=["valid_acc"])
    drawn = np.stack([bench.query_many(CONFIGS[:8], at=9, seed=s)["valid_acc"] for s in range(3000)])
    np.testing.assert_allclose(found.noise_sd["valid_acc"], drawn.std(axis=0), rtol=0.06)
    X = jahs.encode(CONFIGS[:8], 9)
    ends = noise_model("digits").interval({"valid_acc": found.mean["valid_acc"]}, X, level=0.9, of="seed")["valid_acc"]
    np.testing.assert_allclose(found.quantile([0.05, 0.95], of="noise")["valid_acc"].T, ends)
    np.testing.assert_allclose(found.model_sd["valid_acc"], 2.0 * found.refits["valid_acc"].std(axis=1, ddof=1))
    total = np.hypot(found.model_sd["valid_acc"], found.noise_sd["valid_acc"])
    np.testing.assert_allclose(found.total_sd["valid_acc"], total)


def test_quantiles_rise_stay_in_bounds_and_intervals_of_the_total_contain_those_of_the_noise(bench):
    prediction = bench.predict(CONFIGS, at=[1, 12])
    levels = [0.001, 0.05, 0.5, 0.95, 0.999]
    for name in ACCURACIES:
        ends = {of: prediction.quantile(levels, of=of)[name] for of in ("model", "noise", "total")}
        for values in ends.values():
            assert (np.diff(values, axis=-1) >= 0).all()
            assert (values >= 0).all()
            assert (values <= 100).all()
        further = (ends["total"] - ends["noise"]) * [-1, -1, 0, 1, 1]
        assert (further >= -1e-9).all()
        np.testing.assert_allclose(ends["model"][..., 2], prediction.mean[name])
        np.testing.assert_allclose(ends["total"][..., 2], ends["noise"][..., 2])  # around the mean, not the median


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.5, float("nan"), "0.5", True, None, [0.5, 2], [[0.5], [1.0]]], ids=repr)
def test_a_quantile_outside_0_to_1_is_refused(bench, q):
    with pytest.raises(InvalidArgument, match=r"q=.* must be a number above 0 and below 1"):
        bench.predict(ONE).quantile(q)
    with pytest.raises(UnknownName, match=r"'nois'.*noise"):
        bench.predict(ONE).quantile(0.5, of="nois")


def test_a_table_has_a_row_for_each_answer_and_the_repr_says_the_numbers(bench):
    pytest.importorskip("pandas")
    frame = bench.predict(CONFIGS[:3], at=[2, 4], metrics=["valid_acc"]).to_pandas()
    assert list(frame.columns) == [
        "config",
        "epoch",
        "valid_acc",
        *(f"valid_acc_{x}_sd" for x in ("model", "noise", "total")),
    ]
    assert frame["config"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["epoch"].tolist() == [2, 4] * 3
    assert list(bench.predict(ONE).to_pandas()["config"]) == [0]
    found = bench.predict(ONE, metrics=["valid_acc"])
    assert f"1 answer: valid_acc {found.mean['valid_acc']:.1f} ± {found.total_sd['valid_acc']:.1f} (model" in repr(
        found
    )
    assert "6 answers, on average" in repr(bench.predict(CONFIGS[:3], at=[2, 4]))
    assert "0 answers" in repr(bench.predict([]))


def test_a_view_predicts_at_its_own_fidelities(bench):
    view = bench.view(fidelities=("epoch", "N"), fixed="default")
    whole = {**view.space.default(), "N": 3}
    prediction = view.predict({key: whole[key] for key in view.space.searched}, at={"epoch": 4, "N": 3})
    assert prediction.mean == bench.predict(whole, at=4).mean


def test_a_frame_of_predictions_names_the_fidelities_of_a_view(bench):
    pytest.importorskip("pandas")
    view = bench.view(fidelities=("epoch", "N"), fixed="default")
    assert list(view.predict(view.space.sample(seed=0)).to_pandas().columns[:3]) == ["config", "epoch", "N"]


def test_bad_questions_are_refused_by_name(bench):
    with pytest.raises(
        UnknownName, match="latency has no refits; metrics with refits are train_acc, valid_acc, test_acc"
    ):
        bench.predict(ONE, metrics=["latency", "valid_acc"])
    with pytest.raises(UnknownName, match="loss"):
        bench.predict(ONE, metrics=["loss"])
    with pytest.raises(InvalidConfig, match="N=2"):
        bench.predict({**ONE, "N": 2})
    with pytest.raises(InvalidConfig):
        bench.predict({})
    with pytest.raises(InvalidFidelity):
        bench.predict(ONE, at=13)


@pytest.mark.parametrize(
    ("refit", "error", "match"),
    [
        (N, UnknownName, r"refit=4 does not exist; .* has the refits 0 to 3"),
        (-1, UnknownName, r"refit=-1 does not exist"),
        (1.0, InvalidArgument, r"refit=1.0 is not an integer"),
        (True, InvalidArgument, r"refit=True is not an integer"),
        ("1", InvalidArgument, r"refit='1' is not an integer"),
    ],
)
def test_a_refit_that_does_not_exist_is_refused(folder, refit, error, match):
    with pytest.raises(error, match=match):
        jahs.Benchmark("digits", release=folder, refit=refit)


def test_a_release_without_refits_says_so(tmp_path, folder):
    plain = make_release(tmp_path / "plain", table=make_table("digits", 12))
    with pytest.raises(MissingData, match=r"has no refits \(refits\.json\)"):
        jahs.Benchmark("digits", release=plain, refit=0)
    with pytest.raises(MissingData, match=r"has no refits \(refits\.json\)"):
        jahs.Benchmark("digits", release=plain).predict(ONE)
    with pytest.raises(InvalidArgument, match=r"refit=0: kind='table' has no models"):
        jahs.Benchmark("digits", "table", release=folder, refit=0)
    with pytest.raises(MissingData, match="has no models"):
        jahs.Benchmark("digits", "table", release=folder).predict(ONE)
    quiet = make_release(tmp_path / "quiet", n_refits=2)
    with pytest.raises(MissingData, match=r"has no noise\.json"):
        jahs.Benchmark("digits", release=quiet).predict(ONE)
    assert jahs.Benchmark("digits", release=quiet, refit=1).query(ONE).valid_acc > 0


def test_refits_are_read_only_when_they_are_asked_for(folder, tmp_path):
    import shutil

    copy = shutil.copytree(folder, tmp_path / "copy")
    for name in ("refits.json", "refits-0.npz"):
        (copy / name).write_bytes(b"")
    assert jahs.Benchmark("digits", release=copy).query(ONE).valid_acc > 0
