"""Tables as Parquet files: columns of numpy arrays in and out, with exactly the names and types of `jahs.schema`.

A file carries a digest of each column and a checksum of each page, and reading checks both: a file that was damaged or
edited by other means is refused. Files of earlier versions carry neither, and are read as they are.

Needs pyarrow, which is imported when a table is first read or written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jahs.errors import CorruptFile, InvalidTable, MissingData, MissingDependency, reading
from jahs.files.atomic import out_of_space, write_beside
from jahs.files.hashing import digest_bytes

Table: TypeAlias = dict[str, npt.NDArray[Any]]  # Any: each column has a type of its own
"""Columns of equal length."""

_FORMAT: Final = "1"
_DIGESTS: Final = b"jahs_digests"
MOST_CHARACTERS: Final = 1 << 28
"""Most characters of a column of texts; numpy makes every text as long as the longest, with four bytes a character."""


def read_table(
    path: Path,
    columns: Mapping[str, str],
    *,
    defaults: Mapping[str, object] = MappingProxyType({}),
    sha256: Collection[str | None] | None = None,
) -> Table:
    """Read a Parquet file that has at least these columns; return them with their types.

    Args:
        path: the file.
        columns: name and type of each.
        defaults: values of columns that the file lacks.
        sha256: allowed values of the file's sha256; None: any.

    Raises:
        MissingData: the file does not exist, or cannot be read at the moment.
        CorruptFile: its bytes were changed after it was written.
        InvalidTable: columns are missing or have other types.
    """
    pa, _ = require_pyarrow()
    with reading(path):
        if not path.is_file():
            raise MissingData(f"{path} does not exist")
    try:
        table = _read_arrow(path, sha256, [name for name, dtype in columns.items() if dtype == "string"])
        digests = json.loads((table.schema.metadata or {}).get(_DIGESTS, b"{}"))
        return _checked(path, table, columns, defaults, digests if isinstance(digests, dict) else {})
    except (pa.ArrowException, UnicodeDecodeError, json.JSONDecodeError) as err:
        raise CorruptFile(f"{path} is damaged: {err}; restore the file") from err


def _read_arrow(
    path: Path, sha256: Collection[str | None] | None, texts: Sequence[str] = ()
) -> Any:  # Any: pyarrow ships no types
    """Return the table; columns of `texts` are dictionaries, so that a long text is not repeated in memory."""
    pa, pq = require_pyarrow()
    try:
        # An open file, so that Arrow infers nothing from the folder's name. And Arrow's own file object: its threads
        # may release the file after the interpreter has shut down, which aborts the process if it is Python's.
        with pa.OSFile(str(path)) as file:
            content = file.read_buffer()
        if sha256 is not None and (digest := hashlib.sha256(content).hexdigest()) not in sha256:
            raise CorruptFile(
                f"{path} is not the file that its folder's index lists (sha256 {digest[:16]}...): it was damaged or "
                "edited; restore it from a copy"
            )
        return pq.read_table(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=[*texts])
    except (pa.ArrowException, OSError) as err:
        if isinstance(err, OSError) and err.errno is not None:  # an error of the system; invalid Parquet has no errno
            raise MissingData(f"{path} cannot be read: {err}; the file may be whole, so try again") from err
        raise CorruptFile(f"{path} cannot be read as Parquet: {err}") from err


def _checked(
    path: Path,
    table: Any,  # Any: pyarrow ships no types
    columns: Mapping[str, str],
    defaults: Mapping[str, object],
    digests: Mapping[str, object],
) -> Table:
    pa, _ = require_pyarrow()
    names = table.column_names
    if missing := [name for name in columns if name not in names and name not in defaults]:
        raise InvalidTable(f"{path} lacks the columns {', '.join(missing)}")
    if lost := [name for name in columns if name in digests and name not in names]:
        raise CorruptFile(f"{path} has lost the columns {', '.join(lost)}; restore the file")
    result: Table = {}
    faults = []
    for name, dtype in columns.items():
        if name not in names:
            result[name] = np.full(table.num_rows, defaults[name]).astype("U" if dtype == "string" else dtype)
            continue
        stored = table.column(name)
        words = (word for chunk in stored.chunks for word in getattr(chunk, "dictionary", ()))
        if dtype == "string" and max((len(str(word)) for word in words), default=0) * len(stored) > MOST_CHARACTERS:
            faults.append(f"{name} has a text that is too long for {len(stored):,} rows")
            continue
        try:
            column = stored.cast(pa.string() if dtype == "string" else pa.from_numpy_dtype(np.dtype(dtype)))
        except pa.ArrowException as err:
            faults.append(f"{name} is not {dtype}: {err}")
            continue
        if column.null_count:
            faults.append(f"{name} has {column.null_count} empty values")
            continue
        if name in digests and digests[name] != _digest(stored):
            raise CorruptFile(f"{path}: the values of {name} are not those that were written; restore the file")
        values = column.to_numpy()
        result[name] = values.astype(str) if dtype == "string" else values
    if faults:
        raise InvalidTable("\n".join(f"{path}: {fault}" for fault in faults))
    return result


def write_table(path: Path, table: Mapping[str, npt.NDArray[Any]], columns: Mapping[str, str], **options: Any) -> None:
    """Write exactly these columns, whole or not at all; InvalidTable or OutOfSpace if that is impossible.

    `options` are further settings of pyarrow's writer.
    """
    content = table_bytes(table, columns, where=str(path), **options)
    with out_of_space(path), write_beside(path) as beside:
        beside.write_bytes(content)


def table_bytes(
    table: Mapping[str, npt.NDArray[Any]], columns: Mapping[str, str], *, where: str, **options: Any
) -> bytes:
    """Return the bytes of `write_table`; InvalidTable, naming `where`, if a value does not fit its column's type."""
    pa, pq = require_pyarrow()
    arrays = [_arrow_array(pa, table[name], dtype, where=f"{where}: {name}") for name, dtype in columns.items()]
    content = pa.Table.from_arrays(arrays, names=list(columns))
    digests = json.dumps({name: _digest(content.column(name)) for name in columns}, sort_keys=True)
    content = content.replace_schema_metadata({"jahs_format": _FORMAT, _DIGESTS: digests})
    out = pa.BufferOutputStream()
    pq.write_table(content, out, compression="zstd", write_page_checksum=True, **options)
    return bytes(out.getvalue())


