"""Settings with which torch and the C engine compute: one thread, denormal numbers as zero, no TF32."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

_ONE_AT_A_TIME: Final = threading.RLock()


@contextmanager
def one_core() -> Iterator[None]:
    """Compute with one thread, with denormal numbers as zero, and without TF32; restore the settings afterwards.

    One thread is faster for small networks, and the bits of a result do not depend on the caller's settings. One thread
    of a process is admitted at a time, because all of them share these settings and torch's global random generator.
    """
    with _ONE_AT_A_TIME:
        n_threads, flushes = torch.get_num_threads(), _flushes_denormals()
        allows_tf32 = torch.backends.cudnn.allow_tf32
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        torch.backends.cudnn.allow_tf32 = False
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
            torch.set_flush_denormal(flushes)
            torch.backends.cudnn.allow_tf32 = allows_tf32


def _flushes_denormals() -> bool:
    """Return whether this thread replaces denormal numbers by zero; torch can set this, but not report it."""
    return (torch.tensor(1e-40) * 1).item() == 0
