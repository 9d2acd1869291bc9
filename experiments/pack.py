"""Pack the logs of a study for shipping: `python -m experiments.pack DIR --out data/studies`."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.folder import read_folder
from experiments.packs import COLUMNS, MANIFEST, check_season, full_log, season_of
from experiments.report.results import check_owner
from experiments.study import Repetition
from experiments.worlds import WORLD_NAMES, quality_of_worlds
from jahs.comparison.steps import incumbents
from jahs.errors import CorruptFile, InvalidArgument
from jahs.files.atomic import change_folder
from jahs.files.sealed_json import sealed_text
from jahs.files.strict_json import parse_json
from jahs.files.tables import Table, require_pyarrow, write_table
from jahs.queries.exhaustive import LARGEST
from jahs.schema import CONFIG_KEYS, TRIAL_KEYS
from jahs.simulate import read_log
from jahs.spaces.columns import validate_columns
from workshop.command import new_parser, run_command
from workshop.folders import writing
from workshop.progress import Progress

_STATUSES: Final = {"finished", "unfinished", "failed", "stopped"}


class _Tables:
    """The columns of a pack, log by log."""

    def __init__(self, *, has_several: bool) -> None:
        self._has_several = has_several
        self._rows: dict[tuple[object, ...], int] = {}  # row of each config
        self._before = 0
        self._logs: list[tuple[object, ...]] = []
        self._steps = array("i")
        self._fidelities: dict[tuple[object, ...], int] = {}
        self._asked = array("H")
        self._ends: list[tuple[float, ...]] = []

    def add(self, own: Repetition, header: Mapping[str, Any], trials: Sequence[Any], ending: Any, digest: str) -> None:
        """Append a log. Any: JSON."""
        full = header["view"]["fidelities"]
        end, accuracy, places = [], [], []
        for place, trial in enumerate(trials):
            config, fidelity, status = trial["config"], trial["fidelity"], trial["status"]
            row = self._rows.setdefault(tuple(config.values()), len(self._rows))
            self._steps.append(row - self._before)
            self._before = row
            asked = (fidelity["epoch"], *(fidelity.get(name, config[name]) for name in LARGEST), status)
            self._asked.append(self._fidelities.setdefault(asked, len(self._fidelities)))
            if status == "finished" and all(fidelity[name] == highest for name, highest in full.items()):
                end.append(trial["end"])
                accuracy.append(trial["metrics"].get("valid_acc", np.nan))
                places.append(place)
        found = full_log(np.array(end), np.array(accuracy))
        kept = range(len(end)) if self._has_several else incumbents(found).rows.tolist()
        self._ends += [(len(self._logs), places[i], end[i], accuracy[i]) for i in kept]
        settings = json.dumps(header.get("optimizer_settings"), sort_keys=True)
        refit = -1 if own.refit is None else own.refit
        facts = (own.task, own.arm, refit, own.seed, len(trials), ending["ended"], ending["clock"], settings, digest)
        self._logs.append(facts)

    def tables(self) -> dict[str, Table]:
        """Return the tables.

        Raises:
            InvalidConfig: a config is invalid.
        """
        configs = {
            key: np.array(values) for key, values in zip(CONFIG_KEYS, zip(*self._rows, strict=True), strict=True)
        }
        asked = np.array(self._asked)
        fidelities = [np.array(values)[asked] for values in zip(*self._fidelities, strict=True)]
        found: dict[str, Sequence[Any]] = {  # Any: each column has a type of its own
            "logs.parquet": list(zip(*self._logs, strict=True)),
            "configs.parquet": list(validate_columns(configs).values()),
            "trials.parquet": [self._steps, *fidelities],
            "ends.parquet": list(zip(*self._ends, strict=True)) or [[]] * 4,
        }
        return {
            name: {
                column: np.asarray(values) if dtype == "string" else np.asarray(values).astype(dtype)
                for (column, dtype), values in zip(COLUMNS[name].items(), found[name], strict=True)
            }
            for name in COLUMNS
        }


def pack(path: Path, out: Path) -> Path:
    """Write the pack of a study to `out/<season>/<study>`, completely or not at all, and return its folder.

    Args:
        path: folder of a study, finished or not; the pack has its finished repetitions.

    Raises:
        MissingData: the folder is not a study, or has no finished repetition.
        CorruptFile: a log is damaged, was cut short or belongs to another study.
        ProtocolMismatch: the season has a study that used another release.
        InvalidArgument: `out` cannot be written.
    """
    require_pyarrow()
    folder = read_folder(path)
    season = season_of(folder.tasks)
    # Repetitions that share configs lie side by side, which packs well; the release comes before its refits.
    found = sorted(folder.finished(), key=lambda own: (own.task, own.seed, folder.arms.index(own.arm)))
    target = out / season / folder.study.name
    check_season(target.parent, season, {task: facts.release for task, facts in folder.tasks.items()})
    tables = _Tables(has_several=bool(folder.study.combinations))
    progress = Progress(len(found), f"pack {folder.study.name}")
    for number, own in enumerate(found, 1):
        header, trials, ending, digest = _read(path / own.path)
        check_owner(header, folder, own)
        tables.add(own, header, trials, ending, digest)
        progress.update(number, own.path)
    progress.close()
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with change_folder(target) as beside:
            files = {}
            for name, table in tables.tables().items():
                write_table(beside / name, table, COLUMNS[name])
                files[name] = sha256((beside / name).read_bytes()).hexdigest()
            has_worlds = any(folder.study.arm(name).world in WORLD_NAMES for name in folder.arms)
            worlds = {task: quality_of_worlds(path, task) for task in folder.tasks if has_worlds}
            facts = {"files": files, "season": season, "worlds": worlds}
            recorded = parse_json((path / "study.json").read_bytes())
            (beside / MANIFEST).write_text(sealed_text({**facts, "study.json": recorded}), encoding="utf-8")
    return target


def _read(path: Path) -> tuple[dict[str, Any], list[Any], dict[str, Any], str]:  # Any: JSON
    """Return header, trials and ending of a log, and 16 digits of its sha256.

    Configs are checked later, all at once: `read_log` takes ten times as long, and only says what is wrong here.
    """
    data = path.read_bytes()
    try:
        header, *trials, ending = map(json.loads, data.splitlines())
        is_whole = data.endswith(b"\n") and "ended" in ending and "view" in header
        if is_whole and all(
            tuple(line) == TRIAL_KEYS and tuple(line["config"]) == CONFIG_KEYS and line["status"] in _STATUSES
            for line in trials
        ):
            return header, trials, ending, sha256(data).hexdigest()[:16]
    except (ValueError, TypeError, KeyError):
        pass
    if read_log(path).ending is None:
        raise CorruptFile(f"{path} was cut short; remove it and run again")
    raise CorruptFile(f"{path} is not a log that a simulation writes; remove it and run again")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    about = "Pack all trials of a study as Parquet, from which its page can be made again."
    parser = new_parser("experiments.pack", about, example="out/joint --out data/studies")
    parser.add_argument("folder", type=Path, help="a folder written by python -m experiments.run")
    parser.add_argument("--out", type=Path, required=True, help="folder of seasons, such as data/studies")
    given = parser.parse_args(argv)

    def work() -> object:
        if given.folder.resolve() in given.out.resolve().parents:
            raise InvalidArgument(f"--out {given.out} must not be inside {given.folder}")
        target = pack(given.folder, given.out)
        n_bytes = {file.name: file.stat().st_size for file in sorted(target.iterdir())}
        return {"pack": str(target), "bytes": n_bytes, "total": sum(n_bytes.values())}

    return run_command("experiments.pack", work)


if __name__ == "__main__":
    sys.exit(main())
