"""Search for a release: inside the package, in `$JAHS_DATA_DIR`, or in a given folder."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jahs.errors import InvalidArgument, JahsError, MissingData, UnknownName, reading
from jahs.release.manifest import MANIFEST, mode_of, read_manifest
from jahs.spaces.parameters import show
from jahs.tasks.definitions import DEFAULT_TASK, TASKS, task
from jahs.tasks.own import TASK_NAME, task_of_protocol

_log = logging.getLogger(__name__)

DATA_DIR: Final = "JAHS_DATA_DIR"
"""The environment variable that names a folder with one release per task: `$JAHS_DATA_DIR/<task>/`."""

# `make release` prints the line that a renewed release needs here.
EMBEDDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cifar10_mini": "28b02f20bac23688dfc8820590d540e8f1738823779b0639a28aade13d545987",
        "fashion_mnist_mini": "d4e08148d6ca9fa49adbf2dd92861b9bc31f112530accc9a1cf3fdc0b9ad937f",
    }
)
"""The sha256 of the manifest of each embedded release, which covers every byte of it.

`jahs.Benchmark(task, sha256=EMBEDDED[task])` accepts no other release.
"""

_OWN_FOLDER: Final = Path(__file__).resolve().parents[1] / "releases"


def full_path(given: object) -> Path:
    """Return an absolute path, independent of later changes of the working folder; `~` is the user's home.

    Raises:
        InvalidArgument: it is neither a str nor a path-like object, or holds a character that no path has.
        MissingData: `~` names a user who does not exist.
    """
    if not isinstance(given, str | os.PathLike):
        raise InvalidArgument(f"{show(given)} is not a path; give a str or a pathlib.Path")
    try:
        is_path = b"\0" not in os.fsencode(given)
    except UnicodeEncodeError:
        is_path = False
    if not is_path:
        raise InvalidArgument(f"{show(str(given))} holds a character that no path has; give another path")
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as err:
        raise MissingData(f"{given}: there is no such user; write the path in full") from err


def default_task(release: Path | str | None) -> str:
    """Return the task of the release or of the runs in this folder; without either, `DEFAULT_TASK`."""
    if release is None:
        return DEFAULT_TASK
    folder = full_path(release)
    with suppress(JahsError):  # of a damaged one, or none: opening it raises
        return read_manifest(folder).task
    with suppress(JahsError, OSError):
        from jahs.files.runs import read_protocol  # only here, since it is slow to import

        return task_of_protocol(read_protocol(folder).facts).name
    return DEFAULT_TASK


def data_folders() -> tuple[Path, ...]:
    """Return the folders that are searched for releases, in order: the user's, then the package's own."""
    value = os.environ.get(DATA_DIR)
    if not value:
        return (_OWN_FOLDER,)
    folder = _resolved(value)
    if not stat.S_ISDIR(_mode(folder)):
        raise MissingData(
            f"{DATA_DIR}={value}: {folder} is not a folder; set it to one that holds a release per task, or unset it"
        )
    return (folder, _OWN_FOLDER)


def releases() -> dict[str, Path]:
    """Return the folder of each task's release, for the tasks that have one, also for your own in `$JAHS_DATA_DIR`.

    A release in `$JAHS_DATA_DIR/<task>/` comes before the one inside the package. Nothing is downloaded.

    Raises:
        MissingData: `$JAHS_DATA_DIR` is not a folder, or cannot be read.

    Example:
        >>> all((folder / "manifest.json").is_file() for folder in releases().values())
        True
    """
    names = dict.fromkeys([*TASKS, *(name for folder in data_folders() for name in _own_releases(folder))])
    return {name: folder for name in names if (folder := _in_usual_folders(name)) is not None}


def _own_releases(folder: Path) -> list[str]:
    """Return the tasks whose releases are in a data folder, sorted, except those that are known without it."""
    with reading(folder), suppress(FileNotFoundError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if TASK_NAME.fullmatch(entry.name))
        return [name for name in names if name not in TASKS and _is_release(folder / name) and _is_of(folder, name)]
    return []


def _is_of(folder: Path, name: str) -> bool:
    """Return whether a release is of the task that its folder is named after; opening a damaged one says what to do."""
    with suppress(JahsError):
        return read_manifest(folder / name).task == name
    return True


def find_release(task_name: str, folder: Path | str | None = None, *, save_dir: Path | str | None = None) -> Path:
    """Return the folder of the release for a task; MissingData says where it searched and what to do.

    Args:
        task_name: name of the task; a user's own task need not be registered, since its release defines it.
        folder: a release, or a folder with one per task, in place of the usual ones.
        save_dir: the folder given by code for jahs_bench, searched before the usual ones. It may hold no release, and
            need not exist yet.
    """
    name = task_name if isinstance(task_name, str) and TASK_NAME.fullmatch(task_name) else task(task_name).name
    if folder is not None:
        return _in_given_folder(full_path(folder), name)
    if save_dir is not None and (place := _in_save_dir(full_path(save_dir), name)) is not None:
        return place
    if (place := _in_usual_folders(name)) is not None:
        return place
    available = releases()
    if name not in TASKS:
        raise UnknownName.of("task", name, {**TASKS, **available})
    searched = ", ".join(str(place / name) for place in data_folders())
    hint = f"; there are releases for {', '.join(available)}" if available else ""
    raise MissingData(
        f"there is no release for task {name!r} in {searched}{hint}. Give its folder as release=, or set {DATA_DIR} to "
        "the folder that holds it; in a terminal: --release"
    )


def _in_usual_folders(name: str) -> Path | None:
    """Return the release of a task in the first of the usual folders that has one."""
    return next((folder / name for folder in data_folders() if _is_release(folder / name)), None)


@cache
def _resolved(value: str) -> Path:
    """Return the absolute path of the variable's value; cached, so a relative one ignores later working folders."""
    return full_path(value)


def _in_given_folder(folder: Path, name: str) -> Path:
    places = (folder, folder / name)
    if place := next((place for place in places if _is_release(place)), None):
        return place
    if runs := next((place for place in places if _mode(place / "protocol.json")), None):
        raise MissingData(f"{runs} is a folder of runs, not a release; open it with kind='table', or name a release")
    if not stat.S_ISDIR(_mode(folder)):
        why = ", because it is not a folder"
    elif name in TASKS:
        why = f", nor is {folder / name}: it has no {MANIFEST}"
    else:
        unknown = UnknownName.of("task", name, TASKS)
        raise UnknownName(f"{unknown}; {folder} is not a release that defines it, since it has no {MANIFEST}")
    raise MissingData(f"{folder} is not a release{why}; name a release's folder, or one that holds it as {name}/")


def _in_save_dir(folder: Path, name: str) -> Path | None:
    """Return the task's release in a `save_dir`; None if the folder is absent or holds files of jahs_bench."""
    if (mode := _mode(folder)) and not stat.S_ISDIR(mode):
        raise MissingData(f"save_dir={folder} is not a folder; name one that holds a release, or leave it out")
    if _is_release(folder) and read_manifest(folder).task == name:
        return folder
    if _is_release(folder / name):
        return folder / name
    _log.warning("save_dir=%s holds no release of %s; searching the usual folders", folder, name)
    return None


def _is_release(place: Path) -> bool:
    return stat.S_ISREG(_mode(place / MANIFEST))


def _mode(path: Path) -> int:
    """Return the mode of a path, 0 if nothing is there; MissingData if it cannot be inspected."""
    with reading(path):
        return mode_of(path)
