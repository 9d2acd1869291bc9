"""Line charts as SVG text, for pages and for people without matplotlib; light or dark like the reader's system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args
from xml.sax.saxutils import escape

_WIDTH: Final = 440  # width of a panel
_HEIGHT: Final = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 78, 48  # around the axes
_CSS: Final = """
.page{fill:#ffffff}.axis{stroke:#6e7781;fill:none}.grid{stroke:#d8dee4;stroke-width:.75}
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#57606a}
.title{font-size:16px;font-weight:700;fill:#1f2328}.name{font-size:13px;font-weight:600;fill:#1f2328}
.end{text-anchor:end}.middle{text-anchor:middle}
path,circle{fill:none;stroke-linejoin:round}.faint{stroke:#8c959f;stroke-width:1;opacity:.55}
.first{stroke:#0a58ca;stroke-width:2.5}.second{stroke:#bc4c00;stroke-width:2;stroke-dasharray:6 3}
.third{stroke:#1a7f37;stroke-width:1.5}.fourth{stroke:#8250df;stroke-width:1.5;stroke-dasharray:2 2}
.fifth{stroke:#9a6700;stroke-width:1.5;stroke-dasharray:8 2 2 2}.sixth{stroke:#bf3989;stroke-width:1.5}
.seventh{stroke:#57606a;stroke-width:1.5;stroke-dasharray:4 4}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117}.grid{stroke:#21262d}text{fill:#a5afba}.title,.name{fill:#e6edf3}
.faint{stroke:#8b949e}.first{stroke:#6cb0ff}.second{stroke:#ffa657}.third{stroke:#56d364}.fourth{stroke:#d2a8ff}.fifth{stroke:#e3b341}
.sixth{stroke:#ff9bce}.seventh{stroke:#8b949e}}
"""


LineStyle: TypeAlias = Literal["faint", "seventh", "sixth", "fifth", "fourth", "third", "second", "first"]
"""Colour and dashes; each style is drawn behind the styles that follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points (x, y) that are joined; a single one is drawn as a small circle."""

    points: Sequence[tuple[float, float]]
    style: LineStyle = "faint"
    label: str = ""  # in the legend


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes with at least one line."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    legend: Literal["bottom", "top"] = "bottom"


def draw_chart(title: str, panels: Sequence[Panel]) -> str:
    """Return an SVG with the panels side by side."""
    width, height = _WIDTH * len(panels), _HEIGHT + _TOP + _BOTTOM
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_CSS}</style>",
        f'<rect class="page" {size} rx="6"/>',
        _text(_LEFT, 28, title, "title"),
    ]
    for place, panel in enumerate(panels):
        parts += [f'<g transform="translate({place * _WIDTH} 0)">', *_draw_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers within [low, high], at most seven.

    Example:
        >>> ticks(0, 12)
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """
    least = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _draw_panel(panel: Panel) -> list[str]:
    points = [point for line in panel.lines for point in line.points]
    (x_low, x_high), (y_low, y_high) = (_span([point[i] for point in points]) for i in (0, 1))
    right, bottom = _WIDTH - _RIGHT, _TOP + _HEIGHT

    def x_of(x: float) -> float:
        return _LEFT + (right - _LEFT) * (x - x_low) / (x_high - x_low)

    def y_of(y: float) -> float:
        return bottom - _HEIGHT * (y - y_low) / (y_high - y_low)

    parts = [_text(_LEFT, 54, panel.title, "name")]
    for y in ticks(y_low, y_high):
        parts.append(f'<path class="grid" d="M{_LEFT} {y_of(y):.1f}H{right}"/>')
        parts.append(_text(_LEFT - 8, y_of(y) + 4, f"{y:g}", "end"))
    for x in ticks(x_low, x_high):
        parts.append(f'<path class="axis" d="M{x_of(x):.1f} {bottom}v5"/>')
        parts.append(_text(x_of(x), bottom + 19, f"{x:g}", "middle"))
    parts.append(f'<path class="axis" d="M{_LEFT} {bottom}H{right}"/>')
    parts.append(_text((_LEFT + right) / 2, bottom + 38, panel.x_label, "middle"))
    parts.append(f'<g transform="translate(14 {(_TOP + bottom) / 2:g}) rotate(-90)">')
    parts += [_text(0, 4, panel.y_label, "middle"), "</g>"]
    for line in sorted(panel.lines, key=lambda line: get_args(LineStyle).index(line.style)):
        places = [(x_of(x), y_of(y)) for x, y in line.points]
        if len(places) == 1:
            parts.append(f'<circle class="{line.style}" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="2.5"/>')
        else:
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            parts.append(f'<path class="{line.style}" d="M{path}"/>')
    named = [line for line in panel.lines if line.label]
    for place, line in enumerate(named):
        y = _TOP + 8 + 18 * place if panel.legend == "top" else bottom - 14 - 18 * (len(named) - 1 - place)
        parts.append(f'<path class="{line.style}" d="M{right - 30} {y}h26"/>')
        parts.append(_text(right - 36, y + 4, line.label, "end"))
    return parts


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis: a little more than the values, and never empty."""
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 0.5
    return (low if low == 0 else low - room), high + room


def _text(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:g}" y="{y:.1f}" class="{style}">{escape(words)}</text>'
