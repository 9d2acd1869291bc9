"""Small simulations whose every second can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jahs.errors import InvalidArgument, UnknownName
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation, Trial, visible
from tests.fake_benchmark import FakeBenchmark

BENCH = FakeBenchmark(max_epoch=9)
VIEW = View(BENCH)

# Without convolutions an epoch takes one second; with one 3x3 convolution at N=1, W=4, full resolution it takes two.
SLIM = {**BENCH.space.default(), **{f"Op{i}": 0 for i in range(1, 7)}}
WIDE = {**SLIM, "Op1": 2}
HUGE = {**SLIM, "Op1": 2, "N": 5, "W": 16}  # 21 seconds


class Plan:
    """Proposes what a list says, one after the other."""

    def __init__(self, *proposals, stops=()):
        self.proposals, self.stops, self.told = list(proposals), stops, []

    def ask(self, n):
        found, self.proposals = self.proposals[:n], self.proposals[n:]
        return found

    def tell(self, trial):
        self.told.append(trial)

    def should_stop(self, trial):
        return (trial.trial, trial.fidelity["epoch"]) in self.stops


def at(config, epoch, **more):
    return Proposal(config=config, at=epoch, **more)


def times(trials):
    return [(t.trial, t.worker, t.start, t.end, t.status) for t in trials]


def run(*proposals, stops=(), oracle=VIEW, **settings):
    return Simulation(oracle, **{"workers": 1, "budget": 1000.0, **settings}).run(Plan(*proposals, stops=stops))


def test_a_free_worker_gets_the_next_trial_at_once():
    trials = run(at(SLIM, 2), at(WIDE, 2), at(SLIM, 5), at(WIDE, 1), workers=2, continuation="scratch")
    assert times(trials) == [
        (0, 0, 0.0, 2.0, "finished"),
        (1, 1, 0.0, 4.0, "finished"),
        (3, 1, 4.0, 6.0, "finished"),
        (2, 0, 2.0, 7.0, "finished"),
    ]


def test_synchronous_workers_wait_for_one_another():
    trials = run(at(SLIM, 2), at(WIDE, 2), at(SLIM, 5), workers=2, mode="synchronous", continuation="scratch")
    assert times(trials) == [(0, 0, 0.0, 2.0, "finished"), (1, 1, 0.0, 4.0, "finished"), (2, 0, 4.0, 9.0, "finished")]


def test_a_continued_config_pays_the_difference():
    trials = run(at(WIDE, 2), at(WIDE, 5), at(WIDE, 9))
    assert [t.end - t.start for t in trials] == [4.0, 6.0, 8.0]
    assert [t.metrics["runtime"] for t in trials] == [4.0, 10.0, 18.0]


def test_from_scratch_it_pays_everything():
    trials = run(at(WIDE, 2), at(WIDE, 5), continuation="scratch")
    assert [t.end - t.start for t in trials] == [4.0, 10.0]


def test_the_same_or_fewer_epochs_are_trained_again():
    trials = run(at(WIDE, 5), at(WIDE, 5), at(WIDE, 2), at(WIDE, 3))
    assert [t.end - t.start for t in trials] == [10.0, 10.0, 4.0, 2.0]


def test_what_is_proposed_again_is_trained_again_with_another_draw():
    config, other = BENCH.sample(2, seed=0)
    epochs = [(config, 2), (config, 4), (config, 4), (other, 4), (config, 2), (config, 4)]
    steps = iter([Proposal(config=each, at=epoch) for each, epoch in epochs])
    trials = Simulation(BENCH, 1, n_trials=6, evaluation_seed=5).run(lambda _: next(steps))
    first, continued, again, apart, third, last = [trial.seed for trial in trials]
    assert first == continued == apart == 5
    assert third == last  # it continues the third training
    assert len({first, again, third}) == 3
    for trial in trials:
        assert trial.metrics == dict(BENCH.query(trial.config, at=trial.fidelity["epoch"], seed=trial.seed))
    took = [trial.end - trial.start for trial in trials]
    assert took[2] == pytest.approx(trials[2].metrics["runtime"])
    assert took[5] == pytest.approx(trials[5].metrics["runtime"] - trials[4].metrics["runtime"])


def test_a_seed_of_ones_own_is_kept_and_means_stay_means():
    config = BENCH.sample(seed=0)
    for seed, given in ((5, 5), (5, 7), (None, None)):
        steps = iter([Proposal(config=config, seed=given)] * 3)
        trials = Simulation(BENCH, 1, n_trials=3, evaluation_seed=seed).run(lambda _, steps=steps: next(steps))
        assert [trial.seed for trial in trials] == [given] * 3


def test_another_seed_is_another_training():
    trials = run(at(SLIM, 2), at(SLIM, 5, seed=1), at(SLIM, 9))
    assert trials[0].seed is None
    assert trials[1].end - trials[1].start == trials[1].metrics["runtime"] > 4.5
    assert trials[2].end - trials[2].start == pytest.approx(7.0)


def test_a_larger_network_of_the_same_config_begins_at_its_first_epoch():
    view = View(BENCH, fidelities=("epoch", "N"), fixed={"W": 4})
    small = {"epoch": 3, "N": 1}
    trials = run(at(WIDE | {"N": 5}, small), at(WIDE | {"N": 5}, {"N": 5}), at(WIDE | {"N": 5}, {"N": 1}), oracle=view)
    assert [t.fidelity for t in trials] == [small, {"epoch": 9, "N": 5}, {"epoch": 9, "N": 1}]
    assert [t.end - t.start for t in trials] == [6.0, 54.0, 12.0]
    assert trials[0].config["N"] == 5


def test_a_view_without_epochs_trains_to_the_last_one():
    view = View(BENCH, fidelities=("N",))
    config = view.sample(seed=0)
    (trial,) = run(at(config, {"N": 3}), oracle=view)
    assert trial.fidelity == {"epoch": 9, "N": 3}
    assert trial.metrics["runtime"] == BENCH.query({**config, "N": 3})["runtime"]


def test_a_fast_worker_takes_less_time():
    trials = run(at(SLIM, 4), at(SLIM, 4), workers=2, speeds=[1.0, 2.0])
    assert times(trials) == [(1, 1, 0.0, 2.0, "finished"), (0, 0, 0.0, 4.0, "finished")]


def test_the_budget_cuts_what_runs():
    trials = run(at(SLIM, 4), at(HUGE, 9), at(SLIM, 9), workers=2, budget=10.0, continuation="scratch")
    assert times(trials) == [
        (0, 0, 0.0, 4.0, "finished"),
        (1, 1, 0.0, 10.0, "unfinished"),
        (2, 0, 4.0, 10.0, "unfinished"),
    ]
    assert trials[1].metrics == {}


def test_what_ends_with_the_budget_is_finished_and_nothing_starts_then():
    trials = run(at(SLIM, 9), at(SLIM, 9), budget=9.0)
    assert times(trials) == [(0, 0, 0.0, 9.0, "finished")]


def test_reports_are_shown_on_the_way_and_can_stop_a_trial():
    seen = []
    plan = Plan(at(WIDE, 9, reports=(1, 3, 6), tag="mine"), at(SLIM, 1))
    plan.should_stop = lambda trial: seen.append(trial) or trial.fidelity["epoch"] == 3
    trials = Simulation(VIEW, 1, budget=100.0).run(plan)
    assert [(t.end, t.status, t.fidelity, t.tag) for t in seen] == [
        (2.0, "running", {"epoch": 1}, "mine"),
        (6.0, "running", {"epoch": 3}, "mine"),
    ]
    assert times(trials) == [(0, 0, 0.0, 6.0, "stopped"), (1, 0, 6.0, 7.0, "finished")]
    assert trials[0].fidelity == {"epoch": 3}
    assert dict(trials[0].metrics) == BENCH.query(WIDE, at=3)


@pytest.mark.parametrize("reports", [(2, 4), [2, 4], range(2, 6, 2), np.array([2, 4]), np.array([2, 4], np.uint8)])
def test_reports_are_any_sequence_of_integers(reports):
    seen = []
    plan = Plan(at(SLIM, 9, reports=reports))
    plan.should_stop = lambda trial: seen.append(trial.fidelity["epoch"])
    Simulation(VIEW, 1, budget=10.0).run(plan)
    assert seen == [2, 4]


def test_a_stopped_trial_can_be_taken_up_again():
    trials = run(at(WIDE, 9, reports=(3,)), at(WIDE, 9), stops={(0, 3)})
    assert times(trials) == [(0, 0, 0.0, 6.0, "stopped"), (1, 0, 6.0, 18.0, "finished")]


def test_epochs_that_a_continued_training_has_passed_are_not_reported_again():
    seen = []
    plan = Plan(at(SLIM, 4), at(SLIM, 9, reports=(2, 4, 6)))
    plan.should_stop = lambda trial: seen.append((trial.end, trial.fidelity["epoch"]))
    Simulation(VIEW, 1, budget=100.0).run(plan)
    assert seen == [(6.0, 6)]


def test_pruning_works_with_many_objectives():
    class Pruned(Plan):
        def should_stop(self, trial):
            return trial.metrics["valid_acc"] < 99 and trial.metrics["latency"] > 0.015

    simulation = Simulation(VIEW, 1, budget=100.0, metrics=["valid_acc", "latency"])
    trials = simulation.run(Pruned(at(WIDE, 9, reports=(2,)), at(SLIM, 9, reports=(2,))))
    assert [(t.status, set(t.metrics)) for t in trials] == [
        ("stopped", {"valid_acc", "latency", "runtime"}),
        ("finished", {"valid_acc", "latency", "runtime"}),
    ]


def test_a_cut_trial_has_the_metrics_of_its_last_report():
    (trial,) = run(at(SLIM, 9, reports=(2, 5, 8)), budget=7.0)
    assert (trial.status, trial.fidelity, trial.end) == ("unfinished", {"epoch": 5}, 7.0)
    assert dict(trial.metrics) == BENCH.query(SLIM, at=5)


def test_failures_are_a_function_of_the_seed_and_of_the_trial_alone():
    found = []
    for workers in (1, 3):
        trials = run(*[at(SLIM, 9)] * 300, workers=workers, budget=None, n_trials=300, failure_rate=0.25, seed=4)
        found.append({t.trial: t.status for t in trials})
    assert found[0] == found[1]
    n_failed = list(found[0].values()).count("failed")
    assert 50 <= n_failed <= 100
    shares = sorted((t.end - t.start) / 9 for t in trials if t.status == "failed")
    assert shares[0] < 0.1 < 0.9 < shares[-1] < 1
    assert all(t.metrics == {} for t in trials if t.status == "failed")


def test_an_optimiser_that_thinks_keeps_workers_waiting():
    trials = run(at(SLIM, 3), at(SLIM, 3), at(SLIM, 3), thinking=2.0, continuation="scratch")
    assert [(t.start, t.end) for t in trials] == [(2.0, 5.0), (7.0, 10.0), (12.0, 15.0)]
    with_two = run(at(SLIM, 3), at(SLIM, 4), at(SLIM, 3), thinking=2.0, workers=2, continuation="scratch")
    assert [(t.worker, t.start, t.end) for t in with_two] == [(0, 2.0, 5.0), (1, 2.0, 6.0), (0, 7.0, 10.0)]


@pytest.mark.parametrize(("thinking", "asked"), [("free", [2, 2, 4]), (1.0, [2, 1, 1, 1, 1, 1, 1])])
def test_nobody_asks_ahead_where_every_ask_costs_time(thinking, asked):
    found = []

    class Eager(Plan):
        n_ahead = 64

        def ask(self, n):
            found.append(n)
            return [at(SLIM, 3 if len(found) > 1 else 1 + i) for i in range(n)]

    run_of = Simulation(VIEW, 2, n_trials=8, thinking=thinking, continuation="scratch")
    assert len(run_of.run(Eager())) == 8
    assert found == asked


def test_measured_thinking_takes_simulated_time():
    trials = run(at(SLIM, 3), at(SLIM, 3), thinking="measured")
    assert 0 < trials[0].start < 5
    assert trials[1].start > trials[0].end


def test_an_optimiser_that_thinks_past_the_budget_starts_nothing_more():
    trials = run(at(SLIM, 3), at(SLIM, 3), thinking=4.0, budget=8.0)
    assert times(trials) == [(0, 0, 4.0, 7.0, "finished")]


def test_a_function_is_an_optimiser():
    seen = []

    def propose(trials):
        seen.append([t.trial for t in trials])
        return at(SLIM, 1 + len(trials)) if len(trials) < 3 else None

    trials = Simulation(VIEW, 1, budget=100.0, continuation="scratch").run(propose)
    assert [t.end for t in trials] == [1.0, 3.0, 6.0]
    assert seen == [[], [0], [0, 1], [0, 1, 2]]


def test_an_optimiser_that_waits_is_asked_again_after_the_next_result():
    class Waits(Plan):
        def ask(self, n):
            return super().ask(n) if len(self.told) != 1 else []

    trials = Simulation(VIEW, 2, budget=100.0).run(Waits(at(SLIM, 1), at(SLIM, 3), at(WIDE, 1), at(WIDE, 2)))
    assert times(trials)[:3] == [
        (0, 0, 0.0, 1.0, "finished"),
        (1, 1, 0.0, 3.0, "finished"),
        (2, 0, 3.0, 5.0, "finished"),
    ]


def test_a_short_run_asks_ahead_for_few_proposals_that_it_never_starts():
    asked = []

    class Eager(Plan):
        n_ahead = 10_000

        def ask(self, n):
            asked.append(n)
            return [at(SLIM, 1)] * n

    trials = Simulation(VIEW, 2, budget=50.0).run(Eager())
    assert asked[:4] == [2, 2, 4, 8]
    assert len(trials) <= sum(asked) <= 3 * len(trials)


def test_whoever_drives_gets_the_same_as_an_optimiser():
    plan = [at(SLIM, 2), at(WIDE, 9, reports=(3,)), at(SLIM, 5), at(HUGE, 1)]
    driven = Simulation(VIEW, 2, budget=20.0)
    waiting, seen = list(plan), []
    while True:
        while waiting and driven.n_free:
            driven.submit(waiting.pop(0))
        happened = driven.wait()
        if not happened:
            break
        for trial in happened:
            seen.append((driven.now, trial.trial, trial.status))
            if trial.status == "running":
                driven.stop(trial.trial)
    assert seen == [(2.0, 0, "finished"), (5.0, 2, "finished"), (6.0, 1, "running"), (6.0, 1, "stopped")]
    assert driven.now == 20.0
    assert driven.trials() == run(*plan, workers=2, budget=20.0, stops={(1, 3)})


def test_whoever_drives_can_think():
    driven = Simulation(VIEW, 1, budget=20.0)
    driven.think(3.0)
    driven.submit(at(SLIM, 2))
    assert [(t.start, t.end) for t in driven.wait()] == [(3.0, 5.0)]
    for seconds in (-1, float("nan"), 10**400, "1"):
        with pytest.raises(InvalidArgument, match=r"seconds=.* is not a number of seconds"):
            driven.think(seconds)


@pytest.mark.parametrize("thinking", [5.0, 0.0, "measured"])
def test_whoever_drives_charges_thinking_alone(thinking, tmp_path):
    driven = Simulation(VIEW, 1, n_trials=1, thinking=thinking, log=tmp_path / "log")
    for step in (lambda: driven.submit(at(SLIM, 2)), driven.wait):
        with pytest.raises(InvalidArgument, match=f"thinking={thinking!r} is for `run`, .* with think"):
            step()
    assert not (tmp_path / "log").exists()
    assert times(driven.run(Plan(at(SLIM, 2))))[0][:2] == (0, 0)


def test_a_stopped_trial_that_has_not_begun_never_does():
    with Simulation(VIEW, 1, budget=20.0) as driven:
        driven.think(3.0)
        driven.stop(driven.submit(at(SLIM, 2)))
        assert [(t.start, t.end, t.status) for t in driven.wait()] == [(3.0, 3.0, "stopped")]


def test_a_published_runtime_that_falls_never_turns_time_back():
    falling = FakeBenchmark(max_epoch=9)
    query_many = falling.query_many
    falling.query_many = lambda *args, **more: {
        k: v / 4 if k == "runtime" and v[0] == 5 else v for k, v in query_many(*args, **more).items()
    }
    trials = Simulation(falling, 1, budget=100.0).run(Plan(at(SLIM, 3), at(SLIM, 5), at(SLIM, 9)))
    assert [(t.start, t.end) for t in trials] == [(0.0, 3.0), (3.0, 3.0), (3.0, 10.75)]


def at_5_no_later_than_at_4():
    falling = FakeBenchmark(max_epoch=9)
    query_many = falling.query_many

    def fall(configs, *, each_at, **more):
        answers = query_many(configs, each_at=each_at, **more)
        return {**answers, "runtime": np.where(each_at == 5, 3.5, answers["runtime"])}

    falling.query_many = fall
    return falling


@pytest.mark.parametrize("epoch", [5, 6])
def test_a_stop_comes_before_what_else_happens_at_its_time(epoch):
    proposals = at(SLIM, epoch, reports=(4, 5)[: epoch - 4]), at(SLIM, 1)
    trials = run(*proposals, oracle=at_5_no_later_than_at_4(), stops={(0, 4)})
    assert times(trials) == [(0, 0, 0.0, 4.0, "stopped"), (1, 0, 4.0, 5.0, "finished")]
    assert trials[0].fidelity == {"epoch": 4}
    driven = Simulation(at_5_no_later_than_at_4(), 1, budget=100.0)
    driven.submit(proposals[0])
    (report,) = driven.wait()
    driven.stop(report.trial)
    assert [(t.end, t.status) for t in (report, *driven.wait())] == [(4.0, "running"), (4.0, "stopped")]


def test_what_is_not_stopped_goes_on_at_the_same_time():
    seen = []
    plan = Plan(at(SLIM, 5, reports=(4,)), at(SLIM, 4))
    plan.should_stop = lambda trial: seen.append(trial.end)
    trials = Simulation(at_5_no_later_than_at_4(), 2, budget=100.0, continuation="scratch").run(plan)
    assert times(trials) == [(0, 0, 0.0, 4.0, "finished"), (1, 1, 0.0, 4.0, "finished")]
    assert seen == [4.0]


def test_a_metric_that_is_not_a_number_is_left_out():
    broken = FakeBenchmark(max_epoch=9)
    query_many = broken.query_many
    broken.query_many = lambda *args, **more: query_many(*args, **more) | {"valid_acc": [float("nan")]}
    (trial,) = Simulation(broken, 1, n_trials=1).run(Plan(at(SLIM, 3)))
    assert set(trial.metrics) == set(BENCH.metrics) - {"valid_acc"}


def test_a_trial_that_is_told_cannot_change_what_was_proposed_or_what_is_returned():
    def spoil(trial):
        trial.config.clear()
        trial.fidelity["epoch"] = 9
        trial.metrics.clear()

    config = dict(SLIM)
    plan = Plan(at(config, 2, reports=(1,)), at(config, 3))
    plan.tell = plan.should_stop = spoil
    trials = Simulation(VIEW, 1, budget=10.0).run(plan)
    assert config == SLIM
    assert [(t.config, t.fidelity, t.end) for t in trials] == [(SLIM, {"epoch": 2}, 2.0), (SLIM, {"epoch": 3}, 3.0)]
    assert [t.metrics["runtime"] for t in trials] == [2.0, 3.0]


def test_an_optimiser_sees_everything_but_answers():
    view = View(BENCH, fidelities=("epoch", "N"), search="nas")
    seen = visible(view)
    assert not hasattr(seen, "query")
    assert not hasattr(seen, "query_many")
    assert "test_acc" not in seen.metrics
    assert seen.full == {"epoch": 9, "N": 5}
    assert seen.path(1.0) == seen.full
    assert seen.fidelity({"epoch": 2.4}) == {"epoch": 2, "N": 5}
    assert [seen.sample(seed=0), seen.sample(2, seed=0)] == [view.sample(seed=0), view.sample(2, seed=0)]
    assert visible(seen) is seen
    assert visible(BENCH, ["test_acc", "latency"]).metrics.keys() == {"latency"}
    with pytest.raises(UnknownName, match=r"metric='latncy' does not exist \(did you mean 'latency'\?\)"):
        visible(BENCH, ["latncy"])


def test_a_trial_is_immutable():
    (trial,) = run(at(SLIM, 1))
    with pytest.raises(AttributeError):
        trial.end = 0.0
    assert isinstance(trial, Trial)
