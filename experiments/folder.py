"""The folder of a study: its declaration, and one log for each finished repetition.

    DIR/study.json                       declaration, sha256 of the releases, budget of each task, all commands
    DIR/<task>/<arm>/seed-0000.jsonl     one trial log each (`jahs.simulate`), complete or absent
    DIR/<task>/<arm>/refit-0/seed-0000.jsonl    the same, answered by a refit of the release
    DIR/report/                          the page of `python -m experiments.report DIR`

Tasks, arms and seeds may be added later; nothing that affects a repetition may change.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import index
from pathlib import Path
from typing import Any, Final

from experiments.imported import source_of
from experiments.packs import MANIFEST, is_pack, read_manifest
from experiments.study import Repetition, Study, TaskFacts
from jahs.comparison.benches import release_of
from jahs.errors import CorruptFile, InvalidArgument, MissingData, ProtocolMismatch, UnknownFormat
from jahs.files.atomic import is_running, write_beside
from jahs.files.strict_json import parse_json
from jahs.queries.benchmark import Benchmark
from jahs.release.models import REFITS
from workshop.folders import commit, package_versions, writing

STUDY_FORMAT: Final = 2
_FILE: Final = "study.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFolder:
    """The content of study.json."""

    path: Path
    study: Study
    tasks: Mapping[str, TaskFacts]
    arms: tuple[str, ...]  # names of the selected arms, in the order of the study
    n_seeds: int  # the largest selected number of seeds
    # Commit, versions and command of every run that added repetitions, in order.
    made_with: tuple[Mapping[str, Any], ...]  # Any: JSON

    def finished(self) -> list[Repetition]:
        """Return every repetition that has a log; refuse a folder without any."""
        repetitions = self.study.repetitions(tasks=self.tasks, arms=self.arms, n_seeds=self.n_seeds)
        finished = [repetition for repetition in repetitions if is_finished(self.path, repetition)]
        if not finished:
            raise MissingData(f"{self.path} has no finished repetition; python -m experiments.run continues it")
        return finished


def facts_of(bench: Benchmark, *, unit_s: float, n_evaluations: int) -> TaskFacts:
    """Return release and budget of a task whose full evaluation takes `unit_s` simulated seconds."""
    release = release_of(bench)
    return TaskFacts(
        release=release.sha256,
        version=str(release.facts.get("version")),
        source=source_of(bench),
        mean_runtime_s=unit_s,
        budget_s=unit_s * n_evaluations,
        n_refits=release.refits.n_refits if release.has(REFITS) else 0,
    )


def open_or_make(
    path: Path,
    study: Study,
    *,
    tasks: Mapping[str, TaskFacts],
    arms: Sequence[str],
    n_seeds: int,
    command: Sequence[str],
) -> StudyFolder:
    """Make the folder, or add tasks, arms and seeds to the folder of the same study.

    Args:
        command: words of the command that runs these repetitions. It is recorded with commit and versions, if it is
            new and some of these repetitions are unfinished.

    Raises:
        ProtocolMismatch: the folder has another study, release or budget.
        InvalidArgument: the folder has other files, or cannot be written.
    """
    now = made_with(command)
    wanted, all_tasks = set(arms), dict(tasks)
    made: tuple[Mapping[str, Any], ...] = (now,)  # Any: JSON
    if (path / _FILE).exists():
        old = read_folder(path)
        check_same(old, study, tasks, otherwise="cannot be continued; choose a new folder")
        requested = study.repetitions(tasks=tasks, arms=arms, n_seeds=n_seeds)
        is_new = now not in old.made_with and not all(is_finished(path, repetition) for repetition in requested)
        made = (*old.made_with, now) if is_new else old.made_with
        wanted |= set(old.arms)
        all_tasks = {**old.tasks, **tasks}
        n_seeds = max(n_seeds, old.n_seeds)
    elif path.exists() and not (path.is_dir() and all(file.match(f".{_FILE}.*.part") for file in path.iterdir())):
        raise InvalidArgument(f"{path} must be new or the folder of a study; choose another folder, or remove it")
    names = tuple(arm.name for arm in study.arms if arm.name in wanted)
    return write_folder(
        StudyFolder(path=path, study=study, tasks=all_tasks, arms=names, n_seeds=n_seeds, made_with=made)
    )


def made_with(command: Sequence[str]) -> dict[str, Any]:  # Any: JSON
    """Return commit, versions and command, as they are recorded."""
    return {"commit": commit(), "versions": package_versions(), "command": shlex.join(command)}


def write_folder(folder: StudyFolder) -> StudyFolder:
    """Write study.json of a folder, which is made if it does not exist, and read it again."""
    content = {
        "format": STUDY_FORMAT,
        "study": folder.study.to_dict(),
        "tasks": {name: asdict(facts) for name, facts in folder.tasks.items()},
        "arms": folder.arms,
        "n_seeds": folder.n_seeds,
        "made_with": folder.made_with,
    }
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
        with write_beside(folder.path / _FILE) as beside:
            beside.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return read_folder(folder.path)


def read_folder(path: Path) -> StudyFolder:
    """Open the folder of a study, or its pack (`experiments.packs`).

    Raises:
        MissingData: the folder has no study.json.
        CorruptFile, UnknownFormat: study.json is invalid, or has another format.
    """
    recorded = path / _FILE
    packed = read_manifest(path / MANIFEST)[_FILE] if is_pack(path) else None
    if packed is None and not recorded.is_file():
        raise MissingData(f"{path} is not a study: it has no {_FILE}; python -m experiments.run makes one")
    try:
        content = packed or parse_json(recorded.read_bytes())
        if content["format"] != STUDY_FORMAT:
            raise UnknownFormat(f"{recorded}: format {content['format']!r}; this version reads {STUDY_FORMAT}")
        study = Study.from_dict(content["study"])
        if not content["made_with"]:
            raise ValueError("made_with is empty")
        return StudyFolder(
            path=path,
            study=study,
            tasks={name: TaskFacts(**facts) for name, facts in content["tasks"].items()},
            arms=tuple(study.arm(name).name for name in content["arms"]),
            n_seeds=index(content["n_seeds"]),
            made_with=tuple(dict(entry) for entry in content["made_with"]),
        )
    except UnknownFormat:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise CorruptFile(f"{recorded} cannot be read: {err!r}") from err


def is_finished(path: Path, repetition: Repetition) -> bool:
    """Return whether a repetition's log exists; logs are renamed into place when they are complete."""
    return (path / repetition.path).exists()


