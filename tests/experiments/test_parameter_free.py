"""Operations without parameters: more replaced edges contain fewer, trained configs are of the test part alone."""

from types import SimpleNamespace

import numpy as np
import pytest

import jahs
from experiments.science import parameter_free
from experiments.science.__main__ import main
from experiments.science.parameter_free import (
    FREE,
    N_REPEATS,
    changes_of,
    held_out_answers,
    replaced,
    study_of,
    with_fewer_parameters,
)
from experiments.science.subjects import open_subject
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import validate_columns
from splits.split import Split, write_split
from surrogate.models.refits import weights_of
from tests.experiments.conftest import page_written_twice
from tests.releases import make_release, make_table

TABLE = make_table("digits", 40)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    path = tmp_path_factory.mktemp("releases") / "digits"
    return make_release(path, n_refits=3, table=TABLE, has_lightgbm=True)


def split_of(parts):
    order = np.argsort(TABLE.configs["config_id"])
    ids = TABLE.configs["config_id"][order]
    return Split(config_ids=ids, parts=parts[order].astype(np.int8), seed=0, task="digits", protocol="0" * 16)


PARTS = np.arange(40) % 3


def test_more_replaced_edges_are_those_of_fewer_and_one_more():
    rng = np.random.default_rng(0)
    ops = rng.integers(0, 5, (20, 6))
    order = rng.permuted(np.tile(np.arange(6), (20, 1)), axis=1)
    before = ops
    for n in range(7):
        now = with_fewer_parameters(ops, 4, n, order)
        assert ((now == 4).sum(axis=1) >= n).all()
        assert ((now == before) | (now == 4)).all()
        before = now
    assert (before == 4).all()


def test_no_replacement_is_the_prediction_itself_and_all_are_the_cell_alone(release):
    bench = jahs.Benchmark("digits", release=release)
    configs = jahs.space().sample_columns(6, seed=1)
    predictions = replaced([bench], configs, {}).values
    for name, code in FREE.items():
        np.testing.assert_allclose(predictions[name][0, 0], bench.query_many(configs)["valid_acc"])
        alone = {**configs, **{f"Op{i}": np.full_like(configs["Op1"], code) for i in range(1, 7)}}
        np.testing.assert_allclose(predictions[name][0, 6], bench.query_many(alone)["valid_acc"])


def test_a_change_is_measured_where_both_configs_are_recorded(release):
    bench = jahs.Benchmark("digits", release=release)
    config = {**jahs.space().default(), **{f"Op{i}": i % 2 for i in range(1, 7)}}  # identities and zeros
    alone = {**config, **{f"Op{i}": FREE["pooling"] for i in range(1, 7)}}
    configs = validate_columns({key: [value] for key, value in config.items()})
    known = {jahs.config_id(config): 70.0, jahs.config_id(alone): 58.0}
    found = replaced([bench], configs, known)
    predicted = bench.query(config).valid_acc
    np.testing.assert_allclose(found.values["pooling"][0, [0, -1], 0], [predicted, predicted - 12])
    assert found.values["zero"][0, -1, 0] == pytest.approx(replaced([bench], configs, {}).values["zero"][0, -1, 0])
    assert found.n_measured == N_REPEATS  # once in every draw
    assert found.n <= 3 * 6 * N_REPEATS  # an identity that replaces an identity changes nothing


def test_a_recorded_config_is_predicted_by_the_refits_that_were_not_fitted_to_it(release, monkeypatch):
    subject, split = open_subject("digits", release), split_of(PARTS)
    ids, fitted = TABLE.configs["config_id"], split.config_ids[split.parts != 2]
    columns = {key: TABLE.configs[key] for key in CONFIG_KEYS}
    predicted = np.array([refit.query_many(columns)["valid_acc"] for refit in subject.refits])
    models = SimpleNamespace(counts={"valid_acc": {"configs": len(fitted)}})
    known = SimpleNamespace(table=TABLE, refits=SimpleNamespace(facts={"seed": 7}), models=models)
    monkeypatch.setattr(parameter_free, "release_of", lambda _: known)
    answered = held_out_answers(subject, split, columns)
    n_all = 0
    for i, config_id in enumerate(ids):
        at = np.flatnonzero(fitted == config_id)
        is_out = [not weights_of(fitted, refit=k, seed=7)[at].any() for k in range(3)]
        n_all += all(is_out)
        np.testing.assert_allclose(answered[i], predicted[is_out, i].mean() if any(is_out) else np.nan)
    assert 13 <= n_all < 40  # the test configs, and those that no sample has

    models.counts["valid_acc"]["configs"] += 1  # then the samples are not known
    is_test = split.parts_of(ids) == 2
    np.testing.assert_allclose(
        held_out_answers(subject, split, columns), np.where(is_test, predicted.mean(axis=0), np.nan)
    )


def test_trained_accuracies_are_of_the_test_part_and_intervals_hold_every_change_to_none(release):
    subject = open_subject("digits", release)
    study = study_of(subject, split_of(PARTS))
    assert len(study.measured) == len(study.predicted) == len(study.ops) == (PARTS == 2).sum()
    for changes in study.changes.values():
        assert changes[0] == Interval(value=0.0, low=0.0, high=0.0)
        assert all(change.low <= change.high for change in changes)
    on_lightgbm = jahs.Benchmark("digits", release=release, model="lightgbm")
    tests = {key: TABLE.configs[key][PARTS == 2] for key in CONFIG_KEYS}
    alone = on_lightgbm.query_many({**tests, **{f"Op{i}": np.full(len(tests["Op1"]), 4) for i in range(1, 7)}})
    expected = np.mean(alone["valid_acc"] - on_lightgbm.query_many(tests)["valid_acc"])
    assert study.on_lightgbm["pooling"][-1] == pytest.approx(expected)
    with pytest.raises(InvalidArgument, match="no config of the test part"):
        study_of(subject, split_of(PARTS * 0))


def test_a_change_is_that_of_the_released_model_and_its_interval_spreads_over_the_refits():
    changes = np.array([-10.0, *range(-8, 0)])[:, None, None]  # of the released model and eight refits
    no_change, change = changes_of(np.concatenate([0 * changes, changes], axis=1).repeat(5, axis=2))
    assert no_change == Interval(value=0.0, low=0.0, high=0.0)
    assert change == Interval(value=-10.0, low=-8.0, high=-1.0)


def test_the_page_says_what_is_predicted_and_what_was_trained_and_is_the_same_again(release, tmp_path, caplog):
    (tmp_path / "data" / "digits").mkdir(parents=True)
    write_split(tmp_path / "data" / "digits" / "split.json", split_of(PARTS))
    arguments = ["parameter_free", "--task", "digits", "--release", str(release), "--docs"]
    assert main([*arguments, "--out", str(tmp_path / "none")]) == 2
    assert "parameter_free needs the split of a task; add --data data" in caplog.text
    files = page_written_twice(main, [*arguments, "--data", str(tmp_path / "data")], tmp_path)
    one = files["report.md"].decode()
    assert "No such config was trained for this figure" in one
    assert "change of the predicted accuracy by two identities (2 of 6 operations, points)" in one
    assert "or the release's value is on the other side of 0." in one
    assert "not recorded" in one
    assert "| quantity | task | XGBoost | LightGBM | same sign |" in one
