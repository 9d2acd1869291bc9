"""The noise model: a query with a seed returns a reproducible draw of the outcome of one training.

Over 300 lines: drawing, describing and reading a model of noise change together, and a format version covers all
three.

For one (config, seed) all epochs and all metrics are one training: the draw of an epoch does not depend on the order or
the number of queries, nor on other queries. Accuracies spread by `jahs.models.noise.spread` around the prediction and
stay in 0..100; `runtime` is multiplied by one factor for the whole training, so that it still rises with the epoch. All
other metrics are left unchanged. The mean over seeds is the prediction (`jahs.models.noise.centre`).

    model = NoiseModel.from_dict(json.loads(text))
    drawn = model.draw(means, X, config_ids, seed=3)

Two spreads are stored. "seed": standard deviation between trainings of a config; queries draw from it. "outcome":
standard deviation of one training around the prediction, so it includes the surrogate's own error; `interval` can use
either.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidArgument, InvalidFidelity, UnknownName, refuse
from jahs.files.hashing import digest_facts
from jahs.files.strict_json import check_format, reading_state
from jahs.models.noise.centre import N_SPREADS, PER_SPREAD, draws, pull_of_rows, pulls
from jahs.models.noise.chance import PIECES, normal_list, normals, quantile, run_key, run_keys, word, words
from jahs.models.noise.spread import (
    LEVELS,
    MOST,
    PER_LEVEL,
    RATE_COLUMN,
    RATES,
    SIZE_COLUMNS,
    Correlation,
    Spread,
    SpreadTables,
    TimeSpread,
    from_line,
    from_line_one,
    part_state,
    read_part,
    to_line,
    to_line_one,
    with_tail,
)
from jahs.schema import CONFIG_KEYS, SIZE_KEYS
from jahs.spaces.parameters import PARAMETERS, is_number, show
from jahs.spaces.seeds import read_seeds
from jahs.tasks.metrics import ACCURACIES, metric

NOISE_FORMAT: Final = 2
"""Version of noise.json; a reader refuses any other."""

_DRAWS: Final = 1  # version of the random numbers
_MOST_EPOCHS: Final = 10_000
_EPOCH_WORDS: Final = 16  # words before this one belong to the whole training
_FEW: Final = 24  # up to this many rows are faster one by one
_ROWS: Final = 512  # rows whose draws fit in a cache
# For each accuracy, the places of its slow, common and new part among an epoch's weights, and the word's piece for the
# new part.
_ROLES: Final = {"train_acc": (0, None, 1, 1), "valid_acc": (2, 3, 4, 2), "test_acc": (2, 3, 4, 3)}
_N_COLUMNS: Final = len(CONFIG_KEYS) + 1  # the epoch is the last
_SIZE_CODES: Final = np.array([PARAMETERS[key].codes for key in SIZE_KEYS])[..., None]  # (3, 3, 1)
_N, _W, _RESOLUTION = SIZE_COLUMNS
_Floats = NDArray[np.float64]

Kind = Literal["seed", "outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseModel:
    """The noise of one task's trainings.

    Attributes:
        task: name of the task; other tasks draw other numbers for the same config and seed.
        max_epoch: the task's last epoch.
        accuracies: the spreads "seed" and "outcome" of each accuracy.
        runtime: the same for `runtime`.
        correlation: correlation between epochs and between accuracies of one training.
        counts: numbers of the configs and runs that it was fitted to.
    """

    task: str
    max_epoch: int
    accuracies: Mapping[str, Mapping[Kind, Spread]]
    runtime: Mapping[Kind, TimeSpread]
    correlation: Correlation
    counts: Mapping[str, int] = field(default_factory=dict)
    _salt: int = field(init=False, repr=False, compare=False)
    _loadings: list[tuple[float, ...]] = field(init=False, repr=False, compare=False)
    _weights: list[tuple[float, ...]] = field(init=False, repr=False, compare=False)
    _tables: dict[str, SpreadTables] = field(init=False, repr=False, compare=False)

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
        refuse(*faults)
        object.__setattr__(self, "_salt", int(digest_facts({"noise": _DRAWS, "task": self.task}), 16))
        object.__setattr__(self, "_loadings", self.correlation.slow_loadings(self.max_epoch))
        object.__setattr__(self, "_weights", self.correlation.weights(self.max_epoch))
        object.__setattr__(self, "_tables", {name: kinds["seed"].tables() for name, kinds in self.accuracies.items()})

    def draw(
        self,
        means: Mapping[str, _Floats],
        X: NDArray[np.float32],
        config_ids: NDArray[np.uint64],
        seed: int | NDArray[np.int64],
    ) -> dict[str, _Floats]:
        """Return one training's outcome for each row, by our names of the metrics.

        Args:
            means: predictions of any metrics, (n,) each, by our names or the published ones. The draw of a metric does
                not depend on the others given.
            X: encoded configs and epochs, (n, 15), as `jahs.encode` returns them.
            config_ids: ids of the configs, (n,).
            seed: seed of the training; one for all, or one for each row.

        Raises:
            InvalidArgument: a seed is not an integer in 0..2**63-1, a prediction is NaN or no number, `X` holds no
                encoded configs, ids are not uint64, or shapes differ.
            UnknownName: a metric does not exist.
            InvalidFidelity: an epoch is not an integer, or beyond the task's last.
        """
        if seed is None:
            raise InvalidArgument("seed=None is not an integer in 0..2**63-1; the predictions are the mean")
        means, X = _read(means, X)
        config_ids = np.asarray(config_ids)
        _check_lengths({**means, "config_ids": config_ids}, len(X))
        if config_ids.dtype != np.uint64 and len(X):
            raise InvalidArgument(f"config_ids must be uint64, got {config_ids.dtype}; jahs.config_ids() returns them")
        seeds = np.broadcast_to(np.asarray(read_seeds(seed, len(X)), dtype=np.int64), len(X))
        if len(X) <= _FEW:
            return self._draw_few(means, X, config_ids, seeds.tolist())
        self._check_epochs(X)
        epoch = X[:, -1].astype(np.intp) - 1
        keys = run_keys(self._salt, config_ids, seeds.astype(np.uint64))
        out = dict(means)
        if "runtime" in means:
            _refuse_nan("runtime", means["runtime"])
            out["runtime"] = means["runtime"] * _factor(self.runtime["seed"], normals(words(keys, 0), 0))
        if wanted := [name for name in _ROLES if name in means]:
            slow = self._slow(keys, epoch)
            of_epoch = words(keys, (epoch + (_EPOCH_WORDS + 1)).astype(np.uint64))
            weights = np.array(self._weights)[epoch]
            for name in wanted:
                own, common, fresh, piece = _ROLES[name]
                g = weights[:, own] * slow
                if common is not None:
                    g = g + weights[:, common] * normals(of_epoch, 0)
                g = g + weights[:, fresh] * normals(of_epoch, piece)
                out[name] = _moved(self.accuracies[name]["seed"], _within(name, means[name]), X, g)
        return out

    def draw_one(self, means: Mapping[str, float], x: Sequence[float], config_id: int, seed: int) -> dict[str, float]:
        """Return `draw` of one row, the same bits, without arrays; `x` are the 15 numbers of its encoding."""
        epoch = int(x[-1])
        if not 1 <= epoch <= self.max_epoch:
            raise self._beyond(epoch)
        table, key = normal_list(), run_key(self._salt, config_id, seed)
        out = dict(means)
        if (time := means.get("runtime")) is not None:
            if math.isnan(time):
                raise InvalidArgument("runtime: 1 of 1 predictions are NaN")
            out["runtime"] = time * _factor(self.runtime["seed"], table[word(key, 0) & 0xFFFF])
        place = None
        for name, (own, common, fresh, piece) in _ROLES.items():
            if (y := means.get(name)) is None:
                continue
            if place is None:
                place = _place(x)
                of_epoch, weights = word(key, _EPOCH_WORDS + epoch), self._weights[epoch - 1]
                slow = self._slow_one(key, epoch)
            g = weights[own] * slow
            if common is not None:
                g += weights[common] * table[of_epoch & 0xFFFF]
            g += weights[fresh] * table[of_epoch >> 16 * piece & 0xFFFF]
            out[name] = _moved_one(name, self._tables[name], y, place, g)
        return out

    def interval(
        self, means: Mapping[str, _Floats], X: NDArray[np.float32], *, level: float = 0.9, of: Kind = "outcome"
    ) -> dict[str, tuple[_Floats, _Floats]]:
        """Return the ends of the interval with a share `level` of all trainings, for accuracies and `runtime`.

        Args:
            means, X: as in `draw`.
            level: above 0 and below 1.
            of: "seed": interval of the draws, which takes the prediction as exact; "outcome": interval of one more
                training of the config, including the error of the prediction.

        Raises:
            InvalidArgument, UnknownName, InvalidFidelity: an argument is invalid, or lengths differ.
        """
        if not is_number(level) or not 0 < level < 1:
            raise InvalidArgument(f"level={show(level)} is not a number between 0 and 1")
        if of not in get_args(Kind):
            raise UnknownName.of("of", of, get_args(Kind))
        means, X = _read(means, X)
        self._check_epochs(X)
        _check_lengths(means, len(X))
        g = quantile((1 + level) / 2)
        ends: dict[str, tuple[_Floats, _Floats]] = {}
        for name, mean in means.items():
            if name == "runtime":
                low, high = (mean * _factor(self.runtime[of], side, is_mean=of == "seed") for side in (-g, g))
            elif name in ACCURACIES:
                y, spread, sides = _within(name, mean), self.accuracies[name][of], np.full((2, len(X)), [[-g], [g]])
                low, high = (_moved(spread, y, X, side, is_mean=of == "seed") for side in sides)
            else:
                continue
            ends[name] = low, high
        return ends

    def on_line(self, names: Sequence[str], y: _Floats, X: NDArray[np.float32]) -> tuple[_Floats, _Floats, _Floats]:
        """Return the centres of the draws of accuracies, on the unbounded scale of `jahs.models.noise.spread`.

        Args:
            names: names of the accuracies.
            y: predictions, (n_names, n).
            X: encoded configs and epochs, (n, 15).

        Returns:
            Centres and standard deviations, (n_names, n) each, and tails, (n_names, 1).

        Raises:
            InvalidArgument: a prediction is NaN.
            InvalidFidelity: an epoch is beyond the task's last.
        """
        if len(X) == 1:  # without arrays, which is many times faster
            place = _place(X[0].tolist())
            if not 0 <= place[0] < self.max_epoch:
                raise self._beyond(place[0] + 1)
            of_names = zip(names, y[:, 0].tolist(), strict=True)
            found = np.array([_centre_one(name, self._tables[name], one, place) for name, one in of_names])
        else:
            self._check_epochs(X)
            each = zip(names, y, strict=True)
            found = np.array([_centre(self.accuracies[name]["seed"], _within(name, many), X) for name, many in each])
        found = found.reshape(len(names), 2, len(X))
        tails = np.array([[self._tables[name][-2]] for name in names])
        return found[:, 0], found[:, 1], tails

    def deviations(self, names: Sequence[str], y: _Floats, X: NDArray[np.float32]) -> _Floats:
        """Return the standard deviations of the draws of accuracies around these predictions, (n_names, n)."""
        centre, sigma, _ = self.on_line(names, y, X)
        h, share = _draws_with(tuple(self._tables[name][-2] for name in names))
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

    def _draw_few(
        self, means: Mapping[str, _Floats], X: NDArray[np.float32], config_ids: NDArray[np.uint64], seeds: Sequence[int]
    ) -> dict[str, _Floats]:
        """`draw` row by row, which is faster for a few."""
        drawn = [name for name in means if name in _ROLES or name == "runtime"]
        rows = [
            self.draw_one({name: means[name].item(i) for name in drawn}, x, config_ids.item(i), seeds[i])
            for i, x in enumerate(X.tolist())
        ]
        return {name: np.array([row[name] for row in rows]) if name in drawn else means[name] for name in means}

    def _slow(self, keys: NDArray[np.uint64], epoch: NDArray[np.intp]) -> _Floats:
        n_loadings = max(len(row) for row in self._loadings)
        table = np.array([(*row, *[0.0] * (n_loadings - len(row))) for row in self._loadings])
        slow = np.zeros(len(keys))
        for k in range(n_loadings):
            if (k + 1) % PIECES == 0 or k == 0:
                of_run = words(keys, (k + 1) // PIECES)
            slow = slow + table[epoch, k] * normals(of_run, (k + 1) % PIECES)
        return slow

    def _slow_one(self, key: int, epoch: int) -> float:
        slow, table, of_run = 0.0, normal_list(), word(key, 0)
        for k, loading in enumerate(self._loadings[epoch - 1], 1):
            if k % PIECES == 0:
                of_run = word(key, k // PIECES)
            slow += loading * table[of_run >> 16 * (k % PIECES) & 0xFFFF]
        return slow

    def _check_epochs(self, X: NDArray[np.float32]) -> None:
        """Refuse the first epoch that is beyond the task's last."""
        is_bad = ~((X[:, -1] >= 1) & (X[:, -1] <= self.max_epoch))
        if is_bad.any():
            raise self._beyond(int(X[is_bad][0, -1]))

    def _beyond(self, epoch: int) -> InvalidFidelity:
        return InvalidFidelity(f"epoch={epoch} is not in 1..{self.max_epoch}, where the noise of {self.task} is known")


