"""Draw what leads from images, archives and other programs to answers: `python docs/img/draw_flows.py`."""

from __future__ import annotations

from pathlib import Path

WIDTH, TOP, STEP, BOX, LEFT, MARGIN = 900, 24, 84, 44, 16, 12

# Files in boxes, commands on the arrows between them; one row below the other.
FLOWS = {
    "own-data-flow": [
        ["images", "pipeline.define", "task", "pipeline.collect", "runs", "splits.make", "split"],
        ["runs + split", "surrogate.release", "release", "jahs query", "answers"],
    ],
    "archives-flow": [
        ["assembled_surrogates.tar", "jahs import", "release", "jahs.Benchmark", "answers"],
        ["metric_data.tar", "jahs import", "runs + oddities", "splits.make, surrogate", "your own release"],
    ],
    "serve-flow": [
        ["your program", "requests, JSON", "jahs serve", "configs", "simulated clock"],
        ["simulated clock", "reports", "trial log", "jahs leaderboard", "a line on the board"],
    ],
}

# The picture has its own background, light or dark as the reader's system is, so it is legible on any page.
CSS = """
.page{fill:#ffffff;stroke:#d0d7de}.box{fill:#f3f5f7;stroke:#6e7781}
text{font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#1f2328;text-anchor:middle}
.command{font:12px ui-monospace,Menlo,Consolas,monospace}.command,.tip{fill:#0a58ca}
.arrow{stroke:#0a58ca;stroke-width:2}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#30363d}.box{fill:#1b222b;stroke:#8b949e}text{fill:#e6edf3}
.command,.tip{fill:#6cb0ff}.arrow{stroke:#6cb0ff}
}
"""


def draw_row(row: list[str], y: int) -> list[str]:
    """Return the elements of a row: its boxes as wide as their texts, its arrows sharing the remaining width."""
    widths = [24 + 8 * len(name) for name in row[::2]]
    gap = (WIDTH - 2 * (LEFT + MARGIN) - sum(widths)) / max(1, len(widths) - 1)
    gap, x, parts = min(gap, 210), LEFT + MARGIN, []
    for number, width in enumerate(widths):
        parts += [
            f'<rect class="box" x="{x:g}" y="{y}" width="{width}" height="{BOX}" rx="6"/>',
            f'<text x="{x + width / 2:g}" y="{y + BOX / 2 + 5:g}">{row[2 * number]}</text>',
        ]
        x += width
        if number < len(widths) - 1:
            middle, end = y + BOX / 2, x + gap
            parts += [
                f'<text class="command" x="{x + gap / 2:g}" y="{middle - 8:g}">{row[2 * number + 1]}</text>',
                f'<path class="arrow" d="M{x + 4:g} {middle:g}H{end - 10:g}"/>',
                f'<path class="tip" d="M{end - 2:g} {middle:g}l-9 -5v10z"/>',
            ]
            x += gap
    return parts


def draw(name: str) -> str:
    """Return a flow as SVG."""
    rows = FLOWS[name]
    height = 2 * TOP + STEP * (len(rows) - 1) + BOX
    parts = [part for number, row in enumerate(rows) for part in draw_row(row, TOP + STEP * number)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    card = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
    return "\n".join([head, f"<style>{CSS}</style>", card, *parts, "</svg>", ""])


if __name__ == "__main__":
    for flow in FLOWS:
        Path(__file__).with_name(f"{flow}.svg").write_text(draw(flow), encoding="utf-8")
