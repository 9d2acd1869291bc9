"""The comparisons of a whole study: tests with one correction for all of them, and critical-difference diagrams."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from numpy.typing import NDArray

from experiments.analysis.critical_differences import HOLDS, Comparison, compare_groups
from experiments.report.results import RepetitionResult, Results
from experiments.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import Pair
from jahs.comparison.steps import Steps, hypervolume_over_time
from jahs.comparison.summaries import FEWEST_SEEDS, p_text
from jahs.errors import MissingData, UnknownName
from workshop.pages.document import Block, Figure, Table
from workshop.pages.style import LIGHT, series
from workshop.resampling import interval_text

_WIDTH: Final = 4.8  # width of the diagram, in inches
_MARGIN: Final = 0.03  # on either side, as a share
_LABEL_GAP: Final = 5  # points between a marker and its label
_LABEL_SIZE: Final = 9.5  # points, where the longest label fits


def groups(results: Results, task: str) -> Iterator[tuple[str, tuple[Arm, ...]]]:
    """Yield the groups of arms that a page compares: each chapter of several arms.

    An arm that is declared as the only one of its chapter is the reference of every group with its objectives.
    """
    chapters = [arm.chapter for arm in results.study.arms]
    alone = [arm for arm in results.arms if chapters.count(arm.chapter) == 1 and (task, arm.name) in results.by_arm]
    for name in results.study.chapters:
        if len(arms := results.arms_of(name, task)) > 1:
            yield name, (*(arm for arm in alone if arm.objectives == arms[0].objectives), *arms)


@functools.lru_cache(maxsize=2)
def compared(results: Results) -> dict[tuple[str, tuple[str, ...]], Comparison]:
    """Return the comparison of each group on each task, by task and names of arms; Holm's correction covers all.

    A difference counts if it is significant and holds on an estimated 95 % of the refits or more, where there are any.
    """
    keys, values = [], []
    for task in results.tasks:
        for _, arms in groups(results, task):
            on_release, on_refits = finals(results, task, arms)
            if on_release.shape[1] >= FEWEST_SEEDS and not np.isnan(on_release).any():
                keys.append((task, tuple(arm.name for arm in arms)))
                values.append((on_release, on_refits if on_refits.size else None))
    return dict(zip(keys, compare_groups(values), strict=True)) if keys else {}


def compared_pairs(results: Results) -> list[Pair]:
    """Return the tests of all pairs that a page compares."""
    return [pair for comparison in compared(results).values() for pair in comparison.pairs]


def differing_text(results: Results) -> str:
    """Return how many of the pairs that a page compares differ."""
    pairs = compared_pairs(results)
    return f"{sum(pair.differs for pair in pairs)} of {len(pairs)} compared pairs differ"


def quoted_title(arm: Arm) -> str:
    """Return an arm's title, in quotation marks if it has a comma."""
    return f"“{arm.title}”" if "," in arm.title else arm.title


def comparison_of(results: Results, task: str, arms: Sequence[Arm]) -> Comparison | None:
    """Return the comparison of one group of arms on a task; None if it has too few seeds."""
    return compared(results).get((task, tuple(arm.name for arm in arms)))


def finals(results: Results, task: str, arms: Sequence[Arm]) -> tuple[Floats, Floats]:
    """Return final results, (n_arms, n_seeds) on the release and (n_arms, n_refits, n_seeds), that all arms have.

    They are to be minimised: mean validation errors of incumbents, or minus the shares of the front's hypervolume. The
    seeds on refits are the first ones on the release.
    """
    seeds = results.seeds(task, arms)
    on_release = np.array(
        [[final_of(results, task, arm, result) for result in results.of(task, arm, seeds)] for arm in arms]
    ).reshape(len(arms), len(seeds))
    by_run = [
        {
            (r.repetition.refit, r.repetition.seed): final_of(results, task, arm, r)
            for r in results.on_refits.get((task, arm.name), ())
            if r.repetition.refit is not None
        }
        for arm in arms
    ]
    common = sorted(set.intersection(*map(set, by_run)))
    refits = sorted({refit for refit, _ in common})
    complete = [seed for seed in seeds if all((refit, seed) in common for refit in refits)] if refits else []
    first = np.argsort([seed not in complete for seed in seeds], kind="stable")
    values = np.array([[[final[refit, seed] for seed in complete] for refit in refits] for final in by_run])
    return on_release[:, first], values.reshape(len(arms), len(refits), len(complete))


def curve(results: Results, task: str, arm: Arm, result: RepetitionResult) -> Steps:
    """Return the result so far of one repetition, minimised; with several objectives it needs a frozen front."""
    if len(arm.objectives) == 1:
        return result.incumbents
    front = results.bench[task].front(arm.objectives)
    times, F = result.points(arm.objectives)
    volume = hypervolume_over_time(times, F, reference=front.reference_point)
    return Steps(times=volume.times, values=-volume.values / front.hypervolume)


def final_of(results: Results, task: str, arm: Arm, result: RepetitionResult) -> float:
    """Return the final result of one repetition, minimised: see `finals`."""
    try:
        values = curve(results, task, arm, result).values
    except (MissingData, UnknownName):
        return np.nan  # a release without this front
    return float(values[-1]) if len(values) else worst_of(arm)


def worst_of(arm: Arm) -> float:
    """Return the result of a run without any: an error of 100 %, or no hypervolume."""
    return 100.0 if len(arm.objectives) == 1 else 0.0


