"""The commands that need no release (sample, cell, info), and those that query a benchmark (query, trajectory)."""

from __future__ import annotations

import argparse
import json
import platform
import re
from pathlib import Path
from typing import cast

import numpy as np

import jahs
from jahs.cli.arguments import Commands, add_query, fixed_values, open_bench, read_configs, read_value, to_json
from jahs.cli.stdout import format_table, paint
from jahs.comparison.summaries import value_text
from jahs.errors import InvalidArgument, InvalidFidelity, JahsError
from jahs.queries.benchmark import Benchmark
from jahs.release import releases
from jahs.release.manifest import read_manifest
from jahs.schema import OPS
from jahs.spaces.cell import Cell
from jahs.spaces.configs import Config
from jahs.spaces.space import space
from jahs.tasks.definitions import TASKS
from jahs.tasks.metrics import METRICS


def add_commands(commands: Commands) -> None:
    """Add the commands of this module, first those that need no release."""
    sample = commands.add("sample", _sample, "jahs sample -n 3 --fix N=5 --fix W=16 --json")
    sample.add_argument("-n", type=int, default=1, help="number of configs (default: 1)")
    sample.add_argument("--seed", type=int, default=0, help="seed of the configs (default: 0)")
    sample.add_argument("--fix", action="append", default=[], metavar="KEY=VALUE", help="fix a parameter; repeatable")
    cell = commands.add("cell", _cell, "jahs cell 4 1 2 0 2 1")
    cell.add_argument("cell", nargs="+", help="six codes Op1 .. Op6, or NAS-Bench-201's index or architecture string")
    commands.add("info", _info, "jahs info --json")
    query = commands.add("query", _query, "jahs query N=5 W=16 --at 5 --at 12")
    query.add_argument(
        "--at", action="append", type=read_value, metavar="EPOCH", help="epoch (default: the last); repeatable"
    )
    path = commands.add("trajectory", _trajectory, "jahs trajectory N=5 --to 6 --seed 1")
    path.add_argument(
        "--from", dest="frm", type=read_value, default=1, metavar="EPOCH", help="first epoch (default: 1)"
    )
    path.add_argument("--to", type=read_value, metavar="EPOCH", help="last epoch (default: the task's)")
    path.add_argument("--step", type=read_value, default=1, help="epochs between two rows (default: 1)")
    for parser in (query, path):
        add_query(parser, "metrics to return (default: all)")


def _sample(arguments: argparse.Namespace) -> str:
    """Draw random configs."""
    searched = space(fixed_values(arguments.fix))
    configs = searched.sample(arguments.n, seed=arguments.seed)
    if arguments.json:
        return "\n".join(json.dumps(config) for config in configs)
    return "\n\n".join(map(format_config, configs))


def _cell(arguments: argparse.Namespace) -> str:
    """Draw a cell and show its names."""
    words: list[str] = arguments.cell
    if len(words) == 1 and "|" in words[0]:
        cell = Cell.from_nb201_string(words[0])
    else:
        numbers = [_integer(text) for text in words]
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
    if not re.fullmatch("-?[0-9]{1,99}", text):  # int() also reads 1_0 and digits of other scripts
        raise InvalidArgument(
            f"{text!r} is not an integer; a cell is six codes from 0 to 4, an index from 0 to 15624, or a string as in "
            "'|avg_pool_3x3~0|+|none~0|skip_connect~1|+|nor_conv_3x3~0|nor_conv_3x3~1|none~2|'"
        )
    return int(text)


def _info(arguments: argparse.Namespace) -> str:
    """List the space, tasks, metrics, releases and versions."""
    versions = {"jahs": jahs.__version__, "numpy": np.__version__, "python": platform.python_version()}
    installed = releases()
    folders = {name: str(folder) for name, folder in installed.items()}
    numbers = {name: _release_number(folder) for name, folder in installed.items()}
    if arguments.json:
        facts = {"metrics": list(METRICS), "release_numbers": numbers, "releases": folders, "tasks": list(TASKS)}
        return to_json({**facts, "versions": versions})
    tasks = [
        f"  {t.name:<21} {t.side} px, {t.n_train} / {t.n_valid} / {t.n_test} images, {t.max_epoch} epochs"
        for t in TASKS.values()
    ]
    metrics = [f"  {m.name:<21} {m.unit}, {m.kind}" for m in METRICS.values()]
    sections = {
        "Tasks (train / valid / test):": tasks,
        "Metrics:": metrics,
        "Releases:": [f"  {name:<21} {numbers[name]}, {folder}" for name, folder in folders.items()] or ["  none"],
    }
    head = ", ".join(f"{name} {version}" for name, version in versions.items())
    return "\n\n".join([head, str(space()), *("\n".join([title, *lines]) for title, lines in sections.items())])


