"""SVG pictures of the batches that a script launched.

Parts that repeat in a chain are drawn once. Nodes are in rows, and every edge leads from a row to a
lower one. An edge that passes rows gets a slot of zero width in each of them, so that it is routed
around their nodes. Slots are ordered by the mean position of their neighbours in the row above,
then below, and placed as near to it as possible.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from math import sqrt
from statistics import fmean
from typing import TypeAlias

from cyrt.graph.drawing import PlanNode, launch_text, node_details, printable
from cyrt.graph.fusion import Fusion
from cyrt.graph.plan import Plan

Edges: TypeAlias = Sequence[tuple[int, int, bool]]  # source, a later target, whether programmatic
Label: TypeAlias = Callable[[str], str]
FEWEST = 3  # repetitions that are folded
MOST_IN_ROW = 12  # nodes; a wider row is split
# Sizes in CSS pixels.
_LETTER, _TITLE_LETTER, _LONGEST = 6.7, 7.9, 32  # widths, and the letters of a name
_HEIGHT, _PADDING, _SPACE = 38.0, 16.0, 14.0  # a node's, in it, and between slots of a row
_GAP, _MOST_GAP = 24.0, 96.0  # between rows; edges that lead far to a side get more of it
_TITLE, _LOOP = 26.0, 14.0  # above a batch, and from a repeated part to the line beside it
_LEGEND_WIDTH, _LEGEND_HEIGHT = 930.0, 44.0
_LONG_SIDE, _SHORT_SIDE = 1123.0, 794.0  # an A4 page's
_SWEEPS, _STRAIGHT = 4, 8.0  # passes over the rows; weight of a long edge, where a node has 1


def titles(batches: Sequence[Plan | Fusion]) -> list[str]:
    """One line for each batch: ``batch 3 of 7: 128 operations, launched 12 times, 2 patched``."""
    lines = []
    for number, batch in enumerate(batches, 1):
        nodes = [node for node in batch.nodes if node.kind != "empty"]
        operations = sum(max(1, len(node.operations)) for node in nodes)
        fused = f" as {len(nodes):,}" if len(nodes) != operations else ""
        lines.append(
            f"batch {number} of {len(batches)}: {operations:,} operation{'s' * (operations != 1)}"
            f"{fused}, launched {batch.launches:,} time{'s' * (batch.launches != 1)}, "
            f"{sum(node.patched for node in nodes) or 'none'} patched"
        )
    return lines


def svg(batches: Sequence[Plan | Fusion], label: Label = str) -> str:
    """A picture of batches, each with its title, readable on light and dark screens.

    They are drawn in rows, from left to right, and parts of a chain that repeat are drawn once.
    The document is shown as large as a page, if it is larger. `label` returns the name to show for
    a symbol; the node's tooltip shows the symbol itself.
    """
    panels = [_panel(*pair, label) for pair in zip(batches, titles(batches), strict=True)]
    area = sum(across * down for _, across, down in panels)
    most = max([1400.0, sqrt(area) * 1.3, *(across for _, across, _ in panels)]) + _PADDING
    x, y, width, bottom = _PADDING, _LEGEND_HEIGHT, _LEGEND_WIDTH, _LEGEND_HEIGHT
    placed = []
    for content, across, down in panels:
        if x > _PADDING and x + across > most:
            x, y = _PADDING, bottom + _PADDING
        placed.append(_tag("g", content, class_="batch", transform=f"translate({_point(x, y)})"))
        x += across + _PADDING
        width, bottom = max(width, x), max(bottom, y + down)
    height = bottom + _PADDING
    upright = min(1.0, _SHORT_SIDE / width, _LONG_SIDE / height)
    scale = max(upright, min(1.0, _LONG_SIDE / width, _SHORT_SIDE / height))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="cyrt" role="img" '
        f'width="{scale * width:.1f}" height="{scale * height:.1f}" '
        f'viewBox="0 0 {_point(width, height)}">'
        f"<title>Batches of operations, as cyrt launches them</title>{_STYLE}"
        f'<rect class="paper" width="{width:.1f}" height="{height:.1f}"/>'
        f"{_LEGEND}{''.join(placed)}</svg>\n"
    )


def fold(
    nodes: Sequence[PlanNode], edges: Edges
) -> tuple[list[int], list[PlanNode], Edges, list[tuple[list[int], int]]]:
    """Leave out the repetitions of parts that come at least three times in a row.

    Only parts of chains are folded. A chain is a row of nodes, each of which waits only for the
    node before it, and is the only one that does. Nodes are equal if their kernels, the geometry
    and the types of the edges that lead to them are equal.

    Returns the indices of the nodes that are drawn; these nodes, marked as patched if the node was
    patched in any repetition; the edges between positions among them; and for each part that
    repeats the positions of its first repetition, and the number of repetitions.
    """
    before: list[list[tuple[int, bool]]] = [[] for _ in nodes]
    for source, target, programmatic in edges:
        before[target].append((source, programmatic))
    followers = Counter(source for source, _, _ in edges)
    chains: dict[int, list[int]] = {}  # by their last node
    for i, sources in enumerate(before):
        continues = len(sources) == 1 and followers[sources[0][0]] == 1
        chains[i] = chains.pop(sources[0][0]) if continues else []
        chains[i].append(i)

    drawn = list(range(len(nodes)))  # the node that is drawn for each
    found: list[tuple[list[int], int]] = []
    for chain in chains.values():
        keys = [(nodes[i]._replace(patched=False), [p for _, p in before[i]]) for i in chain]
        at = 0
        while at < len(chain):
            period, times = _repetition(keys, at)
            if times > 1:
                found.append((chain[at : at + period], times))
            for k in range(at + period, at + period * times):
                drawn[chain[k]] = drawn[chain[k - period]]
            at += period * times

    indices = [i for i, first in enumerate(drawn) if first == i]
    position = {i: p for p, i in enumerate(indices)}
    patched = {first for i, first in enumerate(drawn) if nodes[i].patched}
    return (
        indices,
        [nodes[i]._replace(patched=i in patched) for i in indices],
        [(position[drawn[s]], position[t], p) for s, t, p in edges if drawn[t] == t],
        [([position[i] for i in part], times) for part, times in found],
    )


def _repetition(keys: Sequence[tuple[PlanNode, list[bool]]], at: int) -> tuple[int, int]:
    """The period that leaves out the most nodes from a place on, and its number of repetitions."""
    best, saved = (1, 1), 0
    for period in range(1, (len(keys) - at) // FEWEST + 1):
        end = at + period
        # The edge that leads to the first node is not part of the repetition.
        while end < len(keys) and (
            keys[end] == keys[end - period] or (end - period == at and keys[end][0] == keys[at][0])
        ):
            end += 1
        times = (end - at) // period
        if times >= FEWEST and period * (times - 1) > saved:
            best, saved = (period, times), period * (times - 1)
    return best


def arrange(
    widths: Sequence[float], edges: Edges
) -> tuple[list[float], list[float], list[list[tuple[float, float]]], float, float]:
    """Lay nodes of these widths out.

    Returns the nodes' centres and tops; the points of each edge, which is curved from an even point
    to the next one and straight from an odd point; and the picture's width and height.
    """
    nodes = len(widths)
    row_of = _longest_paths(nodes, edges)
    passing: dict[tuple[int, bool, int], int] = {}  # edges of one source and type share slots
    paths = []
    for source, target, programmatic in edges:
        path = [source]
        for level in range(row_of[source] + 1, row_of[target]):
            path.append(passing.setdefault((source, programmatic, level), len(row_of)))
            if path[-1] == len(row_of):
                row_of.append(level)
        paths.append([*path, target])
    sizes = [*widths, *[0.0] * len(passing)]
    rows: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for slot, level in enumerate(row_of):
        rows[level].append(slot)
    above: list[list[int]] = [[] for _ in sizes]
    below: list[list[int]] = [[] for _ in sizes]
    for upper, lower in dict.fromkeys(pair for path in paths for pair in pairwise(path)):
        above[lower].append(upper)
        below[upper].append(lower)
    both = [[*a, *b] for a, b in zip(above, below, strict=True)]
    # In the end, an edge that passes several rows is straight there.
    both[nodes:] = [[n for n in found if n >= nodes] or found for found in both[nodes:]]

    x = [0.0] * len(sizes)
    down, up = (rows, above), (rows[::-1], below)
    for order, neighbours in [*[down, up] * _SWEEPS, down, (rows, both)]:
        for row in order:
            wanted = {slot: fmean(x[n] for n in neighbours[slot] or [slot]) for slot in row}
            if neighbours is not both:
                row.sort(key=wanted.__getitem__)
            _place(row, x, sizes, wanted, {s for s in row if s >= nodes <= max(neighbours[s])})
    left = min((center - size / 2 for center, size in zip(x, sizes, strict=True)), default=0.0)
    x = [center - left for center in x]

    tops = [0.0]
    for row in rows[1:]:
        aside = max((abs(x[s] - x[t]) for t in row for s in above[t]), default=0.0)
        tops.append(tops[-1] + _HEIGHT + min(_GAP + aside / 10, _MOST_GAP))
    return (
        x[:nodes],
        [tops[level] for level in row_of[:nodes]],
        [[(x[s], tops[row_of[s]] + y) for s in path for y in (0, _HEIGHT)][1:-1] for path in paths],
        max((center + size / 2 for center, size in zip(x, sizes, strict=True)), default=0.0),
        tops[-1] + _HEIGHT,
    )


def _longest_paths(nodes: int, edges: Edges) -> list[int]:
    """The row of each node, below all nodes that it waits for."""
    rows = [0] * nodes
    below: list[list[int]] = [[] for _ in rows]
    for source, target, _ in edges:
        below[source].append(target)
    taken: Counter[int] = Counter()
    for node, targets in enumerate(below):
        while taken[rows[node]] == MOST_IN_ROW:
            rows[node] += 1
        taken[rows[node]] += 1
        for target in targets:
            rows[target] = max(rows[target], rows[node] + 1)
    return rows


def _place(
    row: list[int], x: list[float], sizes: list[float], wanted: dict[int, float], straight: set[int]
) -> None:
    """Set the centres of a row's slots to the wanted ones, as near as can be by least squares.

    Relative to their positions in the packed row, the positions must not decrease along the row:
    slots that would are pooled at their mean.
    """
    right, packed = 0.0, {}
    pools: list[tuple[float, float, list[int]]] = []
    for slot in row:
        packed[slot] = right + sizes[slot] / 2
        right += sizes[slot] + _SPACE
        weight = _STRAIGHT if slot in straight else 1.0
        pool = (wanted[slot] - packed[slot]) * weight, weight, [slot]
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            total, weight, slots = pools.pop()
            pool = total + pool[0], weight + pool[1], slots + pool[2]
        pools.append(pool)
    for total, weight, slots in pools:
        for slot in slots:
            x[slot] = packed[slot] + total / weight


def _panel(batch: Plan | Fusion, title: str, label: Label) -> tuple[str, float, float]:
    """One batch, drawn at the origin, its width and its height."""
    indices, nodes, edges, parts = fold(batch.nodes, batch.edges)
    times = {indices[i]: count for positions, count in parts for i in positions}
    boxes = [_box(i, n, times.get(i, 1), label) for i, n in zip(indices, nodes, strict=True)]
    centers, tops, routes, across, down = arrange([room for _, _, room in boxes], edges)
    drawn = []
    for (source, target, programmatic), route in zip(edges, routes, strict=True):
        path = "M" + _point(*route[0])
        for i, ((x, y), (end_x, end_y)) in enumerate(pairwise(route)):
            bend = f"C{_point(x, (y + end_y) / 2)} {_point(end_x, (y + end_y) / 2)} "
            path += ("L" if i % 2 else bend) + _point(end_x, end_y)
        kind = "programmatic" if programmatic else "full"
        hint = _text(f"{indices[source]} → {indices[target]}, {kind}", "title")
        drawn.append(_line(kind, path, hint))
    for positions, count in parts:  # a line from the part's end back to its begin
        sides = [centers[i] + boxes[i][1] / 2 for i in positions]
        top, bottom = tops[positions[0]] + _HEIGHT / 4, tops[positions[-1]] + _HEIGHT * 3 / 4
        x = max(sides) + _LOOP
        path = f"M{_point(sides[-1], bottom)}H{x:.1f}V{top:.1f}H{sides[0]:.1f}"
        drawn.append(_line("loop", path) + _text(f"× {count:,}", x=x + 5, y=(top + bottom) / 2 + 4))
    for node, (content, width, _), x, y in zip(nodes, boxes, centers, tops, strict=True):
        kind = f"node {node.kind}{' patched' * node.patched}"
        shift = f"translate({_point(x - width / 2, y)})"
        drawn.append(_tag("g", content, class_=kind, transform=shift))

    width = max(across, len(title) * _TITLE_LETTER) + 2 * _PADDING
    height = down + _TITLE + 2 * _PADDING
    shift = f"translate({_point((width - across) / 2, _TITLE + _PADDING)})"
    panel = _tag("rect", class_="panel", width=width, height=height, rx=8)
    above = _text(title, class_="title", x=_PADDING, y=_PADDING + 10)
    return panel + above + _tag("g", *drawn, transform=shift), width, height


def _box(index: int, node: PlanNode, times: int, label: Label) -> tuple[str, float, float]:
    """Return the contents of a node's box, its width, and its width with the line of a loop."""
    number, name, launch = str(index), label(node.name), launch_text(node)
    if len(name) > _LONGEST:
        name = f"{name[:20]}…{name[21 - _LONGEST :]}"
    width = max(len(number) + 1 + len(name), len(launch)) * _LETTER + _PADDING
    room = width + (times > 1) * 2 * (_LOOP + 6 + len(f"× {times:,}") * _LETTER)
    left, first = _PADDING / 2, 16 if launch else 23
    repeated = f"\nthe first of {times:,} equal ones" * (times > 1)
    content = [
        _text(node_details(index, node, label) + repeated, "title"),
        _tag("rect", width=width, height=_HEIGHT, rx=6),
        _text(number, class_="number", x=left, y=first),
        _text(name, x=left + (len(number) + 1) * _LETTER, y=first),
        _text(launch, class_="launch", x=left, y=30) if launch else "",
    ]
    return "".join(content), width, room


