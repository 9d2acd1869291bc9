"""Torch on one core: how everything here computes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

_ONE_AT_A_TIME: Final = threading.RLock()


@contextmanager
def one_core() -> Iterator[None]:
    """Compute with one thread and without denormal numbers: faster for small networks, and the same bits anywhere.

    Threads wait for one another here: torch's number of threads and its random stream are those of the whole process.
    """
    with _ONE_AT_A_TIME:
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
            torch.set_flush_denormal(False)