def _release_number(folder: Path) -> str:
    """Return the version of a release; `jahs verify` explains a damaged one."""
    try:
        return str(read_manifest(folder).facts.get("version", "no number"))
    except JahsError:
        return "cannot be read"


def format_config(config: Config) -> str:
    """Return one line per key, the operations of the cell on one."""
    texts = {key: value_text(value, 6) for key, value in config.items()}
    ops = " ".join(texts.pop(op) for op in OPS)
    return "\n".join(f"  {key:<15} {text}" for key, text in {**texts, "Op1 .. Op6": ops}.items())


def _query(arguments: argparse.Namespace) -> str:
    """Query the metrics of configs."""
    bench = open_bench(arguments)
    configs = read_configs(arguments, bench)
    at = arguments.at or [bench.max_epoch]
    try:
        columns = bench.query_many(configs, at=at, seed=arguments.seed, metrics=arguments.metrics)
    except InvalidFidelity as err:  # the message is for Python
        text = str(err).replace("at=", "--at ").replace("; bench.fidelity() rounds", "")
        raise InvalidFidelity(f"{text}; for several epochs: --at 5 --at 12") from err
    by_metric = {name: values.tolist() for name, values in columns.items()}  # one row per config in each column
    answers = [
        (i, epoch, {name: by_metric[name][i][j] for name in by_metric})
        for i in range(len(configs))
        for j, epoch in enumerate(at)
    ]
    if arguments.json:
        lines = [
            {"config": configs[i], "at": epoch, "seed": arguments.seed, "metrics": metrics}
            for i, epoch, metrics in answers
        ]
        return "\n".join(map(json.dumps, lines))
    if len(configs) != 1:
        rows = [[i, epoch, *metrics.values()] for i, epoch, metrics in answers]
        head = ["config", "epoch", *(_name(bench, name) for name in by_metric)]
        return "\n\n".join([_heading(bench, arguments.seed), format_table(head, rows)])
    rows = [[name, *by_metric[name][0], bench.metrics[name].unit] for name in by_metric]
    table = format_table(["metric", *(f"epoch {epoch}" for epoch in at), "unit"], rows)
    return "\n\n".join([_heading(bench, arguments.seed), format_config(cast("Config", configs[0])), table])


def _trajectory(arguments: argparse.Namespace) -> str:
    """Query a config's metrics, epoch by epoch."""
    bench = open_bench(arguments)
    configs = read_configs(arguments, bench)
    if len(configs) != 1:
        raise InvalidArgument(f"--configs {arguments.configs}: {len(configs)} configs; a trajectory needs exactly one")
    try:
        options = ("frm", "to", "step", "seed", "metrics")
        columns = bench.trajectory(configs[0], **{name: getattr(arguments, name) for name in options})
    except InvalidFidelity as err:  # the option is --from, which is a keyword in Python
        raise InvalidFidelity(str(err).replace("frm=", "from=")) from err
    curves = {name: values.tolist() for name, values in columns.items()}
    if arguments.json:
        return to_json({"config": configs[0], "seed": arguments.seed, "columns": curves})
    known = bench.metrics
    constants = [] if arguments.metrics else [name for name in curves if name in known and not known[name].by_epoch]
    varied = [name for name in curves if name not in constants]
    rows = list(zip(*(curves[name] for name in varied), strict=True))
    table = format_table([_name(bench, name) for name in varied], rows)
    parts = [_heading(bench, arguments.seed), format_config(cast("Config", configs[0])), table]
    if constants:
        at_every_epoch = [[name, curves[name][0], known[name].unit] for name in constants]
        parts.append(format_table(["at every epoch", "", ""], at_every_epoch))
    return "\n\n".join(parts)


def _name(bench: Benchmark, name: str) -> str:
    return f"{name} ({bench.metrics[name].unit})" if name in bench.metrics else name


def _heading(bench: Benchmark, seed: int | None) -> str:
    mean = ", mean over the training noise" if bench.kind == "surrogate" else ""
    draw = mean if seed is None else f", seed {seed}"
    epochs = f"{bench.max_epoch} epoch{'s' * (bench.max_epoch > 1)}"
    which = bench.kind if bench.refit is None else f"refit {bench.refit}"
    return paint(f"{bench.task.title}: {which}, a full training has {epochs}{draw}", "dim")