def _line(kind: str, path: str, hint: str = "") -> str:
    return _tag("path", hint, class_=f"edge {kind}", d=path, marker_end=f"url(#cyrt-{kind})")


def _text(text: str, name: str = "text", **attributes: object) -> str:
    return _tag(name, escape(printable(text)), **attributes)


def _tag(name: str, *content: str, **attributes: object) -> str:
    written = [name]
    for key, value in attributes.items():
        shown = f"{value:.1f}" if isinstance(value, float) else value
        written.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    return f"<{' '.join(written)}>{''.join(content)}</{name}>"


def _point(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


_COLOURS = """
.cyrt .paper {fill:#ffffff|#15181d}
.cyrt .panel {fill:#f7f8fa|#1b1f26;stroke:#d5d9df|#343b46}
.cyrt text {fill:#1b1f24|#e6e9ee}
.cyrt .number, .cyrt .launch {fill:#57606a|#9aa4b0}
.cyrt .kernel rect {fill:#e4eefc|#1d2d45;stroke:#3b73c4|#6aa3f0}
.cyrt .copy rect, .cyrt .fill rect {fill:#e0f3e6|#1b3625;stroke:#2f8a4b|#5fc081}
.cyrt .empty rect {fill:#ececec|#2b2f36;stroke:#8a8f98|#8a8f98}
.cyrt .graph rect {fill:#f0e7fa|#32234a;stroke:#7d4cc2|#b48cf0}
.cyrt .patched rect, .cyrt rect.legend {fill:#ffe2b8|#4a3210;stroke:#c26a00|#f0a23c}
.cyrt .full {fill:#6b7280|#9aa4b0;stroke:#6b7280|#9aa4b0}
.cyrt .programmatic {fill:#0a7d6c|#35c9b2;stroke:#0a7d6c|#35c9b2}
.cyrt .loop {fill:#7d4cc2|#b48cf0;stroke:#7d4cc2|#b48cf0}
"""  # each on light and on dark screens
_LIGHT, _DARK = (re.sub(r"(#\w+)\|(#\w+)", shown, _COLOURS) for shown in (r"\1", r"\2"))
_STYLE = f"""<style>{_LIGHT}@media (prefers-color-scheme: dark) {{{_DARK}}}
.cyrt text {{font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace}}
.cyrt .title {{font-size: 13px; font-weight: 600}}
.cyrt .edge {{fill: none; stroke-width: 1.3}}
.cyrt .head {{stroke: none}}
.cyrt .programmatic {{stroke-dasharray: 5 3}}
.cyrt .patched rect, .cyrt rect.legend {{stroke-width: 2.5}}
</style>"""
_LEGEND = _text("patched by the last launch", x=568, y=26)
_LEGEND += _tag("rect", class_="legend", x=536, y=14, width=24, height=16, rx=4)
for _kind, _x, _meaning in (
    ("full", 16, "waits for its end"),
    ("programmatic", 206, "programmatic: may start before its end"),
    ("loop", 746, "comes repeatedly"),
):
    _LEGEND += (
        f'<marker id="cyrt-{_kind}" refX="5" refY="3" markerWidth="6" markerHeight="6" '
        f'orient="auto"><path class="head {_kind}" d="M0 .3L5 3L0 5.7z"/></marker>'
        f"{_line(_kind, f'M{_x} 22H{_x + 40}')}{_text(_meaning, x=_x + 48, y=26)}"
    )
