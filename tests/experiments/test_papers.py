"""Results of papers beside ours: one rule for the sign, and a reason in every row."""

import math
import re
from pathlib import Path

import pytest

from experiments.report.writing import table
from experiments.science.__main__ import main
from experiments.science.papers import COLUMNS, PAGES, beside_lightgbm, beside_paper, compared, same_sign
from jahs.comparison.summaries import Interval
from tests.experiments.conftest import page_written_twice
from workshop.pages.document import Document, sections_of
from workshop.pages.markdown import table_text, to_markdown

MEASURED = """# What was measured: {}

Words of other figures (90 % interval 0.1 to 0.2).

Validation and test accuracy at the last epoch have a Kendall's tau of 0.943 (90 % interval 0.941 to 0.945), and of
0.398 (90 % interval 0.341 to 0.451) among the best tenth by validation accuracy (278 configs).
"""
NOISE = """# One training or the surrogate: noise of a task

The surrogate is about as far from that mean: 1.01 points (difference -0.02, 90 % interval -0.09 to +0.06).
"""
STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"


@pytest.mark.parametrize(
    ("ends", "paper", "same"),
    [
        ((0.1, 0.2, 0.3), 1.0, "yes"),
        ((0.1, 0.2, 0.3), -1.0, "no"),
        ((-0.3, -0.2, -0.1), -0.5, "yes"),
        ((-0.1, 0.2, 0.3), 1.0, "inconclusive"),
        ((0.1, -0.1, 0.3), 1.0, "inconclusive"),  # a value outside of the interval from its refits
        ((math.nan, 0.2, math.nan), 1.0, "inconclusive"),
        ((0.0, 0.0, 0.0), 1.0, "inconclusive"),
        ((0.1, 0.2, 0.3), 0.0, "–"),
    ],
)
def test_a_sign_is_that_of_the_estimate_and_both_ends(ends, paper, same):
    low, value, high = ends
    assert same_sign(Interval(low=low, value=value, high=high), paper) == same


def test_a_row_that_deviates_says_why():
    ours = Interval(value=0.2, low=0.1, high=0.3)
    same = compared("gain", "task", "+0.5", ours)
    other = compared("gain", "task", "-0.5", ours, sign=-1, why="not tested, probably short training")
    assert same == ("gain", "task", "+0.5", "0.20 (0.10 to 0.30)", "yes", "as in the paper")
    assert other[-2:] == ("no", "not tested, probably short training")
    table = beside_paper("NAS-Bench-101", [same, other], level=90)
    assert table.caption == "Figures of NAS-Bench-101 and ours, with 90 % intervals"
    assert len(COLUMNS) == len(same)


def test_a_table_shows_intervals_and_numbers_as_text():
    shown = table("Caption", ["task", "n", "ours"], [("a task", 3, Interval(value=0.2, low=0.1, high=0.3))])
    assert shown.columns == ("task", "n", "ours")
    assert shown.rows == (("a task", "3", "0.20 (0.10 to 0.30)"),)


def test_figures_are_beside_those_of_lightgbm_where_a_release_has_it():
    rows = [("gain", "a task", "0.5", "+0.20 (+0.10 to +0.30)", "yes", "as in the paper")]
    rows += [
        ("share", "a task", "35 %", "17.0 (7.1 to 26.9) % within 2", "–", "why"),
        ("gain", "other", "1", "2", "–", ""),
    ]
    others = [("gain", "a task", "0.5", "-0.10"), ("share", "a task", "35 %", "20.0 % within 2")]
    (shown,) = beside_lightgbm(rows, others)
    assert shown.rows == (
        ("gain", "a task", "+0.20 (+0.10 to +0.30)", "-0.10", "no"),
        ("share", "a task", "17.0 (7.1 to 26.9) % within 2", "20.0 % within 2", "–"),
    )
    assert list(beside_lightgbm(rows, [])) == []


