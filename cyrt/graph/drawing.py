"""Pictures of batches: what their nodes run, and what waits for what."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, Protocol

from cyrt.graph.layout import Layout, arrange

_LETTER = 6.7           # of the nodes' font; all sizes in CSS pixels
_TITLE_LETTER = 7.9     # of the titles'
_LONGEST = 32           # letters of a name
_HEIGHT = 38.0
_PADDING = 16.0
_TITLE = 26.0           # room for a title above its batch
_LEGEND = 44.0
_UNPRINTABLE = re.compile("[^\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


class PlanNode(NamedTuple):
    """A node of a plan."""

    name: str           # a kernel's symbol, mangled or plain
    kind: str           # "kernel", "copy", "fill", "empty" or "graph"
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int           # bytes of dynamic shared memory
    cluster: tuple[int, int, int] | None
    cooperative: bool
    patched: bool       # by the last launch


class Batch(Protocol):
    """What is drawn: a plan."""

    @property
    def nodes(self) -> Sequence[PlanNode]: ...
    @property
    def edges(self) -> Sequence[tuple[int, int, bool]]: ...
    @property
    def launches(self) -> int: ...


def titles(batches: Sequence[Batch]) -> list[str]:
    """A line for each: ``batch 3 of 7: 128 operations, launched 12 times, 2 patched``."""
    lines = []
    for number, batch in enumerate(batches, 1):
        nodes = batch.nodes
        operations = sum(node.kind != "empty" for node in nodes)
        patched = sum(node.patched for node in nodes)
        lines.append(
            f"batch {number} of {len(batches)}: {_counted(operations, 'operation')}, launched "
            f"{_counted(batch.launches, 'time')}, {patched or 'none'} patched"
        )
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _extent(sizes: tuple[int, int, int]) -> str:
    used = 3 if sizes[2] != 1 else 2 if sizes[1] != 1 else 1
    text = ", ".join(map(str, sizes[:used]))
    return text if used == 1 else f"({text})"


def _launch(node: PlanNode) -> str:
    """``<<<(4, 2), 256, 1024>>> cluster 2``; empty for what has no geometry."""
    if node.kind not in ("kernel", "fill"):
        return ""
    text = f"<<<{_extent(node.grid)}, {_extent(node.block)}{f', {node.smem}' * (node.smem > 0)}>>>"
    if node.cluster is not None:
        text += f" cluster {_extent(node.cluster)}"
    return text + " cooperative" * node.cooperative


def _details(index: int, node: PlanNode, label: Callable[[str], str]) -> str:
    """All there is to say of a node, line by line."""
    lines = [f"{index}: {label(node.name)}"]
    if label(node.name) != node.name:
        lines.append(node.name)
    if node.name != node.kind:
        lines.append(node.kind)
    if _launch(node):
        for what, sizes in (("grid", node.grid), ("block", node.block), ("cluster", node.cluster)):
            if sizes is not None:
                lines.append(f"{what} {' × '.join(map(str, sizes))}")
        if node.smem:
            lines.append(f"{node.smem:,} bytes of dynamic shared memory")
    if node.cooperative:
        lines.append("cooperative")
    if node.patched:
        lines.append("patched by the last launch")
    return "\n".join(_UNPRINTABLE.sub("\ufffd", line) for line in lines)


# -- Graphviz --------------------------------------------------------------------------------------


def dot(
    nodes: Sequence[PlanNode],
    edges: Sequence[tuple[int, int, bool]],
    *,
    title: str = "",
    label: Callable[[str], str] = str,
) -> str:
    """A batch in Graphviz's language.

    Parameters
    ----------
    nodes : sequence of PlanNode
        Filled where patched.
    edges : sequence of (int, int, bool)
        Source, target, whether programmatic: those are dashed.
    title : str, optional
        Stands above the picture.
    label : callable, optional
        Gives the name to show for a symbol.
    """
    lines = [
        "digraph {",
        f'  graph [label={_quoted(title)}, labelloc=t, labeljust=l, fontname="sans-serif"]',
        '  node [shape=box, style=rounded, fontname="monospace", fontsize=10]',
    ]
    for i, node in enumerate(nodes):
        text = "\n".join(filter(None, (f"{i}: {label(node.name)}", _launch(node))))
        patched = ', style="rounded,filled", fillcolor="#ffe2b8"' * node.patched
        lines.append(
            f"  n{i} [label={_quoted(text)}, tooltip={_quoted(_details(i, node, label))}{patched}]"
        )
    for source, target, programmatic in edges:
        lines.append(f"  n{source} -> n{target}{' [style=dashed]' * programmatic}")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    lines = (_UNPRINTABLE.sub("\ufffd", line) for line in text.split("\n"))
    body = "\n".join(lines).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{body}"'


# -- SVG -------------------------------------------------------------------------------------------


def svg(batches: Sequence[Batch], label: Callable[[str], str] = str) -> str:
    """A picture of batches, each with its title, readable on light and dark screens.

    Parameters
    ----------
    batches : sequence of Batch
        In the order to draw them in: rows, from left to right.
    label : callable, optional
        Gives the name to show for a symbol; the symbol itself stands in the node's tooltip.

    Returns
    -------
    str
        An SVG document.
    """
    panels = [_Panel(batch, title, label)
              for batch, title in zip(batches, titles(batches), strict=True)]
    places, width, height = _shelves(panels)
    body = [_LEGEND_TEXT]
    for panel, (x, y) in zip(panels, places, strict=True):
        body += [f'<g class="batch" transform="translate({_number(x)} {_number(y)})">',
                 *panel.parts, "</g>"]
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cyrt" role="img" {size} '
        f'viewBox="0 0 {_number(width)} {_number(height)}">',
        "<title>Batches of operations, as cyrt launches them</title>",
        _STYLE, f'<rect class="paper" {size}/>', *body, "</svg>", "",
    ])


class _Panel:
    """One batch, drawn at the origin."""

    def __init__(self, batch: Batch, title: str, label: Callable[[str], str]) -> None:
        nodes, edges = batch.nodes, batch.edges
        texts = [(str(i), _short(label(node.name)), _launch(node)) for i, node in enumerate(nodes)]
        widths = [
            max(len(number) + 1 + len(name), len(launch)) * _LETTER + _PADDING
            for number, name, launch in texts
        ]
        layout = arrange(widths, edges, _HEIGHT)
        self.width = max(layout.width, len(title) * _TITLE_LETTER) + 2 * _PADDING
        self.height = layout.height + _TITLE + 2 * _PADDING
        left = (self.width - layout.width) / 2
        self.parts = [
            f'<rect class="panel" width="{_number(self.width)}" height="{_number(self.height)}" '
            'rx="8"/>',
            f'<text class="title" x="{_number(_PADDING)}" y="{_number(_PADDING + 10)}">'
            f"{_escaped(title)}</text>",
            f'<g transform="translate({_number(left)} {_number(_TITLE + _PADDING)})">',
            *_edges(edges, layout),
        ]
        for i, node in enumerate(nodes):
            self.parts.append(_box(
                node, texts[i], widths[i], layout.centers[i], layout.tops[i],
                _details(i, node, label),
            ))
        self.parts.append("</g>")


def _edges(edges: Sequence[tuple[int, int, bool]], layout: Layout) -> list[str]:
    drawn = []
    for (source, target, programmatic), route in zip(edges, layout.routes, strict=True):
        path = "M" + _point(*route[0])
        for i, (start, end) in enumerate(pairwise(route)):
            if i % 2:
                path += "L" + _point(*end)
            else:
                middle = (start[1] + end[1]) / 2
                path += f"C{_point(start[0], middle)} {_point(end[0], middle)} {_point(*end)}"
        kind = "programmatic" if programmatic else "full"
        drawn.append(f'<path class="edge {kind}" d="{path}" marker-end="url(#cyrt-{kind})">'
                     f"<title>{source} → {target}, {kind}</title></path>")
    return drawn


def _box(
    node: PlanNode, texts: tuple[str, str, str], width: float, center: float, top: float,
    details: str,
) -> str:
    number, name, launch = texts
    start, first = _PADDING / 2, 16 if launch else 23
    after = start + (len(number) + 1) * _LETTER
    return "".join([
        f'<g class="node {node.kind}{" patched" * node.patched}" '
        f'transform="translate({_number(center - width / 2)} {_number(top)})">',
        f"<title>{_escaped(details)}</title>",
        f'<rect width="{_number(width)}" height="{_number(_HEIGHT)}" rx="6"/>',
        f'<text class="number" x="{_number(start)}" y="{first}">{number}</text>',
        f'<text x="{_number(after)}" y="{first}">{_escaped(name)}</text>',
        f'<text class="launch" x="{_number(start)}" y="30">{_escaped(launch)}</text>'
        if launch else "",
        "</g>",
    ])


def _shelves(panels: Sequence[_Panel]) -> tuple[list[tuple[float, float]], float, float]:
    """Places of the panels, from left to right and then further down, and the whole's size."""
    area = sum(panel.width * panel.height for panel in panels)
    most = max([1400.0, sqrt(area) * 1.3, *(panel.width for panel in panels)])
    places, x, y, shelf, width = [], _PADDING, _LEGEND, 0.0, _LEGEND_WIDTH
    for panel in panels:
        if x > _PADDING and x + panel.width > most + _PADDING:
            x, y, shelf = _PADDING, y + shelf + _PADDING, 0.0
        places.append((x, y))
        x += panel.width + _PADDING
        shelf, width = max(shelf, panel.height), max(width, x)
    return places, width, y + shelf + _PADDING


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:20]}…{name[21 - _LONGEST:]}"


