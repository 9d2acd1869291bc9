"""Make the report of a study: read, choose, draw, write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import matplotlib as mpl

from experiments.report.baselines import baselines_sections
from experiments.report.document import Document, Section, Table, Text
from experiments.report.drawing import style
from experiments.report.fidelity import fidelity_sections
from experiments.report.html import svg_text, to_html
from experiments.report.joint import joint_sections
from experiments.report.markdown import to_markdown
from experiments.report.multiobjective import multiobjective_sections
from experiments.report.results import Results, read_results
from experiments.report.standings import leaderboard_section
from experiments.report.truth import truth_sections
from jahs.benchmark import Benchmark
from jahs.tasks import TASKS

__all__ = ["build_document", "write_report"]

_CHAPTERS: Final[Mapping[str, Callable[[Results], tuple[Section, ...]]]] = {
    "joint": joint_sections,
    "fidelity": fidelity_sections,
    "multiobjective": multiobjective_sections,
    "baselines": baselines_sections,
    "truth": truth_sections,
}
_DOTS_PER_INCH: Final = 144


def build_document(results: Results) -> Document:
    """Return what the report of these results says. The figures are drawn here."""
    study = results.study
    with mpl.rc_context(dict(style())):
        chapters = _CHAPTERS[study.name](results)
        # Trade-offs have no single winner, and worlds are no release that could be asked again.
        is_ranked = not study.combinations and all(arm.world == "release" for arm in results.arms)
        standings = (leaderboard_section(results),) if is_ranked else ()
        sections = (*chapters, *standings, _settings_section(results))
    counts = [len(found) for found in results.cells.values()]
    seeds = f"{max(counts)} seeds" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)} seeds"
    titles = ", ".join(TASKS[task].title for task in results.tasks)
    return Document(
        title=study.title,
        subtitle=f"{study.question} Simulated on {titles}, with {seeds}.",
        sections=sections,
        facts=_facts(results),
    )


def write_report(
    path: Path,
    *,
    bench: Mapping[str, Benchmark],
    out: Path | None = None,
    workers: int = 1,
    is_for_docs: bool = False,
) -> Path:
    """Write the report of a study's folder and return its page.

    Args:
        path: the study's folder.
        bench: what answers for each task.
        out: where to write; None: `path/report`. What a report left there before is replaced.
        workers: processes that read logs.
        is_for_docs: write Markdown with SVG figures alone, which is small and changes little from one time to the next;
            the page returned is then `report.md` and not `index.html`.

    Raises:
        JahsError: as `experiments.report.results.read_results`.
    """
    document = build_document(read_results(path, bench=bench, workers=workers))
    target = out or path / "report"
    beside = target.absolute().with_name(f".{target.name}.part")
    shutil.rmtree(beside, ignore_errors=True)
    (beside / "figures").mkdir(parents=True)
    drawings = {figure.name: svg_text(figure) for figure in document.figures}
    for name, drawing in drawings.items():
        (beside / "figures" / f"{name}.svg").write_text(drawing, encoding="utf-8")
    (beside / "report.md").write_text(to_markdown(document, has_png=not is_for_docs), encoding="utf-8")
    if not is_for_docs:
        (beside / "index.html").write_text(to_html(document, drawings), encoding="utf-8")
        (beside / "tables.json").write_text(_tables_json(document), encoding="utf-8")
        _write_pngs(document, beside / "figures")
    if target.exists():
        shutil.rmtree(target)
    beside.replace(target)
    return target / ("report.md" if is_for_docs else "index.html")


def _write_pngs(document: Document, folder: Path) -> None:
    with mpl.rc_context(dict(style())):
        for figure in document.figures:
            png = folder / f"{figure.name}.png"
            figure.drawing.savefig(png, dpi=_DOTS_PER_INCH, metadata={"Software": None})


def _settings_section(results: Results) -> Section:
    rows = tuple(
        (
            arm.name,
            arm.optimizer,
            ", ".join(f"{name}={value}" for name, value in arm.settings) or "defaults",
            arm.view.search,
            ", ".join(arm.view.fidelities),
            arm.view.fixed_part if arm.view.search in {"nas", "hpo"} else "–",
            arm.family,
        )
        for arm in results.arms
    )
    tasks = tuple(
        (task, facts.version, facts.release[:16], f"{facts.mean_runtime_s:.4g}", f"{facts.budget_s:.6g}")
        for task, facts in results.folder.tasks.items()
    )
    return Section(
        title="Settings",
        blocks=(
            Text(text=results.study.protocol),
            Table(
                caption="Tasks: release, the mean runtime of a full evaluation in seconds (the unit of time), and the "
                "budget of a run in simulated seconds",
                columns=("task", "release", "sha256 of its manifest", "full evaluation (s)", "budget (s)"),
                rows=tasks,
                n_labels=3,
            ),
            Table(
                caption="Arms: optimiser, settings, what is searched, fidelities, and where the rest is fixed",
                columns=("arm", "optimiser", "settings", "searches", "fidelities", "fixed part", "family"),
                rows=rows,
                n_labels=7,
                is_folded=True,
            ),
        ),
    )


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    made = results.folder.made_with
    seeds = [result.cell.seed for found in results.cells.values() for result in found]
    versions = made.get("versions") or {}
    releases = ", ".join(
        f"{task}: {facts.version} ({facts.source}, {facts.release[:16]})"
        for task, facts in results.folder.tasks.items()
    )
    return (
        ("command", f"{made.get('command')} --out DIR && python -m experiments.report DIR"),
        ("commit", str(made.get("commit"))),
        ("releases", releases),
        ("study", results.study.name),
        ("seeds", f"{min(seeds)} to {max(seeds)}"),
        ("simulated workers", str(results.study.workers)),
        ("training noise", "the mean of trainings" if results.study.noise == "mean" else "a draw for each run's seed"),
        ("budget", f"{results.study.n_evaluations} mean full evaluations"),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    )


def _tables_json(document: Document) -> str:
    """Every table that the page shows, for machines."""
    tables = [
        {"section": section.title, "caption": block.caption, "columns": list(block.columns), "rows": block.rows}
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Table)
    ]
    return json.dumps({"title": document.title, "tables": tables}, indent=2, ensure_ascii=False) + "\n"
