"""Published tables become folders of runs; whatever is odd about them is found, listed, and not repaired."""

import io
import json
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import jahs
from jahs.errors import CorruptFile, InvalidArgument, InvalidTable, MissingData, UnknownFormat, UnsafeFile
from jahs.files.index import read_index
from jahs.files.runs import committed_faults, read_configs, read_profile, read_protocol, read_runs
from jahs.files.tables import read_table
from jahs.models.cost import n_macs
from jahs.published.frames import read_frame
from jahs.published.oddities import FINDINGS, ODDITY_COLUMNS
from jahs.published.table import import_table
from jahs.schema import CONFIG_KEYS
from tests.pickle_writer import Name, Obj, call, dumps
from tests.published_files import frame_bytes, tar_bytes
from tests.published_tables import N_EPOCHS, TASK, make_columns


def rows_of(columns, model):
    return np.flatnonzero(columns["sampling_index", "model_ID"] == 100 + model)


def imported(tmp_path, columns, sides=None, labels=None):
    """Import raw and sides of the split; return the folder, its report and its oddities."""
    members = {"raw": frame_bytes(columns, labels)}
    for name, rows in (sides or {}).items():
        part = {key: values[rows] for key, values in columns.items() if key[0] != "sampling_index"}
        members[name] = frame_bytes(part, np.asarray(rows))
    path = tmp_path / "metric_data.tar"
    path.write_bytes(tar_bytes({f"metric_data/{TASK.name}/{name}.pkl.gz": data for name, data in members.items()}))
    folder = import_table(path, tmp_path / "out")[TASK.name]
    return (
        folder,
        json.loads((folder / "report.json").read_text()),
        read_table(folder / "oddities.parquet", ODDITY_COLUMNS),
    )


def found(report):
    return {name: entry["n_found"] for name, entry in report["findings"].items() if entry["n_found"]}


def test_a_table_without_oddities_comes_whole(tmp_path):
    columns = make_columns()
    folder, report, oddities = imported(tmp_path, columns)
    assert found(report) == {}
    assert len(oddities["finding"]) == 0
    whole = {"configs": 12, "rows": 12 * N_EPOCHS, "runs": 12}
    assert report["counts"] == {f"{what}_{done}": n for what, n in whole.items() for done in ("read", "written")}
    configs, runs, profile = read_configs(folder), read_runs(folder), read_profile(folder)
    first = [rows_of(columns, k)[0] for k in range(12)]
    expected = jahs.config_ids({key: columns["features", key][first] for key in CONFIG_KEYS})
    assert sorted(configs["config_id"].tolist()) == sorted(expected.tolist())
    assert np.array_equal(jahs.config_ids({key: configs[key] for key in CONFIG_KEYS}), configs["config_id"])
    for k in range(12):
        mine = runs["config_id"] == expected[k]
        assert runs["epoch"][mine].tolist() == list(range(1, N_EPOCHS + 1))
        for name, published in (("valid_acc", "valid-acc"), ("test_loss", "test-loss"), ("runtime", "runtime")):
            assert runs[name][mine] == pytest.approx(columns["labels", published][rows_of(columns, k)], rel=1e-6)
        row = profile["config_id"] == expected[k]
        assert profile["latency"][row] == pytest.approx(0.01 + k / 1000 + N_EPOCHS / 1e6)
        assert profile["step_time_s"][row] == pytest.approx(0.75)
    assert set(runs["status"]) == {"finished"}
    assert set(runs["seed"]) == {0}
    protocol = read_protocol(folder)
    assert protocol.facts["task"]["name"] == TASK.name
    assert protocol.facts["source"] == "jahs-bench-201"
    assert set(runs["protocol"]) == {protocol.digest}


def test_the_order_of_the_rows_does_not_matter(tmp_path):
    columns = make_columns(4)
    order = np.random.default_rng(1).permutation(len(columns["features", "epoch"]))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, *_ = imported(tmp_path / "a", columns)
    other, *_ = imported(tmp_path / "b", {key: values[order] for key, values in columns.items()}, labels=order)
    assert (one / "runs-0001.parquet").read_bytes() == (other / "runs-0001.parquet").read_bytes()


