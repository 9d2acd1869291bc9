"""BANANAS (White, Neiswanger and Savani, 2021): an ensemble of networks predicts losses from paths of operations.

Own code from the paper, with two changes: the networks also read the other searched keys, and fit standardised
losses by absolute error.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

import numpy as np
import numpy.typing as npt

from jahs.adapters.importing import import_tool
from jahs.adapters.values import shown_parameters
from jahs.optimizers.baseline import Baseline, TrialResult
from jahs.optimizers.moves import log_share, mutated, values_of
from jahs.optimizers.settings import OptimizerSettings, Within
from jahs.schema import OPS
from jahs.spaces.cell.operations import PASSING
from jahs.spaces.cell.paths import PATH_EDGES
from jahs.spaces.configs import Config
from jahs.spaces.space import Space

_Floats = npt.NDArray[np.float64]
_LENGTHS: Final = sorted({len(edges) for edges in PATH_EDGES})
_PATHS: Final = tuple(path for length in _LENGTHS for path in itertools.product(PASSING, repeat=length))
"""Every sequence of operations that a path may have, in the order of the encoding."""
_PER_BATCH: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class BananasSettings(OptimizerSettings):
    """Settings of BANANAS; the defaults are the paper's."""

    n_initial: Annotated[int, Within(2)] = 10  # random configs at the start
    n_parents: Annotated[int, Within(1)] = 10  # number of best configs, whose mutations are the candidates
    n_candidates: Annotated[int, Within(1)] = 100  # mutations that are ranked before each batch
    n_chosen: Annotated[int, Within(1)] = 10  # configs in a batch
    # n_networks, n_layers, width: the ensemble.
    n_networks: Annotated[int, Within(2)] = 5
    n_layers: Annotated[int, Within(1)] = 10
    width: Annotated[int, Within(1)] = 20
    n_epochs: Annotated[int, Within(1)] = 200  # passes over the results in each fit
    learning_rate: Annotated[float, Within(0, excluded=0)] = 0.01  # learning rate of Adam
    # Largest change of a float by a mutation, in powers of ten.
    decades: Annotated[float, Within(0, 3, excluded=0)] = 0.5


class Bananas(Baseline[BananasSettings]):
    """Batches of mutations, chosen by independent Thompson sampling. One objective, full evaluations."""

    name = "bananas"

    def prepare(self) -> None:
        """Set up an empty search."""
        self._torch = import_tool("torch", needs="torch==2.13.0")
        self._chance = self._torch.Generator().manual_seed(int(self.rng.integers(2**62)))
        self._keys = list(shown_parameters(self.view.space))
        self._n_random = self._settings.n_initial
        self._results: list[tuple[float, Config]] = []
        self._seen: set[tuple[object, ...]] = set()
        self._queue: list[Config] = []

    def propose(self) -> tuple[Config, None, None]:
        """Return a random config at first, then the next one of a batch."""
        if self._n_random or len(self._results) < 2:
            self._n_random = max(self._n_random - 1, 0)
            config = self.random_config()
        else:
            self._queue = self._queue or self._batch()
            config = self._queue.pop()
        self._seen.add(values_of(config))
        return config, None, None

    def learn(self, result: TrialResult) -> None:
        """Keep a result for the next fit."""
        if result.is_known:
            self._results.append((float(result.losses[0]), result.config))

    def _batch(self) -> list[Config]:
        """Fit the ensemble and return the most promising candidates, the best last."""
        candidates = self._candidates()
        evaluated = encoded(self.view.space, [config for _, config in self._results], self._keys)
        losses = np.array([loss for loss, _ in self._results])
        predicted = self._predicted(evaluated, losses, encoded(self.view.space, candidates, self._keys))
        drawn = self.rng.normal(predicted.mean(axis=0), predicted.std(axis=0))
        return [candidates[i] for i in np.argsort(drawn, kind="stable")[: self._settings.n_chosen].tolist()][::-1]

    def _candidates(self) -> list[Config]:
        """Return mutations of the best configs; if possible, new ones replace those that were already proposed."""
        parents = [config for _, config in sorted(self._results, key=lambda pair: pair[0])[: self._settings.n_parents]]
        children: dict[tuple[object, ...], Config] = {}
        for _ in range(10 * self._settings.n_candidates):
            parent = parents[int(self.rng.integers(len(parents)))]
            key = self._keys[int(self.rng.integers(len(self._keys)))]
            child = mutated(self.view.space, parent, self.rng, keys=[key], decades=self._settings.decades)
            if values_of(child) not in self._seen:
                children.setdefault(values_of(child), child)
            if len(children) == self._settings.n_candidates:
                break
        return list(children.values()) or [self.random_config()]

    def _predicted(self, evaluated: _Floats, losses: _Floats, candidates: _Floats) -> _Floats:
        """Fit every network and return their predictions, (n_networks, n asked), in standard deviations."""
        torch, settings = self._torch, self._settings
        sizes = [evaluated.shape[1], *[settings.width] * settings.n_layers, 1]
        weights = [
            (torch.rand(settings.n_networks, n_in, n_out, generator=self._chance) * 2 - 1) * (6 / n_in) ** 0.5
            for n_in, n_out in itertools.pairwise(sizes)
        ]
        biases = [torch.zeros(settings.n_networks, 1, n_out) for n_out in sizes[1:]]
        learned = [tensor.requires_grad_() for tensor in (*weights, *biases)]
        adam = torch.optim.Adam(learned, lr=settings.learning_rate, foreach=True)
        spread = float(losses.std()) or 1.0
        x = torch.from_numpy(evaluated).float()
        y = torch.from_numpy((losses - losses.mean()) / spread).float()

        def forward(rows: Any) -> Any:  # Any: tensors, (n_networks, n, n_features) and (n_networks, n)
            for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
                rows = torch.baddbmm(bias, torch.relu(rows) if i else rows, weight)
            return rows[..., 0]

        for _ in range(settings.n_epochs):
            order = torch.rand(settings.n_networks, len(y), generator=self._chance).argsort(dim=1)
            for part in order.split(_PER_BATCH, dim=1):
                adam.zero_grad()
                (forward(x[part]) - y[part]).abs().mean(dim=1).sum().backward()
                adam.step()
        with torch.no_grad():
            inputs = torch.from_numpy(candidates).float().expand(settings.n_networks, -1, -1)
            return cast("_Floats", forward(inputs).double().numpy())


def encoded(space: Space, configs: Sequence[Config], keys: Sequence[str]) -> _Floats:
    """Return configs as rows: the path encoding of the cell, then other keys, floats in [0, 1] and choices one-hot.

    Args:
        space: the searched keys.
        keys: searched keys with more than one value.
    """
    others = [space.parameters[key] for key in keys if key not in OPS]
    rows = []
    for config in configs:
        values = cast("dict[str, Any]", config)
        paths = {tuple(values[OPS[edge]] for edge in edges) for edges in PATH_EDGES}
        row = [float(path in paths) for path in _PATHS]
        for parameter in others:
            value = values[parameter.name]
            if parameter.kind == "float":
                row.append(log_share(parameter, value))
            else:
                row += [float(choice == value) for choice in parameter.choices]
        rows.append(row)
    return np.array(rows)
