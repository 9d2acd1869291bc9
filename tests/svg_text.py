"""The space that the texts of an SVG take, measured with DejaVu Sans, which is wider than most fonts."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

Matrix = tuple[float, float, float, float, float, float]

_IDENTITY: Matrix = (1, 0, 0, 1, 0, 0)
_INHERITED = ("font-size", "font-weight", "font-family", "text-anchor", "font")
_MEASURE = TextToPath()


def texts_outside(svg: str) -> list[str]:
    """Return the texts of an SVG that reach beyond its viewBox, each with its left, top, right and bottom."""
    root = ET.fromstring(svg)
    x, y, width, height = map(float, root.attrib["viewBox"].split())
    outside = []
    for words, (left, top, right, bottom) in text_boxes(root):
        if left < x or top < y or right > x + width or bottom > y + height:
            outside.append(f"{words!r} is at ({left:.1f}, {top:.1f}, {right:.1f}, {bottom:.1f})")
    return outside


def text_boxes(root: ET.Element) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """Yield every text and its box in the root's units."""
    css = "".join(element.text or "" for element in root.iter() if _tag(element) == "style")
    css = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    rules = {selector.strip(): _declarations(body) for selector, body in re.findall(r"([^{}]+)\{([^}]*)\}", css)}
    rules = {part.split()[-1]: rule for key, rule in rules.items() for part in key.split(",")}  # ".name" of "svg .name"
    yield from _walk(root, _IDENTITY, {}, rules)


def _walk(
    element: ET.Element, outer: Matrix, inherited: Mapping[str, str], rules: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    matrix = _product(outer, _transform(element.get("transform", "")))
    style = dict(inherited)
    for selector in (_tag(element), *(f".{name}" for name in element.get("class", "").split())):
        style |= rules.get(selector, {})
    style |= {name: element.attrib[name] for name in _INHERITED if name in element.attrib}
    style |= _declarations(element.get("style", ""))
    if _tag(element) == "text":
        words = " ".join("".join(element.itertext()).split())
        yield words, _box(words, float(element.get("x", 0)), float(element.get("y", 0)), matrix, style)
        return
    for child in element:
        if _tag(child) != "defs":
            yield from _walk(child, matrix, style, rules)


def _box(words: str, x: float, y: float, matrix: Matrix, style: Mapping[str, str]) -> tuple[float, float, float, float]:
    size = float(style.get("font-size", "16px").removesuffix("px"))
    font = FontProperties(family="DejaVu Sans", size=size, weight=style.get("font-weight", "normal"))
    width, ascent, descent = _MEASURE.get_text_width_height_descent(words.replace("$", r"\$"), font, ismath=False)
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[style.get("text-anchor", "start")]
    corners = [(u, v) for u in (left, left + width) for v in (y - (ascent - descent), y + descent)]
    xs, ys = zip(*(_apply(matrix, u, v) for u, v in corners), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _declarations(body: str) -> dict[str, str]:
    pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
    style = {name.strip(): value.strip() for name, value in pairs}
    if "font" in style:
        style["font-size"] = re.search(r"[\d.]+px", style["font"])[0]  # type: ignore[index]  # a size is required
    return {name: value for name, value in style.items() if name in _INHERITED and name != "font"}


def _transform(text: str) -> Matrix:
    matrix = _IDENTITY
    for name, inside in re.findall(r"(\w+)\(([^)]*)\)", text):
        numbers = [float(number) for number in re.split(r"[\s,]+", inside.strip())]
        matrix = _product(matrix, _matrix(name, numbers))
    return matrix


def _matrix(name: str, numbers: list[float]) -> Matrix:
    if name == "translate":
        return (1, 0, 0, 1, numbers[0], numbers[1] if len(numbers) > 1 else 0.0)
    if name == "scale":
        return (numbers[0], 0, 0, numbers[-1], 0, 0)
    if name == "rotate":
        cos, sin = math.cos(math.radians(numbers[0])), math.sin(math.radians(numbers[0]))
        cx, cy = numbers[1:] or (0.0, 0.0)
        return _product(_product((1, 0, 0, 1, cx, cy), (cos, sin, -sin, cos, 0, 0)), (1, 0, 0, 1, -cx, -cy))
    assert name == "matrix", name
    a, b, c, d, e, f = numbers
    return (a, b, c, d, e, f)


def _product(m: Matrix, n: Matrix) -> Matrix:
    return (
        m[0] * n[0] + m[2] * n[1],
        m[1] * n[0] + m[3] * n[1],
        m[0] * n[2] + m[2] * n[3],
        m[1] * n[2] + m[3] * n[3],
        m[0] * n[4] + m[2] * n[5] + m[4],
        m[1] * n[4] + m[3] * n[5] + m[5],
    )


def _apply(m: Matrix, x: float, y: float) -> tuple[float, float]:
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


def _tag(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1]
