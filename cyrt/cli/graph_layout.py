"""The positions of a batch's nodes and edges in a picture.

Nodes are in rows, and every edge leads from a row to a lower one. An edge that passes rows takes
a slot of zero width in each of them, so it is routed around their nodes. Slots are ordered within
their rows by barycentres, then moved as near to their neighbours in other rows as the order allows.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

MOST_IN_ROW = 12  # nodes; a wider row is split
SPACE = 14.0  # between slots of a row
GAP, MOST_GAP = 24.0, 96.0  # between rows; edges that lead far to a side get more of it
SWEEPS = 8
STRAIGHT = 8.0  # weight of an edge that passes several rows, relative to a node's


class Layout(NamedTuple):
    """Positions in a picture, in its units, from the upper left corner."""

    centers: list[float]
    tops: list[float]
    # The points of each edge: it curves from an even point to the next, and is straight from an
    # odd one.
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


def arrange(
    widths: Sequence[float], edges: Sequence[tuple[int, int, bool]], height: float
) -> Layout:
    """Lay nodes of these widths and one height out; every edge's source comes before its target."""
    rows = _row_numbers(len(widths), edges)
    grid = _Grid(widths, rows, edges)
    grid.order()
    x = grid.settle()
    tops, top = [], 0.0
    for _, lower in pairwise([*grid.rows, []]):
        tops.append(top)
        aside = max((abs(x[s] - x[t]) for t in lower for s in grid.above[t]), default=0.0)
        top += height + (min(GAP + aside / 10, MOST_GAP) if lower else 0.0)
    routes = []
    for source, target, programmatic in edges:
        points = [(x[source], tops[rows[source]] + height)]
        for slot in grid.passed(source, target, programmatic):
            points += [(x[slot], tops[grid.row[slot]]), (x[slot], tops[grid.row[slot]] + height)]
        routes.append([*points, (x[target], tops[rows[target]])])
    return Layout(
        x[: len(widths)],
        [tops[row] for row in rows],
        routes,
        max((x[s] + grid.widths[s] / 2 for s in range(len(x))), default=0.0),
        top,
    )


def _row_numbers(count: int, edges: Iterable[tuple[int, int, bool]]) -> list[int]:
    """The row of each node, below all nodes that it waits for."""
    rows = [0] * count
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target, _ in edges:
        before[target].append(source)
    taken: Counter[int] = Counter()
    for node in range(count):
        row = max((rows[source] + 1 for source in before[node]), default=0)
        while taken[row] == MOST_IN_ROW:
            row += 1
        taken[row] += 1
        rows[node] = row
    return rows


class _Grid:
    """Rows of slots: the nodes, and one for each row that the edges of a source and type pass."""

    def __init__(
        self, widths: Sequence[float], rows: list[int], edges: Iterable[tuple[int, int, bool]]
    ) -> None:
        self.nodes = len(widths)
        self.widths = list(widths)
        self.row = list(rows)
        self.rows: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
        self.above: list[list[int]] = [[] for _ in widths]
        self.below: list[list[int]] = [[] for _ in widths]
        self.passing: dict[tuple[int, bool, int], int] = {}
        for node, row in enumerate(rows):
            self.rows[row].append(node)
        for source, target, programmatic in edges:
            last = source
            for row in range(rows[source] + 1, rows[target]):
                slot = self.passing.get((source, programmatic, row))
                if slot is None:
                    slot = self.passing[source, programmatic, row] = self.add(row)
                    self.connect(last, slot)
                last = slot
            self.connect(last, target)

    def add(self, row: int) -> int:
        slot = len(self.row)
        self.row.append(row)
        self.rows[row].append(slot)
        self.widths.append(0.0)
        self.above.append([])
        self.below.append([])
        return slot

    def connect(self, upper: int, lower: int) -> None:
        self.above[lower].append(upper)
        self.below[upper].append(lower)

    def passed(self, source: int, target: int, programmatic: bool) -> list[int]:
        return [
            self.passing[source, programmatic, row]
            for row in range(self.row[source] + 1, self.row[target])
        ]

    def order(self) -> None:
        """Order the rows so that few edges cross."""
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(SWEEPS):
            if fewest == 0:
                break
            downward = sweep % 2 == 0
            rows = self.rows if downward else self.rows[::-1]
            neighbours = self.above if downward else self.below
            place = self.places()
            for row in rows[1:]:
                row.sort(key=lambda slot: _mean([place[n] for n in neighbours[slot]], place[slot]))
                place.update((slot, i) for i, slot in enumerate(row))
            found = self.crossings()
            if found < fewest:
                best, fewest = [list(row) for row in self.rows], found
        self.rows = best

    def places(self) -> dict[int, float]:
        return {slot: i for row in self.rows for i, slot in enumerate(row)}

    def crossings(self) -> int:
        place, count = self.places(), 0
        for row in self.rows[1:]:
            seen: list[float] = []
            for _, lower in sorted((place[s], place[t]) for t in row for s in self.above[t]):
                count += len(seen) - bisect_right(seen, lower)
                insort(seen, lower)
        return count

    def settle(self) -> list[float]:
        """The centres of all slots, the leftmost one's left side at 0."""
        x = [0.0] * len(self.row)
        for row in self.rows:
            self.place(row, x, [[]] * len(self.row))
        for sweep in range(SWEEPS):
            downward = sweep % 2 == 0
            for row in self.rows if downward else self.rows[::-1]:
                self.place(row, x, self.above if downward else self.below)
        both = [a + b for a, b in zip(self.above, self.below, strict=True)]
        for slot in range(self.nodes, len(both)):  # an edge that passes rows is straight there
            both[slot] = [n for n in both[slot] if n >= self.nodes] or both[slot]
        for row in self.rows:
            self.place(row, x, both)
        left = min((x[s] - self.widths[s] / 2 for s in range(len(x))), default=0.0)
        return [center - left for center in x]

    def place(self, row: list[int], x: list[float], neighbours: list[list[int]]) -> None:
        """Move a row's slots to the middle of their neighbours, by least squares.

        Relative to their positions in the packed row, the positions must not decrease along the
        row: slots that would are pooled at their mean.
        """
        packed, pools, right = [], [], 0.0
        for i, slot in enumerate(row):
            packed.append(right + self.widths[slot] / 2)
            right += self.widths[slot] + SPACE
            passing = slot >= self.nodes and any(n >= self.nodes for n in neighbours[slot])
            weight = STRAIGHT if passing else 1.0
            centre = _mean([x[n] for n in neighbours[slot]], x[slot])
            pool = [(centre - packed[i]) * weight, weight, 1]
            while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
                pool = [a + b for a, b in zip(pool, pools.pop(), strict=True)]
            pools.append(pool)
        shifts = [total / weight for total, weight, count in pools for _ in range(int(count))]
        for slot, start, shift in zip(row, packed, shifts, strict=True):
            x[slot] = start + shift


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default
