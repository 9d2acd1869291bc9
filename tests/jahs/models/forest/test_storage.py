import contextlib
import errno
import io
import mmap
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jahs.errors import CorruptFile, InvalidArgument, UnknownFormat
from jahs.models.forest import open_engine, save_forest, save_mapped_forest
from jahs.models.forest.storage import ARRAYS, HEADER
from tests.jahs.models.forest.examples import load_forest, load_mapped_forest, random_forest, random_rows
from tests.jahs.simulate.full_disk import full_disk


@pytest.fixture
def forest():
    return random_forest(np.random.default_rng(0))


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy_bytes(array, **keywords):
    file = io.BytesIO()
    np.save(file, array, **keywords)
    return file.getvalue()


@pytest.mark.parametrize(("save", "load"), [(save_forest, load_forest), (save_mapped_forest, load_mapped_forest)])
def test_a_forest_comes_back_as_it_was_saved(save, load, forest, tmp_path):
    save(forest, tmp_path / "forest")
    again = load(tmp_path / "forest")
    assert again.n_features == forest.n_features
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(forest, name), strict=True)
    X = random_rows(np.random.default_rng(1), 9)
    for kind in ("numpy", "compiled"):
        np.testing.assert_array_equal(open_engine(again, kind).predict(X), open_engine(forest, kind).predict(X))


def test_the_same_forest_is_the_same_bytes_and_nothing_is_left_beside(forest, tmp_path):
    save_forest(forest, tmp_path / "one.npz")
    save_forest(forest, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"one.npz", "two.npz"}


def test_a_mapped_forest_stays_on_disk(forest, tmp_path):
    save_mapped_forest(forest, tmp_path)
    again = load_mapped_forest(tmp_path)
    assert isinstance(memoryview(again.node_value.base).obj, mmap.mmap)
    assert not again.node_value.flags.writeable


def test_a_mapped_forest_that_does_not_fit_on_the_disk_is_not_one_and_the_error_has_its_number(forest, tmp_path):
    with full_disk(200), pytest.raises(OSError, match="File too large") as fault:
        save_mapped_forest(forest, tmp_path / "forest")
    assert fault.value.errno == errno.EFBIG
    assert not list((tmp_path / "forest").glob(".*"))
    assert not (tmp_path / "forest" / f"{HEADER}.npy").exists()


def test_another_format_version_is_refused_and_named(forest, tmp_path):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    content = members(path) | {f"{HEADER}.npy": npy_bytes(np.array([2, 4]))}
    write_members(path, content)
    with pytest.raises(UnknownFormat, match=r"forest\.npz: forest format 2; this version of jahs reads format 1"):
        load_forest(path)


def claims_more():
    """An array whose header announces a petabyte."""
    data = npy_bytes(np.zeros(3, np.float32))
    return data.replace(b"(3,), }               ", b"(281474976710656,), } ")


@pytest.mark.parametrize(
    ("member", "data"),
    [
        ("node_value.npy", b""),
        ("node_value.npy", b"\x93NUMPY\x01\x00\xff\xff{'descr'"),
        ("node_value.npy", npy_bytes(np.zeros((2, 3), np.float32))),
        ("node_value.npy", npy_bytes(np.zeros(3, np.float32))),
        ("node_value.npy", npy_bytes(np.array([None]), allow_pickle=True)),
        ("node_value.npy", claims_more()),
        ("header.npy", npy_bytes(np.array(["x"]))),
        ("header.npy", npy_bytes(np.empty(0, np.int64))),
        ("header.npy", npy_bytes(np.array([1, -4]))),
    ],
)
def test_a_member_that_is_no_array_of_a_forest_is_refused(member, data, forest, tmp_path):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    write_members(path, members(path) | {member: data})
    with pytest.raises(CorruptFile, match=r"forest\.npz"):
        load_forest(path)
    save_mapped_forest(forest, tmp_path / "mapped")
    (tmp_path / "mapped" / member).write_bytes(data)
    with pytest.raises(CorruptFile, match="mapped"):
        load_mapped_forest(tmp_path / "mapped")


def test_an_npz_never_asks_for_more_memory_than_its_limit(forest, tmp_path, monkeypatch):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    monkeypatch.setattr("jahs.models.forest.storage.MAX_BYTES", 10)
    with pytest.raises(InvalidArgument, match="use save_mapped_forest"):
        save_forest(forest, path)
    content = members(path) | {"node_value.npy": npy_bytes(np.zeros(10_000, np.float32))}
    write_members(path, content)
    with pytest.raises(CorruptFile, match=r"node_value\.npy claims 40128 bytes"):
        load_forest(path)


def test_a_lost_member_is_refused(forest, tmp_path):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    content = members(path)
    del content["tree_start.npy"]
    write_members(path, content)
    with pytest.raises(CorruptFile, match=r"tree_start\.npy"):
        load_forest(path)


@pytest.mark.parametrize("change", [1, 4, 6, 128])  # 4 and 6 make other compressions, 128 places before the file
def test_a_changed_byte_of_the_archives_directory_is_refused_or_changes_nothing(forest, tmp_path, change):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    whole = path.read_bytes()
    for place in range(whole.index(b"PK\x01\x02"), len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
        with contextlib.suppress(CorruptFile, UnknownFormat):
            again = load_forest(path)
            assert all(np.array_equal(getattr(again, name), getattr(forest, name)) for name in ARRAYS)


@settings(
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(data, forest, tmp_path):
    path = tmp_path / "forest.npz"
    save_forest(forest, path)
    damaged = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    else:
        del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
    path.write_bytes(damaged)
    try:
        again = load_forest(path)
    except (CorruptFile, UnknownFormat):
        return
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(forest, name))
