"""What a node of a recording computes: a kernel's parameters, read back as an operation.

INVARIANTS
- A description is exact: the operation, applied to its operands as described, writes what the node
  writes. Where that is not certain there is no description.
- The structs of parameters are those of kernels_cu/params; a node whose parameters have another
  size is not described.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from struct import unpack_from

from cyrt.builtin import catalogue
from cyrt.builtin.entry import row_of
from cyrt.builtin.fusion.compilers import makes_equal
from cyrt.builtin.row import BY_SIZE, Row
from cyrt.dtypes import dtype

Size = tuple[int, int, int]
#: Dimensions, innermost first: their sizes and their strides in elements.
Layout = tuple[tuple[int, int], ...]

# kernels_cu/params/elementwise.h and space.h
_BROADCAST, _VALUE = 2, 4
_MAX_OUTER = 8
_SOURCE, _DIVIDER = 16, 12
# kernels_cu/params/reduce.h
_VECTORS = 1
#: Bytes of a vector that a thread loads (kernels_cu/include/memory.cuh).
VECTOR_BYTES = 16
#: The most vectors of a row that a thread has in registers.
MAX_UNITS = 8
_REDUCE_BYTES, _DIVISOR, _KEPT, _COUNTS = 624, 112, 120, 568
#: Those of which every compiler makes the same: they add, or multiply, or compare.
REDUCTIONS = frozenset({"sum", "prod", "max", "min", "any", "all", "count_nonzero"})
_DENSE_INPUTS, _ALIGNED_INPUTS, _STRIDED_INPUTS = 32, 16, 48


@dataclass(frozen=True, slots=True)
class Access:
    """The elements that an operation reads or writes as one operand.

    Attributes
    ----------
    address : int or None
        The first element's; None: the operand is a number, in the parameters.
    dtype : str
        The element type.
    layout : Layout
        Sizes and strides, with neighbouring dimensions merged: equal layouts are the same elements
        in the same order.
    word : int
        Where the parameters have the address, or the number's bytes.
    number : bytes
        The number.
    """

    address: int | None
    dtype: str
    layout: Layout
    word: int
    number: bytes = b""

    @property
    def itemsize(self) -> int:
        return dtype(self.dtype).itemsize

    @property
    def single(self) -> bool:
        """Whether it is one element, or one number, for all."""
        return not any(stride for _, stride in self.layout)

    @property
    def place(self) -> tuple[int | None, int, Layout]:
        """Equal places are the same elements in the same order; their types may differ."""
        return self.address, self.itemsize, self.layout

    def span(self) -> tuple[int, int]:
        """Return the first byte and the end of the memory; an empty range of a number."""
        if self.address is None:
            return 0, 0
        ends = [(size - 1) * stride for size, stride in self.layout]
        low = sum(end for end in ends if end < 0)
        high = sum(end for end in ends if end > 0)
        return self.address + low * self.itemsize, self.address + (high + 1) * self.itemsize


@dataclass(frozen=True, slots=True)
class Reduction:
    """How the kernel of a reduction divides rows between threads: sums have an order by that.

    Attributes
    ----------
    length : int
        The elements of a row.
    block : (int, int)
        The threads of a row, and the rows of a block.
    items : int
        The elements that a thread loads at once.
    divisor : float
        What a sum is divided by.
    """

    length: int
    block: tuple[int, int]
    items: int
    divisor: float

    @property
    def elements(self) -> int:
        """The elements of a row that a thread has."""
        return -(-self.length // (self.items * self.block[0])) * self.items


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the catalogue, elementwise or a reduction along rows, with its operands.

    Attributes
    ----------
    row : Row
        The row of the catalogue.
    size : int
        The number of elements that it writes; of a reduction, that it reads.
    operands : tuple of Access
        The output, and the inputs.
    reduction : Reduction or None
        None: it is elementwise.
    """

    row: Row
    size: int
    operands: tuple[Access, ...]
    reduction: Reduction | None = None


def describe(serial: int, params: bytes, grid: Size, block: Size) -> Operation:
    """Return what a node computes.

    Parameters
    ----------
    serial : int
        The serial number of its function.
    params : bytes
        Its packed parameters.
    grid, block : tuple of int
        Its geometry.

    Raises
    ------
    ValueError
        It is no operation that can be fused, or one of which this compiler makes something else
        (see `compilers`); the message has the reason.
    """
    found = row_of(serial)
    if found is None:
        raise ValueError("no built-in kernel")
    row, variant, origin = found
    readers = _READERS.get(catalogue.family(row), {})
    reader = readers.get(row.variants[variant])
    if reader is None:
        raise ValueError("neither elementwise nor a reduction along rows")
    if not makes_equal(row, origin):
        raise ValueError("another result, to the bit, in a kernel with other operations")
    return reader(row, params, block)


def merged(dimensions: list[tuple[int, int]]) -> Layout:
    """Return dimensions without those of size 1, neighbours merged where they continue."""
    found: list[tuple[int, int]] = []
    for size, stride in dimensions:
        if size == 1:
            continue
        if found and stride == found[-1][0] * found[-1][1]:
            found[-1] = found[-1][0] * size, found[-1][1]
        else:
            found.append((size, stride))
    return tuple(found)


