"""Ways to fit are compared on configs that are neither fitted to nor in the test part, and a rule chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidArgument
from surrogate import top_fits as command
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.models.model import ForestSettings, fit_surrogate, top_weights
from surrogate.top_fits import FITS, compare_fits, read_fits
from tests.surrogate.landscape import measurements, split_of, write_folder

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)
QUICK = ForestSettings(n_trees=8, max_depth=3)


def truth(measured: Measurements) -> Mapping[int, float]:
    rows = assemble("valid_acc", measurements(10, noise=0.0))
    last = rows.epoch == measured.task.max_epoch
    return dict(zip(rows.config_id[last].tolist(), rows.y[last].tolist(), strict=True))


def test_a_better_fit_is_chosen_and_no_test_config_is_read() -> None:
    known, seen = truth(MEASURED), set()

    def right(train: Rows, out: Rows, *_: object) -> np.ndarray:
        seen.update(train.config_id.tolist(), out.config_id.tolist())
        return np.array([known[one] for one in out.config_id.tolist()])

    found = compare_fits(MEASURED, SPLIT, settings=QUICK, fits={"present": FITS["present"], "right": right})
    assert found["chosen"] == "right"
    assert found["verdict"] == "“right” is chosen"
    assert [row[0] for row in found["rows"]] == ["present", "right", "chosen on the other folds"]
    assert found["rows"][1][1:] == found["rows"][2][1:]
    test = by_part(assemble("valid_acc", MEASURED), SPLIT)["test"]
    assert not seen & set(test.config_id.tolist())


def test_a_gain_at_the_top_that_costs_the_whole_space_is_not_chosen() -> None:
    known = truth(MEASURED)
    middle = float(np.median(list(known.values())))

    def top_alone(_: Rows, out: Rows, *__: object) -> np.ndarray:
        values = np.array([known[one] for one in out.config_id.tolist()])
        return np.where(values > middle, values, 50.0)

    found = compare_fits(MEASURED, SPLIT, settings=QUICK, fits={"present": FITS["present"], "top": top_alone})
    assert found["rows"][1][-1] == "no"
    assert (found["chosen"], found["verdict"]) == ("present", "no fit is clearly better at the top")


@pytest.mark.parametrize("name", list(FITS))
def test_every_fit_predicts_within_the_bounds(name: str) -> None:
    parts = by_part(assemble("valid_acc", MEASURED), SPLIT)
    predicted = FITS[name](parts["train"], parts["valid"], MEASURED, QUICK)
    assert predicted.shape == parts["valid"].y.shape
    assert (predicted >= 0).all()
    assert (predicted <= 100).all()


def test_the_command_writes_what_is_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = write_folder(tmp_path / "runs", MEASURED)
    monkeypatch.setattr(command, "_SETTINGS", QUICK)
    arguments = [str(runs), "--split", str(runs / "split.json"), "--out", str(tmp_path / "fits.json")]
    assert command.main(arguments) == 0
    shown = capsys.readouterr().out
    found = read_fits(tmp_path / "fits.json")
    assert "| present |" in shown
    assert found["verdict"] in shown
    assert len(found["rows"]) == len(FITS) + 1


def test_weights_rise_towards_the_best_of_each_epoch() -> None:
    rows = by_part(assemble("valid_acc", MEASURED), SPLIT)["train"]
    weights = top_weights(rows, 4.0)
    for epoch in np.unique(rows.epoch).tolist():
        is_in = rows.epoch == epoch
        order = np.argsort(rows.y[is_in])
        assert (np.diff(weights[is_in][order]) >= 0).all()
        assert 1 <= weights[is_in].min() < 1.01
        assert 4.9 < weights[is_in].max() <= 5


def test_without_a_weight_a_fit_has_the_bytes_it_had() -> None:
    rows = by_part(assemble("valid_acc", MEASURED), SPLIT)["train"]
    plain, weighted = (
        bytes(fit_surrogate("valid_acc", rows, MEASURED.task, settings=settings).booster.save_raw("ubj"))
        for settings in (QUICK, replace(QUICK, top_weight=4.0))
    )
    import xgboost

    assert plain != weighted
    assert ForestSettings.from_dict({"n_trees": 8, "max_depth": 3}) == QUICK
    assert len(xgboost.Booster(model_file=bytearray(weighted)).get_dump()) == 8


@pytest.mark.parametrize("value", [-1.0, 101, True, "4"])
def test_a_weight_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"top_weight=.* must be a number in \[0, 100\]"):
        ForestSettings(top_weight=value)  # type: ignore[arg-type]
