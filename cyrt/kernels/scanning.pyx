# cython: cdivision=True
"""How the kernels of scan.cu and compact.cu are launched."""

from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.driver.cuda cimport CUdeviceptr
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport Recorder
from cyrt.graph.recording cimport Geometry
from cyrt.kernels import catalogue
from cyrt.kernels.launch cimport (
    MAX_BLOCKS, ceiling, multiprocessors_of, power_of_two, set_geometry)
from cyrt.kernels.row import BY_SIZE
from cyrt.kernels.scratch cimport fill_zeros
from cyrt.kernels.entries cimport Entry, Operand, dtype_code, entry_of, record_entry
from cyrt.runtime.memory cimport Buffer

cdef enum:
    ROWS = 0                    # variants of a scan
    TILES = 1
    COLUMNS = 2
    COUNTS = 0                  # and of count_true
    POSITIONS = 1
    WARPS = 8                   # of a block, as in scan.cu; below also
    VECTORS = 8                 # of a thread
    GROUP = 32
    TILE_BYTES = 64 * 256       # of a tile of a row of many, in the compute type
    RESIDENT_BLOCKS = 4         # of a multiprocessor, that take turns at them
    SUMS = 16                   # bytes that they are aligned to
    VECTOR_IN = 1
    VECTOR_OUT = 2
    THREADS = 256               # as in compact.cu
    MASK_VECTOR = 16

# As Scan of scan.cu, and Compact of compact.cu.
cdef struct Scan:
    CUdeviceptr source, out
    long long n, out_row
    unsigned int rows, tiles, initial, vector
    CUdeviceptr turn, sums
    long long inner
    unsigned int strips


cdef struct Compact:
    CUdeviceptr mask, source, out, sums
    long long n, vector

cdef int COUNT_TRUE = catalogue.OPS.index("count_true")
cdef int SELECT = catalogue.OPS.index("select")
cdef int BOOL = dtype_code("bool")
cdef list by_size = [dtype_code(BY_SIZE[each.itemsize]) for each in DTYPES]


cdef inline bint are_vectors(CUdeviceptr address, long long row, int items, int size) noexcept:
    return address & (items * size - 1) == 0 and row % items == 0


cdef inline int compute_size(const Entry* entry) noexcept:
    return max(4, entry.itemsizes[0])


