"""The command of the studies: every page names its finding first, and comes again byte for byte."""

import pytest

from experiments.science import __main__ as science
from experiments.science import bootstrap, encodings, hyperparameters, optimum, subjects
from experiments.science.subjects import open_subject
from jahs.spaces.cell import all_ops
from jahs.spaces.parameters import LARGEST
from tests.experiments.conftest import TASK, page_written_twice
from workshop import repeats
from workshop.pages.markdown import to_markdown
from workshop.resampling import bootstrap_estimates


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Fewer cells, settings and resamples: the laws do not need them."""
    monkeypatch.setattr(hyperparameters, "N_CELLS", 24)
    monkeypatch.setattr(hyperparameters, "N_FLOATS", 2)
    monkeypatch.setattr(optimum, "N_FLOATS", 2)
    for page in (hyperparameters, repeats):
        monkeypatch.setattr(page, "bootstrap_estimates", few_resamples)
    for page in (encodings, bootstrap):
        monkeypatch.setattr(page, "N_SEEDS", 3)
        monkeypatch.setattr(page, "N_TRIALS", 12)
    monkeypatch.setitem(encodings.SEARCHES, "SMAC", encodings.SEARCHES["local search"])  # SMAC takes minutes
    monkeypatch.setattr(optimum, "cells_to_ask", lambda *_: all_ops()[::500])


def few_resamples(score, n, *, level, n_resamples):
    return bootstrap_estimates(score, n, level=level, n_resamples=min(n_resamples, 20))


@pytest.mark.parametrize("study", sorted({*science.STUDIES} - {"parameter_free"}))  # which needs a split
def test_the_same_release_gives_the_same_page(study, release, release_with_refits, tmp_path):
    if study == "encodings":
        pytest.importorskip("optuna")
    folder = release if study == "repeats" else release_with_refits  # one has recorded runs, the other refits
    arguments = [study, "--task", TASK, "--release", str(folder), "--docs"]
    page = page_written_twice(science.main, arguments, tmp_path)["report.md"].decode()
    assert "<summary><strong>Caveat:</strong>" in page
    assert " nan" not in page


@pytest.mark.parametrize("study", ["cells", "hyperparameters"])
def test_figures_are_beside_those_of_the_second_family(study, release, release_with_refits, monkeypatch):
    for page in (subjects, hyperparameters):
        monkeypatch.setattr(page, "GROUP_VALUES", [LARGEST])
    for folder, n in ((release, 1), (release_with_refits, 0)):  # one has LightGBM's models
        page = to_markdown(science.STUDIES[study]([open_subject(TASK, folder)]), has_png=False)
        assert page.count("| quantity | task | XGBoost | LightGBM | same sign |") == n


def test_a_folder_of_data_that_is_not_there_is_refused(tmp_path, caplog):
    assert science.main(["repeats", "--data", str(tmp_path / "nowhere"), "--out", str(tmp_path / "page")]) == 2
    assert "nowhere does not exist or is not a folder" in caplog.text
    assert not (tmp_path / "page").exists()


def test_an_unknown_study_ends_with_those_that_exist(tmp_path, caplog):
    assert science.main(["hyperparameter", "--out", str(tmp_path / "page")]) == 2
    assert "hyperparameters" in caplog.text
    assert not (tmp_path / "page").exists()
