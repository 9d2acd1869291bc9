"""Limits of processor time, in seconds of a processor that makes a million tuples in 0.1 s.

A slower or busier one may take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def processor_time(act: Callable[[], object]) -> float:
    """Return the seconds of processor time that `act` took, whatever else the machine does."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def slowness() -> float:
    """Return how many times as long as the limits' processor this one takes at the moment; at least 1."""
    made: list[tuple[int]] = []

    def make_tuples() -> None:
        for i in range(1_000_000):
            made.append((i,))
            if len(made) > 100:
                made.clear()

    return max(1.0, processor_time(make_tuples) / 0.1)


def is_quick(start: float, limit_s: float) -> bool:
    """Whether at most `limit_s` of processor time has passed since `start`, a `time.process_time()`."""
    took = time.process_time() - start
    return took < limit_s or took < limit_s * slowness()
