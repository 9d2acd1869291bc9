"""Coefficients of times: found again where they are known, and those that ship are those of what was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidTable
from jahs.files.runs import read_configs, read_profile
from jahs.files.tables import Table, take
from jahs.models.features import DEFAULT_TIMES, GROUPS, FeatureBuilder, FeatureSet
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import EARLIER
from surrogate.timing import fit_times, main, times_of
from tests.surrogate import landscape
from workshop.ranks import kendall_tau

[_SHORT] = EARLIER.values()
RECORDED = Path(__file__).parents[2] / "data/candidates/short/runs"


def times(configs: Table) -> np.ndarray:
    features = FeatureSet(name="times", columns=GROUPS["time"], is_canonical=False)
    X = encode({key: values for key, values in configs.items() if key[0].isupper()}, 1)
    return FeatureBuilder(features, _SHORT).build(X).astype(np.float64)


def test_known_coefficients_are_found_again() -> None:
    measured = landscape.measurements(20)
    forward, training = times(measured.configs).T / 1e3
    profile = {**measured.profile, "latency": forward, "step_time_s": training}
    order = np.random.default_rng(0).permutation(len(forward))
    fitted, scores = fit_times(replace(measured, profile=take(profile, order)), landscape.split_of(measured))
    assert fitted.forward == pytest.approx(DEFAULT_TIMES.forward, rel=5e-3, abs=1e-4)
    assert fitted.share_forward == pytest.approx(DEFAULT_TIMES.share_forward, rel=1e-2)
    assert fitted.backward == pytest.approx(DEFAULT_TIMES.backward, rel=0.05, abs=2e-3)
    assert all(tau > 0.999 and error < 1e-3 for tau, error in scores.values())


def test_only_training_configs_decide() -> None:
    measured, rng = landscape.measurements(20), np.random.default_rng(0)
    split = landscape.split_of(measured)
    noise = np.where(split.parts_of(measured.profile["config_id"]) == 0, 1.0, rng.uniform(1, 9, 540))
    scaled = {**measured.profile, **{name: noise * measured.profile[name] for name in ("latency", "step_time_s")}}
    coefficients = times_of(measured, split)
    assert coefficients == times_of(replace(measured, profile=scaled), split) == fit_times(measured, split)[0]
    assert coefficients != DEFAULT_TIMES


@pytest.mark.parametrize("n_profiled", [0, 20])
def test_a_task_with_a_small_profile_has_the_default_times(n_profiled: int) -> None:
    measured = landscape.measurements(1)
    few = replace(measured, profile=take(measured.profile, np.arange(n_profiled)))
    assert times_of(few, landscape.split_of(measured)) == DEFAULT_TIMES


def test_those_that_ship_order_the_recorded_profile() -> None:
    profile, configs = read_profile(RECORDED), read_configs(RECORDED)
    row = {key: i for i, key in enumerate(configs["config_id"].tolist())}
    estimated = times(take(configs, np.array([row[key] for key in profile["config_id"].tolist()])))
    for column, name in enumerate(("latency", "step_time_s")):
        ratio = estimated[:, column] / (1e3 * profile[name])
        assert kendall_tau(estimated[:, column], profile[name]) > 0.92
        assert np.median(np.abs(ratio / np.median(ratio) - 1)) < 0.1, "up to a constant of the processor"


def test_too_few_profiled_configs_are_counted_part_by_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = landscape.measurements(1)
    few = replace(measured, profile=take(measured.profile, np.arange(20)))
    with pytest.raises(InvalidTable, match=r"train: 20 configs are profiled, 26 are needed.*\nvalid: 0 configs"):
        fit_times(few, landscape.split_of(measured))
    folder = landscape.write_folder(tmp_path / "runs", landscape.measurements(4))
    assert main([str(folder), "--split", str(folder / "nowhere.json")]) == 2
    assert "nowhere.json" in capsys.readouterr().err
