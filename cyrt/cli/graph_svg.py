"""SVG pictures of the batches that a script launched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import sqrt
from typing import Protocol

from cyrt.cli.graph_folding import Part, fold
from cyrt.cli.graph_layout import Layout, arrange
from cyrt.graph.drawing import PlanNode, launch_text, node_details, printable

_LETTER = 6.7  # of the nodes' font; all sizes in CSS pixels
_TITLE_LETTER = 7.9  # of the titles'
_LONGEST = 32  # letters of a name
_HEIGHT = 38.0
_PADDING = 16.0
_TITLE = 26.0  # height of the line above a batch
_LEGEND = 44.0
_LOOP = 14.0  # from a repeated part to the line beside it
_PAGE = 1123.0, 794.0  # the longer and the shorter side of an A4 page


class Batch(Protocol):
    """The part of a plan that is drawn."""

    @property
    def nodes(self) -> Sequence[PlanNode]: ...
    @property
    def edges(self) -> Sequence[tuple[int, int, bool]]: ...
    @property
    def launches(self) -> int: ...


def titles(batches: Sequence[Batch]) -> list[str]:
    """One line for each batch: ``batch 3 of 7: 128 operations, launched 12 times, 2 patched``."""
    lines = []
    for number, batch in enumerate(batches, 1):
        nodes = batch.nodes
        operations = sum(node.kind != "empty" for node in nodes)
        patched = sum(node.patched for node in nodes)
        lines.append(
            f"batch {number} of {len(batches)}: {_count_of(operations, 'operation')}, launched "
            f"{_count_of(batch.launches, 'time')}, {patched or 'none'} patched"
        )
    return lines


def _count_of(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def svg(batches: Sequence[Batch], label: Callable[[str], str] = str) -> str:
    """A picture of batches, each with its title, readable on light and dark screens.

    Parameters
    ----------
    batches : sequence of Batch
        They are drawn in rows, from left to right. Parts of a chain that repeat are drawn once.
    label : callable, optional
        Returns the name to show for a symbol; the node's tooltip shows the symbol itself.

    Returns
    -------
    str
        An SVG document that is shown as large as a page, if it is larger.
    """
    panels = [
        _Panel(batch, title, label) for batch, title in zip(batches, titles(batches), strict=True)
    ]
    positions, width, height = _positions(panels)
    body = [_LEGEND_TEXT]
    for panel, (x, y) in zip(panels, positions, strict=True):
        body += [
            f'<g class="batch" transform="translate({_number(x)} {_number(y)})">',
            *panel.parts,
            "</g>",
        ]
    size = f'width="{_number(width)}" height="{_number(height)}"'
    longer, shorter = sorted(_PAGE, reverse=True)
    scale = min(
        1.0, max(min(longer / width, shorter / height), min(shorter / width, longer / height))
    )
    shown = f'width="{_number(scale * width)}" height="{_number(scale * height)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cyrt" role="img" {shown} '
            f'viewBox="0 0 {_number(width)} {_number(height)}">',
            "<title>Batches of operations, as cyrt launches them</title>",
            _STYLE,
            f'<rect class="paper" {size}/>',
            *body,
            "</svg>",
            "",
        ]
    )


class _Panel:
    """One batch, drawn at the origin."""

    def __init__(self, batch: Batch, title: str, label: Callable[[str], str]) -> None:
        folded = fold(batch.nodes, batch.edges)
        nodes = folded.nodes
        texts = [
            (str(i), _short(label(node.name)), launch_text(node))
            for i, node in zip(folded.indices, nodes, strict=True)
        ]
        widths = [
            max(len(number) + 1 + len(name), len(launch)) * _LETTER + _PADDING
            for number, name, launch in texts
        ]
        # The line beside a repeated part and its text take their room from the part's nodes.
        room = [0.0] * len(nodes)
        for part in folded.parts:
            for i in part.positions:
                room[i] = 2 * (_LOOP + 6 + len(_times(part.times)) * _LETTER)
        layout = arrange(
            [width + more for width, more in zip(widths, room, strict=True)], folded.edges, _HEIGHT
        )
        self.width = max(layout.width, len(title) * _TITLE_LETTER) + 2 * _PADDING
        self.height = layout.height + _TITLE + 2 * _PADDING
        left = (self.width - layout.width) / 2
        self.parts = [
            f'<rect class="panel" width="{_number(self.width)}" height="{_number(self.height)}" '
            'rx="8"/>',
            f'<text class="title" x="{_number(_PADDING)}" y="{_number(_PADDING + 10)}">'
            f"{_escape(title)}</text>",
            f'<g transform="translate({_number(left)} {_number(_TITLE + _PADDING)})">',
            *_edges(folded.edges, folded.indices, layout),
            *(_loop(part, widths, layout) for part in folded.parts),
        ]
        times = {i: part.times for part in folded.parts for i in part.positions}
        for i, node in enumerate(nodes):
            self.parts.append(
                _box(
                    node,
                    texts[i],
                    widths[i],
                    layout.centers[i],
                    layout.tops[i],
                    node_details(folded.indices[i], node, label)
                    + (f"\nthe first of {times[i]:,} equal ones" if i in times else ""),
                )
            )
        self.parts.append("</g>")


def _times(times: int) -> str:
    return f"× {times:,}"


def _loop(part: Part, widths: Sequence[float], layout: Layout) -> str:
    """A line beside a part that repeats, from its end back to its begin, and how often it runs."""
    first, last = part.positions[0], part.positions[-1]
    sides = [layout.centers[i] + widths[i] / 2 for i in part.positions]
    top, bottom = layout.tops[first] + _HEIGHT / 4, layout.tops[last] + _HEIGHT * 3 / 4
    across = max(sides) + _LOOP
    return (
        f'<path class="edge loop" d="M{_point(sides[-1], bottom)}L{_point(across, bottom)}'
        f'L{_point(across, top)}L{_point(sides[0], top)}" marker-end="url(#cyrt-loop)"/>'
        f'<text x="{_number(across + 5)}" y="{_number((top + bottom) / 2 + 4)}">'
        f"{_times(part.times)}</text>"
    )


def _edges(
    edges: Sequence[tuple[int, int, bool]], indices: Sequence[int], layout: Layout
) -> list[str]:
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
        drawn.append(
            f'<path class="edge {kind}" d="{path}" marker-end="url(#cyrt-{kind})">'
            f"<title>{indices[source]} → {indices[target]}, {kind}</title></path>"
        )
    return drawn


def _box(
    node: PlanNode,
    texts: tuple[str, str, str],
    width: float,
    center: float,
    top: float,
    details: str,
) -> str:
    number, name, launch = texts
    start, first = _PADDING / 2, 16 if launch else 23
    after = start + (len(number) + 1) * _LETTER
    return "".join(
        [
            f'<g class="node {node.kind}{" patched" * node.patched}" '
            f'transform="translate({_number(center - width / 2)} {_number(top)})">',
            f"<title>{_escape(details)}</title>",
            f'<rect width="{_number(width)}" height="{_number(_HEIGHT)}" rx="6"/>',
            f'<text class="number" x="{_number(start)}" y="{first}">{number}</text>',
            f'<text x="{_number(after)}" y="{first}">{_escape(name)}</text>',
            f'<text class="launch" x="{_number(start)}" y="30">{_escape(launch)}</text>'
            if launch
            else "",
            "</g>",
        ]
    )


def _positions(panels: Sequence[_Panel]) -> tuple[list[tuple[float, float]], float, float]:
    """The positions of the panels, in rows from left to right, and the picture's size."""
    area = sum(panel.width * panel.height for panel in panels)
    most = max([1400.0, sqrt(area) * 1.3, *(panel.width for panel in panels)])
    positions, x, y, shelf, width = [], _PADDING, _LEGEND, 0.0, _LEGEND_WIDTH
    for panel in panels:
        if x > _PADDING and x + panel.width > most + _PADDING:
            x, y, shelf = _PADDING, y + shelf + _PADDING, 0.0
        positions.append((x, y))
        x += panel.width + _PADDING
        shelf, width = max(shelf, panel.height), max(width, x)
    return positions, width, y + shelf + _PADDING


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:20]}…{name[21 - _LONGEST :]}"