def spoil(columns, finding):
    """Plant one oddity; return (how many findings, models, rows written of 12 whole runs, the value found)."""
    features, labels = "features", "labels"
    two, three = rows_of(columns, 2), rows_of(columns, 3)
    if finding == "repeated_config":
        for key in CONFIG_KEYS:
            columns[features, key][three] = columns[features, key][two]
        for name in ("FLOPS", "size_MB"):
            columns[labels, name][three] = columns[labels, name][two]
        return 1, [103], 12, 102
    if finding == "same_run":
        spoil(columns, "repeated_config")
        columns[labels, "valid-acc"][three] = columns[labels, "valid-acc"][two]
        return 1, [103], 12, 102
    if finding in ("flops_label", "size_label"):
        columns[labels, {"flops_label": "FLOPS", "size_label": "size_MB"}[finding]][two] *= 1.001
        return 1, [102], 12, None
    if finding == "nan_row":
        columns[labels, "valid-acc"][two[[4, 9]]] = np.nan
        columns[labels, "latency"][three[7]] = np.inf
        return 3, [102, 103], 12 - 3 / N_EPOCHS, None
    if finding == "nan_last_row":
        columns[labels, "valid-loss"][two[-1]] = np.nan
        return 1, [102], 12 - 1 / N_EPOCHS, N_EPOCHS
    if finding == "impossible_row":
        columns[labels, "valid-acc"][two[0]] = 100.5
        columns[labels, "latency"][two[2]] = -1.0
        columns[labels, "runtime"][three[-1]] = 1e300
        return 3, [102, 103], 12 - 3 / N_EPOCHS, None
    if finding == "repeated_epoch":
        columns[features, "epoch"][two[5]] = 5
        return 1, [102], 11, None
    if finding == "changing_config":
        columns[features, "LearningRate"][two[50]] *= 1.01
        return 1, [102], 11, None
    if finding == "invalid_config":
        columns[features, "LearningRate"][two] = 3.0
        return 1, [102], 11, None
    if finding == "falling_runtime":
        columns[labels, "runtime"][two[[10, 50]]] *= 0.5
        return 1, [102], 12, 11
    if finding == "flat_tail":
        columns[labels, "valid-acc"][two[120:]] = columns[labels, "valid-acc"][two[119]] + 0.05 * (np.arange(80) % 2)
        return 1, [102], 12, 120
    assert finding == "constant_run"
    columns[labels, "valid-acc"][two] = 10.0
    return 1, [102], 12, None


def test_a_repeated_run_of_any_earlier_model_is_found(tmp_path):
    columns = make_columns()
    two, three, four = (rows_of(columns, k) for k in (2, 3, 4))
    for name, values in columns.items():
        if name in (("labels", "FLOPS"), ("labels", "size_MB")) or (name[0] == "features" and name[1] != "epoch"):
            values[three] = values[four] = values[two]
    columns["labels", "valid-acc"][four] = columns["labels", "valid-acc"][three]
    _, report, oddities = imported(tmp_path, columns)
    assert found(report) == {"repeated_config": 2, "same_run": 1}
    assert oddities["value"][oddities["finding"] == "same_run"].tolist() == [103]


@pytest.mark.parametrize(
    "finding",
    [name for name in FINDINGS if name not in ("shared_by_split", "changed_row", "incomplete_run", "lost_last_row")],
)
def test_each_oddity_is_found_once_and_listed(tmp_path, finding):
    columns = make_columns()
    n_found, models, n_whole, value = spoil(columns, finding)
    folder, report, oddities = imported(tmp_path, columns)
    implied = {"nan_last_row": {"nan_row": 1}, "same_run": {"repeated_config": 1}}.get(finding, {})
    assert found(report) == {finding: n_found, **implied}
    entry = report["findings"][finding]
    assert entry["n_models"] == len(models)
    assert entry["first_model_ids"] == models
    assert sum(entry["by_group"].values()) == n_found
    assert report["counts"]["rows_written"] == round(n_whole * N_EPOCHS) == len(read_runs(folder)["epoch"])
    mine = oddities["finding"] == finding
    assert set(oddities["model_id"][mine]) == set(models)
    if value is not None:
        assert oddities["value"][mine].tolist() == [value]


def test_costs_that_are_labelled_wrong_are_listed_with_the_exact_ones(tmp_path):
    columns = make_columns()
    spoil(columns, "flops_label")
    _, _, oddities = imported(tmp_path, columns)
    exact = oddities["expected"][0]
    assert oddities["value"][0] == pytest.approx(1.001 * exact)
    first = rows_of(columns, 2)[0]
    config = {key: columns["features", key][[first]] for key in CONFIG_KEYS}
    assert exact == pytest.approx(n_macs(jahs.encode(config, 1), TASK)[0] / 1e6, rel=1e-12)
    assert oddities["group"][0] == "N={N:g} W={W:g} Resolution={Resolution:g}".format(
        **{key: values[0] for key, values in config.items()}
    )


