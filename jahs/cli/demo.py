"""The content of `jahs demo`: a config, its cell, its costs, a release's answers, and a search in simulated time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np

from jahs.comparison.svg import Line, Panel, draw_chart
from jahs.errors import MissingData
from jahs.files.atomic import write_beside
from jahs.models.cost import cost
from jahs.queries.benchmark import Benchmark
from jahs.queries.queryable import Queryable
from jahs.spaces.cell import Cell
from jahs.spaces.configs import Config
from jahs.spaces.space import space
from jahs.tasks.definitions import Task, task

N_CONFIGS = 27
N_DRAWS = 20
ETA = 3

Steps: TypeAlias = tuple[tuple[float, float], ...]
"""Simulated seconds, and the best accuracy of any network trained until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One round of successive halving: its configs, the best one first, trained up to `epoch`."""

    epoch: int
    configs: tuple[int, ...]  # positions
    valid_acc: tuple[float, ...]
    spent_s: float  # simulated, since the search began


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """A search that keeps the best third, trains it three times as long, and so on."""

    configs: tuple[Config, ...]
    rungs: tuple[Rung, ...]
    best_so_far: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A sampled config, its cell and exact costs; with a release also its learning curve and a search."""

    seed: int  # seed of the sampled config and of the first configs of the search
    task: Task
    config: Config
    cell: Cell
    n_params: int
    n_macs: int
    curve: dict[str, list[float]] | None = None
    trained: float | None = None  # recorded validation accuracy at the last epoch, a mean over runs; None: not recorded
    interval: tuple[float, float] | None = None  # 90 % predictive interval of one training, noise and model error
    halving: Halving | None = None
    in_full: Steps = ()  # full trainings of the same configs, one after another, in the same time
    gains: tuple[float, ...] = ()  # final accuracy of successive halving minus full trainings', for 20 sets of configs
    elapsed_s: float = 0.0  # wall time of curve and search

    def to_dict(self) -> dict[str, object]:
        """Return builtins only, for JSON."""
        facts: dict[str, object] = {
            "cell": self.cell.nb201_string,
            "config": dict(self.config),
            "n_macs": self.n_macs,
            "n_params": self.n_params,
            "seed": self.seed,
            "task": self.task.name,
        }
        if self.halving is None:
            return facts
        return {
            **facts,
            "curve": self.curve,
            "trained_valid_acc": self.trained,
            "interval_90": self.interval,
            "rungs": [asdict(rung) for rung in self.halving.rungs],
            "best": dict(self.halving.configs[self.halving.rungs[-1].configs[0]]),
            "in_full": self.in_full,
            "gains": self.gains,
        }


def demo(*, seed: int, task_name: str, bench: Queryable | None = None, table: Benchmark | None = None) -> Demo:
    """Sample a config, compute the costs of its network, and search if a benchmark is given.

    With a `table`, the config is one of those that were trained.

    Example:
        >>> demo(seed=0, task_name="cifar10").n_params > 0
        True
    """
    chosen = task(task_name)
    config = space().sample(seed=seed) if table is None else table.sample(seed=seed)
    shown = Demo(seed=seed, task=chosen, config=config, cell=Cell.from_config(config), **cost(config, chosen))  # type: ignore[arg-type]  # n_params and n_macs
    if bench is None:
        return shown
    start = time.perf_counter()
    curve = bench.trajectory(config, metrics=("valid_acc", "runtime"))
    halving, in_full = _search(bench, seed)
    elapsed_s = time.perf_counter() - start
    return replace(
        shown,
        curve={name: values.tolist() for name, values in curve.items()},
        trained=None if table is None else float(table.query(config).valid_acc),
        interval=None if table is None else _interval(bench, config),
        halving=halving,
        in_full=in_full,
        gains=tuple(
            each.rungs[-1].valid_acc[0] - full[-1][1]
            for each, full in (_search(bench, number) for number in range(N_DRAWS))
            if full
        ),
        elapsed_s=elapsed_s,
    )


def _interval(bench: Queryable, config: Config) -> tuple[float, float] | None:
    """Return the 90 % predictive interval of one training at the last epoch, or None without noise model or refits."""
    try:
        found = bench.predict(config, metrics=("valid_acc",)).quantile((0.05, 0.95))["valid_acc"]
    except MissingData:
        return None
    return float(found[0]), float(found[1])


