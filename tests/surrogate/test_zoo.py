"""Model families: each learns a small landscape, the test part chooses nothing, and what is done is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch, UnknownName
from jahs.files.sealed_json import sealed_text
from jahs.spaces.cell import EDGES
from splits.split import write_split
from surrogate import zoo
from surrogate.data.measurements import read_of_split
from surrogate.data.rows import assemble, by_part
from surrogate.models.gin import MARGIN, adjacency, hinge
from surrogate.models.search import Choice, Range, default_point
from surrogate.models.zoo import FAMILIES, METRIC, fit_family
from surrogate.zoo import best_families, read_zoo, score_families
from tests.surrogate.landscape import TASK, measurements, split_of, write_folder
from workshop.ranks import kendall_tau

MEASURED = measurements(10)
SPLIT = split_of(MEASURED)
ROWS = assemble(METRIC, MEASURED)
PARTS = by_part(ROWS.take(ROWS.epoch == TASK.max_epoch), SPLIT)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_learns_and_answers_alike_alone_and_together_and_again(name: str) -> None:
    point = default_point(FAMILIES[name].space)
    if name == "ngboost":
        point["n_estimators"] = 128
    first, again = (fit_family(name, point, PARTS["train"], PARTS["valid"], TASK) for _ in range(2))
    X = PARTS["test"].X
    answers = first(X)
    assert kendall_tau(PARTS["test"].y, answers) > 0.3
    assert ((answers >= 0) & (answers <= 100)).all()
    np.testing.assert_array_equal(again(X), answers)
    np.testing.assert_allclose([first(X[[i]])[0] for i in range(5)], answers[:5], rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_default_of_every_setting_is_one_that_a_search_may_choose(name: str) -> None:
    space = FAMILIES[name].space
    for key, value in default_point(space).items():
        part = space[key]
        assert value in part.values if isinstance(part, Choice) else part.lower <= value <= part.upper
        assert not isinstance(part, Range) or isinstance(value, int) == part.is_integer


def test_a_setting_that_overflows_has_no_answers_and_ends_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn import svm

    def overflow(*_: object) -> None:
        raise ValueError("The dual coefficients or intercepts are not finite")

    monkeypatch.setattr(svm.SVR, "fit", overflow)
    point = default_point(FAMILIES["svr"].space)
    assert np.isnan(fit_family("svr", point, PARTS["train"], PARTS["valid"], TASK)(PARTS["valid"].X)).all()


def test_an_operation_reads_those_that_end_where_it_begins() -> None:
    reads = adjacency(undirected=False, self_loops=False)
    for k, (begin, end) in enumerate(EDGES, start=1):
        assert reads[k, 0] == (begin == 1)
        assert reads[-1, k] == (end == 4)
        assert [e for e, (_, target) in enumerate(EDGES, start=1) if reads[k, e]] == [
            e for e, (_, target) in enumerate(EDGES, start=1) if target == begin
        ]
    both = adjacency(undirected=True, self_loops=True)
    np.testing.assert_array_equal(both, both.T)
    assert (np.diag(both) == 1).all()


def test_the_hinge_is_zero_where_every_pair_is_in_order_and_a_margin_apart() -> None:
    measured = torch.tensor([1.0, 2.0, 3.0])
    assert hinge(MARGIN * measured, measured).item() == pytest.approx(0.0, abs=1e-6)
    # Of three pairs, neighbours lack twice the margin and the ends thrice.
    assert hinge(-MARGIN * measured, measured).item() == pytest.approx(MARGIN * (2 + 2 + 3) / 3)
    assert hinge(measured, torch.ones(3)).item() == 0.0


def test_what_is_done_is_kept_and_the_test_part_chooses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(folder, name, parts, measured, of_data, *, evaluations):  # type: ignore[no-untyped-def]
        point = default_point(FAMILIES[name].space)
        if name == "random_forest":
            point["n_estimators"] = 16  # it is fitted 22 times, and answers 20 single configs after each fit
        return point, [{"number": 0, "point": point, "tau": 0.5}]

    monkeypatch.setattr(zoo, "_search", search)
    families = ("random_forest", "svr", "nu_svr")
    how = {"searches": tmp_path, "families": families, "evaluations": 1}
    results = score_families(MEASURED, SPLIT, tmp_path / "zoo.json", **how)
    assert set(results["ensembles"]) == set(families)
    assert read_zoo(tmp_path / "zoo.json") | {"format": None} == results | {"format": None}
    monkeypatch.setattr(zoo, "_search", None)  # nothing is left to be searched
    assert score_families(MEASURED, SPLIT, tmp_path / "zoo.json", **how) == results

    # Other test measurements change no answer and no choice, only what the answers are compared with.
    is_test = np.isin(MEASURED.runs["config_id"], SPLIT.config_ids[SPLIT.parts == 2])
    runs = {**MEASURED.runs, METRIC: np.where(is_test, 50.0, MEASURED.runs[METRIC]).astype(np.float32)}
    monkeypatch.setattr(zoo, "_search", search)
    other = score_families(replace(MEASURED, runs=runs), SPLIT, tmp_path / "other.json", **how)
    assert other["parts"]["test"]["measured"] != results["parts"]["test"]["measured"]
    for name in families:
        assert other["families"][name]["predicted"] == results["families"][name]["predicted"]
        assert other["families"][name]["tau"] == results["families"][name]["tau"]
    assert best_families(other) == best_families(results)


def test_a_family_whose_tau_is_undefined_comes_last():
    taus = {"constant": None, "bad": -0.5, "good": 0.5}
    assert best_families({"families": {name: {"tau": tau} for name, tau in taus.items()}}) == [
        "good",
        "bad",
        "constant",
    ]


@pytest.mark.slow
def test_a_search_goes_on_where_it_ended(tmp_path: Path) -> None:
    of_data = {"task": TASK.name, "protocol": "p", "split": "s", "features": 1}
    for n in (1, 3):
        point, tried = zoo._search(tmp_path, "random_forest", PARTS, MEASURED, of_data, evaluations=n)
        assert [record["number"] for record in tried] == list(range(n + 1))
    assert max(record["tau"] for record in tried) == next(record["tau"] for record in tried if record["point"] == point)


def test_what_cannot_be_fitted_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="family='knn' does not exist"):
        score_families(MEASURED, SPLIT, tmp_path / "zoo.json", searches=tmp_path, families=["knn"])
    only_train = replace(SPLIT, parts=np.zeros_like(SPLIT.parts))
    with pytest.raises(InvalidArgument, match=r"(?s)the valid part has no rows.*the test part.*evaluations=0"):
        score_families(MEASURED, only_train, tmp_path / "zoo.json", searches=tmp_path, evaluations=0)
    (tmp_path / "other.json").write_text(sealed_text({"families": []}), encoding="utf-8")
    with pytest.raises(CorruptFile, match="holds no families"):
        read_zoo(tmp_path / "other.json")


def test_what_was_recorded_after_the_split_is_left_out(tmp_path: Path) -> None:
    runs = write_folder(tmp_path / "runs", MEASURED)
    some = replace(SPLIT, config_ids=SPLIT.config_ids[:100], parts=SPLIT.parts[:100])
    write_split(tmp_path / "some.json", some)
    measured, _ = read_of_split(runs, tmp_path / "some.json")
    assert set(measured.runs["config_id"].tolist()) == set(some.config_ids.tolist())
    write_split(tmp_path / "other.json", replace(some, protocol="fedcba9876543210"))
    with pytest.raises(ProtocolMismatch, match=r"other\.json has protocol fedcba9876543210"):
        read_of_split(runs, tmp_path / "other.json")
