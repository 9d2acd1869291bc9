"""Imported releases in studies: clipped accuracies, a clock where none was published, and orders that carry over."""

import re

import numpy as np
import pytest

import jahs
from experiments.analysis.carried import carry_over, split_half
from experiments.analysis.critical_differences import compare_groups, rank_agreement
from experiments.folder import read_folder
from experiments.imported import CLOCK, open_for_study
from experiments.pack import pack
from experiments.report.__main__ import main as report
from experiments.report.carried import _among, read_means
from experiments.report.speedups import speedup, speedup_text
from jahs.errors import InvalidArgument
from jahs.queries.benchmark import Benchmark
from jahs.queries.references import build_references
from jahs.simulate import read_log
from jahs.tasks.definitions import TASKS
from tests.experiments.conftest import TASK, run_study, short_studies
from tests.releases import make_release

REAL = "cifar10"
SEEDS = 6


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A release as the authors' pre-release is imported: without runtimes, noise and test accuracies."""
    folder = tmp_path_factory.mktemp("imported") / REAL
    return make_release(
        folder, task=REAL, metrics=("valid_acc", "latency"), n_trees=10, depth=3, facts={"source": "imported"}
    )


def test_an_imported_release_without_runtimes_takes_those_of_the_clock(imported):
    bench, clock = open_for_study(REAL, imported), jahs.Benchmark(CLOCK)
    columns = jahs.space().sample_columns(20, seed=1)
    whole = clock.query_many(columns, metrics=["runtime"])["runtime"]
    for epoch in (1, 50, 200):
        answers = bench.query_many(columns, at=epoch, metrics=["runtime"])["runtime"]
        assert answers == pytest.approx(whole * epoch / 200)
    plain = jahs.Benchmark(REAL, release=imported)
    every = bench.query_many(columns)
    assert set(every) == {*plain.metrics, "runtime"}
    assert np.array_equal(every["valid_acc"], plain.query_many(columns)["valid_acc"])


def test_accuracies_of_an_imported_release_are_clipped(imported, monkeypatch):
    beyond = {"valid_acc": np.array([-3.0, 50.0, 104.0]), "latency": np.array([-1.0, 0.0, 200.0])}
    monkeypatch.setattr(Benchmark, "_answer", lambda *_, metrics, **__: {name: beyond[name] for name in metrics})
    answers = open_for_study(REAL, imported).query_many(jahs.space().sample_columns(3, seed=0), metrics=[*beyond])
    assert answers["valid_acc"].tolist() == [0.0, 50.0, 100.0]
    assert answers["latency"].tolist() == [-1.0, 0.0, 200.0]


def test_a_release_with_its_own_runtimes_keeps_them(release, tmp_path):
    assert type(open_for_study(TASK, release)) is Benchmark
    own = make_release(tmp_path / REAL, task=REAL, n_trees=10, depth=3, facts={"source": "imported"})
    bench, plain = open_for_study(REAL, own), jahs.Benchmark(REAL, release=own)
    columns = jahs.space().sample_columns(5, seed=0)
    assert bench.clock is None
    assert np.array_equal(bench.query_many(columns)["runtime"], plain.query_many(columns)["runtime"])


def test_a_study_runs_on_an_imported_release(imported, tmp_path):
    assert run_study("baselines", tmp_path, imported, "--noise", "mean", arms=["random_search"], seeds=2) == 0
    folder = read_folder(tmp_path)
    assert list(folder.tasks) == [REAL]
    assert folder.tasks[REAL].source.startswith(f"imported, runtimes of {CLOCK} ")
    log = read_log(tmp_path / REAL / "random_search" / "seed-0001.jsonl")
    assert log.ending["ended"] == "budget"
    assert log.header["budget"] == 100 * folder.tasks[REAL].mean_runtime_s


ARMS = ("random_search", "local_search", "successive_halving")


def run_arms(study_folder, release, *more, arms=ARMS):
    assert run_study("baselines", study_folder, release, *more, arms=arms, seeds=SEEDS) == 0
    return study_folder


