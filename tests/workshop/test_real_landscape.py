"""The comparison with the real landscape: shares are those that were planted; what is undefined is null."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jahs
from jahs.errors import InvalidArgument
from jahs.spaces.columns import Columns
from jahs.tasks.definitions import TASKS
from workshop import real_landscape
from workshop.real_landscape import compare_with_landscape

CONFIGS = jahs.space().sample_columns(2000, seed=0)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer resamples: the laws do not need them."""
    monkeypatch.setattr(real_landscape, "_N_RESAMPLES", 100)


def by_rate(columns: Columns) -> np.ndarray:
    return np.asarray(60 + 5 * np.log10(columns["LearningRate"]))


def by_both(columns: Columns) -> np.ndarray:
    """The rate alone explains nothing: what is good depends on weight decay."""
    rate, decay = (np.log10(columns[key]) for key in ("LearningRate", "WeightDecay"))
    return np.asarray(60 + 5 * np.sign((rate + 1.5) * (decay + 3.5)))


def landscape(of: Any, *, task: str = "cifar10") -> Any:  # Any: a function; stands for a Benchmark
    def query_many(columns: Columns, *, at: int, metrics: list[str]) -> dict[str, np.ndarray]:
        assert metrics == ["valid_acc"]
        return {"valid_acc": of(columns) + at / 100}

    return SimpleNamespace(task=TASKS[task], max_epoch=TASKS[task].max_epoch, query_many=query_many)


def test_shares_are_those_that_were_planted() -> None:
    facts = compare_with_landscape(CONFIGS, by_rate(CONFIGS), landscape(by_both))
    ours, real = facts["shares"]["ours"], facts["shares"]["real"]
    assert ours["LearningRate"] > 0.97
    assert all(abs(share) < 0.02 for key, share in ours.items() if key != "LearningRate")
    assert real["LearningRate x WeightDecay"] > 0.7
    assert all(abs(share) < 0.02 for key, share in real.items() if " x " not in key)


def test_what_three_configs_cannot_say_is_null() -> None:
    few = {key: values[:3] for key, values in CONFIGS.items()}
    facts = compare_with_landscape(few, by_rate(few), landscape(by_rate))
    assert facts["epochs"]["200"]["rho"] == pytest.approx(1)
    assert facts["shares"]["ours"]["LearningRate x WeightDecay"] is None
    json.dumps(facts, allow_nan=False)


def test_equal_accuracies_explain_nothing() -> None:
    facts = compare_with_landscape(CONFIGS, np.full(2000, 10.0), landscape(by_rate))
    assert set(facts["shares"]["ours"].values()) == {None}
    assert facts["epochs"]["200"]["rho"] is None


def test_a_landscape_of_short_training_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'digits' with 12 epochs"):
        compare_with_landscape(CONFIGS, by_rate(CONFIGS), landscape(by_rate, task="digits"))