def test_a_run_that_ends_early_is_left_out(tmp_path):
    columns = make_columns()
    keep = np.setdiff1d(np.arange(12 * N_EPOCHS), rows_of(columns, 2)[150:])
    folder, report, oddities = imported(tmp_path, {key: values[keep] for key, values in columns.items()})
    assert found(report) == {"incomplete_run": 1}
    assert oddities["value"].tolist() == [150.0]
    assert report["counts"]["runs_written"] == 11
    assert len(read_runs(folder)["epoch"]) == 11 * N_EPOCHS
    assert len(read_configs(folder)["N"]) == len(read_profile(folder)["latency"]) == 11


def test_a_run_that_lost_its_last_row_alone_is_kept(tmp_path):
    columns = make_columns()
    keep = np.setdiff1d(np.arange(12 * N_EPOCHS), rows_of(columns, 2)[-1:])
    folder, report, oddities = imported(tmp_path, {key: values[keep] for key, values in columns.items()})
    assert found(report) == {"lost_last_row": 1}
    assert oddities["value"].tolist() == [N_EPOCHS - 1]
    assert len(read_runs(folder)["epoch"]) == 12 * N_EPOCHS - 1


def test_every_missing_column_is_named(tmp_path):
    columns = make_columns()
    for name in (("features", "W"), ("labels", "test-loss"), ("labels", "size_MB")):
        del columns[name]
    with pytest.raises(InvalidTable, match=r"lacks the columns features / W, labels / test-loss, labels / size_MB"):
        imported(tmp_path, columns)


def test_two_copies_of_a_file_are_refused(tmp_path):
    raw = frame_bytes(make_columns())
    names = [f"{version}/{TASK.name}/raw.pkl.gz" for version in ("v1.0.0", "v1.1.0")]
    (tmp_path / "metric_data.tar").write_bytes(tar_bytes(dict.fromkeys(names, raw)))
    with pytest.raises(InvalidArgument, match=r"v1\.0\.0.*v1\.1\.0.*two copies"):
        import_table(tmp_path / "metric_data.tar", tmp_path / "out")


def test_a_repeated_config_becomes_further_seeds(tmp_path):
    columns = make_columns()
    spoil(columns, "repeated_config")
    folder, *_ = imported(tmp_path, columns)
    runs = read_runs(folder)
    ids, counts = np.unique(runs["config_id"][runs["epoch"] == 1], return_counts=True)
    assert sorted(counts) == [1] * 10 + [2]
    twice = runs["config_id"] == ids[counts.argmax()]
    assert set(runs["seed"][twice]) == {0, 1}
    assert len(read_configs(folder)["N"]) == 11


def test_configs_on_several_sides_of_the_published_split_are_found(tmp_path):
    columns = make_columns()
    spoil(columns, "repeated_config")
    sides = {
        "train_set": np.concatenate([rows_of(columns, k) for k in range(3)]),
        "valid_set": np.concatenate([rows_of(columns, k) for k in (3, 4)]),
        "test_set": rows_of(columns, 5),
    }
    _, report, oddities = imported(tmp_path, columns, sides)
    assert found(report) == {"repeated_config": 1, "shared_by_split": 2}
    mine = oddities["finding"] == "shared_by_split"
    assert oddities["model_id"][mine].tolist() == [102, 103]
    assert set(oddities["value"][mine]) == {1.0}
    assert report["published_split"]["train_set"] == {"configs": 3, "rows": 3 * N_EPOCHS}
    assert report["published_split"]["test_set"] == {"configs": 1, "rows": N_EPOCHS}


def test_rows_of_the_split_that_are_not_those_of_raw_are_found(tmp_path):
    columns = make_columns()
    path = tmp_path / "metric_data.tar"
    changed = {key: values.copy()[:100] for key, values in columns.items() if key[0] != "sampling_index"}
    changed["labels", "valid-acc"][7] += 1
    members = {"raw": frame_bytes(columns), "train_set": frame_bytes(changed, np.arange(100))}
    path.write_bytes(tar_bytes({f"metric_data/{TASK.name}/{name}.pkl.gz": data for name, data in members.items()}))
    folder = import_table(path, tmp_path / "out")[TASK.name]
    report = json.loads((folder / "report.json").read_text())
    assert found(report) == {"changed_row": 1}
    assert read_table(folder / "oddities.parquet", ODDITY_COLUMNS)["value"].tolist() == [7.0]


