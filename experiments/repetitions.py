"""Run one repetition: an optimiser spends the budget on a view, and its trials are logged."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from experiments.folder import StudyFolder
from experiments.imported import open_for_study
from experiments.optimizers import make
from experiments.study import Repetition
from experiments.views import open_view
from experiments.worlds import WORLD_NAMES, World, open_world, worlds_path
from jahs.errors import JahsError
from jahs.files.atomic import write_beside
from jahs.optimizers import expert_prior
from jahs.optimizers.registry import Optimizer
from jahs.queries.queryable import Queryable
from jahs.simulate import Proposal, Simulation, Trial
from jahs.spaces.configs import config_id, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionJob:
    """Everything a process needs to run one repetition; without `release`, `jahs` finds it."""

    folder: StudyFolder
    repetition: Repetition
    release: Path | None


def run_repetition(job: RepetitionJob) -> tuple[str, str | None]:
    """Run an unfinished repetition; return a line for the log, and the fault, if any, so that others still run."""
    path, started = job.repetition.path, time.process_time()
    try:
        n_trials = _simulate(job)
    except (JahsError, OSError) as err:  # a full disk may be noticed only at the rename
        return f"{path} failed", str(err)
    seconds = time.process_time() - started
    return f"{path.removesuffix('.jsonl')} trials={n_trials} {seconds:.2f}s", None


def _simulate(job: RepetitionJob) -> int:
    """Write a repetition's log; return its number of trials."""
    folder, study, repetition = job.folder, job.folder.study, job.repetition
    arm, task, seed = study.arm(repetition.arm), repetition.task, repetition.seed
    world = open_world(worlds_path(folder.path, task), task, arm.world) if arm.world in WORLD_NAMES else None
    bench = open_for_study(task, job.release, refit=repetition.refit, model=arm.model) if world is None else world
    view = open_view(cast("Queryable", bench), arm.view, seed=seed)  # simulations use `query_many` alone
    settings = dict(arm.settings)
    if isinstance(quality := settings.get("prior"), str):  # the release's own, also on its refits
        release_view = open_view(open_for_study(task, job.release), arm.view, seed=seed)
        settings["prior"] = expert_prior(release_view, quality, objective=arm.objectives[0])
    made = make(arm.optimizer, view, seed=seed, objectives=arm.objectives, **settings)
    optimizer = made if world is None else FromPool(made, world)
    target, facts = folder.path / repetition.path, folder.tasks[task]
    target.parent.mkdir(parents=True, exist_ok=True)
    header = {"study": study.name, "arm_digest": study.digest_of(arm.name), "arm": arm.name}
    if world is not None:  # a benchmark names its release itself
        header["release"] = facts.release
    with write_beside(target) as beside:
        simulation = Simulation(
            view,
            workers=arm.workers or study.workers,
            budget=facts.budget_s / (arm.workers or 1),
            seed=seed,
            evaluation_seed=seed if study.noise == "seeded" else None,
            log=beside,
            facts=header,
        )
        return sum(1 for _ in simulation.stream(optimizer))


class FromPool:
    """Lets an optimiser propose recorded configs only, each once at every epoch.

    A proposal stays if it is recorded and was not yet trained to its epoch, such as a promoted one. Any other proposal
    is replaced by the nearest recorded config that was not, and the result is reported for that config.
    """

    def __init__(self, optimizer: Optimizer, world: World) -> None:
        self.name, self.settings = optimizer.name, optimizer.settings
        self._optimizer, self._world = optimizer, world
        self._known = {config_id(config) for config in world.configs}
        self._trained: dict[int, set[int]] = {}

    def ask(self, n: int) -> list[Proposal]:
        """Return the optimiser's proposals, as recorded configs."""
        proposals = []
        for item in self._optimizer.ask(n):
            proposal = item if isinstance(item, Proposal) else Proposal(config=item)
            trained = self._trained.setdefault(int(self._world.fidelity(proposal.at)["epoch"]), set())
            config = validate(proposal.config)
            if config_id(config) in trained or config_id(config) not in self._known:
                config = self._world.nearest(config, without=trained)
            trained.add(config_id(config))
            proposals.append(replace(proposal, config=config))
        return proposals

    def tell(self, trial: Trial) -> None:
        """Tell the result."""
        self._optimizer.tell(trial)