def _read(means: Mapping[str, Any], X: Any) -> tuple[dict[str, _Floats], NDArray[Any]]:  # Any: whatever a user gives
    """Return predictions as float64 by our names, and encoded configs as floats; InvalidArgument if they are not."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != _N_COLUMNS or X.dtype.kind not in "fiu":
        given = f"{X.dtype} of shape {X.shape}"
        raise InvalidArgument(f"X must hold numbers, (n, {_N_COLUMNS}), got {given}; jahs.encode() returns it")
    is_legal = (X.T[SIZE_COLUMNS, None] == _SIZE_CODES).any(axis=1).all(axis=1)  # (3, 3, n), then one for each key
    if not is_legal.all():
        odd = ", ".join(key for key, legal in zip(SIZE_KEYS, is_legal.tolist(), strict=True) if not legal)
        raise InvalidArgument(f"X has values of {odd} that no config has; jahs.encode() returns it")
    if not np.isfinite(X).all():
        raise InvalidArgument("X holds numbers that are not finite; jahs.encode() returns it")
    if (is_part := X[:, -1] % 1 != 0).any():
        raise InvalidFidelity(f"epoch={X[is_part][0, -1]:g} is not an integer")
    values = {name: np.asarray(of) for name, of in means.items()}
    refuse(*(f"{name} must hold numbers, got {of.dtype}" for name, of in values.items() if of.dtype.kind not in "fiu"))
    read = {metric(name).name: of.astype(np.float64, copy=False) for name, of in values.items()}
    if len(read) < len(values):
        raise InvalidArgument(f"means={', '.join(means)} names a metric twice; give each once")
    return read, X if X.dtype.kind == "f" else X.astype(np.float32)


def _check_lengths(values: Mapping[str, NDArray[Any]], n: int) -> None:
    """Refuse columns that do not have one value for each row, every fault at once."""
    faults = [f"{name} has shape {of.shape}, and X has {n} rows" for name, of in values.items() if of.shape != (n,)]
    refuse(*faults)


def _moved(spread: Spread, y: _Floats, X: NDArray[np.float32], g: _Floats, *, is_mean: bool = True) -> _Floats:
    """Move predictions by standard normal numbers; the prediction is the mean, or else the median, of the draws."""
    z, sigma = _centre(spread, y, X, is_mean=is_mean)
    return from_line(z + sigma * with_tail(g, spread.tail))


def _centre(spread: Spread, y: _Floats, X: NDArray[np.float32], *, is_mean: bool = True) -> tuple[_Floats, _Floats]:
    """Return the centre of the draws on the unbounded scale, whose mean (or else median) is y, and their spread."""
    sigma = spread.of_rows(y, X)
    z = to_line(y)
    if is_mean:
        z = z + pull_of_rows(pulls(spread.tail), y, sigma) * sigma * sigma * z / (1.0 + z * z)
    return z, sigma


@functools.cache
def _draws_with(tails: tuple[float, ...]) -> tuple[_Floats, _Floats]:
    """Return all draws with each of these tails, (n_blocks, n_tails, 1), and the shares of the blocks."""
    g, share = (each[..., None] for each in draws())
    return with_tail(g, np.array(tails)[:, None]), share


_Place: TypeAlias = tuple[int, tuple[float, float, float], int, float]


def _place(x: Sequence[float]) -> _Place:
    """Return the place of a row in a spread's tables: epoch, size, knot of the learning rate and share beyond it."""
    rate = x[RATE_COLUMN]
    at = min(max(bisect_right(RATES, rate) - 1, 0), len(RATES) - 2)
    share = min(max((rate - RATES[at]) / (RATES[at + 1] - RATES[at]), 0.0), 1.0)
    return int(x[-1]) - 1, (x[_N], x[_W], x[_RESOLUTION]), at, share


