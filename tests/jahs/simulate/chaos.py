"""An optimiser that does everything an optimiser may do, at random: what the laws of the clock are tested with."""

from __future__ import annotations

import numpy as np

from jahs.simulate import Proposal


class Chaos:
    """Proposes new and old configs at random fidelities, with and without reports, stops some, and sometimes rests."""

    name = "chaos"

    def __init__(self, view, *, seed, n_ahead=1, rests=0.2, has_seeds=True):
        self.rng = np.random.default_rng(seed)
        self.view = view
        self.n_ahead = n_ahead
        self.rests = rests
        self.has_seeds = has_seeds
        self.settings = {"seed": seed}
        self.configs = view.sample(6, seed=seed)
        self.asked = 0
        self.told = []
        self.reported = []

    def ask(self, n):
        found = []
        for _ in range(n):
            if found and self.rests and self.rng.random() < self.rests:
                break
            epoch = int(self.rng.integers(1, self.view.max_epoch + 1))
            reports = tuple(e for e in range(1, epoch) if self.rng.random() < 0.2)
            config = self.configs[self.rng.integers(len(self.configs))]
            seed = int(self.rng.integers(2)) if self.has_seeds and self.rng.random() < 0.3 else None
            found.append(Proposal(config=config, at=epoch, seed=seed, reports=reports, tag=self.asked + len(found)))
        self.asked += len(found)
        return found

    def tell(self, trial):
        self.told.append(trial)

    def should_stop(self, trial):
        self.reported.append(trial)
        return self.rng.random() < 0.3
