"""A benchmark seen through a choice of its fidelities.

Over 300 lines: a view is one class that answers every form of query.

    mf = bench.view(fidelities=("epoch", "Resolution"), fixed={"N": 5, "W": 16})
    mf.query(mf.sample(seed=0), at={"epoch": 3, "Resolution": 0.5})

A view queries the benchmark that it was made from; it holds no data. Code that takes a `Queryable` runs with either.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, MissingData, PoorView, first_of
from jahs.queries.answers import Answers, Result
from jahs.queries.queryable import At, Epochs, Queryable
from jahs.queries.views.choices import REFERENCE, legal_values, read_choices
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.spaces.columns import Columns, Configs, as_columns, codes_of_columns, columns_of_codes
from jahs.spaces.columns import codes as codes_of
from jahs.spaces.configs import Config, as_mapping, check_many, config_codes, is_frame, validate_each
from jahs.spaces.fidelities import read_budget, read_epoch, read_epochs
from jahs.spaces.parameters import PARAMETERS, is_real, show, with_article
from jahs.spaces.seeds import Seeds
from jahs.spaces.space import Space

if TYPE_CHECKING:
    from jahs.queries.prediction import Uncertain

_N_CHECKED: Final = 1_000


class View(Queryable):
    """A benchmark with some of N, W and Resolution as fidelities and some keys fixed. Made by `bench.view()`.

    Attributes:
        bench: the benchmark that answers.
        space: the joint space with every key that is not searched fixed; fidelities have their full values there.
        fidelities: the legal values of each fidelity of this view, ascending, in the order of `FIDELITIES`.
        metrics, max_epoch: as in `bench`.
    """

    def __init__(
        self,
        bench: Queryable,
        *,
        fidelities: str | Iterable[str] = ("epoch",),
        fixed: Mapping[str, object] | Literal["reference", "default"] = REFERENCE,
        search: str | Iterable[str] = "all",
    ) -> None:
        """Make a view.

        Args:
            bench: the benchmark that answers.
            fidelities: some of epoch, N, W and Resolution. Without "epoch", every query is at the last epoch.
            fixed: values of the keys that are not searched: "reference", the benchmark's `reference_config`;
                "default", JAHS-Bench-201's default; or values of some keys, with the reference's for the others.
                N, W and Resolution have their full values unless you give others.
            search: "all" that is neither fixed nor a fidelity, "nas" (only the cell), "hpo" (only the hyperparameters)
                or a list of these and of keys.

        Raises:
            InvalidArgument: names or values that do not exist or contradict one another, every fault at once.
            MissingData: the reference config is needed, and `bench` has none.
        """
        if isinstance(bench, View):
            raise InvalidArgument(f"{bench!r} is a view itself; make the other view from its benchmark, VIEW.bench")
        if not hasattr(bench, "query_many"):
            what = with_article(type(bench).__name__)
            raise InvalidArgument(f"{show(bench)} is {what}, not a Benchmark or View; jahs.Benchmark(...) opens one")
        self.bench = bench
        names, self.space = read_choices(fidelities, fixed, search, partial(_reference_of, bench))
        self.fidelities: Mapping[str, tuple[float, ...]] = {name: legal_values(name, bench.max_epoch) for name in names}
        self._implied = self.space.implied
        self._fidelity_names = ("epoch", *(name for name in SIZE_KEYS if name in names))
        self.max_epoch = bench.max_epoch
        self.metrics = dict(bench.metrics)
        self._is_unchecked = False

    def __repr__(self) -> str:
        searched = [name for name, parameter in self.space.parameters.items() if len(parameter.choices) != 1]
        fixed = ", ".join(self._fixed_by_choice) or "nothing"
        return (
            f"<View of {self.bench!r}: searches {', '.join(searched) or 'nothing'}; fidelities "
            f"{', '.join(self.fidelities)}; fixes {fixed}>"
        )

    @property
    def _fixed_by_choice(self) -> list[str]:
        """The fixed values as text, except fidelities and keys with a single legal value."""
        return [
            f"{name}={value}"
            for name, value in self._implied.items()
            if name not in self.fidelities and len(PARAMETERS[name].choices) != 1
        ]

    def warn_if_poor(self) -> View:
        """Return this view, which at its first query warns if even good configs of it are poor; see `PoorView`."""
        self._is_unchecked = bool(self._fixed_by_choice) and "valid_acc" in self.metrics
        return self

    def check(self) -> None:
        """Warn once, after `warn_if_poor`, if the best of many random configs is worse than half of the whole space."""
        if not self._is_unchecked:
            return
        self._is_unchecked = False  # set first: it holds for the queries below, even if they raise
        accuracies, space_accuracies = (
            self.bench.query_many(space.sample_columns(_N_CHECKED, seed=0), metrics=("valid_acc",))["valid_acc"]
            for space in (self.space, Space())
        )
        if (best := accuracies.max()) < (median := np.median(space_accuracies)):
            warnings.warn(
                f"this view fixes {', '.join(self._fixed_by_choice)}: the best of {_N_CHECKED:,} random "
                f"configs has valid_acc {best:.1f} %, below the median {median:.1f} % of the whole space; "
                f"fix other values, or leave fixed at {REFERENCE!r}",
                PoorView,
                stacklevel=_users_level(),
            )

    def _sample(self, n: int, seed: int | None) -> list[Config]:
        return (self.space if self.space.fixed else self.bench).sample(n, seed=seed)

    def fidelity(self, at: object = None) -> dict[str, float]:
        """Return a complete fidelity of this view: omitted parts are full, and an epoch is rounded, half to even.

        `view.fidelity({"epoch": 2.469, "Resolution": 0.5})` is at the second epoch.

        Raises:
            InvalidFidelity: every fault at once.
        """
        return self._read(at, read_budget)

    def path(self, s: float) -> dict[str, float]:
        """Return the fidelity at the share `s` of the way to the full one, for tools that use a single scalar.

        Every fidelity grows with `s`: the epoch is the one nearest to `s * max_epoch`, and N, W and Resolution have
        the nearest of their three values, so that a third of the way is (1/3 of the epochs, N=3, W=8,
        Resolution=0.5).

        Args:
            s: share in (0, 1]; 1 is the full fidelity.

        Raises:
            InvalidFidelity: `s` is not a number in (0, 1].
        """
        if not is_real(s) or not 0 < s <= 1:
            raise InvalidFidelity(f"share={show(s)} must be in (0, 1]; 1 is the full fidelity")
        share = float(s)
        fidelity: dict[str, float] = {}
        for name, values in self.fidelities.items():
            i = round(share * len(values)) - 1 if name == "epoch" else round(share * (len(values) - 1))
            fidelity[name] = values[max(i, 0)]
        return fidelity

    def _query(
        self, config: Mapping[str, object], at: At | None, seed: int | None, metrics: Sequence[str] | None
    ) -> Result:
        self.check()
        fidelity = self._read(at)
        config = self._full_config(config, fidelity)
        result = self.bench.query(config, at=int(fidelity["epoch"]), seed=seed, metrics=metrics)
        return replace(result, fidelity=fidelity)

    def _trajectory(
        self, config: Mapping[str, object], span: Epochs, seed: int | None, metrics: Sequence[str] | None
    ) -> Answers:
        frm, to, step = span
        if isinstance(frm, Mapping) and (sizes := [name for name in frm if name in SIZE_KEYS]):
            raise InvalidFidelity(f"frm={show(frm)} must be an epoch; give {', '.join(sizes)} in to=")
        self.check()
        fidelity = _mapping(to)
        last = read_epoch(fidelity.pop("epoch"), self.max_epoch, name="to") if "epoch" in fidelity else self.max_epoch
        config = self._full_config(config, self._read(fidelity))
        return self.bench.trajectory(config, frm=frm, to=last, step=step, seed=seed, metrics=metrics)

    def _full_config(self, config: Mapping[str, object], fidelity: Mapping[str, float]) -> Config:
        """Return all 14 keys of a config at a fidelity."""
        config = self.space.validate(self._with_implied(config))
        return cast("Config", {**config, **{name: fidelity[name] for name in SIZE_KEYS if name in fidelity}})

    def _with_implied(self, config: Mapping[str, object]) -> Mapping[str, object]:
        """Return a config with the values that it may leave out; anything else unchanged."""
        mapping = as_mapping(config)
        return {**self._implied, **mapping} if isinstance(mapping, Mapping) else config

    def _answer(
        self,
        codes: npt.NDArray[np.float64],
        fidelities: npt.NDArray[np.float64],
        *,
        seed: Seeds,
        metrics: Sequence[str] | None,
    ) -> dict[str, npt.NDArray[np.float64]]:
        self.check()
        columns, epochs = self._at(codes, fidelities)
        return self.bench.query_many(columns, each_at=epochs, seed=seed, metrics=metrics)

    def _predict(
        self, codes: npt.NDArray[np.float64], fidelities: npt.NDArray[np.float64], *, metrics: Sequence[str] | None
    ) -> Uncertain:
        self.check()
        columns, epochs = self._at(codes, fidelities)
        return self.bench.predict(columns, each_at=epochs, metrics=metrics).found

    def _at(
        self, codes: npt.NDArray[np.float64], fidelities: npt.NDArray[np.float64]
    ) -> tuple[Columns, npt.NDArray[np.int64]]:
        """Return configs with the sizes of their fidelities, and their epochs."""
        codes = codes.copy()
        codes[:, [CONFIG_KEYS.index(name) for name in self._fidelity_names[1:]]] = fidelities[:, 1:]
        return columns_of_codes(codes), fidelities[:, 0].astype(np.int64)

    def _read_configs(self, configs: Configs) -> npt.NDArray[np.float64]:
        """Return every config as codes, implied keys included; InvalidConfig if a value differs from the fixed one."""
        implied, given = self._implied, as_columns(configs)
        if isinstance(given, Mapping):
            # A frame without columns may have rows. A list counts as a column. A column without dimensions means one
            # config, which is refused.
            first = cast("Any", configs if is_frame(configs) else next(iter(given.values()), ()))  # Any: as given
            is_sized = first is configs or isinstance(first, list | tuple)
            shape = (len(first),) if is_sized else np.shape(first)[:1]
            return codes_of_columns(
                {**{name: np.full(shape, value) for name, value in implied.items()}, **given}, fixed=implied
            )
        check_many(given)
        whole = [self._with_implied(config) for config in given]
        try:
            codes = codes_of(whole)
            is_other = codes != config_codes(self.space.default())
        except InvalidConfig:
            validate_each(whole, self.space.validate)  # names every fault of every config
            raise
        if is_other[:, [CONFIG_KEYS.index(name) for name in implied]].any():
            validate_each(whole, self.space.validate)
        return codes

    def _read_fidelities(
        self,
        at: Sequence[object] | npt.NDArray[np.integer],
        *,
        name: str,  # noqa: ARG002  # a fault names the fidelity
    ) -> npt.NDArray[np.float64]:
        if isinstance(at, np.ndarray) and at.dtype.kind in "iu" and "epoch" in self.fidelities:
            sizes = [float(self.full[name]) for name in self._fidelity_names[1:]]
            epochs = read_epochs(at, self.max_epoch, name="epoch")
            return np.column_stack([epochs, *(np.full(len(epochs), size) for size in sizes)]).astype(np.float64)
        fidelities = [self._read(fidelity) for fidelity in at]
        return np.array([[fidelity[name] for name in self._fidelity_names] for fidelity in fidelities]).reshape(
            len(fidelities), len(self._fidelity_names)
        )

    def _read(self, at: object, read: Callable[..., int] = read_epoch) -> dict[str, float]:
        """Return a whole fidelity of this view; `read` reads the epoch."""
        fidelity: dict[str, float] = {"epoch": self.max_epoch, **self.full}
        faults = []
        for name, value in _mapping(at).items():
            try:
                number = self._read_one(name, value, read)
                if name in fidelity:  # else the view fixes it, at this value
                    fidelity[name] = number
            except (InvalidConfig, InvalidFidelity) as err:  # noqa: PERF203  # costs nothing where nothing is raised
                faults.append(str(err))
        if faults:
            raise InvalidFidelity("\n".join(first_of(faults)))
        return fidelity

    def _read_one(self, name: str, value: object, read: Callable[..., int]) -> float:
        if name == "epoch":
            epoch = read(value, self.max_epoch, name="epoch")
            if "epoch" not in self.fidelities and epoch != self.max_epoch:
                raise self._fault(f"epoch={epoch}: every query of this view is at epoch {self.max_epoch}")
            return epoch
        if name not in SIZE_KEYS:
            raise self._fault(f"{show(name)} is not a fidelity")
        if name in self.space.searched:
            raise self._fault(f"{name}={show(value)}: {name} is searched in this view and belongs in the config")
        size = cast("float", PARAMETERS[name].read(value))
        if name not in self.fidelities and size != (only := self._implied[name]):
            raise self._fault(f"{name}={size} is not a fidelity of this view, which fixes it at {only}")
        return size

    def _fault(self, what: str) -> InvalidFidelity:
        return InvalidFidelity(f"{what}; the fidelities of this view are {', '.join(self.fidelities)}")


def _users_level() -> int:
    """Return the `stacklevel` with which a warning of the caller points at the user's code, outside of jahs."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jahs":
        frame, level = frame.f_back, level + 1
    return level


def _reference_of(bench: Queryable) -> Config:
    if (config := getattr(bench, "reference_config", None)) is None:
        raise MissingData(
            f"{bench!r} has no reference_config; give fixed='default', or values for every key that is not searched"
        )
    return cast("Config", config)


def _mapping(at: object) -> dict[str, object]:
    """Return a fidelity in any form as a mapping of the given values."""
    return dict(at) if isinstance(at, Mapping) else {} if at is None else {"epoch": at}
