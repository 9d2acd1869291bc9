"""The study `live`: what is trained is recorded once, and a killed study ends as an uninterrupted one."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jahs
from experiments.folder import read_folder
from experiments.live import left_out
from experiments.live.beside import Stepwise, read_arrays, write_arrays
from experiments.live.command import beside, main, status, train
from experiments.live.declared import (
    CHECKPOINTS,
    LIVE,
    RELEASE,
    RUNS,
    SURROGATE,
    beside_path,
    left_out_path,
    log_path,
    read_trajectory,
)
from experiments.live.left_out import read_left_out, run_left_out
from experiments.live.results import corner_noise, read_live, recorded_noise
from experiments.run import main as run
from jahs.comparison.benches import open_benchmark
from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData, ProtocolMismatch, UnknownName
from jahs.files.runs import read_configs, read_runs
from jahs.files.tables import empty_table
from jahs.release import RecordedTable, read_release
from jahs.schema import PROFILE_COLUMNS
from jahs.simulate import Proposal, Simulation
from jahs.spaces.configs import config_id
from jahs.tasks.definitions import TASKS
from pipeline.inspect_runs import merge
from pipeline.protocol import protocol_digest
from pipeline.verify import verify
from surrogate.models.boosting import ForestSettings
from tests.experiments.live_fakes import (
    N_EVALUATIONS,
    N_SEEDS,
    OPTIMIZERS,
    STAGES,
    STUDY,
    TASK,
    settings,
    without_training,
)
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from tests.surrogate import landscape

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    noise = noise_model(TASK).to_dict()
    return make_release(tmp_path_factory.mktemp("release") / TASK, task=TASK, noise=noise, n_refits=2)


@pytest.fixture(scope="module", autouse=True)
def _few_trees():
    """Models of an optimiser's surrogate that are fitted quickly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(left_out, "UNTUNED", ForestSettings(n_trees=20, max_depth=4))
        yield


@pytest.fixture(scope="module")
def whole(release, tmp_path_factory):
    """An uninterrupted study."""
    out = tmp_path_factory.mktemp("live") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        without_training(patch)
        train(settings(out, release))
    return out


@pytest.fixture
def quick(monkeypatch):
    without_training(monkeypatch)


def logs_of(out):
    return {(arm, seed): log_path(out, TASK, arm, seed).read_bytes() for arm in OPTIMIZERS for seed in range(N_SEEDS)}


def test_every_trajectory_spends_the_epochs_of_its_evaluations(whole):
    max_epoch = TASKS[TASK].max_epoch
    for arm in OPTIMIZERS:
        log = read_trajectory(log_path(whole, TASK, arm, 0))
        assert log.ending["ended"] == "budget"
        assert log.ending["clock"] == N_EVALUATIONS * max_epoch
        n_full = sum(trial.fidelity["epoch"] == max_epoch and trial.status == "finished" for trial in log.trials)
        assert n_full == N_EVALUATIONS if arm != "successive_halving" else 1 <= n_full < N_EVALUATIONS


def test_its_runs_are_a_folder_that_merges(whole, release, tmp_path, quick):
    runs, configs = read_runs(whole / RUNS), read_configs(whole / RUNS)
    assert set(configs["source"].tolist()) == {"live"}
    assert set(configs["release"].tolist()) == {read_release(release).sha256}
    assert set(runs["seed"].tolist()) == set(range(N_SEEDS))
    assert verify(whole / RUNS) == []
    shutil.copytree(whole / RUNS, tmp_path / "runs")
    other = tmp_path / "other"
    train(replace(settings(other, release), arms=("random_search",)))
    n_runs, n_left_out = merge(tmp_path / "runs", [other / RUNS])
    assert n_left_out == N_SEEDS * N_EVALUATIONS
    assert n_runs == len({*zip(runs["config_id"], runs["seed"], strict=True)})


