"""The page that compares two tasks.

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.figure import Figure as Drawing

from experiments.analysis.paired import (
    FEWEST,
    Agreement,
    Paired,
    agreements,
    effects_of_keys,
    effects_of_values,
    real_agreement,
    warm_starts,
)
from experiments.analysis.transfer import OPTIMIZERS, FrontTransfer, OrderTransfer
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, interval_text, number_text
from jahs.optimizers import OPTIMIZERS as ENTRIES
from jahs.tasks.definitions import caveats_of
from workshop.pages.document import Block, Document, Figure, Section, Table, Text
from workshop.pages.drawing import new_drawing, set_rows
from workshop.pages.style import LIGHT, marker, series
from workshop.ranks import spearman
from workshop.real_landscape import EPOCHS

_REAL: Final = "CIFAR-10 of JAHS-Bench-201"
_HEIGHT_OF_ROW: Final = 0.3  # inches


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """What the releases of both tasks say.

    Attributes:
        missing: titles of tasks without a release; then there is nothing else.
        fronts, orders: see `experiments.analysis.transfer`.
    """

    missing: tuple[str, ...] = ()
    fronts: tuple[FrontTransfer, ...] = ()
    orders: OrderTransfer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A line of a figure: values with intervals, and a ceiling."""

    title: str
    values: Sequence[Interval]
    ceiling: float = math.nan


def tasks_document(
    paired: Paired, real: Mapping[int, Floats], released: Released, facts: Sequence[tuple[str, str]]
) -> Document:
    """Return the page.

    Args:
        real: accuracies of these configs on the real landscape, by epoch; empty: not compared.
    """
    found, of_real = list(agreements(paired)), list(_real_agreements(paired, real))
    sections = (
        _ranks(paired, found, of_real),
        *([_real_section(of_real)] if real else []),
        _effects(paired, real),
        _warm(paired),
        _of_releases(paired, released),
    )
    names = _titles(paired)
    return Document(
        title=f"{names[0]} and {names[1]}: what carries over",
        caveats=caveats_of(paired.tasks),
        subtitle=_finding(names, found[0], of_real),
        sections=sections,
        facts=(*facts, ("data", "paired.csv: every config of this page with its accuracies")),
    )


def _titles(paired: Paired) -> tuple[str, str]:
    one, other = paired.tasks
    return one.title, other.title


def _finding(names: Sequence[str], whole: Agreement, of_real: Sequence[Agreement]) -> str:
    ceiling = "" if math.isnan(whole.ceiling) else f"; the noise of single trainings allows {whole.ceiling:.2f}"
    text = (
        f"{whole.n:,} configs were trained on both tasks. Their validation accuracies at the last epoch have a "
        f"Spearman correlation of {interval_text(whole.rho)}{ceiling}."
    )
    if of_real:
        last = of_real[:: len(EPOCHS)]
        parts = " and ".join(f"{interval_text(each.rho)} for {name}" for each, name in zip(last, names, strict=True))
        text += f" With {_REAL} after {EPOCHS[0]} epochs, it is {parts}."
    return text


def _ranks(paired: Paired, found: Sequence[Agreement], of_real: Sequence[Agreement]) -> Section:
    n_groups = len(set(paired.groups))
    parts, groups = found[:-n_groups], found[-n_groups:]
    enough = [each for each in (*parts, *of_real[:: len(EPOCHS)], *groups) if each.n >= 2 * FEWEST]
    with_real = f", and of each task with {_REAL}" if of_real else ""
    return Section(
        title="Ranks of configs",
        blocks=(
            Figure(
                name="correlations",
                caption=f"Spearman correlation between the tasks{with_real}, with 95 % bootstrap intervals over "
                f"configs. Crosses are noise ceilings. Parts with fewer than {2 * FEWEST} configs are left out.",
                alt="; ".join(f"{each.title}: {each.rho.value:.2f}" for each in enough),
                drawing=_draw(
                    [_Row(title=each.title, values=[each.rho], ceiling=each.ceiling) for each in enough],
                    x_label="Spearman correlation",
                ),
            ),
            Text(
                "The noise ceiling is the correlation that two perfect copies of a task would have: the geometric "
                "mean of the correlations between two seeds on each task, over configs with three seeds "
                f"(– for fewer than {FEWEST} of them). Accuracies are those of the first seed. The ceiling of a best "
                "tenth comes from the other seeds, because the first seed chooses. Within groups, the mean of its "
                "fidelity group is subtracted from each accuracy."
            ),
            _agreements_table("Between the tasks", parts),
            _agreements_table("Between the tasks, in each fidelity group", groups, is_folded=True),
        ),
    )