@pytest.fixture(scope="module")
def studies(release, imported, tmp_path_factory):
    """A short study on a task, and the pack of the same study on the imported release."""
    folder = tmp_path_factory.mktemp("carried")
    with short_studies():
        here = run_arms(folder / "here", release)
        run_arms(folder / "control", release, "--noise", "mean")
        there = run_arms(folder / "there", imported, "--noise", "mean")
    return here, pack(there, folder / "packs")


def section_of(page, title):
    return page.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]


def test_a_page_says_what_carries_over_from_the_pack_alone(studies, release, imported, tmp_path):
    here, packed = studies
    imported.rename(imported.with_name("away"))  # a page needs the pack, not the model
    try:
        assert report([str(here), "--release", str(release), "--workers", "1", "--docs", "--real", str(packed)]) == 0
    finally:
        imported.with_name("away").rename(imported)
    section = section_of(here / "report" / "report.md", "Transfer to JAHS-Bench-201")
    assert "Pairs of arms with a significant difference on the task: " in section
    assert ", split-half " in section
    assert "without noise" not in section
    assert f"runtimes of {CLOCK}" in section
    runs = read_means(packed, read_folder(packed).study).by_arm[REAL, "local_search"]
    log = read_log(packed.parents[2] / "there" / REAL / "local_search" / "seed-0002.jsonl")
    found = [trial.metrics["valid_acc"] for trial in log.trials if trial.status == "finished"]
    assert runs[2].incumbents.values[-1] == pytest.approx(100 - max(found))


@pytest.mark.usefixtures("undrawn")
def test_a_control_without_noise_tells_noise_from_landscape(studies, release, tmp_path, caplog):
    here, packed = studies
    control = pack(studies[1].parents[2] / "control", tmp_path / "packs")
    more = ["--real", str(packed), "--control", str(control)]
    assert report([str(tmp_path), "--control", str(control), "--workers", "0"]) == 2
    assert "--control goes with --real, which is missing; give both" in caplog.text
    assert "workers=0" in caplog.text
    assert report([str(here), "--runs", str(tmp_path)]) == 2
    assert "--runs goes with the study live, not with baselines; leave it out" in caplog.text
    assert report([str(here), "--release", str(release), "--workers", "1", "--docs", *more]) == 0
    section = section_of(here / "report" / "report.md", "Transfer to JAHS-Bench-201")
    assert f"| {TASK}, without noise | optimisers |" in section
    assert "Without training noise on the task: optimisers" in section


@pytest.mark.usefixtures("undrawn")
def test_arms_that_did_not_run_on_the_real_landscape_are_left_out(studies, release, imported, tmp_path):
    here, _ = studies
    with short_studies():
        two = pack(run_arms(tmp_path / "two", imported, "--noise", "mean", arms=ARMS[1:]), tmp_path / "packs")
        one = pack(run_arms(tmp_path / "one", imported, "--noise", "mean", arms=ARMS[:1]), tmp_path / "alone")
    for packed, said in ((two, f"| {TASK} | optimisers | 2 |"), (one, "Not compared: no chapter has two arms")):
        assert report([str(here), "--release", str(release), "--workers", "1", "--docs", "--real", str(packed)]) == 0
        assert said in section_of(here / "report" / "report.md", "Transfer to JAHS-Bench-201")


