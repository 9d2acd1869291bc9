"""The command `jahs`: what people ask from a terminal. Results go to stdout, everything else to stderr.

Exit codes: 0 done, 1 something else failed, 2 the user's mistake.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import jahs
from jahs.cli import ask, look, plots, published, releases, tour
from jahs.cli.arguments import Command, Commands
from jahs.errors import InvalidArgument, InvalidConfig, InvalidFidelity, JahsError, NotRecorded, UnknownName
from jahs.stdout import write_stdout

__all__ = ["main"]

_MISTAKES: Final = (InvalidArgument, InvalidConfig, InvalidFidelity, NotRecorded, UnknownName)

_ROOMS: Final = (tour, look, ask, plots, releases, published)
"""Where commands are defined, in the order in which --help lists them; each has `add_commands`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with the process's own."""
    arguments = _parser().parse_args(argv)
    command: Command = arguments.command
    try:
        write_stdout(command(arguments))
    except JahsError as err:
        sys.stderr.write("".join(f"jahs {arguments.name}: {line}\n" for line in str(err).splitlines()))
        return 2 if isinstance(err, _MISTAKES) else 1
    except OSError as err:  # a picture that cannot be written, for one
        sys.stderr.write(f"jahs {arguments.name}: {err}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jahs", description="Joint architecture and hyperparameter search on a laptop.", epilog="Try: jahs demo"
    )
    parser.add_argument("--version", action="version", version=f"jahs {jahs.__version__}")
    commands = Commands(parser)
    for room in _ROOMS:
        room.add_commands(commands)
    return parser
