"""Whether a study's findings carry over to the real landscape: an imported release, on which the same arms were run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from experiments.analysis.carried import VERDICTS, Carried, Verdict, carry_over
from experiments.folder import StudyFolder, read_folder
from experiments.packs import is_pack, read_pack
from experiments.report.family import FEWEST_TO_COMPARE, compared, finals, groups
from experiments.report.results import Results
from experiments.report.single import number_text
from experiments.studies.study import Arm
from jahs.comparison.logs import Floats
from jahs.comparison.ranks import compare_groups
from jahs.comparison.steps import incumbents
from jahs.errors import InvalidArgument, MissingData, ProtocolMismatch
from jahs.tasks.definitions import TASKS
from workshop.pages.document import Block, Section, Table, Text

__all__ = ["RealRuns", "carried_section", "read_real_runs"]

_TITLE: Final = "Does it carry over?"
_GUESSED: Final = 100.0  # the error of a run without a result
_MEANING: Final[Mapping[Verdict, str]] = {
    "carries over": "significant on both, same sign",
    "same sign": "significant on this task alone, same sign",
    "other sign": "significant on this task alone, other sign",
    "reversed": "significant on both, opposite signs",
    "only there": "significant on the real landscape alone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRuns:
    """The runs of a study on an imported release.

    Attributes:
        folder: its declaration and facts.
        task: the task of the release.
        errors: final validation errors by arm, then by seed.
    """

    folder: StudyFolder
    task: str
    errors: Mapping[str, Mapping[int, float]]

    def finals(self, arms: Sequence[Arm]) -> Floats:
        """Return the final errors of the seeds that all arms have finished, (n_arms, n_seeds)."""
        found = [self.errors.get(arm.name, {}) for arm in arms]
        seeds = sorted(set.intersection(*map(set, found)))
        return np.array([[of[seed] for seed in seeds] for of in found]).reshape(len(arms), len(seeds))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    task: str
    group: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, int]
    found: Carried


def read_real_runs(path: Path) -> RealRuns:
    """Read the pack of a study on one imported release, which answered with means.

    Raises:
        InvalidArgument: it is not a pack, has several tasks, or contains training noise.
        MissingData, CorruptFile, UnknownFormat: see `experiments.packs.read_pack`.
    """
    if not path.is_dir():
        raise MissingData(f"{path} does not exist; python -m experiments.pack makes it")
    if not is_pack(path):
        raise InvalidArgument(f"{path} is not a pack; python -m experiments.pack {path} makes one")
    folder = read_folder(path)
    if len(folder.tasks) != 1 or folder.study.noise != "mean":
        raise InvalidArgument(
            f"{path} must have one task and no training noise, got {', '.join(folder.tasks)} and "
            f"noise={folder.study.noise}; run the study with --release of one imported release and --noise mean"
        )
    errors: dict[str, dict[int, float]] = {}
    for log in read_pack(path):
        if log.repetition.refit is None:
            steps = incumbents(log.found).steps
            error = float(steps.values[-1]) if len(steps.values) else _GUESSED
            errors.setdefault(log.repetition.arm, {})[log.repetition.seed] = error
    return RealRuns(folder=folder, task=next(iter(folder.tasks)), errors=errors)


def carried_section(results: Results, real: Path | None) -> Section | None:
    """Return what carries over from each task to the real landscape, or why that is not known.

    Args:
        results: of a study with one objective on releases; None is returned for any other.
        real: the pack of the same study on an imported release, or None.

    Raises:
        ProtocolMismatch: the pack is of another study, or declares an arm differently.
        InvalidArgument, MissingData, CorruptFile, UnknownFormat: see `read_real_runs`.
    """
    if results.study.combinations or any(arm.world != "release" for arm in results.arms):
        return None
    if real is None:
        return _skipped(
            f"no runs on the real landscape were given. `python -m experiments.run {results.study.name} --release "
            "CIFAR10 --noise mean --out DIR` runs the study on an imported release of JAHS-Bench-201's CIFAR-10, "
            "`experiments.pack` packs it, and `experiments.report --real PACK` adds it here."
        )
    runs = read_real_runs(real)
    _check_same(results, runs)
    every = _compare(results, runs)
    if not every:
        return _skipped(
            f"no chapter has two arms with {FEWEST_TO_COMPARE} seeds on a task and on the real landscape; run more "
            "seeds."
        )
    return Section(title=_TITLE, blocks=(*_answers(every), _orders(every), *_findings(every), _about(runs)))


def _skipped(reason: str) -> Section:
    return Section(title=_TITLE, blocks=(Text(text=f"Not compared: {reason}"),))


def _check_same(results: Results, runs: RealRuns) -> None:
    study, other = results.study, runs.folder.study
    if study.name != other.name:
        raise ProtocolMismatch(f"{runs.folder.path} is of the study {other.name}, not of {study.name}")
    as_here = replace(other, noise=study.noise)
    declared = {arm.name for arm in study.arms}
    if wrong := [n for n in runs.errors if n not in declared or as_here.digest_of(n) != study.digest_of(n)]:
        raise ProtocolMismatch(
            f"{runs.folder.path}: the declaration of {', '.join(sorted(wrong))} differs from that of the study; run "
            "the study on the imported release again"
        )


def _compare(results: Results, runs: RealRuns) -> list[_Compared]:
    """Compare every group of arms, on each task, that both have. Holm's correction is over all pairs of a landscape."""
    parts = []
    for task in results.tasks:
        for title, arms in groups(results, task):
            tested = compared(results).get((task, tuple(arm.name for arm in arms)))
            there = runs.finals(arms)
            if tested is not None and there.shape[1] >= FEWEST_TO_COMPARE:
                parts.append((task, title, arms, finals(results, task, arms)[0], there, tested))
    on_real = {tuple(arm.name for arm in arms): there for _, _, arms, _, there, _ in parts}
    tests = dict(zip(on_real, compare_groups([(values, None) for values in on_real.values()]), strict=True))
    return [
        _Compared(
            task=task,
            group=title,
            arms=arms,
            seeds=(here.shape[1], there.shape[1]),
            found=carry_over(here, there, tested.pairs, tests[tuple(arm.name for arm in arms)].pairs),
        )
        for task, title, arms, here, there, tested in parts
    ]


