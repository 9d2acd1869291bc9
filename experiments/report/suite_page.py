"""The page of a suite: its problems, the orders of optimisers on them, and how far these orders correlate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.report.build import write_document
from experiments.suite import ARMS, correlations
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import mean_ranks
from workshop.folders import commit_fact, versions_fact
from workshop.pages.document import Document, Figure, Section, Table, Text, answer
from workshop.pages.style import LIGHT, style

_RULE: Final = (
    "Candidates are views of both tasks, with one or several fidelities, one or several objectives, and two budgets. "
    "Strata are the combinations of task, one or several fidelities, one or several objectives, and budget; they take "
    "turns. Of its stratum, the candidate is chosen whose order of optimisers is least like those already chosen: its "
    "largest rank correlation is the smallest. Of equal ones, that with the clearest order is chosen. Orders are by "
    "mean rank over seeds. Nothing else decides."
)


def write_suite_page(
    target: Path,
    name: str,
    content: Mapping[str, Any],
    *,
    chosen: Sequence[int],
    results: Floats,
    similar: Floats,
) -> Path:
    """Write the page and return it. Any: JSON.

    Args:
        content: of its file.
        chosen: numbers of the chosen candidates.
        results: of all candidates, (n_candidates, n_arms, n_seeds).
        similar: rank correlations between the orders of all candidates.
    """
    own = similar[np.ix_(chosen, chosen)]
    closest = (own - 2 * np.eye(len(own))).max(axis=1)
    among_all = (similar - 2 * np.eye(len(similar))).max(axis=1)
    half = results.shape[2] // 2
    places = [correlations(np.stack([of[:, :half], of[:, half:]]))[0, 1] for of in results] if half else [np.nan]
    off_diagonal, all_pairs = (each[~np.eye(len(each), dtype=bool)] for each in (own, similar))
    ranks = [mean_ranks(results[i]) for i in chosen]
    rows = tuple(
        (
            each["id"],
            ", ".join(each["objectives"]),
            each["view"]["search"],
            ", ".join(each["view"]["fidelities"]),
            str(each["n_evaluations"]),
            f"{each['best']:.2f}",
            f"{each['random_search']:.2f} ± {each['random_search_se']:.2f}",
            *(f"{rank:.1f}" for rank in of_arm),
        )
        for each, of_arm in zip(content["problems"], ranks, strict=True)
    )
    seasons = ", ".join(f"{task} {version}" for task, (version, _) in sorted(content["releases"].items()))
    with mpl.rc_context(dict(style())):
        figure = Figure(
            name=f"{name}-correlations",
            caption="Spearman's rank correlation between the optimisers' orders on each pair of problems. Discs are "
            "positive, circles negative; larger is stronger. One order on all problems would fill every place.",
            alt=f"Matrix of rank correlations between the orders of optimisers on {len(chosen)} problems.",
            drawing=_drawing(own, [each["id"] for each in content["problems"]]),
        )
    said = (
        f"{name} has {len(chosen)} of {len(results)} candidates. Their orders of optimisers correlate by "
        f"{off_diagonal.mean():.2f} on average (all candidates: {all_pairs.mean():.2f}), and the most similar other "
        f"problem by {closest.mean():.2f} on average (all candidates: {among_all.mean():.2f})."
    )
    chance = (
        f"Two halves of the {results.shape[2]} seeds agree by {np.mean(places):.2f} on average over all candidates, so "
        "part of these differences is chance: the order on one problem needs more seeds than the choice did."
    )
    document = Document(
        title=f"The suite {name}",
        subtitle=f"Which problems a method should be tested on, and why these. Season: {seasons}.",
        sections=(
            Section(
                title="Orders of optimisers",
                blocks=(answer(said), figure, Text(_RULE), Text(chance)),
            ),
            Section(
                title="Problems",
                blocks=(
                    Table(
                        caption="Frozen problems. Best known and random search's result (mean ± standard error): mean "
                        "validation error (%), or missing share of the front's hypervolume (%). Mean ranks: "
                        "1 is best; evolution is regularized evolution, or NSGA-II with several objectives",
                        columns=(
                            *("problem", "objectives", "searched", "fidelities", "budget (full evaluations)"),
                            *("best known", "random search"),
                            *(f"rank: {arm.replace('_', ' ')}" for arm in ARMS),
                        ),
                        rows=rows,
                        n_labels=4,
                    ),
                ),
            ),
        ),
        facts=(
            ("command", "python -m experiments.suite --out jahs/seasons/suites --page docs/studies/suite"),
            commit_fact(),
            ("releases", ", ".join(f"{t}: {v} ({s[:16]})" for t, (v, s) in sorted(content["releases"].items()))),
            ("seeds", f"0 to {results.shape[2] - 1}"),
            versions_fact(),
        ),
    )
    return write_document(document, target, is_for_docs=True)


def _drawing(values: Floats, names: Sequence[str]) -> Drawing:
    """Return a matrix of discs; their area is the correlation, circles are negative."""
    n = len(values)
    drawing = Drawing(figsize=(8.0, 5.6))
    axes = drawing.add_axes((0.34, 0.02, 0.64, 0.92))
    for i in range(n):
        for j in range(n):
            value = float(values[i, j])
            face = LIGHT["s0"] if value > 0 else "none"
            area = 190 * abs(value)
            axes.scatter([j], [i], s=[area], facecolors=face, edgecolors=LIGHT["s0"], linewidths=0.8)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(n - 0.4, -0.6)
    axes.set_yticks(range(n), [f"{name}  {i}" for i, name in enumerate(names, 1)], fontsize=7.5)
    axes.set_xticks(range(n), [str(i) for i in range(1, n + 1)], fontsize=7.5)
    axes.xaxis.tick_top()
    for edge in axes.spines.values():
        edge.set_visible(False)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    return drawing
