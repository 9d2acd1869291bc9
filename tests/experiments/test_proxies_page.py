"""The page of the proxies: from a folder with a few scores, with none, and with cells of NAS-Bench-201."""

import dataclasses
import re

import numpy as np
import pytest

from experiments.analysis.proxy_orders import PAPER, SHARES, summary
from experiments.analysis.proxy_uses import N_SCORED, _Trainings, gains_of_features, halvings, read_scored
from experiments.proxies import main
from jahs.files.atomic import write_beside
from jahs.files.runs import read_configs, read_protocol, read_runs
from jahs.files.sealed_json import sealed_text
from jahs.files.tables import take, typed
from jahs.schema import PROXIES, PROXIES_FORMAT, PROXY_COLUMNS
from pipeline.runs import RunsFolder
from tests.building import make_runs_folder

N = 140


def scored_folder(path, n_scored, *, n=N):
    folder = make_runs_folder(path, n)
    runs = take(runs := read_runs(folder), runs["seed"] == 0)
    last = dict(zip(runs["config_id"].tolist(), runs["valid_acc"].tolist(), strict=True))
    ids = np.repeat(np.sort(read_configs(folder)["config_id"])[:n_scored], 2)
    accuracy = np.array([last[i] for i in ids.tolist()])
    scores = {name: np.random.default_rng(k).normal(size=len(ids)) for k, name in enumerate(PROXIES)}
    scores |= {"snip": accuracy, "zen": np.where(np.arange(len(ids)) % 9, accuracy, np.nan)}
    filled = {
        name: np.full(len(ids), value)
        for name, value in {"reason": "", "machine": "", "format": PROXIES_FORMAT}.items()
    }
    texts = {"torch_version": np.full(len(ids), "2"), "protocol": np.full(len(ids), read_protocol(folder).digest)}
    times = {f"{name}_s": np.full(len(ids), 0.01) for name in PROXIES}
    table = {"config_id": ids, "seed": np.tile([0, 1], n_scored), **filled, **times, **scores, **texts}
    RunsFolder(folder).commit("proxies.parquet", typed(table, PROXY_COLUMNS), PROXY_COLUMNS)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return scored_folder(tmp_path_factory.mktemp("scored") / "runs", N)


def test_what_was_scored_is_read_beside_what_was_measured(folder):
    scored = read_scored(folder)
    assert scored.accuracy.shape == scored.runtime_s.shape == (N, 4)
    np.testing.assert_array_equal(scored.scores["snip"][0], scored.accuracy[:, -1].astype(np.float32))
    assert np.allclose(scored.cpu_s["grasp"], 0.01)
    assert (scored.part == -1).all(), "there is no split"


def test_a_proxy_that_knows_the_accuracy_helps_a_model_and_a_search(folder):
    scored = read_scored(folder)
    (gain,) = gains_of_features(scored)
    assert gain.n == 100
    assert gain.difference > 3 * gain.error > 0
    searches = halvings(scored, n_repetitions=50)
    assert searches["snip"].gain > 3 * searches["snip"].gain_error > 0
    assert all(each.cost <= searches["plain"].cost + 1e-9 for each in searches.values())
    assert halvings(dataclasses.replace(scored, runtime_s=np.full_like(scored.runtime_s, np.nan))) == {}


def test_halving_pays_for_each_epoch_once_and_for_the_scoring():
    accuracy = np.tile(np.arange(N_SCORED, dtype=float)[:, None], (1, 9))
    world = _Trainings(accuracy, np.tile(np.arange(1.0, 10.0), (N_SCORED, 1)))
    best, spent = world.halve(np.arange(27))
    assert (best, spent) == (26.0, 27 * 1 + 9 * 2 + 3 * 6)
    drawn, scores, cpu_s = np.arange(N_SCORED)[::-1], np.arange(float(N_SCORED)), np.full(N_SCORED, 0.5)
    search = world.halve_within(drawn, scores, cpu_s, spent)
    assert search.best == N_SCORED - 1
    assert 30 < search.spent_s <= spent
    assert search.scoring_s % 1.5 == 0, "three are scored for each that starts"
    assert world.halve_within(drawn, scores, cpu_s, 0.0) == (N_SCORED - 1, 1.5 + 9, 1.5), "at least one config starts"


def test_a_zeroth_rung_prefers_the_smallest_condition_number(folder):
    scored = read_scored(folder)
    by = {name: np.abs(values) for name, values in scored.scores.items()}
    truth = scored.accuracy[None, :, -1]
    known = dataclasses.replace(scored, scores={**by, "ntk": -truth, "snip": truth})
    searches = halvings(known, n_repetitions=20)
    assert searches["ntk, least first"] == searches["snip"]
    assert not {"ntk", "random order"} & {*searches}
    assert searches["multiply-adds"].scoring == 0


def cells(n):
    truth = np.arange(float(n))
    scores = dict.fromkeys((*PROXIES, "ntk, least first"), truth[None]) | {"random order": np.zeros((1, n))}
    found, orders = summary(scores, truth, n_resamples=5)
    counts = {"n_scored": n, "n_sample": n, "n_top": n, "n_seeds": 3}
    per_proxy = {"cpu_s": dict.fromkeys(PROXIES, 1.0), "n_missing": dict.fromkeys(PROXIES, 0)}
    whole = dict.fromkeys(("largest first", "smallest first", "random order"), 0.25)
    facts = {"torch": ["2"], "machine": ["m"], "sample": found, "best": found, "orders": orders}
    facts["parameters"] = {f"{share:g}": whole for share in SHARES}
    return {"title": "Cells", **counts, **per_proxy, **facts}


def page_of(tmp_path, *runs, of_cells=None):
    path = tmp_path / "agreement.json"
    if of_cells is not None:
        with write_beside(path) as beside:
            beside.write_text(sealed_text(of_cells))
    inputs = ["--runs", *map(str, runs), "--cells", str(path)]
    assert main([*inputs, "--out", str(tmp_path / "page"), "--docs", "--resamples", "2"]) == 0
    return (tmp_path / "page/report.md").read_text()


def test_the_page_shows_what_was_scored(folder, tmp_path):
    page = page_of(tmp_path, folder, of_cells=cells(30))
    title = read_scored(folder).task.title
    assert f"| {title} | {N} | {N} | 2 |" in page
    assert "for 0 of 12 proxies" in page
    assert all(f"| {name} |" in page for name in PAPER)
    assert "| multiply-adds |" in page
    assert "its overlap for the top 1, 5, 10 % is 25.0, 25.0, 25.0 %" in page
    assert "| parameters | 0.00 | 100.0 | 100.0 | 100.0 |" in page
    assert "| Cells | 10 % | 0." in page, "the p of each overlap"
    assert re.search("better than plain halving with [^.]*snip", page)
    assert "ntk, least first" in page
    assert "## A proxy as the zeroth rung of successive halving" in page


def test_the_page_renders_from_no_scores_at_all(tmp_path):
    page = page_of(tmp_path, make_runs_folder(tmp_path / "runs", 30))
    assert "| 0 | 30 |" in page
    assert "No task has enough scored configs yet." in page


def test_a_folder_that_is_none_is_refused(tmp_path):
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "page")]) == 2
    assert main(["--runs", str(tmp_path), "--out", str(tmp_path / "page"), "--resamples", "-1"]) == 2
    assert not (tmp_path / "page").exists()
