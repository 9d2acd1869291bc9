"""Measuring in alternating blocks, so that a slow minute of the machine meets every way alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def measured(ways: Mapping[str, Callable[[int], object]], *, n: Mapping[str, int], n_rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of one call, by way, from alternating blocks of `n` calls."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(0)
    for block in range(n_rounds):
        for name, way in ways.items():
            begin = time.process_time()
            for i in range(n[name]):
                way(block * n[name] + i)
            seconds[name].append((time.process_time() - begin) / n[name])
    return {name: statistics.median(times) for name, times in seconds.items()}
