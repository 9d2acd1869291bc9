"""Trial logs as columns."""

import numpy as np
import pytest

from jahs.comparison.logs import trial_log
from jahs.errors import InvalidArgument, InvalidTable
from tests.jahs.comparison.handmade import log, trial


def test_trials_are_sorted_by_when_they_were_known():
    found = log(trial(0, 0, 9, 50.0), trial(1, 0, 4, 60.0, worker=1), trial(2, 4, 9, 70.0, worker=1))
    assert [trial.trial for trial in found.trials] == [1, 0, 2]
    assert found.end.tolist() == [4, 9, 9]
    assert [each.config["Op1"] for each in found.trials] == [1, 0, 2]


def test_only_finished_trials_at_the_highest_fidelity_are_full():
    found = log(
        trial(0, 0, 1, 90.0, epoch=9),
        trial(1, 1, 2, 50.0),
        trial(2, 2, 3, None, status="failed"),
        trial(3, 3, 4, None, status="unfinished"),
        trial(4, 4, 5, 95.0, status="stopped"),
    )
    assert found.is_full.tolist() == [False, True, False, False, False]


def test_every_fidelity_of_the_view_must_be_at_its_highest():
    small, large = trial(0, 0, 1, 90.0, sizes={"W": 4}), trial(1, 1, 2, 80.0, sizes={"W": 16})
    assert log(small, large, full={"epoch": 10, "W": 16}).is_full.tolist() == [False, True]
    assert log(small, large).is_full.tolist() == [True, True]


def test_an_accuracy_is_minimised_as_an_error_and_a_cost_as_it_is():
    found = log(trial(0, 0, 1, 90.0, latency=0.5))
    assert found.minimised("valid_acc").tolist() == [10.0]
    assert found.minimised("latency").tolist() == [0.5]
    with pytest.raises(InvalidArgument, match=r"metric='runtime' must be a metric of this log: latency"):
        found.minimised("runtime")


def test_what_a_trial_did_not_measure_is_nan():
    found = log(trial(0, 0, 1, 1.0, latency=1.0), trial(1, 1, 2, 1.0))
    assert np.array_equal(found.metrics["latency"], [1.0, np.nan], equal_nan=True)


def test_a_header_without_a_view_is_refused():
    with pytest.raises(InvalidTable, match="does not name the fidelities of its view"):
        trial_log({"format": 1}, [])


def test_an_empty_log_has_no_trials():
    found = log()
    assert len(found) == 0
    assert found.is_full.dtype == np.bool_
