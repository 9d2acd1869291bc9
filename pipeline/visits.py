"""Writes what `pipeline.profile` measured: every repeat of every visit to a config, and the profile made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.files.tables import Table, concatenate, sort_by, take, write_table
from jahs.runs import profile_of_visits, read_visits, visits_path
from jahs.schema import PROFILE_COLUMNS, VISIT_COLUMNS, VISIT_KEY
from pipeline.runs import RunsFolder

__all__ = ["LOCK", "add_new", "merge_visits", "write_profile", "write_visits"]

LOCK: Final = "profile"
"""Lock of the folder to hold from reading its visits to writing them, so that no other writer's are lost."""

_FACTS: Final = ("machine", "torch_version")


def write_visits(folder: Path, visits: Table) -> None:
    """Write the visits of a folder in their order."""
    write_table(visits_path(folder), sort_by(visits, VISIT_KEY), VISIT_COLUMNS)


def write_profile(folder: Path, visits: Table) -> None:
    """Write the profile that is made of these visits."""
    write_table(folder / "profile.parquet", profile_of_visits(visits), PROFILE_COLUMNS)


def add_new(visits: Table, more: Table) -> Table:
    """Return the visits and those of `more` that are not among them."""
    known = {*zip(visits["config_id"].tolist(), visits["visit"].tolist(), strict=True)}
    keys = zip(more["config_id"].tolist(), more["visit"].tolist(), strict=True)
    is_new = np.array([key not in known for key in keys], dtype=np.bool_)
    return concatenate([visits, take(more, is_new)], VISIT_COLUMNS)


def merge_visits(folder: Path, others: Sequence[Path]) -> list[str]:
    """Add the visits of other folders, and make the profile of all; of a visit that several made, the first counts.

    Returns:
        A line for every folder whose visits were left out, because another processor or torch measured them.
    """
    left_out = []
    with RunsFolder(folder).lock(LOCK):
        visits = read_visits(folder)
        n_before = len(visits["visit"])
        for other in others:
            more = read_visits(other)
            facts = [set(zip(*(t[key].tolist() for key in _FACTS), strict=True)) for t in (visits, more)]
            if len(set.union(*facts)) > 1:
                here, there = (" with torch ".join(min(fact)) for fact in facts)
                left_out.append(f"{other}: its profile was measured by {there}, and here by {here}; it was left out")
                continue
            visits = add_new(visits, more)
        if len(visits["visit"]) > n_before:
            write_visits(folder, visits)
            write_profile(folder, visits)
    return left_out
