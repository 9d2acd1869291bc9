"""The compiled engine: one compact copy of the forests, laid out for the loops of `kernels`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jahs.errors import MissingDependency
from jahs.models.forest.flat import Float32s, Forest, Int64s, left_steps, tree_depths
from jahs.models.forest.kernels import BLOCK, LANES, NOT_A_NUMBER, NOT_MONOTONE
from jahs.models.forest.native_code import native_kernels
from jahs.models.forest.numpy_engine import not_a_number

# Full binary trees are the faster layout unless padding them takes more than this many nodes.
MAX_HEAP_NODES = 2**22
# Maximum number of choices of forests for which a thread keeps the addresses of a single row.
MAX_CHOICES = 64


class CompiledEngine:
    """Answers rows with machine code; equal to `NumpyEngine` bit for bit.

    One object serves any number of threads, and keeps working after a fork. MissingDependency if Numba is not
    installed, or the forest is too large for 2-byte nodes.
    """

    name = "compiled"

    def __init__(self, forest: Forest) -> None:
        if forest.n_splits >= 2**16:
            raise MissingDependency(f"{forest.n_splits} distinct splits; the compiled engine takes up to {2**16 - 1}")
        self.forest = forest
        self._native = native_kernels()
        depths = tree_depths(forest)
        self._steps = _group_maximum(depths, forest.forest_start)
        sizes = np.left_shift(1, np.minimum(self._steps, 40))
        self._linked = bool(sizes.sum() > MAX_HEAP_NODES)
        if self._linked:
            self._root, self._nodes, self._values = forest.tree_start, _links(forest), forest.node_value
        else:
            self._root = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
            self._nodes, self._values = _heaps(forest, self._root, self._steps)
        features = np.arange(forest.n_features + 1)
        self._feature_first = np.searchsorted(forest.split_feature, features).astype(np.int64)
        self._chosen = np.arange(forest.n_forests, dtype=np.int64)
        # Addresses of arrays that this object keeps alive, in the order in which both kernels take them.
        self._forest_addresses = (
            _address(self._feature_first),
            _address(forest.split_threshold),
            _address(forest.forest_start),
            _address(self._root),
            _address(self._steps),
            int(self._linked),
            _address(self._nodes),
            _address(self._values),
            _address(forest.base_score),
        )
        self._local = threading.local()

    def predict(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Return the answers to each row, (n_rows, n_forests); see `Engine.predict`."""
        assert X.dtype == np.float32
        assert X.shape[1:] == (self.forest.n_features,)
        if len(X) == 1:  # looking up addresses would cost more than a forest, so each choice of forests keeps them
            return np.array([self.answer_row(X.tobytes(), forests=forests)], np.float32)
        chosen = self._choice(forests)
        X = np.ascontiguousarray(X)
        out = np.empty((len(X), chosen.size), np.float32)
        goes = np.empty((BLOCK, self.forest.n_splits + 1), np.uint8)
        addresses = (*self._forest_addresses, _address(goes), _address(out))
        state = self._native.answer_rows(_address(X), *X.shape, _address(chosen), chosen.size, *addresses)
        if state == NOT_A_NUMBER:
            raise not_a_number(X)
        return out

    def predict_walk(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Predict as `predict`, much faster if each column rises, falls or stays along the rows."""
        assert X.dtype == np.float32
        assert X.shape[1:] == (self.forest.n_features,)
        chosen = self._choice(forests)
        if not len(X):
            return self.predict(X, forests=forests)
        X = np.ascontiguousarray(X)
        out = np.empty((chosen.size, len(X)), np.float32)
        turn, before = np.empty((2, self.forest.n_splits + 1), np.int64)
        items = np.empty(8 * (LANES * len(X) + 1), np.int64)
        scratch = (_address(turn), _address(before), _address(items))
        addresses = (*self._forest_addresses, *scratch, _address(out))
        state = self._native.answer_walk(_address(X), *X.shape, _address(chosen), chosen.size, *addresses)
        if state == NOT_A_NUMBER:
            raise not_a_number(X)
        if state == NOT_MONOTONE:
            return self.predict(X, forests=forests)
        return np.ascontiguousarray(out.T)

    def answer_row(self, row: bytes, *, forests: Sequence[int] | None = None) -> list[float]:
        """Answer one packed row; see `Engine.answer_row`."""
        chosen = None if forests is None else tuple(forests)
        try:
            out, arguments = self._local.rows[chosen][0]
        except (AttributeError, KeyError):
            out, arguments = self._prepare_row(chosen)
        assert len(row) == 4 * self.forest.n_features
        if self._native.answer_rows(row, *arguments) == NOT_A_NUMBER:
            raise not_a_number(np.frombuffer(row, np.float32)[None])
        answers: list[float] = out.tolist()
        return answers

    def _prepare_row(self, forests: tuple[int, ...] | None) -> tuple[Float32s, tuple[int, ...]]:
        """Return the buffer of one row's answers, and the other arguments of the kernel."""
        chosen = self._choice(forests)
        out = np.empty(chosen.size, np.float32)
        goes = np.empty(self.forest.n_splits + 1, np.uint8)
        head = (1, self.forest.n_features, _address(chosen), chosen.size)
        arguments = (*head, *self._forest_addresses, _address(goes), _address(out))
        known = self._local.__dict__.setdefault("rows", {})
        if len(known) >= MAX_CHOICES:
            known.clear()
        known[forests] = (out, arguments), (chosen, goes)  # the latter to be kept alive
        return out, arguments

    def _choice(self, forests: Sequence[int] | None) -> Int64s:
        chosen = self._chosen if forests is None else np.array(forests, np.int64)
        assert not chosen.size or 0 <= chosen.min() <= chosen.max() < self.forest.n_forests
        return chosen


def _address(array: NDArray[np.generic]) -> int:
    return array.ctypes.data


def _group_maximum(depths: Int64s, forest_start: Int64s) -> Int64s:
    """Return the steps of each tree: the depth of the deepest of the LANES trees that descend together."""
    steps: Int64s = depths.copy()
    for first, last in pairwise(forest_start):
        whole = first + (last - first) // LANES * LANES
        steps[first:whole] = np.repeat(depths[first:whole].reshape(-1, LANES).max(axis=1), LANES)
    return steps


def _links(forest: Forest) -> NDArray[np.uint16]:
    """Return each node's distance to its left child and its split, (n_nodes, 2)."""
    distance = left_steps(forest)
    if distance.max(initial=0) >= 2**16:
        raise MissingDependency(f"a level of {distance.max()} nodes; the compiled engine takes up to {2**16 - 1}")
    nodes = np.empty((forest.n_nodes, 2), np.uint16)
    nodes[:, 0] = distance
    nodes[:, 1] = forest.node_split
    return nodes


def _heaps(forest: Forest, root: Int64s, steps: Int64s) -> tuple[NDArray[np.uint16], Float32s]:
    """Pad each tree to a full one; below a leaf above the last level, all paths go left to its value."""
    sizes = np.left_shift(1, steps)
    nodes = np.full(sizes.sum(), forest.n_splits, np.uint16)
    values = np.zeros(sizes.sum(), np.float32)
    left = left_steps(forest) + np.arange(forest.n_nodes)
    # One level at a time: node numbers, the trees they belong to, and their places in those trees' heaps.
    node, tree, place = forest.tree_start[:-1], np.arange(forest.n_trees), np.ones(forest.n_trees, np.int64)
    for level in range(int(steps.max(initial=-1)) + 1):
        is_leaf = left[node] == node
        leaf_tree, bottom = tree[is_leaf], place[is_leaf] << (steps[tree[is_leaf]] - level)
        values[root[leaf_tree] + bottom - sizes[leaf_tree]] = forest.node_value[node[is_leaf]]
        node, tree, place = node[~is_leaf], tree[~is_leaf], place[~is_leaf]
        nodes[root[tree] + place] = forest.node_split[node]
        node = np.concatenate([left[node], left[node] + 1])
        tree, place = np.tile(tree, 2), np.concatenate([2 * place, 2 * place + 1])
    return nodes, values
