"""The page that compares model families on the tasks of several result files of `surrogate.zoo`.

Over 300 lines: it is one page from top to bottom, in the order in which a reader sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import Interval, interval_text, number_text
from jahs.tasks.definitions import Task, caveats_of
from surrogate.judging.agreement import agreement
from surrogate.models.zoo import FAMILIES, METRIC
from surrogate.zoo import N_FOLDS
from workshop.pages.document import Block, Document, Figure, Table, Text, sections_of
from workshop.pages.drawing import new_drawing
from workshop.pages.style import LIGHT, marker, series
from workshop.ranks import spearman
from workshop.resampling import bootstrap_estimates

PAPER: Final[Mapping[str, tuple[float, float]]] = {
    "lightgbm": (0.892, 0.816),
    "xgboost": (0.832, 0.817),
    "gin": (0.832, 0.778),
    "ngboost": (0.810, 0.759),
    "nu_svr": (0.709, 0.677),
    "random_forest": (0.679, 0.683),
    "svr": (0.675, 0.660),
}
"""Test R2 and sparse tau of NAS-Bench-301, table 3, in its order."""

_PAPER_FINDS: Final = (
    "NAS-Bench-301's best are LightGBM with R² 0.892 and sparse τ 0.816, and XGBoost with 0.832 and 0.817."
)
_SCORES: Final = ("r2", "tau", "sparse_tau")
_SHOWN: Final = ("R²", "τ", "sparse τ")
_SPARSE: Final = _SCORES.index("sparse_tau")
_BASE: Final = "xgboost"
_CUTS: Final = ("all", "full size", "best tenth")
_FULL_SIZE: Final = 26  # number of the fidelity group
_LEVEL: Final = 0.9
_FEWEST: Final = 8

_Answers = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """The scores of models on one cut of a part; NaN where a score is not defined.

    Attributes:
        n: configs.
        scores: R2, tau and sparse tau of each model, with 90 % intervals over configs.
        differences: those to XGBoost.
    """

    n: int
    scores: Mapping[str, Sequence[Interval]]
    differences: Mapping[str, Sequence[Interval]]

    @property
    def sparse(self) -> dict[str, Interval]:
        """The sparse tau of each model."""
        return {name: of[_SPARSE] for name, of in self.scores.items()}


def score_zoo(
    part: Mapping[str, Any],  # Any: JSON
    answers: _Answers,
    cut: str,
    *,
    n_resamples: int,
) -> Scored | None:
    """Score answers for one part of a result file on a cut; None where it has fewer than eight configs.

    Configs are resampled for all models together, so differences are paired.
    """
    y = np.array(part["measured"])
    chosen = {
        "all": np.ones(len(y), np.bool_),
        "full size": np.array(part["group"]) == _FULL_SIZE,
        "best tenth": y >= np.quantile(y, 0.9),
    }[cut]
    if (n := int(chosen.sum())) < _FEWEST:
        return None
    y, predicted = y[chosen], np.array(list(answers.values()))[:, chosen]
    base = list(answers).index(_BASE)

    def with_differences(at: NDArray[np.int64]) -> Floats:
        found = [agreement(METRIC, y[at], one[at]) for one in predicted]
        values = np.array([[one[name] for name in _SCORES] for one in found], np.float64)  # None becomes NaN
        return np.concatenate([values, values - values[base]])

    found = bootstrap_estimates(with_differences, n, level=_LEVEL, n_resamples=n_resamples)
    each = [found[i : i + len(_SCORES)] for i in range(0, len(found), len(_SCORES))]
    scores, differences = each[: len(answers)], each[len(answers) :]
    return Scored(
        n=n,
        scores=dict(zip(answers, scores, strict=True)),
        differences=dict(zip(answers, differences, strict=True)),
    )


def zoo_document(
    found: Sequence[tuple[Task, Mapping[str, Any]]],  # Any: JSON
    *,
    n_resamples: int,
    facts: Sequence[tuple[str, str]],
) -> Document:
    """Return the page of the result files of several tasks."""
    tests = [
        {cut: score_zoo(of["parts"]["test"], _test_answers(of), cut, n_resamples=n_resamples) for cut in _CUTS}
        for _, of in found
    ]
    sections = sections_of(_blocks(found, tests))
    return Document(
        title=f"Model families for {METRIC}",
        caveats=caveats_of([of_task for of_task, _ in found]),
        subtitle=" ".join([*(_finding(*one, test) for one, test in zip(found, tests, strict=True)), _PAPER_FINDS]),
        sections=sections,
        facts=tuple(facts),
    )


def _test_answers(of: Mapping[str, Any]) -> dict[str, Sequence[float]]:  # Any: JSON
    """Return the test answers of every family and, as "<family> x 10", of ensembles."""
    single = {name: one["predicted"]["test"] for name, one in of["families"].items()}
    return single | {_ensemble(name): one["predicted"]["test"] for name, one in of["ensembles"].items()}


def _ensemble(name: str) -> str:
    return f"{name} x {N_FOLDS}"


def _title(name: str) -> str:
    family, *several = name.split(" x ")
    return f"{FAMILIES[family].title}{', ensemble' if several else ''}"


def _finding(of_task: Task, of: Mapping[str, Any], test: Mapping[str, Scored | None]) -> str:  # Any: JSON
    scored = test["all"]
    if scored is None:
        return f"{of_task.title} has too few test configs."
    single = [name for name in scored.scores if name in of["families"]]
    best = max(single, key=lambda name: scored.sparse[name].value)
    worse = [name for name in single if scored.differences[name][_SPARSE].high < 0]
    better = [name for name in single if scored.differences[name][_SPARSE].low > 0]
    verdict = (f"{_listed(better)} rank better than XGBoost" if better else "no family ranks better than XGBoost") + (
        f", and {_listed(worse)} rank worse" if worse else ", and none worse"
    )
    return (
        f"On {of_task.title}, {verdict}, by 90 % intervals of the difference in sparse τ on {scored.n} test configs; "
        f"the best is {_title(best)} with R² {interval_text(scored.scores[best][0], 3)} and sparse τ "
        f"{interval_text(scored.sparse[best], 3)}."
    )


def _listed(names: Sequence[str]) -> str:
    titles = [_title(name) for name in names]
    return " and ".join([", ".join(titles[:-1]), titles[-1]] if len(titles) > 1 else titles)


def _blocks(
    found: Sequence[tuple[Task, Mapping[str, Any]]],  # Any: JSON
    tests: Sequence[Mapping[str, Scored | None]],
) -> Iterator[str | Block]:
    yield "Beside NAS-Bench-301"
    known = [
        (of_task, of, test["all"]) for (of_task, of), test in zip(found, tests, strict=True) if test["all"] is not None
    ]
    yield _figure([(of_task, scored) for of_task, _, scored in known])
    yield _beside(known)
    for of_task, of, scored in known:
        single = [name for name in PAPER if name in of["families"]]
        ours = [scored.sparse[name].value for name in single]
        yield Text(
            f"Spearman's rank correlation of the families' sparse τ with the paper's is "
            f"{spearman([PAPER[name][1] for name in single], ours):.2f} on {of_task.title} ({len(single)} families)."
        )
    for of_task, of in found:
        if missing := [name for name in PAPER if name not in of["families"]]:
            yield Text(
                f"Not fitted yet on {of_task.title}: {_listed(missing)}; `make zoo` goes on where it was stopped."
            )
    yield Text(
        "The paper's data are about 60,000 architectures, which differ in their cells alone. Here configs also differ "
        "in hyperparameters and sizes, and there are far fewer. All families but the graph network read the features "
        "of the released model, which were chosen for XGBoost; the graph network sees the cell as a graph and the "
        "other keys as they are. Fits use the last epoch alone, so that they take seconds; the released model is "
        "fitted to all epochs. Settings were drawn by NePS's random search from the paper's spaces (NGBoost: those of "
        "its authors' code), with at most 1,000 trees."
    )
    for (of_task, of), test in zip(found, tests, strict=True):
        yield f"Scores on {of_task.title}"
        fitted = of["n_fitted"]
        yield Text(
            f"{fitted['rows']:,} trainings of {fitted['configs']:,} configs were fitted. "
            f"{of['evaluations']} settings a family, and its default, were compared by τ on the validation part; the "
            f"test part chose nothing. An ensemble is the mean of {N_FOLDS} models, each without one fold of training "
            "and validation part; the three families with the highest validation τ have one."
        )
        for cut in _CUTS:
            if (on_cut := test[cut]) is not None:
                yield _scores_table(on_cut, of, cut)
        yield _times_table(of)
        yield _settings_table(of)


def _beside(known: Sequence[tuple[Task, Mapping[str, Any], Scored]]) -> Table:  # Any: JSON
    """Return the differences to XGBoost, the paper's and ours, and whether they have the same sign."""
    rows = []
    for name in PAPER:
        if name == _BASE:
            continue
        for score, (shown, k) in {0: ("R²", 0), _SPARSE: ("sparse τ", 1)}.items():
            paper = PAPER[name][k] - PAPER[_BASE][k]
            cells = []
            for _, of, scored in known:
                if name not in of["families"]:
                    cells += ["–", "–"]
                    continue
                ours = scored.differences[name][score]
                is_zero = ours.low <= 0 <= ours.high or abs(paper) < 0.005
                same = "–" if is_zero else "yes" if (ours.value > 0) == (paper > 0) else "no"
                cells += [interval_text(ours, 3, sign="+"), same]
            rows.append((_title(name), shown, f"{PAPER[name][k]:.3f}", f"{paper:+.3f}", *cells))
    heads = [head for of_task, _, _ in known for head in (f"{of_task.title} (90 % interval)", "same sign")]
    return Table(
        caption=f"Test score minus that of XGBoost. The paper's XGBoost has R² {PAPER[_BASE][0]} and sparse τ "
        f"{PAPER[_BASE][1]}. A dash: the interval covers 0, or the paper sees no difference.",
        columns=("family", "score", "paper", "paper, to XGBoost", *heads),
        rows=tuple(rows),
        n_labels=2,
    )


