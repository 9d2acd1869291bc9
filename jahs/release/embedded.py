"""Which releases ship with the package: the sha256 of each one's manifest, which covers every byte of it.

`make release` prints the line that a renewed release needs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["EMBEDDED"]

EMBEDDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fashion_mnist_mini": "0fe03071366f6317dc55c6e8d2e4f1358eeed6dde6f8c4f1c618d277a09bf686",
    }
)
"""The digest of each embedded release, by its task; `jahs.Benchmark(task, sha256=EMBEDDED[task])` takes no other."""