def _real_agreements(paired: Paired, real: Mapping[int, Floats]) -> Iterator[Agreement]:
    """Yield the agreement of both tasks with the real landscape at each epoch."""
    for name, values in zip(_titles(paired), paired.accuracies, strict=True):
        for epoch in EPOCHS if real else ():
            yield real_agreement(f"{name}, real epoch {epoch}", values, real[epoch])


def _real_section(of_real: Sequence[Agreement]) -> Section:
    return Section(
        title="Both against the real landscape",
        blocks=(
            Text(
                f"The real landscape is an imported surrogate of {_REAL}, which answers for the same configs. Its "
                "predictions are clipped to 0 and 100 % and have no noise. It is used for ranks and means, never for "
                "its optimum."
            ),
            _agreements_table("With the real landscape", of_real),
        ),
    )


def _agreements_table(caption: str, found: Sequence[Agreement], *, is_folded: bool = False) -> Table:
    return Table(
        caption=caption,
        columns=("part", "Spearman correlation (95 % interval)", "noise ceiling", "configs", "with three seeds"),
        rows=tuple(
            (each.title, interval_text(each.rho), number_text(each.ceiling), f"{each.n:,}", f"{each.n_repeated:,}")
            for each in found
        ),
        is_folded=is_folded,
    )


def _effects(paired: Paired, real: Mapping[int, Floats]) -> Section:
    names = [*_titles(paired), *([_REAL] if real else [])]
    accuracies = [*paired.first, *([real[EPOCHS[0]]] if real else [])]
    keys = [effects_of_keys(paired.columns, values) for values in accuracies]
    levels = [effects_of_values(paired.columns, values) for values in accuracies]
    order = sorted(keys[0], key=lambda key: -max(_zero(of[key].value) for of in keys))
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    return Section(
        title="Main effects",
        blocks=(
            Figure(
                name="effects",
                caption="Share of the variance of ranks that each key explains alone, and the interaction of both "
                "rates, with 95 % intervals (1.96 bootstrap standard errors over configs).",
                alt="; ".join(f"{key}: {', '.join(number_text(of[key].value) for of in keys)}" for key in order),
                drawing=_draw(
                    [_Row(title=key, values=[of[key] for of in keys]) for key in order],
                    x_label="share of the variance of ranks",
                    names=names,
                ),
            ),
            Table(
                caption="Rank correlation of main effects: of the shares of the keys (which keys matter), and of the "
                "mean ranks of their values, continuous keys in quarters (which values are good)",
                columns=("tasks", "keys", "values"),
                rows=tuple(
                    (
                        f"{names[i]} and {names[j]}",
                        number_text(_rho([_zero(each.value) for each in keys[i].values()], keys[j])),
                        number_text(spearman([*levels[i].values()], [*levels[j].values()])),
                    )
                    for i, j in pairs
                ),
            ),
            Table(
                caption="Shares of the variance of ranks",
                columns=("key", *names),
                rows=tuple((key, *(interval_text(of[key]) for of in keys)) for key in order),
                is_folded=True,
            ),
        ),
    )


def _rho(shares: Sequence[float], others: Mapping[str, Interval]) -> float:
    return spearman(shares, [_zero(each.value) for each in others.values()])


