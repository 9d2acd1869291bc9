"""Estimated times: the sums that they say they are, more for more work, and in the order of what was measured."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jahs
from jahs.errors import InvalidArgument
from jahs.models.features import (
    DEFAULT_TIMES,
    FEATURE_SETS,
    GROUPS,
    FeatureBuilder,
    FeatureSet,
    TimeCoefficients,
    joint_times,
)
from jahs.models.features.timing import BACKWARD_TERMS, FORWARD_TERMS
from jahs.schema import COLUMNS
from jahs.tasks.definitions import TASKS

TASK = TASKS["fashion_mnist_mini"]
TIME_TERMS = GROUPS["time_terms"]
TIMES = FeatureBuilder(FeatureSet(name="times", columns=GROUPS["time"], is_canonical=False), TASK)
OTHER = TimeCoefficients(
    forward=tuple(2 * value for value in DEFAULT_TIMES.forward),
    share_forward=0.5,
    backward=(0.0, *DEFAULT_TIMES.backward[1:]),
)
TERMS = FeatureBuilder(FeatureSet(name="terms", columns=TIME_TERMS, is_canonical=False), TASK)


def test_times_are_the_sums_of_their_terms() -> None:
    X = jahs.encode(jahs.space().sample_columns(500, seed=1), 1)
    terms = dict(zip(TIME_TERMS, TERMS.build(X).T.astype(np.float64), strict=True))
    for times in (DEFAULT_TIMES, OTHER):
        forward = sum(value * terms[name] for name, value in zip(FORWARD_TERMS, times.forward, strict=True))
        backward = sum(value * terms[name] for name, value in zip(BACKWARD_TERMS, times.backward, strict=True))
        F = FeatureBuilder(replace(TIMES.features, times=times), TASK).build(X)
        assert F[:, 0] == pytest.approx(forward, rel=1e-6)
        assert F[:, 1] == pytest.approx(times.share_forward * forward + backward, rel=1e-6)
    assert {*FORWARD_TERMS, *BACKWARD_TERMS} == set(TIME_TERMS)


def test_times_round_trip_and_the_default_ones_are_not_written() -> None:
    assert TimeCoefficients.from_dict(OTHER.to_dict()) == OTHER
    own = replace(FEATURE_SETS["latency"], times=OTHER)
    assert FeatureSet.from_dict(own.to_dict()) == own
    assert "times" not in FEATURE_SETS["latency"].to_dict()


def test_invalid_times_are_refused_with_every_fault() -> None:
    wrong = deepcopy(OTHER.to_dict())
    wrong["forward"]["conv5x5_calls"] = wrong["forward"].pop("conv3x3_calls")
    with pytest.raises(
        InvalidArgument, match=r"times: forward.conv3x3_calls is missing; forward.conv5x5_calls is unkn"
    ):
        TimeCoefficients.from_dict(wrong)
    values: list[Any] = [-0.1, math.nan, math.inf, "1", True, None]
    wrong = OTHER.to_dict()
    wrong["backward"] |= dict(zip(BACKWARD_TERMS, values, strict=False))
    with pytest.raises(InvalidArgument) as caught:
        TimeCoefficients.from_dict(wrong | {"share_forward": -1.0})
    for name, value in {"share_forward": -1.0, **dict(zip(BACKWARD_TERMS, values, strict=False))}.items():
        assert f"{name}={value!r} must be a number in [0, 1e+09]" in str(caught.value)
    for nothing in (None, [], {}, {"forward": {}, "backward": 1}):
        with pytest.raises(InvalidArgument, match="times must be an object with share_forward"):
            TimeCoefficients.from_dict(nothing)
    with pytest.raises(InvalidArgument, match="forward: 1 coefficients for 13 terms"):
        replace(OTHER, forward=(1.0,))


def test_sets_that_read_times_agree_on_them() -> None:
    own = replace(FEATURE_SETS["latency"], times=OTHER)
    assert joint_times([FEATURE_SETS["accuracy"], own]) == OTHER
    assert joint_times([FEATURE_SETS["accuracy"]]) == DEFAULT_TIMES
    with pytest.raises(InvalidArgument, match="times: latency, epoch_time must have the same coefficients"):
        joint_times([own, FEATURE_SETS["epoch_time"]])


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
