"""Tasks of a user's own: what is refused, and how they reach later sessions."""

import dataclasses
import json
import re

import pytest

import jahs
from jahs.cli import main
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch, UnknownFormat, UnknownName
from jahs.release import read_release
from jahs.release.manifest import to_json
from jahs.tasks import TASKS, Task, register, task
from jahs.tasks.definitions import BUILT_IN, EARLIER, KNOWN
from jahs.tasks.own import recorded_as, task_facts, task_recorded_as, write_task_file

OWN = dataclasses.replace(
    TASKS["digits"],
    name="leaves",
    title="Leaves",
    data_set="own_0123456789abcdef",
    index_digest="fedcba9876543210",
    mean=(0.5,),
    std=(0.25,),
)


@pytest.fixture(autouse=True)
def only_the_built_in_tasks_stay():
    yield
    for name in {*TASKS} - BUILT_IN:
        del KNOWN[name]


def test_a_registered_task_is_found_by_name_and_twice_is_once():
    assert register(OWN) is register(OWN)
    assert task("leaves") == OWN
    assert register(TASKS["cifar10"]) is TASKS["cifar10"]


def test_a_task_comes_back_from_its_file_and_from_what_artifacts_hold(tmp_path):
    write_task_file(tmp_path / "leaves.json", OWN)
    assert register(tmp_path / "leaves.json") == OWN
    recorded = json.loads(json.dumps(recorded_as(OWN)))
    only_the_name = recorded_as(TASKS["digits"])
    del KNOWN["leaves"]
    assert recorded_as(OWN) == task_facts(OWN)  # also where nobody has registered it
    assert task_recorded_as(recorded) == OWN
    assert only_the_name == "digits"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "digits"}, r"task 'digits' exists already and differs in data_set, .*index_digest"),
        ({"name": "leaves", "max_epoch": 3}, r"'leaves' exists already and differs in max_epoch; choose another name"),
        ({"name": "twin"}, "'twin' is task 'leaves' under another name"),
        ({"name": "../up"}, r"name='../up' must be a small letter"),
        ({"data_set": "../up"}, r"data_set='../up' must be a small letter"),
        ({"index_digest": None}, r"index_digest=None must be the 16 hex digits.*pipeline.define"),
        ({"index_digest": "xyz"}, "index_digest='xyz' must be"),
        ({"n_channels": 2}, r"n_channels=2 must be 1 \(grey\) or 3"),
        ({"n_classes": 1}, "n_classes=1 must be at least 2"),
        ({"operators": 3}, "operators=3 must be 1 or 2"),
        ({"mean": (0.5, 0.5)}, "mean has 2 values for 1 channels"),
        ({"std": (0.0,)}, "std must be above 0"),
        ({"title": "a\x1b[2J"}, "title must be a printable text"),
        ({"crop": ["small"]}, 'crop must be "small" or "large"'),
        ({"pad": -1}, "pad must be an integer from 0"),
        ({"mean": (2.0,)}, "mean must be a list of numbers from 0 to 1"),
        ({"has_own_test": 1}, "has_own_test must be true or false"),
    ],
)
def test_an_invalid_task_is_refused_and_nothing_is_registered(changes, message):
    register(OWN)
    with pytest.raises(InvalidArgument, match=message):
        register(dataclasses.replace(OWN, **{"name": "new", **changes}))
    assert {*TASKS} == {*BUILT_IN, "leaves"}