def has_digests(path: Path) -> bool:
    """Return whether a table carries the digests of its columns."""
    return _DIGESTS in (_read_arrow(path, None).schema.metadata or {})


def _digest(column: Any) -> str:  # Any: pyarrow ships no types
    """Return a digest of a column's values, however they are stored; all NaNs count as one value, as in Parquet."""
    pa, _ = require_pyarrow()
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        words, values = "\0".join(encoded.dictionary.to_pylist()), encoded.indices.to_numpy()
    else:
        words, values = str(column.type), column.to_numpy()
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    return digest_bytes(f"{len(values)}\0{words}\0".encode() + values.tobytes())


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder, sorted; none if there is no such folder, MissingData if unreadable."""
    with reading(folder), suppress(FileNotFoundError), os.scandir(folder) as entries:  # glob ignores every error
        return sorted(folder / entry.name for entry in entries if entry.name.endswith(".parquet"))
    return []


def empty_table(columns: Mapping[str, str]) -> Table:
    """Return a table without rows."""
    return {name: np.empty(0, "U1" if dtype == "string" else dtype) for name, dtype in columns.items()}


def typed(table: Mapping[str, object], columns: Mapping[str, str]) -> Table:
    """Return the named columns of a table, in their order and with their types; a single value fills every row."""
    arrays = {name: np.asarray(table[name]) for name in columns}
    n_rows = max((len(values) for values in arrays.values() if values.ndim), default=1)
    return {
        name: (values if values.ndim else np.repeat(values, n_rows)).astype("U" if dtype == "string" else dtype)
        for (name, values), dtype in zip(arrays.items(), columns.values(), strict=True)
    }


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


def equal_values(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where two columns are equal; NaN equals NaN."""
    is_equal = np.asarray(one == other)
    if one.dtype.kind == other.dtype.kind == "f":
        is_equal |= np.isnan(one) & np.isnan(other)
    return is_equal


def _arrow_array(pa: Any, values: npt.NDArray[Any], dtype: str, *, where: str) -> Any:  # Any: pyarrow ships no types
    try:
        if dtype == "string":
            return pa.array(values, pa.string()).dictionary_encode()
        return pa.array(values).cast(pa.from_numpy_dtype(np.dtype(dtype)))
    except pa.ArrowException as err:
        raise InvalidTable(f"{where} cannot be written as {dtype}: {err}") from err


def require_pyarrow() -> tuple[Any, Any]:  # Any: pyarrow ships no types
    """Return pyarrow and pyarrow.parquet; MissingDependency without them, so call it before work for a table begins."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
    except ImportError as err:
        raise MissingDependency("reading and writing Parquet needs pyarrow: pip install pyarrow") from err
    return pa, pq
