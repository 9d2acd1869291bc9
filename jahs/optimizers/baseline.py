"""The base class of every optimiser: random numbers, losses, and the proposals that wait for their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.simulate import Proposal, Trial, Visible
from jahs.simulate.trial import AskedFidelity
from jahs.spaces.configs import Config
from jahs.spaces.parameters import is_integer, show
from jahs.tasks.objectives import read_objectives

Losses: TypeAlias = npt.NDArray[np.float64]
"""One number for each objective; less is better."""

S = TypeVar("S")

_SMALLEST_BLOCK: Final = 32
_LARGEST_BLOCK: Final = 4096


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a proposal.

    Attributes:
        config: as it was trained.
        losses: infinite where the trial failed.
        memo: the object that `propose` returned with the config.
    """

    config: Config
    losses: Losses
    memo: Any  # Any: each optimiser has its own

    @property
    def is_known(self) -> bool:
        """Whether it was trained to the end."""
        return bool(np.isfinite(self.losses).all())


class Baseline(ABC, Generic[S]):
    """An optimiser that proposes one config at a time. A subclass defines `propose` and `learn`.

    Args:
        view: the part of the benchmark that an optimiser may see.
        seed: seeds every choice of the optimiser.
        objectives: metrics to optimise; a loss is a metric turned so that less is better (`jahs.tasks.objectives`).
        settings: a frozen dataclass.
    """

    name: str
    n_ahead: int = 1

    def __init__(self, view: Visible, *, seed: int, objectives: Sequence[str] = ("valid_acc",), settings: S) -> None:
        self.view: Final = view
        self._settings: Final = settings
        self.settings: Final[Mapping[str, object]] = {
            "seed": int(seed),
            "objectives": tuple(objectives),
            **asdict(settings),  # type: ignore[call-overload]  # any dataclass
        }
        self.rng: Final = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        self._objectives = read_objectives(objectives, known=view.metrics)
        self._random = _RandomConfigs(view, seed)
        self._open: dict[int, object] = {}  # memos of open proposals
        self._n_proposed = 0
        self.prepare()

    def prepare(self) -> None:
        """Set up the state of the search. Called once, after view, settings and random numbers are set."""

    @abstractmethod
    def propose(self) -> tuple[Config, AskedFidelity, object] | None:
        """Return the next config, its fidelity and a memo for `learn`; None: wait for results."""

    @abstractmethod
    def learn(self, result: TrialResult) -> None:
        """Learn the result of a proposal."""

    def random_config(self) -> Config:
        """Return the next config of a random stream that only this method reads."""
        return next(self._random)

    def ask(self, n: int) -> list[Proposal]:
        """Return up to `n` proposals.

        Raises:
            InvalidArgument: `n` is not an integer >= 0.
        """
        if not is_integer(n) or n < 0:
            raise InvalidArgument(f"n={show(n)} must be an integer >= 0")
        proposals: list[Proposal] = []
        while len(proposals) < n and (proposed := self.propose()) is not None:
            config, at, memo = proposed
            self._open[self._n_proposed] = memo
            proposals.append(Proposal(config=config, at=at, tag=self._n_proposed))
            self._n_proposed += 1
        return proposals

    def tell(self, trial: Trial) -> None:
        """Learn the result of a trial that this optimiser proposed.

        Raises:
            InvalidArgument: it is not a trial, was not proposed by this optimiser, or was told before.
        """
        if not isinstance(trial, Trial):
            raise InvalidArgument(f"{show(trial)} must be a jahs.Trial, as a simulation returns it")
        if type(trial.tag) is not int or trial.tag not in self._open:  # a foreign tag may not be hashable
            raise InvalidArgument(
                f"{self.name} does not wait for the result of trial {trial.trial}; tell each proposed trial once"
            )
        self.learn(TrialResult(trial.config, self._losses(trial), self._open.pop(trial.tag)))

    def _losses(self, trial: Trial) -> Losses:
        values = trial.metrics if trial.status == "finished" else {}
        pairs = [(each, values.get(each.metric.name)) for each in self._objectives]
        return np.array([np.inf if value is None else float(each.minimised(value)) for each, value in pairs])


class _RandomConfigs:
    """Random configs, made in growing blocks, so that few are cheap and many fast; unlike a generator, picklable."""

    def __init__(self, view: Visible, seed: int) -> None:
        self._view, self._seed = view, seed
        self._n_drawn = self._n_blocks = 0  # configs of the block, and blocks
        self._block: list[Config] = []

    def __next__(self) -> Config:
        if self._n_drawn == len(self._block):
            child = np.random.SeedSequence([self._seed, 1, self._n_blocks]).generate_state(1, np.uint64)
            n = min(_SMALLEST_BLOCK << self._n_blocks, _LARGEST_BLOCK)
            self._block = self._view.sample(n, seed=int(child[0] >> np.uint64(1)))
            self._n_drawn, self._n_blocks = 0, self._n_blocks + 1
        self._n_drawn += 1
        return self._block[self._n_drawn - 1]
