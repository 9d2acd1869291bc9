"""Locks of files between processes; a lock ends with its process, however that happens."""

from __future__ import annotations

import importlib.util
import logging
from typing import IO, Any, Final

_log = logging.getLogger(__name__)

HAS_LOCKS: Final = importlib.util.find_spec("fcntl") is not None
"""Whether the system has locks; Windows has none."""


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
    except OSError as err:  # as on some file systems of clusters
        _log.warning("%s cannot be locked (%s): let one process at a time work there", file.name, err)
