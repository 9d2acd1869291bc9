"""The landscape of a benchmark: variance decomposition, random-walk autocorrelation, mutants of the best configs.

Walks are those of NAS-Bench-101. Each step is one of `jahs.Space.neighbors`, with equal probability. If only some keys
change, the walks of one context share the values of all other keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from experiments.analysis.variance import Draws, decomposition, draw, effects, unions
from jahs.adapters.values import shown_parameters
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, mean_interval
from jahs.errors import InvalidArgument, UnknownName, refuse
from jahs.files.tables import take
from jahs.optimizers.moves import mutated
from jahs.queries.benchmark import Benchmark
from jahs.spaces.columns import Configs, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST, PARAMETERS, is_integer
from jahs.spaces.seeds import SEED_RANGE, is_seed
from jahs.spaces.space import GROUPS, Space
from jahs.tasks.metrics import Metric
from workshop.resampling import percentile_interval

Scale: TypeAlias = Literal["rank", "value", "better half"]

SCALES: Final[Mapping[Scale, str]] = {"rank": "rank", "value": "value", "better half": "improvement over the median"}
"""The decomposed quantities and their titles. The improvement is 0 in the worse half."""

N_RANDOM: Final = 10_000  # random configs that a walk's configs are ranked among, and whose best are mutated
N_BEST: Final = 20
TOP: Final = 0.01

_N_CONTEXTS: Final = 96
_N_WALKS: Final = 2
_N_OF_CONTEXT: Final = 400
_N_STEPS: Final = 48
_N_LAGS: Final = 24
_N_MUTANTS: Final = 50
_N_RESAMPLES: Final = 500
_DECADES: Final = 0.5
_MOST_EPOCHS: Final = 12
_FEWEST: Final = 64

_Ask: TypeAlias = Callable[[Configs], Floats]  # maps configs to values at one epoch; more is better


class SpacePart(NamedTuple):
    """A part of the space: sizes are searched, or fixed at the largest or the smallest networks."""

    name: str  # part of file names
    title: str  # label in figures and tables
    space: Space
    groups: Mapping[str, tuple[str, ...]]  # the keys that vary, by group


class Variance(NamedTuple):
    """The variance decomposition of one part of the space."""

    part: SpacePart
    # By scale, at the last epoch: main effects of groups and their interactions, which sum to one. The scale "better
    # half" is missing if more than half of the configs are equally good.
    shares: Mapping[Scale, Mapping[str, Interval]]
    main: Mapping[str, Interval]  # main effect of each key on the rank at the last epoch
    total: Mapping[str, Interval]  # its total effect
    epochs: tuple[int, ...]  # ascending, including the last one
    by_epoch: Mapping[str, tuple[Interval, ...]]  # shares of the variance of ranks at each of these epochs


class Landscape(NamedTuple):
    """The landscape of one metric."""

    metric: Metric
    variances: tuple[Variance, ...]  # decompositions of the whole space, of the largest and of the smallest networks
    # Largest networks, by group of keys that change: correlation of ranks 1, 2, ... moves apart.
    walks: Mapping[str, tuple[Interval, ...]]
    # Largest networks, by group: share of mutants of the best configs that stay among the best 1 % after 1, 2, ...
    # changed keys. Groups without an effect are in neither.
    mutants: Mapping[str, tuple[Interval, ...]]
    top: tuple[float, float]  # worst and best value among the best 1 %
    share_of_top: float  # share of random configs at least as good as the worst of these: 1 %, or more with ties


def measure_landscape(bench: Benchmark, metric: str, *, n: int, seed: int) -> Landscape:
    """Measure the landscape of a metric, with `n` configs in each of the two samples."""
    if metric not in bench.metrics:
        raise UnknownName.of("metric", metric, bench.metrics)
    faults = [f"n={n!r} must be an integer >= {_FEWEST}"] if not is_integer(n) or n < _FEWEST else []
    faults += [f"seed={seed!r} is not an integer in {SEED_RANGE}"] if not is_seed(seed) else []
    refuse(*faults)
    ask, parts = _values_at(bench, metric, bench.max_epoch), _parts()
    largest = parts[1].space
    columns = largest.sample_columns(N_RANDOM, seed=_child(seed, 2))
    values = ask(columns)
    ordered, among_top = np.sort(values), float(np.quantile(values, 1 - TOP))
    variances = tuple(_variance(bench, metric, part, n=n, seed=seed) for part in parts)
    changed = _deciding(variances[1]).items()
    best = rows(take(columns, np.argsort(-values, kind="stable")[:N_BEST]))
    return Landscape(
        metric=bench.metrics[metric],
        variances=variances,
        walks={title: _walks(ask, ordered, largest, keys, seed) for title, keys in changed},
        mutants={title: _mutants(ask, best, largest, keys, among_top=among_top, seed=seed) for title, keys in changed},
        top=(abs(among_top), abs(float(values.max()))),
        share_of_top=float((values >= among_top).mean()),
    )


def with_errors_of_fit(found: Any, refitted: Sequence[Any]) -> Any:  # Any: a landscape, or parts of it
    """Widen every interval by the standard error over the configs that the surrogate was fitted to.

    Args:
        found: a landscape of a surrogate fitted to all configs; or its intervals, also in sequences or mappings.
        refitted: the same for refits to resampled configs; their standard deviation is that error.
    """
    if isinstance(found, Mapping):
        refits = {name: [refit[name] for refit in refitted if name in refit] for name in found}
        return {name: with_errors_of_fit(part, refits[name]) for name, part in found.items()}
    if isinstance(found, tuple):
        parts = [with_errors_of_fit(part, [refit[i] for refit in refitted]) for i, part in enumerate(found)]
        return getattr(found, "_make", tuple)(parts)  # a NamedTuple stays one
    if not isinstance(found, Interval) or len(refitted) < 2:
        return found
    error = 1.96 * float(np.std([refit.value for refit in refitted], ddof=1))
    return Interval(
        value=found.value,
        low=found.value - math.hypot(found.value - found.low, error),
        high=found.value + math.hypot(found.high - found.value, error),
    )


def _parts() -> tuple[SpacePart, SpacePart, SpacePart]:
    groups = {name: tuple(key for key in keys if len(PARAMETERS[key].choices) != 1) for name, keys in GROUPS.items()}
    but_sizes = {name: keys for name, keys in groups.items() if name != "fidelities"}
    smallest = {key: PARAMETERS[key].choices[0] for key in groups["fidelities"]}
    return (
        SpacePart(name="whole", title="whole space", space=Space(), groups=groups),
        SpacePart(name="largest", title="largest networks", space=Space().fix(LARGEST), groups=but_sizes),
        SpacePart(name="smallest", title="smallest networks", space=Space().fix(smallest), groups=but_sizes),
    )


def _deciding(variance: Variance) -> dict[str, tuple[str, ...]]:
    """Return the keys that walks and mutants change: all keys, and each group with an effect."""
    deciding = {key for key, effect in variance.total.items() if effect.value > 0}
    groups = {name: keys for name, keys in variance.part.groups.items() if not deciding.isdisjoint(keys)}
    return {"all keys": tuple(variance.total), **(groups if len(groups) > 1 else {})}


def _variance(bench: Benchmark, metric: str, part: SpacePart, *, n: int, seed: int) -> Variance:
    one, other = (part.space.sample_columns(n, seed=_child(seed, i)) for i in (0, 1))
    n_epochs = min(bench.max_epoch, _MOST_EPOCHS) if bench.metrics[metric].by_epoch else 1
    epochs = tuple(np.unique(np.geomspace(bench.max_epoch, 1, n_epochs).round().astype(int)).tolist())
    asked = [_values_at(bench, metric, epoch) for epoch in epochs]
    of_groups = [draw(ask, one, other, unions(part.groups)) for ask in asked]
    of_keys = draw(asked[-1], one, other, {key: (key,) for group in part.groups.values() for key in group})
    scaled = {scale: _on_scale(of_groups[-1], scale) for scale in SCALES}
    shares = {scale: decomposition(draws, [*part.groups]) for scale, draws in scaled.items() if np.ptp(draws.one)}
    by_epoch = [decomposition(_on_scale(draws, "rank"), [*part.groups]) for draws in of_groups]
    main, total = effects(_on_scale(of_keys, "rank"))
    together = {name: tuple(epoch_shares[name] for epoch_shares in by_epoch) for name in by_epoch[0]}
    return Variance(part=part, shares=shares, main=main, total=total, epochs=epochs, by_epoch=together)


def _walks(ask: _Ask, ordered: Floats, searched: Space, keys: Sequence[str], seed: int) -> tuple[Interval, ...]:
    """Return the autocorrelation over walks in many contexts, relative to the mean of each context."""
    ranks, means = [], []
    for i, space in enumerate(contexts(searched, keys, _N_CONTEXTS, seed=_child(seed, 3))):
        walks = [random_walk(space, _N_STEPS, seed=_child(seed, 4, i, j)) for j in range(_N_WALKS)]
        visited = _rank(ask([config for walk in walks for config in walk]), ordered)
        ranks.append(visited.reshape(_N_WALKS, _N_STEPS + 1))
        means.append(_rank(ask(space.sample_columns(_N_OF_CONTEXT, seed=_child(seed, 5, i))), ordered).mean())
    return tuple(autocorrelation(np.array(ranks), np.array(means), n_lags=_N_LAGS))


def _mutants(
    ask: _Ask, best: Sequence[Config], searched: Space, keys: Sequence[str], *, among_top: float, seed: int
) -> tuple[Interval, ...]:
    shares = []
    for n_keys in range(1, len(keys) + 1):
        mutate = partial(mutants, searched, n=_N_MUTANTS, n_keys=n_keys, keys=keys, decades=_DECADES)
        changed = [mutant for i, one in enumerate(best) for mutant in mutate(one, seed=_child(seed, 6, n_keys, i))]
        is_top = (ask(changed) >= among_top).reshape(len(best), _N_MUTANTS)
        shares.append(mean_interval(is_top.mean(axis=1)).within(0.0, 1.0))
    return tuple(shares)


def contexts(space: Space, keys: Sequence[str], n: int, *, seed: int) -> list[Space]:
    """Return `n` spaces that search only `keys`, with all other keys of `space` fixed at random values."""
    fixed = [key for key in space.searched if key not in set(keys)]
    columns = space.sample_columns(n, seed=seed)
    return [space.fix({key: columns[key][i] for key in fixed}) for i in range(n)]


def random_walk(space: Space, n_steps: int, *, seed: int) -> list[Config]:
    """Return a random config and the configs after each of `n_steps` random moves."""
    rng = np.random.default_rng([seed, 1])
    visited = [space.sample(seed=seed)]
    for _ in range(n_steps):
        near = space.neighbors(visited[-1])
        visited.append(near[int(rng.integers(len(near)))])
    return visited


def autocorrelation(values: Floats, means: Floats, *, n_lags: int) -> list[Interval]:
    """Return the correlation of values 1, 2, ... `n_lags` steps apart, with bootstrap intervals over contexts.

    Args:
        values: (n_contexts, n_walks, n_steps + 1).
        means: (n_contexts,), the mean over each context; differences between contexts do not count.
        n_lags: the largest distance, at most the number of steps.
    """
    n_places = values.shape[2]
    dev = values - means[:, None, None]
    products = np.array([(dev[..., : n_places - lag] * dev[..., lag:]).mean(axis=(1, 2)) for lag in range(n_lags + 1)])
    if not products[0].any():
        raise InvalidArgument("values are all equal, so a correlation is undefined")
    picks = np.random.default_rng(0).integers(0, len(values), (_N_RESAMPLES, len(values)))
    cov, resampled = products.mean(axis=1), products[:, picks].mean(axis=2)  # (n_lags + 1, n_resamples)
    return [percentile_interval(float(cov[i] / cov[0]), resampled[i] / resampled[0]) for i in range(1, n_lags + 1)]


def mutants(
    space: Space, config: Config, *, n: int, n_keys: int, decades: float, keys: Sequence[str], seed: int
) -> list[Config]:
    """Return `n` mutants of `config`, each with `n_keys` of `keys` changed (`jahs.optimizers.moves.mutated`)."""
    rng = np.random.default_rng(seed)
    candidates = [key for key in shown_parameters(space) if key in set(keys)]
    chosen = (rng.choice(len(candidates), n_keys, replace=False).tolist() for _ in range(n))
    return [mutated(space, config, rng, keys=[candidates[i] for i in picked], decades=decades) for picked in chosen]


def _values_at(bench: Benchmark, metric: str, epoch: int) -> _Ask:
    sign = 1.0 if bench.metrics[metric].direction == "max" else -1.0
    return lambda configs: sign * bench.query_many(configs, at=epoch, metrics=(metric,))[metric]


def _on_scale(draws: Draws, scale: Scale) -> Draws:
    known = np.sort([draws.one, draws.other], axis=None)
    if scale == "rank":
        return draws.changed(partial(_rank, ordered=known))
    if scale == "better half":
        return draws.changed(lambda values: np.maximum(values - np.median(known), 0.0))
    return draws


def _rank(values: Floats, ordered: Floats) -> Floats:
    """Return the share of `ordered`, ascending values, that is worse, plus half the share of equal ones."""
    ranks: Floats = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right")) / (2 * len(ordered))
    return ranks


def _child(seed: int, *path: int) -> int:
    return int(np.random.SeedSequence([seed, *path]).generate_state(1, np.uint64)[0])
