# cython: cdivision=True
"""Cumulative sums and products: the launches of scan.cu."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport Entry, entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, Launch, ceiling, multiprocessors_of, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.workspace cimport allocate_workspace, fill_zeros
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/scan.h" nogil:
    enum: SCAN_BLOCK, SCAN_VECTORS, SCAN_RESIDENT_BLOCKS, SCAN_VECTOR_IN, SCAN_VECTOR_OUT
    cdef struct Scan:
        unsigned long long input, out
        long long n, out_row
        unsigned int rows, tiles, initial, vector
        unsigned long long next, sums
        long long inner
        unsigned int strips

cdef enum:
    WARPS = 8                   # a block's: SCAN_BLOCK threads
    GROUP = 32                  # tiles of a group, and groups of a run
    TILE_BYTES = 64 * 256       # bytes of a tile, in the compute type, if a row has several tiles
    SUMS = 16                   # alignment of sums in bytes

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    ROWS = 0
    TILES = 1
    COLUMNS = 2

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Scan),)


cdef inline bint are_vectors(unsigned long long address, long long row, int items,
                             int size) noexcept:
    return address & (items * size - 1) == 0 and row % items == 0


cdef inline int compute_size(const Entry* entry) noexcept:
    return max(4, entry.itemsizes[0])


cdef int record_scan(Recorder encoder, int op, int dtype, const Operand* operands, long long rows,
                     long long n, long long inner, bint initial) except -1:
    cdef Operand[3] part
    cdef Scan params
    cdef Launch launch
    cdef const Entry* entry = entry_of(encoder.state.ordinal, op, dtype)
    cdef long long most, done = 0, row, warp = 32 * entry.items
    cdef int size_out = entry.itemsizes[0], size_in = entry.itemsizes[1]
    cdef int size = compute_size(entry)
    if rows == 0 or n + initial == 0 or inner == 0:
        return 0
    memset(&params, 0, sizeof(params))
    launch.entry = entry
    params.n = n
    params.out_row = n + initial
    params.initial = initial
    params.inner = inner
    if inner == 1:
        if n > WARPS * SCAN_VECTORS * warp:
            params.tiles = <unsigned int>ceiling(n, TILE_BYTES // size)
        most = MAX_BLOCKS // max(1, params.tiles)
    else:
        params.tiles = <unsigned int>max(1, ceiling(n, WARPS * SCAN_VECTORS))
        params.strips = <unsigned int>ceiling(inner, warp)
        most = MAX_BLOCKS // params.tiles // params.strips
        if most == 0:
            raise ValueError(f"scan: {n:,} by {inner:,} elements are more than a grid covers")
    memset(part, 0, sizeof(part))
    while done < rows:
        params.rows = <unsigned int>min(rows - done, most)
        part[0] = operands[0]
        part[1] = operands[1]
        params.input = operands[1].address + done * n * inner * size_in
        params.out = operands[0].address + done * params.out_row * inner * size_out
        params.vector = 0
        row = n if inner == 1 else inner
        if are_vectors(params.input, row, entry.items, size_in):
            params.vector |= SCAN_VECTOR_IN
        row = params.out_row if inner == 1 else inner
        if are_vectors(params.out + initial * inner * size_out, row, entry.items, size_out):
            params.vector |= SCAN_VECTOR_OUT
        if params.tiles > 1:
            record_tiles(encoder, &launch, &params, part)
        elif inner == 1:
            record_rows(encoder, &launch, &params, part)
        else:
            record_strips(encoder, &launch, &params, part)
        done += params.rows
    return 0


cdef int record_rows(Recorder encoder, Launch* launch, const Scan* params,
                     const Operand* operands) except -1:
    cdef unsigned int warps = power_of_two(
        ceiling(params.n, 32 * SCAN_VECTORS * launch.entry.items), 1, WARPS)
    cdef unsigned int y = power_of_two(params.rows, 1, WARPS // warps)
    launch.variant = ROWS
    set_geometry(&launch.geometry, ceiling(params.rows, y), 32 * warps, y)
    return record_launch(encoder, launch, params, operands, 2, 1)


cdef int record_strips(Recorder encoder, Launch* launch, const Scan* params,
                       const Operand* operands) except -1:
    launch.variant = COLUMNS
    set_geometry(&launch.geometry, params.rows * <unsigned long long>params.strips,
                 32 * power_of_two(ceiling(params.n, SCAN_VECTORS), 1, WARPS), 1)
    return record_launch(encoder, launch, params, operands, 2, 1)


cdef int record_tiles(Recorder encoder, Launch* launch, Scan* params,
                      Operand* operands) except -1:
    """Record a scan whose tiles, groups and runs store sums: the sums of rows carry a ready state,
    those of columns have flags."""
    cdef Memory workspace
    cdef long long groups = ceiling(params.tiles, GROUP)
    cdef long long blocks = params.rows * <long long>params.tiles
    cdef long long words = params.tiles + groups + ceiling(groups, GROUP), zeros, nbytes
    cdef int size = compute_size(launch.entry)
    if params.inner == 1:
        blocks = min(blocks, SCAN_RESIDENT_BLOCKS * multiprocessors_of(encoder.state.ordinal))
        nbytes = zeros = SUMS + 2 * size * words * params.rows
        launch.variant = TILES
    else:
        blocks *= params.strips
        words *= params.rows * <long long>params.strips
        zeros = ceiling(4 * (1 + words), SUMS) * SUMS
        # A vector of 16-bit elements becomes a vector of as many 32-bit sums.
        nbytes = zeros + words * (32 * 2 * 16)
        launch.variant = COLUMNS
    workspace = allocate_workspace(encoder, nbytes)
    operands[2].buffer = <PyObject*>workspace
    operands[2].address = workspace.address
    params.next = workspace.address
    params.sums = workspace.address + (SUMS if params.inner == 1 else zeros)
    set_geometry(&launch.geometry, blocks, SCAN_BLOCK, 1)
    fill_zeros(encoder, workspace, zeros)
    return record_launch(encoder, launch, params, operands, 3, 5)
