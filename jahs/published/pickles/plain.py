"""Values that may be keys: their hash and comparison are cheap, and collisions cannot be chosen.

Python salts the hash of texts and bytes alone. Numbers beyond 64 bits, and tuples of numbers, can be chosen so that
thousands of them share a hash, and then a dict of n keys takes n * n steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["check_keys", "scalars"]

_TEXTS: Final = frozenset({str, bytes})
_SCALARS: Final = _TEXTS | {int, float, bool, type(None)}
_BITS: Final = 64


def scalars(values: Sequence[object]) -> Sequence[object]:
    """Return `values` if all are single values: to hash a tuple of tuples of tuples can take longer than a life."""
    for value in values:
        if type(value) not in _SCALARS:
            raise TypeError(f"{type(value).__name__} where a single value belongs")
        if type(value) is int and value.bit_length() > _BITS:
            raise ValueError(f"an integer of more than {_BITS} bits as a key")
    return values


def check_keys(keys: Sequence[object]) -> Sequence[object]:
    """Return `keys` if all of them are single values, or tuples of texts; raises as `scalars`."""
    for key in keys:
        if type(key) is tuple:
            for item in key:
                if type(item) not in _TEXTS:
                    raise TypeError(
                        f"a tuple with a {type(item).__name__} where a single value or a tuple of texts belongs"
                    )
        else:
            scalars((key,))
    return keys
