"""Arguments of a view: fidelities, fixed values and searched keys, with every contradiction at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from jahs.errors import InvalidConfig, refuse
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST, PARAMETERS, Value, is_iterable, show
from jahs.spaces.space import GROUPS, Space

FIDELITIES: Final = ("epoch", *SIZE_KEYS)
"""The parameters that a view may use as fidelities."""

REFERENCE: Final = "reference"
DEFAULT: Final = "default"

_SEARCHES: Final = MappingProxyType(
    {"all": CONFIG_KEYS, "nas": GROUPS["architecture"], "hpo": GROUPS["hyperparameters"]}
)


def read_choices(
    fidelities: object, fixed: object, search: object, reference: Callable[[], Config]
) -> tuple[tuple[str, ...], Space]:
    """Return the fidelities in the order of `FIDELITIES`, and the space in which all other unsearched keys are fixed.

    `reference` is called only if a key takes its value. InvalidArgument names every contradiction at once.
    """
    names, faults = _read_fidelities(fidelities)
    values, value_faults = _read_fixed(fixed, names)
    searched, search_faults = _read_search(search, names, values)
    faults += [*value_faults, *search_faults]
    refuse(*faults)
    rest = [name for name in CONFIG_KEYS if name not in searched]
    is_open = any(name not in SIZE_KEYS and name not in values and len(PARAMETERS[name].choices) != 1 for name in rest)
    defaults = reference() if is_open and fixed != DEFAULT else Space().default()
    return tuple(names), Space().fix({name: {**defaults, **LARGEST, **values}[name] for name in rest})


def legal_values(name: str, max_epoch: int) -> tuple[float, ...]:
    """Return the values that a fidelity can have, ascending."""
    if name == "epoch":
        return tuple(range(1, max_epoch + 1))
    return tuple(sorted(PARAMETERS[name].choices))  # type: ignore[arg-type]  # numbers


def _read_fidelities(fidelities: object) -> tuple[list[str], list[str]]:
    """Return the names, and their faults."""
    if isinstance(fidelities, Mapping):
        return [], ["fidelities is a mapping; give names, and the values of a query as at={...}"]
    if isinstance(fidelities, str) or not is_iterable(fidelities):
        fidelities = [fidelities]
    names = list(fidelities)
    known = [name for name in FIDELITIES if name in names]
    faults = [
        f"fidelities: {show(name)} is not one of {', '.join(FIDELITIES)}" for name in names if name not in FIDELITIES
    ]
    faults += [f"fidelities: {name} is repeated" for name in known if names.count(name) > 1]
    if not names:
        faults.append(f"fidelities is empty; give one or more of {', '.join(FIDELITIES)}")
    return known, faults


def _read_fixed(fixed: object, fidelities: Sequence[str]) -> tuple[dict[str, Value], list[str]]:
    """Return the fixed values, and their faults."""
    if isinstance(fixed, str) and fixed in (REFERENCE, DEFAULT):
        return {}, []
    if not isinstance(fixed, Mapping):
        return {}, [f"fixed must be {REFERENCE!r}, {DEFAULT!r} or a mapping of keys to values, got {show(fixed)}"]
    given = dict(fixed)
    faults = [f"fixed: {name} cannot be both fixed and a fidelity" for name in fidelities if name in given]
    if given.pop("epoch", None) is not None and "epoch" not in fidelities:
        faults.append(
            "fixed: epoch is not a key of a config; without it in fidelities, every query is at the last epoch"
        )
    try:
        return Space().fix(given).fixed, faults
    except InvalidConfig as err:
        return {}, [*faults, *(f"fixed: {fault}" for fault in err.faults)]


def _read_search(
    search: object, fidelities: Sequence[str], fixed: Mapping[str, Value]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the keys that are searched, and their faults."""
    if isinstance(search, Mapping):
        return (), ["search is a mapping; give names, and values as fixed={...}"]
    if isinstance(search, str) or not is_iterable(search):
        search = [search]
    given = list(search)
    keys = [key for key in given if isinstance(key, str)]
    faults = [
        f"search: {show(key)} is not one of {', '.join([*_SEARCHES, *CONFIG_KEYS])}"
        for key in given
        if not isinstance(key, str) or key not in {*_SEARCHES, *CONFIG_KEYS}
    ]
    faults += [f"search: {key} cannot be both searched and fixed" for key in keys if key in fixed]
    faults += [f"search: {key} cannot be both searched and a fidelity" for key in keys if key in fidelities]
    of_groups = {member for key in keys for member in _SEARCHES.get(key, ())}.difference(fidelities, fixed)
    return tuple(key for key in CONFIG_KEYS if key in of_groups or key in keys), faults
