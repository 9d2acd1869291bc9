"""Anybody's optimiser beside the baselines: the same terms, whole logs, a page, and one clear error for a fault."""

from __future__ import annotations

import functools
import importlib
import json
import math
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import experiments.studies
import jahs
from jahs.cli import main
from jahs.comparison import leaderboard
from jahs.comparison.compare import compare
from jahs.comparison.page import Comparison, few_seeds, write_page
from jahs.comparison.ranks import holm, least_seeds, wilcoxon_p
from jahs.comparison.standings import Rollout, pairs_of, standings_of
from jahs.comparison.steps import Steps
from jahs.comparison.terms import STUDIES, terms
from jahs.errors import CorruptFile, InvalidArgument, OptimizerFailed, ProtocolMismatch, UnknownName
from jahs.files.atomic import is_running
from jahs.optimizers import make
from jahs.simulate import Proposal, Simulation, Trial, read_log
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release

ROOT = Path(__file__).resolve().parents[3]
LARGE = jahs.space(fixed={"N": 5, "W": 16, "Resolution": 1.0})
MINE = """
import numpy as np
import jahs

class Mine:
    name = "mine"

    def __init__(self, view, *, seed):
        print("a print does no harm")
        self.view, self.rng = view, np.random.default_rng(seed)

    def ask(self, n):
        return self.view.sample(n, seed=int(self.rng.integers(2**31)))

    def tell(self, trial):
        assert "test_acc" not in trial.metrics

class Illegal(Mine):
    def ask(self, n):
        return [{**self.view.sample(1, seed=0)[0], "N": 2}]

class Endless(Mine):
    def ask(self, n):
        while True:
            pass

def raises(view, *, seed):
    raise RuntimeError("no optimiser today")

def walk(trials):
    return jahs.space(fixed={"N": 5, "W": 16, "Resolution": 1.0}).sample(seed=len(trials))

def asha(view, *, seed):
    return Mine(view, seed=seed)
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


@pytest.fixture
def quick(tmp_path, release):
    """Compare with random search alone, which is always there."""
    return lambda *entries, **given: compare(
        *entries, **{"out": tmp_path / "out", "release": release, "seeds": 2, "workers": 1, "against": (), **given}
    )


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_command_gives_logs_a_page_and_a_leaderboard(mine, tmp_path, release, capsys):
    out = tmp_path / "out"
    command = ["compare", f"{mine}:Mine", "--out", str(out), "--release", str(release), "--seeds", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    names = {"Mine", "random_search", "hyperband", "asha", "regularized_evolution", "local_search"}
    assert {line.split()[1] for line in printed.splitlines()[1:7]} == names
    assert sorted(path.name for path in out.iterdir()) == [
        *("curves.svg", "index.html", "leaderboard.json", "logs", "report.md"),
    ]
    assert len(list(out.rglob("*.jsonl"))) == 12
    content = json.loads((out / "leaderboard.json").read_text())
    (board,) = content["boards"]
    assert {line["name"] for line in board["lines"]} == names
    assert content["refused"] == []
    assert {line["name"] for line in content["standings"]} == names
    assert {(pair["one"], pair["other"]) for pair in content["pairs"]} == {("Mine", name) for name in names - {"Mine"}}
    by_reference = next(pair for pair in content["pairs"] if pair["other"] == "random_search")
    own = next(line for line in content["standings"] if line["name"] == "Mine")
    assert own["p_holm"] == by_reference["p_holm"]  # one correction on the whole page
    report, page = (out / "report.md").read_text(), (out / "index.html").read_text()
    assert all(name in report and name in page for name in names)
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    before = files(out)
    assert main(command) == 0
    assert files(out) == before


def test_the_terms_are_those_of_the_studies_and_a_log_lands_on_the_same_board(tmp_path, release, quick, bench):
    for name, rules in STUDIES.items():
        study = experiments.studies.STUDIES[name]
        assert (study.noise, study.n_evaluations, study.workers) == (rules.noise, rules.n_evaluations, rules.workers)
        assert any((arm.view, arm.objectives) == (rules.view, rules.objectives) for arm in study.arms)
    own = terms("baselines", release=release)
    own.simulation(7, log=tmp_path / "log.jsonl").run(make("asha", own.view, seed=7))
    other = bench.view(fixed={"N": 5, "W": 16, "Resolution": 1.0})
    Simulation(other, 3, n_trials=5, log=tmp_path / "other.jsonl").run(make("asha", other, seed=0))
    found = quick(tmp_path / "log.jsonl", tmp_path / "other.jsonl", seeds=1)
    assert [line.name for line in found.boards[0].lines] == ["random_search", "asha"]
    assert found.boards[1].differs["workers"] == (3, 1)
    assert "workers=3 (season: 1)" in (tmp_path / "out" / "report.md").read_text()


def test_a_log_of_a_study_names_it(tmp_path, release, quick):
    own = terms("fidelity", release=release)
    own.simulation(0, log=tmp_path / "log.jsonl").run(make("asha", own.view, seed=0))
    assert quick(tmp_path / "log.jsonl", seeds=1).terms.study == "fidelity"


def test_one_optimiser_with_few_seeds_does_not_hide_that_others_have_enough():
    names = ("mine", "random_search", "asha")
    standings = [SimpleNamespace(name=name, seeds=range(n)) for name, n in zip(names, (40, 40, 2), strict=True)]
    assert few_seeds(SimpleNamespace(standings=standings, names=("mine",))) == ""
    said = few_seeds(SimpleNamespace(standings=standings[1:], names=("mine",)))
    assert "With 2 seeds, no pair of 2 optimisers can differ" in said


def test_too_few_seeds_for_any_significant_difference_are_said_to_be_so(quick, mine, tmp_path, release, capsys):
    found = quick(f"{mine}:Mine", seeds=5)
    said = "With 5 seeds, no pair of 2 optimisers can differ significantly: run 6 or more."
    assert said in (found.out / "report.md").read_text()
    assert math.isnan(found.standings[0].difference.low if found.standings[0].difference else math.nan)
    assert few_seeds(quick(f"{mine}:Mine", seeds=6)) == ""
    options = ("--out", str(found.out), "--release", str(release), "--seeds", "2", "--against", "random_search")
    assert main(["compare", f"{mine}:Mine", *options]) == 0
    assert "With 2 seeds, no pair of 2 optimisers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wins", "loses", "finding"),
    [
        (-3.0, 0.1, ", worse than random_search by the signed-rank test, although its mean is better (-0.27 ["),
        (-0.01, 0.1, ", worse than random_search (+0.087 ["),
        (-3.0, -0.1, ", better than random_search (-0.45 ["),
    ],
)
def test_a_page_says_the_direction_of_the_test_that_is_significant(tmp_path, release, wins, loses, finding):
    base = 30 + np.random.default_rng(0).normal(0, 0.3, 100)
    mine = base + loses
    mine[:12] = base[:12] + wins
    report = page_of(tmp_path, release, {"mine": by_seed(mine), "random_search": by_seed(base)})
    assert finding in report.replace("−", "-")


def by_seed(results):
    return {seed: [result] for seed, result in enumerate(results)}


def rollouts_of(results):
    """Return runs with one result at a tenth of the budget, or with none."""
    return {
        name: {
            seed: Rollout(
                steps=Steps(times=np.full(len(v), 0.1), values=np.array(v, dtype=float)), test_error=30, refit_error=30
            )
            for seed, v in runs.items()
        }
        for name, runs in results.items()
    }


def page_of(tmp_path, release, results):
    """Write a page of random search and another optimiser, with these results by seed, and return its report."""
    rollouts, names = rollouts_of(results), tuple(results)[:1]
    own, pairs = terms("baselines", release=release), pairs_of(rollouts, first=names)
    facts = {"season": None, "boards": (), "refused": (), "standings": tuple(standings_of(rollouts, own, pairs))}
    write_page(Comparison(out=tmp_path, names=names, terms=own, pairs=tuple(pairs), **facts))
    return (tmp_path / "report.md").read_text()


def test_a_page_says_how_many_runs_have_no_result_and_shows_no_difference(tmp_path, release):
    results = {"mine": {0: [], 1: [20.0], 2: []}, "random_search": by_seed([30.0] * 3)}
    report = page_of(tmp_path, release, results)
    assert "mine: 2 of 3 runs finished no trial at the full fidelity; rank 2 of 2." in report
    assert "| mine | random_search | – | 33 % of seeds |" in report


def test_names_cannot_be_markup_of_the_report(tmp_path, release):
    results = {"<b>a|b\nc": by_seed([20.0] * 2), "random_search": by_seed([30.0] * 2)}
    report = page_of(tmp_path, release, results)
    assert r"| \<b\>a\|b c | random_search |" in report
    assert "<b>" not in report


def test_holms_correction_is_over_the_tests_that_a_page_shows():
    rng, names = np.random.default_rng(0), ("asha", "hyperband", "mine", "random_search")
    rollouts = rollouts_of({name: by_seed(rng.normal(30 - place, 1, 12)) for place, name in enumerate(names)})
    pairs = pairs_of(rollouts, first=("mine",))
    assert [(one, other) for one, other, _ in pairs] == [
        *(("mine", "asha"), ("mine", "hyperband"), ("mine", "random_search")),
        *(("asha", "random_search"), ("hyperband", "random_search")),
    ]
    assert [pair.p_holm for *_, pair in pairs] == holm(np.array([pair.p for *_, pair in pairs])).tolist()
    assert len(pairs_of(rollouts)) == 6


def test_a_page_of_many_optimisers_names_the_best_curves_and_marks_the_own_row(tmp_path, release):
    others = {f"other_{place}": by_seed([31.0 + place] * 2) for place in range(12)}
    page_of(tmp_path, release, {"mine": by_seed([50.0] * 2), "random_search": by_seed([60.0] * 2), **others})
    chart, page = ((tmp_path / name).read_text() for name in ("curves.svg", "index.html"))
    assert re.findall(r">([^<>]+)</text>", chart)[-8:] == [
        *("mine", "random_search", "other_0", "other_1", "other_2", "other_3", "other_4", "7 others"),
    ]
    assert chart.count('class="faint"') == 7 + 1  # with the line in the legend
    (own,) = re.findall(r'<tr class="own">(.*?)</tr>', page)
    assert own.startswith("<td>13</td><td>mine</td>")


def test_a_page_says_from_which_others_an_optimiser_differs(tmp_path, release):
    means = {"mine": 30.0, "random_search": 40.0, "asha": 20.0, "hyperband": 50.0}
    results = {name: by_seed(mean + np.arange(12) / 100) for name, mean in means.items()}
    report = page_of(tmp_path, release, results)
    said = "rank 2 of 4. Of the others, it is significantly better than hyperband and significantly worse than asha."
    assert said in report
    report = page_of(tmp_path, release, {name: {0: runs[0], 1: runs[1]} for name, runs in results.items()})
    assert "rank 2 of 4. No difference from the others is significant." in report


def test_optimisers_whose_seeds_could_have_been_selected_rank_last_and_it_is_said(quick, tmp_path, release):
    own = terms("baselines", release=release)
    for seed in (3, 5):
        own.simulation(seed, log=tmp_path / f"{seed}.jsonl").run(make("local_search", own.view, seed=seed))
    found = quick(*(tmp_path / f"{seed}.jsonl" for seed in (3, 5)))
    assert [(each.name, each.has_chosen_seeds) for each in found.standings] == [
        *(("random_search", False), ("local_search", True)),
    ]
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| 2 (not 0, 1, 2 ...) |" in report
    assert "rank 2 of 2; it ranks after the others because its seeds are not 0, 1, 2 and so on." in report


@pytest.mark.parametrize("n_pairs", [1, 3, 6, 21, 36, 1000])
def test_from_the_least_seeds_on_the_smallest_p_value_is_significant_after_correction(n_pairs):
    n_seeds = least_seeds(n_pairs)
    smallest = [n_pairs * wilcoxon_p(np.zeros(n), np.arange(1.0, n + 1)) for n in (n_seeds - 1, n_seeds)]
    assert smallest[0] >= 0.05 > smallest[1]


def test_each_log_is_checked_once(quick, tmp_path, mine, monkeypatch):
    quick(f"{mine}:Mine", seeds=1, out=tmp_path / "theirs")
    given = sorted((tmp_path / "theirs" / "logs").rglob("*.jsonl"))
    read = []
    monkeypatch.setattr(leaderboard, "read_log", lambda path: read.append(path) or read_log(path))
    found = quick(f"{mine}:Mine", tmp_path / "theirs" / "logs", seeds=2)
    own = sorted((tmp_path / "out" / "logs").rglob("*.jsonl"))
    assert sorted(read) == sorted([*given, *own])
    parsed, from_dict = [], Trial.from_dict
    monkeypatch.setattr(Trial, "from_dict", staticmethod(lambda line: parsed.append(line) or from_dict(line)))
    quick(f"{mine}:Mine", tmp_path / "theirs" / "logs", seeds=2)
    assert len(parsed) == sum(len(path.read_bytes().splitlines()) - 2 for path in (*given, *own))
    assert {each.name: each.seeds for each in found.standings} == {"Mine": (0, 1), "random_search": (0, 1)}


def test_another_run_of_the_same_optimiser_and_seed_is_not_counted(quick, mine, tmp_path):
    quick(f"{mine}:Mine", seeds=1, out=tmp_path / "theirs")
    mine.write_text(MINE.replace("2**31", "2**30"))
    found = quick(f"{mine}:Mine", tmp_path / "theirs" / "logs", seeds=1)
    again, same = sorted(refusal.fault.partition(" has ")[2] or refusal.fault for refusal in found.refused)
    assert again == "another run of Mine, seed 0"
    assert same.startswith("the same run as")
    assert [each.seeds for each in found.standings] == [(0,), (0,)]
    assert "Logs that are not counted" in (tmp_path / "out" / "report.md").read_text()


def test_optimisers_that_do_the_same_all_count(quick, mine):
    mine.write_text(MINE + "\n\nclass Same(Mine):\n    pass\n")
    found = quick(f"{mine}:Mine", f"{mine}:Same", seeds=2)
    assert found.refused == ()
    assert {each.name: each.seeds for each in found.standings if each.name != "random_search"} == {
        "Mine": (0, 1), "Same": (0, 1)
    }  # fmt: skip
    (pair,) = [pair for one, other, pair in found.pairs if (one, other) == ("Mine", "Same")]
    assert (pair.superiority, pair.difference) == (0.5, 0.0)


def test_a_factory_without_a_seed_is_called_with_what_it_takes(quick, mine):
    mine.write_text(
        MINE
        + """