def _escaped(text: str) -> str:
    return escape("\n".join(_UNPRINTABLE.sub("\ufffd", line) for line in text.split("\n")))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _point(x: float, y: float) -> str:
    return f"{_number(x)} {_number(y)}"


# Colours by selector; the same selectors in both.
_LIGHT = {
    ".paper": "fill:#ffffff", ".panel": "fill:#f7f8fa;stroke:#d5d9df", "text": "fill:#1b1f24",
    ".number, .launch": "fill:#57606a",
    ".kernel rect": "fill:#e4eefc;stroke:#3b73c4", ".copy rect": "fill:#e0f3e6;stroke:#2f8a4b",
    ".fill rect": "fill:#e0f3e6;stroke:#2f8a4b", ".empty rect": "fill:#ececec;stroke:#8a8f98",
    ".graph rect": "fill:#f0e7fa;stroke:#7d4cc2", ".patched rect": "fill:#ffe2b8;stroke:#c26a00",
    ".full": "stroke:#6b7280", ".full-head": "fill:#6b7280",
    ".programmatic": "stroke:#0a7d6c", ".programmatic-head": "fill:#0a7d6c",
}
_DARK = {
    ".paper": "fill:#15181d", ".panel": "fill:#1b1f26;stroke:#343b46", "text": "fill:#e6e9ee",
    ".number, .launch": "fill:#9aa4b0",
    ".kernel rect": "fill:#1d2d45;stroke:#6aa3f0", ".copy rect": "fill:#1b3625;stroke:#5fc081",
    ".fill rect": "fill:#1b3625;stroke:#5fc081", ".empty rect": "fill:#2b2f36;stroke:#8a8f98",
    ".graph rect": "fill:#32234a;stroke:#b48cf0", ".patched rect": "fill:#4a3210;stroke:#f0a23c",
    ".full": "stroke:#9aa4b0", ".full-head": "fill:#9aa4b0",
    ".programmatic": "stroke:#35c9b2", ".programmatic-head": "fill:#35c9b2",
}


