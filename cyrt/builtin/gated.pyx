# cython: cdivision=True
"""Gradients of gated linear units: the launch of gated.cu."""

import math

from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport dtype_code, entry_of
from cyrt.builtin.explain import expect_shapes
from cyrt.builtin.grid cimport MAX_BLOCKS, ceiling, power_of_two, set_geometry
from cyrt.builtin.launch cimport WHOLE, Explainer, Launch, record_launch, set_example_memory
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row_grid cimport are_vectors
from cyrt.builtin.space cimport MAX_NUMERATOR, Divider, divider
from cyrt.graph.commit cimport Recorder

cdef extern from "params/gated.h" nogil:
    enum: GATED_BLOCK
    enum: GATED_VECTORS
    cdef struct Gated:
        unsigned long long gate, up, gradient, gate_gradient, up_gradient
        long long gate_step, up_step, gradient_step, rows
        unsigned int n, flags
        Divider chunks

cdef enum:
    WARP = 32

cdef int SWIGLU_VJP = catalogue.OPS.index("swiglu_vjp")


def param_bytes(row):
    """Return the size in bytes of the parameter of each kernel of a row."""
    return (sizeof(Gated),) * len(row.kernels)


cdef int record_swiglu_vjp(Recorder encoder, int dtype, const Operand* operands, long long rows,
                           long long n, const long long* steps) except -1:
    cdef Launch launch
    cdef Gated params
    cdef int i, items, size
    cdef unsigned int x, y
    cdef bint vectors
    if rows == 0 or n == 0:
        return 0
    # Contiguous rows are one row, which is cut where a thread may have no elements left.
    if steps[0] == n and steps[1] == n and steps[2] == n and rows * n <= MAX_NUMERATOR:
        n, rows = rows * n, 1
    launch.entry = entry_of(encoder.state.ordinal, SWIGLU_VJP, dtype)
    launch.variant = 0
    items, size = launch.entry.items, launch.entry.itemsizes[0]
    memset(&params, 0, sizeof(params))
    params.gate_gradient, params.up_gradient = operands[0].address, operands[1].address
    params.gate, params.up = operands[2].address, operands[3].address
    params.gradient = operands[4].address
    params.gate_step, params.up_step, params.gradient_step = steps[0], steps[1], steps[2]
    params.rows, params.n = rows, <unsigned int>n
    vectors = n % items == 0
    for i in range(5):
        vectors = vectors and are_vectors(operands[i].address, steps[i - 2] if i > 1 else n, items,
                                          size)
    params.flags = GATED_VECTORS if vectors else 0
    x = power_of_two(ceiling(n, items), 1, GATED_BLOCK)
    y = power_of_two(rows, max(1, WARP // x), GATED_BLOCK // x)
    params.chunks = divider(<unsigned int>ceiling(n, <long long>x * items))
    if n > MAX_NUMERATOR or ceiling(rows, y) > MAX_BLOCKS // params.chunks.size:
        raise ValueError(f"swiglu_vjp: {rows:,} rows of {n:,} elements are more than a grid covers")
    set_geometry(&launch.geometry, ceiling(rows, y) * params.chunks.size, x, y)
    return record_launch(encoder, &launch, &params, operands, 5, 3 | WHOLE)


def explain(Explainer explainer, str op, str dtype, shapes):
    """List the launch of the gradients of a gated linear unit."""
    cdef Operand[5] operands
    cdef long long n
    cdef long long[3] steps
    (shape,) = expect_shapes(op, shapes, "all operands")
    n = shape[-1] if shape else 1
    steps[0] = steps[1] = steps[2] = n
    set_example_memory(operands, 5)
    record_swiglu_vjp(explainer, dtype_code(dtype), operands, math.prod(shape[:-1]), n, steps)
    return dtype
