"""What a page is about: a task, its recorded runs and, where it has them, its models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jahs.errors import ProtocolMismatch
from jahs.queries.oracles.opening import Asked, open_oracle
from jahs.release import RecordedTable, Release, find_release, read_release
from jahs.release.find import full_path
from jahs.tasks.definitions import Task

__all__ = ["Subject", "read_subject"]

MOST_NODES: Final = 600_000
"""Nodes of all forests that fit a page of 4 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A release, or a folder of runs."""

    task: Task
    table: RecordedTable | None
    release: Release | None
    without_models: str | None  # why no prediction can be shown; None: there are models


def read_subject(task: str, release: Path | str | None = None) -> Subject:
    """Open the release of a task, or a folder of runs; ProtocolMismatch if it is of another task."""
    folder = None if release is None else full_path(release)
    if folder is not None and (folder / "protocol.json").is_file():
        opened = open_oracle(Asked(task=task, kind="table", engine="numpy", release=folder, save_dir=None))
        reason = "It is a folder of recorded runs, which has no models."
        return Subject(task=opened.oracle.task, table=opened.table, release=None, without_models=reason)
    found = read_release(find_release(task, folder))
    if found.task.name != task:
        raise ProtocolMismatch(f"{found.path} is a release of {found.task.name}, not of {task}")
    found.check_contents()
    table = found.table if found.has("table.npz") else None
    return Subject(task=found.task, table=table, release=found, without_models=_without_models(found))


def _without_models(release: Release) -> str | None:
    if not release.has("models.json") or not release.models.metrics:
        return "The release has no models."
    if release.models.costs != "exact":
        return "The release was imported: its models answer by rules of their own, which the page does not know."
    n_nodes = sum(forest.n_nodes for forest in release.forests)
    if n_nodes > MOST_NODES:
        return f"The models have {n_nodes:,} nodes; at most {MOST_NODES:,} fit a page."
    return None