def test_an_import_is_not_done_twice_nor_over_another(tmp_path):
    imported(tmp_path, make_columns(3))
    said = []
    import_table(tmp_path / "metric_data.tar", tmp_path / "out", report=said.append)
    assert len(said) == 1
    assert "is there already, from the same files" in said[0]
    with pytest.raises(InvalidArgument, match="is there already, from other files"):
        imported(tmp_path, make_columns(3, seed=1))


@pytest.mark.parametrize("name", ["runs-0002.parquet", "configs.parquet", "protocol.json", "index.json"])
def test_a_damaged_import_is_refused_by_a_reader_and_imported_again(tmp_path, monkeypatch, name):
    monkeypatch.setattr("jahs.published.recorded._ROWS_AT_ONCE", 2 * N_EPOCHS)
    folder, *_ = imported(tmp_path, make_columns(5))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert committed_faults(folder) == []
    assert set(read_index(folder)) == {path.name for path in before} - {"index.json", "oddities.parquet", "report.json"}
    (folder / name).write_bytes(b"{}") if name.endswith("json") else (folder / name).unlink()
    with pytest.raises((CorruptFile, MissingData)):
        jahs.Benchmark(kind="table", release=folder)
    reported = []
    import_table(tmp_path / "metric_data.tar", tmp_path / "out", report=reported.append)
    assert f"is damaged and is imported again: {'' if name == 'index.json' else name}" in reported[0]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_damaged_import_with_files_of_the_user_is_not_replaced(tmp_path):
    folder, *_ = imported(tmp_path, make_columns(3))
    (folder / "split.json").write_text("{}")
    assert import_table(tmp_path / "metric_data.tar", tmp_path / "out") == {TASK.name: folder}
    (folder / "profile.parquet").unlink()
    with pytest.raises(InvalidArgument, match=r"profile\.parquet is missing\nit is not replaced.* holds split\.json"):
        import_table(tmp_path / "metric_data.tar", tmp_path / "out")
    assert (folder / "split.json").exists()


@pytest.mark.parametrize(
    ("change", "error", "fault"),
    [
        (lambda c: c.pop(("labels", "runtime")), InvalidTable, "lacks the columns labels / runtime"),
        (lambda c: c.pop(("features", "epoch")), InvalidTable, "lacks the columns features / epoch"),
        (lambda c: c.pop(("sampling_index", "model_ID")), InvalidTable, "lacks the columns sampling_index / model_ID"),
        (lambda c: c.update({("labels", "valid-acc"): c["features", "Activation"]}), InvalidTable, "not numbers"),
        (
            lambda c: c.update({("features", "epoch"): c["labels", "runtime"]}),
            InvalidTable,
            "a column of integers must not be",
        ),
        (lambda c: c.update({("features", "N"): c["features", "Activation"]}), InvalidTable, "N holds <U4, not int"),
        (lambda c: c.update({("features", "Op1"): c["labels", "runtime"]}), InvalidTable, "Op1 holds float64, not int"),
    ],
    ids=["no runtime", "no epoch", "no model", "texts", "fractions", "text for N", "fractions for Op1"],
)
def test_a_table_without_what_a_run_needs_is_refused_and_leaves_nothing(tmp_path, change, error, fault):
    columns = make_columns(2)
    change(columns)
    with pytest.raises(error, match=rf"^{tmp_path}/metric_data\.tar: .*raw\.pkl\.gz: .*{fault}"):
        imported(tmp_path, columns)
    assert list((tmp_path / "out" / "runs").iterdir()) == []


def test_files_that_are_missing_are_named(tmp_path):
    path = tmp_path / "metric_data.tar"
    with pytest.raises(MissingData, match="does not exist"):
        import_table(path, tmp_path)
    path.write_bytes(tar_bytes({"metric_data/cifar10/train_set.pkl.gz": b""}))
    with pytest.raises(MissingData, match=r"holds no raw\.pkl\.gz for cifar10"):
        import_table(path, tmp_path)
    with pytest.raises(MissingData, match=r"holds no raw\.pkl\.gz for fashion_mnist"):
        import_table(path, tmp_path, tasks=["fashion_mnist"])


def test_a_hostile_table_executes_nothing_and_leaves_nothing(tmp_path):
    trace = tmp_path / "trace"
    evil = b"cposix\nsystem\n(S'touch " + str(trace).encode() + b"'\ntR."
    path = tmp_path / "metric_data.tar"
    path.write_bytes(tar_bytes({"metric_data/cifar10/raw.pkl.gz": evil}))
    with pytest.raises(UnsafeFile, match=r"posix\.system"):
        import_table(path, tmp_path / "out")
    assert not trace.exists()
    assert list((tmp_path / "out" / "runs").iterdir()) == []


