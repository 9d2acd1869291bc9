"""The number of a release, `version` in its manifest: it moves when the release moves, whatever the package's version.

1.0.0  another protocol: answers do not compare with those before
0.2.0  other answers: measurements, models, noise or reference points have changed
0.1.1  the same answers, and something else in it has changed
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jahs.release.manifest import MANIFEST, Manifest, read_manifest

__all__ = ["FIRST", "number_after", "standing_release"]

FIRST: Final = "0.1.0"

_NUMBER: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
_SILENT: Final = frozenset({"quality.json"})  # no query reads it


def standing_release(out: Path) -> Manifest | None:
    """Return the manifest of the release that will be replaced; None if there is none.

    Raises:
        CorruptFile, UnknownFormat, MissingData: it cannot be read, so its number is not known.
    """
    return read_manifest(out) if (out / MANIFEST).is_file() else None


def number_after(old: Manifest | None, new: Manifest) -> str:
    """Return the number of a release that replaces `old`; the first number if `old` has no valid one."""
    found = None if old is None else _NUMBER.fullmatch(str(old.facts.get("version")))
    if old is None or found is None:
        return FIRST
    first, second, third = map(int, found.groups())
    if old.facts.get("protocol") != new.facts.get("protocol"):
        return f"{first + 1}.0.0"
    if _files(old, besides=_SILENT) != _files(new, besides=_SILENT):
        return f"{first}.{second + 1}.0"
    return f"{first}.{second}.{third + (_files(old) != _files(new))}"


def _files(release: Manifest, besides: frozenset[str] = frozenset()) -> dict[str, tuple[int, str]]:
    return {name: entry for name, entry in release.files.items() if name not in besides}
