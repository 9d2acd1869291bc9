"""Draw the joint space as docs/img/space.svg, from its definition: `.venv-test/bin/python docs/img/draw_space.py`."""

from __future__ import annotations

import math
from pathlib import Path

from jahs.spaces.cell import EDGES, N_CELLS
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.definitions import DEFAULT_TASK, TASKS

WIDTH, HEIGHT = 900, 392
PANEL_WIDTH, PANEL_HEIGHT = 278, 296
LEFTS = (20, 311, 602)
MARGIN = 16  # between a panel's side and its content

OPERATIONS = "identity, zero, conv 3×3, conv 1×1, avg pool 3×3"
ANSWERS = "accuracy · runtime · latency · parameters · multiply-adds, epoch by epoch"
LINE = 152  # height of the cell's four nodes
NODES = {1: 24, 2: 98, 3: 172, 4: 246}
RISES = {(1, 3): 40, (2, 4): -40, (1, 4): 76}  # how far above the line of nodes an edge passes

# The picture has its own background, light or dark as the reader's system is, so it is legible on any page.
CSS = """
.page{fill:#ffffff;stroke:#d0d7de}.panel,.plate{fill:#f3f5f7}
text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:700}.small{font-size:12px;fill:#57606a}.middle{text-anchor:middle}
.chip,.node{fill:#ffffff;stroke:#6e7781}.edge{fill:none;stroke:#0a58ca;stroke-width:2.5}
.axis{stroke:#0b7f6f;stroke-width:4;stroke-linecap:round}.tick{stroke:#0b7f6f;stroke-width:1.5}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#30363d}.panel,.plate{fill:#1b222b}text{fill:#e6edf3}.small{fill:#a5afba}
.chip,.node{fill:#0d1117;stroke:#8b949e}.edge{stroke:#6cb0ff}.axis,.tick{stroke:#4fd1bd}
}
"""


def text(x: float, y: float, words: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"' + (f' class="{style}"' if style else "") + f">{words}</text>"


def chips(x: float, y: float, name: str) -> list[str]:
    """Return the name of a parameter, and a box for each of its choices."""
    choices = PARAMETERS[name].choices
    step = (PANEL_WIDTH - 2 * MARGIN + 8) / max(len(choices), 3)
    elements = [text(x, y, name)]
    for i, choice in enumerate(choices):
        left = x + i * step
        elements.append(f'<rect class="chip" x="{left:g}" y="{y + 8}" width="{step - 8:g}" height="24" rx="12"/>')
        elements.append(text(left + (step - 8) / 2, y + 24.5, str(choice), "middle"))
    return elements


def axis(x: float, y: float, name: str) -> list[str]:
    """Return the name of a parameter, and its range on a log scale with a tick at each decade."""
    parameter = PARAMETERS[name]
    low, high = round(math.log10(parameter.lower)), round(math.log10(parameter.upper))
    start, width = x + 12, PANEL_WIDTH - 2 * MARGIN - 24
    elements = [text(x, y, name), f'<path class="axis" d="M{start:g} {y + 16}h{width:g}"/>']
    for decade in range(low, high + 1):
        tick = start + width * (decade - low) / (high - low)
        elements.append(f'<path class="tick" d="M{tick:g} {y + 10}v12"/>')
        elements.append(text(tick, y + 37, f"{10.0**decade:g}", "small middle"))
    return elements


def cell(x: float) -> list[str]:
    """Return the cell's graph: which node each of the six operations leads from and to."""
    elements = []
    for number, (source, target) in enumerate(EDGES, start=1):
        start, end = x + NODES[source], x + NODES[target]
        rise = RISES.get((source, target), 0)
        bend = LINE - rise / 0.75  # a cubic curve passes at three quarters of its control points' height
        label, height = (start + end) / 2, LINE - rise
        elements.append(
            f'<path class="edge" d="M{start:g} {LINE}C{start + 16:g} {bend:g} {end - 16:g} {bend:g} {end:g} {LINE}"/>'
        )
        elements.append(f'<rect class="plate" x="{label - 17:g}" y="{height - 10:g}" width="34" height="20" rx="4"/>')
        elements.append(text(label, height + 4.5, f"Op{number}", "middle"))
    for node, offset in NODES.items():
        elements.append(f'<circle class="node" cx="{x + offset:g}" cy="{LINE}" r="13"/>')
        elements.append(text(x + offset, LINE + 4.5, str(node), "middle"))
    return elements


def architecture(x: float) -> list[str]:
    first, second = OPERATIONS[: OPERATIONS.index("conv 1")].strip(), OPERATIONS[OPERATIONS.index("conv 1") :]
    return [
        *cell(x - MARGIN + 4),
        text(x, 238, "Each Op is one of"),
        text(x, 258, first, "small"),
        text(x, 275, second, "small"),
        text(x, 304, f"{N_CELLS:,} cells, as in NAS-Bench-201"),
    ]


def hyperparameters(x: float) -> list[str]:
    return [
        *axis(x, 82, "LearningRate"),
        *axis(x, 146, "WeightDecay"),
        *chips(x, 212, "Activation"),
        *chips(x, 270, "TrivialAugment"),
        text(x + 166, 295, "Optimizer SGD", "small"),
    ]


def fidelities(x: float) -> list[str]:
    last, published = TASKS[DEFAULT_TASK].max_epoch, TASKS["cifar10"].max_epoch
    n_groups = math.prod(len(PARAMETERS[name].choices) for name in ("N", "W", "Resolution"))
    return [
        *chips(x, 82, "N"),
        text(x + 22, 82, "cells per stage", "small"),
        *chips(x, 140, "W"),
        text(x + 22, 140, "channels of the first stage", "small"),
        *chips(x, 198, "Resolution"),
        text(x + 74, 198, "of the image's side", "small"),
        text(x, 262, f"{n_groups} groups"),
        text(x + 72, 262, "of N, W and Resolution", "small"),
        text(x, 296, "epoch"),
        text(x + 44, 296, f"1 to {last} (JAHS-Bench-201: 1 to {published})", "small"),
    ]


def draw() -> str:
    """Return the whole picture as a self-contained SVG document."""
    about = f"The joint space: a cell of six operations, hyperparameters, and fidelities. A query answers {ANSWERS}."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">',
        f"<title>{about}</title>",
        f"<style>{CSS}</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12"/>',
    ]
    panels = {"Architecture": architecture, "Hyperparameters": hyperparameters, "Fidelities": fidelities}
    for (title, panel), left in zip(panels.items(), LEFTS, strict=True):
        parts.append(f'<rect class="panel" x="{left}" y="20" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" rx="8"/>')
        parts += [text(left + MARGIN, 49, title, "title"), *panel(left + MARGIN)]
    parts.append(text(WIDTH / 2, 344, "one config, one epoch  →  one query  →", "middle"))
    parts.append(text(WIDTH / 2, 370, ANSWERS, "title middle"))
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    Path(__file__).with_name("space.svg").write_text(draw(), encoding="utf-8")
