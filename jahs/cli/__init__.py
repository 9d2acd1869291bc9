"""The command `jahs`. Results go to stdout, everything else to stderr.

Exit codes: 0 success, 1 other failures, 2 the user's mistake, 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import jahs
from jahs.cli import ask, compare, completion, plots, releases, tour
from jahs.cli.arguments import Command, Commands, Parser
from jahs.cli.stdout import open_streams, write_stdout
from jahs.errors import (
    InvalidArgument,
    InvalidConfig,
    InvalidFidelity,
    JahsError,
    MissingData,
    NotRecorded,
    ProtocolMismatch,
    UnknownName,
)
from jahs.files.atomic import write_fault

__all__ = ["main"]

_MISTAKES: Final = (
    *(InvalidArgument, InvalidConfig, InvalidFidelity),
    *(MissingData, NotRecorded, ProtocolMismatch, UnknownName),
)

_MODULES: Final = (tour, ask, plots, compare, releases, completion)
"""The modules that define commands, in the order of --help; each has `add_commands`."""

_RESUMABLE: Final = ("compare", "download", "import", "serve")
"""Commands that keep finished work: a run's log, an archive or part of one, a model, a task's table."""


@open_streams()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    arguments = _read_arguments(argv)
    command: Command = arguments.command
    try:
        write_stdout(command(arguments))
    except JahsError as err:
        sys.stderr.write("".join(f"jahs {arguments.name}: {line}\n" for line in str(err).splitlines()))
        return 2 if isinstance(err, _MISTAKES) else 1
    except OSError as err:  # for example a picture that cannot be written
        sys.stderr.write(f"jahs {arguments.name}: {write_fault(err) or err}\n")
        return 1
    except KeyboardInterrupt:
        line_end = "\n" if sys.stderr.isatty() else ""  # ends a progress bar, or the terminal's ^C
        is_kept = arguments.name in _RESUMABLE and (arguments.name != "serve" or arguments.log is not None)
        hint = "; the same command keeps finished work and continues" if is_kept else ""
        sys.stderr.write(f"{line_end}jahs {arguments.name}: stopped{hint}\n")
        return 130
    return 0


def _read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; words that argparse leaves over are KEY=VALUE if the command takes such values."""
    parser = Parser(
        prog="jahs", description="Joint architecture and hyperparameter search on a laptop.", epilog="Try: jahs demo"
    )
    parser.add_argument("--version", action="version", version=f"jahs {jahs.__version__}")
    commands = Commands(parser)
    for module in _MODULES:
        module.add_commands(commands)
    words = sys.argv[1:] if argv is None else argv
    if not words:
        parser.print_help(sys.stderr)
        sys.exit(2)
    arguments, extra = parser.parse_known_args(words)
    extra = [word for word in extra if word != "--"]
    if extra and (any(word.startswith("-") for word in extra) or "values" not in arguments):
        commands.parsers[arguments.name].error(f"unrecognized arguments: {' '.join(extra)}")
    if extra:
        arguments.values = [*arguments.values, *extra]
    return arguments
