"""Answers from a release's forests: config -> one row of features -> all forests -> bounded metrics.

A release of this project has three kinds of models, which read different columns. They are joined into one forest over
one row, so that a query builds one row and makes one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.errors import MissingData
from jahs.models.bounds import BoundedTransform, invert_row
from jahs.models.features import FeatureSet, RowBuilder, joint_columns, joint_times
from jahs.models.forest import EngineKind, Forest, join_forests, open_engine, take_forests
from jahs.models.forest.engines import Engine
from jahs.queries.oracles.oracle import Codes, Kind, Numbers, Oracle
from jahs.release.models import Costs, Models
from jahs.release.reading import Release
from jahs.spaces.columns import ids_of_codes
from jahs.spaces.configs import id_of_codes
from jahs.spaces.encoding import encode_codes
from jahs.spaces.parameters import show
from jahs.spaces.seeds import Seeds
from jahs.tasks.metrics import METRICS, Metric

EXACT: Final = ("n_params", "n_macs")
"""The metrics that are computed, in the order of `RowBuilder.costs`."""

_FEW: Final = 6  # up to this many rows are answered faster one by one
_CHUNK: Final = 2**15  # rows at a time, which bounds the memory of features


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of a query for one choice of metrics."""

    learned: tuple[tuple[str, bool], ...]  # metrics that forests answer, with whether each is learned per epoch
    transforms: tuple[BoundedTransform | None, ...]  # of the same metrics
    forests: tuple[int, ...] | None  # their places in the joint forest; None for all, in order
    exact: tuple[tuple[str, int], ...]  # metrics that are computed, and their places in `RowBuilder.costs`
    order: tuple[str, ...]  # all names in the requested order


class _Pack(NamedTuple):
    """Forests that read the same features, and the number of each metric's forest."""

    features: FeatureSet
    forest: Forest
    forest_of: dict[str, int]


