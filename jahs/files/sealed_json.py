"""Sealed JSON files: the `checksum` inside covers everything else, and the text must be exactly as it was written.

{"checksum": digest of the rest, "format": 2, ...}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, MissingData
from jahs.files.hashing import digest_facts
from jahs.files.strict_json import check_format, parse_json

SEALED_FORMAT: Final = 2


def sealed_text(content: Mapping[str, object]) -> str:
    """Return the text of a sealed file that holds `content`: sorted keys, indent 2, format and checksum added."""
    facts = {**content, "format": SEALED_FORMAT}
    return json.dumps({**facts, "checksum": digest_facts(facts)}, indent=2, sort_keys=True) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:  # Any: JSON
    """Return the content of a sealed file, without format and checksum; CorruptFile if it was damaged or edited."""
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
    check_format(content.pop("format"), SEALED_FORMAT, of=str(path))
    content.pop("checksum", None)
    if data != sealed_text(content).encode():
        raise CorruptFile(f"{path} was damaged or edited after it was written; restore it from a copy")
    return content
