"""What a benchmark's space looks like: which keys decide, how far neighbours are alike, how steep it is at the top."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from experiments.analysis.locality import autocorrelation, contexts, mutants, random_walk
from experiments.analysis.logs import Floats
from experiments.analysis.summaries import Interval, bootstrap_interval
from experiments.analysis.variance import Draws, decomposition, draw, shares_alone, shares_in_all, unions
from experiments.studies.study import FULL_SIZES
from jahs.errors import InvalidArgument, UnknownName
from jahs.spaces.columns import Configs, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import GROUPS, Space
from jahs.tasks.metrics import Metric

__all__ = [
    "N_BEST",
    "N_RANDOM",
    "SCALES",
    "TOP",
    "Answers",
    "Landscape",
    "Part",
    "Scale",
    "Variance",
    "measure_landscape",
    "with_errors_of_fit",
]

Scale: TypeAlias = Literal["place", "value", "better half"]

SCALES: Final[tuple[Scale, ...]] = ("place", "value", "better half")
"""What is divided: a config's place among all, its value, or by how much it is better than the median (nothing for the
worse half)."""

N_RANDOM: Final = 10_000
"""Random configs among which a walk's configs have their places, and of which the best are changed."""

N_BEST: Final = 20
TOP: Final = 0.01

_N_CONTEXTS: Final = 96
_N_WALKS: Final = 2
_N_OF_CONTEXT: Final = 400
_N_STEPS: Final = 48
_N_LAGS: Final = 24
_N_MUTANTS: Final = 50
_DECADES: Final = 0.5
_MOST_EPOCHS: Final = 12
_FEWEST: Final = 64

_Z: Final = 1.96  # standard errors on each side of a 95 % interval

_Ask: TypeAlias = Callable[[Configs], Floats]
"""What configs are worth at one epoch: more is better."""


