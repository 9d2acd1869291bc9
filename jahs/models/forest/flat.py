"""Regression forests as arrays: the format that every engine reads.

A `Forest` packs several forests (one per metric) that take the same rows. Its form is succinct: the nodes of a tree
are in breadth-first order, and only each node's split is stored. The children of the k-th inner node of a tree are
then its nodes 2k + 1 and 2k + 2, so no pointer is stored, no file can contain a wrong one, and a walk always ends.

Splits are shared: a table sorted by feature, then threshold, has each distinct (feature, threshold) once, and a node
stores its row in the table. XGBoost's hist offers at most 256 thresholds a feature, so the table is small, a row is
compared with each threshold once however many nodes use it, and a node fits in 2 bytes without loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile

Float32s: TypeAlias = NDArray[np.float32]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
Splits: TypeAlias = NDArray[np.uint16] | NDArray[np.uint32]

ARRAY_DTYPES: Final[Mapping[str, tuple[type[np.generic], ...]]] = {
    "split_feature": (np.uint16,),
    "split_threshold": (np.float32,),
    "node_split": (np.uint16, np.uint32),
    "node_value": (np.float32,),
    "tree_start": (np.int64,),
    "forest_start": (np.int64,),
    "base_score": (np.float32,),
}
"""The arrays of a forest, and which dtypes each may have."""

# XGBoost's default is 6 and JAHS-Bench-201 searched up to 15; a file that claims more than this is malicious.
MAX_DEPTH = 64
# Twice a node's number must fit an int32.
MAX_NODES = 2**30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forest:
    """Several regression forests over the same features; checked when made, never changed.

    A row goes left at a split if `row[feature] < threshold`, in float32. The answer of a forest is its base score plus
    its trees' leaf values, added one by one in the order of the trees in float32, as XGBoost does on a CPU.
    Missing values have no direction: rows must not contain NaN.

    Raises:
        CorruptFile: the arrays are not forests; the message lists every fault.
    """

    n_features: int  # columns of a row
    split_feature: NDArray[np.uint16]  # (n_splits,) the feature of each split; ascending
    split_threshold: Float32s  # (n_splits,) the threshold of each split; ascending within a feature, finite
    node_split: Splits  # (n_nodes,) the split of each node; a leaf has `n_splits`
    node_value: Float32s  # (n_nodes,) the value of each leaf, finite; 0 for the other nodes
    tree_start: Int64s  # (n_trees + 1,) where each tree's nodes begin
    forest_start: Int64s  # (n_forests + 1,) where each forest's trees begin
    base_score: Float32s  # (n_forests,) the initial value of each sum

    def __post_init__(self) -> None:
        faults = _form_faults(self) or _content_faults(self)
        if faults:
            raise CorruptFile("not a forest:\n" + "\n".join(faults))

    @property
    def n_forests(self) -> int:
        """The number of forests, one per metric."""
        return self.base_score.size

    @property
    def n_trees(self) -> int:
        """Trees of all forests."""
        return self.tree_start.size - 1

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees, leaves included."""
        return self.node_split.size

    @property
    def n_splits(self) -> int:
        """Distinct splits."""
        return self.split_threshold.size


def tree_depths(forest: Forest, inner_before: Int32s | None = None) -> Int64s:
    """Return the depth of each tree, (n_trees,); give `inner_before` if it is known already."""
    inner_before = _inner_before(forest) if inner_before is None else inner_before
    start = forest.tree_start[:-1]
    n_nodes = np.diff(forest.tree_start)
    depth = np.zeros(forest.n_trees, np.int64)
    end = np.ones(forest.n_trees, np.int64)  # one past the last node of the current level
    for _ in range(MAX_DEPTH + 1):  # a deeper tree is refused when the forest is made
        deeper = end < n_nodes
        if not deeper.any():
            break
        depth += deeper
        end = 1 + 2 * (inner_before[start + end] - inner_before[start])
    return depth


def left_steps(forest: Forest, inner_before: Int32s | None = None) -> Int32s:
    """Return each node's distance to its left child, (n_nodes,), 0 for a leaf; the right child is the next node."""
    inner_before = _inner_before(forest) if inner_before is None else inner_before
    # The left child of node n of a tree is the tree's node 1 + 2 * (inner nodes before n). Millions of nodes: in place.
    first = forest.tree_start[:-1].astype(np.int32)
    steps = 2 * inner_before[:-1]
    steps -= np.arange(forest.n_nodes, dtype=np.int32)
    steps += np.repeat(1 + first - 2 * inner_before[first], np.diff(forest.tree_start))
    steps[forest.node_split == forest.n_splits] = 0
    return steps


def _inner_before(forest: Forest) -> Int32s:
    """Return the number of inner nodes before each node, (n_nodes + 1,)."""
    inner_before = np.zeros(forest.n_nodes + 1, np.int32)
    np.cumsum(forest.node_split < forest.n_splits, out=inner_before[1:])
    return inner_before


