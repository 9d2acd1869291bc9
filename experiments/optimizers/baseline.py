"""What all own optimisers share: random numbers, losses, and remembering what was asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.simulate import Proposal, Trial, Visible
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config
from jahs.tasks.objectives import read_objectives

__all__ = ["Baseline", "Losses", "Result"]

Losses: TypeAlias = npt.NDArray[np.float64]
"""One number for each objective; less is better."""

_LARGEST_BLOCK: Final = 4096


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a proposal.

    Attributes:
        config: as it was trained.
        losses: infinite where the trial failed.
        memo: what `propose` returned with the config.
    """

    config: Config
    losses: Losses
    memo: Any  # Any: each optimiser has its own

    @property
    def is_known(self) -> bool:
        """Whether it was trained to the end."""
        return bool(np.isfinite(self.losses).all())


class Baseline(ABC):
    """An optimiser that proposes one config at a time. A subclass says what is next and what it learns.

    Args:
        view: what the optimiser may know of the benchmark.
        seed: of every choice that the optimiser makes.
        objectives: metrics to optimise; a loss is a metric turned so that less is better (`jahs.tasks.objectives`).
        settings: a frozen dataclass.
    """

    name: str
    n_ahead: int = 1

    def __init__(self, view: Visible, *, seed: int, objectives: Sequence[str], settings: Any) -> None:
        # Any: each optimiser has a dataclass of its own.
        self.view: Final = view
        self.settings: Final[Mapping[str, object]] = {
            "seed": int(seed),
            "objectives": tuple(objectives),
            **asdict(settings),
        }
        self.rng: Final = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        self._objectives = read_objectives(objectives, known=view.metrics)
        self._random = _random_configs(view, seed)
        self._open: dict[int, object] = {}
        self._n_asked = 0

    @abstractmethod
    def propose(self) -> tuple[Config, AskedFidelity, object] | None:
        """Return the next config, its fidelity, and what `learn` needs to know of it; None: wait for results."""

    @abstractmethod
    def learn(self, result: Result) -> None:
        """Learn what became of something proposed."""

    def random_config(self) -> Config:
        """Return the next config of a random stream that nothing else reads."""
        return next(self._random)

    def ask(self, n: int) -> list[Proposal]:
        """Return up to `n` proposals."""
        found: list[Proposal] = []
        while len(found) < n and (proposed := self.propose()) is not None:
            config, at, memo = proposed
            self._open[self._n_asked] = memo
            found.append(Proposal(config=config, at=at, tag=self._n_asked))
            self._n_asked += 1
        return found

    def tell(self, trial: Trial) -> None:
        """Learn of a trial that this optimiser proposed.

        Raises:
            InvalidArgument: it did not propose this trial, or has been told of it.
        """
        if trial.tag not in self._open:
            raise InvalidArgument(f"{self.name} was told of trial {trial.trial}, which it does not wait for")
        self.learn(Result(trial.config, self._losses(trial), self._open.pop(trial.tag)))

    def _losses(self, trial: Trial) -> Losses:
        values = trial.metrics if trial.status == "finished" else {}
        return np.array(
            [
                float(objective.minimised(values[name])) if (name := objective.metric.name) in values else np.inf
                for objective in self._objectives
            ]
        )


def _random_configs(view: Visible, seed: int) -> Iterator[Config]:
    """Yield random configs, made in blocks that grow, so that few are cheap and many are fast."""
    n, block = 32, 0
    while True:
        child = np.random.SeedSequence([seed, 1, block]).generate_state(1, np.uint64)
        yield from view.sample(n, seed=int(child[0] >> np.uint64(1)))
        n, block = min(2 * n, _LARGEST_BLOCK), block + 1
