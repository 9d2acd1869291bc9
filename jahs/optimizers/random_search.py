"""Random search: every config is drawn independently and trained in full (Bergstra and Bengio, 2012)."""

from __future__ import annotations

from dataclasses import dataclass

from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.settings import OptimizerSettings
from jahs.spaces.configs import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSearchSettings(OptimizerSettings):
    """Random search has no settings."""


class RandomSearch(Baseline[RandomSearchSettings]):
    """Draws random configs."""

    name = "random_search"
    n_ahead = 4096

    def propose(self) -> tuple[Config, None, None]:
        """Draw a config."""
        return self.random_config(), None, None

    def learn(self, result: TrialResult) -> None:
        """Learn nothing."""