def _rules(colours: dict[str, str]) -> str:
    return "\n".join(
        f"{', '.join('.cyrt ' + each for each in selector.split(', '))} {{{rule}}}"
        for selector, rule in colours.items()
    )


_STYLE = f"""<style>
.cyrt text {{font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace}}
.cyrt .title {{font-size: 13px; font-weight: 600}}
.cyrt .edge {{fill: none; stroke-width: 1.3}}
.cyrt .programmatic {{stroke-dasharray: 5 3}}
.cyrt .patched rect {{stroke-width: 2.5}}
{_rules(_LIGHT)}
@media (prefers-color-scheme: dark) {{
{_rules(_DARK)}
}}
</style>
<defs>""" + "".join(
    f'<marker id="cyrt-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
    f'markerHeight="7" orient="auto" markerUnits="userSpaceOnUse">'
    f'<path class="{kind}-head" d="M0 0L8 4L0 8z"/></marker>'
    for kind in ("full", "programmatic")
) + "</defs>"
_LEGEND_WIDTH = 720.0
_LEGEND_TEXT = (
    '<g class="legend" transform="translate(16 26)">'
    '<path class="edge full" d="M0 -4H40" marker-end="url(#cyrt-full)"/>'
    '<text x="48">waits for its end</text>'
    '<path class="edge programmatic" d="M190 -4H230" marker-end="url(#cyrt-programmatic)"/>'
    '<text x="238">programmatic: may start before its end</text>'
    '<g class="node patched" transform="translate(520 -12)"><rect width="24" height="16" rx="4"/>'
    '</g><text x="552">patched by the last launch</text></g>'
)