@pytest.fixture
def pages(tmp_path):
    """A folder of pages; the rows of the first are of one paper, those of the others of another."""
    for i, (name, paper) in enumerate(zip(PAGES, ["NAS-Bench-301", *["NAS-Bench-101"] * len(PAGES)], strict=False)):
        ours = Interval(value=0.2, low=0.1, high=0.3)
        rows = [
            compared(f"gain | loss {i}", "task", "0.5", ours, sign=1.5 - i),
            ("share", "task", "1", "2", "–", "none"),
        ]
        shown = sections_of(["Beside", beside_paper(paper, rows, more=" over configs")])
        document = Document(title=name, subtitle="Words.", sections=shown, caveats=("Few configs.", f"Only {i % 2}."))
        (tmp_path / "pages" / name).mkdir(parents=True)
        (tmp_path / "pages" / name / "report.md").write_text(to_markdown(document), encoding="utf-8")
    for folder in ("data", "pages/noise"):
        (tmp_path / folder).mkdir()
    for task in ("fashion_mnist_mini", "cifar10_mini"):
        (tmp_path / "data" / f"{task}.md").write_text(MEASURED.format(task), encoding="utf-8")
    (tmp_path / "pages" / "noise" / "report.md").write_text(NOISE, encoding="utf-8")
    return tmp_path / "pages"


def test_all_rows_are_on_one_page_by_paper_with_links_and_counts(pages, tmp_path):
    files = page_written_twice(main, ["papers", "--pages", str(pages), "--docs"], tmp_path)
    page = files["report.md"].decode()
    n = len(PAGES)
    every = f"Of {2 * n + 3} figures of all papers, 2 have the same sign here, {n - 2} the opposite sign, 1 are"
    assert page.split("\n\n")[1] == f"{every} inconclusive, and {n + 2} have no sign to compare."
    assert "Of 5 figures of NAS-Bench-301, 1 have the same sign here, 0 the opposite sign" in page
    ours = "0.20 (0.10 to 0.30)"
    link = f"[{PAGES[0]}](../{PAGES[0]}/report.md)"
    row = f"| NAS-Bench-301 | gain \\| loss 0 | task | 0.5 | {ours} | yes | as in the paper | {link} |"
    assert row in page
    assert "last epoch | cifar10_mini | 0.852 | 0.943 (0.941 to 0.945) | – | ours differ in sizes" in page
    assert "[data](../../data/cifar10_mini.md) |" in page
    assert "| a task | 0.453 - 0.345 = +0.109 | -0.02 (-0.09 to +0.06) | inconclusive | fewer trainings" in page
    assert "[noise](../noise/report.md) |" in page
    papers = re.findall(r"^\| (NAS-Bench-\d+) \|", page, re.MULTILINE)
    assert papers == sorted(papers)
    assert [page.count(f"**Caveat:** {caveat}") for caveat in ("Few configs.", "Only 0.", "Only 1.")] == [1, 1, 1]


@pytest.mark.parametrize("fault", ["no table", "no page", "no folder"])
def test_a_page_without_figures_of_a_paper_is_refused(fault, pages, tmp_path, caplog):
    page = pages / "zoo" / "report.md"
    if fault == "no table":
        page.write_text("# zoo\n\nNo table.\n", encoding="utf-8")
    else:
        page.unlink()
    folder = tmp_path / "elsewhere" if fault == "no folder" else pages
    assert main(["papers", "--pages", str(folder), "--out", str(tmp_path / "page")]) == 2
    name = PAGES[0] if fault == "no folder" else "zoo"
    assert f"{folder / name / 'report.md'} has no figures beside a paper's; make science SCIENCE={name}" in caplog.text


def test_a_page_without_the_sentence_of_a_figure_is_refused(pages, tmp_path, caplog):
    page = pages / "noise" / "report.md"
    page.write_text(NOISE.replace("difference", "gap"), encoding="utf-8")
    assert main(["papers", "--pages", str(pages), "--out", str(tmp_path / "page")]) == 2
    assert f"{page} does not have the MAE of a table's entry minus the surrogate's (points); make pages" in caplog.text


def test_every_committed_page_with_the_table_is_read():
    head = table_text(COLUMNS, (), n_labels=len(COLUMNS))
    found = {page.parent.name for page in STUDIES.glob("*/report.md") if head in page.read_text(encoding="utf-8")}
    assert found == {*PAGES}


def test_the_page_of_all_rows_can_be_written_from_the_committed_pages(tmp_path):
    assert main(["papers", "--pages", str(STUDIES), "--docs", "--out", str(tmp_path / "page")]) == 0
    page = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    assert page.count("| τ of validation and test accuracy at the last epoch |") == 2
    assert page.count("| MAE of a table's entry minus the surrogate's (points) |") == 1
