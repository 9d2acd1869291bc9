"""How every plot looks, and how it becomes an SVG whose bytes depend on the data alone.

Colours of paper, ink and grid are written as CSS variables of the reader's scheme, light or dark; those of the data are
legible on both. Text stays text, so files are small.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "RED", "SEQUENCE", "figure", "in_style", "shown"]

BLUE: Final = "#3d85c6"
GREEN: Final = "#3a9d6e"
RED: Final = "#cf4a5c"
GREY: Final = "#8a939c"
SEQUENCE: Final = (BLUE, "#d9822b", GREEN)
"""Three values or parts, in order."""

_Given = ParamSpec("_Given")
_COORDINATES: Final = re.compile(r' (?:d|x|y|points)="[^"]*"')
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}")
_PAPER, _INK, _FAINT = "#fffffe", "#1f2329", "#d0d7df"
_DARK: Final = {_PAPER: "#0d1117", _INK: "#e6edf3", _FAINT: "#3a424c"}
_SETTINGS: Final[Any] = {  # Any: matplotlib types every key of its settings
    "svg.fonttype": "none",
    "svg.hashsalt": "jahs",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "axes.facecolor": _PAPER,
    "figure.facecolor": _PAPER,
    "savefig.facecolor": _PAPER,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "path.simplify": False,
}


def in_style(plot: Callable[_Given, Figure]) -> Callable[_Given, str]:
    """Let a function draw in the style of the page, and return its figure as SVG."""

    @wraps(plot)
    def drawn(*args: _Given.args, **kwargs: _Given.kwargs) -> str:
        import matplotlib as mpl

        with mpl.rc_context(_SETTINGS):
            return _svg(plot(*args, **kwargs))

    return drawn


def figure(
    n_rows: int,
    n_columns: int,
    *,
    width: float,
    height: float,
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the given inches and its axes, row by row."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    axes = drawn.subplots(n_rows, n_columns, squeeze=False, sharex=share_x, sharey=share_y)
    return drawn, list(axes.ravel())


def _svg(drawn: Figure) -> str:
    """Return a figure as SVG that follows the reader's colour scheme, with two decimals in its coordinates."""
    text = io.StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in _DARK.items()
        for what in ("fill", "stroke")
    )
    style = f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"
    found = _COORDINATES.sub(lambda path: _LONG_NUMBER.sub(_short, path[0]), text.getvalue())
    return found.replace("<defs>", f"{style}\n <defs>", 1)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def shown(value: float, digits: int = 3) -> str:
    """Return a number for a table; a dash for none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