def _escape(text: str) -> str:
    return escape(printable(text))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _point(x: float, y: float) -> str:
    return f"{_number(x)} {_number(y)}"


# Colours by selector; the same selectors in both.
_LIGHT = {
    ".paper": "fill:#ffffff",
    ".panel": "fill:#f7f8fa;stroke:#d5d9df",
    "text": "fill:#1b1f24",
    ".number, .launch": "fill:#57606a",
    ".kernel rect": "fill:#e4eefc;stroke:#3b73c4",
    ".copy rect": "fill:#e0f3e6;stroke:#2f8a4b",
    ".fill rect": "fill:#e0f3e6;stroke:#2f8a4b",
    ".empty rect": "fill:#ececec;stroke:#8a8f98",
    ".graph rect": "fill:#f0e7fa;stroke:#7d4cc2",
    ".patched rect": "fill:#ffe2b8;stroke:#c26a00",
    ".full": "stroke:#6b7280",
    ".full-head": "fill:#6b7280",
    ".programmatic": "stroke:#0a7d6c",
    ".programmatic-head": "fill:#0a7d6c",
    ".loop": "stroke:#7d4cc2",
    ".loop-head": "fill:#7d4cc2",
}
_DARK = {
    ".paper": "fill:#15181d",
    ".panel": "fill:#1b1f26;stroke:#343b46",
    "text": "fill:#e6e9ee",
    ".number, .launch": "fill:#9aa4b0",
    ".kernel rect": "fill:#1d2d45;stroke:#6aa3f0",
    ".copy rect": "fill:#1b3625;stroke:#5fc081",
    ".fill rect": "fill:#1b3625;stroke:#5fc081",
    ".empty rect": "fill:#2b2f36;stroke:#8a8f98",
    ".graph rect": "fill:#32234a;stroke:#b48cf0",
    ".patched rect": "fill:#4a3210;stroke:#f0a23c",
    ".full": "stroke:#9aa4b0",
    ".full-head": "fill:#9aa4b0",
    ".programmatic": "stroke:#35c9b2",
    ".programmatic-head": "fill:#35c9b2",
    ".loop": "stroke:#b48cf0",
    ".loop-head": "fill:#b48cf0",
}


