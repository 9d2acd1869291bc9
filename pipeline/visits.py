"""What `pipeline.profile` measured: every repeat of every visit to a config, and what is made of them.

Interference only ever adds to a time, so a config's latency is the least of its repeats. How far that can be trusted
show two halves of its visits, taken each for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from jahs.files.tables import Table, concatenate, empty_table, read_table, sort_by, take, write_table
from jahs.schema import PROFILE_COLUMNS

__all__ = ["TIMES", "VISIT_COLUMNS", "halves", "merge_visits", "read_visits", "summary", "visits_path", "write_profile"]

TIMES: Final = ("latency", "step_time_s")
_FACTS: Final = ("machine", "torch_version")

VISIT_COLUMNS: Final = MappingProxyType(
    {
        "config_id": "uint64",
        "visit": "int8",
        "repeat": "int8",
        "latency": "float32",
        "step_time_s": "float32",
        "machine": "string",
        "torch_version": "string",
        "protocol": "string",
    }
)
"""Columns of the table; a row for every repeat, in order of config, visit and repeat."""


def visits_path(folder: Path) -> Path:
    """Where the table is in a folder of runs."""
    return folder / "profile_visits.parquet"


def read_visits(folder: Path) -> Table:
    """Every repeat that was measured in a folder of runs; no rows if there is none."""
    path = visits_path(folder)
    return read_table(path, VISIT_COLUMNS) if path.exists() else empty_table(VISIT_COLUMNS)


def write_profile(folder: Path, visits: Table) -> None:
    """Write what was measured, and the profile that is made of it."""
    write_table(visits_path(folder), visits, VISIT_COLUMNS)
    write_table(folder / "profile.parquet", summary(visits), PROFILE_COLUMNS)


def merge_visits(folder: Path, others: Sequence[Path]) -> list[str]:
    """Add the visits of other folders, and make the profile of all; of a visit that several made, the first counts.

    Returns:
        A line for every folder whose visits were left out, because another processor or torch measured them.
    """
    visits, left_out, n_before = read_visits(folder), [], len(read_visits(folder)["visit"])
    for other in others:
        more = read_visits(other)
        facts = [set(zip(*(t[key].tolist() for key in _FACTS), strict=True)) for t in (visits, more)]
        if len(set.union(*facts)) > 1:
            here, there = (" with torch ".join(min(fact)) for fact in facts)
            left_out.append(f"{other}: its profile was measured by {there}, and here by {here}; it was left out")
            continue
        known = {*zip(visits["config_id"].tolist(), visits["visit"].tolist(), strict=True)}
        keys = zip(more["config_id"].tolist(), more["visit"].tolist(), strict=True)
        is_new = np.array([key not in known for key in keys], dtype=np.bool_)
        visits = concatenate([visits, take(more, is_new)], VISIT_COLUMNS)
    if len(visits["visit"]) > n_before:
        write_profile(folder, sort_by(visits, ("config_id", "visit", "repeat")))
    return left_out


def summary(visits: Table) -> Table:
    """The profile (`jahs.schema.PROFILE_COLUMNS`): for each config the least of its repeats."""
    _, first, counts = np.unique(visits["config_id"], return_index=True, return_counts=True)
    least = {name: np.minimum.reduceat(visits[name], first) for name in TIMES}
    return {**take(visits, first), **least, "n_repeats": counts.astype(np.int16)}


def halves(visits: Table) -> tuple[Table, Table]:
    """The summaries of the even and of the odd visits, of the configs that have both; no rows if there is none."""
    even, odd = (take(visits, visits["visit"] % 2 == half) for half in (0, 1))
    shared = np.intersect1d(even["config_id"], odd["config_id"])
    even, odd = (take(part, np.isin(part["config_id"], shared)) for part in (even, odd))
    return (summary(even), summary(odd)) if len(shared) else (even, odd)
