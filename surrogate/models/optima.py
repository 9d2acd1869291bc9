"""The configs that optimisers visit when a model answers them: where a search on a release would end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jahs.adapters import optuna as optuna_adapter
from jahs.adapters.importing import import_tool
from jahs.errors import UnknownName
from jahs.optimizers.baseline import Baseline
from jahs.optimizers.evolution import Evolution, EvolutionSettings
from jahs.optimizers.local_search import LocalSearch, LocalSearchSettings
from jahs.optimizers.random_search import RandomSearch, RandomSearchSettings
from jahs.simulate import Trial, Visible
from jahs.spaces.columns import Columns, Configs, config_ids, validate_columns
from jahs.spaces.configs import Config
from jahs.spaces.space import Space
from jahs.tasks.metrics import METRICS, Metric

MAIN: Final = "valid_acc"
"""The metric that is searched for, and proposed by."""

Ask: TypeAlias = Callable[[Configs], NDArray[np.float64]]
"""The model's `MAIN` of configs at the last epoch, (n,)."""

OPTIMIZERS: Final = ("random_search", "local_search", "regularized_evolution", "tpe")

_AT_ONCE: Final = 16  # proposals of ours that are answered together
_START: Final = 50  # random trials of TPE; optuna's ten are for short runs


class _View:
    """The part of a benchmark that our optimisers read."""

    def __init__(self, searched: Space) -> None:
        self.space = searched
        self.metrics: Mapping[str, Metric] = {MAIN: METRICS[MAIN]}

    def sample(self, n: int, *, seed: int) -> list[Config]:
        """Return random configs."""
        return self.space.sample(n, seed=seed)


def visit(ask: Ask, searched: Space, optimizer: str, *, n: int, seed: int) -> tuple[Columns, NDArray[np.float64]]:
    """Return the configs that an optimiser visits in `n` evaluations, each once, and the model's answers.

    Raises:
        UnknownName: there is no such optimiser here.
        MissingDependency: TPE needs optuna, which is not installed.
    """
    if optimizer not in OPTIMIZERS:
        raise UnknownName.of("optimizer", optimizer, OPTIMIZERS)
    search = _tpe if optimizer == "tpe" else _ours
    visited, values = search(ask, searched, optimizer, n=n, seed=seed)
    keys = visited[0].keys()
    columns = validate_columns({key: [config[key] for config in visited] for key in keys})  # type: ignore[literal-required]  # keys of Config
    _, first = np.unique(config_ids(columns), return_index=True)
    return {key: column[first] for key, column in columns.items()}, np.array(values)[first]


def _ours(ask: Ask, searched: Space, optimizer: str, *, n: int, seed: int) -> tuple[list[Config], list[float]]:
    view = cast("Visible", _View(searched))  # of which optimisers without fidelities read no more
    made: dict[str, Callable[[], Baseline[Any]]] = {  # Any: their settings
        "random_search": lambda: RandomSearch(view, seed=seed, settings=RandomSearchSettings()),
        "local_search": lambda: LocalSearch(view, seed=seed, settings=LocalSearchSettings()),
        # As NAS-Bench-101 has it for thousands of evaluations.
        "regularized_evolution": lambda: Evolution(
            view, seed=seed, settings=EvolutionSettings(population_size=100, tournament_size=10)
        ),
    }
    return search_with(made[optimizer](), ask, n=n, at_once=_AT_ONCE)


def search_with(
    optimizer: Baseline[Any],  # Any: its settings
    ask: Callable[[list[Config]], NDArray[np.float64]],
    *,
    n: int,
    at_once: int = 1,
) -> tuple[list[Config], list[float]]:
    """Return the configs that an optimiser asks for in `n` evaluations, in order, and their answers.

    Args:
        at_once: proposals that are answered together.
    """
    visited: list[Config] = []
    values: list[float] = []
    while len(visited) < n:
        proposals = optimizer.ask(min(at_once, n - len(visited)))
        configs = [cast("Config", dict(proposal.config)) for proposal in proposals]
        for proposal, config, value in zip(proposals, configs, ask(configs).tolist(), strict=True):
            trial = Trial(
                trial=len(visited), config=config, fidelity={}, seed=None, metrics={MAIN: value}, start=0.0, end=0.0,
                worker=0, status="finished", tag=proposal.tag,
            )  # fmt: skip
            optimizer.tell(trial)
            visited.append(config)
            values.append(value)
    return visited, values


def _tpe(ask: Ask, searched: Space, _: str, *, n: int, seed: int) -> tuple[list[Config], list[float]]:
    tool = import_tool("optuna", needs="optuna")
    distributions = optuna_adapter.make_space(searched)
    sampler = tool.samplers.TPESampler(n_startup_trials=min(n, _START), seed=seed % 2**31)
    verbosity = tool.logging.get_verbosity()
    tool.logging.set_verbosity(tool.logging.ERROR)
    try:
        study = tool.create_study(direction="maximize", sampler=sampler)
    finally:
        tool.logging.set_verbosity(verbosity)
    visited: list[Config] = []
    values: list[float] = []
    for _number in range(n):
        trial = study.ask(distributions)
        visited.append(optuna_adapter.to_config(trial.params, searched))
        values.append(float(ask([visited[-1]])[0]))
        study.tell(trial, values[-1])
    return visited, values
