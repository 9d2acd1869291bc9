"""Measurements of a folder of runs that no query reads: visits of the profile, scores of networks, ends of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from jahs.files.runs import SCORES, VISITS, first_rows, read_optional, read_profile
from jahs.files.strict_json import check_format
from jahs.files.tables import Table, sort_by, take
from jahs.schema import FINAL_SOURCE, PROXIES_FORMAT, PROXY_COLUMNS, VISIT_COLUMNS, VISIT_KEY

TIMES: Final = ("latency", "step_time_s")
"""The columns of the profile."""


def read_profile_visits(path: Path) -> tuple[Table, Table]:
    """Return the quiet profile of a folder and the visits that it is made of; see `read_profile` and `read_visits`."""
    profile = read_profile(path)
    return profile, visits_of_profile(read_visits(path), profile)


def read_visits(path: Path) -> Table:
    """Return every repeat of every visit to a config, on any processor; possibly no rows."""
    return read_optional(path, VISITS, VISIT_COLUMNS)


def read_proxies(path: Path) -> Table:
    """Return the scores of untrained networks, possibly without rows; UnknownFormat if another version wrote them."""
    scores = read_optional(path, SCORES, PROXY_COLUMNS)
    for version in np.unique(scores["format"]).tolist():
        check_format(version, PROXIES_FORMAT, of=f"{path / SCORES}: scores")
    return scores


def visits_of_profile(visits: Table, profile: Table) -> Table:
    """Return the visits on the profile's processor and with its torch version; empty without a profile."""
    platforms = {*_platforms(profile)}
    return take(visits, np.array([platform in platforms for platform in _platforms(visits)], dtype=np.bool_))


def _platforms(table: Table) -> Iterator[tuple[str, str]]:
    return zip(table["machine"].tolist(), table["torch_version"].tolist(), strict=True)


def profile_of_visits(visits: Table) -> Table:
    """Return the profile of one processor's visits: each config's least repeat, since interference only adds time."""
    visits = sort_by(visits, VISIT_KEY)
    _, first, counts = np.unique(visits["config_id"], return_index=True, return_counts=True)
    least = {name: np.minimum.reduceat(visits[name], first) if len(first) else visits[name] for name in TIMES}
    return {**take(visits, first), **least, "n_repeats": counts.astype(np.int16)}


def halves_of_visits(visits: Table) -> tuple[Table, Table]:
    """Return the profiles of the even and of the odd visits to the configs that have both; one checks the other."""
    even, odd = (take(visits, visits["visit"] % 2 == half) for half in (0, 1))
    shared = np.intersect1d(even["config_id"], odd["config_id"])
    even, odd = (take(part, np.isin(part["config_id"], shared)) for part in (even, odd))
    return profile_of_visits(even), profile_of_visits(odd)


def last_rows(runs: Table) -> Table:
    """Return the last row of every run of a table that is sorted by config, seed and epoch."""
    return take(runs, np.append(first_rows(runs), len(runs["epoch"]))[1:] - 1)


def trained_with_both(last: Table, seeds: tuple[int, int]) -> tuple[Table, Table]:
    """Return the finished rows of two seeds for the configs that have both, in their order; `last` is `last_rows`."""
    finished = last["status"] == "finished"
    one, other = (take(last, finished & (last["seed"] == seed)) for seed in seeds)
    _, at_one, at_other = np.intersect1d(one["config_id"], other["config_id"], return_indices=True)
    return take(one, at_one), take(other, at_other)


def without_final(runs: Table, configs: Table) -> tuple[Table, int]:
    """Return the rows of runs outside the final test set, and how many runs are in it."""
    is_final = np.isin(runs["config_id"], configs["config_id"][configs["source"] == FINAL_SOURCE])
    return take(runs, ~is_final), len(first_rows(take(runs, is_final)))


def rows_of(table: Mapping[str, npt.NDArray[Any]], config_ids: npt.NDArray[np.uint64]) -> Table:
    """Return the row of each of these configs, in their order; the table has one row for each config."""
    order = np.argsort(table["config_id"])
    return take(table, order[np.searchsorted(table["config_id"], config_ids, sorter=order)])
