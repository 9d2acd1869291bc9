"""Limits on the memory and time that a file may take, whatever it claims.

Whatever the limits, an opcode that copies what was read before is charged for each byte of the copy (see `machine`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one reading; a file that goes beyond one is refused, and a claim is checked before memory is asked for.

    Attributes:
        n_bytes: of the whole file once decompressed.
        n_payload: bytes of one text, byte string or array that are held in memory.
        n_steps: opcodes followed; an empty container counts as several. An item of a long column of texts or bools
            that repeat is not counted: it takes one byte.
        depth: open marks.
        ratio: decompressed by compressed bytes, once 32 MB have come.
        scratch: folder in which longer arrays are put, as files that vanish with them; None: they are refused.
    """

    n_bytes: int = 1 << 30
    n_payload: int = 256 << 20
    n_steps: int = 500_000
    depth: int = 100
    ratio: float = 200.0
    scratch: Path | None = None
