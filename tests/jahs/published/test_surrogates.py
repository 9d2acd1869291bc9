"""Published surrogates become releases that answer as the published code does, from whatever they are read."""

import csv
import gzip
import io
import json
import math
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import CorruptFile, InvalidArgument, MissingData, UnknownFormat, UnknownName, UnsafeFile
from jahs.models.features import FEATURE_SETS, FeatureBuilder
from jahs.models.forest import forest_from_xgboost, open_engine
from jahs.published.booster import parse_booster
from jahs.published.models import read_headers, read_model
from jahs.published.sources import PUBLISHED_TASKS
from jahs.published.surrogates import _forest_of, import_surrogates
from jahs.release import read_release
from jahs.release.writing import extend_release
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import metric
from tests.pickle_writer import Obj, dumps
from tests.published_files import (
    BOUNDS,
    METRICS,
    make_handle,
    make_old_pipeline,
    make_params,
    make_pipeline,
    make_trees,
    tar_bytes,
    write_surrogates,
    write_tar,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "published_small.csv"
PUBLISHED = FEATURE_SETS["published"]


def answers(release, configs, epochs):
    """Every metric of a release for configs, with the numpy engine."""
    found = read_release(release)
    X = jahs.encode(configs, epochs)
    values = {}
    for name, model in found.models.metrics.items():
        pack = found.models.packs[model.pack]
        features = FeatureBuilder(pack.features, found.task).build(X)
        z = open_engine(found.forests[model.pack], "numpy").predict(features, forests=[model.forest])[:, 0]
        values[name] = z.astype(float) if model.transform is None else model.transform.inverse(z)
    return values


def by_hand(trees, columns, bounds, slope):
    """One answer of one model, in plain Python: walk each tree, add in float32, then sigmoid and min-max."""
    total = 0.5
    for tree in trees:
        node = 0
        while tree["left_children"][node] >= 0:
            threshold = struct.unpack("<f", struct.pack("<f", tree["split_conditions"][node]))[0]
            is_left = struct.unpack("<f", struct.pack("<f", columns[tree["split_indices"][node]]))[0] < threshold
            node = tree["left_children" if is_left else "right_children"][node]
        total = struct.unpack("<f", struct.pack("<f", total + tree["split_conditions"][node]))[0]
    if bounds is None:
        return total
    share = (1 / (1 + math.exp(-slope * total)) - 1e-6) / (1 - 2e-6)
    return bounds[0] + share * (bounds[1] - bounds[0])


def encoded(config, epoch):
    """The 41 columns, as the published encoder makes them."""
    columns = [config["Activation"] == name for name in ("Hardswish", "Mish", "ReLU")]
    columns += [config[f"Op{i}"] == code for i in range(1, 7) for code in range(5)]
    columns += [1, config["TrivialAugment"], config["LearningRate"], config["N"], config["Resolution"], config["W"]]
    return [float(value) for value in (*columns, config["WeightDecay"], epoch)]


def cases():
    space = jahs.space()
    configs = space.sample(30, seed=3)
    return configs, [1 + 67 * i % 200 for i in range(30)]


@pytest.fixture(scope="module")
def task_folder(tmp_path_factory):
    return write_surrogates(tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module")
def release(task_folder, tmp_path_factory):
    return import_surrogates(task_folder.parent, tmp_path_factory.mktemp("out"))["cifar10"]


def test_answers_are_those_of_the_trees_by_hand_and_of_the_golden_text(release):
    configs, epochs = cases()
    found = answers(release, configs, epochs)
    golden = list(csv.DictReader(GOLDEN.read_text().splitlines()))
    assert len(golden) == len(configs)
    for number, name in enumerate(METRICS):
        trees = make_trees(5, seed=number)
        slope = 0.25 * (number + 1)
        hand = [by_hand(trees, encoded(c, e), BOUNDS[name], slope) for c, e in zip(configs, epochs, strict=True)]
        assert found[metric(name).name] == pytest.approx(hand, rel=1e-6)
        assert found[metric(name).name] == pytest.approx([float(row[name]) for row in golden], rel=1e-6)
        assert len({round(value, 9) for value in hand}) > 5


def test_a_release_says_what_its_metrics_mean(release):
    models = read_release(release).models
    said = {name: model.metric(name) for name, model in models.metrics.items()}
    assert list(said) == ["train_acc", "valid_acc", "test_acc", "latency", "runtime", "n_params", "n_macs"]
    assert models.costs == "published"
    assert models.packs[0].features == PUBLISHED
    assert "may fall" in said["runtime"].description
    assert said["latency"].by_epoch
    assert said["n_macs"].unit == "million multiply-adds"
    assert said["n_params"].published_scale == 1.0
    facts = read_release(release).facts
    assert (facts["source"], facts["protocol"], facts["licence"]) == ("imported", "jahs-bench-201", "CC BY 4.0")
    assert facts["hyperparameters"]["latency"]["max_depth"] == 3
    assert len(facts["imported"]["models"]["runtime"]) == 64


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "task folder", "metric folder", "one metric of a tar"])
def test_every_way_to_the_files_gives_the_same_answers(kind, task_folder, release, tmp_path):
    source, wanted = task_folder, None
    if kind in ("tar", "one metric of a tar"):
        source = write_tar(task_folder.parent, tmp_path / "assembled_surrogates.tar")
        wanted = ["valid-acc"] if kind.startswith("one") else None
    elif kind == "tar.gz":
        source = tmp_path / "a.tar.gz"
        source.write_bytes(gzip.compress(write_tar(task_folder.parent, tmp_path / "a.tar").read_bytes()))
    elif kind == "metric folder":
        source = task_folder / "valid-acc"
    found = import_surrogates(source, tmp_path / "out", metrics=wanted)
    configs, epochs = cases()
    mine, whole = answers(found["cifar10"], configs, epochs), answers(release, configs, epochs)
    assert list(mine) == (["valid_acc"] if wanted or kind == "metric folder" else list(whole))
    assert all(np.array_equal(values, whole[name]) for name, values in mine.items())


