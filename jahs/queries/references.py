"""References for multi-objective results: for each combination of metrics a Pareto front, its ideal and nadir points,
and the frozen reference point of the hypervolume.

Over 300 lines: the search for fronts and the objects that it gives are one format, `references.json`.

The combinations are the validation accuracy with one or two costs. A front is the best known of a release, not the true
one: the search starts with random configs, then queries all neighbours of configs on a front, again and again. In each
objective the reference point lies a tenth of the front's range beyond its nadir, or at the median of the random configs
if that is larger, so that ordinary results count too; it is rounded up to three digits. Volumes are comparable wherever
the release is the same, because the reference point does not depend on the method that is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, UnknownName
from jahs.files.strict_json import check_format, reading_state
from jahs.files.tables import take
from jahs.queries.answers import to_frame
from jahs.queries.queryable import Queryable
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import Columns, codes, columns_of_codes, config_ids, rows, validate_columns
from jahs.spaces.configs import Config, validate
from jahs.tasks.metrics import METRICS, Metric
from jahs.tasks.objectives import Objective, objective_matrix, read_objectives
from jahs.tasks.pareto import hypervolume, is_non_dominated

REFERENCES_FORMAT: Final = 1
"""Version of `references.json`; a reader refuses any other."""

MAIN: Final = "valid_acc"
COSTS: Final = ("latency", "runtime", "n_macs", "n_params")

_MARGIN: Final = 0.1  # distance beyond the front's nadir, as a share of the front's range
_DIGITS: Final = 3

_Floats = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.intp]
_Combination: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Front:
    """The best known trade-offs of one combination of metrics.

    Attributes:
        objectives: the metrics as objectives, with labels and units, in the order of the columns.
        configs: one for each row of `F`.
        F: (n_configs, n_objectives), all minimised, by ascending first objective.
        reference_point: (n_objectives,), the corner up to which a hypervolume is measured.
    """

    objectives: tuple[Objective, ...]
    configs: tuple[Config, ...]
    F: _Floats
    reference_point: _Floats

    def __repr__(self) -> str:
        labels = ", ".join(objective.label for objective in self.objectives)
        ends = [", ".join(f"{value:.4g}" for value in point) for point in (self.ideal, self.nadir)]
        return (
            f"<Front of {len(self.configs)} configs: {labels}\n"
            f" ideal {ends[0]}; nadir {ends[1]}\n"
            f" hypervolume {self.hypervolume:.4g}>"
        )

    def to_pandas(self) -> Any:  # Any: pandas is not a dependency
        """Return a DataFrame with one row per config: its keys and its metrics, in their own units.

        Raises:
            MissingDependency: pandas is not installed.
        """
        columns: dict[str, Any] = {key: [config[key] for config in self.configs] for key in CONFIG_KEYS}
        for objective, values in zip(self.objectives, self.F.T, strict=True):
            columns[objective.metric.name] = objective.measured(values)
        return to_frame(columns)

    @property
    def metrics(self) -> _Combination:
        """The metrics, in the order of the columns."""
        return tuple(objective.metric.name for objective in self.objectives)

    @property
    def ideal(self) -> _Floats:
        """The smallest value of each objective on the front."""
        return np.asarray(self.F.min(axis=0))

    @property
    def nadir(self) -> _Floats:
        """The largest value of each objective on the front."""
        return np.asarray(self.F.max(axis=0))

    @property
    def hypervolume(self) -> float:
        """The front's own hypervolume: the baseline for a search."""
        return hypervolume(self.F, self.reference_point)