def successive_halving(bench: Queryable, configs: Sequence[Config]) -> Halving:
    """Train every config a little, keep the best third, train it three times as long, up to the last epoch.

    A config continues where it stopped, so only its new epochs cost time.
    """
    remaining, rungs = tuple(range(len(configs))), []
    clock, best, best_so_far, paid_s = 0.0, -math.inf, [], [0.0] * len(configs)
    for power in (2, 1, 0):
        epoch = max(1, round(bench.max_epoch / ETA**power))
        answers = bench.query_many([configs[i] for i in remaining], at=epoch, metrics=("valid_acc", "runtime"))
        accuracies = dict(zip(remaining, answers["valid_acc"].tolist(), strict=True))
        for i, runtime in zip(remaining, answers["runtime"].tolist(), strict=True):
            clock += max(runtime - paid_s[i], 0.0)
            paid_s[i], best = runtime, max(best, accuracies[i])
            best_so_far.append((clock, best))
        ranked = tuple(sorted(remaining, key=lambda i: -accuracies[i]))
        rungs.append(Rung(epoch=epoch, configs=ranked, valid_acc=tuple(accuracies[i] for i in ranked), spent_s=clock))
        remaining = ranked[: max(1, len(ranked) // ETA)]
    return Halving(configs=tuple(configs), rungs=tuple(rungs), best_so_far=tuple(best_so_far))


def one_by_one(bench: Queryable, configs: Sequence[Config], budget_s: float) -> Steps:
    """Train configs in full, one after another, until the simulated time is spent."""
    answers = bench.query_many(configs, metrics=("valid_acc", "runtime"))
    ends, best = np.cumsum(answers["runtime"]), np.maximum.accumulate(answers["valid_acc"])
    return tuple((end, accuracy) for end, accuracy in zip(ends.tolist(), best.tolist(), strict=True) if end <= budget_s)


def _search(bench: Queryable, seed: int) -> tuple[Halving, Steps]:
    """Return successive halving among random configs, and full trainings of the same configs in the same time."""
    halving = successive_halving(bench, bench.space.sample(N_CONFIGS, seed=seed))
    return halving, one_by_one(bench, halving.configs, halving.rungs[-1].spent_s)


def write_picture(shown: Demo, bench: Queryable, folder: Path) -> Path:
    """Write the search of a demo as an SVG into an existing folder, and return its path."""
    halving = shown.halving
    assert halving is not None, "a picture shows a search"
    last = {i: rung.epoch for rung in halving.rungs for i in rung.configs}
    epochs = list(range(1, bench.max_epoch + 1))
    curves = bench.query_many(halving.configs, at=epochs, metrics=("valid_acc",))["valid_acc"].tolist()
    best = halving.rungs[-1].configs[0]
    lines = [
        Line(
            points=list(zip(epochs[: last[i]], curve, strict=False)),
            style="first" if i == best else "faint",
            label="the best" if i == best else "",
        )
        for i, curve in enumerate(curves)
    ]
    size, unit = time_unit(halving.rungs[-1].spent_s)
    search = [Line(points=_stairs(halving.best_so_far, size), style="first", label="successive halving")]
    if shown.in_full:
        search.append(Line(points=_stairs(shown.in_full, size), style="second", label="each in full"))
    panels = (
        Panel(
            title=f"{len(lines)} configs, the best third continues",
            x_label="epoch",
            y_label="valid_acc (%)",
            lines=lines,
        ),
        Panel(title="Best network so far", x_label=f"simulated {unit}", y_label="valid_acc (%)", lines=search),
    )
    path = folder / f"jahs-demo-{shown.task.name}-seed-{shown.seed}.svg"
    chart = draw_chart(f"A search on {shown.task.title}, answered by a surrogate", panels)
    with write_beside(path) as beside:
        beside.write_text(chart, encoding="utf-8")
    return path


def time_unit(seconds: float) -> tuple[int, str]:
    """Return a readable unit for a time, as seconds and a word."""
    units = ((3600, "hours"), (60, "minutes"))
    return next(((size, word) for size, word in units if seconds >= 2 * size), (1, "seconds"))


def _stairs(steps: Steps, size: float) -> list[tuple[float, float]]:
    """Return the points of a curve that keeps its value until the next step, in units of `size` seconds."""
    points = [(time_s / size, accuracy) for time_s, accuracy in steps]
    corners = [(after[0], before[1]) for before, after in pairwise(points)]
    return [point for pair in zip(points, [*corners, points[-1]], strict=True) for point in pair]