def test_the_same_files_give_the_same_bytes(task_folder, release, tmp_path):
    other = import_surrogates(task_folder, tmp_path / "out")["cifar10"]
    assert (other / "manifest.json").read_bytes() == (release / "manifest.json").read_bytes()


def test_the_older_layout_of_several_outputs_is_read(tmp_path):
    outputs = [make_trees(4, seed=seed) for seed in (7, 8)]
    for protocol in (0, 2, 4):
        old = make_old_pipeline(outputs)
        folder = model_folder(tmp_path / str(protocol), old, ("latency", "valid-acc"), protocol)
        with pytest.raises(InvalidArgument, match="its path does not name a task"):
            import_surrogates(folder, tmp_path / "out")
        found = import_surrogates(folder, tmp_path / f"out-{protocol}", tasks=["cifar10"])
        configs, epochs = cases()
        mine = answers(found["cifar10"], configs, epochs)
        for name, trees in zip(("latency", "valid_acc"), outputs, strict=True):
            hand = [by_hand(trees, encoded(c, e), None, 1.0) for c, e in zip(configs, epochs, strict=True)]
            assert mine[name] == pytest.approx(hand, rel=1e-6)


def test_an_import_that_was_stopped_resumes_with_the_next_task(tmp_path, monkeypatch):
    write_surrogates(tmp_path)
    folder = write_surrogates(tmp_path, task="fashion_mnist", n_trees=3).parent
    read = []

    def counted(file, where):
        if len(read) == len(METRICS) + 2:
            raise KeyboardInterrupt
        read.append(where)
        return read_model(file, where)

    monkeypatch.setattr("jahs.published.surrogates.read_model", counted)
    with pytest.raises(KeyboardInterrupt):
        import_surrogates(folder, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["cifar10"]
    read.clear()
    said = []
    import_surrogates(folder, tmp_path / "out", report=said.append)
    assert len(read) == len(METRICS)
    assert "is there already" in said[0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cifar10", "fashion_mnist"]


def test_a_folder_that_cannot_be_written_is_refused_before_any_model_is_read(task_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("jahs.published.surrogates._read_models", lambda *_: pytest.fail("a model was read"))
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidArgument, match="cannot be written"):
            import_surrogates(task_folder, out)


def damage(release):
    values = release / "forests-0" / "node_value.npy"
    content = values.read_bytes()
    values.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_a_damaged_release_is_made_again(task_folder, tmp_path):
    release = import_surrogates(task_folder, tmp_path)["cifar10"]
    damage(release)
    import_surrogates(task_folder, tmp_path)
    read_release(release).verify()


def test_a_repeated_import_keeps_the_front_and_what_a_user_put_into_the_folder(task_folder, tmp_path):
    release = import_surrogates(task_folder, tmp_path)["cifar10"]
    extend_release(read_release(release), {}, references={"task": "cifar10"})
    (release / "results").mkdir()
    (release / "results" / "notes.txt").write_text("work of weeks")
    before = {path: path.read_bytes() for path in release.rglob("*") if path.is_file()}
    reported = []
    import_surrogates(task_folder, tmp_path, report=reported.append)
    assert "is there already" in reported[-1]
    damage(release)
    with pytest.raises(InvalidArgument, match=r"since it also holds results, results/notes\.txt; move"):
        import_surrogates(task_folder, tmp_path)
    assert {path for path in release.rglob("*") if path.is_file()} == set(before)


def test_importing_a_damaged_release_again_reports_that_its_front_is_lost(task_folder, tmp_path):
    release = import_surrogates(task_folder, tmp_path)["cifar10"]
    extend_release(read_release(release), {}, references={"task": "cifar10"})
    damage(release)
    reported = []
    import_surrogates(task_folder, tmp_path, report=reported.append)
    assert "is damaged and is imported again; its front must be searched again (--with-front)" in reported[0]
    assert not read_release(release).has("references.json")


def test_two_models_of_one_metric_are_not_mixed(task_folder, tmp_path):
    files = {path.name: path.read_bytes() for path in (task_folder / "runtime").iterdir()}
    path = tmp_path / "two.tar"
    path.write_bytes(tar_bytes({f"{k}/cifar10/runtime/{name}": data for k in "ab" for name, data in files.items()}))
    with pytest.raises(InvalidArgument, match="cifar10: several models of one metric"):
        import_surrogates(path, tmp_path / "out")


def test_another_release_is_not_replaced(task_folder, tmp_path):
    release = import_surrogates(task_folder, tmp_path)["cifar10"]
    before = (release / "manifest.json").read_bytes()
    for words in ({"metrics": ["runtime"]}, {"costs": "repaired"}):
        with pytest.raises(
            InvalidArgument, match=r"exists and is not this import .*; choose another folder, or delete it"
        ):
            import_surrogates(task_folder, tmp_path, **words)
    assert (release / "manifest.json").read_bytes() == before


def in_its_place(folder, kind):
    """Put something where a release would go."""
    manifest = folder / "manifest.json"
    if kind == "a file":
        folder.write_text("notes")
        return
    folder.mkdir(exist_ok=True)
    if kind == "fitted models":
        manifest.write_text(json.dumps({"format": 7, "models": ["valid_acc"]}))
    elif kind == "a newer release":
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 2}))
    elif kind == "a release without its manifest":
        manifest.unlink()
    elif kind == "a damaged manifest":
        manifest.write_bytes(manifest.read_bytes()[:-10])
    elif kind == "another's release":
        content = json.loads(manifest.read_text())
        del content["imported"]
        manifest.write_text(json.dumps(content))
    (folder / "kept.txt").write_text("work of weeks")


