"""Small plots as SVG text: axes, marks and nothing else, the same bytes for the same numbers.

Colours are names that the page gives a value in its light and in its dark style (`STYLE`), so that a plot needs no
library, no network and no second copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["STYLE", "Axis", "Panel", "axis"]

STYLE: Final = """
:root { --paper: #fdfdfc; --ink: #1c2430; --soft: #5d6778; --grid: #e3e6ea; --one: #2563a8; --two: #b4530a;
  --three: #2b7a4b; --good: #2b7a4b; --bad: #b3261e; --panel: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e4e8ee; --soft: #9aa5b4; --grid: #2d343d;
  --one: #6fb0f2; --two: #f0a25c; --three: #74c795; --good: #74c795; --bad: #f28b82; --panel: #1a1f26; } }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .name { fill: var(--ink); font-weight: 600; font-size: 12px; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .one { --c: var(--one); } svg .two { --c: var(--two); } svg .three { --c: var(--three); }
svg .soft { --c: var(--soft); }
svg .dot { fill: var(--c); fill-opacity: .6; } svg .ring { fill: none; stroke: var(--c); stroke-width: 2; }
svg .line { fill: none; stroke: var(--c); stroke-width: 1.8; } svg .dash { stroke-dasharray: 5 4; stroke-width: 1.4; }
svg .area { fill: var(--c); fill-opacity: .22; stroke: none; }
"""
"""What a page that holds plots must say; `dot`, `ring`, `line`, `dash` and `area` are the marks."""

_LEFT: Final = 58
_TOP: Final = 40
_RIGHT: Final = 12
_BOTTOM: Final = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A range of values on a plot's edge; with `is_whole` only whole numbers are marked."""

    label: str
    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value is; 0 and 1 are the ends, and nothing is drawn beyond them."""
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, max(value, 1e-300)))
        if not self.is_log:
            at = value
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def ticks(self, n: int = 5) -> list[float]:
        """Round values within the range, about `n` of them."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
                found = [
                    s * 10.0**p for p in powers for s in steps if self.low <= s * 10.0**p * (1 + 1e-9) <= self.high
                ]
                if len(found) >= 3:
                    return found[:: math.ceil(len(found) / 7)]
            return [self.low, self.high]
        raw = (self.high - self.low) / n
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        step = max(1.0, float(math.ceil(step))) if self.is_whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def axis(
    label: str,
    values: Sequence[float],
    *,
    is_log: bool = False,
    is_whole: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> Axis:
    """The axis that holds all values with a little room; `low` and `high` fix an end."""
    numbers = [value for value in values if math.isfinite(value) and (value > 0 or not is_log)] or [1.0]
    least, most = min(numbers), max(numbers)
    if is_log:
        ratio = max((most / least) ** 0.06, 1.05)
        ends = least / ratio, most * ratio
    else:
        room = 0.06 * (most - least) or 0.05 * abs(most) or 0.05
        ends = least - room, most + room
    start, end = (ends[0] if low is None else low), (ends[1] if high is None else high)
    return Axis(label=label, low=start, high=max(end, start + 1e-9), is_log=is_log, is_whole=is_whole)


class Panel:
    """A plot under construction: two axes, then marks in the order in which they are drawn."""

    def __init__(
        self, name: str, x: Axis, y: Axis, *, width: int = 350, height: int = 260, left: int = _LEFT, kind: str = "plot"
    ) -> None:
        self.name, self.x, self.y, self.kind = name, x, y, kind
        self.width, self.height, self.left = width, height, left
        self.marks: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of values stands, in pixels."""
        across = self.left + self.x.share(x) * (self.width - self.left - _RIGHT)
        down = self.height - _BOTTOM - self.y.share(y) * (self.height - _TOP - _BOTTOM)
        return across, down

    def dots(self, points: Sequence[tuple[float, float]], kind: str, *, radius: float = 2.6, mark: str = "dot") -> None:
        """Draw a dot at each point."""
        for x, y in points:
            across, down = self.at(x, y)
            self.marks.append(f'<circle class="{mark} {kind}" cx="{across:.1f}" cy="{down:.1f}" r="{radius:g}"/>')

    def line(self, points: Sequence[tuple[float, float]], kind: str, *, is_dashed: bool = False) -> None:
        """Draw a line through the points."""
        if len(points) > 1:
            path = " ".join(f"{across:.1f},{down:.1f}" for across, down in (self.at(*point) for point in points))
            self.marks.append(f'<polyline class="line {kind}{" dash" * is_dashed}" points="{path}"/>')

    def box(self, low: tuple[float, float], high: tuple[float, float], kind: str) -> None:
        """Fill the rectangle between two corners."""
        (x0, y0), (x1, y1) = self.at(*low), self.at(*high)
        left, top, width, height = min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0)
        self.marks.append(
            f'<rect class="area {kind}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
        )

    def legend(self, entries: Sequence[tuple[str, str]]) -> None:
        """Say what the colours mean, under the name."""
        across = float(self.left + 6)
        for text, kind in entries:
            self.marks.append(f'<circle class="dot {kind}" cx="{across:.1f}" cy="28" r="3.5"/>')
            self.marks.append(f'<text x="{across + 8:.1f}" y="32">{escape(text)}</text>')
            across += 26 + 6 * len(text)

    def svg(self, *, rows: Sequence[str] = ()) -> str:
        """The plot as SVG; `rows` name whole numbers on the y axis, from 0 upwards, in place of its ticks."""
        frame = []
        bottom, right = self.height - _BOTTOM, self.width - _RIGHT
        for value in self.x.ticks():
            across, _ = self.at(value, self.y.low)
            frame.append(f'<path class="grid" d="M{across:.1f} {_TOP}V{bottom}"/>')
            frame.append(f'<text x="{across:.1f}" y="{bottom + 14}" text-anchor="middle">{_number(value)}</text>')
        named = list(enumerate(rows)) if rows else [(value, _number(value)) for value in self.y.ticks()]
        for value, text in named:
            _, down = self.at(self.x.low, value)
            frame.append(f'<path class="grid" d="M{self.left} {down:.1f}H{right}"/>')
            frame.append(f'<text x="{self.left - 6}" y="{down + 4:.1f}" text-anchor="end">{escape(text)}</text>')
        middle = (self.left + right) / 2
        frame.append(f'<text x="{middle:.1f}" y="{self.height - 8}" text-anchor="middle">{escape(self.x.label)}</text>')
        if not rows:
            frame.append(
                f'<text transform="translate(12 {(_TOP + bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
                f"{escape(self.y.label)}</text>"
            )
        name = f'<text class="name" x="4" y="14">{escape(self.name)}</text>'
        return (
            f'<svg class="{self.kind}" role="img" aria-label="{escape(self.name)}" '
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" xmlns="http://www.w3.org/2000/svg">'
            f"{name}{''.join(frame)}{''.join(self.marks)}</svg>"
        )


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}"