def remove_parts(path: Path) -> int:
    """Remove unfinished files of killed processes; return their number."""
    parts = [(part, part.name.split(".")[-2]) for part in path.rglob(".*.part") if part.is_file()]
    left = [part for part, pid in parts if pid.isdigit() and not is_running(int(pid))]
    for part in left:
        part.unlink(missing_ok=True)
    return len(left)


def check_same(old: StudyFolder, study: Study, tasks: Mapping[str, TaskFacts], *, otherwise: str) -> None:
    """Refuse a folder or pack of another study, or in which these tasks have other releases or budgets."""
    faults = []
    if old.study.name != study.name:
        faults.append(f"it has the study {old.study.name!r}, not {study.name!r}")
    else:
        differing = study.differing(old.study, old.arms)
        faults += [f"the declaration of the arm {name} differs" for name in differing]
    for name, facts in tasks.items():
        recorded = old.tasks.get(name)
        if recorded is not None and recorded.release != facts.release:
            faults.append(f"{name}: its repetitions used release {recorded.release[:16]}, not {facts.release[:16]}")
        elif recorded is not None and recorded.budget_s != facts.budget_s:
            faults.append(f"{name}: its budget is {recorded.budget_s} s, not {facts.budget_s} s")
    if faults:
        raise ProtocolMismatch("\n".join([f"{old.path} {otherwise}", *faults]))
