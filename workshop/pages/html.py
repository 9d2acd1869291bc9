"""A document as one HTML file: no script, no network, light and dark, as narrow as a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Final

from workshop.pages.document import (
    Block,
    Document,
    Figure,
    Section,
    Table,
    Text,
    contents,
    inline_html,
    split_answers,
    split_sentence,
)
from workshop.pages.markdown import caveat_text
from workshop.pages.style import DARK, LIGHT, css_colors, styled

_HEAD: Final = """
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
"""

_STYLE: Final = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.2rem clamp(.9rem,3vw,2.5rem) 4rem}
h1{font-size:clamp(1.5rem,4.5vw,2.2rem);line-height:1.2;margin:.6rem 0 .3rem}
h2{font-size:1.35rem;margin:2.8rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line);scroll-margin-top:.5rem}
p{max-width:46rem;margin:.6rem 0}
.sub,figcaption,summary,dt{color:var(--muted)}
.sub{font-size:1.1rem}
.answer{border-left:4px solid var(--s0);padding:.1rem 0 .1rem .9rem;font-size:1.08rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;margin:1rem 0}
a{color:var(--s0)}
.figures{align-items:start;
 display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.2rem 1.6rem}
figure{margin:.6rem 0;min-width:0}
figure svg{display:block;width:100%;height:auto;max-width:40rem}
figcaption{font-size:.9rem;margin-top:.3rem;max-width:40rem}
figure.table{margin:1.2rem 0}
.table figcaption{max-width:46rem}
/* A shadow at a side of a table says that there is more of it; at the end of the way, a sheet of paper covers it. */
.scroll{overflow-x:auto;margin:.4rem 0;background:linear-gradient(to right,var(--paper) 40%,transparent) 0 0,
 linear-gradient(to left,var(--paper) 40%,transparent) 100% 0,linear-gradient(to right,var(--muted),transparent) 0 0,
 linear-gradient(to left,var(--muted),transparent) 100% 0;background-repeat:no-repeat;
 background-size:2.5rem 100%,2.5rem 100%,.7rem 100%,.7rem 100%;background-attachment:local,local,scroll,scroll}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:right;
 white-space:nowrap;vertical-align:top}
th.l,td.l{text-align:left;font-weight:400}
thead th{font-weight:600}
thead th.l{font-weight:600}
summary{cursor:pointer}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.2rem 1rem;font-size:.92rem}
dd{margin:0;overflow-wrap:anywhere}
@media(max-width:32rem){dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:.4rem}}
@media print{.scroll{overflow:visible}h2{break-after:avoid}figure{break-inside:avoid}
 details::details-content{content-visibility:visible;block-size:auto}}
"""

_REFERENCE: Final = re.compile(r'(href="|url\()#([^")]+)')
_GEOMETRY: Final = re.compile(r' (d|x|y|width|height)="([^"]*)"')
_PLAIN_GROUP: Final = re.compile(r"<g>((?:(?!</?g\b).)*)</g>", re.DOTALL)
_DOTS: Final = re.compile(r"<g([^>]*)>((?:<use [^>]*/>){2,})</g>")
_USE: Final = re.compile(r'<use href="([^"]*)" x="([^"]*)" y="([^"]*)"([^>]*)/>')


def to_html(document: Document, drawings: Mapping[str, str]) -> str:
    """Return the whole page.

    Args:
        drawings: each figure's `svg_text`, by the figure's name.
    """
    links = "".join(
        f'<li><a href="#{anchor(section.title)}">{escape(section.title)}</a></li>' for section in document.sections
    )
    is_folded = document.is_folded
    facts = f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in document.facts)}</dl>"
    facts = _folded("Command and versions", facts) if is_folded else facts
    content = [
        *([_block(document.figure, drawings)] if document.figure else []),
        *(_caveat(caveat, is_folded=is_folded) for caveat in document.caveats),
        *([f"<p>{inline_html(document.setting)}</p>"] if document.setting else []),
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
        *(_section(section, drawings, is_folded=is_folded) for section in document.sections),
        *([f'<h2 id="how">Reproduction</h2>{facts}'] if document.facts else []),
    ]
    body, rules = share_styles("\n".join(content))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
{_one_line(_HEAD)}
<title>{escape(document.title)}</title>
<style>
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media(prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{{_variables(LIGHT)}}}}}
{_one_line(_STYLE)}
{rules}
</style>
</head>
<body>
<main>
<h1>{escape(document.title)}</h1>
<p class="sub">{inline_html(document.subtitle)}</p>
{body}
</main>
</body>
</html>
"""


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG file's text, the same for the same figure."""
    out = io.StringIO()
    with styled():
        figure.drawing.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    figure.drawing.set_layout_engine("none")  # the layout is final and need not be computed again
    return out.getvalue()


