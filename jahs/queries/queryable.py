"""The interface of a search: a `Benchmark` is a `Queryable`, and so is every `View` of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidFidelity, NotRecorded
from jahs.queries.answers import Answers, Result
from jahs.spaces.columns import Configs, as_columns
from jahs.spaces.configs import Sampler, is_frame
from jahs.spaces.fidelities import is_list
from jahs.spaces.parameters import show
from jahs.spaces.seeds import Seeds, read_seeds
from jahs.spaces.space import Space
from jahs.tasks.metrics import Metric
from jahs.tasks.objectives import objective_matrix, read_objectives

if TYPE_CHECKING:
    from jahs.queries.prediction import Prediction, Uncertain

At: TypeAlias = int | Mapping[str, object]
"""A fidelity: an epoch, or values of some fidelities by name."""

Epochs: TypeAlias = tuple[int, At | None, int]
"""First epoch, last fidelity and step of a trajectory."""


class Queryable(Sampler):
    """The interface that a search needs: a `Benchmark` is one, and so is every `View` of it.

    Attributes:
        space: the search space.
        fidelities: the legal values of each fidelity, ascending.
        max_epoch: the last epoch.
        metrics: metrics of an answer by name, with unit, direction and bounds.
    """

    space: Space
    fidelities: Mapping[str, tuple[float, ...]]
    max_epoch: int
    metrics: Mapping[str, Metric]
    _fidelity_names: tuple[str, ...] = ("epoch",)
    """The fidelities that `_read_fidelities` returns, one for each column."""

    @property
    def full(self) -> Mapping[str, float]:
        """The highest fidelity."""
        return {name: values[-1] for name, values in self.fidelities.items()}

    @abstractmethod
    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return a complete valid fidelity; its epoch is rounded, half to even."""

    def query(
        self,
        config: Mapping[str, object],
        *,
        at: At | None = None,
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Result:
        """Return the metrics of one config at one fidelity.

        Args:
            config: all 14 keys, as a mapping or a pandas Series; a ConfigSpace `Configuration` has only the keys with
                more than one value. Keys that a view fixes, or has as fidelities, may be left out.
            at: an epoch in 1..max_epoch, or a mapping with some of the fidelities; the others are full.
            seed: seed of the training noise; None is the mean. Draws do not include the error of the model.
            metrics: some of `metrics`, our names or the published ones; None is all.

        Raises:
            InvalidConfig: one line for every fault, each beginning with its key.
            InvalidFidelity: the epoch is not an integer in range, or a name is not a fidelity here.
            UnknownName: this benchmark does not answer a metric.
            NotRecorded: a table has no such run, or a live training diverged before.
        """
        return self._query(config, at, seed, metrics)

    def trajectory(
        self,
        config: Mapping[str, object],
        *,
        frm: int = 1,
        to: At | None = None,
        step: int = 1,
        seed: int | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Answers:
        """Return the metrics of one training, epoch by epoch, with the column "epoch"; `to_pandas` makes it a table.

        A training passes through its epochs whether they are fidelities or not, so any view has trajectories.

        Args:
            config: as in `query`.
            frm, to, step: the epochs: from `frm` to `to` (None is the last), both included, every `step`-th. N, W and
                Resolution in `to` hold throughout.
            seed, metrics: as in `query`.

        Raises:
            InvalidConfig, InvalidFidelity, UnknownName, NotRecorded: as `query`.
        """
        return self._trajectory(config, (frm, to, step), seed, metrics)

    def query_many(
        self,
        configs: Configs,
        *,
        at: At | Sequence[At] | None = None,
        each_at: Sequence[At] | NDArray[np.integer] | None = None,
        seed: int | Sequence[int] | NDArray[np.integer] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Answers:
        """Return the metrics of many configs as columns, a dict of arrays with a method `to_pandas`.

        Args:
            configs: configs one by one, or columns (one array per key, or a DataFrame; much faster); keys that a view
                fixes may be left out.
            at: one fidelity, columns are (n,); or a list of them, every config at each, columns are (n, n_fidelities).
            each_at: in place of `at`, one fidelity for each config; columns are (n,).
            seed: seed of the training noise, one for all or a list with one for each; None is the mean.
            metrics: as in `query`.

        Raises:
            InvalidConfig: the faults of the first invalid configs, with their positions, and the number of all.
            InvalidFidelity, UnknownName, NotRecorded: as `query`.
        """
        codes = self._read_configs(configs)
        seeds = read_seeds(seed, len(codes))
        fidelities, n_each, shape = self._read_at(at, each_at, len(codes))
        row_seeds = np.repeat(seeds, n_each) if isinstance(seeds, np.ndarray) else seeds
        try:
            answers = self._answer(np.repeat(codes, n_each, axis=0), fidelities, seed=row_seeds, metrics=metrics)
        except NotRecorded as err:
            raise err.per_config(n_each) from None
        columns = Answers({name: values.reshape(shape) for name, values in answers.items()})
        columns.rows = (fidelities, self._fidelity_names, n_each)
        return columns

    def predict(
        self,
        configs: Mapping[str, object] | Configs,
        *,
        at: At | Sequence[At] | None = None,
        each_at: Sequence[At] | NDArray[np.integer] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Prediction:
        """Return answers with their uncertainty: the error of the model, and the noise between trainings.

        Args:
            configs: one config, or many as `query_many` takes them.
            at, each_at: as in `query_many`.
            metrics: some of those that have refits; None is all of them.

        Raises:
            InvalidConfig, InvalidFidelity: as `query_many`.
            UnknownName: a metric does not exist, or has no refits.
            MissingData: the release has no refits, or no noise.

        Example:
            >>> bench.predict(config, at=12).quantile(0.95)["valid_acc"]  # doctest: +SKIP
            86.3
        """
        from jahs.queries.prediction import Prediction

        given = None if is_frame(configs) else as_columns(cast("Configs", configs))
        is_one = isinstance(given, Mapping) and np.ndim(next(iter(given.values()), 0)) == 0  # else many configs
        codes = self._read_configs(cast("Configs", [configs] if is_one else configs))
        fidelities, n_each, shape = self._read_at(at, each_at, len(codes))
        uncertain = self._predict(np.repeat(codes, n_each, axis=0), fidelities, metrics=metrics)
        rows = (fidelities, self._fidelity_names, n_each)
        return Prediction(uncertain, shape=shape[1:] if is_one else shape, rows=rows)

    def objectives(
        self, configs: Configs, *, at: At | None = None, metrics: Sequence[str] = ("valid_acc",)
    ) -> NDArray[np.float64]:
        """Return metrics as objectives, (n_configs, n_metrics), all minimised; see `jahs.read_objectives`."""
        # Any metric that the oracle knows: it may know more than the benchmark returns by default.
        objectives = read_objectives(metrics)
        names = [objective.metric.name for objective in objectives]
        return objective_matrix(self.query_many(configs, at=at, metrics=names), objectives)

    def _read_at(
        self, at: At | Sequence[At] | None, each_at: Sequence[At] | NDArray[np.integer] | None, n: int
    ) -> tuple[NDArray[Any], int, tuple[int, ...]]:
        """Return each answer's fidelity for `n` configs, the number of answers per config, and a column's shape."""
        if each_at is not None:
            if at is not None:
                raise InvalidArgument("at and each_at are both given; give at, or one fidelity for each config")
            if not is_list(each_at):
                raise InvalidFidelity(f"each_at={show(each_at)} is not a list of fidelities")
            fidelities = self._read_fidelities(each_at, name="each_at")
            if len(fidelities) != n:
                raise InvalidFidelity(f"each_at: {len(fidelities)} fidelities for {n} configs")
            return fidelities, 1, (n,)
        requested = at if is_list(at) else [self.full if at is None else at]
        fidelities = self._read_fidelities(requested, name="at")
        n_each = len(fidelities)
        shape = (n, n_each) if requested is at else (n,)
        return fidelities if n == 1 else fidelities[np.tile(np.arange(n_each), n)], n_each, shape

    @abstractmethod
    def _query(
        self, config: Mapping[str, object], at: At | None, seed: int | None, metrics: Sequence[str] | None
    ) -> Result:
        """Return the result of `query`."""

    @abstractmethod
    def _trajectory(
        self, config: Mapping[str, object], span: Epochs, seed: int | None, metrics: Sequence[str] | None
    ) -> Answers:
        """Return the answers of `trajectory`."""

    @abstractmethod
    def _read_configs(self, configs: Configs) -> NDArray[np.float64]:
        """Return the `config_codes` of every config, (n, 14)."""

    @abstractmethod
    def _read_fidelities(self, at: Sequence[object] | NDArray[np.integer], *, name: str) -> NDArray[Any]:
        """Return fidelities: epochs, or rows of numbers. `name` is the argument that holds them."""

    @abstractmethod
    def _answer(
        self, codes: NDArray[np.float64], fidelities: NDArray[Any], *, seed: Seeds, metrics: Sequence[str] | None
    ) -> dict[str, NDArray[np.float64]]:
        """Return the metrics of configs, each at its fidelity."""

    @abstractmethod
    def _predict(
        self, codes: NDArray[np.float64], fidelities: NDArray[Any], *, metrics: Sequence[str] | None
    ) -> Uncertain:
        """Return the metrics with their uncertainty, as `_answer` does."""
