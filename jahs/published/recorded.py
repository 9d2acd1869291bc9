"""Convert one task of `metric_data.tar` to a folder of runs (see `jahs.files.runs`) and report all oddities.

Over 300 lines: one conversion, step by step in the order in which a table is read.

The rows of `raw` are taken as they are; each model id is one run. Rows that cannot be a run are left out and listed,
and other oddities are listed, too (`jahs.published.oddities`). Labels of costs are compared with the exact costs, but
not used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidConfig, InvalidTable
from jahs.files.hashing import digest_facts
from jahs.files.runs import sorted_runs
from jahs.files.tables import Table, empty_table, equal_values, sort_by, typed
from jahs.models.cost import n_macs, n_params
from jahs.published.frames import Column, Frame, let_go
from jahs.published.oddities import Oddities
from jahs.schema import CONFIG_COLUMNS, CONFIG_KEYS, PROFILE_COLUMNS, RUN_COLUMNS, SIZE_KEYS
from jahs.spaces.columns import Columns, config_ids, validate_columns
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import PROSE, Task
from jahs.tasks.metrics import METRICS

Ints = NDArray[np.int64]
Whole = NDArray[np.signedinteger[Any]]  # Any: the size depends on the file
Floats = NDArray[np.float64]

_ROWS_AT_ONCE: Final = 200_000
_MACHINE: Final = {
    "device": "cpu",
    "machine": "Intel Xeon Platinum 8174 (as published)",
    "torch_version": "not stated",
}
_MEASURED: Final = {
    f"{part}_{kind}": f"{part}-{kind}" for kind in ("acc", "loss") for part in ("train", "valid", "test")
} | {"runtime": "runtime"}
_STEP: Final = ("train-forward_duration", "train-backprop_duration")
_COSTS: Final = {"FLOPS": ("flops_label", n_macs), "size_MB": ("size_label", n_params)}
_REQUIRED: Final = (
    ("sampling_index", "model_ID"),
    *(("features", name) for name in (*CONFIG_KEYS, "epoch")),
    *(("labels", name) for name in (*_MEASURED.values(), "latency", *_STEP, *_COSTS)),
)
_COST_TOLERANCE: Final = 1e-6  # relative; labels are exact quotients by a million
_FLAT_SHARE: Final = 0.2
_FLAT: Final = 0.1  # percentage points; with a learning rate of 0, batch normalisation alone still moves
_PARTS: Final = (("train_set", "valid_set"), ("train_set", "test_set"), ("valid_set", "test_set"))


def published_protocol(task: Task) -> dict[str, Any]:  # Any: JSON
    """Return the facts of the protocol of a published table."""
    facts = {key: value for key, value in dataclasses.asdict(task).items() if key not in PROSE}
    return {"source": "jahs-bench-201", "task": facts}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Models:
    """The models in raw: each has its rows in the order of epochs, and the config of its first row."""

    model_id: Ints
    order: Whole  # rows of raw by model, then epoch
    start: Ints  # (n_models + 1,) where each model's rows begin in `order`
    columns: dict[str, NDArray[Any]]  # Any: types differ by key
    is_valid: NDArray[np.bool_]
    config_id: NDArray[np.uint64]  # 0 for an invalid config
    seed: Ints  # its number among the models of its config


class Recorder:
    """The tables of one task, and their oddities.

    Attributes:
        configs: the config table.
        profile: latencies and training steps, one row per config.
        oddities: the findings; complete once `runs` is exhausted and `compare_split` was called.
    """

    def __init__(self, raw: Frame, task: Task) -> None:
        if missing := [" / ".join(name) for name in _REQUIRED if name not in raw.columns]:
            raise InvalidTable(f"the table lacks the columns {', '.join(missing)}")
        self._raw = raw
        self._task = task
        self._protocol = digest_facts(published_protocol(task))
        self._models = models = _read_models(raw)
        self.oddities = Oddities(models.model_id, models.config_id, _group_names(models.columns))
        self.oddities.note("invalid_config", np.flatnonzero(~models.is_valid))
        repeated = np.flatnonzero(models.is_valid & (models.seed > 0))
        _, first, place = np.unique(models.config_id, return_index=True, return_inverse=True)
        self.oddities.note("repeated_config", repeated, models.model_id[first[place[repeated]]])
        self._n_written = 0  # rows
        self._written: list[Ints] = []
        self._profiles: list[Table] = []

    def runs(self, report: Callable[[int, int], None] = lambda *_: None) -> Iterator[Table]:
        """Yield the runs table in pieces of whole models."""
        start = self._models.start
        first = 0
        while first < len(start) - 1:
            last = max(first + 1, int(np.searchsorted(start, start[first] + _ROWS_AT_ONCE, side="right")) - 1)
            table = self._piece(first, last)
            self._n_written += len(table["epoch"])
            report(int(start[last]), len(self._raw))
            if len(table["epoch"]):
                yield table
            first = last
        self._note_same_runs()

    @property
    def configs(self) -> Table:
        """The config table of the models whose runs were written."""
        models, written = self._models, self._all_written()
        written = written[np.unique(models.config_id[written], return_index=True)[1]]
        table = {key: models.columns[key][written] for key in CONFIG_KEYS}
        table |= {"config_id": models.config_id[written], "config_index": np.full(len(written), -1)}
        return sort_by(typed(table, CONFIG_COLUMNS), ("config_id",))

    @property
    def profile(self) -> Table:
        """Latency at the last epoch and the mean training step, averaged over the runs of a config."""
        if not self._profiles:
            return empty_table(PROFILE_COLUMNS)
        parts = {name: np.concatenate([part[name] for part in self._profiles]) for name in self._profiles[0]}
        ids, place, counts = np.unique(parts["config_id"], return_inverse=True, return_counts=True)
        table = {name: np.bincount(place, parts[name]) / counts for name in ("latency", "step_time_s")} | {
            "config_id": ids,
            "n_repeats": np.minimum(counts, 2**15 - 1),
        }
        words = {**_MACHINE, "protocol": self._protocol}
        return typed(
            table | {name: np.full(len(ids), words[name]) for name in ("machine", "torch_version", "protocol")},
            PROFILE_COLUMNS,
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers of rows, runs and configs that were read and written."""
        models, written = self._models, self._all_written()
        return {
            "rows_read": len(self._raw),
            "rows_written": self._n_written,
            "runs_read": len(models.model_id),
            "runs_written": len(written),
            "configs_read": len(np.unique(models.config_id[models.is_valid])),
            "configs_written": len(np.unique(models.config_id[written])),
        }

    def compare_split(self, parts: Mapping[str, Frame]) -> dict[str, Any]:  # Any: JSON
        """Note configs on several sides of the published split; return the numbers of rows and configs of each side."""
        place, rows_at = self._model_of_rows(), _Places(self._raw.labels)
        sides = {name: self._models_of(part, rows_at, place) for name, part in parts.items()}
        ids = {name: np.unique(self._models.config_id[models]) for name, models in sides.items()}
        for number, (one, other) in enumerate(_PARTS, 1):
            if one in ids and other in ids:
                shared = np.intersect1d(ids[one], ids[other])
                models = np.union1d(sides[one], sides[other])
                is_shared = np.isin(self._models.config_id[models], shared[shared > 0])
                self.oddities.note("shared_by_split", models[is_shared], float(number))
        return {name: {"rows": len(parts[name]), "configs": len(ids[name])} for name in parts}

    def _model_of_rows(self) -> Whole:
        """Return the position of each row's model."""
        start, n_models = self._models.start, len(self._models.model_id)
        place: Whole = np.empty(len(self._raw), _smallest(0, n_models))
        place[self._models.order] = np.repeat(np.arange(n_models, dtype=place.dtype), np.diff(start))
        return place

    def _models_of(self, part: Frame, rows_at: _Places, place: Whole) -> Ints:
        """Return the models with rows in a part of the split; note rows that differ from raw."""
        is_there = np.zeros(len(self._models.model_id), np.bool_)
        changed: list[tuple[Whole, Ints]] = []
        shared = [name for name in part.columns if name in self._raw.columns]
        for first in range(0, len(part), _ROWS_AT_ONCE):
            piece = slice(first, first + _ROWS_AT_ONCE)
            labels = np.asarray(part.labels[piece])
            rows, is_same = rows_at.find(labels)
            for name in shared:
                is_same &= equal_values(self._raw.columns[name].take(rows), part.columns[name].take(piece))
            is_there[place[rows[is_same]]] = True
            changed.append((place[rows[~is_same]], labels[~is_same]))
            for row_labels in (self._raw.labels, part.labels):
                if isinstance(row_labels, np.ndarray):
                    let_go(row_labels)
        for models, labels in changed:
            self.oddities.note("changed_row", models.astype(np.int64), labels)
        return np.flatnonzero(is_there)

    def _piece(self, first: int, last: int) -> Table:
        """Return the runs of models `first` to `last - 1`; note their oddities."""
        models = self._models
        rows = models.order[models.start[first] : models.start[last]]
        model = np.repeat(np.arange(first, last), np.diff(models.start[first : last + 1]))
        labels = {name: self._label(published, rows) for name, published in _MEASURED.items()}
        epoch = _whole(self._raw.column("features", "epoch").take(rows)).astype(np.int64)
        is_good = models.is_valid[model]
        is_good &= ~self._note_models("changing_config", ~self._is_same_config(rows, model), model)
        is_good &= ~self._note_models("repeated_epoch", self._is_bad_epoch(epoch, model), model)
        is_finite = np.ones(len(rows), np.bool_)
        for kind, *name in self._raw.columns:
            if kind == "labels":
                is_finite &= np.isfinite(self._label(" / ".join(name), rows))
        is_last = np.append(model[1:] != model[:-1], True)
        is_nearly = is_last & (epoch == self._task.max_epoch - 1) & is_good
        self.oddities.note("lost_last_row", model[is_nearly], epoch[is_nearly])
        is_short = is_last & (epoch < self._task.max_epoch - 1) & is_good
        self.oddities.note("incomplete_run", model[is_short], epoch[is_short])
        is_good &= ~np.isin(model, model[is_short])
        is_nan = is_good & ~is_finite
        self.oddities.note("nan_row", model[is_nan], epoch[is_nan])
        self.oddities.note("nan_last_row", model[is_nan & is_last], epoch[is_nan & is_last])
        self._note_costs(rows, model, models.is_valid[model])
        is_possible = _are_possible({**labels, "latency": self._label("latency", rows)})
        is_impossible = is_good & is_finite & ~is_possible
        self.oddities.note("impossible_row", model[is_impossible], epoch[is_impossible])
        is_written = is_good & is_finite & is_possible
        measured = {name: values[is_written] for name, values in labels.items()}
        self._note_shapes(model[is_written], epoch[is_written], measured)
        self._keep(rows[is_written], model[is_written])
        table = {
            "config_id": models.config_id[model[is_written]],
            "seed": models.seed[model[is_written]],
            "epoch": epoch[is_written],
            **measured,
            "status": np.full(int(is_written.sum()), "finished"),
            **{name: np.full(int(is_written.sum()), text) for name, text in _MACHINE.items()},
            "protocol": np.full(int(is_written.sum()), self._protocol),
        }
        return sorted_runs(typed(table, RUN_COLUMNS))

    def _label(self, name: str, rows: Ints) -> Floats:
        values = self._raw.column("labels", name).take(rows)
        if values.dtype.kind not in "fiu":
            raise InvalidTable(f"labels / {name} holds {values.dtype}, not numbers")
        return values.astype(np.float64)

    def _note_models(self, finding: str, is_odd: NDArray[np.bool_], model: Ints) -> NDArray[np.bool_]:
        """Note each model with an odd row once; return which rows belong to these models."""
        odd_models = np.unique(model[is_odd])
        self.oddities.note(finding, odd_models)
        return np.isin(model, odd_models)

    def _is_same_config(self, rows: Ints, model: Ints) -> NDArray[np.bool_]:
        is_same = np.ones(len(rows), np.bool_)
        for key, values in self._models.columns.items():
            is_same &= equal_values(self._raw.column("features", key).take(rows), values[model])
        return is_same

    def _is_bad_epoch(self, epoch: Ints, model: Ints) -> NDArray[np.bool_]:
        is_bad = (epoch < 1) | (epoch > self._task.max_epoch)
        is_bad[1:] |= (epoch[1:] == epoch[:-1]) & (model[1:] == model[:-1])
        return is_bad

    def _note_costs(self, rows: Ints, model: Ints, is_valid: NDArray[np.bool_]) -> None:
        """Compare the labels of costs with the exact costs of the networks, a row per model."""
        models = np.unique(model[is_valid])
        if not len(models):
            return
        X = encode({key: values[models] for key, values in self._models.columns.items()}, 1)
        for name, (finding, formula) in _COSTS.items():
            label = self._label(name, rows)
            exact = np.zeros(len(self._models.model_id))
            exact[models] = formula(X, self._task) / 1e6
            is_off = is_valid & ~(np.abs(label - exact[model]) <= _COST_TOLERANCE * exact[model])
            odd_models, first_rows = np.unique(model[is_off], return_index=True)
            self.oddities.note(finding, odd_models, label[is_off][first_rows], exact[odd_models])

    def _note_shapes(self, model: Ints, epoch: Ints, measured: Mapping[str, Floats]) -> None:
        """Note falling runtimes and constant accuracies by model, over its rows in order of the epoch."""
        if not len(model):
            return
        falls = np.flatnonzero((np.diff(measured["runtime"]) < 0) & (np.diff(model) == 0)) + 1
        odd_models, first_rows = np.unique(model[falls], return_index=True)
        self.oddities.note("falling_runtime", odd_models, epoch[falls[first_rows]])
        starts = np.flatnonzero(np.append(True, np.diff(model) > 0))
        for begin, end in zip(starts.tolist(), [*starts[1:].tolist(), len(model)], strict=True):
            accuracy = measured["valid_acc"][begin:end]
            far = np.flatnonzero(np.abs(accuracy - accuracy[-1]) > _FLAT)
            if not len(far):
                if np.ptp(accuracy) == 0.0:
                    self.oddities.note("constant_run", model[begin : begin + 1])
                continue
            n_flat = len(accuracy) - 1 - int(far[-1])
            if n_flat >= _FLAT_SHARE * self._task.max_epoch:
                self.oddities.note("flat_tail", model[begin : begin + 1], epoch[begin + int(far[-1]) + 1])

    def _keep(self, rows: Ints, model: Ints) -> None:
        """Remember the models with written runs, and their values for the profile."""
        written, first = np.unique(model, return_index=True)
        self._written.append(written)
        if not len(written):
            return
        step = np.sum([self._label(name, rows) for name in _STEP], axis=0)
        ends = np.append(first[1:], len(model)) - 1
        part = {
            "config_id": self._models.config_id[written],
            "latency": self._label("latency", rows)[ends],
            "step_time_s": np.add.reduceat(step, first) / np.diff(np.append(first, len(model))),
        }
        self._profiles.append(part)

    def _all_written(self) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *self._written])

    def _note_same_runs(self) -> None:
        """Note repeated configs whose accuracies are those of an earlier model, too."""
        models = self._models
        valid = self._raw.column("labels", "valid-acc")
        is_repeated = models.is_valid & np.isin(models.config_id, models.config_id[models.seed > 0])
        known: dict[tuple[int, bytes], int] = {}  # the first model with these accuracies, by config
        same, earlier = [], []
        for k in np.flatnonzero(is_repeated).tolist():
            accuracies = valid.take(models.order[models.start[k] : models.start[k + 1]]).astype(np.float64)
            first = known.setdefault((models.config_id.item(k), accuracies.tobytes()), k)
            if first != k:
                same.append(k)
                earlier.append(first)
        self.oddities.note("same_run", np.array(same, np.int64), models.model_id[np.array(earlier, np.int64)])


