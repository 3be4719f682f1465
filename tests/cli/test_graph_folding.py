"""Repeated parts of chains."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from cyrt.cli import graph_svg
from cyrt.graph.drawing import PlanNode


class Folded(NamedTuple):
    indices: list[int]
    nodes: list[PlanNode]
    edges: list[tuple[int, int, bool]]
    parts: list[tuple[list[int], int]]


def fold(nodes, edges):
    return Folded(*graph_svg.fold(nodes, edges))


def chain(names, *, programmatic=()):
    nodes = [
        PlanNode(name, "kernel", (1, 1, 1), (32, 1, 1), 0, None, False, False) for name in names
    ]
    return nodes, [(i, i + 1, i + 1 in programmatic) for i in range(len(nodes) - 1)]


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=40))
def test_unfolding_gives_the_chain_back(names):
    folded = fold(*chain(names))
    after = {positions[-1]: (positions, times) for positions, times in folded.parts}
    unfolded = []
    for position, node in enumerate(folded.nodes):
        unfolded.append(node.name)
        if position in after:
            positions, times = after[position]
            unfolded += [folded.nodes[i].name for i in positions] * (times - 1)
    assert unfolded == names
    assert all(times >= graph_svg.FEWEST for _, times in folded.parts)
    assert folded.edges == [(i, i + 1, False) for i in range(len(folded.nodes) - 1)]


def test_the_part_that_leaves_out_most_is_folded():
    folded = fold(*chain("x" + "ababc" * 3 + "aay"))
    assert "".join(node.name for node in folded.nodes) == "xababcaay"
    assert folded.parts == [([1, 2, 3, 4, 5], 3)]
    assert folded.indices == [0, 1, 2, 3, 4, 5, 16, 17, 18]


def test_two_in_a_row_stay():
    folded = fold(*chain("xababy"))
    assert folded.parts == []
    assert folded.indices == list(range(6))


def test_other_geometry_or_type_of_edge_is_another_part():
    nodes, edges = chain("aaaaaaa")
    nodes[3] = nodes[3]._replace(grid=(2, 1, 1))
    assert fold(nodes, edges).parts == [([0], 3), ([2], 3)]
    folded = fold(*chain("aaaaaa", programmatic=[3, 5]))
    assert (folded.indices, folded.parts) == ([0, 3, 4, 5], [([0], 3)])
    assert folded.edges == [(0, 1, True), (1, 2, False), (2, 3, True)]


def test_what_forks_or_joins_is_not_folded():
    nodes, edges = chain("aaaaaaaa")
    folded = fold(nodes, [*edges, (3, 5, False)])
    assert folded.indices == [0, 4, 5]
    assert folded.edges == [(0, 1, False), (1, 2, False), (0, 2, False)]
    assert folded.parts == [([0], 4), ([2], 3)]
    # Two chains side by side are folded each by itself.
    twice = fold(nodes + nodes, edges + [(a + 8, b + 8, p) for a, b, p in edges])
    assert twice.parts == [([0], 8), ([1], 8)]
    assert twice.edges == []
