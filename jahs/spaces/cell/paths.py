"""The four paths from a cell's input to its output, for one cell and as features of many.

A path is alive if no operation on it is a zero; an edge is dead if it is on no path that is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, IDENTITY, OPERATIONS, POOL, ZERO, all_ops, cell_numbers

PATHS: Final = ((1, 2, 3, 4), (1, 2, 4), (1, 3, 4), (1, 4))
"""Nodes of each path from the cell's input to its output."""

PATH_EDGES: Final = tuple([EDGES.index(step) for step in pairwise(nodes)] for nodes in PATHS)
"""Places in Op1 .. Op6 of the edges of each path."""

_COUNTED: Final = (("n_conv3x3", CONV3X3), ("n_conv1x1", CONV1X1), ("n_pool", POOL), ("n_identity", IDENTITY))

PATH_FEATURES: Final = (
    *(
        f"path_{''.join(map(str, nodes))}_{name}"
        for nodes in PATHS
        for name in ("is_alive", *(name for name, _ in _COUNTED))
    ),
    "effective_depth",
    "n_parameter_free",
)
"""Names of the columns of `path_features`."""

_IS_ALIVE: Final = [place for place, name in enumerate(PATH_FEATURES) if name.endswith("is_alive")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One path from the cell's input to its output."""

    nodes: tuple[int, ...]  # in order, such as (1, 2, 4)
    operations: tuple[str, ...]  # NAS-Bench-201's names of the operations between the nodes
    is_alive: bool  # whether no operation on it is a zero


def paths(ops: Sequence[int]) -> tuple[Path, ...]:
    """Return the four paths of a cell, in the order of `PATHS`."""
    path_ops = [(nodes, [ops[edge] for edge in edges]) for nodes, edges in zip(PATHS, PATH_EDGES, strict=True)]
    return tuple(
        Path(nodes=nodes, operations=tuple(OPERATIONS[op] for op in codes), is_alive=ZERO not in codes)
        for nodes, codes in path_ops
    )


def dead_edges(ops: Sequence[int]) -> frozenset[int]:
    """Return the places in Op1 .. Op6 of the edges that are on no path that is alive."""
    alive = [edges for edges in PATH_EDGES if all(ops[edge] != ZERO for edge in edges)]
    return frozenset(range(len(EDGES))).difference(*alive)


def effective_depth(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the largest number of convolutions on a live path, (n,), for `ops` of shape (n, 6); 0 without one."""
    return path_features(ops)[:, PATH_FEATURES.index("effective_depth")].astype(np.int64)


def live_paths(ops: ArrayLike) -> NDArray[np.bool_]:
    """Return which of the paths of each cell are alive, (n, 4), for `ops` of shape (n, 6)."""
    return path_features(ops)[:, _IS_ALIVE].astype(bool)


def path_features(ops: ArrayLike) -> NDArray[np.int8]:
    """Return one row per cell, (n, 22), with the columns of `PATH_FEATURES`, for `ops` of shape (n, 6).

    For each path: whether it is alive, and how many operations of each kind are on it (0 if it is not alive). Then
    the effective depth and the number of operations without parameters (identity, zero, pooling) among all six.
    """
    features: NDArray[np.int8] = _features()[cell_numbers(ops)]
    return features


@cache
def _features() -> NDArray[np.int8]:
    """Return the features of every cell, (15625, 22)."""
    ops = all_ops()
    columns = []
    depth = np.zeros(len(ops), dtype=np.int64)
    for edges in PATH_EDGES:
        on_path = ops[:, edges]
        is_alive = (on_path != ZERO).all(axis=1)
        counts = {name: (on_path == op).sum(axis=1) * is_alive for name, op in _COUNTED}
        columns += [is_alive, *counts.values()]
        depth = np.maximum(depth, counts["n_conv3x3"] + counts["n_conv1x1"])
    n_parameter_free = ((ops != CONV3X3) & (ops != CONV1X1)).sum(axis=1)
    return np.column_stack([*columns, depth, n_parameter_free]).astype(np.int8)
