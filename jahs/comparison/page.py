"""The result of a comparison and its page: Markdown, JSON, and one HTML file that opens from disk."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Final, get_args

from jahs.comparison.leaderboard import Board, Refusal, board_facts, differences_text, known_facts, seeds_text
from jahs.comparison.ranks import Pair, least_seeds
from jahs.comparison.standings import REFERENCE, Standing, are_tested
from jahs.comparison.summaries import Interval, digits_for, estimate_text, number_text, p_text
from jahs.comparison.svg import Line, LineStyle, Panel, draw_chart
from jahs.comparison.terms import StudyTerms
from jahs.files.atomic import write_beside

_SHOWN_FROM: Final = 0.05  # share of the budget; earlier errors are so large that they hide the rest
_CSS: Final = """
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem}
h1,p,ul{max-width:60rem}
table{border-collapse:collapse;display:block;overflow-x:auto;font-size:14px}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8c959f66}td{white-space:nowrap}.own{font-weight:600}
svg{max-width:100%;height:auto}
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """The result of a comparison."""

    out: Path  # the folder with the page, index.html
    names: tuple[str, ...]  # optimisers that are compared with the baselines
    terms: StudyTerms
    season: str | None  # season of the shipped results; None: all logs are the user's
    standings: tuple[Standing, ...]  # optimisers under the terms of the study, the best first
    pairs: tuple[tuple[str, str, Pair], ...]  # a compared optimiser, another one, and the test of their results
    boards: tuple[Board, ...]  # the first has the terms of the study
    refused: tuple[Refusal, ...]  # logs that are not counted

    def facts(self) -> dict[str, object]:
        """Return standings, pairs, boards and refused logs as JSON, with null for NaN."""
        return {
            "standings": [known_facts(each) for each in self.standings],
            "pairs": [{**known_facts(pair), "one": one, "other": other} for one, other, pair in self.pairs],
            "boards": [board_facts(board) for board in self.boards],
            "refused": [asdict(each) for each in self.refused],
        }


def write_page(page: Comparison) -> None:
    """Write report.md, curves.svg, index.html and leaderboard.json, each completely or not at all."""
    page.out.mkdir(parents=True, exist_ok=True)
    chart = _chart(page)
    title = f"{', '.join(page.names) or 'Logs'} and others under the terms of {page.terms.study}"
    markdown = [f"# {_markdown(title)}"]
    html = [f"<h1>{escape(title)}</h1>"]

    def paragraph(text: str) -> None:
        markdown.append(_markdown(text))
        html.append(f"<p>{escape(text)}</p>")

    def section(title: str, items: Sequence[str]) -> None:
        if items:
            markdown.extend([f"## {title}", "\n".join(f"- {_markdown(item)}" for item in items)])
            html.append(f"<h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>")

    for name in page.names:
        paragraph(_finding(name, page))
    if warning := few_seeds(page):
        paragraph(warning)
    markdown.append(f"![{_y_label(page.terms)} over simulated time, one curve for each optimiser](curves.svg)")
    html.append(chart)

    def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, own: Collection[int] = ()) -> None:
        lines = (head, ["---"] * len(head), *rows)
        markdown.append("\n".join(f"| {' | '.join(map(_markdown, cells))} |" for cells in lines))
        body = "".join(_row("td", row, is_own=place in own) for place, row in enumerate(rows))
        html.append(f"<table><thead>{_row('th', head)}</thead><tbody>{body}</tbody></table>")

    places = {each.name: place for place, each in enumerate(page.standings)}
    rows = [standing_row(place, each) for place, each in enumerate(page.standings, 1)]
    table(HEAD, rows, own=[places[name] for name in page.names])
    paragraph(_legend(page))
    if page.pairs:
        seeds = {each.name: set(each.seeds) for each in page.standings}
        pairs = sorted(page.pairs, key=lambda each: (places[each[0]], places[each[1]]))
        table(_PAIR_HEAD, [(*_pair_row(*each), str(len(seeds[each[0]] & seeds[each[1]]))) for each in pairs])
        paragraph("Differences are paired over the seeds that both have; below zero, the first is better.")
    section("Logs under other terms", [_board_item(board) for board in page.boards[1:]])
    section("Logs that are not counted", [f"{each.path}: {each.fault}" for each in page.refused])
    section("Terms", _terms(page.terms))
    for name, text in {
        "curves.svg": chart,
        "report.md": "\n\n".join(markdown) + "\n",
        "index.html": f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_CSS}</style><body>\n' + "\n".join(html) + "\n",
        "leaderboard.json": json.dumps(page.facts(), indent=2, sort_keys=True) + "\n",
    }.items():
        with write_beside(page.out / name) as beside:
            beside.write_text(text, encoding="utf-8")


