"""Results of papers beside ours: the table of a study's page, the rule for the sign, and the page of all rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from experiments.report.writing import table
from jahs.comparison.summaries import Interval
from jahs.errors import InvalidArgument
from workshop.folders import commit_fact
from workshop.pages.document import Document, Table, Text, sections_of
from workshop.pages.markdown import caveats_in, table_text
from workshop.resampling import interval_text

PAGES: Final = ("hyperparameters", "cells", "encodings", "bootstrap", "schedules", "zoo", "parameter_free", "repeats")
"""The studies whose pages compare a paper's figures with ours."""

COLUMNS: Final = ("quantity", "task", "paper", "ours", "same sign", "reason")

OVER_SEEDS: Final = " over seeds; all searches ran on the released models, whose errors the intervals do not cover"
"""The end of a caption of intervals of searches."""

NO_SIGN: Final = "–"  # the table cell of a figure without a sign to compare

_HEAD: Final = re.escape(table_text(COLUMNS, (), n_labels=len(COLUMNS)))
_TABLE: Final = re.compile(rf"^Figures of (\S+) and ours.*\n\n{_HEAD}\n((?:\|.*\n)+)", re.MULTILINE)


class _Sentence(NamedTuple):
    """A figure that a page states in a sentence, not in a table."""

    page: str  # path relative to the folder of the studies
    pattern: re.Pattern[str]  # its groups: title of the task, estimate, and both ends of its interval
    quantity: str
    paper: str
    sign: float  # of the paper's figure; 0 if it does not compare
    reason: str


_TITLE: Final = r"\A# [^\n]* (?:of|measured:) ([^\n]+)\n.*?"
_INTERVAL: Final = r"(\S+?),? \(?90 % interval (\S+) to (\S+)\)"
_TAU: Final = re.compile(f"{_TITLE}Validation and test accuracy at the last epoch .*? tau of {_INTERVAL}", re.DOTALL)
_DIFFERENCE: Final = re.compile(rf"{_TITLE}\(difference {_INTERVAL}", re.DOTALL)
_SENTENCES: Final = (
    *(
        _Sentence(
            f"../data/{task}.md",
            _TAU,
            "τ of validation and test accuracy at the last epoch",
            "0.852",
            0.0,
            "ours differ in sizes and hyperparameters, too, which raises it",
        )
        for task in ("fashion_mnist_mini", "cifar10_mini")
    ),
    _Sentence(
        "noise/report.md",
        _DIFFERENCE,
        "MAE of a table's entry minus the surrogate's (points)",
        "0.453 - 0.345 = +0.109",
        1.0,
        "fewer trainings: the paper's surrogate has the smaller error from about 21,500 on",
    ),
)

_METHOD: Final = """“Inconclusive”: the interval covers 0, or too little was measured. A dash: the paper sees no
    difference, the figures do not compare, or they are agreements of two measurements, which are always positive: there
    the reason says whether the interval holds a figure of the paper. Intervals are 95 % (NAS-Bench-301: 90 %);
    those of encodings and bootstrap cover seeds alone."""


def same_sign(ours: Interval, paper: float = 1.0) -> str:
    """Return whether an estimate and the ends of its interval have the paper's sign; `NO_SIGN` if its figure is 0."""
    signs = np.sign([ours.low, ours.value, ours.high]) * np.sign(paper)
    return NO_SIGN if not paper else "yes" if (signs > 0).all() else "no" if (signs < 0).all() else "inconclusive"


def compared(
    quantity: str,
    task: str,
    paper: str,
    ours: Interval,
    *,
    sign: float = 1.0,
    why: str = "not tested",
    show: Callable[[Interval], str] = interval_text,
) -> tuple[str, ...]:
    """Return a row of `beside_paper`; `why` is the reason where ours has another sign than the paper's figure."""
    same = same_sign(ours, sign)
    return quantity, task, paper, show(ours), same, "as in the paper" if same == "yes" else why


