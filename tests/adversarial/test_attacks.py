"""The budget of the attacks themselves."""

from __future__ import annotations

import numpy as np

from tests.adversarial.attacks import Attacks, peak_memory


def test_a_plain_run_has_the_same_few_cases_each_time():
    first = [(seed, rng.random()) for seed, rng in Attacks(seconds=0)(3)]
    assert [seed for seed, _ in first] == [0, 1, 2]
    assert first == [(seed, rng.random()) for seed, rng in Attacks(seconds=0)(3)]


def test_a_long_run_has_more_cases():
    assert sum(1 for _ in Attacks(seconds=0.05)(3)) > 3


def test_one_seed_can_be_repeated_alone():
    assert [seed for seed, _ in Attacks(seconds=10, only=123)(3)] == [123]


def test_memory_that_was_freed_again_counts():
    assert 8_000_000 <= peak_memory(lambda: np.zeros(1_000_000).sum()) < 9_000_000
