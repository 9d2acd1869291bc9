"""Seed and budget of the attacks, and what one attack cost.

    def test_no_bomb_takes_more_than_the_law_allows(attacks):
        for seed, rng in attacks(100):
            bomb = make_bomb(rng)
            ...
            assert cost <= law, f"seed {seed}"

`attacks(100)` yields the seeds 0 to 99 in a plain run. With JAHS_ATTACK_MINUTES it continues with 100, 101, ... until
this test's share of the minutes is over. JAHS_ATTACK_SEED=123 repeats that seed alone.
"""

from __future__ import annotations

import itertools
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Attacks:
    """The cases of one test: pairs of a seed and its generator."""

    seconds: float
    only: int | None = None

    def __call__(self, n_cases: int) -> Iterator[tuple[int, random.Random]]:
        """Yield at least `n_cases` cases, and more while there is time."""
        if self.only is not None:
            yield self.only, random.Random(self.only)
            return
        end = time.monotonic() + self.seconds
        for seed in itertools.count():
            if seed >= n_cases and time.monotonic() >= end:
                return
            yield seed, random.Random(seed)


def peak_memory(act: Callable[[], object]) -> int:
    """Return the most bytes that Python and numpy held at one time while `act` ran, beyond what they held before."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
