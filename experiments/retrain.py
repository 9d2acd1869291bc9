"""Train the final incumbents of a study, to compare predicted and real accuracies.

    python -m experiments.retrain out/joint --top 3 --data-dir IMAGES
    python -m experiments.retrain out/joint --top 3 --data-dir IMAGES --record data/cifar10_mini/retrained-joint.json

For each task, the incumbents with the best predicted means are trained with two seeds that no collected run has. Runs
are written to `STUDY/retrained/<task>`, a folder of runs (source `retrained`); after an interruption, the same command
continues. The measurements are added to `STUDY/retrained.json`, or to another file with --record, and
`experiments.report` adds them to the study's page, without any training. A pack is not changed: it needs --record, and
its runs are written beside that file, to `FILE.runs`.
"""

from __future__ import annotations

import fnmatch
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from experiments.folder import read_folder
from experiments.packs import is_pack
from experiments.report.results import Results, read_results
from jahs.comparison.benches import open_benchmark, release_of
from jahs.errors import CorruptFile, InvalidArgument, refuse
from jahs.files.atomic import make_folder
from jahs.files.runs import read_runs
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.files.tables import Table
from jahs.spaces.configs import Config, config_id, validate
from pipeline.command import add_device
from workshop.command import add_data_dir, add_minutes, add_release, add_workers, new_parser, run_command
from workshop.folders import write_text
from workshop.measured import last_rows

RECORD: Final = "retrained.json"
_NO_TIME_S: Final = 1e-6  # no training begins, but the folder of runs is made
SEEDS: Final = (1000, 1001)  # collected runs have seeds below 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A config that repetitions of a study ended with."""

    # task, arm, seed: the first of these repetitions.
    task: str
    arm: str
    seed: int
    config: Config
    predicted: float  # mean validation error, in percent, predicted by the release that the study used
    # Validation error of each finished training, in percent, by its seed (as text, for JSON).
    trained: Mapping[str, float]


def best_incumbents(results: Results, task: str, *, top: int, arms: Sequence[str]) -> list[Incumbent]:
    """Return the best distinct final incumbents of a task by predicted mean error, none of them trained.

    Args:
        arms: patterns of arm names.
    """
    incumbents: dict[int, Incumbent] = {}
    chosen = [arm for arm in results.arms if any(fnmatch.fnmatchcase(arm.name, pattern) for pattern in arms)]
    for result in (result for arm in chosen for result in results.of(task, arm) if result.configs):
        config, own = result.configs[-1], result.repetition
        predicted = float(result.incumbents.values[-1])
        incumbent = Incumbent(task=task, arm=own.arm, seed=own.seed, config=config, predicted=predicted, trained={})
        incumbents.setdefault(config_id(config), incumbent)
    if not incumbents:
        raise InvalidArgument(
            f"no arm of {task} that matches {' or '.join(arms)} has an incumbent; the study has "
            f"{', '.join(arm.name for arm in results.arms)}"
        )
    return sorted(incumbents.values(), key=lambda incumbent: (incumbent.predicted, config_id(incumbent.config)))[:top]


def retrain(
    folder: Path,
    *,
    top: int,
    tasks: Sequence[str],
    arms: Sequence[str],
    record: Path | None,
    release: Path | None,
    data_dir: Path | None,
    minutes: float | None,
    workers: int,
    device: str = "cpu",
) -> dict[str, object]:
    """Train the incumbents and record them; return the path of the record and how many trainings it has."""
    from pipeline.collect import CollectSettings, collect  # needs torch

    study = read_folder(folder)
    known = ", ".join(study.tasks)
    path = record or folder / RECORD
    work = path.with_name(f"{path.name}.runs") if is_pack(folder) else folder / "retrained"
    faults = [f"top={top} must be at least 1"] if top < 1 else []
    if is_pack(folder) and folder.resolve() in path.resolve().parents:
        faults.append(f"{folder} is a pack, which is not changed; name a file outside of it with --record")
    faults += [f"task {name!r} is not in this study; it has {known}" for name in tasks if name not in study.tasks]
    if any(arm.world != "release" for arm in study.study.arms):
        faults.append(
            f"{study.study.name} does not query a release alone, so its incumbents have no prediction to compare"
        )
    refuse(*faults)
    make_folder(path.parent)  # refused here, not after the trainings
    bench = {task: open_benchmark(task, release) for task in study.tasks}
    releases = {task: facts.release for task, facts in study.tasks.items()}
    known_before = read_record(path, study=study.study.name, releases=releases) if path.exists() else []
    results = read_results(folder, bench=bench, workers=workers)
    incumbents: list[Incumbent] = []
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    for task in tasks or results.tasks:
        chosen = best_incumbents(results, task, top=top, arms=arms or ("*",))
        runs, listed = work / task, work / f"{task}.jsonl"
        listed.parent.mkdir(parents=True, exist_ok=True)
        digest = release_of(bench[task]).sha256
        lines = ({"config": incumbent.config, "seeds": list(SEEDS), "release": digest} for incumbent in chosen)
        write_text(listed, "".join(json.dumps(line) + "\n" for line in lines))
        collect(
            CollectSettings(
                task=task,
                out=runs,
                configs=listed,
                source="retrained",
                data_dir=data_dir,
                minutes=None if deadline is None else max(deadline - time.monotonic(), _NO_TIME_S) / 60,
                workers=workers,
                device=device,
            )
        )
        incumbents += _with_measured(chosen, last_rows(read_runs(runs)))
    incumbents = _joined(known_before, incumbents)
    content = {"study": study.study.name, "releases": releases, "incumbents": [*map(asdict, incumbents)]}
    write_text(path, sealed_text(content))
    return {"record": str(path), "trainings": sum(len(incumbent.trained) for incumbent in incumbents)}


