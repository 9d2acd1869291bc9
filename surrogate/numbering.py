"""The number of a release, `version` in its manifest: it moves when the release moves, whatever the package's version.

1.0.0  another protocol: answers are not comparable with older ones
0.2.0  other answers: measurements, models, noise or reference points have changed
0.1.1  the same answers, and something else in it has changed
"""

from __future__ import annotations

import re
from collections.abc import Set
from pathlib import Path
from typing import Any, Final

from jahs.release.manifest import MANIFEST, Manifest, read_manifest

FIRST: Final = "0.1.0"

_NUMBER: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
_SILENT: Final = frozenset({"quality.json"})  # no query reads it
_REFERENCE: Final = "reference_config"


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
    has_moved = _files(old) != _files(new) or old.facts.get(_REFERENCE) != new.facts.get(_REFERENCE)
    return f"{first}.{second}.{third + has_moved}"


def number_facts(old: Manifest | None, new: Manifest) -> dict[str, Any]:  # Any: JSON
    """Return the number of a manifest after the release that it replaces, and the releases with the same answers.

    `same_answers` holds the sha256 of every manifest before it since the second part of the number moved.
    """
    number, before = number_after(old, new), "" if old is None else str(old.facts.get("version"))
    same = [] if old is None else list(old.facts.get("same_answers", ()))
    if old is not None and number != before:
        is_same = _NUMBER.fullmatch(before) and number.rpartition(".")[0] == before.rpartition(".")[0]
        same = [*same, old.sha256] if is_same else []
    return {"version": number, **({"same_answers": same} if same else {})}


def _files(release: Manifest, besides: Set[str] = frozenset()) -> dict[str, tuple[int, str]]:
    return {name: entry for name, entry in release.files.items() if name not in besides}