def test_optimisers_with_one_seed_share_their_first_trainings(whole):
    first = {
        arm: [trial.config for trial in read_trajectory(log_path(whole, TASK, arm, 1)).trials[:5]] for arm in OPTIMIZERS
    }
    assert all(configs == first["random_search"] for configs in first.values())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_killed_study_ends_as_an_uninterrupted_one(whole, release, tmp_path):
    out = tmp_path / "killed"
    script = ROOT / "tests" / "experiments" / "kill_live.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(release), str(out), "6", "0"],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= 3
    assert logs_of(out) == logs_of(whole)
    one, other = (read_runs(path / RUNS) for path in (out, whole))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_study_goes_on_without_training_again(whole, release, tmp_path, quick, monkeypatch):
    out = tmp_path / "live"
    shutil.copytree(whole, out)
    for arm in OPTIMIZERS:  # as a kill leaves them
        path = log_path(out, TASK, arm, 1)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    n_trained = train(settings(out, release))
    assert n_trained < 60
    assert logs_of(out) == logs_of(whole)  # partial trainings of successive halving alone
    again = read_runs(out / RUNS)
    assert len(again["epoch"]) == len(read_runs(whole / RUNS)["epoch"])
    assert train(settings(out, release)) == 0


def test_checkpoints_of_another_engine_are_left_alone(whole, release, tmp_path, quick, monkeypatch):
    out = tmp_path / "live"
    shutil.copytree(whole, out)
    log = log_path(out, TASK, "successive_halving", 0)
    log.unlink()
    before = {path: path.read_text() for path in (out / CHECKPOINTS).iterdir()}
    assert before
    monkeypatch.setattr("experiments.live.trajectories.place_of", lambda *_: "another engine")
    train(settings(out, release))
    assert {path: path.read_text() for path in before} == before
    assert len([*(out / CHECKPOINTS).iterdir()]) > len(before)
    assert logs_of(out) == logs_of(whole)


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "tool"), [("optuna_tpe", "optuna"), ("syne_tune_bohb", "syne_tune")])
def test_an_optimiser_with_a_model_is_rebuilt_from_its_answers(optimizer, tool, release, tmp_path, quick):
    pytest.importorskip(tool)
    study = replace(STUDY, n_seeds=1, n_evaluations=16, arms=(LIVE.arm(optimizer),))  # ten of them are random
    one, other = tmp_path / "one", tmp_path / "other"
    train(replace(settings(one, release), study=study))
    shutil.copytree(one, other)
    log = log_path(other, TASK, optimizer, 0)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[: len(lines) * 3 // 4]) + lines[-2][:40])
    train(replace(settings(other, release), study=study))
    assert log.read_bytes() == log_path(one, TASK, optimizer, 0).read_bytes()


def test_it_stops_when_its_time_is_over(release, tmp_path, quick, monkeypatch):
    out = tmp_path / "live"
    n_trained = train(settings(out, release, minutes=1e-9))
    assert n_trained == 0
    progress = status(out)
    assert progress["evaluations"] == f"0 of {len(OPTIMIZERS) * N_SEEDS * N_EVALUATIONS}"
    assert progress["core_hours_left_at_most"] is None


def test_the_surrogate_starts_with_the_same_configs(whole):
    assert beside(settings(whole, None)) == len(OPTIMIZERS) * N_SEEDS * 3  # the release and two refits
    assert beside(settings(whole, None)) == 0
    facts = read_folder(whole).tasks[TASK]
    curves = read_arrays(beside_path(whole, "random_search", 0, None), facts)["curves"]
    assert curves.shape == (20, N_EVALUATIONS)
    assert (np.diff(curves) <= 0).all()
    assert len(np.unique(curves[:, 0])) == 20  # one config, 20 draws


def test_trainings_are_compared_with_another_release_from_then_on(whole, tmp_path):
    out = tmp_path / "live"
    shutil.copytree(whole, out)
    one, other = (
        make_release(tmp_path / str(n_trees), task=TASK, n_trees=n_trees, noise=noise_model(TASK).to_dict(), n_refits=2)
        for n_trees in (11, 12)
    )
    beside(settings(out, one))
    n_files = beside(replace(settings(out, other), arms=("random_search",)))
    assert n_files == N_SEEDS * 3  # the release and two refits
    assert beside(replace(settings(out, other), arms=("random_search",))) == 0
    assert read_folder(out).tasks[TASK].release == read_release(out / RELEASE).sha256 == read_release(other).sha256
    assert logs_of(out) == logs_of(whole)
    results = read_live(out)
    assert [arm for arm, refit in results.beside if refit is None] == ["random_search"]
    assert (results.n_done == N_EVALUATIONS).all()


def test_a_release_that_has_seen_the_trainings_changes_nothing(whole, tmp_path):
    out = tmp_path / "live"
    shutil.copytree(whole, out)
    before = (out / "study.json").read_bytes(), read_release(out / RELEASE).sha256
    table = RecordedTable(
        configs=read_configs(out / RUNS), runs=read_runs(out / RUNS), profile=empty_table(PROFILE_COLUMNS)
    )
    seen = make_release(tmp_path / TASK, task=TASK, table=table, facts={"protocol": protocol_digest(TASKS[TASK])})
    with pytest.raises(ProtocolMismatch, match="fitted without them"):
        beside(settings(out, seen))
    assert before == ((out / "study.json").read_bytes(), read_release(out / RELEASE).sha256)


@pytest.fixture(scope="module")
def with_record(whole, tmp_path_factory):
    """The study compared with a release that has a record, and its number of files."""
    out = tmp_path_factory.mktemp("live") / "with-record"
    shutil.copytree(whole, out)
    shutil.rmtree(out / SURROGATE, ignore_errors=True)
    protocol = protocol_digest(TASKS[TASK])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "WHERE", {**landscape.WHERE, "protocol": protocol})
        made_up = landscape.measurements(3)
    release = make_release(
        tmp_path_factory.mktemp("recorded") / TASK,
        task=TASK,
        table=RecordedTable(configs=made_up.configs, runs=made_up.runs, profile=made_up.profile),
        noise=noise_model(TASK).to_dict(),
        facts={"protocol": protocol},
        n_refits=0,
    )
    return out, beside(settings(out, release))


