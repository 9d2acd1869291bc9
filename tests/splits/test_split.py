"""The value and the file: round trips, rows of a part, and everything a reader refuses."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import CorruptFile, InvalidArgument, MissingData, OutOfSpace, UnknownFormat
from jahs.files.sealed_json import sealed_text
from splits.split import Split, read_split, write_split


def make(ids, parts, **facts):
    facts = {"seed": 7, "task": "digits", "protocol": "ab" * 8, **facts}
    return Split(config_ids=np.array(ids, dtype=np.uint64), parts=np.array(parts, dtype=np.int8), **facts)


SPLIT = make([1, 255, 2**64 - 1], [0, 1, 2])
TEXT = """{
  "assignments": {
    "0000000000000001": "train",
    "00000000000000ff": "valid",
    "ffffffffffffffff": "test"
  },
  "checksum": "0133163a2841f567",
  "counts": {
    "test": 1,
    "train": 1,
    "valid": 1
  },
  "digest": "eb78bea3a0a9f42e",
  "extends": null,
  "format": 2,
  "protocol": "abababababababab",
  "seed": 7,
  "task": "digits"
}
"""


def _sealed(content):
    """A file whose faults no checksum covers up."""
    return sealed_text({key: value for key, value in content.items() if key not in ("checksum", "format")})


@pytest.fixture
def file(tmp_path):
    """The file of `SPLIT`."""
    (tmp_path / "split.json").write_text(TEXT)
    return tmp_path / "split.json"


def test_the_file_is_what_it_always_was(tmp_path):
    write_split(path := tmp_path / "split.json", SPLIT)
    assert path.read_text() == TEXT


def test_a_file_is_read(file):
    split = read_split(file)
    assert split.assignments == SPLIT.assignments
    assert (split.seed, split.task, split.protocol, split.extends) == (7, "digits", "ab" * 8, None)


def test_every_flipped_bit_of_a_split_is_noticed(file):
    write_split(file, SPLIT)
    data = file.read_bytes()
    for bit in range(8 * len(data)):
        file.unlink()  # overwriting a file may wait for the disk
        file.write_bytes(data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
        with pytest.raises((CorruptFile, UnknownFormat), match=r"split\.json"):
            read_split(file)


@given(
    sides=st.dictionaries(st.integers(0, 2**64 - 1), st.integers(0, 2), max_size=20),
    seed=st.integers(0, 2**64 - 1),
    extends=st.none() | st.just("00" * 8),
)
def test_a_split_comes_back_from_its_file(tmp_path_factory, sides, seed, extends):
    path = tmp_path_factory.mktemp("split") / "split.json"
    split = make(sorted(sides), [sides[number] for number in sorted(sides)], seed=seed, extends=extends)
    write_split(path, split)
    again = read_split(path)
    assert again.config_ids.dtype == np.uint64
    assert again.config_ids.tolist() == split.config_ids.tolist()
    assert again.parts.tolist() == split.parts.tolist()
    assert (again.seed, again.task, again.protocol, again.extends) == (seed, "digits", "ab" * 8, extends)


def test_the_part_of_every_row_of_any_table_is_found():
    column = np.array([255, 1, 255, 2**64 - 1, 1], dtype=np.uint64)
    assert SPLIT.parts_of(column).tolist() == [1, 0, 1, 2, 0]
    assert SPLIT.parts_of(np.array([0, 1, 254, 2**64 - 1], dtype=np.uint64)).tolist() == [-1, 0, -1, 2]
    assert make([], []).parts_of(column).tolist() == [-1] * 5


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"format": 3}, UnknownFormat, "format 3; this version of jahs reads format 2"),
        ({"checksum": "0" * 16}, CorruptFile, "was damaged or edited after it was written"),
        ({"format": True}, UnknownFormat, "format True"),
        ({"format": None}, UnknownFormat, "format None"),
        ({"digest": "0" * 16}, CorruptFile, "digest is '0000000000000000', but the assignments give"),
        ({"digest": 0}, CorruptFile, "digest=0 is not text"),
        ({"counts": {"train": 3, "valid": 0, "test": 0}}, CorruptFile, "counts is"),
        (
            {"assignments": {"0" * 16: "dev"}},
            CorruptFile,
            "1 parts must be one of train, valid, test, got: 0{16}: 'dev'",
        ),
        ({"assignments": {"0" * 16: ["train"]}}, CorruptFile, "1 parts must be one of"),
        ({"assignments": {"1": "train", "0" * 15 + "G": "test"}}, CorruptFile, "2 ids are not 16 hex digits: 0"),
        ({"assignments": {"0" * 15 + "A": "train"}}, CorruptFile, "1 ids are not 16 hex digits"),
        ({"assignments": ["train"]}, CorruptFile, "assignments is not an object"),
        ({"assignments": {}}, CorruptFile, "counts is"),
        ({"seed": -1}, CorruptFile, "seed=-1 is not an integer"),
        ({"seed": 1.0}, CorruptFile, "seed=1.0 is not an integer"),
        ({"extends": 3}, CorruptFile, "extends=3 is neither text nor null"),
        ({"note": "x"}, CorruptFile, "note should not be there"),
        ({"task": ...}, CorruptFile, "task is missing"),
        ({"format": ...}, CorruptFile, "it has no format"),
    ],
)
def test_a_changed_file_is_refused(file, changed, error, message):
    content = {**json.loads(file.read_text()), **changed}
    content = {key: value for key, value in content.items() if value is not ...}
    is_sealed = not {"format", "checksum"} & changed.keys()
    file.write_text(_sealed(content) if is_sealed else json.dumps(content))
    with pytest.raises(error, match=message):
        read_split(file)


def test_every_fault_is_told_at_once(file):
    file.write_text(_sealed({**json.loads(file.read_text()), "seed": -1, "task": 3, "note": 1}))
    with pytest.raises(CorruptFile) as caught:
        read_split(file)
    assert len(str(caught.value).splitlines()) == 3


def test_a_config_moved_by_hand_is_noticed(file):
    text = file.read_text().replace('01": "train"', '01": "valid"').replace('ff": "valid"', 'ff": "train"', 1)
    file.write_text(_sealed(json.loads(text)))
    with pytest.raises(CorruptFile, match="restore the file"):
        read_split(file)


def test_a_config_that_stands_twice_is_refused(file):
    line = '    "0000000000000001": "train",\n'
    file.write_text(file.read_text().replace(line, line + line.replace("train", "test")))
    with pytest.raises(CorruptFile, match="the key '0000000000000001' twice in the object that ends: line 7"):
        read_split(file)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b"[" * 100_000, b"\x80\x04N."])
def test_what_is_no_split_is_refused(tmp_path, data):
    (tmp_path / "split.json").write_bytes(data)
    with pytest.raises(CorruptFile):
        read_split(tmp_path / "split.json")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(MissingData, match="does not exist"):
        read_split(tmp_path / "split.json")


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be written: No such file"):
        write_split(tmp_path / "nowhere" / "split.json", SPLIT)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jahs.files.atomic.os.fsync", full)
    with pytest.raises(OutOfSpace, match="disk is full"):
        write_split(file, make([1], [0]))
    assert [path.name for path in file.parent.iterdir()] == ["split.json"]
    assert file.read_text() == TEXT