def comparison_blocks(arms: Sequence[Arm], found: Comparison, *, what: str, key: str) -> Iterator[Block]:
    """Yield the critical-difference diagram of final values and the table of all pairs."""
    n_differ = sum(pair.differs for pair in found.pairs)
    on_refits = f" and it is estimated to keep its sign on at least {100 * HOLDS:.0f} % of the refits"
    has_refits = any(pair.holds is not None for pair in found.pairs)
    order = np.argsort(found.mean_ranks)
    quantity, _, unit = what.partition(" (")
    yield Figure(
        name=f"{key}-difference",
        caption=f"Critical differences of the final {quantity}. Friedman's test of all arms: "
        f"{p_statement(found.p_friedman)}. {n_differ} of {len(found.pairs)} pairs differ; bars join arms that do not. "
        f"A difference counts if Wilcoxon's signed-rank test on {found.n_blocks} paired seeds is significant (α = "
        f"{found.alpha:g}, Holm's correction over all {found.n_family} pairs of the study){on_refits * has_refits}.",
        alt="Mean ranks: " + ", ".join(f"{arms[i].title} {found.mean_ranks[i]:.2f}" for i in order),
        drawing=draw_comparison(found, [arm.title for arm in arms]),
    )
    digits = 2 if unit == "points)" else 4
    rows = [
        (
            *(arms[pair.one].title, arms[pair.other].title, f"{pair.difference:+.{digits}f}"),
            *(f"{pair.superiority:.2f}", p_text(pair.p), p_text(pair.p_holm)),
            "–" if pair.mean is None else interval_text(pair.mean, digits),
            "–" if pair.holds is None else f"{100 * pair.holds:.0f} %",
            "yes" if pair.differs else "no",
        )
        for pair in found.pairs
    ]
    yield Table(
        caption=f"Wilcoxon's signed-rank test of the final {quantity}, for all pairs of arms, with effect sizes",
        columns=(
            *("arm", "other arm", "median difference" + (f" ({unit}" if unit else ""), "better in a share of seeds"),
            *("p-value", "p-value (Holm)", "mean difference (95 % interval over seeds and refits)"),
            *("same sign on refits (estimated share)", "differs"),
        ),
        rows=tuple(rows),
        n_labels=2,
        is_folded=True,
    )


def draw_comparison(comparison: Comparison, titles: Sequence[str]) -> Drawing:
    """Draw mean ranks, and bars over arms that do not differ significantly."""
    n_arms, n_bars, ranks = len(titles), len(comparison.cliques), comparison.mean_ranks
    drawing = Drawing(figsize=(_WIDTH, 0.7 + 0.16 * n_bars + 0.3 * n_arms))
    axes = drawing.add_axes((_MARGIN, 0.02, 1 - 2 * _MARGIN, 0.96))  # labels lie inside, beside their ranks
    limits = 0.6, n_arms + 0.4
    is_low = ranks <= (n_arms + 1) / 2  # there is more room to its right
    labels, size = _labels(titles, ranks, is_low, limits)
    first = n_bars * 0.5 + 0.9
    axes.plot([1, n_arms], [0, 0], color=LIGHT["ink"], linewidth=1.2)
    for rank in range(1, n_arms + 1):
        axes.plot([rank, rank], [-0.18, 0], color=LIGHT["ink"], linewidth=1.2)
        axes.annotate(f"{rank}", (rank, -0.3), ha="center", va="bottom")
    for place, arm in enumerate(np.argsort(ranks, kind="stable").tolist()):
        rank, y = ranks[arm], first + place
        axes.plot([rank, rank], [0, y], color=series(arm), linewidth=1.2)
        axes.annotate(
            labels[arm],
            (rank, y),
            xytext=(_LABEL_GAP if is_low[arm] else -_LABEL_GAP, 0),
            textcoords="offset points",
            ha="left" if is_low[arm] else "right",
            va="center",
            fontsize=size,
            bbox={"facecolor": LIGHT["paper"], "edgecolor": "none", "pad": 1.0},
        )
        axes.plot([rank], [y], color=series(arm), marker="o", markersize=5)
    for bar, clique in enumerate(comparison.cliques):
        ends = ranks[list(clique)]
        axes.plot([ends.min() - 0.04, ends.max() + 0.04], [0.5 + 0.5 * bar] * 2, color=LIGHT["ink"], linewidth=4)
    axes.set(xlim=limits, ylim=(first + n_arms - 0.4, -1.9))
    axes.annotate("mean rank (1 is best)", ((n_arms + 1) / 2, -1.2), ha="center", va="bottom")
    axes.axis("off")
    return drawing


def _labels(
    titles: Sequence[str], ranks: Floats, is_low: NDArray[np.bool_], limits: tuple[float, float]
) -> tuple[list[str], float]:
    """Return labels, and the size in points at which each fits between its rank and the far side of the drawing."""
    low, high = limits
    share = np.where(is_low, high - ranks, ranks - low) / (high - low)
    room = 72 * _WIDTH * (share * (1 - 2 * _MARGIN) + _MARGIN) - 2 * _LABEL_GAP
    sides = zip(titles, ranks.tolist(), is_low.tolist(), strict=True)
    labels = [f"{title}  {rank:.2f}" if is_left else f"{rank:.2f}  {title}" for title, rank, is_left in sides]
    font, measure = FontProperties(size=_LABEL_SIZE), TextToPath().get_text_width_height_descent
    widths = np.array([measure(label, font, ismath=False)[0] for label in labels])
    return labels, min(_LABEL_SIZE, float((_LABEL_SIZE * room / widths).min()))


def p_statement(value: float) -> str:
    """Return a p-value for a sentence, such as "p = 0.020"."""
    text = p_text(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
