"""`python -m jahs` is the command `jahs`."""

from __future__ import annotations

import sys

from jahs.cli import main

if __name__ == "__main__":
    sys.exit(main())
