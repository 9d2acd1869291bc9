"""Validation of the parts of `quality.json` that commands show: data sizes, scores and requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from jahs.errors import InvalidArgument
from jahs.files.strict_json import check_format
from jahs.spaces.parameters import is_number, show

QUALITY_FORMAT: Final = 1
"""Version of `quality.json`; a reader refuses any other."""

_KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "a number": is_number,
    "a number or null": lambda value: value is None or is_number(value),
    "a text": lambda value: isinstance(value, str),
    "an object": lambda value: isinstance(value, Mapping),
    "an object or null": lambda value: value is None or isinstance(value, Mapping),
    "a list or null": lambda value: value is None or isinstance(value, list),
    "true, false or null": lambda value: value is None or isinstance(value, bool),
}

_REQUIREMENT: Final = {
    "metric": "a text",
    "score": "a text",
    "cut": "a text",
    "required": "a number",
    "value": "a number or null",
    "ceiling": "a number or null",
    "reached": "a number or null",
    "is_met": "true, false or null",
}


def read_quality(state: Mapping[str, Any]) -> Mapping[str, Any]:  # Any: JSON
    """Return the content unchanged.

    Raises:
        UnknownFormat: another version wrote it.
        InvalidArgument: a part that commands show has the wrong type; names it.
    """
    check_format(state.get("format"), QUALITY_FORMAT, of="quality")
    data = _object(state.get("data"), "data")
    for size in ("configs", "runs", "rows"):
        if size in data:
            _check(data[size], "a number", f"data, {size}")
    for metric, facts in _object(state.get("metrics"), "metrics").items():
        _check(facts, "an object", metric)
        test = _object(facts.get("test"), f"{metric}, test")
        cuts = _object(test.get("cuts"), f"{metric}, cuts")
        for cut in ("all", "last epoch"):
            models = _object(cuts.get(cut), f"{metric}, {cut}")
            for model in ("model", "ceiling"):
                scores = _object(models.get(model), f"{metric}, {cut}, {model}")
                for score in ("n", "r2", "tau", "mae"):
                    _check(scores.get(score), "a number or null", f"{metric}, {cut}, {model}, {score}")
    requirements = state.get("requirements")
    _check(requirements, "a list or null", "requirements")
    for i, facts in enumerate(requirements or ()):
        _check(facts, "an object", f"requirement {i}")
        for key, kind in _REQUIREMENT.items():
            _check(facts.get(key), kind, f"requirement {i}, {key}")
    return state


def _object(value: object, where: str) -> Mapping[str, Any]:  # Any: JSON
    """Return an object; a part that is missing or null counts as an empty one."""
    _check(value, "an object or null", where)
    return value if isinstance(value, Mapping) else {}


def _check(value: object, kind: str, where: str) -> None:
    if not _KINDS[kind](value):
        raise InvalidArgument(f"quality: {where} must be {kind}, got {show(value)}")
