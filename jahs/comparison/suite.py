"""Named suites: views frozen with their release, budget, references and baseline, so that papers can be compared.

jahs/seasons/suites/<name>.json    a sealed file, written by `python -m experiments.suite`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.comparison.benches import open_benchmark, release_of
from jahs.comparison.claims import by_mean
from jahs.comparison.logs import trial_log
from jahs.comparison.rules import cost_faults, metric_faults, number_faults, time_faults, with_other_noise
from jahs.comparison.standings import steps_of
from jahs.comparison.terms import Rules, StudyTerms, ViewChoice, open_rules
from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, InvalidFidelity, ProtocolMismatch, UnknownName
from jahs.files.sealed_json import read_sealed
from jahs.queries.views import View
from jahs.release.find import full_path
from jahs.simulate import Simulation, Trial
from jahs.simulate.settings import Settings
from jahs.spaces.fidelities import is_list
from jahs.spaces.parameters import show

SUITES: Final = Path(__file__).parents[1] / "seasons" / "suites"
"""The folder of the suites."""

_ADVICE: Final = "give the trials of problem.simulation(seed).run(optimizer)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of a suite.

    Attributes:
        id: its permanent name.
        task: the task.
        version, release: number of the release, and sha256 of its manifest.
        rules: view, objectives, noise, budget in mean full evaluations, and workers.
        budget_s: simulated seconds of one run.
        best: the best known result: a mean validation error (%), or no missing hypervolume.
        random_search, random_search_se: mean result of random search, and its standard error.
        n_seeds: number of its seeds.
        folder: folder of the release; None: found by `jahs`.
    """

    id: str
    task: str
    version: str
    release: str
    rules: Rules
    budget_s: float
    best: float
    random_search: float
    random_search_se: float
    n_seeds: int
    folder: Path | None = None

    @property
    def objectives(self) -> tuple[str, ...]:
        """The metrics to optimise."""
        return self.rules.objectives

    @property
    def terms(self) -> StudyTerms:
        """The opened benchmark and view."""
        return open_rules(self.id, self.rules, self.task, self.folder, self.budget_s)

    @property
    def view(self) -> View:
        """The view that is searched."""
        return self.terms.view

    def simulation(self, seed: int, *, log: Path | str | None = None) -> Simulation:
        """Return the simulation of one run, with training noise of its seed; `log` as in `jahs.Simulation`."""
        return self.terms.simulation(seed, log=log)

    def result(self, trials: Sequence[Trial]) -> float:
        """Return the result of a run, to be minimised: the trials' choice, scored by means.

        Raises:
            InvalidArgument: these are no trials.
            ProtocolMismatch: a trial is of another problem; says why.

        Returns:
            The final incumbent's mean validation error (%), NaN without a trial at the highest fidelity; with several
            objectives the share of the hypervolume of the release's front that the means of all trials at the highest
            fidelity miss (%), 100 without any.
        """
        self._check(trials)
        columns = trial_log({"view": {"fidelities": dict(self.view.full)}}, trials)
        full_trials = [columns.trials[row] for row in np.flatnonzero(columns.is_full).tolist()]
        settings = Settings(workers=self.rules.workers, budget=self.budget_s)
        try:
            faults = chain(
                number_faults(trials),
                time_faults(trials, settings),
                metric_faults(full_trials, self.view),
                cost_faults(trials, self.view, settings),
            )
            fault = next(faults, None)
        except (InvalidConfig, InvalidFidelity) as err:
            fault = str(err)
        if fault:
            raise ProtocolMismatch(
                f"{fault}; these are trials of another problem than {self.id}, or not those of one run: {_ADVICE}"
            )
        full, incumbents = by_mean(columns, self.view)
        steps = steps_of(full, incumbents, self.terms)
        return float(steps.values[-1]) if len(steps.values) else float("nan")

    def _check(self, trials: Sequence[Trial]) -> None:
        """Refuse what are no trials, and trials of another problem."""
        if not is_list(trials) or not all(isinstance(trial, Trial) for trial in trials):
            raise InvalidArgument(
                f"trials={show(trials)} is not a list of trials, as problem.simulation(seed).run(optimizer) returns"
            )
        view, is_noisy = self.view, self.rules.noise == "seeded"
        names = {"epoch", *view.full}
        fixed = {key: value for key, value in view.space.fixed.items() if key not in view.full}.items()
        for trial in trials:
            config: Mapping[str, object] = trial.config
            fidelity: Mapping[str, object] = trial.fidelity or {}
            differing = {key: value for key, value in fixed if config.get(key) != value}
            if set(fidelity) != names:
                fault = f"its fidelities are {', '.join(fidelity) or 'unknown'}, not {', '.join(sorted(names))}"
            elif differing:
                wrong = (f"{key}={config.get(key)!r}, not {value!r}" for key, value in differing.items())
                fault = f"it has {', '.join(wrong)}"
            elif (trial.seed is not None) != is_noisy:
                fault = "it has no training noise" if is_noisy else "it has training noise"
            else:
                continue
            raise self._refused(trial, fault)
        for trial in with_other_noise(trials, trials[0].seed if trials else None):
            fault = f"its noise has seed {trial.seed}, that of trial {trials[0].trial} has seed {trials[0].seed}"
            raise self._refused(trial, fault)

    def _refused(self, trial: Trial, fault: str) -> ProtocolMismatch:
        return ProtocolMismatch(f"trial {trial.trial} is of another problem than {self.id}: {fault}; {_ADVICE}")

    def score(self, trials: Sequence[Trial]) -> float:
        """Return the result on a common scale: 0 is the best known result, 1 is random search on average."""
        return (self.result(trials) - self.best) / (self.random_search - self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Problems in a fixed order; iterate over them, or pick one by its id.

    Attributes:
        name: name of the suite.
        releases: number and sha256 of the release of each task.
        problems: the problems.
    """

    name: str
    releases: Mapping[str, tuple[str, str]]
    problems: tuple[Problem, ...]

    def __iter__(self) -> Iterator[Problem]:
        """Return the problems in order."""
        return iter(self.problems)

    def __len__(self) -> int:
        """Return the number of problems."""
        return len(self.problems)

    def __getitem__(self, id: str) -> Problem:  # noqa: A002  # as the attribute
        """Return a problem by its id; UnknownName lists the ids."""
        for problem in self.problems:
            if problem.id == id:
                return problem
        raise UnknownName.of("problem", id, [problem.id for problem in self.problems])

    def cite(self) -> str:
        """Return a line for papers: the suite, and the releases that it is frozen on."""
        releases = ", ".join(f"{task} {version} ({sha[:16]})" for task, (version, sha) in self.releases.items())
        return f"{self.name}: {len(self)} problems on {releases}"


def suite(name: str, *, release: Path | str | None = None) -> Suite:
    """Return a named suite of frozen problems.

    Args:
        name: "jahs-20".
        release: folder of one release per task; None: found by `jahs`.

    Raises:
        UnknownName: there is no such suite; lists those that exist.
        ProtocolMismatch: a release is not the one that the suite is frozen on; names both.
        MissingData: there is no release of a task.

    Example:
        >>> problems = suite("jahs-20")
        >>> len(problems), problems.problems[0].rules.noise
        (20, 'seeded')
    """
    known = sorted(path.stem for path in SUITES.glob("*.json"))
    if name not in known:
        raise UnknownName.of("suite", name, known)
    folder = None if release is None else full_path(release)
    content = read_sealed(SUITES / f"{name}.json")
    try:
        releases = {task: (str(version), str(sha)) for task, (version, sha) in sorted(content["releases"].items())}
        problems = tuple(_problem(each, releases[each["task"]], folder) for each in content["problems"])
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise CorruptFile(f"{SUITES / name}.json is not a suite: {err!r}; install the package again") from err
    if faults := list(_release_faults(releases, folder)):
        raise ProtocolMismatch("\n".join([f"{name} is frozen on other releases; name them as release=", *faults]))
    return Suite(name=name, releases=releases, problems=problems)


def _release_faults(releases: Mapping[str, tuple[str, str]], folder: Path | None) -> Iterator[str]:
    for task, (version, sha) in releases.items():
        actual = release_of(open_benchmark(task, folder))
        if sha not in actual.answers_as:
            here = f"{actual.facts.get('version')} ({actual.sha256[:16]})"
            yield f"{task}: {version} ({sha[:16]}), but {actual.path} is {here}"


def _problem(facts: Mapping[str, Any], release: tuple[str, str], folder: Path | None) -> Problem:  # Any: JSON
    view = {**facts["view"], "fidelities": tuple(facts["view"]["fidelities"])}
    return Problem(
        id=facts["id"],
        task=facts["task"],
        version=release[0],
        release=release[1],
        rules=Rules(
            view=ViewChoice(**view), objectives=tuple(facts["objectives"]), n_evaluations=int(facts["n_evaluations"])
        ),
        folder=folder,
        **{key: facts[key] for key in ("budget_s", "best", "random_search", "random_search_se", "n_seeds")},
    )
