"""Make the page of a study."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import matplotlib as mpl

from experiments.packs import season_of
from experiments.report.baselines import baselines_blocks
from experiments.report.carried import carried_blocks
from experiments.report.comparison import compared, refits_blocks
from experiments.report.fidelity import fidelity_blocks
from experiments.report.incumbents import leaderboard_blocks, retrained_blocks
from experiments.report.joint import joint_blocks
from experiments.report.long import long_blocks, worker_blocks
from experiments.report.multiobjective import multiobjective_blocks
from experiments.report.results import Results
from experiments.report.truth import truth_blocks
from jahs.errors import InvalidArgument
from jahs.files.atomic import change_folder
from jahs.tasks.definitions import TASKS, caveats_of
from workshop.command import new_parser, run_command
from workshop.folders import versions_text, writing
from workshop.pages.document import Block, Document, Table, Text, sections_of
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown
from workshop.pages.style import follow_scheme, style

_CHAPTERS: Final[Mapping[str, Callable[[Results], Iterator[str | Block]]]] = {
    "joint": joint_blocks,
    "fidelity": fidelity_blocks,
    "multiobjective": multiobjective_blocks,
    "baselines": baselines_blocks,
    "strong": baselines_blocks,
    "truth": truth_blocks,
    "long": long_blocks,
    "workers": worker_blocks,
}
_DOTS_PER_INCH: Final = 144
_OWN: Final = frozenset({"report.md", "README.md", "index.html", "tables.json", "paired.csv", "figures"})
_DRAWINGS: Final = frozenset({".svg", ".png"})


def build_document(
    results: Results, *, retrained: Path | None = None, real: Path | None = None, control: Path | None = None
) -> Document:
    """Return the page of results, with its figures drawn.

    Args:
        retrained: a record of `experiments.retrain`.
        real: the pack of the same study on an imported release.
        control: the pack of the same study without noise.
    """
    study = results.study
    with mpl.rc_context(dict(style())):
        sections = sections_of(_blocks(results, retrained=retrained, real=real, control=control))
    counts = [len(found) for found in results.by_arm.values()]
    seeds = f"{max(counts)} seeds" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)} seeds"
    titles = ", ".join(TASKS[task].title for task in results.tasks)
    return Document(
        title=study.title,
        caveats=caveats_of([TASKS[task] for task in results.tasks]),
        subtitle=f"{_differing(results)}{study.question} Simulated on {titles}, with {seeds}. "
        f"Season: {season_of(results.folder.tasks)}.",
        sections=sections,
        facts=_facts(results),
    )


def _blocks(
    results: Results, *, retrained: Path | None, real: Path | None, control: Path | None
) -> Iterator[str | Block]:
    study = results.study
    yield from _CHAPTERS[study.name](results)
    yield from refits_blocks(results)
    # Trade-offs have no single winner, and worlds cannot be queried again from the release.
    is_ranked = not study.combinations and all(arm.world == "release" for arm in results.arms)
    if is_ranked:
        yield from carried_blocks(results, real, control)
    yield from retrained_blocks(results, retrained)
    if is_ranked:
        yield from leaderboard_blocks(results)
    yield from _settings(results)


def _differing(results: Results) -> str:
    """Say how many pairs of arms differ; empty for a study that compares none."""
    pairs = [pair for found in compared(results).values() for pair in found.pairs]
    n_differ = sum(pair.differs for pair in pairs)
    return f"{n_differ} of {len(pairs)} compared pairs of arms differ significantly at the end. " if pairs else ""


def page_parser(command: str, about: str, *, example: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command that writes a page, with --out and --docs."""
    parser = new_parser(command, about, example=f"{example} --out out/{command.rpartition('.')[2]}".lstrip())
    parser.add_argument("--out", type=Path, required=True, help="folder of the page: new, empty, or of an older page")
    parser.add_argument("--docs", action="store_true", help="write only Markdown with SVG figures, as in docs/studies")
    return parser


def run_page(command: str, given: argparse.Namespace, make: Callable[[], Document], *flags: str) -> int:
    """Write the page of a command, print where it is, and return the exit status.

    Args:
        command: such as `experiments.zoo`.
        given: its arguments, by a `page_parser`.
        make: returns the document, with its figures drawn.
        flags: of the command line that makes the page again, the first fact of the page.
    """

    def work() -> object:
        target = check_target(given.out)
        with mpl.rc_context(dict(style())):
            document = make()
        again = shlex.join(["python", "-m", command, *flags, "--out", "DIR"])
        document = replace(document, facts=(("command", again), *document.facts))
        return written(write_document(document, target, is_for_docs=given.docs))

    return run_command(command, work)


def written(page: Path) -> dict[str, str]:
    """Return the paths of a page, as commands print them."""
    return {"page": str(page), "markdown": str(page.with_name("report.md"))}


def check_target(target: Path) -> Path:
    """Return the absolute path of a folder for a page: new, empty, or that of an older page.

    Raises:
        InvalidArgument: it has other files, or is the working folder or a parent of it.
    """
    target = target.absolute().resolve()
    with writing(target):
        found = sorted(target.iterdir()) if target.exists() else []
        figures = target / "figures"
        drawings = sorted(figures.iterdir()) if figures in found else []
        around = next(path for path in target.parents if path.exists())
        if not (around.is_dir() and os.access(around, os.W_OK)):
            raise PermissionError(None, "its parent is not a writable folder")
    foreign = [path.name for path in found if path.name not in _OWN]
    foreign += [f"figures/{path.name}" for path in drawings if path.suffix not in _DRAWINGS]
    if foreign:
        raise InvalidArgument(
            f"{target} would be replaced, but has files that are not part of a page: {', '.join(foreign[:3])}"
            f"{' and more' if len(foreign) > 3 else ''}; choose a new folder"
        )
    if Path.cwd().is_relative_to(target):
        raise InvalidArgument(f"{target} would be replaced, but the command runs inside of it; choose a new folder")
    return target


