"""Results that come with the package: anyone's log is compared with them in one command, within one season."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import jahs
from experiments.folder import read_folder
from experiments.report import results as results_module
from experiments.report.results import read_results
from experiments.report.shipping import ship, write_shipped
from jahs.cli import main
from jahs.comparison import compare as compare_module
from jahs.comparison.compare import compare
from jahs.comparison.shipped import SEASONS, choose_shown, read_shipped
from jahs.comparison.standings import pairs_of, standings_of
from jahs.comparison.terms import SAME_TERMS, STUDIES, terms
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch, UnknownName
from jahs.optimizers import make
from jahs.release import EMBEDDED
from jahs.simulate import Simulation, read_log
from tests.experiments.conftest import TASK, run_study

SEEDS = 3
PACKS = Path(__file__).parents[2] / "data/studies"


@pytest.fixture(scope="module")
def release(release_with_refits):
    return release_with_refits


@pytest.fixture(scope="module")
def study(release, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "baselines"
    assert run_study("baselines", out, release, arms=["random_search", "asha", "hyperband-eta-4.0"], seeds=SEEDS) == 0
    return out


@pytest.fixture(scope="module")
def season(study, release, tmp_path_factory):
    results = read_results(study, bench={TASK: jahs.Benchmark(TASK, release=release)})
    (path,) = ship(results, tmp_path_factory.mktemp("seasons"))
    return path


@pytest.fixture(scope="module")
def strong_season(release, tmp_path_factory):
    """Results of a study under the same terms, with fewer seeds and an optimiser that `baselines` has as well."""
    out = tmp_path_factory.mktemp("study") / "strong"
    assert run_study("strong", out, release, arms=["random_search", "differential_evolution"], seeds=SEEDS - 1) == 0
    results = read_results(out, bench={TASK: jahs.Benchmark(TASK, release=release)})
    (path,) = ship(results, tmp_path_factory.mktemp("seasons"))
    return path


@pytest.fixture
def shipped(season, tmp_path, monkeypatch):
    """Results of the release of these tests, where those of the package would be."""
    path = Path(shutil.copy(season, tmp_path))
    monkeypatch.setattr(compare_module, "read_shipped", lambda *args: read_shipped(*args, folder=path.parent))
    return path


@pytest.fixture
def both(shipped, strong_season):
    """The same, with results of a study under the same terms; return the file of the latter."""
    return Path(shutil.copy(strong_season, shipped.parent))


def write_logs(folder, release, *, name="local_search", seeds=(0, 1), **settings):
    own = terms("baselines", release=release)
    folder.mkdir()
    for seed in seeds:
        log = folder / f"{seed}.jsonl"
        simulation = own.simulation(seed, log=log)
        if settings:
            given = {"budget": own.budget_s, "seed": seed, "evaluation_seed": seed, "log": log, **settings}
            simulation = Simulation(own.view, **given)
        simulation.run(make(name, own.view, seed=seed))
    return folder


def test_what_is_shipped_are_the_results_of_the_usual_arms(study, release, shipped):
    found = read_shipped("baselines", TASK, [terms("baselines", release=release).release], folder=shipped.parent)
    assert found.season == f"{TASK}-test"
    assert {name: sorted(runs) for name, runs in found.rollouts.items()} == {
        "random_search": [0, 1, 2],
        "asha": [0, 1, 2],
    }
    compared = compare(
        study / TASK / "asha",
        study / TASK / "random_search",
        out=study / "compared",
        release=release,
        against=(),
        study="baselines",
        seeds=SEEDS,
    )
    own = terms("baselines", release=release)
    wanted = {each.name: each for each in compared.standings}
    for each in standings_of(found.rollouts, own, pairs_of(found.rollouts)):
        other = wanted[each.name]
        assert each.result == pytest.approx(other.result, abs=1e-3)
        assert each.test_error == pytest.approx(other.test_error, abs=1e-3)
        assert each.refit_error == pytest.approx(other.refit_error, abs=1e-3)
        assert each.area == pytest.approx(other.area, abs=1e-2)
        assert (each.rank, each.p_holm, each.superiority) == pytest.approx(
            (other.rank, other.p_holm, other.superiority), nan_ok=True
        )


def test_one_command_puts_a_log_beside_the_shipped_results_and_runs_nothing(
    shipped, release, tmp_path, capsys, monkeypatch
):
    logs = write_logs(tmp_path / "mine", release)
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(logs / "0.jsonl"), str(logs / "1.jsonl"), "--release", str(release)]) == 0
    printed = capsys.readouterr().out
    assert {line.split()[1] for line in printed.splitlines()[1:4]} == {"local_search", "random_search", "asha"}
    assert not list((tmp_path / "compared").rglob("*.jsonl"))
    report, page = ((tmp_path / "compared" / name).read_text() for name in ("report.md", "index.html"))
    assert f"season {TASK}-test" in report
    assert "<svg" in page
    assert "p (Holm)" in report
    pairs = [line for line in report.splitlines() if line.startswith("| local_search | ")]
    assert {line.split(" | ")[1] for line in pairs} == {"random_search", "asha"}
    content = json.loads((tmp_path / "compared" / "leaderboard.json").read_text())
    assert [line["name"] for line in content["boards"][0]["lines"]] == ["local_search"]


def read_both(folder, release):
    return read_shipped("baselines", TASK, [terms("baselines", release=release).release], folder=folder)


def test_results_of_a_study_under_the_same_terms_are_shown_too(both, release, tmp_path):
    assert list(json.loads(both.read_text())["optimizers"]) == ["differential_evolution"]  # `baselines` has the other
    found = read_both(both.parent, release)
    assert {name: sorted(runs) for name, runs in found.rollouts.items()} == {
        "random_search": [0, 1, 2],
        "asha": [0, 1, 2],
        "differential_evolution": [0, 1],
    }
    logs = write_logs(tmp_path / "mine", release, seeds=(0, 1, 2))
    comparison = compare(logs, out=tmp_path / "out", release=release)
    seeds = {each.name: each.seeds for each in comparison.standings}
    assert seeds["differential_evolution"] == (0, 1)
    assert seeds["local_search"] == seeds["random_search"] == (0, 1, 2)
    report = (tmp_path / "out" / "report.md").read_text()
    assert "Ranks are over the seeds that all optimisers have (2)." in report
    pairs = [line.strip("| ").split(" | ") for line in report.splitlines() if line.startswith("| local_search | ")]
    assert {(pair[1], pair[-1]) for pair in pairs} == {
        *(("random_search", "3"), ("asha", "3"), ("differential_evolution", "2")),
    }


def test_results_under_the_same_terms_but_of_another_season_or_release_are_left_out(both, release):
    strong = read_shipped("strong", TASK, [terms("baselines", release=release).release], folder=both.parent)
    for other in (replace(strong, season="another-1.0.0"), replace(strong, release="0" * 64)):
        write_shipped(other, both.parent)
        assert sorted(read_both(both.parent, release).rollouts) == ["asha", "random_search"]


def test_results_can_be_chosen_and_random_search_is_always_among_them(both, release, tmp_path):
    logs = write_logs(tmp_path / "mine", release)
    comparison = compare(logs, out=tmp_path / "out", release=release, beside=["differential_evolution"])
    assert {each.name for each in comparison.standings} == {"local_search", "random_search", "differential_evolution"}
    out = tmp_path / "command"
    command = ["compare", str(logs), "--out", str(out), "--release", str(release), "--beside", "asha,random_search"]
    assert main(command) == 0
    content = json.loads((out / "leaderboard.json").read_text())
    assert {each["name"] for each in content["standings"]} == {"local_search", "random_search", "asha"}


@pytest.mark.parametrize(
    ("given", "fault", "message"),
    [
        ({"beside": ["bohb"]}, UnknownName, r"beside='bohb' does not exist; .*differential_evolution"),
        ({"beside": "asha"}, InvalidArgument, r"beside='asha' is not a list of names; for one give \['asha'\]"),
        ({"beside": ["asha"], "against": ["asha"]}, InvalidArgument, "against runs baselines, and beside shows"),
        ({"beside": ["asha"], "study": "joint"}, MissingData, f"no results of joint on {TASK} for release .*--against"),
    ],
)
def test_a_wrong_choice_of_results_is_refused_before_anything_is_written(
    both, release, tmp_path, given, fault, message
):
    with pytest.raises(fault, match=message):
        compare(write_logs(tmp_path / "mine", release), out=tmp_path / "out", release=release, **given)
    assert not (tmp_path / "out").exists()


def test_an_own_optimiser_with_the_name_of_a_baseline_is_run(shipped, release, tmp_path):
    mine = tmp_path / "mine.py"
    searched = 'jahs.space(fixed={"N": 5, "W": 16, "Resolution": 1.0})'
    mine.write_text(f"import jahs\n\n\ndef asha(trials):\n    return {searched}.sample(seed=len(trials))\n")
    compare(f"{mine}:asha", out=tmp_path / "out", release=release, seeds=1)
    (log,) = (tmp_path / "out" / "logs").rglob("*.jsonl")
    assert read_log(log).header["code"] == sha256(mine.read_bytes()).hexdigest()


def test_an_optimiser_of_the_same_name_is_told_apart(shipped, release, tmp_path):
    comparison = compare(write_logs(tmp_path / "mine", release, name="asha"), out=tmp_path / "out", release=release)
    names = {each.name for each in comparison.standings}
    assert names == {"asha", "asha (yours)", "random_search"}
    by_name = {each.name: each for each in comparison.standings}
    finals = [dict.fromkeys(each.seeds, each.curve[-1][1]) for each in (by_name["asha"], by_name["asha (yours)"])]
    assert set(finals[0]) == {0, 1}
    assert set(finals[1]) == {0, 1}


def test_a_log_of_other_terms_or_of_another_season_is_one_clear_error(shipped, release, tmp_path):
    logs = write_logs(tmp_path / "wide", release, workers=3)
    with pytest.raises(ProtocolMismatch, match=r"no log has the terms of baselines on .*workers=3 \(season: 1\)"):
        compare(logs, out=tmp_path / "out", release=release)
    if not (SEASONS / f"baselines-{TASK}.json").exists():
        pytest.skip("no results of this task are shipped")
    mine = write_logs(tmp_path / "mine", release)
    with pytest.raises(ProtocolMismatch, match=r"has no valid log; .*but the pinned release is"):
        compare(mine, out=tmp_path / "out")


def test_results_of_another_release_do_not_count_and_a_damaged_file_is_refused(shipped):
    assert read_shipped("baselines", TASK, ["0" * 64], folder=shipped.parent) is None
    assert read_shipped("joint", TASK, ["0" * 64], folder=shipped.parent) is None
    text = shipped.read_text()
    shipped.write_text(text.replace("0.", "1.", 1))
    with pytest.raises(CorruptFile, match="damaged or edited"):
        read_shipped("baselines", TASK, [json.loads(text)["release"]], folder=shipped.parent)


def test_what_is_shipped_with_the_package_is_of_the_embedded_releases():
    files = sorted(SEASONS.glob("*.json"))
    assert files
    for path in files:
        study, _, task = path.stem.partition("-")
        study = SAME_TERMS.get(study, study)
        assert study in STUDIES
        own = terms(study, task=task)
        found = read_shipped(study, task, [EMBEDDED[task]])
        assert found is not None, f"{path.name} is of another season: python -m experiments.report STUDY --ship"
        assert "random_search" in found.rollouts
        for runs in found.rollouts.values():
            assert sorted(runs) == list(range(len(runs)))
            for run_ in runs.values():
                assert np.all(np.diff(run_.steps.times) > 0)
                assert run_.steps.times[-1] <= 1
        best = min(standings_of(found.rollouts, own, pairs_of(found.rollouts)), key=lambda each: each.result)
        assert 0 < best.result < 60
    seasons = {(path.stem.partition("-")[0], json.loads(path.read_text())["season"]) for path in files}
    assert len(seasons) == len({study for study, _ in seasons}), "a study's results are of one season"


def test_optimisers_with_a_prior_are_shown_only_when_they_are_named():
    shipped = read_shipped("baselines", "cifar10_mini", [EMBEDDED["cifar10_mini"]])
    priors = {"neps_priorband-good", "neps_priorband-medium", "neps_priorband-bad"}
    shown = choose_shown(shipped, None).rollouts
    assert set(shipped.rollouts) - set(shown) == priors
    assert {"dehb", "syne_tune_bohb", "optuna_tpe", "hyperband", "random_search"} < set(shown)
    chosen = choose_shown(shipped, ["neps_priorband-bad", "dehb"])
    assert list(chosen.rollouts) == ["random_search", "neps_priorband-bad", "dehb"]


@pytest.mark.parametrize(("study", "other"), SAME_TERMS.items())
def test_studies_under_the_same_terms_ran_under_the_same_terms(study, other):
    for path in SEASONS.glob(f"{study}-*.json"):
        folders = [read_folder(PACKS / json.loads(path.read_text())["season"] / name) for name in (study, other)]
        one, two = (folder.study for folder in folders)
        assert (one.n_evaluations, one.noise, one.workers) == (two.n_evaluations, two.noise, two.workers)
        assert folders[0].tasks == folders[1].tasks  # releases and budgets
        for task, facts in folders[0].tasks.items():
            assert facts.budget_s == terms(other, task=task).budget_s


@pytest.mark.slow
def test_what_is_shipped_of_the_strong_optimisers_are_the_results_of_their_pack(tmp_path, monkeypatch):
    paths = sorted(SEASONS.glob("strong-*.json"))
    (season,) = {json.loads(path.read_text())["season"] for path in paths}
    read_pack = results_module.read_pack

    def read_without_refits(path):  # whose logs do not ship
        return (log for log in read_pack(path) if log.repetition.refit is None)

    monkeypatch.setattr(results_module, "read_pack", read_without_refits)
    tasks = [path.stem.removeprefix("strong-") for path in paths]
    results = read_results(PACKS / season / "strong", bench={task: jahs.Benchmark(task) for task in tasks})
    written = ship(results, tmp_path)
    assert {path.name: path.read_bytes() for path in written} == {path.name: path.read_bytes() for path in paths}


def test_rounding_loses_nothing_that_is_shown(shipped, tmp_path):
    release = json.loads(shipped.read_text())["release"]
    shipped_results = read_shipped("baselines", TASK, [release], folder=shipped.parent)
    again = write_shipped(shipped_results, tmp_path / "again")
    assert again.read_bytes() == shipped.read_bytes()
