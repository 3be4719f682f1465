"""A plan's nodes, and the text of a plan in Graphviz's language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

_UNPRINTABLE = re.compile("[^\\x20-\\x7e\\xa0-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


class PlanNode(NamedTuple):
    """A node of a plan."""

    name: str  # a kernel's symbol, mangled unless it is extern "C", or the kind
    kind: str  # "kernel", "copy", "empty" or "graph"
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int  # bytes of dynamic shared memory
    cluster: tuple[int, int, int] | None
    cooperative: bool
    patched: bool  # whether the last launch patched the node
    operations: tuple[str, ...] = ()  # symbols of the operations that a fused kernel does


def printable(text: str) -> str:
    """Replace lone surrogates, and all control characters except line ends."""
    return "\n".join(_UNPRINTABLE.sub("\ufffd", line) for line in text.split("\n"))


def _extent(sizes: tuple[int, int, int]) -> str:
    used = 3 if sizes[2] != 1 else 2 if sizes[1] != 1 else 1
    text = ", ".join(map(str, sizes[:used]))
    return text if used == 1 else f"({text})"


def launch_text(node: PlanNode) -> str:
    """Return the geometry as ``<<<(4, 2), 256, 1024>>> cluster 2``; empty if the node has none."""
    if node.kind != "kernel":
        return ""
    text = f"<<<{_extent(node.grid)}, {_extent(node.block)}{f', {node.smem}' * (node.smem > 0)}>>>"
    if node.cluster is not None:
        text += f" cluster {_extent(node.cluster)}"
    return text + " cooperative" * node.cooperative


def node_details(index: int, node: PlanNode, label: Callable[[str], str]) -> str:
    """Return all properties of a node as text, one property on each line."""
    lines = [f"{index}: {label(node.name)}"]
    if label(node.name) != node.name:
        lines.append(node.name)
    if node.name != node.kind:
        lines.append(node.kind)
    if launch_text(node):
        for what, sizes in (("grid", node.grid), ("block", node.block), ("cluster", node.cluster)):
            if sizes is not None:
                lines.append(f"{what} {' × '.join(map(str, sizes))}")
        if node.smem:
            lines.append(f"{node.smem:,} bytes of dynamic shared memory")
    if node.cooperative:
        lines.append("cooperative")
    if node.patched:
        lines.append("patched by the last launch")
    if node.operations:
        lines.append(f"{len(node.operations)} operations in one kernel:")
        lines += [
            f"{label(name)} × {n}" if n > 1 else label(name)
            for name, n in Counter(node.operations).items()
        ]
    return "\n".join(_UNPRINTABLE.sub("\ufffd", line) for line in lines)


def dot(
    nodes: Sequence[PlanNode],
    edges: Sequence[tuple[int, int, bool]],
    *,
    title: str = "",
    label: Callable[[str], str] = str,
) -> str:
    """Return a batch in Graphviz's language.

    Parameters
    ----------
    nodes : sequence of PlanNode
        The nodes; patched ones are filled.
    edges : sequence of (int, int, bool)
        Source, target, and whether the edge is programmatic; such edges are dashed.
    title : str, optional
        Text above the picture.
    label : callable, optional
        Function that returns the name to show for a symbol.
    """
    lines = [
        "digraph {",
        f'  graph [label={_quote(title)}, labelloc=t, labeljust=l, fontname="sans-serif"]',
        '  node [shape=box, style=rounded, fontname="monospace", fontsize=10]',
    ]
    for i, node in enumerate(nodes):
        text = "\n".join(filter(None, (f"{i}: {label(node.name)}", launch_text(node))))
        patched = ', style="rounded,filled", fillcolor="#ffe2b8"' * node.patched
        tooltip = _quote(node_details(i, node, label))
        lines.append(f"  n{i} [label={_quote(text)}, tooltip={tooltip}{patched}]")
    for source, target, programmatic in edges:
        lines.append(f"  n{source} -> n{target}{' [style=dashed]' * programmatic}")
    return "\n".join([*lines, "}", ""])


def _quote(text: str) -> str:
    body = printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{body}"'