class NoSeed(Mine):
    def __init__(self, view):
        Mine.__init__(self, view, seed=3)

def make_it(view):
    return NoSeed(view)
"""
    )
    found = quick(f"{mine}:NoSeed", f"{mine}:make_it", seeds=1)
    assert len({each.result for each in found.standings if each.name != "random_search"}) == 1


def test_a_factory_that_requires_settings_gets_their_defaults(quick, mine):
    mine.write_text(
        MINE
        + """
from dataclasses import dataclass

@dataclass(frozen=True)
class TunedSettings:
    n_most: int = 1

class Tuned(Mine):
    def __init__(self, view, *, seed, objectives, settings):
        assert settings == TunedSettings()
        Mine.__init__(self, view, seed=seed)
"""
    )
    assert {each.name for each in quick(f"{mine}:Tuned", seeds=1).standings} == {"Tuned", "random_search"}


def test_a_function_and_a_class_from_python_run_in_this_process(quick, tmp_path, mine):
    scope = {}
    exec(MINE, scope)
    found = quick(scope["Mine"], scope["walk"], seeds=1)
    assert {each.name for each in found.standings} == {"Mine", "walk", "random_search"}
    other = quick(f"{mine}:Mine", f"{mine}:walk", seeds=1, out=tmp_path / "other")
    for name in ("Mine", "walk"):
        logs = (read_log(next(each.out.rglob(f"{name}/*.jsonl"))) for each in (found, other))
        assert next(logs).trials == next(logs).trials


@pytest.mark.parametrize("workers", [1, 2])
def test_every_optimiser_imports_the_modules_of_its_own_folder_also_while_it_runs(quick, tmp_path, workers):
    lines = [
        "from helper import first",
        "def {}(trials):",
        "    import late.helper as late",
        "    return late.next_of(first)",
    ]
    helpers = ["import jahs", "first = jahs.space(fixed={{'N': 5, 'W': 16, 'Resolution': 1.0}}).sample(seed={})"]
    for seed, name in enumerate(("zero", "one")):
        folder = tmp_path / name
        (folder / "late").mkdir(parents=True)
        (folder / "mine.py").write_text("\n".join(lines).format(name))
        (folder / "helper.py").write_text("\n".join(helpers).format(seed))
        (folder / "late" / "helper.py").write_text(f"def next_of(first):\n    return {{**first, 'Op1': {seed}}}")
    entries = [f"{tmp_path / name / 'mine.py'}:{name}" for name in ("zero", "one")]
    found = quick(*entries, seeds=2, workers=workers)
    for seed, name in enumerate(("zero", "one")):
        for log in (found.out / "logs").rglob(f"{name}/*.jsonl"):
            assert read_log(log).trials[0].config == {**LARGE.sample(seed=seed), "Op1": seed}


def test_several_objectives_are_ranked_by_hypervolume_beside_nsga2(quick, tmp_path):
    found = quick(study="multiobjective", against=("nsga2",), seeds=2)
    assert {each.name for each in found.standings} == {"random_search", "nsga2"}
    assert all(0 <= each.result <= 100 for each in found.standings)
    assert "hypervolume" in (tmp_path / "out" / "report.md").read_text()


def test_a_folder_that_cannot_be_made_is_refused_before_any_run(quick, mine, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InvalidArgument, match=r"below cannot be written: .*file is not a folder; choose another folder"
    ):
        quick(f"{mine}:raises", seeds=1, out=tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "raises, seed 0: raises raised RuntimeError: no optimiser today"),
        ("Illegal", "Illegal, seed 0: .*\nN=2 is not one of 1, 3, 5"),
        ("Endless", "Endless, seed 0: did not end within 2 s"),
    ],
)
def test_a_faulty_optimiser_is_one_clear_error_and_nothing_half_written(quick, mine, tmp_path, name, message):
    with pytest.raises(OptimizerFailed, match=message):
        quick(f"{mine}:{name}", seeds=1, limit_s=2)
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


FORKING = """
import faulthandler, os, pathlib, time

