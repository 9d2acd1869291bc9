"""Answers from recorded runs: measurements of the recorded configs, seeds and epochs, and nothing else.

A seed picks one of a config's runs, as NAS-Bench-101 picks a trial: run number `seed` in the order of their recorded
seeds, modulo the number of runs, so that seeds 0, 1, 2 pick the runs recorded with these seeds. Without a seed the
answer is the mean over the runs. A run that diverged answers for the epochs before; later epochs were not measured, and
a mean over only the runs that did not diverge would be biased.

Runtimes are seconds of one program on one processor (`jahs.files.runs.timing_machine`). If a seed picks another run,
the runtime comes from a run that was timed there. A config without such a run has no runtime, and is not sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jahs.errors import InvalidTable, NotRecorded
from jahs.files.runs import first_rows, is_timed, sorted_runs, timing_machine
from jahs.files.tables import Table
from jahs.models.cost import n_macs, n_params
from jahs.queries.oracles.oracle import Codes, Kind, Numbers, Oracle
from jahs.release.models import Costs
from jahs.release.table import RecordedTable
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import codes as codes_of
from jahs.spaces.columns import columns_of_codes, ids_of_codes
from jahs.spaces.columns import rows as configs_of
from jahs.spaces.configs import Config, id_of_codes
from jahs.spaces.encoding import encode_codes
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.seeds import Seeds
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import METRICS, Metric

_MOST_NEAREST: Final = 20  # configs of a batch without runs whose nearest recorded config is searched
_NO_RUN: Final = "no run of this config is recorded"
_RUN_METRICS: Final = ("train_acc", "valid_acc", "test_acc", "runtime", "train_loss", "valid_loss", "test_loss")


class _Run(NamedTuple):
    seed: int  # as recorded
    first: int  # first row that counts
    end: int  # one past the last row that counts
    is_diverged: bool  # whether it diverged and ended early


class _Rows(NamedTuple):
    """The rows that answer a query of one config at one epoch."""

    runs: list[int]  # for all metrics except the runtime
    runtime: list[int]  # empty if it is not requested


class TableOracle(Oracle):
    """Answers from a recorded table."""

    kind: Kind = "table"
    costs: Costs = "exact"

    def __init__(self, table: RecordedTable, task: Task) -> None:
        self.task = task
        runs = sorted_runs(table.runs)
        if not len(runs["epoch"]):
            raise InvalidTable("the table has no recorded run; nothing can be answered from it")
        self._runs = _index(runs)
        self._machine = timing_machine(runs, table.profile)
        timed = is_timed(runs, self._machine)
        self._timed = {
            config_id: timed_runs
            for config_id, config_runs in self._runs.items()
            if (timed_runs := [run for run in config_runs if timed[run.first] and run.first < run.end])
        }
        self._epochs = runs["epoch"].astype(np.int64)
        self.max_epoch = min(task.max_epoch, int(runs["epoch"].max()))
        self._values = {name: runs[name].astype(np.float64) for name in _RUN_METRICS}
        table_ids = table.configs["config_id"].tolist()
        recorded = [i for i, config_id in enumerate(table_ids) if config_id in self._runs]
        if missing := len(self._runs) - len(recorded):
            raise InvalidTable(f"{missing} recorded configs are not in the config table")
        self._codes = codes_of({key: table.configs[key][recorded] for key in CONFIG_KEYS})
        X = encode_codes(self._codes, 1)
        ids = [table_ids[i] for i in recorded]
        measured = [i for i, config_id in enumerate(ids) if any(run.first < run.end for run in self._runs[config_id])]
        if not measured:
            raise InvalidTable("every recorded run diverged in its first epoch; nothing can be answered from the table")
        drawable = [i for i in measured if ids[i] in self._timed] or measured
        self._drawable = self._codes[drawable]
        latency = dict(zip(table.profile["config_id"].tolist(), table.profile["latency"].tolist(), strict=True))
        self._config_values = {
            "latency": {config_id: latency[config_id] for config_id in ids if config_id in latency},
            "n_params": dict(zip(ids, map(float, n_params(X, task).tolist()), strict=True)),
            "n_macs": dict(zip(ids, map(float, n_macs(X, task).tolist()), strict=True)),
        }
        self.metrics: Mapping[str, Metric] = MappingProxyType(
            {name: METRICS[name] for name in METRICS if self._is_recorded(name, [ids[i] for i in drawable])}
        )

    def _is_recorded(self, name: str, drawable: Sequence[int]) -> bool:
        """Return whether every config has this metric at every epoch; for times, every config that can be drawn."""
        if name in self._config_values:
            return all(config_id in self._config_values[name] for config_id in drawable)
        by_config = self._timed if name == "runtime" else self._runs
        values = self._values.get(name)
        return (
            values is not None
            and bool(by_config)
            and all(np.isfinite(values[run.first : run.end]).all() for runs in by_config.values() for run in runs)
        )

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, seed: Seeds, metrics: Sequence[str]
    ) -> Numbers:
        """Return the recorded metrics of many configs; NotRecorded names the nearest one where there is no run."""
        ids = ids_of_codes(codes).tolist()
        seeds = seed.tolist() if isinstance(seed, np.ndarray) else [seed] * len(ids)
        rows: list[_Rows] = []
        faults: dict[int, str] = {}
        unknown: dict[int, str] = {}  # by config, with the nearest recorded one for those that a message can list
        for i, (config_id, epoch, row_seed) in enumerate(zip(ids, epochs.tolist(), seeds, strict=True)):
            if config_id not in self._runs:
                if config_id not in unknown:
                    unknown[config_id] = self._miss(codes[i]) if len(unknown) < _MOST_NEAREST else _NO_RUN
                faults[i] = unknown[config_id]
                continue
            try:
                rows.append(self._rows(config_id, codes[i], epoch, row_seed, metrics))
            except NotRecorded as fault:  # costs nothing where nothing is raised
                faults[i] = str(fault)
        if faults:
            raise NotRecorded.of_batch(faults, len(ids))
        return self._answers(ids, rows, metrics)

    def trajectory(
        self, codes: Codes, epochs: NDArray[np.int64], *, seed: int | None, metrics: Sequence[str]
    ) -> Numbers:
        """Return the recorded metrics of one training at ascending epochs; NotRecorded has the first fault."""
        config_id = id_of_codes(codes)
        rows = [self._rows(config_id, np.array(codes), epoch, seed, metrics) for epoch in epochs.tolist()]
        return self._answers([config_id] * len(rows), rows, metrics)

    def sample(self, n: int, *, seed: int | None) -> list[Config]:
        """Return `n` random configs out of those with recorded epochs, and with a runtime if any has one.

        The first ones do not depend on `n`.
        """
        words = np.random.Philox(key=seed).random_raw(n)
        return configs_of(columns_of_codes(self._drawable[words % np.uint64(len(self._drawable))]))

    def trained_in_full(self, metrics: Sequence[str]) -> NDArray[np.float64]:
        """Return, as codes, every recorded config that has these metrics at the last epoch, also if it is not drawn."""
        epochs = np.full(len(self._codes), self.max_epoch)
        try:
            self.query_many(self._codes, epochs, seed=None, metrics=metrics)
        except NotRecorded as err:
            return np.delete(self._codes, list(err.faults), axis=0)
        return self._codes

    def _answers(self, ids: Sequence[int], rows: Sequence[_Rows], metrics: Sequence[str]) -> Numbers:
        answers: Numbers = {}
        for name in metrics:
            if name in self._config_values:
                of_config = self._config_values[name]
                answers[name] = np.array([of_config[config_id] for config_id in ids], np.float64)
            else:
                values = self._values[name]
                row_lists = [r.runtime if name == "runtime" else r.runs for r in rows]
                answers[name] = np.array([math.fsum(values[r].tolist()) / len(r) for r in row_lists], np.float64)
        return answers

    def _rows(
        self, config_id: int, codes: NDArray[np.float64], epoch: int, seed: int | None, metrics: Sequence[str]
    ) -> _Rows:
        """Return the rows that answer a query: one run's, or all runs' of the config."""
        runs, timed = self._runs.get(config_id), self._timed.get(config_id, [])
        if runs is None:
            raise NotRecorded(self._miss(codes))
        missing = []
        if "runtime" in metrics and not timed:
            missing.append(f"runtime (it was not trained {_timed_on(self._machine)}, where all runtimes were measured)")
        if "latency" in metrics and config_id not in self._config_values["latency"]:
            missing.append("latency (it is not in the profile)")
        if missing:
            raise NotRecorded(
                f"config {config_id:016x} has no recorded {' and no '.join(missing)}; name other metrics, such as "
                "metrics=['valid_acc']"
            )
        if seed is not None:
            runs = [runs[seed % len(runs)]]
            timed = runs if runs[0] in timed else timed and [timed[seed % len(timed)]]
        return _Rows(
            self._at_epoch(config_id, runs, epoch),
            self._at_epoch(config_id, timed, epoch) if "runtime" in metrics else [],
        )

    def _at_epoch(self, config_id: int, runs: Sequence[_Run], epoch: int) -> list[int]:
        rows = [self._row(run, epoch) for run in runs]
        if ended := [run for run, row in zip(runs, rows, strict=True) if row is None]:
            raise NotRecorded(self._too_far(config_id, epoch, len(runs), ended))
        return [row for row in rows if row is not None]

    def _row(self, run: _Run, epoch: int) -> int | None:
        row = run.first + int(np.searchsorted(self._epochs[run.first : run.end], epoch))
        return row if row < run.end and self._epochs[row] == epoch else None

    def _too_far(self, config_id: int, epoch: int, n_chosen: int, ended: Sequence[_Run]) -> str:
        """Return the message for an epoch that a recorded config lacks."""
        run = ended[0]
        which = f"run with seed {run.seed}" if n_chosen == 1 else f"{len(ended)} of {n_chosen} runs"
        epochs = self._epochs[run.first : run.end]
        parts = np.split(epochs, np.flatnonzero(np.diff(epochs) > 1) + 1) if len(epochs) else []
        shown = ", ".join(f"{part[0]}..{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts) or "none"
        why = " and then diverged" if run.is_diverged else ""
        return f"epoch {epoch} of config {config_id:016x} is not recorded: the {which} measured epochs {shown}{why}"

    def _miss(self, codes: NDArray[np.float64]) -> str:
        """Return the message for a config without runs; it names the nearest recorded config."""
        steps = np.zeros(len(self._codes))
        for column, value, parameter in zip(self._codes.T, codes, PARAMETERS.values(), strict=True):
            if parameter.kind == "float":
                steps += np.abs(np.log10(column / value)) / math.log10(parameter.upper / parameter.lower)
            elif parameter.kind == "ordinal":
                places = np.searchsorted(parameter.codes, [*column, value])
                steps += np.abs(places[:-1] - places[-1]) / (len(parameter.codes) - 1)
            else:
                steps += column != value
        nearest = self._codes[int(steps.argmin())]
        theirs, ours = configs_of(columns_of_codes(np.array([nearest, codes])))
        differs = [f"{key}={theirs[key]!r} (asked: {ours[key]!r})" for key in CONFIG_KEYS if theirs[key] != ours[key]]
        return (
            f"{_NO_RUN}; the nearest of {len(self._codes)} recorded configs has "
            f"{', '.join(differs)}; bench.sample() draws recorded configs (in a terminal: --config-seed, without keys)"
        )


def _timed_on(machine: str | None) -> str:
    """Return in words where `timing_machine` measures runtimes."""
    processor, _, software = (machine or "").partition(", ")
    return f"by the C engine ({software}) on {processor}" if software else f"by torch on {processor or 'a processor'}"


def _index(runs: Table) -> dict[int, list[_Run]]:
    """Return the runs of each config, by recorded seed, from rows in order of config, seed and epoch."""
    ids, seeds = runs["config_id"], runs["seed"]
    is_diverged = (runs["status"] == "diverged").tolist()
    by_config: dict[int, list[_Run]] = {}
    for first, end in pairwise([*first_rows(runs).tolist(), len(ids)]):
        # The last row of a diverged run is the epoch in which it diverged.
        last = end - 1 if is_diverged[end - 1] else end
        run = _Run(int(seeds[first]), first, last, is_diverged[end - 1])
        by_config.setdefault(int(ids[first]), []).append(run)
    return by_config
