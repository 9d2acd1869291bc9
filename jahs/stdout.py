"""Results on standard output: all that the commands of every room print there."""

from __future__ import annotations

import io
import os
import sys

__all__ = ["write_stdout"]


def write_stdout(text: str) -> None:
    """Write a result and end its last line; where the reader, such as `head`, has seen enough, say nothing of it.

    So it is where nobody reads from the start (`>&-`), and Python has no stdout.
    """
    if sys.stdout is None:
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the drawings' characters shows ? for them
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What is left in the buffer must not be complained about at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
