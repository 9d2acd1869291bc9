"""The configs that optimisers visit when a model answers them, and candidates for the next trainings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jahs.adapters import optuna as optuna_adapter
from jahs.adapters.importing import import_tool
from jahs.errors import InvalidArgument
from jahs.files.tables import take
from jahs.optimizers.baseline import Baseline
from jahs.optimizers.evolution import Evolution, EvolutionSettings
from jahs.optimizers.local_search import LocalSearch, LocalSearchSettings
from jahs.optimizers.random_search import RandomSearch, RandomSearchSettings
from jahs.simulate import Trial, Visible
from jahs.spaces.cell import canonical_keys
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.columns import Columns, Configs, codes, columns_of_codes, config_ids
from jahs.spaces.configs import Config
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import LARGEST, PARAMETERS
from jahs.spaces.space import Space, space
from jahs.tasks.metrics import METRICS
from surrogate.models.model import Surrogate
from workshop.exhaustive import ops_of

MAIN: Final = "valid_acc"  # the metric that searches maximise, and that proposals are ranked by
Ask: TypeAlias = Callable[[Configs], NDArray[np.float64]]
"""Returns the model's prediction of `MAIN` for configs at the last epoch, (n,)."""

IsKnown: TypeAlias = Callable[[Columns], NDArray[np.bool_]]
"""Returns a mask of the configs that must not be proposed: recorded ones and the final test set."""

_AT_ONCE: Final = 16  # proposals of our optimisers that are answered as one batch
_START: Final = 50  # random trials of TPE; optuna's default of ten is for short runs
_N_RANDOM: Final = 20_000
_TOP: Final = 0.05
_OUTER: Final = 0.1  # share of a rate's range at each end, on a log scale


def visit(ask: Ask, searched: Space, optimizer: str, *, n: int, seed: int) -> tuple[Columns, NDArray[np.float64]]:
    """Return the configs that an optimiser visits in `n` evaluations, each once, and the model's answers.

    Raises:
        MissingDependency: TPE needs optuna, which is not installed.
    """
    if optimizer == "tpe":
        visited, values = _tpe(ask, searched, n=n, seed=seed)
    else:
        visited, values = search_with(_baseline(optimizer, searched, seed), ask, n=n, at_once=_AT_ONCE)
    columns = columns_of_codes(codes(visited))
    _, first = np.unique(config_ids(columns), return_index=True)
    return {key: column[first] for key, column in columns.items()}, np.array(values)[first]


def _baseline(name: str, searched: Space, seed: int) -> Baseline[Any]:  # Any: its settings
    seen = SimpleNamespace(space=searched, metrics={MAIN: METRICS[MAIN]}, sample=searched.sample)
    view = cast("Visible", seen)  # optimisers without fidelities read nothing else of a view
    if name == "random_search":
        return RandomSearch(view, seed=seed, settings=RandomSearchSettings())
    if name == "local_search":
        return LocalSearch(view, seed=seed, settings=LocalSearchSettings())
    assert name == "regularized_evolution"
    # The settings of NAS-Bench-101 for thousands of evaluations.
    return Evolution(view, seed=seed, settings=EvolutionSettings(population_size=100, tournament_size=10))


def search_with(
    optimizer: Baseline[Any],  # Any: its settings
    ask: Callable[[list[Config]], NDArray[np.float64]],
    *,
    n: int,
    at_once: int = 1,
) -> tuple[list[Config], list[float]]:
    """Return the configs that an optimiser proposes in `n` evaluations, in order, and the model's answers.

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


def _tpe(ask: Ask, searched: Space, *, n: int, seed: int) -> tuple[list[Config], list[float]]:
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


def asking(fitted: Surrogate) -> Ask:
    """Return the function that asks a model for its predictions at the last epoch."""

    def ask(configs: Configs) -> NDArray[np.float64]:
        return fitted.predict(encode(configs, fitted.task.max_epoch))

    return ask


def best_found(
    ask: Ask, optimizers: Sequence[str], *, n: int, evaluations: int, seed: int, is_known: IsKnown
) -> Columns:
    """Return the best configs that several optimisers find at full size, the best first.

    No two cells compute the same function. TPE, which is slow, gets a tenth of the evaluations.

    Raises:
        InvalidArgument: fewer than `n` different cells were found.
    """
    visits = []
    for number, optimizer in enumerate(optimizers):
        child_seed = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint32)[0])
        n_visits = max(1, evaluations // 10) if optimizer == "tpe" else evaluations
        visits.append(visit(ask, space(LARGEST), optimizer, n=n_visits, seed=child_seed))
    columns = {key: np.concatenate([visited[key] for visited, _ in visits]) for key in visits[0][0]}
    values = np.concatenate([answers for _, answers in visits])
    return _first_cells(columns, values, n=n, is_known=is_known, where="that are not recorded were found")


def disagreed_on(ask: Ask, refitted: Sequence[Ask], *, n: int, seed: int, is_known: IsKnown) -> Columns:
    """Return the configs about which refits differ most, among the predicted best 5 % of 20,000 at full size.

    They are sorted by the standard deviation of the refits' predictions; no two have the same cell.
    """
    columns = space(LARGEST).sample_columns(_N_RANDOM, seed=seed)
    top = _descending(columns, ask(columns))[: round(_TOP * _N_RANDOM)]
    columns = take(columns, top)
    spread = np.std([refit(columns) for refit in refitted], axis=0)
    return _first_cells(columns, spread, n=n, is_known=is_known, where="are among the best 5 %")


def poor(*, n: int, seed: int, is_known: IsKnown) -> Columns:
    """Return configs of any size that are likely to be poor: with few paths and with extreme rates, alternating.

    A cell with few paths has at most one live path. Rates are extreme if learning rate and weight decay are both in the
    outer tenths of their ranges, on a log scale. All other keys are uniform.
    """
    columns = space().sample_columns(_N_RANDOM, seed=seed)
    is_free = ~is_known(columns)
    ops = ops_of(columns)
    has_few = live_paths(ops).sum(axis=1) <= 1
    is_extreme = _is_outer("LearningRate", columns) & _is_outer("WeightDecay", columns)
    kinds = [np.flatnonzero(is_free & mask) for mask in (has_few, is_extreme & ~has_few)]
    if n > 2 * (most := min(map(len, kinds))):
        raise InvalidArgument(f"n={n} must be at most {2 * most}")
    in_turn = np.column_stack([kind[: -(-n // 2)] for kind in kinds]).reshape(-1)
    return take(columns, in_turn[:n])


def _is_outer(key: str, columns: Columns) -> NDArray[np.bool_]:
    lower, upper = np.log(PARAMETERS[key].lower), np.log(PARAMETERS[key].upper)
    place = (np.log(columns[key].astype(np.float64)) - lower) / (upper - lower)
    return np.asarray((place < _OUTER) | (place > 1 - _OUTER), dtype=np.bool_)


def _descending(columns: Columns, values: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.lexsort((config_ids(columns), -values))


def _first_cells(columns: Columns, values: NDArray[np.float64], *, n: int, is_known: IsKnown, where: str) -> Columns:
    """Return the `n` configs with the highest values that are not known, one for each cell; refuse fewer."""
    order = _descending(columns, values)
    order = order[~is_known(take(columns, order))]
    cells = canonical_keys(ops_of(take(columns, order)))
    _, first = np.unique(cells, return_index=True)
    if len(first) < n:
        raise InvalidArgument(f"{len(first)} different cells {where}, not n={n}; lower --n")
    return take(columns, order[np.sort(first)[:n]])
