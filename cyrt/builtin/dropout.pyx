# cython: cdivision=True
"""Dropout: the launch of dropout.cu."""

from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    VECTOR_BYTES, WARP, WHOLE, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/dropout.h" nogil:
    cdef struct Dropout:
        unsigned long long x, out, key
        long long n
        unsigned long long threshold
        double scale
        unsigned int vectors

cdef enum:
    BLOCK = 256             # the maximum number of threads
    BLOCKS = 1 << 16        # threads of larger grids take several vectors

cdef int DROPOUT = op_code("dropout")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Dropout),)


cdef int record_dropout(Recorder encoder, int dtype, const Operand* operands, long long n,
                        unsigned long long key, unsigned long long threshold,
                        double scale) except -1:
    cdef Launch launch
    cdef Dropout params
    cdef long long threads
    cdef unsigned int block
    if n == 0:
        return 0
    memset(&params, 0, sizeof(params))
    params.x, params.out = operands[1].address, operands[0].address
    params.key, params.n, params.threshold, params.scale = key, n, threshold, scale
    params.vectors = operands[1].address % VECTOR_BYTES == 0
    launch.entry = entry_of(encoder.state.ordinal, DROPOUT, dtype)
    launch.variant = 0
    threads = ceiling(n, VECTOR_BYTES // launch.entry.itemsizes[0])
    block = power_of_two(threads, WARP, BLOCK)
    set_geometry(&launch.geometry, min(ceiling(threads, block), <long long>BLOCKS), block, 1)
    return record_launch(encoder, &launch, &params, operands, 2, 1 | WHOLE)
