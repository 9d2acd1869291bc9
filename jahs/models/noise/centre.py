"""The shift that keeps the mean of draws at the prediction.

Draws are made on an unbounded scale. Mapped back to accuracies, their mean is nearer to 50 % than their centre. So the
centre is moved outwards, from z to z + c sigma^2 z / (1 + z^2). For small spreads c is 3/2. For others it is computed
here, on a grid of predictions and spreads, such that the mean over all possible draws is the prediction; in between it
is interpolated.
"""

from __future__ import annotations

import functools
import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.models.noise.chance import normal_table
from jahs.models.noise.spread import LEVELS, MOST, PER_LEVEL, from_line, to_line, with_tail

PER_SPREAD: Final = 8.0
"""Spreads of the grid in 1."""

N_SPREADS: Final = int(MOST * PER_SPREAD) + 1

_SMALL: Final = 1.5
_FURTHEST: Final = 64.0
_N_HALVINGS: Final = 40
_LARGEST_BLOCK: Final = 2048

Pulls: TypeAlias = list[float]
"""c at each of `LEVELS` and each spread of the grid, level by level."""


@functools.cache
def pulls(tail: float) -> Pulls:
    """Return c for noise with this tail. Only sums, products, quotients and roots: the same bits on any machine."""
    g, share = draws()
    h = with_tail(g, tail)
    low = [level for level in LEVELS if 0 < level < 50]
    sigma = np.array([k / PER_SPREAD for k in range(1, N_SPREADS)] * len(low))
    y = np.repeat(np.array(low, dtype=np.float64), N_SPREADS - 1)
    z = to_line(y)
    least, most = z - _FURTHEST, np.zeros(len(z))
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (least + most)
        mean = np.add.reduce(share * from_line(middle + sigma * h), axis=0)  # row after row
        is_low = mean < y
        least, most = np.where(is_low, middle, least), np.where(is_low, most, middle)
    c = (0.5 * (least + most) - z) * (1.0 + z * z) / (sigma * sigma * z)
    by_level = {level: [_SMALL, *row] for level, row in zip(low, c.reshape(len(low), -1).tolist(), strict=True)}
    nearest = [min(max(min(level, 100 - level), low[0]), low[-1]) for level in LEVELS]
    return [value for level in nearest for value in by_level[level]]


def pull_of_rows(table: Pulls, y: NDArray[np.float64], sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return c for accuracies in 0..100 and their spreads, (n,)."""
    pull = np.array(table).reshape(len(LEVELS), N_SPREADS)
    knot, step = y * PER_LEVEL, sigma * PER_SPREAD
    cell = np.minimum(knot.astype(np.intp), len(LEVELS) - 2)
    column = np.minimum(step.astype(np.intp), N_SPREADS - 2)
    on = step - column
    low = pull[cell, column] + (pull[cell, column + 1] - pull[cell, column]) * on
    high = pull[cell + 1, column] + (pull[cell + 1, column + 1] - pull[cell + 1, column]) * on
    return np.asarray(low + (high - low) * (knot - cell))


@functools.cache
def draws() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all normal numbers, in blocks that grow from both ends: their means and shares, (n_blocks, 1)."""
    table = normal_table().tolist()
    half = len(table) // 2
    blocks, at = [], 0
    while at < half:
        end = min(max(2 * at, 1), at + _LARGEST_BLOCK, half)
        blocks.append((math.fsum(table[at:end]) / (end - at), (end - at) / len(table)))
        at = end
    both = np.array([*blocks, *((-mean, share) for mean, share in blocks)])
    return both[:, :1], both[:, 1:]
