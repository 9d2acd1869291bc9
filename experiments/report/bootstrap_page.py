"""The page of the generalisation bootstrap: settings tuned on a part of the space, or on another task, and tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations
from typing import Final

from experiments.analysis.generalisation import ARMS, PART, Ends, Transferred, measure_ends, transferred
from experiments.analysis.subjects import Inputs, Subject
from experiments.report.findings import beside_paper
from jahs.comparison.summaries import interval_text, mean_interval, number_text
from workshop.pages.document import Document, Figure, Section, Table, Text
from workshop.pages.drawing import draw_estimates

N_SEEDS: Final = 50
N_TRIALS: Final = 150
_ORDER: Final = ("RS", "NRE", "RE")
_METHOD: Final = f"""The part of the space has {", ".join(f"{key}={value}" for key, value in PART.items())}, no
    operation on that edge, so 3,125 cells with all hyperparameters; the whole has 15,625. Both are at full size. Each
    arm proposes {N_TRIALS} configs with {N_SEEDS} seeds, without training noise. Regularized evolution has a population
    of 20, one mutation and tournaments of 5 unless named. Intervals are over seeds; the refits' values are those of the
    configs that were found on the released models."""

_Found = Mapping[str, Mapping[str, Ends]]


def bootstrap_page(subjects: Sequence[Subject], inputs: Inputs) -> Document:
    """Return the page; seeds are those of the searches."""
    del inputs
    found = {s.task.title: measure_ends(s, n_seeds=N_SEEDS, n_trials=N_TRIALS) for s in subjects}
    moves = _moves(found)
    orders = _orders(found)
    gained = "; ".join(f"{title} {ours}" for what, title, _, ours, *_ in orders if what.endswith("whole"))
    blocks = (beside_paper(orders), _table(moves), Text(_METHOD))
    n_best = sum(of.chosen == of.best for of in moves.values())
    said = "; ".join(f"{what}: {of.chosen}, {interval_text(of.loss)} points lost" for what, of in moves.items())
    return Document(
        title="Do tuned settings generalise?",
        subtitle=f"In {n_best} of {len(moves)} transfers, the setting of regularized evolution tuned on one problem is "
        f"the best one on the other, too ({said}). In NAS-Bench-101 settings keep their order, and RS < NRE < RE on "
        f"the part and on the whole; here on the whole: {gained}.",
        sections=(
            Section(title="Beside NAS-Bench-101", blocks=blocks),
            *(_section(subject, found[subject.task.title]) for subject in subjects),
        ),
    )


def _moves(found: _Found) -> dict[str, Transferred]:
    """Return the transfers: from the part to the whole of each task, and between the wholes of two tasks."""
    inside = {f"{title}, part to whole": transferred(of["part"].own, of["whole"].own) for title, of in found.items()}
    between = {
        f"{one} to {other}": transferred(found[one]["whole"].own, found[other]["whole"].own)
        for one, other in permutations(found, 2)
    }
    return inside | between


def _orders(found: _Found) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    names = list(ARMS)
    for title, spaces in found.items():
        for space, of in spaces.items():
            values = [of.own[names.index(name)] for name in _ORDER]
            gains = [mean_interval(b - a) for a, b in pairwise(values)]
            ours = ", ".join(
                f"{name} - {before}: {interval_text(gain)}"
                for (before, name), gain in zip(pairwise(_ORDER), gains, strict=True)
            )
            is_same, is_other = all(gain.low > 0 for gain in gains), any(gain.high < 0 for gain in gains)
            sign = "yes" if is_same else "no" if is_other else "not shown"
            reason = "" if is_same else "probably because nothing is noisy: ageing removes parents that were lucky"
            rows.append((f"gains in points, {space}", title, "RS < NRE < RE", ours, sign, reason or "as in the paper"))
    return rows


def _table(moves: Mapping[str, Transferred]) -> Table:
    return Table(
        caption="Settings of regularized evolution, chosen where they were tuned; points lost against the best where "
        "they are tested; Kendall's tau of the means of all arms on both problems",
        columns=("from and to", "chosen", "best there", "points lost", "tau"),
        rows=tuple(
            (what, of.chosen, of.best, interval_text(of.loss), number_text(of.tau, 2)) for what, of in moves.items()
        ),
        n_labels=3,
    )


def _section(subject: Subject, of: Mapping[str, Ends]) -> Section:
    estimates = {
        f"{arm}, {space}": mean_interval(ends.own[i]) for i, arm in enumerate(ARMS) for space, ends in of.items()
    }
    rows = tuple(
        (
            arm,
            *(interval_text(mean_interval(values[i])) for ends in of.values() for values in (ends.own, ends.on_refits)),
        )
        for i, arm in enumerate(ARMS)
    )
    columns = ("arm", *(f"{space}{of_refits}" for space in of for of_refits in ("", ", on the refits")))
    return Section(
        title=subject.task.title,
        blocks=(
            Figure(
                name=f"ends-{subject.task.name.replace('_', '-')}",
                caption=f"Validation accuracy after {N_TRIALS} evaluations, mean and 95 % interval over seeds, on the "
                "part of the space and on the whole.",
                alt="; ".join(f"{title} {one.value:.2f}" for title, one in estimates.items()),
                drawing=draw_estimates(
                    estimates, numbers=[*range(len(of))] * len(ARMS), x_label="validation accuracy (%)"
                ),
            ),
            Table(
                caption=f"Validation accuracy (%) after {N_TRIALS} evaluations, with 95 % intervals over seeds",
                columns=columns,
                rows=rows,
            ),
        ),
    )
