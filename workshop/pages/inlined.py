"""Make matplotlib's SVG small enough for a page with dozens of figures, to a fifth or less.

Matplotlib writes an element with its own style for each dot, six decimals for each coordinate and an id for each group.
Here dots of one kind become the markers of one path, coordinates have two decimals, and ids remain where they are used.
"""

from __future__ import annotations

import re
from typing import Final

_REFERENCE: Final = re.compile(r'(href="|url\()#([^")]+)')
_GEOMETRY: Final = re.compile(r' (d|x|y|width|height)="([^"]*)"')
_PLAIN_GROUP: Final = re.compile(r"<g>((?:(?!</?g\b).)*)</g>", re.DOTALL)
_DOTS: Final = re.compile(r"<g([^>]*)>((?:<use [^>]*/>){2,})</g>")
_USE: Final = re.compile(r'<use href="([^"]*)" x="([^"]*)" y="([^"]*)"([^>]*)/>')


def compact(svg: str, name: str) -> str:
    """Return the same drawing in fewer bytes; its ids begin with `name`, so that they are unique on a page."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r">\s+<", "><", svg).replace("xlink:href", "href")
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r'style="[^"]*"', lambda found: re.sub("([:;,]) ", r"\1", found[0]), svg)
    svg = _GEOMETRY.sub(lambda found: f' {found[1]}="{_short(found[2])}"', svg)
    places = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(old for _, old in _REFERENCE.findall(svg)))}
    svg = re.sub(r' id="([^"]+)"', lambda found: f' id="{places[found[1]]}"' if found[1] in places else "", svg)
    svg = _REFERENCE.sub(lambda found: f"{found[1]}#{places[found[2]]}", svg)
    while (unwrapped := _PLAIN_GROUP.sub(r"\1", svg)) != svg:
        svg = unwrapped
    svg = re.sub(r' clip-path="([^"]*)" style="', r' style="clip-path:\1;', svg)
    if len(fonts := set(re.findall(r'font-family:[^;"]*;', svg))) == 1:
        font = fonts.pop()
        svg = svg.replace(font, "").replace("<svg", f'<svg style="{font}"', 1)
    return _DOTS.sub(lambda found: _dots(found, f"{name}-at{found.start()}"), svg)


def share_styles(body: str) -> tuple[str, str]:
    """Return a page's body with a class for each style that elements have, and the rules of the classes."""
    classes: dict[str, str] = {}

    def as_class(found: re.Match[str]) -> str:
        return f'class="{classes.setdefault(found[1], f"d{len(classes)}")}"'

    body = re.sub(r'(?<= )style="([^"]*)"', as_class, body)
    return body, "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _dots(found: re.Match[str], name: str) -> str:
    """Return a group of equal dots as the markers of one path; other groups stay."""
    uses = _USE.findall(found[2])
    if len({(shape, style) for shape, _, _, style in uses}) != 1:
        return found[0]
    shape, _, _, style = uses[0]
    where = "L".join(f"{x} {y}" for _, x, y, _ in uses)
    marks = "".join(f' marker-{place}="url(#{name})"' for place in ("start", "mid", "end"))
    return (
        f'<marker id="{name}" overflow="visible" markerUnits="userSpaceOnUse"><use href="{shape}"{style}/></marker>'
        f'<path{found[1]} d="M{where}" fill="none"{marks}/>'
    )


def _short(geometry: str) -> str:
    rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), geometry)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", rounded.strip())
