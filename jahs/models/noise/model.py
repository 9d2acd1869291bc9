"""The noise model: a query with a seed returns a reproducible draw of the outcome of one training.

Over 300 lines: drawing, describing and reading a model of noise change together, and a format version covers all
three.

For one (config, seed) all epochs and all metrics are one training: what is drawn for an epoch does not depend on what
else is asked, or in which order, or with how many others. Accuracies spread by `jahs.models.noise.spread` around the
prediction and stay in 0..100; `runtime` is multiplied by one factor for the whole training, so that it still rises with
the epoch. Every other metric is left as it is. The mean over seeds is the prediction (`jahs.models.noise.centre`).

    model = NoiseModel.from_dict(json.loads(text))
    drawn = model.draw(means, X, config_ids, seed=3)

Two spreads are kept. "seed" is that between trainings of one config, and is what is drawn. "outcome" is that of one
training around the prediction, so it holds the surrogate's own error, too; `interval` can give either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.files.hashing import digest_facts
from jahs.files.strict_json import check_format, reading_state
from jahs.models.noise.centre import centre, draws
from jahs.models.noise.chance import PIECES, Ints, normal, normal_list, normal_table, quantile, run_key, word
from jahs.models.noise.spread import (
    Correlation,
    Numbers,
    Place,
    Spread,
    Tables,
    TimeSpread,
    clip,
    from_line,
    part_state,
    place_of,
    places_of,
    read_part,
    sqrt,
    with_tail,
)
from jahs.spaces.seeds import read_seeds
from jahs.tasks.metrics import ACCURACIES

NOISE_FORMAT: Final = 1
_MOST_EPOCHS: Final = 10_000
_EPOCH_WORDS: Final = 16  # words before this one belong to the whole training
_ROWS: Final = 512  # whose draws fit a cache
# Which of an epoch's weights are an accuracy's slow, common and new part; which piece of its word is the new part.
_ROLES: Final = {"train_acc": (0, None, 1, 1), "valid_acc": (2, 3, 4, 2), "test_acc": (2, 3, 4, 3)}
_Floats = NDArray[np.float64]

Kind = Literal["seed", "outcome"]


class _Form(NamedTuple):
    """What `NoiseModel` draws with: lists, which are faster for one row, or arrays for many."""

    spreads: Mapping[str, Tables]  # of each accuracy
    loadings: Any  # of each epoch, on the numbers that make the slow part
    weights: Any  # of each epoch, see `_ROLES`


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseModel:
    """The noise of one task's trainings.

    Attributes:
        task: name of the task; other tasks draw other numbers for the same config and seed.
        max_epoch: the task's last epoch.
        accuracies: of each accuracy, its spreads "seed" and "outcome".
        runtime: the same of `runtime`.
        correlation: between epochs and between accuracies of one training.
        counts: of the configs that it was fitted to.
    """

    task: str
    max_epoch: int
    accuracies: Mapping[str, Mapping[Kind, Spread]]
    runtime: Mapping[Kind, TimeSpread]
    correlation: Correlation
    counts: Mapping[str, int] = field(default_factory=dict)
    _salt: int = field(init=False, repr=False, compare=False)
    _one: _Form = field(init=False, repr=False, compare=False)
    _many: _Form = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what does not fit together, every fault at once, and prepare the tables of the correlation."""
        faults = []
        if type(self.max_epoch) is not int or not 1 <= self.max_epoch <= _MOST_EPOCHS:
            raise InvalidArgument(f"max_epoch={self.max_epoch!r} is not an integer in 1..{_MOST_EPOCHS}")
        if set(self.accuracies) != set(ACCURACIES):
            faults.append(f"accuracies are of {', '.join(self.accuracies)}, not of {', '.join(ACCURACIES)}")
        for name, spreads in {**self.accuracies, "runtime": self.runtime}.items():
            if set(spreads) != {"seed", "outcome"}:
                faults.append(f"{name} has the spreads {', '.join(spreads)}, not seed, outcome")
        for name, of_accuracy in self.accuracies.items():
            faults += [
                f"{name}: the spread of {kind} has {len(spread.epoch)} epochs, not {self.max_epoch}"
                for kind, spread in of_accuracy.items()
                if len(spread.epoch) != self.max_epoch
            ]
        if faults:
            raise InvalidArgument("\n".join(faults))
        object.__setattr__(self, "_salt", int(digest_facts({"noise": NOISE_FORMAT, "task": self.task}), 16))
        tables = {name: kinds["seed"].tables() for name, kinds in self.accuracies.items()}
        loadings, weights = self.correlation.slow_loadings(self.max_epoch), self.correlation.weights(self.max_epoch)
        n_loadings = max(map(len, loadings))
        whole = np.array([(*row, *[0.0] * (n_loadings - len(row))) for row in loadings])
        many = {name: table.arrays() for name, table in tables.items()}
        object.__setattr__(self, "_one", _Form(tables, loadings, weights))
        object.__setattr__(self, "_many", _Form(many, whole, np.array(weights)))

    def draw(
        self,
        means: Mapping[str, _Floats],
        X: NDArray[np.float32],
        config_ids: NDArray[np.uint64],
        seed: int | NDArray[np.int64],
    ) -> dict[str, _Floats]:
        """Return one training's outcome for each row.

        Args:
            means: predictions of any metrics, (n,) each. What a metric gets does not depend on which others are here.
            X: encoded configs and epochs, (n, 15).
            config_ids: (n,).
            seed: of the training; one for all, or one for each row.

        Raises:
            InvalidArgument: a seed is not an integer in 0..2**63-1, or a prediction is NaN.
            InvalidFidelity: an epoch is beyond the task's last.
        """
        if seed is None:
            raise InvalidArgument("seed=None is not an integer in 0..2**63-1; the predictions are the mean")
        seeds = np.broadcast_to(np.asarray(read_seeds(seed, len(X)), dtype=np.int64), len(X))
        is_beyond = (X[:, -1] < 1) | (X[:, -1] > self.max_epoch)
        if is_beyond.any():
            raise self._beyond(int(X[is_beyond, -1][0]))
        return self._draw(
            means, run_key(self._salt, config_ids, seeds.astype(np.uint64)), places_of(X), self._many, normal_table()
        )

    def draw_one(self, means: Mapping[str, float], x: Sequence[float], config_id: int, seed: int) -> dict[str, float]:
        """Return `draw` of one row, the same bits, without arrays; `x` are the 15 numbers of its encoding."""
        if not 1 <= x[-1] <= self.max_epoch:
            raise self._beyond(int(x[-1]))
        return self._draw(means, run_key(self._salt, config_id, seed), place_of(x), self._one, normal_list())

    def _draw(
        self, means: Mapping[str, Numbers], key: Ints, place: Place, form: _Form, table: Any
    ) -> dict[str, Numbers]:
        """Return the outcome of one training, or of many."""
        out = dict(means)
        if "runtime" in means:
            _refuse_nan("runtime", means["runtime"])
            out["runtime"] = means["runtime"] * _factor(self.runtime["seed"], normal(table, word(key, 0), 0))
        if wanted := [name for name in _ROLES if name in means]:
            slow = _slow(key, _of_epoch(form.loadings, place), table)
            of_epoch, weights = word(key, place.epoch + (_EPOCH_WORDS + 1)), _of_epoch(form.weights, place)
            shared = normal(table, of_epoch, 0)
            for name in wanted:
                own, common, fresh, piece = _ROLES[name]
                g = weights[own] * slow
                if common is not None:
                    g = g + weights[common] * shared
                g = g + weights[fresh] * normal(table, of_epoch, piece)
                out[name] = _moved(form.spreads[name], _within(name, means[name]), place, g)
        return out

    def interval(
        self, means: Mapping[str, _Floats], X: NDArray[np.float32], *, level: float = 0.9, of: Kind = "outcome"
    ) -> dict[str, tuple[_Floats, _Floats]]:
        """Return the lower and upper ends that hold a share `level` of all trainings, of accuracies and `runtime`.

        Args:
            means, X: as in `draw`.
            level: above 0 and below 1.
            of: "seed" is where the draws are, and the prediction is taken for the truth; "outcome" is where one more
                training of the config is, however wrong the prediction.
        """
        if not 0 < level < 1:
            raise InvalidArgument(f"level={level!r} is not between 0 and 1")
        g, is_mean, places = quantile((1 + level) / 2), of == "seed", places_of(X)
        ends: dict[str, tuple[_Floats, _Floats]] = {}
        for name, given in means.items():
            if name == "runtime":
                low, high = (given * _factor(self.runtime[of], side * g, is_mean=is_mean) for side in (-1, 1))
                ends[name] = low, high
            elif name in ACCURACIES:
                tables, y = self.accuracies[name][of].tables().arrays(), _within(name, given)
                low, high = (_moved(tables, y, places, side * g, is_mean=is_mean) for side in (-1, 1))
                ends[name] = low, high
        return ends

    def on_line(self, names: Sequence[str], y: _Floats, X: NDArray[np.float32]) -> tuple[_Floats, _Floats, _Floats]:
        """Return the centres of the draws of accuracies, on the line of `jahs.models.noise.spread`.

        Args:
            names: of the accuracies.
            y: predictions, (n_names, n).
            X: encoded configs and epochs, (n, 15).

        Returns:
            Centres and standard deviations, (n_names, n) each, and tails, (n_names, 1).
        """
        form, place, each = self._many, places_of(X), y
        if len(X) == 1:  # without arrays, many times faster
            form, place, each = self._one, place_of(X[0].tolist()), y[:, 0].tolist()
        found = np.array(
            [centre(form.spreads[name], _within(name, own), place) for name, own in zip(names, each, strict=True)]
        ).reshape(len(names), 2, len(X))
        return found[:, 0], found[:, 1], np.array([[form.spreads[name].tail] for name in names])

    def deviations(self, names: Sequence[str], y: _Floats, X: NDArray[np.float32]) -> _Floats:
        """Return the standard deviations of the draws of accuracies around these predictions, (n_names, n)."""
        centre, sigma, _ = self.on_line(names, y, X)
        h, share = _draws_with(tuple(self._one.spreads[name].tail for name in names))
        found = np.empty_like(centre)
        for at in range(0, len(X), _ROWS):  # all at once would take 54 numbers a row
            drawn = from_line(centre[:, at : at + _ROWS] + sigma[:, at : at + _ROWS] * h)  # (n_blocks, n_names, n)
            drawn -= np.add.reduce(share * drawn, axis=0)
            found[:, at : at + _ROWS] = np.sqrt(np.add.reduce(share * drawn * drawn, axis=0))
        return found

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the model as JSON can hold it; floats keep every bit."""
        return {
            "format": NOISE_FORMAT,
            "task": self.task,
            "max_epoch": self.max_epoch,
            "accuracies": {
                name: {kind: part_state(spread) for kind, spread in spreads.items()}
                for name, spreads in self.accuracies.items()
            },
            "runtime": {kind: part_state(spread) for kind, spread in self.runtime.items()},
            "correlation": part_state(self.correlation),
            "counts": dict(self.counts),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> NoiseModel:  # Any: JSON
        """Return the model that `to_dict` described; InvalidArgument or UnknownFormat if it is not such a model."""
        with reading_state("noise"):
            check_format(state.get("format"), NOISE_FORMAT, of="noise")
            return cls(
                task=str(state["task"]),
                max_epoch=state["max_epoch"],
                accuracies={
                    name: {kind: read_part(Spread, part, where=f"{name} {kind}") for kind, part in spreads.items()}
                    for name, spreads in state["accuracies"].items()
                },
                runtime={
                    kind: read_part(TimeSpread, part, where=f"runtime {kind}")
                    for kind, part in state["runtime"].items()
                },
                correlation=read_part(Correlation, state["correlation"], where="correlation"),
                counts=dict(state["counts"]),
            )

    def _beyond(self, epoch: int) -> InvalidFidelity:
        return InvalidFidelity(f"epoch={epoch} is not in 1..{self.max_epoch}, where the noise of {self.task} is known")


def _of_epoch(table: Any, place: Place) -> Any:
    """Return the row of a table at an epoch; of many epochs, as many columns."""
    return table[place.epoch].T if isinstance(table, np.ndarray) else table[place.epoch]


def _slow(key: Ints, loadings: Any, table: Any) -> Numbers:
    slow, of_run = 0.0, word(key, 0)
    for k, loading in enumerate(loadings, 1):
        if k % PIECES == 0:
            of_run = word(key, k // PIECES)
        slow = slow + loading * normal(table, of_run, k % PIECES)
    return slow


def _moved(tables: Tables, y: Numbers, place: Place, g: Numbers, *, is_mean: bool = True) -> Numbers:
    """Move predictions by standard normal numbers; they become the mean, or else the median."""
    z, sigma = centre(tables, y, place, is_mean=is_mean)
    return from_line(z + sigma * with_tail(g, tables.tail))


@functools.cache
def _draws_with(tails: tuple[float, ...]) -> tuple[_Floats, _Floats]:
    """Return all draws with each of these tails, (n_blocks, n_tails, 1), and the shares of the blocks."""
    g, share = (each[..., None] for each in draws())
    return with_tail(g, np.array(tails)[:, None]), share


def _factor(spread: TimeSpread, g: Numbers, *, is_mean: bool = True) -> Numbers:
    """Return a factor of times, positive and with mean 1, or else with median 1."""
    a = 0.5 * spread.spread * with_tail(g, spread.tail)
    root = sqrt(1.0 + a * a) + a
    return root * root / (1.0 + 0.5 * spread.spread * spread.spread) if is_mean else root * root


def _within(name: str, y: Numbers) -> Numbers:
    _refuse_nan(name, y)
    return clip(y, 0.0, 100.0)


def _refuse_nan(name: str, values: Numbers) -> None:
    if math.isnan(values) if type(values) is float else np.isnan(values).any():
        raise InvalidArgument(f"{name}: {np.isnan(values).sum()} of {np.size(values)} predictions are NaN")
