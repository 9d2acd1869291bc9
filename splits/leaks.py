"""Leaks: the same network in several parts, whatever its id, seed or cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jahs.schema import SPLIT_PARTS
from splits.kinship import ConfigColumns, kin, same_config
from splits.recorded import hex_id

LEAKS: Final = (
    "one config in several parts (its rows, epochs or seeds are torn apart)",
    "the same config in several parts under several ids",
    "configs with equal canonical cells and bit-equal hyperparameters in several parts",
)
_MOST_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Rows of the same network in several parts.

    Attributes:
        kind: one of `LEAKS`, the plainest that fits.
        sides: every (config_id, part) of them, in order; a part is a position in `SPLIT_PARTS`.
    """

    kind: str
    sides: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        names = {part: SPLIT_PARTS[part] if part < len(SPLIT_PARTS) else f"part {part}" for _, part in self.sides}
        shown = [f"{hex_id(number)} {names[part]}" for number, part in self.sides]
        return ", ".join(shown[:4]) + (" ..." if len(shown) > 4 else "")


def find_leaks(table: ConfigColumns, parts: NDArray[np.integer]) -> list[Leak]:
    """Return every leak of a table whose rows are on `parts`, (n_rows,).

    Rows with a negative part are in no part. Parts are numbers, so that any splitter can be checked.
    """
    is_placed = parts >= 0
    table = {name: values[is_placed] for name, values in table.items()}
    parts = parts[is_placed].astype(np.int64)
    ids, families, configs = table["config_id"].astype(np.uint64), kin(table), same_config(table)
    torn_ids, torn_configs = set(_torn(ids, parts).tolist()), set(_torn(configs, parts).tolist())
    leaks = []
    for family in _torn(families, parts).tolist():
        members = families == family
        if torn_ids.intersection(ids[members].tolist()):
            kind = LEAKS[0]
        elif torn_configs.intersection(configs[members].tolist()):
            kind = LEAKS[1]
        else:
            kind = LEAKS[2]
        sides = sorted(set(zip(ids[members].tolist(), parts[members].tolist(), strict=True)))
        leaks.append(Leak(kind=kind, sides=tuple(sides)))
    return sorted(leaks, key=lambda leak: (LEAKS.index(leak.kind), leak.sides))


def leak_lines(leaks: list[Leak]) -> list[str]:
    """Return the number of leaks of each kind, with examples, as lines."""
    counts = Counter(leak.kind for leak in leaks)
    return [
        f"{counts[kind]} times {kind}: {'; '.join([str(leak) for leak in leaks if leak.kind == kind][:_MOST_EXAMPLES])}"
        for kind in LEAKS
        if counts[kind]
    ]


def _torn(labels: NDArray[np.integer], parts: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the labels that are in more than one part."""
    values, codes = np.unique(labels, return_inverse=True)
    pairs = np.unique(np.column_stack([codes.reshape(-1), parts]), axis=0)
    found, n_parts = np.unique(pairs[:, 0], return_counts=True)
    torn: NDArray[np.integer] = values[found[n_parts > 1]]
    return torn
