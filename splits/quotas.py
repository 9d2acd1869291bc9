"""Quotas: configs of each stratum in each part, so that many marginals are balanced at once.

A stratum is a set of configs that count alike. A margin is a set of strata whose counts should be 70/15/15; it deviates
by `count - share * size` in each part, kept exact here as whole twentieths of a config. The counts are found by moving
single configs, or swapping two of different strata, as long as the weighted sum of squared deviations falls: first for
the groups, then for the thirds, then for the totals. A margin that is already within +-1 config must stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

WHOLE: Final = 20
SHARES: Final = (14, 3, 3)  # twentieths of train, valid and test: 70, 15 and 15 %
# Weights of groups, thirds, totals and details. 10**4 outweighs what one move can change elsewhere.
_GROUPS_FIRST: Final = (10**8, 10**4, 1, 1)
_THIRDS_FIRST: Final = (1, 10**4, 1, 1)
_TOTALS_TOO: Final = (10, 100, 100, 1)
_MOST_STARTS: Final = 8  # orders in which strata are tried, until the promises hold
_MOST_ROUNDS: Final = 12  # 10**4 * 2**12 and deviations of 10**5 configs stay far within 64 bits


class Margins(NamedTuple):
    """Sets of strata to balance, each as an array of bools, (n_margins, n_strata), in order of their weight."""

    groups: NDArray[np.bool_]  # promised within one config, before all others
    thirds: NDArray[np.bool_]  # promised within one config
    totals: NDArray[np.bool_]  # balanced as well as the promises allow
    details: NDArray[np.bool_]  # balanced as well as the totals allow


def deviations(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the deviations of counts (train, valid, test; last axis) from 70/15/15, in twentieths of a config."""
    deviation: NDArray[np.int64] = WHOLE * counts - np.array(SHARES) * counts.sum(axis=-1, keepdims=True)
    return deviation


def fill_quotas(
    kept: NDArray[np.int64], n_free: NDArray[np.int64], *, margins: Margins, order: Sequence[int]
) -> NDArray[np.int64]:
    """Return the final number of configs of each stratum in each part, (n_strata, 3).

    Args:
        kept: numbers of configs that are already placed and stay, (n_strata, 3).
        n_free: numbers of configs of each stratum still to be placed, (n_strata,).
        order: the strata in the order in which they are tried; it decides between moves that are equally good.
    """
    placed = [_largest_remainders(row, n) for row, n in zip(kept.tolist(), n_free.tolist(), strict=True)]
    counts = np.array(placed, dtype=np.int64).reshape(-1, len(SHARES))
    is_in = np.concatenate(margins).astype(np.int64)
    balanced, is_kept = _keep_promises(counts, kept, is_in, margins=margins, order=order)
    for start in range(1, _MOST_STARTS):
        if is_kept:
            break
        first = start * len(order) // _MOST_STARTS
        rotated = [*order[first:], *order[:first]]
        candidate, is_kept = _keep_promises(counts, kept, is_in, margins=margins, order=rotated)
        if is_kept:
            balanced, order = candidate, rotated
    n_held = len(margins.groups) + len(margins.thirds)
    return _descend(balanced, kept, is_in, weights=_weights(_TOTALS_TOO, margins), order=order, n_held=n_held)


def _keep_promises(
    counts: NDArray[np.int64],
    kept: NDArray[np.int64],
    is_in: NDArray[np.int64],
    *,
    margins: Margins,
    order: Sequence[int],
) -> tuple[NDArray[np.int64], bool]:
    """Return counts that balance groups, then thirds, and whether every third is within one config."""
    n_groups, n_held = len(margins.groups), len(margins.groups) + len(margins.thirds)
    counts = _descend(counts, kept, is_in, weights=_weights(_GROUPS_FIRST, margins), order=order, n_held=0)
    weights = _weights(_THIRDS_FIRST, margins)
    for _ in range(_MOST_ROUNDS):
        counts = _descend(counts, kept, is_in, weights=weights, order=order, n_held=n_groups)
        is_off = np.abs(deviations(is_in[n_groups:n_held] @ counts)).max(axis=1, initial=0) > WHOLE
        if not is_off.any():
            return counts, True
        weights[n_groups:n_held][is_off] *= 2  # the least sum of squares may leave one third out of bounds
    return counts, False


def _weights(level_weights: Sequence[int], margins: Margins) -> NDArray[np.int64]:
    return np.repeat(np.array(level_weights), [len(level) for level in margins])


def _largest_remainders(kept: Sequence[int], n_free: int) -> list[int]:
    """Place the free configs of one stratum, each in the part with the largest final deficit."""
    counts = list(kept)
    size = sum(counts) + n_free
    for _ in range(n_free):
        deficits = [share * size - WHOLE * count for share, count in zip(SHARES, counts, strict=True)]
        counts[deficits.index(max(deficits))] += 1
    return counts


def _descend(
    counts: NDArray[np.int64],
    kept: NDArray[np.int64],
    is_in: NDArray[np.int64],
    *,
    weights: NDArray[np.int64],
    order: Sequence[int],
    n_held: int,
) -> NDArray[np.int64]:
    """Make the best move until none lowers the sum of squares; the first `n_held` margins may not leave +-1 config.

    A move (s, t, a, b) takes a config of stratum s from part a to b and one of t from b to a; there may be no t.
    """
    no_stratum = len(counts)
    pairs = [(s, no_stratum) for s in order] + list(combinations(order, 2))
    giving, taking = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    padded = np.column_stack([is_in, np.zeros(len(is_in), dtype=np.int64)])
    change = (padded[:, giving] - padded[:, taking]).T  # (n_pairs, n_margins), -1, 0 or 1
    # Deviations of A and B twentieths in a and b become A - 20 and B + 20: the squares grow by 800 + 40 (B - A).
    square = 2 * WHOLE**2 * (change**2 @ weights)
    weighted = change * weights
    held = change[:, :n_held]
    more, less = (held > 0).astype(np.int64), (held < 0).astype(np.int64)
    is_same_part = np.eye(len(SHARES), dtype=bool)
    worst = np.iinfo(np.int64).max
    counts = counts.copy()
    while len(pairs):
        deviation = deviations(is_in @ counts)
        is_over, is_under = (deviation[:n_held] > 0).astype(np.int64), (deviation[:n_held] < 0).astype(np.int64)
        may_leave = more @ is_under + less @ is_over == 0  # (n_pairs, 3): out of part a
        may_enter = more @ is_over + less @ is_under == 0  # (n_pairs, 3): into part b
        is_free = np.vstack([counts > kept, np.ones(len(SHARES), dtype=bool)])
        may_move = (may_leave & is_free[giving])[:, :, None] & (may_enter & is_free[taking])[:, None, :] & ~is_same_part
        slope = weighted @ deviation
        growth = square[:, None, None] + 2 * WHOLE * (slope[:, None, :] - slope[:, :, None])
        growth = np.where(may_move, growth, worst)
        best = int(growth.argmin())
        if growth.flat[best] >= 0:
            break
        pair, a, b = np.unravel_index(best, growth.shape)
        s, t = giving[pair], taking[pair]
        counts[s, a] -= 1
        counts[s, b] += 1
        if t != no_stratum:
            counts[t, b] -= 1
            counts[t, a] += 1
    return counts