def front_of(
    configs: Sequence[Config], F: _Floats, objectives: tuple[Objective, ...], reference_point: _Floats
) -> Front:
    """Return the front of configs with the values `F`, (n_configs, n_objectives), and this reference point."""
    on_front = _front_rows(F)
    best = tuple(configs[i] for i in on_front.tolist())
    return Front(objectives=objectives, configs=best, F=F[on_front], reference_point=reference_point)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class References:
    """The fronts and reference points of one release; `bench.front` and related methods read them.

    Attributes:
        columns: every config on a front.
        F: their values, minimised, (n_configs, n_metrics).
        metrics: the metrics that are compared.
        fronts: for each combination the rows of its front, and its reference point.
        facts: about the search for the fronts: number of configs, seed, rounds, fidelity.
        starts: configs from which the search for the fronts began besides random ones, such as the best one of an
            exhaustive search at full size.
    """

    columns: Columns
    F: _Floats
    metrics: tuple[str, ...]
    fronts: Mapping[_Combination, tuple[_Rows, _Floats]]
    facts: Mapping[str, Any]  # Any: JSON
    starts: tuple[Config, ...] = ()

    @property
    def configs(self) -> list[Config]:
        """Every config on a front, and the starts."""
        return [*rows(self.columns), *self.starts]

    @property
    def combinations(self) -> tuple[_Combination, ...]:
        """The combinations of metrics that have a front and a reference point."""
        return tuple(self.fronts)

    def front(self, metrics: Iterable[str], *, known: Mapping[str, Metric] = METRICS) -> Front:
        """Return the front of a combination of metrics, with columns in this order; UnknownName lists the others.

        `known` has the units: those of a benchmark's metrics, if they are not the usual ones.
        """
        objectives = read_objectives(metrics, known=known)
        names = [objective.metric.name for objective in objectives]
        _, on_front, _ = self._find(names)
        F = self.F[on_front][:, [self.metrics.index(name) for name in names]]
        return front_of(rows(take(self.columns, on_front)), F, objectives, self.reference_point(names))

    def reference_point(self, metrics: Iterable[str]) -> _Floats:
        """Return the frozen reference point of a combination of metrics, (n_objectives,), in this order."""
        names = [objective.metric.name for objective in read_objectives(metrics)]
        combination, _, point = self._find(names)
        return point[[combination.index(name) for name in names]]

    def _find(self, names: Sequence[str]) -> tuple[_Combination, _Rows, _Floats]:
        for combination, (on_front, point) in self.fronts.items():
            if set(combination) == set(names):
                return combination, on_front, point
        raise UnknownName(
            f"metrics={', '.join(names)} have no reference point; there is one for "
            + "; ".join(", ".join(combination) for combination in self.fronts)
            + ". With a point of your own: jahs.hypervolume(F, point)"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the content of `references.json`: every config once, fronts as lists of their numbers."""
        fronts = []
        for names, (on_front, point) in self.fronts.items():
            F = self.F[on_front][:, [self.metrics.index(name) for name in names]]
            fronts.append(
                {
                    "metrics": list(names),
                    "front": on_front.tolist(),
                    "ideal": F.min(axis=0).tolist(),
                    "nadir": F.max(axis=0).tolist(),
                    "reference_point": point.tolist(),
                }
            )
        return {
            "format": REFERENCES_FORMAT,
            "facts": self.facts,
            **({"starts": [dict(config) for config in self.starts]} if self.starts else {}),
            "configs": {name: values.tolist() for name, values in self.columns.items()},
            "minimised": {name: values.tolist() for name, values in zip(self.metrics, self.F.T, strict=True)},
            "fronts": fronts,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> References:  # Any: JSON, checked here
        """Read what `to_dict` returned; InvalidArgument says where the content does not fit together."""
        check_format(content.get("format"), REFERENCES_FORMAT, of="references")
        with reading_state("references"):
            columns = validate_columns({name: np.array(content["configs"][name]) for name in CONFIG_KEYS})
            objectives = read_objectives(content["minimised"])
            metrics = tuple(objective.metric.name for objective in objectives)
            F = np.array([content["minimised"][name] for name in metrics], dtype=np.float64).T
            if F.shape != (len(columns["N"]), len(metrics)) or not np.isfinite(F).all():
                raise InvalidArgument(f"minimised: not one finite number for each of {len(columns['N'])} configs")
            fronts = {tuple(front["metrics"]): _read_front(front, F, metrics) for front in content["fronts"]}
            starts = tuple(validate(start) for start in content.get("starts", ()))
            return cls(
                columns=columns, F=F, metrics=metrics, fronts=fronts, facts=dict(content["facts"]), starts=starts
            )


def _read_front(content: Mapping[str, Any], F: _Floats, metrics: _Combination) -> tuple[_Rows, _Floats]:  # Any: JSON
    """Read one front and check it against its own values."""
    names = tuple(content["metrics"])
    if len(names) not in (2, 3) or len(set(names)) < len(names) or not set(names) <= set(metrics):
        raise InvalidArgument(f"fronts: metrics={names} are not two or three of {', '.join(metrics)}")
    on_front = np.array(content["front"], dtype=np.intp)
    if on_front.ndim != 1 or not len(on_front) or on_front.min() < 0 or on_front.max() >= len(F):
        raise InvalidArgument(f"fronts: {names}: front holds no numbers of configs in 0..{len(F) - 1}")
    front = F[on_front][:, [metrics.index(name) for name in names]]
    point = np.array(content["reference_point"], dtype=np.float64)
    if not is_non_dominated(front).all() or point.shape != (len(names),) or not np.isfinite(point).all():
        raise InvalidArgument(f"fronts: {names}: front or reference_point do not fit the values")
    return on_front, point


def build_references(
    bench: Queryable, *, n_configs: int, seed: int, n_rounds: int = 10, starts: Sequence[Config] = ()
) -> References:
    """Search for the best trade-offs of `bench` at its full fidelity: random configs, then neighbours of the fronts.

    Args:
        bench: the benchmark; only the metrics that references compare are queried.
        n_configs: number of random configs to begin with.
        seed: seed of the random configs; the same seed gives the same references.
        n_rounds: rounds in which the neighbours of every config that is new on a front are queried.
        starts: configs to begin with besides the random ones, such as the best of an exhaustive search.

    Raises:
        InvalidArgument: `bench` has no `valid_acc` or no cost, or no combination has a trade-off.
    """
    names = _compared(bench.metrics)
    objectives = read_objectives(names)
    places = [[names.index(name) for name in combination] for combination in _combinations_of(names)]
    randoms, others = bench.space.sample_columns(n_configs, seed=seed), columns_of_codes(codes(starts))
    candidates = {name: np.concatenate([values, others[name]]) for name, values in randoms.items()}
    columns, F = {name: values[:0] for name, values in candidates.items()}, np.empty((0, len(names)))
    seen, medians = np.empty(0, dtype=np.uint64), np.empty(0)
    for _ in range(n_rounds + 1):
        ids, first = np.unique(config_ids(candidates), return_index=True)
        is_unseen = ~np.isin(ids, seen)
        if not is_unseen.any():
            break
        seen = np.concatenate([seen, ids[is_unseen]])
        new = take(candidates, first[is_unseen])
        n_known = len(F)
        answers = objective_matrix(bench.query_many(new, metrics=names), objectives)
        medians = medians if n_known else np.median(answers, axis=0)  # median of the random configs, which come first
        F = np.concatenate([F, answers])
        on_front = np.unique(np.concatenate([_front_rows(F[:, place]) for place in places]))
        columns, F = take({name: np.concatenate([columns[name], new[name]]) for name in columns}, on_front), F[on_front]
        newcomers = rows(take(columns, on_front >= n_known))
        neighbors = [neighbor for config in newcomers for neighbor in bench.space.neighbors(config)]
        candidates = columns_of_codes(codes(neighbors))
    facts = {"epoch": bench.max_epoch, "n_asked": len(seen), "n_configs": n_configs, "n_rounds": n_rounds, "seed": seed}
    fronts = {}
    for combination, place in zip(_combinations_of(names), places, strict=True):
        on_front = _front_rows(F[:, place])
        front = F[on_front][:, place]
        # Otherwise one config is best in everything, and there is no trade-off.
        if len(front) > 1 and (front.min(axis=0) < front.max(axis=0)).all():
            fronts[combination] = on_front, _reference_point(front, medians[place], [objectives[j] for j in place])
    if not fronts:
        raise InvalidArgument(f"none of {len(F)} configs trades {MAIN} for any of {', '.join(names[1:])}")
    used = np.unique(np.concatenate([on_front for on_front, _ in fronts.values()]))
    renumbered = {metrics: (np.searchsorted(used, on_front), point) for metrics, (on_front, point) in fronts.items()}
    return References(
        columns=take(columns, used), F=F[used], metrics=names, fronts=renumbered, facts=facts, starts=tuple(starts)
    )


def _compared(known: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics of `known` that references compare, the accuracy first."""
    names = set(known)
    costs = [name for name in COSTS if name in names]
    if MAIN not in names or not costs:
        raise InvalidArgument(f"references need {MAIN} and at least one of {', '.join(COSTS)}; given: {sorted(names)}")
    return (MAIN, *costs)


def _combinations_of(names: Sequence[str]) -> list[_Combination]:
    """Pair the first metric with each one, then with each two of the others."""
    return [(names[0], *costs) for n_costs in (1, 2) for costs in combinations(names[1:], n_costs)]


def _front_rows(F: _Floats) -> _Rows:
    """Return the rows on the front, sorted by their values; of equal rows, the first."""
    on_front = np.flatnonzero(is_non_dominated(F))
    _, first = np.unique(F[on_front], axis=0, return_index=True)
    return on_front[first]


def _reference_point(front: _Floats, medians: _Floats, objectives: Sequence[Objective]) -> _Floats:
    ideal, nadir = front.min(axis=0), front.max(axis=0)
    point = np.maximum(nadir + _MARGIN * (nadir - ideal), medians).tolist()
    return np.array([min(_round_up(x), objective.upper) for x, objective in zip(point, objectives, strict=True)])


def _round_up(value: float) -> float:
    """Round a number up to three digits of its shortest decimal form."""
    return float(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value)))
