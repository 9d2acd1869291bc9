"""The file of figures that `surrogate.figures` writes and the card shows: sealed JSON, for one release."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jahs.errors import CorruptFile, ProtocolMismatch
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.release import Release
from surrogate.data.rows import Facts
from workshop.folders import write_text

_FORMAT: Final = 1


def write_figures(path: Path, found: Facts) -> None:
    """Write figures, whole or not at all.

    Raises:
        InvalidArgument: they cannot be written there.
    """
    write_text(path, sealed_text({**found, "figures_format": _FORMAT}))


def read_figures(path: Path) -> Facts:
    """Read figures.

    Raises:
        MissingData, CorruptFile, UnknownFormat: the file is missing or unreadable.
    """
    found = read_sealed(path)
    if found.get("figures_format") != _FORMAT:
        raise CorruptFile(f"{path} holds no figures of format {_FORMAT}; run python -m surrogate.figures again")
    return found


def figures_of(path: Path, release: Release) -> Facts:
    """Read the figures of a release; raises as `read_figures`.

    Raises:
        ProtocolMismatch: they are of another release.
    """
    found = read_figures(path)
    if not release.answers_as & set(found["answers_as"]):
        raise ProtocolMismatch(
            f"{path} has the figures of release {found['release']}, not of {release.sha256}; run python -m "
            "surrogate.figures on this one"
        )
    return found
