"""Ways to fit are compared on configs that are neither fitted to nor in the test part, and a rule chooses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from surrogate import top_fits as command
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.judging.top import full_rows
from surrogate.models.boosting import ForestSettings
from surrogate.top_fits import compare_fits, fit_all, fit_forest, read_fits
from tests.surrogate.landscape import arguments, measurements, split_of, write_folder

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)
QUICK = ForestSettings(n_trees=8, max_depth=3)
TRUTH = assemble("valid_acc", measurements(10, noise=0.0))
LAST = TRUTH.take(TRUTH.epoch == MEASURED.task.max_epoch)


def right(out: Rows) -> np.ndarray:
    known = dict(zip(LAST.config_id.tolist(), LAST.y.tolist(), strict=True))
    return np.array([known[config_id] for config_id in out.config_id.tolist()])


def beside_the_forest(name: str, predict: Callable[[Rows], np.ndarray]) -> Callable[..., dict[str, np.ndarray]]:
    def fit(train: Rows, out: Rows, measured: Measurements, settings: ForestSettings) -> dict[str, np.ndarray]:
        return {"forest": fit_forest(train, out, measured, settings), name: predict(out)}

    return fit


def test_a_better_fit_is_chosen_and_no_test_config_is_read() -> None:
    seen = set()

    def fit(train: Rows, out: Rows, *more: object) -> dict[str, np.ndarray]:
        seen.update(train.config_id.tolist(), out.config_id.tolist())
        return {"forest": fit_forest(train, out, *more), "right": right(out)}

    fits = compare_fits(MEASURED, SPLIT, settings=QUICK, fit=fit)
    assert fits["chosen"] == "right"
    assert fits["verdict"] == "“right” is chosen"
    assert [row[0] for row in fits["rows"]] == ["forest", "right", "chosen on the other folds"]
    assert fits["rows"][1][1:] == fits["rows"][2][1:]
    test = by_part(assemble("valid_acc", MEASURED), SPLIT)["test"]
    assert not seen & set(test.config_id.tolist())


def test_what_answers_too_slowly_to_ship_is_shown_but_not_chosen() -> None:
    fits = compare_fits(MEASURED, SPLIT, settings=QUICK, fit=beside_the_forest("Gaussian process", right))
    assert (fits["chosen"], fits["rows"][1][-1]) == ("forest", "–")


def test_a_gain_at_the_top_that_costs_the_whole_space_is_not_chosen() -> None:
    def top_alone(out: Rows) -> np.ndarray:
        return np.where(right(out) > np.median(LAST.y), right(out), 50.0)

    fits = compare_fits(MEASURED, SPLIT, settings=QUICK, fit=beside_the_forest("top", top_alone))
    assert fits["rows"][1][-1] == "no"
    assert (fits["chosen"], fits["verdict"]) == ("forest", "no fit is clearly better at the top")


def test_the_bias_at_full_size_is_that_of_its_own_predicted_best_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_FEWEST_FULL", 1)

    def half_too_high_at_full_size(out: Rows) -> np.ndarray:
        is_full = np.isin(out.config_id, full_rows(out, epoch=int(out.epoch.max())).config_id)
        return out.y + 0.5 * is_full

    fits = compare_fits(MEASURED, SPLIT, settings=QUICK, fit=beside_the_forest("high", half_too_high_at_full_size))
    assert (
        dict(zip(fits["columns"], fits["rows"][1], strict=True))["bias, predicted best tenth at full size"] == "+0.50"
    )


def test_every_fit_predicts_within_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_DISTILLED", (5_000,))
    parts = by_part(assemble("valid_acc", MEASURED), SPLIT)
    predicted = fit_all(parts["train"], parts["valid"], MEASURED, QUICK)
    assert [*predicted] == ["forest", "Gaussian process", "5,000 distilled"]
    for values in predicted.values():
        assert values.shape == parts["valid"].y.shape
        assert (values >= 0).all()
        assert (values <= 100).all()


def test_the_command_writes_what_is_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = write_folder(tmp_path / "runs", MEASURED)
    monkeypatch.setattr(command, "UNTUNED", QUICK)
    monkeypatch.setattr(command, "_DISTILLED", ())
    assert command.main(arguments(runs, tmp_path / "fits.json")) == 0
    shown = capsys.readouterr().out
    fits = read_fits(tmp_path / "fits.json")
    assert "| forest |" in shown
    assert fits["verdict"] in shown
    assert len(fits["rows"]) == 3
    monkeypatch.setattr(command, "compare_fits", lambda *_, **__: pytest.fail("it was computed before the refusal"))
    assert command.main(arguments(runs, tmp_path / "no" / "fits.json")) == 2
    assert "its folder does not exist; make it first" in capsys.readouterr().err
