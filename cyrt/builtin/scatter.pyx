# cython: cdivision=True
"""Values combined into the elements that keys select: the launches of scatter.cu. One launch
combines the values of each tile, the next one the tiles' results, until there is one tile."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport MAX_BLOCKS, Launch, ceiling, record_launch, set_geometry
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport (
    Recorder, Unfinished, begin_operation, continue_operation, end_operation,
)
from cyrt.graph.recorder cimport commit_if_complete
from cyrt.runtime.memory cimport Memory

cdef extern from "params/scatter.h" nogil:
    enum: SCATTER_BLOCK, SCATTER_TILE, SCATTER_PARTIAL, SCATTER_COLUMNS, SCATTER_ROWS
    cdef struct Scatter:
        unsigned long long keys, order, values, out, ends, partials
        long long n, step, length
        unsigned int chunks, wide

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    NARROW = 0
    WIDE = 1
    PARTIALS = 2
    ROWS = 3
    ROW_PARTIALS = 4

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Scatter),)


cdef int record_scatter(Recorder encoder, int op, int dtype, const Operand* operands, long long n,
                        long long length, bint wide, bint step) except -1:
    cdef Operand[5] used
    cdef Scatter params
    cdef Launch launch
    cdef Memory workspace = None
    cdef Unfinished before
    cdef bint in_rows = length > 1
    cdef long long tile = SCATTER_ROWS if in_rows else SCATTER_TILE
    cdef long long chunks = ceiling(length, SCATTER_COLUMNS) if in_rows else 1
    cdef long long tiles = ceiling(n, tile), left = tiles, nbytes = 0, partial
    cdef int i, count = 4, block = SCATTER_COLUMNS if in_rows else SCATTER_BLOCK
    if n == 0:
        return 0
    if tiles > MAX_BLOCKS // chunks:
        raise ValueError(f"{catalogue.OPS[op]}: {n:,} indices are more than a grid covers")
    memset(&params, 0, sizeof(params))
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    launch.variant = ROWS if in_rows else WIDE if wide else NARROW
    params.length, params.chunks, params.wide = length, <unsigned int>chunks, wide
    partial = min(<int>SCATTER_PARTIAL, max(8, 2 * launch.entry.itemsizes[0])) * length
    for i in range(4):
        used[i] = operands[i]
    params.out = operands[0].address
    params.keys = operands[1].address
    params.order = operands[2].address
    params.values = operands[3].address
    params.step = step
    while left > 1:
        nbytes += 2 * left * (partial + 8)
        left = ceiling(2 * left, tile)
    # All memory is allocated before the first launch, and used by it: no other one waits.
    if nbytes:
        workspace = allocate_workspace(encoder, nbytes)
        used[4] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])
        params.partials = workspace.address
        count = 5
    before = begin_operation(encoder)
    try:
        while tiles > 1:
            # Partial results come first, as they have the stricter alignment.
            params.n = n
            params.ends = params.partials + 2 * tiles * partial
            set_geometry(&launch.geometry, tiles * chunks, block, 1)
            record_launch(encoder, &launch, &params, used, count, 1 | 1 << (count - 1))
            continue_operation()
            used[1] = used[count - 1]
            count = 2
            params.keys = params.ends
            params.values = params.partials
            params.partials = params.ends + 2 * tiles * 8
            params.order = 0
            params.step = params.wide = 1
            launch.variant = ROW_PARTIALS if in_rows else PARTIALS
            n = 2 * tiles
            tiles = ceiling(n, tile)
        params.n = n
        params.ends = params.partials = 0
        set_geometry(&launch.geometry, chunks, block, 1)
        record_launch(encoder, &launch, &params, used, count, 1)
    finally:
        end_operation(before)
    return commit_if_complete(encoder, encoder.foreign)
