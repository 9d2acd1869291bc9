"""Whether a file is this user's own, so that its content may be run."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_own_file(path: Path) -> bytes | str | None:
    """Return the bytes of a file that only this user or root may write, or why others may; None if it does not exist.

    The owner of the open file counts, and a link is not followed.
    """
    if (fault := shared_fault(path.parent)) is not None:
        return fault if path.exists() else None
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as err:
        return f"{path} cannot be read ({err.strerror})"
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return f"{path} is not a file"
        return _fault(path, status) or file.read()


def shared_fault(folder: Path) -> str | None:
    """Return why others may put files into a folder or replace it; None if only this user and root may.

    A parent folder may be writable by all if it is sticky and root's (`/tmp`): others can neither move nor replace our
    files in it. The folder itself may not, as others could put new files there.
    """
    if not hasattr(os, "getuid"):  # Windows has access lists in place of owners
        return None
    folder = folder.resolve()
    for path in (folder, *folder.parents):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue  # it will be made
        except OSError as err:
            return f"{path} cannot be inspected ({err.strerror})"
        is_for_temporary = status.st_uid == 0 and status.st_mode & stat.S_ISVTX and path != folder
        if not is_for_temporary and (fault := _fault(path, status)) is not None:
            return fault
    return None


def _fault(path: Path, status: os.stat_result) -> str | None:
    if not hasattr(os, "getuid"):
        return None
    if status.st_uid not in {0, os.getuid()}:
        return f"{path} belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH:
        return f"{path} is writable by everyone"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return f"{path} may be written by group {status.st_gid}"
    return None


def _is_own_group(gid: int) -> bool:
    """Return whether this is the user's own group, which some systems make and let write new files."""
    if os.getuid() == 0 or gid != os.getgid():
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user and {*group.gr_mem} <= {user}
