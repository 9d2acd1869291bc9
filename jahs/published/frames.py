"""A pickled DataFrame as columns of numpy, read without pandas."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidTable, UnknownFormat
from jahs.published.pickles import CodedArray, Limits, Record, Use, making_sense, read_pickle
from jahs.published.pickles.names import scalars

PANDAS_NAMES: Final = (
    "pandas.core.frame.DataFrame",
    "pandas.core.indexes.base.Index",
    "pandas.core.indexes.base._new_Index",
    "pandas.core.indexes.multi.MultiIndex",
    "pandas.core.indexes.numeric.Float64Index",
    "pandas.core.indexes.numeric.Int64Index",
    "pandas.core.indexes.range.RangeIndex",
    "pandas.core.internals.blocks.new_block",
    "pandas.core.internals.managers.BlockManager",
    "pandas.core.internals.managers.SingleBlockManager",
    "pandas.core.series.Series",
)
"""Classes and functions in the pickle of a DataFrame or an index; each becomes a `Record`."""

_MOST_NAMES: Final = 1000
_MOST_LEVELS: Final = 10
_MOST_LABEL: Final = 1 << 48
_MOST_STEPS: Final = 1_000_000  # opcodes of a pickle; the published tables have a few thousand, whatever their length
_HELD: Final = 4 << 20  # bytes of an array that are held in memory if there is a scratch folder

Values: TypeAlias = NDArray[Any]  # Any: the file decides on the dtype


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column: numbers, or positions in `words`."""

    values: Values
    words: tuple[object, ...] | None = None

    def take(self, rows: NDArray[np.integer] | slice) -> Values:
        """Return a copy of some rows: numbers, texts, or bools if all words are bools."""
        values: Values = np.array(self.values[rows])
        let_go(self.values)  # a few scattered rows already touch every page
        if self.words is None:
            return values
        kind = bool if all(isinstance(word, bool) for word in self.words) else str
        return np.array([kind(word) for word in self.words] or [""])[values]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The columns of a DataFrame by their names, one name per level, and the label of each row."""

    columns: Mapping[tuple[str, ...], Column]
    labels: NDArray[np.int64] | range

    def __len__(self) -> int:
        return len(self.labels)

    def column(self, *name: str) -> Column:
        """Return a column; InvalidTable if the table lacks it."""
        if name not in self.columns:
            raise InvalidTable(f"the table lacks the column {' / '.join(name)}")
        return self.columns[name]


def let_go(values: Values) -> None:
    """Release the memory of an array that is mapped from a scratch file; the file is read again on demand."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def read_frame(file: BinaryIO, where: str, *, scratch: Path | None = None) -> Frame:
    """Read a DataFrame of pandas 1.x whose columns are numbers, texts and bools.

    `where` names the file in messages. Long arrays are mapped from files in the folder `scratch`, not held in memory.
    """
    n_payload = 2 << 30 if scratch is None else _HELD
    limits = Limits(n_bytes=1 << 36, n_payload=n_payload, n_steps=_MOST_STEPS, scratch=scratch)
    names: dict[str, Use] = dict.fromkeys((*PANDAS_NAMES, "functools.partial"), "record")
    content = read_pickle(file, where=where, names=names, limits=limits)
    with making_sense(where):
        return _frame(content, where)


def _frame(content: object, where: str) -> Frame:
    match content:
        case Record(
            name="pandas.core.frame.DataFrame",
            state={
                "_mgr": Record(
                    name="pandas.core.internals.managers.BlockManager",
                    arguments=(tuple(blocks), [Record() as column_index, Record() as row_index]),
                )
            },
        ):
            pass
        case _:
            raise UnknownFormat(f"{where} is not a DataFrame of pandas 1.x")
    names, labels = _column_names(column_index, where), _row_labels(row_index, where)
    if not names:  # only columns confirm the number of rows
        raise CorruptFile(f"{where}: a table without columns")
    columns: dict[tuple[str, ...], Column] = {}
    for block in blocks:
        for position, column in _columns_of(block, len(labels), len(names), where):
            if names[position] in columns:
                raise CorruptFile(f"{where}: two columns {' / '.join(names[position])}")
            columns[names[position]] = column
    if len(columns) != len(names):
        raise CorruptFile(f"{where}: {len(names)} names for {len(columns)} columns")
    return Frame(columns, labels if isinstance(labels, range) else labels.astype(np.int64, copy=False))


