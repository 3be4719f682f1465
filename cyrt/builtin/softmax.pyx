# cython: cdivision=True
"""Softmax of rows: the launches of softmax.cu."""


from cpython.object cimport PyObject
from libc.string cimport memset

from cyrt.builtin.entry cimport Entry, entry_of, op_code
from cyrt.builtin.launch cimport (
    WHOLE, Launch, ceiling, multiprocessors_of, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport (
    PART_BLOCK, ROW_CHUNKS, ROW_VECTORS, Rows, are_many, are_vectors, is_long, part_length,
    row_threads, rows_within_warps, set_stream,
)
from cyrt.builtin.space cimport Divider, divider
from cyrt.builtin.workspace cimport allocate_workspace
from cyrt.driver.table cimport cu
from cyrt.graph.commit cimport Recorder
from cyrt.runtime.memory cimport Memory

cdef extern from "params/softmax.h" nogil:
    enum: SOFTMAX_WIDE_TARGETS, SOFTMAX_TRAP, SOFTMAX_STAGES
    cdef struct Softmax:
        unsigned long long x, gradient, targets, out, states
        long long rows, n, x_step, gradient_step, out_step, part, ignored
        Divider parts
        unsigned int flags

# Kernels, in the order of Row.kernels; those of softmax have its parts' states before the stream.
cdef enum Variant:
    HELD = 0
    UNALIGNED
    LONG_ROWS
    PARTS
    STREAM = 3
    SOFTMAX_STREAM = 4

cdef enum:
    STREAM_LEAST = 8193     # elements of a row for which a stream pays

cdef int SOFTMAX = op_code("softmax"), SOFTMAX_VJP = op_code("softmax_vjp")
cdef int CROSS_ENTROPY = op_code("cross_entropy")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Softmax),)


cdef int record_softmax(Recorder encoder, int op, int dtype, const Operand* operands,
                        const Rows* rows, bint wide_targets, long long ignored) except -1:
    cdef Launch launch
    cdef Softmax params
    cdef const Entry* entry = entry_of(encoder.state.ordinal, op, dtype)
    cdef int multiprocessors = multiprocessors_of(encoder.state.ordinal)
    cdef int items = entry.items, size = entry.itemsizes[0], chunks = ROW_CHUNKS(items)
    cdef bint vjp = op == SOFTMAX_VJP
    cdef unsigned int x, y
    if rows.rows == 0 or rows.n == 0:
        return 0
    memset(&params, 0, sizeof(params))
    params.out, params.x = operands[0].address, operands[1].address
    params.gradient, params.targets = operands[2].address, operands[3].address
    params.rows, params.n = rows.rows, rows.n
    params.x_step, params.out_step = rows.x_step, rows.out_step
    params.gradient_step = rows.gradient_step
    params.ignored = ignored
    if vjp:
        chunks //= 2
    launch.entry = entry
    if rows.n % items == 0 and are_vectors(params.x, rows.x_step, items, size) \
            and (op == CROSS_ENTROPY or are_vectors(params.out, rows.out_step, items, size)) \
            and (not vjp or are_vectors(params.gradient, rows.gradient_step, items, size)):
        params.flags = ROW_VECTORS
        launch.variant = HELD
    else:
        launch.variant = UNALIGNED
        chunks //= 2
    if wide_targets:
        params.flags |= SOFTMAX_WIDE_TARGETS
    if cu.cyrtEmuGuard != NULL:
        params.flags |= SOFTMAX_TRAP
    if size == 2 and launch.variant == HELD and not vjp \
            and are_many(rows, STREAM_LEAST, multiprocessors):
        launch.variant = SOFTMAX_STREAM if op == SOFTMAX else STREAM
        if set_stream(&launch, rows, SOFTMAX_STAGES, multiprocessors):
            return record_launch(encoder, &launch, &params, operands, 4, 1 | WHOLE)
        launch.variant = HELD
    if is_long(rows, items, chunks, multiprocessors):
        return record_parts(encoder, op, dtype, &launch, &params, operands, rows, multiprocessors)
    x = row_threads(rows, items, chunks, items, multiprocessors)
    y = rows_within_warps(rows, x)
    set_geometry(&launch.geometry, ceiling(rows.rows, y), x, y)
    return record_launch(encoder, &launch, &params, operands, 4, 1 | WHOLE)


cdef int record_parts(Recorder encoder, int op, int dtype, Launch* launch, Softmax* params,
                      const Operand* operands, const Rows* rows, int multiprocessors) except -1:
    """Record the states of the parts of long rows, and the result from them."""
    cdef Launch first
    cdef Operand[3] weighed
    cdef Operand[5] uses
    cdef Memory states
    cdef int i, wide = max(4, launch.entry.itemsizes[0])
    cdef bint vjp = op == SOFTMAX_VJP
    params.part = part_length(rows, launch.entry.items, multiprocessors)
    params.parts = divider(<unsigned int>ceiling(rows.n, params.part))
    states = allocate_workspace(
        encoder, (1 if vjp else 2) * wide * rows.rows * params.parts.size)
    params.states = states.address
    for i in range(4):
        uses[i] = operands[i]
    uses[4] = Operand(<PyObject*>states, states.address, NULL, [0, 0])
    weighed[0], weighed[1], weighed[2] = uses[4], operands[1], operands[2]
    first.entry = entry_of(encoder.state.ordinal, op if vjp else SOFTMAX, dtype)
    first.variant = PARTS
    set_geometry(&first.geometry, rows.rows * params.parts.size, PART_BLOCK, 1)
    record_launch(encoder, &first, params, weighed, 3 if vjp else 2, 1 | WHOLE)
    launch.variant = LONG_ROWS
    set_geometry(&launch.geometry,
                 rows.rows * (1 if op == CROSS_ENTROPY else params.parts.size), PART_BLOCK, 1)
    return record_launch(encoder, launch, params, uses, 5, 1 | WHOLE)
