"""Several forests that read different columns as one forest over all of them, and some of several forests alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.forest.checks import check_forests
from jahs.models.forest.flat import Forest, Int64s, Splits


def join_forests(forests: Sequence[Forest], places: Sequence[Sequence[int]], *, n_features: int) -> Forest:
    """Return one forest whose answers are those of all, one after another; each sum keeps its bits.

    `places` are, for each forest, the positions of its columns among the `n_features` of the joint row.
    """
    if not forests or len(places) != len(forests):
        raise InvalidArgument(f"forests: {len(forests)} forests and {len(places)} lists of places; give one for each")
    pairs = []
    for forest, place in zip(forests, places, strict=True):
        if len(set(place)) != forest.n_features or not all(0 <= i < n_features for i in place):
            raise InvalidArgument(f"places: {list(place)} are not {forest.n_features} columns of {n_features}")
        table = np.empty(forest.n_splits, dtype=[("feature", np.uint16), ("threshold", np.float32)])
        table["feature"] = np.asarray(place, np.uint16)[forest.split_feature]
        table["threshold"] = forest.split_threshold
        pairs.append(table)
    joint, row_of = np.unique(np.concatenate(pairs), return_inverse=True)
    dtype = np.uint16 if joint.size < 2**16 else np.uint32
    parts: list[Splits] = []
    first = 0
    for forest in forests:
        # A leaf's split, the last one, is again the one behind all splits.
        split = np.append(row_of[first : first + forest.n_splits], joint.size).astype(dtype)
        parts.append(cast("Splits", split[forest.node_split]))
        first += forest.n_splits
    return Forest(
        n_features=n_features,
        split_feature=np.ascontiguousarray(joint["feature"]),
        split_threshold=np.ascontiguousarray(joint["threshold"]),
        node_split=cast("Splits", np.concatenate(parts)),
        node_value=np.concatenate([forest.node_value for forest in forests]),
        tree_start=_starts([np.diff(forest.tree_start) for forest in forests]),
        forest_start=_starts([np.diff(forest.forest_start) for forest in forests]),
        base_score=np.concatenate([forest.base_score for forest in forests]),
    )


def take_forests(forest: Forest, chosen: Sequence[int]) -> Forest:
    """Return some of the forests, in this order, with the splits that they ask; each sum keeps its bits."""
    check_forests(forest, chosen)
    trees = _ranges(forest.forest_start, np.array(chosen, np.intp))
    nodes = _ranges(forest.tree_start, trees)
    old = forest.node_split[nodes]
    is_asked = np.zeros(forest.n_splits + 1, np.bool_)
    is_asked[old] = True
    is_asked[-1] = False  # the split of a leaf, which is again the one behind all splits
    renumbered = np.append(np.cumsum(is_asked[:-1]) - 1, is_asked.sum())
    return Forest(
        n_features=forest.n_features,
        split_feature=forest.split_feature[is_asked[:-1]],
        split_threshold=forest.split_threshold[is_asked[:-1]],
        node_split=cast("Splits", renumbered[old].astype(forest.node_split.dtype)),
        node_value=forest.node_value[nodes],
        tree_start=_starts([np.diff(forest.tree_start)[trees]]),
        forest_start=_starts([np.diff(forest.forest_start)[list(chosen)]]),
        base_score=forest.base_score[list(chosen)],
    )


def _ranges(start: Int64s, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return every number from start[k] up to start[k + 1], for one k after another."""
    parts = [np.arange(start[k], start[k + 1], dtype=np.intp) for k in chosen.tolist()]
    return np.concatenate([np.empty(0, np.intp), *parts])


def _starts(sizes: Sequence[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    whole = np.concatenate([[0], *sizes])
    return np.cumsum(whole).astype(np.int64)
