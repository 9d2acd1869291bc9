"""Where releases are: inside the package, in `$JAHS_DATA_DIR`, or in a folder that is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from jahs.errors import MissingData
from jahs.release.manifest import MANIFEST
from jahs.tasks import TASKS, task

__all__ = ["DATA_DIR", "data_folders", "find_release", "releases"]

DATA_DIR: Final = "JAHS_DATA_DIR"
"""The environment variable that names a folder with one release per task: `$JAHS_DATA_DIR/<task>/`."""

_EMBEDDED: Final = Path(__file__).resolve().parents[1] / "releases"


def data_folders() -> tuple[Path, ...]:
    """Return the folders in which releases are looked for, the first one first: the user's, then the package's own."""
    asked = os.environ.get(DATA_DIR)
    return (*((Path(asked),) if asked else ()), _EMBEDDED)


def releases() -> dict[str, Path]:
    """Return the folder of the release that answers for each task, for those tasks that have one.

    A release in `$JAHS_DATA_DIR/<task>/` comes before the one inside the package. Nothing is read or downloaded.

    Example:
        >>> all((folder / "manifest.json").is_file() for folder in releases().values())
        True
    """
    found = {}
    for name in TASKS:
        for folder in data_folders():
            if (folder / name / MANIFEST).is_file():
                found[name] = folder / name
                break
    return found


def find_release(task_name: str, folder: Path | str | None = None) -> Path:
    """Return the folder of the release for a task.

    Args:
        task_name: which task.
        folder: a release, or a folder with one per task, in place of the usual ones.

    Raises:
        UnknownName: there is no such task.
        MissingData: there is no release; says where it was looked for and what to do.
    """
    name = task(task_name).name
    if folder is not None:
        for place in (Path(folder), Path(folder) / name):
            if (place / MANIFEST).is_file():
                return place
        raise MissingData(f"{folder} is no release, and {Path(folder) / name} is none either: no {MANIFEST} there")
    found = releases()
    if name in found:
        return found[name]
    looked = ", ".join(str(place / name) for place in data_folders())
    there = f"; there are releases for {', '.join(found)}" if found else ""
    raise MissingData(
        f"there is no release for task {name!r} in {looked}{there}. Give its folder as release=, or set {DATA_DIR} to "
        "the folder that holds it"
    )