def rescaled(operation: Operation, size: int) -> Operation | None:
    """Return a copy of contiguous memory as one of `size` elements; None: it is no such copy, or
    there is no element of that size."""
    nbytes = operation.size * operation.operands[0].itemsize
    if (
        operation.row.op != "copy"
        or any(
            each.address is None or each.layout != merged([(operation.size, 1)])
            for each in operation.operands
        )
        or nbytes % size
        or nbytes // size not in BY_SIZE
    ):
        return None
    name = BY_SIZE[nbytes // size]
    layout = merged([(size, 1)])
    operands = tuple(replace(each, dtype=name, layout=layout) for each in operation.operands)
    return Operation(catalogue.row("copy", name), size, operands)


def _check_size(params: bytes, wanted: int) -> None:
    if len(params) != wanted:
        raise ValueError(f"{len(params)} bytes of parameters, expected {wanted}")


def _operands(
    row: Row, params: bytes, flags: int, first: int, step: int, layouts: list[Layout]
) -> tuple[Access, ...]:
    """Return the operands' accesses; the inputs' words begin at `first`."""
    words = [0, *(first + i * step for i in range(len(row.inputs)))]
    found = []
    for i, (name, word, layout) in enumerate(
        zip((row.output, *row.inputs), words, layouts, strict=True)
    ):
        kind = flags >> 2 * (i - 1) if i else 0
        single = kind & (_VALUE | _BROADCAST)
        size = math.prod(size for size, _ in layout)
        layout = merged([(size, 0)]) if single else layout
        if kind & _VALUE:
            number = params[word : word + dtype(name).itemsize]
            found.append(Access(None, name, layout, word, number))
        else:
            found.append(Access(unpack_from("<Q", params, word)[0], name, layout, word))
    return tuple(found)


def _dense(row: Row, params: bytes, block: Size) -> Operation:
    count = len(row.inputs)
    _check_size(params, _DENSE_INPUTS + _SOURCE * count)
    size, flags = unpack_from("<qI", params, 8)
    layouts = [merged([(size, 1)])] * (1 + count)
    operands = _operands(row, params, flags, _DENSE_INPUTS, _SOURCE, layouts)
    return Operation(row, size, operands)


def _aligned(row: Row, params: bytes, block: Size) -> Operation:
    count = len(row.inputs)
    _check_size(params, -(-(_ALIGNED_INPUTS + 8 * count) // 16) * 16)
    vectors, flags = unpack_from("<II", params, 8)
    size = vectors * (16 // max(2, *(dtype(name).itemsize for name in (row.output, *row.inputs))))
    layouts = [merged([(size, 1)])] * (1 + count)
    operands = _operands(row, params, flags, _ALIGNED_INPUTS, 8, layouts)
    return Operation(row, size, operands)


def _strided(row: Row, params: bytes, block: Size) -> Operation:
    count = len(row.inputs)
    inner_strides = _STRIDED_INPUTS + _SOURCE * count
    dims = inner_strides + 8 * (1 + count)
    strides = -(-(dims + _DIVIDER * _MAX_OUTER) // 8) * 8
    _check_size(params, -(-(strides + 8 * (1 + count) * _MAX_OUTER) // 16) * 16)
    num_outer, _, inner, flags = unpack_from("<IIII", params, 8)
    outer = [unpack_from("<I", params, dims + _DIVIDER * d)[0] for d in range(num_outer)]
    layouts = []
    for i in range(1 + count):
        found = [(inner, unpack_from("<q", params, inner_strides + 8 * i)[0])]
        for d, size in enumerate(outer):
            at = strides + 8 * ((1 + count) * d + i)
            found.append((size, unpack_from("<q", params, at)[0]))
        layouts.append(merged(found))
    operands = _operands(row, params, flags, _STRIDED_INPUTS, _SOURCE, layouts)
    return Operation(row, inner * math.prod(outer), operands)


def _reduce_rows(row: Row, params: bytes, block: Size) -> Operation:
    """A result is one row's, computed by one block, which may have several."""
    _check_size(params, _REDUCE_BYTES)
    source, target = unpack_from("<QQ", params)
    units, stride, _, tail, _, rows, _, _, outputs = unpack_from("<9q", params, 40)
    num_kept, num_reduced, lanes, flags, parts = unpack_from("<5I", params, _COUNTS)
    if row.op not in REDUCTIONS or row.dtype.startswith("complex"):
        raise ValueError("a reduction of which compilers make different code")
    if (parts, num_reduced, rows, tail, lanes) != (1, 0, 1, 0, block[0]):
        raise ValueError("several parts, or several rows for each result")
    item = dtype(row.dtype).itemsize
    items = VECTOR_BYTES // max(2, item) if flags & _VECTORS else 1
    length = units * items
    if units > MAX_UNITS * lanes:
        raise ValueError("a row that does not fit into the registers of its threads")
    kept = [(length, stride)]
    results, left = [], outputs
    for d in range(num_kept):
        # No kernel divides by the last dimension.
        size = left if d == num_kept - 1 else unpack_from("<I", params, _KEPT + _DIVIDER * d)[0]
        left //= size
        strides = unpack_from("<qq", params, _KEPT + _DIVIDER * _MAX_OUTER + 16 * d)
        kept.append((size, strides[0]))
        results.append((size, strides[1]))
    return Operation(
        row,
        length * outputs,
        (
            Access(target, row.output, merged(results), 8),
            Access(source, row.dtype, merged(kept), 0),
        ),
        Reduction(length, block[:2], items, unpack_from("<d", params, _DIVISOR)[0]),
    )


_READERS = {
    "elementwise": {"": _dense, "_strided": _strided, "_aligned": _aligned},
    "reduce": {"_rows": _reduce_rows},
}
