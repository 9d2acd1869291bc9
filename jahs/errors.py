"""Everything that JAHS raises on purpose.

JahsError
├── InvalidConfig      (ValueError)   a config has faults: one line per fault, each beginning with its key
├── InvalidFidelity    (ValueError)   an epoch, N, W or Resolution that cannot be queried
├── InvalidArgument    (ValueError)   any other argument out of its range or of the wrong type
├── UnknownName        (ValueError)   a task, metric, parameter or release that does not exist; lists those that do
├── ProtocolMismatch   (ValueError)   measurements of different protocols must not be mixed
├── InvalidTable       (ValueError)   a table lacks columns, repeats rows or holds values out of range
├── Leakage            (ValueError)   a config is in more than one part of a split
├── NotRecorded        (LookupError)  the recorded table has no such run; names the nearest one
├── CorruptFile        (ValueError)   a file does not match its manifest or its format
├── UnknownFormat      (ValueError)   a file in a format version that this code does not read
├── UnsafeFile         (ValueError)   a pickle or archive that contains more than data
├── DownloadFailed     (OSError)      a download could not be completed or verified
├── OutOfSpace         (OSError)      not enough free disk space
├── OptimizerFailed    (RuntimeError) an optimiser raised or broke a simulation's rules; names it and the trial
├── MissingData        (OSError)      images or a release cannot be found
└── MissingDependency  (ImportError)  an optional package is needed; says what to install

PoorView               (UserWarning)  the best of 1,000 random configs of a view is poor; a warning, never raised
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

__all__ = [
    "CorruptFile",
    "DownloadFailed",
    "InvalidArgument",
    "InvalidConfig",
    "InvalidFidelity",
    "InvalidTable",
    "JahsError",
    "Leakage",
    "MissingData",
    "MissingDependency",
    "NotRecorded",
    "OptimizerFailed",
    "OutOfSpace",
    "PoorView",
    "ProtocolMismatch",
    "UnknownFormat",
    "UnknownName",
    "UnsafeFile",
]


_MOST_LISTED: Final = 5

_Raised = TypeVar("_Raised", bound=Exception)


class JahsError(Exception):
    """Root of every error that JAHS raises on purpose.

    Catch it to catch them all. Read the message: it says what was wrong, where, what is allowed and what to do.
    """


class InvalidConfig(JahsError, ValueError):
    """A config has one or more faults.

    Correct every key that the message names; `jahs.space()` lists the values of each, `sample` draws valid configs.

    Attributes:
        faults: one line per fault, each beginning with the key it is about.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))

    def __reduce__(self) -> tuple[type[InvalidConfig], tuple[tuple[str, ...]]]:
        """Rebuild from the faults, so that the error survives pickling between processes."""
        return type(self), (self.faults,)


class InvalidFidelity(JahsError, ValueError):
    """An epoch, N, W or Resolution that cannot be queried.

    Query one that the message allows; `bench.fidelity` rounds a fractional budget to an epoch.
    """


class InvalidArgument(JahsError, ValueError):
    """An argument is out of its range or of the wrong type.

    Pass a value that the message allows.
    """


class UnknownName(JahsError, ValueError):
    """A name of a task, metric, parameter, optimiser or file that does not exist.

    Choose one of the names that the message lists. Import or register a task first.
    """

    @classmethod
    def of(cls, what: str, given: object, valid: Iterable[str]) -> UnknownName:
        """Build the error for a `given` name of kind `what`, with the near miss and every valid name."""
        names = list(valid)
        matches = get_close_matches(str(given), names, n=1)
        hint = f" (did you mean {matches[0]!r}?)" if matches else ""
        return cls(f"{what}={given!r} does not exist{hint}; {what} is one of: {', '.join(names)}")


class ProtocolMismatch(JahsError, ValueError):
    """Measurements of different protocols must not be mixed.

    Keep them in separate folders, or measure again under the protocol that the message names.
    """


class InvalidTable(JahsError, ValueError):
    """A table lacks columns, repeats rows or holds values out of range.

    Correct the columns or rows that the message names; the page of file formats specifies every table.
    """


