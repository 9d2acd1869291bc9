import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.spaces.cell import Cell

cells = st.lists(st.integers(0, 4), min_size=6, max_size=6).map(lambda ops: Cell(tuple(ops)))
LABELS = ["identity", "zero", "conv 3×3", "conv 1×1", "avg pool 3×3"]
SVG = "{http://www.w3.org/2000/svg}"

DRAWING = """\
 (1)─── Op1 avg pool 3×3 ──>(2)····· Op4 identity ····>(3)······· Op6 zero ······>(4)
  │                          │                          ^                          ^
  │········· Op2 zero ·······│···························                          │
  │                          │                                                     │
  │                          └──────────────────── Op5 conv 3×3 ───────────────────┤
  │                                                                                │
  └───────────────────────────────── Op3 conv 3×3 ─────────────────────────────────┘

dotted: on no path from input (1) to output (4) that is free of zeros"""


def test_a_drawing_in_characters():
    assert Cell((4, 1, 2, 0, 2, 1)).draw() == DRAWING


@given(cells)
def test_a_drawing_labels_every_edge_and_fits_a_terminal(cell):
    text = cell.draw()
    for number, op in enumerate(cell.ops, start=1):
        assert f" Op{number} {LABELS[op]} " in text
    assert all(f"({node})" in text for node in range(1, 5))
    assert max(map(len, text.splitlines())) <= 100


@given(cells)
def test_an_svg_labels_every_edge_and_dims_those_on_no_live_path(cell):
    root = ET.fromstring(cell.svg())
    groups = root.findall(f"{SVG}g")
    labels = {"".join(group.find(f"{SVG}text").itertext()): group.get("class") for group in groups}
    live = {edge for path in cell.paths if path.is_alive for edge in zip(path.nodes, path.nodes[1:], strict=False)}
    assert labels == {
        f"Op{number} {LABELS[op]}": None if edge in live else "dead"
        for number, (edge, op) in enumerate(zip(cell.operations, cell.ops, strict=True), start=1)
    }


@pytest.mark.parametrize("ops", [(4, 1, 2, 0, 2, 1), (2,) * 6])
def test_an_svg_stands_alone(ops):
    svg = Cell(ops).svg()
    assert "prefers-color-scheme:dark" in svg
    assert not any(word in svg for word in ("href", "url(", "<script", "@import"))
    assert svg.count("http") == 1, "only the name space"
