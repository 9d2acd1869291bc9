"""Kin, which must be in the same part; leaks; and fidelity groups. All are computed from columns of configs.

Kin are configs whose networks compute and train the same: equal canonical cells, and the other eight keys equal bit by
bit. They are in one fidelity group, since N, W and Resolution are among those keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.schema import CONFIG_KEYS, OPS, SIZE_KEYS, SOURCE_DEFAULTS, SOURCES, SPLIT_PARTS
from jahs.spaces.cell import canonical_keys

ConfigColumns: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Rows with the 14 keys and `config_id`, as `jahs.files.runs.read_configs` gives them; a config may have many rows."""

_OTHER_KEYS: Final = tuple(key for key in CONFIG_KEYS if key not in OPS)


def kin(table: ConfigColumns) -> NDArray[np.int64]:
    """Return a number for each row, (n_rows,), equal for kin: equal canonical cells and bit-equal other keys.

    Raises:
        InvalidArgument: an operation is not 0 to 4.
    """
    ops = np.column_stack([table[op].astype(np.int64) for op in OPS])
    return _labels(canonical_keys(ops), *(_bits(table[key]) for key in _OTHER_KEYS))


def find_leaks(table: ConfigColumns, parts: NDArray[np.integer]) -> list[str]:
    """Return, as text, each family of kin that is in several parts: its config ids, and their parts.

    Args:
        parts: parts of the rows, as positions in `SPLIT_PARTS`, (n_rows,); negative for rows in no part.
    """
    is_placed = parts >= 0
    ids, family, parts = table["config_id"][is_placed], kin(table)[is_placed], parts[is_placed]
    pairs = np.unique(np.column_stack([family, parts]), axis=0)
    labels, n_parts = np.unique(pairs[:, 0], return_counts=True)
    leaks = []
    for label in labels[n_parts > 1].tolist():
        is_member = family == label
        placed = sorted(set(zip(ids[is_member].tolist(), parts[is_member].tolist(), strict=True)))
        shown = ", ".join(f"{number:016x} {SPLIT_PARTS[part]}" for number, part in placed[:4])
        leaks.append(shown + (" ..." if len(placed) > 4 else ""))
    return sorted(leaks)


def fidelity_groups(table: ConfigColumns) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the group of each row, (n_rows,), and (N, W, Resolution) of the groups in order, (n_groups, 3)."""
    values = np.column_stack([table[key].astype(np.float64) for key in SIZE_KEYS])
    groups, codes = np.unique(values, axis=0, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), groups


def source_groups(table: ConfigColumns) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]:
    """Return the number of each row's pair of fidelity group and source, the group of each pair, and its source.

    Pairs that occur are numbered by group, then in the order of `jahs.schema.SOURCES`. A table without sources has one.
    """
    group, _ = fidelity_groups(table)
    names = table["source"].tolist() if "source" in table else [SOURCE_DEFAULTS["source"]] * len(group)
    source = np.array([SOURCES.index(name) for name in names], dtype=np.int64)
    pairs, pair = np.unique(np.column_stack([group, source]), axis=0, return_inverse=True)
    return pair.reshape(-1).astype(np.int64), pairs[:, 0], tuple(SOURCES[i] for i in pairs[:, 1].tolist())


def group_name(group: Iterable[float]) -> str:
    """Return N, W and Resolution of a fidelity group as text, such as "N=1 W=4 Resolution=0.25"."""
    return " ".join(f"{key}={value:g}" for key, value in zip(SIZE_KEYS, group, strict=True))


def seeded_ranks(ids: NDArray[np.generic], *, seed: int, purpose: str) -> NDArray[np.uint64]:
    """Return a pseudo-random number in 0..2**64-1 for each id: a pure function of (seed, purpose, id).

    It is a digest, so that a config's number depends neither on other configs nor on the version of numpy.
    """
    keyed = hashlib.blake2b(key=seed.to_bytes(8, "little"), digest_size=8, person=purpose.encode())
    ranks = np.empty(len(ids), dtype=np.uint64)
    for i, number in enumerate(ids.tolist()):
        hasher = keyed.copy()
        hasher.update(int(number).to_bytes(8, "little"))
        ranks[i] = int.from_bytes(hasher.digest(), "little")
    return ranks


def _bits(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return integers that are equal where the values are equal bit by bit."""
    if values.dtype.kind == "f":
        bits: NDArray[np.int64] = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
        return bits
    if values.dtype.kind == "U":
        return _labels(values)
    return values.astype(np.int64)


def _labels(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    labels = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1]
    return labels.reshape(-1).astype(np.int64)
