"""Shared parts of the commands: adding them, and reading configs, metrics and benchmarks from arguments."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from jahs.errors import InvalidArgument
from jahs.files.strict_json import json_lines, parse_json
from jahs.queries.benchmark import Benchmark
from jahs.schema import CONFIG_KEYS
from jahs.spaces.seeds import read_seed
from jahs.spaces.space import space
from jahs.tasks.definitions import DEFAULT_TASK

Command: TypeAlias = Callable[[argparse.Namespace], str]
"""A command: takes the arguments and returns the text for stdout."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the nearest command, option or choice."""

    def error(self, message: str) -> NoReturn:
        """Print usage and message to stderr, and exit with 2."""
        if unknown := re.search(r"(?:invalid choice|unrecognized arguments): '?([\w-]+)", message):
            known = [str(word) for each in self._actions for word in (*each.option_strings, *(each.choices or ()))]
            suggestions = get_close_matches(unknown[1], known, n=1)  # argparse has no public list of actions
            message += f"; did you mean {suggestions[0]}?" if suggestions else ""
        super().error(message)


class Commands:
    """The commands of a parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._subparsers = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    @property
    def parsers(self) -> Mapping[str, argparse.ArgumentParser]:
        """The parser of each command, including commands that are added later."""
        return self._subparsers.choices

    def add(self, name: str, command: Command, try_: str) -> argparse.ArgumentParser:
        """Add a command, whose docstring is its help, and return its parser; every command has --json."""
        about = command.__doc__
        parser = self._subparsers.add_parser(name, help=about, description=about, epilog=f"Try: {try_}")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.set_defaults(command=command)
        return parser


def add_task(parser: argparse.ArgumentParser) -> None:
    """Add --task and --release."""
    parser.add_argument("--task", help=f"name of the task (default: the release's, or {DEFAULT_TASK})")
    parser.add_argument("--release", type=Path, metavar="FOLDER", help="release folder (default: the task's own)")


def open_bench(arguments: argparse.Namespace) -> Benchmark:
    """Return the benchmark that the arguments of a query name.

    The engine is numpy's: for the few queries of a command, loading the compiled one would take longer than answering.
    """
    release, refit = arguments.release, arguments.refit
    return Benchmark(arguments.task, arguments.kind, release=release, refit=refit, engine="numpy")


def add_query(parser: argparse.ArgumentParser, metrics: str) -> None:
    """Add the arguments of a query: configs for `read_configs`, --seed, --metrics and those of the benchmark."""
    parser.add_argument("values", nargs="*", default=[], metavar="KEY=VALUE", help="replaces a value of the config")
    about_seed = "seed of the config; with --kind table, of a recorded one (default: 0)"
    parser.add_argument("--config-seed", type=int, metavar="SEED", help=about_seed)
    parser.add_argument("--configs", metavar="FILE", help="file of configs, one JSON object per line; - is stdin")
    parser.add_argument("--seed", type=int, help="seed of the training noise (default: the mean)")
    parser.add_argument("--metrics", type=names, metavar="NAME,NAME", help=metrics)
    add_task(parser)
    parser.add_argument("--kind", default="surrogate", help="oracle: surrogate, table or live (default: surrogate)")
    parser.add_argument("--refit", type=int, metavar="K", help="answer with a bootstrap refit: 0, 1, 2 and so on")


def read_configs(arguments: argparse.Namespace, bench: Benchmark, *, n: int = 1) -> list[dict[str, object]]:
    """Return the configs that the arguments name; the query checks the content of a file."""
    for text in arguments.values:
        key, _, value = text.partition("=")
        option = {"at": "at", "epoch": "at", "seed": "seed"}.get(key)  # arguments of methods in Python
        if option is not None and option in arguments:
            raise InvalidArgument(f"{text}: {key} is not a key of a config; write --{option} {value}")
    overrides = fixed_values(arguments.values)
    if arguments.configs is None:
        seed = read_seed(arguments.config_seed or 0, name="--config-seed")
        return [{**config, **overrides} for config in bench.sample(n, seed=seed)]
    if arguments.config_seed is not None:
        raise InvalidArgument("--configs and --config-seed both name configs; give one of them")
    if arguments.configs == "-" and sys.stdin is None:  # Python sets it to None after `<&-` in a shell
        raise InvalidArgument("--configs -: stdin is closed; pipe configs into the command, or name a file")
    try:
        text = sys.stdin.read() if arguments.configs == "-" else Path(arguments.configs).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise InvalidArgument(f"--configs {arguments.configs}: {getattr(err, 'strerror', None) or err}") from err
    configs = []
    for number, line in json_lines(text):
        where = f"--configs {arguments.configs}: line {number} is not"
        try:
            config = parse_json(line)
        except json.JSONDecodeError as err:
            reason = f"JSON ({err.msg} at column {err.colno})"
            raise InvalidArgument(f"{where} {reason}; write one config per line, as `jahs sample --json`") from err
        if not isinstance(config, dict):
            raise InvalidArgument(f"{where} a JSON object; write one config per line")
        configs.append({**config, **overrides})
    if not configs:
        raise InvalidArgument(
            f"--configs {arguments.configs} holds no config; write one per line, as `jahs sample --json`"
        )
    return configs


def fixed_values(texts: list[str]) -> dict[str, Any]:  # Any: values of a config
    """Read KEY=VALUE arguments; a string may have quotes."""
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidArgument(f"{text}: write KEY=VALUE; KEY is one of: {', '.join(CONFIG_KEYS)}")
        if key in values:
            raise InvalidArgument(f"{text}: {key} is given twice; give it once")
        values[key] = read_value(value)
    return space(values).fixed


def read_value(text: str) -> Any:  # Any: the query checks it
    """Return a number, True or False if the text spells one, or else the text."""
    for form in (text, text.lower()):  # True is not JSON, but true is
        try:
            return json.loads(form)
        except (ValueError, RecursionError):  # noqa: PERF203  # only two forms
            continue
    return text


def names(text: str) -> list[str]:
    """Read names separated by commas."""
    return [name.strip() for name in text.split(",")]


def to_json(value: object) -> str:
    """Return JSON that machines and people can read."""
    return json.dumps(value, indent=2, sort_keys=True)
