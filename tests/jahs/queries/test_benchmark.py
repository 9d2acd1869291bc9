"""The benchmark: what it answers, and how it says no."""

from __future__ import annotations

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import jahs
from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    InvalidConfig,
    InvalidFidelity,
    MissingData,
    NotRecorded,
    ProtocolMismatch,
    UnknownFormat,
    UnknownName,
)
from jahs.files.tables import read_table, write_table
from jahs.queries import benchmark
from jahs.queries.oracles import opening
from jahs.queries.references import build_references
from jahs.schema import CONFIG_COLUMNS, PROFILE_COLUMNS, RUN_COLUMNS
from jahs.spaces.columns import rows
from jahs.tasks.metrics import LEARNED
from jahs.tasks.pareto import is_non_dominated
from tests.hostile import SEEDS
from tests.releases import METRICS, make_release, make_table

NAMES = (*METRICS, "n_params", "n_macs")
TABLE = make_table("digits", 21)
WRONG_EPOCHS = [
    0,
    -1,
    13,
    1.5,
    2.0,
    np.float64(3),
    float("nan"),
    float("inf"),
    "5",
    True,
    np.True_,
    None.__class__,
    [5],
    1e300,
    10**30,
    b"5",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    quality = {"format": 1, "valid_acc": {"kendall_tau": 0.9}}
    return make_release(tmp_path_factory.mktemp("releases") / "digits", table=TABLE, quality=quality)


@pytest.fixture(scope="module")
def bench(folder):
    return jahs.Benchmark("digits", release=folder, engine="numpy")


@pytest.fixture(scope="module")
def table(folder):
    return jahs.Benchmark("digits", kind="table", release=folder)


@pytest.fixture
def runs(tmp_path):
    """A folder of runs."""
    pytest.importorskip("pyarrow")
    from tests.building import make_runs_folder

    return make_runs_folder(tmp_path / "runs" / "digits", 20)


@pytest.fixture(scope="module")
def config(bench):
    return bench.sample(seed=0)


def test_a_query_answers_every_metric_and_says_what_it_answered(bench, config):
    result = bench.query(config, at=5)
    assert set(result.as_dict()) == set(NAMES) == set(bench.metrics)
    assert result.valid_acc == result.as_dict()["valid_acc"]
    assert result.error == 100 - result.valid_acc
    assert result.cost == result.runtime
    assert (result.fidelity, result.seed, result.costs) == ({"epoch": 5}, None, "exact")
    assert json.loads(json.dumps(result.as_dict())) == result.as_dict()
    assert pickle.loads(pickle.dumps(result)) == result


def test_the_last_epoch_is_asked_about_unless_said_otherwise(bench, config):
    assert bench.query(config) == bench.query(config, at=12) == bench.query(config, at={"epoch": np.int64(12)})
    assert bench.query(config, at=np.int8(3)) == bench.query(config, at=3) != bench.query(config, at=4)
    assert bench.query(config, at=np.array(3)).fidelity == {"epoch": 3}


def test_a_result_without_a_metric_says_which_it_has(bench, config):
    result = bench.query(config, metrics=["runtime"])
    assert result.as_dict() == {"runtime": result.cost}
    with pytest.raises(AttributeError, match="valid_acc is not in this result, which has runtime; see metrics="):
        _ = result.error
    with pytest.raises(AttributeError, match="no attribute 'val_acc'; did you mean 'valid_acc'"):
        _ = result.val_acc
    with pytest.raises(AttributeError, match=r"no attribute 'beauty'$"):
        _ = result.beauty
    with pytest.raises(AttributeError):
        result.seed = 3


def test_metrics_are_given_by_our_names_or_the_published_ones(bench, config):
    values = bench.query(config, metrics=("FLOPS", "valid-acc", "n_macs")).as_dict()
    assert list(values) == ["n_macs", "valid_acc"]
    some = jahs.Benchmark("digits", release=bench.release, metrics=["valid-acc", "size_MB"], engine="numpy")
    assert list(some.metrics) == list(some.query(config).as_dict()) == ["valid_acc", "n_params"]
    assert some.query(config, metrics=["runtime"]).cost == bench.query(config).cost


@pytest.mark.parametrize(("metrics", "message"), [
    (["beauty"], r"metric='beauty' does not exist; metric is one of: train_acc, .*n_macs"),
    (["valid_ac"], "did you mean 'valid_acc'"),
    (["valid_loss"], "metric='valid_loss' is recorded, not predicted: ask a table"),
    ([3], "metric='3' does not exist"),
    ([None], "metric='None' does not exist"),
    ([[]], "does not exist"),
    ("valid_acc", r"is not a list of names; for one metric give \['valid_acc'\]"),
    ("valid-acc", r"is not a list of names; for one metric give \['valid-acc'\]"),
    ("valid", r"^metric='valid' does not exist \(did you mean 'valid_acc'\?\); metric is one of: train_acc"),
    ("valid_loss", "^metric='valid_loss' is recorded, not predicted: ask a table"),
    (3, "^metrics=3 is not a list of names; give some of train_acc, "),
    ([], "metrics is empty"),
], ids=repr)  # fmt: skip
def test_metrics_that_do_not_exist_list_those_that_do(bench, config, metrics, message):
    for ask in (
        lambda: bench.query(config, metrics=metrics),
        lambda: bench.query_many([config], metrics=metrics),
        lambda: bench.trajectory(config, metrics=metrics),
        lambda: jahs.Benchmark("digits", release=bench.release, metrics=metrics, engine="numpy"),
    ):
        with pytest.raises((UnknownName, InvalidArgument), match=message):
            ask()


@pytest.mark.parametrize("epoch", WRONG_EPOCHS, ids=repr)
def test_an_epoch_that_is_none_is_refused_with_the_allowed_range(bench, config, epoch):
    asks = [
        lambda: bench.query(config, at=epoch),
        lambda: bench.query(config, at={"epoch": epoch}),
        lambda: bench.query_many([config], at=[5, epoch]),
        lambda: bench.query_many([config], each_at=[epoch]),
        lambda: bench.trajectory(config, to=epoch),
        lambda: bench.trajectory(config, frm=epoch),
        lambda: bench(config, nepochs=epoch),
    ]
    if not isinstance(epoch, list):
        asks.append(lambda: bench.query_many([config], at=epoch))
    for ask in asks:
        with pytest.raises(InvalidFidelity, match=r"is not an integer in 1\.\.12"):
            ask()


def test_epochs_in_an_array_are_checked_as_well(bench, config):
    for wrong in ([5, 13], [0, 5]):
        with pytest.raises(InvalidFidelity, match=rf"at={13 if 13 in wrong else 0} is not"):
            bench.query_many([config], at=np.array(wrong))
    for wrong in (np.array([1.0]), np.array([True]), np.array(["5"])):
        with pytest.raises(InvalidFidelity):
            bench.query_many([config], each_at=wrong)


def test_several_epochs_of_one_query_are_told_to_query_many(bench, config):
    with pytest.raises(InvalidFidelity, match=r"^at=\[3, 5\] is not an integer in 1\.\.12; query_many takes several$"):
        bench.query(config, at=[3, 5])
    with pytest.raises(InvalidFidelity, match=r"^at=\[3, 5\] is not an integer in 1\.\.12$"):
        bench.query_many([config], at=[[3, 5]])
    with pytest.raises(InvalidFidelity, match=r"^nepochs=\[3\] is not an integer in 1\.\.12$"):
        bench(config, nepochs=[3])


def test_a_size_is_a_fidelity_only_in_a_view(bench, config):
    with pytest.raises(InvalidFidelity, match=r"N is searched here.*bench\.view"):
        bench.query(config, at={"N": 3})
    with pytest.raises(InvalidFidelity, match="'nepochs' is not a fidelity"):
        bench.query(config, at={"epoch": 3, "nepochs": 3})


def test_a_fidelity_that_is_not_named_is_the_last_epoch_as_in_a_view(bench, config):
    view = bench.view(fixed="default", search="all")
    assert bench.fidelities == {"epoch": tuple(range(1, 13))}
    assert bench.query(config, at={}).fidelity == {"epoch": bench.max_epoch}
    assert bench.fidelity({}) == view.fidelity({})


def test_every_wrong_fidelity_of_a_list_is_named_with_its_position(bench, config):
    with pytest.raises(InvalidFidelity) as refused:
        bench.query_many([config] * 4, each_at=[1, 99, 1, -3])
    first, second = str(refused.value).splitlines()
    assert first == "each_at=99 is not an integer in 1..12 (position 1)"
    assert second == "each_at=-3 is not an integer in 1..12 (position 3)"
    with pytest.raises(InvalidFidelity, match=r"\.\.\. 7 of 7 are wrong"):
        bench.query_many([config] * 7, each_at=np.full(7, 99))


def test_predictions_without_a_metric_that_has_refits_are_refused(bench):
    latency = jahs.Benchmark(bench.task.name, release=bench.release, metrics=["latency"], engine="numpy")
    with pytest.raises((UnknownName, MissingData)):
        latency.predict(latency.sample(seed=0))


@pytest.mark.parametrize(("budget", "epoch"), [
    (2.469, 2), (2.5, 2), (3.5, 4), (0.51, 1), (12.4, 12), (7, 7), (np.float32(6.9), 7), (np.int64(3), 3),
    ({"epoch": 2.469}, 2), (None, 12), (np.array(2.6), 3),
], ids=repr)  # fmt: skip
def test_budgets_are_rounded_half_to_even_in_one_place(bench, budget, epoch):
    assert bench.fidelity(budget) == {"epoch": epoch}


@pytest.mark.parametrize("budget", [0.5, 0.4, 12.51, 0, 13, -3.0, np.nan, np.inf, "5", True, [3], {"N": 3}], ids=repr)
def test_budgets_out_of_range_are_refused(bench, budget):
    with pytest.raises(InvalidFidelity):
        bench.fidelity(budget)


@pytest.mark.parametrize("budget", [np.nan, np.inf, -np.inf, np.float32("nan")], ids=repr)
def test_advice_is_never_the_call_that_failed(bench, config, budget):
    with pytest.raises(InvalidFidelity, match=r"at=-?(nan|inf) is not a finite number$"):
        bench.fidelity(budget)
    with pytest.raises(InvalidFidelity, match=r"at=-?(nan|inf) is not an integer in 1\.\.12$"):
        bench.query(config, at=budget)
    with pytest.raises(InvalidFidelity, match=r"at=2\.5 is not an integer in 1\.\.12; bench\.fidelity\(\) rounds$"):
        bench.query(config, at=2.5)


def test_faults_of_a_config_are_all_told_at_once(bench, config):
    bad = {**config, "N": 4, "Op1": 7, "LearningRate": "fast"}
    del bad["W"]
    for ask in (lambda: bench.query(bad), lambda: bench(bad), lambda: bench.trajectory(bad)):
        with pytest.raises(InvalidConfig) as fault:
            ask()
        assert sorted(line.split("=")[0].split()[0] for line in fault.value.faults) == ["LearningRate", "N", "Op1", "W"]
    with pytest.raises(InvalidConfig, match=r"N=4 .*\(config 1\)"):
        bench.query_many([config, {**config, "N": 4}])
    with pytest.raises(InvalidConfig, match="epoch is not a key of a config"):
        bench.query({**config, "epoch": 5})


def test_batches_come_one_by_one_or_as_columns_with_the_same_bits(bench):
    columns = jahs.space().sample_columns(30, seed=4)
    by_columns, by_rows = bench.query_many(columns, at=7), bench.query_many(rows(columns), at=7)
    alone = [bench.query(one, at=7).as_dict() for one in rows(columns)]
    for name in NAMES:
        assert by_columns[name].dtype == np.float64
        assert by_columns[name].tobytes() == by_rows[name].tobytes()
        assert by_columns[name].tolist() == [one[name] for one in alone]


def test_several_epochs_give_a_column_for_each_and_each_at_one_for_each_config(bench):
    columns = jahs.space().sample_columns(5, seed=4)
    wide = bench.query_many(columns, at=[5, 12])
    assert {values.shape for values in wide.values()} == {(5, 2)}
    for j, epoch in enumerate((5, 12)):
        assert wide["valid_acc"][:, j].tobytes() == bench.query_many(columns, at=epoch)["valid_acc"].tobytes()
    for epochs in ([1, 2, 3, 4, 12], np.array([1, 2, 3, 4, 12], np.int16), [{"epoch": e} for e in (1, 2, 3, 4, 12)]):
        narrow = bench.query_many(columns, each_at=epochs)
        assert narrow["runtime"][4] == wide["runtime"][4, 1]
        assert narrow["runtime"].shape == (5,)


def test_a_trajectory_is_the_queries_at_its_epochs(bench, config):
    walk = bench.trajectory(config, frm=2, to=11, step=3)
    assert walk["epoch"].tolist() == [2, 5, 8, 11]
    for i, epoch in enumerate(walk["epoch"].tolist()):
        assert {name: walk[name][i] for name in NAMES} == bench.query(config, at=epoch).as_dict()
    assert len(bench.trajectory(config)["epoch"]) == 12
    with pytest.raises(InvalidFidelity, match="frm=5 is after to=3"):
        bench.trajectory(config, frm=5, to=3)
    with pytest.raises(InvalidFidelity, match=r"step=0 is not an integer in 1\.\.12"):
        bench.trajectory(config, step=0)


@pytest.mark.parametrize("seed", [s for s in SEEDS if s is not None])
def test_seeds_that_are_none_are_refused(bench, config, seed):
    asks = [
        lambda: bench.query(config, seed=seed),
        lambda: bench.trajectory(config, seed=seed),
        lambda: bench.sample(seed=seed),
    ]
    if not isinstance(seed, list):
        asks.append(lambda: bench.query_many([config], seed=seed))
    for ask in asks:
        with pytest.raises(InvalidArgument, match=r"seed=.* is not an integer in 0\.\.2\*\*63-1, or None"):
            ask()


def test_seeds_of_a_batch_are_one_or_one_for_each(table):
    configs = [rows(TABLE.configs)[20]] * 3
    each = table.query_many(configs, at=4, seed=np.array([0, 1, 2]))["valid_acc"]
    assert each.tolist() == [table.query(configs[0], at=4, seed=seed).valid_acc for seed in (0, 1, 2)]
    wide = table.query_many(configs, at=[4, 5], seed=np.array([0, 1, 2]))["valid_acc"]
    assert wide[:, 0].tolist() == each.tolist()
    for wrong in (np.array([0, 1]), np.array([0.0, 1.0, 2.0]), np.array([0, 1, -1]), np.array([[0, 1, 2]])):
        with pytest.raises(InvalidArgument, match="seed"):
            table.query_many(configs, at=4, seed=wrong)


@pytest.mark.parametrize("give", [list, tuple, np.array, range, "Series"], ids=str)
def test_one_seed_for_each_config_comes_in_any_form_of_a_list(table, give):
    if give == "Series":
        give = pytest.importorskip("pandas").Series
    seeds = range(3) if give is range else give([0, 1, 2])
    configs = [rows(TABLE.configs)[20]] * 3
    for many in (table, table.view()):
        batch = many.query_many(configs, at=[4, 5], seed=seeds)["valid_acc"]
        assert batch.tolist() == table.query_many(configs, at=[4, 5], seed=np.array([0, 1, 2]))["valid_acc"].tolist()
        with pytest.raises(
            InvalidArgument, match=r"of shape \(3,\); give an integer, or an array of one for each of 2 con"
        ):
            many.query_many(configs[:2], at=[4, 5], seed=seeds)


@pytest.mark.parametrize(
    "seed", [[1, True], [1, -1], [1, 2.0], [1, None], ["1", "2"], [1, 2**63], [[1], [2]]], ids=repr
)
def test_a_list_of_seeds_is_read_one_by_one(bench, config, seed):
    with pytest.raises(InvalidArgument, match="seed="):
        bench.query_many([config, config], seed=seed)


def test_an_array_of_no_dimensions_is_one_seed(table):
    config = rows(TABLE.configs)[20]
    for seed in (np.array(1), np.int8(1)):
        assert table.query(config, seed=seed) == table.query(config, seed=1)
        assert table.query_many([config], seed=seed)["valid_acc"] == table.query(config, seed=1).valid_acc
    with pytest.raises(InvalidArgument, match=r"or None, or an array of one for each of 1 configs$"):
        table.query_many([config], seed=1.5)


@pytest.mark.parametrize("at", [[1, 6, 12], [1, 12]], ids=repr)
def test_what_is_not_recorded_is_named_by_the_config_as_it_was_given(table, at):
    recorded, stranger = rows(TABLE.configs)[3], jahs.space().sample(seed=123)
    for many in (table, table.view()):
        for configs, places in (
            ([recorded, stranger], [1]),
            ([stranger, recorded, stranger], [0, 2]),
            ([stranger], []),
        ):
            with pytest.raises(NotRecorded) as caught:
                many.query_many(configs, at=at, metrics=["valid_acc"])
            lines = str(caught.value).splitlines()
            assert len(lines) == max(len(places), 1)
            assert all(line.endswith(f"(config {place})") for line, place in zip(lines, places, strict=False))
            assert ("(config" in lines[0]) == bool(places)
        with pytest.raises(NotRecorded, match=r"(?s)\(config 5\)\n\.\.\. 7 of 8 are not recorded$") as caught:
            many.query_many([recorded, *[stranger] * 7], at=at, metrics=["valid_acc"])
        assert len(pickle.loads(pickle.dumps(caught.value)).faults) == 7


def test_what_diverged_is_named_at_the_first_epoch_that_is_missing(tmp_path):
    table = make_table("digits", 21, diverged=[5])
    bench = jahs.Benchmark("digits", kind="table", release=make_release(tmp_path / "digits", table=table))
    configs = rows(table.configs)
    with pytest.raises(NotRecorded, match=r"^epoch 6 of config .* and then diverged \(config 1\)$"):
        bench.query_many([configs[3], configs[5]], at=[1, 6, 12], metrics=["valid_acc"])


def test_a_table_answers_what_was_recorded_and_draws_from_it(table):
    drawn = table.sample(5, seed=1)
    assert all(config in rows(TABLE.configs) for config in drawn)
    assert table.query(drawn[0], at=3, seed=0).valid_loss > 0
    with pytest.raises(NotRecorded, match="the nearest of 21 recorded configs"):
        table.query(jahs.space().sample(seed=123))


@pytest.mark.parametrize("given", ["folder", "parent"])
def test_a_folder_of_runs_is_a_table_and_is_found_below_its_parent_by_its_task(runs, given):
    bench = jahs.Benchmark("digits", kind="table", release=runs if given == "folder" else runs.parent)
    assert bench.release == runs
    assert bench.max_epoch == 4
    assert bench.query(bench.sample(seed=0)).valid_acc > 0
    again = pickle.loads(pickle.dumps(bench))
    assert again.release == runs
    assert again.query(bench.sample(seed=0)) == bench.query(bench.sample(seed=0))


def test_a_folder_of_runs_answers_no_other_task(runs):
    with pytest.raises(ProtocolMismatch, match="runs of digits, not of cifar10"):
        jahs.Benchmark("cifar10", kind="table", release=runs)
    with pytest.raises(MissingData, match="cifar10: it has no manifest"):
        jahs.Benchmark("cifar10", kind="table", release=runs.parent)


def test_a_folder_of_runs_in_place_of_a_release_is_refused_with_the_kind_that_opens_it(tmp_path):
    runs = tmp_path / "digits"
    runs.mkdir()
    (runs / "protocol.json").write_text("{}")
    for folder in (runs, tmp_path):
        with pytest.raises(MissingData, match=r"digits is a folder of runs, not a release; open it with kind='table'"):
            jahs.Benchmark("digits", release=folder)


def test_a_release_without_references_says_how_to_search(bench):
    metrics, searches = ("valid_acc", "latency"), r"or `bench\.best\(metric, bench\.view\(\)\)` searches"
    for ask in (
        bench.best,
        lambda: bench.front(metrics),
        lambda: bench.reference_point(metrics),
        lambda: bench.hypervolume([[1.0, 1.0]], metrics),
    ):
        with pytest.raises(MissingData, match=rf"no references\.json.*--with-front` adds them .*{searches}"):
            ask()
    assert bench.best("valid_acc", bench.view()).value > 0


@pytest.mark.parametrize(("name", "columns", "changed"), [
    ("configs.parquet", CONFIG_COLUMNS, "config_index"),
    ("profile.parquet", PROFILE_COLUMNS, "latency"),
    ("runs-0001.parquet", RUN_COLUMNS, "runtime"),
    ("protocol.json", {}, ""),
], ids=["configs", "profile", "runs", "protocol"])  # fmt: skip
def test_a_pickle_of_runs_is_refused_where_any_of_their_files_changed(runs, name, columns, changed):
    path = runs / name
    pickled = pickle.dumps(jahs.Benchmark("digits", kind="table", release=runs))
    if columns:
        table = read_table(path, columns)
        write_table(path, {**table, changed: 2 * table[changed]}, columns)
    else:
        path.write_text(path.read_text() + "\n")
    with pytest.raises(ProtocolMismatch, match=r"restore the one with sha256 [0-9a-f]{64}$"):
        pickle.loads(pickled)


@pytest.mark.parametrize("n", [-1, 1.5, "3", True, [2], -(10**5000), 10**13], ids=range(7))
def test_how_many_are_drawn_is_a_count(bench, n):
    with pytest.raises(InvalidArgument, match=r"is not an integer in 0\.\.10000000"):
        bench.sample(n, seed=0)


def test_objectives_are_minimised(bench):
    columns = jahs.space().sample_columns(4, seed=4)
    batch = bench.query_many(columns, at=7)
    F = bench.objectives(columns, at=7, metrics=("valid-acc", "latency", "n_macs"))
    assert F.dtype == np.float64
    np.testing.assert_array_equal(F, np.column_stack([100 - batch["valid_acc"], batch["latency"], batch["n_macs"]]))
    with pytest.raises(UnknownName, match="valid_loss"):
        bench.objectives(columns, metrics=("valid_loss",))


def test_the_quality_card_is_that_of_the_release(bench):
    assert bench.quality() == {"format": 1, "valid_acc": {"kendall_tau": 0.9}}


@pytest.fixture(scope="module")
def compared(bench, tmp_path_factory):
    """A release with fronts, whose table has configs that diverged."""
    references = build_references(bench, n_configs=200, seed=0, n_rounds=1).to_dict()
    table = make_table("digits", 40, diverged=[5, 10])
    return make_release(tmp_path_factory.mktemp("compared") / "digits", table=table, references=references), table


@pytest.mark.parametrize("metrics", [("valid_acc", "n_params"), ("runtime", "valid_acc", "latency")], ids=str)
def test_a_front_is_made_of_what_its_own_benchmark_answers(compared, metrics):
    for kind in ("surrogate", "table"):
        bench = jahs.Benchmark("digits", kind=kind, release=compared[0], engine="numpy")
        front = bench.front(metrics)
        assert front.metrics == metrics
        np.testing.assert_array_equal(bench.objectives(front.configs, metrics=metrics), front.F)
        assert is_non_dominated(front.F).all()
        assert (np.diff(front.F[:, 0]) >= 0).all()
        np.testing.assert_array_equal(front.ideal, front.F.min(axis=0))
        np.testing.assert_array_equal(front.nadir, front.F.max(axis=0))
        assert front.reference_point.tolist() == bench.reference_point(metrics).tolist()
        assert bench.hypervolume(front.F, metrics) == front.hypervolume


def test_nothing_that_a_table_draws_beats_its_front(compared):
    folder, table = compared
    bench = jahs.Benchmark("digits", kind="table", release=folder)
    whole = [config for i, config in enumerate(rows(table.configs)) if i not in {5, 10}]
    metrics = ("valid_acc", "n_params")
    front = bench.front(metrics)
    F = bench.objectives(whole, metrics=metrics)
    assert np.unique(F[is_non_dominated(F)], axis=0).tolist() == front.F.tolist()
    assert bench.hypervolume(F, metrics) == pytest.approx(front.hypervolume, rel=1e-12)
    surrogate = jahs.Benchmark("digits", release=folder, engine="numpy")
    assert front.reference_point.tolist() == surrogate.front(metrics).reference_point.tolist()
    assert bench.front(name for name in metrics).configs == front.configs


def test_a_front_of_a_table_that_cannot_be_is_refused(compared, tmp_path):
    bench = jahs.Benchmark("digits", kind="table", release=compared[0])
    with pytest.raises(UnknownName, match="have no reference point"):
        bench.front(("valid_acc", "test_loss"))
    with pytest.raises(InvalidArgument, match="is not a list of names"):
        bench.front("valid_acc")
    references = json.loads((compared[0] / "references.json").read_text())
    table = make_table("digits", 3, diverged=[0, 1, 2])
    hopeless = make_release(tmp_path / "digits", table=table, references=references)
    bench = jahs.Benchmark("digits", kind="table", release=hopeless)
    with pytest.raises(MissingData, match="no config that is recorded at epoch 6, and so no front"):
        bench.front(("valid_acc", "n_params"))


def test_a_live_benchmark_has_no_front_and_says_what_holds():
    pytest.importorskip("torch")
    bench = jahs.Benchmark("digits", kind="live")
    for ask in (
        lambda: bench.front(("valid_acc", "n_params")),
        lambda: bench.reference_point(("valid_acc", "n_params")),
    ):
        with pytest.raises(MissingData, match=r"holds: jahs\.Benchmark\('digits'\)\.reference_point\(metrics\)$"):
            ask()


@pytest.mark.parametrize(("references", "error", "said"), [
    ({"format": 2}, UnknownFormat, "references: format 2"),
    ({"format": 1}, CorruptFile, "KeyError"),
    ({"format": 1, "configs": [], "minimised": {}, "fronts": [], "facts": {}}, CorruptFile, "list indices"),
    ([1], CorruptFile, "is not a JSON object"),
], ids=["version", "empty", "configs", "list"])  # fmt: skip
def test_references_that_cannot_be_read_name_their_file(tmp_path, references, error, said):
    release = make_release(tmp_path / "digits", references=references)
    bench = jahs.Benchmark("digits", release=release, engine="numpy")
    with pytest.raises(error, match=rf"digits/references\.json.*{said}"):
        bench.front(("valid_acc", "latency"))


def test_it_says_what_to_cite(bench):
    cited = bench.cite()
    assert "JAHS-Bench-201" in cited
    assert "NAS-Bench-201" in cited
    assert bench.task.citation in cited
    assert "digits, test" in cited


def test_a_pickle_is_a_reference_that_is_checked(folder, config, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "digits")
    bench = jahs.Benchmark("digits", release=copy, metrics=["valid_acc"], engine="numpy")
    pickled = pickle.dumps(bench)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert again.query(config).as_dict() == bench.query(config).as_dict()
    assert list(again.metrics) == ["valid_acc"]
    shutil.rmtree(copy)
    make_release(copy, seed=1)
    with pytest.raises(ProtocolMismatch, match="is not the release that was pickled; restore the one with sha256"):
        pickle.loads(pickled)


def test_a_release_is_opened_once_for_all_its_pickles(folder, config, monkeypatch):
    benches = [
        jahs.Benchmark("digits", kind=kind, release=folder, metrics=metrics, engine="numpy")
        for kind, metrics in (("surrogate", None), ("surrogate", ["valid_acc"]), ("table", None))
    ]
    pickled = [pickle.dumps(bench) for bench in benches]
    again = [pickle.loads(one) for one in pickled]
    assert len({id(bench) for bench in again}) == len(again)
    monkeypatch.setattr(opening, "read_release", None)  # nothing is opened from here on
    with ThreadPoolExecutor(4) as threads:
        unpickled = list(threads.map(pickle.loads, pickled * 20))
    assert {id(bench) for bench in unpickled} == {id(bench) for bench in again}
    for bench, once in zip(again, benches, strict=True):
        assert (bench.kind, list(bench.metrics)) == (once.kind, list(once.metrics))
    assert again[0].query(config) == benches[0].query(config)


def test_what_was_opened_before_is_refused_once_it_is_gone_and_taken_when_it_is_back(folder, config, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "digits")
    bench = jahs.Benchmark("digits", release=copy, engine="numpy")
    pickled = pickle.dumps(bench)
    pickle.loads(pickled)
    copy.rename(tmp_path / "away")
    with pytest.raises(MissingData):
        pickle.loads(pickled)
    make_release(copy, seed=1)
    with pytest.raises(ProtocolMismatch, match="is not the release that was pickled"):
        pickle.loads(pickled)
    shutil.rmtree(copy)
    (tmp_path / "away").rename(copy)
    assert pickle.loads(pickled).query(config) == bench.query(config)


def test_few_releases_are_kept_open(folder, tmp_path):
    for i in range(8):
        copy = shutil.copytree(folder, tmp_path / str(i) / "digits")
        pickle.loads(pickle.dumps(jahs.Benchmark("digits", release=copy, engine="numpy")))
    assert benchmark._open_same.cache_info().currsize <= benchmark._MOST_REOPENED < 8


def test_releases_are_found_where_they_are_said_to_be(folder, config, monkeypatch, tmp_path):
    monkeypatch.setenv("JAHS_DATA_DIR", str(folder.parent))
    assert jahs.releases()["digits"] == folder
    bench = jahs.Benchmark("digits", engine="numpy")
    assert bench.release == folder
    monkeypatch.delenv("JAHS_DATA_DIR")
    assert jahs.Benchmark("digits", save_dir=folder.parent, engine="numpy").query(config) == bench.query(config)
    assert jahs.Benchmark("digits", release=folder.parent, engine="numpy").query(config) == bench.query(config)
    with pytest.raises(MissingData, match="JAHS_DATA_DIR"):
        jahs.Benchmark("colorectal_histology", save_dir=tmp_path)
    with pytest.raises(ProtocolMismatch, match="release of digits, not of cifar10"):
        jahs.Benchmark("cifar10", release=folder)


def test_a_save_dir_may_not_be_there_yet_but_is_no_file(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("JAHS_DATA_DIR", str(folder.parent))
    assert jahs.Benchmark("digits", save_dir=tmp_path / "not-yet", engine="numpy").release == folder
    assert "not-yet holds no release of digits" in caplog.text
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingData, match=r"save_dir=.*file is not a folder"):
        jahs.Benchmark("digits", save_dir=tmp_path / "file")


@pytest.mark.parametrize("name", ["save_dir", "release"])
def test_a_tilde_in_a_folder_is_the_home(folder, monkeypatch, name):
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(folder.parent))
    assert jahs.Benchmark("digits", engine="numpy", **{name: "~"}).release == folder


