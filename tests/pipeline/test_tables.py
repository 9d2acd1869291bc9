"""Tables come back as they were written, and what is not such a table is refused by name."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from jahs.errors import CorruptFile, InvalidTable, MissingData
from jahs.files.tables import concatenate, empty_table, read_table, sort_by, write_table

COLUMNS = {"key": "uint64", "value": "float32", "name": "string", "flag": "bool", "small": "int8"}
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2**64 - 1),
        st.floats(width=32),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
        st.booleans(),
        st.integers(-128, 127),
    ),
    max_size=20,
)


def table_of(rows):
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return {
        name: np.array(values, dtype="U8" if dtype == "string" else dtype)
        for (name, dtype), values in zip(COLUMNS.items(), columns, strict=True)
    }


@given(rows=ROWS)
def test_what_is_written_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "table.parquet"
    table = table_of(rows)
    write_table(path, table, COLUMNS)
    again = read_table(path, COLUMNS)
    assert list(again) == list(COLUMNS)
    for name, values in table.items():
        np.testing.assert_array_equal(again[name], values)
        assert again[name].dtype.kind == values.dtype.kind


@given(rows=ROWS)
def test_sorting_keeps_every_row_and_orders_them(rows):
    table = sort_by(table_of(rows), ["small", "key"])
    pairs = list(zip(table["small"].tolist(), table["key"].tolist(), strict=True))
    assert pairs == sorted((row[4], row[0]) for row in rows)


def test_no_tables_are_an_empty_table():
    nothing = concatenate([], COLUMNS)
    assert {name: len(values) for name, values in nothing.items()} == dict.fromkeys(COLUMNS, 0)
    assert nothing["key"].dtype == empty_table(COLUMNS)["key"].dtype


def test_arrow_is_given_a_file_of_its_own(tmp_path, monkeypatch):
    """Its threads may let go of one of Python's when the interpreter is gone, and then the process aborts."""
    table, given = table_of([(1, 2.0, "a", True, 3)]), []
    write_table(tmp_path / "a.parquet", table, COLUMNS)
    read = pq.read_table
    monkeypatch.setattr(pq, "read_table", lambda file, **named: (given.append(file), read(file, **named))[1])
    read_table(tmp_path / "a.parquet", COLUMNS)
    assert [isinstance(file, pa.NativeFile) for file in given] == [True]


def test_every_fault_of_a_table_is_named(tmp_path):
    path = tmp_path / "table.parquet"
    with pytest.raises(MissingData, match="does not exist"):
        read_table(path, COLUMNS)
    path.write_bytes(b"PAR1 is not enough PAR1")
    with pytest.raises(CorruptFile, match="cannot be read as Parquet"):
        read_table(path, COLUMNS)
    write_table(path, table_of([]), {name: COLUMNS[name] for name in ("key", "name")})
    with pytest.raises(InvalidTable, match="lacks the columns value, flag, small"):
        read_table(path, COLUMNS)
    write_table(path, {"key": np.array([-1]), "name": np.array(["x"])}, {"key": "int64", "name": "string"})
    with pytest.raises(InvalidTable, match="key is not uint64"):
        read_table(path, {"key": "uint64", "name": "string"})


def test_damaged_text_is_a_corrupt_file(tmp_path):
    path, names = tmp_path / "table.parquet", ["a long name that Parquet leaves as it is", "another"]
    columns = {"name": "string"}
    pq.write_table(pa.table({"name": names}), path, compression="none")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"a long name", b"\xffalong\xffname"))
    with pytest.raises(CorruptFile, match="is damaged: "):
        read_table(path, columns)


def test_a_changed_value_is_no_table(tmp_path):
    path = tmp_path / "table.parquet"
    table = table_of([(1, 2.0, "a", True, 3)])
    write_table(path, table, COLUMNS)
    stored = pq.read_table(path)
    changed = stored.set_column(1, "value", pa.array([3.0], pa.float32()))
    pq.write_table(changed.replace_schema_metadata(stored.schema.metadata), path)
    with pytest.raises(CorruptFile, match="the values of value are not those that were written"):
        read_table(path, COLUMNS)
    assert read_table(path, {"key": "uint64"})["key"].tolist() == [1]
    pq.write_table(stored.drop_columns(["flag"]), path)
    with pytest.raises(CorruptFile, match="has lost the columns flag"):
        read_table(path, COLUMNS, defaults={"flag": False})


def test_a_page_that_was_damaged_is_noticed_by_its_checksum(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(path, {"key": np.arange(10_000)}, {"key": "int64"})
    stored = pq.read_table(path).replace_schema_metadata({})
    pq.write_table(stored, path, write_page_checksum=True, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="cannot be read as Parquet"):
        read_table(path, {"key": "int64"})


@pytest.mark.parametrize(("value", "dtype"), [(1.5, "int64"), (300, "int8"), (-1, "uint64")])
def test_a_value_that_does_not_fit_is_refused_not_wrapped_around(tmp_path, value, dtype):
    with pytest.raises(InvalidTable, match=f"key cannot be written as {dtype}"):
        write_table(tmp_path / "t.parquet", {"key": np.array([value])}, {"key": dtype})
    assert not list(tmp_path.iterdir())
