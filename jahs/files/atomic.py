"""Files that are either whole or absent: written beside, flushed to disk, then renamed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jahs.errors import OutOfSpace

__all__ = ["fsync_folder", "out_of_space", "write_beside"]


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
def out_of_space(path: Path) -> Iterator[None]:
    """Say of a disk that is full while `path` is written what to do about it.

    Raises:
        OutOfSpace: it is full; other errors stay as they are.
    """
    try:
        yield
    except OSError as err:
        if err.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise OutOfSpace(f"{path} could not be written: the disk is full; free some space and start again") from err
        raise


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