def anchor(title: str) -> str:
    """Return the anchor of a section."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _caveat(caveat: str, *, is_folded: bool) -> str:
    first, rest = split_sentence(caveat)
    if is_folded and rest:
        return _folded(f"<strong>Caveat:</strong> {inline_html(first)}", f"<p>{inline_html(rest)}</p>")
    return f'<p class="answer">{inline_html(caveat_text(caveat))}</p>'


def _section(section: Section, drawings: Mapping[str, str], *, is_folded: bool) -> str:
    answers, others = split_answers(section)
    content = "\n".join(_blocks(others, drawings))
    parts = [
        f'<section><h2 id="{anchor(section.title)}">{escape(section.title)}</h2>',
        *_blocks(answers, drawings),
        _folded(contents(others), content) if is_folded and others else content,
    ]
    return "\n".join(parts) + "</section>"


def _blocks(blocks: Sequence[Block], drawings: Mapping[str, str]) -> Iterator[str]:
    """Yield the blocks; figures that follow one another share a grid."""
    for are_figures, group in groupby(blocks, key=lambda block: isinstance(block, Figure)):
        rendered = [_block(block, drawings) for block in group]
        yield from [f'<div class="figures">{"".join(rendered)}</div>'] if are_figures else rendered


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _block(block: Block, drawings: Mapping[str, str]) -> str:
    if isinstance(block, Text):
        highlight = ' class="answer"' * block.is_answer
        return f"<p{highlight}>{inline_html(block.text)}</p>"
    if isinstance(block, Figure):
        caption = f"<figcaption>{inline_html(block.caption)}</figcaption>"
        return f"<figure>{_inline(block, drawings[block.name])}{caption}</figure>"
    return _table(block)


def _inline(figure: Figure, svg: str) -> str:
    """Return the drawing for inside the page: with unique ids, the page's colours and the column's width."""
    svg = compact(css_colors(svg[svg.index("<svg") :]), figure.name)
    opening, content = svg.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening.removeprefix("<svg"))
    return f'<svg role="img" aria-label="{escape(figure.alt)}"{opening}>{content.rstrip()}'


def _table(table: Table) -> str:
    def cells(tag: str, texts: tuple[str, ...]) -> str:
        classes = [' class="l"' * (i < table.n_labels) for i in range(len(texts))]
        return "".join(f"<{tag}{name}>{inline_html(text)}</{tag}>" for name, text in zip(classes, texts, strict=True))

    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    inner = f"<thead><tr>{cells('th', table.columns)}</tr></thead><tbody>{rows}</tbody>"
    # A wide table scrolls on its own, with the keyboard as well; its caption does not.
    label = f'role="region" aria-label="{escape(table.caption)}" tabindex="0"'
    scroller = f'<div class="scroll" {label}><table>{inner}</table></div>'
    if table.is_folded:
        return _folded(escape(table.caption), scroller)
    caption = f"<figcaption>{inline_html(table.caption)}</figcaption>" if table.caption else ""
    return f'<figure class="table">{caption}{scroller}</figure>'


def _one_line(text: str) -> str:
    return "".join(line.strip() for line in text.splitlines())


def _variables(colors: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{color};" for name, color in colors.items())


def compact(svg: str, name: str) -> str:
    """Return matplotlib's drawing in a fifth of the bytes or less, for a page with dozens of figures.

    Matplotlib writes an element with its own style for each dot, six decimals for each coordinate and an id for each
    group. Here dots of one kind become the markers of one path, coordinates have two decimals, and ids remain where
    they are used; they begin with `name`, so that they are unique on a page.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r">\s+<", "><", svg).replace("xlink:href", "href")
    svg = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", svg)
    svg = re.sub(r'style="[^"]*"', lambda match: re.sub("([:;,]) ", r"\1", match[0]), svg)
    svg = _GEOMETRY.sub(lambda match: f' {match[1]}="{_short(match[2])}"', svg)
    new_ids = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(old for _, old in _REFERENCE.findall(svg)))}
    svg = re.sub(r' id="([^"]+)"', lambda match: f' id="{new_ids[match[1]]}"' if match[1] in new_ids else "", svg)
    svg = _REFERENCE.sub(lambda match: f"{match[1]}#{new_ids[match[2]]}", svg)
    while (unwrapped := _PLAIN_GROUP.sub(r"\1", svg)) != svg:
        svg = unwrapped
    svg = re.sub(r' clip-path="([^"]*)" style="', r' style="clip-path:\1;', svg)
    if len(fonts := set(re.findall(r'font-family:[^;"]*;', svg))) == 1:
        font = fonts.pop()
        svg = svg.replace(font, "").replace("<svg", f'<svg style="{font}"', 1)
    return _DOTS.sub(lambda match: _dots(match, f"{name}-at{match.start()}"), svg)


def share_styles(body: str) -> tuple[str, str]:
    """Return a page's body with a class for each style that elements have, and the rules of the classes."""
    classes: dict[str, str] = {}

    def as_class(match: re.Match[str]) -> str:
        return f'class="{classes.setdefault(match[1], f"d{len(classes)}")}"'

    body = re.sub(r'(?<= )style="([^"]*)"', as_class, body)
    return body, "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _dots(match: re.Match[str], name: str) -> str:
    """Return a group of equal dots as the markers of one path; return other groups unchanged."""
    uses = _USE.findall(match[2])
    if len({(shape, style) for shape, _, _, style in uses}) != 1:
        return match[0]
    shape, _, _, style = uses[0]
    points = "L".join(f"{x} {y}" for _, x, y, _ in uses)
    markers = "".join(f' marker-{place}="url(#{name})"' for place in ("start", "mid", "end"))
    return (
        f'<marker id="{name}" overflow="visible" markerUnits="userSpaceOnUse"><use href="{shape}"{style}/></marker>'
        f'<path{match[1]} d="M{points}" fill="none"{markers}/>'
    )


def _short(geometry: str) -> str:
    rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), geometry)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", rounded.strip())