HEAD: Final = (
    *("", "optimiser", "result (%)", "median (%)", "area under regret (%)"),
    *("validation error by the refits (%)", "test error (%)"),
    *("mean rank", f"minus {REFERENCE} (points) [95 % interval]", "better in", "p (Holm)", "seeds"),
)
"""The head of the table whose rows `standing_row` returns."""


def standing_row(place: int, of: Standing) -> tuple[str, ...]:
    """Return an optimiser's cells."""
    return (
        str(place),
        of.name,
        estimate_text(of.result, of.result_se),
        number_text(of.median, digits_for(of.result_se)),
        number_text(of.area),
        estimate_text(of.refit_error, of.refit_se),
        estimate_text(of.test_error, of.test_se),
        number_text(of.rank),
        _interval_text(of.difference),
        "–" if math.isnan(of.superiority) else f"{100 * of.superiority:.0f} % of seeds",
        p_text(of.p_holm),
        seeds_text(len(of.seeds), has_chosen_seeds=of.has_chosen_seeds),
    )


_PAIR_HEAD: Final = ("optimiser", "other", "median difference (points)", "better in", "p", "p (Holm)", "seeds")


def _pair_row(one: str, other: str, pair: Pair) -> tuple[str, ...]:
    share = f"{100 * pair.superiority:.0f} % of seeds"
    return one, other, number_text(pair.difference, sign="+"), share, *(p_text(p) for p in (pair.p, pair.p_holm))


