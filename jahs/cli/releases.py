"""The commands about releases (verify, quality) and about JAHS-Bench-201's archives (download, import)."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from jahs.cli.arguments import Commands, add_task, to_json
from jahs.cli.stdout import format_table, paint
from jahs.errors import CorruptFile, InvalidArgument, JahsError, MissingData
from jahs.files.download import DownloadBar
from jahs.files.strict_json import parse_json
from jahs.files.tables import require_pyarrow
from jahs.published.fetching import ARCHIVES, VERSIONS, download_archives
from jahs.published.sources import PUBLISHED_TASKS, open_files
from jahs.published.surrogates import MODEL, import_surrogates
from jahs.published.table import RAW, REPORT, import_table
from jahs.queries.benchmark import Benchmark
from jahs.queries.completing import add_front
from jahs.queries.drop_in import read_task
from jahs.queries.references import References
from jahs.release import Release, read_release, releases
from jahs.tasks.definitions import TASKS, caveats_of
from jahs.tasks.metrics import Metric

_WIDTH: Final = 120
_LEGEND: Final = """\
  A test row is one epoch of a test config, or one config for metrics without epochs. MAE is the mean absolute
  error. The noise ceiling is tau between two runs of the same configs, at the last epoch. Requirements below
  are for configs of all sizes; the release card also judges the best ones at full size, where searches end."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.add("quality", _quality, "jahs quality --json")
    add_task(parser)
    parser = commands.add("verify", _verify, "jahs verify cifar10_mini")
    parser.add_argument("release", metavar="RELEASE", help="a release's folder, or the name of a task")
    parser = commands.add("download", _download, "jahs download jahs-bench-201 --what surrogates")
    parser.add_argument("benchmark", choices=["jahs-bench-201"], help="which benchmark's archives")
    parser.add_argument("--what", choices=ARCHIVES, help="only this archive (default: all)")
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[0], help="release (default: %(default)s)")
    parser.add_argument("--dir", type=Path, help="folder for the archives (default: the user's cache)")
    parser.add_argument("--url", help="folder of the archives on another server")
    parser = commands.add("import", _import, "jahs import assembled_surrogates.tar --out releases")
    parser.add_argument("path", type=Path, help="an archive, or the folder it was unpacked to")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the releases or the runs")
    parser.add_argument("--task", action="append", choices=PUBLISHED_TASKS, help="only this task; repeatable")
    parser.add_argument("--metric", action="append", metavar="NAME", help="only this metric; repeatable")
    about_fronts = "search for Pareto fronts and reference points, on all cores (half a minute a task)"
    parser.add_argument("--with-front", action="store_true", help=about_fronts)
    about_costs = "costs as published, or computed exactly and made consistent (default: published)"
    parser.add_argument("--costs", choices=("published", "repaired"), help=about_costs)


def _verify(arguments: argparse.Namespace) -> str:
    """Check every file of a release: its sha256, and that it can be read."""
    folder = _find_folder(arguments.release)
    if not folder.is_dir():
        tasks = ", ".join({**TASKS, **releases()})
        raise InvalidArgument(f"{folder} is not a folder; give a release's folder, or a task: {tasks}")
    release = read_release(folder)
    names = sorted(release.manifest.files)
    checks: list[Callable[[], object]] = [
        *(partial(release.manifest.check, name) for name in names),
        release.check_contents,
        *_parts(release),
        lambda: release.reference_config,
    ]
    faults: dict[str, None] = {}  # each once, in order
    for check in checks:
        try:
            check()
        except JahsError as err:  # noqa: PERF203  # a few files
            faults[str(err)] = None
    if faults:
        raise CorruptFile("\n".join(faults))
    if arguments.json:
        return to_json({"files": names, "release": str(folder), "sha256": release.sha256})
    rows = [[name, release.manifest.files[name][0], "ok"] for name in names]
    head = f"{release.task.title}, {release.facts.get('version', 'no version')}, in {folder}"
    return "\n\n".join(
        [paint(head, "bold"), format_table(["file", "bytes", "sha256"], rows), "Every file can be read."]
    )


def _find_folder(name: str) -> Path:
    task = read_task(name)
    if Path(name).is_dir() and name not in TASKS:
        return Path(name)
    available = releases()
    if task not in TASKS and task not in available:
        return Path(name)
    if (folder := available.get(task)) is None:
        raise MissingData(f"there is no release for task {task!r}; give the folder of one: jahs verify FOLDER")
    return folder


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
    """Show the scores of a release's models."""
    bench = Benchmark(arguments.task, release=arguments.release, engine="numpy")
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
    lines = [paint(f"{bench.task.title}: {head or 'no description of the measurements'}", "bold")]
    lines += [textwrap.fill(f"Caveat: {caveat}", _WIDTH) for caveat in caveats_of([bench.task])]
    lines += [format_table(columns, rows), _LEGEND] if rows else ["The release has no scores of its models."]
    lines += ["\n".join(map(_requirement, quality.get("requirements") or ()))]
    return "\n\n".join(line for line in lines if line)


