"""What becomes of a signal on its way through a network whose weights are as drawn, by cell and number of cells.

A convolution with BatchNorm gives variance 1 whatever it reads, and what different convolutions give is independent.
Identity and pooling copy what they read, and copies of one signal add up. So in some cells the input is added to itself
until no convolution matters, and in others every cell replaces it: how deep a network really is depends on its cell and
on N together. Everything is made of sums, products and quotients, element by element.

A signal is an array (4, n_cells): its variance, and its variance times what it has passed on average: convolutions, 3x3
convolutions, poolings. Independent signals are added by adding such arrays.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.spaces.cell.classes import canonical_keys, representatives
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, IDENTITY, POOL, all_ops

SIGNAL_FEATURES: Final = ("signal_convs", "signal_conv3x3", "signal_pools", "signal_renewed")
"""The convolutions, 3x3 convolutions and poolings that the signal at the network's output has passed, as means weighted
by variance; and the share of its output that a cell's own convolutions give, summed over all cells."""

_N_STAGES: Final = 3
_SHORTCUT: Final = 1 / 3  # what a convolution without BatchNorm makes of variance 1, with torch's initial weights
_VARIANCE, _CONVS, _CONV3X3, _POOLS = range(4)

_Floats: TypeAlias = NDArray[np.float64]


class _Cells:
    """How signals get through a cell, for many cells at once.

    Attributes:
        convs: whether an edge is a convolution, and whether it is a 3x3 one, each (n,), by edge.
        gain: of a signal's variance on the paths of copies between two nodes, (n,).
        pools: poolings on such a way, on average, (n,).
    """

    def __init__(self, ops: NDArray[np.int64]) -> None:
        of_edge = dict(zip(EDGES, ops.T, strict=True))
        self.convs = {edge: ((op == CONV3X3) | (op == CONV1X1), op == CONV3X3) for edge, op in of_edge.items()}
        self.gain: dict[tuple[int, int], _Floats] = {}
        self.pools: dict[tuple[int, int], _Floats] = {}
        for start in (1, 2, 3):
            n_ways, n_pools = {start: np.ones(len(ops))}, {start: np.zeros(len(ops))}
            for node in range(start + 1, 5):
                n_ways[node], n_pools[node] = np.zeros(len(ops)), np.zeros(len(ops))
                for before in range(start, node):
                    op = of_edge[before, node]
                    is_copy = (op == IDENTITY) | (op == POOL)
                    n_ways[node] += is_copy * n_ways[before]
                    n_pools[node] += is_copy * (n_pools[before] + (op == POOL) * n_ways[before])
                self.gain[start, node] = n_ways[node] ** 2
                self.pools[start, node] = n_pools[node] / np.maximum(n_ways[node], 1.0)

    def pass_on(self, signal: _Floats) -> tuple[_Floats, _Floats]:
        """Return the signal at node 4 of the signal at node 1, and the share of it that convolutions give."""
        started = {1: signal, **{node: np.zeros_like(signal) for node in (2, 3, 4)}}  # at a node, not copied to it
        for node in (1, 2, 3):
            given = _as_convolved(self._arrived(node, started))
            for target in range(node + 1, 5):
                is_conv, is_conv3x3 = self.convs[node, target]
                started[target] += is_conv * given
                started[target][_CONVS] += is_conv * given[_VARIANCE]
                started[target][_CONV3X3] += is_conv3x3 * given[_VARIANCE]
        arrived = self._arrived(4, started)
        total, copied = arrived[_VARIANCE], self.gain[1, 4] * signal[_VARIANCE]
        return arrived, (total - copied) / np.where(total > 0, total, 1.0)

    def _arrived(self, node: int, started: dict[int, _Floats]) -> _Floats:
        arrived: _Floats = started[node].copy()
        for start in range(1, node):
            copied = self.gain[start, node] * started[start]
            copied[_POOLS] += self.pools[start, node] * copied[_VARIANCE]
            arrived += copied
        return arrived


@cache
def signal_features(n_cells: int, *, canonical: bool) -> dict[str, _Floats]:
    """Return every column of `SIGNAL_FEATURES` of networks with `n_cells` cells a stage, each (15625,), by cell number.

    With `canonical`, every cell has the row of the cell that represents its class.
    """
    ops = representatives() if canonical else all_ops()
    cells, signal, renewed = _Cells(ops), np.zeros((4, len(ops))), np.zeros(len(ops))
    signal[_VARIANCE] = 1.0  # as the stem gives it
    for stage in range(_N_STAGES):
        if stage:
            signal = _reduced(signal)
        for _ in range(n_cells):
            signal, share = cells.pass_on(signal)
            renewed += share
    passed = _as_convolved(signal)[1:]
    order = canonical_keys(all_ops()) if canonical else slice(None)
    return {name: values[order] for name, values in zip(SIGNAL_FEATURES, (*passed, renewed), strict=True)}


def _reduced(signal: _Floats) -> _Floats:
    """Return the signal after a reduction: two 3x3 convolutions, with a pooling on the shortcut."""
    main, shortcut = _as_convolved(signal), _SHORTCUT * signal
    main[[_CONVS, _CONV3X3]] += 2.0 * main[_VARIANCE]
    shortcut[_POOLS] += shortcut[_VARIANCE]
    return main + shortcut


def _as_convolved(signal: _Floats) -> _Floats:
    """Return the signal scaled to variance 1, where it is not zero."""
    scaled: _Floats = signal / np.where(signal[_VARIANCE] > 0, signal[_VARIANCE], 1.0)
    return scaled
