"""How well short trainings predict full ones: annealed trainings, and the starts of full trainings.

    python -m experiments.schedules --docs --out docs/studies/schedules

A budget of some epochs has two meanings. In NAS-Bench-101 it is a training of its own, whose schedule ends there:
annealed. In JAHS-Bench-201, and in the releases of this project, it is the start of the full training: continued. Here
the same configs were trained both ways. A config counts if all its trainings finished; its first seed counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from experiments.analysis.schedules import (
    KINDS,
    MEASURES,
    SEARCHES,
    SearchCost,
    Trainings,
    correlations,
    read_trainings,
    search,
)
from experiments.report.writing import page_parser, run_page
from experiments.science.papers import beside_paper, compared
from jahs.comparison.summaries import Interval, interval_text
from jahs.files.runs import read_protocol
from jahs.tasks.definitions import caveats_of
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import draw_curves, interval_curve

_COMMAND: Final = "experiments.schedules"
_WHOLE: Final = Path("data/cifar10_mini/runs")
_SHORT: Final = tuple(Path(f"data/candidates/annealed{n}/runs") for n in (1, 3, 9))

_ABOUT: Final = (
    "**Continued**: validation accuracy after the first epochs of the full training, whose learning rate is still "
    "high there. **Annealed**: validation accuracy at the end of a training of its own whose cosine schedule ends "
    "after so many epochs; nothing else differs. Both are compared with the validation accuracy at the end of the "
    "full training. A continued training is the start of the very training that it is compared with; an annealed one "
    "has its own chance. Intervals are 95 % bootstrap intervals over configs, those of differences are paired. The "
    "best quarter and tenth are those of the full training; a fidelity group has one N, W and Resolution."
)
_ABOUT_SEARCHES: Final = (
    "Each search draws configs of this sample with replacement, trains a third of those of a rung with the next "
    "budget, and returns the config with the best validation accuracy after the full training. It is judged by this "
    "config's test accuracy. A continued training costs only the epochs that are added; an annealed one starts anew "
    "with each budget. **Random search needs** so many full trainings to find as good a config on average; the "
    "speed-up is that number divided by the cost; differences are paired. Every full training counts the same."
)


def schedules_page(of: Trainings, *, n_resamples: int, facts: tuple[tuple[str, str], ...] = ()) -> Document:
    """Return the page."""
    agreements, searched = correlations(of, n_resamples=n_resamples), search(of, n_resamples=n_resamples)
    third = of.budgets[-2]
    speed_ups = "; ".join(
        f"{name} {interval_text(searched[name, 'annealed'].speed_up)} and "
        f"{interval_text(searched[name, 'continued'].speed_up)} "
        f"(difference {interval_text(searched[name, 'annealed'].gain, sign='+')})"
        for name in SEARCHES
    )
    continued, annealed, gain = (agreements[third, kind]["Spearman"] for kind in (*KINDS, "gain"))
    return Document(
        title="Annealed budgets and continued trainings",
        caveats=caveats_of([of.task]),
        subtitle=f"On {of.task.title}, trainings that are annealed within {third} epochs order {len(of.test)} configs "
        f"like full trainings of {of.budgets[-1]} epochs, with a Spearman correlation of {interval_text(annealed)}; "
        f"the first {third} epochs of the full trainings reach {interval_text(continued)} (difference "
        f"{interval_text(gain, sign='+')}). Speed-ups over random search with annealed budgets, which are trained from "
        f"the start, and with continued ones: {speed_ups}.",
        sections=sections_of(_blocks(of, agreements, searched)),
        facts=facts,
    )


def _blocks(
    runs: Trainings,
    agreements: Mapping[tuple[int, str], Mapping[str, Interval]],
    searched: Mapping[tuple[str, str], SearchCost],
) -> Iterator[str | Block]:
    yield "Rank correlation with full training"
    shown = {kind: [agreements[budget, kind]["Spearman"] for budget in runs.budgets[:-1]] for kind in KINDS}
    yield Figure(
        name="spearman",
        caption="Spearman correlation between validation accuracy after some epochs and after full training, with "
        "95 % intervals.",
        alt="; ".join(f"{kind}: {', '.join(interval_text(rho) for rho in rhos)}" for kind, rhos in shown.items()),
        drawing=draw_curves(
            [interval_curve(kind, runs.budgets[:-1], rhos, number=i) for i, (kind, rhos) in enumerate(shown.items())],
            x_label="epochs",
            y_label="Spearman correlation",
            x_scale="log",
        ),
    )
    left_out = f" {runs.n_left_out} more have a training that diverged." if runs.n_left_out else ""
    yield Text(f"{_ABOUT} {len(runs.test)} uniform configs of all sizes have every training.{left_out}")
    yield Table(
        caption="Rank correlation between validation accuracy after some epochs and after full training",
        columns=("epochs", "measure", *KINDS, "annealed - continued"),
        rows=tuple(
            (
                str(budget),
                measure,
                *(interval_text(agreements[budget, kind][measure]) for kind in KINDS),
                interval_text(agreements[budget, "gain"][measure], sign="+"),
            )
            for budget in runs.budgets[:-1]
            for measure in MEASURES
        ),
        n_labels=2,
    )
    yield "Searches with both kinds of budgets"
    yield Text(_ABOUT_SEARCHES)
    yield Table(
        caption="Cost in full trainings, test accuracy (%) of the returned config, and speed-up over random search",
        columns=("search", "budgets", "cost", "test accuracy", "random search needs", "speed-up", "difference"),
        rows=tuple(
            (
                name,
                kind,
                f"{result.cost:.2f}",
                *(interval_text(interval) for interval in (result.reached, result.needed, result.speed_up)),
                interval_text(result.gain, sign="+") if kind == "annealed" else "–",
            )
            for (name, kind), result in searched.items()
        ),
        n_labels=2,
    )
    yield "Comparison with NAS-Bench-101"
    top = agreements[runs.budgets[-2], "annealed"]["Spearman, best tenth"]
    quantity = "Spearman correlation of a third of the epochs with all, annealed, best tenth"
    paper = "0.365 (36 of 108 epochs, supplement, figure 7)"
    why = "too few configs in the best tenth for a narrow interval; the cause was not tested"
    yield beside_paper("NAS-Bench-101", [compared(quantity, runs.task.title, paper, top, why=why)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Write the page of schedules: how well annealed and continued short trainings predict full ones."
    parser = page_parser(_COMMAND, about)
    parser.add_argument("--whole", type=Path, default=_WHOLE, help="folder of full trainings (default: %(default)s)")
    parser.add_argument("--short", type=Path, nargs="+", default=_SHORT, help="folders of annealed trainings")
    parser.add_argument("--resamples", type=int, default=1000, help="bootstrap resamples (default: %(default)s)")
    given = parser.parse_args(argv)

    def make() -> Document:
        protocols = ", ".join(read_protocol(folder).digest for folder in (given.whole, *given.short))
        facts = (commit_fact(), ("protocols", protocols), versions_fact())
        return schedules_page(read_trainings(given.whole, given.short), n_resamples=given.resamples, facts=facts)

    flags = ("--whole", str(given.whole), "--short", *map(str, given.short), "--resamples", str(given.resamples))
    return run_page(_COMMAND, given, make, *flags)


if __name__ == "__main__":
    sys.exit(main())