def _rules(colours: dict[str, str]) -> str:
    return "\n".join(
        f"{', '.join('.cyrt ' + each for each in selector.split(', '))} {{{rule}}}"
        for selector, rule in colours.items()
    )


_STYLE = (
    f"""<style>
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
<defs>"""
    + "".join(
        f'<marker id="cyrt-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto" markerUnits="userSpaceOnUse">'
        f'<path class="{kind}-head" d="M0 0L8 4L0 8z"/></marker>'
        for kind in ("full", "programmatic", "loop")
    )
    + "</defs>"
)
_LEGEND_WIDTH = 930.0
_LEGEND_TEXT = (
    '<g class="legend" transform="translate(16 26)">'
    '<path class="edge full" d="M0 -4H40" marker-end="url(#cyrt-full)"/>'
    '<text x="48">waits for its end</text>'
    '<path class="edge programmatic" d="M190 -4H230" marker-end="url(#cyrt-programmatic)"/>'
    '<text x="238">programmatic: may start before its end</text>'
    '<g class="node patched" transform="translate(520 -12)"><rect width="24" height="16" rx="4"/>'
    '</g><text x="552">patched by the last launch</text>'
    '<path class="edge loop" d="M730 -4H770" marker-end="url(#cyrt-loop)"/>'
    '<text x="778">comes repeatedly</text></g>'
)
