"""The study of noise: which training is the entry, and a page from a small folder of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jahs.errors import InvalidArgument
from surrogate import noise_study
from surrogate.data.rows import assemble, join_rows
from surrogate.noise_study import judge, repeated
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from tests.surrogate.landscape import PROTOCOL, TASK, arguments, measurements, write_folder
from tests.surrogate.test_release import write_params

MEASURED = measurements(10)


def test_an_entry_is_compared_with_the_mean_of_the_others() -> None:
    values = np.array([[80.0, 82.0, 84.0], [50.0, 50.0, 56.0]])
    answers = np.array([82.0, 53.0])
    judged = judge(values, answers, answers + 1, np.array([2.0, 2.0]), n_fitted=5, is_seen=False, image=0.1)
    np.testing.assert_allclose(judged.table[0], [3.0, 3.0])
    np.testing.assert_allclose(judged.surrogate[0], [1.0, 0.0])
    np.testing.assert_allclose(judged.ensemble[0], [0.0, 1.0])
    assert judged.is_better.tolist() == [True, False]
    # N(82, 2) from N(83, 2): (shift / sd)^2 / 2
    assert judged.divergence[0] == pytest.approx(0.125)


def test_a_config_counts_if_it_was_trained_three_times_to_the_end() -> None:
    rows = assemble("valid_acc", MEASURED)
    ids, values, seeds, judged = repeated(rows)
    assert values.shape == seeds.shape == (len(ids), 3)
    np.testing.assert_array_equal(judged.config_id, ids)
    for i, config_id in enumerate(ids.tolist()):
        trainings = rows.take((rows.config_id == config_id) & (rows.epoch == TASK.max_epoch))
        assert sorted(trainings.y.tolist()) == sorted(values[i].tolist())
    with pytest.raises(InvalidArgument, match="configs have 3 trainings"):
        repeated(rows.take(rows.seed == 0))


def test_a_training_that_diverged_is_no_entry() -> None:
    rows = assemble("valid_acc", MEASURED)
    first = repeated(rows)[0][0]
    extra = rows.take((rows.config_id == first) & (rows.seed == 2))
    rows = join_rows([rows, replace(extra, seed=extra.seed + 1)])
    rows = rows.take(np.lexsort((rows.epoch, rows.seed, rows.config_id)))
    is_late = (rows.config_id == first) & (rows.seed == 1) & (rows.epoch == TASK.max_epoch)
    assert repeated(rows.take(~is_late))[2][0].tolist() == [0, 2, 3]


def test_a_page_has_every_size_and_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(noise_study, "_SIZES", (60, 10**6))
    monkeypatch.setattr(noise_study, "N_REFITS", 2)
    runs = write_folder(tmp_path / "runs", MEASURED)
    noise = noise_model(TASK.name, max_epoch=TASK.max_epoch).to_dict()
    facts = {"protocol": PROTOCOL}
    release = make_release(tmp_path / "release", task=TASK.name, n_refits=2, noise=noise, facts=facts)
    more = ["--release", str(release), "--params", str(write_params(tmp_path / "tuned"))]
    assert noise_study.main([*arguments(runs, tmp_path / "page"), *more]) == 0
    page = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert "60 configs, others" in page
    assert page.count("these among them") == 2
    assert page.count(", against the mean of ") == 3
    assert "nan" not in page
    capsys.readouterr()
    monkeypatch.setattr(noise_study, "noise_study", lambda *_, **__: pytest.fail("it was computed before the refusal"))
    assert noise_study.main([*arguments(runs, tmp_path / "page" / "report.md"), *more]) == 2
    assert "report.md is not a folder; choose another folder" in capsys.readouterr().err
    other = ["--release", str(make_release(tmp_path / "other", task=TASK.name)), *more[2:]]
    assert noise_study.main([*arguments(runs, tmp_path / "page"), *other]) == 2
    assert "name a release of these runs" in capsys.readouterr().err
