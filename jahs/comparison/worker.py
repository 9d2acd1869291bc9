"""A process that makes logs: runs come in on stdin, one JSON line each, and each is answered with a line on stdout.

An optimiser's own prints go to stderr. A run that exceeds the limit ends the process, which shows where it was.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys

from jahs.comparison.runs import Run, run
from jahs.errors import InvalidArgument, JahsError

__all__ = ["main"]


def main(limit_s: float) -> None:
    """Answer runs until stdin ends."""
    asked = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    for line in asked:
        faulthandler.dump_traceback_later(limit_s, exit=True)
        answer: dict[str, object] = {"fault": None}
        try:
            run(Run.from_json(line))
        except (JahsError, OSError) as err:
            answer = {"fault": str(err), "is_mistake": isinstance(err, InvalidArgument)}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.flush()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
