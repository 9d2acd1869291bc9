"""Learning curves: fits to more and more configs, extrapolated by a power law."""

from __future__ import annotations

import numpy as np
import pytest

from surrogate.data.rows import Facts, assemble, by_part
from surrogate.judging.curve import curve, extrapolate, predictions
from surrogate.models.boosting import ForestSettings
from surrogate.models.model import Surrogate, fit_surrogate
from tests.surrogate.landscape import measurements, split_of

MEASURED = measurements(10)
PARTS = by_part(assemble("valid_acc", MEASURED), split_of(MEASURED))


def fitted(**settings: float) -> Surrogate:
    return fit_surrogate("valid_acc", PARTS["train"], MEASURED.task, settings=ForestSettings.from_dict(settings))


def points_of(sizes: list[int], *, n_seeds: int, n_trees: int) -> list[Facts]:
    return curve(fitted(n_trees=n_trees, learning_rate=0.1), MEASURED, PARTS, sizes, seeds=range(n_seeds))


def test_the_curve_predicts_a_size_that_was_not_fitted() -> None:
    points = points_of([27, 54, 81, 108, 162], n_seeds=2, n_trees=30)
    assert [point["n_configs"] for point in points] == [27, 54, 81, 108, 162] * 2
    extrapolated, reasons = predictions(points, 1400)
    assert extrapolated["tau"]["low"] < extrapolated["tau"]["value"] < extrapolated["tau"]["high"] < 1
    assert max(point["tau"] for point in points) < extrapolated["tau"]["high"]
    assert "tau" not in reasons


def test_sizes_that_are_too_small_for_a_teacher_are_left_out() -> None:
    points = curve(fitted(n_trees=3, n_distilled=5), MEASURED, PARTS, [4, 27], seeds=[0])
    assert [point["n_configs"] for point in points] == [27]


def test_a_power_law_is_found_again_and_its_interval_holds_the_truth() -> None:
    sizes, seeds = (100, 200, 400, 800, 1400), range(5)
    rng = np.random.default_rng(0)
    points = [
        {"n_configs": n, "seed": s, "tau": 1 - 2 * n**-0.3 * float(np.exp(rng.normal(0, 0.02))), "r2": 0.9}
        for n in sizes
        for s in seeds
    ]
    extrapolated = extrapolate(points, 5000)
    assert extrapolated["exponent"] == pytest.approx(-0.3, abs=0.03)
    assert extrapolated["low"] < 1 - 2 * 5000**-0.3 < extrapolated["high"]
    assert extrapolated["high"] - extrapolated["low"] < 0.05


def test_too_few_sizes_are_refused() -> None:
    _, reasons = predictions(points_of([27, 54, 81], n_seeds=1, n_trees=5), 1400)
    assert "a curve and its spread need 4 sizes, and there are 3" in reasons["tau"]