def _moved_one(name: str, tables: SpreadTables, y: float, place: _Place, g: float) -> float:
    """Return `_moved` of one prediction, the same bits."""
    z, sigma = _centre_one(name, tables, y, place)
    tail, scale = tables[-2:]
    return from_line_one(z + sigma * (g * (1.0 + tail * g * g) * scale))


def _centre_one(name: str, tables: SpreadTables, y: float, place: _Place) -> tuple[float, float]:
    """Return `_centre` of one prediction, the same bits."""
    if math.isnan(y):
        raise InvalidArgument(f"{name}: 1 of 1 predictions are NaN")
    y = 0.0 if y < 0.0 else 100.0 if y > 100.0 else y
    levels, lasts, epochs, sizes, rates, tail, _ = tables
    pull = pulls(tail)
    epoch, size, at, share = place
    knot = y * PER_LEVEL
    cell = min(int(knot), len(LEVELS) - 2)
    first = levels[cell] + (levels[cell + 1] - levels[cell]) * (knot - cell)
    final = lasts[cell] + (lasts[cell + 1] - lasts[cell]) * (knot - cell)
    sigma = (first + (final - first) * ((epoch + 1) / len(epochs))) * epochs[epoch]
    sigma = min(sigma * sizes[size] * (rates[at] + (rates[at + 1] - rates[at]) * share), MOST)
    z = to_line_one(y)
    step = sigma * PER_SPREAD
    column = min(int(step), N_SPREADS - 2)
    corner, on = cell * N_SPREADS + column, step - column
    low = pull[corner] + (pull[corner + 1] - pull[corner]) * on
    high = pull[corner + N_SPREADS] + (pull[corner + N_SPREADS + 1] - pull[corner + N_SPREADS]) * on
    return z + (low + (high - low) * (knot - cell)) * sigma * sigma * z / (1.0 + z * z), sigma


def _factor(spread: TimeSpread, g: Any, *, is_mean: bool = True) -> Any:  # Any: a float, or an array of them
    """Return a positive factor of the runtime, with mean 1, or else with median 1."""
    a = 0.5 * spread.spread * with_tail(g, spread.tail)
    root = (np.sqrt if isinstance(g, np.ndarray) else math.sqrt)(1.0 + a * a) + a
    return root * root / (1.0 + 0.5 * spread.spread * spread.spread) if is_mean else root * root


def _within(name: str, y: _Floats) -> _Floats:
    _refuse_nan(name, y)
    return np.minimum(np.maximum(y, 0.0), 100.0)


def _refuse_nan(name: str, values: _Floats) -> None:
    if np.isnan(values).any():
        raise InvalidArgument(f"{name}: {int(np.isnan(values).sum())} of {len(values)} predictions are NaN")
