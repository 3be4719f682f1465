# cython: cdivision=True
"""Gradients of gated linear units: the launch of gated.cu."""


from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    WARP, WHOLE, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport are_vectors
from cyrt.builtin.space cimport Divider, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/gated.h" nogil:
    enum: GATED_BLOCK, GATED_VECTORS
    cdef struct Gated:
        unsigned long long gate, up, gradient, gate_gradient, up_gradient
        long long gate_step, up_step, gradient_step, rows
        unsigned int n, flags
        Divider chunks

cdef int SWIGLU_VJP = catalogue.OPS.index("swiglu_vjp")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Gated),)


cdef int record_swiglu_vjp(Recorder encoder, int dtype, const Operand* operands, long long rows,
                           long long n, const long long* steps) except -1:
    cdef Launch launch
    cdef Gated params
    cdef long long count = rows * n, done = 0
    cdef int items, size
    if count == 0:
        return 0
    launch.entry = entry_of(encoder.state.ordinal, SWIGLU_VJP, dtype)
    launch.variant = 0
    items, size = launch.entry.items, launch.entry.itemsizes[0]
    memset(&params, 0, sizeof(params))
    params.gate_gradient, params.up_gradient = operands[0].address, operands[1].address
    params.gate, params.up = operands[2].address, operands[3].address
    params.gradient = operands[4].address
    if rows > 1 and (steps[0] != n or steps[1] != n or steps[2] != n):
        params.gate_step, params.up_step, params.gradient_step = steps[0], steps[1], steps[2]
        params.rows, params.n = rows, <unsigned int>n
        return record_rows(encoder, &launch, &params, operands, items, size)
    # Contiguous rows are one row.
    params.rows = 1
    while done < count:
        params.n = <unsigned int>min(count - done, <long long>GATED_MOST)
        record_rows(encoder, &launch, &params, operands, items, size)
        params.gate_gradient += params.n * <long long>size
        params.up_gradient += params.n * <long long>size
        params.gate += params.n * <long long>size
        params.up += params.n * <long long>size
        params.gradient += params.n * <long long>size
        done += params.n
    return 0


cdef int record_rows(Recorder encoder, Launch* launch, Gated* params, const Operand* operands,
                     int items, int size) except -1:
    cdef unsigned int x, y
    cdef bint vectors = params.n % items == 0 \
        and are_vectors(params.gate_gradient | params.up_gradient, params.n, items, size) \
        and are_vectors(params.gate, params.gate_step, items, size) \
        and are_vectors(params.up, params.up_step, items, size) \
        and are_vectors(params.gradient, params.gradient_step, items, size)
    params.flags = GATED_VECTORS if vectors else 0
    x = power_of_two(ceiling(params.n, items), 1, GATED_BLOCK)
    y = power_of_two(params.rows, max(1, WARP // x), GATED_BLOCK // x)
    params.chunks = divider(<unsigned int>ceiling(params.n, <long long>x * items))
    set_geometry(&launch.geometry, ceiling(params.rows, y) * params.chunks.size, x, y)
    return record_launch(encoder, launch, params, operands, 5, 3 | WHOLE)
