"""The recorded runs as one npz of plain numbers, readable with numpy only.

The member `runs.valid_acc` is the column valid_acc of the table runs. A column of text has two members: the code of
each row, and the words in UTF-8, separated by zero bytes (`runs.status`, `runs.status.words`). A column of float32 has
the first byte of every value, then the second, and so on, which takes a fifth less than whole values when deflated.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable
from jahs.files.atomic import write_beside
from jahs.files.strict_json import check_format
from jahs.files.tables import MOST_CHARACTERS, Table
from jahs.models.forest.storage import read_member, reading_npz
from jahs.schema import CONFIG_COLUMNS, PROFILE_COLUMNS, RUN_COLUMNS

TABLE_FORMAT: Final = 2
"""Version of the npz. Format 1, with whole float32 values, is still read; any other is refused."""

_SCHEMAS: Final[Mapping[str, Mapping[str, str]]] = {
    "configs": CONFIG_COLUMNS,
    "runs": RUN_COLUMNS,
    "profile": PROFILE_COLUMNS,
}
_WHOLE_VALUES: Final = 1  # the format before byte planes
_HEADER: Final = "header"
_MOST_WORDS: Final = 2**16
_LONGEST_WORD: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedTable:
    """Everything that was measured for a task: columns of equal length, as `jahs.schema` names them."""

    configs: Table  # one row per config (`CONFIG_COLUMNS`)
    runs: Table  # one row per (config, seed, epoch) (`RUN_COLUMNS`)
    profile: Table  # one row per config (`PROFILE_COLUMNS`); no rows where nothing was profiled


def write_table_npz(path: Path, table: RecordedTable) -> None:
    """Write the table, whole or not at all; the same table gives the same bytes. InvalidTable says what is wrong."""
    members: dict[str, NDArray[Any]] = {_HEADER: np.array([TABLE_FORMAT], np.int64)}  # Any: each column has its type
    for name, schema in _SCHEMAS.items():
        columns: Table = getattr(table, name)
        for column, dtype in schema.items():
            if dtype == "string":
                words, codes = np.unique(columns[column].astype(str), return_inverse=True)
                if words.size > _MOST_WORDS or any("\0" in w or len(w) > _LONGEST_WORD for w in words.tolist()):
                    raise InvalidTable(
                        f"{path}: {name}.{column}: more than {_MOST_WORDS} words, or one with a zero byte or of more "
                        f"than {_LONGEST_WORD} characters"
                    )
                members[f"{name}.{column}"] = codes.astype(np.uint16)
                text = "\0".join(words.tolist()).encode()
                members[f"{name}.{column}.words"] = np.frombuffer(text, np.uint8)
            else:
                values = columns[column].astype(dtype, casting="same_kind")
                members[f"{name}.{column}"] = _byte_planes(values) if dtype == "float32" else values
    for name in ("runs", "profile"):
        ids: NDArray[Any] = getattr(table, name)["config_id"]
        if n := len(np.setdiff1d(ids, table.configs["config_id"])):
            raise InvalidTable(f"{path}: {name} has {n} configs that are not among the configs of the table")
    with write_beside(path) as beside, beside.open("wb") as file:
        np.savez_compressed(file, **members)  # type: ignore[arg-type]  # takes arrays by name


def parse_table_npz(path: Path, data: bytes) -> RecordedTable:
    """Return the table that the bytes of `write_table_npz` hold; `path` is for messages."""
    with reading_npz(path, data, "a recorded table") as archive:
        header = read_member(archive, f"{_HEADER}.npy")
        if header.dtype != np.int64 or header.size != 1:
            raise ValueError(f"its header is {header.dtype} of {header.size} items")
        if header[0] != _WHOLE_VALUES:
            check_format(header[0].item(), TABLE_FORMAT, of=f"{path}: table")
        has_planes = header[0] == TABLE_FORMAT
        return RecordedTable(
            **{name: _read(archive, name, schema, has_planes=has_planes) for name, schema in _SCHEMAS.items()}
        )


def _byte_planes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.asarray(values.astype("<f4").view(np.uint8).reshape(-1, 4).T.ravel())


def _from_planes(planes: NDArray[Any], of: str) -> NDArray[np.float32]:
    if planes.dtype != np.uint8 or planes.size % 4:
        raise ValueError(f"{of} holds {planes.size} items of {planes.dtype}, not the four bytes of each float32 value")
    return np.ascontiguousarray(planes.reshape(4, -1).T).view("<f4").ravel().astype(np.float32)


def _read(archive: zipfile.ZipFile, name: str, schema: Mapping[str, str], *, has_planes: bool) -> Table:
    table: Table = {}
    for column, dtype in schema.items():
        values = read_member(archive, f"{name}.{column}.npy")
        if has_planes and dtype == "float32":
            values = _from_planes(values, f"{name}.{column}")
        wanted = np.dtype(np.uint16 if dtype == "string" else dtype)
        if values.dtype != wanted:
            raise ValueError(f"{name}.{column} holds {values.dtype}, not {wanted}")
        if dtype == "string":
            text = read_member(archive, f"{name}.{column}.words.npy")
            words = text.tobytes().decode().split("\0")
            if text.dtype != np.uint8 or len(words) > _MOST_WORDS or (values.size and values.max() >= len(words)):
                raise ValueError(f"{name}.{column} has codes without words")
            longest = max(map(len, words))  # numpy makes every word as long
            if longest > _LONGEST_WORD or longest * values.size > MOST_CHARACTERS:
                raise ValueError(f"{name}.{column} has {values.size} rows with words of up to {longest} characters")
            table[column] = np.array(words)[values]
        else:
            table[column] = values
    if len(lengths := {len(values) for values in table.values()}) > 1:
        raise ValueError(f"{name} has columns of {sorted(lengths)} rows")
    return table