def test_each_optimiser_runs_on_a_surrogate_without_its_trainings(with_record):
    out, n_files = with_record
    assert n_files == len(OPTIMIZERS) * (N_SEEDS + 1)
    assert beside(settings(out, None)) == 0
    results = read_live(out)
    assert [*results.left_out] == list(OPTIMIZERS)
    for arm, found in results.left_out.items():
        assert found.curves.shape == (N_SEEDS, 20, N_EVALUATIONS)
        trained = {config_id(each.config) for run in map(results.trained.get, product([arm], range(2))) for each in run}
        assert {*found.with_others} == {*found.with_record} == trained
        assert found.with_others != found.with_record


def test_no_training_of_the_optimiser_itself_reaches_its_surrogate(with_record, monkeypatch):
    out, _ = with_record
    folder, fitted = read_folder(out), []

    def fit(metric, rows, *_, **__):
        fitted.append({*rows.config_id.tolist()})
        raise JahsError("enough")

    monkeypatch.setattr("experiments.live.left_out.fit_surrogate", fit)
    for arm in OPTIMIZERS:
        with pytest.raises(JahsError, match="enough"):
            run_left_out(folder, arm)
        own = {config_id(each.config) for (by, _), run in read_live(out).trained.items() if by == arm for each in run}
        everything = {*read_configs(out / RUNS)["config_id"].tolist()}
        assert everything & fitted[-1] == everything - own
        assert everything - own, "the others trained something else, too"
        assert len(fitted[-1] - everything) == 81, "the record of the release"


def test_further_trainings_remove_the_results_that_lack_them(with_record, tmp_path, quick):
    out = tmp_path / "live"
    shutil.copytree(with_record[0], out)
    release = out / RELEASE
    train(settings(out, release))
    assert [*read_live(out).left_out] == list(OPTIMIZERS)  # nothing was left to train
    more = replace(settings(out, release), study=replace(STUDY, n_seeds=N_SEEDS + 1))
    assert train(more) > 0
    assert not read_live(out).left_out
    assert beside(more) > len(OPTIMIZERS)
    assert all(len(found.curves) == N_SEEDS + 1 for found in read_live(out).left_out.values())
    arm = OPTIMIZERS[0]
    shutil.copy(left_out_path(with_record[0], arm), left_out_path(out, arm))  # made before the last trainings
    with pytest.raises(ProtocolMismatch, match=r"left-out\.npz was made before all trainings were there; remove it"):
        read_live(out)


