# cython: cdivision=True
"""How the kernels of sort.cu are launched: by counting, in a block, or in sweeps over memory."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.kernels import catalogue
from cyrt.kernels.families.sort import KEYS
from cyrt.kernels.launch cimport MAX_BLOCKS, ceiling, power_of_two, set_geometry
from cyrt.kernels.scratch cimport fill_zeros
from cyrt.kernels.entries cimport Entry, Operand, dtype_code, entry_of, record_entry
from cyrt.runtime.memory cimport Buffer

cdef enum Variant:              # those that give places are ARG later
    COUNTING = 0
    BLOCK = 1
    SWEEP = 2
    ARG = 3
    HISTOGRAM = 6

cdef enum:
    COUNTED = 128               # elements of a row that is sorted by counting, at most
    THREADS = 512               # as in sort.cu, also below
    DIGITS = 256
    SHORT = 8                   # elements of a thread that sorts a row in a block, about
    HISTOGRAMS = 264            # blocks: two a multiprocessor of an H200
    ALIGNED = 256               # bytes
    TURNS = 8                   # passes, at most

# As Sort of sort.cu.
cdef struct Sort:
    CUdeviceptr source, out, origins, to
    long long n
    unsigned int rows, tiles, sweep, last
    CUdeviceptr totals, counts, turns
    KeyOrder order
    unsigned long long padding

cdef int SORT = catalogue.OPS.index("sort")
cdef dict key_types = {1 << i: dtype_code(name) for i, name in enumerate(KEYS)}
cdef list orders = []           # by type: the numbers of a KeyOrder, ascending, and its key's type


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


cdef inline void copy_operand(Operand* target, const Operand* operand, long long offset) noexcept:
    target[0] = operand[0]
    target.address += offset


cdef int record_sort(Recorder encoder, int dtype, const Operand* operands, long long rows,
                     long long n, bint places, bint descending) except -1:
    cdef Operand[2] part
    cdef Sort args
    cdef Entry* entry
    cdef long long most, done = 0, tile
    cdef int size
    memset(&args, 0, sizeof(args))
    key_order(&args.order, dtype, descending)
    entry = entry_of(encoder.state.ordinal, SORT, key_type(dtype))
    if rows == 0 or n == 0:
        return 0
    if places and n > 0xffffffff:       # between passes a place is a uint32
        raise ValueError(f"argsort: expected rows of at most {0xffffffff:,} elements, got {n:,}")
    size = entry.itemsizes[0]
    tile = THREADS * (8 if size == 8 else 16)
    args.n = n
    args.tiles = <unsigned int>ceiling(n, tile)
    most = MAX_BLOCKS // args.tiles
    while done < rows:
        args.rows = <unsigned int>min(rows - done, most)
        copy_operand(&part[0], &operands[0], done * n * (8 if places else size))
        copy_operand(&part[1], &operands[1], done * n * size)
        if n <= tile:
            record_short(encoder, entry, &args, part, places)
        else:
            record_sweeps(encoder, entry, &args, part, places)
        done += args.rows
    return 0


cdef int record_short(Recorder encoder, Entry* entry, Sort* args, const Operand* operands,
                      bint places) except -1:
    cdef Geometry geometry
    cdef unsigned int x, y = 1
    args.source = operands[1].address
    args.out = args.to = operands[0].address
    if args.n <= COUNTED:
        x = power_of_two(args.n, 1, COUNTED)
        y = 2 * COUNTED // x
        while y > 1 and y // 2 >= args.rows:
            y //= 2
    else:
        x = power_of_two(ceiling(args.n, SHORT), 32, THREADS)
    set_geometry(&geometry, ceiling(args.rows, y), x, y)
    return record_entry(encoder, entry, (COUNTING if args.n <= COUNTED else BLOCK)
                        + (ARG if places else 0), &geometry, <const char*>args, operands, 2, 1,
                        None)


cdef inline CUdeviceptr take(CUdeviceptr* free, long long nbytes) noexcept:
    cdef CUdeviceptr address = free[0]
    free[0] += ceiling(nbytes, ALIGNED) * ALIGNED
    return address


cdef int record_sweeps(Recorder encoder, Entry* entry, Sort* args, const Operand* operands,
                       bint places) except -1:
    """Elements, and with `places` where they come from, go to and fro between two places."""
    cdef Operand[3] used
    cdef CUdeviceptr[2] elements, origins
    cdef CUdeviceptr free = 0
    cdef Geometry geometry
    cdef Buffer scratch
    cdef int passes = entry.itemsizes[0], i
    cdef long long count = args.rows * args.n, zeros
    args.turns = take(&free, 4 * TURNS)
    args.totals = take(&free, 8 * DIGITS * passes * <long long>args.rows)
    zeros = free
    args.counts = take(&free, 8 * DIGITS * <long long>args.rows * args.tiles)
    # Without places the result is one of the two, so that the last pass writes it.
    elements[0] = take(&free, count * passes) if passes > 1 else 0
    elements[1] = take(&free, count * passes) if passes > 2 and places else 0
    origins[0] = take(&free, 4 * count) if places and passes > 1 else 0
    origins[1] = take(&free, 4 * count) if places and passes > 2 else 0
    scratch = Buffer(free, encoder.state.ordinal)
    args.turns += scratch.address
    args.totals += scratch.address
    args.counts += scratch.address
    for i in range(2):
        elements[i] += scratch.address
        origins[i] += scratch.address
    if not places:
        elements[1] = operands[0].address
    used[0] = operands[0]
    used[1] = operands[1]
    memset(&used[2], 0, sizeof(Operand))
    used[2].buffer = <PyObject*>scratch
    used[2].address = scratch.address

    fill_zeros(encoder, scratch, zeros)
    args.source = operands[1].address
    args.last = max(1, min(HISTOGRAMS // args.rows, ceiling(args.n, THREADS * SHORT)))
    set_geometry(&geometry, args.rows * <unsigned long long>args.last, THREADS, 1)
    record_entry(encoder, entry, HISTOGRAM, &geometry, <const char*>args, used, 3, 4, None)
    set_geometry(&geometry, args.rows * <unsigned long long>args.tiles, THREADS, 1)
    for i in range(passes):
        args.sweep = i
        args.last = i == passes - 1
        args.out = elements[i & 1] if places or not args.last else operands[0].address
        args.to = operands[0].address if args.last else origins[i & 1]
        record_entry(encoder, entry, SWEEP + (ARG if places else 0), &geometry, <const char*>args,
                     used, 3, 5, None)
        args.source = args.out
        args.origins = args.to
    return 0
