"""Answer queries by training: `jahs.Benchmark(kind="live")` finds this module in a checkout."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import NotRecorded
from jahs.models.cost import cost
from jahs.queries.oracles.oracle import Codes, Kind, Numbers, Oracle
from jahs.release.models import Costs
from jahs.spaces.columns import columns_of_codes, rows
from jahs.spaces.configs import Config, config_id
from jahs.spaces.seeds import Seeds
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import METRICS, Metric
from pipeline.data import ImageSet, load_images
from pipeline.protocol import EPOCH_FIELDS, check_batches
from pipeline.train import train

_EXACT: Final = ("n_params", "n_macs")
_NO_SEED: Final = 0


_Trained: TypeAlias = tuple[NDArray[np.float64], bool]
"""Columns `EPOCH_FIELDS` by epoch, without the epoch of a divergence; and whether the training diverged."""


class LiveOracle(Oracle):
    """Trains a config when it is queried, on one core of the CPU.

    Trainings are kept in memory by config and seed, with a checkpoint in a temporary folder: a query of a later epoch
    continues from there, and one of an earlier epoch is answered at once. A query without a seed is answered with seed
    0, since one training is not a mean. Memory and folder live as long as the object.
    """

    kind: Kind = "live"
    costs: Costs = "exact"

    def __init__(self, task: Task) -> None:
        """Make an oracle; images are read when they are first needed.

        Raises:
            InvalidArgument: the task's batches cannot be trained on.
        """
        check_batches(task)
        self.task = task
        self.max_epoch = task.max_epoch
        self.metrics: Mapping[str, Metric] = MappingProxyType(
            {name: METRICS[name] for name in METRICS if name in EPOCH_FIELDS or name in _EXACT}
        )
        self._images: dict[float, ImageSet] = {}
        self._runs: dict[tuple[int, int], _Trained] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="jahs-live-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, seed: Seeds, metrics: Sequence[str]
    ) -> Numbers:
        """Return the measurements of trainings, done one after another."""
        seeds = seed.tolist() if isinstance(seed, np.ndarray) else [seed] * len(codes)
        queries = zip(codes.tolist(), epochs.tolist(), seeds, strict=True)
        answers = [self.trajectory(code, np.array([epoch]), seed=s, metrics=metrics) for code, epoch, s in queries]
        return {name: np.array([answer[name].item() for answer in answers], np.float64) for name in metrics}

    def trajectory(
        self, codes: Codes, epochs: NDArray[np.int64], *, seed: int | None, metrics: Sequence[str]
    ) -> Numbers:
        """Return the measurements of one training after each of these epochs.

        Raises:
            NotRecorded: the training diverged before.
            MissingData: the task's images were not found.
        """
        (config,) = rows(columns_of_codes(np.array([codes])))
        if not len(epochs):
            return {name: np.empty(0) for name in metrics}
        exact = cost(config, self.task)
        if all(name in exact for name in metrics):  # they need no training
            return {name: np.full(len(epochs), float(exact[name])) for name in metrics}
        seed = _NO_SEED if seed is None else seed
        measured, _ = self._trained(config, seed, int(epochs.max()))
        if epochs.max() > len(measured):
            raise NotRecorded(
                f"config {config_id(config):016x} with seed {seed} diverged in epoch {len(measured) + 1}; "
                f"{len(measured)} epochs were measured before"
            )
        columns = dict(zip(EPOCH_FIELDS, measured[epochs - 1].T, strict=True))
        return {n: np.full(len(epochs), float(exact[n])) if n in exact else columns[n].copy() for n in metrics}

    def _trained(self, config: Config, seed: int, last: int) -> _Trained:
        """Return the measurements of a training, at least up to epoch `last` unless it diverged before."""
        key = config_id(config), seed
        epochs, is_diverged = self._runs.get(key, (np.empty(0), False))
        if len(epochs) < last and not is_diverged:
            checkpoint = self._folder / f"{key[0]:016x}-{seed}.pt"
            if (resolution := config["Resolution"]) not in self._images:
                self._images |= load_images(self.task, resolutions=(resolution,))
            images = self._images[resolution]
            run = train(config, self.task, images, seed=seed, epochs=last, checkpoint=checkpoint)
            is_diverged = run.status == "diverged"
            # The last row of a diverged run is the epoch in which it diverged, so it measures no trained network.
            self._runs[key] = run.epochs[: len(run.epochs) - is_diverged], is_diverged
        return self._runs[key]
