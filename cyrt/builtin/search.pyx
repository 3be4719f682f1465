# cython: cdivision=True
"""Positions in sorted elements: the launches of search.cu, one thread per value."""


from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.sort cimport KeyOrder, key_order, key_type
from cyrt.graph.commit cimport Recorder

cdef extern from "params/search.h" nogil:
    cdef struct Search:
        unsigned long long sorted, sorter, values, out
        long long n, count
        unsigned int right, invert
        KeyOrder order

cdef enum:
    THREADS = 256

# Kernels, in the order of Row.kernels.
cdef enum Variant:
    INDICES = 0
    CONTAINS = 1

cdef int SEARCH = catalogue.OPS.index("search")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Search),)


cdef int record(Recorder encoder, Variant variant, int dtype, const Operand* operands,
                Search* params) except -1:
    """Record a launch. `n`, `count` and the flags are set already."""
    cdef Launch launch
    cdef unsigned int x
    if params.count == 0:
        return 0
    key_order(&params.order, dtype, False)
    params.out = operands[0].address
    params.sorted = operands[1].address
    params.values = operands[2].address
    if operands[3].buffer != NULL:
        params.sorter = operands[3].address
    launch.entry = entry_of(encoder.state.ordinal, SEARCH, key_type(dtype))
    launch.variant = variant
    x = power_of_two(params.count, 32, THREADS)
    set_geometry(&launch.geometry, min(ceiling(params.count, x), MAX_BLOCKS), x, 1)
    return record_launch(encoder, &launch, params, operands, 4, 1)


cdef int record_search(Recorder encoder, int dtype, const Operand* operands, long long n,
                       long long count, bint right) except -1:
    cdef Search params
    memset(&params, 0, sizeof(params))
    params.n, params.count, params.right = n, count, right
    return record(encoder, INDICES, dtype, operands, &params)


cdef int record_contains(Recorder encoder, int dtype, const Operand* operands, long long n,
                         long long count, bint invert) except -1:
    cdef Search params
    memset(&params, 0, sizeof(params))
    params.n, params.count, params.invert = n, count, invert
    return record(encoder, CONTAINS, dtype, operands, &params)
