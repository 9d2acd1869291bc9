"""Answers of every refit of a release at once; `Benchmark(refit=k)` queries a single one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from jahs.errors import UnknownName
from jahs.models.bounds import BoundedTransform, invert_row
from jahs.models.features import FeatureBuilder
from jahs.models.forest import EngineKind, open_engine
from jahs.release.reading import Release
from jahs.spaces.encoding import encode_codes

_Choice: TypeAlias = tuple[tuple[str, ...], tuple[int, ...], list[BoundedTransform | None]]
"""The metrics that a pack answers; for each metric and refit the place of its forest, and its transform."""


class RefitsOracle:
    """Answers from all refits of a release."""

    def __init__(self, release: Release, *, engine: EngineKind) -> None:
        models, refits = release.models, release.refits
        self.metrics, self.n_refits = refits.metrics, refits.n_refits
        self._packs = []
        for pack, forests in zip(refits.packs, release.refit_forests, strict=True):
            rows = FeatureBuilder(models.packs[pack.pack].features, release.task)
            self._packs.append((pack.metrics, rows, open_engine(forests, engine)))
        self._transforms: Mapping[str, BoundedTransform | None] = {
            name: models.metrics[name].transform for name in self.metrics
        }
        self._choices: dict[tuple[tuple[str, ...], tuple[str, ...]], _Choice] = {}

    def check(self, metrics: Sequence[str]) -> None:
        """Refuse metrics without refits; UnknownName lists those that have some."""
        if missing := [name for name in metrics if name not in self.metrics]:
            raise UnknownName(f"{', '.join(missing)} has no refits; metrics with refits are {', '.join(self.metrics)}")

    def query_many(
        self, codes: NDArray[np.float64], epochs: NDArray[np.int64], *, metrics: tuple[str, ...]
    ) -> NDArray[np.float64]:
        """Return the answers of all refits for many configs, (n, 14), each at its epoch: (n_metrics, n, n_refits)."""
        by_metric: dict[str, NDArray[np.float64]] = {}
        for names, rows, engine in self._packs:
            wanted, places, transforms = self._choice(metrics, names)
            if not wanted:
                continue
            if len(codes) == 1:  # without arrays, which is many times faster
                row, epoch = codes[0].tolist(), epochs.item()
                answers = engine.answer_row(rows.pack(row, epoch, rows.place(row)), forests=places)
                values = np.array(invert_row(transforms, answers)).reshape(len(wanted), 1, self.n_refits)
                if wanted == metrics:
                    return values
                by_metric |= zip(wanted, values, strict=True)
                continue
            predictions = engine.predict(rows.build(encode_codes(codes, epochs)), forests=places)
            for i, name in enumerate(wanted):
                outputs = predictions[:, i * self.n_refits : (i + 1) * self.n_refits]
                transform = self._transforms[name]
                by_metric[name] = outputs.astype(np.float64) if transform is None else transform.inverse(outputs)
        return np.array([by_metric[name] for name in metrics])

    def _choice(self, metrics: tuple[str, ...], names: tuple[str, ...]) -> _Choice:
        """Return the choice of these metrics in a pack, cached."""
        try:
            return self._choices[metrics, names]
        except KeyError:
            wanted = tuple(name for name in metrics if name in names)
            places = tuple(k * len(names) + names.index(name) for name in wanted for k in range(self.n_refits))
            transforms = [self._transforms[name] for name in wanted for _ in range(self.n_refits)]
            self._choices[metrics, names] = choice = wanted, places, transforms
            return choice
