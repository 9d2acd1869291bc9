"""What is required is judged where it can be, and beside the ceiling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jahs.errors import CorruptFile
from surrogate.data.rows import assemble, by_part
from surrogate.judging import quality
from surrogate.judging.agreement import agreement
from surrogate.judging.quality import curve_facts, data_facts, requirements, rounded, search_facts
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import fit_surrogate
from surrogate.tune import data_of
from tests.surrogate.landscape import measurements, split_of

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)


def scored(
    tau: float,
    ceiling: float | None,
    *,
    r2: float = 0.96,
    r2_between_seeds: float = 0.98,
    n_configs: int = 300,
    n_repeated: int = 30,
) -> dict[str, Any]:
    cut = {"model": {"tau": tau, "r2": r2}, "ceiling": {"tau": ceiling, "r2": r2_between_seeds, "n": n_repeated}}
    return {"test": {"cuts": {"all": cut, "last epoch": cut}, "n_configs": n_configs}}


def judged(metrics: dict[str, Any], *, n_configs: int = 2000) -> dict[tuple[str, str], dict[str, Any]]:
    entries = requirements(metrics, n_configs=dict.fromkeys(("valid_acc", "runtime", "latency"), n_configs))
    return {(entry["metric"], entry["score"]): entry for entry in entries}


def test_tau_is_required_as_a_share_of_its_ceiling_and_r2_as_it_is() -> None:
    entries = judged({"valid_acc": scored(0.81, 0.88), "runtime": scored(0.94, 0.98), "latency": scored(0.91, None)})
    assert entries["valid_acc", "tau"]["reached"] == pytest.approx(0.81 / 0.88)
    assert [entries[key]["is_met"] for key in entries] == [True, False, True, True]
    assert all(entry["is_due"] for entry in entries.values())
    assert not judged({"valid_acc": scored(0.8, 0.88, r2=0.949)})["valid_acc", "r2"]["is_met"]
    assert judged({"valid_acc": scored(0.8, 0.88, r2=0.951)})["valid_acc", "r2"]["is_met"]


def test_the_ceiling_of_r2_is_what_a_model_that_knows_every_mean_has() -> None:
    rng = np.random.default_rng(0)
    mean = rng.normal(0, 2, 50_000)
    one, other = mean + rng.normal(0, 1, (2, 50_000))
    r2 = agreement("valid_acc", one, other)["r2"]
    entry = judged({"valid_acc": scored(0.8, 0.88, r2_between_seeds=r2)})["valid_acc", "r2"]
    assert entry["ceiling"] == pytest.approx(agreement("valid_acc", one, mean)["r2"], abs=0.01)
    assert entry["reached"] == entry["value"]


def test_nothing_is_claimed_of_few_configs_or_of_what_was_not_measured() -> None:
    entries = judged({"valid_acc": scored(1.0, 0.9, n_configs=19), "runtime": {"test": None}}, n_configs=120)
    assert [entry["is_met"] for entry in entries.values()] == [None] * 4
    assert not any(entry["is_due"] for entry in entries.values())


def test_nothing_is_claimed_by_a_ceiling_of_few_repeats() -> None:
    entries = judged({"valid_acc": scored(0.9, 0.3, n_repeated=19), "runtime": scored(0.9, None, n_repeated=0)})
    assert [entries[key]["is_met"] for key in (("valid_acc", "tau"), ("runtime", "tau"))] == [None, False]
    assert (entries["valid_acc", "r2"]["is_met"], entries["valid_acc", "r2"]["ceiling"]) == (True, None)


def test_a_requirement_is_due_by_the_configs_of_its_own_metric() -> None:
    metrics = {"valid_acc": scored(0.8, 0.9), "runtime": scored(0.8, 0.9)}
    entries = requirements(metrics, n_configs={"valid_acc": 2000, "runtime": 1100})
    assert [entry["is_due"] for entry in entries] == [True, False, False, True]


def test_counts_are_those_of_the_tables() -> None:
    facts = data_facts(MEASURED, SPLIT)
    assert facts["configs"] == sum(facts["parts"].values()) == 270
    assert facts["runs"] == sum(facts["machines"].values()) == len(np.unique(MEASURED.runs["config_id"])) + 2 * 54
    assert facts["repeated_configs"] == 54
    assert [(g["train"], g["valid"], g["test"]) for g in facts["groups"]] == [(7, 2, 1)] * 27
    assert facts["small_groups"] == 0


def test_no_curve_is_drawn_from_too_few_configs() -> None:
    parts = by_part(assemble("runtime", MEASURED), SPLIT)
    few = parts["train"].take(np.isin(parts["train"].config_id, np.unique(parts["train"].config_id)[:3]))
    few_parts = {**parts, "train": few}
    model = fit_surrogate("runtime", few, MEASURED.task, settings=ForestSettings(n_trees=5))
    assert curve_facts(model, MEASURED, few_parts, n_seeds=2, workers=1) is None


def test_what_is_no_number_is_none_and_numbers_are_short() -> None:
    content = {"a": [1.23456789, float("nan"), (2, "x")], "b": {"c": float("inf"), "d": 123456789.0, "e": True}}
    assert rounded(content) == {"a": [1.23457, None, [2, "x"]], "b": {"c": None, "d": 123457000.0, "e": True}}


def test_a_size_that_was_reached_is_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = by_part(assemble("latency", MEASURED), SPLIT)
    model = fit_surrogate("latency", parts["train"], MEASURED.task, settings=ForestSettings(n_trees=20))
    for full_size, is_reached in ((270, True), (300, False)):  # of which 189 and 210 train; 189 are there
        monkeypatch.setattr(quality, "FULL_SIZE", full_size)
        facts = curve_facts(model, MEASURED, parts, n_seeds=1, workers=1)
        assert facts is not None
        assert ("tau" in facts["not_predicted"]) == is_reached
        assert ("tau" in facts["predictions"]) != is_reached
        assert "check: tau at 189 from smaller sizes" in facts["predictions"]
        if is_reached:
            assert facts["not_predicted"]["tau"] == "189 training configs reach the 189 that the requirements assume"


def test_a_history_belongs_to_its_data_or_says_so() -> None:
    """Also one of an older version, which does not say of which measurements it is."""
    of_data = data_of(MEASURED, SPLIT)
    chosen = {"default_tau": 0.5, "chosen": {"settings": {"n_trees": 7}}}
    moved = replace(MEASURED, profile={**MEASURED.profile, "machine": np.full(270, "another")})
    options = {"of_data": of_data, "settings": ForestSettings(n_trees=7)}
    for of_search, is_same in (
        (of_data, True),
        (data_of(moved, SPLIT), False),
        ({**of_data, "features": 0}, False),
        ({**of_data, "split": "another"}, False),
        ({"split": SPLIT.digest}, False),
    ):
        history = {"format": 1, **of_search, "metrics": {"runtime": chosen}}
        assert search_facts(history, "runtime", **options) == {**chosen, "is_of_this_split": is_same}
        assert search_facts(history, "latency", **options) is None
    assert search_facts({}, "latency", **options) is None
    with pytest.raises(CorruptFile, match="lacks what a search records"):
        search_facts({"format": 1}, "runtime", **options)
    with pytest.raises(CorruptFile, match=r"runtime: params.json differs from the settings .* tune again"):
        search_facts(history, "runtime", of_data=of_data, settings=ForestSettings())
