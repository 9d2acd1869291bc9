"""How an optimiser's settings say what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args, get_type_hints

import numpy as np

from jahs.errors import InvalidArgument
from jahs.parameters import show

__all__ = ["read_numbers", "read_seed", "require"]

_KINDS: Final = {
    int: ("an integer", int | np.integer),
    float: ("a number", int | float | np.integer | np.floating),
}


def read_seed(seed: object) -> int:
    """Return a seed as Python's integer.

    Raises:
        InvalidArgument: it is not an integer in 0..2**64-1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise InvalidArgument(f"seed={show(seed)} is not an integer in 0..2**64-1")
    return int(seed)


def read_numbers(declared: type, given: Mapping[str, object]) -> dict[str, Any]:
    """Return settings with numpy's numbers as Python's; `declared` is the dataclass that has them as fields.

    Raises:
        InvalidArgument: one that is declared as a number is none, or has a fraction where it is an integer; every one.
    """
    types = get_type_hints(declared)
    found, faults = dict(given), []
    for name, value in given.items():
        options = get_args(types[name]) or (types[name],)
        kind = next((kind for kind in _KINDS if kind in options), None)
        if kind is None or (value is None and type(None) in options):
            continue
        words, right = _KINDS[kind]
        if isinstance(value, bool) or not isinstance(value, right):
            faults.append(f"{name}={show(value)} is not {words}")
        elif isinstance(value, np.number):
            found[name] = value.item()
    if faults:
        raise InvalidArgument("\n".join(faults))
    return found


def require(*claims: tuple[bool, str]) -> None:
    """Refuse every claim that does not hold, at once.

    Raises:
        InvalidArgument: with the text of each.
    """
    faults = [text for holds, text in claims if not holds]
    if faults:
        raise InvalidArgument("\n".join(faults))
