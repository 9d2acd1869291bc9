"""A cell as a picture: characters for a terminal, SVG for a page. Edges on no live path are drawn dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jahs.spaces.cell.operations import EDGES
from jahs.spaces.cell.paths import dead_edges

LABELS: Final = ("identity", "zero", "conv 3×3", "conv 1×1", "avg pool 3×3")
"""The name of each code in a picture."""

# Characters: the column of each node, and the row along which each edge runs.
_COLUMNS: Final = {1: 2, 2: 29, 3: 56, 4: 83}
_ROWS: Final = {(1, 2): 0, (2, 3): 0, (3, 4): 0, (1, 3): 2, (2, 4): 4, (1, 4): 6}
_NOTE: Final = "dotted: on no path from input (1) to output (4) that is free of zeros"

# SVG: the place of each node, and how far above the line of nodes each curved edge has its label.
_PLACES: Final = {1: 60, 2: 280, 3: 500, 4: 720}
_RISES: Final = {(1, 3): 72, (2, 4): -72, (1, 4): 138}
_WIDTH: Final = 780
_HEIGHT: Final = 300
_LINE: Final = 182
_RADIUS: Final = 19
_STYLES: Final = ("identity", "zero", "conv3", "conv1", "pool")

_CSS: Final = """
.card{fill:#ffffff;stroke:#d0d7de}
text{font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328;text-anchor:middle}
.node{fill:#eef1f4;stroke:#57606a;stroke-width:1.5}
.number{font-size:15px;font-weight:700}
.role,.op{font-size:12px;fill:#57606a}
.edge{fill:none;stroke-width:2.5}
.label{fill:#ffffff;stroke-width:1.5}
.conv3{stroke:#0a58ca}.conv1{stroke:#0b7f6f}.pool{stroke:#b35900}.identity{stroke:#57606a}.zero{stroke:#8c959f}
.head{stroke:none}
.head.conv3{fill:#0a58ca}.head.conv1{fill:#0b7f6f}.head.pool{fill:#b35900}.head.identity{fill:#57606a}
.head.zero{fill:#8c959f}
.dead .edge,.dead .label{stroke-dasharray:3 4;stroke-width:1.2}
.dead .edge,.dead .head,.dead .label{stroke-opacity:.5;fill-opacity:.5}
.dead .label{fill-opacity:1}
.dead text{fill:#6e7781}
@media(prefers-color-scheme:dark){
.card{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.node{fill:#21262d;stroke:#8b949e}.role,.op{fill:#9da7b3}
.label{fill:#0d1117}
.conv3{stroke:#6cb0ff}.conv1{stroke:#4fd1bd}.pool{stroke:#f0a35e}.identity{stroke:#9da7b3}.zero{stroke:#6e7681}
.head.conv3{fill:#6cb0ff}.head.conv1{fill:#4fd1bd}.head.pool{fill:#f0a35e}.head.identity{fill:#9da7b3}
.head.zero{fill:#6e7681}
.dead text{fill:#8b949e}
}
"""


def draw_text(ops: Sequence[int]) -> str:
    """Draw the cell in characters: nodes on the first line, longer edges below, entering their target from below."""
    dead = dead_edges(ops)
    canvas = [[" "] * (_COLUMNS[4] + 2) for _ in range(max(_ROWS.values()) + 1)]
    for edge in range(len(EDGES)):
        _draw_across(canvas, edge, label=f" Op{edge + 1} {LABELS[ops[edge]]} ", is_dead=edge in dead)
    below = [edge for edge in range(len(EDGES)) if _ROWS[EDGES[edge]]]
    for edge in sorted(below, key=lambda edge: edge not in dead):  # of overlapping vertical lines, show the live one
        source, target = EDGES[edge]
        for row in range(1, _ROWS[EDGES[edge]]):
            for node in (source, target):
                canvas[row][_COLUMNS[node]] = "·" if edge in dead else "│"
    for edge in below:
        _draw_corners(canvas, edge, is_dead=edge in dead)
    for node, column in _COLUMNS.items():
        canvas[0][column - 1 : column + 2] = f"({node})"
    for node in (3, 4):
        canvas[1][_COLUMNS[node]] = "^"
    lines = ["".join(row).rstrip() for row in canvas]
    return "\n".join([*lines, *(["", _NOTE] if dead else [])])


def _draw_across(canvas: list[list[str]], edge: int, *, label: str, is_dead: bool) -> None:
    source, target = EDGES[edge]
    start, end = _COLUMNS[source] + 2, _COLUMNS[target] - 2
    row = _ROWS[source, target]
    for column in range(start, end + 1) if row == 0 else range(start - 1, end + 2):
        canvas[row][column] = "·" if is_dead else "─"
    if row == 0:
        canvas[row][end] = ">"
    right = _COLUMNS[2] if (source, target) == (1, 3) else end  # keeps the label clear of the line under node 2
    middle = (start + right - len(label)) // 2 + 1
    canvas[row][middle : middle + len(label)] = label


def _draw_corners(canvas: list[list[str]], edge: int, *, is_dead: bool) -> None:
    source, target = EDGES[edge]
    row = _ROWS[source, target]
    for node, branch, corner in ((source, "├", "└"), (target, "┤", "┘")):
        column = _COLUMNS[node]
        goes_on = row + 1 < len(canvas) and canvas[row + 1][column] == "│"
        if is_dead:
            canvas[row][column] = "│" if goes_on else "·"
        else:
            canvas[row][column] = branch if goes_on else corner


def draw_svg(ops: Sequence[int]) -> str:
    """Draw the cell as a self-contained SVG document with its own light and dark colours."""
    dead = dead_edges(ops)
    title = ", ".join(f"Op{edge + 1} {LABELS[op]}" for edge, op in enumerate(ops))
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>Cell: {title}</title>",
        f"<style>{_CSS}</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="10"/>',
    ]
    in_order = sorted(range(len(EDGES)), key=lambda edge: edge not in dead)
    parts += [_svg_edge(edge, ops[edge], is_dead=edge in dead) for edge in in_order]
    roles = {1: ("input", -14), 4: ("output", 16)}  # moved aside, out of the way of the curves
    for node, x in _PLACES.items():
        parts.append(f'<circle class="node" cx="{x}" cy="{_LINE}" r="{_RADIUS}"/>')
        parts.append(f'<text class="number" x="{x}" y="{_LINE + 5}">{node}</text>')
        if node in roles:
            role, aside = roles[node]
            parts.append(f'<text class="role" x="{x + aside}" y="{_LINE + 38}">{role}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _svg_edge(edge: int, op: int, *, is_dead: bool) -> str:
    """Draw one edge: its line, its arrow head and its label, on a plate that hides the line behind it."""
    style = _STYLES[op]
    source, target = EDGES[edge]
    left, right = _PLACES[source], _PLACES[target]
    rise = _RISES.get((source, target), 0)
    middle = (left + right) / 2
    if rise:
        up = 1 if rise > 0 else -1
        start, end = (left + 11, _LINE - up * 17), (right - 11, _LINE - up * 17)
        # Control points above the ends: the curve's height is three quarters of theirs.
        height = _LINE - rise / 0.75 + up * 17 / 3
        line = f"M{start[0]} {start[1]}C{left + 60} {height:.0f} {right - 60} {height:.0f} {end[0]} {end[1]}"
        slope = (end[0] - (right - 60), end[1] - height)
    else:
        end = (right - _RADIUS - 1, _LINE)
        line = f"M{left + _RADIUS} {_LINE}H{end[0] - 8}"
        slope = (1, 0)
    label = LABELS[op]
    width = 52 + 7.4 * len(label)
    y = _LINE - rise
    plate = f'x="{middle - width / 2:.1f}" y="{y - 14}" width="{width:.1f}" height="28" rx="14"'
    return "\n".join(
        [
            f'<g class="dead"><!-- Op{edge + 1} -->' if is_dead else f"<g><!-- Op{edge + 1} -->",
            f'<path class="edge {style}" d="{line}"/>',
            _arrow_head(end, slope, style),
            f'<rect class="label {style}" {plate}/>',
            f'<text x="{middle:.0f}" y="{y + 5}"><tspan class="op">Op{edge + 1}</tspan> {label}</text>',
            "</g>",
        ]
    )


def _arrow_head(tip: tuple[float, float], slope: tuple[float, float], style: str) -> str:
    length = (slope[0] ** 2 + slope[1] ** 2) ** 0.5
    dx, dy = slope[0] / length, slope[1] / length
    back = (tip[0] - 11 * dx, tip[1] - 11 * dy)
    corners = [tip, (back[0] - 5 * dy, back[1] + 5 * dx), (back[0] + 5 * dy, back[1] - 5 * dx)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'<polygon class="head {style}" points="{points}"/>'
