"""Which values may be keys: those whose hash and comparison cost next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["check_keys", "scalars"]

_SCALARS: Final = frozenset({str, bytes, int, float, bool, type(None)})


def scalars(values: Sequence[object]) -> Sequence[object]:
    """Return `values` if all of them are single values.

    Raises:
        TypeError: one is not; a tuple of tuples of tuples can take longer to hash than anyone lives.
    """
    for value in values:
        if type(value) not in _SCALARS:
            raise TypeError(f"{type(value).__name__} where a single value belongs")
    return values


def check_keys(keys: Sequence[object]) -> Sequence[object]:
    """Return `keys` if all of them are single values, or flat tuples of them; raises as `scalars`."""
    for key in keys:
        scalars(key if type(key) is tuple else (key,))
    return keys
