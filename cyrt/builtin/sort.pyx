# cython: cdivision=True
"""Sorting of rows: the launches of sort.cu. Rows are sorted by counting, in a block, or by passes
over memory, one digit after the other."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport dtype_code, entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.rows.sort import KEYS
from cyrt.builtin.workspace cimport allocate_workspace, fill_zeros
from cyrt.dtypes import DTYPES
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/sort.h" nogil:
    enum: SORT_BLOCK, SORT_DIGITS
    cdef struct Sort:
        unsigned long long input, out, origins, to
        long long n
        unsigned int rows, tiles, digit, last
        unsigned long long totals, counts, turns
        KeyOrder order

# Kernels, in the order of Row.kernels. The kernels that return indices follow ARG numbers later.
cdef enum Variant:
    COUNTING = 0
    BLOCK = 1
    SWEEP = 2
    ARG = 3
    HISTOGRAM = 6

cdef enum:
    COUNTED = 128               # the maximum number of elements of a row that is sorted by counting
    SHORT = 8                   # the approximate elements of a thread that sorts a row in a block
    HISTOGRAMS = 264            # blocks: two a multiprocessor of an H200
    ALIGNED = 256               # alignment in bytes
    TURNS = 8                   # the maximum number of passes

cdef int SORT = catalogue.OPS.index("sort")
cdef dict key_types = {1 << i: dtype_code(name) for i, name in enumerate(KEYS)}
cdef list orders = []           # by type: the numbers of a KeyOrder, ascending, and its key's type

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Sort),)


def _order(each):
    bits = 8 * each.itemsize
    ones, top = (1 << bits) - 1, 1 << bits - 1
    if each.kind == "c":
        return None
    if each.kind == "b":
        return 0, 0, ones, 0, key_types[each.itemsize]
    if each.kind == "u":
        return 0, 0, ones, ones, key_types[each.itemsize]
    if each.kind == "i":
        return top, top, ones, ones, key_types[each.itemsize]
    infinity = {"float16": 0x7c00, "bfloat16": 0x7f80, "float32": 0x7f800000,
                "float64": 0x7ff0000000000000}[each.name]
    return ones, top, top - 1, infinity, key_types[each.itemsize]


orders.extend(_order(each) for each in DTYPES)


cdef int key_order(KeyOrder* order, int dtype, bint descending) except -1:
    known = orders[dtype]
    if known is None:
        raise TypeError(f"{DTYPES[dtype]} has no order; sort a real type, such as the real parts")
    order.if_negative, order.if_positive, order.magnitude, order.largest, _ = known
    order.reverse = <unsigned long long>-1 if descending else 0
    return 0


cdef int key_type(int dtype) except -1:
    return orders[dtype][4]


cdef int record_sort(Recorder encoder, int dtype, const Operand* operands, long long rows,
                     long long n, bint indices, bint descending) except -1:
    cdef Operand[2] part
    cdef Sort params
    cdef Launch launch
    cdef long long most, done = 0, tile
    cdef int size
    memset(&params, 0, sizeof(params))
    key_order(&params.order, dtype, descending)
    launch.entry = entry_of(encoder.state.ordinal, SORT, key_type(dtype))
    if rows == 0 or n == 0:
        return 0
    if indices and n > 0xffffffff:       # an index is a uint32 between passes
        raise ValueError(f"argsort: expected rows of at most {0xffffffff:,} elements, got {n:,}")
    size = launch.entry.itemsizes[0]
    tile = SORT_BLOCK * (8 if size == 8 else 16)
    params.n = n
    params.tiles = <unsigned int>ceiling(n, tile)
    most = MAX_BLOCKS // params.tiles
    part[0], part[1] = operands[0], operands[1]
    while done < rows:
        params.rows = <unsigned int>min(rows - done, most)
        part[0].address = operands[0].address + done * n * (8 if indices else size)
        part[1].address = operands[1].address + done * n * size
        if n <= tile:
            record_short(encoder, &launch, &params, part, indices)
        else:
            record_sweeps(encoder, &launch, &params, part, indices)
        done += params.rows
    return 0


cdef int record_short(Recorder encoder, Launch* launch, Sort* params, const Operand* operands,
                      bint indices) except -1:
    cdef unsigned int x, y = 1
    params.input = operands[1].address
    params.out = params.to = operands[0].address
    if params.n <= COUNTED:
        launch.variant = COUNTING
        x = power_of_two(params.n, 1, COUNTED)
        y = 2 * COUNTED // x
        while y > 1 and y // 2 >= params.rows:
            y //= 2
    else:
        launch.variant = BLOCK
        x = power_of_two(ceiling(params.n, SHORT), 32, SORT_BLOCK)
    if indices:
        launch.variant += ARG
    set_geometry(&launch.geometry, ceiling(params.rows, y), x, y)
    return record_launch(encoder, launch, params, operands, 2, 1)


cdef inline unsigned long long take(unsigned long long* free, long long nbytes) noexcept:
    """Allocate bytes at the start of the workspace's free part; return their offset."""
    cdef unsigned long long offset = free[0]
    free[0] += ceiling(nbytes, ALIGNED) * ALIGNED
    return offset


cdef int record_sweeps(Recorder encoder, Launch* launch, Sort* params, const Operand* operands,
                       bint indices) except -1:
    """Record the passes, which move elements, and with `indices` also their indices, between two
    buffers."""
    cdef Operand[3] used
    cdef unsigned long long[2] elements
    cdef unsigned long long[2] origins
    cdef unsigned long long free = 0
    cdef Memory workspace
    cdef int passes = launch.entry.itemsizes[0], i
    cdef long long count = params.rows * params.n, zeros
    params.turns = take(&free, 4 * TURNS)
    params.totals = take(&free, 8 * SORT_DIGITS * passes * <long long>params.rows)
    zeros = free
    params.counts = take(&free, 8 * SORT_DIGITS * <long long>params.rows * params.tiles)
    # Without indices the result is one of the two buffers, so that the last pass writes it.
    elements[0] = take(&free, count * passes) if passes > 1 else 0
    elements[1] = take(&free, count * passes) if passes > 2 and indices else 0
    origins[0] = take(&free, 4 * count) if indices and passes > 1 else 0
    origins[1] = take(&free, 4 * count) if indices and passes > 2 else 0
    workspace = allocate_workspace(encoder, free)
    params.turns += workspace.address
    params.totals += workspace.address
    params.counts += workspace.address
    for i in range(2):
        elements[i] += workspace.address
        origins[i] += workspace.address
    if not indices:
        elements[1] = operands[0].address
    used[0], used[1] = operands[0], operands[1]
    used[2] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])

    fill_zeros(encoder, workspace, zeros)
    params.input = operands[1].address
    params.last = max(1, min(HISTOGRAMS // params.rows, ceiling(params.n, SORT_BLOCK * SHORT)))
    launch.variant = HISTOGRAM
    set_geometry(&launch.geometry, params.rows * <unsigned long long>params.last, SORT_BLOCK, 1)
    record_launch(encoder, launch, params, used, 3, 4)
    launch.variant = SWEEP + (ARG if indices else 0)
    set_geometry(&launch.geometry, params.rows * <unsigned long long>params.tiles, SORT_BLOCK, 1)
    for i in range(passes):
        params.digit = i
        params.last = i == passes - 1
        params.out = elements[i & 1] if indices or not params.last else operands[0].address
        params.to = operands[0].address if params.last else origins[i & 1]
        record_launch(encoder, launch, params, used, 3, 5)
        params.input = params.out
        params.origins = params.to
    return 0