class Forking(Mine):
    def ask(self, n):
        if not (pid := os.fork()):
            time.sleep(60)
            os._exit(0)
        with pathlib.Path(__file__).with_name("pids").open("a") as file:
            print(pid, file=file)
        return self.go_on(n)

class Ends(Forking):
    def go_on(self, n):
        return []

class Hangs(Forking):
    def go_on(self, n):
        time.sleep(60)

class HangsWithoutATimer(Forking):
    def go_on(self, n):
        faulthandler.cancel_dump_traceback_later()
        time.sleep(60)

class Dies(Forking):
    def go_on(self, n):
        os._exit(1)
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Ends", None),
        ("Hangs", "did not end within 2 s"),
        ("HangsWithoutATimer", "did not end within 2 s"),
        ("Dies", "its process ended without a result"),
    ],
)
def test_the_limit_holds_for_an_optimiser_with_children_and_none_of_them_is_left(quick, mine, tmp_path, name, message):
    mine.write_text(MINE + FORKING)
    begin = time.monotonic()
    with nullcontext() if message is None else pytest.raises(OptimizerFailed, match=f"{name}, seed 0: {message}"):
        quick(f"{mine}:{name}", seeds=1, limit_s=2)
    assert time.monotonic() - begin < 40
    deadline = time.monotonic() + 10
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    while any(map(is_running, pids)) and time.monotonic() < deadline:  # a killed process takes a moment to end
        time.sleep(0.05)
    assert pids
    assert not any(map(is_running, pids))


