"""Typed arrays as one piece of text that a page can hold, with or without compression."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "as_codes", "pack_arrays"]

Arrays: TypeAlias = "Mapping[str, NDArray[np.generic]]"

_TYPES: Final = {
    "float64": "Float64Array",
    "float32": "Float32Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "uint16": "Uint16Array",
    "uint8": "Uint8Array",
}
_WORD: Final = 8  # bytes; a typed array begins at a multiple of its item's size


def pack_arrays(arrays: Arrays, *, compressed: bool) -> tuple[dict[str, Any], str]:  # Any: JSON
    """Return where each array is, as {name: [type, first byte, length]}, and all of them in base64."""
    places: dict[str, Any] = {}
    parts: list[bytes] = []
    n_bytes = 0
    for name, array in arrays.items():
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        places[name] = [_TYPES[array.dtype.name], n_bytes, array.size]
        padded = data + bytes(-len(data) % _WORD)
        parts.append(padded)
        n_bytes += len(padded)
    whole = b"".join(parts)
    return places, base64.b64encode(gzip.compress(whole, 9, mtime=0) if compressed else whole).decode()


def as_codes(values: NDArray[np.float64]) -> tuple[NDArray[np.generic], NDArray[np.float64]]:
    """Return the place of each value among all distinct ones, at most 65,536, and those."""
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.uint8 if distinct.size <= 2**8 else np.uint16), distinct
