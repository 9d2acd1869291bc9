"""Results on standard output, for the commands of every package: text, tables and colour."""

from __future__ import annotations

import io
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final, Literal

from jahs.files.atomic import out_of_space


@contextmanager
def open_streams() -> Iterator[None]:
    """Replace a closed stdout or stderr, None after `>&-` or `2>&-` in a shell, with the null device."""
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is None:
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(redirect(nowhere))
        yield


def write_stdout(text: str) -> None:
    """Write a result and end its last line, unless stdout is closed or its reader, such as `head`, has left.

    Raises:
        OutOfSpace: stdout is a file on a full disk.
    """
    if sys.stdout is None or not text:
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the drawings' characters shows ? for them
    try:
        with out_of_space("standard output"):
            sys.stdout.write(text if text.endswith("\n") else text + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()


def leave_stdout() -> None:
    """Redirect stdout to the null device, so that the rest of its buffer raises no error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_CODES: Final = {"bold": "1", "dim": "2", "good": "32"}


def is_coloured() -> bool:
    """Return whether stdout is a terminal with colour and $NO_COLOR is not set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: Literal["bold", "dim", "good"]) -> str:
    """Return `text` in a style, or unchanged without colour."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if is_coloured() else text


def format_number(value: object) -> str:
    """Return a number for reading: integers with separators, others with four digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if float(value).is_integer() and abs(value) < 2**53:
        return f"{int(value):,}"
    return f"{value:,.2f}" if 10 <= abs(value) < 1e6 else f"{value:.4g}"


def format_table(head: Sequence[str], rows: Sequence[Sequence[object]], *, good: Sequence[int] = ()) -> str:
    """Return a table: two spaces before each column, numbers right-aligned, text left-aligned; `good` rows in green."""
    texts = list(zip(*map(_format_column, zip(*rows, strict=True)), strict=True))
    is_right = [all(isinstance(row[j], int | float) for row in rows) for j in range(len(head))]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]

    def line(cells: Sequence[str]) -> str:
        places = zip(cells, widths, is_right, strict=True)
        aligned = (f"  {cell.rjust(width) if right else cell.ljust(width)}" for cell, width, right in places)
        return "".join(aligned).rstrip()

    lines = [line(cells) for cells in texts]
    return "\n".join([paint(line(head), "bold"), *(paint(x, "good") if i in good else x for i, x in enumerate(lines))])


def _format_column(cells: Sequence[object]) -> list[str]:
    """Return a column's cells as text; numbers of similar size get the same number of decimals."""
    numbers = [abs(cell) for cell in cells if isinstance(cell, float)]
    if len(numbers) < len(cells) or not min(numbers) > max(numbers) * 1e-3:
        return [format_number(cell) for cell in cells]
    n_decimals = max(0, min(3 - math.floor(math.log10(max(numbers))), 9))
    return [f"{cell:,.{n_decimals}f}" for cell in cells]
