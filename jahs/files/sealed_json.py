"""Sealed JSON files: the `checksum` inside covers everything else, and the text must be exactly as it was written.

    {"checksum": of the rest, "format": 2, ...}

Format 1 of such files has no checksum. It is read, but a changed value may go unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, MissingData, UnknownFormat
from jahs.files.hashing import digest_facts
from jahs.files.strict_json import parse_json

__all__ = ["SEALED_FORMAT", "read_sealed", "sealed_text"]

SEALED_FORMAT: Final = 2
_UNSEALED_FORMAT: Final = 1


def sealed_text(content: Mapping[str, object]) -> str:
    """Return the text of a sealed file that holds `content`: sorted keys, indent 2, format and checksum added."""
    facts = {**content, "format": SEALED_FORMAT}
    return json.dumps({**facts, "checksum": digest_facts(facts)}, indent=2, sort_keys=True) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return the content of a sealed file, or of one of format 1; without format and checksum.

    Raises:
        MissingData: it does not exist.
        UnknownFormat: it was written by another version.
        CorruptFile: it is not a sealed file, or was damaged or edited.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as err:
        raise MissingData(f"{path} does not exist or is not a file") from err
    try:
        content = parse_json(data)
    except ValueError as err:
        raise CorruptFile(f"{path} cannot be read as JSON: {err}; restore it from a copy") from err
    if not isinstance(content, dict) or "format" not in content:
        raise CorruptFile(f"{path} is not a sealed file: it has no format")
    found = content.pop("format")
    if type(found) is not int or found not in {_UNSEALED_FORMAT, SEALED_FORMAT}:
        raise UnknownFormat(
            f"{path}: format {found!r}; this version reads formats {_UNSEALED_FORMAT} and {SEALED_FORMAT}"
        )
    if found == SEALED_FORMAT:
        content.pop("checksum", None)
        if data != sealed_text(content).encode():
            raise CorruptFile(f"{path} is not what was written: it was damaged or edited; restore it from a copy")
    return content
