"""Make the document of a study's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from experiments.packs import season_of
from experiments.report.baselines import baselines_blocks, best_optimizer_finding
from experiments.report.carried import carried_blocks, read_means
from experiments.report.comparison import compared_pairs
from experiments.report.fidelity import fidelity_blocks
from experiments.report.incumbents import leaderboard_blocks, retrained_blocks
from experiments.report.joint import joint_blocks, joint_finding, paper_blocks
from experiments.report.long import long_blocks, worker_blocks, workers_finding
from experiments.report.multiobjective import multiobjective_blocks, trade_off_finding
from experiments.report.refits import cross_scored, cross_scored_blocks, kept_pairs, refits_blocks
from experiments.report.results import Results
from experiments.report.truth import truth_blocks, two_worlds_finding
from experiments.studies import find_study
from jahs.tasks.definitions import TASKS, caveats_of
from workshop.folders import versions_text
from workshop.pages.document import Block, Document, Table, Text, sections_of

_PAGES: Final[Mapping[str, tuple[Callable[[Results], str], Callable[[Results], Iterator[str | Block]]]]] = {
    "joint": (joint_finding, joint_blocks),
    "fidelity": (best_optimizer_finding, fidelity_blocks),
    "multiobjective": (trade_off_finding, multiobjective_blocks),
    "baselines": (best_optimizer_finding, baselines_blocks),
    "strong": (best_optimizer_finding, baselines_blocks),
    "truth": (two_worlds_finding, truth_blocks),
    "families": (two_worlds_finding, truth_blocks),
    "long": (best_optimizer_finding, long_blocks),
    "workers": (workers_finding, worker_blocks),
}
"""By study: its main finding in one sentence, empty if too few runs have ended, and the chapters of its page."""

_NOT_THERE: Final[Mapping[str, str]] = {
    "truth": "This study cannot run on the authors' model of JAHS-Bench-201, because its runs look up "
    "recorded trainings, which the model does not contain.",
    "families": "This study cannot run on the authors' model of JAHS-Bench-201, which has only one model family.",
}
"""Why some studies have no results on an imported release."""


def build_document(
    results: Results,
    *,
    retrained: Sequence[Path] = (),
    real: Path | None = None,
    control: Path | None = None,
    landscape: Path | None = None,
) -> Document:
    """Return the page of results, with its figures drawn.

    Args:
        retrained: records of `experiments.retrain`.
        real: the pack of the same study on an imported release.
        control: the pack of the same study without noise.
        landscape: the imported release of `real`, which only a study with several objectives needs.
    """
    find, _ = _PAGES[results.study.name]
    words = find_study(results.study.name)  # of this version: a folder keeps the words that it was run with
    tasks = [TASKS[task] for task in results.tasks]
    sections = sections_of(_blocks(results, retrained, real, control, landscape))
    counts = sorted({len(repetitions) for repetitions in results.by_arm.values()})
    seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return Document(
        title=words.title,
        caveats=caveats_of(tasks),
        subtitle=find(results) or words.question,
        setting=f"{words.question} Simulated on {', '.join(task.title for task in tasks)}, with {seeds} seeds. Season: "
        f"{season_of(results.folder.tasks)}. {_differing(results)}".rstrip(),
        sections=sections,
        facts=_facts(results),
    )


def _blocks(
    results: Results, retrained: Sequence[Path], real: Path | None, control: Path | None, landscape: Path | None
) -> Iterator[str | Block]:
    study = results.study
    has_several, is_of_release = bool(study.combinations), all(arm.world == "release" for arm in results.arms)
    _, chapters = _PAGES[study.name]
    can_compare = is_of_release and (landscape is not None or not has_several)
    real_results = read_means(real, study, landscape) if real and can_compare else None
    yield from chapters(results)
    if study.name == "joint":
        yield from paper_blocks(results, real_results)
    yield from refits_blocks(results)
    yield from cross_scored_blocks(results)
    if is_of_release:
        control_results = read_means(control, study) if real_results and control else None
        yield from carried_blocks(results, real_results, control_results)
    elif study.name in _NOT_THERE:
        yield "Transfer to JAHS-Bench-201"
        yield Text(_NOT_THERE[study.name])
    yield from retrained_blocks(results, retrained)
    if is_of_release and not has_several:  # trade-offs have no single winner
        yield from leaderboard_blocks(results)
    yield from _settings(results)


def _differing(results: Results) -> str:
    """Say how many pairs of arms differ; empty for a study that compares none."""
    if not (pairs := compared_pairs(results)):
        return ""
    n_significant, n_differ = sum(pair.is_significant for pair in pairs), sum(pair.differs for pair in pairs)
    hold = f"; {n_differ} of these also on the refits" if any(pair.holds is not None for pair in pairs) else ""
    if n_differ and (groups := cross_scored(results)):
        n_kept = sum(kept_pairs(group.tests, crossed)[1] for group, crossed in groups)
        hold += f", and {n_kept} keep their sign if the refits score the incumbents"
    return f"Of {len(pairs)} compared pairs of arms, {n_significant} differ significantly at the end{hold}."


def _settings(results: Results) -> Iterator[str | Block]:
    yield "Settings"
    yield Text(find_study(results.study.name).protocol)
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
    seeds = [result.repetition.seed for repetitions in results.by_arm.values() for result in repetitions]
    workers = sorted({arm.workers or results.study.workers for arm in results.arms})
    tasks = results.folder.tasks.items()
    if results.study.noise == "mean":
        noise = "none: means over trainings"
    elif all(arm.is_of_release for arm in results.arms):
        noise = "drawn with the seed of each run; pages report the means of the chosen configs"
    else:
        noise = "of one training in both worlds; the page reports observed errors"
    return (
        *commands,
        ("releases", ", ".join(f"{task}: {of.version} ({of.source}, {of.release[:16]})" for task, of in tasks)),
        ("study", results.study.name),
        ("seeds", f"{min(seeds)} to {max(seeds)}"),
        ("simulated workers", ", ".join(map(str, workers))),
        ("training noise", noise),
        ("budget", f"{results.study.n_evaluations} mean full evaluations"),
        *versions,
    )


def made_facts(made: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # Any: JSON
    """Return the commands and commits that made a study, and the versions of packages, as facts of its page."""
    commands = [f"{entry.get('command')} --out DIR" for entry in made]
    commands[-1] += " && python -m experiments.report DIR"
    commits = _numbered("commit", [str(entry.get("commit")) for entry in made])
    versions = _numbered("versions", [versions_text(entry.get("versions") or {}) for entry in made])
    return [*_numbered("command", commands), *commits], versions


def _numbered(name: str, values: Sequence[str]) -> list[tuple[str, str]]:
    """Return one fact per command of the study; numbered if there are several."""
    return [(f"{name} {i}" if len(values) > 1 else name, value) for i, value in enumerate(values, start=1)]
