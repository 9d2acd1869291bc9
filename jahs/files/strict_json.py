"""JSON as the standard has it: each key once, no NaN, finite numbers, UTF-8; files of one value per line; formats."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from jahs.errors import InvalidArgument, JahsError, UnknownFormat

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|-?\d[-+.\deE]*|-?[A-Z]\w*', re.DOTALL)


class _Twice(Exception):
    """A key that an object has twice."""


def parse_json(content: str | bytes) -> Any:  # Any: JSON
    """Return the value of a JSON text; json.JSONDecodeError names line and column.

    It refuses duplicate keys in one object, NaN, numbers too large for a float, bytes that are not UTF-8, and deep
    nesting.
    """
    text = content if isinstance(content, str) else _decoded(content)
    n_objects = 0

    def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal n_objects
        if len(mapping := dict(pairs)) < len(pairs):
            keys = [key for key, _ in pairs]
            raise _Twice(next(key for k, key in enumerate(keys) if key in keys[:k]))
        n_objects += 1
        return mapping

    def finite(number: str) -> float:
        if not math.isfinite(value := float(number)):
            _refuse_number(number, text)
        return value

    try:
        return json.loads(
            text,
            object_pairs_hook=each_key_once,
            parse_float=finite,
            parse_constant=lambda name: _refuse_number(name, text),
        )
    except _Twice as err:
        ends = [token.start() for token in _TOKEN.finditer(text) if token.group() == "}"]
        raise json.JSONDecodeError(
            f"the key {str(err)[:100]!r} twice in the object that ends", text, ends[n_objects]
        ) from None
    except RecursionError:
        raise json.JSONDecodeError("it nests too deep", text, 0) from None
    except json.JSONDecodeError:
        raise
    except ValueError as err:  # an integer of thousands of digits
        raise json.JSONDecodeError(str(err)[:100], text, 0) from None


def check_format(found: object, wanted: int, *, of: str) -> None:
    """Refuse the format of another version: UnknownFormat names `of` and both formats."""
    if type(found) is not int or found != wanted:
        raise UnknownFormat(f"{of}: format {found!r}; this version of jahs reads format {wanted}")


@contextmanager
def reading_state(of: str) -> Iterator[None]:
    """Turn errors about missing or invalid parts of a mapping into InvalidArgument, naming `of`; keep UnknownFormat."""
    try:
        yield
    except (InvalidArgument, UnknownFormat):
        raise
    except JahsError as err:
        raise InvalidArgument(f"{of}: {err}") from err
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as err:
        raise InvalidArgument(f"{of}: a part is missing or of a wrong type ({type(err).__name__}: {err})") from err


def json_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1; only a line feed ends a line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as err:
        before = content[: err.start].decode("utf-8")
        raise json.JSONDecodeError(
            "bytes that are not UTF-8", content.decode("utf-8", "replace"), len(before)
        ) from None


def _refuse_number(number: str, text: str) -> NoReturn:
    position = next(token.start() for token in _TOKEN.finditer(text) if token.group().startswith(number))
    raise json.JSONDecodeError(f"{number[:100]} is not a finite number", text, position)
