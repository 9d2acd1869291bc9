"""Estimated times: the sums that they say they are, more for more work, and in the order of what was measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.models.features import GROUPS, FeatureBuilder, FeatureSet
from jahs.models.features.timing import BACKWARD, FORWARD, SHARE_FORWARD
from jahs.schema import COLUMNS
from jahs.tasks.definitions import TASKS

TASK = TASKS["fashion_mnist_mini"]
TIME_TERMS = GROUPS["time_terms"]
TIMES = FeatureBuilder(FeatureSet(name="times", columns=GROUPS["time"], is_canonical=False), TASK)
TERMS = FeatureBuilder(FeatureSet(name="terms", columns=TIME_TERMS, is_canonical=False), TASK)


def test_times_are_the_sums_of_their_terms() -> None:
    X = jahs.encode(jahs.space().sample_columns(500, seed=1), 1)
    terms = dict(zip(TIME_TERMS, TERMS.build(X).T.astype(np.float64), strict=True))
    forward = sum(value * terms[name] for name, value in FORWARD.items())
    backward = sum(value * terms[name] for name, value in BACKWARD.items())
    found = TIMES.build(X)
    assert found[:, 0] == pytest.approx(forward, rel=1e-6)
    assert found[:, 1] == pytest.approx(SHARE_FORWARD * forward + backward, rel=1e-6)
    assert set(FORWARD) | set(BACKWARD) == set(TIME_TERMS)


def test_one_network_by_hand() -> None:
    """Op1 is the only convolution, and the output does not depend on it."""
    config = {**jahs.space().default(), **{f"Op{i}": 1 for i in range(2, 6)}, "Op1": 2, "Op6": 4}
    config |= {"N": 3, "W": 8, "Resolution": 0.5, "Activation": "Mish"}
    terms = dict(zip(TIME_TERMS, TERMS.build(jahs.encode([config], 1))[0].tolist(), strict=True))
    assert {name: value for name, value in terms.items() if value} == {
        "once_calls": 1, "once_positions": 0.25, "once_macs": 16,
        "conv3x3_calls": 3, "conv3x3_positions": 0.75, "conv3x3_macs": 48,
        "pool_calls": 3, "pool_positions": 0.75, "pool_numbers": 6,
        "mish_numbers": 9, "trained_mish_numbers": 3,
    }  # fmt: skip


@given(seed=st.integers(0, 2**32 - 1))
def test_more_work_never_takes_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = jahs.encode(jahs.space().sample_columns(50, seed=seed), 1)
    before = TIMES.build(X)
    for key, largest in (("N", 5), ("W", 16), ("Resolution", 1)):
        more = X.copy()
        more[:, COLUMNS.index(key)] = largest
        assert (TIMES.build(more) >= before).all(), key
    edges = [COLUMNS.index(f"Op{i}") for i in range(1, 7)]
    more = X.copy()
    column = rng.choice(edges, len(X))
    is_zero = X[np.arange(len(X)), column] == 1
    more[np.arange(len(X))[is_zero], column[is_zero]] = rng.choice([0, 2, 3, 4], int(is_zero.sum()))
    assert (TIMES.build(more) >= before).all()