def test_the_page_of_joint_search_has_the_papers_speed_ups_beside_those_on_both_landscapes(release, imported, tmp_path):
    arms = ["random_search-jahs", "random_search-hpo_random", "random_search-nas_random"]
    with short_studies():
        for name, of, more in (("here", release, ()), ("there", imported, ("--noise", "mean"))):
            assert run_study("joint", tmp_path / name, of, *more, arms=arms, seeds=2) == 0
    packed = pack(tmp_path / "there", tmp_path / "packs")
    here = tmp_path / "here"
    assert report([str(here), "--release", str(release), "--workers", "1", "--docs", "--real", str(packed)]) == 0
    rows = re.findall(
        r"^\| (the paper|here) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$",
        section_of(here / "report" / "report.md", "Comparison with JAHS-Bench-201"),
        re.MULTILINE,
    )
    assert rows[0] == ("the paper", "random search (Table 9)", "CIFAR-10", "54.7×", "33.7×")
    assert [row[2] for row in rows if row[0] == "here"] == [TASKS[TASK].title, "the real landscape"]
    runs = read_means(packed, read_folder(packed).study).by_arm
    fast, slow = ([one.incumbents for one in runs[REAL, arm]] for arm in arms[:2])
    expected = speedup(fast, slow, budget=5.0, guess=TASKS[REAL].chance_error)
    assert rows[-1][3] == speedup_text([expected])
    assert not [row for row in rows if "SMAC" in row[1]], "the paper's SMAC is beside TPE, which did not run"


