"""Random search: every config is drawn independently and trained in full (Bergstra and Bengio, 2012)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.optimizers.baseline import Baseline, Result
from jahs.simulate import Visible
from jahs.spaces.configs import Config

__all__ = ["RandomSearch", "RandomSearchSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSearchSettings:
    """Random search has no settings."""


class RandomSearch(Baseline):
    """Draws from the view's space; learns nothing."""

    name = "random_search"
    n_ahead = 4096

    def __init__(
        self,
        view: Visible,
        *,
        seed: int,
        objectives: Sequence[str] = ("valid_acc",),
        settings: RandomSearchSettings | None = None,
    ) -> None:
        super().__init__(view, seed=seed, objectives=objectives, settings=settings or RandomSearchSettings())

    def propose(self) -> tuple[Config, None, None]:
        """Draw a config."""
        return self.random_config(), None, None

    def learn(self, result: Result) -> None:
        """Learn nothing."""
