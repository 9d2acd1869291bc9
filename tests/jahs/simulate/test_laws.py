"""What holds for every simulation, whatever an optimiser does."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jahs.queries.views import View
from jahs.simulate import Simulation
from tests.fake_benchmark import FakeBenchmark
from tests.jahs.simulate.chaos import Chaos

BENCH = FakeBenchmark(max_epoch=6)
VIEW = View(BENCH)

SETTINGS = st.fixed_dictionaries(
    {
        "workers": st.integers(1, 5),
        "budget": st.one_of(st.none(), st.floats(1.0, 3000.0)),
        "n_trials": st.integers(1, 25),
        "seed": st.integers(0, 2**63 - 1),
        "mode": st.sampled_from(["asynchronous", "synchronous"]),
        "continuation": st.sampled_from(["resume", "scratch"]),
        "failure_rate": st.sampled_from([0.0, 0.3]),
        "thinking": st.sampled_from(["free", 0.0, 2.5]),
        "evaluation_seed": st.sampled_from([None, 3]),
    }
)


@st.composite
def runs(draw, **fixed):
    """A simulation's settings, its optimiser and its trials."""
    chosen = {**draw(SETTINGS), **{name: draw(values) for name, values in fixed.items()}}
    if draw(st.booleans()):
        chosen["speeds"] = draw(st.lists(st.floats(0.25, 4.0), min_size=chosen["workers"], max_size=chosen["workers"]))
    optimizer = Chaos(VIEW, seed=draw(st.integers(0, 10**6)), n_ahead=draw(st.sampled_from([1, 7])))
    return chosen, optimizer, Simulation(VIEW, **chosen).run(optimizer)


@given(runs())
def test_a_worker_never_does_two_things_at_once(run):
    chosen, _, trials = run
    for worker in range(chosen["workers"]):
        mine = sorted((t for t in trials if t.worker == worker), key=lambda t: t.trial)
        assert all(a.end <= b.start for a, b in pairwise(mine))


@given(runs())
def test_time_never_runs_backwards(run):
    _, optimizer, trials = run
    assert all(t.start <= t.end for t in trials)
    assert all(a.end <= b.end for a, b in pairwise(trials))
    assert all(a.end <= b.end for a, b in pairwise(optimizer.told))
    by_number = sorted(trials, key=lambda t: t.trial)
    assert all(a.start <= b.start for a, b in pairwise(by_number))


@given(runs())
def test_every_trial_has_one_number_and_one_end(run):
    chosen, _, trials = run
    assert sorted(t.trial for t in trials) == list(range(len(trials)))
    assert len(trials) <= chosen["n_trials"]


@given(runs())
def test_nothing_is_known_after_the_budget_and_what_was_running_is_unfinished(run):
    chosen, optimizer, trials = run
    cut = [t for t in trials if t.status == "unfinished"]
    budget = chosen["budget"]
    if budget is None:
        assert not cut
        return
    assert all(t.end <= budget and t.start < budget for t in trials)
    assert all(t.end == budget for t in cut)
    assert len(cut) <= chosen["workers"]
    assert [t.trial for t in optimizer.told] == [t.trial for t in trials if t.status != "unfinished"]


@given(runs(thinking=st.just("free")))
def test_the_work_done_is_what_the_trainings_cost(run):
    chosen, optimizer, trials = run
    speeds = chosen.get("speeds") or [1.0] * chosen["workers"]
    reached = [*optimizer.reported, *(t for t in trials if t.status == "finished")]
    for trial in (t for t in trials if t.status == "finished"):
        work = (trial.end - trial.start) * speeds[trial.worker]
        shorter = [
            seen
            for seen in reached
            if (seen.config, seen.seed) == (trial.config, trial.seed)
            and seen.fidelity["epoch"] < trial.fidelity["epoch"]
            and seen.trial != trial.trial
        ]
        before = max((seen.metrics["runtime"] for seen in shorter if seen.end < trial.start), default=0.0)
        # What is reached at the very moment at which a trial starts may come before or after the start.
        now = (seen.metrics["runtime"] for seen in shorter if seen.end == trial.start)
        paid = {before, *(runtime for runtime in now if runtime > before)}
        if chosen["continuation"] == "scratch":
            paid = {0.0}
        assert any(work == pytest.approx(trial.metrics["runtime"] - base, rel=1e-9, abs=1e-6) for base in paid)


@given(runs())
def test_metrics_are_those_of_the_fidelity_that_the_trial_has(run):
    _, _, trials = run
    for t in trials:
        assert t.status != "finished" or t.metrics
        if t.metrics:
            assert dict(t.metrics) == BENCH.query(t.config, at=t.fidelity["epoch"], seed=t.seed)


@given(runs())
def test_an_optimiser_never_sees_a_metric_of_the_test_images(run):
    _, optimizer, trials = run
    assert not any(name.startswith("test_") for t in (*optimizer.told, *optimizer.reported) for name in t.metrics)
    assert all("test_acc" in t.metrics for t in trials if t.status == "finished")


@given(SETTINGS, st.integers(0, 1000), st.sampled_from([2, 16]))
def test_what_is_asked_ahead_changes_no_result(chosen, seed, n_ahead):
    found = []
    for ahead in (1, n_ahead):
        optimizer = Chaos(VIEW, seed=seed, n_ahead=ahead, rests=0.0)
        optimizer.should_stop = lambda trial: False  # what follows must not depend on when it was asked
        found.append(Simulation(VIEW, **chosen).run(optimizer))
    assert found[0] == found[1]


@settings(max_examples=20)
@given(SETTINGS, st.integers(0, 1000))
def test_the_same_seeds_write_the_same_bytes(tmp_path_factory, chosen, seed):
    folder = tmp_path_factory.mktemp("logs")
    for name in ("a", "b"):
        Simulation(VIEW, **chosen, log=folder / name).run(Chaos(VIEW, seed=seed))
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
    assert json.loads((folder / "a").read_text().splitlines()[-1])["ended"] in ("budget", "n_trials", "optimizer")
