"""The four paths from a cell's input to its output, for one cell and for many.

A path is alive if no operation on it is a zero; an edge is dead if it is on no path that is alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, OPERATIONS, ZERO

PATHS: Final = ((1, 2, 3, 4), (1, 2, 4), (1, 3, 4), (1, 4))
"""Nodes of each path from the cell's input to its output."""

PATH_EDGES: Final = tuple([EDGES.index(step) for step in pairwise(nodes)] for nodes in PATHS)
"""Places in Op1 .. Op6 of the edges of each path."""

_IS_ON_PATH: Final = np.array([[edge in edges for edges in PATH_EDGES] for edge in range(len(EDGES))], dtype=np.int64)


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
    return frozenset(np.flatnonzero(~live_edges([ops])[0]).tolist())


def effective_depth(ops: ArrayLike) -> NDArray[np.int64]:
    """Return the largest number of convolutions on a live path, (n,), for `ops` of shape (n, 6); 0 without one."""
    codes = np.asarray(ops)
    on_live = count_on_paths((codes == CONV3X3) | (codes == CONV1X1)) * live_paths(codes)
    depths: NDArray[np.int64] = on_live.max(axis=1)
    return depths


def live_paths(ops: ArrayLike) -> NDArray[np.bool_]:
    """Return which of the paths of each cell are alive, (n, 4), for `ops` of shape (n, 6)."""
    return np.asarray(count_on_paths(np.asarray(ops) == ZERO) == 0)


def live_edges(ops: ArrayLike) -> NDArray[np.bool_]:
    """Return which edges of each cell are on a live path, (n, 6), for `ops` of shape (n, 6)."""
    return np.asarray(live_paths(ops) @ _IS_ON_PATH.T > 0)


def count_on_paths(is_counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of the marked edges, (n, 6), are on each path, (n, 4)."""
    return np.asarray(is_counted @ _IS_ON_PATH)
