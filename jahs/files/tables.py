"""Tables as Parquet files: columns of numpy arrays in and out, with exactly the names and types of `jahs.schema`.

Needs pyarrow, which is imported when a table is first read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jahs.errors import CorruptFile, InvalidTable, MissingData, MissingDependency
from jahs.files.atomic import out_of_space, write_beside

__all__ = ["Table", "concatenate", "empty_table", "read_table", "sort_by", "take", "typed", "write_table"]

Table: TypeAlias = dict[str, npt.NDArray[Any]]  # Any: each column has a type of its own
"""Columns of equal length."""

_FORMAT: Final = "1"


def read_table(path: Path, columns: Mapping[str, str]) -> Table:
    """Read a Parquet file that has at least these columns; return them with their types.

    Raises:
        MissingData: there is no such file, or it cannot be opened or read just now.
        CorruptFile: it is not readable as Parquet.
        InvalidTable: columns are missing or have other types.
    """
    pa, pq = _arrow()
    if not path.is_file():
        raise MissingData(f"{path} does not exist")
    try:
        # An open file, so that nothing is read out of the folder's name; and Arrow's own: its threads may let go of the
        # file when the interpreter is gone already, which aborts the process if it is one of Python's.
        with pa.OSFile(str(path)) as file:
            table = pq.read_table(file)
    except (pa.ArrowException, OSError) as err:
        if isinstance(err, OSError) and err.errno is not None:  # of the system; what is no Parquet has none
            raise MissingData(f"{path} cannot be read: {err}; the file may be whole, so try again") from err
        raise CorruptFile(f"{path} cannot be read as Parquet: {err}") from err
    if missing := [name for name in columns if name not in table.column_names]:
        raise InvalidTable(f"{path} lacks the columns {', '.join(missing)}")
    result: Table = {}
    faults = []
    for name, dtype in columns.items():
        try:
            column = table.column(name).cast(pa.string() if dtype == "string" else pa.from_numpy_dtype(np.dtype(dtype)))
        except pa.ArrowException as err:
            faults.append(f"{name} is not {dtype}: {err}")
            continue
        if column.null_count:
            faults.append(f"{name} has {column.null_count} empty values")
            continue
        values = column.to_numpy()
        result[name] = values.astype(str) if dtype == "string" else values
    if faults:
        raise InvalidTable("\n".join(f"{path}: {fault}" for fault in faults))
    return result


def write_table(path: Path, table: Mapping[str, npt.NDArray[Any]], columns: Mapping[str, str]) -> None:
    """Write exactly these columns with these types, whole or not at all.

    Raises:
        InvalidTable: a value does not fit its column's type.
        OutOfSpace: the disk is full; nothing was left behind.
    """
    pa, pq = _arrow()
    arrays = [_arrow_array(pa, table[name], dtype, where=f"{path}: {name}") for name, dtype in columns.items()]
    content = pa.Table.from_arrays(arrays, names=list(columns)).replace_schema_metadata({"jahs_format": _FORMAT})
    with out_of_space(path), write_beside(path) as beside:
        pq.write_table(content, beside, compression="zstd")


def empty_table(columns: Mapping[str, str]) -> Table:
    """Return a table without rows."""
    return {name: np.empty(0, "U1" if dtype == "string" else dtype) for name, dtype in columns.items()}


def typed(table: Mapping[str, npt.NDArray[Any]], columns: Mapping[str, str]) -> Table:
    """Return the named columns of a table, in their order and with their types."""
    return {name: table[name] if dtype == "string" else table[name].astype(dtype) for name, dtype in columns.items()}


def concatenate(tables: Sequence[Mapping[str, npt.NDArray[Any]]], columns: Mapping[str, str]) -> Table:
    """Return the rows of several tables one after another."""
    if not tables:
        return empty_table(columns)
    return {name: np.concatenate([table[name] for table in tables]) for name in columns}


def take(table: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[np.bool_ | np.integer]) -> Table:
    """Return some rows of a table: positions or a mask."""
    return {name: values[rows] for name, values in table.items()}


def sort_by(table: Mapping[str, npt.NDArray[Any]], keys: Sequence[str]) -> Table:
    """Return the rows in order of `keys`, the first one first; equal rows keep their order."""
    return take(table, np.lexsort([table[key] for key in reversed(keys)]))


def _arrow_array(pa: Any, values: npt.NDArray[Any], dtype: str, *, where: str) -> Any:  # Any: pyarrow ships no types
    try:
        if dtype == "string":
            return pa.array(values, pa.string()).dictionary_encode()
        return pa.array(values).cast(pa.from_numpy_dtype(np.dtype(dtype)))
    except pa.ArrowException as err:
        raise InvalidTable(f"{where} cannot be written as {dtype}: {err}") from err


def _arrow() -> tuple[Any, Any]:  # Any: pyarrow ships no types
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
    except ImportError as err:
        raise MissingDependency("reading and writing Parquet needs pyarrow: pip install pyarrow") from err
    return pa, pq
