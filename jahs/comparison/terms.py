"""The terms of a study: view, budget and noise. Anyone can run an optimiser under the same terms."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from jahs.comparison.benches import mean_runtime, open_benchmark, release_of
from jahs.errors import MissingData, UnknownName
from jahs.queries.benchmark import Benchmark
from jahs.queries.views import Queryable, View
from jahs.release.find import default_task, full_path
from jahs.simulate import Simulation
from jahs.spaces.parameters import LARGEST
from jahs.spaces.seeds import read_seed
from jahs.spaces.space import GROUPS, space


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """The part of the space that an arm searches, and its fidelities.

    `search` is "all", "nas" (the cell), "hpo" (the hyperparameters) or "sizes" (everything, with N, W and Resolution).
    `fixed_part` says which values the other keys have: their "default", or the values of the release's "reference"
    config; `experiments.views` has the others. N, W and Resolution are at their highest values, as in JAHS-Bench-201,
    unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)  # without "epoch", every training runs to the last epoch
    fixed_part: Literal["default", "reference", "random", "tuned", "resnet", "nasbench201"] = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The declarations of a study."""

    view: ViewChoice = field(default_factory=ViewChoice)
    objectives: tuple[str, ...] = ("valid_acc",)  # metrics to optimise
    noise: Literal["mean", "seeded"] = "seeded"  # means over trainings, or training noise of the run's seed
    n_evaluations: int = 100  # the budget in mean full evaluations
    workers: int = 1  # simulated workers


STUDIES: Final[Mapping[str, Rules]] = MappingProxyType(
    {
        "baselines": Rules(),
        "joint": Rules(),
        "fidelity": Rules(view=ViewChoice(fidelities=("epoch", "N", "W", "Resolution"))),
        "multiobjective": Rules(view=ViewChoice(search="sizes"), objectives=("valid_acc", "latency"), n_evaluations=25),
    }
)
"""The studies under whose terms optimisers are compared."""

SAME_TERMS: Final[Mapping[str, str]] = MappingProxyType({"strong": "baselines"})
"""Studies that have the terms of another study. Their results are shown beside those of that study."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyTerms:
    """The terms of a study on one release."""

    study: str
    rules: Rules
    bench: Benchmark
    view: View  # the view that is searched
    release: str  # sha256 of the release's manifest
    budget_s: float  # simulated seconds of one run

    def simulation(
        self, seed: int, *, log: Path | str | None = None, facts: Mapping[str, object] | None = None
    ) -> Simulation:
        """Return the simulation of one run; `log` and `facts` as in `jahs.Simulation`, and the study is a fact."""
        return Simulation(
            self.view,
            self.rules.workers,
            budget=self.budget_s,
            seed=seed,
            evaluation_seed=read_seed(seed) if self.rules.noise == "seeded" else None,
            log=log,
            facts={"study": self.study, **(facts or {})},
        )


def terms(study: str, *, task: str | None = None, release: Path | str | None = None) -> StudyTerms:
    """Return the terms of a study: view, budget and noise.

    Raises:
        UnknownName: there is no such study, or task; lists those that exist.
        MissingData: there is no release, or it lacks a metric or the noise model that the study needs.

    Example:
        >>> baselines = terms("baselines")
        >>> baselines.rules.noise, list(baselines.view.fidelities)
        ('seeded', ['epoch'])
        >>> configs = iter(baselines.view.sample(200, seed=0))
        >>> trials = baselines.simulation(seed=0).run(lambda trials: next(configs, None))
    """
    return open_terms(study, task, release)


def open_terms(study: str, task: str | None, release: Path | str | None, budget_s: float | None = None) -> StudyTerms:
    """Return the terms of a study as `terms` does; a known budget is not computed again."""
    folder = None if release is None else full_path(release)
    task = task or default_task(folder)
    if study not in STUDIES:
        raise UnknownName.of("study", study, STUDIES)
    return open_rules(study, STUDIES[study], task, folder, budget_s)


@functools.lru_cache(maxsize=32)
def open_rules(name: str, rules: Rules, task: str, release: Path | None, budget_s: float | None = None) -> StudyTerms:
    """Return the terms of any rules; each is opened once per process."""
    bench = open_benchmark(task, release)
    opened_release = release_of(bench)
    if missing := [metric for metric in rules.objectives if metric not in bench.metrics]:
        raise MissingData(f"{task}: {name} optimises {', '.join(missing)}, which {bench.release} does not answer")
    if rules.noise == "seeded" and not opened_release.has("noise.json"):
        raise MissingData(f"{task}: {name} draws training noise, but {bench.release} has no noise.json")
    return StudyTerms(
        study=name,
        rules=rules,
        bench=bench,
        view=open_view(bench, rules.view),
        release=opened_release.sha256,
        budget_s=rules.n_evaluations * mean_runtime(bench) if budget_s is None else budget_s,
    )


def open_view(bench: Queryable, choice: ViewChoice, *, part: Mapping[str, object] | None = None) -> View:
    """Return the view of an arm; `part` is a config with the values of the keys that are not searched.

    Without it, they are those that `choice` names.
    """
    sizes = {name: value for name, value in LARGEST.items() if name not in choice.fidelities}
    if choice.search in {"all", "sizes"}:
        return View(bench, fidelities=choice.fidelities, fixed=sizes if choice.search == "all" else {})
    if choice.fixed_part == "reference":
        return View(bench, fidelities=choice.fidelities, fixed=sizes, search=choice.search)
    if part is None:
        assert choice.fixed_part == "default", "any other part is given"
        part = space().default()
    keys = GROUPS["hyperparameters" if choice.search == "nas" else "architecture"]
    fixed = {**sizes, **{key: part[key] for key in keys}}
    return View(bench, fidelities=choice.fidelities, fixed=fixed, search=choice.search)