def test_a_damaged_release_is_refused_by_name(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "digits")
    data = bytearray((copy / "forests-0.npz").read_bytes())
    data[100] ^= 1
    (copy / "forests-0.npz").write_bytes(data)
    with pytest.raises(CorruptFile, match=r"forests-0\.npz is damaged.*restore the file"):
        jahs.Benchmark("digits", release=copy)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"task": "imagenet"}, "task='imagenet' does not exist"),
    ({"task": 3}, "task='3' does not exist"),
    ({"kind": "magic"}, "kind='magic' does not exist; kind is one of: surrogate, table, live"),
    ({"kind": None}, "kind='None' does not exist"),
], ids=["task", "number", "kind", "none"])  # fmt: skip
def test_what_does_not_exist_lists_what_does(folder, arguments, message):
    with pytest.raises(UnknownName, match=message):
        jahs.Benchmark(**{"task": "digits", "release": folder, **arguments})


@pytest.mark.parametrize("kind", ["surrogate", "table", "live"])
@pytest.mark.parametrize("engine", ["abacus", "gpu", None, 3], ids=repr)
def test_an_engine_that_does_not_exist_is_refused(folder, kind, engine):
    with pytest.raises(UnknownName, match=f"engine {engine!r} does not exist; there are 'auto', 'numpy', 'compiled'"):
        jahs.Benchmark("digits", kind=kind, release=folder, engine=engine)


def test_opening_and_asking_writes_nothing_and_prints_nothing(folder, config, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    jahs.Benchmark("digits", release=folder, engine="numpy").query(config)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_the_embedded_release_is_right_in_order_and_in_scale():
    scores = jahs.Benchmark("fashion_mnist_mini").quality()["metrics"]
    assert set(scores) == set(LEARNED)
    for metric, facts in scores.items():
        model = facts["test"]["cuts"]["all"]["model"]
        assert model["tau"] > 0.7, metric
        assert model["r2"] > 0.7, metric
