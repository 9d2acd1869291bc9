"""The page of all leaderboards: the results of all studies of a season, and of no other."""

import re
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

import jahs
from experiments.leaderboard import leaderboard_page, main, standings
from experiments.pack import pack
from experiments.packs import MANIFEST, read_manifest
from experiments.report.incumbents import BOARD_COLUMNS, board
from experiments.report.results import read_results
from experiments.retrain import Incumbent
from experiments.studies import STUDIES
from jahs.comparison.summaries import mean_interval
from jahs.files.sealed_json import sealed_text
from tests.experiments.conftest import TASK, page_written_twice, run_study, short_studies
from workshop.pages.document import Table, Text

SEEDS = 6
ARMS = {
    "fidelity": ["random_search", "hyperband-W", "hyperband-diagonal"],
    "multiobjective": ["random_search-latency", "random_search-full-size-epoch", "hyperband-full-size-W"],
}


@pytest.fixture(scope="module")
def packs(release, tmp_path_factory):
    """The packs of two studies."""
    folder = tmp_path_factory.mktemp("season")
    with short_studies(multiobjective=3):
        for name in ("fidelity", "multiobjective"):
            assert run_study(name, folder / name, release, arms=ARMS[name], seeds=SEEDS) == 0
            season = pack(folder / name, folder / "packs").parent
    return season


@pytest.fixture
def copy(packs, tmp_path):
    return shutil.copytree(packs, tmp_path / packs.name)


def page_of(packs, release):
    return leaderboard_page(packs, release=release, data=None)


def tables_of(document):
    return {
        section.title: [block for block in section.blocks if isinstance(block, Table)] for section in document.sections
    }


def test_the_same_packs_give_the_same_bytes(packs, release, tmp_path):
    files = page_written_twice(main, [str(packs), "--release", str(release), "--docs"], tmp_path)
    assert [*files] == ["report.md"]
    text = files["report.md"].decode()
    assert f"Season: {TASK}-test." in text
    assert "python -m experiments.leaderboard PACKS --out DIR" in text
    assert str(packs.parent) not in text
    assert "nan" not in re.split(r"\W+", text)


def test_packs_of_two_seasons_are_refused(copy, release, tmp_path, caplog):
    path = copy / "multiobjective" / MANIFEST
    said = read_manifest(path)
    said["study.json"]["tasks"][TASK]["release"] = "0" * 64
    path.write_text(sealed_text(said))
    assert main([str(copy), "--release", str(release), "--out", str(tmp_path / "page")]) == 2
    assert "cannot mix seasons" in caplog.text
    assert f"multiobjective: {TASK} is release 0000000000000000" in caplog.text
    assert not (tmp_path / "page").exists()


def test_packs_of_another_season_than_the_release_are_refused(packs, release, tmp_path, caplog):
    other = release.parent / "plain"
    assert main([str(packs), "--release", str(other), "--out", str(tmp_path / "page")]) == 2
    assert "a page does not mix seasons" in caplog.text


def test_a_folder_without_a_pack_of_a_board_is_one_clear_error(copy, release, tmp_path, caplog):
    (copy / "fidelity").rename(copy / "truth")
    shutil.rmtree(copy / "multiobjective")
    assert main([str(copy), "--release", str(release), "--out", str(tmp_path / "page")]) == 2
    assert "has no pack of joint, fidelity, multiobjective, baselines, strong, long, workers" in caplog.text


@pytest.mark.parametrize(("missing", "column"), [("fidelity", 2), ("multiobjective", 4)])
def test_a_page_without_the_pack_of_a_study_says_so(copy, release, missing, column):
    shutil.rmtree(copy / missing)
    document = page_of(copy, release)
    first = document.caveats[0]
    assert first.startswith("This page is partial: the season has no pack of `joint`, ")
    assert f"`{missing}`" in first
    tables = tables_of(document)
    assert STUDIES[missing].title not in tables
    (of_fidelities,) = tables["By fidelity"]
    assert {row[column] for row in of_fidelities.rows} == {"–"}
    assert all(row[6 - column] != "–" for row in of_fidelities.rows)