@pytest.mark.parametrize("damage", ["cut", "another release", "no predictions"])
def test_a_damaged_result_without_an_optimiser_is_refused(with_record, tmp_path, damage):
    out, _ = with_record
    path, facts = tmp_path / "left-out.npz", read_folder(out).tasks[TASK]
    whole = left_out_path(out, "random_search").read_bytes()
    assert read_left_out(path, facts) is None
    match damage:
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case "another release":
            write_arrays(path, replace(facts, release="0" * 64), curves=np.zeros((1, 1, 1)))
        case "no predictions":
            write_arrays(path, facts, curves=np.zeros((1, 1, 1)))
    with pytest.raises((CorruptFile, ProtocolMismatch), match="remove it"):
        read_left_out(path, facts)


def test_a_wrong_start_is_refused(whole, release, tmp_path, quick, monkeypatch):
    other = make_release(tmp_path / TASK, task=TASK, n_trees=11, noise=noise_model(TASK).to_dict())
    with pytest.raises(ProtocolMismatch, match="used release"):
        train(settings(whole, other))
    with pytest.raises(
        InvalidArgument, match=r"workers=0(.|\n)*minutes=-1(.|\n)*device='gpu' must be cpu, native or cuda"
    ):
        train(replace(settings(tmp_path / "new", release), workers=0, minutes=-1, device="gpu"))
    with pytest.raises(UnknownName, match="random_search"):
        train(replace(settings(tmp_path / "new", release), arms=("tpe",)))
    monkeypatch.setattr("experiments.live.command.protocol_digest", lambda task: "0" * 16)
    with pytest.raises(ProtocolMismatch, match="runs of protocol"):
        train(settings(whole, release))
    with pytest.raises(MissingData, match="is not a study"):
        beside(settings(tmp_path / "new", release))
    assert not (tmp_path / "new").exists()


def test_missing_images_are_said_before_anything_is_written(tmp_path, capsys, caplog):
    out = tmp_path / "live"
    more = ["--data-dir", str(tmp_path), "--arms", "random_search"]
    assert run(["live", "--out", str(out), *more]) == 2
    assert "CIFAR" in caplog.text or "cifar" in caplog.text
    assert not out.exists()
    assert main(["--out", str(out), "--status"]) == 2


class StopsAfter:
    """A clock that jumps past every deadline after so many looks at it."""

    def __init__(self, n_looks):
        self.n_left = n_looks

    def time(self):
        self.n_left -= 1
        return 0.0 if self.n_left > 0 else float("inf")


class Stops:
    """Stops every second trial at its first report."""

    name, settings = "stops", {}  # as an optimiser has them

    def __init__(self, bench):
        self.bench, self.n_asked, self.told = bench, 0, []

    def ask(self, n):
        self.n_asked += 1
        return [Proposal(config=self.bench.sample(seed=self.n_asked), reports=(1, 3), tag=self.n_asked)]

    def should_stop(self, report):
        return report.tag % 2 == 0

    def tell(self, trial):
        self.told.append((trial.tag, trial.status, trial.fidelity["epoch"], round(trial.end, 6)))


def test_steps_cost_and_end_as_reports_do(release):
    bench = jahs.Benchmark(TASK, release=release)
    reports, steps = Stops(bench), Stops(bench)
    Simulation(bench, workers=1, n_trials=6).run(reports)
    Simulation(bench, workers=1, budget=reports.told[-1][-1] * 1.001).run(Stepwise(steps))
    assert steps.told[:6] == reports.told
    assert {status for _, status, _, _ in steps.told} == {"finished", "stopped"}


def test_status_and_the_list_know_the_study(whole, capsys):
    assert main(["--out", str(whole), "--status"]) == 0
    found, n = json.loads(capsys.readouterr().out), len(OPTIMIZERS) * N_SEEDS * N_EVALUATIONS
    assert found["evaluations"] == f"{n} of {n}"
    assert found["full_trainings"] > 15
    assert run(["--list"]) == 0
    assert "live: " in capsys.readouterr().out
    assert STUDY.n_seeds == 2


