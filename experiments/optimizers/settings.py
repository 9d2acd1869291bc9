"""How an optimiser's settings say what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_type_hints

import numpy as np

from jahs.errors import InvalidArgument
from jahs.spaces.parameters import is_integer, is_real, show

__all__ = ["read_numbers", "require"]

_KINDS: Final[Mapping[type, tuple[str, Callable[[object], bool]]]] = {
    int: ("an integer", is_integer),
    float: ("a number", is_real),
}


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
        words, is_right = _KINDS[kind]
        if not is_right(value):
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
