"""XGBoost's JSON inside a pickled Booster, parsed tree by tree so that memory stays small; XGBoost is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, UnknownFormat

__all__ = ["Booster", "parse_booster"]

_COLUMNS: Final = {
    "left_children": np.int32,
    "right_children": np.int32,
    "split_indices": np.int32,
    "split_conditions": np.float32,
}
_LONGEST_OBJECT: Final = 16 << 20  # bytes of one tree's JSON; 64,000 nodes have 6 million
_LONGEST_LIST: Final = 100_000  # outside of a tree


@dataclass(frozen=True, slots=True, eq=False)
class Booster:
    """The trees of one model."""

    learner: dict[str, Any]  # all that the JSON says besides the trees; Any: JSON
    n_nodes: NDArray[np.int64]  # of each tree
    columns: Mapping[str, NDArray[Any]]  # `_COLUMNS` of all trees one after the other; Any: integers and float32

    def to_model(self) -> dict[str, Any]:  # Any: JSON
        """Return the model as `jahs.models.forest.forest_from_xgboost` takes it."""
        ends = np.cumsum(self.n_nodes)
        trees = [
            {"tree_param": {}, **{name: values[end - n : end] for name, values in self.columns.items()}}
            for n, end in zip(self.n_nodes.tolist(), ends.tolist(), strict=True)
        ]
        gradient_booster = self.learner["gradient_booster"]
        model = {**gradient_booster["model"], "trees": trees}
        return {"learner": {**self.learner, "gradient_booster": {**gradient_booster, "model": model}}}


def parse_booster(handle: bytes, where: str) -> Booster:
    """Parse the state of a pickled Booster, as XGBoost 1.0 to 1.5 wrote it: JSON of a model that is a sum of leaves."""
    if not handle.startswith(b"{"):
        raise UnknownFormat(f"{where}: the XGBoost model is not JSON, as versions 1.0 to 1.5 write it in a pickle")
    if max(_gaps(handle), default=0) > _LONGEST_OBJECT:
        raise CorruptFile(f"{where}: a part of the XGBoost model has more than {_LONGEST_OBJECT} bytes")
    try:
        content = json.loads(handle, object_hook=_shrunk)
        learner = content.get("Model", content)["learner"]
        trees = learner["gradient_booster"]["model"].pop("trees")
        for k, tree in enumerate(trees):
            if tree["is_beyond_sums"]:
                raise UnknownFormat(f"{where}: tree {k} has categorical splits or leaves of several outputs")
        columns = {
            name: np.concatenate([tree[name] for tree in trees] or [np.empty(0)]).astype(dtype)
            for name, dtype in _COLUMNS.items()
        }
        n_nodes = np.array([len(tree["left_children"]) for tree in trees], np.int64)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as err:
        if isinstance(err, CorruptFile | UnknownFormat):
            raise type(err)(str(err) if str(err).startswith(where) else f"{where}: {err}") from err
        raise CorruptFile(f"{where}: not the JSON of an XGBoost model ({type(err).__name__}: {err})") from err
    return Booster(learner, n_nodes, columns)


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
    n_outputs = int(found["tree_param"].get("size_leaf_vector", 1))
    tree["is_beyond_sums"] = bool(found.get("categories")) or any(found.get("split_type", ())) or n_outputs > 1
    return tree
