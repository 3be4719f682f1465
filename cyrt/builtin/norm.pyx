# cython: cdivision=True
"""Normalisation of rows: the launches of norm.cu."""


from cpython.object cimport PyObject
from libc.string cimport memcpy, memset

from cyrt.builtin.entry cimport Entry, entry_of, op_code
from cyrt.builtin.launch cimport (
    VECTOR_BYTES, WARP, WHOLE, Launch, ceiling, multiprocessors_of, power_of_two, record_launch,
    set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport (
    PART_BLOCK, RESIDENT, ROW_BLOCK, ROW_CHUNKS, ROW_VECTORS, STREAM_BLOCK, Rows, are_vectors, fits,
    is_long, part_length, row_threads, rows_of_block, rows_within_warps,
)
from cyrt.builtin.space cimport Divider, divider
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/norm.h" nogil:
    enum: FEW_ITEMS, VJP_HELD, VJP_ADDENDS, FULL_CHUNKS, NORM_STREAM, NORM_FULL
    int VJP_CHUNKS(int items)
    int NORM_STAGES(int itemsize)
    cdef struct Norm:
        unsigned long long x, gradient, weight, bias, out
        unsigned long long states, partials, weight_gradient, bias_gradient
        long long rows, n, x_step, gradient_step, out_step, part
        unsigned char[8] eps, share
        Divider parts, strips
        unsigned int groups, flags

# Kernels, in the order of Row.kernels. Those of aligned rows in registers come in pairs, the second
# one with weight; those with bias come later.
cdef enum Variant:
    HELD = 0
    UNALIGNED = 2
    PARTS
    LONG_ROWS
    BIASED
    COLUMNS = 5
    VJP_BIASED

# Operands.
cdef enum:
    OUT = 0
    X = 1
    WEIGHT = 2
    BIAS = 3
    GRADIENT = 2
    VJP_WEIGHT = 3
    WEIGHT_GRADIENT = 4
    BIAS_GRADIENT = 5

cdef enum:
    STATE = 4               # numbers of the state of a part of a row
    JOINT_STATE = 6         # numbers of such a state of the gradients
    STRIP_RESIDENT = 2      # blocks of strips on a multiprocessor
    COLUMN = 32             # columns of a block that adds partials
    # The shortest and the longest rows of which two that fill their threads share a block.
    FULL_LEAST = 1024
    FULL_MOST = 4096

cdef int LAYER_NORM = op_code("layer_norm")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Norm),)


cdef inline int begin(Norm* params, const Entry* entry, const Operand* operands, const Rows* rows,
                      double eps) noexcept:
    """Set the parameters that all launches have; return the bytes of an element."""
    cdef int items = entry.items, size = entry.itemsizes[0]
    memset(params, 0, sizeof(Norm))
    params.out, params.x = operands[OUT].address, operands[X].address
    params.rows, params.n = rows.rows, rows.n
    set_number(params.eps, eps, size)
    set_number(params.share, 1 / <double>rows.n, size)
    params.x_step, params.out_step = rows.x_step, rows.out_step
    params.gradient_step = rows.gradient_step
    if rows.n % items == 0 and are_vectors(params.x, rows.x_step, items, size) \
            and are_vectors(params.out, rows.out_step, items, size):
        params.flags = ROW_VECTORS
    return size


cdef inline void set_number(unsigned char* to, double value, int size) noexcept:
    """Set a number in the type that elements of `size` bytes are computed in."""
    cdef float single = <float>value
    if size == sizeof(double):
        memcpy(to, &value, sizeof(double))
    else:
        memcpy(to, &single, sizeof(float))


cdef inline void set_parts(Norm* params, Launch* launch, const Rows* rows,
                           int multiprocessors) noexcept:
    params.part = part_length(rows, launch.entry.items, multiprocessors)
    params.parts = divider(<unsigned int>ceiling(rows.n, params.part))
    launch.variant = PARTS
    set_geometry(&launch.geometry, rows.rows * params.parts.size, PART_BLOCK, 1)


cdef inline Operand operand_of(Memory workspace) noexcept:
    return Operand(<PyObject*>workspace, workspace.address, NULL, [0, 0])