def _scores_table(scored: Scored, of: Mapping[str, Any], cut: str) -> Table:  # Any: JSON
    rows = []
    for name in sorted(scored.scores, key=lambda name: -scored.sparse[name].value):
        apart = scored.differences[name][_SPARSE]
        rows.append(
            (
                _title(name),
                number_text(of["families"].get(name, {}).get("tau"), 3),
                *(interval_text(score, 3) for score in scored.scores[name]),
                "–" if name == _BASE else f"{apart.low:+.3f} to {apart.high:+.3f}",
            )
        )
    return Table(
        caption=f"{cut.capitalize()}: {scored.n} test configs at the last epoch, with 90 % intervals over configs",
        columns=("family", "validation τ, all", *_SHOWN, "sparse τ minus XGBoost's"),
        rows=tuple(rows),
    )


def _times_table(of: Mapping[str, Any]) -> Table:  # Any: JSON
    timed = {**of["families"], **{_ensemble(name): one for name, one in of["ensembles"].items()}}
    return Table(
        caption="CPU times on one core, features included",
        columns=("family", "fit (s)", "one config (ms)", "each of 1,000 configs (µs)"),
        rows=tuple(
            (_title(name), f"{one['fit_s']:.1f}", f"{one['one_ms']:.2f}", f"{one['each_us']:.1f}")
            for name, one in timed.items()
        ),
    )