def _answers(every: Sequence[_Compared]) -> list[Block]:
    blocks: list[Block] = []
    for task in dict.fromkeys(each.task for each in every):
        of_task = [each for each in every if each.task == task]
        count = {verdict: sum(each.found.count(verdict) for each in of_task) for verdict in VERDICTS}
        n = sum(count.values()) - count["only there"]
        taus = "; ".join(f"{each.group} {_tau(each.found)} of {_ceiling(each.found)}" for each in of_task)
        blocks.append(
            Text(
                text=f"{n} pairs of arms differ on {TASKS[task].title}. On the real landscape, "
                f"{count['carries over'] + count['same sign']} keep their sign, {count['carries over']} of them "
                f"significantly; {count['reversed']} are significantly reversed. {count['only there']} other pairs "
                f"differ on the real landscape alone. Kendall's τ between the orders, of its split-half ceiling: "
                f"{taus}.",
                is_answer=True,
            )
        )
    return blocks


def _tau(found: Carried) -> str:
    return f"{found.tau.value:.2f} ({found.tau.low:.2f} to {found.tau.high:.2f})"


def _ceiling(found: Carried) -> str:
    return number_text(found.ceiling)


def _orders(every: Sequence[_Compared]) -> Table:
    rows = [
        (
            *(each.task, each.group, str(len(each.arms)), f"{each.seeds[0]} and {each.seeds[1]}"),
            *(_tau(each.found), _ceiling(each.found), *(str(each.found.count(verdict)) for verdict in VERDICTS)),
        )
        for each in every
    ]
    return Table(
        caption="Agreement of the orders by mean final validation error on a task and on the real landscape, with 95 % "
        "bootstrap intervals over the seeds of both, and the number of pairs of arms by their test on each. The "
        "ceiling is the τ between two halves of the seeds, geometric mean of both landscapes",
        columns=(
            *("task", "arms", "number of arms", "seeds", "Kendall's τ (95 % interval)", "split-half ceiling"),
            *(_MEANING[verdict] for verdict in VERDICTS),
        ),
        rows=tuple(rows),
        n_labels=2,
    )


def _findings(every: Sequence[_Compared]) -> list[Block]:
    rows = [
        (
            *(each.task, each.group, each.arms[one.one].title, each.arms[one.other].title),
            *(f"{one.here:+.2f}", f"{one.there:+.2f}", _MEANING[one.verdict]),
        )
        for each in every
        for one in sorted(each.found.findings, key=lambda found: VERDICTS.index(found.verdict))
    ]
    return [
        Table(
            caption="Every pair that differs on a task or on the real landscape, finding by finding. The first arm is "
            "the better one on the landscape where the pair differs, on this task if on both",
            columns=(
                *("task", "arms", "better arm", "other arm", "mean difference on this task (points)"),
                *("on the real landscape (points)", "finding"),
            ),
            rows=tuple(rows),
            n_labels=4,
            is_folded=True,
        )
    ] * bool(rows)


def _about(runs: RealRuns) -> Text:
    facts = runs.folder.tasks[runs.task]
    commands = "; ".join(f"`{made.get('command')}`" for made in runs.folder.made_with)
    return Text(
        text=f"The real landscape is a release of `{runs.task}` with all its epochs: {facts.version} ({facts.source}, "
        f"{facts.release[:16]}). It has no noise model, so its optimisers see means, clipped to 0 and 100 %. It is "
        f"used for orders and differences, never for its optimum. A pair differs there by the same signed-rank test, "
        f"with Holm's correction over its own pairs. Commands: {commands}."
    )