class SurrogateOracle(Oracle):
    """Answers from the models of a release, from one of its refits, or from another family's models.

    Attributes:
        engine: the engine in use, "numpy" or "compiled".
    """

    kind: Kind = "surrogate"

    def __init__(
        self, release: Release, *, engine: EngineKind = "auto", refit: int | None = None, model: str | None = None
    ) -> None:
        models = release.models
        self.task = release.task
        self.max_epoch = release.task.max_epoch
        self.costs: Costs = models.costs
        self._release = release
        self._models = dict(models.metrics)
        known = {name: model.metric(name) for name, model in models.metrics.items()}
        if models.costs == "exact":
            known |= {name: METRICS[name] for name in EXACT}
        self.metrics: Mapping[str, Metric] = MappingProxyType({name: known[name] for name in METRICS if name in known})
        packs = _packs(models, release.forests)
        if refit is not None:
            packs = _replaced(packs, _refit_packs(release, refit))
        if model is not None:
            family, family_forests = release.family(model)
            self._models |= family.metrics
            packs = _replaced(packs, _packs(family, family_forests))
        sets = [pack.features for pack in packs]
        columns, places = joint_columns(sets)
        self._rows = RowBuilder(columns, release.task, joint_times(sets))
        self._engine: Engine | None = None
        if packs:
            is_single = len(packs) == 1  # not copied, as it may be mapped from its file
            forests = [pack.forest for pack in packs]
            joint = forests[0] if is_single else join_forests(forests, places, n_features=len(columns))
            self._engine = open_engine(joint, engine)
        self.engine = "numpy" if self._engine is None else self._engine.name
        first = np.cumsum([0, *(pack.forest.n_forests for pack in packs)]).tolist()
        self._forest_of = {
            name: start + i for start, pack in zip(first, packs, strict=False) for name, i in pack.forest_of.items()
        }
        self._n_forests: int = first[-1]
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def query(self, codes: Codes, epoch: int, *, seed: int | None, metrics: Sequence[str]) -> dict[str, float]:
        """Return the metrics of one config at one epoch; see `Oracle.query`."""
        plan = self._plan(metrics)
        place = self._rows.place(codes)
        values: dict[str, float] = {}
        if self._engine is not None and plan.learned:
            answers = self._engine.answer_row(self._rows.pack(codes, epoch, place), forests=plan.forests)
            for (name, is_per_epoch), target in zip(plan.learned, invert_row(plan.transforms, answers), strict=True):
                values[name] = target * epoch if is_per_epoch else target
            if seed is not None:
                encoded = np.array((*codes, epoch), dtype=np.float32).tolist()
                values = self._noise(seed).draw_one(values, encoded, id_of_codes(codes), seed)
        if plan.exact:
            costs = self._rows.costs(place)
            for name, i in plan.exact:
                values[name] = costs[i]
        return {name: values[name] for name in plan.order}

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, seed: Seeds, metrics: Sequence[str]
    ) -> Numbers:
        """Return the metrics of many configs; see `Oracle.query_many`."""
        plan = self._plan(metrics)
        if 0 < len(codes) <= _FEW:
            seeds = seed.tolist() if isinstance(seed, np.ndarray) else [seed] * len(codes)
            queries = zip(codes.tolist(), epochs.tolist(), seeds, strict=True)
            answers = [self.query(row, epoch, seed=row_seed, metrics=plan.order) for row, epoch, row_seed in queries]
            return {name: np.array([row[name] for row in answers]) for name in plan.order}
        X = encode_codes(codes, epochs)
        learned: Numbers = {name: np.empty(len(X)) for name, _ in plan.learned}
        for first in range(0, len(X), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            for name, values in self._answers(self._rows.build(X[chunk]), epochs[chunk], plan, is_walk=False).items():
                learned[name][chunk] = values
        costs = self._rows.costs_many(X) if plan.exact else None
        return self._finish(plan, learned, costs, codes=codes, X=X, seed=seed)

    def trajectory(
        self, codes: Codes, epochs: NDArray[np.int64], *, seed: int | None, metrics: Sequence[str]
    ) -> Numbers:
        """Return the metrics of one training at ascending epochs; each tree is walked once."""
        plan = self._plan(metrics)
        place = self._rows.place(codes)
        F = self._rows.build_walk(codes, epochs, place)
        learned = self._answers(F, epochs, plan, is_walk=True)
        costs = np.repeat([self._rows.costs(place)], len(epochs), axis=0) if plan.exact else None
        repeated = np.repeat([codes], len(epochs), axis=0)
        return self._finish(plan, learned, costs, codes=repeated, X=encode_codes(repeated, epochs), seed=seed)

    def exact_costs(self, codes: NDArray[np.float64]) -> Numbers:
        """Return the exact parameters and multiply-adds of many configs, also where the models predict them."""
        return dict(zip(EXACT, self._rows.costs_many(encode_codes(codes, 1)).T, strict=True))

    def _plan(self, metrics: Sequence[str]) -> _Plan:
        order = tuple(metrics)
        try:
            return self._plans[order]
        except KeyError:
            pass
        models = {name: self._models[name] for name in order if name in self._models}
        forests = tuple(self._forest_of[name] for name in models)
        exact = tuple((name, EXACT.index(name)) for name in order if name in EXACT and name not in self._models)
        self._plans[order] = plan = _Plan(
            learned=tuple((name, model.target == "per_epoch") for name, model in models.items()),
            transforms=tuple(model.transform for model in models.values()),
            forests=None if forests == tuple(range(self._n_forests)) else forests,
            exact=exact,
            order=order,
        )
        return plan

    def _answers(self, F: NDArray[np.float32], epochs: NDArray[np.int64], plan: _Plan, *, is_walk: bool) -> Numbers:
        if self._engine is None or not plan.learned:
            return {}
        predict = self._engine.predict_walk if is_walk else self._engine.predict
        answers = predict(F, forests=plan.forests)
        by_metric: Numbers = {}
        for (name, is_per_epoch), transform, answer in zip(plan.learned, plan.transforms, answers.T, strict=True):
            values = answer.astype(np.float64) if transform is None else transform.inverse(answer)
            by_metric[name] = values * epochs.astype(np.float64) if is_per_epoch else values
        return by_metric

    def _finish(
        self,
        plan: _Plan,
        learned: Numbers,
        costs: NDArray[np.float64] | None,
        *,
        codes: NDArray[np.float64],
        X: NDArray[np.float32],
        seed: Seeds,
    ) -> Numbers:
        """Draw the noise if there is a seed, add the exact metrics, and return everything in the requested order."""
        if seed is not None and learned:
            learned = self._noise(seed).draw(learned, X, ids_of_codes(codes), seed)
        exact = {} if costs is None else {name: costs[:, i].copy() for name, i in plan.exact}
        return {name: learned[name] if name in learned else exact[name] for name in plan.order}

    def _noise(self, seed: Seeds) -> Any:  # Any: a jahs.models.noise.NoiseModel, imported only if the release has one
        if self._release.noise is None:
            raise MissingData(
                f"seed={show(seed)}: {self._release!r} has no noise.json to draw a training from; leave seed out for "
                "the mean"
            )
        return self._release.noise


def _packs(models: Models, forests: Sequence[Forest]) -> list[_Pack]:
    return [
        _Pack(pack.features, forest, {name: m.forest for name, m in models.metrics.items() if m.pack == i})
        for i, (pack, forest) in enumerate(zip(models.packs, forests, strict=True))
    ]


def _refit_packs(release: Release, refit: int) -> list[_Pack]:
    packs = []
    for pack, forests in zip(release.refits.packs, release.refit_forests, strict=True):
        first, n = refit * len(pack.metrics), len(pack.metrics)
        forest_of = {name: i for i, name in enumerate(pack.metrics)}
        forest = take_forests(forests, range(first, first + n))
        packs.append(_Pack(release.models.packs[pack.pack].features, forest, forest_of))
    return packs


def _replaced(packs: Sequence[_Pack], others: Sequence[_Pack]) -> list[_Pack]:
    """Return the packs without the metrics that `others` answer, and `others`."""
    taken = {name for other in others for name in other.forest_of}
    remaining = [
        pack._replace(forest_of={name: i for name, i in pack.forest_of.items() if name not in taken}) for pack in packs
    ]
    return [*(pack for pack in remaining if pack.forest_of), *others]
