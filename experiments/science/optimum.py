"""The exhaustive optimum of a release, its value by the refits, and the distance at which optimisers end from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from experiments.folder import read_folder
from experiments.packs import MANIFEST, read_pack
from experiments.report.writing import table
from experiments.science.subjects import MAIN, Subject, answers, spread_of
from experiments.studies import MAIN as CHAPTER
from experiments.views import open_view
from jahs.comparison.benches import release_of
from jahs.comparison.logs import Floats
from jahs.comparison.steps import incumbents
from jahs.comparison.summaries import Interval, mean_interval, value_text
from jahs.comparison.terms import ViewChoice
from jahs.queries.best import search_best
from jahs.spaces.configs import Config
from workshop.exhaustive import Exhaustive, cells_to_ask, exhaustive_best
from workshop.pages.document import Block, Document, Figure, Text, answer, sections_of
from workshop.pages.drawing import draw_estimates
from workshop.resampling import interval_text

N_FLOATS: Final = 16  # values of each rate on the grid on which every cell is queried

_STUDIES: Final = ("strong", "baselines")  # of one budget; the second has more seeds of optimisers that are in both
_NEAR: Final = 0.5
_METHOD: Final = f"""Every cell, activation and augmentation is queried on a {N_FLOATS} × {N_FLOATS} grid of learning
    rate and weight decay, at full size and the last epoch; then the best 300 pairs of cell and choices on a grid four
    times as fine, and the best ten of these on one forty times as fine. Cells that compute the same function have the
    same prediction, so one of each class is queried. The models are piecewise constant in the rates: between the points
    of the finest grid, which are 1.2 % apart, a slightly better config may exist."""
_KNOWN: Final = """`make release` searches exhaustively at full size (`--rates`), and the search for the fronts starts
    from the best config found. `Benchmark.best` starts from that config and the fronts. The default search does not: it
    is random sampling, local search, and a grid of the rates at the best config. Its grid has other rates, so it may
    find a config slightly above the optimum of this page."""
_CURSE: Final = """The optimum is a maximum over millions of predictions, which selects models' errors upwards (winner's
    curse). The refits did not choose it: their values show how much of its lead is the error of one model."""

Ends = Mapping[str, tuple[Config, ...]]  # the last incumbent of every seed, by the title of its arm


class Optimum(NamedTuple):
    """The optimum of one release."""

    found: Exhaustive
    n_cells: int
    best: float  # value of `Benchmark.best` at full size, which starts from the configs that the release knows
    known: float  # the best value that the same search finds without them, from random configs
    on_refits: Floats  # the refits' values of the optimum, (n_refits,)
    known_on_refits: Floats  # and of the config that the search without known configs finds


def measure_optimum(subject: Subject, *, n_floats: int) -> Optimum:
    """Return the optimum at full size."""
    cells = cells_to_ask(release_of(subject.bench), MAIN)
    found = exhaustive_best(subject.bench, MAIN, cells=cells, n_floats=n_floats)
    view = open_view(subject.bench, ViewChoice(), seed=0)
    known = search_best(view, [], MAIN)
    on_refits = np.array([answers(refit, [found.config, known.config]) for refit in subject.refits]).reshape(-1, 2)
    return Optimum(found, len(cells), subject.bench.best(MAIN, view).value, known.value, *on_refits.T)


def find_pack(subject: Subject, study: str) -> Path | None:
    """Return the pack of a study on the release of the subject, or None."""
    packs = () if subject.data is None else sorted((subject.data / "studies").glob(f"*/{study}/{MANIFEST}"))
    for manifest in packs:
        facts = read_folder(manifest.parent).tasks.get(subject.bench.task.name)
        if facts is not None and facts.release in release_of(subject.bench).answers_as:
            return manifest.parent
    return None


def ends_of_pack(pack: Path, task: str) -> Ends:
    """Return the last incumbents of the optimisers with their default settings, on the released models."""
    titles = {arm.name: arm.title for arm in read_folder(pack).study.arms if arm.chapter == CHAPTER}
    ends: dict[str, list[Config]] = {title: [] for title in titles.values()}
    for log in read_pack(pack):
        if log.repetition.task == task and log.repetition.refit is None and log.repetition.arm in titles:
            last = incumbents(log.found).rows[-1:].tolist()
            ends[titles[log.repetition.arm]] += [log.configs[row] for row in last]
    return {title: tuple(configs) for title, configs in ends.items() if configs}


class Distance(NamedTuple):
    """How far the last incumbents of an optimiser are from the optimum, in points of the metric."""

    title: str
    n: int  # number of seeds
    own: Interval  # mean over seeds on the released models
    near: float  # the share of seeds that end within half a point
    on_refits: Interval  # mean over seeds on the mean of the refits


def distances(subject: Subject, optimum: Optimum, ends: Ends) -> list[Distance]:
    """Return the distance of each optimiser, the nearest first, with intervals over seeds."""
    rows = []
    for title, configs in ends.items():
        distance = optimum.found.value - answers(subject.bench, configs)
        gaps = [best - answers(refit, configs) for refit, best in zip(subject.refits, optimum.on_refits, strict=True)]
        gap = mean_interval(np.mean(gaps or [np.full(len(configs), np.nan)], axis=0))
        rows.append(Distance(title, len(configs), mean_interval(distance), float((distance <= _NEAR).mean()), gap))
    return sorted(rows, key=lambda row: row.own.value)


def optimum_page(subjects: Sequence[Subject]) -> Document:
    """Return the page."""
    optima = {task.title: measure_optimum(task, n_floats=N_FLOATS) for task in subjects}
    ends = {}
    for subject in subjects:
        packs = filter(None, (find_pack(subject, study) for study in _STUDIES))
        configs = dict(item for pack in packs for item in ends_of_pack(pack, subject.bench.task.name).items())
        ends[subject.title] = distances(subject, optima[subject.title], configs)
    summary = "; ".join(
        f"{title} {opt.found.value:.2f} % (refits: {_refit_interval(opt.on_refits)}), "
        f"{opt.found.value - opt.known:+.2f} points relative to the best config of the default search"
        + "".join(
            f", and the final incumbent of {e.title} is {interval_text(e.own)} points below" for e in ends[title][:1]
        )
        for title, opt in optima.items()
    )
    by_task = (block for task in subjects if ends[task.title] for block in _distances(task, ends[task.title]))
    return Document(
        title="The exhaustive optimum of the released models",
        subtitle="The best validation accuracy that the released models predict at full size on a grid of learning "
        f"rates and weight decays: {summary}. NAS-Bench-101 knows its optimum because it is a table; here regret is "
        "exact up to the resolution of this grid.",
        sections=sections_of([*_optima(optima), *by_task, "The best known config of a release", Text(_KNOWN)]),
    )


def _refit_interval(values: Floats) -> str:
    """Return the mean over refits, with 1.96 of their standard deviations."""
    return interval_text(spread_of([values.mean(), *values]).at()) if len(values) else "–"


def _optima(optima: Mapping[str, Optimum]) -> Iterator[str | Block]:
    yield "The optimum"
    head = ["task", "cells", "configs queried", "default search", "`Benchmark.best`", "first grid", "all grids"]
    head += ["optimum on refits", "default search on refits"]
    rows, configs = [], []
    for title, opt in optima.items():
        values = (f"{value:.3f}" for value in (opt.known, opt.best, opt.found.on_grid, opt.found.value))
        on_refits = map(_refit_interval, (opt.on_refits, opt.known_on_refits))
        rows.append((title, f"{opt.n_cells:,}", f"{opt.found.n_asked:,}", *values, *on_refits))
        configs.append((title, ", ".join(f"{key}={value_text(value)}" for key, value in opt.found.config.items())))
    yield table("Validation accuracy (%) at full size and the last epoch; refits: mean and 95 % interval", head, rows)
    yield table("The optimum", ("task", "config"), configs, n_labels=2)
    yield Text(_METHOD)
    yield Text(_CURSE)


def _distances(subject: Subject, rows: Sequence[Distance]) -> Iterator[str | Block]:
    yield f"Distance of the optimisers on {subject.title}"
    yield answer(
        f"After a budget of 100 mean full evaluations, {rows[0].title} ends {interval_text(rows[0].own)} points from "
        f"the optimum, and {rows[-1].title} {interval_text(rows[-1].own)}."
    )
    yield Figure(
        name=f"distance-{subject.slug}",
        caption="Distance of the last incumbent from the exhaustive optimum in points of validation accuracy: mean "
        "over seeds and 95 % interval.",
        alt="; ".join(f"{row.title} {row.own.value:.2f}" for row in rows),
        drawing=draw_estimates({row.title: row.own for row in rows}, x_label="points from the optimum"),
    )
    yield table(
        "Distance from the optimum in points of validation accuracy, with 95 % intervals over seeds",
        ("optimiser", "seeds", "on the released models", "within 0.5 points (%)", "on the refits"),
        [(*row[:3], f"{100 * row.near:.0f}", row.on_refits) for row in rows],
    )
