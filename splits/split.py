"""A split, which assigns each config to a part; and its JSON file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile
from jahs.files.hashing import digest_facts
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.schema import SPLIT_PARTS
from jahs.spaces.seeds import is_seed
from splits.recorded import hex_id
from workshop.folders import write_text

SEED_BITS: Final = 64  # bits of a split's seed
_KEYS: Final = ("assignments", "counts", "digest", "extends", "protocol", "seed", "task")
_HEX_ID: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """The part of every config, with all its epochs and seeds."""

    config_ids: NDArray[np.uint64]  # ids in increasing order, each once, uint64
    parts: NDArray[np.int8]  # the part of each, as a position in `jahs.schema.SPLIT_PARTS`, int8
    seed: int
    task: str
    protocol: str  # digest of the runs' protocol
    extends: str | None = None  # digest of the split that it extends; None if it extends none

    def __post_init__(self) -> None:
        assert self.config_ids.shape == self.parts.shape
        assert (self.config_ids[1:] > self.config_ids[:-1]).all()

    @property
    def assignments(self) -> dict[str, str]:
        """The part of every config, by its id as 16 hex digits, in order."""
        return {
            hex_id(number): SPLIT_PARTS[part]
            for number, part in zip(self.config_ids.tolist(), self.parts.tolist(), strict=True)
        }

    @property
    def counts(self) -> dict[str, int]:
        """The number of configs in each part."""
        numbers = np.bincount(self.parts, minlength=len(SPLIT_PARTS)).tolist()
        return dict(zip(SPLIT_PARTS, numbers, strict=True))

    @property
    def digest(self) -> str:
        """16 hex digits that depend on the assignments only."""
        return digest_facts(self.assignments)

    def of(self, config_ids: NDArray[np.uint64]) -> Split:
        """Return the split of these configs alone; ids that it does not have are left out."""
        is_in = np.isin(self.config_ids, config_ids)
        return replace(self, config_ids=self.config_ids[is_in], parts=self.parts[is_in])

    def parts_of(self, config_ids: NDArray[np.generic]) -> NDArray[np.int8]:
        """Return the part of each id as a position in `SPLIT_PARTS`; -1 for a config that is not in the split."""
        if not len(self.config_ids):
            return np.full(len(config_ids), -1, dtype=np.int8)
        at = np.searchsorted(self.config_ids, config_ids.astype(np.uint64))
        at = np.minimum(at, len(self.config_ids) - 1)
        return np.where(self.config_ids[at] == config_ids, self.parts[at], np.int8(-1)).astype(np.int8)


def write_split(path: Path, split: Split) -> None:
    """Write a split, whole or not at all."""
    write_text(path, split_text(split))


def split_text(split: Split) -> str:
    """Return the sealed JSON text of a split."""
    content = {
        "assignments": split.assignments,
        "counts": split.counts,
        "digest": split.digest,
        "extends": split.extends,
        "protocol": split.protocol,
        "seed": split.seed,
        "task": split.task,
    }
    return sealed_text(content)


def read_split(path: Path) -> Split:
    """Read a split and check everything in it.

    Raises:
        MissingData: there is no such file.
        UnknownFormat: it was written by another version.
        CorruptFile: it was damaged or edited, is not a split, or has invalid or duplicate ids, unknown parts, or
            counts or a digest that do not match its assignments.
    """
    content = read_sealed(path)
    if faults := _faults(content):
        raise CorruptFile("\n".join(f"{path}: {fault}" for fault in faults))
    assignments: dict[str, str] = content["assignments"]
    split = Split(
        config_ids=np.array([int(text, 16) for text in sorted(assignments)], dtype=np.uint64),
        parts=np.array([SPLIT_PARTS.index(assignments[text]) for text in sorted(assignments)], dtype=np.int8),
        **{key: content[key] for key in ("seed", "task", "protocol", "extends")},
    )
    for key, value in (("counts", split.counts), ("digest", split.digest)):
        if content[key] != value:
            raise CorruptFile(
                f"{path}: {key} is {content[key]!r}, but the assignments give {value!r}; restore the file"
            )
    return split


def _faults(content: dict[str, Any]) -> list[str]:  # Any: JSON
    faults = [f"{key} is missing" for key in _KEYS if key not in content]
    if unknown := [key for key in content if key not in _KEYS]:
        faults.append(f"{_quoted(unknown)} should not be there")
    faults += [
        f"{key}={content[key]!r} is not text"
        for key in ("digest", "protocol", "task")
        if key in content and not isinstance(content[key], str)
    ]
    if not isinstance(content.get("extends"), str | None):
        faults.append(f"extends={content['extends']!r} is neither text nor null")
    seed = content.get("seed", 0)
    if not is_seed(seed, bits=SEED_BITS):
        faults.append(f"seed={seed!r} is not an integer in 0..2**{SEED_BITS}-1")
    assignments = content.get("assignments", {})
    if not isinstance(assignments, dict):
        return [*faults, "assignments is not an object"]
    if bad := [key for key in assignments if not _HEX_ID.fullmatch(key)]:
        faults.append(f"{len(bad)} ids are not 16 hex digits: {_quoted(bad)}")
    if odd := [f"{key}: {part!r}" for key, part in assignments.items() if part not in SPLIT_PARTS]:
        faults.append(f"{len(odd)} parts must be one of {', '.join(SPLIT_PARTS)}, got: {_quoted(odd)}")
    return faults


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(name[:60] for name in names[:3]) + (" ..." if len(names) > 3 else "")