class _Places:
    """Finds the row of each label."""

    def __init__(self, labels: Ints | range) -> None:
        self._labels = labels
        is_sorted = isinstance(labels, range) or bool((labels[1:] > labels[:-1]).all())
        self._order = None if is_sorted else np.argsort(labels, kind="stable").astype(_smallest(0, len(labels)))

    def find(self, labels: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return a row for each label, and whether the row has that label."""
        if isinstance(self._labels, range):
            rows = np.clip((labels - self._labels.start) // self._labels.step, 0, len(self._labels) - 1)
            return rows, labels == self._labels.start + rows * self._labels.step
        rows = np.minimum(np.searchsorted(self._labels, labels, sorter=self._order), len(self._labels) - 1)
        rows = rows if self._order is None else self._order[rows].astype(np.int64)
        return rows, self._labels[rows] == labels


def _read_models(raw: Frame) -> _Models:
    if not len(raw):
        raise InvalidTable("the table has no rows")
    ids = _compact(raw.column("sampling_index", "model_ID"))
    epoch = _compact(raw.column("features", "epoch"))
    order = np.lexsort((epoch, ids)).astype(_smallest(0, len(ids)))
    ids = ids[order]
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    first = order[starts]
    columns = {key: raw.column("features", key).take(first) for key in CONFIG_KEYS}
    is_valid = _valid_rows(columns)
    config_id = np.zeros(len(first), np.uint64)
    config_id[is_valid] = config_ids(validate_columns({key: values[is_valid] for key, values in columns.items()}))
    by_config = np.lexsort((np.arange(len(first)), config_id))
    is_new = np.append(True, np.diff(config_id[by_config].view(np.int64)) != 0)
    begins = np.maximum.accumulate(np.where(is_new, np.arange(len(first)), 0))
    seed = np.zeros(len(first), np.int64)
    seed[by_config] = np.arange(len(first)) - begins
    return _Models(
        model_id=ids[starts].astype(np.int64),
        order=order,
        start=np.append(starts, len(ids)),
        columns=columns,
        is_valid=is_valid,
        config_id=config_id,
        seed=seed,
    )


def _are_possible(labels: Mapping[str, Floats]) -> NDArray[np.bool_]:
    """Return the rows whose values are all within the bounds of their metrics, and finite as float32."""
    ends = [(METRICS[name].lower, min(METRICS[name].upper, float(np.finfo(np.float32).max))) for name in labels]
    within = [(values >= low) & (values <= high) for values, (low, high) in zip(labels.values(), ends, strict=True)]
    return np.asarray(np.all(within, axis=0))


def _valid_rows(columns: Columns) -> NDArray[np.bool_]:
    """Return which rows are configs of the space."""
    try:
        validate_columns(columns)
    except InvalidConfig:
        n_rows = len(columns["N"])
        is_valid = np.zeros(n_rows, np.bool_)
        for i in range(n_rows):
            try:
                validate_columns({key: values[i : i + 1] for key, values in columns.items()})
            except InvalidConfig:
                continue
            is_valid[i] = True
        return is_valid
    return np.ones(len(columns["N"]), np.bool_)


def _group_names(columns: Columns) -> NDArray[np.str_]:
    parts = zip(*(columns[key].tolist() for key in SIZE_KEYS), strict=True)
    return np.array([f"N={n:g} W={w:g} Resolution={r:g}" for n, w, r in parts])


def _compact(column: Column) -> Whole:
    """Return a column's integers in the smallest type that holds them all."""
    values = _whole(column.take(slice(None)))
    return values.astype(_smallest(int(values.min()), int(values.max())))


def _smallest(least: int, most: int) -> np.dtype[np.signedinteger[Any]]:
    """Return the smallest integer type that holds both."""
    for kind in (np.int16, np.int32):
        if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def _whole(values: NDArray[Any]) -> NDArray[Any]:  # Any: the file decides on the dtype
    if values.dtype.kind not in "iu":
        raise InvalidTable(f"a column of integers must not be {values.dtype}")
    return values
