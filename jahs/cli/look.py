"""The commands that need no release: sample, cell, info."""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np

import jahs
from jahs.cli.arguments import Commands, fixed_values, to_json
from jahs.errors import InvalidArgument, JahsError
from jahs.release import releases
from jahs.release.manifest import read_manifest
from jahs.spaces.cell import Cell
from jahs.spaces.configs import Config
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import METRICS

__all__ = ["add_commands", "format_config"]


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    sampled = commands.add("sample", _sample, "Draw random configs.", "jahs sample -n 3 --fix N=5 --fix W=16 --json")
    sampled.add_argument("-n", type=int, default=1, help="how many (default: 1)")
    sampled.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    sampled.add_argument(
        "--fix", action="append", default=[], metavar="KEY=VALUE", help="fix a parameter; may be given many times"
    )
    drawn = commands.add("cell", _cell, "Draw a cell and show its names.", "jahs cell 4 1 2 0 2 1")
    drawn.add_argument(
        "cell", nargs="+", help="six codes Op1 .. Op6, or a NAS-Bench-201 index, or its architecture string"
    )
    commands.add("info", _info, "List the space, tasks, metrics, releases and versions.", "jahs info --json")


def _sample(arguments: argparse.Namespace) -> str:
    searched = space(fixed_values(arguments.fix))
    configs = searched.sample(arguments.n, seed=arguments.seed)
    if arguments.json:
        return "\n".join(json.dumps(config) for config in configs)
    return "\n\n".join(map(format_config, configs))


def _cell(arguments: argparse.Namespace) -> str:
    given: list[str] = arguments.cell
    if len(given) == 1 and "|" in given[0]:
        cell = Cell.from_nb201_string(given[0])
    else:
        numbers = [_integer(text) for text in given]
        cell = Cell.from_nb201_index(numbers[0]) if len(numbers) == 1 else Cell(tuple(numbers))
    facts = {
        "effective_depth": cell.effective_depth,
        "n_parameter_free": cell.n_parameter_free,
        "nb201_index": cell.nb201_index,
        "nb201_string": cell.nb201_string,
        "ops": list(cell.ops),
    }
    if arguments.json:
        return to_json(facts)
    return "\n".join([cell.draw(), "", *(f"{name:<17} {value}" for name, value in facts.items())])


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as err:
        raise InvalidArgument(
            f"{text!r} is not an integer; a cell is six codes from 0 to 4, an index from 0 to 15624, or a string as in "
            "'|avg_pool_3x3~0|+|none~0|skip_connect~1|+|nor_conv_3x3~0|nor_conv_3x3~1|none~2|'"
        ) from err


def _info(arguments: argparse.Namespace) -> str:
    versions = {"jahs": jahs.__version__, "numpy": np.__version__, "python": platform.python_version()}
    found = {name: str(folder) for name, folder in releases().items()}
    numbers = {name: _number(folder) for name, folder in releases().items()}
    if arguments.json:
        facts = {"metrics": list(METRICS), "release_numbers": numbers, "releases": found, "tasks": list(TASKS)}
        return to_json({**facts, "versions": versions})
    tasks = [
        f"  {t.name:<21} {t.side} px, {t.n_train} / {t.n_valid} / {t.n_test} images, {t.max_epoch} epochs"
        for t in TASKS.values()
    ]
    metrics = [f"  {m.name:<21} {m.unit}, {m.kind}" for m in METRICS.values()]
    sections = {
        "Tasks (train / valid / test):": tasks,
        "Metrics:": metrics,
        "Releases:": [f"  {name:<21} {numbers[name]}, {folder}" for name, folder in found.items()] or ["  none"],
    }
    head = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n\n".join([head, str(space()), *("\n".join([title, *lines]) for title, lines in sections.items())])


def _number(folder: Path) -> str:
    """Return the number of a release; `jahs verify` explains a damaged one."""
    try:
        return str(read_manifest(folder).facts.get("version", "no number"))
    except JahsError:
        return "cannot be read"


def format_config(config: Config) -> str:
    """Return one line per key, the operations of the cell on one."""
    ops = [str(value) for key, value in config.items() if key.startswith("Op") and key != "Optimizer"]
    rows = [(key, f"{value:.6g}" if isinstance(value, float) else str(value)) for key, value in config.items()]
    shown = [row for row in rows if not row[0].startswith("Op") or row[0] == "Optimizer"]
    return "\n".join(f"  {key:<15} {value}" for key, value in [*shown, ("Op1 .. Op6", " ".join(ops))])
