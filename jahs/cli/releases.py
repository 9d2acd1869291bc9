"""The commands about releases: verify and quality."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from jahs.cli.arguments import Commands, add_bench, open_bench, to_json
from jahs.cli.stdout import format_table, paint
from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData
from jahs.queries.references import References
from jahs.release import Release, read_release, releases
from jahs.tasks.definitions import TASKS, caveats_of
from jahs.tasks.metrics import Metric

__all__ = ["add_commands"]

_WIDTH: Final = 120
_OF_WHAT: Final = """\
  A test row is one epoch of a test config; what no epoch changes has one row per config. MAE is the mean absolute
  error. The noise ceiling is tau between two runs of the same configs, at the last epoch."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    quality = commands.add("quality", _quality, "Show how good a release's models are.", "jahs quality --json")
    add_bench(quality)
    verified = commands.add(
        "verify",
        _verify,
        "Check every file of a release: its sha256, and that it can be read.",
        "jahs verify fashion_mnist_mini",
    )
    verified.add_argument("release", metavar="RELEASE", help="a release's folder, or the name of a task")


def _verify(arguments: argparse.Namespace) -> str:
    folder = _find_folder(arguments.release)
    if not folder.is_dir():
        raise InvalidArgument(f"{folder} is not a folder; give a release's folder, or a task: {', '.join(TASKS)}")
    release = read_release(folder)
    names = sorted(release.manifest.files)
    checks: list[Callable[[], object]] = [
        *(partial(release.manifest.check, name) for name in names),
        release.check_contents,
        *_parts(release),
    ]
    faults = list(dict.fromkeys(fault for check in checks if (fault := _fault(check))))
    if faults:
        raise CorruptFile("\n".join(faults))
    if arguments.json:
        return to_json({"files": names, "release": str(folder), "sha256": release.sha256})
    rows = [[name, release.manifest.files[name][0], "ok"] for name in names]
    head = f"{release.task.title}, {release.facts.get('version', 'no version')}, in {folder}"
    return "\n\n".join(
        [paint(head, "bold"), format_table(["file", "bytes", "sha256"], rows), "Every file can be read."]
    )


def _find_folder(named: str) -> Path:
    if named not in TASKS:
        return Path(named)
    if (folder := releases().get(named)) is None:
        raise MissingData(f"there is no release for task {named!r}; give the folder of one: jahs verify FOLDER")
    return folder


def _fault(check: Callable[[], object]) -> str | None:
    """Return the fault of a part of a release, or None."""
    try:
        check()
    except JahsError as err:
        return str(err)
    return None


def _parts(release: Release) -> list[Callable[[], object]]:
    """Return a reader for each existing part of a release."""
    readers: dict[str, Callable[[], object]] = {
        "models.json": lambda: release.forests,
        "table.npz": lambda: release.table,
        "noise.json": lambda: release.noise,
        "references.json": lambda: release.parse("references.json", References.from_dict),
        "quality.json": lambda: release.quality,
    }
    return [read for name, read in readers.items() if release.has(name)]


def _quality(arguments: argparse.Namespace) -> str:
    bench = open_bench(arguments)
    quality = bench.quality()
    if arguments.json:
        return to_json(quality)
    data: Mapping[str, Any] = quality.get("data") or {}
    head = ", ".join(f"{data[name]:,} {name}" for name in ("configs", "runs", "rows") if name in data)
    rows = [_scores(bench.metrics, name, facts) for name, facts in (quality.get("metrics") or {}).items()]
    columns = [
        "metric", "test rows", "R2, all epochs", "tau, all epochs", "MAE, all epochs", "MAE, last epoch", "unit",
        "tau, last epoch", "noise ceiling",
    ]  # fmt: skip
    lines = [paint(f"{bench.task.title}: {head or 'no word on what was measured'}", "bold")]
    lines += [textwrap.fill(f"Caveat: {caveat}", _WIDTH) for caveat in caveats_of([bench.task])]
    lines += [format_table(columns, rows), _OF_WHAT] if rows else ["The release says nothing of its models."]
    lines += ["\n".join(map(_requirement, quality.get("requirements") or ()))]
    return "\n\n".join(line for line in lines if line)


def _scores(metrics: Mapping[str, Metric], name: str, facts: Mapping[str, Any]) -> list[object]:
    """Return one row of the table: scores on the test part; a dash for a missing one."""
    cuts = (facts.get("test") or {}).get("cuts") or {}
    whole, last = ((cuts.get(cut) or {}) for cut in ("all", "last epoch"))
    found = [
        name,
        *((whole.get("model") or {}).get(score) for score in ("n", "r2", "tau", "mae")),
        (last.get("model") or {}).get("mae"),
        metrics[name].unit if name in metrics else "",
        *((last.get(who) or {}).get("tau") for who in ("model", "ceiling")),
    ]
    return ["-" if value is None else value for value in found]


def _requirement(facts: Mapping[str, Any]) -> str:
    """Return a requirement and what was reached, as a sentence."""
    is_tau = facts["score"] == "tau"
    value, ceiling, reached = (facts.get(key) for key in ("value", "ceiling", "reached"))
    if reached is None:
        found = "too few data"
    elif is_tau and value is not None and ceiling is not None:
        found = f"{value:.3f} / {ceiling:.3f} = {reached:.3f}"
    else:
        found = f"{reached:.3f}"
    verdict = {True: "reached", False: "not reached", None: "open"}[facts.get("is_met")]
    verdict += "" if facts.get("is_due", True) else ", not due yet"
    if facts.get("is_met") is False and not is_tau and ceiling is not None and ceiling < facts["required"]:
        verdict += "; the noise ceiling is lower, too"
    what = f"{facts['metric']} {'tau / noise ceiling' if is_tau else 'R2'} ({facts['cut']})"
    return f"  {what}: {found}, required {facts['required']:g}: {verdict}"