def _zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _warm(paired: Paired) -> Section:
    names = _titles(paired)
    return Section(
        title="Warm starts",
        blocks=(
            Text(
                "The best configs of one task are trained on the other. The gain is the best accuracy among them, "
                "minus the mean best accuracy of as many random configs. The last column is the number of random "
                "configs that do as well on average. All values are recorded trainings."
            ),
            Table(
                caption="Validation accuracy at the last epoch",
                columns=("from", "to", "configs", "best (%)", "gain (points, 95 % interval)", "random configs"),
                rows=tuple(
                    (
                        names[each.source],
                        names[each.target],
                        str(each.k),
                        f"{each.best:.2f}",
                        interval_text(each.gain),
                        number_text(each.n_random, 0),
                    )
                    for each in warm_starts(paired)
                ),
                n_labels=2,
            ),
        ),
    )


def _of_releases(paired: Paired, released: Released) -> Section:
    title = "Fronts and optimizers"
    if released.missing:
        which = " and ".join(released.missing)
        text = f"Not yet: {which} {'has' if len(released.missing) == 1 else 'have'} no release."
        return Section(title=title, blocks=(Text(text),))
    names = _titles(paired)
    return Section(title=title, blocks=(*_fronts(names, released.fronts), *_orders(names, released.orders)))


def _fronts(names: Sequence[str], fronts: Sequence[FrontTransfer]) -> Iterator[Block]:
    if not fronts:
        yield Text("The releases have no front of the same metrics.")
        return
    yield Table(
        caption="Hypervolume of one task's front, evaluated on the other, as a share of that of the other's front, and "
        "of as many random configs",
        columns=("from", "to", "metrics", "configs", "front (share)", "random (share)"),
        rows=tuple(
            (
                names[each.source],
                names[each.target],
                " and ".join(each.metrics),
                str(each.n_configs),
                f"{each.share:.3f}",
                f"{each.random:.3f}",
            )
            for each in fronts
        ),
        n_labels=3,
    )


def _orders(names: Sequence[str], orders: OrderTransfer | None) -> Iterator[Block]:
    if orders is None:
        return
    n_seeds = orders.errors.shape[2]
    means = orders.errors.mean(axis=2)
    yield Text(
        f"Under the terms of the study `baselines`, Kendall's tau between the orders of the optimizers is "
        f"{interval_text(orders.tau)}, with a bootstrap interval over {n_seeds} seeds. Between two halves of the "
        f"seeds on one task, it is {number_text(orders.ceiling)}."
    )
    yield Table(
        caption=f"Validation error (%) at the end of the budget, mean over {n_seeds} seeds",
        columns=("optimizer", *names),
        rows=tuple(
            (ENTRIES[name].title, *(f"{value:.3f}" for value in of))
            for name, of in sorted(zip(OPTIMIZERS, means.T.tolist(), strict=True), key=lambda each: each[1][0])
        ),
    )


def _draw(rows: Sequence[_Row], *, x_label: str, names: Sequence[str] = ()) -> Drawing:
    """Draw values with intervals below one another, one colour and shape for each task, and ceilings as crosses."""
    n_values = max(len(row.values) for row in rows)
    drawing, axes = new_drawing(1.0 + _HEIGHT_OF_ROW * len(rows) * (1 + n_values) / 2 + 0.24 * len(names))
    for place, row in enumerate(rows):
        for i, each in enumerate(row.values):
            y = place + 0.24 * (i - (n_values - 1) / 2)
            axes.plot([each.low, each.high], [y, y], color=series(i), linewidth=2.0, solid_capstyle="butt")
            label = names[i] if names and not place else None
            axes.plot([each.value], [y], color=series(i), marker=marker(i), markersize=5, linestyle="", label=label)
        axes.plot([row.ceiling], [place], color=LIGHT["muted"], marker="x", markersize=6, linestyle="")
    axes.axvline(0, color=LIGHT["muted"], linewidth=1.0, linestyle=(0, (2, 2)))
    set_rows(axes, [row.title for row in rows])
    axes.set_xlabel(x_label)
    if names:
        drawing.legend(loc="outside lower center", ncols=1)
    return drawing
