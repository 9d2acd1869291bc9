"""Studies on the refits of a release: who answers, what is reported, and how variances are attributed."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

import experiments.studies
import jahs
from experiments.analysis.critical_differences import compare_groups, crossed_variances
from experiments.report import refits as refits_module
from experiments.report.__main__ import main as report
from experiments.report.comparison import compared, finals
from experiments.report.refits import cross_scored, cross_scored_blocks, kept_pairs, variance_shares
from experiments.report.results import read_results
from experiments.views import open_view
from jahs.errors import CorruptFile
from jahs.optimizers import expert_prior
from jahs.simulate import read_log
from tests.experiments.conftest import N_REFITS, TASK, run_study, short_study
from workshop.pages.document import Table

SEEDS = 6


@pytest.fixture(scope="module")
def release(release_with_refits):
    return release_with_refits


@pytest.fixture(scope="module")
def study(release, tmp_path_factory):
    """Six seeds of two arms, on the release and on both refits."""
    folder = tmp_path_factory.mktemp("study")
    return short_study("baselines", folder, release, arms=["random_search", "evolution"], seeds=SEEDS)


def test_a_repetition_on_a_refit_is_answered_by_it(study, release):
    paths = sorted(path.relative_to(study).as_posix() for path in study.rglob("refit-*/*.jsonl"))
    assert len(paths) == 2 * N_REFITS * SEEDS
    for refit in range(N_REFITS):
        log = read_log(study / TASK / "random_search" / f"refit-{refit}" / "seed-0003.jsonl")
        assert log.header["refit"] == refit
        bench = jahs.Benchmark(TASK, release=release, refit=refit)
        trial = log.trials[0]
        assert bench.query(trial.config, seed=3).valid_acc == trial.metrics["valid_acc"]
        assert jahs.Benchmark(TASK, release=release).query(trial.config, seed=3).valid_acc != trial.metrics["valid_acc"]


def test_a_prior_is_that_of_the_release_also_on_its_refits(release, tmp_path, monkeypatch):
    pytest.importorskip("neps")
    short = dataclasses.replace(experiments.studies.STUDIES["strong"], n_evaluations=1, n_refit_seeds=1)
    monkeypatch.setattr(experiments.studies, "STUDIES", {"strong": short})
    out = tmp_path / "strong"
    assert run_study("strong", out, release, arms=["*-good"], seeds=1) == 0
    logs = [read_log(path) for path in out.rglob("*.jsonl")]
    assert len(logs) == 1 + N_REFITS
    view = open_view(jahs.Benchmark(TASK, release=release), short.arms[0].view, seed=0)
    prior = expert_prior(view, "good")
    assert [log.header["optimizer_settings"]["prior"] for log in logs] == [prior] * len(logs)


def test_incumbents_are_chosen_by_draws_and_reported_by_means(study, release):
    bench = {TASK: jahs.Benchmark(TASK, release=release)}
    results = read_results(study, bench=bench)
    for (task, _), found in [*results.by_arm.items(), *results.on_refits.items()]:
        assert {each.repetition.refit for each in found} in ({None}, set(range(N_REFITS)))
        for each in found:
            own = jahs.Benchmark(task, release=release, refit=each.repetition.refit)
            answered = own.query_many(list(each.configs), metrics=["valid_acc"])["valid_acc"]
            np.testing.assert_allclose(each.incumbents.values, 100 - answered)
            drawn = own.query(each.configs[-1], seed=each.repetition.seed).valid_acc
            assert each.observed == pytest.approx(100 - drawn)


def test_the_page_says_what_holds_on_refits(study, release):
    assert report([str(study), "--release", str(release), "--workers", "1"]) == 0
    tables = json.loads((study / "report" / "tables.json").read_text(encoding="utf-8"))["tables"]
    table, by_arm = [table for table in tables if table["section"] == "Does it hold on refits?"]
    for *_, arm, refits, seeds, rest in by_arm["rows"]:
        assert arm
        assert 99 <= sum(map(float, (refits, seeds, rest))) <= 101
    (row,) = table["rows"]
    cells = dict(zip(table["columns"], row, strict=True))
    assert cells["refits × seeds"] == f"{N_REFITS} × {SEEDS}"
    assert cells["pairs"] == "1"
    assert int(cells["hold on refits"]) <= int(cells["significant pairs"]) <= 1
    assert re.fullmatch(
        r"\d+ to \d+ \((random search|non-regularized evolution)\)", cells["variance between refits (%)"]
    )
    assert re.fullmatch(r"\d+ to \d+", cells["variance between seeds (%)"])
    assert re.fullmatch(r"\d+ to \d+", cells["rest of the variance (%)"])


def test_the_page_scores_incumbents_by_the_refits(study, release):
    results = read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    table, *_, arms = (block for block in cross_scored_blocks(results) if isinstance(block, Table))
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert int(cells["same sign, significant"]) <= int(cells["same sign"]) <= int(cells["pairs that differ"]) <= 1
    refits = [jahs.Benchmark(TASK, release=release, refit=refit) for refit in range(N_REFITS)]
    for row in arms.rows:
        (arm,) = (arm for arm in results.arms if arm.title == row[2])
        last = [result.configs[-1] for result in results.by_arm[TASK, arm.name]]
        answers = [[refit.query(config).valid_acc for config in last] for refit in refits]
        assert float(row[4]) == pytest.approx(100 - np.mean(answers), abs=0.006)
    assert [float(row[4]) for row in arms.rows] == sorted(float(row[4]) for row in arms.rows)
    plain = dataclasses.replace(results, bench={})
    assert list(cross_scored_blocks(plain)) == []


def test_pairs_are_kept_or_reversed_by_other_models():
    """One arm is best by the models that it searched. It stays so, is as good as the other, or is worse."""
    rng = np.random.default_rng(0)
    errors = [np.stack([rng.normal(0, 1, 20), rng.normal(gap, 1, 20)]) for gap in (9, 9, -9)]
    errors.append(np.stack([errors[0][0], errors[0][0]]))
    found, same, worse, equal = (compare_groups([(values, None)])[0] for values in errors)
    assert kept_pairs(found, found) == kept_pairs(found, same) == (1, 1, 1, 0)
    assert kept_pairs(found, worse) == (1, 0, 0, 1)
    assert kept_pairs(found, equal) == (1, 0, 0, 0)
    assert kept_pairs(equal, found) == (0, 0, 0, 0)


def test_pairs_that_the_refits_do_not_confirm_are_named(study, release, monkeypatch):
    """By the refits, which are replaced here, each arm has the errors of the other, so every difference is reversed."""
    results = read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    errors = np.stack([np.arange(SEEDS) + 10.0, np.arange(SEEDS) + 90.0])
    group = cross_scored(results)[0][0]._replace(own=errors, crossed=errors[::-1])
    found, crossed = (compare_groups([(values, None)])[0] for values in (group.own, group.crossed))
    monkeypatch.setattr(refits_module, "cross_scored", lambda _: ((group._replace(tests=found), crossed),))
    first, lost, _ = (block for block in cross_scored_blocks(results) if isinstance(block, Table))
    assert first.rows[0][3:7] == ("1", "0", "0", "1")
    titles = tuple(arm.title for arm in group.arms)
    assert lost.rows == ((TASK, group.title, *titles, "-80.00", "+80.00", "other sign, significant"),)


def test_one_correction_is_over_all_chapters_and_differing_needs_the_refits(study, release):
    results = read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    arms = results.arms
    chapters = {"one": arms, "other": tuple(dataclasses.replace(arm, name=f"{arm.name}-2") for arm in arms)}
    declared = tuple(dataclasses.replace(arm, chapter=name) for name, of in chapters.items() for arm in of)
    by_arm = {(TASK, arm.name): results.by_arm[TASK, arm.name.removesuffix("-2")] for arm in declared}
    on_refits = {(TASK, arm.name): results.on_refits[TASK, arm.name.removesuffix("-2")] for arm in declared}
    both = dataclasses.replace(
        results,
        study=dataclasses.replace(results.study, arms=declared),
        arms=declared,
        by_arm=by_arm,
        on_refits=on_refits,
    )
    (alone,) = compared(results).values()
    comparisons = compared(both)
    assert [names for _, names in comparisons] == [
        tuple(arm.name for arm in declared[:2]),
        tuple(a.name for a in declared[2:]),
    ]
    for each in comparisons.values():
        assert (each.n_family, len(each.pairs)) == (2, 1)
        assert each.pairs[0].p == alone.pairs[0].p
        assert each.pairs[0].p_holm == pytest.approx(min(1, 2 * alone.pairs[0].p))
    of_release, of_refits = finals(results, TASK, arms)
    assert (of_release.shape, of_refits.shape) == ((2, SEEDS), (2, N_REFITS, SEEDS))
    assert alone.pairs[0].holds == compare_groups([(of_release, of_refits)])[0].pairs[0].holds
    assert alone.pairs[0].differs == (alone.pairs[0].p_holm < 0.05 and alone.pairs[0].holds >= 0.95)


def test_refits_are_paired_with_their_own_seeds_where_a_seed_is_missing(study, release):
    results = read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    key = (TASK, results.arms[0].name)
    without = [each for each in results.by_arm[key] if each.repetition.seed != 0]
    fewer = dataclasses.replace(results, by_arm={**results.by_arm, key: tuple(without)})
    (whole, on_refits), (rest, of_rest) = (finals(each, TASK, results.arms) for each in (results, fewer))
    np.testing.assert_array_equal(rest, whole[:, 1:])
    np.testing.assert_array_equal(of_rest, on_refits[:, :, 1:])


@pytest.mark.usefixtures("undrawn")
def test_with_one_seed_on_refits_the_page_does_not_estimate_what_holds(study, release, tmp_path):
    one = shutil.copytree(study, tmp_path / "one", ignore=shutil.ignore_patterns("report"))
    for log in one.rglob("refit-*/seed-*.jsonl"):
        if log.stem != "seed-0000":
            log.unlink()
    assert report([str(one), "--release", str(release), "--workers", "1", "--docs"]) == 0
    text = (one / "report" / "report.md").read_text(encoding="utf-8")
    assert "With one seed on each refit, a change of sign may be chance" in text


def test_a_log_of_another_refit_is_refused(study, release, tmp_path):
    arm = study / TASK / "random_search"
    log = arm / "refit-0" / "seed-0000.jsonl"
    kept = log.read_bytes()
    log.write_bytes((arm / "refit-1" / "seed-0000.jsonl").read_bytes())
    try:
        with pytest.raises(CorruptFile, match="refit=1 instead of 0"):
            read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    finally:
        log.write_bytes(kept)


def test_shares_are_those_of_the_crossed_variances_and_values_that_do_not_vary_have_none():
    values = np.arange(8.0)[:, None] + 2 * np.arange(4) + np.eye(8, 4)
    assert variance_shares(values) == pytest.approx(
        np.divide(crossed_variances(values), sum(crossed_variances(values)))
    )
    assert np.isnan(variance_shares(np.ones((3, 3)))).all()
    assert np.isnan(variance_shares(np.ones((1, 3)))).all()