def _interval_text(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    if math.isnan(interval.low):
        return f"{interval.value:+.2f}"
    digits = digits_for((interval.high - interval.low) / 4)  # approximately the standard error
    return f"{interval.value:+.{digits}f} [{interval.low:+.{digits}f}, {interval.high:+.{digits}f}]"


def _y_label(terms: StudyTerms) -> str:
    names = terms.rules.objectives
    return "Mean validation error (%)" if len(names) == 1 else f"Missing hypervolume of {', '.join(names)} (%)"


def _legend(page: Comparison) -> str:
    terms = page.terms
    what = "mean validation error of the final incumbent"
    if len(terms.rules.objectives) > 1:
        what = "share of the hypervolume of the release's front that the means of all trials miss at the end"
    by_refits = (
        "The refits, models that no search saw, score the config with the best validation error; use their error to "
        "compare optimisers, not as an absolute error. "
    ) * any(math.isfinite(each.refit_error) for each in page.standings)
    n_common = len(set.intersection(*(set(each.seeds) for each in page.standings)))
    return (
        f"Result: {what}, mean ± standard error and median over seeds; lower is better. Optimisers see training noise; "
        "the configs they chose are scored by their means. The area under the regret curve is normalised (0: the "
        f"best known result from the start; 100: never better than chance). {by_refits}Ranks are over the seeds that "
        f"all optimisers have ({n_common}). Differences from {REFERENCE} are paired over seeds, with Student's 95 % "
        "intervals; below zero is better. p-values are from Wilcoxon's signed-rank test, with Holm's correction over "
        "all tests on this page. Every trial of every log was queried again from the release."
    ) + (f" All other results come with the package (season {page.season})." if page.season else "")


def _finding(name: str, page: Comparison) -> str:
    place, standing = next((place, each) for place, each in enumerate(page.standings, 1) if each.name == name)
    what = "mean validation error" if len(page.terms.rules.objectives) == 1 else "missing hypervolume"
    text = f"{name} has a {what} of {estimate_text(standing.result, standing.result_se)} % at the end of the budget"
    if math.isnan(standing.result):
        text = f"{name}: {standing.n_without} of {len(standing.seeds)} runs finished no trial at the full fidelity"
    elif standing.difference is not None:
        pair = next(pair for one, other, pair in page.pairs if (one, other) == (name, REFERENCE))
        text += f", {_verdict(pair, standing.difference.value)} ({_interval_text(standing.difference)} points)"
    last = "; it ranks after the others because its seeds are not 0, 1, 2 and so on" * standing.has_chosen_seeds
    return f"{text}; rank {place} of {len(page.standings)}{last}.{_against_others(name, page)}"


def _against_others(name: str, page: Comparison) -> str:
    """Return a sentence on the significant differences from all but random search; empty if there is no other one."""
    tests = [each for each in page.pairs if name in each[:2] and REFERENCE not in each[:2]]
    names: dict[bool, list[str]] = {True: [], False: []}  # by whether the optimiser is better than them
    for one, other, pair in tests:
        if pair.is_significant:
            is_better = (pair.rank_sum < 0) == (name == one)
            names[is_better].append(other if name == one else one)
    if not tests:
        return ""
    if not any(names.values()):
        return " No difference from the others is significant."
    words = {True: "better", False: "worse"}
    parts = [f"significantly {words[is_better]} than {', '.join(of)}" for is_better, of in names.items() if of]
    return f" Of the others, it is {' and '.join(parts)}."


def _verdict(pair: Pair, mean: float) -> str:
    """Return the direction of the rank test, if it is significant, and whether the mean difference contradicts it."""
    if not pair.is_significant:
        return f"not significantly different from {REFERENCE}"
    direction, opposite = ("better", "worse") if pair.rank_sum < 0 else ("worse", "better")
    text = f"{direction} than {REFERENCE}"
    return f"{text} by the signed-rank test, although its mean is {opposite}" if mean * pair.rank_sum < 0 else text


def few_seeds(page: Comparison) -> str:
    """Return a sentence if the optimisers have too few seeds for any significant difference, else an empty text."""
    pairs = combinations(page.standings, 2)
    tested = [(one, other) for one, other in pairs if are_tested(one.name, other.name, first=page.names)]
    n_seeds = max((len(set(one.seeds) & set(other.seeds)) for one, other in tested), default=0)
    needed = least_seeds(len(tested)) if tested else 0
    if n_seeds >= needed:
        return ""
    return (
        f"With {n_seeds} seed{'s' * (n_seeds != 1)}, no pair of {len(page.standings)} optimisers can differ "
        f"significantly: run {needed} or more."
    )


def _chart(page: Comparison) -> str:
    curves = {
        each.name: [
            (100 * share, value) for share, value in each.curve if share >= _SHOWN_FROM and not math.isnan(value)
        ]
        for each in page.standings
    }
    drawn = [name for name in curves if curves[name]]
    order = sorted(drawn, key=lambda name: (name not in page.names, name != REFERENCE))
    styles: Sequence[LineStyle] = get_args(LineStyle)[::-1]
    last = len(styles) - 1  # the place of the faint style, which all further optimisers share
    labels = dict(enumerate(order[: last + 1]))
    if len(order) > len(styles):
        labels[last] = f"{len(order) - last} others"
    lines = [
        Line(points=curves[name], style=styles[min(place, last)], label=labels.get(place, ""))
        for place, name in enumerate(order)
    ]
    if not lines:
        return ""
    x_label = f"simulated time (% of the budget, {page.terms.budget_s:,.0f} s)"
    panel = Panel(title="Mean over seeds", x_label=x_label, y_label=_y_label(page.terms), lines=lines, legend="top")
    return draw_chart(f"{_y_label(page.terms)} so far", [panel])


def _board_item(board: Board) -> str:
    names = ", ".join(f"{line.name} ({estimate_text(line.valid_error, line.valid_se)})" for line in board.lines)
    return f"{names}: {differences_text(board)}"


def _terms(terms: StudyTerms) -> list[str]:
    rules, space = terms.rules, terms.view.space
    return [
        f"study {terms.study}, task {terms.bench.task.name}, release {terms.release[:16]}",
        f"{len(space.searched)} keys searched, fidelities {', '.join(terms.view.fidelities)}",
        f"budget {terms.budget_s:.6g} simulated seconds ({rules.n_evaluations} mean full evaluations)",
        f"{rules.workers} simulated worker{'s' if rules.workers > 1 else ''}",
        "training noise of the run's seed" if rules.noise == "seeded" else "means over trainings",
    ]


def _markdown(text: str) -> str:
    """Return text on one line, in which names that logs give cannot be markup or end a cell."""
    return " ".join(re.sub(r"[<>|\\]", r"\\\g<0>", text).split())


def _row(tag: str, cells: Sequence[str], *, is_own: bool = False) -> str:
    opening = '<tr class="own">' if is_own else "<tr>"
    return f"{opening}{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
