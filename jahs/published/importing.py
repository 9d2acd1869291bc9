"""`jahs import`: published archives become releases and folders of runs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from jahs.errors import InvalidArgument, MissingData
from jahs.files.strict_json import parse_json
from jahs.published.sources import PUBLISHED_TASKS, open_files
from jahs.published.surrogates import import_surrogates
from jahs.published.table import REPORT, import_table
from jahs.tasks.metrics import METRICS

__all__ = ["add_arguments", "run"]

_MODEL, _RAW = "model.pkl.gz", "raw.pkl.gz"
_COUNTED = ("rows", "runs", "configs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what `run` reads."""
    parser.add_argument("path", type=Path, help="assembled_surrogates.tar or metric_data.tar, or where it was unpacked")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the releases or the runs go")
    parser.add_argument("--task", action="append", choices=PUBLISHED_TASKS, help="only this task; may be given again")
    parser.add_argument(
        "--metric", action="append", metavar="NAME", help=f"only this metric, such as {next(iter(METRICS))}"
    )
    parser.add_argument(
        "--costs",
        choices=("published", "repaired"),
        default="published",
        help="what releases answer for costs: as published, or computed exactly and made consistent",
    )


def run(arguments: argparse.Namespace) -> str:
    """Import what the arguments say; return what to print."""
    with open_files(arguments.path, (_MODEL, _RAW)) as files:
        kinds = {file.name for file in files}
    if kinds == {_MODEL, _RAW}:
        raise InvalidArgument(f"{arguments.path} holds surrogates and tables; import one of them at a time")
    if not kinds:
        raise MissingData(f"{arguments.path} holds no {_MODEL} and no {_RAW}; see: jahs download jahs-bench-201")
    if kinds == {_RAW}:
        if arguments.metric:
            raise InvalidArgument(f"--metric {arguments.metric[0]}: a table is imported with all of its metrics")
        folders = import_table(arguments.path, arguments.out, tasks=arguments.task, report=_report)
        return _shown(folders, arguments, [line for folder in folders.values() for line in _findings(folder)])
    folders = import_surrogates(
        arguments.path,
        arguments.out,
        tasks=arguments.task,
        metrics=arguments.metric,
        costs=arguments.costs,
        report=_report,
    )
    example = next(iter(folders))
    return _shown(folders, arguments, [f'Next: jahs.Benchmark("{example}", release="{arguments.out}")'])


def _shown(folders: dict[str, Path], arguments: argparse.Namespace, more: list[str]) -> str:
    if getattr(arguments, "json", False):
        return json.dumps({name: str(folder) for name, folder in folders.items()}, indent=2, sort_keys=True)
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