cdef int record_norm(Recorder encoder, int op, int dtype, const Operand* operands,
                     const Rows* rows, double eps) except -1:
    cdef Launch launch
    cdef Norm params
    cdef Operand[3] measured
    cdef Operand[5] normalized
    cdef Memory states
    cdef const Entry* entry = entry_of(encoder.state.ordinal, op, dtype)
    cdef int multiprocessors = multiprocessors_of(encoder.state.ordinal)
    cdef int i, chunks = ROW_CHUNKS(entry.items)
    cdef unsigned int x, y
    if rows.rows == 0 or rows.n == 0:
        return 0
    launch.entry = entry
    size = begin(&params, entry, operands, rows, eps)
    params.weight, params.bias = operands[WEIGHT].address, operands[BIAS].address
    launch.variant = (BIASED if params.bias else HELD) + (params.weight != 0)
    if not params.flags & ROW_VECTORS:
        launch.variant = UNALIGNED
        chunks //= 2
    if size == 2 and launch.variant != UNALIGNED \
            and set_full_rows(&launch, &params, rows, multiprocessors):
        return record_launch(encoder, &launch, &params, operands, 4, 1 | WHOLE)
    if not is_long(rows, entry.items, chunks, multiprocessors):
        # A float32 row that fits in half of the largest block is faster with few elements a thread.
        if entry.items == 4 and launch.variant != UNALIGNED \
                and rows.n <= ROW_BLOCK // 2 * FEW_ITEMS:
            chunks = FEW_ITEMS // entry.items
        x = row_threads(rows, entry.items, chunks, FEW_ITEMS, multiprocessors)
        y = rows_within_warps(rows, x)
        set_geometry(&launch.geometry, ceiling(rows.rows, y), x, y)
        return record_launch(encoder, &launch, &params, operands, 4, 1 | WHOLE)
    set_parts(&params, &launch, rows, multiprocessors)
    states = allocate_workspace(
        encoder, STATE * max(4, size) * rows.rows * params.parts.size)
    params.states = states.address
    measured[0], measured[1] = operand_of(states), operands[X]
    for i in range(4):
        normalized[i] = operands[i]
    normalized[4] = measured[0]
    record_launch(encoder, &launch, &params, measured, 2, 1 | WHOLE)
    launch.variant = LONG_ROWS
    return record_launch(encoder, &launch, &params, normalized, 5, 1 | WHOLE)


cdef inline bint set_full_rows(Launch* launch, Norm* params, const Rows* rows,
                               int multiprocessors) noexcept:
    """Set the grid of rows that fill their threads, two a block; return whether they do, and keep
    the device busy with so few threads."""
    cdef long long items = launch.entry.items * FULL_CHUNKS, threads = rows.n // items
    cdef long long blocks = ceiling(rows.rows, 2)
    if not FULL_LEAST <= rows.n <= FULL_MOST or rows.n % (WARP * items) \
            or blocks * threads < RESIDENT * multiprocessors:
        return False
    params.flags |= NORM_FULL
    set_geometry(&launch.geometry, blocks, <unsigned int>threads, 1)
    return True


