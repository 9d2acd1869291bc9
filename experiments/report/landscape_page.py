"""The page of a landscape: variance decomposition, effects of keys, random walks and mutants of the best configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from experiments.analysis.landscape_measures import N_BEST, N_RANDOM, Landscape, Scale, Variance
from experiments.analysis.variance import TIMES
from jahs.comparison.summaries import Interval, interval_text
from jahs.tasks.definitions import Task, caveats_of
from jahs.tasks.metrics import ACCURACIES
from workshop.pages.document import Block, Document, Figure, Section, Table, Text, answer
from workshop.pages.drawing import draw_curves, draw_estimates, interval_curve

_SCALE_TITLES: Final[Mapping[Scale, str]] = {
    "rank": "rank",
    "value": "value",
    "better half": "improvement over the median",
}


def landscape_document(
    landscape: Landscape, of_task: Task, *, cautions: Sequence[str], facts: Sequence[tuple[str, str]]
) -> Document:
    """Return the page.

    Args:
        cautions: sentences on the quality of the surrogates and on the intervals.
    """
    sections = (_deciding(landscape), _keys(landscape), _walking(landscape), _changing(landscape))
    return Document(
        title=f"The landscape of {landscape.metric.name} on {of_task.title}",
        caveats=caveats_of([of_task]),
        subtitle=f"This page shows which keys determine {landscape.metric.name}, alone and in interaction, how similar "
        "neighbouring configs are, and how many changes a good config tolerates. " + " ".join(cautions),
        sections=sections,
        facts=tuple(facts),
    )


def _deciding(landscape: Landscape) -> Section:
    whole, largest, smallest = landscape.variances
    blocks: list[Block] = [answer(_answer(largest, smallest))]
    if len(largest.epochs) > 1:
        blocks += [_epochs_figure(variance) for variance in (largest, smallest)]
    blocks += [
        Text(
            "The tables decompose the variance over random configs at the last epoch into main effects of groups "
            "of keys and their interactions (Sobol indices, with 95 % intervals). Three quantities are decomposed: the "
            "rank of a config; its value"
            + (", whose variance is dominated by failed configs" if landscape.metric.name in ACCURACIES else "")
            + "; and its improvement over the median (0 in the worse half), for what matters among good configs."
        ),
        _shares_table("Shares of the variance among the largest and the smallest networks", (largest, smallest)),
        _shares_table("Shares of the variance in the whole space", (whole,)),
    ]
    return Section(title="Main effects and interactions", blocks=tuple(blocks))


def _answer(largest: Variance, smallest: Variance) -> str:
    def text(variance: Variance) -> str:
        shares = variance.shares["rank"]
        parts = [f"{group} {_percent(shares[group])}" for group in variance.part.groups]
        return f"{', '.join(parts)}, interaction {_percent(shares[_all_together(variance)])}"

    better = largest.shares.get("better half")
    aside = f" ({_percent(better[_all_together(largest)])} of the improvement over the median)" if better else ""
    return (
        f"Shares of the variance of ranks. Among the {largest.part.title}: {text(largest)}{aside}. "
        f"Among the {smallest.part.title}: {text(smallest)}."
    )


def _all_together(variance: Variance) -> str:
    return TIMES.join(variance.part.groups)


def _epochs_figure(variance: Variance) -> Figure:
    curves = [
        interval_curve(name, variance.epochs, found, number=i)
        for i, (name, found) in enumerate(variance.by_epoch.items())
    ]
    return Figure(
        name=f"epochs-{variance.part.name}",
        caption=f"Shares of the variance of ranks among the {variance.part.title} at each epoch, with 95 % intervals.",
        alt="; ".join(
            f"{name}: {found[0].value:.2f} after the first epoch, {found[-1].value:.2f} after the last"
            for name, found in variance.by_epoch.items()
        ),
        drawing=draw_curves(curves, x_label="epoch", y_label="share of the variance", y_limits=(-0.05, 1.0)),
    )


def _shares_table(caption: str, variances: Sequence[Variance]) -> Table:
    names = tuple(variances[0].by_epoch)
    rows = tuple(
        (variance.part.title, _SCALE_TITLES[scale], *(interval_text(shares[name]) for name in names))
        for variance in variances
        for scale, shares in variance.shares.items()
    )
    return Table(caption=caption, columns=("networks", "quantity", *names), rows=rows, n_labels=2)


def _keys(landscape: Landscape) -> Section:
    _, largest, smallest = landscape.variances
    blocks: list[Block] = []
    for variance in (largest, smallest):
        order = sorted(variance.total, key=lambda key: -variance.total[key].value)
        groups = {key: i for i, keys in enumerate(variance.part.groups.values()) for key in keys}
        blocks.append(
            Figure(
                name=f"keys-{variance.part.name}",
                caption=f"Total effect of each key (main effect and all interactions) on the rank among the "
                f"{variance.part.title} at the last epoch. Keys of one group have the same colour.",
                alt="; ".join(f"{key} {variance.total[key].value:.2f}" for key in order),
                drawing=draw_estimates(
                    {key: variance.total[key] for key in order},
                    numbers=[groups[key] for key in order],
                    x_label="share of the variance",
                ),
            )
        )
    rows = [
        (
            key,
            *(
                interval_text(found[key]) if key in found else "–"
                for v in landscape.variances
                for found in (v.main, v.total)
            ),
        )
        for key in landscape.variances[0].main
    ]
    columns = [f"{variance.part.title}: {what}" for variance in landscape.variances for what in ("main", "total")]
    blocks.append(
        Table(
            caption="Main and total effect of each key as shares of the variance of ranks at the last epoch. Total "
            "effects count an interaction once for each of its keys, so their sum may exceed one",
            columns=("key", *columns),
            rows=tuple(rows),
            is_folded=True,
        )
    )
    return Section(title="Effects of single keys", blocks=tuple(blocks))


def _walking(landscape: Landscape) -> Section:
    first = ", ".join(f"{found[0].value:.2f} ({title})" for title, found in landscape.walks.items())
    return Section(
        title="Similarity of neighbours",
        blocks=(
            answer(f"The ranks of neighbouring configs (one move apart) have a correlation of {first}."),
            _figure_by_steps(
                "walks",
                landscape.walks,
                step="move",
                caption="Random-walk autocorrelation of ranks among the largest networks, as in NAS-Bench-101. A move "
                "is one of `jahs.Space.neighbors`. If only one group moves, the other is fixed at random values, whose "
                "effect is subtracted.",
                labels=("moves", "correlation of ranks"),
                y_limits=(-0.25, 1.02),
            ),
        ),
    )


def _changing(landscape: Landscape) -> Section:
    first = ", ".join(f"{_percent(found[0])} ({title})" for title, found in landscape.mutants.items())
    worst, best = (f"{value:.4g}" for value in landscape.top)
    doubt = " Where the error of the surrogate is larger than this range, the figure shows the surrogate's own shape."
    doubt = doubt if landscape.metric.kind == "learned" else ""
    return Section(
        title="Mutants of the best configs",
        blocks=(
            answer(f"Share of the best configs that stay among the best 1 % after one key is changed: {first}."),
            Text(f"The best 1 % have values between {worst} and {best} {landscape.metric.unit}.{doubt}"),
            _figure_by_steps(
                "mutants",
                landscape.mutants,
                step="key",
                caption=f"Share of mutants of the best {N_BEST} configs that are among the best 1 % of {N_RANDOM:,} "
                "random configs, by the number of changed keys. A choice changes to any other, a float by up to half a "
                f"decade. For a random config, the share is {100 * landscape.share_of_top:.2g} %.",
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
    """Return a figure with a curve for each group over 1, 2, ... steps."""
    return Figure(
        name=name,
        caption=caption,
        alt="; ".join(
            f"{title}: {of[0].value:.2f} after one {step}, {of[-1].value:.2f} after {len(of)}"
            for title, of in found.items()
        ),
        drawing=draw_curves(
            [
                interval_curve(title, range(1, len(of) + 1), of, number=i, has_markers=len(of) < 12)
                for i, (title, of) in enumerate(found.items())
            ],
            x_label=labels[0],
            y_label=labels[1],
            y_limits=y_limits,
        ),
    )


def _percent(share: Interval) -> str:
    low, high = (min(max(end, 0.0), 1.0) for end in (share.low, share.high))
    return f"{100 * share.value:.0f} % [{100 * low:.0f} to {100 * high:.0f}]"
