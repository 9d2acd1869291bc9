"""Metrics: names, units, directions and bounds."""

import dataclasses
import math

import pytest

from jahs.errors import UnknownName
from jahs.schema import PROFILE_COLUMNS, RUN_COLUMNS
from jahs.tasks.metrics import ACCURACIES, LEARNED, METRICS, metric

PUBLISHED = ("FLOPS", "latency", "runtime", "size_MB", "test-acc", "train-acc", "valid-acc")


def test_every_published_metric_has_one_of_ours():
    assert sorted({metric(name).name for name in PUBLISHED}) == [
        "latency",
        "n_macs",
        "n_params",
        "runtime",
        "test_acc",
        "train_acc",
        "valid_acc",
    ]


def test_a_name_and_its_alias_are_the_same_metric_and_no_name_is_shared():
    names = [name for m in METRICS.values() for name in {m.name, m.published_name or m.name}]
    assert len(names) == len(set(names))
    for m in METRICS.values():
        assert metric(m.name) is m
        assert m.published_name is None or metric(m.published_name) is m


def test_published_counts_are_in_millions():
    assert 1_531_546 * metric("size_MB").published_scale == pytest.approx(1.531546)
    assert 220_119_690 * metric("FLOPS").published_scale == pytest.approx(220.11969)
    assert all(m.published_scale == 1 for m in METRICS.values() if m.kind != "exact")


def test_accuracies_are_percentages_to_maximise_and_the_rest_is_minimised():
    for name in ACCURACIES:
        assert (METRICS[name].unit, METRICS[name].direction) == ("%", "max")
        assert (METRICS[name].lower, METRICS[name].upper) == (0.0, 100.0)
    for m in METRICS.values():
        assert m.name in ACCURACIES or (m.direction, m.lower, m.upper) == ("min", 0.0, math.inf)


def test_what_is_learned_was_measured_and_what_is_exact_was_not():
    measured = {*RUN_COLUMNS, *PROFILE_COLUMNS}
    assert set(LEARNED) == {*ACCURACIES, "latency", "runtime"}
    for m in METRICS.values():
        assert (m.name in measured) == (m.kind != "exact")
        assert m.by_epoch == (m.name in RUN_COLUMNS)


def test_metrics_cannot_be_changed():
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["latency"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        METRICS["latency"].unit = "ms"


@pytest.mark.parametrize("name", ["valid_accuracy", "", None, 3, ["latency"], "LATENCY"])
def test_an_unknown_metric_lists_those_that_exist(name):
    with pytest.raises(UnknownName, match=r"metric=.* does not exist.*train_acc, valid_acc.*FLOPS"):
        metric(name)
