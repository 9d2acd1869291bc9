"""Limits of processor time, in seconds of a processor that makes a million tuples in 0.1 s.

A slower or busier one may take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def processor_time(act: Callable[[], object]) -> float:
    """Return the seconds of processor time that `act` took, whatever else the machine does."""
    start = time.process_time()
    act()
    return time.process_time() - start


def slowness() -> float:
    """Return how many times slower this processor is at the moment than the limits' processor; at least 1."""
    tuples: list[tuple[int]] = []

    def make_tuples() -> None:
        for i in range(1_000_000):
            tuples.append((i,))
            if len(tuples) > 100:
                tuples.clear()

    return max(1.0, processor_time(make_tuples) / 0.1)


def is_quick(start: float, limit_s: float) -> bool:
    """Whether at most `limit_s` of processor time has passed since `start`, a `time.process_time()`."""
    elapsed = time.process_time() - start
    return elapsed < limit_s or elapsed < limit_s * slowness()
