"""How every plot looks, and how it becomes an SVG whose bytes depend on the data alone.

The style is that of every page (`workshop.pages.style`); a picture follows the reader's scheme, light or dark.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Final, ParamSpec

import matplotlib as mpl

from workshop.pages.style import DARK, LIGHT, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "GREY", "RED", "SEQUENCE", "figure", "in_style", "shown"]

BLUE: Final = LIGHT["s0"]
GREEN: Final = LIGHT["s2"]
RED: Final = LIGHT["s3"]
GREY: Final = LIGHT["muted"]
SEQUENCE: Final = (BLUE, LIGHT["s1"], GREEN)
"""Three values or parts, in order."""

_Given = ParamSpec("_Given")
_COORDINATES: Final = re.compile(r' (?:d|x|y|points)="[^"]*"')
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}")


def in_style(plot: Callable[_Given, Figure]) -> Callable[_Given, str]:
    """Let a function draw in the style of the page, and return its figure as SVG."""

    @wraps(plot)
    def drawn(*args: _Given.args, **kwargs: _Given.kwargs) -> str:
        with mpl.rc_context({**style(), "axes.titlelocation": "left", "path.simplify": False}):
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
        f'[style*="{what}: {light}"]{{{what}:{DARK[name]}!important}}'
        for name, light in LIGHT.items()
        for what in ("fill", "stroke")
    )
    scheme = f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"
    found = _COORDINATES.sub(lambda path: _LONG_NUMBER.sub(_short, path[0]), text.getvalue())
    return found.replace("<defs>", f"{scheme}\n <defs>", 1)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def shown(value: float, digits: int = 3) -> str:
    """Return a number for a table; a dash for none."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
