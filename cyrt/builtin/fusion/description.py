"""What a node of a recording computes: a kernel's parameters, read back as an operation.

INVARIANTS
- A description is exact: the operation, applied to its operands as described, writes what the node
  writes. Where that is not certain there is no description.
- The structs of parameters are those of kernels_cu/params; a node whose parameters have another
  size is not described.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from struct import pack_into, unpack_from
from typing import NamedTuple

from cyrt.builtin import catalogue
from cyrt.builtin.entry import row_of
from cyrt.builtin.fusion.compilers import makes_equal
from cyrt.builtin.row import BY_SIZE, Row
from cyrt.builtin.rows import matmul
from cyrt.dtypes import dtype

Size = tuple[int, int, int]
#: The first byte of some memory, and its end.
Span = tuple[int, int]
#: Dimensions, innermost first: their sizes and their strides in elements.
Layout = tuple[tuple[int, int], ...]
#: An address, the bytes of an element, and a layout.
View = tuple[int | None, int, Layout]

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
# kernels_cu/params/matmul.h
_PARTS = 4
# kernels_cu/params/transpose.h
_TRANSPOSE_BYTES, _BATCH = 304, 40
#: The most elements of a transposed array that a kernel reads without tiles in shared memory.
MAX_TRANSPOSED = 1 << 17


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
    def view(self) -> View:
        """Equal views have the same elements in the same order; the types may differ."""
        return self.address, self.itemsize, self.layout

    def span(self) -> Span:
        """Return the first byte and the end of the memory; an empty range of a number."""
        if self.address is None:
            return 0, 0
        ends = [(size - 1) * stride for size, stride in self.layout]
        low = sum(end for end in ends if end < 0)
        high = sum(end for end in ends if end > 0)
        return self.address + low * self.itemsize, self.address + (high + 1) * self.itemsize


@dataclass(frozen=True, slots=True)
class FusedReduction:
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
class FusedProduct:
    """How the kernel of a product computes its results, which other operations may follow.

    Attributes
    ----------
    code : Code
        Its C++.
    params : bytes
        Its parameters. The kernel that it is a part of does not use the result's address.
    addresses : tuple of (int, int)
        The addresses of its operands, and where the parameters have them.
    early : int or None
        Where the parameters have the word with which the recorder allows early loads.
    grid, block : tuple of int
    smem : int
        Bytes of dynamic shared memory.
    reads : tuple of (int, int)
        The memory that it reads.
    """

    code: matmul.KernelCode
    params: bytes
    addresses: tuple[tuple[int, int], ...]
    early: int | None
    grid: Size
    block: Size
    smem: int
    reads: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the catalogue with its operands: elementwise, a reduction along rows, or a
    product.

    Attributes
    ----------
    row : Row
        The row of the catalogue.
    size : int
        The number of elements that it writes; of a reduction, that it reads.
    operands : tuple of Access
        The output, and the inputs that are read element by element.
    reduction : FusedReduction or None
    product : FusedProduct or None
    """

    row: Row
    size: int
    operands: tuple[Access, ...]
    reduction: FusedReduction | None = None
    product: FusedProduct | None = None

    @property
    def addresses(self) -> list[tuple[int, int]]:
        """The addresses that it reads, and where its parameters have them."""
        if self.product is not None:
            return list(self.product.addresses)
        return [(each.address, each.word) for each in self.operands[1:] if each.address is not None]


class _Launch(NamedTuple):
    """A node's parameters and geometry, and the memory that it reads."""

    params: bytes
    grid: Size
    block: Size
    smem: int
    reads: tuple[Span, ...]


def describe(
    serial: int, params: bytes, grid: Size, block: Size, smem: int = 0, reads: tuple[Span, ...] = ()
) -> Operation:
    """Return what a node computes.

    Parameters
    ----------
    serial : int
        The serial number of its function.
    params : bytes
        Its packed parameters.
    grid, block : tuple of int
        Its geometry.
    smem : int
        Bytes of dynamic shared memory.
    reads : tuple of (int, int)
        The memory that it may read.

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
    reader = _reader(catalogue.family(row), row.output, row.variants[variant])
    if reader is None:
        raise ValueError("neither elementwise, nor a reduction along rows, nor a product")
    if not makes_equal(row, origin):
        raise ValueError("another result, to the bit, in a kernel with other operations")
    return reader(row, _Launch(params, grid, block, smem, reads))


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
    there is no element of that size, or the memory is not aligned to it."""
    itemsize, rest = divmod(operation.size * operation.operands[0].itemsize, size)
    if (
        operation.row.op != "copy"
        or rest
        or itemsize not in BY_SIZE
        or any(
            each.address is None
            or each.address % itemsize
            or each.layout != merged([(operation.size, 1)])
            for each in operation.operands
        )
    ):
        return None
    name = BY_SIZE[itemsize]
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


def _dense(row: Row, launch: _Launch) -> Operation:
    params, count = launch.params, len(row.inputs)
    _check_size(params, _DENSE_INPUTS + _SOURCE * count)
    size, flags = unpack_from("<qI", params, 8)
    layouts = [merged([(size, 1)])] * (1 + count)
    operands = _operands(row, params, flags, _DENSE_INPUTS, _SOURCE, layouts)
    return Operation(row, size, operands)


