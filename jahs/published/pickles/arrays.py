"""numpy's arrays, dtypes and numbers as pickles describe them: built from bytes, never by numpy's own unpickling."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]  # Any: the file decides on the dtype

_CODES: Final = frozenset(
    {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "O8", "O4"}
    | {f"{kind}{size}" for kind in "SU" for size in range(1, 65)}
)
_MOST_DIMENSIONS: Final = 8
_MOST_DISTINCT: Final = 255


class DType:
    """A dtype under construction: its kind and size, then its byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code = code
        self.order = "="

    @property
    def is_object(self) -> bool:
        """Whether its items are Python objects."""
        return self.code[0] == "O"

    @property
    def dtype(self) -> np.dtype[Any]:  # Any: the file decides
        """The dtype; not used for objects."""
        assert not self.is_object
        return np.dtype(f"{self.order}{self.code}")

    def build(self, state: object) -> None:
        """Take the state that a pickle gives a dtype."""
        match state:
            case (3 | 4, "<" | ">" | "|" | "=" as order, None, None, None, int(), int(), int(), *_):
                self.order = order
            case _:
                raise TypeError("a dtype with fields, or of an unknown version")


class NewArray:
    """An array that was created, but not yet filled by its state."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class CodedArray:
    """An array of objects with few distinct values: `values[codes]` without the objects."""

    codes: NDArray[np.uint8]  # a number for each item, in the array's shape
    values: tuple[object, ...]  # texts, bools or None, each once


class ObjectItems:
    """The items of an array of objects while they are read: as a list, or coded once there are many."""

    __slots__ = ("_codes", "_numbers", "items", "n_items")

    def __init__(self) -> None:
        self.items: list[object] = []
        self.n_items = 0
        self._codes: list[NDArray[np.uint8]] = []
        self._numbers: dict[tuple[type, object], int] = {}

    @property
    def n_bytes(self) -> int:
        """Approximate bytes of the array: one for each coded item."""
        return 15 * len(self.items) + self.n_items

    def extend(self, items: list[object]) -> None:
        """Add items."""
        self.items += items
        self.n_items += len(items)

    def extend_run(self, codes: NDArray[np.integer], values: Sequence[object]) -> None:
        """Add many items that are among few values: `values[codes]`."""
        self._flush()
        table = np.array([self._number(value) for value in values], np.uint8)
        self._codes.append(table[codes])
        self.n_items += codes.size

    def finish(self, shape: tuple[int, ...], *, is_fortran: bool) -> Array | CodedArray:
        """Return the array; ValueError if there are not as many items as the shape says."""
        if math.prod(shape) != self.n_items:
            raise ValueError(f"an array of shape {shape} with {self.n_items} items")
        # numpy writes objects in C order, whatever the layout in memory.
        if self._codes:
            self._flush()
            codes = np.concatenate(self._codes).reshape(shape)
            return CodedArray(codes, tuple(value for _, value in self._numbers))
        array: Array = np.fromiter(self.items, np.object_, self.n_items)
        return np.asarray(array.reshape(shape), order="F" if is_fortran else "C")

    def _flush(self) -> None:
        if self.items:
            self._codes.append(np.array([self._number(item) for item in self.items], np.uint8))
            self.items = []

    def _number(self, value: object) -> int:
        if type(value) not in (str, bool, type(None)):
            raise TypeError(f"{type(value).__name__} in a long column of texts or bools")
        number = self._numbers.setdefault((type(value), value), len(self._numbers))
        if number > _MOST_DISTINCT:
            raise ValueError(f"a long column with more than {_MOST_DISTINCT} different texts")
        return number


def new_dtype(arguments: tuple[object, ...]) -> DType:
    """Return the dtype for the arguments of a pickled call of numpy.dtype."""
    match arguments:
        case (str(code), *flags) if code in _CODES and len(flags) <= 2 and all(flag in (0, 1) for flag in flags):
            return DType(code)
        case (str(code), *_):
            raise TypeError(f"a dtype {code[:20]!r}")
    raise TypeError("a dtype that is not text")


def new_scalar(arguments: tuple[object, ...]) -> object:
    """Return the number for the arguments of a pickled call of numpy.core.multiarray.scalar."""
    match arguments:
        case (DType(is_object=False) as item_type, bytes(content)) if len(content) == item_type.dtype.itemsize:
            return _checked_texts(np.frombuffer(content, item_type.dtype))[0]
    raise TypeError("a number of numpy that is not one")


def read_shape(shape: object) -> tuple[int, ...]:
    """Return the shape of an array, checked."""
    if (
        isinstance(shape, tuple)
        and len(shape) <= _MOST_DIMENSIONS
        and all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
    ):
        return shape
    raise TypeError("an array whose shape is not a few whole numbers")


def array_from(content: NDArray[np.uint8] | bytes, made: DType, shape: tuple[int, ...], *, is_fortran: bool) -> Array:
    """Return the array of these bytes; ValueError if there are not as many as the shape says."""
    n_bytes = content.nbytes if isinstance(content, np.ndarray) else len(content)
    if n_bytes != math.prod(shape) * made.dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and {made.dtype} in {n_bytes} bytes")
    if isinstance(content, bytes):
        content = np.frombuffer(content, np.uint8)
    # A view as bytes of a scratch file stays in that file.
    return _checked_texts(content.view(made.dtype)).reshape(shape, order="F" if is_fortran else "C")


def _checked_texts(array: Array) -> Array:
    """Return the array; ValueError if a text in it has invalid characters."""
    if array.dtype.kind == "U" and array.size and array.view(f"{array.dtype.byteorder}u4").max() > sys.maxunicode:
        raise ValueError("a text with a character that does not exist")
    return array


def build_array(state: object) -> Array | CodedArray:
    """Return the array that a pickle's state describes."""
    match state:
        case (1, shape, DType(is_object=True), bool(is_fortran), ObjectItems() as items):
            return items.finish(read_shape(shape), is_fortran=is_fortran)
        case (1, shape, DType(is_object=True), bool(is_fortran), list(few)):  # as protocol 0 writes it
            items = ObjectItems()
            items.extend(few)
            return items.finish(read_shape(shape), is_fortran=is_fortran)
        case (1, shape, DType(is_object=False) as item_type, bool(is_fortran), bytes() | np.ndarray() as content):
            return array_from(content, item_type, read_shape(shape), is_fortran=is_fortran)
    raise TypeError("an array with something other than its content")
