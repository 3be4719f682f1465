# cython: cdivision=True
"""The first elements of rows: the launches of top_k.cu. Each launch selects from tiles. The results
of a row's tiles are the row of the next launch, until there is one tile."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.sort cimport KeyOrder, key_order, key_type
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/top_k.h" nogil:
    enum: TOP_K_BLOCK, TOP_K_ITEMS
    cdef struct TopK:
        unsigned long long input, origins, out, to
        long long n, step
        unsigned int k, tiles, last
        KeyOrder order

cdef enum:
    TILE = TOP_K_BLOCK * TOP_K_ITEMS

cdef int TOP_K = catalogue.OPS.index("top_k")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(TopK),)


cdef int record_top_k(Recorder encoder, int dtype, const Operand* operands, long long rows,
                      long long n, int k) except -1:
    cdef Operand[3] part
    cdef TopK params
    cdef Launch launch
    cdef long long most, done = 0, taken
    cdef int size
    memset(&params, 0, sizeof(params))
    key_order(&params.order, dtype, True)
    launch.entry = entry_of(encoder.state.ordinal, TOP_K, key_type(dtype))
    launch.variant = 0
    size = launch.entry.itemsizes[0]
    most = MAX_BLOCKS // ceiling(n, TILE)
    part[0], part[1], part[2] = operands[0], operands[1], operands[2]
    while done < rows:
        taken = min(rows - done, most)
        part[0].address = operands[0].address + done * k * size
        part[1].address = operands[1].address + done * k * 8
        part[2].address = operands[2].address + done * n * size
        params.n, params.k = n, k
        record_rows(encoder, &launch, &params, part, taken, size)
        done += taken
    return 0


cdef int record_rows(Recorder encoder, Launch* launch, TopK* params, const Operand* operands,
                     long long rows, int size) except -1:
    """Record the launches for rows that grids cover."""
    cdef Operand[3] uses
    cdef Operand source = operands[2]
    cdef Memory workspace = None, _before
    cdef long long slots
    params.input, params.origins, params.step = source.address, 0, params.n
    while True:
        _before = workspace      # lives until the launch that reads it is recorded
        params.tiles = <unsigned int>ceiling(params.n, TILE)
        params.last = params.tiles == 1
        set_geometry(&launch.geometry, rows * <long long>params.tiles,
                     power_of_two(ceiling(params.n, TOP_K_ITEMS), WARP, TOP_K_BLOCK), 1)
        if params.last:
            uses[0], uses[1], uses[2] = operands[0], operands[1], source
            params.out, params.to = operands[0].address, operands[1].address
            return record_launch(encoder, launch, params, uses, 3, 3 | WHOLE)
        # Elements, then their indices of 32 bits: k a tile, though the last one may have fewer.
        slots = params.tiles * <long long>params.k
        workspace = allocate_workspace(encoder, rows * slots * (max(4, size) + 4))
        params.out = workspace.address
        params.to = workspace.address + rows * slots * max(4, size)
        uses[0] = Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])
        uses[1] = source
        record_launch(encoder, launch, params, uses, 2, 1)
        source = uses[0]
        params.n = slots - params.k \
            + min(<long long>params.k, params.n - (params.tiles - 1) * <long long>TILE)
        params.input, params.origins, params.step = params.out, params.to, slots
