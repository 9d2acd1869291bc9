"""The forests of a release that answer: its own models, one of its refits, or another family of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jahs.models.features import FeatureSet
from jahs.models.forest import Forest, take_forests
from jahs.release.models import Models
from jahs.release.reading import Release


class Part(NamedTuple):
    """Forests that read the same features, and which of them answers which metric."""

    features: FeatureSet
    forest: Forest
    forest_of: dict[str, int]


def parts_of(release: Release, refit: int | None) -> list[Part]:
    """Return the forests that answer: those of the release, or of one of its refits where a metric has any."""
    models = release.models
    of_refit: dict[int, list[Part]] = {}
    if refit is not None:
        for pack, forests in zip(release.refits.packs, release.refit_forests, strict=True):
            own = [refit * len(pack.metrics) + i for i in range(len(pack.metrics))]
            part = Part(
                features=models.packs[pack.pack].features,
                forest=take_forests(forests, own),
                forest_of={name: i for i, name in enumerate(pack.metrics)},
            )
            of_refit.setdefault(pack.pack, []).append(part)
    found = []
    for i, part in enumerate(_parts(models, release.forests)):
        refitted = of_refit.get(i, [])
        again = {name for one in refitted for name in one.forest_of}
        left = {name: k for name, k in part.forest_of.items() if name not in again}
        found += [part._replace(forest_of=left)] if left or not refitted else []
        found += refitted
    return found


def with_family(parts: Sequence[Part], models: Models, forests: Sequence[Forest]) -> list[Part]:
    """Return the parts with another family's forests for the metrics that it has."""
    kept = [
        part._replace(forest_of={name: i for name, i in part.forest_of.items() if name not in models.metrics})
        for part in parts
    ]
    return [part for part in kept if part.forest_of] + _parts(models, forests)


def _parts(models: Models, forests: Sequence[Forest]) -> list[Part]:
    return [
        Part(pack.features, forest, {name: m.forest for name, m in models.metrics.items() if m.pack == i})
        for i, (pack, forest) in enumerate(zip(models.packs, forests, strict=True))
    ]
