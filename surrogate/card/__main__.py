"""Run `python -m surrogate.card`."""

import sys

from surrogate.card.page import main

sys.exit(main())
