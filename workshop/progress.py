"""The progress of long work: a bar with the time left on a terminal, lines elsewhere, five a second at most."""

from __future__ import annotations

import logging
import math
import sys
import time
from datetime import timedelta
from typing import Final, TextIO

_log = logging.getLogger(__name__)
_WIDTH: Final = 24
_BETWEEN_LINES_S: Final = 0.2
_LONGEST_S: Final = 1e9  # that is shown


class Progress:
    """Shows how far `label` has come.

    Args:
        total: units in all, if known.
        label: name of the work.
        limit_s: time limit in seconds, if any; the bar then shows time instead of units.
        stream: for the bar, if it is a terminal.
    """

    def __init__(
        self, total: int | None, label: str, *, limit_s: float | None = None, stream: TextIO | None = None
    ) -> None:
        self.total = total
        self.label = label
        self.limit_s = limit_s
        self.stream = sys.stderr if stream is None else stream
        self.is_bar = self.stream.isatty()
        self.started = time.monotonic()
        self._logged_at = -math.inf

    def update(self, done: int, note: str, *, spent_s: float | None = None) -> None:
        """Show that `done` units are finished.

        Args:
            note: text about the last unit.
            spent_s: seconds that all of them took; None: since this object was made, if no unit was done before.
        """
        total = f"/{self.total}" if self.total else ""
        elapsed = time.monotonic() - self.started
        fractions, remaining = [], []
        if self.total:
            fractions.append(done / self.total)
            if done:
                remaining.append((elapsed if spent_s is None else spent_s) * max(self.total - done, 0) / done)
        if self.limit_s:
            fractions.append(elapsed / self.limit_s)
            remaining.append(max(self.limit_s - elapsed, 0.0))
        left = f" {timedelta(seconds=round(min(*remaining, _LONGEST_S)))} left" if remaining else ""
        if not self.is_bar:
            if done == self.total or self.started + elapsed - self._logged_at >= _BETWEEN_LINES_S:
                self._logged_at = self.started + elapsed
                _log.info("%d%s %s %s%s", done, total, self.label, note, f",{left}" if left else "")
            return
        bar = f"[{'#' * round(min(max(fractions), 1.0) * _WIDTH):<{_WIDTH}}] " if fractions else ""
        self.stream.write(f"\r\033[K{self.label} {bar}{done}{total}{left}  {note}")
        self.stream.flush()

    def close(self) -> None:
        """End the line of the bar."""
        if self.is_bar:
            self.stream.write("\n")
