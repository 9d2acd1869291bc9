"""Tuning on one problem and testing on another: what orders that agree and orders that do not say."""

import numpy as np
import pytest

from experiments.science.bootstrap import ARMS, PART, SPACES, TUNED, measure_ends, transferred
from experiments.science.subjects import open_subject
from jahs.spaces.parameters import LARGEST
from tests.experiments.conftest import TASK

LEVELS = np.arange(float(len(ARMS)))[:, None]
NOISE = np.random.default_rng(0).normal(0, 0.1, (len(ARMS), 20))


def test_the_same_order_loses_nothing():
    transfer = transferred(LEVELS + NOISE, 10 * LEVELS + NOISE)
    assert transfer.chosen == transfer.best == list(ARMS)[-1]
    assert transfer.loss.value == transfer.loss.low == transfer.loss.high == 0
    assert transfer.tau.value == transfer.tau.low == pytest.approx(1)


def test_the_opposite_order_loses_the_whole_range_of_settings():
    transfer = transferred(-LEVELS + NOISE, LEVELS + NOISE)
    assert transfer.chosen == TUNED[0] == "RE"
    assert transfer.loss.value == pytest.approx(len(TUNED) - 1, abs=0.2)
    assert transfer.loss.low > 0
    assert transfer.tau.value == pytest.approx(-1)


def test_a_choice_between_arms_that_hardly_differ_may_lose_and_its_interval_says_so():
    close = LEVELS / 100 + NOISE
    transfer = transferred(close, LEVELS)
    assert len({transferred(close[:, at], LEVELS).chosen for at in (slice(0, 7), slice(7, 14), slice(13, 20))}) > 1
    assert 0 <= transfer.loss.low <= transfer.loss.value <= transfer.loss.high
    assert transfer.loss.high >= 1  # another arm is chosen with other seeds, one level or more below the best
    assert transfer.tau.low < transfer.tau.value < transfer.tau.high


def test_searches_stay_in_their_part_and_repeat(release_with_refits):
    subject = open_subject(TASK, release_with_refits)
    one, two = (measure_ends(subject, n_seeds=2, n_trials=8) for _ in range(2))
    assert SPACES["part"].items() >= {**LARGEST, **PART}.items()
    for space in SPACES:
        assert one[space].shape == one[f"{space}, on the refits"].shape == (len(ARMS), 2)
        assert one[space].tolist() == two[space].tolist()
