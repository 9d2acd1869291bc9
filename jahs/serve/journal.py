"""The requests of a client beside its log, so that a run whose client vanished goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile
from jahs.files.strict_json import parse_json
from jahs.simulate.log import open_alone

__all__ = ["Journal"]


class Journal:
    """A file that only grows: the requests that change a run, one JSON object a line, each written before it is obeyed.

    It is named after the log; where there is no log, it begins anew. CorruptFile names a line that is not a request.

    Attributes:
        requests: what it held when it was opened; a last line that was cut off is removed.
    """

    def __init__(self, log: Path) -> None:
        path = log.with_name(f"{log.name}.requests")
        self._file: Final = open_alone(path)
        *whole, _ = path.read_bytes().split(b"\n") if log.exists() else [b""]
        self._file.truncate(sum(len(line) + 1 for line in whole))
        try:
            self.requests: Final[list[dict[str, Any]]] = [parse_json(line) for line in whole]  # Any: JSON
        except json.JSONDecodeError as err:
            self.close()
            raise CorruptFile(f"{path} does not hold requests ({err}); remove it together with its log") from err

    def write(self, request: Mapping[str, object]) -> None:
        """Append a request."""
        self._file.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
