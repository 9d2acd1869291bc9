"""A release comes back as it was written, and anything that is not as written is refused by name."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jahs.errors import CorruptFile, InvalidArgument, InvalidTable, JahsError, MissingData, UnknownFormat, UnknownName
from jahs.files.atomic import change_folder
from jahs.release import Models, RecordedTable, Release, find_release, read_release, releases, write_release
from jahs.release.table import parse_table_npz, write_table_npz
from jahs.release.writing import extend_release
from tests.releases import METRICS, edit_json, make_release, make_table, vouch

TABLE = make_table("digits", 12, diverged=[3])
QUALITY = {"format": 1, "valid_acc": {"kendall_tau": 0.5}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A release with every part but noise; tests copy it before they damage it."""
    path = tmp_path_factory.mktemp("whole") / "digits"
    return make_release(path, table=TABLE, quality=QUALITY, references={"fronts": []}, facts={"seed": 7})


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "digits"))


def read_everything(path: Path) -> Release:
    release = read_release(path)
    _ = release.models, release.forests, release.table, release.quality
    return release


def arrays(forest):
    return {name: getattr(forest, name) for name in forest.__slots__ if name != "n_features"}


@pytest.mark.parametrize("mapped", [False, True], ids=["npz", "mapped"])
def test_what_was_written_is_what_is_read(mapped, tmp_path):
    path = make_release(tmp_path / "r", table=TABLE, quality=QUALITY, mapped=mapped)
    release = read_everything(path)
    assert (release.task.name, release.facts["version"], release.quality) == ("digits", "test", QUALITY)
    assert tuple(release.models.metrics) == METRICS
    assert release.noise is None
    for name in ("configs", "runs", "profile"):
        for column, values in getattr(TABLE, name).items():
            values_read = getattr(release.table, name)[column]
            np.testing.assert_array_equal(values_read, values)
            assert values_read.dtype.kind == values.dtype.kind


def test_mapped_and_read_forests_are_the_same(tmp_path):
    read = read_release(make_release(tmp_path / "a"))
    mapped = read_release(make_release(tmp_path / "b", mapped=True))
    for one, other in zip(read.forests, mapped.forests, strict=True):
        for name, values in arrays(one).items():
            np.testing.assert_array_equal(arrays(other)[name], values, strict=True)


def test_models_survive_their_json(whole):
    models = read_release(whole).models
    assert Models.from_dict(json.loads(json.dumps(models.to_dict()))) == models


def test_the_same_input_gives_the_same_bytes_and_nothing_is_left_beside(tmp_path):
    for name in ("a", "b", "b"):
        make_release(tmp_path / name, table=TABLE, quality=QUALITY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    files = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert read_release(tmp_path / "a").sha256 == read_release(tmp_path / "b").sha256


def test_parts_are_read_when_they_are_asked_for(copy):
    (copy / "table.npz").write_bytes(b"")
    release = read_release(copy)
    assert release.forests
    with pytest.raises(CorruptFile, match=r"table\.npz has 0 bytes, not the"):
        _ = release.table


def test_a_flipped_byte_in_any_file_is_found(copy):
    release = read_release(copy)
    for name in release.manifest.files:
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        with pytest.raises(CorruptFile, match=rf"{name} is damaged.*restore the file"):
            read_release(copy).manifest.check(name)
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
    release.verify()


def test_a_missing_file_is_named(copy):
    (copy / "forests-1.npz").unlink()
    with pytest.raises(MissingData, match=r"forests-1\.npz is missing, which manifest\.json lists"):
        read_everything(copy)
    with pytest.raises(MissingData, match=r"forests-1\.npz"):
        read_release(copy).verify()


def test_a_part_that_a_release_never_had_is_named(tmp_path):
    release = read_release(make_release(tmp_path / "r"))
    with pytest.raises(MissingData, match="no recorded runs"):
        _ = release.table


def test_a_link_is_not_followed(copy, tmp_path):
    (copy / "quality.json").rename(tmp_path / "elsewhere.json")
    (copy / "quality.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CorruptFile, match="is a link"):
        _ = read_release(copy).quality


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0], ids=repr)
def test_another_format_version_is_refused(copy, version):
    edit_json(copy, "manifest.json", lambda manifest: manifest.update(format=version))
    with pytest.raises(UnknownFormat, match=r"manifest\.json: release format .* reads format 1"):
        read_release(copy)


@pytest.mark.parametrize("key", ["format", "features_version"])
def test_models_of_another_version_are_refused(copy, key):
    edit_json(copy, "models.json", lambda models: models.update({key: 99}))
    with pytest.raises(UnknownFormat, match=r"models\.json: models.*this version of jahs"):
        _ = read_release(copy).models


