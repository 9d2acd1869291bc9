"""Find the classes of all cells and write the packaged table: python -m jahs.spaces.cell.write_classes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jahs.files.atomic import write_beside
from jahs.spaces.cell.classes import TABLE, find_classes

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table; the same cells give the same bytes."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Try: python -m jahs.spaces.cell.write_classes")
    parser.add_argument("--out", type=Path, default=TABLE, help=f"the file (default: {TABLE.name} in the package)")
    arguments = parser.parse_args(argv)
    with write_beside(arguments.out) as beside, beside.open("wb") as file:
        np.savez_compressed(file, classes=find_classes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
