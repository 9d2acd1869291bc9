"""Every own optimiser holds the contract, and finds more than chance does."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidArgument, UnknownName
from jahs.files.hashing import digest_facts
from jahs.optimizers import OPTIMIZERS, QUALITIES, expert_prior, make
from jahs.optimizers.ranking import Ranking, crowding, fronts, order
from jahs.optimizers.rungs import rungs
from jahs.queries.views import View
from jahs.simulate import Simulation, Trial, visible
from jahs.tasks.pareto import hypervolume, is_non_dominated
from tests.contracts.optimizer import BENCH, VIEWS, OptimizerContract
from tests.fake_bench import FakeBench
from tests.fake_benchmark import FakeBenchmark
from tests.hostile import SEEDS


@pytest.mark.parametrize("name", OPTIMIZERS)
class TestOwnOptimizers(OptimizerContract):
    @pytest.fixture
    def optimizer(self, name):
        self.has_many_objectives = OPTIMIZERS[name].has_many_objectives
        return lambda view, **settings: make(name, view, **settings)


def best_errors(name, *, view, budget, seeds=range(8), **settings):
    """The lowest error at the full fidelity after the budget, for each seed."""
    found = []
    for seed in seeds:
        trials = Simulation(view, 1, budget=budget).run(make(name, view, seed=seed, **settings))
        full = [t for t in trials if t.status == "finished" and t.fidelity == {"epoch": view.max_epoch, **view.full}]
        found.append(min(100 - t.metrics["valid_acc"] for t in full))
    return np.array(found)


def mean_cost(view):
    return float(np.mean(BENCH.query_many(view.sample(1000, seed=0))["runtime"]))


@pytest.mark.parametrize(
    "name", ["local_search", "evolution", "regularized_evolution", "reinforce", "nsga2", "differential_evolution"]
)
def test_who_learns_beats_chance(name):
    view = VIEWS["nas"]
    budget = 100 * mean_cost(view)
    learned = best_errors(name, view=view, budget=budget)
    chance = best_errors("random_search", view=view, budget=budget)
    assert learned.mean() < chance.mean()
    assert (learned <= chance).mean() >= 0.7


@pytest.mark.parametrize("name", ["successive_halving", "hyperband", "asha"])
def test_who_uses_cheap_fidelities_beats_chance(name):
    view = View(BENCH, fidelities=("epoch", "N", "W"))
    budget = 20 * float(np.mean(BENCH.query_many(view.sample(1000, seed=0))["runtime"]))
    assert (
        best_errors(name, view=view, budget=budget).mean()
        < best_errors("random_search", view=view, budget=budget).mean()
    )


def test_nsga2_dominates_more_than_chance():
    view, objectives, corner = VIEWS["nas"], ("valid_acc", "latency"), [100.0, 30.0]

    def mean_volume(name):
        found = []
        for seed in range(5):
            trials = Simulation(view, 4, n_trials=150).run(make(name, view, seed=seed, objectives=objectives))
            found.append(hypervolume([[100 - t.metrics["valid_acc"], t.metrics["latency"]] for t in trials], corner))
        return np.mean(found)

    assert mean_volume("nsga2") > mean_volume("random_search")


@pytest.mark.parametrize("name", ["successive_halving", "hyperband"])
def test_with_several_objectives_the_non_dominated_are_promoted(name):
    view, objectives = VIEWS["nas"], ("valid_acc", "latency")
    trials = Simulation(view, 1, n_trials=12).run(make(name, view, seed=0, objectives=objectives))
    losses = np.array([[100 - t.metrics["valid_acc"], t.metrics["latency"]] for t in trials[:9]])
    best = [trials[i].config for i in np.flatnonzero(is_non_dominated(losses))]
    assert len(best) >= 3
    assert all(t.config in best for t in trials[9:])


def test_rungs_rise_to_the_full_fidelity():
    assert [r["epoch"] for r in rungs(visible(View(FakeBenchmark(max_epoch=200))), eta=3)] == [1, 2, 7, 22, 67, 200]
    assert [r["epoch"] for r in rungs(visible(View(FakeBenchmark(max_epoch=12))), eta=3)] == [1, 4, 12]
    assert rungs(visible(VIEWS["size-fidelity"]), eta=3) == [{"N": 1}, {"N": 3}, {"N": 5}]
    assert rungs(visible(VIEWS["size-fidelity"]), eta=1.5) == [{"N": 1}, {"N": 3}, {"N": 5}]
    assert rungs(visible(VIEWS["three-fidelities"]), eta=3) == [
        {"epoch": 1, "W": 4, "Resolution": 0.25},
        {"epoch": 3, "W": 8, "Resolution": 0.5},
        {"epoch": 9, "W": 16, "Resolution": 1.0},
    ]
    assert rungs(visible(VIEWS["nas"]), eta=3, n_rungs=2) == [{"epoch": 3}, {"epoch": 9}]
    assert rungs(visible(View(FakeBenchmark(max_epoch=1))), eta=2) == [{"epoch": 1}]


def n_trained(name, *, n_trials, workers=1, **settings):
    """How many trials there were at each epoch, in order."""
    view = View(FakeBenchmark(max_epoch=9))
    trials = Simulation(view, workers, n_trials=n_trials).run(make(name, view, seed=0, **settings))
    return [t.fidelity["epoch"] for t in trials]


def test_successive_halving_promotes_a_third():
    assert n_trained("successive_halving", n_trials=26) == [*[1] * 9, *[3] * 3, 9] * 2


def test_a_fractional_eta_rounds_the_number_at_each_rung_once():
    # 10 / 1.75**k: 10, 5.7, 3.3, 1.9 and 1.1 configs.
    epochs = n_trained("successive_halving", n_trials=20, eta=1.75)
    assert epochs == [*[1] * 10, *[2] * 5, *[3] * 3, 5, 9]


def test_hyperband_begins_at_every_rung_in_turn():
    # ceil(3 / (s + 1) * 3**s) configs: 9, 5 and 3.
    assert n_trained("hyperband", n_trials=22) == [*[1] * 9, *[3] * 3, 9, *[3] * 5, 9, *[9] * 3]


def test_asha_promotes_as_soon_as_there_are_three():
    epochs = n_trained("asha", n_trials=60)
    assert epochs[:4] == [1, 1, 1, 3]
    for low, high in ((1, 3), (3, 9)):
        for i, epoch in enumerate(epochs):
            # Of those at a rung, a third has gone on, or once was among the best third and was overtaken.
            assert epoch != high or epochs[:i].count(low) >= 3
    assert epochs.count(9) >= 3


@pytest.mark.parametrize("name", ["successive_halving", "hyperband", "asha"])
def test_what_is_promoted_is_the_best_of_its_rung(name):
    view = View(FakeBenchmark(max_epoch=9), search="nas")
    trials = Simulation(view, 1, n_trials=13).run(make(name, view, seed=1))
    low = sorted((t for t in trials if t.fidelity["epoch"] == 1), key=lambda t: -t.metrics["valid_acc"])
    high = [t for t in trials if t.fidelity["epoch"] == 3]
    if name != "asha":
        assert [t.config for t in high] == [t.config for t in low[:3]]
    assert all(t.config in [seen.config for seen in low] for t in high)
    assert all(t.end - t.start == pytest.approx(t.metrics["runtime"] * 2 / 3) for t in high)


PROMOTIONS = {
    ("valid_acc",): "f0e77df170286fb6",
    ("valid_acc", "latency"): "b2955d9fa5762dad",
    ("valid_acc", "latency", "n_params"): "bb94a8feab5ee9cb",
}
"""Digests of 600 proposals with three workers, of which some fail."""


@pytest.mark.parametrize("objectives", PROMOTIONS)
def test_asha_proposes_what_it_always_did(objectives):
    view = View(FakeBench())
    simulation = Simulation(view, 3, n_trials=600, seed=4, failure_rate=0.05)
    trials = simulation.run(make("asha", view, seed=4, objectives=objectives))
    proposals = [[t.tag, t.config, t.fidelity] for t in sorted(trials, key=lambda t: t.trial)]
    assert digest_facts({"proposals": proposals}) == PROMOTIONS[objectives]


def test_halving_keeps_all_workers_busy():
    view = View(FakeBenchmark(max_epoch=9))
    trials = Simulation(view, 8, budget=300.0).run(make("hyperband", view, seed=0))
    assert sum(t.end - t.start for t in trials) == pytest.approx(8 * 300.0)


def test_regularized_evolution_forgets_the_oldest_and_evolution_the_worst():
    view = VIEWS["nas"]
    members = {}
    for name in ("evolution", "regularized_evolution"):
        optimizer = make(name, view, seed=0, population_size=4, tournament_size=2)
        assert optimizer.name == name
        trials = Simulation(view, 1, n_trials=12).run(optimizer)
        members[name] = [config for _, config in optimizer._population], trials
    kept, trials = members["regularized_evolution"]
    assert kept == [t.config for t in trials[-4:]]
    kept, trials = members["evolution"]
    best = sorted(t.metrics["valid_acc"] for t in trials)[-4:]
    assert sorted(BENCH.query(config)["valid_acc"] for config in kept) == best


@pytest.mark.parametrize("workers", [1, 4, 32])
def test_the_population_of_differential_evolution_does_not_grow_with_the_workers(workers):
    optimizer = make("differential_evolution", BENCH, seed=0)
    Simulation(BENCH, workers, n_trials=120).run(optimizer)
    assert len(optimizer._points) == 20


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_view_that_fixes_every_key_can_be_searched(name):
    view = View(BENCH, fixed=BENCH.space.default())
    assert len(Simulation(view, n_trials=45).run(make(name, view, seed=0))) >= 1


def test_a_child_of_differential_evolution_replaces_its_parent_only_if_it_is_as_good():
    view = VIEWS["full"]
    optimizer = make("differential_evolution", view, seed=0, population_size=6, crossover_rate=0.3)
    Simulation(view, 1, n_trials=6).run(optimizer)
    assert len(optimizer._points) == 6
    for number in range(60):
        before = [point.copy() for point in optimizer._points], list(optimizer._loss_of)
        (proposal,) = optimizer.ask(1)
        metrics = BENCH.query(proposal.config)
        told = {"config": proposal.config, "fidelity": {"epoch": 9}, "seed": None, "metrics": metrics, "worker": 0}
        optimizer.tell(Trial(trial=number, **told, start=0.0, end=1.0, status="finished", tag=proposal.tag))
        changed = [i for i in range(6) if not np.array_equal(before[0][i], optimizer._points[i])]
        assert changed in ([], [number % 6])
        assert optimizer._loss_of[number % 6] == min(before[1][number % 6], 100 - metrics["valid_acc"])
        assert all(((point >= 0) & (point <= 1)).all() for point in optimizer._points)


@given(st.integers(0, 2**32))
def test_a_config_is_the_decoded_point_that_encodes_it(seed):
    optimizer = make("differential_evolution", VIEWS["full"], seed=seed)
    config = optimizer.random_config()
    back = optimizer._decoded(optimizer._encoded(config))
    assert back["LearningRate"] == pytest.approx(config["LearningRate"])
    assert back["WeightDecay"] == pytest.approx(config["WeightDecay"])
    assert {**back, "LearningRate": 0, "WeightDecay": 0} == {**config, "LearningRate": 0, "WeightDecay": 0}


def test_a_mutation_changes_one_key():
    view = VIEWS["full"]
    optimizer = make("regularized_evolution", view, seed=0, population_size=5, tournament_size=1)
    trials = Simulation(view, 1, n_trials=100).run(optimizer)
    by_order = [t.config for t in trials]
    for i, config in enumerate(by_order[5:], start=5):
        parents = by_order[max(0, i - 5) : i]
        assert 1 in [sum(config[key] != parent[key] for key in config) for parent in parents]


def test_local_search_moves_to_neighbours_and_begins_again_at_an_optimum():
    view = View(BENCH, search=["N", "W", "Resolution"])
    trials = Simulation(view, 1, n_trials=120).run(make("local_search", view, seed=0, n_initial=2))
    best, n_near = trials[0], 0
    for before, trial in pairwise(trials[1:]):
        best = max(best, before, key=lambda t: t.metrics["valid_acc"])
        n_near += trial.config in view.space.neighbors(best.config)
    assert n_near > 30
    assert max(t.metrics["valid_acc"] for t in trials) == max(
        BENCH.query({**view.sample(seed=0), "N": n, "W": w, "Resolution": r})["valid_acc"]
        for n in (1, 3, 5)
        for w in (4, 8, 16)
        for r in (0.25, 0.5, 1.0)
    )


def test_fronts_are_peeled_and_the_lonely_come_first():
    F = np.array([[1.0, 4.0], [2.0, 2.0], [2.2, 1.9], [4.0, 1.0], [3.0, 3.0], [5.0, 5.0], [np.inf, np.inf]])
    assert fronts(F) == [[0, 1, 2, 3], [4], [5], [6]]
    assert crowding(F[:4]).tolist() == [np.inf, (2.2 - 1) / 3 + (4 - 1.9) / 3, (4 - 2) / 3 + (2 - 1) / 3, np.inf]
    assert order(list(F)) == [0, 3, 1, 2, 4, 5, 6]
    assert order([np.array([x]) for x in (3.0, 1.0, np.inf, 1.0)]) == [1, 3, 0, 2]
    assert order([]) == []
    assert order(list(F), 3) == [0, 3, 1]
    assert order(list(F), 5) == [0, 3, 1, 2, 4]
    assert order([np.array([x]) for x in (3.0, 1.0, np.inf, 1.0)], 2) == [1, 3]


LOSS = st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf])


@given(st.integers(1, 3).flatmap(lambda m: st.lists(st.tuples(*[LOSS] * m), min_size=1, max_size=25)), st.randoms())
def test_a_ranking_that_grows_has_the_order_of_all_its_results(points, chance):
    ranking, is_open = Ranking(), []
    for n_known in range(1, len(points) + 1):
        is_open.append(chance.random() < 0.7)
        ranking.add(np.array(points[n_known - 1]), is_known=is_open[-1])
        n = chance.randint(0, n_known)
        best = order([np.array(point) for point in points[:n_known]], n)
        taken = ranking.take(n)
        assert taken == next((i for i in best if is_open[i]), None)
        if taken is not None:
            is_open[taken] = False


@pytest.mark.parametrize("objective", ["valid_acc", "latency"])
def test_a_prior_is_as_good_as_it_says_for_everybody(objective):
    view = VIEWS["nas"]
    metric = view.metrics[objective]
    every = [BENCH.query(config)[objective] for config in view.sample(1000, seed=0)]
    values = sorted(every, reverse=metric.direction == "max")
    for quality, n_better in QUALITIES.items():
        prior = expert_prior(view, quality, objective=objective)
        assert prior == expert_prior(view, quality, objective=metric.published_name or objective)
        assert BENCH.query(prior)[objective] == values[n_better]


def test_a_prior_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match=r"quality='god' does not exist \(did you mean 'good'\?\)"):
        expert_prior(VIEWS["nas"], "god")
    with pytest.raises(UnknownName, match="metric='accuracy' does not exist"):
        expert_prior(VIEWS["nas"], "good", objective="accuracy")
    with pytest.raises(InvalidArgument, match="view=5 is neither a benchmark nor a view"):
        expert_prior(5, "good")
    with pytest.raises(UnknownName):
        expert_prior(VIEWS["nas"], ["good"])


def test_names_and_settings_that_do_not_exist_are_refused():
    view = VIEWS["nas"]
    with pytest.raises(UnknownName, match=r"optimizer='hyperbnd' does not exist \(did you mean 'hyperband'\?\)"):
        make("hyperbnd", view, seed=0)
    with pytest.raises(UnknownName):
        make(["hyperband"], view, seed=0)
    with pytest.raises(UnknownName, match=r"setting of asha='etta' does not exist .*one of: eta, n_rungs"):
        make("asha", view, seed=0, etta=4)
    with pytest.raises(UnknownName, match="setting of hyperband='brackets' does not exist"):
        make("hyperband", view, seed=0, brackets="deepest")
    with pytest.raises(InvalidArgument, match="evolution takes one objective, not valid_acc, latency"):
        make("evolution", view, seed=0, objectives=("valid_acc", "latency"))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("local_search", {"n_initial": 0, "factor": 1.0}, "n_initial=0.*\nfactor=1.0"),
        (
            "evolution",
            {"population_size": 3, "tournament_size": 4},
            r"tournament_size=4 must be at most population_size=3",
        ),
        ("reinforce", {"memory": 1.0, "n_bins": 1}, r"memory=1.0 must be a number in \[0, 1\)\nn_bins=1"),
        ("hyperband", {"eta": 1, "n_rungs": 0}, "eta=1 .*\nn_rungs=0"),
        ("asha", {"eta": float("nan")}, "eta=nan"),
        ("nsga2", {"population_size": 1, "decades": 0.0}, "population_size=1.*\ndecades=0.0"),
        (
            "nsga2",
            {"population_size": "20", "decades": "a"},
            "population_size='20' must be an integer >= 2\ndecades='a' must",
        ),
        (
            "evolution",
            {"population_size": 2.5, "tournament_size": 2.0},
            "population_size=2.5 must be.*\ntournament_size=2",
        ),
        ("evolution", {"n_mutations": True}, "n_mutations=True must be an integer >= 1"),
        (
            "local_search",
            {"n_initial": None, "factor": [2.0]},
            r"n_initial=None must be.*\nfactor=\[2.0\] must be a number >= 1.001",
        ),
        ("asha", {"n_rungs": 1.5}, "n_rungs=1.5 must be an integer >= 1"),
        ("reinforce", {"n_bins": np.array([8])}, r"n_bins=array\(\[8\]\) must be an integer >= 2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_out_of_range_are_refused_at_once(name, settings, message):
    with pytest.raises(InvalidArgument, match=message):
        make(name, VIEWS["nas"], seed=0, **settings)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda value: type(value).__name__)
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InvalidArgument, match=r"^seed=.* is not an integer in 0\.\.2\*\*63-1$"):
        make("asha", VIEWS["nas"], seed=seed)


def test_numbers_of_numpy_are_settings(tmp_path):
    view = VIEWS["nas"]
    numpys = {"population_size": np.int32(4), "decades": np.float32(0.25)}
    for log, seed, chosen in (("a", 3, {"population_size": 4, "decades": 0.25}), ("b", np.uint64(3), numpys)):
        Simulation(view, 2, n_trials=12, log=tmp_path / log).run(make("nsga2", view, seed=seed, **chosen))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("objectives", "message"),
    [
        (("test_acc",), "metric='test_acc' is measured on the test images, which optimisers must not see"),
        ("valid_acc", r"objectives='valid_acc' is not a list of names; for one metric give \['valid_acc'\]"),
        ((), "give one or more of (?!.*test_)"),
    ],
)
def test_objectives_that_no_optimiser_can_have_are_refused(objectives, message):
    with pytest.raises((InvalidArgument, UnknownName), match=message):
        make("hyperband", View(FakeBenchmark(max_epoch=6)), seed=0, objectives=objectives)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_goes_on_from_its_pickle_and_from_its_copy(name):
    one = make(name, VIEWS["nas"], seed=3)
    Simulation(VIEWS["nas"], 1, n_trials=40).run(one)
    others = pickle.loads(pickle.dumps(one)), copy.deepcopy(one)
    goes_on = [[(p.config, p.at) for p in each.ask(5)] for each in (one, *others)]
    assert goes_on[0] == goes_on[1] == goes_on[2] != []


@pytest.mark.parametrize("n", [-1, 1.5, float("inf"), float("nan"), True, "3", None])
def test_a_number_of_proposals_that_is_no_count_is_refused(n):
    optimizer = make("random_search", FakeBench(), seed=0)
    with pytest.raises(InvalidArgument, match=r"n=.* must be an integer >= 0"):
        optimizer.ask(n)
    assert optimizer.ask(0) == []
    assert len(optimizer.ask(np.int64(2))) == 2


@pytest.mark.parametrize("tag", [[0], {}, True, 0.0, None])
def test_a_trial_with_the_tag_of_another_is_refused(tag):
    optimizer = make("random_search", FakeBench(), seed=0)
    (first, second) = optimizer.ask(2)
    (trial,) = Simulation(FakeBench(), n_trials=1).run(lambda _: first)
    with pytest.raises(InvalidArgument, match="random_search does not wait for the result of trial 0"):
        optimizer.tell(dataclasses.replace(trial, tag=tag))
    with pytest.raises(InvalidArgument, match=r"must be a jahs\.Trial"):
        optimizer.tell(trial.to_dict())
    optimizer.tell(dataclasses.replace(trial, tag=second.tag))
