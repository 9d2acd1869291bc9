"""The contract of every optimiser: subclass `OptimizerContract` and define the fixture `optimizer`.

`optimizer(view, seed=..., objectives=...)` makes a new one; `has_many_objectives` says whether it takes several. Cases
are small, so that optimisers that fit models can be tested as well.
"""

from __future__ import annotations

import json

import pytest

from jahs.errors import JahsError, UnknownName
from jahs.queries.views import View
from jahs.simulate import Simulation, Trial, visible
from tests.fake_benchmark import FakeBenchmark

BENCH = FakeBenchmark(max_epoch=9)
VIEWS = {
    "full": View(BENCH),
    "nas": View(BENCH, search="nas"),
    "hpo": View(BENCH, search="hpo"),
    "one-size": View(BENCH, fixed={"N": 1, "W": 4, "Resolution": 0.25}),
    "size-fidelity": View(BENCH, fidelities=("N",)),
    "three-fidelities": View(BENCH, fidelities=("epoch", "W", "Resolution")),
    "all-fidelities": View(BENCH, fidelities=("epoch", "N", "W", "Resolution"), search="nas"),
}


class Watched:
    """An optimiser that records the trials it is told."""

    def __init__(self, optimizer):
        self.inner, self.told = optimizer, []
        self.name, self.settings = optimizer.name, optimizer.settings
        self.n_ahead = getattr(optimizer, "n_ahead", 1)

    def ask(self, n):
        proposals = self.inner.ask(n)
        assert len(proposals) <= n
        return proposals

    def tell(self, trial):
        self.told.append(trial)
        self.inner.tell(trial)


class OptimizerContract:
    n_trials = 30
    views = tuple(VIEWS)
    has_many_objectives = False

    @pytest.fixture
    def optimizer(self):
        raise NotImplementedError

    @pytest.fixture(params=list(VIEWS))
    def view(self, request):
        if request.param not in self.views:
            pytest.skip(f"not for the view {request.param}")
        return VIEWS[request.param]

    def run(self, optimizer, view=VIEWS["nas"], **settings):
        settings = {"workers": 3, "n_trials": self.n_trials, **settings}
        return Simulation(view, **settings).run(optimizer)

    def test_works_at_every_view(self, optimizer, view):
        trials = self.run(optimizer(view, seed=0), view, workers=1)
        assert len(trials) == self.n_trials
        assert len({str(t.config) for t in trials}) > 5
        assert any(t.fidelity == {"epoch": 9, **view.full} for t in trials)

    @pytest.mark.parametrize("workers", [1, 4])
    @pytest.mark.parametrize("mode", ["asynchronous", "synchronous"])
    def test_the_same_seed_is_the_same_run(self, optimizer, tmp_path, workers, mode):
        for name in ("a", "b"):
            self.run(optimizer(VIEWS["nas"], seed=3), workers=workers, mode=mode, log=tmp_path / name)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_another_seed_is_another_run(self, optimizer):
        first, second = (self.run(optimizer(VIEWS["nas"], seed=seed)) for seed in (0, 1))
        assert [t.config for t in first] != [t.config for t in second]

    def test_the_budget_is_respected_and_spent(self, optimizer):
        trials = self.run(optimizer(VIEWS["nas"], seed=0), budget=3000.0, n_trials=None)
        assert max(t.end for t in trials) == 3000.0
        assert 0.8 * 3 * 3000.0 <= sum(t.end - t.start for t in trials) <= 3 * 3000.0  # workers are hardly idle

    def test_is_never_told_of_the_test_images(self, optimizer, view):
        watched = Watched(optimizer(view, seed=0))
        trials = self.run(watched, view)
        assert len(watched.told) == len(trials)
        assert not any(name.startswith("test_") for t in watched.told for name in t.metrics)

    def test_cannot_optimise_what_is_measured_on_the_test_images(self, optimizer):
        with pytest.raises(UnknownName, match="metric='test_acc'"):
            optimizer(VIEWS["nas"], seed=0, objectives=("test_acc",))

    def test_cannot_query_the_view(self, optimizer):
        class Closed(FakeBenchmark):
            def query_many(self, *_, **__):
                raise AssertionError("an optimiser asked the benchmark itself")

        inner = optimizer(View(Closed(), search="nas"), seed=0)
        assert len(self.run(inner, n_trials=12)) == 12

    def test_goes_on_when_failures_are_frequent(self, optimizer):
        trials = self.run(optimizer(VIEWS["nas"], seed=0), failure_rate=0.4)
        assert len(trials) == self.n_trials
        assert {t.status for t in trials} == {"finished", "failed"}

    def test_survives_when_every_trial_fails(self, optimizer):
        trials = self.run(optimizer(VIEWS["nas"], seed=0), failure_rate=1 - 1e-12, n_trials=25)
        assert {t.status for t in trials} == {"failed"}

    def test_says_its_name_and_everything_it_depends_on(self, optimizer):
        instance = optimizer(VIEWS["nas"], seed=7)
        assert instance.name
        assert instance.settings["seed"] == 7
        assert list(instance.settings["objectives"]) == ["valid_acc"]
        assert json.loads(json.dumps(instance.settings))

    def test_a_trial_that_it_did_not_ask_for_is_refused(self, optimizer):
        instance = optimizer(VIEWS["nas"], seed=0)
        (proposal,) = instance.ask(1)
        facts = {"config": VIEWS["nas"].sample(seed=9), "fidelity": {"epoch": 9}, "seed": None, "worker": 0}
        answers = {"metrics": {"valid_acc": 50.0, "runtime": 1.0}, "start": 0.0, "end": 1.0, "status": "finished"}
        with pytest.raises(JahsError, match=f"{instance.name} .* trial 17"):
            instance.tell(Trial(trial=17, **facts, **answers, tag=object()))
        answer = Trial(trial=0, **facts | {"config": proposal.config}, **answers, tag=proposal.tag)
        instance.tell(answer)
        with pytest.raises(JahsError, match=f"{instance.name} .* trial 0"):
            instance.tell(answer)

    def test_several_objectives_where_it_takes_them(self, optimizer):
        many = ("valid_acc", "latency", "n_params")
        if not self.has_many_objectives:
            with pytest.raises(JahsError, match=r"takes? one objective"):
                optimizer(VIEWS["nas"], seed=0, objectives=many)
            return
        for objectives in (many[:2], many):
            assert len(self.run(optimizer(VIEWS["nas"], seed=0, objectives=objectives))) == self.n_trials

    def test_looks_at_nothing_that_it_cannot_know(self, optimizer):
        instance = optimizer(visible(VIEWS["nas"]), seed=0)
        assert len(self.run(instance, n_trials=5)) == 5
