"""The reference engine: numpy only, all trees one level at a time. Always available; the other engine must agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.models.forest.flat import Float32s, Forest, Int64s, left_steps, tree_depths

# Rows x trees, or rows x splits, at a time: 2 ** 18 numbers of 8 bytes stay within a few MB however long the batch is.
CHUNK = 2**18
LOW = 2**32 - 1


class NumpyEngine:
    """Answers rows with numpy."""

    name = "numpy"

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        # A node as one number, so that a step down needs one fetch: left child in the high bits, split in the low bits.
        # The base scores follow the nodes, as leaves.
        self._node = np.arange(forest.n_nodes + forest.n_forests, dtype=np.int64) << 32
        self._node[: forest.n_nodes] += left_steps(forest).astype(np.int64) << 32
        self._node[: forest.n_nodes] |= forest.node_split
        self._node[forest.n_nodes :] |= forest.n_splits
        self._value = np.concatenate([forest.node_value, forest.base_score])
        self._depth = tree_depths(forest)
        self._split_feature = forest.split_feature.astype(np.intp)
        self._all_roots = self._roots(range(forest.n_forests))

    def predict(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Return the answers to each row, (n_rows, n_forests); see `Engine.predict`."""
        assert X.dtype == np.float32
        assert X.shape[1:] == (self.forest.n_features,)
        if np.isnan(X).any():
            raise not_a_number(X)
        roots, ends, depth = self._all_roots if forests is None else self._roots(forests)
        out = np.empty((len(X), len(ends)), np.float32)
        n_rows = max(1, CHUNK // max(1, roots.size, self.forest.n_splits))
        for first in range(0, len(X), n_rows):
            values = self._leaf_values(X[first : first + n_rows], roots, depth)
            begin = 0
            for column, end in enumerate(ends):
                # accumulate adds in float32 from left to right, as XGBoost does; np.sum promises no order.
                out[first : first + n_rows, column] = np.add.accumulate(values[:, begin:end], axis=1)[:, -1]
                begin = end
        return out

    def answer_row(self, row: bytes, *, forests: Sequence[int] | None = None) -> list[float]:
        """Answer one packed row; see `Engine.answer_row`."""
        answers: list[float] = self.predict(np.frombuffer(row, np.float32)[None], forests=forests)[0].tolist()
        return answers

    def predict_walk(self, X: Float32s, *, forests: Sequence[int] | None = None) -> Float32s:
        """Predict as `predict`."""
        return self.predict(X, forests=forests)

    def _leaf_values(self, X: Float32s, roots: Int64s, depth: int) -> Float32s:
        """Return the value of the leaf that each row reaches from each root, (n_rows, n_roots)."""
        width = self.forest.n_splits + 1
        goes = np.zeros((len(X), width), np.intp)  # 1: to the right; a leaf's split stays 0
        goes[:, :-1] = X[:, self._split_feature] >= self.forest.split_threshold
        row: NDArray[np.intp] | int = np.arange(len(X))[:, None] * width if len(X) > 1 else 0
        node = np.repeat(roots[None], len(X), axis=0)
        # "clip" clips nothing, as the forest is checked; it saves numpy the buffer for invalid indices.
        for _ in range(depth):
            packed = self._node.take(node, mode="clip")
            node = (packed >> 32) + goes.take((packed & LOW) + row, mode="clip")
        return self._value.take(node, mode="clip")

    def _roots(self, forests: Sequence[int]) -> tuple[Int64s, list[int], int]:
        """Return the first and last position of each sum's terms, base score first, and the depth of the trees."""
        start = self.forest.forest_start
        roots: list[Int64s] = [np.empty(0, np.int64)]
        ends: list[int] = []
        depth = 0
        for k in forests:
            trees = slice(start[k], start[k + 1])
            roots += [np.array([self.forest.n_nodes + k], np.int64), self.forest.tree_start[:-1][trees]]
            ends.append((ends[-1] if ends else 0) + 1 + int(start[k + 1] - start[k]))
            depth = max(depth, int(self._depth[trees].max(initial=0)))
        return np.concatenate(roots), ends, depth


def not_a_number(X: Float32s) -> InvalidArgument:
    """Build the error for rows with NaN: forests have no direction for a missing value."""
    row, column = np.argwhere(np.isnan(X))[0]
    return InvalidArgument(f"X[{row}, {column}] is NaN; every feature needs a value")
