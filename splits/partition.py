"""Assign every config to a part, 70/15/15, without moving configs of an old split.

Promised to within one config: every fidelity group, every source in a group, and the repeated configs of every third of
the groups. A third is the nine groups that share a value of N, W or Resolution, so there are nine. Kin stay together. A
digest of (seed, config_id) decides which configs fill the quotas; neither the order of rows nor measurements matter.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidTable, Leakage, ProtocolMismatch
from jahs.schema import SIZE_KEYS, SPLIT_PARTS
from jahs.spaces.seeds import read_seed
from splits.kinship import fidelity_groups, find_leaks, group_name, kin, seeded_ranks, source_groups
from splits.quotas import SHARES, WHOLE, Margins, fill_quotas
from splits.recorded import RecordedConfigs, examples
from splits.split import SEED_BITS, Split

LEAST_PER_GROUP: Final = 7
"""Fewest configs of a group for which every part gets at least one: 15 % of 7 is 1, to within one config."""

_NOWHERE: Final = -1


def partition(
    recorded: RecordedConfigs, *, seed: int, old: Split | None = None, fewest: int = LEAST_PER_GROUP
) -> Split:
    """Return a split of every recorded config.

    Args:
        seed: seed that decides which configs a part gets, not how many.
        old: a split whose configs stay in their parts; new configs fill the quotas.
        fewest: configs that every recorded group needs. With fewer than `LEAST_PER_GROUP` the promises still hold, but
            a group may have no config in a part; the totals are balanced as well as the promises allow.

    Raises:
        InvalidArgument: the seed is not an integer in 0..2**64-1, or `fewest` is negative.
        InvalidTable: a fidelity group has too few configs, or a config of `old` is gone.
        ProtocolMismatch: `old` has another protocol.
        Leakage: `old` has kin in several parts, or configs that are held out.
    """
    seed = read_seed(seed, bits=SEED_BITS)
    if fewest < 0:
        raise InvalidArgument(f"fewest={fewest} must be at least 0")
    group, groups = fidelity_groups(recorded.configs)
    _check_groups(group, groups, fewest=fewest)
    ids, family = recorded.config_ids, kin(recorded.configs)
    ranks = seeded_ranks(ids, seed=seed, purpose="split")
    parts = np.full(len(ids), _NOWHERE, dtype=np.int8)
    if old is not None:
        _keep_old(parts, recorded, family, old)
    _place_kin(parts, group, family, ranks)
    _fill(parts, recorded, groups, ranks=ranks, seed=seed)
    return Split(
        config_ids=ids,
        parts=parts,
        seed=seed,
        task=recorded.task,
        protocol=recorded.protocol,
        extends=None if old is None else old.digest,
    )


def _check_groups(group: NDArray[np.int64], groups: NDArray[np.float64], *, fewest: int) -> None:
    sizes = np.bincount(group, minlength=len(groups))
    if few := np.flatnonzero(sizes < fewest).tolist():
        lines = [f"{group_name(groups[i])} has {sizes[i]}, {fewest - sizes[i]} too few" for i in few[:3]]
        raise InvalidTable(
            f"{len(few)} of {len(groups)} fidelity groups have too few configs; every part of a group needs one, so a "
            f"group needs {fewest}: {'; '.join(lines)}{' ...' if len(few) > 3 else ''}; collect more, or lower --fewest"
        )


def _keep_old(parts: NDArray[np.int8], recorded: RecordedConfigs, family: NDArray[np.int64], old: Split) -> None:
    """Keep old configs in their parts, and put new kin of an old config into its part."""
    if old.protocol != recorded.protocol:
        raise ProtocolMismatch(
            f"the old split has protocol {old.protocol} ({old.task}), "
            f"but the runs have {recorded.protocol} ({recorded.task})"
        )
    if faults := recorded.held_out_faults(old.config_ids):
        raise Leakage(faults[0])
    missing = old.config_ids[~np.isin(old.config_ids, recorded.config_ids)]
    if len(missing):
        raise InvalidTable(
            f"{len(missing)} of {len(old.config_ids)} configs of the old split have no run: {examples(missing)}"
        )
    parts[:] = old.parts_of(recorded.config_ids)
    if leaks := find_leaks(recorded.configs, parts):
        raise Leakage(
            f"the old split has {len(leaks)} families of equal configs in several parts: {leaks[0]}; "
            "see python -m splits.check, and make a new split"
        )
    family_parts = np.full(family.max() + 1, _NOWHERE, dtype=np.int8)
    family_parts[family[parts >= 0]] = parts[parts >= 0]
    parts[:] = family_parts[family]


def _place_kin(
    parts: NDArray[np.int8], group: NDArray[np.int64], family: NDArray[np.int64], ranks: NDArray[np.uint64]
) -> None:
    """Place the families of several configs that are in no part yet, the largest first.

    A family goes to a part that has room for all of it, drawn in proportion to the remaining quotas; if no part has, to
    the one with the largest remaining quota. Families are rare, and the configs placed later restore the balance.

    The draw uses the rank of the family's smallest config_id, which is uniform; the smallest of its ranks is not.
    """
    _, first, label, size = np.unique(family, return_index=True, return_inverse=True, return_counts=True)
    rank = ranks[first]  # rows are in order of config_id
    is_waiting = (size > 1) & (parts[first] < 0)
    for unit in sorted(np.flatnonzero(is_waiting).tolist(), key=lambda u: (-int(size[u]), int(rank[u]))):
        members = np.flatnonzero(label == unit)
        in_group = group == group[members[0]]
        placed = np.bincount(parts[in_group & (parts >= 0)], minlength=len(SHARES)).tolist()
        n_group = int(in_group.sum())
        deficits = [share * n_group - WHOLE * count for share, count in zip(SHARES, placed, strict=True)]
        weights = [deficit if deficit >= WHOLE * len(members) else 0 for deficit in deficits]
        if any(weights):
            drawn = sum(weights) * int(rank[unit]) >> 64  # a rank is below 2**64
            parts[members] = np.searchsorted(np.cumsum(weights), drawn, side="right")
        else:
            parts[members] = deficits.index(max(deficits))


def _fill(
    parts: NDArray[np.int8],
    recorded: RecordedConfigs,
    groups: NDArray[np.float64],
    *,
    ranks: NDArray[np.uint64],
    seed: int,
) -> None:
    """Fill the quotas of each stratum with the configs that have no part yet, in order of their ranks."""
    n_parts = len(SPLIT_PARTS)
    pair, pair_groups, _ = source_groups(recorded.configs)
    stratum = 2 * pair + recorded.is_repeated  # a pair's configs with one seed, then those with several
    kept = np.zeros((2 * len(pair_groups), n_parts), dtype=np.int64)
    is_kept = parts >= 0
    np.add.at(kept, (stratum[is_kept], parts[is_kept]), 1)
    n_free = np.bincount(stratum[~is_kept], minlength=len(kept))
    order = np.argsort(seeded_ranks(np.arange(len(kept)), seed=seed, purpose="strata"), kind="stable").tolist()
    counts = fill_quotas(kept, n_free, margins=quota_margins(groups, pair_groups), order=order)
    for number in np.flatnonzero(n_free).tolist():
        free = np.flatnonzero((stratum == number) & ~is_kept)
        free = free[np.lexsort((recorded.config_ids[free], ranks[free]))]
        parts[free] = np.repeat(np.arange(n_parts), counts[number] - kept[number])


def quota_margins(groups: NDArray[np.float64], of_group: NDArray[np.int64]) -> Margins:
    """Return the margins to balance.

    Args:
        groups: N, W and Resolution of the fidelity groups, (n_groups, 3).
        of_group: the group of each pair of group and source, in order. A pair has two strata: configs with one seed,
            then repeated ones.
    """
    group_strata = np.repeat(np.arange(len(groups))[:, None] == of_group, 2, axis=1)  # (n_groups, n_strata)
    has_several = np.bincount(of_group, minlength=len(groups))[of_group] > 1
    pairs = np.repeat(np.eye(len(of_group), dtype=bool)[has_several], 2, axis=1)
    is_repeated = np.tile([False, True], len(of_group))
    values = [groups[:, j] == value for j in range(len(SIZE_KEYS)) for value in np.unique(groups[:, j])]
    thirds = np.repeat(np.array(values)[:, of_group], 2, axis=1)
    return Margins(
        groups=np.vstack([group_strata, pairs]),
        thirds=thirds & is_repeated,
        totals=np.vstack([np.ones_like(is_repeated), is_repeated, thirds]),
        details=group_strata & is_repeated,
    )
