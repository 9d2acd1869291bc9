"""Writes what `pipeline.profile` measured: every repeat of every visit to a config, and the profile made of them.

A folder keeps the visits of every processor and torch. Its profile is made of one's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.files.runs import profile_of_visits, read_visits, visits_path
from jahs.files.tables import Table, concatenate, sort_by, take
from jahs.schema import PROFILE_COLUMNS, VISIT_COLUMNS
from pipeline.runs import RunsFolder

LOCK: Final = "profile"
"""Lock of the folder to hold from reading its visits to writing them, so that no other writer's are lost."""

_KEY: Final = ("config_id", "visit", "machine", "torch_version")


def write_visits(folder: Path, visits: Table) -> None:
    """Write the visits of a folder in their order."""
    RunsFolder(folder).commit(visits_path(folder).name, sort_by(visits, (*_KEY, "repeat")), VISIT_COLUMNS)


def write_profile(folder: Path, visits: Table) -> None:
    """Write the profile that is made of these visits, or of those of one processor and torch among them.

    It is the one that visited the most configs; of equals the one with more repeats, then the first by name.
    """
    RunsFolder(folder).commit("profile.parquet", profile_of_visits(_of_most_configs(visits)), PROFILE_COLUMNS)


def add_new(visits: Table, more: Table) -> Table:
    """Return the visits and those of `more` that are not among them."""
    known = {*_keys(visits)}
    is_new = np.array([key not in known for key in _keys(more)], dtype=np.bool_)
    return concatenate([visits, take(more, is_new)], VISIT_COLUMNS)


def merge_visits(folder: Path, others: Sequence[Table]) -> None:
    """Add other folders' visits, and make the profile of all; of a visit that several hold, the first counts."""
    with RunsFolder(folder).lock(LOCK):
        visits = read_visits(folder)
        n_before = len(visits["visit"])
        for other in others:
            visits = add_new(visits, other)
        if len(visits["visit"]) > n_before:
            write_profile(folder, visits)  # first: after a crash between the two there still is something to add
            write_visits(folder, visits)


def _of_most_configs(visits: Table) -> Table:
    rows: dict[tuple[object, ...], list[int]] = {}
    for row, (_, _, *place) in enumerate(_keys(visits)):
        rows.setdefault(tuple(place), []).append(row)
    if not rows:
        return visits
    n_configs = {place: len(np.unique(visits["config_id"][own])) for place, own in rows.items()}
    best = min(rows, key=lambda place: (-n_configs[place], -len(rows[place]), place))
    return take(visits, np.array(rows[best]))


def _keys(visits: Table) -> Iterator[tuple[object, ...]]:
    return zip(*(visits[name].tolist() for name in _KEY), strict=True)
