"""A run: operations that one thread can compute, element by element, with values in registers.

INVARIANTS
- All operations of a run have one index space: element i of each is computed by one thread.
- Two accesses of a run to overlapping memory, one of them a write, are of equal places: the same
  elements in the same order.
- An operation that a run refuses leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from cyrt.builtin.fusion.description import Access, Layout, Operation, rescaled
from cyrt.dtypes import dtype

#: The most operations of a run.
MAX_OPERATIONS = 256
#: The most dimensions of its index space, those that divide it by operands' layouts.
MAX_DIMENSIONS = 8
#: The most words of 4 bytes that the values of one element take at a time.
MAX_WORDS = 96

Place = tuple[int | None, int, Layout]


@dataclass(frozen=True, slots=True)
class Value:
    """What an operation reads or computes, for every element of the space.

    Attributes
    ----------
    dtype : str
        Its element type.
    node : int
        The node that computes it, or first reads it.
    access : Access
        Where that node reads or writes it.
    operation : Operation or None
        The operation that computes it; None: it is read from memory or the parameters.
    inputs : tuple of int
        The values that it is computed from, by their numbers.
    """

    dtype: str
    node: int
    access: Access
    operation: Operation | None = None
    inputs: tuple[int, ...] = ()

    @property
    def words(self) -> int:
        return max(1, dtype(self.dtype).itemsize // 4)


class Run:
    """Operations in recorded order that one kernel can do.

    Attributes
    ----------
    size : int
        The number of elements of the index space; 0 while the run is empty.
    values : list of Value
        In the order in which they appear.
    """

    def __init__(self) -> None:
        self.size = 0
        self.values: list[Value] = []
        self._nodes: list[tuple[int, Operation]] = []
        self._cuts: frozenset[int] = frozenset()
        self._held: dict[Place, int] = {}  # the value that is at a place now
        self._written: dict[Place, int] = {}  # the value that the run wrote there last
        self._reads: dict[Place, tuple[int, int]] = {}
        self._writes: dict[Place, tuple[int, int]] = {}

    @property
    def nodes(self) -> list[int]:
        """The nodes of its operations, in order."""
        return [node for node, _ in self._nodes]

    @property
    def operations(self) -> list[Operation]:
        """Its operations, in order."""
        return [operation for _, operation in self._nodes]

    @property
    def outputs(self) -> set[int]:
        """The nodes that write a place last: only their results can be seen afterwards."""
        return {self.values[value].node for value in self._written.values()}

    def add(self, node: int, operation: Operation) -> bool:
        """Add the next operation; return False, and change nothing, if one kernel cannot do it with
        the others.

        Parameters
        ----------
        node : int
            The caller's number of the node.
        operation : Operation
        """
        if self.size and operation.size != self.size:
            other = rescaled(operation, self.size)
            if other is None:
                return self._resize(operation.size) and self.add(node, operation)
            operation = other
        if len(self._nodes) >= MAX_OPERATIONS:
            return False
        cuts = self._cuts.union(*(_cuts(access.layout) for access in operation.operands))
        if len(cuts) > MAX_DIMENSIONS or not _divide(cuts):
            return False
        if not self._is_apart(operation):
            return False
        self.size, self._cuts = operation.size, cuts
        self._append(node, operation)
        return True

    def _resize(self, size: int) -> bool:
        """Count the elements otherwise, if the run has only copies."""
        run = Run()
        for node, operation in self._nodes:
            other = rescaled(operation, size)
            if other is None or not run.add(node, other):
                return False
        self.__dict__ = run.__dict__
        return True

    def _is_apart(self, operation: Operation) -> bool:
        """Return whether overlapping accesses, one of them a write, are of equal places."""
        output, *inputs = operation.operands
        place, span = output.place, output.span()
        others = [self._reads, self._writes, {each.place: each.span() for each in inputs}]
        if any(
            _overlap(span, found) and place != p for each in others for p, found in each.items()
        ):
            return False
        return not any(
            _overlap(each.span(), found) and each.place != p
            for each in inputs
            for p, found in self._writes.items()
        )

    def _append(self, node: int, operation: Operation) -> None:
        output, *inputs = operation.operands
        numbers = []
        for access in inputs:
            if access.address is None:
                numbers.append(self._new(Value(access.dtype, node, access)))
                continue
            self._reads.setdefault(access.place, access.span())
            if access.place not in self._held:
                self._held[access.place] = self._new(Value(access.dtype, node, access))
            numbers.append(self._held[access.place])
        value = self._new(Value(output.dtype, node, output, operation, tuple(numbers)))
        self._writes.setdefault(output.place, output.span())
        self._held[output.place] = self._written[output.place] = value
        self._nodes.append((node, operation))

    def _new(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def needed(self, stored: Collection[int]) -> list[int]:
        """Return the values that those which are stored follow from, in order."""
        kept = {i for i in self._written.values() if self.values[i].node in stored}
        for i in range(len(self.values) - 1, -1, -1):
            if i in kept:
                kept.update(self.values[i].inputs)
        return sorted(kept)

    def stored_values(self, stored: Collection[int]) -> list[int]:
        """Return the values that are stored, in order."""
        return sorted(i for i in self._written.values() if self.values[i].node in stored)


def shape_of(layouts: Collection[Layout], size: int) -> tuple[int, ...]:
    """Return the dimensions, innermost first, that divide the space as all of the layouts do."""
    cuts = sorted({size}.union(*map(_cuts, layouts)))
    return tuple(after // before for before, after in pairwise([1, *cuts]) if after > before)


def strides_in(layout: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a layout's strides along dimensions that divide it."""
    found, rest = [], list(layout)
    for size in shape:
        if not rest:  # the one element of a space of size 1
            found.append(0)
            continue
        inner, stride = rest[0]
        found.append(stride)
        rest[0:1] = [(inner // size, stride * size)] if inner > size else []
    return tuple(found)


def _cuts(layout: Layout) -> frozenset[int]:
    """Return how many elements its dimensions have, each with those inside it."""
    found, size = [], 1
    for each, _ in layout:
        size *= each
        found.append(size)
    return frozenset(found)


def _divide(cuts: frozenset[int]) -> bool:
    return all(after % before == 0 for before, after in pairwise(sorted(cuts)))


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]
