"""Repeated parts of a batch's chains, drawn once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cyrt.graph.drawing import PlanNode

LEAST = 3  # repetitions that are folded


class Folded(NamedTuple):
    """What remains of a batch when repetitions are left out."""

    indices: list[int]  # of the nodes that are drawn
    edges: list[tuple[int, int, bool]]  # between positions in `indices`
    loops: list[tuple[int, int, int]]  # first and last position of a part, and how often it runs


def fold(nodes: Sequence[PlanNode], edges: Sequence[tuple[int, int, bool]]) -> Folded:
    """Fold parts of chains that repeat at least three times.

    A chain is a row of nodes each of which waits for the one before, and nothing else does. Nodes
    are equal if what they run, its geometry and the type of their edge are.

    Parameters
    ----------
    nodes : sequence of PlanNode
    edges : sequence of (source, target, programmatic)

    Returns
    -------
    Folded
    """
    before: list[list[tuple[int, bool]]] = [[] for _ in nodes]
    after = [0] * len(nodes)
    for source, target, programmatic in edges:
        before[target].append((source, programmatic))
        after[source] += 1

    chains: list[list[int]] = []
    chain_of: dict[int, list[int]] = {}  # by the chain's last node
    for i in range(len(nodes)):
        source = before[i][0][0] if len(before[i]) == 1 else -1
        chain = chain_of.pop(source, None) if source >= 0 and after[source] == 1 else None
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(i)
        chain_of[i] = chain

    stands_for = list(range(len(nodes)))  # the drawn node of each
    parts: list[tuple[int, int, int]] = []
    for chain in chains:
        keys = [
            (node._replace(patched=False), before[i][0][1] if before[i] else None)
            for i, node in ((i, nodes[i]) for i in chain)
        ]
        at = 0
        while at < len(chain):
            period, times = _repetition(keys, at)
            if times:
                for k in range(at, at + period * times):
                    stands_for[chain[k]] = chain[at + (k - at) % period]
                parts.append((chain[at], chain[at + period - 1], times))
            at += period * max(times, 1)

    indices = [i for i in range(len(nodes)) if stands_for[i] == i]
    position = {i: p for p, i in enumerate(indices)}
    kept = []
    for source, target, programmatic in edges:
        one, other = position[stands_for[source]], position[stands_for[target]]
        # An edge between repetitions leads back; one within a repetition has been drawn already.
        if one < other and (stands_for[target] == target):
            kept.append((one, other, programmatic))
    return Folded(indices, kept, [(position[a], position[b], n) for a, b, n in parts])


def _repetition(keys: Sequence[object], at: int) -> tuple[int, int]:
    """The period that leaves out the most nodes from a place on, and how often it comes.

    ``(1, 0)`` if nothing repeats often enough.
    """
    best, saved = (1, 0), 0
    for period in range(1, (len(keys) - at) // LEAST + 1):
        end = at + period
        # The first node's own edge comes from before the part.
        while end < len(keys) and (
            keys[end] == keys[end - period]
            or (end - period == at and keys[end][0] == keys[at][0])  # type: ignore[index]
        ):
            end += 1
        times = (end - at) // period
        if times >= LEAST and period * (times - 1) > saved:
            best, saved = (period, times), period * (times - 1)
    return best