def beside_paper(paper: str, rows: Iterable[Sequence[str]], *, level: int = 95, more: str = "") -> Table:
    """Return the table of a paper's figures and ours; `more` ends its caption."""
    return table(f"Figures of {paper} and ours, with {level} % intervals{more}", COLUMNS, rows, n_labels=len(COLUMNS))


def beside_lightgbm(rows: Iterable[Sequence[str]], others: Iterable[Sequence[str]]) -> Iterator[Table]:
    """Yield a table that compares our figures on XGBoost and on LightGBM; nothing if no release has LightGBM models.

    Args:
        rows: of `beside_paper`, on the released models.
        others: the same on LightGBM's models, for the tasks that have them.
    """
    on_lightgbm = {(quantity, task): ours for quantity, task, _, ours, *_ in others}
    shown = []
    for quantity, task, _, ours, same, _ in rows:
        if (other := on_lightgbm.get((quantity, task))) is not None:
            one, two = (float(text.split()[0]) for text in (ours, other))
            agrees = NO_SIGN if same == NO_SIGN else "yes" if np.sign(one) == np.sign(two) else "no"
            shown.append((quantity, task, ours, other, agrees))
    if shown:
        caption = "Our figures on another model class: the released models, XGBoost, and LightGBM fitted to the same "
        yield table(caption + "trainings", ("quantity", "task", "XGBoost", "LightGBM", "same sign"), shown, n_labels=2)


def papers_page(folder: Path) -> Document:
    """Return the page of all rows of the pages in a folder, such as docs/studies."""
    texts, rows = [], []
    for name in PAGES:
        page = folder / name / "report.md"
        texts.append(page.read_text(encoding="utf-8") if page.is_file() else "")
        if not (tables := _TABLE.findall(texts[-1])):
            raise InvalidArgument(f"{page} has no figures beside a paper's; make science SCIENCE={name} writes it")
        for paper, lines in tables:
            for line in lines.splitlines():
                cells = (cell.replace(r"\|", "|") for cell in line[2:-2].split(" | "))
                rows.append((paper, *cells, f"[{name}](../{name}/report.md)"))
    rows += [("NAS-Bench-301", *_row(folder, sentence)) for sentence in _SENTENCES]
    rows.sort(key=lambda row: row[0])
    by_paper = (_counted(paper, of) for paper, of in groupby(rows, key=lambda row: row[0]))
    columns = ("published in", *COLUMNS, "page")
    return Document(
        title="Our results beside those of the papers",
        caveats=tuple(dict.fromkeys(caveat for text in texts for caveat in caveats_in(text))),
        subtitle=" ".join([_counted("all papers", rows), *by_paper]),
        sections=sections_of(["All figures", Text(_METHOD), table("", columns, rows, n_labels=len(columns))]),
        facts=(commit_fact(),),
    )


def _row(folder: Path, sentence: _Sentence) -> tuple[str, ...]:
    page = folder / sentence.page
    found = sentence.pattern.match(page.read_text(encoding="utf-8")) if page.is_file() else None
    if found is None:
        raise InvalidArgument(f"{page} does not have the {sentence.quantity}; make pages writes it")
    title, *texts = found.groups()
    ours = Interval(**dict(zip(("value", "low", "high"), map(float, texts), strict=True)))
    row = compared(
        sentence.quantity,
        title,
        sentence.paper,
        ours,
        sign=sentence.sign,
        why=sentence.reason,
        show=lambda _: "{} ({} to {})".format(*texts),
    )
    return *row, f"[{page.parent.name}](../{sentence.page})"


def _counted(source: str, rows: Iterable[tuple[str, ...]]) -> str:
    signs = Counter(row[5] for row in rows)
    return (
        f"Of {signs.total()} figures of {source}, {signs['yes']} have the same sign here, {signs['no']} the opposite "
        f"sign, {signs['inconclusive']} are inconclusive, and {signs[NO_SIGN]} have no sign to compare."
    )
