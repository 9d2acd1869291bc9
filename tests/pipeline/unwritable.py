"""A folder in which nothing can be written, as on a full or a read-only disk, even by root."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ADVICE = {errno.ENOSPC: "free some space", errno.EROFS: "give this user the rights to it"}


@contextmanager
def unwritable(folder: Path, number: int) -> Iterator[None]:
    """Refuse to open for writing whatever is in the folder, with this error of the system."""
    opened = Path.open

    def refuse(path, mode="r", *arguments, **named):
        if folder in [path, *path.parents] and not set(mode).isdisjoint("wax+"):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, mode, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        yield


def fails_in_one_line_and_goes_on(
    main: Callable[[Sequence[str]], int],
    command: Sequence[str],
    folder: Path,
    number: int,
    read_errors: Callable[[], str],
) -> None:
    """A command that cannot write ends with one line of advice, and succeeds once it can."""
    with unwritable(folder, number):
        assert main(command) == 2
    (said,) = [line for line in read_errors().splitlines() if line.startswith("pipeline.")]
    assert ADVICE[number] in said
    assert main(command) == 0
