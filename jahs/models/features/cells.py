"""Features of cells: tables of all 15,625 cells by number, one column per feature.

With `canonical`, every cell has the row of the cell that represents its class, so cells that compute the same function
(`jahs.spaces.cell.canonical`) have equal features. `fewest_pools` is `NO_PATH` in cells without a live path that has
no convolution.

`signal_features` describe how a signal passes through a network at initialisation. A convolution with BatchNorm has
outputs of variance 1 whatever its input, and outputs of different convolutions are independent. Identity and pooling
copy their input, and copies of one signal add up. So in some cells the input is added to itself until no convolution
matters, and in others every cell replaces it: the effective depth of a network depends on its cell and N together. A
signal is an array (4, n_cells): its variance, and its variance times the mean numbers of convolutions, 3x3 convolutions
and poolings that it has passed. Independent signals are added by adding such arrays.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.schema import OPS
from jahs.spaces.cell.keys import canonical_keys, representatives
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, IDENTITY, OPERATIONS, POOL, ZERO, all_ops, cell_numbers
from jahs.spaces.cell.paths import count_on_paths, live_edges, live_paths

NO_PATH: Final = 9

_STRENGTH: Final = {ZERO: 0, POOL: 1, IDENTITY: 2, CONV1X1: 3, CONV3X3: 4}
_COUNTED: Final = {CONV3X3: "conv3x3", CONV1X1: "conv1x1", POOL: "pool", IDENTITY: "identity", ZERO: "zero"}

CELL_FEATURES: Final = {
    # One column per edge, in an order in which a threshold means something: zero, pooling, identity, 1x1, 3x3.
    "operations": tuple(f"{op}_strength" for op in OPS),
    "one_hot": tuple(f"{op}_{code}" for op in OPS for code in range(len(OPERATIONS))),
    "counts": tuple(f"n_{name}" for name in _COUNTED.values()),
    "live": ("n_live_paths", "n_live_conv3x3", "widest_view", "effective_depth"),
    "shortcuts": ("n_conv_free_paths", "n_identity_paths", "fewest_pools"),
    "computed": ("n_activated", "n_pooled"),
    "trained": tuple(f"n_trained_{name}" for name in ("conv3x3", "conv1x1", "activated", "pooled")),
}
"""The columns of `cell_features`, by group.

live: live paths; 3x3 convolutions on live edges; the most operations with a neighbourhood (3x3 convolution or pooling),
and the most convolutions, on a live path. shortcuts: live paths without convolutions, with identities only, and the
fewest poolings on the former. computed: nodes whose value is activated, once for all convolutions that read it, and
nodes whose value is pooled. trained: convolutions that the output depends on, and the activations and poolings in the
backward pass.
"""

SIGNAL_FEATURES: Final = ("signal_convs", "signal_conv3x3", "signal_pools", "signal_renewed")
"""The convolutions, 3x3 convolutions and poolings that the signal at the network's output has passed, as means weighted
by variance; and the share of its output that a cell's own convolutions give, summed over all cells."""

_N_STAGES: Final = 3
_SHORTCUT: Final = 1 / 3  # output variance of a convolution without BatchNorm for variance 1, at torch's initialisation
_VARIANCE, _CONVS, _CONV3X3, _POOLS = range(4)
_Floats: TypeAlias = NDArray[np.float64]


def representative_numbers() -> NDArray[np.int64]:
    """Return for each cell number the number of the cell that represents its class, (15625,)."""
    return cell_numbers(representatives())[canonical_keys(all_ops())]


@cache
def cell_features(*, canonical: bool) -> dict[str, NDArray[np.float32]]:
    """Return every column of `CELL_FEATURES`, each (15625,), in the order of cell numbers."""
    ops = all_ops()
    columns = {f"{op}_strength": np.vectorize(_STRENGTH.get)(ops[:, i]) for i, op in enumerate(OPS)}
    columns |= {f"{op}_{code}": ops[:, i] == code for i, op in enumerate(OPS) for code in range(len(OPERATIONS))}
    columns |= {f"n_{name}": (ops == code).sum(axis=1) for code, name in _COUNTED.items()}
    columns |= _live(ops)
    columns |= _computed(ops)
    order = representative_numbers() if canonical else slice(None)
    return {name: values[order].astype(np.float32) for name, values in columns.items()}


