"""What a user must know about a task is on every committed page about it, right after its finding."""

from __future__ import annotations

import html
import json
import re
from itertools import takewhile
from pathlib import Path

import pytest

from jahs.tasks.definitions import TASKS
from workshop.pages.markdown import caveat_text

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = {"landscape/cifar10_mini", "live", "noise", "schedules", "suite"}
"""Studies of CIFAR-10 alone, and the list of the suite's problems."""

CAVEAT = caveat_text(TASKS["fashion_mnist_mini"].caveat or "")
PAGES = ("docs/data/fashion_mnist_mini.md", "docs/releases/fashion_mnist_mini/quality.md")
STUDIES = {page.parent.relative_to(ROOT / "docs/studies").as_posix() for page in ROOT.glob("docs/studies/**/report.md")}
STUDY_PAGES = (
    *(f"docs/studies/{study}/report.md" for study in sorted(STUDIES - WITHOUT)),
    "docs/studies/tasks/README.md",
)


@pytest.mark.parametrize("name", ["cifar10_mini", "fashion_mnist_mini"])
def test_a_caveat_has_the_figures_of_the_recorded_trainings(name):
    figures = json.loads((ROOT / f"data/{name}/landscape.json").read_text())
    real, cells = figures["epochs"]["200"], figures["cells"]
    caveat = TASKS[name].caveat or ""
    rho = "{rho:.2f} on {n_cells} random cells (95 % interval {rho_low:.2f} to {rho_high:.2f})"
    better = "and {rho_better_half:.2f} in the better half"
    assert f"{rho} {better}".format(**cells["200"], n_cells=cells["n_cells"]) in caveat
    assert re.search(rf"(\(rho|JAHS-Bench-201:) {real['rho']:.2f}\b", caveat)
    assert re.search(rf"at full size (less so )?\({real['rho_full_size']:.2f}\)", caveat)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_its_caveats_after_its_finding(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    _, finding, *paragraphs = text.split("\n\n")
    caveats = list(takewhile(lambda paragraph: paragraph.startswith("**Caveat:**"), paragraphs))
    assert CAVEAT in caveats
    assert "Caveat" not in finding


@pytest.mark.parametrize("page", STUDY_PAGES)
def test_a_study_shows_its_finding_and_a_figure_above_its_caveats(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    above, caveat, _ = text.partition(caveat_text(TASKS["fashion_mnist_mini"].caveat or "", is_folded=True))
    assert caveat
    _, finding, next_paragraph, *_ = above.split("\n\n")
    assert "Caveat" not in finding
    assert next_paragraph.startswith("![") == any((ROOT / page).with_name("figures").glob("*.svg"))
    assert "\n## " not in above


def test_the_caveat_is_the_second_paragraph_of_the_card_in_html():
    page = (ROOT / "docs/releases/fashion_mnist_mini/quality.html").read_text(encoding="utf-8")
    _, second, *_ = re.findall(r"<p[^>]*>(.*?)</p>", page, re.DOTALL)
    assert re.sub(r"<[^>]+>", "", html.unescape(second)) == re.sub(r"\*\*|`", "", CAVEAT)


@pytest.mark.parametrize("page", ["README.md", "docs/package.md", "docs/studies/noise/report.md"])
def test_the_first_page_says_it_before_its_first_heading(page):
    opening = (ROOT / page).read_text(encoding="utf-8").split("\n## ")[0]
    assert caveat_text(TASKS["cifar10_mini"].caveat or "") in opening.replace("\n", " ")