def _settings_table(of: Mapping[str, Any]) -> Table:  # Any: JSON
    def shown(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return Table(
        caption="The settings that were chosen, and the validation τ of the default",
        columns=("family", "settings", "default's τ"),
        rows=tuple(
            (
                _title(name),
                ", ".join(f"{key}={shown(value)}" for key, value in one["point"].items()),
                number_text(one["evaluations"][0]["tau"], 3),
            )
            for name, one in of["families"].items()
        ),
        n_labels=2,
        is_folded=True,
    )


def _figure(known: Sequence[tuple[Task, Scored]]) -> Figure:
    """Return the sparse tau of every family: ours with intervals, and the paper's."""
    drawing: Drawing
    drawing, axes = new_drawing(1.2 + 0.5 * len(PAPER))
    places = {name: i for i, name in enumerate(PAPER)}
    axes.scatter(
        [PAPER[name][1] for name in PAPER], list(places.values()), color=LIGHT["ink"], marker="D", s=26, zorder=3,
        label="NAS-Bench-301",
    )  # fmt: skip
    for k, (of_task, scored) in enumerate(known, start=1):
        shown = {name: scored.sparse[name] for name in PAPER if name in scored.scores}
        y = [places[name] + 0.18 * k for name in shown]
        for place, each in zip(y, shown.values(), strict=True):
            axes.plot([each.low, each.high], [place, place], color=series(k), linewidth=1.6)
        values = [each.value for each in shown.values()]
        axes.scatter(values, y, color=series(k), marker=marker(k), s=26, zorder=3, label=of_task.title)
    axes.set_yticks(list(places.values()), [_title(name) for name in PAPER])
    axes.set_ylim(len(PAPER) - 0.3, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("sparse τ on the test part")
    drawing.legend(loc="outside lower center", ncols=2)
    best = ", ".join(
        f"{of_task.title} {max(each.value for each in scored.sparse.values()):.2f}" for of_task, scored in known
    )
    return Figure(
        name="families",
        caption="Sparse τ on the test part, with 90 % intervals over configs; diamonds: NAS-Bench-301, table 3. The "
        "levels of different data do not compare, the orders do.",
        alt=f"Sparse τ of {len(PAPER)} families on each task; the highest are {best}",
        drawing=drawing,
    )
