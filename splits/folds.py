"""Other ways to divide rows: into k folds, and nested subsets.

Each takes a table of rows with the 14 keys and `config_id` (`ConfigColumns`; a config may have many rows) and yields
row numbers only. All rows of a config are in one part, and in `k_folds` its kin, too. The order of rows does not
matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from splits.kinship import ConfigColumns, fidelity_groups, kin, seeded_ranks

RowNumbers: TypeAlias = NDArray[np.intp]  # row numbers in increasing order


def k_folds(table: ConfigColumns, n_folds: int, *, seed: int) -> Iterator[tuple[RowNumbers, RowNumbers]]:
    """Yield (rows to fit on, rows held out) for every fold; every row is held out once.

    Counted in families of kin (nearly always one config each), the folds differ by one at most, within every fidelity
    group and overall.

    Raises:
        InvalidArgument: `n_folds` is not between 2 and the number of families.
    """
    group, family = fidelity_groups(table)[0], kin(table)
    n_families = len(np.unique(family))
    if not 2 <= n_folds <= n_families:
        raise InvalidArgument(
            f"n_folds={n_folds!r} must be an integer in 2..{n_families}, the number of configs that are not kin"
        )
    first, label = _by_rank(table, family, seed=seed, purpose="folds")
    place = _positions(group[first])  # group after group, by rank within each
    fold = (place % n_folds)[label]
    return ((np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(n_folds))


def learning_curve_subsets(table: ConfigColumns, sizes: Sequence[int], *, seed: int) -> Iterator[RowNumbers]:
    """Yield all rows of `size` configs, for each size; a smaller subset of the same seed is part of a larger one.

    Configs are taken from the fidelity groups in turn, so that the groups of a subset differ by one config at most, as
    long as none is used up. For the training part: kin may be in different subsets.
    """
    group = fidelity_groups(table)[0]
    first, label = _by_rank(table, table["config_id"], seed=seed, purpose="subsets")
    turn = np.empty(len(first), dtype=np.int64)
    for number in np.unique(group[first]).tolist():
        members = np.flatnonzero(group[first] == number)
        turn[members] = np.arange(len(members))
    # Within a turn, too, the order is by rank: by group, the first groups would be the larger ones in every subset.
    place = _positions(turn)
    return (np.flatnonzero(place[label] < size) for size in sizes)


def _positions(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the position of each value in a stable sort."""
    return np.argsort(np.argsort(values, kind="stable"))


def _by_rank(
    table: ConfigColumns, unit: NDArray[np.generic], *, seed: int, purpose: str
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order units (equal numbers in `unit`) by the rank of their smallest config_id.

    Returns:
        One row of each unit, (n_units,), and each row's unit as a position among them, (n_rows,).
    """
    order = np.argsort(table["config_id"], kind="stable")
    _, first, label = np.unique(unit[order], return_index=True, return_inverse=True)
    rows = order[first]
    ids = table["config_id"][rows].astype(np.uint64)
    by_rank = np.lexsort((ids, seeded_ranks(ids, seed=seed, purpose=purpose)))
    # The argsort of a permutation is its inverse.
    return rows[by_rank], np.argsort(by_rank)[label][np.argsort(order)]
