"""The commands that ask a benchmark: query and trajectory."""

from __future__ import annotations

import argparse
import json
from typing import cast

from jahs.cli.arguments import Commands, add_bench, add_configs, names, open_bench, read_configs, to_json
from jahs.cli.look import format_config
from jahs.cli.tables import format_table, paint
from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.files.strict_json import parse_json
from jahs.queries.benchmark import Benchmark
from jahs.spaces.configs import Config

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    asked = commands.add("query", _query, "Ask how well configs do.", "jahs query N=5 W=16 --at 5 --at 12")
    asked.add_argument(
        "--at", action="append", type=_number, metavar="EPOCH", help="at which epoch (default: the last); many times"
    )
    path = commands.add(
        "trajectory", _trajectory, "Ask how a config does, epoch by epoch.", "jahs trajectory N=5 --to 6 --seed 1"
    )
    path.add_argument("--from", dest="frm", type=_number, default=1, metavar="EPOCH", help="first epoch (default: 1)")
    path.add_argument("--to", type=_number, metavar="EPOCH", help="last epoch (default: the task's)")
    path.add_argument("--step", type=_number, default=1, help="epochs between two rows (default: 1)")
    for parser in (asked, path):
        add_configs(parser)
        parser.add_argument("--seed", type=int, help="which draw of the training noise (default: the mean)")
        parser.add_argument("--metrics", metavar="NAME,NAME", help="which metrics (default: all)")
        add_bench(parser)


def _number(text: str) -> object:
    """Read a number as it is written; the benchmark checks whether it is an epoch."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _query(arguments: argparse.Namespace) -> str:
    bench = open_bench(arguments)
    configs = read_configs(arguments, bench)
    at = arguments.at or [bench.max_epoch]
    columns = bench.query_many(configs, at=at, seed=arguments.seed, metrics=names(arguments.metrics))
    found = {name: values.tolist() for name, values in columns.items()}  # of each, one row per config
    if arguments.json:
        lines = [
            {"config": config, "at": epoch, "seed": arguments.seed, "metrics": {m: found[m][i][j] for m in found}}
            for i, config in enumerate(configs)
            for j, epoch in enumerate(at)
        ]
        return "\n".join(map(json.dumps, lines))
    if len(configs) != 1:
        rows = [
            [i, epoch, *(found[name][i][j] for name in found)]
            for i in range(len(configs))
            for j, epoch in enumerate(at)
        ]
        head = ["config", "epoch", *(_name(bench, name) for name in found)]
        return "\n\n".join([_heading(bench, arguments.seed), format_table(head, rows)])
    rows = [[name, *found[name][0], bench.metrics[name].unit] for name in found]
    table = format_table(["metric", *(f"epoch {epoch}" for epoch in at), "unit"], rows)
    return "\n\n".join([_heading(bench, arguments.seed), format_config(cast("Config", configs[0])), table])


def _trajectory(arguments: argparse.Namespace) -> str:
    bench = open_bench(arguments)
    configs = read_configs(arguments, bench)
    if len(configs) != 1:
        raise InvalidArgument(f"--configs {arguments.configs}: {len(configs)} configs; a trajectory needs exactly one")
    try:
        columns = bench.trajectory(
            configs[0],
            frm=arguments.frm,
            to=arguments.to,
            step=arguments.step,
            seed=arguments.seed,
            metrics=names(arguments.metrics),
        )
    except InvalidFidelity as err:  # here it is not called as in Python, where from is taken
        raise InvalidFidelity(str(err).replace("frm=", "from=")) from err
    found = {name: values.tolist() for name, values in columns.items()}
    if arguments.json:
        return to_json({"config": configs[0], "seed": arguments.seed, "columns": found})
    constant = [] if arguments.metrics else [name for name in found if name in _constant(bench)]
    head = [_name(bench, name) for name in found if name not in constant]
    table = format_table(head, list(zip(*(found[name] for name in found if name not in constant), strict=True)))
    beside = format_table(
        ["at every epoch", "", ""], [[name, found[name][0], bench.metrics[name].unit] for name in constant]
    )
    parts = [_heading(bench, arguments.seed), format_config(cast("Config", configs[0])), table]
    return "\n\n".join([*parts, beside] if constant else parts)


def _constant(bench: Benchmark) -> list[str]:
    return [name for name, metric in bench.metrics.items() if not metric.by_epoch]


def _name(bench: Benchmark, name: str) -> str:
    return f"{name} ({bench.metrics[name].unit})" if name in bench.metrics else name


def _heading(bench: Benchmark, seed: int | None) -> str:
    mean = ", mean over the training noise" if bench.kind == "surrogate" else ""
    draw = mean if seed is None else f", seed {seed}"
    return paint(f"{bench.task.title}: {bench.kind}, {bench.max_epoch} epochs are a full training{draw}", "dim")