class Leakage(JahsError, ValueError):
    """A config is in more than one part of a split.

    Make the split again with `python -m splits.make`. Discard scores that were computed on this one.
    """


class NotRecorded(JahsError, LookupError):
    """The recorded table has no such run.

    Query a recorded config: `bench.sample` draws them, and the message names the nearest. A surrogate answers for all.

    Attributes:
        faults: the missing answers of a batch, by the position of the config.
        n_configs: number of configs in the batch.
    """

    faults: Mapping[int, str] = MappingProxyType({})
    n_configs: int = 1

    @classmethod
    def of_batch(cls, faults: Mapping[int, str], n_configs: int) -> NotRecorded:
        """Build the error for a batch: the first faults with their configs, and how many there are."""
        first = list(faults.items())[:_MOST_LISTED]
        lines = [fault if n_configs == 1 else f"{fault} (config {i})" for i, fault in first]
        if len(faults) > _MOST_LISTED:
            lines.append(f"... {len(faults)} of {n_configs} are not recorded")
        error = cls("\n".join(lines))
        error.faults, error.n_configs = dict(faults), n_configs
        return error

    def per_config(self, n_each: int) -> NotRecorded:
        """Return the error for a batch that repeats each config `n_each` times in a row; it names each config once."""
        first: dict[int, str] = {}
        for row, fault in self.faults.items():
            first.setdefault(row // n_each, fault)
        return NotRecorded.of_batch(first, self.n_configs // n_each) if first else self


class CorruptFile(JahsError, ValueError):
    """A file does not match its manifest or its format.

    Fetch or make the file again. Do not edit files of a release or of a folder of runs.
    """


class UnknownFormat(JahsError, ValueError):
    """A file in a format version that this code does not read.

    Use the version of JAHS that wrote the file, or make the file again with this one.
    """


class UnsafeFile(JahsError, ValueError):
    """A pickle or archive that contains more than data.

    Do not open the file with anything else. Fetch it again from its authors; if it still fails, report it.
    """


class DownloadFailed(JahsError, OSError):
    """A download could not be completed or verified.

    Run the same command again: it continues where it stopped. A wrong digest needs another source.
    """


class OutOfSpace(JahsError, OSError):
    """Not enough free disk space.

    Free the space that the message names, or choose another folder. The same command then continues.
    """


class OptimizerFailed(JahsError, RuntimeError):
    """An optimiser raised or broke a simulation's rules.

    Correct the optimiser: the message names it and the trial. The same run then resumes from its log.
    """


class MissingData(JahsError, OSError):
    """Images or a release cannot be found.

    Run the command that the message gives, or name the folder that has them.
    """


class MissingDependency(JahsError, ImportError):
    """An optional package is needed.

    Install the package that the message names.
    """


class PoorView(UserWarning):
    """The best of 1,000 random configs of a view is below the median of the whole space.

    Fix other values: leave `fixed` out to get the values of `bench.reference_config`.
    """


def first_of(items: Sequence[str], most: int = 20) -> list[str]:
    """Return the first names or faults, and in place of the others their number."""
    n_more = len(items) - most
    return [*items[:most], f"... and {n_more} more"] if n_more > 0 else [*items]


def refuse(*faults: str) -> None:
    """Raise InvalidArgument with the first faults, if there are any."""
    if faults:
        raise InvalidArgument("\n".join(first_of(faults)))


@contextmanager
def translating(*kinds: type[_Raised], into: Callable[[_Raised], JahsError]) -> Iterator[None]:
    """Raise `into(error)` in place of an error of these kinds; a JahsError is always raised unchanged."""
    try:
        yield
    except JahsError:
        raise
    except kinds as err:
        raise into(err) from err


def reading(path: Path, *, or_else: str = "name another folder") -> AbstractContextManager[None]:
    """Raise MissingData in place of an OSError: it names the file or folder that cannot be read, and what to do."""
    to_do = f"make it and its folder readable for this user, or {or_else}"
    return translating(OSError, into=lambda err: MissingData(f"{path} cannot be read ({err.strerror or err}); {to_do}"))