def _columns_of(block: object, n_rows: int, n_columns: int, where: str) -> list[tuple[int, Column]]:
    match block:
        case Record(
            name="pandas.core.internals.blocks.new_block",
            arguments=(np.ndarray() | CodedArray() as values, slice() | np.ndarray() as places),
        ):
            pass
        case _:
            raise UnknownFormat(f"{where}: a block of columns of an unknown kind")
    content = values.codes if isinstance(values, CodedArray) else values
    n_places = n_columns if isinstance(places, slice) else places.size
    if content.ndim != 2 or content.shape[1] != n_rows or max(len(content), n_places) > n_columns:
        raise CorruptFile(f"{where}: a block of columns does not fit the table")
    rows: Sequence[Values] = list(content)
    if isinstance(places, slice):
        positions = list(range(*places.indices(n_columns)))
    else:
        positions = [place for place in places.ravel().tolist() if type(place) is int and 0 <= place < n_columns]
    if len(positions) != len(rows):
        raise CorruptFile(f"{where}: a block of columns does not fit the table")
    words = values.values if isinstance(values, CodedArray) else None
    return [(place, _column(row, words, where)) for place, row in zip(positions, rows, strict=True)]


def _column(row: Values, words: tuple[object, ...] | None, where: str) -> Column:
    if row.dtype != object:
        return Column(row, words)
    items = row.tolist()  # a short table; longer ones are coded
    if not all(isinstance(item, str | bool | int | float | None) for item in items):
        raise CorruptFile(f"{where}: a column of something other than texts, bools and numbers")
    scalars(items)
    distinct = list(dict.fromkeys((type(item).__name__, item) for item in items))
    code_of = {key: code for code, key in enumerate(distinct)}
    codes = np.array([code_of[type(item).__name__, item] for item in items], np.int32)
    return Column(codes, tuple(item for _, item in distinct))


def _column_names(index: Record, where: str) -> list[tuple[str, ...]]:
    match index:
        case Record(
            name="pandas.core.indexes.base._new_Index", arguments=(_, {"levels": [*levels], "codes": [*codes]})
        ):
            if not len(levels) == len(codes) <= _MOST_LEVELS or not all(map(_is_short, codes)):
                raise CorruptFile(f"{where}: levels without up to {_MOST_NAMES} codes each")
            words = [index_names(level, where) for level in levels]
            for level, code in zip(words, codes, strict=True):
                if code.dtype.kind not in "iu" or not all(number in range(len(level)) for number in code.tolist()):
                    raise CorruptFile(f"{where}: a code without a name")
            rows = zip(*(code.tolist() for code in codes), strict=True)
            return [tuple(words[i][number] for i, number in enumerate(row)) for row in rows]
    return [(name,) for name in index_names(index, where)]


def _is_short(values: object) -> bool:
    """Return whether this is a vector of at most `_MOST_NAMES` items."""
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.size <= _MOST_NAMES


def index_names(index: object, where: str) -> list[str]:
    """Return the names that a pickled index of pandas holds; it must be a plain index of short texts."""
    match index:
        case Record(name="pandas.core.indexes.base._new_Index", arguments=(_, {"data": np.ndarray() as data})):
            names = data.tolist() if _is_short(data) else [None]
            if not all(isinstance(name, str) and len(name) <= 100 for name in names):
                raise CorruptFile(f"{where}: names of columns that are not up to {_MOST_NAMES} short texts")
            return list(names)
    raise UnknownFormat(f"{where}: an index of an unknown kind")


def _row_labels(index: Record, where: str) -> NDArray[np.integer] | range:
    match index:
        case Record(
            name="pandas.core.indexes.base._new_Index",
            arguments=(_, {"start": int(start), "stop": int(stop), "step": int(step)}),
        ) if step and max(abs(start), abs(stop), abs(step)) < _MOST_LABEL:
            return range(start, stop, step)
        case Record(name="pandas.core.indexes.base._new_Index", arguments=(_, {"data": np.ndarray() as data})) if (
            data.dtype.kind in "iu" and data.ndim == 1
        ):
            return data
    raise UnknownFormat(f"{where}: rows without plain numbers as labels")
