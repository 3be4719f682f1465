"""Parts of a batch's chains that repeat, drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyrt.graph.drawing import PlanNode

FEWEST = 3  # repetitions that are folded


class Part(NamedTuple):
    """A part of a chain that repeats."""

    positions: list[int]  # in `Folded.nodes`, of the first repetition
    times: int


class Folded(NamedTuple):
    """A batch whose repeated parts are left out."""

    indices: list[int]  # of the nodes that are drawn
    nodes: list[PlanNode]  # these; patched if any repetition's was
    edges: list[tuple[int, int, bool]]  # between positions in `nodes`
    parts: list[Part]


class _Key(NamedTuple):
    """A node and the edge that leads to it: two nodes of a chain are equal if their keys are."""

    node: PlanNode
    programmatic: bool | None  # the edge from the node before; None if there is none


def fold(nodes: Sequence[PlanNode], edges: Sequence[tuple[int, int, bool]]) -> Folded:
    """Leave out the repetitions of what comes at least three times in a row.

    Only parts of chains are folded. A chain is a row of nodes, each of which waits for the one
    before only, and nothing else waits for that. Nodes are equal if what they run, its geometry
    and the type of the edge that leads there are.

    Parameters
    ----------
    nodes : sequence of PlanNode
    edges : sequence of (int, int, bool)
        Source, target, and whether the edge is programmatic; a source comes before its targets.

    Returns
    -------
    Folded
    """
    before: list[list[tuple[int, bool]]] = [[] for _ in nodes]
    followers = [0] * len(nodes)
    for source, target, programmatic in edges:
        before[target].append((source, programmatic))
        followers[source] += 1

    representative = list(range(len(nodes)))  # the drawn node of each
    found: list[tuple[list[int], int]] = []
    for chain in _chains(before, followers):
        keys = [
            _Key(nodes[i]._replace(patched=False), before[i][0][1] if before[i] else None)
            for i in chain
        ]
        at = 0
        while at < len(chain):
            period, times = _repetition(keys, at)
            if times:
                for k in range(at, at + period * times):
                    representative[chain[k]] = chain[at + (k - at) % period]
                found.append((chain[at : at + period], times))
            at += period * max(times, 1)

    indices = [i for i, drawn in enumerate(representative) if drawn == i]
    position = {i: p for p, i in enumerate(indices)}
    patched = {drawn for i, drawn in enumerate(representative) if nodes[i].patched}
    return Folded(
        indices,
        [nodes[i]._replace(patched=i in patched) for i in indices],
        # An edge from a node that is left out begins at the drawn node that represents it.
        [
            (position[representative[source]], position[target], programmatic)
            for source, target, programmatic in edges
            if representative[target] == target
        ],
        [Part([position[i] for i in part], times) for part, times in found],
    )


def _chains(
    before: Sequence[Sequence[tuple[int, bool]]], followers: Sequence[int]
) -> list[list[int]]:
    """Each node in one chain, which may be its own."""
    chains: list[list[int]] = []
    ending_at: dict[int, list[int]] = {}
    for i, sources in enumerate(before):
        chain = None
        if len(sources) == 1 and followers[sources[0][0]] == 1:
            chain = ending_at.pop(sources[0][0])
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(i)
        ending_at[i] = chain
    return chains


def _repetition(keys: Sequence[_Key], at: int) -> tuple[int, int]:
    """The period that leaves out the most nodes from a place on, and how often it comes.

    ``(1, 0)`` if nothing repeats often enough.
    """
    best, saved = (1, 0), 0
    for period in range(1, (len(keys) - at) // FEWEST + 1):
        end = at + period
        # How the first node is reached is no part of the repetition.
        while end < len(keys) and (
            keys[end] == keys[end - period]
            or (end - period == at and keys[end].node == keys[at].node)
        ):
            end += 1
        times = (end - at) // period
        if times >= FEWEST and period * (times - 1) > saved:
            best, saved = (period, times), period * (times - 1)
    return best
