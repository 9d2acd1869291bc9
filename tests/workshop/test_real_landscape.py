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
from workshop.real_landscape import CURVE, as_good_as, compare_with_landscape

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


def test_agreement_by_epoch_names_the_epoch_that_agrees_as_well() -> None:
    """The real ranks turn from weight decay to the learning rate; ours are those of an epoch between two of them."""

    def turning(share: float) -> np.ndarray:
        rate, decay = (np.log10(CONFIGS[key]) for key in ("LearningRate", "WeightDecay"))
        return np.asarray(50 + 5 * share * (rate + 1.5) + 2 * (1 - share) * (decay + 3.5))

    def query_many(columns: Columns, *, at: int, metrics: list[str]) -> dict[str, np.ndarray]:
        return {"valid_acc": turning(at / 200)}

    real = SimpleNamespace(task=TASKS["cifar10"], max_epoch=200, query_many=query_many)
    curve = compare_with_landscape(CONFIGS, turning(80 / 200), real)["curve"]
    assert [at["epoch"] for at in curve] == list(CURVE)
    own = [at["real"] for at in curve]
    assert own == sorted(own)
    assert own[-1] == pytest.approx(1)
    assert max(curve, key=lambda at: at["ours"])["epoch"] == 75
    assert as_good_as(curve) == 75
    assert as_good_as([{"epoch": 3, "ours": 0.1, "real": 0.4}, {"epoch": 200, "ours": 0.2, "real": 1.0}]) is None
    flat = compare_with_landscape(CONFIGS, np.full(2000, 10.0), real)["curve"]
    assert as_good_as(flat) is None