def test_a_frame_of_many_rows_stays_in_scratch_files(tmp_path, monkeypatch):
    monkeypatch.setattr("jahs.published.frames._HELD", 1000)
    columns = make_columns(5)
    frame = read_frame(io.BytesIO(frame_bytes(columns)), "frame", scratch=tmp_path)
    for key, values in columns.items():
        assert np.array_equal(
            frame.column(*key).take(slice(None)),
            values.astype(str) if values.dtype == object and key[1] != "TrivialAugment" else values,
        )
    assert list(tmp_path.iterdir()) == []


def test_something_else_than_a_table_is_refused():
    for thing in ({"a": 1}, None, [1, 2]):
        with pytest.raises(UnknownFormat, match="file is not a DataFrame"):
            read_frame(io.BytesIO(dumps(thing, 4)), "file")
    with pytest.raises(CorruptFile, match="file ends in the middle"):
        read_frame(io.BytesIO(b""), "file")


def index(**facts):
    """An index of whatever kind: what it is made of says which."""
    return call("pandas.core.indexes.base", "_new_Index", Name("pandas.core.indexes.base", "Index"), facts)


def names_of(*names):
    return index(data=np.array(names, dtype=object))


def levels(names, *codes):
    return index(levels=[names] * len(codes), codes=list(codes))


def count(stop, step=1):
    return index(start=0, stop=stop, step=step)


def table(columns, rows, *blocks):
    """The bytes of a DataFrame with blocks of (values, places)."""
    made = tuple(call("pandas.core.internals.blocks", "new_block", *block) for block in blocks)
    manager = call("pandas.core.internals.managers", "BlockManager", made, [columns, rows])
    return dumps(Obj("pandas.core.frame", "DataFrame", {"_mgr": manager}), 4)


ONE = np.ones((1, 1))
FIRST = slice(0, 1, 1)


def test_a_table_of_one_number_is_read():
    frame = read_frame(io.BytesIO(table(levels(names_of("a"), np.array([0])), count(1), (ONE, FIRST))), "file")
    assert frame.column("a").take(slice(None)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (table(levels(names_of()), count(2**48 - 1)), "a table without columns"),
        (table(names_of(), count(2**48 - 1)), "a table without columns"),
        (table(names_of("a"), count(2**40), (ONE, FIRST)), "does not fit the table"),
        (table(names_of("a"), count(1, step=2**62), (ONE, FIRST)), "rows without plain numbers"),
        (table(names_of("a"), count(1), (np.array(1.0), FIRST)), "does not fit the table"),
        (table(names_of("a"), count(1), (np.ones(1), FIRST)), "does not fit the table"),
        (table(names_of("a"), count(0), (np.ones((2**22, 0)), FIRST)), "does not fit the table"),
        (table(names_of("a"), count(1), (ONE, np.zeros(2**22, np.int8))), "does not fit the table"),
        (table(names_of("a"), count(1), (ONE, slice(0, 1, 0))), "does not make sense: slice step"),
        (
            table(names_of("a"), count(1), (ONE, slice("a", 1, 1))),
            "a call of builtins.slice with arguments that no data needs",
        ),
        (table(levels(names_of("a"), np.array(0)), count(1), (ONE, FIRST)), "levels without up to 1000 codes"),
        (table(levels(names_of("a"), np.zeros(2**22, np.int8)), count(1)), "levels without up to 1000 codes"),
        (table(levels(names_of("a"), *[np.zeros(1, np.int8)] * 11), count(1)), "levels without up to 1000 codes"),
        (
            table(levels(names_of("a"), np.array([0]), np.array([0, 0])), count(1), (ONE, FIRST)),
            "does not make sense",
        ),
        (table(index(data=np.zeros(2**22, np.int8)), count(1)), "not up to 1000 short texts"),
        (table(index(data=np.array([0xFFFFFFFF], "<u4").view("<U1")), count(1)), "a character that does not"),
    ],
    ids=[
        *("no levels", "no columns", "too few values", "long steps", "no block", "flat block", "many empty columns"),
        *("many places", "no step", "texts in a slice", "no codes", "many codes", "many levels", "unequal codes"),
        *("many names", "no character"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused_at_once(content, fault):
    start = time.process_time()
    with pytest.raises((CorruptFile, UnknownFormat), match=rf"^file.*{fault}"):
        read_frame(io.BytesIO(content), "file")
    assert time.process_time() - start < 0.5