def test_no_caveat_says_that_a_whole_season_is_partial(packs, release, monkeypatch):
    whole = {name: STUDIES[name] for name in ("fidelity", "multiobjective", "truth")}
    monkeypatch.setattr("experiments.studies.STUDIES", whole)
    assert not any("partial" in caveat for caveat in page_of(packs, release).caveats)


def test_rows_are_by_fidelity_and_numbers_are_those_of_the_studies(packs, release):
    tables = tables_of(page_of(packs, release))
    (table,) = tables["By fidelity"]
    titles = [row[:2] for row in table.rows]
    together = "all together: epoch, N, W, Resolution"
    assert titles == [("black-box", "random search"), ("W", "Hyperband"), (together, "Hyperband")]
    (shares,) = tables[STUDIES["multiobjective"].title]
    at_full_size = {row[2]: row[3:] for row in shares.rows if "full size" in row[0]}
    assert at_full_size == {
        "random search, epochs": table.rows[0][4:],
        "Hyperband, W (channels)": table.rows[1][4:],
    }
    assert table.rows[2][4:] == ("–", "–")
    assert [row[0] for row in shares.rows].count("Accuracy and latency") == 1
    bench = {TASK: jahs.Benchmark(TASK, release=release)}
    results = read_results(packs / "fidelity", bench=bench)
    errors = np.array([result.incumbents.values[-1] for result in results.of(TASK, results.arms[0])])
    found = mean_interval(errors)
    value, low, high = map(float, re.findall(r"\d+\.\d+", table.rows[0][2]))
    assert [value, low, high] == pytest.approx([found.value, found.low, found.high], abs=0.05)
    assert table.rows[0][3] == table.rows[0][5] == str(SEEDS)
    (errors_table,) = tables[STUDIES["fidelity"].title]
    assert errors_table.rows == tuple(board(results, TASK).values())


def test_the_budgets_of_errors_and_shares_are_named(packs, release):
    texts = [
        block.text for section in page_of(packs, release).sections for block in section.blocks if type(block) is Text
    ]
    assert any(
        "runs of `fidelity` have a budget of 5 mean full evaluations, runs of `multiobjective` one of 3." in text
        for text in texts
    )
    assert any(text.endswith("The budget of a run is 3 mean full evaluations.") for text in texts)


def test_the_best_come_first_and_arms_without_a_common_seed_have_no_order(packs, release):
    bench = {TASK: jahs.Benchmark(TASK, release=release)}
    for name in ("fidelity", "multiobjective"):
        results = read_results(packs / name, bench=bench)
        arms = [arm for arm in results.arms if arm.view.search == "all"]
        means = [standing.mean.value for standing in standings(results, TASK, arms).values()]
        assert means == sorted(means, reverse=name == "multiobjective")
        assert len(means) == len(arms)
        assert standings(results, TASK, []) == {}
        first, second = ((TASK, arm.name) for arm in arms[:2])
        part = {first: results.by_arm[first][:3], second: results.by_arm[second][3:]}
        assert standings(replace(results, by_arm=part), TASK, arms[:2]) == {}


def test_incumbents_as_trained_are_beside_their_predictions(packs, release, tmp_path):
    results = read_results(packs / "fidelity", bench={TASK: jahs.Benchmark(TASK, release=release)})
    arm = results.arms[0]
    incumbent = Incumbent(
        task=TASK,
        arm=arm.name,
        seed=0,
        config=results.of(TASK, arm)[0].configs[-1],
        predicted=30.0,
        trained={"1000": 31.0, "1001": 32.0},
    )
    releases = {TASK: results.folder.tasks[TASK].release}
    record = {"study": "fidelity", "releases": releases, "incumbents": [asdict(incumbent)]}
    (tmp_path / TASK).mkdir()
    (tmp_path / TASK / "retrained-fidelity.json").write_text(sealed_text(record))
    (table,) = tables_of(leaderboard_page(packs, release=release, data=tmp_path))[STUDIES["fidelity"].title]
    assert table.columns == (*BOARD_COLUMNS, "as trained (%)")
    by_arm = {row[1]: row[-1] for row in table.rows}
    assert by_arm["black box: random search"] == "31.50, predicted 30.00 (1 config)"
    (without,) = tables_of(page_of(packs, release))[STUDIES["fidelity"].title]
    assert without.columns == BOARD_COLUMNS
