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
        "fashion_mnist_mini": "d285d368d050864a656d0819c91b9fd33590de2b982ab35211515c15fc2f6ea2",
    }
)
"""The digest of each embedded release, by its task; `jahs.Benchmark(task, sha256=EMBEDDED[task])` takes no other."""