def _aligned(row: Row, launch: _Launch) -> Operation:
    params, count = launch.params, len(row.inputs)
    _check_size(params, -(-(_ALIGNED_INPUTS + 8 * count) // 16) * 16)
    vectors, flags = unpack_from("<II", params, 8)
    size = vectors * (16 // max(2, *(dtype(name).itemsize for name in (row.output, *row.inputs))))
    layouts = [merged([(size, 1)])] * (1 + count)
    operands = _operands(row, params, flags, _ALIGNED_INPUTS, 8, layouts)
    return Operation(row, size, operands)


def _strided(row: Row, launch: _Launch) -> Operation:
    params, count = launch.params, len(row.inputs)
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


def _reduce_rows(row: Row, launch: _Launch) -> Operation:
    """A result is one row's, computed by one block, which may have several."""
    params, block = launch.params, launch.block
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
        FusedReduction(length, block[:2], items, unpack_from("<d", params, _DIVISOR)[0]),
    )


class _Members(NamedTuple):
    """The offsets of a product's parameters in their struct, and the struct's size."""

    result: int
    operands: tuple[int, ...]
    flags: int | None
    early: int | None
    size: int


_MEMBERS = {
    "Product": _Members(16, (0, 8), 336, None, 352),
    "Dot": _Members(16, (0, 8), 332, 336, 352),
    "Skinny": _Members(16, (0, 8), 324, 332, 336),
    "Parts": _Members(8, (0,), None, None, 32),
}


def _result_size(struct: str, params: bytes, blocks: int) -> int:
    """Return how many results a product has."""

    def number(word: int) -> int:
        return int.from_bytes(params[word : word + 4], "little")

    if struct == "Parts":
        return int.from_bytes(params[16:24], "little")
    if struct == "Dot":
        return number(320) * number(324)
    if struct == "Skinny":
        works = number(328) or blocks  # the blocks of a ring take several
        return works // (number(280) * number(292)) * number(304) * number(308)
    tiles = number(280) * number(292) * number(304)
    return blocks // tiles * number(316) * number(320)


def _product(code: matmul.KernelCode, row: Row, launch: _Launch) -> Operation:
    if row.dtype.startswith("complex") or row.dtype == "float64":
        raise ValueError("a product of which compilers make different code")
    where = _MEMBERS[code.struct]
    _check_size(launch.params, where.size)
    if where.flags is not None and unpack_from("<I", launch.params, where.flags)[0] & _PARTS:
        raise ValueError("a product whose parts are summed by another kernel")
    size = _result_size(code.struct, launch.params, launch.grid[0])
    params = bytearray(launch.params)
    pack_into("<Q", params, where.result, 0)
    output = Access(
        unpack_from("<Q", launch.params, where.result)[0],
        *(row.output, merged([(size, 1)]), where.result),
    )
    addresses = [(unpack_from("<Q", params, word)[0], word) for word in where.operands]
    return Operation(
        *(row, size, (output,)),
        product=FusedProduct(
            *(code, bytes(params), tuple(addresses), where.early),
            *(launch.grid, launch.block, launch.smem, launch.reads),
        ),
    )


def _transpose(row: Row, launch: _Launch) -> Operation:
    params = launch.params
    _check_size(params, _TRANSPOSE_BYTES)
    in_stride, out_stride = unpack_from("<qq", params, 24)
    size_in, size_out, num_batch = unpack_from("<III", params, 288)
    tiles_in, tiles_out = (unpack_from("<I", params, word)[0] for word in (264, 276))
    left = launch.grid[0] // (tiles_in * tiles_out)
    size = size_in * size_out * left
    if size > MAX_TRANSPOSED:
        raise ValueError("a transposition of a large array, which is done by tiles")
    written, read = [(size_out, 1), (size_in, out_stride)], [(size_out, in_stride), (size_in, 1)]
    for d in range(num_batch):
        last = d == num_batch - 1
        inner = left if last else unpack_from("<I", params, _BATCH + _DIVIDER * d)[0]
        left //= inner
        strides = unpack_from("<qq", params, _BATCH + _DIVIDER * _MAX_OUTER + 16 * d)
        written.append((inner, strides[0]))
        read.append((inner, strides[1]))
    name = row.output
    addresses = (unpack_from("<Q", params, word)[0] for word in (16, 0))
    return Operation(
        catalogue.row("copy", name),
        size,
        tuple(
            Access(address, name, merged(layout), word)
            for address, layout, word in zip(addresses, (written, read), (16, 0), strict=True)
        ),
    )


_Reader = Callable[[Row, _Launch], Operation]
_READERS: dict[str, dict[str, _Reader]] = {
    "elementwise": {"": _dense, "_strided": _strided, "_aligned": _aligned},
    "reduce": {"_rows": _reduce_rows},
    "transpose": {"": _transpose, "_wide": _transpose},
}


@cache
def _reader(family: str, name: str, variant: str) -> _Reader | None:
    """Return what reads the parameters of a kernel of an element type; None: nothing does."""
    if family == "matmul":
        return partial(_product, matmul.kernels(name)[variant])
    return _READERS.get(family, {}).get(variant)
