"""The benchmark that a researcher imports: the quality and the cost of a config, at any epoch.

Over 300 lines: it is the class that users read, and most of its lines are the documentation of its methods.

    bench = jahs.Benchmark("cifar10_mini")
    config = bench.sample(seed=0)
    bench.query(config, at=5).valid_acc

It checks a query once, strictly, and passes it to an oracle: a release's models, recorded runs, or a training.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jahs.errors import InvalidArgument, InvalidFidelity, MissingData, ProtocolMismatch
from jahs.models.forest import EngineKind
from jahs.queries.answers import Answers, Result
from jahs.queries.drop_in import RandomState, read_kind, read_task, seed_of, with_published_names
from jahs.queries.oracles.opening import OpenedOracle, OracleRequest, open_oracle, sha256_of
from jahs.queries.oracles.table import TableOracle
from jahs.queries.queryable import At, Epochs, Queryable
from jahs.release.find import default_task, full_path
from jahs.spaces.columns import Configs
from jahs.spaces.columns import codes as codes_of
from jahs.spaces.configs import Config, config_codes, mapping_of
from jahs.spaces.encoding import encode_codes
from jahs.spaces.fidelities import read_budget, read_epoch, read_epochs
from jahs.spaces.parameters import is_integer, show
from jahs.spaces.seeds import Seeds, read_optional_seed
from jahs.spaces.space import MOST_ROWS, Space
from jahs.tasks.definitions import citation
from jahs.tasks.metrics import METRICS, Metric, read_metrics

if TYPE_CHECKING:
    from jahs.queries.best import Best
    from jahs.queries.oracles.refits import RefitsOracle
    from jahs.queries.prediction import Uncertain
    from jahs.queries.references import Front, References
    from jahs.queries.views import View
    from jahs.release import Release

_MOST_REOPENED: Final = 4


class Benchmark(Queryable):
    """Answers queries for one task.

    Attributes:
        task: the task.
        kind: "surrogate", "table" or "live".
        space: the search space; `bench.space.sample` and `bench.sample` differ only for a table.
        fidelities: the legal epochs, ascending.
        metrics: metrics of an answer by name, with unit, direction and bounds.
        max_epoch: the last epoch.
        release: the folder that answers, None for a live oracle.
        refit: number of the refit that answers; None: the models themselves.
        model: family whose models answer; None: the release's own.

    Example:
        >>> bench = jahs.Benchmark(release=folder)  # doctest: +SKIP
        >>> bench.query(bench.sample(seed=0), at=5).valid_acc  # doctest: +SKIP
        40.6
    """

    def __init__(  # noqa: PLR0917  # the first six arguments are as in jahs_bench.Benchmark
        self,
        task: str | None = None,
        kind: str = "surrogate",
        download: bool = True,  # noqa: ARG002, FBT001, FBT002
        save_dir: Path | str | None = None,
        metrics: Iterable[str] | None = None,
        lazy: bool = False,  # noqa: ARG002, FBT001, FBT002
        *,
        release: Path | str | None = None,
        engine: EngineKind = "auto",
        sha256: str | None = None,
        refit: int | None = None,
        model: str | None = None,
    ) -> None:
        """Open a benchmark. Nothing is downloaded; files are read when they are first needed.

        Nothing is written but the kernels of the compiled engine, once: in `$JAHS_CACHE_DIR`, else in `__pycache__`.

        Args:
            task: name of a task, see `jahs.tasks.TASKS`, or of your own if its release or its runs are found. None:
                the task of the release in the folder `release`; without one, `cifar10_mini`.
            kind: "surrogate" (models), "table" (recorded runs) or "live" (train now; requires a checkout).
            download: has no effect; `jahs download` is the only thing that downloads.
            save_dir: a folder that is searched for a release before the usual places, see `jahs.releases`; one that
                does not exist yet, or holds no release, is skipped with a logged warning.
            metrics: metrics that queries return by default, by our names or the published ones; None: all.
            lazy: has no effect; models are read once.
            release: the folder of a release, or one that holds it as `<task>/`; of recorded runs for kind="table".
            sha256: required digest of the release's manifest, which covers every byte of it; None: any release.
                `jahs verify --json` prints it, and `jahs.release.EMBEDDED` has the digests of the embedded releases.
            refit: number of the refit that answers, from 0; None: the models themselves, which also answer metrics
                without refits.
            model: "lightgbm" for a second family of models fitted to the same trainings, if the release has it;
                None: the release's own models, which also answer metrics that the family lacks.
            engine: "numpy", "compiled", or "auto": the compiled engine if it is available.

        Raises:
            UnknownName: a task, kind, metric, refit or model does not exist.
            MissingData: no release is found, or a folder is not a release or cannot be read; says where it searched.
                Or the release has no refits, or no models of that family.
            CorruptFile, UnknownFormat: the release is damaged, or was written by another version.
            ProtocolMismatch: the release is for another task, or has another `sha256`.
            MissingDependency: the engine or the live oracle needs a package that is not installed.
        """
        self._request = OracleRequest(
            task=read_task(default_task(release) if task is None else task),
            kind=read_kind(kind),
            engine=engine,
            release=None if release is None else full_path(release),
            save_dir=None if save_dir is None else full_path(save_dir),
            sha256=sha256,
            refit=refit,
            model=model,
        )
        self._opened: OpenedOracle = open_oracle(self._request)
        self._oracle = self._opened.oracle
        self.task, self.kind, self.max_epoch = self._oracle.task, self._oracle.kind, self._oracle.max_epoch
        self.release: Path | None = self._opened.folder
        self.refit, self.model = None if refit is None else int(refit), model
        self.space = Space()
        self.fidelities = MappingProxyType({"epoch": tuple(range(1, self.max_epoch + 1))})
        known = self._oracle.metrics
        self._requested = None if metrics is None else read_metrics(metrics, known=known)
        self._names = tuple(known) if self._requested is None else self._requested
        self.metrics: Mapping[str, Metric] = MappingProxyType({name: known[name] for name in self._names})

    def __repr__(self) -> str:
        return f"<Benchmark {self.task.name}, {self.kind}, {self._opened.description}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a reference: how to open the benchmark, and the required digest."""
        return _reopen, (asdict(self._request) | {"metrics": self._requested}, self._opened.sha256)

    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return the fidelity of a budget: the epoch is rounded to the nearest integer, half to even.

        Raises:
            InvalidFidelity: it is not a finite number, or out of range.

        Example:
            >>> bench.fidelity(2.469)  # doctest: +SKIP
            {'epoch': 2}
        """
        return {"epoch": self.max_epoch if at is None else read_budget(at, self.max_epoch)}

    def _sample(self, n: int, seed: int | None) -> list[Config]:
        if not is_integer(n) or not 0 <= n <= MOST_ROWS:
            raise InvalidArgument(f"n={show(n)} is not an integer in 0..{MOST_ROWS}")
        return self._oracle.sample(int(n), seed=read_optional_seed(seed))

    def _query(
        self, config: Mapping[str, object], at: At | None, seed: int | None, metrics: Sequence[str] | None
    ) -> Result:
        codes = config_codes(config)
        if type(at) is not int or not 1 <= at <= self.max_epoch:
            at = self.max_epoch if at is None else read_epoch(at, self.max_epoch)
        if seed is not None:
            seed = read_optional_seed(seed)
        names = self._names if metrics is None else self._read_metrics(metrics)
        values = self._oracle.query(codes, at, seed=seed, metrics=names)
        return Result(values, {"epoch": at}, seed, self._oracle.costs)

    def _read_configs(self, configs: Configs) -> NDArray[np.float64]:
        return codes_of(configs)

    def _read_fidelities(self, at: Sequence[object] | NDArray[np.integer], *, name: str) -> NDArray[np.int64]:
        return read_epochs(at, self.max_epoch, name=name)

    def _answer(
        self, codes: NDArray[np.float64], epochs: NDArray[Any], *, seed: Seeds, metrics: Sequence[str] | None
    ) -> dict[str, NDArray[np.float64]]:
        return self._oracle.query_many(codes, epochs, seed=seed, metrics=self._read_metrics(metrics))

    def _predict(self, codes: NDArray[np.float64], epochs: NDArray[Any], *, metrics: Sequence[str] | None) -> Uncertain:
        from jahs.queries.prediction import Uncertain

        release, refits = self._refits
        if (noise := release.noise) is None:
            raise MissingData(f"{self!r} has no noise.json, so the spread of trainings is not known; see bench.refit")
        known = tuple(name for name in self._names if name in refits.metrics)
        names = known if metrics is None and known else self._read_metrics(metrics)
        refits.check(names)
        if len(codes) == 1:  # faster
            answer = self._oracle.query(codes[0].tolist(), epochs.item(), seed=None, metrics=names)
            mean = np.array([[answer[name]] for name in names])
        else:
            answers = self._oracle.query_many(codes, epochs, seed=None, metrics=names)
            mean = np.array([answers[name] for name in names])
        return Uncertain(
            metrics=names,
            mean=mean,
            refits=refits.query_many(codes, epochs, metrics=names),
            scale=np.array([[release.refits.scales[name]] for name in names]),
            noise=noise,
            X=encode_codes(codes, epochs),
        )

    @cached_property
    def _refits(self) -> tuple[Release, RefitsOracle]:
        from jahs.queries.oracles.refits import RefitsOracle

        release = self._opened.release
        if self.model is not None:
            raise MissingData(f"{self!r}: {self.model} has no refits; leave model out for the release's own models")
        if self.kind != "surrogate" or release is None:
            raise MissingData(f"{self!r} has no models whose error could be predicted; open kind='surrogate'")
        return release, RefitsOracle(release, engine=self._request.engine)

    def _read_metrics(self, metrics: Sequence[str] | None) -> tuple[str, ...]:
        return self._names if metrics is None else read_metrics(metrics, known=self._oracle.metrics)

    def _trajectory(
        self, config: Mapping[str, object], span: Epochs, seed: int | None, metrics: Sequence[str] | None
    ) -> Answers:
        frm, to, step = span
        codes = config_codes(config)
        first = read_epoch(frm, self.max_epoch, name="frm")
        last = self.max_epoch if to is None else read_epoch(to, self.max_epoch, name="to")
        step = read_epoch(step, self.max_epoch, name="step")
        if first > last:
            raise InvalidFidelity(f"frm={first} is after to={last}")
        epochs = np.arange(first, last + 1, step)
        answers = self._oracle.trajectory(
            codes, epochs, seed=read_optional_seed(seed), metrics=self._read_metrics(metrics)
        )
        return Answers({"epoch": epochs, **answers})

    def front(self, metrics: Iterable[str]) -> Front:
        """Return the best known trade-offs of these metrics; see `jahs.queries.references.Front`.

        For a table, the front is over the recorded configs that have these metrics at the last epoch. The reference
        point is always the release's frozen one. For a refit or another family of models, the front consists of configs
        that the release's own models were searched for, as these models answer.

        Raises:
            UnknownName: these metrics have no reference point, or a table does not answer them.
            MissingData: no reference point is frozen, as for a live oracle, or a table has no config at the last epoch.
        """
        if not isinstance(self._oracle, TableOracle) and self.refit is None and self.model is None:
            return self._references.front(metrics, known={**METRICS, **self._oracle.metrics})
        from jahs.queries.best import recorded_in_full
        from jahs.queries.references import front_of
        from jahs.tasks.objectives import objective_matrix, read_objectives

        objectives = read_objectives(metrics, known=self._oracle.metrics)
        names = [objective.metric.name for objective in objectives]
        point = self.reference_point(names)
        table = self._oracle if isinstance(self._oracle, TableOracle) else None
        configs = self._references.configs if table is None else recorded_in_full(table, names, fixed={})
        F = objective_matrix(self.query_many(configs, metrics=names), objectives)
        return front_of(configs, F, objectives, point)

    def best(self, metric: str = "valid_acc", view: View | None = None) -> Best:
        """Return the best known config, its value and whether it is exact: the baseline of regret.

        For a table, it is the best of the recorded configs that have the metric, exactly; a simulation can only reach
        those that also have a runtime. For a release, it is the best of its references: its fronts, and the results of
        its searches, if it has any. For a metric without references, such as `test_acc`, for a refit, for another
        family of models, and for a view of either or of the release, it is the best of all configs, exactly, if there
        are at most 50,000; else the best that a search finds, starting from the references.

        Args:
            metric: metric to compare, at the last epoch.
            view: a view of this benchmark; its fixed keys and its full fidelity apply.

        Raises:
            UnknownName: the metric is not answered.
            MissingData: there are no references, as for a live oracle, or no recorded config is in the view.
            InvalidArgument: `view` is not a view of this benchmark.

        Example:
            >>> bench.best().value  # doctest: +SKIP
            74.0
        """
        from jahs.queries.best import best_of, recorded_in_full, search_best

        if isinstance(metric, Queryable):
            raise InvalidArgument(f"metric={show(metric)} must be a name; for a view: bench.best('valid_acc', view)")
        (name,) = read_metrics([metric], known=self._oracle.metrics)
        if view is not None and not self._answers_as(getattr(view, "bench", None)):
            raise InvalidArgument(f"view must be a view of this benchmark, got {show(view)}; make one by bench.view()")
        fixed = {} if view is None else view.space.fixed
        if isinstance(self._oracle, TableOracle):
            return best_of(self, recorded_in_full(self._oracle, [name], fixed=fixed), name, is_exact=True)
        is_variant = view is not None or self.refit is not None or self.model is not None
        is_searched = is_variant or (self._has_references and name not in self._references.metrics)
        if self.kind == "surrogate" and is_searched:
            return search_best(view or self, self._references.configs if self._has_references else [], name)
        return best_of(self, self._references.configs, name, is_exact=False)

    def reference_point(self, metrics: Iterable[str]) -> NDArray[np.float64]:
        """Return the frozen reference point of these metrics; an error lists those that exist."""
        return self._references.reference_point(metrics)

    def hypervolume(self, F: ArrayLike, metrics: Iterable[str]) -> float:
        """Return the volume that points dominate up to the frozen reference point of these metrics.

        `F` is (n_points, n_objectives), as `objectives` returns it for the same metrics in the same order.
        """
        from jahs.tasks.pareto import hypervolume

        return hypervolume(F, self.reference_point(metrics))

    def view(
        self,
        *,
        fidelities: str | Iterable[str] = ("epoch",),
        fixed: Mapping[str, object] | Literal["reference", "default"] = "reference",
        search: str | Iterable[str] = "all",
    ) -> View:
        """Return this benchmark with some of N, W and Resolution as fidelities, or fixed; see `jahs.View`.

        The first query of a view whose fixed values you chose warns (`jahs.errors.PoorView`) if they are poor.
        """
        from jahs.queries.views import View

        view = View(self, fidelities=fidelities, fixed=fixed, search=search)
        return view if fixed == "reference" or self.kind != "surrogate" else view.warn_if_poor()

    @property
    def reference_config(self) -> Config | None:
        """A good config at full size, chosen on the validation split. Views fix keys that they do not search to it.

        None if the release has none: an imported or older release, or recorded runs; and for live training.
        """
        return None if self._opened.release is None else self._opened.release.reference_config

    def quality(self) -> dict[str, Any]:  # Any: JSON
        """Return the quality card: scores of the models on held-out configs.

        Raises:
            MissingData: there is no release, or it has no quality card.
        """
        release = self._opened.release
        if release is None or release.quality is None:
            raise MissingData(f"{self!r} has no quality.json; only a release that was measured has one")
        return copy.deepcopy(release.quality)

    def cite(self) -> str:
        """Return the references for a publication with numbers of this benchmark, one a paragraph."""
        release = self._opened.release
        return citation(self.task, {}) if release is None else citation(self.task, release.facts, release.sha256)

    def __call__(
        self,
        config: Mapping[str, object],
        nepochs: int | None = None,
        full_trajectory: bool = False,  # noqa: FBT001, FBT002  # as in jahs_bench
    ) -> dict[int, dict[str, float]]:
        """Answer as `jahs_bench.Benchmark` does: {epoch: {published name: value in published units}}.

        Args:
            config: all 14 keys; the key `epoch`, which jahs_bench adds, is ignored.
            nepochs: the epoch; None is the last.
            full_trajectory: whether to answer all epochs up to it, too.

        Losses, which a table has, are answered only if `metrics` of the benchmark names them.

        Raises:
            InvalidConfig, InvalidFidelity, NotRecorded: as `query`.
        """
        epoch = self.max_epoch if nepochs is None else read_epoch(nepochs, self.max_epoch, name="nepochs")
        codes = config_codes({key: value for key, value in mapping_of(config).items() if key != "epoch"})
        if not full_trajectory:
            values = self._oracle.query(codes, epoch, seed=None, metrics=self._published)
            return {epoch: with_published_names(values, self.metrics)}
        columns = self._oracle.trajectory(codes, np.arange(1, epoch + 1), seed=None, metrics=self._published)
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        answers = (dict(zip(columns, row, strict=True)) for row in rows)
        return {e: with_published_names(values, self.metrics) for e, values in enumerate(answers, 1)}

    @cached_property
    def _published(self) -> tuple[str, ...]:
        """The metrics that a call as in jahs_bench answers."""
        return self._requested or tuple(name for name in self._names if self.metrics[name].kind != "recorded")

    def sample_config(self, random_state: RandomState = None) -> Config:
        """Return one random config, as `jahs_bench.Benchmark.sample_config`, but without the key `epoch`."""
        return self.sample(seed=seed_of(random_state))

    def _answers_as(self, other: object) -> bool:
        """Return whether another object is a benchmark with the same answers, such as an unpickled one."""
        if other is self or not isinstance(other, Benchmark):
            return other is self
        mine, theirs = ((b._opened.sha256, b.kind, b.refit, b.model) for b in (self, other))
        return mine[0] is not None and mine == theirs

    @cached_property
    def _references(self) -> References:
        from jahs.queries.references import References

        if self.kind == "live":
            raise MissingData(
                f"{self!r} has no front and no reference point of its own; the frozen one of a release holds: "
                f"jahs.Benchmark({self.task.name!r}).reference_point(metrics)"
            )
        release = self._opened.release
        if release is None or not self._has_references:
            to_do = (
                "`jahs import SOURCE --out FOLDER --with-front` adds them to an import, or "
                "`bench.best(metric, bench.view())` searches"
                if self.kind == "surrogate"
                else "`jahs.hypervolume(F, point)` takes a reference point of your own"
            )
            raise MissingData(
                f"{self!r} has no references.json: no front and no reference point is frozen for it; {to_do}"
            )
        return release.parse("references.json", References.from_dict)

    @property
    def _has_references(self) -> bool:
        return self._opened.release is not None and self._opened.release.has("references.json")


def _reopen(arguments: Mapping[str, Any], sha256: str | None) -> Benchmark:
    """Open the benchmark that a pickle refers to; one that is open already and has not changed is reused."""
    asked = OracleRequest(**{name: value for name, value in arguments.items() if name != "metrics"})
    is_same = sha256 is not None and sha256_of(asked) == sha256
    return (_open_same if is_same else _open_same.__wrapped__)(asked, arguments["metrics"], sha256)


@lru_cache(maxsize=_MOST_REOPENED)
def _open_same(asked: OracleRequest, metrics: tuple[str, ...] | None, sha256: str | None) -> Benchmark:
    bench = Benchmark(**asdict(asked), metrics=metrics)
    if bench._opened.sha256 != sha256:
        raise ProtocolMismatch(f"{bench!r} is not the release that was pickled; restore the one with sha256 {sha256}")
    return bench
