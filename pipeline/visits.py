"""Writes what `pipeline.profile` measured: every repeat of every visit to a config, and the profile made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.files.tables import Table, concatenate, sort_by, take, write_table
from jahs.runs import profile_of_visits, read_visits, visits_path
from jahs.schema import PROFILE_COLUMNS, VISIT_COLUMNS, VISIT_KEY

__all__ = ["merge_visits", "write_profile", "write_visits"]

_FACTS: Final = ("machine", "torch_version")


def write_visits(folder: Path, visits: Table) -> Table:
    """Write the visits of a folder in their order, and return them so."""
    in_order = sort_by(visits, VISIT_KEY)
    write_table(visits_path(folder), in_order, VISIT_COLUMNS)
    return in_order


def write_profile(folder: Path, visits: Table) -> None:
    """Write the profile that is made of these visits."""
    write_table(folder / "profile.parquet", profile_of_visits(visits), PROFILE_COLUMNS)


def merge_visits(folder: Path, others: Sequence[Path]) -> list[str]:
    """Add the visits of other folders, and make the profile of all; of a visit that several made, the first counts.

    Returns:
        A line for every folder whose visits were left out, because another processor or torch measured them.
    """
    visits, left_out = read_visits(folder), list[str]()
    n_before = len(visits["visit"])
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
        write_profile(folder, write_visits(folder, visits))
    return left_out
