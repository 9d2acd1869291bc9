"""Compare schedules that end early with early epochs of one long schedule, as rungs of successive halving.

NAS-Bench-101 trains each budget with a schedule of its own; this benchmark reads early epochs of one schedule. A task
whose schedule ends after 3 epochs is the same task with another name and `max_epoch`, so its runs have a protocol of
their own:

    python -m experiments.schedules task cifar10_mini --epochs 3 --out schedules
    python -m pipeline.collect --task schedules/cifar10_mini_3.json --stop 150 --data-dir DIR --out schedules/runs-3
    python -m experiments.schedules compare data/cifar10_mini/runs schedules/runs-1 schedules/runs-3 schedules/runs-9

The first command writes the task file, once for each of 1, 3 and 9 epochs; the second trains the first 150 configs
with it, those that the full-length runs have too. The third prints, as JSON, rank correlations with the last epoch of
the full training, and the speed-up of successive halving over random search, under both semantics:

- *one schedule*: rungs are epochs of one training, which is continued;
- *own schedules*: each rung is a training of its own, from the first epoch, with its schedule.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_uses import ETA, halve
from jahs.errors import InvalidArgument
from jahs.tasks.definitions import Task, task
from jahs.tasks.own import write_task_file
from surrogate.data.measurements import Measurements, read_measurements
from workshop.command import new_parser, run_command
from workshop.ranks import kendall_tau, spearman
from workshop.resampling import bootstrap_agreement

_FEWEST: Final = 20
_N_RESAMPLES: Final = 1000
_N_SEARCHES: Final = 1000
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired:
    """The same configs under every schedule, (n_configs, n_rungs) each; the last rung is the full training.

    Attributes:
        epochs: of the rungs.
        accuracy: validation accuracy at an epoch of the full training (one), and at the end of an own schedule (own).
        runtime: seconds of a training to that epoch, of the full training and of its own schedule.
    """

    epochs: tuple[int, ...]
    accuracy: Mapping[str, _Floats]
    runtime: Mapping[str, _Floats]


def short_task(name: str, n_epochs: int) -> Task:
    """Return a task with a schedule that ends early.

    Raises:
        UnknownName: there is no such task.
        InvalidArgument: it has not more epochs.
    """
    whole = task(name)
    if not 1 <= n_epochs < whole.max_epoch:
        raise InvalidArgument(f"epochs={n_epochs} must be in 1..{whole.max_epoch - 1}, less than {name} has")
    return replace(whole, name=f"{name}_{n_epochs}", title=f"{whole.title}, {n_epochs} epochs", max_epoch=n_epochs)


def pair_schedules(full: Path, short: Sequence[Path]) -> Paired:
    """Read the runs of one task under several schedules, and keep the configs that finished all of them.

    Raises:
        InvalidArgument: the tasks differ in more than their schedule, two have the same epochs, or share few configs.
    """
    measured = sorted((read_measurements(path) for path in (full, *short)), key=lambda each: each.task.max_epoch)
    whole, epochs = measured[-1], tuple(each.task.max_epoch for each in measured)
    other = [each.task.name for each in measured if _but_schedule(each.task) != _but_schedule(whole.task)]
    if other or len(set(epochs)) < len(epochs) or len(epochs) < 2:
        raise InvalidArgument(
            f"the folders must be of one task with two or more schedules of different lengths, got {', '.join(other)} "
            f"beside {whole.task.name}, and epochs {epochs}"
        )
    curves = [_first_runs(each) for each in measured]
    shared = sorted(set.intersection(*map(set, curves)))
    if len(shared) < _FEWEST:
        raise InvalidArgument(f"{len(shared)} configs finished every schedule, {_FEWEST} are needed; train more")
    found: dict[str, dict[str, _Floats]] = {}
    for column, metric in enumerate(("accuracy", "runtime")):
        one = [[curves[-1][config][column][epoch - 1] for epoch in epochs] for config in shared]
        own = [[of[config][column][-1] for of in curves] for config in shared]
        found[metric] = {"one schedule": np.array(one), "own schedules": np.array(own)}
    return Paired(epochs=epochs, accuracy=found["accuracy"], runtime=found["runtime"])


def _but_schedule(chosen: Task) -> Task:
    return replace(chosen, name="any", title="", citation="", max_epoch=1, caveat=None)


def _first_runs(measured: Measurements) -> dict[int, tuple[_Floats, _Floats]]:
    """Return accuracies and runtimes by epoch of the first finished and timed run of each config."""
    runs = measured.timed_runs
    order = np.lexsort((runs["epoch"], runs["seed"], runs["config_id"]))
    found: dict[int, tuple[_Floats, _Floats]] = {}
    for rows in np.split(order, np.flatnonzero(runs["epoch"][order] == 1)[1:]):
        if len(rows) == measured.task.max_epoch:
            accuracy, runtime = (runs[name][rows].astype(np.float64) for name in ("valid_acc", "runtime"))
            found.setdefault(int(runs["config_id"][rows[0]]), (accuracy, runtime))
    return found


def compare_schedules(paired: Paired) -> dict[str, Any]:  # Any: JSON
    """Return rank correlations with the full training and speed-ups of halving, for both semantics, as JSON."""
    full = paired.accuracy["one schedule"][:, -1]
    facts: dict[str, Any] = {"n_configs": len(full), "epochs": list(paired.epochs)}  # Any: JSON
    for semantics, accuracy in paired.accuracy.items():
        correlations = []
        for rung, epoch in enumerate(paired.epochs[:-1]):
            values = accuracy[:, rung]
            of = bootstrap_agreement(kendall_tau, values, full, n_resamples=_N_RESAMPLES)
            tau = {"tau": of.value, "tau_low": of.low, "tau_high": of.high}
            correlations.append({"epoch": epoch, **tau, "spearman": spearman(values, full)})
        facts[semantics] = {"correlations": correlations, "halving": _halving(paired, semantics)}
    return facts


def _halving(paired: Paired, semantics: str) -> dict[str, float | int]:
    """Return the mean final accuracy, cost and speed-up of successive halving on random draws of the configs."""
    accuracy, runtime = paired.accuracy[semantics], paired.runtime[semantics]
    full, whole = paired.accuracy["one schedule"][:, -1], float(paired.runtime["one schedule"][:, -1].mean())
    n_first = min(ETA ** (len(paired.epochs) - 1), len(full) // 2)
    rng = np.random.default_rng(0)
    best, costs = [], []
    for _ in range(_N_SEARCHES):
        drawn = rng.permutation(len(full))[:n_first]
        survivors, spent_s = halve(accuracy, runtime, drawn, is_continued=semantics == "one schedule")
        best.append(float(full[survivors].max()))
        costs.append(spent_s / whole)
    n_random = _n_random(full, float(np.mean(best)))
    return {
        "n_first": n_first,
        "accuracy": float(np.mean(best)),
        "cost": float(np.mean(costs)),
        "random_search_cost": n_random,
        "speed_up": n_random / float(np.mean(costs)),
    }


def _n_random(full: _Floats, target: float) -> int:
    """Return how many full trainings of random configs reach this mean best accuracy; all where none does."""
    ordered, n = np.sort(full), len(full)
    for k in range(1, n + 1):
        # The best of k drawn without replacement is the i-th smallest with chance C(i, k - 1) / C(n, k).
        chance = np.array([math.comb(i, k - 1) for i in range(n)], dtype=object) / math.comb(n, k)
        if float((chance.astype(np.float64) * ordered).sum()) >= target - 1e-9:
            return k
    return n


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser("experiments.schedules", __doc__, example="compare data/cifar10_mini/runs schedules/runs-3")
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("task", help="write the task file of a schedule that ends early")
    writing.add_argument("task", help="name of a task")
    writing.add_argument("--epochs", type=int, required=True, help="after which the schedule ends")
    writing.add_argument("--out", type=Path, required=True, help="folder of the task file")
    comparing = commands.add_parser("compare", help="compare runs of several schedules")
    comparing.add_argument("full", type=Path, help="runs of the full schedule")
    comparing.add_argument("short", type=Path, nargs="+", help="runs of schedules that end early")
    given = parser.parse_args(argv)
    return run_command("experiments.schedules", lambda: _work(given))


def _work(given: argparse.Namespace) -> object:
    if given.command == "compare":
        return compare_schedules(pair_schedules(given.full, given.short))
    chosen = short_task(given.task, given.epochs)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{chosen.name}.json"
    write_task_file(path, chosen)
    return {"task": chosen.name, "file": str(path)}


if __name__ == "__main__":
    sys.exit(main())