@pytest.mark.parametrize(
    ("kind", "is_release"),
    [
        ("a file", False),
        ("other files", False),
        ("fitted models", False),
        ("a newer release", True),
        ("a release without its manifest", True),
        ("a damaged manifest", True),
        ("another's release", True),
    ],
)
def test_nothing_is_replaced_but_a_damaged_release_of_the_same_import(task_folder, tmp_path, kind, is_release):
    folder = tmp_path / "cifar10"
    if is_release:
        import_surrogates(task_folder, tmp_path)
    in_its_place(folder, kind)

    def content():
        return {path: path.read_bytes() for path in (folder, *folder.rglob("*")) if path.is_file()}

    before = content()
    with pytest.raises(InvalidArgument, match=r"cifar10 exists and is not this import .* or delete it"):
        import_surrogates(task_folder, tmp_path)
    assert content() == before


def test_an_empty_folder_is_nothing_in_the_way(task_folder, tmp_path):
    (tmp_path / "cifar10").mkdir()
    read_release(import_surrogates(task_folder, tmp_path)["cifar10"]).verify()


def test_what_does_not_exist_is_named(task_folder, tmp_path):
    with pytest.raises(MissingData, match="does not exist; see: jahs download"):
        import_surrogates(tmp_path / "no.tar", tmp_path)
    with pytest.raises(MissingData, match=r"holds no model\.pkl\.gz"):
        import_surrogates(tmp_path, tmp_path)
    with pytest.raises(MissingData, match=r"holds no model\.pkl\.gz for fashion_mnist"):
        import_surrogates(task_folder, tmp_path, tasks=["fashion_mnist"])
    with pytest.raises(UnknownName, match="task='digits' does not exist"):
        import_surrogates(task_folder, tmp_path, tasks=["digits"])
    with pytest.raises(UnknownName, match="metric='accuracy' does not exist"):
        import_surrogates(task_folder, tmp_path, metrics=["accuracy"])
    with pytest.raises(InvalidArgument, match="costs='exact' is not one of"):
        import_surrogates(task_folder, tmp_path, costs="exact")
    with pytest.raises(MissingData, match="cifar10: no model of train_loss"):
        import_surrogates(task_folder, tmp_path, metrics=["train_loss"])


