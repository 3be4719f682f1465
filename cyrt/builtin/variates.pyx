# cython: cdivision=True
"""Random numbers whose parameters may be arrays: the launches of variates.cu."""

from libc.string cimport memcpy, memset

from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, ceiling, power_of_two, record_launch, set_geometry,
)

cdef extern from "params/variates.h" nogil:
    cdef struct Variates:
        unsigned long long key, out
        unsigned long long[VARIATES_PARAMETERS] array
        double[VARIATES_PARAMETERS] number
        long long n

cdef enum:
    BLOCK = 128             # threads; each has as much to do as its random bits decide

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Variates),)


cdef int record_variates(Recorder encoder, int op, int dtype, unsigned long long key,
                         const Operand* operands, long long n) except -1:
    cdef Variates params
    cdef Launch launch
    cdef long long blocks
    cdef unsigned int block
    cdef int i
    launch.entry = entry_of(encoder.state.ordinal, op, dtype)
    launch.variant = 0
    if n == 0:
        return 0
    memset(&params, 0, sizeof(params))
    params.key, params.out, params.n = key, operands[0].address, n
    for i in range(VARIATES_PARAMETERS):
        if operands[i + 1].buffer != NULL:
            params.array[i] = operands[i + 1].address
        else:
            memcpy(&params.number[i], operands[i + 1].value, sizeof(double))
    block = power_of_two(n, WARP, BLOCK)
    blocks = ceiling(n, block)
    if blocks > MAX_BLOCKS:
        raise ValueError(f"random numbers: {n:,} are more than a grid covers")
    set_geometry(&launch.geometry, blocks, block, 1)
    return record_launch(encoder, &launch, &params, operands, 1 + VARIATES_PARAMETERS, 1 | WHOLE)
