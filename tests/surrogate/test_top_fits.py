"""Ways to fit are compared on configs that are neither fitted to nor in the test part, and a rule chooses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from surrogate import top_fits as command
from surrogate.data.measurements import Measurements
from surrogate.data.rows import Rows, assemble, by_part
from surrogate.models.boosting import ForestSettings
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

    found = compare_fits(MEASURED, SPLIT, settings=QUICK, fits={"forest": FITS["forest"], "right": right})
    assert found["chosen"] == "right"
    assert found["verdict"] == "“right” is chosen"
    assert [row[0] for row in found["rows"]] == ["forest", "right", "chosen on the other folds"]
    assert found["rows"][1][1:] == found["rows"][2][1:]
    test = by_part(assemble("valid_acc", MEASURED), SPLIT)["test"]
    assert not seen & set(test.config_id.tolist())


def test_what_answers_too_slowly_to_ship_is_shown_but_not_chosen() -> None:
    known = truth(MEASURED)

    def right(_: Rows, out: Rows, *__: object) -> np.ndarray:
        return np.array([known[one] for one in out.config_id.tolist()])

    found = compare_fits(MEASURED, SPLIT, settings=QUICK, fits={"forest": FITS["forest"], "teacher": right})
    assert (found["chosen"], found["rows"][1][-1]) == ("forest", "–")


def test_a_gain_at_the_top_that_costs_the_whole_space_is_not_chosen() -> None:
    known = truth(MEASURED)
    middle = float(np.median(list(known.values())))

    def top_alone(_: Rows, out: Rows, *__: object) -> np.ndarray:
        values = np.array([known[one] for one in out.config_id.tolist()])
        return np.where(values > middle, values, 50.0)

    found = compare_fits(MEASURED, SPLIT, settings=QUICK, fits={"forest": FITS["forest"], "top": top_alone})
    assert found["rows"][1][-1] == "no"
    assert (found["chosen"], found["verdict"]) == ("forest", "no fit is clearly better at the top")


@pytest.mark.parametrize("name", [name for name in FITS if name != "20,000 distilled"])
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
    monkeypatch.setattr(command, "FITS", {name: FITS[name] for name in ("forest", "teacher")})
    arguments = [str(runs), "--split", str(runs / "split.json"), "--out", str(tmp_path / "fits.json")]
    assert command.main(arguments) == 0
    shown = capsys.readouterr().out
    found = read_fits(tmp_path / "fits.json")
    assert "| forest |" in shown
    assert found["verdict"] in shown
    assert len(found["rows"]) == 3