def write_document(
    document: Document,
    target: Path,
    *,
    is_for_docs: bool,
    name: str = "report.md",
    data: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write a document as the folder `target` and return its page.

    Args:
        target: the folder, see `check_target`.
        is_for_docs: write only Markdown with SVG figures, which is small; the page is then `name`, not `index.html`.
        data: more files, by name.
    """
    target = check_target(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with change_folder(target) as beside:
            _write_files(document, beside, is_for_docs=is_for_docs, name=name)
            for own, text in data.items():
                (beside / own).write_text(text, encoding="utf-8")
    return target / (name if is_for_docs else "index.html")


def _write_files(document: Document, folder: Path, *, is_for_docs: bool, name: str) -> None:
    (folder / "figures").mkdir()
    drawings = {figure.name: svg_text(figure) for figure in document.figures}
    for figure, drawing in drawings.items():
        (folder / "figures" / f"{figure}.svg").write_text(follow_scheme(drawing), encoding="utf-8")
    (folder / name).write_text(to_markdown(document, has_png=not is_for_docs), encoding="utf-8")
    if not is_for_docs:
        (folder / "index.html").write_text(to_html(document, drawings), encoding="utf-8")
        (folder / "tables.json").write_text(_tables_json(document), encoding="utf-8")
        _write_pngs(document, folder / "figures")


def _write_pngs(document: Document, folder: Path) -> None:
    with mpl.rc_context(dict(style())):
        for figure in document.figures:
            png = folder / f"{figure.name}.png"
            figure.drawing.savefig(png, dpi=_DOTS_PER_INCH, metadata={"Software": None})


def _settings(results: Results) -> Iterator[str | Block]:
    yield "Settings"
    yield Text(results.study.protocol)
    yield Table(
        caption="Tasks, with the mean runtime of a full evaluation (the unit of time) and the budget of a run",
        columns=("task", "release", "sha256 of its manifest", "full evaluation (s)", "budget (simulated s)"),
        rows=tuple(
            (task, facts.version, facts.release[:16], f"{facts.mean_runtime_s:.4g}", f"{facts.budget_s:.6g}")
            for task, facts in results.folder.tasks.items()
        ),
        n_labels=3,
    )
    yield Table(
        caption="Arms, with their optimisers, searched keys, fidelities and values of all other keys",
        columns=("arm", "optimiser", "settings", "searched", "fidelities", "fixed part", "family"),
        rows=tuple(
            (
                *(arm.name, arm.optimizer, ", ".join(f"{name}={value}" for name, value in arm.settings) or "defaults"),
                *(arm.view.search, ", ".join(arm.view.fidelities)),
                *(arm.view.fixed_part if arm.view.search in {"nas", "hpo"} else "–", arm.family),
            )
            for arm in results.arms
        ),
        n_labels=7,
        is_folded=True,
    )


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    commands, versions = made_facts(results.folder.made_with)
    seeds = [result.repetition.seed for found in results.by_arm.values() for result in found]
    workers = sorted({arm.workers or results.study.workers for arm in results.arms})
    releases = ", ".join(
        f"{task}: {facts.version} ({facts.source}, {facts.release[:16]})"
        for task, facts in results.folder.tasks.items()
    )
    return (
        *commands,
        ("releases", releases),
        ("study", results.study.name),
        ("seeds", f"{min(seeds)} to {max(seeds)}"),
        ("simulated workers", ", ".join(map(str, workers))),
        (
            "training noise",
            "none: means over trainings"
            if results.study.noise == "mean"
            else "drawn with the seed of each run; pages report the means of the chosen configs"
            if all(arm.world == "release" for arm in results.arms)
            else "that of one training in both worlds; the page reports observed errors",
        ),
        ("budget", f"{results.study.n_evaluations} mean full evaluations"),
        *versions,
    )


def made_facts(made: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # Any: JSON
    """Return the commands and commits that made a study, and the versions of packages, as facts of its page."""
    commands = [f"{each.get('command')} --out DIR" for each in made]
    whole = [*commands[:-1], f"{commands[-1]} && python -m experiments.report DIR"]
    commits = _numbered("commit", [str(each.get("commit")) for each in made])
    versions = _numbered("versions", [versions_text(each.get("versions") or {}) for each in made])
    return [*_numbered("command", whole), *commits], versions


def _numbered(name: str, values: Sequence[str]) -> list[tuple[str, str]]:
    """Return one fact per command of the study; numbered if there are several."""
    return [(f"{name} {i}" if len(values) > 1 else name, value) for i, value in enumerate(values, start=1)]


def _tables_json(document: Document) -> str:
    """Return every table of the page as JSON."""
    tables = [
        {"section": section.title, "caption": block.caption, "columns": list(block.columns), "rows": block.rows}
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Table)
    ]
    return json.dumps({"title": document.title, "tables": tables}, indent=2, ensure_ascii=False) + "\n"