cdef int record_scan(Recorder encoder, int op, int dtype, const Operand* operands, long long rows,
                     long long n, long long inner, bint initial) except -1:
    cdef Operand[3] part
    cdef Scan args
    cdef Entry* entry = entry_of(encoder.state.ordinal, op, dtype)
    cdef long long most, done = 0, row, warp = 32 * entry.items
    cdef int size_out = entry.itemsizes[0], size_in = entry.itemsizes[1]
    cdef int size = compute_size(entry)
    if rows == 0 or n + initial == 0 or inner == 0:
        return 0
    memset(&args, 0, sizeof(args))
    args.n = n
    args.out_row = n + initial
    args.initial = initial
    args.inner = inner
    if inner == 1:
        if n > WARPS * VECTORS * warp:
            args.tiles = <unsigned int>ceiling(n, TILE_BYTES // size)
        most = MAX_BLOCKS // max(1, args.tiles)
    else:
        args.tiles = <unsigned int>max(1, ceiling(n, WARPS * VECTORS))
        args.strips = <unsigned int>ceiling(inner, warp)
        most = MAX_BLOCKS // args.tiles // args.strips
        if most == 0:
            raise ValueError(f"scan: {n:,} by {inner:,} elements are more than a grid covers")
    memset(part, 0, sizeof(part))
    while done < rows:
        args.rows = <unsigned int>min(rows - done, most)
        part[0] = operands[0]
        part[1] = operands[1]
        args.source = operands[1].address + done * n * inner * size_in
        args.out = operands[0].address + done * args.out_row * inner * size_out
        args.vector = 0
        row = n if inner == 1 else inner
        if are_vectors(args.source, row, entry.items, size_in):
            args.vector |= VECTOR_IN
        row = args.out_row if inner == 1 else inner
        if are_vectors(args.out + initial * inner * size_out, row, entry.items, size_out):
            args.vector |= VECTOR_OUT
        if args.tiles > 1:
            record_tiles(encoder, entry, &args, part)
        elif inner == 1:
            record_rows(encoder, entry, &args, part)
        else:
            record_strips(encoder, entry, &args, part)
        done += args.rows
    return 0


cdef int record_rows(Recorder encoder, Entry* entry, Scan* args, const Operand* operands) except -1:
    cdef Geometry geometry
    cdef unsigned int warps = power_of_two(ceiling(args.n, 32 * VECTORS * entry.items), 1, WARPS)
    cdef unsigned int y = power_of_two(args.rows, 1, WARPS // warps)
    set_geometry(&geometry, ceiling(args.rows, y), 32 * warps, y)
    return record_entry(encoder, entry, ROWS, &geometry, <const char*>args, operands, 2, 1, None)


cdef int record_strips(Recorder encoder, Entry* entry, Scan* args,
                       const Operand* operands) except -1:
    cdef Geometry geometry
    set_geometry(&geometry, args.rows * <unsigned long long>args.strips,
                 32 * power_of_two(ceiling(args.n, VECTORS), 1, WARPS), 1)
    return record_entry(encoder, entry, COLUMNS, &geometry, <const char*>args, operands, 2, 1, None)


cdef int record_tiles(Recorder encoder, Entry* entry, Scan* args, Operand* operands) except -1:
    """Tiles, groups and runs leave sums: those of rows say that they are there, those of columns
    have flags."""
    cdef Geometry geometry
    cdef Buffer scratch
    cdef long long groups = ceiling(args.tiles, GROUP), blocks = args.rows * <long long>args.tiles
    cdef long long words = args.tiles + groups + ceiling(groups, GROUP), zeros, nbytes
    cdef int size = compute_size(entry)
    if args.inner == 1:
        blocks = min(blocks, RESIDENT_BLOCKS * multiprocessors_of(encoder.state.ordinal))
        nbytes = zeros = SUMS + 2 * size * words * args.rows
    else:
        blocks *= args.strips
        words *= args.rows * <long long>args.strips
        zeros = ceiling(4 * (1 + words), SUMS) * SUMS
        # A vector of 16-bit elements is summed up in as many of 32 bits.
        nbytes = zeros + words * (32 * 2 * 16)
    scratch = Buffer(nbytes, encoder.state.ordinal)
    operands[2].buffer = <PyObject*>scratch
    operands[2].address = scratch.address
    args.turn = scratch.address
    args.sums = scratch.address + (SUMS if args.inner == 1 else zeros)
    set_geometry(&geometry, blocks, 32 * WARPS, 1)
    fill_zeros(encoder, scratch, zeros)
    return record_entry(encoder, entry, TILES if args.inner == 1 else COLUMNS, &geometry,
                        <const char*>args, operands, 3, 5, None)


# -- masks ----------------------------------------------------------------------------------------


cdef inline void describe(Compact* args, const Operand* operands, long long n) noexcept:
    memset(args, 0, sizeof(Compact))
    args.out = operands[0].address
    args.mask = operands[1].address
    args.n = n
    args.vector = args.mask % MASK_VECTOR == 0


cdef int mask_geometry(Geometry* geometry, long long n) except -1:
    cdef long long tiles = ceiling(n, MASK_TILE)
    if tiles > MAX_BLOCKS:
        raise ValueError(f"mask: {n:,} elements are more than a grid covers")
    set_geometry(geometry, tiles, power_of_two(ceiling(n, MASK_VECTOR), 32, THREADS), 1)
    return 0


cdef int record_counts(Recorder encoder, const Operand* operands, long long n) except -1:
    cdef Compact args
    cdef Geometry geometry
    if n == 0:
        return 0
    describe(&args, operands, n)
    mask_geometry(&geometry, n)
    return record_entry(encoder, entry_of(encoder.state.ordinal, COUNT_TRUE, BOOL), COUNTS,
                        &geometry, <const char*>&args, operands, 2, 1, None)


cdef int record_select(Recorder encoder, int dtype, const Operand* operands, long long n) except -1:
    cdef Compact args
    cdef Geometry geometry
    cdef Entry* entry
    cdef bint positions = operands[2].buffer == NULL
    if n == 0:
        return 0
    describe(&args, operands, n)
    if not positions:
        args.source = operands[2].address
    if operands[3].buffer != NULL:
        args.sums = operands[3].address
    mask_geometry(&geometry, n)
    if positions:
        entry = entry_of(encoder.state.ordinal, COUNT_TRUE, BOOL)
    else:
        entry = entry_of(encoder.state.ordinal, SELECT, by_size[dtype])
    return record_entry(encoder, entry, POSITIONS if positions else 0, &geometry,
                        <const char*>&args, operands, 4, 1, None)
