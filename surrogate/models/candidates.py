"""Candidates for the next trainings, by the predictions of the models and by their disagreement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument
from jahs.files.tables import take
from jahs.queries.exhaustive import LARGEST
from jahs.schema import OPS
from jahs.spaces.cell import canonical_keys
from jahs.spaces.cell.paths import live_paths
from jahs.spaces.columns import Columns, Configs, config_ids
from jahs.spaces.encoding import encode
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import Space, space
from surrogate.models.model import Surrogate
from surrogate.models.optima import Ask, visit

IsKnown: TypeAlias = Callable[[Columns], NDArray[np.bool_]]
"""A mask of the configs that are not proposed: recorded ones, and those of the final test set."""

_N_RANDOM: Final = 20_000
_TOP: Final = 0.05
_OUTER: Final = 0.1  # of the range of a rate, on a log scale, at each end


def asking(fitted: Surrogate) -> Ask:
    """Return the function that asks a model for its predictions at the last epoch."""

    def ask(configs: Configs) -> NDArray[np.float64]:
        return fitted.predict(encode(configs, fitted.task.max_epoch))

    return ask


def full_size() -> Space:
    """Return the space of the largest networks."""
    return space(LARGEST)


def best_found(
    ask: Ask, optimizers: Sequence[str], *, n: int, evaluations: int, seed: int, is_known: IsKnown
) -> tuple[Columns, NDArray[np.float64]]:
    """Return the best configs that several optimisers find at full size, the best first, and their predictions.

    Each has a cell that computes something else. TPE, which is slow, gets a tenth of the evaluations.

    Raises:
        InvalidArgument: fewer than `n` different cells were found.
    """
    parts: list[Columns] = []
    answers: list[NDArray[np.float64]] = []
    for number, optimizer in enumerate(optimizers):
        own = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint32)[0])
        n_own = max(1, evaluations // 10) if optimizer == "tpe" else evaluations
        found, values = visit(ask, full_size(), optimizer, n=n_own, seed=own)
        parts.append(found)
        answers.append(values)
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    values = np.concatenate(answers)
    chosen = _first_cells(columns, _descending(columns, values), n=n, is_known=is_known)
    if len(chosen) < n:
        raise InvalidArgument(f"{len(chosen)} different cells that are not recorded were found, not n={n}; lower --n")
    return take(columns, chosen), values[chosen]


def disagreed_on(ask: Ask, refitted: Sequence[Ask], *, n: int, seed: int, is_known: IsKnown) -> Columns:
    """Return the configs about which refits differ most, among the predicted best 5 % of 20,000 at full size.

    They are sorted by the standard deviation of the refits' predictions; each has a cell of its own.
    """
    columns = full_size().sample_columns(_N_RANDOM, seed=seed)
    top = _descending(columns, ask(columns))[: round(_TOP * _N_RANDOM)]
    columns = take(columns, top)
    spread = np.std([refit(columns) for refit in refitted], axis=0)
    chosen = _first_cells(columns, _descending(columns, spread), n=n, is_known=is_known)
    if len(chosen) < n:
        raise InvalidArgument(f"{len(chosen)} different cells are among the best 5 %, not n={n}; lower --n")
    return take(columns, chosen)


def poor(*, n: int, seed: int, is_known: IsKnown) -> Columns:
    """Return configs that are likely to be poor, of any size, in turn: with few paths, and with extreme rates.

    A cell with few paths has one that is alive, or none. A rate is extreme in the outer tenth of its range, on a log
    scale; both learning rate and weight decay are. What else varies is uniform.
    """
    columns = space().sample_columns(_N_RANDOM, seed=seed)
    is_free = ~is_known(columns)
    ops = np.column_stack([columns[op] for op in OPS])
    has_few = live_paths(ops).sum(axis=1) <= 1
    is_extreme = _is_outer("LearningRate", columns) & _is_outer("WeightDecay", columns)
    kinds = [np.flatnonzero(is_free & mask) for mask in (has_few, is_extreme & ~has_few)]
    if n > 2 * (most := min(map(len, kinds))):
        raise InvalidArgument(f"n={n} must be at most {2 * most}")
    in_turn = np.column_stack([kind[: n // 2 + 1] for kind in kinds]).reshape(-1)
    return take(columns, in_turn[:n])


def _is_outer(key: str, columns: Columns) -> NDArray[np.bool_]:
    lower, upper = np.log(PARAMETERS[key].lower), np.log(PARAMETERS[key].upper)
    place = (np.log(columns[key].astype(np.float64)) - lower) / (upper - lower)
    return np.asarray((place < _OUTER) | (place > 1 - _OUTER), dtype=np.bool_)


def _descending(columns: Columns, values: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.lexsort((config_ids(columns), -values))


def _first_cells(columns: Columns, order: NDArray[np.intp], *, n: int, is_known: IsKnown) -> NDArray[np.intp]:
    """Return the first `n` rows in an order, of those that are not known, with a cell of their own each."""
    order = order[~is_known(take(columns, order))]
    cells = canonical_keys(np.column_stack([columns[op][order].astype(np.int64) for op in OPS]))
    _, first = np.unique(cells, return_index=True)
    chosen: NDArray[np.intp] = order[np.sort(first)[:n]]
    return chosen