class Answers(Protocol):
    """What is asked: a benchmark, or a surrogate that answers a metric of it."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """What can be asked for, by name."""

    @property
    def max_epoch(self) -> int:
        """The last epoch."""

    def query_many(self, configs: Configs, *, at: int, metrics: Sequence[str]) -> dict[str, Floats]:
        """Return metrics of many configs at one epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """A part of the space: the sizes are searched, or held where networks are largest or smallest.

    Attributes:
        name: for files.
        title: for people.
        space: what is searched.
        groups: the keys that vary, by group.
    """

    name: str
    title: str
    space: Space
    groups: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variance:
    """What decides in one part of the space.

    Attributes:
        part: which one.
        shares: at the last epoch, by scale: what groups and their interplays decide; they sum to one. Nothing is
            better than the median where more than half are equally good, so that this scale is missing then.
        alone, in_all: of a config's place at the last epoch, by key: what it decides alone, and with others as well.
        epochs: ascending, the last one included.
        by_epoch: the shares of the place at each of them.
    """

    part: Part
    shares: Mapping[Scale, Mapping[str, Interval]]
    alone: Mapping[str, Interval]
    in_all: Mapping[str, Interval]
    epochs: tuple[int, ...]
    by_epoch: Mapping[str, tuple[Interval, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Landscape:
    """What was measured of one metric.

    Attributes:
        metric: which one.
        n: configs in each of the two samples that are mixed.
        seed: of everything that was drawn.
        variances: of the whole space, of the largest networks and of the smallest.
        walks: among the largest networks, by what moves: the correlation of places 1, 2, ... moves apart.
        mutants: there, by what is changed: the share of configs that are still among the best 1 % after 1, 2, ... keys
            of one of the best were changed. A group that decides nothing is in neither.
        top: the worst and the best value among these best 1 %.
        share_of_top: how many random configs are as good as the worst of them: 1 %, or more where many are alike.
    """

    metric: Metric
    n: int
    seed: int
    variances: tuple[Variance, ...]
    walks: Mapping[str, tuple[Interval, ...]]
    mutants: Mapping[str, tuple[Interval, ...]]
    top: tuple[float, float]
    share_of_top: float


def measure_landscape(bench: Answers, metric: str, *, n: int, seed: int) -> Landscape:
    """Ask a benchmark what its space looks like.

    Args:
        bench: answers for every config, as surrogates do.
        metric: one of its metrics.
        n: configs in each of the two samples that are mixed, at least 64.
        seed: of everything that is drawn.

    Raises:
        UnknownName: the benchmark has no such metric.
        InvalidArgument: too few configs, a bad seed, or a metric that is the same for all configs.
    """
    if metric not in bench.metrics:
        raise UnknownName.of("metric", metric, bench.metrics)
    faults = []
    if isinstance(n, bool) or not isinstance(n, int) or n < _FEWEST:
        faults.append(f"n={n!r} is not an integer of at least {_FEWEST}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        faults.append(f"seed={seed!r} is not an integer >= 0")
    if faults:
        raise InvalidArgument("\n".join(faults))
    parts = _parts()
    ask, largest = _asker(bench, metric, bench.max_epoch), parts[1]
    columns = largest.space.sample_columns(N_RANDOM, seed=_child(seed, 2))
    values = ask(columns)
    ordered, among_top = np.sort(values), float(np.quantile(values, 1 - TOP))
    variances = tuple(_variance(bench, metric, part, n=n, seed=seed) for part in parts)
    deciding = _deciding(variances[1])
    best = rows({key: column[np.argsort(-values, kind="stable")[:N_BEST]] for key, column in columns.items()})
    return Landscape(
        metric=bench.metrics[metric],
        n=n,
        seed=seed,
        variances=variances,
        walks={title: _walks(ask, ordered, largest, keys, seed) for title, keys in deciding.items()},
        mutants={
            title: _mutants(ask, best, largest, keys, among_top=among_top, seed=seed)
            for title, keys in deciding.items()
        },
        top=(abs(among_top), abs(float(values.max()))),
        share_of_top=float((values >= among_top).mean()),
    )


def with_errors_of_fit(found: Landscape, refitted: Sequence[Landscape]) -> Landscape:
    """Widen every interval by what the choice of the recorded configs contributes: a jackknife's standard error.

    Args:
        found: from a surrogate that was fitted to all of them.
        refitted: the same, from surrogates that leave out one part of the configs each, all of one size.
    """
    variances = []
    for i, variance in enumerate(found.variances):
        others = [other.variances[i] for other in refitted]
        changed = {
            name: _widened(getattr(variance, name), [getattr(other, name) for other in others])
            for name in ("shares", "alone", "in_all", "by_epoch")
        }
        variances.append(replace(variance, **changed))
    return replace(
        found,
        variances=tuple(variances),
        walks=_widened(found.walks, [other.walks for other in refitted]),
        mutants=_widened(found.mutants, [other.mutants for other in refitted]),
    )


def _widened(found: Any, refitted: Sequence[Any]) -> Any:  # Any: an interval, or sequences or mappings of such
    """Every interval, wider by what the same one varies among the refitted that have it."""
    if isinstance(found, Interval):
        return _wider(found, [other.value for other in refitted])
    if isinstance(found, Mapping):
        return {
            name: _widened(own, [other[name] for other in refitted if name in other]) for name, own in found.items()
        }
    return tuple(_widened(own, [other[i] for other in refitted]) for i, own in enumerate(found))


def _wider(interval: Interval, refitted: Sequence[float]) -> Interval:
    n = len(refitted)
    if n < 2:
        return interval
    error = _Z * math.sqrt((n - 1) * float(np.var(refitted)))
    return Interval(
        value=interval.value,
        low=interval.value - math.hypot(interval.value - interval.low, error),
        high=interval.value + math.hypot(interval.high - interval.value, error),
    )


def _parts() -> tuple[Part, Part, Part]:
    groups = {name: tuple(key for key in keys if len(PARAMETERS[key].choices) != 1) for name, keys in GROUPS.items()}
    but_sizes = {name: keys for name, keys in groups.items() if name != "fidelities"}
    smallest = {key: PARAMETERS[key].choices[0] for key in groups["fidelities"]}
    return (
        Part(name="whole", title="whole space", space=Space(), groups=groups),
        Part(name="largest", title="largest networks", space=Space().fix(FULL_SIZES), groups=but_sizes),
        Part(name="smallest", title="smallest networks", space=Space().fix(smallest), groups=but_sizes),
    )


def _deciding(variance: Variance) -> dict[str, tuple[str, ...]]:
    """What walks and changes touch: all keys, and each group that decides anything."""
    groups = {
        name: keys for name, keys in variance.part.groups.items() if any(variance.in_all[key].value > 0 for key in keys)
    }
    return {"all keys": tuple(variance.in_all), **(groups if len(groups) > 1 else {})}


def _variance(bench: Answers, metric: str, part: Part, *, n: int, seed: int) -> Variance:
    one, other = (part.space.sample_columns(n, seed=_child(seed, i)) for i in (0, 1))
    names, needed = tuple(part.groups), unions(part.groups)
    keys = {key: (key,) for found in part.groups.values() for key in found}
    epochs = _some_epochs(bench.max_epoch) if bench.metrics[metric].by_epoch else (bench.max_epoch,)
    *earlier, last = (
        draw(_asker(bench, metric, epoch), one, other, {**needed, **(keys if epoch == bench.max_epoch else {})})
        for epoch in epochs
    )
    scaled = {scale: _on_scale(last, scale) for scale in SCALES}
    shares = {scale: decomposition(found, names) for scale, found in scaled.items() if np.ptp(found.one)}
    of_epochs = [*(decomposition(_on_scale(found, "place"), names) for found in earlier), shares["place"]]
    places = scaled["place"]
    of_keys = Draws(one=places.one, other=places.other, mixed={key: places.mixed[key] for key in keys})
    return Variance(
        part=part,
        shares=shares,
        alone=shares_alone(of_keys),
        in_all=shares_in_all(of_keys),
        epochs=epochs,
        by_epoch={name: tuple(found[name] for found in of_epochs) for name in of_epochs[0]},
    )


def _walks(ask: _Ask, ordered: Floats, part: Part, keys: Sequence[str], seed: int) -> tuple[Interval, ...]:
    """Walks in many contexts, each with the mean of random configs of its own."""
    places, means = [], []
    for i, space in enumerate(contexts(part.space, keys, _N_CONTEXTS, seed=_child(seed, 3))):
        walks = [random_walk(space, _N_STEPS, seed=_child(seed, 4, i, j)) for j in range(_N_WALKS)]
        visited = _place(ask([config for walk in walks for config in walk]), ordered)
        places.append(visited.reshape(_N_WALKS, _N_STEPS + 1))
        means.append(_place(ask(space.sample_columns(_N_OF_CONTEXT, seed=_child(seed, 5, i))), ordered).mean())
    return tuple(autocorrelation(np.array(places), np.array(means), n_lags=_N_LAGS))


def _mutants(
    ask: _Ask, best: Sequence[Config], part: Part, keys: Sequence[str], *, among_top: float, seed: int
) -> tuple[Interval, ...]:
    found = []
    for n_keys in range(1, len(keys) + 1):
        changed: list[Config] = []
        for i, config in enumerate(best):
            changed += mutants(
                part.space, config, n=_N_MUTANTS, n_keys=n_keys, keys=keys, decades=_DECADES,
                seed=_child(seed, 6, n_keys, i),
            )  # fmt: skip
        is_top = (ask(changed) >= among_top).reshape(len(best), _N_MUTANTS)
        found.append(bootstrap_interval(is_top.mean(axis=1), lambda shares: shares.mean(axis=1)))
    return tuple(found)


def _asker(bench: Answers, metric: str, epoch: int) -> _Ask:
    sign = 1.0 if bench.metrics[metric].direction == "max" else -1.0
    return lambda configs: sign * bench.query_many(configs, at=epoch, metrics=(metric,))[metric]


def _on_scale(draws: Draws, scale: Scale) -> Draws:
    known = np.concatenate([draws.one, draws.other])
    if scale == "place":
        return draws.changed(partial(_place, ordered=np.sort(known)))
    if scale == "better half":
        middle = np.median(known)
        return draws.changed(lambda values: np.maximum(values - middle, 0.0))
    return draws


def _place(values: Floats, ordered: Floats) -> Floats:
    """The share of `ordered`, ascending values, that is worse, and half of what is as good."""
    found: Floats = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right")) / (2 * len(ordered))
    return found


def _some_epochs(last: int) -> tuple[int, ...]:
    return tuple(np.unique(np.geomspace(1, last, min(last, _MOST_EPOCHS)).round().astype(int)).tolist())


def _child(seed: int, *path: int) -> int:
    return int(np.random.SeedSequence([seed, *path]).generate_state(1, np.uint64)[0])
