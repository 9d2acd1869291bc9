"""What `pipeline.profile` measured: every repeat of every visit to a config, and what is made of them.

Interference only ever adds to a time, so a config's latency is the least of its repeats. How far that can be trusted
show two halves of its visits, taken each for itself.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from jahs.tables import Table, empty_table, read_table, take

__all__ = ["TIMES", "VISIT_COLUMNS", "halves", "read_visits", "summary", "visits_path"]

TIMES: Final = ("latency", "step_time_s")

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
