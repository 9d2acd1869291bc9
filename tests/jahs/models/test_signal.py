"""What a signal passes: right where the answer is plain, equal within a class, and what a slow account of it gives."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.models.features.cells import SIGNAL_FEATURES, signal_features
from jahs.spaces.cell.operations import CONV1X1, CONV3X3, EDGES, POOL, ZERO

DEPTHS = (1, 3, 5)

Signal: TypeAlias = tuple[Fraction, tuple[Fraction, Fraction, Fraction]]
"""Variance, and the convolutions, 3x3 convolutions and poolings that were passed."""


def row(ops: tuple[int, ...], n_cells: int) -> list[float]:
    number = int("".join(map(str, ops)), 5)
    table = signal_features(n_cells, canonical=False)
    return [float(table[name][number]) for name in SIGNAL_FEATURES]


def together(signals: list[Signal]) -> Signal:
    """Independent signals at one node."""
    total = sum((variance for variance, _ in signals), Fraction(0))
    one, three, pools = (sum((v * p[i] for v, p in signals), Fraction(0)) / (total or 1) for i in range(3))
    return total, (one, three, pools)


def through_cell(ops: tuple[int, ...], came: Signal) -> tuple[Signal, Fraction]:
    """What leaves a cell, and its share that the cell's convolutions give; every way of every signal is walked."""
    given: dict[object, Signal] = {"came": came}
    ways: dict[int, dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))  # poolings of each, by signal
    ways[1]["came"] = [0]

    def at(node: int) -> list[Signal]:
        here = []
        for name, pools in ways[node].items():
            variance, (one, three, before) = given[name]
            here.append((len(pools) ** 2 * variance, (one, three, before + Fraction(sum(pools), len(pools)))))
        return here

    for edge, op in zip(EDGES, ops, strict=True):
        source, target = edge
        variance, (one, three, pools) = together(at(source))
        if op in (CONV1X1, CONV3X3):
            given[edge] = Fraction(variance > 0), (one + 1, three + (op == CONV3X3), pools)
            ways[target][edge] = [0]
        elif op != ZERO:
            for name, there in list(ways[source].items()):
                ways[target][name] += [n + (op == POOL) for n in there]
    total, passed = together(at(4))
    copied = len(ways[4]["came"]) ** 2 * came[0] if ways[4]["came"] else Fraction(0)
    return (total, passed), (total - copied) / (total or 1)


def through_network(ops: tuple[int, ...], n_cells: int) -> list[float]:
    signal: Signal = Fraction(1), (Fraction(0), Fraction(0), Fraction(0))
    renewed = Fraction(0)
    for stage in range(3):
        if stage:
            variance, (one, three, pools) = signal
            main = Fraction(variance > 0), (one + 2, three + 2, pools)
            signal = together([main, (variance / 3, (one, three, pools + 1))])
        for _ in range(n_cells):
            signal, share = through_cell(ops, signal)
            renewed += share
    return [float(value) for value in (*signal[1], renewed)]


@pytest.mark.parametrize("n_cells", DEPTHS)
def test_a_chain_of_convolutions_is_as_deep_as_it_looks(n_cells: int) -> None:
    # A reduction adds two convolutions to three quarters of the signal and a pooling to the last quarter.
    assert row((1, 1, 2, 1, 1, 1), n_cells) == pytest.approx([3 * n_cells + 3, 3 * n_cells + 3, 0.5, 3 * n_cells])
    assert row((3, 1, 1, 1, 3, 1), n_cells) == pytest.approx([6 * n_cells + 3, 3, 0.5, 3 * n_cells])


@pytest.mark.parametrize("n_cells", DEPTHS)
def test_cells_that_copy_renew_nothing(n_cells: int) -> None:
    convs, conv3x3, pools, renewed = row((1, 1, 0, 1, 1, 1), n_cells)
    assert (renewed, convs) == (0, conv3x3)
    assert row((1, 1, 4, 1, 1, 1), n_cells) == pytest.approx([convs, conv3x3, pools + 3 * n_cells, 0])


def test_where_nothing_arrives_nothing_was_passed() -> None:
    for ops in ((1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 1), (1, 2, 1, 3, 2, 1)):
        assert row(ops, 3) == [0, 0, 0, 0]


def test_a_shortcut_beside_a_convolution_outweighs_it_more_from_cell_to_cell() -> None:
    beside = [row((1, 0, 2, 1, 1, 0), n)[-1] / (3 * n) for n in DEPTHS]  # one way of identities
    twice = [row((0, 0, 2, 1, 0, 0), n)[-1] / (3 * n) for n in DEPTHS]  # two of them
    assert beside[0] > beside[1] > beside[2]
    assert all(two < one for one, two in zip(beside, twice, strict=True))


@settings(deadline=None)
@given(ops=st.tuples(*[st.integers(0, 4)] * 6), n_cells=st.sampled_from(DEPTHS))
def test_it_is_what_a_walk_along_every_way_gives(ops: tuple[int, ...], n_cells: int) -> None:
    assert row(ops, n_cells) == pytest.approx(through_network(ops, n_cells), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_cells", DEPTHS)
def test_cells_that_compute_the_same_pass_on_the_same(n_cells: int) -> None:
    """Although nothing here knows of classes."""
    for name in SIGNAL_FEATURES:
        own, of_class = (signal_features(n_cells, canonical=flag)[name] for flag in (False, True))
        np.testing.assert_allclose(own, of_class, rtol=1e-12, atol=1e-12)
