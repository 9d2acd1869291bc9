"""The releases that ship with the package: the sha256 of each manifest, which covers every byte.

`make release` prints the line that a renewed release needs here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EMBEDDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cifar10_mini": "00db7e92c3545524e46babfc6f260f14f16c84bd477fc91a2c6885dc5decacfc",
        "fashion_mnist_mini": "4b9a41214c2160863945d0a6632c49bd2f6bb92e2df7961d360f6614586f0035",
    }
)
"""The digest of each embedded release, by its task; `jahs.Benchmark(task, sha256=EMBEDDED[task])` takes no other."""