def _form_faults(forest: Forest) -> list[str]:
    """Check dtypes and lengths, which the other checks rely on."""
    faults = []
    for name, allowed in ARRAY_DTYPES.items():
        array = getattr(forest, name)
        if array.dtype not in [np.dtype(dtype) for dtype in allowed] or array.ndim != 1 or not array.flags.c_contiguous:
            names = " or ".join(dtype.__name__ for dtype in allowed)
            faults.append(f"{name}: {array.dtype} of shape {array.shape}; it must be one-dimensional, of {names}")
    for pair in (("split_feature", "split_threshold"), ("node_split", "node_value")):
        n_first, n_second = (len(getattr(forest, name)) for name in pair)
        if n_first != n_second:
            faults.append(f"{', '.join(pair)}: {n_first} and {n_second} items, not equal")
    if len(forest.forest_start) != len(forest.base_score) + 1:
        faults.append(f"forest_start: {len(forest.forest_start)} items for {len(forest.base_score)} base scores")
    if not 1 <= forest.n_features <= 65536:
        faults.append(f"n_features={forest.n_features} is outside [1, 65536]")
    return faults


def _content_faults(forest: Forest) -> list[str]:
    faults = []
    if not _is_partition(forest.forest_start, forest.n_trees, smallest=0):
        faults.append(f"forest_start: does not ascend from 0 to {forest.n_trees} trees")
    if not np.isfinite(forest.base_score).all():
        faults.append("base_score: not finite")
    if not np.isfinite(forest.split_threshold).all():
        faults.append("split_threshold: not finite")
    feature, threshold = forest.split_feature.astype(np.int64), forest.split_threshold
    if feature.size and feature.max() >= forest.n_features:
        faults.append(f"split_feature: {feature.max()} with {forest.n_features} features")
    if not ((np.diff(feature) > 0) | ((np.diff(feature) == 0) & (threshold[:-1] < threshold[1:]))).all():
        faults.append("split_feature, split_threshold: not in ascending order")
    if not np.isfinite(forest.node_value).all():
        faults.append("node_value: not finite")
    if forest.n_nodes >= MAX_NODES:
        return [*faults, f"node_split: {forest.n_nodes} nodes; fewer than {MAX_NODES} are allowed"]
    if forest.node_split.size and forest.node_split.max() > forest.n_splits:
        faults.append(f"node_split: {forest.node_split.max()} with {forest.n_splits} splits")
    if not _is_partition(forest.tree_start, forest.n_nodes, smallest=1):
        faults.append(f"tree_start: does not ascend from 0 to {forest.n_nodes} nodes")
    else:
        faults += _shape_faults(forest)
    return faults


def _is_partition(start: Int64s, end: int, *, smallest: int) -> bool:
    if not start.size or start[0] != 0 or start[-1] != end:
        return False
    # Bounds first: the difference of two huge numbers can wrap around and look small.
    return bool((start >= 0).all() and (start <= end).all() and (np.diff(start) >= smallest).all())


def _shape_faults(forest: Forest) -> list[str]:
    """Check that a tree is breadth-first: each node but the root has a parent before it, and no child is missing."""
    inner_before = _inner_before(forest)
    # A child at or before its parent is missing: the tree ended before it.
    backward = np.flatnonzero((left_steps(forest, inner_before) <= 0) & (forest.node_split < forest.n_splits))
    broken = np.searchsorted(forest.tree_start, backward, side="right") - 1
    n_inner = np.diff(inner_before[forest.tree_start])
    broken = np.union1d(broken, np.flatnonzero(np.diff(forest.tree_start) != 1 + 2 * n_inner))
    if broken.size:
        return [f"node_split: {broken.size} trees are not whole, the first is tree {broken[0]}"]
    deepest = tree_depths(forest, inner_before).max(initial=0)
    if deepest > MAX_DEPTH:
        return [f"node_split: a tree deeper than {MAX_DEPTH}"]
    return []


def join_forests(forests: Sequence[Forest], places: Sequence[Sequence[int]], *, n_features: int) -> Forest:
    """Return one forest that answers as all of them, one after another; each sum keeps its bits.

    `places` are, for each forest, the positions of its columns among the `n_features` of the joint row.
    """
    pairs = []
    for forest, place in zip(forests, places, strict=True):
        table = np.empty(forest.n_splits, dtype=[("feature", np.uint16), ("threshold", np.float32)])
        table["feature"] = np.asarray(place, np.uint16)[forest.split_feature]
        table["threshold"] = forest.split_threshold
        pairs.append(table)
    joint, row_of = np.unique(np.concatenate(pairs), return_inverse=True)
    dtype = np.uint16 if joint.size < 2**16 else np.uint32
    parts: list[Splits] = []
    first = 0
    for forest in forests:
        # A leaf's split is again the number after all splits.
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
    """Return some of the forests, in this order, with the splits that they use; each sum keeps its bits."""
    trees = _ranges(forest.forest_start, np.array(chosen, np.intp))
    nodes = _ranges(forest.tree_start, trees)
    old = forest.node_split[nodes]
    is_used = np.zeros(forest.n_splits + 1, np.bool_)
    is_used[old] = True
    is_used[-1] = False  # the split of a leaf is again the number after all splits
    renumbered = np.append(np.cumsum(is_used[:-1]) - 1, is_used.sum())
    return Forest(
        n_features=forest.n_features,
        split_feature=forest.split_feature[is_used[:-1]],
        split_threshold=forest.split_threshold[is_used[:-1]],
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
