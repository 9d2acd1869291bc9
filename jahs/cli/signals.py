"""SIGTERM for commands: `kill`, `timeout` and batch systems send it, and processes that a command started must end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_sigterm(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGTERM in the meantime; in another thread than the main one, where Python forbids it, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
