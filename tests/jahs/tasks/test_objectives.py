"""Metrics as objectives: less is always better, and the way back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, UnknownName
from jahs.tasks.metrics import METRICS, Metric
from jahs.tasks.objectives import Objective, objective_matrix, read_objectives

UNBOUNDED = Metric(
    name="score",
    unit="1",
    direction="max",
    lower=-math.inf,
    upper=math.inf,
    kind="learned",
    by_epoch=True,
    description="A metric without bounds of which more is better.",
)
ALL = [*METRICS.values(), UNBOUNDED]


@given(st.sampled_from(ALL), st.floats(0, 100), st.floats(0, 100))
def test_the_better_of_two_values_is_the_smaller_objective(metric: Metric, a: float, b: float) -> None:
    worse, better = sorted((a, b), reverse=metric.direction == "min")
    minimised = Objective(metric=metric).minimised([worse, better])
    assert minimised[1] <= minimised[0]
    assert minimised.dtype == np.float64


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_objectives_turn_back_into_metrics(metric: Metric) -> None:
    objective = Objective(metric=metric)
    assert objective.measured(objective.minimised([0.0, 12.5, 100.0])).tolist() == [0.0, 12.5, 100.0]


def test_the_matrix_has_a_column_for_each_objective_in_the_order_asked() -> None:
    columns = {"valid_acc": np.float32([90, 80]), "n_macs": np.int64([7, 9]), "latency": [0.5, 0.25]}
    F = objective_matrix(columns, read_objectives(("n_macs", "valid-acc", "latency")))
    assert F.tolist() == [[7, 10, 0.5], [9, 20, 0.25]]
    assert F.dtype == np.float64


def test_labels_name_direction_and_unit_and_bounds_are_turned_too() -> None:
    accuracy, latency = read_objectives(["valid_acc", "latency"])
    assert (accuracy.label, latency.label) == ("100 - valid_acc (%)", "latency (s)")
    assert Objective(metric=UNBOUNDED).label == "- score (1)"
    assert (accuracy.upper, latency.upper) == (100.0, math.inf)


def test_only_metrics_that_a_release_has_are_objectives() -> None:
    known = {name: METRICS[name] for name in ("valid_acc", "n_macs")}
    with pytest.raises(UnknownName, match="metric='latency' does not exist; metric is one of: valid_acc, n_macs"):
        read_objectives(["valid_acc", "latency"], known=known)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ("latency", r"metrics='latency' is not a list of names; for one metric give \['latency'\]"),
        ([], "metrics is empty; give one or more of train_acc"),
        (["n_macs", "FLOPS"], r"\['n_macs', 'FLOPS'\] names a metric more than once"),
        (3, "metrics=3 is not a list"),
    ],
    ids=["text", "empty", "twice", "number"],
)
def test_a_wrong_list_of_metrics_is_refused(metrics: object, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        read_objectives(metrics)


@pytest.mark.parametrize("metrics", [{"valid_acc", "latency"}, frozenset({"latency"}), np.array(5), 5])
def test_metrics_without_an_order_are_refused(metrics) -> None:
    with pytest.raises(InvalidArgument, match="is not a list of names"):
        read_objectives(metrics)


def test_rows_of_different_lengths_and_truths_are_not_values() -> None:
    for values in ([[1], [1, 2]], True, [True]):
        with pytest.raises(InvalidArgument, match="valid_acc"):
            read_objectives(["valid_acc"])[0].minimised(values)