@pytest.mark.slow
def test_the_page_states_how_far_it_is(whole, release, tmp_path, quick, monkeypatch):
    from experiments.report.__main__ import main as report

    monkeypatch.setattr("experiments.report.live.STAGES", STAGES)
    part = tmp_path / "part"
    with monkeypatch.context() as patch:
        patch.setattr("experiments.live.trajectories.time", StopsAfter(9))
        train(settings(part, release, minutes=60))
    assert report([str(part), "--docs"]) == 0
    page = (part / "report" / "report.md").read_text()
    n = len(OPTIMIZERS) * N_SEEDS * N_EVALUATIONS
    assert re.search(rf"The study is not finished: \d+ of {n} evaluations are trained", page)
    assert "The runs on the surrogate are missing" in page
    beside(settings(whole, None))
    assert report([str(whole), "--docs", "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.md").read_text()
    assert f"All {n} evaluations are trained" in page
    assert re.search(r"and on the surrogate is -?[\d.]+ at 3 evaluations, -?[\d.]+ at 8 evaluations", page)
    assert "| local search |" in page
    covered = r"predictive intervals \(model and noise\) cover \d+ to \d+ % of the last 20 proposals of each run: \d of"
    assert re.search(rf"{covered} {len(OPTIMIZERS)} optimisers are outside of 85 to 95 %", page)
    assert "Leave one optimiser out" not in page  # this release has no record
    assert "standard deviations apart" not in page  # this record has no repeated training to measure it by
    assert not re.search(r"at 3 evaluations \(|\| 3 \| 2 \| -?[\d.]+ \(", page), "an interval from two seeds"


def test_the_page_has_the_surrogates_without_an_optimiser(with_record, tmp_path):
    from experiments.report.__main__ import main as report

    out, _ = with_record
    assert report([str(out), "--docs", "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.md").read_text()
    section = page.partition("## Leave one optimiser out")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if re.match(r"\| [a-z]+ ?[a-z]* \| -?\d", line)]
    assert len(rows) == len(OPTIMIZERS) + 1
    assert "live-left-out.svg" in section


def test_noise_between_seeds_is_measured_on_the_better_repeated_configs_of_the_corner():
    configs = {"config_id": np.arange(6, dtype=np.uint64), "N": np.array([1, 1, 1, 5, 1, 1]), "W": np.full(6, 16)}
    configs["Resolution"] = np.full(6, 0.25)
    rows = [
        (0, 0, 50.0),
        (0, 1, 52.0),
        (1, 0, 40.0),
        (1, 1, 41.0),
        (1, 2, 42.0),
        (2, 0, 70.0),
        (3, 0, 10.0),
        (3, 1, 90.0),
        (4, 0, 30.0),
        (4, 1, 39.0),
    ]
    runs = {
        "config_id": np.array([row[0] for row in rows], dtype=np.uint64),
        "seed": np.array([row[1] for row in rows]),
        "epoch": np.full(len(rows), 27),
        "valid_acc": np.array([row[2] for row in rows], dtype=np.float32),
        "status": np.full(len(rows), "finished"),
    }
    assert corner_noise(configs, runs) == (pytest.approx(np.sqrt((2 + 2) / 3)), 2, 5)
    none = corner_noise(configs, {name: column[:1] for name, column in runs.items()})
    assert (none.n_configs, np.isnan(none.sd)) == (0, True)


def test_noise_is_measured_on_the_runs_that_are_named(whole, tmp_path):
    release = make_release(tmp_path / TASK, task=TASK, facts={"protocol": protocol_digest(TASKS[TASK])})
    noise = recorded_noise(open_benchmark(TASK, release), whole / RUNS)
    assert (noise.n_configs, np.isnan(noise.sd)) == (0, True)  # every seed has its own configs
    with pytest.raises(ProtocolMismatch, match="name a release of these runs"):
        read_live(whole, runs=whole / RUNS)  # the release of this study names no protocol


def test_a_release_that_has_seen_the_trainings_judges_nothing(whole, monkeypatch):
    seen = next(iter(read_live(whole).trained.values()))[0]
    table = SimpleNamespace(table=SimpleNamespace(runs={"config_id": np.array([config_id(seen.config)], np.uint64)}))
    monkeypatch.setattr(
        "experiments.live.results.release_of",
        lambda bench: SimpleNamespace(**vars(table), sha256=read_folder(whole).tasks[TASK].release, has=lambda _: True),
    )
    with pytest.raises(ProtocolMismatch, match="fitted to 1 of the configs"):
        read_live(whole)
