"""The page of a landscape: what decides, how far neighbours are alike, how steep it is at the top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import matplotlib as mpl
import numpy as np

from experiments.analysis.landscape_measures import N_BEST, N_RANDOM, Landscape, Scale, Variance
from experiments.analysis.summaries import Interval
from experiments.analysis.variance import INTERPLAY
from jahs.tasks.definitions import Task, caveats_of
from jahs.tasks.metrics import ACCURACIES
from workshop.pages.document import Block, Document, Figure, Section, Table, Text
from workshop.pages.drawing import Curve, Estimate, draw_curves, draw_estimates
from workshop.pages.style import style

__all__ = ["landscape_document"]

_SCALE_TITLES: Final[Mapping[Scale, str]] = {
    "place": "place among all",
    "value": "value",
    "better half": "what it is better than the median",
}


def landscape_document(
    landscape: Landscape, of_task: Task, *, cautions: Sequence[str], facts: Sequence[tuple[str, str]]
) -> Document:
    """Return the page.

    Args:
        landscape: what was measured.
        of_task: of which task.
        cautions: how good the models are that were asked, and what the intervals hold.
        facts: how to get the same numbers again.
    """
    with mpl.rc_context(dict(style())):
        sections = (_deciding(landscape), _keys(landscape), _walking(landscape), _changing(landscape))
    return Document(
        title=f"The landscape of {landscape.metric.name} on {of_task.title}",
        caveats=caveats_of([of_task]),
        subtitle="Which keys decide, alone and together, how far neighbours are alike, and how steep it is at the top. "
        + " ".join(cautions),
        sections=sections,
        facts=tuple(facts),
    )


def _deciding(landscape: Landscape) -> Section:
    whole, largest, smallest = landscape.variances
    blocks: list[Block] = [Text(text=_answer(largest, smallest), is_answer=True)]
    if len(largest.epochs) > 1:
        blocks += [_epochs_figure(variance) for variance in (largest, smallest)]
    blocks += [
        Text(
            text="Shares of a variance over random configs. A group alone decides what is left when all else is "
            "averaged out; interplay is what no group decides without another. The place counts every config alike"
            + ("; the value is ruled by configs that fail" if landscape.metric.name in ACCURACIES else "")
            + "; what a config is better than the median, nothing for the worse half, shows what matters among good "
            "ones."
        ),
        _shares_table("Where networks are largest and smallest", (largest, smallest)),
        _shares_table("In the whole space", (whole,)),
    ]
    return Section(title="What decides", blocks=tuple(blocks))


def _answer(largest: Variance, smallest: Variance) -> str:
    def told(variance: Variance) -> str:
        shares = variance.shares["place"]
        parts = [f"{_percent(shares[group])} {group} alone" for group in variance.part.groups]
        return f"{', '.join(parts)}, {_percent(shares[_all_together(variance)])} their interplay"

    better = largest.shares.get("better half")
    aside = f" ({_percent(better[_all_together(largest)])} where only the better half counts)" if better else ""
    return (
        f"What decides a config's place: among the {largest.part.title} {told(largest)}{aside}; "
        f"among the {smallest.part.title} {told(smallest)}."
    )


def _all_together(variance: Variance) -> str:
    return INTERPLAY.join(variance.part.groups)


def _epochs_figure(variance: Variance) -> Figure:
    curves = [
        Curve(title=name, number=i, is_step=False, has_markers=True, **_points(variance.epochs, found))
        for i, (name, found) in enumerate(variance.by_epoch.items())
    ]
    return Figure(
        name=f"epochs-{variance.part.name}",
        caption=f"What decides a config's place among the {variance.part.title}, epoch by epoch.",
        alt="; ".join(
            f"{name}: {found[0].value:.2f} after the first epoch, {found[-1].value:.2f} after the last"
            for name, found in variance.by_epoch.items()
        ),
        drawing=draw_curves(curves, x_label="epoch", y_label="share of the variance", y_limits=(-0.05, 1.0)),
    )


def _shares_table(caption: str, variances: Sequence[Variance]) -> Table:
    names = tuple(variances[0].by_epoch)
    rows = tuple(
        (variance.part.title, _SCALE_TITLES[scale], *(_with_interval(shares[name]) for name in names))
        for variance in variances
        for scale, shares in variance.shares.items()
    )
    return Table(caption=caption, columns=("", "of", *names), rows=rows, n_labels=2)


def _keys(landscape: Landscape) -> Section:
    _, largest, smallest = landscape.variances
    blocks: list[Block] = []
    for variance in (largest, smallest):
        order = sorted(variance.in_all, key=lambda key: -variance.in_all[key].value)
        groups = {key: i for i, keys in enumerate(variance.part.groups.values()) for key in keys}
        blocks.append(
            Figure(
                name=f"keys-{variance.part.name}",
                caption=f"What each key decides of a config's place among the {variance.part.title}, alone or with "
                "others. Keys of one group have one colour.",
                alt="; ".join(f"{key} {variance.in_all[key].value:.2f}" for key in order),
                drawing=draw_estimates(
                    [_estimate(key, variance.in_all[key], groups[key]) for key in order],
                    x_label="share of the variance",
                ),
            )
        )
    rows = [
        (
            key,
            *(
                _with_interval(found[key]) if key in found else "–"
                for v in landscape.variances
                for found in (v.alone, v.in_all)
            ),
        )
        for key in landscape.variances[0].alone
    ]
    columns = [f"{variance.part.title}: {what}" for variance in landscape.variances for what in ("alone", "in all")]
    blocks.append(
        Table(
            caption="What each key decides of a config's place, alone, and in all, with others too. Shares in all "
            "count an interplay once for each of its keys, so they may sum to more than one.",
            columns=("key", *columns),
            rows=tuple(rows),
            is_folded=True,
        )
    )
    return Section(title="Key by key", blocks=tuple(blocks))


def _walking(landscape: Landscape) -> Section:
    first = ", ".join(f"{found[0].value:.2f} ({title})" for title, found in landscape.walks.items())
    return Section(
        title="How far neighbours are alike",
        blocks=(
            Text(text=f"One move apart, the places of two configs correlate with {first}.", is_answer=True),
            _figure_by_steps(
                "walks",
                landscape.walks,
                step="move",
                caption="Correlation of the places of two configs so many random moves apart, among the largest "
                "networks (NAS-Bench-101's random-walk autocorrelation). A move is one of `jahs.Space.neighbors`; "
                "where one group moves, the other is held at random values, whose own effect does not count.",
                labels=("moves", "correlation of places"),
                y_limits=(-0.25, 1.02),
            ),
        ),
    )


def _changing(landscape: Landscape) -> Section:
    first = ", ".join(f"{_percent(found[0])} ({title})" for title, found in landscape.mutants.items())
    worst, best = (f"{value:.4g}" for value in landscape.top)
    doubt = " Where a surrogate errs by more, this is its own shape rather than that of trainings."
    doubt = doubt if landscape.metric.kind == "learned" else ""
    return Section(
        title="How steep it is at the top",
        blocks=(
            Text(text=f"With one key changed, a config of the best stays among the best 1 %: {first}.", is_answer=True),
            Text(text=f"The best 1 % lie between {worst} and {best} {landscape.metric.unit}.{doubt}"),
            _figure_by_steps(
                "mutants",
                landscape.mutants,
                step="key",
                caption=f"Share of changed configs that are still among the best 1 % of {N_RANDOM:,} random ones, by "
                f"how many keys of one of the best {N_BEST} were changed: a choice to any other, a rate by up to half "
                f"a decade, as evolution does. A random config has a chance of {100 * landscape.share_of_top:.2g} %.",
                labels=("changed keys", "share among the best 1 %"),
                y_limits=(-0.02, 1.0),
            ),
        ),
    )


def _figure_by_steps(
    name: str,
    found: Mapping[str, Sequence[Interval]],
    *,
    step: str,
    caption: str,
    labels: tuple[str, str],
    y_limits: tuple[float, float],
) -> Figure:
    """A curve for each group over 1, 2, ... steps."""
    return Figure(
        name=name,
        caption=caption,
        alt="; ".join(
            f"{title}: {of[0].value:.2f} after one {step}, {of[-1].value:.2f} after {len(of)}"
            for title, of in found.items()
        ),
        drawing=draw_curves(list(_group_curves(found)), x_label=labels[0], y_label=labels[1], y_limits=y_limits),
    )


def _group_curves(found: Mapping[str, Sequence[Interval]]) -> Iterator[Curve]:
    for i, (title, intervals) in enumerate(found.items()):
        points = _points(range(1, len(intervals) + 1), intervals)
        yield Curve(title=title, number=i, is_step=False, has_markers=len(intervals) < 12, **points)


def _points(x: Sequence[int], intervals: Sequence[Interval]) -> dict[str, np.ndarray]:
    y, low, high = (np.array([getattr(i, name) for i in intervals]) for name in ("value", "low", "high"))
    return {"x": np.array(x, dtype=np.float64), "y": y, "low": low, "high": high}


def _estimate(title: str, interval: Interval, number: int) -> Estimate:
    return Estimate(title=title, value=interval.value, low=interval.low, high=interval.high, number=number)


def _with_interval(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _percent(share: Interval) -> str:
    low, high = (min(max(end, 0.0), 1.0) for end in (share.low, share.high))
    return f"{100 * share.value:.0f} % [{100 * low:.0f} to {100 * high:.0f}]"
