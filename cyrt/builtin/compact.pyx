# cython: cdivision=True
"""Selection of elements by a mask: the launches of compact.cu."""


from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.entry cimport dtype_code, entry_of
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, Launch, ceiling, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.row import BY_SIZE
from cyrt.dtypes import DTYPES
from cyrt.graph.commit cimport Recorder

cdef extern from "params/compact.h" nogil:
    enum: COMPACT_BLOCK
    cdef struct Compact:
        unsigned long long mask, input, out, sums
        long long n, vector

cdef enum:
    VECTOR = 16                 # elements of the mask that a thread reads at once

# Kernels of count_true, in the order of Row.kernels.
cdef enum Variant:
    COUNTS = 0
    POSITIONS = 1

cdef int COUNT_TRUE = catalogue.OPS.index("count_true")
cdef int SELECT = catalogue.OPS.index("select")
cdef int BOOL = dtype_code("bool")
cdef list by_size = [dtype_code(BY_SIZE[each.itemsize]) for each in DTYPES]

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(Compact),)


cdef int put_mask(Compact* params, Launch* launch, const Operand* operands,
                  long long n) except -1:
    """Set the parameters that all launches over a mask of n elements share."""
    cdef long long tiles = ceiling(n, COMPACT_TILE)
    if tiles > MAX_BLOCKS:
        raise ValueError(f"mask: {n:,} elements are more than a grid covers")
    memset(params, 0, sizeof(Compact))
    params.out = operands[0].address
    params.mask = operands[1].address
    params.n = n
    params.vector = params.mask % VECTOR == 0
    set_geometry(&launch.geometry, tiles, power_of_two(ceiling(n, VECTOR), 32, COMPACT_BLOCK), 1)
    return 0


cdef int record_counts(Recorder encoder, const Operand* operands, long long n) except -1:
    cdef Compact params
    cdef Launch launch
    if n == 0:
        return 0
    put_mask(&params, &launch, operands, n)
    launch.entry = entry_of(encoder.state.ordinal, COUNT_TRUE, BOOL)
    launch.variant = COUNTS
    return record_launch(encoder, &launch, &params, operands, 2, 1)


cdef int record_select(Recorder encoder, int dtype, const Operand* operands, long long n) except -1:
    cdef Compact params
    cdef Launch launch
    if n == 0:
        return 0
    put_mask(&params, &launch, operands, n)
    if operands[2].buffer == NULL:
        launch.entry = entry_of(encoder.state.ordinal, COUNT_TRUE, BOOL)
        launch.variant = POSITIONS
    else:
        launch.entry = entry_of(encoder.state.ordinal, SELECT, by_size[dtype])
        launch.variant = 0
        params.input = operands[2].address
    if operands[3].buffer != NULL:
        params.sums = operands[3].address
    return record_launch(encoder, &launch, &params, operands, 4, 1)