def model_folder(folder, pipeline, metrics=("latency",), protocol=0):
    """Write the files of one pipeline."""
    folder.mkdir()
    (folder / "model.pkl.gz").write_bytes(gzip.compress(dumps(pipeline, protocol)))
    (folder / "params.pkl.gz").write_bytes(gzip.compress(dumps(make_params(metrics), protocol)))
    return folder


def refuse_model(pipeline, error, fault):
    with pytest.raises(error, match=fault):
        read_model(io.BytesIO(dumps(pipeline, 0)), "model")


def changed(thing, path, value):
    """Replace one part of a pipeline, given by attribute, key and position."""
    *steps, last = path
    target = thing
    for step in steps:
        target = getattr(target, step) if isinstance(step, str) and hasattr(target, step) else target[step]
    target[last] = value
    return thing


def pipeline():
    return make_pipeline("latency", make_trees(2, seed=1), slope=0.5)


_ENCODER = ("state", "steps", 0, 1, "state")
_SCALER = ("state", "steps", 1, 1, "state", "transformer_")
_INNER = ("state", "steps", 1, 1, "state", "regressor_")


@pytest.mark.parametrize(
    ("path", "value", "error", "fault"),
    [
        (("state", "steps"), [], UnknownFormat, "not a pipeline of an encoder and a regressor"),
        (("state", "steps", 1), ("x", Obj("sklearn.pipeline", "Pipeline", {})), UnknownFormat, "ends in sklearn"),
        (("state", "steps", 0), ("x", Obj("sklearn.pipeline", "Pipeline", {})), UnknownFormat, "begins with sklearn"),
        ((*_ENCODER, "sparse_output_"), np.True_, UnknownFormat, "not a dense one-hot encoder"),
        ((*_ENCODER, "transformers_"), [], UnknownFormat, "not a dense one-hot encoder"),
        ((*_SCALER[:-1], "transformer_"), None, UnknownFormat, "not scaled to its minimum and maximum"),
        ((*_SCALER, "state", "data_min_"), 1.0, CorruptFile, "scaling of the target does not make sense"),
        ((*_SCALER, "state", "feature_range"), (0.1, 0.7), CorruptFile, "scaling of the target does not make sense"),
        ((*_INNER, "state", "transformer_"), None, UnknownFormat, "not transformed with an inverse sigmoid"),
        ((*_INNER, "state", "transformer_", "state", "inv_kw_args"), {}, UnknownFormat, "inverse sigmoid"),
        ((*_INNER, "state", "transformer_", "state", "inv_kw_args"), {"k": 0.0}, CorruptFile, "slope=0.0 is outside"),
        ((*_SCALER, "state", "data_max_"), np.array([math.inf]), CorruptFile, "upper=inf is not a finite number"),
        ((*_INNER, "state", "regressor_", "state", "_Booster"), None, UnknownFormat, "not a fitted xgboost"),
    ],
    ids=[
        *("no steps", "other regressor", "other encoder", "sparse", "no encoder", "no scaler", "no bounds", "no range"),
        *("no sigmoid", "no slope", "slope 0", "infinite bound", "not fitted"),
    ],
)
def test_a_pipeline_of_another_kind_is_refused(path, value, error, fault):
    refuse_model(changed(pipeline(), path, value), error, f"^model.*{fault}")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*_SCALER, "state", "data_min_"), np.array(["low"])),
        ((*_SCALER, "state", "data_min_"), np.array([None], dtype=object)),
        ((*_ENCODER, "transformers_", 0, 1, "state", "drop_idx_"), np.array(0)),
        ((*_ENCODER, "feature_names_in_"), np.array([0xFFFFFFFF], "<u4").view("<U1")),
        ((*_ENCODER, "feature_names_in_"), np.zeros(100_000, np.int8)),
    ],
    ids=["a text for a bound", "nothing for a bound", "no list of drops", "no character", "no names"],
)
def test_contents_that_contradict_themselves_are_said_of_the_file(path, value):
    refuse_model(changed(pipeline(), path, value), CorruptFile, "^model")


