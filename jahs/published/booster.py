"""XGBoost's state in a pickled model: JSON, parsed tree by tree so that memory stays small; XGBoost is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from jahs.errors import CorruptFile, UnknownFormat

_TREE_COLUMNS: Final = {
    "left_children": np.int32,
    "right_children": np.int32,
    "split_indices": np.int32,
    "split_conditions": np.float32,
}
_LONGEST_OBJECT: Final = 8 << 20  # bytes of one tree's JSON; 64,000 nodes have 6 million
_MOST_OBJECTS: Final = 100_000  # a tree has two
_MOST_KEYS: Final = 1000


def parse_booster(handle: bytes, where: str) -> dict[str, Any]:  # Any: JSON, whose trees are arrays
    """Parse the state of a pickled Booster, JSON as XGBoost 1.0 to 1.5 wrote it, for `forest_from_xgboost`."""
    if not handle.startswith(b"{"):
        raise UnknownFormat(f"{where}: the XGBoost model is not JSON, as versions 1.0 to 1.5 write it in a pickle")
    if max(_gaps(handle), default=0) > _LONGEST_OBJECT:
        raise CorruptFile(f"{where}: a part of the XGBoost model has more than {_LONGEST_OBJECT} bytes")
    try:
        content = json.loads(handle, object_hook=_Shrink())
        return {"learner": content.get("Model", content)["learner"]}
    except CorruptFile as err:
        raise CorruptFile(f"{where}: {err}") from err
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as err:
        raise CorruptFile(f"{where}: not the JSON of an XGBoost model ({type(err).__name__}: {err})") from err


def _gaps(handle: bytes) -> Iterator[int]:
    """Yield the numbers of bytes between ends of objects: an object is parsed as a whole before it is shrunk."""
    start = 0
    while (end := handle.find(b"}", start)) >= 0:
        yield end - start
        start = end + 1
    yield len(handle) - start


class _Shrink:
    """Reduces every finished object of the JSON to what predictions need, so that nothing else takes memory."""

    def __init__(self) -> None:
        self._n_objects = 0

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:  # Any: JSON
        self._n_objects += 1
        if self._n_objects > _MOST_OBJECTS or len(item) > _MOST_KEYS:
            raise CorruptFile(f"the XGBoost model has over {_MOST_OBJECTS} objects, or over {_MOST_KEYS} keys in one")
        if "left_children" not in item:
            if not all(isinstance(tree, dict) for tree in item.get("trees", ())):
                raise CorruptFile("the trees of the XGBoost model are not objects")
            return {key: value for key, value in item.items() if key == "trees" or not isinstance(value, list)}
        tree: dict[str, Any] = {name: np.array(item[name], dtype) for name, dtype in _TREE_COLUMNS.items()}
        if {column.shape for column in tree.values()} != {(len(item["left_children"]),)}:
            raise CorruptFile("the columns of a tree of the XGBoost model differ in length")
        settings = {"tree_param": dict(item["tree_param"]), "categories": item.get("categories", [])[:1]}
        return {**tree, **settings, "split_type": any(item.get("split_type", ()))}