@pytest.mark.parametrize(("noise", "error", "said"), [
    ({"format": 3}, UnknownFormat, "noise: format 3"),
    ({"format": 2}, CorruptFile, "a part is missing"),
    ([1], CorruptFile, "is not a JSON object"),
], ids=["version", "empty", "list"])  # fmt: skip
def test_noise_that_cannot_be_read_names_its_file(tmp_path, noise, error, said):
    release = read_release(make_release(tmp_path / "r", noise=noise))
    with pytest.raises(error, match=rf"noise\.json.*{said}"):
        _ = release.noise


def test_an_unknown_task_is_refused(copy):
    edit_json(copy, "manifest.json", lambda manifest: manifest.update(task="imagenet"))
    with pytest.raises(UnknownName, match="imagenet"):
        read_release(copy)


@pytest.mark.parametrize(
    "name",
    ["../quality.json", "/etc/passwd", "a/b/c.json", "models.pkl", "C:x.json", "", ".json", "a\n.json", "A.npz"],
    ids=repr,
)
def test_a_name_that_could_leave_the_folder_is_refused(copy, name):
    edit_json(copy, "manifest.json", lambda manifest: manifest["files"].update({name: {"size": 1, "sha256": "0" * 64}}))
    with pytest.raises(CorruptFile, match="not a valid name of a release's file"):
        read_release(copy)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(files=[]),
        lambda m: m.update(task=3),
        lambda m: m.pop("files"),
        lambda m: m["files"].update({"x.json": {"size": -1, "sha256": "0" * 64}}),
        lambda m: m["files"].update({"x.json": {"size": 2**60, "sha256": "0" * 64}}),
        lambda m: m["files"].update({"x.json": {"size": True, "sha256": "0" * 64}}),
        lambda m: m["files"].update({"x.json": {"size": 1, "sha256": "xyz"}}),
        lambda m: m["files"].update({"x.json": None}),
        lambda m: m.update(files={f"x{i}.json": {"size": 1, "sha256": "0" * 64} for i in range(1001)}),
    ],
    ids=["list", "task", "none", "negative", "huge", "bool", "digest", "null", "many"],
)
def test_a_manifest_that_makes_no_sense_is_refused(copy, change):
    edit_json(copy, "manifest.json", change)
    with pytest.raises(CorruptFile, match=r"manifest\.json"):
        read_release(copy)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{", b'{"format": NaN}', b"[" * 100_000], ids=range(6))
def test_a_manifest_that_is_no_json_object_is_refused(copy, data):
    (copy / "manifest.json").write_bytes(data)
    with pytest.raises(CorruptFile, match=r"manifest\.json"):
        read_release(copy)


def test_a_folder_without_a_manifest_is_no_release(tmp_path):
    with pytest.raises(MissingData, match=r"is not a release.*jahs\.releases"):
        read_release(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(costs="free"),
        lambda m: m.update(packs={}),
        lambda m: m.pop("metrics"),
        lambda m: m.update(metrics=[]),
        lambda m: m["metrics"].update(beauty=m["metrics"]["valid_acc"]),
        lambda m: m["metrics"].update(n_params=m["metrics"]["valid_acc"]),
        lambda m: m["metrics"]["valid_acc"].update(pack=9),
        lambda m: m["metrics"]["valid_acc"].update(pack=-1),
        lambda m: m["metrics"]["valid_acc"].update(forest=9),
        lambda m: m["metrics"]["valid_acc"].update(target="square"),
        lambda m: m["metrics"]["valid_acc"].update(direction="min"),
        lambda m: m["metrics"]["valid_acc"].update(unit=3),
        lambda m: m["metrics"]["valid_acc"]["transform"].update(slope=0),
        lambda m: m["packs"][0]["features"]["columns"].pop(),
        lambda m: m["packs"][0]["features"]["columns"].append("beauty"),
        lambda m: m["packs"][0]["features"].update(times={"forward": {}, "backward": {}, "share_forward": -1}),
    ],
    ids=range(16),
)
def test_models_that_do_not_fit_together_are_refused(copy, change):
    edit_json(copy, "models.json", change)
    with pytest.raises((CorruptFile, UnknownName), match=r"models\.json|beauty"):
        _ = read_release(copy).forests


def test_a_long_word_does_not_make_every_word_as_long(tmp_path):
    """Words are padded to the longest of them: 8 MiB of zeros in a small file would ask for terabytes."""
    path = tmp_path / "table.npz"
    write_table_npz(path, make_table("digits", 21))
    with np.load(path) as file:
        members = dict(file)
    members["runs.status.words"] = np.frombuffer(b"a" * 2**23 + bytes(2**16 - 1), np.uint8)
    np.savez_compressed(path, **members)
    assert path.stat().st_size < 100_000
    with pytest.raises(CorruptFile, match=r"runs\.status has \d+ rows with words of up to \d+ characters"):
        parse_table_npz(path, path.read_bytes())
    n = 400_000  # rows of words of a thousand characters: 1.5 GiB in memory
    members["runs.status.words"] = np.frombuffer(b"a" * 1000, np.uint8)
    np.savez_compressed(path, **{**members, "runs.status": np.zeros(n, np.uint16)})
    with pytest.raises(CorruptFile, match=r"runs\.status has 400000 rows with words of up to 1000 characters"):
        parse_table_npz(path, path.read_bytes())
    table = make_table("digits", 21)
    runs = {**table.runs, "machine": np.full(len(table.runs["epoch"]), "x" * 1001)}
    with pytest.raises(InvalidTable, match="of more than 1000 characters"):
        write_table_npz(path, RecordedTable(configs=table.configs, runs=runs, profile=table.profile))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_that_the_manifest_vouches_for_is_an_error_of_ours_and_nothing_else(whole, tmp_path, data):
    """A forged release: bytes are changed and the digests made to fit. It may be read, but never breaks the reader."""
    path = tmp_path / "forged"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    name = data.draw(st.sampled_from(["models.json", "forests-0.npz", "table.npz"]))
    content = bytearray((path / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (path / name).write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    vouch(path, name)
    with contextlib.suppress(JahsError):
        read_everything(path)


def test_a_table_that_claims_to_be_huge_is_not_unpacked(copy):
    with (
        zipfile.ZipFile(copy / "table.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("header.npy", "w") as member,
    ):
        for _ in range(300):
            member.write(bytes(2**20))
    assert (copy / "table.npz").stat().st_size < 2**22
    vouch(copy, "table.npz")
    with pytest.raises(CorruptFile, match=r"table\.npz: cannot be read.*claims"):
        _ = read_release(copy).table


def test_a_table_of_another_version_or_with_objects_is_refused(copy):
    np.savez(copy / "table.npz", header=np.array([3]))
    vouch(copy, "table.npz")
    with pytest.raises(UnknownFormat, match="table: format 3"):
        _ = read_release(copy).table
    np.savez(copy / "table.npz", header=np.array([{}], dtype=object))
    vouch(copy, "table.npz")
    with pytest.raises(CorruptFile, match=r"table\.npz"):
        _ = read_release(copy).table


def rewritten(path, change):
    """Return the table of a file whose members are changed."""
    with np.load(path) as file:
        members = dict(file)
    change(members)
    np.savez_compressed(path, **members)
    return parse_table_npz(path, path.read_bytes())


def test_a_table_of_format_1_is_read_as_one_of_format_2(tmp_path):
    path = tmp_path / "table.npz"
    write_table_npz(path, TABLE)

    def to_format_1(members):
        members["header"] = np.array([1])
        for name in ("configs", "runs", "profile"):
            columns = getattr(TABLE, name)
            floats = {key: values for key, values in columns.items() if values.dtype == np.float32}
            assert all(members[f"{name}.{key}"].dtype == np.uint8 for key in floats)
            members |= {f"{name}.{key}": values for key, values in floats.items()}

    for read in (parse_table_npz(path, path.read_bytes()), rewritten(path, to_format_1)):
        for name in ("configs", "runs", "profile"):
            for key, values in getattr(TABLE, name).items():
                found = getattr(read, name)[key]
                assert found.dtype == values.dtype or values.dtype.kind in "OU"
                assert found.tobytes() == values.tobytes() if values.dtype.kind == "f" else (found == values).all()


@pytest.mark.parametrize("values", [np.zeros(7, np.uint8), np.zeros(8, np.float32)], ids=["seven bytes", "floats"])
def test_bytes_that_are_no_floats_are_refused(tmp_path, values):
    path = tmp_path / "table.npz"
    write_table_npz(path, TABLE)
    with pytest.raises(CorruptFile, match=r"runs\.valid_acc holds . items of .*, not the four bytes"):
        rewritten(path, lambda members: members.update({"runs.valid_acc": values}))


@pytest.mark.parametrize("name", ["runs", "profile"])
def test_a_table_with_measurements_of_configs_that_it_lacks_is_not_written(tmp_path, name):
    first = TABLE.configs["config_id"][0]
    configs = {key: values[1:] for key, values in TABLE.configs.items()}
    other = "profile" if name == "runs" else "runs"
    is_kept = getattr(TABLE, other)["config_id"] != first
    kept = {key: values[is_kept] for key, values in getattr(TABLE, other).items()}
    table = RecordedTable(configs=configs, **{other: kept, name: getattr(TABLE, name)})
    with pytest.raises(InvalidTable, match=f"{name} has 1 configs that are not among the configs"):
        make_release(tmp_path / "r", table=table)
    assert list(tmp_path.iterdir()) == []


def test_a_release_without_models_can_hold_a_table(tmp_path):
    write_release(tmp_path / "r", manifest_facts={"task": "digits"}, table=TABLE)
    release = read_release(tmp_path / "r")
    assert len(release.table.configs["N"]) == 12
    with pytest.raises(MissingData, match=r"models\.json"):
        _ = release.models


def test_a_folder_that_holds_something_else_is_not_replaced(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidArgument, match="exists and is not a release"):
        make_release(tmp_path / "r")
    assert (tmp_path / "r" / "thesis.tex").read_text() == "years of work"


def test_a_release_is_extended_whole_or_not_at_all(copy):
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    extend_release(read_release(copy), {"seed": 8}, noise=None, references={"fronts": [1]})
    release = read_release(copy)
    release.verify()
    assert (release.facts["seed"], release.parse("references.json", dict)) == (8, {"fronts": [1]})
    assert {path.name for path in copy.iterdir() if path.read_bytes() != before[path.name]} == {
        "manifest.json",
        "references.json",
    }
    (copy / "forests-1.npz").write_bytes(b"x")
    with pytest.raises(CorruptFile, match=r"forests-1\.npz"):
        extend_release(read_release(copy), {"seed": 9})
    assert read_release(copy).facts["seed"] == 8


def test_a_release_of_an_unknown_task_is_not_written(tmp_path):
    with pytest.raises(UnknownName):
        write_release(tmp_path / "r", manifest_facts={"task": "imagenet"})
    assert list(tmp_path.iterdir()) == []


def test_a_release_is_found_by_its_folder_or_by_the_one_above(copy, tmp_path):
    assert find_release("digits", copy) == find_release("digits", tmp_path) == find_release("digits", str(copy)) == copy
    with pytest.raises(MissingData, match=r"is not a release, nor is .*cifar10: it has no"):
        find_release("cifar10", tmp_path)


def test_the_data_folder_of_the_environment_comes_first(copy, tmp_path, monkeypatch):
    monkeypatch.setenv("JAHS_DATA_DIR", str(tmp_path))
    assert releases()["digits"] == copy
    assert find_release("digits") == copy
    with pytest.raises(MissingData, match=r"no release for task 'cifar10' in .*there are releases for .*digits"):
        find_release("cifar10")
    with pytest.raises(UnknownName, match="imagenet"):
        find_release("imagenet")


def test_without_a_release_the_message_says_what_to_do(monkeypatch):
    monkeypatch.delenv("JAHS_DATA_DIR", raising=False)
    with pytest.raises(MissingData, match=r"Give its folder as release=, or set JAHS_DATA_DIR"):
        find_release("colorectal_histology")


LOCKED = """
import os, sys
from pathlib import Path
from jahs.errors import MissingData
from jahs.release import read_release
release = read_release(Path(sys.argv[1]))
Path(sys.argv[2]).chmod(0)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    (release.verify if sys.argv[3] == "verify" else lambda: read_release(release.path))()
except MissingData as err:
    print(err)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
@pytest.mark.parametrize(("locked", "ask", "named"), [
    ("manifest.json", "read", "manifest.json"),
    ("table.npz", "verify", "table.npz"),
    (".", "read", "manifest.json"),
    (".", "verify", "forests-0.npz"),
], ids=["manifest", "file", "folder", "file in a folder"])  # fmt: skip
def test_what_this_user_may_not_read_is_named(whole, locked, ask, named):
    with TemporaryDirectory() as place:  # pytest's own folders are closed to other users
        Path(place).chmod(0o755)
        folder = Path(shutil.copytree(whole, Path(place) / "digits"))
        command = [sys.executable, "-c", LOCKED, str(folder), str(folder / locked), ask]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"digits/{named} cannot be read (Permission denied)" in done.stdout
    assert "release=" in done.stdout


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_an_unwritable_folder_is_left_alone(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        make_release(tmp_path / "locked" / "r")


def test_a_link_to_a_release_keeps_pointing_at_it(tmp_path):
    (tmp_path / "kept").mkdir()
    real = make_release(tmp_path / "kept" / "r", seed=0)
    link = tmp_path / "link"
    link.symlink_to(real)
    with change_folder(link) as beside:
        (beside / "fact.txt").write_text("whole")
    assert link.is_symlink()
    assert [path.name for path in real.iterdir()] == ["fact.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "link"]
