"""Fits over processes: the same bytes in the same order, and errors that come back."""

from __future__ import annotations

import pytest

from jahs.errors import InvalidArgument
from surrogate.dataset import assemble
from surrogate.fit import fit_each
from surrogate.model import Settings
from tests.surrogate.landscape import TASK, measurements, split_of
from workshop.processes import in_processes

MEASURED = measurements(3)
TRAINING = {m: assemble(m, MEASURED, split_of(MEASURED))["train"] for m in ("latency", "valid_acc", "runtime")}
SETTINGS = dict.fromkeys(TRAINING, Settings(n_trees=5, colsample_bytree=0.5))


def divide(*, a: int, b: int) -> float:
    if b == 0:
        raise InvalidArgument(f"{a} / 0")
    return a / b


def test_the_number_of_workers_does_not_change_a_byte() -> None:
    alone, together = (fit_each(TRAINING, TASK, SETTINGS, workers=n) for n in (1, 2))
    assert list(alone) == list(together) == list(TRAINING)
    for metric in TRAINING:
        assert alone[metric].booster.save_raw("ubj") == together[metric].booster.save_raw("ubj")


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_come_in_order_and_errors_come_back(workers: int) -> None:
    calls = [{"a": n, "b": 2} for n in range(9)]
    assert in_processes(divide, calls, workers=workers) == [n / 2 for n in range(9)]
    with pytest.raises(InvalidArgument, match="1 / 0"):
        in_processes(divide, [*calls, {"a": 1, "b": 0}], workers=workers)
    assert in_processes(divide, [], workers=workers) == []


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_what_is_no_number_of_workers_is_refused(workers: int) -> None:
    with pytest.raises(InvalidArgument, match="is not an integer of at least 1"):
        in_processes(divide, [], workers=workers)
