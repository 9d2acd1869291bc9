"""Results that come with the package: anyone's log is compared with them in one command, within one season."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import jahs
from experiments.report.results import read_results
from experiments.report.shipping import ship, write_shipped
from jahs.cli import main
from jahs.comparison import compare as compare_module
from jahs.comparison.compare import compare
from jahs.comparison.shipped import SEASONS, read_shipped
from jahs.comparison.standings import pairs_of, standings_of
from jahs.comparison.terms import STUDIES, terms
from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.optimizers import make
from jahs.release import EMBEDDED
from jahs.simulate import Simulation, read_log
from tests.experiments.conftest import TASK, run_study

SEEDS = 3


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


@pytest.fixture
def shipped(season, tmp_path, monkeypatch):
    """Results of the release of these tests, where those of the package would be."""
    path = Path(shutil.copy(season, tmp_path))
    monkeypatch.setattr(compare_module, "read_shipped", lambda *args: read_shipped(*args, folder=path.parent))
    return path


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


def test_rounding_loses_nothing_that_is_shown(shipped, tmp_path):
    release = json.loads(shipped.read_text())["release"]
    shipped_results = read_shipped("baselines", TASK, [release], folder=shipped.parent)
    again = write_shipped(shipped_results, tmp_path / "again")
    assert again.read_bytes() == shipped.read_bytes()