def test_sigterm_ends_the_command_and_the_processes_that_it_started(release, tmp_path):
    (tmp_path / "slow.py").write_text(f"""
import os, pathlib, time

class Slow:
    def __init__(self, view, *, seed):
        pass

    def ask(self, n):
        pathlib.Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
        time.sleep(200)

    def tell(self, trial):
        pass
""")
    command = [sys.executable, "-m", "jahs", "compare", f"{tmp_path / 'slow.py'}:Slow", "--release", str(release)]
    command += ["--out", str(tmp_path / "out"), "--seeds", "1", "--workers", "1", "--against", "random_search"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    while not ((pid := tmp_path / "pid").exists() and pid.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert b"Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert not is_running(int(pid.read_text()))


def test_an_endless_optimiser_in_this_process_is_stopped_too(quick):
    scope = {}
    exec(MINE, scope)
    with pytest.raises(OptimizerFailed, match=r"Endless, seed 0: .*did not end within 0\.5 s"):
        quick(scope["Endless"], seeds=1, limit_s=0.5)


@pytest.mark.parametrize(
    ("entry", "given", "fault", "message"),
    [
        ("no.py:Mine", {}, InvalidArgument, "no.py is not a file"),
        ("mine.py", {}, InvalidArgument, "must be FILE.py:NAME"),
        ("{}:missing", {"seeds": 1}, InvalidArgument, "has no missing to call; it has Mine"),
        ("{}:asha", {"against": ("asha",)}, InvalidArgument, "several optimisers have the name asha"),
        ("{}:Mine", {"study": "basslines"}, UnknownName, "study='basslines' does not exist"),
        ("{}:Mine", {"against": ("hyperbnd",)}, UnknownName, "against='hyperbnd' does not exist"),
        ("{}:Mine", {"against": "hyperband"}, InvalidArgument, "against='hyperband' is not a list of names"),
        ("hyperband", {}, InvalidArgument, "hyperband is a baseline: --against hyperband"),
        (
            "{}:Mine",
            {"seeds": 0, "workers": 1.5, "limit_s": 0},
            InvalidArgument,
            "seeds=0 .*\nworkers=1.5 .*\nlimit_s=0",
        ),
        ("{}:Mine", {"limit_s": 1e10}, InvalidArgument, r"limit_s=1\S+ must be .* seconds > 0 and at most 1e9"),
        ("nowhere", {}, InvalidArgument, "nowhere does not exist"),
        (make, {"study": "nope"}, UnknownName, "study='nope'"),
        (7, {}, InvalidArgument, "7 must be FILE.py:NAME, a factory"),
        ([make], {}, InvalidArgument, "must be FILE.py:NAME, a factory"),
        ("{}:Mine", {"out": 5}, InvalidArgument, "5 is not a path"),
    ],
)
def test_bad_input_is_one_clear_error_before_anything_is_written(quick, mine, tmp_path, entry, given, fault, message):
    with pytest.raises(fault, match=message):
        quick(entry.format(mine) if isinstance(entry, str) else entry, **given)
    assert not (tmp_path / "out").exists()


def test_logs_of_another_study_are_a_mistake_of_the_command(quick, mine, tmp_path, release, capsys):
    quick(f"{mine}:Mine", seeds=1)
    command = ["compare", f"{mine}:Mine", "--seeds", "1", "--study", "joint", "--against", "random_search"]
    assert main([*command, "--out", str(tmp_path / "out"), "--release", str(release)]) == 2
    assert "has study='baselines', not 'joint'; choose another --out, or remove " in capsys.readouterr().err


def test_logs_of_another_release_or_code_are_not_continued(quick, mine, tmp_path):
    quick(f"{mine}:Mine", seeds=1)
    noise = noise_model("fashion_mnist_mini").to_dict()
    other = make_release(tmp_path / "other", task="fashion_mnist_mini", n_trees=5, noise=noise)
    with pytest.raises(ProtocolMismatch, match=r"has release=[0-9a-f]{16}, not [0-9a-f]{16};.*choose another --out"):
        quick(f"{mine}:Mine", seeds=1, release=other, study="joint")
    with pytest.raises(ProtocolMismatch, match=r"has no valid log; .*but the pinned release is"):
        quick(tmp_path / "out", seeds=1, release=other, study="joint", out=tmp_path / "new")
    mine.write_text(MINE + "\n")
    with pytest.raises(
        ProtocolMismatch, match=r"was made by another version of .*mine.py; .*, or remove .*logs/.*Mine to run again"
    ):
        quick(f"{mine}:Mine", seeds=1)


def test_logs_of_an_object_whose_code_cannot_be_compared_are_not_kept(quick, tmp_path):
    def drawn_from(seed):
        def drawn(trials):
            return LARGE.sample(seed=seed)

        return drawn

    for optimizer in (drawn_from(0), functools.partial(drawn_from(0))):
        quick(optimizer, seeds=1)
        with pytest.raises(
            InvalidArgument, match=r"out has logs of (drawn|partial), whose code cannot be compared; .* remove .*logs"
        ):
            quick(optimizer, seeds=1)


def test_logs_of_a_function_of_a_module_are_kept(quick, tmp_path):
    before = files(quick(of_module, seeds=1).out)
    assert files(quick(of_module, seeds=1).out) == before


def test_logs_of_another_base_class_another_default_or_a_lambda_are_not_kept(quick, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "our_search.py").write_text(OURS)
    for step in (0, 1):
        (tmp_path / "our_base.py").write_text(f"class Base:\n    step = {step}\n")
        for name in ("our_base", "our_search"):
            sys.modules.pop(name, None)
        ours = importlib.import_module("our_search").Ours
        with pytest.raises(ProtocolMismatch, match="another version of Ours") if step else nullcontext():
            quick(ours, seeds=1)
        monkeypatch.setattr(seeded, "__defaults__", (step,))
        with pytest.raises(ProtocolMismatch, match="another version of seeded") if step else nullcontext():
            quick(seeded, seeds=1)
        with pytest.raises(InvalidArgument, match="whose code cannot be compared") if step else nullcontext():
            quick(lambda trials: of_module([*trials]), seeds=1)


OURS = """
from our_base import Base

class Ours(Base):
    def __init__(self, view, seed):
        self.view, self.seed = view, seed

    def ask(self, n):
        return self.view.sample(n, seed=self.seed + self.step)

    def tell(self, trial):
        pass
"""


def seeded(trials, first=0):
    return LARGE.sample(seed=first + len(trials))


def test_a_file_that_changes_during_a_comparison_is_refused(quick, mine):
    def edit(done, of):
        mine.write_text(MINE + "\n")

    with pytest.raises(InvalidArgument, match=r"mine\.py has changed since the comparison began; choose another"):
        quick(f"{mine}:Mine", seeds=3, progress=edit)


def test_a_home_folder_is_expanded_and_a_relative_folder_stays(quick, mine, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    assert quick(f"{mine}:Mine", seeds=1, out="~/new").out == tmp_path / "home" / "new"
    assert quick(f"{mine}:Mine", seeds=1, out="here").out == tmp_path / "here"


def test_a_refused_run_that_broke_a_rule_is_not_to_be_repeated(quick, tmp_path):
    def seeds_itself(view):
        return OwnSeed(view)

    (refusal, *_) = quick(seeds_itself, seeds=1).refused
    assert "if the optimiser breaks this rule, change it, then remove" in refusal.fault


class OwnSeed:
    def __init__(self, view):
        self.view = view

    def ask(self, n):
        return [Proposal(config=config, seed=7) for config in self.view.sample(n, seed=0)]

    def tell(self, trial):
        pass


def of_module(trials):
    return LARGE.sample(seed=len(trials))


@pytest.mark.parametrize("line", [0, 2])
def test_a_damaged_log_says_how_to_run_its_seed_again(quick, mine, line):
    log = next(quick(f"{mine}:Mine", seeds=1).out.rglob("Mine/*.jsonl"))
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:line], "{}\n", *lines[line + 1 :]]))
    said = "; remove it, and the same command runs this seed again"
    if line == 0:
        with pytest.raises(CorruptFile, match=f"line 1 is not the header of a trial log{said}"):
            quick(f"{mine}:Mine", seeds=1)
    else:
        (refusal,) = quick(f"{mine}:Mine", seeds=1).refused
        assert refusal.fault.endswith(said)