def _scores(metrics: Mapping[str, Metric], name: str, facts: Mapping[str, Any]) -> list[object]:
    """Return one row of the table: scores on the test part; a dash for a missing one."""
    cuts = (facts.get("test") or {}).get("cuts") or {}
    whole, last = ((cuts.get(cut) or {}) for cut in ("all", "last epoch"))
    cells = [
        name,
        *((whole.get("model") or {}).get(score) for score in ("n", "r2", "tau", "mae")),
        (last.get("model") or {}).get("mae"),
        metrics[name].unit if name in metrics else "",
        *((last.get(who) or {}).get("tau") for who in ("model", "ceiling")),
    ]
    return ["-" if value is None else value for value in cells]


def _requirement(facts: Mapping[str, Any]) -> str:
    """Return a requirement and the value reached, as a sentence."""
    is_tau = facts["score"] == "tau"
    value, ceiling, reached = (facts.get(key) for key in ("value", "ceiling", "reached"))
    if reached is None:
        score_text = "too few data"
    elif is_tau and value is not None and ceiling is not None:
        score_text = f"{value:.3f} / {ceiling:.3f} = {reached:.3f}"
    else:
        score_text = f"{reached:.3f}"
    verdict = {True: "reached", False: "not reached", None: "open"}[facts.get("is_met")]
    verdict += "" if facts.get("is_due", True) else " (required from 2,000 configs on)"
    if facts.get("is_met") is False and not is_tau and ceiling is not None and ceiling < facts["required"]:
        verdict += "; the noise ceiling is lower, too"
    what = f"{facts['metric']} {'tau / noise ceiling' if is_tau else 'R2'} ({facts['cut']})"
    return f"  {what}: {score_text}, required {facts['required']:g}: {verdict}"


_COUNTED: Final = ("rows", "runs", "configs")


def _download(arguments: argparse.Namespace) -> str:
    """Fetch JAHS-Bench-201's archives; its tables require pyarrow."""
    what = [arguments.what] if arguments.what else list(ARCHIVES)
    if "table" in what:
        require_pyarrow()
    fetched = download_archives(
        arguments.dir or _cache_folder() / "jahs" / "jahs-bench-201" / arguments.version,
        what=what,
        version=arguments.version,
        url=arguments.url,
        report=DownloadBar(sys.stderr),
    )
    if arguments.json:
        return to_json([{**asdict(x), "path": str(x.path)} for x in fetched])
    lines = [
        f"{x.path}: {x.n_bytes} bytes, sha256 {x.sha256}{'' if x.is_new else ', already downloaded'}" for x in fetched
    ]
    return "\n".join([*lines, f"Next: jahs import {fetched[0].path} --out DIR"])


def _cache_folder() -> Path:
    """Return the user's cache; MissingData if this user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as err:
        raise MissingData("this user has no home; name a folder with --dir") from err


def _import(arguments: argparse.Namespace) -> str:
    """Turn JAHS-Bench-201's archives into releases and runs; no pickle is executed."""
    path, out = arguments.path, arguments.out
    with open_files(path, (MODEL, RAW)) as files:
        kinds = {file.name for file in files}
    if kinds == {MODEL, RAW}:
        raise InvalidArgument(f"{path} holds surrogates and tables; import one of them at a time")
    if not kinds:
        raise MissingData(f"{path} holds no {MODEL} and no {RAW}; see: jahs download jahs-bench-201")
    if kinds == {RAW}:
        if arguments.metric:
            raise InvalidArgument(f"--metric {arguments.metric[0]}: a table is imported with all of its metrics")
        if arguments.with_front:
            raise InvalidArgument("--with-front: a table only answers recorded configs; import the surrogates")
        if arguments.costs:
            raise InvalidArgument("--costs: a table answers with recorded and exact costs; import the surrogates")
        folders = import_table(path, out, tasks=arguments.task, report=_report)
        notes = [line for folder in folders.values() for line in _findings(folder)]
    else:
        folders = import_surrogates(
            path,
            out,
            tasks=arguments.task,
            metrics=arguments.metric,
            costs=arguments.costs or "published",
            report=_report,
        )
        if arguments.with_front:
            for folder in folders.values():
                add_front(folder, report=_report)
        notes = [f'Next: jahs.Benchmark("{next(iter(folders))}", release="{out}")']
    if arguments.json:
        return to_json({name: str(folder) for name, folder in folders.items()})
    return "\n".join([*(f"{name}: {folder}" for name, folder in folders.items()), *notes])


def _findings(folder: Path) -> list[str]:
    report = parse_json((folder / REPORT).read_bytes())
    counts = report["counts"]
    written = ", ".join(f"{counts[f'{what}_written']} of {counts[f'{what}_read']} {what}" for what in _COUNTED)
    oddities = [
        f"  {name:<17} {entry['n_found']:>7} in {entry['n_models']} runs. {entry['what']}"
        for name, entry in report["findings"].items()
        if entry["n_found"]
    ]
    return [f"{report['task']}: {written}", *oddities]


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