def test_trees_that_are_no_forest_are_said_of_the_file_and_the_metric(tmp_path):
    trees = make_trees(2, seed=1)
    trees[0]["left_children"][0] = 0
    folder = model_folder(tmp_path / "cifar10", make_pipeline("latency", trees, slope=0.5))
    with pytest.raises(CorruptFile, match=rf"^{folder}/model.pkl.gz: latency: XGBoost model: a node has two parents"):
        import_surrogates(folder, tmp_path / "out")


def test_trees_over_other_columns_than_are_encoded_are_refused():
    (model,) = read_model(io.BytesIO(dumps(pipeline(), 0)), "model")
    _forest_of(model, "latency")
    with pytest.raises(CorruptFile, match=r"^model: latency: trees over 41 features, of which 40 are encoded"):
        _forest_of(replace(model, columns=model.columns[1:]), "latency")


def test_columns_that_do_not_exist_are_refused(tmp_path):
    thing = pipeline()
    thing.state["steps"][0][1].state["transformers_"][0][1].state["categories_"][0].array[0] = "SiLU"
    folder = model_folder(tmp_path / "cifar10", thing)
    with pytest.raises(UnknownFormat, match=r"cifar10: the models use features that this version does not know.*SiLU"):
        import_surrogates(folder, tmp_path / "out")


def handle_of(trees, change):
    model = json.loads(make_handle(trees))
    change(model["Model"]["learner"])
    return json.dumps(model).encode()


@pytest.mark.parametrize(
    ("change", "error", "fault"),
    [
        (lambda m: m["gradient_booster"]["model"]["trees"][1].pop("split_indices"), CorruptFile, "split_indices"),
        (lambda m: m["gradient_booster"]["model"]["trees"][1]["left_children"].pop(), CorruptFile, "differ in length"),
        (lambda m: m["gradient_booster"]["model"]["trees"][1].update(categories=[1]), UnknownFormat, "categorical"),
        (lambda m: m["gradient_booster"]["model"]["trees"][1].clear(), CorruptFile, "not the JSON"),
        (lambda m: m["gradient_booster"]["model"].pop("trees"), CorruptFile, "trees"),
        (lambda m: m.update(trees=[[]] * 9), CorruptFile, "are not objects"),
        (lambda m: m.update(feature_names=[{}] * 200_000), CorruptFile, "over 100000 objects"),
        (lambda m: m.update(attributes=dict.fromkeys(map(str, range(2000)), "")), CorruptFile, "1000 keys"),
        (lambda m: m["gradient_booster"]["model"]["trees"][0].update(parents=[[0] * 9_000_000]), CorruptFile, "bytes"),
    ],
    ids=[
        "no column",
        "unequal columns",
        "categories",
        "empty tree",
        "no trees",
        "other trees",
        "many objects",
        "many keys",
        "large tree",
    ],
)
def test_a_booster_that_is_none_is_refused(change, error, fault):
    with pytest.raises(error, match=f"[Mm]odel.*{fault}"):
        forest_from_xgboost([parse_booster(handle_of(make_trees(2, seed=0), change), "model")])


