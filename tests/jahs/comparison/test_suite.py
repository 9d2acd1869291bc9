"""Named suites: frozen problems, scores on one scale, and clear errors for other names and releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jahs
from jahs.comparison.claims import claim_of
from jahs.comparison.suite import SUITES
from jahs.errors import CorruptFile, InvalidArgument, ProtocolMismatch, UnknownName
from jahs.files.sealed_json import read_sealed
from jahs.optimizers import make
from jahs.release import EMBEDDED
from jahs.simulate import read_log
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release

NAME = "jahs-20"


@pytest.fixture(scope="module")
def problems():
    return jahs.suite(NAME)


def test_the_suite_covers_what_it_promises(problems):
    assert len(problems) == len({problem.id for problem in problems}) == 20
    assert {problem.task: problem.release for problem in problems} == dict(EMBEDDED)
    kinds = {(p.task, len(p.rules.view.fidelities) > 1, len(p.objectives) > 1, p.rules.n_evaluations) for p in problems}
    assert len(kinds) == 16  # task, fidelities, objectives, budget: every combination
    assert {problem.rules.noise for problem in problems} == {"seeded"}
    for problem in problems:
        assert problem.best < problem.random_search < (100 if len(problem.objectives) > 1 else 90)
        assert problem.random_search_se < problem.random_search / 5
        assert problems[problem.id] is problem
    assert "\n" not in problems.cite()
    assert all(f"{task} {problem.version}" in problems.cite() for problem in problems for task in [problem.task])


def test_a_method_runs_on_a_whole_suite_in_one_loop(problems, tmp_path):
    chosen = [min(problems, key=lambda p: (len(p.objectives) != n, p.rules.n_evaluations)) for n in (1, 2)]
    for problem in chosen:
        trials = problem.simulation(seed=0).run(make("asha", problem.view, seed=0, objectives=problem.objectives))
        assert problem.score(trials) < 3
        spread = problem.random_search - problem.best
        assert problem.score(trials) == pytest.approx((problem.result(trials) - problem.best) / spread)
        assert problem.terms.budget_s == problem.budget_s
        assert max(trial.end for trial in trials) <= problem.budget_s
    problem = chosen[0]
    log = tmp_path / "log.jsonl"
    trials = problem.simulation(seed=1, log=log).run(make("random_search", problem.view, seed=1))
    assert problem.result(trials) == claim_of(read_log(log), problem.terms.bench).valid_error
    assert np.isnan(problem.result([]))
    assert chosen[1].result([]) == 100.0  # all of the hypervolume is missing


def test_trials_of_another_problem_are_refused(problems):
    few = next(p for p in problems if p.rules.n_evaluations == 20 and len(p.objectives) == 1 and len(p.view.full) == 1)
    trials = few.simulation(seed=0).run(make("random_search", few.view, seed=0))
    others = [p for p in problems if p.task == few.task and p.view.space.fixed != few.view.space.fixed]
    for problem in others:
        with pytest.raises(ProtocolMismatch, match=f"trial 0 is of another problem than {problem.id}: it"):
            problem.score(trials)
    assert len(others) > 3
    means = jahs.Simulation(few.view, n_trials=1).run(make("random_search", few.view, seed=0))
    with pytest.raises(ProtocolMismatch, match="it has no training noise"):
        few.score(means)
    with pytest.raises(ProtocolMismatch, match=r"ends at .* after the budget of"):
        few.score([*trials[:-1], replace(trials[-1], end=few.budget_s + 2)])
    searched = {key: value for key, value in trials[0].config.items() if key not in few.view.space.fixed}
    for wrong in ({"fidelity": None}, {"config": searched}, {"config": {**trials[0].config, "Op1": 7}}):
        with pytest.raises(ProtocolMismatch, match="another problem"):
            few.score([replace(trials[0], **wrong)])
    for what in (None, 3, "trials", [1], trials[0]):
        with pytest.raises(InvalidArgument, match="is not a list of trials"):
            few.result(what)


def test_a_config_may_be_proposed_again(problems):
    problem = problems["cifar10-all-epoch-acc-100"]
    config = problem.view.sample(seed=0)
    trials = problem.simulation(seed=0).run(lambda told: config)
    assert len({trial.seed for trial in trials}) == len(trials) > 1
    assert np.isfinite(problem.score(trials))


def test_trials_with_more_compute_than_the_problem_grants_are_refused(problems):
    problem = problems["cifar10-all-diagonal-latency-20"]
    assert problem.rules.workers == 1

    def trials(workers: int = 1, seed: int = 0, **settings):
        optimizer = make("random_search", problem.view, seed=seed, objectives=problem.objectives)
        given = {"budget": problem.budget_s, "evaluation_seed": seed, **settings}
        return jahs.Simulation(problem.view, workers, **given).run(optimizer)

    assert np.isfinite(problem.score(trials()))
    with pytest.raises(ProtocolMismatch, match=r"worker=.*, but there are 1"):
        problem.score(trials(workers=16))
    with pytest.raises(ProtocolMismatch, match="but its training costs"):
        problem.score(trials(speeds=[20.0]))
    with pytest.raises(ProtocolMismatch, match="its noise has seed 1, that of trial 0 has seed 0"):
        problem.score([*trials(), *trials(seed=1)])
    with pytest.raises(ProtocolMismatch, match="in the log twice"):
        problem.score([*trials(), *trials()])
    with pytest.raises(ProtocolMismatch, match="trial 0 is missing"):
        problem.score(trials()[1:])


def test_trials_of_another_task_are_refused(problems):
    other, one = problems["fashion-mnist-all-epoch-macs-20"], problems["cifar10-all-epoch-latency-20"]
    assert other.rules.view == one.rules.view
    trials = other.simulation(seed=0).run(make("random_search", other.view, seed=0, objectives=other.objectives))
    assert np.isfinite(other.score(trials))
    message = rf"trial \d: .* the release answers .* another problem than {one.id}"
    for score in (one.score, one.result):
        with pytest.raises(ProtocolMismatch, match=message):
            score(trials)


def test_the_baseline_is_random_search_and_can_be_run_again(problems):
    problem = min(problems, key=lambda p: (len(p.objectives), p.rules.n_evaluations))
    results = []
    for seed in range(problem.n_seeds):
        trials = problem.simulation(seed).run(make("random_search", problem.view, seed=seed))
        results.append(problem.result(trials))
    results = np.nan_to_num(results, nan=90.0)
    # A trial that a longer run would have finished is cut here, so that single runs may differ.
    assert np.mean(results) == pytest.approx(problem.random_search, abs=problem.random_search_se)


def test_another_name_or_release_is_one_clear_error(problems, tmp_path):
    with pytest.raises(UnknownName, match=r"suite='jahs-30' does not exist.*jahs-20"):
        jahs.suite("jahs-30")
    with pytest.raises(UnknownName, match=f"problem='nope'.*{problems.problems[0].id}"):
        problems["nope"]
    for task in EMBEDDED:
        make_release(tmp_path / task, task=task, n_trees=3, depth=2, noise=noise_model(task).to_dict())
    with pytest.raises(ProtocolMismatch, match=r"jahs-20 is frozen on other releases(.|\n)*cifar10_mini: .* but .* is"):
        jahs.suite(NAME, release=tmp_path)


def test_a_damaged_suite_is_refused(tmp_path, monkeypatch):
    data = (SUITES / f"{NAME}.json").read_text()
    (tmp_path / "jahs-20.json").write_text(data.replace("seeded", "mean").replace('"best": ', '"best": 1'))
    monkeypatch.setattr("jahs.comparison.suite.SUITES", tmp_path)
    with pytest.raises(CorruptFile, match="damaged or edited"):
        jahs.suite(NAME)


def test_every_suite_is_of_the_embedded_releases():
    paths = [*SUITES.glob("*.json")]
    assert paths
    for path in paths:
        releases = {task: sha for task, (_, sha) in read_sealed(path)["releases"].items()}
        assert releases == dict(EMBEDDED), f"{path.name} is of another season: python -m experiments.suite"