def test_every_fault_of_a_file_is_named_at_once(tmp_path):
    path = tmp_path / "leaves.json"
    facts = {**dataclasses.asdict(OWN), "side": "16", "n_train": 2.5, "colour": "red"}
    del facts["citation"]
    path.write_text(json.dumps({"format": 1, "task": facts}))
    with pytest.raises(InvalidArgument) as caught:
        register(path)
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{path}: a task is invalid:"
    assert [line.split(" ")[0] for line in lines[1:]] == ["'colour'", "citation", "side", "n_train"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("{", CorruptFile, "is not a task file"),
        ("[1]", CorruptFile, "must hold an object with format and task"),
        ('{"format": 2, "task": {}}', UnknownFormat, "format 2; this version of jahs reads format 1"),
        ('{"format": 1, "task": 3}', InvalidArgument, "a task must be an object with the fields name, title"),
        ('{"format": 1, "task": {"name": NaN}}', CorruptFile, "is not a task file"),
        (" " * (2 << 20), CorruptFile, "too large for a task file"),
    ],
)
def test_what_is_no_task_file_is_one_clear_line(tmp_path, content, error, message):
    path = tmp_path / "leaves.json"
    path.write_text(content)
    with pytest.raises(error, match=message) as caught:
        register(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_task_file_says_how_to_write_one(tmp_path):
    with pytest.raises(MissingData, match=r"no task file can be read there.*python -m pipeline\.define"):
        register(str(tmp_path / "none.json"))


def test_a_task_file_of_a_user_who_does_not_exist_is_missing():
    with pytest.raises(MissingData, match=r"~nosuch-user/x\.json: there is no such user; write the path in full"):
        register("~nosuch-user/x.json")


def write_release(folder, task_name="leaves", **own):
    folder.mkdir(parents=True)
    facts = {**recorded_as(register(OWN)), **own}
    del KNOWN["leaves"]
    (folder / "manifest.json").write_bytes(
        to_json({"format": 1, "task": task_name, "files": {}, "own_task": facts, "source": "measured"})
    )
    return folder


def test_whoever_opens_a_release_knows_its_task(tmp_path):
    assert read_release(write_release(tmp_path / "made")).task == OWN
    assert isinstance(task("leaves"), Task)


def test_a_name_is_looked_up_where_releases_are(tmp_path, monkeypatch):
    write_release(tmp_path / "leaves")
    monkeypatch.setenv("JAHS_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingData, match=r"models\.json"):  # it was found, and is empty
        jahs.Benchmark("leaves")
    assert jahs.releases()["leaves"] == tmp_path / "leaves"


def test_a_release_of_an_own_task_is_listed_before_its_task_is_registered(tmp_path, monkeypatch, capsys):
    write_release(tmp_path / "leaves")
    write_release(tmp_path / "digits_old", task_name="digits")
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv("JAHS_DATA_DIR", str(tmp_path))
    assert jahs.releases()["leaves"] == tmp_path / "leaves"
    assert "leaves" not in TASKS
    assert not {"digits_old", "notes"} & jahs.releases().keys()
    assert main(["verify", "leaves"]) == 0
    assert f"in {tmp_path / 'leaves'}" in capsys.readouterr().out
    with pytest.raises(UnknownName, match="did you mean 'leaves'"):
        jahs.Benchmark("leavs")


def test_the_demo_finds_the_release_of_an_own_task(tmp_path, monkeypatch, capsys):
    write_release(tmp_path / "leaves")
    monkeypatch.setenv("JAHS_DATA_DIR", str(tmp_path))
    assert main(["demo", "--task", "leaves"]) == 2
    assert "models.json" in capsys.readouterr().err  # it was found, and is empty


def test_a_release_keeps_the_facts_of_an_earlier_protocol_of_a_built_in_task(tmp_path):
    earlier = dataclasses.replace(TASKS["digits"], max_epoch=9, side=32)
    for facts in ({"own_task": task_facts(earlier)}, {}):
        folder = tmp_path / str(len(facts))
        folder.mkdir()
        (folder / "manifest.json").write_bytes(to_json({"format": 1, "task": "digits", "files": {}, **facts}))
    assert read_release(tmp_path / "1").task == earlier
    assert read_release(tmp_path / "0").task is TASKS["digits"]
    assert task("digits") is TASKS["digits"]  # reading an old release changes nothing


@pytest.mark.parametrize("release", [None, ".", "made"])
def test_an_unknown_name_lists_the_tasks_whatever_release_is_given(tmp_path, monkeypatch, release):
    write_release(tmp_path / "made")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownName, match="task='leafs' does not exist"):
        jahs.Benchmark("leafs", release=release)


@pytest.mark.parametrize(
    ("task_name", "own", "message"),
    [
        ("digits", {}, "own_task is 'leaves', but task is 'digits'"),
        ("leaves", {"side": 10**12}, "side must be an integer from 0 to a billion"),
        ("leaves", {"data_set": "../../etc"}, "data_set='../../etc' must be"),
        ("leaves", {"evil": 1}, "'evil' is not a field of a task"),
    ],
)
def test_a_forged_manifest_is_refused_by_name(tmp_path, task_name, own, message):
    folder = write_release(tmp_path / "made", task_name, **own)
    with pytest.raises(CorruptFile, match=re.escape(message)) as caught:
        read_release(folder)
    assert str(folder / "manifest.json") in str(caught.value)


def test_a_release_of_another_task_with_a_known_name_is_refused(tmp_path):
    folder = write_release(tmp_path / "made", max_epoch=7)
    register(OWN)
    with pytest.raises(CorruptFile, match="exists already and differs in max_epoch"):
        jahs.Benchmark("leaves", release=folder)
    with pytest.raises(ProtocolMismatch, match="is a release of fashion_mnist_mini, not of leaves"):
        jahs.Benchmark("leaves", release=jahs.releases()["fashion_mnist_mini"])


def test_a_built_in_task_has_its_present_prose_whatever_a_file_says():
    assert task_recorded_as({**task_facts(TASKS["digits"]), "caveat": "Words of a year ago."}) == TASKS["digits"]


def test_an_earlier_protocol_of_a_built_in_task_is_known_with_its_own_caveat():
    for earlier in EARLIER.values():
        found = task_recorded_as(task_facts(earlier))
        assert found is earlier
        assert found.caveat != TASKS[earlier.name].caveat


def test_a_named_task_is_an_earlier_one_if_its_protocol_says_so():
    for digest, earlier in EARLIER.items():
        assert task_recorded_as(earlier.name, protocol=digest) is earlier
        assert task_recorded_as(earlier.name, protocol="another") is TASKS[earlier.name]
        assert task_recorded_as("digits", protocol=digest) is TASKS["digits"]
