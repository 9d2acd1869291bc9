"""XGBoost's JSON inside a pickled Booster, parsed tree by tree so that memory stays small; XGBoost is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, UnknownFormat

__all__ = ["parse_booster"]

_COLUMNS: Final = {
    "left_children": np.int32,
    "right_children": np.int32,
    "split_indices": np.int32,
    "split_conditions": np.float32,
}
_LONGEST_OBJECT: Final = 16 << 20  # bytes of one tree's JSON; 64,000 nodes have 6 million
_LONGEST_LIST: Final = 100_000  # outside of a tree


def parse_booster(handle: bytes, where: str) -> dict[str, Any]:  # Any: JSON, whose trees are arrays
    """Parse the state of a pickled Booster, JSON as XGBoost 1.0 to 1.5 wrote it, for `forest_from_xgboost`."""
    if not handle.startswith(b"{"):
        raise UnknownFormat(f"{where}: the XGBoost model is not JSON, as versions 1.0 to 1.5 write it in a pickle")
    if max(_gaps(handle), default=0) > _LONGEST_OBJECT:
        raise CorruptFile(f"{where}: a part of the XGBoost model has more than {_LONGEST_OBJECT} bytes")
    try:
        content = json.loads(handle, object_hook=_shrunk)
        return {"learner": content.get("Model", content)["learner"]}
    except CorruptFile as err:
        raise CorruptFile(f"{where}: {err}") from err
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as err:
        raise CorruptFile(f"{where}: not the JSON of an XGBoost model ({type(err).__name__}: {err})") from err


def _gaps(handle: bytes) -> Iterator[int]:
    """Yield the lengths between ends of objects: the most that is parsed before it is shrunk."""
    start = 0
    while (end := handle.find(b"}", start)) >= 0:
        yield end - start
        start = end + 1
    yield len(handle) - start


def _shrunk(found: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return a finished object of the JSON; of a tree only what predictions need, as arrays."""
    if "left_children" not in found:
        if any(isinstance(value, list) and len(value) > _LONGEST_LIST for value in found.values()):
            raise CorruptFile("the XGBoost model has a long list outside of a tree")
        return found
    tree: dict[str, Any] = {name: np.array(found[name], dtype) for name, dtype in _COLUMNS.items()}
    if {column.shape for column in tree.values()} != {(len(found["left_children"]),)}:
        raise CorruptFile("the columns of a tree of the XGBoost model differ in length")
    kept: dict[str, Any] = {name: found[name] for name in ("tree_param", "categories") if name in found}
    return {**tree, **kept, "split_type": any(found.get("split_type", ()))}
