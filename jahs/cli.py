"""The command `jahs`: what people ask from a terminal. Results go to stdout, everything else to stderr.

Exit codes: 0 done, 1 something else failed, 2 the user's mistake.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence

import numpy as np

import jahs
from jahs.cell import Cell
from jahs.demo import demo, format_config
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, JahsError, UnknownName
from jahs.metrics import METRICS
from jahs.schema import CONFIG_KEYS
from jahs.spaces import space
from jahs.tasks import TASKS

__all__ = ["main"]

_MISTAKES = (InvalidArgument, InvalidConfig, InvalidFidelity, UnknownName)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], str] = arguments.command
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the drawing's characters shows ? for them
    try:
        print(command(arguments), flush=True)
    except JahsError as err:
        print("\n".join(f"jahs {arguments.name}: {line}" for line in str(err).splitlines()), file=sys.stderr)
        return 2 if isinstance(err, _MISTAKES) else 1
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. What is left in the buffer must not be complained about at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jahs", description="Joint architecture and hyperparameter search on a laptop.", epilog="Try: jahs demo"
    )
    parser.add_argument("--version", action="version", version=f"jahs {jahs.__version__}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], str], about: str, try_: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about, epilog=f"Try: {try_}")
        added.add_argument("--json", action="store_true", help="print JSON")
        added.set_defaults(command=command)
        return added

    shown = add("demo", _demo, "Show a random config, its cell and what its network costs.", "jahs demo --seed 1")
    shown.add_argument("--seed", type=int, default=0, help="which config (default: 0)")
    shown.add_argument("--task", default="fashion_mnist_mini", help="whose network (default: fashion_mnist_mini)")

    sampled = add("sample", _sample, "Draw random configs.", "jahs sample -n 3 --fix N=5 --fix W=16 --json")
    sampled.add_argument("-n", type=int, default=1, help="how many (default: 1)")
    sampled.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    sampled.add_argument(
        "--fix", action="append", default=[], metavar="KEY=VALUE", help="fix a parameter; may be given many times"
    )

    drawn = add("cell", _cell, "Draw a cell and tell its names.", "jahs cell 4 1 2 0 2 1")
    drawn.add_argument(
        "cell", nargs="+", help="six codes Op1 .. Op6, or a NAS-Bench-201 index, or its architecture string"
    )

    add("info", _info, "List the space, the tasks, the metrics and the versions.", "jahs info --json")
    return parser


def _demo(arguments: argparse.Namespace) -> str:
    shown = demo(seed=arguments.seed, task_name=arguments.task)
    return _json(shown.to_dict()) if arguments.json else str(shown)


def _sample(arguments: argparse.Namespace) -> str:
    searched = space(dict(map(_fixed_item, arguments.fix)))
    configs = searched.sample(arguments.n, seed=arguments.seed)
    if arguments.json:
        return "\n".join(json.dumps(config) for config in configs)
    return "\n\n".join(map(format_config, configs))


def _fixed_item(text: str) -> tuple[str, object]:
    """Read KEY=VALUE; a value that is not a number, True or False is a string."""
    key, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument(f"--fix {text}: write KEY=VALUE; KEY is one of: {', '.join(CONFIG_KEYS)}")
    try:
        return key, json.loads(value.lower())
    except ValueError:
        return key, value


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
        return _json(facts)
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
    if arguments.json:
        return _json({"metrics": list(METRICS), "tasks": list(TASKS), "versions": versions})
    tasks = [
        f"  {t.name:<21} {t.side} px, {t.n_train} / {t.n_valid} / {t.n_test} images, {t.max_epoch} epochs"
        for t in TASKS.values()
    ]
    metrics = [f"  {m.name:<21} {m.unit}, {m.kind}" for m in METRICS.values()]
    return "\n".join(
        [
            ", ".join(f"{name} {version}" for name, version in versions.items()),
            "",
            str(space()),
            "",
            "Tasks (train / valid / test):",
            *tasks,
            "",
            "Metrics:",
            *metrics,
        ]
    )


def _json(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True)
