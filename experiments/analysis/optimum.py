"""The exhaustive optimum of a release, the refits' opinion of it, and how far optimisers end from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from experiments.analysis.subjects import MAIN, Subject, answers
from experiments.folder import read_folder
from experiments.packs import MANIFEST, read_pack
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.steps import incumbents
from jahs.comparison.summaries import Interval, mean_interval
from jahs.comparison.views import ViewChoice, open_view
from jahs.queries.exhaustive import LARGEST, Exhaustive, cells_to_ask, exhaustive_best
from jahs.spaces.configs import Config

N_FLOATS: Final = 16
"""Values of each rate on the grid on which every cell is asked."""

_STUDY: Final = "baselines"
_CHAPTER: Final = "optimisers"
_NEAR: Final = 0.5

Ends = Mapping[str, tuple[Config, ...]]
"""The last incumbent of every seed, by the title of its arm."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Optimum:
    """The optimum of one release.

    Attributes:
        known: the best value at full size that `Benchmark.best` finds, by its search from random and known configs.
        on_refits: the refits' values of the optimum, (n_refits,).
        known_on_refits: the refits' values of the config that `Benchmark.best` finds.
    """

    found: Exhaustive
    n_cells: int
    known: float
    on_refits: Floats
    known_on_refits: Floats


def measure_optimum(subject: Subject, *, n_floats: int) -> Optimum:
    """Return the optimum at full size."""
    release = release_of(subject.bench)
    cells = cells_to_ask(release, MAIN)
    found = exhaustive_best(subject.bench, MAIN, sizes=LARGEST, cells=cells, n_floats=n_floats)
    known = subject.bench.best(MAIN, open_view(subject.bench, ViewChoice(), seed=0))
    asked = [found.config, known.config]
    of_refits = np.array([answers(refit, asked) for refit in subject.refits]).reshape(len(subject.refits), len(asked))
    return Optimum(
        found=found,
        n_cells=len(cells),
        known=known.value,
        on_refits=of_refits[:, 0],
        known_on_refits=of_refits[:, 1],
    )


def find_pack(packs: Path, subject: Subject) -> Path | None:
    """Return the pack of the study of baselines on this release, in a folder of seasons; None if there is none."""
    for manifest in sorted(packs.glob(f"*/{_STUDY}/{MANIFEST}")):
        facts = read_folder(manifest.parent).tasks.get(subject.task.name)
        if facts is not None and facts.release in release_of(subject.bench).answers_as:
            return manifest.parent
    return None


def ends_of_pack(pack: Path, task: str) -> Ends:
    """Return the last incumbents of the optimisers with their default settings, on the released models."""
    titles = {arm.name: arm.title for arm in read_folder(pack).study.arms if arm.chapter == _CHAPTER}
    found: dict[str, list[Config]] = {title: [] for title in titles.values()}
    for log in read_pack(pack):
        one = log.repetition
        if one.task == task and one.refit is None and one.arm in titles:
            rows = incumbents(log.found).rows
            found[titles[one.arm]] += [log.configs[row] for row in rows[-1:].tolist()]
    return {title: tuple(configs) for title, configs in found.items() if configs}


def distances(subject: Subject, optimum: Optimum, ends: Ends) -> dict[str, tuple[Interval, Interval, float]]:
    """Return for each optimiser, in points of the metric, how far its last incumbents are from the optimum.

    Returns:
        The mean over seeds on the released models, the same on the mean of the refits, both with bootstrap intervals
        over seeds, and the share of seeds that end within half a point.
    """
    found = {}
    for title, configs in ends.items():
        own = optimum.found.value - answers(subject.bench, configs)
        other = [best - answers(refit, configs) for refit, best in zip(subject.refits, optimum.on_refits, strict=True)]
        over_refits = np.mean(other, axis=0) if other else np.full(len(configs), np.nan)
        means = [mean_interval(values) for values in (own, over_refits)]
        found[title] = (means[0], means[1], float((own <= _NEAR).mean()))
    return found
