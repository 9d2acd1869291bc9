"""The commands about JAHS-Bench-201's archives: download and import."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from jahs.cli.arguments import Commands, to_json
from jahs.errors import InvalidArgument, MissingData
from jahs.files.download import DownloadBar
from jahs.files.strict_json import parse_json
from jahs.files.tables import require_pyarrow
from jahs.published.fetching import ARCHIVES, VERSIONS, download_archives
from jahs.published.sources import PUBLISHED_TASKS, open_files
from jahs.published.surrogates import MODEL, import_surrogates
from jahs.published.table import RAW, REPORT, import_table
from jahs.queries.completing import add_front
from jahs.tasks.metrics import METRICS

__all__ = ["add_commands"]

_COUNTED: Final = ("rows", "runs", "configs")


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    fetched = commands.add(
        "download",
        _download,
        "Fetch JAHS-Bench-201's archives; its tables require pyarrow.",
        "jahs download jahs-bench-201 --what surrogates",
    )
    fetched.add_argument("benchmark", choices=["jahs-bench-201"], help="which benchmark's archives")
    fetched.add_argument("--what", choices=ARCHIVES, help="only this archive (default: all)")
    fetched.add_argument("--version", choices=VERSIONS, default=VERSIONS[0], help="release (default: %(default)s)")
    fetched.add_argument("--dir", type=Path, help="where to put them (default: the user's cache)")
    fetched.add_argument("--url", help="folder of the archives on another server")
    imported = commands.add(
        "import",
        _import,
        "Turn JAHS-Bench-201's archives into releases and runs; no pickle is executed.",
        "jahs import assembled_surrogates.tar --out releases",
    )
    imported.add_argument("path", type=Path, help="an archive, or the folder it was unpacked to")
    imported.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the releases or the runs go")
    imported.add_argument("--task", action="append", choices=PUBLISHED_TASKS, help="only this task; repeatable")
    imported.add_argument(
        "--metric", action="append", metavar="NAME", help=f"only this metric, e.g. {next(iter(METRICS))}; repeatable"
    )
    imported.add_argument(
        "--with-front",
        action="store_true",
        help="search each release for its Pareto fronts and reference points, on all cores (minutes a task)",
    )
    imported.add_argument(
        "--costs",
        choices=("published", "repaired"),
        default="published",
        help="what releases answer for costs: as published, or computed exactly and made consistent",
    )


def _download(arguments: argparse.Namespace) -> str:
    what = [arguments.what] if arguments.what else list(ARCHIVES)
    if "table" in what:
        require_pyarrow()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    fetched = download_archives(
        arguments.dir or cache / "jahs" / "jahs-bench-201" / arguments.version,
        what=what,
        version=arguments.version,
        url=arguments.url,
        report=DownloadBar(sys.stderr),
    )
    if arguments.json:
        return to_json(
            [{"path": str(x.path), "n_bytes": x.n_bytes, "sha256": x.sha256, "is_new": x.is_new} for x in fetched]
        )
    lines = [f"{x.path}: {x.n_bytes} bytes, sha256 {x.sha256}{'' if x.is_new else ', was there'}" for x in fetched]
    return "\n".join([*lines, f"Next: jahs import {fetched[0].path} --out DIR"])


def _import(arguments: argparse.Namespace) -> str:
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
            raise InvalidArgument("--with-front: a table answers recorded configs alone; import the surrogates")
        folders = import_table(path, out, tasks=arguments.task, report=_report)
        more = [line for folder in folders.values() for line in _findings(folder)]
    else:
        folders = import_surrogates(
            path, out, tasks=arguments.task, metrics=arguments.metric, costs=arguments.costs, report=_report
        )
        if arguments.with_front:
            for folder in folders.values():
                add_front(folder, report=_report)
        more = [f'Next: jahs.Benchmark("{next(iter(folders))}", release="{out}")']
    if arguments.json:
        return to_json({name: str(folder) for name, folder in folders.items()})
    return "\n".join([*(f"{name}: {folder}" for name, folder in folders.items()), *more])


def _findings(folder: Path) -> list[str]:
    found = parse_json((folder / REPORT).read_bytes())
    counts = found["counts"]
    written = ", ".join(f"{counts[f'{what}_written']} of {counts[f'{what}_read']} {what}" for what in _COUNTED)
    odd = [
        f"  {name:<17} {entry['n_found']:>7} in {entry['n_models']} runs. {entry['what']}"
        for name, entry in found["findings"].items()
        if entry["n_found"]
    ]
    return [f"{found['task']}: {written}", *odd]


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
