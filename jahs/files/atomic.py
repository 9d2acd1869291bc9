"""Files and folders that are either whole or absent: written beside, flushed to disk, then renamed.

And locks between processes, which end with their process, however that happens.
"""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from jahs.errors import InvalidArgument, OutOfSpace

DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a full disk."""

_FORBIDDEN: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})

_log = logging.getLogger(__name__)

HAS_LOCKS: Final = importlib.util.find_spec("fcntl") is not None
"""Whether the system has locks; Windows has none."""


@contextmanager
def write_beside(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; on success it takes the place of `path`, on any error it is removed.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "fact.txt"
        >>> with write_beside(target) as beside:
        ...     _ = beside.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


@contextmanager
def change_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` to fill; on success it takes the place of `path`, on any error it is removed.

    An older folder is removed on success and restored on failure. The parent must exist.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "page"
        >>> with change_folder(target) as beside:
        ...     _ = (beside / "fact.txt").write_text("whole")
        >>> [file.name for file in target.iterdir()]
        ['fact.txt']
    """
    path = path.resolve()  # a link keeps pointing at the folder that changes
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
    old = beside.with_suffix(".old")
    try:
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        beside.chmod(0o755)  # mkdtemp makes folders for one user
        if path.exists():
            path.replace(old)
        beside.replace(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.replace(path)
        shutil.rmtree(beside, ignore_errors=True)
        raise
    fsync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def check_folder(path: Path) -> None:
    """Raise InvalidArgument if this folder for results cannot be made or written; nothing is made."""
    there = next(each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each))
    if not there.is_dir():
        raise InvalidArgument(f"{path} cannot be written: {there} is not a folder; choose another folder")
    if not os.access(there, os.W_OK):
        raise InvalidArgument(f"{path} cannot be written: no permission to write to {there}; choose another folder")


def make_folder(path: Path) -> None:
    """Make a folder for results, with its parents, unless it exists; InvalidArgument if it cannot be written."""
    check_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise InvalidArgument(f"{path} cannot be written: {err.strerror}; choose another folder") from err


@contextmanager
def out_of_space(where: object) -> Iterator[None]:
    """Raise OutOfSpace if the disk is full while `where`, such as a path, is written; other errors stay as they are."""
    try:
        yield
    except OSError as err:
        if err.errno in DISK_FULL:
            raise OutOfSpace(full_disk(where)) from err
        raise


def full_disk(where: object) -> str:
    """Return the message of a full disk."""
    return f"{where} could not be written: the disk is full; free some space and start again"


def write_fault(err: OSError) -> str | None:
    """Return advice on a full disk or a missing right, in one line; None for other errors."""
    where = err.filename2 or err.filename or "a file"
    if err.errno in DISK_FULL:
        return full_disk(where)
    if err.errno in _FORBIDDEN:
        return f"{where}: {err.strerror}; give this user the rights to it and its folder, or name another one"
    return None


def is_running(pid: int) -> bool:
    """Return whether a process of this machine still runs, such as the writer of `.<name>.<pid>.part`.

    A zombie, killed but not yet waited for, does not run. Without /proc it counts as running.
    """
    if os.name == "nt":  # on Windows, signal 0 is not a mere check
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process belongs to another user
        pass
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in {b"Z", b"X"}


def fsync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable (where the system lets folders be opened)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def hold(file: IO[Any], *, waits: bool = False) -> None:
    """Hold the lock of an open file until it is closed; BlockingIOError if another process holds it.

    A file that cannot be locked is reported and left unlocked.
    """
    if not HAS_LOCKS:
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as err:  # for example on some cluster file systems
        _log.warning("%s cannot be locked (%s): let one process at a time work there", file.name, err)