def test_trade_offs_are_compared_up_to_the_front_of_the_imported_release(release, imported, tmp_path, capsys):
    arms = ["random_search-latency", "nsga2-latency", "hyperband-latency"]
    with short_studies():
        for name, of, more in (("here", release, ()), ("there", imported, ("--noise", "mean"))):
            assert run_study("multiobjective", tmp_path / name, of, *more, arms=arms, seeds=SEEDS) == 0
    real, here = ["--real", str(pack(tmp_path / "there", tmp_path / "packs"))], tmp_path / "here"
    shown = [str(here), "--release", str(release), "--workers", "1", "--docs"]
    page, title = here / "report" / "report.md", "Transfer to JAHS-Bench-201"
    assert report([*shown, *real]) == 0
    assert "`experiments.report --real PACK --landscape CIFAR10` adds it here" in section_of(page, title)
    assert report([*shown, *real, "--landscape", str(imported)]) == 0
    section = section_of(page, title)
    assert "Kendall's τ between the rankings by mean share of the front's hypervolume" in section
    assert f"| {TASK} | Accuracy and latency | 3 | {SEEDS} and {SEEDS} |" in section
    assert "validation error" not in section
    names, bench = ["valid_acc", "latency"], open_for_study(REAL, imported)
    expected = build_references(bench, n_configs=20_000, seed=0).front(names)
    assert np.array_equal(bench.front(names).F, expected.F)
    capsys.readouterr()
    assert report([*shown, "--landscape", str(imported)]) == 2
    assert "--landscape goes with --real, which is missing; give both" in capsys.readouterr().err
    assert report([*shown, *real, "--landscape", str(release)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_pairs_of_some_arms_are_numbered_among_these():
    values = np.random.default_rng(0).normal(size=(4, 12))
    [whole], [part] = compare_groups([(values, None)]), compare_groups([(values[[0, 2, 3]], None)])
    pairs = _among(whole.pairs, [0, 2, 3])
    assert [(pair.one, pair.other, pair.p) for pair in pairs] == [(p.one, p.other, p.p) for p in part.pairs]


@pytest.mark.usefixtures("undrawn")
def test_without_the_real_landscape_the_section_says_why_it_is_empty(studies, release, capsys):
    here, packed = studies
    assert report([str(here), "--release", str(release), "--workers", "1", "--docs"]) == 0
    section = section_of(here / "report" / "report.md", "Transfer to JAHS-Bench-201")
    assert "Not compared: no runs on the real landscape were given." in section
    capsys.readouterr()
    for wrong, said in ((packed.parent, "is not a pack"), (packed / "none", "does not exist")):
        assert report([str(here), "--release", str(release), "--workers", "1", "--docs", "--real", str(wrong)]) == 2
        assert said in capsys.readouterr().err


def test_a_pack_of_another_study_is_refused(studies, release, tmp_path, capsys):
    here, _ = studies
    with short_studies(6):  # a budget of six evaluations, not five
        other = run_arms(tmp_path / "other", release, "--noise", "mean")
    wrong = pack(other, tmp_path / "packs")
    assert report([str(here), "--release", str(release), "--workers", "1", "--docs", "--real", str(wrong)]) == 2
    assert "the declaration of local_search, random_search, successive_halving differs" in capsys.readouterr().err
    noisy = pack(here, tmp_path / "noisy")
    with pytest.raises(InvalidArgument, match="noise=seeded"):
        read_means(noisy, read_folder(noisy).study)


def test_an_imported_release_has_a_page_of_its_own(studies, imported):
    there = studies[1].parents[2] / "there"
    assert report([str(there), "--release", str(imported), "--workers", "1", "--docs"]) == 0
    text = (there / "report" / "report.md").read_text(encoding="utf-8")
    assert f"## Validation error on {REAL}" in text
    assert "Test regret" not in text


def carried_over(here, there):
    return carry_over(here, there, *(compare_groups([(values, None)])[0].pairs for values in (here, there)))


def on_two_landscapes():
    """Return the values of four arms, of which the last is better than the third on the second landscape."""
    rng = np.random.default_rng(0)
    return [np.array([1.0, 2.0, 3.0, last])[:, None] + rng.normal(0, 0.1, (4, 20)) for last in (4.0, 2.5)]


def test_findings_are_counted_by_sign_and_significance():
    here, there = on_two_landscapes()
    there[1] = there[2]  # no difference between the second and the third
    carried = carried_over(here, there)
    verdicts = {(one.one, one.other): one.verdict for one in carried.findings}
    assert verdicts[0, 1] == verdicts[0, 2] == verdicts[0, 3] == "carries over"
    assert verdicts[1, 2] == "other sign"
    assert verdicts[1, 3] == verdicts[2, 3] == "reversed"
    assert {(one.one, one.other): one.verdict for one in carried_over(there, here).findings}[1, 2] == "only there"
    assert carried.count("carries over") == 3
    assert carried.n_hold is None


def test_the_sign_of_a_finding_is_that_of_the_rank_test_even_if_the_mean_has_the_other_sign():
    worse = np.linspace(0.1, 0.2, 100)
    worse[:12] -= 3  # worse with 88 of 100 seeds, much better with 12
    here, there = np.stack([worse, np.zeros(100)]), np.stack([np.linspace(0.1, 0.2, 100), np.zeros(100)])
    for sides in ((here, there), (there, here)):
        (finding,) = carried_over(*sides).findings
        assert (finding.one, finding.other, finding.verdict) == (1, 0, "carries over")
        assert finding.here * finding.there < 0


def test_arms_that_are_all_equal_on_a_landscape_have_no_order_to_agree_with():
    here, there = np.arange(3.0)[:, None] + np.arange(20) / 100, np.zeros((3, 20))
    assert np.isnan(carried_over(here, there).tau.value)


def test_what_does_not_hold_on_refits_is_still_significant_on_the_task():
    rng = np.random.default_rng(0)
    here = np.array([1.0, 2.0, 3.0])[:, None] + rng.normal(0, 0.1, (3, 20))
    there = here[::-1]
    on_refits = rng.normal(0, 1, (3, 8, 1)) + np.zeros((3, 8, 6))  # refits that agree with nothing
    on_refits[2] += 20
    tests = [compare_groups([side])[0].pairs for side in ((here, on_refits), (there, None))]
    carried = carry_over(here, there, tests[0], tests[1])
    assert {(one.one, one.other): (one.verdict, one.holds) for one in carried.findings} == {
        (0, 1): ("reversed", False),
        (0, 2): ("reversed", True),
        (1, 2): ("reversed", True),
    }
    assert (carried.count("only there"), carried.n_hold) == (0, 2)


def test_orders_that_agree_have_a_tau_near_the_one_of_two_halves():
    here, there = on_two_landscapes()
    carried = carried_over(here, there)
    assert carried.tau.value == pytest.approx(rank_agreement(here, there, has_same_seeds=False).value)
    assert 0.7 < carried.split_half <= 1.0
    assert split_half(here) == 1.0
    assert np.isnan(split_half(here[:, :1]))
