"""The style of figures and pages: matplotlib's settings, and colours, light and dark.

Figures are drawn in the light colours. On the page, each light colour is replaced by a CSS variable, which dark mode
sets to another colour; so the light colours must differ from one another.
The colours of the series are from Okabe and Ito, which people with any colour vision can tell apart, darkened where a
thin line would be too pale on white.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Final

import matplotlib as mpl

SERIES: Final = 8

_PALETTE: Final = {  # light, dark
    "paper": ("#fffffe", "#12161c"),
    "ink": ("#1b1f24", "#e8ecf1"),
    "muted": ("#59636e", "#9aa6b2"),
    "line": ("#d1d9e0", "#343d48"),
    "s0": ("#0b6bb0", "#58b3f0"),
    "s1": ("#c2470b", "#ff8a4c"),
    "s2": ("#0a8360", "#35c79b"),
    "s3": ("#a8478a", "#e58fc7"),
    "s4": ("#8a6500", "#e8bd3c"),
    "s5": ("#2f8fd0", "#9bd0f5"),
    "s6": ("#5b4fb5", "#a99ff5"),
    "s7": ("#4a4f57", "#b4bac3"),
}
LIGHT: Final = MappingProxyType({name: light for name, (light, _) in _PALETTE.items()})
DARK: Final = MappingProxyType({name: dark for name, (_, dark) in _PALETTE.items()})
DASHES: Final = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS: Final = ("o", "s", "^", "D", "v")


def styled() -> AbstractContextManager[None]:
    """Draw figures with the same settings everywhere: none is from the reader's own configuration of matplotlib."""
    return mpl.rc_context(
        {
            **mpl.rcParamsDefault,
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
            "font.size": 10.5,
            "axes.titlesize": 10.5,
            "legend.fontsize": 9.5,
            "legend.frameon": False,
            "svg.fonttype": "none",  # text stays text: it can be found and read aloud
            "svg.hashsalt": "jahs",
            "figure.facecolor": LIGHT["paper"],
            "axes.facecolor": "none",
            "savefig.facecolor": LIGHT["paper"],
            "text.color": LIGHT["ink"],
            "axes.labelcolor": LIGHT["ink"],
            "axes.edgecolor": LIGHT["muted"],
            "xtick.color": LIGHT["muted"],
            "ytick.color": LIGHT["muted"],
            "xtick.labelcolor": LIGHT["ink"],
            "ytick.labelcolor": LIGHT["ink"],
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": LIGHT["line"],
            "grid.linewidth": 0.7,
            "lines.linewidth": 1.8,
        }
    )


def series(number: int) -> str:
    """Return the light colour of a series; after the last one they repeat, with another dash."""
    return LIGHT[f"s{number % SERIES}"]


def dash(number: int) -> str | tuple[float, tuple[float, ...]]:
    """Return the dashes of a series: neighbours differ even in black and white."""
    return DASHES[(number + number // SERIES) % len(DASHES)]


def marker(number: int) -> str:
    """Return the shape of a series' points."""
    return _MARKERS[number % len(_MARKERS)]


def css_colors(svg: str) -> str:
    """Return a drawing in which every light colour is a CSS variable."""
    for name, color in LIGHT.items():
        svg = svg.replace(color, f"var(--{name})")
    return svg


def follow_scheme(svg: str) -> str:
    """Return a drawing for a separate SVG file, in the dark colours if the reader's system is dark."""
    rules = "".join(
        f'[style*="{attribute}: {light}"]{{{attribute}:{DARK[name]}!important}}'
        for name, light in LIGHT.items()
        for attribute in ("fill", "stroke")
    )
    return svg.replace("<defs>", f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>\n <defs>", 1)