def _with_measured(chosen: Sequence[Incumbent], last: Table) -> Iterator[Incumbent]:
    """Yield the incumbents with the validation errors of their finished trainings."""
    for incumbent in chosen:
        mask = (last["config_id"] == np.uint64(config_id(incumbent.config))) & (last["status"] == "finished")
        errors = 100.0 - last["valid_acc"][mask].astype(np.float64)
        yield replace(incumbent, trained=dict(zip(map(str, last["seed"][mask].tolist()), errors.tolist(), strict=True)))


def _joined(before: Sequence[Incumbent], now: Sequence[Incumbent]) -> list[Incumbent]:
    """Return all incumbents by task and prediction, each with all of its trainings."""
    joined = {(one.task, config_id(one.config)): one for one in before if one.trained}
    for one in now:
        key = one.task, config_id(one.config)
        joined[key] = replace(one, trained={**joined[key].trained, **one.trained}) if key in joined else one
    return sorted(joined.values(), key=lambda one: (one.task, one.predicted, config_id(one.config)))


def read_record(path: Path, *, study: str, releases: Mapping[str, str]) -> list[Incumbent]:
    """Read the record of `retrain`.

    Args:
        study: name of the study that it must belong to.
        releases: sha256 of the releases that this study used, by task; those of its incumbents' tasks must be the same.
    """
    content, incumbents = read_sealed(path), []
    try:
        for entry in content["incumbents"]:
            trained = {str(seed): float(error) for seed, error in entry["trained"].items()}
            parsed = {"config": validate(entry["config"]), "predicted": float(entry["predicted"]), "trained": trained}
            incumbents.append(Incumbent(**{**entry, **parsed}))
        tasks = {one.task for one in incumbents}
        is_other = any(content["releases"].get(task) != releases.get(task) for task in tasks)
        origin = content["study"]
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise CorruptFile(f"{path} is not a record of retrained incumbents: {err!r}") from err
    if is_other or origin != study:
        raise CorruptFile(
            f"{path} belongs to the study {origin!r} or to other releases; remove it, and python -m "
            "experiments.retrain makes a new one"
        )
    return incumbents


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Train the best incumbents of a study with new seeds, and record what they reach."
    parser = new_parser("experiments.retrain", about, example="out/joint --top 3 --data-dir IMAGES")
    parser.add_argument("folder", type=Path, help="a folder of python -m experiments.run, or a pack")
    parser.add_argument("--top", type=int, default=3, help="incumbents of each task (default: %(default)s)")
    parser.add_argument("--task", action="append", default=[], dest="tasks", help="a task; repeatable (default: all)")
    parser.add_argument("--arms", action="append", default=[], help="pattern of arm names; repeatable (default: all)")
    parser.add_argument("--record", type=Path, help="file of the measurements (default: FOLDER/retrained.json)")
    add_data_dir(parser)
    add_release(parser)
    add_minutes(parser, "training")
    add_workers(parser)
    add_device(parser)
    given = vars(parser.parse_args(argv))
    stopped = "finished trainings are kept; run it again to continue"
    return run_command("experiments.retrain", lambda: retrain(**given), stopped=stopped)


if __name__ == "__main__":
    sys.exit(main())