def _live(ops: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Compute the groups "live" and "shortcuts"."""
    is_alive = live_paths(ops)
    conv3x3, conv1x1, pools = (count_on_paths(ops == op) * is_alive for op in (CONV3X3, CONV1X1, POOL))
    convs = conv3x3 + conv1x1
    is_free = is_alive & (convs == 0)
    return {
        "n_live_paths": is_alive.sum(axis=1),
        "n_live_conv3x3": ((ops == CONV3X3) & live_edges(ops)).sum(axis=1),
        "widest_view": (conv3x3 + pools).max(axis=1),
        "effective_depth": convs.max(axis=1),
        "n_conv_free_paths": is_free.sum(axis=1),
        "n_identity_paths": (is_free & (pools == 0)).sum(axis=1),
        "fewest_pools": np.where(is_free, pools, NO_PATH).min(axis=1),
    }


def _computed(ops: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Compute the groups "computed" and "trained"."""
    conv3x3, conv1x1, pool, zero = (ops == code for code in (CONV3X3, CONV1X1, POOL, ZERO))
    conv = conv3x3 | conv1x1
    # Gradients flow back from nodes that lead to the output to nodes with weights before them.
    learns, leads = {1: np.ones(len(ops), bool)}, {4: np.ones(len(ops), bool)}
    for node in (2, 3):
        learns[node] = np.any(
            [~zero[:, i] & (conv[:, i] | learns[start]) for i, (start, end) in enumerate(EDGES) if end == node], axis=0
        )
    for node in (3, 2, 1):
        leads[node] = np.any(
            [~zero[:, i] & leads[end] for i, (start, end) in enumerate(EDGES) if start == node], axis=0
        )
    is_led = np.column_stack([leads[end] for _, end in EDGES])
    goes_back = is_led & np.column_stack([learns[start] for start, _ in EDGES])

    def n_read(is_read: NDArray[np.bool_]) -> NDArray[np.int64]:
        reads = [is_read[:, [start == node for start, _ in EDGES]].any(axis=1) for node in (1, 2, 3)]
        n_nodes: NDArray[np.int64] = np.column_stack(reads).sum(axis=1)
        return n_nodes

    return {
        "n_activated": n_read(conv),
        "n_pooled": n_read(pool),
        "n_trained_conv3x3": (conv3x3 & is_led).sum(axis=1),
        "n_trained_conv1x1": (conv1x1 & is_led).sum(axis=1),
        "n_trained_activated": n_read(conv & goes_back),
        "n_trained_pooled": n_read(pool & goes_back),
    }


class _Cells:
    """How signals get through a cell, for many cells at once.

    Attributes:
        convs: whether an edge is a convolution, and whether it is a 3x3 one, each (n,), by edge.
        gain: gain of a signal's variance over the paths between two nodes that only copy, (n,).
        pools: mean number of poolings on such paths, (n,).
    """

    def __init__(self, ops: NDArray[np.int64]) -> None:
        edge_ops = dict(zip(EDGES, ops.T, strict=True))
        self.convs = {edge: ((op == CONV3X3) | (op == CONV1X1), op == CONV3X3) for edge, op in edge_ops.items()}
        self.gain: dict[tuple[int, int], _Floats] = {}
        self.pools: dict[tuple[int, int], _Floats] = {}
        for start in (1, 2, 3):
            n_ways, n_pools = {start: np.ones(len(ops))}, {start: np.zeros(len(ops))}
            for node in range(start + 1, 5):
                n_ways[node], n_pools[node] = np.zeros(len(ops)), np.zeros(len(ops))
                for before in range(start, node):
                    op = edge_ops[before, node]
                    is_copy = (op == IDENTITY) | (op == POOL)
                    n_ways[node] += is_copy * n_ways[before]
                    n_pools[node] += is_copy * (n_pools[before] + (op == POOL) * n_ways[before])
                self.gain[start, node] = n_ways[node] ** 2
                self.pools[start, node] = n_pools[node] / np.maximum(n_ways[node], 1.0)

    def pass_on(self, signal: _Floats) -> tuple[_Floats, _Floats]:
        """Return the signal at node 4, given the signal at node 1, and the share of it that comes from convolutions."""
        started = {1: signal, **{node: np.zeros_like(signal) for node in (2, 3, 4)}}  # made at a node, not copied to it
        for node in (1, 2, 3):
            convolved = _as_convolved(self._arrived(node, started))
            for target in range(node + 1, 5):
                is_conv, is_conv3x3 = self.convs[node, target]
                started[target] += is_conv * convolved
                started[target][_CONVS] += is_conv * convolved[_VARIANCE]
                started[target][_CONV3X3] += is_conv3x3 * convolved[_VARIANCE]
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
    signal[_VARIANCE] = 1.0  # the stem's output
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