@pytest.mark.parametrize("handle", [b"binf", b"{", b"{}", b"[" * 100_000, b'{"Model":' * 2000], ids=str)
def test_bytes_that_are_no_booster_are_refused(handle):
    with pytest.raises((CorruptFile, UnknownFormat), match=r"^model: "):
        parse_booster(handle, "model")


@pytest.mark.parametrize(
    "path",
    [
        (*_ENCODER, "sparse_output_"),
        (*_ENCODER, "feature_names_in_"),
        (*_SCALER, "state", "feature_range"),
        (*_SCALER, "state", "data_min_"),
        (*_INNER, "state", "transformer_", "state", "inv_kw_args"),
    ],
    ids=lambda path: path[-1],
)
def test_parts_that_are_shared_without_end_are_refused_at_once(path):
    # Pickled once and shared by the memo, which the writer of tests does not do: a stand-in is replaced.
    content = dumps(changed(pipeline(), path, "stand-in"), 2)
    assert content.count(b"X\x08\x00\x00\x00stand-in") == 1
    doubled = b")" + b"".join(
        b"r" + struct.pack("<I", 9000 + k) + b"j" + struct.pack("<I", 9000 + k) + b"\x86" for k in range(60)
    )
    content = content.replace(b"X\x08\x00\x00\x00stand-in", doubled)
    with pytest.raises((CorruptFile, UnknownFormat), match=r"^model"):
        read_model(io.BytesIO(content), "model")
    one_hot = (*_ENCODER, "transformers_", 0, 1, "state", "categories_", 0)
    content = dumps(changed(pipeline(), one_hot, np.array(["stand-in"], dtype=object)), 2)
    with pytest.raises(CorruptFile, match="categories of Activation are not texts"):
        read_model(io.BytesIO(content.replace(b"X\x08\x00\x00\x00stand-in", doubled)), "model")


def test_headers_of_something_else_are_refused():
    def refuse(thing, error, fault):
        with pytest.raises(error, match=fault):
            read_headers(io.BytesIO(dumps(thing, 0)), "params")

    refuse({}, UnknownFormat, "params does not hold the parameters of a model")
    refuse(make_params(("speed",)), UnknownFormat, "params: metric='speed' does not exist")
    refuse(make_params(("latency", "latency")), CorruptFile, "params: one metric several times: latency, latency")
    params = make_params(("latency",))
    refuse({**params, "feature_headers": params["label_headers"]}, UnknownFormat, "params: features latency;")


def test_an_archive_with_a_hostile_member_is_refused(tmp_path):
    path = tmp_path / "evil.tar"
    path.write_bytes(tar_bytes({"../evil": b""}))
    with pytest.raises(UnsafeFile, match=r"evil\.tar: member '\.\./evil' would land outside"):
        import_surrogates(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_hostile_files_in_an_archive_execute_nothing(tmp_path):
    trace = tmp_path / "trace"
    evil = b"cposix\nsystem\n(S'touch " + str(trace).encode() + b"'\ntR."
    for name in ("model.pkl.gz", "params.pkl.gz"):
        files = {
            "model.pkl.gz": gzip.compress(dumps(pipeline(), 0)),
            "params.pkl.gz": gzip.compress(dumps(make_params(("latency",)), 0)),
        }
        files[name] = evil
        path = tmp_path / "evil.tar"
        path.write_bytes(tar_bytes({f"assembled_surrogates/cifar10/latency/{k}": v for k, v in files.items()}))
        with pytest.raises(UnsafeFile, match=f"{name}: it asks for 'posix.system'.*nothing of it was executed"):
            import_surrogates(path, tmp_path / "out")
    assert not trace.exists()


def test_tasks_that_were_published_exist():
    assert set(PUBLISHED_TASKS) <= set(TASKS)


def test_hyperparameters_that_a_manifest_cannot_hold_are_left_out():
    params = make_params(("latency",))
    kept = dict(params["hyperparams"])
    params["hyperparams"] |= {"long": "x" * 10**6, "\x01": 1, "inf": float("inf"), "none": None}
    assert read_headers(io.BytesIO(dumps(params, 4)), "params").hyperparams == kept
