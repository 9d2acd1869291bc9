"""Results on standard output: all that the commands of every room print there."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

__all__ = ["leave_stdout", "open_streams", "write_stdout"]


@contextmanager
def open_streams() -> Iterator[None]:
    """Have a stdout and a stderr, where Python has None because a shell said `>&-` or `2>&-`: they go nowhere."""
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is None:
                nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
                stack.enter_context(redirect(nowhere))
        yield


def write_stdout(text: str) -> None:
    """Write a result and end its last line, if it has one; where the reader, such as `head`, has left, say nothing.

    So it is where nobody reads from the start (`>&-`), and Python has no stdout.
    """
    if sys.stdout is None or not text:
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without the drawings' characters shows ? for them
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()


def leave_stdout() -> None:
    """Send what is left in the buffer nowhere, or Python complains at exit: the reader has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
