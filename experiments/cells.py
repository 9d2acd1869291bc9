"""One cell: open the benchmark and the view, let the optimiser spend the budget, keep the log if it is whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jahs
from experiments.benches import open_benchmark
from experiments.optimizers import make
from experiments.studies.study import FULL_SIZES, Arm, Cell, ViewChoice
from experiments.worlds import open_world, worlds_path
from jahs.errors import JahsError
from jahs.files.atomic import write_beside
from jahs.queries.queryable import Queryable
from jahs.queries.views import View
from jahs.simulate import Simulation
from jahs.spaces.space import GROUPS

__all__ = ["Job", "Outcome", "open_view", "run_cell"]

_FIXED_PART: Final = 2**32
"""Seeds of random fixed parts begin here, so that they are none of the optimisers' own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a process needs to run one cell.

    Attributes:
        cell, arm: what to run.
        out: the study's folder.
        release: folder of the release; None: where `jahs` finds it.
        budget_s: simulated seconds.
        workers: simulated workers.
        is_noisy: answer with a draw of training noise for the cell's seed, not with the mean.
        facts: more entries for the log's header.
    """

    cell: Cell
    arm: Arm
    out: Path
    release: Path | None
    budget_s: float
    workers: int
    is_noisy: bool
    facts: Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a cell: a line for people, and what went wrong, if anything."""

    cell: Cell
    line: str
    fault: str | None = None


def open_view(bench: Queryable, choice: ViewChoice, *, seed: int) -> View:
    """Return the view of an arm; a random fixed part is that of the seed, and the same for every optimiser."""
    sizes = {name: value for name, value in FULL_SIZES.items() if name not in choice.fidelities}
    if choice.search in {"all", "sizes"}:
        return View(bench, fidelities=choice.fidelities, fixed=sizes if choice.search == "all" else {})
    space, other = jahs.space(), GROUPS["hyperparameters" if choice.search == "nas" else "architecture"]
    part = space.sample(seed=_FIXED_PART + seed) if choice.fixed_part == "random" else space.default()
    fixed = {**sizes, **{key: part[key] for key in other}}  # type: ignore[literal-required]  # keys of Config
    return View(bench, fidelities=choice.fidelities, fixed=fixed, search=choice.search)


def run_cell(job: Job) -> Outcome:
    """Run a cell whose log is not there yet. What goes wrong is returned: other cells can still be run."""
    started = time.process_time()
    try:
        n_trials = _simulate(job)
    except (JahsError, OSError) as err:  # a full disk may show only where the log is renamed
        return Outcome(cell=job.cell, line=f"{job.cell.path} failed", fault=str(err))
    seconds = time.process_time() - started
    return Outcome(cell=job.cell, line=f"{job.cell.arm} seed={job.cell.seed} trials={n_trials} {seconds:.2f}s")


def _open(job: Job) -> Queryable:
    """Return what answers in the world of the job's arm."""
    if job.arm.world == "release":
        return open_benchmark(job.cell.task, job.release)
    return open_world(worlds_path(job.out, job.cell.task), job.cell.task, job.arm.world)


def _simulate(job: Job) -> int:
    """Write a cell's log; return how many trials it has."""
    arm = job.arm
    view = open_view(_open(job), arm.view, seed=job.cell.seed)
    optimizer = make(arm.optimizer, view, seed=job.cell.seed, objectives=arm.objectives, **dict(arm.settings))
    target = job.out / job.cell.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(target) as beside:
        simulation = Simulation(
            view,
            workers=job.workers,
            budget=job.budget_s,
            seed=job.cell.seed,
            evaluation_seed=job.cell.seed if job.is_noisy else None,
            log=beside,
            facts={**job.facts, "arm": job.arm.name},
        )
        return sum(1 for _ in simulation.stream(optimizer))
