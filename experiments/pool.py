"""Optimisers that propose recorded configs only, so that recorded trainings answer exactly what they ask."""

from __future__ import annotations

from dataclasses import replace

from experiments.worlds import World
from jahs.optimizers.registry import Optimizer
from jahs.simulate import Proposal, Trial
from jahs.spaces.configs import config_id, validate


class FromPool:
    """Lets an optimiser propose recorded configs only, each once at every epoch.

    A proposal that is recorded and was not trained to its epoch yet stays, as a promoted one does. Any other becomes
    the nearest config that was not, and its result is told for that config.
    """

    def __init__(self, optimizer: Optimizer, world: World) -> None:
        self.name, self.settings = optimizer.name, optimizer.settings
        self._optimizer, self._world = optimizer, world
        self._known = {config_id(config) for config in world.configs}
        self._trained: dict[int, set[int]] = {}

    def ask(self, n: int) -> list[Proposal]:
        """Return what the optimiser proposes, as recorded configs."""
        found = []
        for each in self._optimizer.ask(n):
            proposal = each if isinstance(each, Proposal) else Proposal(config=each)
            trained = self._trained.setdefault(int(self._world.fidelity(proposal.at)["epoch"]), set())
            config = validate(proposal.config)
            if config_id(config) in trained or config_id(config) not in self._known:
                config = self._world.nearest(config, without=trained)
            trained.add(config_id(config))
            found.append(replace(proposal, config=config))
        return found

    def tell(self, trial: Trial) -> None:
        """Tell the result."""
        self._optimizer.tell(trial)