cdef int record_norm_vjp(Recorder encoder, int op, int dtype, const Operand* operands,
                         const Rows* rows, double eps) except -1:
    cdef Launch launch
    cdef Norm params
    cdef Operand[6] uses
    cdef Memory partials = None
    cdef const Entry* entry = entry_of(encoder.state.ordinal, op, dtype)
    cdef int multiprocessors = multiprocessors_of(encoder.state.ordinal)
    cdef int items = entry.items, chunks = VJP_CHUNKS(items), size, wide
    cdef int gradients = (operands[WEIGHT_GRADIENT].buffer != NULL) \
        + (operands[BIAS_GRADIENT].buffer != NULL)
    cdef unsigned int block = ROW_BLOCK
    cdef bint held = False
    if rows.n == 0:
        return 0
    launch.entry = entry
    size = begin(&params, entry, operands, rows, eps)
    wide = max(4, size)
    params.gradient, params.weight = operands[GRADIENT].address, operands[VJP_WEIGHT].address
    params.weight_gradient = operands[WEIGHT_GRADIENT].address
    params.bias_gradient = operands[BIAS_GRADIENT].address
    launch.variant = (VJP_BIASED if params.bias_gradient else HELD) + (params.weight != 0)
    if not params.flags & ROW_VECTORS \
            or not are_vectors(params.gradient, rows.gradient_step, items, size):
        params.flags = 0
        launch.variant = UNALIGNED
        chunks = ROW_CHUNKS(items) // 4
    if launch.variant != UNALIGNED and size <= 4:
        block = STREAM_BLOCK
    if rows.rows and rows.n <= block * items * chunks \
            and not is_long(rows, items, chunks, multiprocessors):
        if launch.variant != UNALIGNED:
            held = set_vjp_stream(&launch, &params, rows, chunks, multiprocessors)
        if not held and (launch.variant == UNALIGNED or size > 2):
            held = set_vjp(&launch, &params, rows, chunks, block, gradients * wide,
                           multiprocessors)
    if rows.rows and not held:
        params.strips = divider(<unsigned int>ceiling(
            rows.n, PART_BLOCK * items * (ROW_CHUNKS(items) // 2)))
        params.groups = <unsigned int>min(
            rows.rows, max(1, STRIP_RESIDENT * multiprocessors // params.strips.size))
    if gradients:
        partials = allocate_workspace(encoder, gradients * params.groups * rows.n * wide)
        params.partials = partials.address
    memset(uses, 0, sizeof(uses))
    uses[0] = operands[OUT]
    if gradients:
        uses[1] = operand_of(partials)
    uses[2], uses[3], uses[4] = operands[X], operands[GRADIENT], operands[VJP_WEIGHT]
    if held:
        record_launch(encoder, &launch, &params, uses, 5, 3 | WHOLE)
    elif rows.rows:
        record_long_vjp(encoder, &launch, &params, uses, rows, multiprocessors, wide)
    if not gradients:
        return 0
    return record_columns(encoder, &launch, &params, operands, partials, gradients)


cdef bint set_vjp(Launch* launch, Norm* params, const Rows* rows, int chunks, unsigned int block,
                  int sums, int multiprocessors) except -1:
    """Set the grid of the gradients of rows in registers, in blocks of at most `block` threads with
    `sums` bytes a column in shared memory; return whether that fits."""
    cdef int items = launch.entry.items, size = launch.entry.itemsizes[0]
    # A block has half the threads of a multiprocessor, or all of them.
    cdef unsigned int x = min(block, row_threads(rows, items, chunks, items, multiprocessors))
    cdef unsigned int y = rows_of_block(rows, x, block // 2)
    cdef long long slots = x * chunks * items
    params.groups = <unsigned int>min(
        ceiling(rows.rows, y), multiprocessors * (block // max(x * y, block // 2)))
    set_geometry(&launch.geometry, params.groups, x, y)
    launch.geometry.smem = <unsigned int>((slots * size if params.weight else 0) + y * slots * sums)
    return fits(launch)


cdef bint set_vjp_stream(Launch* launch, Norm* params, const Rows* rows, int chunks,
                         int multiprocessors) except -1:
    """Set the grid of the gradients of rows that stream, a block a multiprocessor; return whether
    they do: 16-bit rows, and those of 4 bytes that fill warps and whose elements are few enough.
    Shared memory has to have room for the rows under way and, if it has no registers, a weight."""
    cdef int items = launch.entry.items
    cdef bint much = rows.n > STREAM_BLOCK * VJP_HELD, short = rows.n < WARP * VJP_HELD
    cdef bint wide = launch.entry.itemsizes[0] > 2
    cdef unsigned int x, y, row
    if wide and (much or short or launch.entry.itemsizes[0] > 4):
        return False
    if not much:
        chunks = VJP_HELD // items
    x = min(<unsigned int>STREAM_BLOCK, max(
        <unsigned int>WARP, row_threads(rows, items, chunks, items, multiprocessors)))
    y = rows_of_block(rows, x, STREAM_BLOCK)
    row = x * chunks * VECTOR_BYTES
    params.groups = <unsigned int>min(ceiling(rows.rows, y), multiprocessors)
    set_geometry(&launch.geometry, params.groups, x, y)
    launch.geometry.smem = (row if params.weight and (much or wide) else 0) \
        + y * 2 * NORM_STAGES(launch.entry.itemsizes[0]) * row
    if not fits(launch):
        return False
    params.flags |= NORM_STREAM
    return True


cdef int record_long_vjp(Recorder encoder, Launch* launch, Norm* params, Operand* uses,
                         const Rows* rows, int multiprocessors, int wide) except -1:
    """Record the gradients of long rows: their parts' states, and then strips of columns."""
    cdef Operand[4] measured
    cdef Memory states
    set_parts(params, launch, rows, multiprocessors)
    states = allocate_workspace(encoder, JOINT_STATE * wide * rows.rows * params.parts.size)
    params.states = states.address
    measured[0] = uses[5] = operand_of(states)
    measured[1], measured[2], measured[3] = uses[2], uses[3], uses[4]
    record_launch(encoder, launch, params, measured, 4, 1 | WHOLE)
    launch.variant = LONG_ROWS
    set_geometry(&launch.geometry, <long long>params.groups * params.strips.size, PART_BLOCK, 1)
    return record_launch(encoder, launch, params, uses, 6, 3 | WHOLE)


cdef int record_columns(Recorder encoder, Launch* launch, Norm* params, const Operand* operands,
                        Memory partials, int gradients) except -1:
    """Record the sums of the partials of weight and bias."""
    cdef Operand[3] uses
    params.strips = divider(<unsigned int>ceiling(params.n, COLUMN))
    uses[0], uses[1] = operands[WEIGHT_GRADIENT], operands[BIAS_GRADIENT]
    uses[2] = operand_of(partials)
    launch.variant = COLUMNS
    set_geometry(&launch.geometry, gradients * <long long>params.strips.size, COLUMN,
                 power_of_two(ceiling(params.groups, VJP_ADDENDS), 1, ROW_BLOCK // COLUMN))
    return record_launch(encoder, launch, params, uses, 3, 3)
