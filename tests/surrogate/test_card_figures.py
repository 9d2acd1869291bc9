"""The section about the top: a number where there is one, and else that it is not measured yet."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.files.sealed_json import sealed_text
from jahs.release import read_release
from surrogate.card.figures import figures_blocks, figures_of, read_figures, verdict_blocks, write_figures
from tests.releases import make_release
from workshop.pages.document import Document, sections_of
from workshop.pages.markdown import to_markdown

NONE = {"value": None, "interval": None, "n": 0, "missing": "3 configs; 80 are needed"}
FOUND: dict[str, Any] = {
    "answers_as": ["a" * 64],
    "release": "a" * 64,
    "ordinary": {
        "mae": NONE, "bias": NONE, "top_quarter": NONE,
        "uniform": {"value": 0.94, "interval": [0.92, 0.96], "n": 305, "missing": ""},
    },
    "final": {
        "mae": {"value": 1.1, "interval": [0.9, 1.3], "n": 12, "missing": ""},
        "bias": {"value": -0.5, "interval": [-0.7, -0.3], "n": 12, "missing": ""},
        "top_quarter": NONE,
        "n_configs": 120,
    },
    "search": NONE,
    "refits": {
        "overlap": {"value": 0.64, "interval": None, "n": 8, "missing": ""},
        "tau": {"value": 0.5, "interval": [0.4, 0.6], "n": 8, "missing": ""},
    },
    "shipped_refits": {
        "overlap": {"value": 0.6, "interval": None, "n": 8, "missing": ""},
        "tau": NONE,
        "difference": {"value": 0.81, "interval": [0.7, 0.9], "n": 8, "missing": ""},
    },
    "trained": {"one_run": {"value": 2.9, "interval": [2.1, 3.6], "n": 30, "missing": ""}, "ten_runs": NONE},
    "sizes": dict.fromkeys(("measured", "predicted", "difference"), NONE),
    "sources": [
        {"source": "best", "n_train": 9, "n_test": 8, "with": {"r2": 0.5, "tau": 0.4}, "without": None, "ceiling": 0.75}
    ],
    "final_counts": {"uniform": 60, "tpe": 60},
    "n_reads": 2,
}  # fmt: skip


def shown(figures: dict[str, Any] | None, blocks: Any = figures_blocks) -> str:
    return to_markdown(Document(title="t", subtitle="s", sections=sections_of(blocks(figures))), has_figures=False)


def verdict(figures: dict[str, Any] | None) -> str:
    return shown(figures, verdict_blocks)


def test_without_figures_nothing_has_a_number() -> None:
    text = shown(None)
    assert text.count("not measured yet") == 13
    assert "There is no final test set yet." in text
    assert "reached" not in text


def test_both_test_sets_are_side_by_side_and_the_final_one_is_judged() -> None:
    text = shown(FOUND)
    assert "MAE / seed sd | ≤ 1.2 | not measured yet | 1.100 (0.90 to 1.30; 12) | reached |" in text
    assert "bias / seed sd | within 0.35 of 0 | not measured yet | -0.500 (-0.70 to -0.30; 12) | not reached |" in text
    assert "overlap of two fits, each to 7/8 of the configs | ≥ 0.80 | 0.640 (8) | – | not reached |" in text
    assert "overlap of two of the refits that ship | ≥ 0.80 | 0.600 (8) | – | not reached |" in text
    whole = "uniform configs, last epoch: tau / noise ceiling of uniform configs"
    assert f"{whole} | ≥ 0.935 | 0.940 (0.92 to 0.96; 305) | – | reached |" in text
    assert "tau / noise ceiling, final test set: 3 configs; 80 are needed" in text
    assert "(60 uniform, 60 tpe)" in text
    assert "Its measurements were read 2 times so far." in text
    assert "| best | 9 | 8 | not measured yet | 0.500 | not measured yet | 0.400 | 0.750 |" in text


def test_the_verdict_says_what_can_be_told_apart_and_what_is_unknown() -> None:
    text = verdict(FOUND)
    assert "0.8 points (0.7 to 0.9) between two configs, judged by refits; 2.9 points (2.1 to 3.6) between two" in text
    assert "(not measured yet) between the final means of two optimisers" in text
    without = {key: value for key, value in FOUND.items() if key not in {"shipped_refits", "trained"}}
    assert verdict(None) == verdict(without) == verdict({**without, "trained": {"one_run": NONE}})
    assert "tell apart" not in verdict(None)


def test_fits_that_were_rejected_are_on_the_card() -> None:
    figures = copy.deepcopy(FOUND)
    figures["fits"] = {
        "columns": ["fit", "tau"], "rows": [["present", "0.800"]], "n_configs": 9, "most_lost": 0.005, "verdict": "none"
    }  # fmt: skip
    assert "| present | 0.800 |" in shown(figures)


def test_figures_are_of_one_release(tmp_path: Path) -> None:
    release = read_release(make_release(tmp_path / "release"))
    write_figures(tmp_path / "figures.json", {**FOUND, "answers_as": [release.sha256]})
    assert figures_of(tmp_path / "figures.json", release)["n_reads"] == 2
    write_figures(tmp_path / "figures.json", FOUND)
    with pytest.raises(ProtocolMismatch, match=f"of release {'a' * 64}, not of {release.sha256}"):
        figures_of(tmp_path / "figures.json", release)
    (tmp_path / "other.json").write_text(sealed_text({"a": 1}))
    with pytest.raises(CorruptFile, match="no figures of format 1"):
        read_figures(tmp_path / "other.json")