def test_what_a_kill_leaves_is_continued_with_the_same_bytes(quick, mine, tmp_path, release):
    whole = quick(f"{mine}:Mine", seeds=4, out=tmp_path / "whole").out
    out = tmp_path / "out"
    given = {"out": str(out), "release": str(release), "seeds": 4, "against": []}
    code = f"from jahs.comparison.compare import compare; compare({f'{mine}:Mine'!r}, **{given!r})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    deadline = time.monotonic() + 60
    while len(list(out.rglob("seed-*.jsonl"))) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("seed-*.jsonl")}
    assert len(kept) >= 3
    quick(f"{mine}:Mine", seeds=4)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert files(out) == files(whole)


@pytest.mark.parametrize("limit_s", [1e9, np.float64(600), np.int64(600), 600])
def test_every_limit_that_is_taken_can_be_set(quick, limit_s):
    """In this process, and in that of random search."""
    found = quick(of_module, seeds=1, limit_s=limit_s)
    assert {each.name for each in found.standings} == {"of_module", "random_search"}


def test_a_killed_comparison_of_an_object_leaves_nothing_that_the_next_one_keeps(tmp_path, release):
    given = {"out": str(tmp_path / "out"), "release": str(release), "seeds": 1, "against": []}
    code = f"""
import os, signal, sys
import jahs
def mine(trials):
    if len(trials) == 3 and "dies" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return jahs.space(fixed={{"N": 5, "W": 16, "Resolution": 1.0}}).sample(seed=len(trials))
jahs.compare(mine, **{given!r})
"""
    command = [sys.executable, "-c", code]
    assert subprocess.run([*command, "dies"], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "out").rglob("*.part"))) == 1
    subprocess.run(command, cwd=ROOT, check=True)
    assert list((tmp_path / "out").rglob("*.part")) == []


def test_the_names_are_promised():
    assert jahs.compare is compare
    assert jahs.terms is terms
