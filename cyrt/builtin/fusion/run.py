"""A run: operations that one thread can compute, element by element, with values in registers.

INVARIANTS
- All operations of a run have one index space: element i of each is computed by one thread. If
  there are reductions, the space is rows of elements: a reduction has a result for each row, and so
  has an operation on such results alone.
- Two accesses of a run to overlapping memory, one of them a write, have equal views: the same
  elements in the same order.
- All reductions of a run divide rows between threads alike.
- A run has at most one product, and then no reduction. No operation of the run writes what the
  product reads.
- An operation that a run refuses leaves it as it was.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cyrt.builtin.fusion.description import (
    VECTOR_BYTES,
    Access,
    FusedProduct,
    FusedReduction,
    Layout,
    Operation,
    Span,
    View,
    rescaled,
)
from cyrt.dtypes import dtype

#: The most operations of a run.
MAX_OPERATIONS = 256
#: The most words of 4 bytes that the values of a thread take at a time.
MAX_WORDS = 128
#: The most dimensions of its index space, those that divide it by operands' layouts.
MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Value:
    """A value that operations read or compute: one for each element of the space, or each row.

    Attributes
    ----------
    dtype : str
        Its element type.
    node : int
        The node that computes it, or first reads it.
    access : Access
        Where that node reads or writes it.
    along_rows : bool
        Whether it is one for each row.
    operation : Operation or None
        The operation that computes it; None: it is read from memory or the parameters.
    inputs : tuple of int
        The values that it is computed from, by their numbers.
    """

    dtype: str
    node: int
    access: Access
    along_rows: bool
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
    reduction : FusedReduction or None
        How it divides rows; None: it has no reduction.
    product : FusedProduct or None
    values : list of Value
        In the order in which they appear.
    """

    def __init__(self) -> None:
        self.size = 0
        self.reduction: FusedReduction | None = None
        self.product: FusedProduct | None = None
        self.values: list[Value] = []
        self._nodes: list[tuple[int, Operation]] = []
        self._cuts: frozenset[int] = frozenset()
        self._held: dict[View, int] = {}  # the value that a view has now
        self._written: dict[View, int] = {}  # the value that the run wrote there last
        self._reads: dict[View, Span] = {}
        self._writes: dict[View, Span] = {}

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
        """The nodes that write a view last: only their results can be seen afterwards."""
        return {self.values[value].node for value in self._written.values()}

    @property
    def ends(self) -> set[int]:
        """The nodes whose results no operation of the run takes."""
        taken = {i for value in self.values for i in value.inputs}
        return {value.node for i, value in enumerate(self.values) if i not in taken}

    @property
    def rows(self) -> int:
        """The number of rows; 0 without reductions."""
        return self.size // self.reduction.length if self.reduction is not None else 0

    def add(self, node: int, operation: Operation) -> bool:
        """Add the next operation; return False, and change nothing, if one kernel cannot do it with
        the others.

        Parameters
        ----------
        node : int
            The caller's number of the node.
        operation : Operation
        """
        along_rows = bool(self.rows) and operation.size == self.rows
        if along_rows and operation.reduction is not None:
            return False
        if self.size and operation.size != self.size and not along_rows:
            other = rescaled(operation, self.size)
            if other is None:
                return self._resize(operation.size) and self.add(node, operation)
            operation = other
        if len(self._nodes) >= MAX_OPERATIONS or not self._agrees(operation):
            return False
        before = dict(self.__dict__)
        self.reduction = self.reduction or operation.reduction
        self.product = self.product or operation.product
        self._cuts = self._cuts | self._cuts_of(operation, along_rows)
        if self._divides(operation, along_rows) and self._is_apart(operation):
            self.size = self.size or operation.size
            for name in ("values", "_nodes", "_held", "_written", "_reads", "_writes"):
                self.__dict__[name] = self.__dict__[name].copy()
            self._append(node, operation, along_rows)
            if self._words() <= MAX_WORDS:
                return True
        self.__dict__ = before
        return False

    def _words(self) -> int:
        """Return the words that a thread's values take at a time, at least."""
        elements = self.reduction.elements if self.reduction is not None else 1
        return peak_words(self.values, range(len(self.values))) * elements

    def _divides(self, operation: Operation, along_rows: bool) -> bool:
        """Return whether the dimensions of all operands divide the space, and none divides rows."""
        if len(self._cuts) > MAX_DIMENSIONS or not _divide_one_another(self._cuts):
            return False
        if self.reduction is None:
            return True
        inputs = () if along_rows else operation.operands[1 if operation.reduction else 0 :]
        elements = [each.access for each in self.values if not each.along_rows]
        return min(self._cuts - {1}) >= self.reduction.length and all(
            _is_row_by_row(each, self.reduction.items) for each in (*elements, *inputs)
        )

    def _agrees(self, operation: Operation) -> bool:
        """Return whether a reduction divides rows as others do, and a product is the only one."""
        reduction, product = operation.reduction, operation.product
        if product is not None and (self.product is not None or self.reduction is not None):
            return False
        if reduction is None:
            return True
        if self.product is not None:
            return False
        if reduction.length < 2:
            return False
        own = self.reduction
        return own is None or (own.length, own.block, own.items) == (
            *(reduction.length, reduction.block, reduction.items),
        )

    def _cuts_of(self, operation: Operation, along_rows: bool) -> frozenset[int]:
        """Return how an operation's operands divide the space, or only the rows."""
        found: set[int] = set()
        for k, access in enumerate(operation.operands):
            each = cuts_of(access.layout)
            if along_rows or (operation.reduction is not None and k == 0):
                assert self.reduction is not None
                each = {self.reduction.length * size for size in each}
            found.update(each)
        if self.reduction is not None:
            found.add(self.reduction.length)
        return frozenset(found)

    def _resize(self, size: int) -> bool:
        """Count the elements otherwise, if the run has only copies."""
        run = Run()
        for node, operation in self._nodes:
            other = rescaled(operation, size)
            if other is None or not run.add(node, other):
                return False
        self.__dict__ = run.__dict__
        return True

    def _view(self, access: Access) -> View:
        """Return an access's view; what is equal along rows has that of a value for each row."""
        address, itemsize, layout = access.view
        if self.reduction is not None and layout[:1] == ((self.reduction.length, 0),):
            layout = layout[1:]
        return address, itemsize, layout

    def _is_apart(self, operation: Operation) -> bool:
        """Return whether overlapping accesses, one of them a write, have equal views."""
        output, *inputs = ((self._view(each), each.span()) for each in operation.operands)
        product = operation.product or self.product
        if product is not None:
            written = [output[1], *self._writes.values()]
            if not all(_are_disjoint(each, other) for each in product.reads for other in written):
                return False
        return all(
            _is_equal_or_disjoint(output, others)
            for others in (self._reads.items(), self._writes.items(), inputs)
        ) and all(_is_equal_or_disjoint(each, self._writes.items()) for each in inputs)

    def _append(self, node: int, operation: Operation, along_rows: bool) -> None:
        output, *inputs = operation.operands
        numbers = []
        for access in inputs:
            if access.address is None:
                numbers.append(self._new(Value(access.dtype, node, access, along_rows)))
                continue
            view = self._view(access)
            self._reads.setdefault(view, access.span())
            if view not in self._held:
                read = replace(access, layout=view[2])
                equal = along_rows or read != access
                self._held[view] = self._new(Value(access.dtype, node, read, equal))
            numbers.append(self._held[view])
        along_rows = along_rows or operation.reduction is not None
        value = self._new(Value(output.dtype, node, output, along_rows, operation, tuple(numbers)))
        view = self._view(output)
        self._writes.setdefault(view, output.span())
        self._held[view] = self._written[view] = value
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


