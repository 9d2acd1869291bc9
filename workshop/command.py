"""The frame of every command: parser, log, exit status and output."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jahs.cli.signals import on_sigterm
from jahs.cli.stdout import write_stdout
from jahs.errors import JahsError
from jahs.files.atomic import write_fault

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailedResult:
    """A result that is printed although the command ends with status 1."""

    result: object


def new_parser(command: str, about: str | None, *, example: str = "", more: str = "") -> argparse.ArgumentParser:
    """Return the parser of `python -m <command>`; `example` holds arguments that work, and `more` comes after it."""
    return argparse.ArgumentParser(
        prog=f"python -m {command}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(filter(None, [f"Example: python -m {command} {example}".rstrip(), more])),
    )


def add_workers(parser: argparse.ArgumentParser, *, default: int = 2) -> None:
    """Add --workers."""
    about = "processes, one core each (default: %(default)s)"
    parser.add_argument("--workers", type=int, default=default, help=about)


def add_minutes(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --minutes, after which no `what` is begun."""
    about = f"begin no {what} after so many minutes (default: no limit)"
    parser.add_argument("--minutes", type=float, help=about)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Add --data-dir."""
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="folder of the original images")


def add_release(parser: argparse.ArgumentParser) -> None:
    """Add --release."""
    about = "folder of a release, or of one per task (default: found by jahs)"
    parser.add_argument("--release", type=Path, help=about)


def run_command(command: str, work: Callable[[], object], *, stopped: str = "start again to continue") -> int:
    """Do the work, print its result on stdout and return the exit status; log on stderr in the meantime.

    A text is printed unchanged, anything else as JSON. The status is 0; 1 if the result is `FailedResult`; 2 for a
    `JahsError` or a file that cannot be read or written, whose message is logged; 130 for Ctrl-C,
    and for SIGTERM, which stops a command as cleanly.

    Messages begin with the command's name, such as `pipeline.collect`; `stopped` is logged after Ctrl-C.
    """
    with _logging_to_stderr(), on_sigterm(signal.default_int_handler):
        try:
            outcome = work()
            result = outcome.result if isinstance(outcome, FailedResult) else outcome
            write_stdout(result if isinstance(result, str) else json.dumps(result, indent=2, allow_nan=False))
        except (JahsError, OSError) as err:
            message = (write_fault(err) if isinstance(err, OSError) else None) or str(err)
            for line in message.splitlines():
                _log.error("%s: %s", command, line)
            return 2
        except KeyboardInterrupt:
            _log.info("%s: stopped; %s", command, stopped)
            return 130
        return 1 if isinstance(outcome, FailedResult) else 0


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    root, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = root.level
    root.addHandler(handler)
    root.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