def peak_words(values: Sequence[Value], needed: Sequence[int]) -> int:
    """Return the most words of an element's values at a time, without those of rows; what is loaded
    is there from the first."""
    last = {i: i for i in needed}
    for i in needed:
        for used in values[i].inputs:
            last[used] = i
    counted = {
        i for i in needed if values[i].access.address is not None and not values[i].along_rows
    }
    loaded = {i for i in counted if values[i].operation is None}
    live = peak = sum(values[i].words for i in loaded)
    ending: dict[int, int] = {}
    for i in counted:
        ending[last[i]] = ending.get(last[i], 0) + values[i].words
    for i in needed:
        if i in counted and i not in loaded:
            live += values[i].words
        peak = max(peak, live)
        live -= ending.get(i, 0)
    return peak


def _is_row_by_row(access: Access, items: int) -> bool:
    """Return whether a thread can load vectors of a row, or one element for the row."""
    if access.address is None or access.single:
        return True
    (_, inner), *outer = access.layout
    if inner != 1:
        return inner == 0
    vector = min(items * access.itemsize, VECTOR_BYTES)
    return access.address % vector == 0 and not any(stride % items for _, stride in outer)


def shape_of(cuts: Iterable[int]) -> tuple[int, ...]:
    """Return the dimensions, innermost first, that end after so many elements each."""
    return tuple(
        after // before for before, after in pairwise([1, *sorted(cuts)]) if after > before
    )


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


def cuts_of(layout: Layout) -> set[int]:
    """Return how many elements its dimensions have, each with those inside it."""
    return {math.prod(size for size, _ in layout[: d + 1]) for d in range(len(layout))}


def _divide_one_another(cuts: frozenset[int]) -> bool:
    return all(after % before == 0 for before, after in pairwise(sorted(cuts)))


def _are_disjoint(one: Span, other: Span) -> bool:
    return one[0] >= other[1] or other[0] >= one[1]


def _is_equal_or_disjoint(access: tuple[View, Span], others: Iterable[tuple[View, Span]]) -> bool:
    view, span = access
    return all(view == each or _are_disjoint(span, other) for each, other in others)
